package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/engine"
	"tfbatch/internal/row"
	"tfbatch/quant"
	"tfbatch/stages"
)

func (a *app) benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench JOBS.yaml",
		Short: "measure this machine and a job's model on it",
		Long: `bench measures matrix products beside the limits of this machine, and tokens per second
of each job's model and prompts for several numbers of lanes, without guesses. On the CPU it
then says where the time of a step goes, and how near to the limits of the machine every
operator comes. It writes no file.`,
		Example: `  tfbatch bench jobs/demo.yaml
  tfbatch bench jobs/demo.yaml --try-lanes 1,16,64 --tokens 128 --json`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.bench(c.Context(), args[0]) },
	}
	addJobFlags(c)
	c.Flags().IntSlice("try-lanes", []int{1, 4, 8, 16, 32}, "numbers of lanes to measure")
	c.Flags().Int("tokens", 64, "tokens to draw per lane")
	c.Flags().Int("rounds", 3, "runs of each number of lanes, in turns with the others, so that a change of the machine's mood meets all")
	c.AddCommand(a.gateCommand())
	return c
}

// benchReport is what bench measured.
type benchReport struct {
	Machine []machineSpeed `json:"machine"`
	Jobs    []jobSpeed     `json:"jobs"`
	Steps   []phase        `json:"steps"` // where their time goes; of the CPU alone
}

// machineSpeed is a matrix product as a share of what the machine can do.
type machineSpeed struct {
	Device      string  `json:"device"`
	Rows        int     `json:"rows"`
	K           int     `json:"k"`
	N           int     `json:"n"`
	GBps        float64 `json:"gb_per_second"`
	ReadGBps    float64 `json:"read_gb_per_second"`
	GFLOPS      float64 `json:"gflops"`
	PeakGFLOPS  float64 `json:"peak_gflops"`
	ShareOfRead float64 `json:"share_of_read"`
	ShareOfPeak float64 `json:"share_of_peak"`
}

// jobSpeed is a job's model at one number of lanes.
type jobSpeed struct {
	Job     string  `json:"job"`
	Lanes   int     `json:"lanes"`
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
	PerSec  float64 `json:"tokens_per_second"`
	Speedup float64 `json:"speedup"` // over the first number of lanes
}

func (a *app) bench(ctx context.Context, path string) error {
	if a.set.tokens < 1 || a.set.rounds < 1 || len(a.set.lanes) == 0 {
		return usage(errors.New("--tokens, --rounds and --try-lanes need at least one each"))
	}
	list, err := a.prepare(path)
	if err != nil {
		return err
	}
	prompts := make([][][]int32, len(list))
	for i, p := range list {
		if prompts[i], err = a.benchPrompts(ctx, p); err != nil {
			return fmt.Errorf("job %s: %w", p.job.Name, err)
		}
	}
	report := &benchReport{Jobs: []jobSpeed{}, Steps: []phase{}}
	if report.Machine, err = a.machine(list[0]); err != nil {
		return err
	}
	for i, p := range list {
		speeds, steps, err := a.benchJob(ctx, p, prompts[i])
		if err != nil {
			return fmt.Errorf("job %s: %w", p.job.Name, err)
		}
		report.Jobs, report.Steps = append(report.Jobs, speeds...), append(report.Steps, steps...)
	}
	if a.set.json {
		return writeJSON(a.stdout, report)
	}
	printMachine(a.stdout, report.Machine)
	printJobs(a.stdout, report.Jobs, a.set.rounds)
	printPhases(a.stdout, report.Steps)
	return nil
}

// The product that is measured: one row reads a weight once, many rows compute on it. The
// size is that of a small model's layer.
const benchSide = 2048

var benchRows = []int{1, 8, 64}

func (a *app) machine(p *prepared) ([]machineSpeed, error) {
	isa, err := parseISA(a.set.isa)
	if err != nil {
		return nil, err
	}
	var out []machineSpeed
	for _, rows := range benchRows {
		s, err := cpu.MatMulSpeed(cpu.Options{Threads: p.job.Run.Threads, ISA: isa}, rows, benchSide, benchSide, quant.Format{Kind: quant.BF16})
		if err != nil {
			return nil, err
		}
		out = append(out, machineSpeed{
			Device: s.Device, Rows: s.Rows, K: s.K, N: s.N, GBps: s.GBps, ReadGBps: s.ReadGBps,
			GFLOPS: s.GFLOPS, PeakGFLOPS: s.PeakGFLOPS, ShareOfRead: s.ShareOfRead(), ShareOfPeak: s.ShareOfPeak(),
		})
	}
	return out, nil
}

func printMachine(w io.Writer, list []machineSpeed) {
	fmt.Fprintf(w, "%s: bf16 products, K = N = %d\n", list[0].Device, benchSide)
	fmt.Fprintf(w, "  %5s %16s %22s %16s %22s\n", "rows", "weights GB/s", "of read bandwidth", "GFLOP/s", "of fma peak")
	for _, s := range list {
		fmt.Fprintf(w, "  %5d %16.1f %14.1f (%4.0f%%) %16.1f %14.1f (%4.0f%%)\n",
			s.Rows, s.GBps, s.ReadGBps, 100*s.ShareOfRead, s.GFLOPS, s.PeakGFLOPS, 100*s.ShareOfPeak)
	}
}

func (a *app) benchJob(ctx context.Context, p *prepared, prompts [][]int32) ([]jobSpeed, []phase, error) {
	m, err := a.load(ctx, p, nil)
	if err != nil {
		return nil, nil, err
	}
	defer m.device.Close()
	var trials []*trial
	for _, lanes := range a.set.lanes {
		t, err := newTrial(m, p.size.engine, prompts, lanes, a.set.tokens)
		if err != nil {
			return nil, nil, err
		}
		trials = append(trials, t)
	}
	for range a.set.rounds {
		for _, t := range trials {
			if err := t.once(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	out := make([]jobSpeed, len(trials))
	for i, t := range trials {
		out[i] = t.speed()
		out[i].Job, out[i].Speedup = p.job.Name, out[i].PerSec/out[0].PerSec
	}
	steps, err := a.phases(ctx, p, m.device, trials)
	return out, steps, err
}

func printJobs(w io.Writer, list []jobSpeed, rounds int) {
	for i, s := range list {
		if i == 0 || s.Job != list[i-1].Job {
			fmt.Fprintf(w, "%s: tokens per second, prompts included, median of %d\n  %5s %12s %10s\n", s.Job, rounds, "lanes", "tokens/s", "speedup")
		}
		fmt.Fprintf(w, "  %5d %12.1f %9.2fx\n", s.Lanes, s.PerSec, s.Speedup)
	}
}

// benchPrompts are the job's prompts that leave room for the tokens.
func (a *app) benchPrompts(ctx context.Context, p *prepared) ([][]int32, error) {
	var prompts [][]int32
	_, err := stages.Take(ctx, &p.job, p.encoder, a.stdin, func(r *row.Row) {
		if len(r.Tokens)+a.set.tokens <= p.snap.plan.Info.Context {
			prompts = append(prompts, r.Tokens)
		}
	})
	if err == nil && len(prompts) == 0 {
		err = fmt.Errorf("input %s has no prompt that leaves room for %d tokens", p.job.Input.Path.Name, a.set.tokens)
	}
	return prompts, err
}

// trial is an engine that is filled and run dry, with replies that no end token cuts short.
type trial struct {
	engine  *engine.Engine
	prompts [][]int32
	lanes   int
	tokens  int
	seconds []float64
}

func newTrial(m *loaded, c engine.Config, prompts [][]int32, lanes, tokens int) (*trial, error) {
	longest := 0
	for _, p := range prompts {
		longest = max(longest, len(p))
	}
	c = engine.Config{Lanes: lanes, Chunk: c.Chunk, Context: c.Context, KVF32: c.KVF32}
	c.Pages = lanes * ((longest + tokens + backend.PageKeys - 1) / backend.PageKeys)
	eng, err := m.engine(c)
	return &trial{engine: eng, prompts: prompts, lanes: lanes, tokens: tokens}, err
}

func (t *trial) once(ctx context.Context) error {
	seconds, err := fill(ctx, t.engine, t.requests())
	t.seconds = append(t.seconds, seconds)
	return err
}

func (t *trial) requests() []*engine.Request {
	requests := make([]*engine.Request, t.lanes)
	for i := range requests {
		requests[i] = &engine.Request{
			Key: fmt.Sprint(i), Prompt: t.prompts[i%len(t.prompts)], MaxTokens: t.tokens,
			Sampling: engine.Sampling{IgnoreEOS: true},
		}
	}
	return requests
}

// fill runs requests, for which there is room, to their end, and times that.
func fill(ctx context.Context, e *engine.Engine, requests []*engine.Request) (seconds float64, err error) {
	for _, q := range requests {
		if err := e.Admit(q); err != nil {
			return 0, err
		}
	}
	started := time.Now()
	for e.Active() > 0 {
		if _, err := step(ctx, e); err != nil {
			return 0, err
		}
	}
	return time.Since(started).Seconds(), nil
}

// step is one of e's. A row that fails is an error.
func step(ctx context.Context, e *engine.Engine) ([]engine.Result, error) {
	done, err := e.Step(ctx)
	for _, r := range done {
		if err == nil && r.Err != nil {
			err = fmt.Errorf("row %s: %w", r.Request.Key, r.Err)
		}
	}
	return done, err
}

func (t *trial) speed() jobSpeed {
	slices.Sort(t.seconds)
	s := jobSpeed{Lanes: t.lanes, Tokens: t.lanes * t.tokens, Seconds: t.seconds[len(t.seconds)/2]}
	s.PerSec = float64(s.Tokens) / s.Seconds
	return s
}
