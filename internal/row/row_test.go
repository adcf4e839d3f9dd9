package row

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestHashesNeverChange holds the published definitions; the values were made with
// Python's hashlib and struct from the text of the doc comments.
func TestHashesNeverChange(t *testing.T) {
	got := map[string]string{
		"tokens none":   TokenHash(nil).String(),
		"tokens":        TokenHash([]int32{3834, 296, 7}).String(),
		"prompt":        PromptHash([]int32{1, 6, 3680}).String(),
		"choice":        ChoiceDigest("row-é", 2, PromptHash([]int32{1, 6, 3680}), TokenHash([]int32{3834, 296, 7}), EndToken).String(),
		"error":         ErrorDigest("a", InvalidJSON).String(),
		"root of none":  rootOf(0).String(),
		"root of one":   rootOf(1).String(),
		"root of three": rootOf(3).String(),
		"root of seven": rootOf(7).String(),
	}
	want := map[string]string{
		"tokens none":   "30bf1260ae90256d36fb1a5d9b33cc5390bbabbec46de4d4fc30610af4af4bda",
		"tokens":        "3801373c72343bf3f206bfc48ada5f4dd7139c21ff369f074d3600c6170bd5bb",
		"prompt":        "7821d51c17d17df1914ea9a2c34c48dbec4dc3240683d98fcf1cdafd17e25491",
		"choice":        "e938c92af4e89df8ea82943a99bfe5d5edd6e210bf1c74c0883a13d3b9250004",
		"error":         "04204abd11fe911c0ab1a21640f62b0717d6cd0b4a506c554bd008387bb3446a",
		"root of none":  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"root of one":   "585d398ccdb9885d0069c76558cfa22dcc740e9545c9df89b609d44ef8fa703a",
		"root of three": "e530083d56d2b80a451aacb22c46257cee3f5f9f92eb5a502dc6b896077b12c3",
		"root of seven": "ddf585c3afe9196d148afac4c26742b59a143b90e290ec5f8c14b13d79dc9cc4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a published hash changed (-want +got):\n%s", diff)
	}
}

func rootOf(n int) Digest {
	var r Root
	for i := range n {
		r.Add(TokenHash([]int32{int32(i)}))
	}
	return r.Sum()
}

// TestRootIsRFC6962 compares the running root with the recursive definition.
func TestRootIsRFC6962(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seeds := rapid.SliceOfN(rapid.Uint32(), 0, 70).Draw(t, "leaves")
		var r Root
		var leaves []Digest
		for _, s := range seeds {
			d := Digest(sha256.Sum256(binary.LittleEndian.AppendUint32(nil, s)))
			r.Add(d)
			leaves = append(leaves, d)
		}
		if got, want := r.Sum(), recursive(leaves); got != want {
			t.Fatalf("root of %d leaves: got %v, want %v", len(leaves), got, want)
		}
		if r.Leaves() != uint64(len(leaves)) {
			t.Fatalf("leaves: got %d, want %d", r.Leaves(), len(leaves))
		}
	})
}

func recursive(leaves []Digest) Digest {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0][:]...))
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	l, r := recursive(leaves[:k]), recursive(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
}

// TestNodeIsNoLeaf is the second pre-image that the prefixes prevent: the digest of an
// inner node, added as a leaf, must not give the tree's root.
func TestNodeIsNoLeaf(t *testing.T) {
	two := rootOf(2)
	var r Root
	r.Add(two)
	if r.Sum() == two {
		t.Error("a tree of one leaf has the root of a tree of two")
	}
}

func TestDigestText(t *testing.T) {
	d := TokenHash([]int32{1})
	text, err := d.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back Digest
	if err := back.UnmarshalText(text); err != nil || back != d {
		t.Errorf("got %v, %v; want %v", back, err, d)
	}
	for _, bad := range []string{"", "ab", string(text[:62]) + "zz"} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("digest %q was accepted", bad)
		}
	}
}

func TestFinishReason(t *testing.T) {
	want := map[Finish]string{EndToken: "stop", StopString: "stop", Length: "length", Context: "length"}
	for f, reason := range want {
		if f.Reason() != reason {
			t.Errorf("%s: got %q, want %q", f, f.Reason(), reason)
		}
	}
}
