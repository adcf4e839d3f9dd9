//go:build !race

package cpu

// raced says that the race detector watches, which makes plain Go some twenty times slower.
const raced = false
