// Package queue shares the shards of a job out to workers through a NATS JetStream server. It knows nothing of rows,
// models or files: a job is bytes that have to be equal, a shard a number.
//
// Start with [Dial] and [Conn.Join]; [Serve] is the server for those who have none. A job is one stream, which holds at
// most one message a subject, so that filling it twice, by any number of workers, changes nothing:
//
//	tfbatch.JOB.job       what the job is: a worker whose job is another is refused
//	tfbatch.JOB.shard.I   a shard to be done; a lease on it is an unacknowledged delivery
//	tfbatch.JOB.done.I    who has done it, and where its folder is
//
// A shard may be done twice, by a worker that was slow and by one that took over: both give the same bytes, so that
// nothing depends on which of them a merge is given. What is read from a server is as little trusted as a file.
package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Job is what a worker wants to work at.
type Job struct {
	Name     string
	Identity []byte // what every worker has to agree on
	Shards   int    // 0: as many as the queue has, or DefaultShards
	Lease    time.Duration
	Renew    bool // forget what the server knows of the job
}

// DefaultShards are enough that workers of different speed end at about the same time.
const DefaultShards = 16

// Other refuses a queue that was filled for something else.
type Other struct {
	Job string
	Was []byte // the identity there
	// Shards is how many the queue has, when that alone differs; Wanted is how many the worker wants.
	Shards, Wanted int
}

func (o *Other) Error() string {
	if o.Was != nil {
		return fmt.Sprintf("the queue holds another job %s", o.Job)
	}
	return fmt.Sprintf("the queue has job %s in %d shards, not in %d; leave --shards out to take what is there", o.Job, o.Shards, o.Wanted)
}

// Queue is the shards of one job, for one worker on one goroutine.
type Queue struct {
	conn     *Conn
	job      Job
	stream   jetstream.Stream
	consumer jetstream.Consumer
	lease    time.Duration // of the consumer, whoever made it
}

// Shards is how many the job has.
func (q *Queue) Shards() int { return q.job.Shards }

// Join finds the queue of a job, or makes it. [*Other] is the error of a queue that holds another job.
func (c *Conn) Join(ctx context.Context, j Job) (*Queue, error) {
	if len(j.Identity) > maxIdentity {
		return nil, fmt.Errorf("job %s: what it is takes %d bytes, a queue can hold %d", j.Name, len(j.Identity), maxIdentity)
	}
	q := &Queue{conn: c, job: j}
	if j.Renew {
		if err := c.try(ctx, func(ctx context.Context) error { return c.js.DeleteStream(ctx, q.name()) }); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, err
		}
	}
	return q, c.try(ctx, q.declare)
}

// name is the stream's: a job's name without the dots, which separate words there.
func (q *Queue) name() string { return "tfbatch-" + strings.ReplaceAll(q.job.Name, ".", "=") }

func (q *Queue) subject(parts ...string) string {
	return "tfbatch." + strings.ReplaceAll(q.job.Name, ".", "=") + "." + strings.Join(parts, ".")
}

// declare makes whatever of the queue is not there. It can be called again at any time.
func (q *Queue) declare(ctx context.Context) (err error) {
	q.stream, err = q.conn.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: q.name(), Subjects: []string{q.subject(">")}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1, MaxMsgSize: maxMessage,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return final(fmt.Errorf("stream %s is there and not as tfbatch makes it; remove it, or --renew", q.name()))
	}
	if err != nil {
		return err
	}
	if err := q.agree(ctx); err != nil {
		return err
	}
	if err := q.fill(ctx); err != nil {
		return err
	}
	return q.lend(ctx)
}

// agree holds the job of this worker to that of the first.
func (q *Queue) agree(ctx context.Context) error {
	want := q.job.Shards
	if want == 0 {
		want = DefaultShards
	}
	mine := encode(charter{want, q.job.Identity})
	if err := q.put(ctx, q.subject("job"), mine); err != nil {
		return err
	}
	msg, err := q.stream.GetLastMsgForSubject(ctx, q.subject("job"))
	if err != nil {
		return err
	}
	was, err := readCharter(msg.Data)
	switch {
	case err != nil:
		return final(fmt.Errorf("subject %s: %w; --renew fills the queue anew", q.subject("job"), err))
	case !bytes.Equal(was.Job, q.job.Identity):
		return final(&Other{Job: q.job.Name, Was: was.Job})
	case q.job.Shards != 0 && was.Shards != q.job.Shards:
		return final(&Other{Job: q.job.Name, Shards: was.Shards, Wanted: q.job.Shards})
	}
	q.job.Shards = was.Shards
	return nil
}

// put writes a message where there is none.
func (q *Queue) put(ctx context.Context, subject string, data []byte) error {
	_, err := q.conn.js.Publish(ctx, subject, data, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return nil
	}
	return err
}

// fill writes the shards that are not there.
func (q *Queue) fill(ctx context.Context) error {
	there, err := q.subjects(ctx, "shard")
	if err != nil {
		return err
	}
	for i := 1; i <= q.job.Shards; i++ {
		if subject := q.subject("shard", fmt.Sprint(i)); !there[subject] {
			if err := q.put(ctx, subject, q.ticket(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// subjects tells which subjects of a kind have a message.
func (q *Queue) subjects(ctx context.Context, kind string) (map[string]bool, error) {
	info, err := q.stream.Info(ctx, jetstream.WithSubjectFilter(q.subject(kind, "*")))
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for subject := range info.State.Subjects {
		out[subject] = true
	}
	return out, nil
}

// consumerName is that of the one consumer, which all workers pull from.
const consumerName = "workers"

// lend makes the consumer. Its lease is that of the worker that came first.
func (q *Queue) lend(ctx context.Context) (err error) {
	q.consumer, err = q.stream.Consumer(ctx, consumerName)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		q.consumer, err = q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName, FilterSubject: q.subject("shard", "*"), AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: q.job.Lease, MaxDeliver: -1, MaxAckPending: maxShards, DeliverPolicy: jetstream.DeliverAllPolicy,
		})
	}
	if err != nil {
		return err
	}
	q.lease = max(q.consumer.CachedInfo().Config.AckWait, time.Second)
	return nil
}
