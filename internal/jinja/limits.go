package jinja

import (
	"fmt"
	"strings"
)

// The bounds of the sandbox. Of 88 real templates the largest has 25 kB, the deepest nests 15, the
// longest tag has 26 operators, and none takes over 16,000 steps for a short chat. A prompt of a
// million tokens is about 4 MB.
const (
	maxSource   = 256 << 10 // bytes of template text
	maxNesting  = 100       // depth of expressions and blocks in the text
	maxChain    = 1000      // operators in one tag, which may all nest; jinja2 ends below 500
	maxCalls    = 200       // macros inside macros; Python's own stack ends near there
	maxDepth    = 500       // containers inside containers, in JSON and in what is printed
	maxSteps    = 10 << 20  // nodes run, items produced and blocks of stepBytes looked at
	maxAlloc    = 256 << 20 // bytes of strings and containers made over one render
	maxOutput   = 32 << 20  // bytes in one output, string or capture
	maxRange    = 100000    // jinja2's MAX_RANGE
	maxIntBits  = 14284     // 4300 digits, the longest int that Python will print
	maxIndent   = 100       // what tojson writes before a line, once a level
	maxFormat   = 10000     // width or precision in a format string
	maxKey      = 4096      // bytes of a spelled-out tuple used as a dict key
	maxDataSize = 256 << 20 // bytes of JSON handed to FromJSON

	stepBytes = 32 // bytes of plain copying or scanning that cost one step
	itemBytes = 32 // what one list item takes, its value included
)

// run is the state of one render.
type run struct {
	lib   *library
	vars  *Map
	env   Env
	steps int // still allowed
	bytes int // still allowed
	calls int // open
	depth int // of the containers being walked
}

// step charges n units of work.
func (r *run) step(n int) error {
	if r.steps -= n; r.steps < 0 {
		return fmt.Errorf("template runs over the limit of %d steps", maxSteps)
	}
	return nil
}

// scan charges the work of looking at n bytes.
func (r *run) scan(n int) error { return r.step(1 + n/stepBytes) }

// alloc charges n bytes that are about to be made.
func (r *run) alloc(n int) error {
	if n > maxOutput {
		return fmt.Errorf("value of %d bytes is over the limit of %d", n, maxOutput)
	}
	if r.bytes -= n; r.bytes < 0 {
		return fmt.Errorf("template makes over the limit of %d bytes of values", maxAlloc)
	}
	return r.scan(n)
}

// items charges n items of a container that is about to be made.
func (r *run) items(n int) error {
	if n > maxOutput/itemBytes {
		return fmt.Errorf("container of %d items is over the limit of %d", n, maxOutput/itemBytes)
	}
	if err := r.alloc(n * itemBytes); err != nil {
		return err
	}
	return r.step(n)
}

// enter and leave bracket a call; calls of calls are bounded.
func (r *run) enter() error {
	if r.calls++; r.calls > maxCalls {
		return fmt.Errorf("calls nest over the limit of %d", maxCalls)
	}
	return nil
}

func (r *run) leave() { r.calls-- }

// enterData and leaveData bracket a walk into a container.
func (r *run) enterData() error {
	if r.depth++; r.depth > maxDepth {
		return fmt.Errorf("containers nest over the limit of %d", maxDepth)
	}
	return nil
}

func (r *run) leaveData() { r.depth-- }

// buffer collects output up to maxOutput.
type buffer struct{ strings.Builder }

func (b *buffer) write(r *run, s string) error {
	if b.Len()+len(s) > maxOutput {
		return fmt.Errorf("output is over the limit of %d bytes", maxOutput)
	}
	if err := r.alloc(len(s)); err != nil {
		return err
	}
	b.WriteString(s)
	return nil
}
