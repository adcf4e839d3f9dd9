// Code generated from the .metal files by metal/internal/msl/gen; DO NOT EDIT.

package kernels

import (
	"encoding/binary"
	"math"
)

// attendArgs is the struct of that name in attend.metal.
type attendArgs struct {
	Heads  uint32
	Kv     uint32
	Dim    uint32
	Padded uint32
	Chunks uint32
	Scale  float32
}

func (a attendArgs) bytes() []byte {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint32(b, a.Heads)
	b = binary.LittleEndian.AppendUint32(b, a.Kv)
	b = binary.LittleEndian.AppendUint32(b, a.Dim)
	b = binary.LittleEndian.AppendUint32(b, a.Padded)
	b = binary.LittleEndian.AppendUint32(b, a.Chunks)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Scale))
	return b
}

func launchAttend(k *Kernel, grid [3]uint32, queries, keys, values, pos, table, pages, part Span, args attendArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{queries, keys, values, pos, table, pages, part}, Args: args.bytes()}
}

// mergeArgs is the struct of that name in attend.metal.
type mergeArgs struct {
	N      uint32
	Heads  uint32
	Dim    uint32
	Chunks uint32
}

func (a mergeArgs) bytes() []byte {
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Heads)
	b = binary.LittleEndian.AppendUint32(b, a.Dim)
	b = binary.LittleEndian.AppendUint32(b, a.Chunks)
	return b
}

func launchMerge(k *Kernel, grid [3]uint32, part, pos, dst Span, args mergeArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{part, pos, dst}, Args: args.bytes()}
}

var kAttendBf16 = Kernel{Name: "attend_bf16", File: "attend", Threads: 256, ArgsSize: 24, Buffers: []Param{{Name: "queries", Written: false}, {Name: "keys", Written: false}, {Name: "values", Written: false}, {Name: "pos", Written: false}, {Name: "table", Written: false}, {Name: "pages", Written: false}, {Name: "part", Written: true}}}

var kAttendF32 = Kernel{Name: "attend_f32", File: "attend", Threads: 256, ArgsSize: 24, Buffers: []Param{{Name: "queries", Written: false}, {Name: "keys", Written: false}, {Name: "values", Written: false}, {Name: "pos", Written: false}, {Name: "table", Written: false}, {Name: "pages", Written: false}, {Name: "part", Written: true}}}

var kMerge = Kernel{Name: "merge", File: "attend", Threads: 256, ArgsSize: 16, Buffers: []Param{{Name: "part", Written: false}, {Name: "pos", Written: false}, {Name: "dst", Written: true}}}

// addArgs is the struct of that name in elementwise.metal.
type addArgs struct {
	N uint32
}

func (a addArgs) bytes() []byte {
	b := make([]byte, 0, 4)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	return b
}

func launchAdd(k *Kernel, grid [3]uint32, a, b, dst Span, args addArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{a, b, dst}, Args: args.bytes()}
}

// biasArgs is the struct of that name in elementwise.metal.
type biasArgs struct {
	N    uint32
	Cols uint32
}

func (a biasArgs) bytes() []byte {
	b := make([]byte, 0, 8)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	return b
}

func launchBias(k *Kernel, grid [3]uint32, b, x Span, args biasArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{b, x}, Args: args.bytes()}
}

// swigluArgs is the struct of that name in elementwise.metal.
type swigluArgs struct {
	N     uint32
	Width uint32
}

func (a swigluArgs) bytes() []byte {
	b := make([]byte, 0, 8)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Width)
	return b
}

func launchSwiglu(k *Kernel, grid [3]uint32, gu, dst Span, args swigluArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{gu, dst}, Args: args.bytes()}
}

// gatherArgs is the struct of that name in elementwise.metal.
type gatherArgs struct {
	N    uint32
	Cols uint32
}

func (a gatherArgs) bytes() []byte {
	b := make([]byte, 0, 8)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	return b
}

func launchGather(k *Kernel, grid [3]uint32, src, rows, dst Span, args gatherArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{src, rows, dst}, Args: args.bytes()}
}

// tapArgs is the struct of that name in elementwise.metal.
type tapArgs struct {
	N      uint32
	Cols   uint32
	Stride uint32
	At     uint32
}

func (a tapArgs) bytes() []byte {
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	b = binary.LittleEndian.AppendUint32(b, a.Stride)
	b = binary.LittleEndian.AppendUint32(b, a.At)
	return b
}

func launchTap(k *Kernel, grid [3]uint32, src, dst Span, args tapArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{src, dst}, Args: args.bytes()}
}

var kAdd = Kernel{Name: "add", File: "elementwise", Threads: 256, ArgsSize: 4, Buffers: []Param{{Name: "a", Written: false}, {Name: "b", Written: false}, {Name: "dst", Written: true}}}

var kBias = Kernel{Name: "bias", File: "elementwise", Threads: 256, ArgsSize: 8, Buffers: []Param{{Name: "b", Written: false}, {Name: "x", Written: true}}}

var kSwiglu = Kernel{Name: "swiglu", File: "elementwise", Threads: 256, ArgsSize: 8, Buffers: []Param{{Name: "gu", Written: false}, {Name: "dst", Written: true}}}

var kGather = Kernel{Name: "gather", File: "elementwise", Threads: 256, ArgsSize: 8, Buffers: []Param{{Name: "src", Written: false}, {Name: "rows", Written: false}, {Name: "dst", Written: true}}}

var kTap = Kernel{Name: "tap", File: "elementwise", Threads: 256, ArgsSize: 16, Buffers: []Param{{Name: "src", Written: false}, {Name: "dst", Written: true}}}

// embedArgs is the struct of that name in embed.metal.
type embedArgs struct {
	N      uint32
	Cols   uint32
	Units  uint32
	Runs   uint32
	Format uint32
	Scales uint32
}

func (a embedArgs) bytes() []byte {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	b = binary.LittleEndian.AppendUint32(b, a.Units)
	b = binary.LittleEndian.AppendUint32(b, a.Runs)
	b = binary.LittleEndian.AppendUint32(b, a.Format)
	b = binary.LittleEndian.AppendUint32(b, a.Scales)
	return b
}

func launchEmbed(k *Kernel, grid [3]uint32, codes, scales, ids, dst Span, args embedArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{codes, scales, ids, dst}, Args: args.bytes()}
}

var kEmbed = Kernel{Name: "embed", File: "embed", Threads: 256, ArgsSize: 24, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "ids", Written: false}, {Name: "dst", Written: true}}}

// groupArgs is the struct of that name in expert.metal.
type groupArgs struct {
	Pairs   uint32
	Experts uint32
	Size    uint32
	Blocks  uint32
}

func (a groupArgs) bytes() []byte {
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint32(b, a.Pairs)
	b = binary.LittleEndian.AppendUint32(b, a.Experts)
	b = binary.LittleEndian.AppendUint32(b, a.Size)
	b = binary.LittleEndian.AppendUint32(b, a.Blocks)
	return b
}

func launchGroup(k *Kernel, grid [3]uint32, ids, order, blocks Span, args groupArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{ids, order, blocks}, Args: args.bytes()}
}

// expertArgs is the struct of that name in expert.metal.
type expertArgs struct {
	Outs   uint32
	Cols   uint32
	Units  uint32
	Runs   uint32
	Chains uint32
	Scales uint32
	Tiles  uint32
	Share  uint32
}

func (a expertArgs) bytes() []byte {
	b := make([]byte, 0, 32)
	b = binary.LittleEndian.AppendUint32(b, a.Outs)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	b = binary.LittleEndian.AppendUint32(b, a.Units)
	b = binary.LittleEndian.AppendUint32(b, a.Runs)
	b = binary.LittleEndian.AppendUint32(b, a.Chains)
	b = binary.LittleEndian.AppendUint32(b, a.Scales)
	b = binary.LittleEndian.AppendUint32(b, a.Tiles)
	b = binary.LittleEndian.AppendUint32(b, a.Share)
	return b
}

func launchExpert(k *Kernel, grid [3]uint32, codes, scales, x, sums, ids, order, blocks, y Span, args expertArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{codes, scales, x, sums, ids, order, blocks, y}, Args: args.bytes()}
}

var kGroup = Kernel{Name: "group", File: "expert", Threads: 256, ArgsSize: 16, Buffers: []Param{{Name: "ids", Written: false}, {Name: "order", Written: true}, {Name: "blocks", Written: true}}}

var kExpertAffine21x1 = Kernel{Name: "expert_affine2_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine22x1 = Kernel{Name: "expert_affine2_2x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine28x1 = Kernel{Name: "expert_affine2_8x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine31x1 = Kernel{Name: "expert_affine3_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine32x1 = Kernel{Name: "expert_affine3_2x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine38x1 = Kernel{Name: "expert_affine3_8x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine41x1 = Kernel{Name: "expert_affine4_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine41x2 = Kernel{Name: "expert_affine4_1x2", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine42x4 = Kernel{Name: "expert_affine4_2x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine48x4 = Kernel{Name: "expert_affine4_8x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine51x1 = Kernel{Name: "expert_affine5_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine52x1 = Kernel{Name: "expert_affine5_2x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine58x1 = Kernel{Name: "expert_affine5_8x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine61x1 = Kernel{Name: "expert_affine6_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine61x2 = Kernel{Name: "expert_affine6_1x2", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine62x4 = Kernel{Name: "expert_affine6_2x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine68x4 = Kernel{Name: "expert_affine6_8x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine81x1 = Kernel{Name: "expert_affine8_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine81x2 = Kernel{Name: "expert_affine8_1x2", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine82x4 = Kernel{Name: "expert_affine8_2x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertAffine88x4 = Kernel{Name: "expert_affine8_8x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertBf161x1 = Kernel{Name: "expert_bf16_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertBf161x2 = Kernel{Name: "expert_bf16_1x2", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertBf162x4 = Kernel{Name: "expert_bf16_2x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertBf168x4 = Kernel{Name: "expert_bf16_8x4", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF161x1 = Kernel{Name: "expert_f16_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF162x1 = Kernel{Name: "expert_f16_2x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF168x1 = Kernel{Name: "expert_f16_8x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF321x1 = Kernel{Name: "expert_f32_1x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF322x1 = Kernel{Name: "expert_f32_2x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF328x1 = Kernel{Name: "expert_f32_8x1", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertBf16Odd = Kernel{Name: "expert_bf16_odd", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF16Odd = Kernel{Name: "expert_f16_odd", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

var kExpertF32Odd = Kernel{Name: "expert_f32_odd", File: "expert", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "ids", Written: false}, {Name: "order", Written: false}, {Name: "blocks", Written: false}, {Name: "y", Written: true}}}

// unitsumsArgs is the struct of that name in matmul.metal.
type unitsumsArgs struct {
	N     uint32
	Units uint32
	Width uint32
}

func (a unitsumsArgs) bytes() []byte {
	b := make([]byte, 0, 12)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Units)
	b = binary.LittleEndian.AppendUint32(b, a.Width)
	return b
}

func launchUnitsums(k *Kernel, grid [3]uint32, x, sums Span, args unitsumsArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{x, sums}, Args: args.bytes()}
}

// matmulArgs is the struct of that name in matmul.metal.
type matmulArgs struct {
	Rows   uint32
	Outs   uint32
	Cols   uint32
	Units  uint32
	Runs   uint32
	Chains uint32
	Scales uint32
	Tiles  uint32
}

func (a matmulArgs) bytes() []byte {
	b := make([]byte, 0, 32)
	b = binary.LittleEndian.AppendUint32(b, a.Rows)
	b = binary.LittleEndian.AppendUint32(b, a.Outs)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	b = binary.LittleEndian.AppendUint32(b, a.Units)
	b = binary.LittleEndian.AppendUint32(b, a.Runs)
	b = binary.LittleEndian.AppendUint32(b, a.Chains)
	b = binary.LittleEndian.AppendUint32(b, a.Scales)
	b = binary.LittleEndian.AppendUint32(b, a.Tiles)
	return b
}

func launchMatmul(k *Kernel, grid [3]uint32, codes, scales, x, sums, y Span, args matmulArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{codes, scales, x, sums, y}, Args: args.bytes()}
}

var kUnitSums = Kernel{Name: "unit_sums", File: "matmul", Threads: 64, ArgsSize: 12, Buffers: []Param{{Name: "x", Written: false}, {Name: "sums", Written: true}}}

var kMatmulAffine21x1 = Kernel{Name: "matmul_affine2_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine24x1 = Kernel{Name: "matmul_affine2_4x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine31x1 = Kernel{Name: "matmul_affine3_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine34x1 = Kernel{Name: "matmul_affine3_4x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine41x1 = Kernel{Name: "matmul_affine4_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine41x2 = Kernel{Name: "matmul_affine4_1x2", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine42x4 = Kernel{Name: "matmul_affine4_2x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine44x4 = Kernel{Name: "matmul_affine4_4x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine48x4 = Kernel{Name: "matmul_affine4_8x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine51x1 = Kernel{Name: "matmul_affine5_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine54x1 = Kernel{Name: "matmul_affine5_4x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine61x1 = Kernel{Name: "matmul_affine6_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine61x2 = Kernel{Name: "matmul_affine6_1x2", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine62x4 = Kernel{Name: "matmul_affine6_2x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine64x4 = Kernel{Name: "matmul_affine6_4x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine68x4 = Kernel{Name: "matmul_affine6_8x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine81x1 = Kernel{Name: "matmul_affine8_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine81x2 = Kernel{Name: "matmul_affine8_1x2", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine82x4 = Kernel{Name: "matmul_affine8_2x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine84x4 = Kernel{Name: "matmul_affine8_4x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulAffine88x4 = Kernel{Name: "matmul_affine8_8x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulBf161x1 = Kernel{Name: "matmul_bf16_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulBf161x2 = Kernel{Name: "matmul_bf16_1x2", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulBf162x4 = Kernel{Name: "matmul_bf16_2x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulBf164x4 = Kernel{Name: "matmul_bf16_4x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulBf168x4 = Kernel{Name: "matmul_bf16_8x4", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulF161x1 = Kernel{Name: "matmul_f16_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulF164x1 = Kernel{Name: "matmul_f16_4x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulF321x1 = Kernel{Name: "matmul_f32_1x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulF324x1 = Kernel{Name: "matmul_f32_4x1", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulBf16Odd = Kernel{Name: "matmul_bf16_odd", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulF16Odd = Kernel{Name: "matmul_f16_odd", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

var kMatmulF32Odd = Kernel{Name: "matmul_f32_odd", File: "matmul", Threads: 256, ArgsSize: 32, Buffers: []Param{{Name: "codes", Written: false}, {Name: "scales", Written: false}, {Name: "x", Written: false}, {Name: "sums", Written: false}, {Name: "y", Written: true}}}

// qkvArgs is the struct of that name in qkv.metal.
type qkvArgs struct {
	Q      uint32
	Kv     uint32
	Dim    uint32
	Padded uint32
	Flags  uint32
	Eps    float32
}

func (a qkvArgs) bytes() []byte {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint32(b, a.Q)
	b = binary.LittleEndian.AppendUint32(b, a.Kv)
	b = binary.LittleEndian.AppendUint32(b, a.Dim)
	b = binary.LittleEndian.AppendUint32(b, a.Padded)
	b = binary.LittleEndian.AppendUint32(b, a.Flags)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Eps))
	return b
}

func launchQkv(k *Kernel, grid [3]uint32, qkv, q_norm, k_norm, rope, pos, pages, queries, keys, values Span, args qkvArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{qkv, q_norm, k_norm, rope, pos, pages, queries, keys, values}, Args: args.bytes()}
}

var kQkvBf16 = Kernel{Name: "qkv_bf16", File: "qkv", Threads: 128, ArgsSize: 24, Buffers: []Param{{Name: "qkv", Written: false}, {Name: "q_norm", Written: false}, {Name: "k_norm", Written: false}, {Name: "rope", Written: false}, {Name: "pos", Written: false}, {Name: "pages", Written: false}, {Name: "queries", Written: true}, {Name: "keys", Written: true}, {Name: "values", Written: true}}}

var kQkvF32 = Kernel{Name: "qkv_f32", File: "qkv", Threads: 128, ArgsSize: 24, Buffers: []Param{{Name: "qkv", Written: false}, {Name: "q_norm", Written: false}, {Name: "k_norm", Written: false}, {Name: "rope", Written: false}, {Name: "pos", Written: false}, {Name: "pages", Written: false}, {Name: "queries", Written: true}, {Name: "keys", Written: true}, {Name: "values", Written: true}}}

// rmsnormArgs is the struct of that name in rmsnorm.metal.
type rmsnormArgs struct {
	Runs uint32
	N    uint32
	Eps  float32
}

func (a rmsnormArgs) bytes() []byte {
	b := make([]byte, 0, 12)
	b = binary.LittleEndian.AppendUint32(b, a.Runs)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Eps))
	return b
}

func launchRmsnorm(k *Kernel, grid [3]uint32, gain, x, dst Span, args rmsnormArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{gain, x, dst}, Args: args.bytes()}
}

var kRmsnorm = Kernel{Name: "rmsnorm", File: "rmsnorm", Threads: 256, ArgsSize: 12, Buffers: []Param{{Name: "gain", Written: false}, {Name: "x", Written: false}, {Name: "dst", Written: true}}}

// routeArgs is the struct of that name in route.metal.
type routeArgs struct {
	Experts   uint32
	Top       uint32
	HasBias   uint32
	Softmax   uint32
	Normalize uint32
	Scale     float32
}

func (a routeArgs) bytes() []byte {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint32(b, a.Experts)
	b = binary.LittleEndian.AppendUint32(b, a.Top)
	b = binary.LittleEndian.AppendUint32(b, a.HasBias)
	b = binary.LittleEndian.AppendUint32(b, a.Softmax)
	b = binary.LittleEndian.AppendUint32(b, a.Normalize)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Scale))
	return b
}

func launchRoute(k *Kernel, grid [3]uint32, logits, bias, ids, weights Span, args routeArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{logits, bias, ids, weights}, Args: args.bytes()}
}

// combineArgs is the struct of that name in route.metal.
type combineArgs struct {
	N    uint32
	Cols uint32
	Top  uint32
}

func (a combineArgs) bytes() []byte {
	b := make([]byte, 0, 12)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Cols)
	b = binary.LittleEndian.AppendUint32(b, a.Top)
	return b
}

func launchCombine(k *Kernel, grid [3]uint32, y, weights, dst Span, args combineArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{y, weights, dst}, Args: args.bytes()}
}

var kRoute = Kernel{Name: "route", File: "route", Threads: 32, ArgsSize: 24, Buffers: []Param{{Name: "logits", Written: false}, {Name: "bias", Written: false}, {Name: "ids", Written: true}, {Name: "weights", Written: true}}}

var kCombine = Kernel{Name: "combine", File: "route", Threads: 256, ArgsSize: 12, Buffers: []Param{{Name: "y", Written: false}, {Name: "weights", Written: false}, {Name: "dst", Written: true}}}

// shortconvArgs is the struct of that name in shortconv.metal.
type shortconvArgs struct {
	N        uint32
	Channels uint32
	Taps     uint32
	Ring     uint32
	HasBias  uint32
}

func (a shortconvArgs) bytes() []byte {
	b := make([]byte, 0, 20)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Channels)
	b = binary.LittleEndian.AppendUint32(b, a.Taps)
	b = binary.LittleEndian.AppendUint32(b, a.Ring)
	b = binary.LittleEndian.AppendUint32(b, a.HasBias)
	return b
}

func launchShortconv(k *Kernel, grid [3]uint32, bcx, w, bias, ring, lane, pos, dst Span, args shortconvArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{bcx, w, bias, ring, lane, pos, dst}, Args: args.bytes()}
}

// rememberArgs is the struct of that name in shortconv.metal.
type rememberArgs struct {
	N        uint32
	Rows     uint32
	Channels uint32
	Ring     uint32
}

func (a rememberArgs) bytes() []byte {
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint32(b, a.N)
	b = binary.LittleEndian.AppendUint32(b, a.Rows)
	b = binary.LittleEndian.AppendUint32(b, a.Channels)
	b = binary.LittleEndian.AppendUint32(b, a.Ring)
	return b
}

func launchRemember(k *Kernel, grid [3]uint32, bcx, lane, pos, ring Span, args rememberArgs) Launch {
	return Launch{Kernel: k, Grid: grid, Buffers: []Span{bcx, lane, pos, ring}, Args: args.bytes()}
}

var kShortconv = Kernel{Name: "shortconv", File: "shortconv", Threads: 256, ArgsSize: 20, Buffers: []Param{{Name: "bcx", Written: false}, {Name: "w", Written: false}, {Name: "bias", Written: false}, {Name: "ring", Written: false}, {Name: "lane", Written: false}, {Name: "pos", Written: false}, {Name: "dst", Written: true}}}

var kRemember = Kernel{Name: "remember", File: "shortconv", Threads: 256, ArgsSize: 16, Buffers: []Param{{Name: "bcx", Written: false}, {Name: "lane", Written: false}, {Name: "pos", Written: false}, {Name: "ring", Written: true}}}

// Kernels is every kernel, by file.
var Kernels = []*Kernel{
	&kAttendBf16,
	&kAttendF32,
	&kMerge,
	&kAdd,
	&kBias,
	&kSwiglu,
	&kGather,
	&kTap,
	&kEmbed,
	&kGroup,
	&kExpertAffine21x1,
	&kExpertAffine22x1,
	&kExpertAffine28x1,
	&kExpertAffine31x1,
	&kExpertAffine32x1,
	&kExpertAffine38x1,
	&kExpertAffine41x1,
	&kExpertAffine41x2,
	&kExpertAffine42x4,
	&kExpertAffine48x4,
	&kExpertAffine51x1,
	&kExpertAffine52x1,
	&kExpertAffine58x1,
	&kExpertAffine61x1,
	&kExpertAffine61x2,
	&kExpertAffine62x4,
	&kExpertAffine68x4,
	&kExpertAffine81x1,
	&kExpertAffine81x2,
	&kExpertAffine82x4,
	&kExpertAffine88x4,
	&kExpertBf161x1,
	&kExpertBf161x2,
	&kExpertBf162x4,
	&kExpertBf168x4,
	&kExpertF161x1,
	&kExpertF162x1,
	&kExpertF168x1,
	&kExpertF321x1,
	&kExpertF322x1,
	&kExpertF328x1,
	&kExpertBf16Odd,
	&kExpertF16Odd,
	&kExpertF32Odd,
	&kUnitSums,
	&kMatmulAffine21x1,
	&kMatmulAffine24x1,
	&kMatmulAffine31x1,
	&kMatmulAffine34x1,
	&kMatmulAffine41x1,
	&kMatmulAffine41x2,
	&kMatmulAffine42x4,
	&kMatmulAffine44x4,
	&kMatmulAffine48x4,
	&kMatmulAffine51x1,
	&kMatmulAffine54x1,
	&kMatmulAffine61x1,
	&kMatmulAffine61x2,
	&kMatmulAffine62x4,
	&kMatmulAffine64x4,
	&kMatmulAffine68x4,
	&kMatmulAffine81x1,
	&kMatmulAffine81x2,
	&kMatmulAffine82x4,
	&kMatmulAffine84x4,
	&kMatmulAffine88x4,
	&kMatmulBf161x1,
	&kMatmulBf161x2,
	&kMatmulBf162x4,
	&kMatmulBf164x4,
	&kMatmulBf168x4,
	&kMatmulF161x1,
	&kMatmulF164x1,
	&kMatmulF321x1,
	&kMatmulF324x1,
	&kMatmulBf16Odd,
	&kMatmulF16Odd,
	&kMatmulF32Odd,
	&kQkvBf16,
	&kQkvF32,
	&kRmsnorm,
	&kRoute,
	&kCombine,
	&kShortconv,
	&kRemember,
}
