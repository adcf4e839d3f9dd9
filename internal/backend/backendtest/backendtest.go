// Package backendtest defines what a correct device is: every operator, bit for bit,
// against a reference written straight from ../ARITHMETIC.md.
//
// A device's own test is one call of [Run]. The reference is slow and plain on purpose and
// shares nothing with a device but the scalar functions of package backend.
package backendtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tfbatch/internal/backend"
)

// check is one promise. It opens what it needs on l's device and fails by l.t.
type check struct {
	name string
	do   func(l *lab)
}

// checks lists them all; those of an optional interface skip where a device lacks it.
func checks() []check {
	var all []check
	for _, group := range [][]check{matmulChecks(), rowChecks(), attentionChecks(), convChecks(), moeChecks(), failureChecks()} {
		all = append(all, group...)
	}
	return all
}

// Run holds a device to the contract. open makes a device; the suite closes it.
func Run(t *testing.T, open func(testing.TB) backend.Device) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, open) })
	}
}

func (c check) run(t testing.TB, open func(testing.TB) backend.Device) {
	d := open(t)
	defer func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	c.do(newLab(t, d))
}

// Failures names the checks that a device fails, of those whose names start with prefix. A
// test of the suite itself plants a fault in a device and demands that it is seen.
func Failures(t testing.TB, open func(testing.TB) backend.Device, prefix string) []string {
	var failed []string
	for _, c := range checks() {
		if !strings.HasPrefix(c.name, prefix) {
			continue
		}
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() { // the recorder ends it where a test would end
			defer close(done)
			c.run(r, open)
		}()
		<-done
		if r.message != "" {
			failed = append(failed, c.name)
			t.Logf("%s: %s", c.name, r.message)
		}
	}
	return failed
}

// recorder is a test that keeps its failure to itself.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.message = fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(string, ...any) { runtime.Goexit() }
