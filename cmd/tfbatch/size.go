package main

import (
	"fmt"
	"sort"

	"tfbatch/internal/backend"
	"tfbatch/internal/engine"
	"tfbatch/internal/model"
	"tfbatch/jobs"
)

// autoLanes is the lanes of a job that leaves them to us. On a CPU the gain of sharing a
// weight between rows is had by 8 to 16 of them; more only cost memory.
const autoLanes = 16

// size is what an engine will take, decided before anything is allocated.
type size struct {
	engine  engine.Config
	weights int64 // bytes
	state   int64
	limit   int64 // 0: not known
}

// decide fits lanes and KV pages into the job's memory. The pages are as many as all lanes
// can fill, or what there is room for; they must hold one full context.
// The drafter's memory and that of one plain lane for the audit count too.
func decide(m model.Model, weights int64, drafter *drafterPlan, job *jobs.Job, total int64) (size, error) {
	info := m.Info()
	weights += drafter.weights()
	full := (info.Context + backend.PageKeys - 1) / backend.PageKeys
	lanes := job.Run.Lanes
	if lanes == 0 {
		lanes = autoLanes
	}
	limit := job.Run.Memory.Of(total)
	for {
		s := size{weights: weights, limit: limit}
		plain := engine.Config{Lanes: lanes, Chunk: job.Run.Chunk, Context: info.Context, KVF32: job.KV == "f32"}
		s.engine = drafted(plain, &job.Drafter, drafter)
		fits := func(pages int) bool {
			s.engine.Pages = pages
			s.state = m.Footprint(s.engine.Shape()) + drafter.state(info, s.engine)
			if job.Audit > 0 {
				s.state += m.Footprint(alone(s.engine).Shape())
			}
			return limit == 0 || weights+s.state <= limit
		}
		// The smallest number of pages that does not fit, of all that are worth having.
		over := full + sort.Search((lanes-1)*full+1, func(i int) bool { return !fits(full + i) })
		if over > full {
			fits(over - 1)
			return s, nil
		}
		if job.Run.Lanes != 0 || lanes == 1 {
			fits(full)
			return s, fmt.Errorf("%d lanes and a context of %d need %s of state beside %s of weights; the limit is %s: lower lanes or chunk, or raise memory.limit",
				lanes, info.Context, bytesText(s.state), bytesText(weights), bytesText(limit))
		}
		lanes /= 2
	}
}

// bytesText is a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// alone is c for one row at a time and without guesses: the way that other ways are held to.
func alone(c engine.Config) engine.Config {
	return engine.Config{
		Lanes: 1, Pages: (c.Context + backend.PageKeys - 1) / backend.PageKeys,
		Chunk: c.Chunk, Context: c.Context, KVF32: c.KVF32,
	}
}
