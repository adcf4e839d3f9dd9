package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lookEvery is how long a worker waits for a shard before it looks whether all are done.
const lookEvery = 2 * time.Second

// Task is a shard on lease. Exactly one of Done and Return ends it.
type Task struct {
	Shard, Of int

	queue *Queue
	msg   jetstream.Msg
}

// Next waits for a shard. It returns nil once every shard is done, by whatever worker.
func (q *Queue) Next(ctx context.Context) (t *Task, err error) {
	for {
		all := false
		err := q.conn.try(ctx, func(ctx context.Context) (err error) {
			t, all, err = q.look(ctx)
			if lost(err) { // a server that was started without its files
				return errors.Join(q.declare(ctx), errPause)
			}
			return err
		})
		if err != nil || t != nil || all {
			return t, err
		}
	}
}

// errPause has a question asked again.
var errPause = errors.New("the queue was gone and is filled anew")

// lost reports whether an error says that the stream or the consumer is gone.
func lost(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConsumerDeleted) ||
		errors.Is(err, jetstream.ErrNoStreamResponse)
}

// look asks once for a shard. All is true when there is none to be done.
func (q *Queue) look(ctx context.Context) (_ *Task, all bool, err error) {
	done, err := q.subjects(ctx, "done")
	if err != nil {
		return nil, false, err
	}
	if q.complete(done) {
		_, sound, err := q.places(ctx)
		return nil, sound, err
	}
	msg, err := q.consumer.Next(jetstream.FetchMaxWait(lookEvery))
	if errors.Is(err, nats.ErrTimeout) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	t, err := q.readTicket(msg.Subject(), msg.Data())
	if err != nil {
		return nil, false, q.reject(ctx, msg.Subject(), err)
	}
	if done[q.subject("done", fmt.Sprint(t.Shard))] { // whoever did it died before it could say so
		return nil, false, msg.DoubleAck(ctx)
	}
	return &Task{t.Shard, t.Of, q, msg}, false, nil
}

// complete reports whether every shard has somebody who says that it is done.
func (q *Queue) complete(done map[string]bool) bool {
	for i := 1; i <= q.job.Shards; i++ {
		if !done[q.subject("done", fmt.Sprint(i))] {
			return false
		}
	}
	return true
}

// reject takes a message off that tfbatch has not written, and puts the shard there that may have been kept out by it.
func (q *Queue) reject(ctx context.Context, subject string, why error) error {
	q.conn.options.Notice(fmt.Sprintf("queue %s: subject %s: %v; it is removed", q.conn.address, subject, why))
	if err := q.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return err
	}
	return q.fill(ctx)
}

// Places names the folder of each shard that is done, as its worker did.
func (q *Queue) Places(ctx context.Context) (list []string, err error) {
	err = q.conn.try(ctx, func(ctx context.Context) (err error) {
		list, _, err = q.places(ctx)
		return err
	})
	return list, err
}

// places reads what workers have said of each shard. A message that is none of ours counts for nothing: the shard is
// given out again.
func (q *Queue) places(ctx context.Context) (list []string, sound bool, err error) {
	sound = true
	for i := 1; i <= q.job.Shards; i++ {
		subject := q.subject("done", fmt.Sprint(i))
		msg, err := q.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			sound = false
			continue
		}
		if err != nil {
			return nil, false, err
		}
		t, err := q.readTicket(subject, msg.Data)
		if err != nil {
			sound = false
			if err := q.again(ctx, i, err); err != nil {
				return nil, false, err
			}
			continue
		}
		list = append(list, t.Where)
	}
	return list, sound, nil
}

// again gives a shard out once more.
func (q *Queue) again(ctx context.Context, i int, why error) error {
	if err := q.stream.Purge(ctx, jetstream.WithPurgeSubject(q.subject("shard", fmt.Sprint(i)))); err != nil {
		return err
	}
	return q.reject(ctx, q.subject("done", fmt.Sprint(i)), why)
}

// Keep renews the lease until stop is called. A renewal that fails is no harm: the shard is then done twice.
func (t *Task) Keep() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(t.queue.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = t.msg.InProgress()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); ended.Wait() }
}

// Done notes that the shard is done, and where. The first to say so is who has done it.
func (t *Task) Done(ctx context.Context, where string) error {
	q := t.queue
	if len(where) > maxWhere {
		where = where[:maxWhere]
	}
	data := encode(ticket{Shard: t.Shard, Of: t.Of, Job: digest(q.job.Identity), Where: where})
	err := q.conn.try(ctx, func(ctx context.Context) error {
		err := q.put(ctx, q.subject("done", fmt.Sprint(t.Shard)), data)
		if lost(err) {
			return errors.Join(q.declare(ctx), errPause)
		}
		return err
	})
	if err != nil {
		return err
	}
	_ = t.msg.Ack() // a lost one costs a delivery, which finds that the shard is done
	return nil
}

// Return gives a shard back that is not done. Others get it after a while, which is 0 unless one of them is at it.
func (t *Task) Return(after time.Duration) {
	_ = t.msg.NakWithDelay(after) // a lost one costs the rest of the lease
}

// Lease is how long a worker may be silent before its shard is another's.
func (q *Queue) Lease() time.Duration { return q.lease }
