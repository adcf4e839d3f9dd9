package stages

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"tfbatch/internal/journal"
	"tfbatch/internal/row"
)

// The kinds of records in a job's journal. The first record is the identity.
const (
	identityRecord = 1 // JSON of identity
	sessionRecord  = 2 // JSON of session, one for each run
	rowRecord      = 3 // facts, then the line of rows.jsonl
	auditRecord    = 4 // index and sample of a reply that an audit found equal
	shardRecord    = 5 // JSON of shardEnd
)

// session is one run of a job, which may take several.
type session struct {
	Started time.Time `json:"started"`
	Version string    `json:"version"` // of tfbatch
}

// facts are what the manifest needs of a row, and what the row is known by.
type facts struct {
	index   int64
	sum     lineSum
	code    row.Code // empty: the row has replies
	prompt  int64    // tokens
	replies []replyFacts
	leaves  []row.Digest // of the job root: one per reply, or one for the error
}

type replyFacts struct {
	tokens int64
	finish row.Finish
}

// lineSum is the head of a line's SHA-256.
type lineSum [16]byte

func factsOf(r *row.Row) facts {
	f := facts{index: r.Index, sum: r.Sum}
	if r.Err != nil {
		f.code, f.leaves = r.Err.Code, []row.Digest{row.ErrorDigest(r.ID, r.Err.Code)}
		return f
	}
	f.prompt = int64(len(r.Tokens))
	for sample, c := range r.Choices {
		f.replies = append(f.replies, replyFacts{int64(len(c.Tokens)), c.Finish})
		f.leaves = append(f.leaves, row.ChoiceDigest(r.ID, sample, r.PromptHash, c.TokenHash, c.Finish))
	}
	return f
}

func (f *facts) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(f.index))
	b = append(b, f.sum[:]...)
	b = appendText(b, string(f.code))
	b = binary.AppendUvarint(b, uint64(f.prompt))
	b = binary.AppendUvarint(b, uint64(len(f.replies)))
	for _, r := range f.replies {
		b = binary.AppendUvarint(b, uint64(r.tokens))
		b = appendText(b, string(r.finish))
	}
	for i := range f.leaves {
		b = append(b, f.leaves[i][:]...)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errFacts = errors.New("is no row of this version")

// parseFacts reads what append wrote and returns the line behind it.
func parseFacts(payload []byte) (facts, []byte, error) {
	p := parser{rest: payload}
	f := facts{index: p.number()}
	copy(f.sum[:], p.bytes(len(f.sum)))
	f.code, f.prompt = row.Code(p.text()), p.number()
	n, leaves := p.number(), int64(1)
	if n > int64(len(p.rest)) { // a reply has more than a byte
		p.bad = true
	}
	if f.code == "" {
		leaves = n
	}
	for i := int64(0); i < n && !p.bad; i++ {
		f.replies = append(f.replies, replyFacts{p.number(), row.Finish(p.text())})
	}
	for i := int64(0); i < leaves && !p.bad; i++ {
		var d row.Digest
		copy(d[:], p.bytes(len(d)))
		f.leaves = append(f.leaves, d)
	}
	if p.bad || (f.code != "") == (n > 0) {
		return facts{}, nil, errFacts
	}
	return f, p.rest, nil
}

// parser takes values off the front; bad sticks once there is not enough.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) number() int64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || v > math.MaxInt64 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return int64(v)
}

func (p *parser) bytes(n int) []byte {
	if n > len(p.rest) {
		p.bad, p.rest = true, nil
		return nil
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}

func (p *parser) text() string {
	n := p.number()
	if n > int64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return ""
	}
	return string(p.bytes(int(n)))
}

// facts counts a row, or takes it off again.
func (c *Counts) facts(f *facts, sign int64) {
	c.Rows += sign
	if f.code != "" {
		c.Errors += sign
		tally(c.ByCode, f.code, sign)
		return
	}
	c.PromptTokens += sign * f.prompt
	for _, r := range f.replies {
		c.Replies += sign
		c.CompletionTokens += sign * r.tokens
		tally(c.ByFinish, r.finish, sign)
	}
}

// tally keeps no zero: a manifest lists what there is.
func tally[K comparable](m map[K]int64, key K, sign int64) {
	if m[key] += sign; m[key] == 0 {
		delete(m, key)
	}
}

// doneRows are the rows that the journal has. The goroutine of write uses it; read has its
// own view of what was there at the start.
type doneRows struct {
	log      *journal.Log
	places   []donePlace // by index
	counts   Counts
	sessions []session
	audited  map[auditKey]struct{}
	end      *shardEnd // of a shard that is done
	buf      []byte
}

// donePlace is where a row lies in the journal; without bytes it is not there.
type donePlace struct {
	journal.Place
	sum     lineSum
	replies int32 // 0: an error
}

type auditKey struct {
	index  int64
	sample int64
}

func newDoneRows() *doneRows {
	return &doneRows{counts: newCounts(), audited: map[auditKey]struct{}{}}
}

// append writes a row to the journal.
func (d *doneRows) append(r *row.Row, line []byte) error {
	f := factsOf(r)
	d.buf = append(f.append(d.buf[:0]), line...)
	at, err := d.log.Append(rowRecord, d.buf)
	if err != nil {
		return err
	}
	return d.put(&f, at)
}

// put notes a row. A later record of a row goes before an earlier one.
func (d *doneRows) put(f *facts, at journal.Place) error {
	for int64(len(d.places)) <= f.index {
		d.places = append(d.places, donePlace{})
	}
	if err := d.drop(f.index); err != nil {
		return err
	}
	d.places[f.index] = donePlace{at, f.sum, int32(len(f.replies))}
	d.counts.facts(f, 1)
	return nil
}

// drop forgets a row that is to be done again.
func (d *doneRows) drop(index int64) error {
	if d.places[index].Bytes == 0 {
		return nil
	}
	f, _, err := d.read(index)
	if err != nil {
		return err
	}
	d.counts.facts(&f, -1)
	d.places[index] = donePlace{}
	return nil
}

// read returns a row's facts and its line, which is valid until the next read.
func (d *doneRows) read(index int64) (facts, []byte, error) {
	payload, err := d.log.Read(d.places[index].Place, &d.buf)
	if err != nil {
		return facts{}, nil, err
	}
	f, line, err := parseFacts(payload)
	if err == nil && f.index != index {
		err = fmt.Errorf("is row %d, want %d", f.index, index)
	}
	if err != nil {
		return facts{}, nil, fmt.Errorf("record at byte %d: %w", d.places[index].Offset, err)
	}
	return f, line, nil
}

// auditKey notes a reply that an audit found equal, for a later run.
func (d *doneRows) equal(index int64, sample int) error {
	var b []byte
	b = binary.AppendUvarint(b, uint64(index))
	b = binary.AppendUvarint(b, uint64(sample))
	_, err := d.log.Append(auditRecord, b)
	return err
}

// earlierRows is what was done when a run began.
type earlierRows struct {
	places  []donePlace
	audited map[auditKey]struct{}
}

func (d *doneRows) earlier() *earlierRows { return &earlierRows{d.places, d.audited} }

// count is how far the rows go that were done.
func (e *earlierRows) count() int64 {
	if e == nil {
		return 0
	}
	return int64(len(e.places))
}

// errOtherLine is a row that was made of another line than the input has now.
var errOtherLine = errors.New("is not the line that it was")

// has reports whether a row needs no more work. wanted is whether its replies are to be
// audited: those that were not yet are made again, since the next run may find what the
// last one would have found.
func (e *earlierRows) has(index int64, sum lineSum, wanted bool) (bool, error) {
	if e == nil || index >= int64(len(e.places)) || e.places[index].Bytes == 0 {
		return false, nil
	}
	p := &e.places[index]
	if p.sum != sum {
		return false, errOtherLine
	}
	for sample := int64(0); wanted && sample < int64(p.replies); sample++ {
		if _, ok := e.audited[auditKey{index, sample}]; !ok {
			return false, nil
		}
	}
	return true, nil
}

// scanner takes the records of a journal in.
type scanner struct {
	done  *doneRows
	id    *identity
	size  int64
	kinds int
	later []pendingRow // superseding rows: an earlier record can be read only behind the scan
}

type pendingRow struct {
	facts facts
	at    journal.Place
}

// minRow is less than any record of a row has.
const minRow = 32

func (s *scanner) record(kind byte, at journal.Place, payload []byte) error {
	if s.kinds++; s.kinds == 1 && kind != identityRecord {
		return fmt.Errorf("%w: the first record is no identity", journal.ErrFormat)
	}
	switch kind {
	case identityRecord:
		s.id = &identity{}
		return json.Unmarshal(payload, s.id)
	case sessionRecord:
		var one session
		err := json.Unmarshal(payload, &one)
		s.done.sessions = append(s.done.sessions, one)
		return err
	case rowRecord:
		return s.row(at, payload)
	case shardRecord:
		s.done.end = &shardEnd{}
		return json.Unmarshal(payload, s.done.end)
	case auditRecord:
		p := parser{rest: payload}
		s.done.audited[auditKey{p.number(), p.number()}] = struct{}{}
		return nil
	}
	return fmt.Errorf("%w: record of kind %d", journal.ErrFormat, kind)
}

func (s *scanner) row(at journal.Place, payload []byte) error {
	f, _, err := parseFacts(payload)
	if err != nil {
		return fmt.Errorf("record at byte %d: %w", at.Offset, err)
	}
	if most := s.size/minRow + windowBytes/rowBytes; f.index > most {
		return fmt.Errorf("record at byte %d: row %d in a journal that has room for %d", at.Offset, f.index, most)
	}
	if f.index < int64(len(s.done.places)) && s.done.places[f.index].Bytes > 0 {
		s.later = append(s.later, pendingRow{f, at})
		return nil
	}
	return s.done.put(&f, at)
}

// finish takes in the rows that were done more than once.
func (s *scanner) finish() error {
	for i := range s.later {
		if err := s.done.put(&s.later[i].facts, s.later[i].at); err != nil {
			return err
		}
	}
	s.later = nil
	return nil
}

// dropErrors forgets the rows that failed, so that they are made again.
func (d *doneRows) dropErrors() error {
	for index := range d.places {
		if d.places[index].Bytes > 0 && d.places[index].replies == 0 {
			if err := d.drop(int64(index)); err != nil {
				return err
			}
		}
	}
	return nil
}
