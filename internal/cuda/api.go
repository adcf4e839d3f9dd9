package cuda

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// api is the little of the CUDA driver API that running kernels takes, as addresses.
type api struct {
	init, deviceGet, deviceGetAttribute             uintptr
	primaryCtxRetain, primaryCtxRelease             uintptr
	ctxSetCurrent, ctxSynchronize                   uintptr
	moduleLoadData, moduleUnload, moduleGetFunction uintptr
	memAlloc, memFree, memset, copyIn, copyOut      uintptr
	launchKernel                                    uintptr
	streamCreate, streamDestroy                     uintptr
	streamBeginCapture, streamEndCapture            uintptr
	graphInstantiate, graphLaunch                   uintptr
	graphDestroy, graphExecDestroy                  uintptr
	getErrorName, getErrorString                    uintptr
}

func (a *api) resolve(lookup func(name string) (uintptr, error)) error {
	for _, f := range []struct {
		to   *uintptr
		name string
	}{
		{&a.init, "cuInit"}, {&a.deviceGet, "cuDeviceGet"}, {&a.deviceGetAttribute, "cuDeviceGetAttribute"},
		{&a.primaryCtxRetain, "cuDevicePrimaryCtxRetain"}, {&a.primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"},
		{&a.ctxSetCurrent, "cuCtxSetCurrent"}, {&a.ctxSynchronize, "cuCtxSynchronize"},
		{&a.moduleLoadData, "cuModuleLoadData"}, {&a.moduleUnload, "cuModuleUnload"}, {&a.moduleGetFunction, "cuModuleGetFunction"},
		{&a.memAlloc, "cuMemAlloc_v2"}, {&a.memFree, "cuMemFree_v2"}, {&a.memset, "cuMemsetD8_v2"},
		{&a.copyIn, "cuMemcpyHtoD_v2"}, {&a.copyOut, "cuMemcpyDtoH_v2"}, {&a.launchKernel, "cuLaunchKernel"},
		{&a.streamCreate, "cuStreamCreate"}, {&a.streamDestroy, "cuStreamDestroy_v2"},
		{&a.streamBeginCapture, "cuStreamBeginCapture_v2"}, {&a.streamEndCapture, "cuStreamEndCapture"},
		{&a.graphInstantiate, "cuGraphInstantiateWithFlags"}, {&a.graphLaunch, "cuGraphLaunch"},
		{&a.graphDestroy, "cuGraphDestroy"}, {&a.graphExecDestroy, "cuGraphExecDestroy"},
		{&a.getErrorName, "cuGetErrorName"}, {&a.getErrorString, "cuGetErrorString"},
	} {
		var err error
		if *f.to, err = lookup(f.name); err != nil {
			return err
		}
	}
	return nil
}

// call runs a function of the driver and makes an error of its CUresult. Pointers are converted
// in its argument list, which keeps what they point to alive and in place.
//
//go:uintptrescapes
func (a *api) call(name string, fn uintptr, args ...uintptr) error {
	r, _, _ := purego.SyscallN(fn, args...)
	code := int32(r)
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: error %d, %s: %s", name, code, a.text(a.getErrorName, code), a.text(a.getErrorString, code))
}

// text asks the driver for one of an error's texts.
func (a *api) text(fn uintptr, code int32) string {
	var s *byte
	if r, _, _ := purego.SyscallN(fn, uintptr(code), uintptr(unsafe.Pointer(&s))); int32(r) != 0 || s == nil {
		return "unknown"
	}
	const longest = 1024 // of a C string that is not ours
	for n := range longest {
		if *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) == 0 {
			return string(unsafe.Slice(s, n))
		}
	}
	return "unknown"
}
