package queue

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// What a message may have: far more than tfbatch writes, little for memory.
const (
	maxMessage  = 512 << 10
	maxIdentity = 256 << 10 // below maxMessage also once it is encoded
	maxShards   = 4096
	maxTicket   = 4096
	maxWhere    = 2048
)

// charter is the message that says what the job is.
type charter struct {
	Shards int    `json:"shards"`
	Job    []byte `json:"job"`
}

// ticket is a shard to be done, or one that is.
type ticket struct {
	Shard int    `json:"shard"`
	Of    int    `json:"of"`
	Job   string `json:"job_sha256"`      // of the identity
	Where string `json:"where,omitempty"` // of one that is done
}

// encode writes a message. Ours hold nothing that JSON cannot.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("queue: message %T: %v", v, err))
	}
	return data
}

// decode reads a message that is an object of known keys and nothing else.
func decode(data []byte, most int, v any) error {
	if len(data) > most {
		return fmt.Errorf("message of %d bytes, want at most %d", len(data), most)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("message is none of tfbatch: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("message is none of tfbatch: text behind its end")
	}
	return nil
}

func readCharter(data []byte) (charter, error) {
	var c charter
	if err := decode(data, maxMessage, &c); err != nil {
		return c, err
	}
	if c.Shards < 1 || c.Shards > maxShards || len(c.Job) == 0 {
		return c, fmt.Errorf("message has %d shards and %d bytes of a job, want 1 to %d shards", c.Shards, len(c.Job), maxShards)
	}
	return c, nil
}

// ticket is the message of a shard.
func (q *Queue) ticket(i int) []byte {
	return encode(ticket{Shard: i, Of: q.job.Shards, Job: digest(q.job.Identity)})
}

func digest(identity []byte) string { return fmt.Sprintf("%x", sha256.Sum256(identity)) }

// readTicket reads the message of a shard and holds it to the subject that it came under and to this worker's job.
func (q *Queue) readTicket(subject string, data []byte) (ticket, error) {
	var t ticket
	if err := decode(data, maxTicket, &t); err != nil {
		return t, err
	}
	number := subject[strings.LastIndexByte(subject, '.')+1:]
	switch {
	case t.Shard < 1 || t.Shard > q.job.Shards || t.Of != q.job.Shards || strconv.Itoa(t.Shard) != number:
		return t, fmt.Errorf("message is of shard %d of %d, not of %.20q of %d", t.Shard, t.Of, number, q.job.Shards)
	case t.Job != digest(q.job.Identity):
		return t, fmt.Errorf("message is of job %.70q, not of %s", t.Job, digest(q.job.Identity))
	case len(t.Where) > maxWhere:
		return t, fmt.Errorf("message names a place of %d bytes, want at most %d", len(t.Where), maxWhere)
	}
	return t, nil
}
