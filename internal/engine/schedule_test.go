package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// knowing is a drafter that knows how every text goes on, by its first id. It keeps what it is told and what it sees
// of each lane, and fails the test where that is not a part of the text or has a gap.
type knowing struct {
	t     rapid.TB
	clock *enginetest.Clock
	texts map[int32][]int32
	wrong int // of so many guesses the last is wrong; 0: none
	lanes []knownLane
	taps  []float32
}

type knownLane struct {
	open       bool
	prompt     int // ids of told that it was opened with
	told, seen []int32
}

func newKnowing(lanes int) *knowing { return &knowing{lanes: make([]knownLane, lanes)} }

func (d *knowing) Taps() []int { return []int{1} }

func (d *knowing) Open(lane int, prompt []int32) {
	l := &d.lanes[lane]
	if l.open {
		d.t.Fatalf("lane %d opened twice", lane)
	}
	l.open, l.prompt, l.told, l.seen = true, len(prompt), append(l.told[:0], prompt...), l.seen[:0]
}

func (d *knowing) Propose(_ context.Context, asks []draft.Ask) error {
	d.clock.Pass(time.Millisecond)
	for i := range asks {
		a := &asks[i]
		l := &d.lanes[a.Lane]
		text := d.texts[l.told[0]]
		missing := len(l.told) - 1 - len(l.seen)
		if !l.open || missing > 0 && len(l.told) > l.prompt {
			d.t.Fatalf("lane %d is asked about, open %t, with %d of %d rows seen", a.Lane, l.open, len(l.seen), len(l.told))
		}
		if missing > 0 { // the prompt is read in this round
			continue
		}
		for j := range a.Most {
			id := int32(0)
			if at := len(l.told) + j; at < len(text) {
				id = text[at]
			}
			if d.wrong > 0 && (len(l.told)+j)%d.wrong == 0 {
				id = (id + 1) % 61
			}
			a.IDs, a.Chance = append(a.IDs, id), append(a.Chance, 0.7)
		}
	}
	return nil
}

func (d *knowing) Watch(p backend.Pass, taps backend.Buffer, r backend.Rows) error {
	rows, cols := taps.Shape()
	d.taps = slices.Grow(d.taps[:0], rows*cols)[:rows*cols]
	p.Read(d.taps, taps)
	for i, lane := range r.Lane {
		l, pos := &d.lanes[lane], int(r.Pos[i])
		if !l.open {
			continue
		}
		if pos > len(l.seen) {
			d.t.Fatalf("lane %d goes from position %d to %d", lane, len(l.seen), pos)
		}
		l.seen = append(l.seen[:pos], int32(d.taps[i*cols]))
	}
	return nil
}

// Committed cuts off what was guessed and not kept, and holds the rest to the text.
func (d *knowing) Committed(lane int, ids []int32) {
	l := &d.lanes[lane]
	l.told = append(l.told, ids...)
	text := d.texts[l.told[0]]
	if len(l.told) > len(text) || !slices.Equal(l.told, text[:len(l.told)]) {
		d.t.Fatalf("lane %d was told %v of %v", lane, l.told, text)
	}
	if n := len(l.told) - 1; len(l.seen) < n || !slices.Equal(l.seen[:n], l.told[:n]) {
		d.t.Fatalf("lane %d was told %v and has seen %v", lane, l.told, l.seen)
	}
}

func (d *knowing) Release(lane int) {
	if !d.lanes[lane].open {
		d.t.Fatalf("lane %d released and not open", lane)
	}
	d.lanes[lane].open = false
}

// What may happen between two rounds.
const (
	admitOne   = iota // the next row that waits, if there is room
	stepOnce          // a round: guesses, verify, cut
	snapshot          // a row leaves its lane with what it has said
	restore           // and goes on in another
	releaseOne        // a row is given up
)

// schedule plays a list of actions on an engine, then runs what is left to its end.
type schedule struct {
	t       rapid.TB
	e       *engine.Engine
	plain   map[string]engine.Result
	waiting []*engine.Request
	running []*engine.Request
	kept    []*engine.Request // left their lanes
	done    int
}

func (s *schedule) play(list []int) {
	for i, what := range list {
		s.act(what, i)
	}
	s.waiting, s.kept = append(s.waiting, s.kept...), nil
	for len(s.waiting) > 0 || len(s.running) > 0 {
		for len(s.waiting) > 0 && s.e.Room(s.waiting[0]) {
			s.act(admitOne, 0)
		}
		if len(s.running) == 0 {
			s.t.Fatalf("nothing runs and there is no room for %d rows", len(s.waiting))
		}
		s.act(stepOnce, 0)
	}
}

func (s *schedule) act(what, i int) {
	switch {
	case what == admitOne && len(s.waiting) > 0 && s.e.Room(s.waiting[0]):
		s.waiting = s.admit(s.waiting)
	case what == restore && len(s.kept) > 0 && s.e.Room(s.kept[0]):
		s.kept = s.admit(s.kept)
	case what == snapshot && len(s.running) > 0:
		s.kept = append(s.kept, s.leave(i))
	case what == releaseOne && len(s.running) > 0:
		s.leave(i)
		s.done++
	case what == stepOnce && len(s.running) > 0:
		s.step()
	}
}

func (s *schedule) admit(from []*engine.Request) []*engine.Request {
	if err := s.e.Admit(from[0]); err != nil {
		s.t.Fatalf("%v", err)
	}
	s.running = append(s.running, from[0])
	return from[1:]
}

// leave takes one of the running rows out of its lane. What it has said must be the beginning of the plain reply.
func (s *schedule) leave(i int) *engine.Request {
	i %= len(s.running)
	rest := *s.running[i]
	var ok bool
	if rest.Begun, ok = s.e.Suspend(s.running[i]); !ok {
		s.t.Fatalf("row %s runs and cannot leave", rest.Key)
	}
	if want := s.plain[rest.Key+"/0"].Tokens; len(rest.Begun) >= len(want) || !slices.Equal(rest.Begun, want[:len(rest.Begun)]) {
		s.t.Fatalf("row %s leaves with %v of %v", rest.Key, rest.Begun, want)
	}
	s.running = slices.Delete(s.running, i, i+1)
	return &rest
}

func (s *schedule) step() {
	results, err := s.e.Step(context.Background())
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	for _, r := range results {
		want := s.plain[r.Request.Key+"/0"]
		if r.Err != nil || r.Finish != want.Finish || !slices.Equal(r.Tokens, want.Tokens) {
			s.t.Fatalf("row %s: %v, %s, %v; plain %v, %s", r.Request.Key, r.Tokens, r.Finish, r.Err, want.Tokens, want.Finish)
		}
		s.running = slices.DeleteFunc(s.running, func(q *engine.Request) bool { return q == r.Request })
		s.done++
	}
}

// TestAnyScheduleIsPlainAndHoldsNoMore plays random schedules of admit, draft, cut, snapshot, restore and release:
// every token is the plain one, the drafter's context has no gap, every lane and page comes back, and playing the
// schedule again holds no more memory.
func TestAnyScheduleIsPlainAndHoldsNoMore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rs := scheduled(rt)
		plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 3, Chunk: 512, Context: 512}), rs)
		lanes := rapid.IntRange(1, 6).Draw(rt, "lanes")
		d := newKnowing(lanes)
		d.t, d.clock, d.texts = rt, &enginetest.Clock{}, map[int32][]int32{}
		d.wrong = rapid.IntRange(0, 4).Draw(rt, "wrong")
		for _, r := range rs {
			d.texts[r.Prompt[0]] = append(slices.Clone(r.Prompt), plain[r.Key+"/0"].Tokens...)
		}
		cfg := engine.Config{
			Lanes: lanes, Pages: 2 + rapid.IntRange(0, 2*lanes).Draw(rt, "pages"), Chunk: rapid.IntRange(1, 100).Draw(rt, "chunk"), Context: 512,
			Drafter: d, Depth: engine.Depth(rapid.IntRange(-1, 9).Draw(rt, "depth")),
		}
		if rapid.Bool().Draw(rt, "copies first") {
			cfg.Quick = &draft.Copy{}
		}
		cost := rapid.SampledFrom([]string{"weights", "tiles", "arithmetic", "experts"}).Draw(rt, "device")
		e, err := engine.NewAt(enginetest.Device{Clock: d.clock, Cost: devices[cost]}, small, cfg, d.clock.Now)
		if err != nil {
			rt.Fatal(err)
		}
		list := rapid.SliceOfN(rapid.SampledFrom([]int{admitOne, admitOne, stepOnce, stepOnce, stepOnce, stepOnce, snapshot, restore, releaseOne}), 1, 120).Draw(rt, "schedule")
		again := func(times int) int64 {
			for range times {
				s := &schedule{t: rt, e: e, plain: plain, waiting: slices.Clone(rs)}
				if s.play(list); s.done != len(rs) || e.Active() != 0 {
					rt.Fatalf("%d of %d rows ended, %d are active", s.done, len(rs), e.Active())
				}
			}
			return liveHeap()
		}
		before := again(3)
		if more := again(5) - before; more > noise {
			rt.Fatalf("playing the schedule five times more holds %d bytes more", more)
		}
		for lane, l := range d.lanes {
			if l.open {
				rt.Fatalf("lane %d is open to the drafter", lane)
			}
		}
		if whole := (&engine.Request{Prompt: []int32{1}, MaxTokens: min(cfg.Pages*256, cfg.Context-1)}); !e.Room(whole) {
			rt.Fatal("not every page came back")
		}
	})
}

// scheduled makes rows whose texts begin with ids of their own.
func scheduled(rt *rapid.T) []*engine.Request {
	var rs []*engine.Request
	for i := range rapid.IntRange(1, 8).Draw(rt, "rows") {
		s := rapid.SampledFrom(samplings).Draw(rt, "sampling").Sampling
		rs = append(rs, &engine.Request{
			Key: fmt.Sprint(i), Prompt: append([]int32{int32(i)}, prompt(i, rapid.IntRange(0, 280).Draw(rt, "prompt"))...),
			MaxTokens: rapid.IntRange(1, 60).Draw(rt, "tokens"), Sampling: s,
		})
	}
	return rs
}

// noise is what a heap may hold more by chance: less than a request.
const noise = 32 << 10

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools had kept goes with the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
