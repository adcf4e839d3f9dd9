package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomLogits are shaped like a model's: a bell with a few that stand out, and ties.
func randomLogits(rng *rand.Rand, vocab int) []float32 {
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
		if rng.IntN(10) == 0 {
			logits[i] = float32(rng.IntN(20)) / 2
		}
	}
	return logits
}

func voiceOf(s Sampling) *voice {
	v := &voice{}
	v.open(&Request{Key: "row", Sampling: s})
	return v
}

// These values let another implementation check its keys and its noise (ARITHMETIC.md quotes them).
func TestNoiseIsPinned(t *testing.T) {
	s := newStream(42, 3, "line-7")
	got := fmt.Sprintf("%08x %08x %08x", s.key, s.own, s.block(5, 100))
	for _, w := range []uint32{0, 1, 1 << 20, 1<<26 - 1, 1 << 26, 1 << 31, math.MaxUint32} {
		got += fmt.Sprintf(" %08x", math.Float32bits(gumbel(w)))
	}
	const want = "[5556ec9a 9e47b965] [dd4e2795 1f37bf0e] [65a2609e 211c9297 ed329a8b a465cc01]" +
		" 41b6fda9 41ae33b3 41051511 4084d526 4084d526 3ebba795 c033f049"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGumbelIsNearItsDefinitionAndItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1 << 20 {
		w := rng.Uint32() >> (i % 32)
		if i%2 == 0 {
			w = ^w
		}
		v := float64(min(float32(float32(w)*0x1p-32)+0x1p-33, 1-0x1p-24)) // f32 has no more of the word
		want := -math.Log(-math.Log1p(-v))
		g := gumbel(w)
		if math.Abs(float64(g)-want) > 4e-6*max(1, math.Abs(want)) {
			t.Fatalf("gumbel(%#x) = %v, want %v", w, g, want)
		}
		if g > gumbelBound(w) || g > mostGumbel {
			t.Fatalf("gumbel(%#x) = %v is past its bounds %v and %v", w, g, gumbelBound(w), float32(mostGumbel))
		}
	}
}

// The bounds that spare work must not change a draw.
func TestPickIsThePlainArgmax(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	d := &drawer{}
	for trial := range 300 {
		z := randomLogits(rng, 1+rng.IntN(600))
		v := voiceOf(Sampling{Seed: uint64(trial), Temperature: 0.2 + rng.Float32()*3})
		pos := rng.IntN(5000)
		want, best := int32(-1), lowest
		most := slices.Max(z)
		for i, l := range z {
			w := v.stream.block(uint32(i)/4, uint32(pos))[i%4]
			if s := (l-most)/v.Temperature + gumbel(w); s > best {
				want, best = int32(i), s
			}
		}
		if got, err := d.draw(v, pos, slices.Clone(z)); err != nil || got != want {
			t.Fatalf("trial %d: drew %d (%v), the plain argmax is %d", trial, got, err, want)
		}
	}
}

// reference filters in float64 by a full sort. doubt is the set that rounding may decide.
func reference(s Sampling, logits []float32) (kept, doubt map[int32]bool) {
	type idp struct {
		id   int32
		z, p float64
	}
	var c []idp
	most := float64(slices.Max(logits))
	for i, l := range logits {
		z := (float64(l) - most) / float64(s.Temperature)
		c = append(c, idp{int32(i), z, math.Exp(z)})
	}
	slices.SortStableFunc(c, func(a, b idp) int { return cmp.Compare(b.z, a.z) })
	if s.TopK > 0 && s.TopK < len(c) {
		c = c[:s.TopK]
	}
	total := 0.0
	for _, x := range c {
		total += x.p
	}
	kept, doubt = map[int32]bool{}, map[int32]bool{}
	const slack = 1e-5
	before := 0.0
	for _, x := range c {
		margin := math.Inf(1)
		ok := true
		if s.TopP > 0 && s.TopP < 1 {
			room := float64(s.TopP) - before/total
			margin, ok = min(margin, math.Abs(room)), ok && room > 0
		}
		if s.MinP > 0 {
			margin, ok = min(margin, math.Abs(x.p-float64(s.MinP))), ok && x.p >= float64(s.MinP)
		}
		before += x.p
		kept[x.id] = ok
		doubt[x.id] = margin < slack
	}
	return kept, doubt
}

func TestFiltersKeepWhatASortInFloat64Keeps(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	d := &drawer{}
	for trial := range 3000 {
		logits := randomLogits(rng, 2+rng.IntN(400))
		s := Sampling{Temperature: 0.3 + rng.Float32()*2}
		if rng.IntN(2) == 0 {
			s.TopK = 1 + rng.IntN(60)
		}
		if rng.IntN(2) == 0 {
			s.TopP = rng.Float32()
		}
		if rng.IntN(3) == 0 {
			s.MinP = rng.Float32() * rng.Float32()
		}
		v := voiceOf(s)
		if !v.filters(len(logits)) {
			continue
		}
		kept, doubt := reference(s, logits)
		scale(logits, slices.Max(logits), s.Temperature)
		got := map[int32]bool{}
		for _, c := range d.filter(v, logits) {
			got[c.id] = true
		}
		for id := range int32(len(logits)) {
			if got[id] != kept[id] && !doubt[id] {
				t.Fatalf("trial %d, %+v: id %d (z %v) kept %v, want %v", trial, s, id, logits[id], got[id], kept[id])
			}
		}
	}
}

func TestDrawsFollowTheDistribution(t *testing.T) {
	logits := []float32{2, 1.5, 1.5, 1, 0.5, 0, -0.5, -1, -1.5, -3}
	for _, s := range []Sampling{
		{Temperature: 1},
		{Temperature: 0.6},
		{Temperature: 2.5},
		{Temperature: 1, TopK: 4},
		{Temperature: 1, TopP: 0.8},
		{Temperature: 1, MinP: 0.2},
		{Temperature: 1, TopK: 6, TopP: 0.9, MinP: 0.1},
	} {
		s.Seed = 9
		kept, _ := reference(s, logits)
		total := 0.0
		weight := make([]float64, len(logits))
		for i, l := range logits {
			if kept[int32(i)] {
				weight[i] = math.Exp(float64(l / s.Temperature))
				total += weight[i]
			}
		}
		const draws = 40000
		seen := make([]float64, len(logits))
		v, d := voiceOf(s), &drawer{}
		for pos := range draws {
			id, err := d.draw(v, pos, slices.Clone(logits))
			if err != nil {
				t.Fatal(err)
			}
			seen[id]++
		}
		chi, cells := 0.0, 0
		for i, w := range weight {
			if w == 0 {
				if seen[i] > 0 {
					t.Errorf("%+v: id %d was cut and drawn %v times", s, i, seen[i])
				}
				continue
			}
			want := draws * w / total
			chi += (seen[i] - want) * (seen[i] - want) / want
			cells++
		}
		// The mean of chi-square is cells-1, its variance twice that: four sigma.
		if dof := float64(cells - 1); chi > dof+4*math.Sqrt(2*dof) {
			t.Errorf("%+v: chi-square %.1f over %d ids: %v", s, chi, cells, seen)
		}
	}
}

func TestPenaltiesFollowTheirFormulas(t *testing.T) {
	const vocab = 6
	base := []float32{1, -2, 3, 0.5, -0.25, 4}
	for _, c := range []struct {
		name string
		s    Sampling
		want []float32
	}{
		{"none", Sampling{}, base},
		{"repetition counts prompt and reply once", Sampling{RepetitionPenalty: 2}, []float32{0.5, -4, 1.5, 0.5, -0.25, 4}},
		{"presence counts the reply once", Sampling{PresencePenalty: 0.5}, []float32{1, -2.5, 2.5, 0.5, -0.25, 4}},
		{"frequency counts each time", Sampling{FrequencyPenalty: 0.5}, []float32{1, -2.5, 1.5, 0.5, -0.25, 4}},
		{"all, in order, then the bias", Sampling{
			RepetitionPenalty: 2, PresencePenalty: 1, FrequencyPenalty: 0.5, LogitBias: map[int32]float32{2: 10, 3: -1},
		}, []float32{0.5, -5.5, 9, -0.5, -0.25, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &voice{}
			v.open(&Request{Prompt: []int32{0, 0, 2}, Sampling: c.s})
			for _, id := range []int32{2, 1, 2, 2} {
				v.heard(id)
			}
			got := slices.Clone(base)
			v.adjust(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// A voice is used again by the next reply of its lane.
func TestVoiceForgetsTheReplyBefore(t *testing.T) {
	v := &voice{}
	r := &Request{Prompt: []int32{0, 1}, Sampling: Sampling{RepetitionPenalty: 3, LogitBias: map[int32]float32{2: 5}}}
	v.open(r)
	v.heard(3)
	v.open(&Request{Prompt: []int32{4}, Sampling: Sampling{RepetitionPenalty: 2}})
	got := []float32{1, 1, 1, 1, 1}
	v.adjust(got)
	if want := []float32{1, 1, 1, 1, 0.5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTiesGoToTheLowestID(t *testing.T) {
	d := &drawer{}
	logits := []float32{0, 3, 1, 3, 3}
	if id, err := d.draw(voiceOf(Sampling{}), 0, slices.Clone(logits)); id != 1 || err != nil {
		t.Errorf("greedy drew %d (%v), want 1", id, err)
	}
	v := voiceOf(Sampling{Temperature: 1, TopK: 2})
	var ids []int32
	for _, s := range d.filter(v, []float32{-3, 0, -2, 0, 0}) {
		ids = append(ids, s.id)
	}
	if !slices.Equal(ids, []int32{1, 3}) {
		t.Errorf("top 2 of a tie of three is %v, want the lowest ids", ids)
	}
}

func TestNonfiniteLogitsAreNamed(t *testing.T) {
	inf := float32(math.Inf(1))
	for at := range 3 {
		for _, bad := range []float32{inf, -inf, float32(math.NaN())} {
			logits := []float32{1, 0, 2}
			logits[at] = bad
			want := fmt.Sprintf("id %d at position 12 is %v: non-finite logits", at, bad)
			if _, err := (&drawer{}).draw(voiceOf(Sampling{}), 12, logits); err == nil || err.Error() != want {
				t.Errorf("%v: got %v, want %s", logits, err, want)
			}
		}
	}
	if id, err := (&drawer{}).draw(voiceOf(Sampling{}), 0, []float32{-math.MaxFloat32, -math.MaxFloat32}); id != 0 || err != nil {
		t.Errorf("the least logits drew %d (%v), want 0", id, err)
	}
}

// Extreme values that pass the checks must give a token or a named failure.
func TestExtremesGiveATokenOrAnError(t *testing.T) {
	huge := float32(3e38)
	for _, c := range []struct {
		name   string
		s      Sampling
		logits []float32
		want   int32
		fails  bool
	}{
		{"cold", Sampling{Temperature: minTemperature, TopP: 0.5}, []float32{-huge, huge, 0}, 1, false},
		{"cold, all of it", Sampling{Temperature: minTemperature}, []float32{-huge, huge, 0}, 1, false},
		{"one id", Sampling{Temperature: 1, TopK: 1, TopP: 1e-30, MinP: 1}, []float32{1}, 0, false},
		{"nothing but the likeliest", Sampling{Temperature: 1, MinP: 1}, []float32{1, 2, 1.999}, 1, false},
		{"pushed past f32", Sampling{LogitBias: map[int32]float32{0: maxPenalty}, RepetitionPenalty: 1e-6}, []float32{huge, 0}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &voice{}
			v.open(&Request{Prompt: []int32{0}, Sampling: c.s})
			id, err := (&drawer{}).draw(v, 1, c.logits)
			if (err != nil) != c.fails || err == nil && id != c.want {
				t.Errorf("drew %d (%v), want %d, failure %v", id, err, c.want, c.fails)
			}
		})
	}
}

func BenchmarkDraw(b *testing.B) {
	const vocab = 65536
	rng := rand.New(rand.NewPCG(7, 8))
	source := make([]float32, vocab) // a bell, and fifty ids far above it
	for i := range source {
		source[i] = float32(rng.NormFloat64() * 2)
		if i%(vocab/50) == 0 {
			source[i] += 8 + 10*rng.Float32()
		}
	}
	logits := make([]float32, vocab)
	for _, c := range []struct {
		name string
		s    Sampling
	}{
		{"greedy", Sampling{}},
		{"plain", Sampling{Temperature: 1}},
		{"top_k=50", Sampling{Temperature: 1, TopK: 50}},
		{"top_k=20,top_p=0.95", Sampling{Temperature: 1, TopK: 20, TopP: 0.95}},
		{"top_p=0.95", Sampling{Temperature: 1, TopP: 0.95}},
		{"min_p=0.05", Sampling{Temperature: 1, MinP: 0.05}},
	} {
		b.Run(c.name, func(b *testing.B) {
			v, d := voiceOf(c.s), &drawer{}
			for i := range b.N {
				copy(logits, source)
				if _, err := d.draw(v, i, logits); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
