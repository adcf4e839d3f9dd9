// Package backendtest runs the contract of devices as tests. A device's own test is one call of [Run].
package backendtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/contract"
)

// Run holds a device to the contract. open makes a device; the suite closes it.
func Run(t *testing.T, open func(testing.TB) backend.Device) { run(t, contract.Checks(), open) }

// RunDense is Run without weights in codes.
func RunDense(t *testing.T, open func(testing.TB) backend.Device) {
	coded := func(c contract.Check) bool { return strings.Contains(c.Name, "affine") }
	run(t, slices.DeleteFunc(contract.Checks(), coded), open)
}

// RunInt8 holds a device that computes in i8-v1 to what differs there.
func RunInt8(t *testing.T, open func(testing.TB) backend.Device) { run(t, contract.Int8Checks(), open) }

func run(t *testing.T, checks []contract.Check, open func(testing.TB) backend.Device) {
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			err := hold(t, c, open)
			if errors.Is(err, contract.ErrAbsent) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func hold(t testing.TB, c contract.Check, open func(testing.TB) backend.Device) error {
	d := open(t)
	defer func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	return c.Hold(d)
}

// Failures names the checks that a device fails, of those whose names start with prefix. A
// test of the suite itself plants a fault in a device and demands that it is seen.
func Failures(t testing.TB, open func(testing.TB) backend.Device, prefix string) []string {
	var failed []string
	for _, c := range append(contract.Checks(), contract.Int8Checks()...) {
		if !strings.HasPrefix(c.Name, prefix) {
			continue
		}
		if err := hold(t, c, open); err != nil && !errors.Is(err, contract.ErrAbsent) {
			failed = append(failed, c.Name)
			t.Logf("%s: %v", c.Name, err)
		}
	}
	return failed
}
