package metal

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"tfbatch/internal/gpu"
	"tfbatch/metal/kernels"
)

// limits keep the GPU's work in short pieces: since macOS 26 a command buffer that makes the display wait is
// killed, after a time that Apple does not tell.
type limits struct {
	dispatch int64 // multiply-adds of a dispatch
	buffer   int64 // and of a command buffer
	launches int   // of a command buffer; a layer of a model is about ten
	again    int   // how often a pass that was killed is run again
}

// usual are the limits of every Mac. An M1 does some 3·10¹¹ multiply-adds a second, so a dispatch takes 30 ms of
// it at the most and a buffer twice that; decoding stays far below.
var usual = limits{dispatch: 1 << 33, buffer: 1 << 34, launches: 64, again: 4}

// Limits implements [gpu.Limited].
func (d *driver) Limits() gpu.Limits { return gpu.Limits{Work: d.dispatch, Again: d.again} }

// shorten halves the command buffers, after one was killed.
func (l *limits) shorten() { l.buffer, l.launches = l.buffer/2, max(l.launches/2, 1) }

// first is how many of launches go into the next command buffer.
func (l *limits) first(launches []kernels.Launch) int {
	work := int64(0)
	for i, one := range launches {
		if work += one.Work; i > 0 && (work > l.buffer || i == l.launches) {
			return i
		}
	}
	return len(launches)
}

// Run implements gpu.Driver. Command buffers of one queue run in order, and the dispatches
// of a serial encoder see what those before them wrote.
func (d *driver) Run(launches []kernels.Launch) error {
	return d.with(func() error {
		if d.residency != 0 && !d.settled {
			d.call(d.residency, "commit")
			d.call(d.residency, "requestResidency")
			d.settled = true
		}
		for _, l := range launches { // compile before anything runs
			if _, err := d.pipeline(l.Kernel); err != nil {
				return fmt.Errorf("%s: %w", l.Kernel.Name, err)
			}
		}
		var buffers []id
		for len(launches) > 0 {
			n := d.first(launches)
			b, err := d.commit(launches[:n])
			if err != nil {
				return errors.Join(err, d.wait(buffers))
			}
			buffers, launches = append(buffers, b), launches[n:]
		}
		err := d.wait(buffers)
		if errors.Is(err, gpu.ErrStopped) {
			d.shorten()
		}
		return err
	})
}

// commit encodes launches into a command buffer and sends it off.
func (d *driver) commit(launches []kernels.Launch) (id, error) {
	buffer, err := d.object(d.queue, "commandBuffer")
	if err != nil {
		return 0, err
	}
	encoder, err := d.object(buffer, "computeCommandEncoder")
	if err != nil {
		return 0, err
	}
	for _, l := range launches {
		if err = d.encode(encoder, l); err != nil {
			err = fmt.Errorf("%s: %w", l.Kernel.Name, err)
			break
		}
	}
	d.call(encoder, "endEncoding") // also on failure: an encoder must not die open
	if err != nil {
		return 0, err
	}
	d.call(buffer, "commit")
	return buffer, nil
}

// wait waits for command buffers and reports the first that failed.
func (d *driver) wait(buffers []id) error {
	var failed error
	for _, b := range buffers {
		d.call(b, "waitUntilCompleted")
		if status := d.call(b, "status"); status != commandCompleted && failed == nil {
			failed = d.commandError(b, status)
		}
		d.spent(b)
	}
	return failed
}

// spent adds the time that the GPU took for a buffer. A clock that makes no sense adds nothing.
func (d *driver) spent(buffer id) {
	if took := d.float(buffer, "GPUEndTime") - d.float(buffer, "GPUStartTime"); took > 0 && !math.IsInf(took, 1) {
		d.busy += took
	}
}

// Busy implements [gpu.Timed].
func (d *driver) Busy() time.Duration { return time.Duration(d.busy * float64(time.Second)) }

// stopped are the failures of a command buffer that is not to blame: it took too long for the system, or another
// one did. They have no public codes beside the timeout's.
var stopped = regexp.MustCompile(`kIOGPUCommandBufferCallbackError(ImpactingInteractivity|Timeout|Hang|InnocentVictim|SubmissionsIgnored)\b`)

func (d *driver) commandError(buffer id, status uintptr) error {
	e := id(d.call(buffer, "error"))
	reason := d.nsError(e)
	if e != 0 && (d.call(e, "code") == codeTimeout || stopped.MatchString(reason.Error())) {
		return fmt.Errorf("%w: command buffer ended with status %d: %w%s", gpu.ErrStopped, status, reason, interactivityAdvice)
	}
	return fmt.Errorf("command buffer ended with status %d: %w", status, reason)
}
