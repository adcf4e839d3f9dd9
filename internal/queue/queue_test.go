package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// ends is a server and the workers of a test.
type ends struct {
	t      *testing.T
	server *Server
	mu     sync.Mutex
	said   []string
}

func serve(t *testing.T) *ends {
	t.Helper()
	s, err := Serve("127.0.0.1:0", t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	e := &ends{t: t, server: s}
	t.Cleanup(s.Close)
	return e
}

func (e *ends) dial(token string) *Conn {
	e.t.Helper()
	c, err := Dial(e.server.URL(), Options{Token: token, Patience: 3 * time.Second, Notice: func(text string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.said = append(e.said, text)
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(c.Close)
	return c
}

func (e *ends) join(identity string, shards int) *Queue {
	e.t.Helper()
	q, err := e.dial("secret").Join(context.Background(), Job{Name: "a.b", Identity: []byte(identity), Shards: shards, Lease: time.Second})
	if err != nil {
		e.t.Fatal(err)
	}
	return q
}

func (e *ends) next(q *Queue) *Task {
	e.t.Helper()
	task, err := q.Next(context.Background())
	if err != nil {
		e.t.Fatal(err)
	}
	return task
}

func (e *ends) done(task *Task, where string) {
	e.t.Helper()
	if err := task.Done(context.Background(), where); err != nil {
		e.t.Fatal(err)
	}
}

// TestShardOfASlowWorkerIsDoneTwice lets a lease end while its worker is alive: another is given the shard, both say that
// it is done, the first counts, and nobody is given it again.
func TestShardOfASlowWorkerIsDoneTwice(t *testing.T) {
	e := serve(t)
	slow, other := e.join("job", 1), e.join("job", 0)
	first := e.next(slow) // and does not keep it
	second := e.next(other)
	if first.Shard != 1 || second.Shard != 1 {
		t.Fatalf("got %+v and %+v, want shard 1 twice", first, second)
	}
	e.done(first, "one")
	e.done(second, "two")
	for _, q := range []*Queue{slow, other} {
		if task := e.next(q); task != nil {
			t.Errorf("shard %d is given out though all are done", task.Shard)
		}
		if places, err := q.Places(context.Background()); err != nil || len(places) != 1 || places[0] != "one" {
			t.Errorf("places %v, %v; want that of the first", places, err)
		}
	}
}

// TestLeaseIsKept holds a shard for several leases.
func TestLeaseIsKept(t *testing.T) {
	e := serve(t)
	task := e.next(e.join("job", 1))
	release := task.Keep()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if stolen, err := e.join("job", 1).Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v though the shard is kept", stolen, err)
	}
	release()
	task.Return(0)
	if again := e.next(e.join("job", 1)); again == nil || again.Shard != 1 {
		t.Errorf("got %+v of a shard that was given back", again)
	}
}

func TestOthersAreRefused(t *testing.T) {
	e := serve(t)
	e.join("job", 3)
	for _, c := range []struct {
		token, identity string
		shards          int
		want            string
	}{
		{"secret", "other", 3, "the queue holds another job a.b"},
		{"secret", "job", 4, "in 3 shards, not in 4"},
		{"wrong", "job", 3, "Authorization Violation"},
		{"secret", strings.Repeat("x", maxIdentity+1), 3, "a queue can hold"},
	} {
		_, err := e.dial(c.token).Join(context.Background(), Job{Name: "a.b", Identity: []byte(c.identity), Shards: c.shards, Lease: time.Second})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if q := e.join("job", 0); q.Shards() != 3 {
		t.Errorf("%d shards, want those that are there", q.Shards())
	}
}

// TestForeignMessagesAreRemoved puts messages where tfbatch has its own: every shard is given out and done all the same.
func TestForeignMessagesAreRemoved(t *testing.T) {
	e := serve(t)
	q := e.join("job", 3)
	sound := string(q.ticket(2))
	ctx := context.Background()
	for _, m := range []struct{ subject, data string }{
		{"shard.1", "nonsense"}, {"shard.2", strings.Replace(sound, `"shard":2`, `"shard":3`, 1)}, {"shard.3", sound + "x"},
		{"shard.99", sound}, {"shard.x", `{"shard":1e99}`}, {"done.2", sound[:40]}, {"done.9", sound},
		{"done.3", strings.Replace(string(q.ticket(3)), `"job_sha256":"`, `"job_sha256":"0`, 1)},
	} {
		if err := q.stream.Purge(ctx); m.subject == "shard.1" && err != nil {
			t.Fatal(err)
		}
		if _, err := q.conn.js.Publish(ctx, q.subject(m.subject), []byte(m.data)); err != nil {
			t.Fatal(err)
		}
		if err := q.declare(ctx); err != nil {
			t.Fatal(err)
		}
		given := map[int]bool{}
		for task := e.next(q); task != nil; task = e.next(q) {
			given[task.Shard] = true
			e.done(task, fmt.Sprint("place ", task.Shard))
		}
		if places, err := q.Places(ctx); err != nil || fmt.Sprint(places) != "[place 1 place 2 place 3]" || len(given) != 3 {
			t.Errorf("%s %.40q: places %v, %v, given out %v", m.subject, m.data, places, err, given)
		}
	}
	if len(e.said) < 6 {
		t.Errorf("said only %q", e.said)
	}
}

// TestServerThatLostItsFilesIsFilledAgain takes the stream away from under a worker.
func TestServerThatLostItsFilesIsFilledAgain(t *testing.T) {
	e := serve(t)
	q := e.join("job", 2)
	task := e.next(q)
	if err := q.conn.js.DeleteStream(context.Background(), q.name()); err != nil {
		t.Fatal(err)
	}
	e.done(task, "a")
	for task := e.next(q); task != nil; task = e.next(q) {
		e.done(task, "b")
	}
	if places, err := q.Places(context.Background()); err != nil || len(places) != 2 {
		t.Errorf("places %v, %v", places, err)
	}
	if err := q.conn.js.DeleteStream(context.Background(), q.name()); err != nil {
		t.Fatal(err)
	}
	if task := e.next(q); task == nil { // a worker that asks, and has nothing to say
		t.Error("no shard is given out by a queue that was filled anew")
	}
}

// TestWorkerThatDiedAfterItSaidDone leaves a lease on a shard that is done: it ends, and nobody is given the shard.
func TestWorkerThatDiedAfterItSaidDone(t *testing.T) {
	e := serve(t)
	q := e.join("job", 2)
	died := e.next(q)
	if err := q.put(context.Background(), q.subject("done", fmt.Sprint(died.Shard)), q.ticket(died.Shard)); err != nil {
		t.Fatal(err)
	}
	other := e.next(q)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second) // some leases
	defer cancel()
	release := other.Keep()
	if task, err := q.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v though one shard is done and the other kept", task, err)
	}
	release()
}

func TestLostServerIsAnError(t *testing.T) {
	e := serve(t)
	q := e.join("job", 1)
	e.server.Close()
	if _, err := q.Next(context.Background()); !errors.Is(err, ErrAway) {
		t.Errorf("%v, want %v", err, ErrAway)
	}
}

func FuzzTicket(f *testing.F) {
	q := &Queue{job: Job{Identity: []byte("job"), Shards: 7}}
	for i := range 9 {
		f.Add(fmt.Sprint("s.", i), q.ticket(i))
	}
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		got, err := q.readTicket(subject, data)
		if err == nil && (got.Shard < 1 || got.Shard > 7 || !strings.HasSuffix(subject, fmt.Sprint(got.Shard)) || got.Job != digest(q.job.Identity)) {
			t.Errorf("accepted %+v of %q", got, subject)
		}
	})
}
