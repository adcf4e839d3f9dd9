package selftest

import (
	"errors"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
)

func fast() (backend.Device, error) { return cpu.Open(cpu.Options{Threads: 2}) }

// run tries the parts whose names start with one of only on devices that open makes.
func run(t *testing.T, open func() (backend.Device, error), only ...string) (bool, []Result) {
	t.Helper()
	var all []Result
	good, err := Run(t.Context(), Options{Open: open, CPU: fast, Tokens: 12, Only: only}, func(r Result) { all = append(all, r) })
	if err != nil {
		t.Fatal(err)
	}
	return good, all
}

func TestCPUIsEqualToItself(t *testing.T) {
	good, all := run(t, fast, "opens", "contract/rms", "control", "shapes/LFM2-8B", "replies/plain, 4", "replies/dspark, 16")
	for _, r := range all {
		if r.Verdict != Equal {
			t.Errorf("%+v", r)
		}
	}
	if !good {
		t.Error("the report is not good")
	}
}

// TestFaultsOfADeviceAreLines meets devices that are wrong, blind, mad or not there: each part is a line, and the rest goes on.
func TestFaultsOfADeviceAreLines(t *testing.T) {
	for _, c := range []struct {
		name    string
		open    func() (backend.Device, error)
		only    string
		verdict Verdict
		detail  string
	}{
		{"a changed bit in a product", wrap(func(d backend.Device) backend.Device { return tampered{d} }), "contract/matmul/bf16", Different, "row 0, column 0"},
		{"a changed bit in a served shape", wrap(func(d backend.Device) backend.Device { return tampered{d} }), "shapes/LFM2-350M, down, bf16", Different, "the CPU says"},
		{"a panic", wrap(func(d backend.Device) backend.Device { return mad{d} }), "contract/matmul/bf16", Failed, "panic: mad"},
		{"no device", func() (backend.Device, error) { return nil, errors.New("none here") }, "contract/matmul/bf16", Failed, "none here"},
		{"two changes that hide each other", wrap(func(d backend.Device) backend.Device { return tampered{d} }), "control", Failed, "planted and not seen"},
	} {
		good, all := run(t, c.open, c.only)
		for _, r := range all {
			if good || r.Verdict != c.verdict || !strings.Contains(r.Detail, c.detail) {
				t.Errorf("%s: %+v, want %s and %q", c.name, r, c.verdict, c.detail)
			}
		}
	}
}

func wrap(fault func(backend.Device) backend.Device) func() (backend.Device, error) {
	return func() (backend.Device, error) {
		d, err := fast()
		return fault(d), err
	}
}

// mad panics where it should begin.
type mad struct{ backend.Device }

func (mad) Begin() backend.Pass { panic("mad") }
