// Package contract says what a correct device is: every operator, bit for bit, against a reference written straight
// from ../ARITHMETIC.md.
//
// Start with [Checks]. The reference is slow and plain on purpose and shares nothing with a device but the scalar
// functions of package backend. A device's own tests run the checks through backendtest; selftest runs them where
// tfbatch is used.
package contract

import (
	"errors"
	"fmt"

	"tfbatch/internal/backend"
)

// ErrAbsent is a check of operators that a device need not have and has not.
var ErrAbsent = errors.New("absent")

// ErrDifferent is a result whose bits are not those of the reference.
var ErrDifferent = errors.New("other bits")

// Check is one promise.
type Check struct {
	Name string
	do   func(l *lab)
}

// Checks lists them all.
func Checks() []Check {
	var all []Check
	for _, group := range [][]Check{matmulChecks(), rowChecks(), attentionChecks(), convChecks(), moeChecks(), failureChecks()} {
		all = append(all, group...)
	}
	return all
}

// Hold holds d to the check. The error says where d first differs, or is [ErrAbsent].
func (c Check) Hold(d backend.Device) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			err = r.error
		default:
			panic(r)
		}
	}()
	c.do(newLab(d))
	return nil
}

// broken is thrown where a check ends early: it is called from many small functions.
type broken struct{ error }

func (l *lab) fail(format string, args ...any) { panic(broken{fmt.Errorf(format, args...)}) }

func (l *lab) absent(what string) { panic(broken{fmt.Errorf("%s: %w", what, ErrAbsent)}) }
