package exactness

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/builtin"
	"tfbatch/internal/cpu"
	"tfbatch/internal/engine"
	"tfbatch/internal/families"
	"tfbatch/internal/row"
	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

var (
	full     = flag.Bool("full", false, "run every combination of the matrix, not a covering few (minutes)")
	emulated = flag.Bool("emulated", false, "the instructions are emulated: few prompts")
	update   = flag.Bool("update", false, "rewrite testdata/hashes.txt")
)

const (
	prompts     = 64
	few         = 4   // requests for the slow ways to compute
	some        = 32  // and for those that are not as slow
	replyTokens = 40  // crosses no page by itself; the long prompt does
	pages       = 192 // enough for 16 lanes of the longest prompt
	hashFile    = "testdata/hashes.txt"
)

// setup is one way to run the same prompts.
type setup struct {
	lanes, chunk, threads int
	isa                   cpu.ISA
	seed                  uint64 // order of the prompts; 0 keeps it
	coded                 coded
}

func (s setup) String() string {
	return fmt.Sprintf("lanes=%d,chunk=%d,threads=%d,isa=%v,order=%d", s.lanes, s.chunk, s.threads, s.isa, s.seed)
}

// TestMatrixGivesOneSetOfHashes runs 64 prompts, greedy and sampled, in every setup; in slow ones the shortest.
func TestMatrixGivesOneSetOfHashes(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	golden := readGolden(t)
	for _, s := range matrix() {
		t.Run(s.String(), func(t *testing.T) {
			for _, fault := range differences(golden, run(t, s, s.requests(), false)) {
				t.Error(fault)
			}
		})
	}
}

// requests is how many a setup can be asked for: chunks of one row read a prompt row by row, and plain Go is about
// a hundred times slower.
func (s setup) requests() int {
	slow := s.isa == cpu.Portable || *emulated
	switch {
	case slow && *full && s.lanes == 8 && s.threads == 2:
		return some
	case slow:
		return few
	case s.chunk == 1 && !*full, testing.Short():
		return some
	}
	return 2 * prompts
}

// TestChangedRoundingIsSeen plants a kernel that rounds differently when many rows ride together.
func TestChangedRoundingIsSeen(t *testing.T) {
	s := setup{lanes: 16, chunk: 64, threads: 2}
	if len(differences(readGolden(t), run(t, s, some, true))) == 0 {
		t.Fatal("a device whose wide products round differently gave the golden hashes")
	}
}

// matrix is every combination, or one setup for each value of each dimension and some mixtures.
func matrix() []setup {
	lanes, chunks, threads := []int{1, 3, 4, 8, 16}, []int{1, 7, 64, 512}, []int{1, 2}
	var all []setup
	for i, isa := range isas() {
		for _, l := range lanes {
			for _, c := range chunks {
				for _, n := range threads {
					all = append(all, setup{lanes: l, chunk: c, threads: n, isa: isa, seed: uint64(i + l*c)})
				}
			}
		}
	}
	if *full {
		return all
	}
	var cover []setup
	for i, isa := range isas() {
		for j := range max(len(lanes), len(chunks)) {
			if isa == cpu.Portable && j%2 == 1 {
				continue
			}
			cover = append(cover, setup{lanes: lanes[(j+i)%len(lanes)], chunk: chunks[(j+2*i)%len(chunks)], threads: threads[(i+j)%len(threads)], isa: isa, seed: uint64(j)})
		}
	}
	return cover
}

// isas lists the instruction sets that this machine can run.
func isas() []cpu.ISA {
	var have []cpu.ISA
	for _, isa := range []cpu.ISA{cpu.AVX512, cpu.AVX2, cpu.NEON, cpu.Portable} {
		if *emulated && isa == cpu.Portable {
			continue // plain Go is the same program everywhere, and slow enough where it runs itself
		}
		d, err := cpu.Open(cpu.Options{Threads: 1, ISA: isa})
		if err != nil {
			continue
		}
		d.Close()
		have = append(have, isa)
	}
	return have
}

// run gives the token hash of the n requests with the shortest prompts, by key, and the hash of all logits.
func run(t *testing.T, s setup, n int, uneven bool) map[string]string {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: s.threads, ISA: s.isa, Int8: s.coded.int8()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ear := &listener{Device: d, uneven: uneven}
	hashes := map[string]string{}
	for r := range replies(t, open(t, ear, s), shuffled(shortest(requests(t), n), s.seed)) {
		hashes[s.coded.key(r.Request.Key)] = row.TokenHash(r.Tokens).String()
	}
	hashes[s.coded.key(fmt.Sprintf("logits of %d", n))] = fmt.Sprintf("%016x", ear.sum)
	return hashes
}

// open loads the model of s on d.
func open(t *testing.T, d backend.Device, s setup) *engine.Engine {
	t.Helper()
	files := snapshot(t)
	if s.coded.int8() {
		files = s.coded.snapshot(t)
	}
	checkpoint, err := families.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := checkpoint.Load(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(d, m, engine.Config{Lanes: s.lanes, Pages: pages, Chunk: s.chunk, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// replies drives e until every request has ended.
func replies(t *testing.T, e *engine.Engine, waiting []*engine.Request) iter.Seq[engine.Result] {
	return func(yield func(engine.Result) bool) {
		for len(waiting) > 0 || e.Active() > 0 {
			for len(waiting) > 0 && e.Room(waiting[0]) {
				if err := e.Admit(waiting[0]); err != nil {
					t.Fatal(err)
				}
				waiting = waiting[1:]
			}
			done, err := e.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range done {
				if r.Err != nil {
					t.Fatalf("row %s: %v", r.Request.Key, r.Err)
				}
				yield(r)
			}
		}
	}
}

// requests makes two of every prompt, one greedy and one sampled.
func requests(t *testing.T) []*engine.Request {
	t.Helper()
	tok := openTokenizer(t)
	data, err := os.ReadFile("testdata/prompts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var list []*engine.Request
	for line := range bytes.Lines(data) {
		var p struct{ Key, User string }
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		ids := tok.Encode("<|startoftext|><|im_start|>user\n" + p.User + "<|im_end|>\n<|im_start|>assistant\n")
		list = append(list,
			&engine.Request{Key: p.Key + " greedy", Prompt: ids, MaxTokens: replyTokens},
			&engine.Request{Key: p.Key + " sampled", Prompt: ids, MaxTokens: replyTokens, Sampling: sampled(len(list))})
	}
	if len(list) != 2*prompts {
		t.Fatalf("%d requests, want two of %d prompts", len(list), prompts)
	}
	return list
}

// sampled turns every control on for some prompt.
func sampled(i int) engine.Sampling {
	s := engine.Sampling{Seed: 42, Temperature: 0.9}
	switch i / 2 % 4 {
	case 0:
		s.TopK, s.RepetitionPenalty = 50, 1.05
	case 1:
		s.TopP, s.PresencePenalty = 0.95, 0.2
	case 2:
		s.MinP, s.FrequencyPenalty = 0.05, 0.1
	}
	return s
}

// shortest is the n requests with the shortest prompts.
func shortest(all []*engine.Request, n int) []*engine.Request {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *engine.Request) int { return len(a.Prompt) - len(b.Prompt) })
	return sorted[:n]
}

func shuffled(all []*engine.Request, seed uint64) []*engine.Request {
	out := slices.Clone(all)
	rand.New(rand.NewPCG(seed, seed)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func snapshot(t *testing.T) *loader.Snapshot {
	t.Helper()
	files, err := builtin.Open("gopher-15m")
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	data, err := snapshot(t).ReadFile("tokenizer.json", 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// differences lists the keys of got whose hash is not the golden one.
func differences(golden, got map[string]string) []string {
	var faults []string
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if got[k] != golden[k] {
			faults = append(faults, fmt.Sprintf("%s: hash %s, golden %s", k, got[k], golden[k]))
		}
	}
	return faults
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(hashFile)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, hash, _ := strings.Cut(strings.TrimSpace(line), "\t")
		golden[key] = hash
	}
	return golden
}

func writeGolden(t *testing.T) {
	t.Helper()
	golden := map[string]string{}
	for _, n := range []int{few, some, 2 * prompts} {
		maps.Copy(golden, run(t, setup{lanes: 4, chunk: 64, threads: 2}, n, false))
	}
	for _, bits := range codedBits() {
		c := encode(t, bits)
		for _, n := range []int{few, some} {
			maps.Copy(golden, run(t, setup{lanes: 4, chunk: 64, threads: 2, coded: c}, n, false))
		}
	}
	var out bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(golden)) {
		fmt.Fprintf(&out, "%s\t%s\n", k, golden[k])
	}
	if err := os.WriteFile(hashFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
