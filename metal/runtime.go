package metal

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// host is the runtime with what calls of it need: selectors by name, and pinned memory for
// what arguments point to.
type host struct {
	objc
	selectors map[string]sel
	pinned    *pinned
	pin       runtime.Pinner
}

// pinned is memory that the collector leaves in place. Metal copies what it reads of it
// before a call returns.
type pinned struct {
	grid, group size
	err         id
	text        [textBytes]byte
	args        [argsBytes]byte
}

// size is MTLSize.
type size struct{ width, height, depth uint64 }

const (
	argsBytes = 4096    // the most that setBytes takes
	textBytes = 1 << 17 // a kernel file with its includes, several times over
)

func newHost(rt objc) *host {
	h := &host{objc: rt, selectors: map[string]sel{}, pinned: &pinned{}}
	h.pin.Pin(h.pinned)
	return h
}

func (h *host) free() { h.pin.Unpin() }

// with runs fn inside an autorelease pool on one thread: pools belong to threads, and a
// goroutine may change threads between any two calls.
func (h *host) with(fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := h.pushPool()
	defer h.popPool(pool)
	return fn()
}

// call sends a message by name.
func (h *host) call(obj id, method string, args ...uintptr) uintptr {
	return h.send(obj, h.named(method), args...)
}

func (h *host) named(method string) sel {
	s, ok := h.selectors[method]
	if !ok {
		s = h.sel(method)
		h.selectors[method] = s
	}
	return s
}

// float sends a message by name that returns a double.
func (h *host) float(obj id, method string) float64 { return h.sendFloat(obj, h.named(method)) }

// object sends a message that returns an object, which must not be nil.
func (h *host) object(obj id, method string, args ...uintptr) (id, error) {
	r := id(h.call(obj, method, args...))
	if r == 0 {
		return 0, fmt.Errorf("%s gave nothing", method)
	}
	return r, nil
}

// checked sends a message whose last argument is an NSError**. The result decides, not the
// error: that is also set by warnings.
func (h *host) checked(obj id, method string, args ...uintptr) (id, error) {
	h.pinned.err = 0
	r := id(h.call(obj, method, append(args, uintptr(unsafe.Pointer(&h.pinned.err)))...))
	if r == 0 {
		return 0, fmt.Errorf("%s: %w", method, h.nsError(h.pinned.err))
	}
	return r, nil
}

// is sends a message that returns a BOOL, of which only the lowest byte counts.
func (h *host) is(obj id, method string, args ...uintptr) bool {
	return h.call(obj, method, args...)&0xff != 0
}

// responds asks whether obj has a method.
func (h *host) responds(obj id, method string) bool {
	return h.is(obj, "respondsToSelector:", uintptr(h.sel(method)))
}

// nsString makes an autoreleased string.
func (h *host) nsString(s string) (id, error) {
	if len(s) >= textBytes {
		return 0, fmt.Errorf("text of %d bytes, want less than %d", len(s), textBytes)
	}
	h.pinned.text[copy(h.pinned.text[:], s)] = 0
	return h.object(h.class("NSString"), "stringWithUTF8String:", uintptr(unsafe.Pointer(&h.pinned.text[0])))
}

// nsError makes an error of an NSError.
func (h *host) nsError(e id) error {
	if e == 0 {
		return errors.New("no reason given")
	}
	text := "no description"
	if s := id(h.call(e, "localizedDescription")); s != 0 {
		text = goString(h.call(s, "UTF8String"))
	}
	return fmt.Errorf("error %d: %s", int64(h.call(e, "code")), text)
}

// goString copies a C string that is not ours.
func goString(p uintptr) string {
	if p == 0 {
		return ""
	}
	const longest = 1 << 16
	start := pointer(p)
	for n := range longest {
		if *(*byte)(unsafe.Add(start, n)) == 0 {
			return string(unsafe.Slice((*byte)(start), n))
		}
	}
	return ""
}

// pointer is an address outside the Go heap as a pointer.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
