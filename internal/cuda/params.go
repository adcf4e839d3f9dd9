package cuda

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"tfbatch/metal/kernels"
)

// params is the parameter block of a launch: the addresses of the buffers, and the argument
// struct, which the kernels take by value. The driver copies it during the launch.
type params struct {
	block [512]byte // Metal's 31 buffers, and a struct of as many numbers
	size  uint64
	extra [5]uintptr
	pin   runtime.Pinner
}

// What cuLaunchKernel's extra lists.
const (
	extraEnd     = 0 // CU_LAUNCH_PARAM_END
	extraPointer = 1 // CU_LAUNCH_PARAM_BUFFER_POINTER
	extraSize    = 2 // CU_LAUNCH_PARAM_BUFFER_SIZE
)

func newParams() *params {
	p := &params{}
	p.pin.Pin(p)
	p.extra = [5]uintptr{
		extraPointer, uintptr(unsafe.Pointer(&p.block[0])),
		extraSize, uintptr(unsafe.Pointer(&p.size)),
		extraEnd,
	}
	return p
}

func (p *params) free() { p.pin.Unpin() }

// set fills the block for a launch.
func (p *params) set(l kernels.Launch) error {
	if len(l.Buffers) != len(l.Kernel.Buffers) || len(l.Args) != l.Kernel.ArgsSize {
		return fmt.Errorf("%d buffers and %d bytes of arguments, want %d and %d", len(l.Buffers), len(l.Args), len(l.Kernel.Buffers), l.Kernel.ArgsSize)
	}
	for i, b := range l.Buffers {
		addr := uint64(0)
		if b.Mem != nil {
			addr = b.Mem.(*memory).addr + uint64(b.Off)
		}
		binary.LittleEndian.PutUint64(p.block[8*i:], addr)
	}
	p.size = uint64(8*len(l.Buffers) + copy(p.block[8*len(l.Buffers):], l.Args))
	return nil
}
