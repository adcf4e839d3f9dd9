package dspark

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPromptChunksCannotBeSeen builds long contexts in pieces that are staged, that overflow the stage and
// that are too large for it.
func TestPromptChunksCannotBeSeen(t *testing.T) {
	r := newRig(t, 1)
	for i, n := range []int{1, 2, 16, 48, 255, 256, 257, 2144, 2500} {
		r.d.stage.most = []int{stageRows, contextRows}[i%2]
		ids := randomIDs(n+1, uint64(n))
		want := r.inOneGo(r.d, 5, ids)
		if len(want.ids) != 5 {
			t.Fatalf("prompt of %d: guesses %v", n, want.ids)
		}
		for _, chunk := range []int{1, 7, 64, 200, 256, 512} {
			if n > 300 && chunk == 1 {
				continue
			}
			r.d.Open(0, ids)
			for at := 0; at < n; at += chunk {
				if got := r.propose(r.d, 5, 0)[0]; len(got.IDs) > 0 {
					t.Fatalf("guesses %v with %d of %d rows seen", got.IDs, at, n)
				}
				r.watch(r.d, span{0, at, ids[at:min(at+chunk, n)]})
			}
			if got := answers(r.d, r.propose(r.d, 5, 0))[0]; !got.equal(want) {
				t.Errorf("prompt of %d in chunks of %d: guesses %v, in one go %v", n, chunk, got.ids, want.ids)
			}
			r.d.Release(0)
		}
	}
}

// TestRoundsWithoutGuessesKeepContext decodes one row at a time over several stages before it asks.
func TestRoundsWithoutGuessesKeepContext(t *testing.T) {
	r := newRig(t, 1)
	r.d.stage.most = contextRows
	for _, rounds := range []int{1, 255, 256, 257, 700} {
		ids := randomIDs(20+rounds, 3)
		want := r.inOneGo(r.d, 5, ids)
		r.d.Open(0, ids[:20])
		r.watch(r.d, span{0, 0, ids[:20]})
		for at := 20; ; at++ {
			r.d.Committed(0, ids[at:at+1])
			if at+1 == len(ids) {
				break
			}
			r.watch(r.d, span{0, at, ids[at : at+1]})
		}
		if got := answers(r.d, r.propose(r.d, 5, 0))[0]; !got.equal(want) {
			t.Errorf("after %d rounds: guesses %v, in one go %v", rounds, got.ids, want.ids)
		}
		r.d.Release(0)
	}
}

// TestFewerGuessesAreAPrefix holds the width of the block fixed whatever is asked for.
func TestFewerGuessesAreAPrefix(t *testing.T) {
	r := newRig(t, 1)
	ids := randomIDs(40, 5)
	want := r.inOneGo(r.d, 5, ids)
	for most := 1; most <= 9; most++ {
		got := r.inOneGo(r.d, most, ids)
		n := min(most, 5)
		if !got.equal(answer{want.ids[:n], want.chance[:n], want.hidden[:n*48]}) {
			t.Errorf("of %d: %v, of 5: %v", most, got.ids, want.ids)
		}
	}
}

// TestUnlikelyGuessesEndTheChain ends each lane's where its own guesses stop being likely.
func TestUnlikelyGuessesEndTheChain(t *testing.T) {
	r := newRig(t, 8)
	var lanes []int
	for lane := range 8 {
		ids := randomIDs(20, uint64(lane))
		r.d.Open(lane, ids)
		r.watch(r.d, span{lane, 0, ids[:19]})
		lanes = append(lanes, lane)
	}
	whole := r.propose(r.d, 5, lanes...)
	r.d.least = 0.2
	lengths := map[int]bool{}
	for i, a := range r.propose(r.d, 5, lanes...) {
		n, reach := 0, float32(1)
		for n < 5 && reach >= r.d.least {
			reach *= whole[i].Chance[n]
			n++
		}
		if !slices.Equal(a.IDs, whole[i].IDs[:n]) || !slices.Equal(a.Chance, whole[i].Chance[:n]) {
			t.Errorf("lane %d: guesses %v, want the first %d of %v", i, a.IDs, n, whole[i].IDs)
		}
		lengths[n] = true
	}
	if len(lengths) < 2 {
		t.Errorf("all chains are of one length: %v", lengths)
	}
}

// TestTrimmedBlocksAreTheirOwn shows that masks beyond the last guess do count, and that without them a block
// of full width is the same.
func TestTrimmedBlocksAreTheirOwn(t *testing.T) {
	r := newRig(t, 1)
	trimmed := r.load(write(t, smallConfig(), tensors(), nil), 1, true)
	ids := randomIDs(40, 5)
	if full, trim := r.inOneGo(r.d, 5, ids), r.inOneGo(trimmed, 5, ids); !full.equal(trim) {
		t.Errorf("of 5: %v, trimmed %v", full.ids, trim.ids)
	}
	if full, trim := r.inOneGo(r.d, 2, ids), r.inOneGo(trimmed, 2, ids); full.equal(trim) {
		t.Error("of 2: the masks behind make no difference")
	}
}

// play is lanes in the middle of replies. What the target says is a fixed text per lane.
type play struct {
	rig   *rig
	other *Drafter // sees every lane in one go
	texts [][]int32
	fed   []int // rows that stand
	known []int // committed ids
	open  []bool
	let   []bool // go by the drafter, while the target goes on
}

// TestAnyScheduleGivesTheSameGuesses opens, reads prompts in chunks, verifies right and wrong guesses, asks some
// lanes in some rounds and releases, at random; every answer is that of a lane seen in one go.
func TestAnyScheduleGivesTheSameGuesses(t *testing.T) {
	for _, trim := range []bool{false, true} {
		for _, stage := range []int{contextRows, stageRows} {
			t.Run(fmt.Sprintf("trim=%t,stage=%d", trim, stage), func(t *testing.T) { anySchedule(t, trim, stage) })
		}
	}
}

func anySchedule(t *testing.T, trim bool, stage int) {
	const lanes = 4
	r := newRig(t, lanes)
	files := write(t, smallConfig(), tensors(), nil)
	r.d = r.load(files, lanes, trim)
	r.d.stage.most = stage
	other := r.load(files, 1, trim)
	rapid.Check(t, func(rt *rapid.T) {
		p := &play{rig: r, other: other, texts: make([][]int32, lanes), fed: make([]int, lanes), known: make([]int, lanes), open: make([]bool, lanes), let: make([]bool, lanes)}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		for range rapid.IntRange(1, 60).Draw(rt, "rounds") {
			p.round(rt, rng)
		}
		for lane := range lanes {
			p.release(lane)
		}
		if got, want := len(r.d.free), r.d.kv.Shape().Pages; got != want {
			rt.Fatalf("%d of %d pages came back", got, want)
		}
	})
}

func (p *play) release(lane int) {
	if p.open[lane] && !p.let[lane] {
		p.rig.d.Release(lane)
	}
	p.open[lane] = false
}

// round is one round of the engine.
func (p *play) round(rt *rapid.T, rng *rand.Rand) {
	d := p.rig.d
	for lane := range p.open {
		if rng.IntN(40) == 0 {
			p.release(lane)
		}
		if p.open[lane] && !p.let[lane] && rng.IntN(40) == 0 {
			p.let[lane] = true
			d.Release(lane)
		}
		if !p.open[lane] && rng.IntN(3) == 0 {
			prompt := 1 + rng.IntN(400)
			p.texts[lane] = randomIDs(prompt+1000, rng.Uint64())
			p.known[lane], p.fed[lane], p.open[lane] = prompt, 0, true
			if p.let[lane] = rng.IntN(4) == 0; !p.let[lane] {
				d.Open(lane, p.texts[lane][:prompt])
			}
		}
	}
	p.ask(rt, rng)
	p.forward(rt, rng)
}

// ask asks about some of the lanes that will draw a token.
func (p *play) ask(rt *rapid.T, rng *rand.Rand) {
	var lanes []int
	for lane := range p.open {
		if p.open[lane] && !p.let[lane] && rng.IntN(6) == 0 {
			lanes = append(lanes, lane)
		}
	}
	if len(lanes) == 0 {
		return
	}
	most := 1 + rng.IntN(6)
	got := answers(p.rig.d, p.rig.propose(p.rig.d, most, lanes...))
	for i, lane := range lanes {
		var want answer
		if p.fed[lane] == p.known[lane]-1 {
			want = p.rig.inOneGo(p.other, most, p.texts[lane][:p.known[lane]])
		}
		if !got[i].equal(want) {
			rt.Fatalf("lane %d at %d of %d: guesses %v, in one go %v", lane, p.fed[lane], p.known[lane], got[i].ids, want.ids)
		}
	}
}

// forward feeds a chunk of a prompt, or the last token and guesses at what follows, of every open lane.
func (p *play) forward(rt *rapid.T, rng *rand.Rand) {
	var spans []span
	next := slices.Clone(p.known)
	for lane := range p.open {
		if !p.open[lane] {
			continue
		}
		fed, known, ids := p.fed[lane], p.known[lane], p.texts[lane]
		feed := min(known-fed, 1+rng.IntN(300))
		rows := slices.Clone(ids[fed : fed+feed])
		p.fed[lane] += feed
		if p.fed[lane] == known { // a token is drawn
			right, wrong := rng.IntN(5), rng.IntN(5)
			rows = append(rows, ids[known:known+right]...)
			for range wrong {
				rows = append(rows, (ids[known+right]+1+rng.Int32N(96))%97)
			}
			p.fed[lane] += right
			next[lane] = known + right + 1
		}
		spans = append(spans, span{lane, fed, rows})
	}
	if len(spans) == 0 {
		return
	}
	p.rig.watch(p.rig.d, spans...)
	p.once(rt)
	for lane, n := range next {
		if n > p.known[lane] {
			if !p.let[lane] {
				p.rig.d.Committed(lane, p.texts[lane][p.known[lane]:n])
			}
			p.known[lane] = n
		}
	}
}

// once checks that no place is staged twice: which of the two would come last is up to the device.
func (p *play) once(rt *rapid.T) {
	seen := map[place]bool{}
	for _, at := range p.rig.d.stage.at {
		if seen[at] {
			rt.Fatalf("lane %d, position %d is staged twice", at.lane, at.pos)
		}
		seen[at] = at.lane >= 0
	}
}

// TestLanesAloneAndTogether asks several lanes at once, of different length and depth.
func TestLanesAloneAndTogether(t *testing.T) {
	r := newRig(t, 8)
	var texts [][]int32
	var spans []span
	for lane := range 8 {
		ids := randomIDs(1+lane*lane*5, uint64(lane))
		texts = append(texts, ids)
		r.d.Open(lane, ids)
		if len(ids) > 1 {
			spans = append(spans, span{lane, 0, ids[:len(ids)-1]})
		}
	}
	r.watch(r.d, spans...)
	got := answers(r.d, r.propose(r.d, 5, 7, 0, 3, 1, 2, 6, 5, 4))
	for lane := range 8 {
		r.d.Release(lane)
	}
	for i, lane := range []int{7, 0, 3, 1, 2, 6, 5, 4} {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			if want := r.inOneGo(r.d, 5, texts[lane]); !got[i].equal(want) {
				t.Errorf("together %v, alone %v", got[i].ids, want.ids)
			}
		})
	}
}
