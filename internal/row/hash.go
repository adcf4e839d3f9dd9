package row

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
)

// The tags keep the kinds of hash apart: no two of them can be made of the same bytes.
const (
	tokenTag  = "tfbatch/tok/1\n"
	promptTag = "tfbatch/prm/1\n"
	rowTag    = "tfbatch/row/1\n"
	errorTag  = "tfbatch/err/1\n"
)

// Digest is a SHA-256, written as 64 lower-case hex digits.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the hex digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("digest %q: want %d hex digits", text, 2*len(d))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// TokenHash is the hash of a reply: SHA-256 over "tfbatch/tok/1\n", the number of ids as
// uint64 little-endian, then each id as uint32 little-endian. The ids are those retained:
// the end token, or the token that completed a stop string, is the last of them.
func TokenHash(ids []int32) Digest { return hashIDs(tokenTag, ids) }

// PromptHash is the hash of a prompt's ids: TokenHash with the tag "tfbatch/prm/1\n".
func PromptHash(ids []int32) Digest { return hashIDs(promptTag, ids) }

func hashIDs(tag string, ids []int32) Digest {
	b := make([]byte, 0, len(tag)+8+4*len(ids))
	b = append(b, tag...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return sha256.Sum256(b)
}

// ChoiceDigest binds a reply to its row: SHA-256 over "tfbatch/row/1\n", the row key, the
// sample as uint64, the prompt hash, the token hash and the finish reason. Numbers are
// little-endian; a string is its length in bytes as uint64, then its bytes.
func ChoiceDigest(key string, sample int, prompt, tokens Digest, finish Finish) Digest {
	h := sha256.New()
	h.Write([]byte(rowTag))
	writeString(h, key)
	writeUint64(h, uint64(sample))
	h.Write(prompt[:])
	h.Write(tokens[:])
	writeString(h, string(finish))
	return Digest(h.Sum(nil))
}

// ErrorDigest stands for a row that failed: SHA-256 over "tfbatch/err/1\n", the row key and
// the error code, both as in ChoiceDigest.
func ErrorDigest(key string, code Code) Digest {
	h := sha256.New()
	h.Write([]byte(errorTag))
	writeString(h, key)
	writeString(h, string(code))
	return Digest(h.Sum(nil))
}

func writeString(h hash.Hash, s string) {
	writeUint64(h, uint64(len(s)))
	h.Write([]byte(s))
}

func writeUint64(h hash.Hash, v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	h.Write(b[:])
}
