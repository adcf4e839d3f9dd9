package metal

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"tfbatch/metal/kernels"
)

// fake is an Objective-C runtime with the part of Metal that the driver uses. It counts
// references, empties pools, refuses what Metal would not do, and hands dispatches to a runner.
type fake struct {
	t        testing.TB
	gpu      runner
	fail     string // the method that returns nothing
	nth      int    // from which call on; 0 is always
	calls    map[string]int
	old      bool   // a system before macOS 15
	kill     killer // nil: no work is stopped
	ignoring bool   // command buffers, until the pool of the one that was killed is emptied
	clock    float64
	names    []string
	objects  map[id]*object
	last     id
	pools    [][]id
	pin      runtime.Pinner
	log      []string // methods, each once, in the order of their first call
}

// killer says how many launches of a command buffer run before the system stops it, all of them where it does not,
// and whether the buffers behind it are run all the same.
type killer func(launches []kernels.Launch) (run int, goesOn bool)

// killed is what the system says then.
const (
	killed  = "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)"
	ignored = "Ignored (for causing prior/excessive GPU errors) (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)"
)

// runner runs what the fake was told to.
type runner interface {
	alloc(bytes int64) (kernels.Mem, unsafe.Pointer)
	run(l kernels.Launch) error
}

// object is an instance or a class.
type object struct {
	class    string
	refs     int
	text     []byte // of a string, with its NUL
	mem      kernels.Mem
	contents unsafe.Pointer
	kernel   *kernels.Kernel
	settings map[string]uintptr

	// of a command buffer and its encoder
	launches          []kernels.Launch
	bound             kernels.Launch
	owner             id
	ended, done, open bool
	err               id
	start, end        float64
}

func newFake(t testing.TB, g runner) *fake {
	f := &fake{t: t, gpu: g, objects: map[id]*object{}, calls: map[string]int{}}
	t.Cleanup(f.pin.Unpin)
	return f
}

func (f *fake) add(o *object) id {
	f.last++
	o.refs = 1
	f.objects[f.last] = o
	return f.last
}

// autoreleased makes an object that lives as long as the pool.
func (f *fake) autoreleased(o *object) id {
	if len(f.pools) == 0 {
		f.t.Fatalf("%s made outside a pool", o.class)
	}
	i := f.add(o)
	f.pools[len(f.pools)-1] = append(f.pools[len(f.pools)-1], i)
	return i
}

func (f *fake) drop(i id) {
	o := f.get(i)
	if o.refs--; o.refs == 0 {
		if o.open {
			f.t.Errorf("%s died before endEncoding", o.class)
		}
		delete(f.objects, i)
	}
}

func (f *fake) get(i id) *object {
	o := f.objects[i]
	if o == nil {
		f.t.Fatalf("a message to object %d, which is dead or never was", i)
	}
	return o
}

// class objects are never released; they are told from instances by their name.
func (f *fake) class(name string) id {
	for i, o := range f.objects {
		if o.class == "class "+name {
			return i
		}
	}
	return f.add(&object{class: "class " + name})
}

func (f *fake) sel(name string) sel {
	for i, n := range f.names {
		if n == name {
			return sel(i + 1)
		}
	}
	f.names = append(f.names, name)
	return sel(len(f.names))
}

func (f *fake) pushPool() uintptr {
	f.pools = append(f.pools, nil)
	return uintptr(len(f.pools))
}

func (f *fake) popPool(p uintptr) {
	if p != uintptr(len(f.pools)) {
		f.t.Errorf("pool %d popped, the innermost is %d", p, len(f.pools))
	}
	last := f.pools[len(f.pools)-1]
	f.pools, f.ignoring = f.pools[:len(f.pools)-1], false
	for _, i := range last {
		f.drop(i)
	}
}

func (f *fake) createSystemDefaultDevice() id {
	if f.called("MTLCreateSystemDefaultDevice") {
		return 0
	}
	return f.add(&object{class: "device"})
}

// called notes a method and says whether it is to fail.
func (f *fake) called(method string) bool {
	if f.calls[method]++; f.calls[method] == 1 {
		f.log = append(f.log, method)
	}
	return f.fail == method && f.calls[method] >= f.nth
}

func (f *fake) send(obj id, s sel, args ...uintptr) uintptr {
	method := f.names[s-1]
	if len(args) > maxArgs {
		f.t.Fatalf("%s with %d arguments", method, len(args))
	}
	o := f.get(obj)
	if f.called(method) {
		f.explain(method, args)
		return 0
	}
	switch o.class {
	case "device":
		return f.device(method, args)
	case "queue", "command buffer", "encoder":
		return f.command(obj, o, method, args)
	}
	return f.other(obj, o, method, args)
}

// sendFloat is 0 where it fails: as if the GPU had not run.
func (f *fake) sendFloat(obj id, s sel) float64 {
	method, o := f.names[s-1], f.get(obj)
	if f.called(method) {
		return 0
	}
	if o.class != "command buffer" || !o.done {
		f.t.Errorf("%s of a %s that has not run", method, o.class)
	}
	switch method {
	case "GPUStartTime":
		return o.start
	case "GPUEndTime":
		return o.end
	}
	f.unknown(o.class, method)
	return 0
}

// explain leaves an error where a failing method has a place for one.
func (f *fake) explain(method string, args []uintptr) {
	switch method {
	case "newLibraryWithSource:options:error:", "newComputePipelineStateWithFunction:error:", "newResidencySetWithDescriptor:error:":
		*(*id)(pointer(args[len(args)-1])) = f.autoreleased(&object{class: "error"})
	}
}

func (f *fake) device(method string, args []uintptr) uintptr {
	switch method {
	case "supportsFamily:":
		return 0xab01 // a BOOL: only the lowest byte counts
	case "recommendedMaxWorkingSetSize":
		return 1 << 32
	case "newCommandQueue":
		return uintptr(f.add(&object{class: "queue"}))
	case "newResidencySetWithDescriptor:error:":
		f.want(args[0], "MTLResidencySetDescriptor")
		return uintptr(f.add(&object{class: "residency"}))
	case "newBufferWithLength:options:":
		mem, contents := f.gpu.alloc(int64(args[0]))
		return uintptr(f.add(&object{class: "buffer", mem: mem, contents: contents}))
	case "newLibraryWithSource:options:error:":
		f.want(args[0], "string")
		f.settingsAreSafe(f.want(args[1], "MTLCompileOptions"))
		return uintptr(f.add(&object{class: "library", text: f.get(id(args[0])).text}))
	case "newComputePipelineStateWithFunction:error:":
		return uintptr(f.add(&object{class: "pipeline", kernel: f.want(args[0], "function").kernel}))
	case "respondsToSelector:":
		return truth(!f.old)
	case "release":
		f.drop(f.find("device"))
		return 0
	}
	return f.unknown("device", method)
}

// settingsAreSafe checks the options of a compilation.
func (f *fake) settingsAreSafe(o *object) {
	want := map[string]uintptr{"setLanguageVersion:": languageVersion, "setMathMode:": mathModeSafe, "setMathFloatingPointFunctions:": mathPrecise}
	if f.old {
		want = map[string]uintptr{"setLanguageVersion:": languageVersion, "setFastMathEnabled:": 0}
	}
	if fmt.Sprint(o.settings) != fmt.Sprint(want) {
		f.t.Errorf("compiled with %v, want %v", o.settings, want)
	}
}

func (f *fake) command(i id, o *object, method string, args []uintptr) uintptr {
	switch method {
	case "addResidencySet:":
		f.want(args[0], "residency")
	case "commandBuffer":
		return uintptr(f.autoreleased(&object{class: "command buffer"}))
	case "computeCommandEncoder":
		return uintptr(f.autoreleased(&object{class: "encoder", owner: i, open: true}))
	case "setComputePipelineState:":
		o.bound = kernels.Launch{Kernel: f.want(args[0], "pipeline").kernel}
		o.bound.Buffers = make([]kernels.Span, len(o.bound.Kernel.Buffers))
	case "setBuffer:offset:atIndex:":
		if args[0] != 0 {
			mem := f.want(args[0], "buffer").mem
			o.bound.Buffers[args[2]] = kernels.Span{Mem: mem, Off: int64(args[1]), Len: mem.Bytes() - int64(args[1])}
		}
	case "setBytes:length:atIndex:":
		if int(args[2]) != len(o.bound.Buffers) || args[1] > argsBytes {
			f.t.Errorf("%d bytes of arguments at index %d, want %d", args[1], args[2], len(o.bound.Buffers))
		}
		o.bound.Args = slices.Clone(unsafe.Slice((*byte)(pointer(args[0])), args[1]))
	case "dispatchThreadgroups:threadsPerThreadgroup:":
		grid, group := *(*size)(pointer(args[0])), *(*size)(pointer(args[1]))
		if group != (size{uint64(o.bound.Kernel.Threads), 1, 1}) {
			f.t.Errorf("%s in groups of %v", o.bound.Kernel.Name, group)
		}
		o.bound.Grid = [3]uint32{uint32(grid.width), uint32(grid.height), uint32(grid.depth)}
		owner := f.get(o.owner)
		owner.launches = append(owner.launches, o.bound)
	case "endEncoding":
		o.open = false
		f.get(o.owner).ended = true
	case "commit":
		f.runCommands(o)
	case "waitUntilCompleted":
		if !o.done {
			f.t.Error("waiting for what was not committed")
		}
	case "status":
		switch {
		case o.err != 0:
			return 5 // MTLCommandBufferStatusError
		case !o.done:
			return 0 // MTLCommandBufferStatusNotEnqueued
		}
		return commandCompleted
	case "error":
		return uintptr(o.err)
	case "release":
		f.drop(i)
	default:
		return f.unknown(o.class, method)
	}
	return 0
}

func (f *fake) runCommands(o *object) {
	if !o.ended {
		f.t.Error("committed before endEncoding")
	}
	o.done = true
	o.start = f.clock
	f.clock += secondsOfBuffer
	o.end = f.clock
	if f.ignoring {
		o.err = f.failure(ignored)
		return
	}
	n, goesOn := len(o.launches), true
	if f.kill != nil {
		n, goesOn = f.kill(o.launches)
	}
	for i, l := range o.launches[:min(n+1, len(o.launches))] {
		if i == n {
			l.Grid[0] = (l.Grid[0] + 1) / 2 // the last one gets half way
		}
		if err := f.gpu.run(l); err != nil {
			o.err = f.failure(err.Error())
			return
		}
	}
	if n < len(o.launches) {
		o.err = f.failure(killed)
		f.ignoring = !goesOn
	}
}

// secondsOfBuffer is how long the fake's GPU says that it took.
const secondsOfBuffer = 0.25

func (f *fake) failure(text string) id {
	return f.autoreleased(&object{class: "error", text: append([]byte(text), 0)})
}

func (f *fake) other(i id, o *object, method string, args []uintptr) uintptr {
	switch method {
	case "new":
		return uintptr(f.add(&object{class: o.class[len("class "):], settings: map[string]uintptr{}}))
	case "release":
		f.drop(i)
	case "stringWithUTF8String:":
		return uintptr(f.autoreleased(&object{class: "string", text: []byte(goString(args[0]) + "\x00")}))
	case "setLanguageVersion:", "setMathMode:", "setMathFloatingPointFunctions:", "setFastMathEnabled:":
		o.settings[method] = args[0]
	case "respondsToSelector:":
		return truth(!f.old)
	case "newFunctionWithName:":
		return uintptr(f.function(goString(f.textOf(id(args[0])))))
	case "threadExecutionWidth":
		return threadsOfSimdgroup
	case "maxTotalThreadsPerThreadgroup":
		return 1024
	case "contents":
		return uintptr(o.contents)
	case "addAllocation:":
		f.want(args[0], "buffer")
	case "commit", "requestResidency":
		if o.class != "residency" {
			return f.unknown(o.class, method)
		}
	case "localizedDescription":
		return uintptr(f.autoreleased(&object{class: "string", text: append(o.text, 0)}))
	case "UTF8String":
		return f.textOf(i)
	case "code":
		return 1 // MTLCommandBufferErrorInternal
	default:
		return f.unknown(o.class, method)
	}
	return 0
}

// function finds a kernel of the table; Metal would find it in the library's text.
func (f *fake) function(name string) id {
	for _, k := range kernels.Kernels {
		if k.Name == name {
			return f.add(&object{class: "function", kernel: k})
		}
	}
	return 0
}

func (f *fake) textOf(i id) uintptr {
	text := f.get(i).text
	f.pin.Pin(&text[0])
	return uintptr(unsafe.Pointer(&text[0]))
}

func (f *fake) want(i uintptr, class string) *object {
	o := f.get(id(i))
	if o.class != class {
		f.t.Fatalf("a %s where a %s is wanted", o.class, class)
	}
	return o
}

func (f *fake) find(class string) id {
	for i, o := range f.objects {
		if o.class == class {
			return i
		}
	}
	return 0
}

func (f *fake) unknown(class, method string) uintptr {
	f.t.Fatalf("%s does not know %s", class, method)
	return 0
}

// leaks lists what is alive besides classes.
func (f *fake) leaks() []string {
	var alive []string
	for _, o := range f.objects {
		if len(o.class) < 6 || o.class[:6] != "class " {
			alive = append(alive, o.class)
		}
	}
	if len(f.pools) != 0 {
		alive = append(alive, fmt.Sprintf("%d pools", len(f.pools)))
	}
	return alive
}

func truth(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}
