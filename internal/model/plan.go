package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tfbatch/internal/backend"
	"tfbatch/loader"
	"tfbatch/quant"
)

// Plan is every decision of a load, made from headers alone: which weights a device will hold and
// which tensors of the checkpoint fill them.
type Plan struct {
	Weights []PlannedWeight
	Vectors []PlannedVector

	fills map[string]fill // by tensor
}

// PlannedWeight is one resident weight. It goes by the name of its first tensor.
type PlannedWeight struct {
	Name    string
	Tensors int // that fill it
	Shape   backend.WeightShape

	dst   *backend.Weight
	first stored // how the checkpoint has its first tensor
}

// Bytes is the size of the weight in its format; a device may pad.
func (w PlannedWeight) Bytes() int64 {
	f := w.Shape.Format
	row := f.RowBytes(w.Shape.Cols) + 2*f.ScaleBytes(w.Shape.Cols, w.Shape.ScaleKind)
	return int64(w.Shape.Experts) * int64(w.Shape.Rows) * int64(row)
}

// Quantized says whether a weight is affine.
func (p *Plan) Quantized() bool {
	return slices.ContainsFunc(p.Weights, func(w PlannedWeight) bool { return w.Shape.Format.Kind == quant.Affine })
}

// PlannedVector is one resident f32 buffer [Rows, Cols]: a norm gain, a bias, the kernel of a convolution.
type PlannedVector struct {
	Name       string
	Rows, Cols int

	dst *backend.Buffer
}

// Bytes is what the device keeps of it.
func (v PlannedVector) Bytes() int64 { return 4 * int64(v.Rows) * int64(v.Cols) }

// Bytes is the size of all weights and vectors on the device, before any padding of its own.
func (p *Plan) Bytes() int64 {
	var n int64
	for _, w := range p.Weights {
		n += w.Bytes()
	}
	for _, v := range p.Vectors {
		n += v.Bytes()
	}
	return n
}

// fill says where the bytes of one tensor go: into a vector from element at.Row on, or into a weight as
// matrices of [rows, cols], the i-th at row at.Row of expert at.Expert + i.
type fill struct {
	vector     bool
	index      int // into Plan.Vectors or Plan.Weights
	at         backend.Slot
	matrices   int
	rows, cols int
	stored
}

// stored is how the checkpoint has a tensor.
type stored struct {
	format quant.Format
	scales quant.Kind // of an affine one, whose scales and biases are tensors of their own
}

// Part is one tensor of several that make up a weight or a vector: Rows rows, or elements.
type Part struct {
	Tensor string
	Rows   int
}

// Planner collects a [Plan]. Its methods are given where the handle of the weight will be wanted once
// it is loaded; what does not fit is remembered and reported by Plan, all of it together.
type Planner struct {
	tensors   *loader.Snapshot
	plan      Plan
	ignored   map[string]bool
	quantized Quantization
	encode    quant.Format // for dense matrices; dense: as they are
	missing   names
	faults    names
}

// NewPlanner plans over the tensors of s.
func NewPlanner(s *loader.Snapshot) *Planner {
	return &Planner{tensors: s, plan: Plan{fills: map[string]fill{}}, ignored: map[string]bool{}}
}

// Quantized says how matrices that have scales are stored. It is called before any weight is planned.
func (p *Planner) Quantized(q Quantization) { p.quantized = q }

// Encode lets the load store every dense matrix in f that fits: whose columns its groups divide. It is called
// before any weight is planned.
func (p *Planner) Encode(f quant.Format) { p.encode = f }

// Has reports whether the checkpoint holds the tensor.
func (p *Planner) Has(name string) bool {
	_, ok := find(p.tensors, name)
	return ok
}

// languageModel stands before all names where the model was cut from one that sees, as mlx-vlm saves it.
const languageModel = "language_model."

// find finds a tensor by its name, or by its name in a model that sees.
func find(s *loader.Snapshot, name string) (loader.Tensor, bool) {
	if t, ok := s.Tensor(name); ok {
		return t, true
	}
	return s.Tensor(languageModel + name)
}

// Weight plans a matrix of cols columns that joins parts, one below the other.
func (p *Planner) Weight(dst *backend.Weight, cols int, parts ...Part) {
	p.Experts(dst, 1, cols, func(int) []Part { return parts })
}

// Linear plans a projection from cols inputs: the matrices ".weight" of parts and, where biased, their
// vectors ".bias", joined.
func (p *Planner) Linear(w *backend.Weight, bias *backend.Buffer, cols int, biased bool, parts ...Part) {
	p.Weight(w, cols, suffixed(parts, ".weight")...)
	if biased {
		p.Vector(bias, suffixed(parts, ".bias")...)
	}
}

func suffixed(parts []Part, suffix string) []Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Tensor += suffix
	}
	return out
}

// Experts plans a stack of matrices of cols columns; each expert joins its own parts, whose rows are the
// same for all.
func (p *Planner) Experts(dst *backend.Weight, experts, cols int, parts func(expert int) []Part) {
	w := PlannedWeight{dst: dst, Shape: backend.WeightShape{Experts: experts, Cols: cols}}
	for e := range experts {
		if p.missing.count > enough {
			break
		}
		w.Shape.Rows = 0
		for _, part := range parts(e) {
			f := fill{index: len(p.plan.Weights), at: backend.Slot{Expert: e, Row: w.Shape.Rows}, matrices: 1, rows: part.Rows, cols: cols}
			p.matrix(&w, part.Tensor, f, part.Rows, cols)
			w.Shape.Rows += part.Rows
		}
	}
	p.plan.Weights = append(p.plan.Weights, w)
}

// Stacked plans a stack of matrices of cols columns that the checkpoint keeps as tensors
// [experts, Part.Rows, cols]; each expert joins its own rows of all parts.
func (p *Planner) Stacked(dst *backend.Weight, experts, cols int, parts ...Part) {
	w := PlannedWeight{dst: dst, Shape: backend.WeightShape{Experts: experts, Cols: cols}}
	for _, part := range parts {
		f := fill{index: len(p.plan.Weights), at: backend.Slot{Row: w.Shape.Rows}, matrices: experts, rows: part.Rows, cols: cols}
		p.matrix(&w, part.Tensor, f, experts, part.Rows, cols)
		w.Shape.Rows += part.Rows
	}
	p.plan.Weights = append(p.plan.Weights, w)
}

// matrix notes that a tensor of the given shape fills w as f says.
func (p *Planner) matrix(w *PlannedWeight, name string, f fill, shape ...int) {
	have, ok := p.takeMatrix(name, f, shape)
	if !ok {
		return
	}
	if w.Tensors++; w.Tensors > 1 {
		p.join(w, name, have)
		return
	}
	w.Name, w.first = name, have
	w.Shape.Format, w.Shape.ScaleKind = have.format, have.scales
	if have.format.Kind != quant.Affine && p.encode.Kind == quant.Affine && p.encode.Fits(f.cols) {
		w.Shape.Format, w.Shape.ScaleKind = p.encode, have.format.Kind
	}
}

// join checks that a further tensor of w is like the first. Codes may differ in bits: the weight then has
// the most, in which the fewer keep their values.
func (p *Planner) join(w *PlannedWeight, name string, have stored) {
	same := have
	if have.format.Kind == quant.Affine {
		same.format.Bits = w.first.format.Bits
	}
	if same != w.first {
		p.failf("tensor %q is %v and %q is %v; they make one matrix and must be alike", name, have, w.Name, w.first)
		return
	}
	if have.format.Kind == quant.Affine {
		w.Shape.Format.Bits = max(w.Shape.Format.Bits, have.format.Bits)
	}
}

// String is the format, and the kind of its scales.
func (s stored) String() string {
	if s.format.Kind != quant.Affine {
		return s.format.String()
	}
	return fmt.Sprintf("%v with scales in %v", s.format, quant.Format{Kind: s.scales})
}

// takeMatrix finds a matrix, dense or quantized, and notes what it fills.
func (p *Planner) takeMatrix(name string, f fill, shape []int) (stored, bool) {
	t, ok := find(p.tensors, name)
	if !ok {
		p.missing.add(name)
		return stored{}, false
	}
	module := strings.TrimSuffix(t.Name, ".weight")
	scales, coded := p.tensors.Tensor(module + scalesSuffix)
	format, err := p.quantized.of(module, coded)
	if err != nil {
		p.failf("%v", err)
		return stored{}, false
	}
	if !coded {
		return p.take(name, f, shape)
	}
	return p.takeCodes(t, scales, module, format, f, shape)
}

// The tensors of a quantized module beside its codes, which are called ".weight".
const (
	scalesSuffix = ".scales"
	biasesSuffix = ".biases"
)

// takeCodes checks the three tensors of a quantized matrix against its format and notes what they fill.
func (p *Planner) takeCodes(codes, scales loader.Tensor, module string, format quant.Format, f fill, shape []int) (stored, bool) {
	biases, ok := p.tensors.Tensor(module + biasesSuffix)
	if !ok {
		p.missing.add(module + biasesSuffix)
		return stored{}, false
	}
	last := len(shape) - 1
	if !format.Fits(shape[last]) {
		p.failf("tensor %q: %d inputs do not divide into groups of %d", codes.Name, shape[last], format.Group)
		return stored{}, false
	}
	kind, ok := formatOf(scales.DType)
	if !ok || codes.DType != loader.U32 || biases.DType != scales.DType {
		p.failf("tensor %q is %s with scales in %s and biases in %s; want U32, and the others both in BF16, F16 or F32", codes.Name, codes.DType, scales.DType, biases.DType)
		return stored{}, false
	}
	with := func(cols int) []int { return append(slices.Clone(shape[:last]), cols) }
	packed, groups := with(format.RowBytes(shape[last])/4), with(shape[last]/format.Group)
	for _, c := range []struct {
		tensor loader.Tensor
		want   []int
	}{{codes, packed}, {scales, groups}, {biases, groups}} {
		if !slices.Equal(c.tensor.Shape, c.want) {
			p.failf("tensor %q is %v, the config makes it %v in %v", c.tensor.Name, c.tensor.Shape, c.want, format)
			return stored{}, false
		}
	}
	f.stored = stored{format, kind.Kind}
	p.plan.fills[codes.Name] = f
	p.Ignore(scales.Name)
	p.Ignore(biases.Name)
	return f.stored, true
}

// Vector plans a buffer [1, n] that joins parts, each a tensor [n] or, as a projection to one output has
// it, [1, n].
func (p *Planner) Vector(dst *backend.Buffer, parts ...Part) {
	v := PlannedVector{Name: parts[0].Tensor, Rows: 1, dst: dst}
	for _, part := range parts {
		shape := []int{part.Rows}
		if t, ok := find(p.tensors, part.Tensor); ok && slices.Equal(t.Shape, []int{1, part.Rows}) {
			shape = t.Shape
		}
		p.take(part.Tensor, fill{vector: true, index: len(p.plan.Vectors), at: backend.Slot{Row: v.Cols}}, shape)
		v.Cols += part.Rows
	}
	p.plan.Vectors = append(p.plan.Vectors, v)
}

// Kernel plans a buffer [channels, taps] from a depthwise convolution's tensor [channels, 1, taps], or
// [channels, taps, 1] as MLX writes it: the same bytes.
func (p *Planner) Kernel(dst *backend.Buffer, channels, taps int, tensor string) {
	shape := []int{channels, 1, taps}
	if t, ok := find(p.tensors, tensor); ok && slices.Equal(t.Shape, []int{channels, taps, 1}) {
		shape = t.Shape
	}
	p.take(tensor, fill{vector: true, index: len(p.plan.Vectors)}, shape)
	p.plan.Vectors = append(p.plan.Vectors, PlannedVector{Name: tensor, Rows: channels, Cols: taps, dst: dst})
}

// Ignore says that a tensor may be there and is not used.
func (p *Planner) Ignore(name string) { p.ignored[strings.TrimPrefix(name, languageModel)] = true }

// take finds a dense tensor, checks type and shape, and notes what it fills.
func (p *Planner) take(name string, f fill, shape []int) (stored, bool) {
	t, ok := find(p.tensors, name)
	if !ok {
		p.missing.add(name)
		return stored{}, false
	}
	format, ok := formatOf(t.DType)
	if !ok {
		p.failf("tensor %q is %s; only BF16, F16 and F32 are supported, and codes of MLX; %s", name, t.DType, howToConvert)
		return stored{}, false
	}
	if !slices.Equal(t.Shape, shape) {
		p.failf("tensor %q is %v, the config makes it %v", name, t.Shape, shape)
		return stored{}, false
	}
	f.stored = stored{format: format}
	p.plan.fills[t.Name] = f
	return f.stored, true
}

func (p *Planner) failf(format string, args ...any) {
	p.faults.add(fmt.Sprintf(format, args...))
}

// Plan returns what was collected, or every fault: tensors that are missing, of the wrong shape or type,
// and those that no weight asked for.
func (p *Planner) Plan() (*Plan, error) {
	var unknown names
	if err := p.foreign(); err != nil {
		return nil, err
	}
	for t := range p.tensors.All() {
		if _, used := p.plan.fills[t.Name]; !used && !p.ignored[strings.TrimPrefix(t.Name, languageModel)] && !harmless(t.Name) {
			unknown.add(t.Name)
		}
	}
	var errs []error
	switch {
	case p.faults.count > 0: // a tensor at fault is unknown too, and says less
		errs = append(errs, errors.New(p.faults.String()))
	case unknown.count > 0:
		errs = append(errs, fmt.Errorf("%d tensors that the model does not have: %v", unknown.count, unknown))
	}
	switch {
	case p.missing.count > enough:
		errs = append(errs, fmt.Errorf("more than %d tensors missing: %v", enough, p.missing))
	case p.missing.count > 0:
		errs = append(errs, fmt.Errorf("%d tensors missing: %v", p.missing.count, p.missing))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &p.plan, nil
}

// foreign is an error for the codes of tools whose mark in config.json is missing.
func (p *Planner) foreign() error {
	for t := range p.tensors.All() {
		if strings.HasSuffix(t.Name, ".qweight") {
			return fmt.Errorf("tensor %q is of GPTQ or AWQ, which are not supported; %s", t.Name, howToConvert)
		}
	}
	return nil
}

// harmless are buffers that old exporters saved with the weights and that follow from the config.
func harmless(name string) bool { return strings.HasSuffix(name, "rotary_emb.inv_freq") }

// enough tensors missing end the search for experts, of which a hostile config can name millions.
const enough = 1000

// names are a count and the first few, which is all that fits a message.
type names struct {
	count int
	first []string
}

func (n *names) add(name string) {
	const most = 10
	if n.count++; n.count <= most {
		n.first = append(n.first, name)
	}
}

func (n names) String() string {
	text := strings.Join(n.first, "; ")
	if more := n.count - len(n.first); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func formatOf(t loader.DType) (quant.Format, bool) {
	switch t {
	case loader.BF16:
		return quant.Format{Kind: quant.BF16}, true
	case loader.F16:
		return quant.Format{Kind: quant.F16}, true
	case loader.F32:
		return quant.Format{Kind: quant.F32}, true
	}
	return quant.Format{}, false
}
