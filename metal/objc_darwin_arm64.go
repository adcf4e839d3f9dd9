package metal

import (
	"fmt"

	"github.com/ebitengine/purego"

	"tfbatch/internal/backend"
)

// Open returns the Metal device of this machine.
func Open() (backend.Device, error) {
	rt, err := loadSystem()
	if err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	return open(rt)
}

// system is the runtime of macOS. Methods go through SyscallN, which costs a fifth of a
// registered function.
type system struct {
	msgSend, push, pop, create uintptr
	getClass, registerName     func(string) uintptr
	msgSendFloat               func(obj, s uintptr) float64
}

func loadSystem() (*system, error) {
	lib, err := purego.Dlopen("/usr/lib/libobjc.A.dylib", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	// Without CoreGraphics a command-line program has no default device.
	if _, err := purego.Dlopen("/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics", purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, err
	}
	framework, err := purego.Dlopen("/System/Library/Frameworks/Metal.framework/Metal", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	s := &system{}
	for _, f := range []struct {
		to   *uintptr
		lib  uintptr
		name string
	}{
		{&s.msgSend, lib, "objc_msgSend"}, {&s.push, lib, "objc_autoreleasePoolPush"}, {&s.pop, lib, "objc_autoreleasePoolPop"},
		{&s.create, framework, "MTLCreateSystemDefaultDevice"},
	} {
		if *f.to, err = purego.Dlsym(f.lib, f.name); err != nil {
			return nil, err
		}
	}
	// A double comes back in a register that SyscallN does not read.
	purego.RegisterFunc(&s.msgSendFloat, s.msgSend)
	purego.RegisterLibFunc(&s.getClass, lib, "objc_getClass")
	purego.RegisterLibFunc(&s.registerName, lib, "sel_registerName")
	return s, nil
}

func (s *system) class(name string) id { return id(s.getClass(name)) }
func (s *system) sel(name string) sel  { return sel(s.registerName(name)) }

func (s *system) send(obj id, m sel, args ...uintptr) uintptr {
	if len(args) > maxArgs {
		panic(fmt.Sprintf("metal: a method with %d arguments, there is room for %d", len(args), maxArgs))
	}
	var a [2 + maxArgs]uintptr
	a[0], a[1] = uintptr(obj), uintptr(m)
	n := 2 + copy(a[2:], args)
	r, _, _ := purego.SyscallN(s.msgSend, a[:n]...)
	return r
}

func (s *system) sendFloat(obj id, m sel) float64 { return s.msgSendFloat(uintptr(obj), uintptr(m)) }

func (s *system) pushPool() uintptr {
	p, _, _ := purego.SyscallN(s.push)
	return p
}

func (s *system) popPool(p uintptr) { purego.SyscallN(s.pop, p) }

func (s *system) createSystemDefaultDevice() id {
	d, _, _ := purego.SyscallN(s.create)
	return id(d)
}
