package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// task is an operator cut into pieces that may run in any order, on any worker.
type task interface{ do(w *worker, piece int) }

// pool runs tasks on a fixed set of workers; the caller of run is the first of them.
// Workers look for the next task for a while, so that the operators of a step find them
// awake, and sleep between steps.
type pool struct {
	workers []*worker
	task    task // set before left; whoever drew a piece may read it
	pieces  int64
	left    atomic.Int64 // pieces not drawn yet; below zero once workers found none
	done    atomic.Int64 // pieces finished
	asleep  atomic.Int32
	wake    chan struct{}
	stop    atomic.Bool
	ended   sync.WaitGroup
}

func newPool(threads int) *pool {
	p := &pool{wake: make(chan struct{}, threads)}
	for range threads {
		p.workers = append(p.workers, newWorker())
	}
	for _, w := range p.workers[1:] {
		p.ended.Go(func() { p.serve(w) })
	}
	return p
}

// run does all pieces of t and returns when they are done.
func (p *pool) run(t task, pieces int) {
	if pieces <= 1 || len(p.workers) == 1 {
		for i := range pieces {
			t.do(p.workers[0], i)
		}
		return
	}
	p.task, p.pieces = t, int64(pieces)
	p.done.Store(0)
	p.left.Store(int64(pieces))
	p.rouse(min(pieces-1, len(p.workers)-1))
	p.draw(p.workers[0])
	for spins := 0; p.done.Load() < p.pieces; spins++ {
		if spins > callerSpins {
			runtime.Gosched() // the thread of a worker may be off its core
		}
	}
}

// callerSpins is about 10 µs: the others are then at their last piece or off the core.
const callerSpins = 10_000

// draw takes pieces until none is left.
func (p *pool) draw(w *worker) {
	for {
		left := p.left.Add(-1)
		if left < 0 {
			return
		}
		// The piece is ours and unfinished, so task and pieces cannot change under us.
		p.task.do(w, int(p.pieces-1-left))
		p.done.Add(1)
	}
}

// rouse wakes up to n sleepers.
func (p *pool) rouse(n int) {
	for range min(n, int(p.asleep.Load())) {
		select {
		case p.wake <- struct{}{}:
		default:
			return
		}
	}
}

// awake is how long a worker looks for the next task: longer than the host needs between
// two operators, shorter than anybody would notice as load.
const awake = 50 * time.Microsecond

func (p *pool) serve(w *worker) {
	for !p.stop.Load() {
		if p.seen() {
			p.draw(w)
			continue
		}
		p.sleep()
	}
}

// seen waits for pieces, but not for long.
func (p *pool) seen() bool {
	const perLook = 1000 // loads between two looks at the clock
	for until := time.Now().Add(awake); time.Now().Before(until); {
		for range perLook {
			if p.left.Load() > 0 {
				return true
			}
		}
		if p.stop.Load() {
			return false
		}
	}
	return false
}

// sleep blocks until run or close wakes it, unless pieces came since the last look.
func (p *pool) sleep() {
	p.asleep.Add(1)
	if p.left.Load() <= 0 && !p.stop.Load() {
		<-p.wake
	}
	p.asleep.Add(-1)
}

func (p *pool) close() {
	p.stop.Store(true)
	close(p.wake)
	p.ended.Wait()
}
