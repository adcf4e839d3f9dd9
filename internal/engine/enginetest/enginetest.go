// Package enginetest is a made model on a made device, for tests of what runs a model.
// Its logits are a hash of the lane's history, which it reads back through the KV pages
// and a convolution ring as a real family does, so a row in a wrong page, at a wrong
// position or cut back too far fails the forward or changes the reply.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
	"tfbatch/quant"
)

// Model is the made model. Its reply to a history is a pure function of the fields.
type Model struct {
	Vocab   int
	Context int
	EOS     []int32
	Order   int  // how many last tokens decide the logits; 0: all. A small order makes text that repeats
	Trust   bool // skip the check of the whole history in each row: for benchmarks

	// Logits fills row for a history with that hash; nil: spread evenly over -4..4.
	Logits func(history uint64, row []float32)
}

// Info is the facts of m.
func (m Model) Info() model.Info {
	return model.Info{Arch: "made", Vocab: m.Vocab, Hidden: 1, Layers: 1, Context: m.Context, BOS: -1, EOS: m.EOS}
}

// Footprint is nothing that counts.
func (m Model) Footprint(model.Shape) int64 { return 0 }

// NewState makes empty pages and rings.
func (m Model) NewState(s model.Shape) (model.State, error) {
	if s.Lanes < 1 || s.Pages < 1 || s.Rows < 1 || s.Heads < 1 || s.Window < 1 {
		return nil, fmt.Errorf("enginetest: shape %+v", s)
	}
	st := &state{m: m, shape: s, seen: make(map[int32]bool), keys: make([]key, s.Pages*backend.PageKeys), ring: s.Window + kernel - 2}
	for range s.Lanes {
		st.conv = append(st.conv, make([]key, st.ring))
	}
	return st, nil
}

// kernel is the width of the made convolution: a row looks at its two predecessors.
const kernel = 3

// key is what the made model stores at a position. A zero pos1 is an empty place.
type key struct {
	pos1  int32 // position + 1
	id    int32
	chain uint64 // hash of the ids up to here
}

type state struct {
	m     Model
	shape model.Shape
	keys  []key   // [pages · PageKeys]
	conv  [][]key // by lane, [ring]: the tightest that a window and the kernel allow
	ring  int
	out   matrix
	taps  matrix         // the id of each row, in every column
	seen  map[int32]bool // scratch of check
}

// Forward computes at once; what is wrong with the batch surfaces in Commit.
func (s *state) Forward(p backend.Pass, b *model.Batch) model.Out {
	p.(*pass).rows = len(b.IDs)
	if err := s.forward(b); err != nil {
		p.(*pass).fail(err)
	}
	var out model.Out
	if len(b.Heads) > 0 {
		out.Logits = s.out
	}
	if b.Taps && len(s.shape.Taps) > 0 {
		s.tap(b.IDs)
		out.Taps = s.taps
	}
	return out
}

// tap makes the taps of a batch. [rows, len(Taps)], Hidden being 1
func (s *state) tap(ids []int32) {
	s.taps = matrix{len(ids), len(s.shape.Taps), s.taps.data[:0]}
	for _, id := range ids {
		for range s.shape.Taps {
			s.taps.data = append(s.taps.data, float32(id))
		}
	}
}

func (s *state) forward(b *model.Batch) error {
	if err := s.check(b); err != nil {
		return err
	}
	if n := len(b.Heads) * s.m.Vocab; n > cap(s.out.data) {
		s.out.data = make([]float32, n)
	}
	s.out = matrix{len(b.Heads), s.m.Vocab, s.out.data[:len(b.Heads)*s.m.Vocab]}
	head := 0
	for i, id := range b.IDs {
		if err := s.store(b.Rows, i, id); err != nil {
			return err
		}
		if head == len(b.Heads) || int(b.Heads[head]) != i {
			continue
		}
		h, err := s.history(b.Rows, i)
		if err != nil {
			return err
		}
		s.m.Fill(h, s.out.data[head*s.m.Vocab:][:s.m.Vocab])
		head++
	}
	if head != len(b.Heads) {
		return fmt.Errorf("enginetest: heads %v do not ascend within %d rows", b.Heads, len(b.IDs))
	}
	return nil
}

// check holds the batch to what model.Batch and backend.Rows promise.
func (s *state) check(b *model.Batch) error {
	n := len(b.IDs)
	if n == 0 || n > s.shape.Rows || len(b.Heads) > s.shape.Heads || len(b.Rows.Lane) != n || len(b.Rows.Pos) != n {
		return fmt.Errorf("enginetest: %d ids, %d lanes, %d positions, %d heads for shape %+v",
			n, len(b.Rows.Lane), len(b.Rows.Pos), len(b.Heads), s.shape)
	}
	clear(s.seen)
	for i, l := range b.Rows.Lane {
		switch {
		case b.IDs[i] < 0 || int(b.IDs[i]) >= s.m.Vocab:
			return fmt.Errorf("enginetest: row %d is id %d of %d", i, b.IDs[i], s.m.Vocab)
		case i > 0 && b.Rows.Lane[i-1] == l && b.Rows.Pos[i] != b.Rows.Pos[i-1]+1:
			return fmt.Errorf("enginetest: lane %d goes from position %d to %d", l, b.Rows.Pos[i-1], b.Rows.Pos[i])
		case i > 0 && b.Rows.Lane[i-1] != l && s.seen[l]:
			return fmt.Errorf("enginetest: rows of lane %d are not neighbours", l)
		}
		s.seen[l] = true
	}
	return nil
}

// at is the place of a lane's position in its pages.
func (s *state) at(r backend.Rows, lane, pos int32) (*key, error) {
	pages := r.Pages[lane]
	c := int(pos) / backend.PageKeys
	if c >= len(pages) || int(pages[c]) >= s.shape.Pages {
		return nil, fmt.Errorf("enginetest: lane %d at position %d has pages %v of %d", lane, pos, pages, s.shape.Pages)
	}
	return &s.keys[int(pages[c])*backend.PageKeys+int(pos)%backend.PageKeys], nil
}

// store keeps row i, after a look at its predecessors in the ring and in the pages.
func (s *state) store(r backend.Rows, i int, id int32) error {
	lane, pos := r.Lane[i], r.Pos[i]
	ring := s.conv[lane]
	for back := int32(1); back < kernel && back <= pos; back++ {
		if got := ring[int(pos-back)%s.ring]; got.pos1 != pos-back+1 {
			return fmt.Errorf("enginetest: lane %d at position %d: ring holds %d, not %d", lane, pos, got.pos1-1, pos-back)
		}
	}
	var before key
	if pos > 0 {
		k, err := s.at(r, lane, pos-1)
		if err != nil {
			return err
		}
		if before = *k; before.pos1 != pos {
			return fmt.Errorf("enginetest: lane %d at position %d: page holds %d before it", lane, pos, before.pos1-1)
		}
	}
	k, err := s.at(r, lane, pos)
	if err != nil {
		return err
	}
	*k = key{pos1: pos + 1, id: id, chain: mix(before.chain, uint64(id))}
	ring[int(pos)%s.ring] = *k
	return nil
}

// history is the hash of the ids that decide the logits of row i, read from the pages.
func (s *state) history(r backend.Rows, i int) (uint64, error) {
	lane, pos := r.Lane[i], r.Pos[i]
	from := int32(0)
	if s.m.Order > 0 {
		from = max(0, pos-int32(s.m.Order)+1)
	}
	if s.m.Trust && s.m.Order == 0 {
		k, err := s.at(r, lane, pos)
		return k.chain, err
	}
	var h uint64
	for p := from; p <= pos; p++ {
		k, err := s.at(r, lane, p)
		if err != nil {
			return 0, err
		}
		if k.pos1 != p+1 {
			return 0, fmt.Errorf("enginetest: lane %d reads position %d and finds %d", lane, p, k.pos1-1)
		}
		h = mix(h, uint64(k.id))
	}
	return h, nil
}

// Fill sets row to the logits of a history, as Logits would be asked.
func (m Model) Fill(history uint64, row []float32) {
	if m.Logits != nil {
		m.Logits(history, row)
		return
	}
	for i := range row {
		row[i] = float32(mix(history, uint64(i))>>40)/(1<<21) - 4
	}
}

// mix is one step of a hash (the finisher of SplitMix64).
func mix(h, v uint64) uint64 {
	h = (h ^ v + 1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Clock is a time that passes only where a test says so.
type Clock struct{ t time.Time }

// Now is the clock's time.
func (c *Clock) Now() time.Time { return c.t }

// Pass lets d go by.
func (c *Clock) Pass(d time.Duration) { c.t = c.t.Add(d) }

// Device is the made device: it holds the rows that [Model] computes.
type Device struct {
	// Clock, if any, moves with each forward by Cost of its rows.
	Clock *Clock
	Cost  func(rows int) time.Duration
}

var errNone = errors.New("enginetest: the made device has no weights and no buffers")

func (Device) Name() string                                          { return "made" }
func (Device) NewWeight(backend.WeightShape) (backend.Weight, error) { return nil, errNone }
func (Device) Fill(backend.Weight, backend.Slot, quant.Matrix) error { return errNone }
func (Device) NewBuffer(rows, cols int) (backend.Buffer, error)      { return nil, errNone }
func (Device) Write(backend.Buffer, []float32) error                 { return errNone }
func (Device) NewKV(backend.KVShape) (backend.KV, error)             { return nil, errNone }
func (Device) Close() error                                          { return nil }

// Begin starts a forward.
func (d Device) Begin() backend.Pass { return &pass{device: d} }

// pass has Read and Commit; any other operator is a nil method, which a test would notice.
type pass struct {
	backend.Pass
	device Device
	rows   int
	err    error
}

func (p *pass) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *pass) Read(dst []float32, src backend.Buffer) {
	m, ok := src.(matrix)
	if !ok || len(dst) != len(m.data) {
		p.fail(fmt.Errorf("enginetest: read of %T into %d values", src, len(dst)))
		return
	}
	copy(dst, m.data)
}

func (p *pass) Commit(ctx context.Context) error {
	if p.err != nil {
		return p.err
	}
	if p.device.Clock != nil {
		p.device.Clock.Pass(p.device.Cost(p.rows))
	}
	return ctx.Err()
}

type matrix struct {
	rows, cols int
	data       []float32
}

func (m matrix) Shape() (rows, cols int)  { return m.rows, m.cols }
func (m matrix) Top(n int) backend.Buffer { return matrix{n, m.cols, m.data[:n*m.cols]} }
