package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/selftest"
	"tfbatch/jobs"
)

func (a *app) selftestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "selftest",
		Short: "hold this machine's device to the CPU's bits, and print a report to send",
		Long: `selftest holds a device to the contract, operator by operator and bit for bit: over odd sizes and over the
matrices of served models, for 1 to 48 rows, and over replies of the builtin model, plain and drafted, on 1 to 16
lanes. A bit that is changed on purpose has to be seen. It needs no files, writes none, and goes on after a part
that fails, so that its report says as much as it can. The report holds no path and no name of yours.

Without --device it tests the CPU: each instruction set that the processor has against plain Go.

Exit codes: 0 all is equal, 1 a part failed, 4 a part gave other bits.`,
		Example: `  tfbatch selftest --device metal
  tfbatch selftest --device cuda --json > report.json
  tfbatch selftest`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.selftest(c.Context()) },
	}
	f := c.Flags()
	f.String("device", "cpu", "cpu, metal or cuda")
	f.Int("threads", 0, "threads of the CPU")
	f.Int("tokens", 48, "tokens of each reply of the whole model")
	f.StringSlice("only", nil, "parts to test, by the start of their names: contract/matmul")
	return c
}

// selfReport is what a user sends.
type selfReport struct {
	Version    string            `json:"version"`
	Arithmetic string            `json:"arithmetic"`
	System     string            `json:"system"` // of the machine, as Go names it
	Device     string            `json:"device"`
	Against    string            `json:"against"`
	Good       bool              `json:"good"`
	Parts      []selftest.Result `json:"parts"`
}

func (a *app) selftest(ctx context.Context) error {
	worst := error(nil)
	var reports []selfReport
	for _, t := range a.selfTargets() {
		r := selfReport{Version: version(), Arithmetic: arithmetic, System: runtime.GOOS + "/" + runtime.GOARCH, Against: t.against, Device: t.name}
		if d, err := t.options.Open(); err == nil {
			r.Device = d.Name()
			if err := d.Close(); err != nil {
				return err
			}
		}
		if !a.set.json {
			fmt.Fprintf(a.stdout, "tfbatch %s, %s, %s: %s against %s\n", r.Version, r.Arithmetic, r.System, r.Device, r.Against)
		}
		var err error
		r.Good, err = selftest.Run(ctx, t.options, func(p selftest.Result) {
			r.Parts = append(r.Parts, p)
			if !a.set.json {
				a.printPart(&p)
			}
		})
		if errors.Is(err, selftest.ErrNoPart) {
			return usage(fmt.Errorf("--only: %w", err))
		}
		if err != nil {
			return err
		}
		reports = append(reports, r)
		worst = worse(worst, &r)
	}
	if a.set.json {
		if err := writeJSON(a.stdout, reports); err != nil {
			return err
		}
	}
	return worst
}

func (a *app) printPart(p *selftest.Result) {
	detail := ""
	if p.Detail != "" {
		detail = ": " + p.Detail
	}
	fmt.Fprintf(a.stdout, "%-9s %7.2f s  %s%s\n", p.Verdict, p.Seconds, p.Part, detail)
}

// worse is the exit of all reports so far: other bits before a failure, a failure before none.
func worse(so error, r *selfReport) error {
	different, failed := 0, 0
	for _, p := range r.Parts {
		switch p.Verdict {
		case selftest.Different:
			different++
		case selftest.Failed:
			failed++
		}
	}
	if different+failed == 0 {
		return so
	}
	err := fmt.Errorf("%s: %d of %d parts gave other bits, %d failed", r.Device, different, len(r.Parts), failed)
	if different > 0 {
		return &coded{exitDiffers, err}
	}
	if so != nil {
		return so
	}
	return &coded{exitFailed, err}
}

// selfTarget is a device to test and what it is held to.
type selfTarget struct {
	name, against string
	options       selftest.Options
}

// selfTargets is the named device against the CPU, or each instruction set against plain Go.
func (a *app) selfTargets() []selfTarget {
	run := jobs.Run{Device: a.set.above.Device, Threads: a.set.above.Threads}
	open := func(isa cpu.ISA) func() (backend.Device, error) {
		return func() (backend.Device, error) { return cpu.Open(cpu.Options{Threads: run.Threads, ISA: isa}) }
	}
	if run.Device != "" && run.Device != "cpu" && run.Device != jobs.Auto {
		return []selfTarget{{run.Device, "the CPU", selftest.Options{
			Open: func() (backend.Device, error) { return openDevice(run, jobs.FMA, cpu.Auto.String()) },
			CPU:  open(cpu.Auto), Tokens: a.set.tokens, Only: a.set.only,
		}}}
	}
	var all []selfTarget
	for isa := cpu.Auto + 1; isa < cpu.Portable; isa++ {
		d, err := open(isa)()
		if err != nil {
			continue // the processor does not have it
		}
		_ = d.Close() // it did nothing
		all = append(all, selfTarget{isa.String(), "plain Go", selftest.Options{
			Open: open(isa), CPU: open(cpu.Portable), Tokens: a.set.tokens, Only: a.set.only,
		}})
	}
	return all
}
