// Package selftest holds a device to the CPU's bits where tfbatch is used: on a machine that its authors may never
// have seen. It is a list of parts that each end in a [Result], whatever the device does, and needs no files.
//
// Start with [Run].
package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/contract"
)

// Verdict is how a part ended.
type Verdict string

// The verdicts. Absent is an operator that the device need not have and has not.
const (
	Equal     Verdict = "equal"
	Different Verdict = "different"
	Failed    Verdict = "failed"
	Absent    Verdict = "absent"
)

// Result is one line of the report.
type Result struct {
	Part    string  `json:"part"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Options say what is tested.
type Options struct {
	Open func() (backend.Device, error) // the device
	CPU  func() (backend.Device, error) // whose bits count
	// Tokens of each reply of the whole model.
	Tokens int
	// Only are the starts of the names of parts that are tried; none is all.
	Only []string
}

// part is one thing to try. It gets a device of its own.
type part struct {
	name string
	do   func(ctx context.Context, d backend.Device) error
}

// ErrNoPart refuses a test of nothing, which would look like one that was passed.
var ErrNoPart = errors.New("no part's name starts so")

// Run tries every part and hands out how each went. It reports whether all were equal; the error is [ErrNoPart] or
// that of a cancelled context.
func Run(ctx context.Context, o Options, report func(Result)) (bool, error) {
	good, tried := true, false
	for _, p := range o.parts() {
		if !o.wants(p.name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		tried = true
		r := o.try(ctx, p)
		good = good && (r.Verdict == Equal || r.Verdict == Absent)
		report(r)
	}
	if !tried {
		return false, fmt.Errorf("%s: %w", strings.Join(o.Only, ", "), ErrNoPart)
	}
	return good, ctx.Err()
}

func (o Options) wants(name string) bool {
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, func(start string) bool { return strings.HasPrefix(name, start) })
}

func (o Options) parts() []part {
	all := []part{{"opens", func(context.Context, backend.Device) error { return nil }}}
	for _, c := range contract.Checks() {
		all = append(all, part{"contract/" + c.Name, func(_ context.Context, d backend.Device) error { return c.Hold(d) }})
	}
	all = append(all, part{"control/a changed bit is seen", seesAChangedBit})
	all = append(all, o.shapes()...)
	return append(all, o.replies()...)
}

// try runs one part on a fresh device. A panic of the device is its result.
func (o Options) try(ctx context.Context, p part) (r Result) {
	start := time.Now()
	r.Part, r.Verdict = p.name, Equal
	defer func() {
		if v := recover(); v != nil {
			r.Verdict, r.Detail = Failed, fmt.Sprintf("panic: %v", v)
		}
		r.Seconds = time.Since(start).Seconds()
	}()
	d, err := o.Open()
	if err == nil {
		err = p.do(ctx, d)
		err = errors.Join(err, d.Close())
	}
	switch {
	case errors.Is(err, contract.ErrAbsent):
		r.Verdict = Absent
	case errors.Is(err, contract.ErrDifferent):
		r.Verdict = Different
	case err != nil:
		r.Verdict = Failed
	}
	if err != nil {
		r.Detail = err.Error()
	}
	return r
}

// seesAChangedBit plants a device whose products are off by one bit in one place: unless the comparison sees it, no
// other line of the report means anything.
func seesAChangedBit(_ context.Context, d backend.Device) error {
	for _, c := range contract.Checks() {
		if c.Name != planted {
			continue
		}
		if err := c.Hold(tampered{d}); !errors.Is(err, contract.ErrDifferent) {
			return fmt.Errorf("%s: a changed bit was planted and not seen", planted)
		}
		return nil
	}
	return fmt.Errorf("there is no check %q", planted)
}

// planted is the check that meets the tampered device.
const planted = "matmul/bf16/rows"
