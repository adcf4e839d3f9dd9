// Package metal is the device of Apple silicon. It runs the kernels of metal/kernels, which
// Metal compiles from their text, through the Objective-C runtime and without cgo.
//
// Start with [Open]. driver.go speaks to Metal through [objc], of which there are two: the
// system's (objc_darwin_arm64.go) and a fake for tests that counts what is retained and runs
// the kernels on the CPU.
package metal

import "errors"

// ErrUnsupported is what Open returns where there can be no Metal device.
var ErrUnsupported = errors.New("metal: needs macOS on Apple silicon; use device: cpu")
