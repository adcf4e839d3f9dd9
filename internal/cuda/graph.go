package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"tfbatch/metal/kernels"
)

// round is a list of launches that Run was given. A decode step is hundreds of launches, each a
// call into the driver, and mostly the very ones of the step before: what changes from step to
// step lies in memory. So a list that comes again is recorded as a graph, one call from then on.
type round struct {
	key  []byte  // functions, grids and parameters, whole
	exec uintptr // CUgraphExec, 0 until the list comes again
}

const maxRounds = 32 // kept, by last use

// graph is the recorded form of launches, 0 where they came for the first time.
func (d *driver) graph(launches []kernels.Launch) (uintptr, error) {
	if err := d.setKey(launches); err != nil {
		return 0, err
	}
	for i, r := range d.rounds {
		if !bytes.Equal(r.key, d.key) {
			continue
		}
		d.rounds = append(append(d.rounds[:i], d.rounds[i+1:]...), r)
		if r.exec != 0 {
			return r.exec, nil
		}
		exec, err := d.record(launches)
		d.rounds[len(d.rounds)-1].exec = exec
		return exec, err
	}
	if len(d.rounds) == maxRounds {
		oldest := d.rounds[0]
		d.rounds = d.rounds[1:]
		if err := d.drop(oldest); err != nil {
			return 0, err
		}
	}
	d.rounds = append(d.rounds, round{key: bytes.Clone(d.key)})
	return 0, nil
}

// setKey writes down all that a list of launches says.
func (d *driver) setKey(launches []kernels.Launch) error {
	d.key = d.key[:0]
	for _, l := range launches {
		f, err := d.function(l.Kernel)
		if err == nil {
			err = d.params.set(l)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.Kernel.Name, err)
		}
		d.key = binary.LittleEndian.AppendUint64(d.key, uint64(f))
		for _, n := range l.Grid {
			d.key = binary.LittleEndian.AppendUint32(d.key, n)
		}
		d.key = append(d.key, d.params.block[:d.params.size]...)
	}
	return nil
}

const captureThreadLocal = 1 // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

// record makes a graph of launches without running them.
func (d *driver) record(launches []kernels.Launch) (exec uintptr, err error) {
	if err := d.call("cuStreamBeginCapture", d.streamBeginCapture, d.stream, captureThreadLocal); err != nil {
		return 0, err
	}
	failed := d.each(launches)
	var graph uintptr
	if err := d.call("cuStreamEndCapture", d.streamEndCapture, d.stream, uintptr(unsafe.Pointer(&graph))); err != nil {
		return 0, errors.Join(failed, err)
	}
	if failed == nil {
		failed = d.call("cuGraphInstantiateWithFlags", d.graphInstantiate, uintptr(unsafe.Pointer(&exec)), graph, 0)
	}
	return exec, errors.Join(failed, d.call("cuGraphDestroy", d.graphDestroy, graph))
}

// drop frees a round's graph.
func (d *driver) drop(r round) error {
	if r.exec == 0 {
		return nil
	}
	return d.call("cuGraphExecDestroy", d.graphExecDestroy, r.exec)
}
