package metal

// id is an Objective-C object, sel a selector.
type (
	id  uintptr
	sel uintptr
)

// maxArgs is the most arguments of a method that is called; selectors with more are not used.
const maxArgs = 6

// objc is the Objective-C runtime and the one function of Metal that is no method. Memory
// that an argument points to is pinned by the caller for as long as the callee needs it.
type objc interface {
	class(name string) id
	sel(name string) sel
	// send calls a method that returns an object, an integer or nothing. A struct of more
	// than 16 bytes is passed by its address, as arm64 does. There are at most maxArgs.
	send(obj id, s sel, args ...uintptr) uintptr
	// sendFloat calls a method without arguments that returns a double.
	sendFloat(obj id, s sel) float64
	pushPool() uintptr
	popPool(uintptr)
	// createSystemDefaultDevice is MTLCreateSystemDefaultDevice; its result is retained.
	createSystemDefaultDevice() id
}
