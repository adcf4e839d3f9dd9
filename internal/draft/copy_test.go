package draft

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

func propose(t testing.TB, c *Copy, lane, most int) []int32 {
	t.Helper()
	asks := []Ask{{Lane: lane, Most: most}}
	if err := c.Propose(context.Background(), asks); err != nil {
		t.Fatal(err)
	}
	if n := len(asks[0].Chance); n != len(asks[0].IDs) {
		t.Fatalf("%d chances for %d guesses", n, len(asks[0].IDs))
	}
	return asks[0].IDs
}

func TestCopyTakesTheLongestMatchThenTheLatest(t *testing.T) {
	for _, c := range []struct {
		name string
		text []int32
		most int
		want []int32
	}{
		{"empty", nil, 4, nil},
		{"nothing repeats", []int32{1, 2, 3, 4, 5, 6}, 4, nil},
		{"a match of three is chance", []int32{1, 2, 3, 9, 1, 2, 3}, 4, nil},
		{"a match of four", []int32{1, 2, 3, 4, 8, 9, 1, 2, 3, 4}, 2, []int32{8, 9}},
		{"longest before latest", []int32{0, 1, 2, 3, 4, 7, 5, 1, 2, 3, 4, 8, 0, 1, 2, 3, 4}, 1, []int32{7}},
		{"latest of equals", []int32{1, 2, 3, 4, 7, 1, 2, 3, 4, 8, 1, 2, 3, 4}, 1, []int32{8}},
		{"goes on repeating", []int32{5, 6, 5, 6, 5, 6, 5, 6}, 5, []int32{5, 6, 5, 6, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d Copy
			half := len(c.text) / 2
			d.Open(3, c.text[:half])
			d.Committed(3, c.text[half:])
			if got := propose(t, &d, 3, c.most); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Against a search of the whole text: the index may lose nothing while its chains are short.
func TestCopyFindsWhatASearchFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		text := make([]int32, 10+rng.IntN(150))
		for i := range text {
			text[i] = rng.Int32N(12)
			if i > 20 && rng.IntN(20) > 0 {
				text[i] = text[i-17]
			}
		}
		var d Copy
		d.Open(0, text)
		at, length := d.lanes[0].match()
		wantAt, want := 0, 0
		for p := len(text) - 2; p >= 0; p-- {
			n := 0
			for n <= p && n < maxMatch && text[p-n] == text[len(text)-1-n] {
				n++
			}
			if n >= gram && n > want {
				wantAt, want = p, n
			}
		}
		if at != wantAt || length != want {
			t.Fatalf("%v: match of %d at %d, want %d at %d", text, length, at, want, wantAt)
		}
	}
}

func TestCopyFallsSilentAfterMisses(t *testing.T) {
	var d Copy
	d.Open(0, []int32{1, 2, 3, 4, 5, 1, 2, 3, 4})
	asked, silent := 0, 0
	for round := range 400 {
		// Whatever is guessed, the lane repeats the match and then breaks it.
		if len(propose(t, &d, 0, 3)) > 0 {
			asked++
			silent = 0
		} else {
			silent++
		}
		if silent > maxRest {
			t.Fatalf("round %d: silent for more than %d rounds", round, maxRest)
		}
		d.Committed(0, []int32{int32(100 + round), 1, 2, 3, 4})
	}
	// 4 before each of the silences of 16, 32, 64, 128 rounds, and what is left of 400.
	if asked != 20 {
		t.Errorf("%d proposals in 400 rounds of misses, want 20", asked)
	}
}

func TestCopyTriesAgainWhenItLands(t *testing.T) {
	var d Copy
	text := []int32{1, 2, 3, 4, 5, 6, 7, 8}
	d.Open(0, slices.Repeat(text, 2))
	for round := range 200 {
		guess := propose(t, &d, 0, 2)
		if len(guess) != 2 {
			t.Fatalf("round %d: guesses %v of a text that repeats", round, guess)
		}
		d.Committed(0, guess)
	}
}

func TestCopyStartsAnewWithALane(t *testing.T) {
	var d Copy
	d.Open(0, []int32{1, 2, 3, 4, 5, 6, 1, 2, 3, 4})
	d.Release(0)
	d.Open(0, []int32{1, 2, 3, 4})
	if got := propose(t, &d, 0, 2); got != nil {
		t.Errorf("guessed %v from the text of the lane before", got)
	}
}

func TestCopyAllocatesNothingOnceWarm(t *testing.T) {
	var d Copy
	text := slices.Repeat([]int32{1, 2, 3, 4, 5, 6, 7}, 300)
	asks := []Ask{{Lane: 0, Most: 8, IDs: make([]int32, 0, 8), Chance: make([]float32, 0, 8)}}
	reply := func() {
		d.Open(0, text[:100])
		for i := 100; i+3 < len(text); i += 3 {
			asks[0].IDs, asks[0].Chance = asks[0].IDs[:0], asks[0].Chance[:0]
			if d.Propose(context.Background(), asks) != nil {
				t.Error("copy failed")
			}
			d.Committed(0, text[i:i+3])
		}
		d.Release(0)
	}
	reply()
	if n := testing.AllocsPerRun(5, reply); n > 0 {
		t.Errorf("%v allocations a reply", n)
	}
}

func BenchmarkCopy(b *testing.B) {
	rng := rand.New(rand.NewPCG(2, 2))
	text := make([]int32, 1<<16)
	for i := range text {
		text[i] = rng.Int32N(40)
		if i > 1000 && i%200 > 40 {
			text[i] = text[i-1000]
		}
	}
	var d Copy
	asks := make([]Ask, 1)
	for b.Loop() {
		d.Open(0, text[:1024])
		for i := 1024; i < len(text); i++ {
			asks[0] = Ask{Most: 8, IDs: asks[0].IDs[:0], Chance: asks[0].Chance[:0]}
			_ = d.Propose(context.Background(), asks)
			d.Committed(0, text[i:i+1])
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(text)-1024)/b.Elapsed().Seconds(), "tokens/s")
}
