package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tfbatch/stages"
)

func (a *app) rowsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rows DIR",
		Short: "print the rows that are done, while a job runs too",
		Long: `rows prints the finished rows of a job's folder as JSON lines, as rows.jsonl has them or will have them: of the
journal while the job is not complete, whether a run is at it or not. It takes no lock and changes nothing.

Exit codes: 0 done, 5 the folder's files are damaged.`,
		Example: `  tfbatch rows out/qa | jq -r .custom_id
  tfbatch rows out/qa --order ended | tail -n 1
  tfbatch rows out/qa --errors`,
		Args: oneFolder,
		RunE: func(_ *cobra.Command, args []string) error { return a.rows(args[0]) },
	}
	f := c.Flags()
	f.String("order", string(stages.InputOrder), "input, or ended: as they were done, while the job is not complete")
	f.Bool("errors", false, "only rows without reply")
	f.Int64("limit", 0, "rows to print, 0 for all")
	return c
}

// oneFolder wants a job's folder as the only argument.
func oneFolder(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes the folder of one job; got %d arguments", c.Name(), len(args))
	}
	return nil
}

// rowsSettings are the flags of rows.
type rowsSettings struct {
	order  stages.Order
	errors bool
}

func (s *rowsSettings) take(flags *pflag.FlagSet) error {
	text, err := flags.GetString("order")
	if err != nil {
		return nil // a command without it
	}
	s.order = stages.Order(text)
	s.errors, _ = flags.GetBool("errors")
	if s.order != stages.InputOrder && s.order != stages.EndedOrder {
		return fmt.Errorf("is %q, want %s or %s", text, stages.InputOrder, stages.EndedOrder)
	}
	return nil
}

// errEnough ends the rows before their end.
var errEnough = errors.New("enough rows")

func (a *app) rows(dir string) error {
	v, err := stages.OpenView(dir)
	if err != nil {
		return notThere(err)
	}
	defer v.Close()
	out := bufio.NewWriter(a.stdout)
	left := a.set.limit
	err = v.Lines(a.set.rows.order, func(line []byte) error {
		if a.set.rows.errors {
			r, err := stages.ParseLine(line)
			if err != nil || r.Error == "" {
				return err
			}
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
		if left--; left == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return errors.Join(notThere(err), out.Flush())
}

// notThere gives the error of a folder that is none, or is damaged, its exit code.
func notThere(err error) error {
	switch {
	case errors.Is(err, stages.ErrRecord):
		return &coded{exitIncomparable, err}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, stages.ErrNoFolder):
		return usage(err)
	}
	return err
}
