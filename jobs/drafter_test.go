package jobs

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDrafter(t *testing.T) {
	plain := Drafter{Guesses: DraftAuto, Copy: true}
	builtin := plain
	builtin.Path = Path{"builtin:d", "builtin:d"}
	folder := Drafter{Path: Path{"d", filepath.Join("base", "d")}, Bits: 8, Guesses: 31}
	for _, c := range []struct {
		more string
		want Drafter
	}{
		{"lanes: 1", plain},
		{"drafter: builtin:d", builtin},
		{"drafter: { path: builtin:d, precision: checkpoint, mode: auto, copy: on }", builtin},
		{"drafter: { path: d, precision: q8, mode: fixed:31, copy: off }", folder},
		{"drafter: { mode: off }", Drafter{Copy: true}},
	} {
		list, err := Parse("j.yaml", "base", []byte(job(c.more)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, list[0].Drafter); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.more, diff)
		}
	}
}

// TestDigestIgnoresDrafting holds that a manifest of a drafted run names the same job.
func TestDigestIgnoresDrafting(t *testing.T) {
	var digests []string
	for _, more := range []string{"lanes: 1", "drafter: d", "drafter: { mode: off }", "audit: 1%"} {
		list, err := Parse("j.yaml", ".", []byte(job(more)))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, list[0].Digest())
	}
	for _, d := range digests {
		if d != digests[0] {
			t.Errorf("digests differ: %v", digests)
		}
	}
}

func TestGuessesRoundTrip(t *testing.T) {
	for _, text := range []string{"auto", "off", "fixed:1", "fixed:31"} {
		g, err := ParseGuesses(text)
		if err != nil || g.String() != text {
			t.Errorf("%s: got %v, %v", text, g, err)
		}
	}
	for _, text := range []string{"", "on", "fixed", "fixed:", "fixed:0", "fixed:32", "fixed:-1", "fixed:+4", "fixed:04", "4"} {
		if g, err := ParseGuesses(text); err == nil {
			t.Errorf("%q was accepted as %v", text, g)
		}
	}
}

// TestRestore holds that the job in a manifest is the whole job, and nothing but one.
func TestRestore(t *testing.T) {
	list, err := Parse("j.yaml", ".", []byte(job("kv: f32\n    sampling: { n: 2, logit_bias: { 5: 1.5 }, stop: [x] }\n    prompt: { kwargs: { b: [1, {}], a: 2 } }")))
	if err != nil {
		t.Fatal(err)
	}
	text := string(list[0].Canonical())
	back, err := Restore([]byte(text))
	if err != nil || string(back.Canonical()) != text || back.Digest() != list[0].Digest() {
		t.Errorf("got %s, %v; want %s", back.Canonical(), err, text)
	}
	for name, bad := range map[string]string{
		"empty":       "",
		"no object":   "[]",
		"unknown key": `{"x":1,` + text[1:],
		"twice":       `{"name":"a",` + text[1:],
		"missing key": `{"name":"a"}`,
		"trailing":    text + " ",
		"not checked": `{"name":"../a"` + text[len(`{"name":"a"`):],
	} {
		if _, err := Restore([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzRestore(f *testing.F) {
	list, err := Parse("j.yaml", ".", []byte(job("prompt: { kwargs: { b: [1, {}], a: 2 } }")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(list[0].Canonical())
	f.Fuzz(func(t *testing.T, data []byte) {
		if j, err := Restore(data); err == nil && string(j.Canonical()) != string(data) {
			t.Errorf("%q was taken for %q", data, j.Canonical())
		}
	})
}
