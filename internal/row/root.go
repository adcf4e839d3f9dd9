package row

import "crypto/sha256"

// The first byte of what is hashed tells a leaf from a node, so that no node can be
// presented as a leaf (second pre-image) and no tree as a shorter one.
const (
	leafPrefix = 0x00
	nodePrefix = 0x01
)

// Root is the Merkle tree hash of RFC 6962, section 2.1, over digests in the order added:
// leaf = SHA-256(0x00 ‖ digest), node = SHA-256(0x01 ‖ left ‖ right), the left side of n
// leaves being the largest power of two below n. The root of no leaves is SHA-256 of
// nothing. The zero Root is ready to use and keeps one digest per level.
type Root struct {
	leaves uint64
	full   []Digest // roots of the complete subtrees, larger ones first: the set bits of leaves
}

// Add appends a leaf.
func (r *Root) Add(d Digest) {
	sum := Digest(sha256.Sum256(append([]byte{leafPrefix}, d[:]...)))
	for n := r.leaves; n&1 == 1; n >>= 1 {
		last := len(r.full) - 1
		sum = node(r.full[last], sum)
		r.full = r.full[:last]
	}
	r.full = append(r.full, sum)
	r.leaves++
}

// Sum is the root of what was added so far; more may be added after it.
func (r *Root) Sum() Digest {
	if len(r.full) == 0 {
		return sha256.Sum256(nil)
	}
	sum := r.full[len(r.full)-1]
	for i := len(r.full) - 2; i >= 0; i-- {
		sum = node(r.full[i], sum)
	}
	return sum
}

// Leaves is how many digests were added.
func (r *Root) Leaves() uint64 { return r.leaves }

func node(left, right Digest) Digest {
	b := make([]byte, 0, 1+2*sha256.Size)
	b = append(b, nodePrefix)
	b = append(b, left[:]...)
	b = append(b, right[:]...)
	return sha256.Sum256(b)
}
