package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"tfbatch/internal/backend"
)

// stream is the random numbers of one reply: a pure function of (seed, row key, sample),
// then of (position, id). Nothing that happens in a run can move it.
type stream struct {
	key [2]uint32
	own [2]uint32 // the upper half of every counter
}

// newStream names the stream by a digest, since a row key is a text of any length.
func newStream(seed uint64, sample int, key string) stream {
	b := []byte("tfbatch/rng/1\n")
	b = binary.LittleEndian.AppendUint64(b, seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(sample))
	sum := sha256.Sum256(append(b, key...))
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(sum[4*i:]) }
	return stream{key: [2]uint32{word(0), word(1)}, own: [2]uint32{word(2), word(3)}}
}

// block is the words of ids 4·b to 4·b+3 at a position.
func (s *stream) block(b, pos uint32) [4]uint32 {
	return philox([4]uint32{b, pos, s.own[0], s.own[1]}, s.key)
}

// gumbel turns a random word into a Gumbel variable, -log(-log(1-v)) for the word's v
// in (0, 1). Small v decide draws, so that end is the fine one: v goes down to 2^-33,
// where 1-v would be 1, and ids of probability 1e-9 are still drawn as often as they should.
func gumbel(word uint32) float32 {
	const (
		unit = 0x1p-32
		half = 0x1p-33
		most = 1 - 0x1p-24
		near = 0x1p-6
	)
	v := min(float32(float32(word)*unit)+half, most) // the product is exact
	if v >= near {
		return -backend.Log(-backend.Log(1 - v))
	}
	h := backend.FMA(0.25, v, 1.0/3) // -log(1-v) = v + v²/2 + v³/3 + v⁴/4 + ...
	h = backend.FMA(h, v, 0.5)
	h = backend.FMA(h, v, 1)
	return -backend.Log(float32(v * h))
}

// gumbelBound is at least gumbel(word), from the word's leading zeros alone: with n of
// them v ≥ 2^-(n+1), so -log(1-v) ≥ 2^-(n+1). The margin is above the rounding of gumbel.
func gumbelBound(word uint32) float32 {
	const ln2, margin = 0.6931472, 1e-3
	return float32(ln2*float32(bits.LeadingZeros32(word)+1)) + margin
}

// mostGumbel is at least gumbel of any word.
const mostGumbel = 23
