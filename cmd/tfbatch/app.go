package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// app is one invocation.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	set     settings
	log     *slog.Logger
	started bool // flags and arguments were right

	exporter *exporter // of a run that shows its measurements
}

const about = `tfbatch turns JSONL prompts into JSONL replies with a model on this machine.
Replies do not depend on lanes, threads, chunk or the order of rows, and each carries a
hash of its token ids that anyone can check.

Every flag can also be set by a variable, TFBATCH_LANES for --lanes, or in the file
tfbatch/config.yaml of the user's configuration folder. Flags go first, then variables,
the job file, the user's file.`

// oneFile wants the job file as the only argument.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one job file, or - for standard input; got %d arguments", c.Name(), len(args))
	}
	return nil
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "tfbatch",
		Short:         "offline, batched, exact text generation",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := a.settle(c); err != nil {
				return usage(err)
			}
			a.started = true
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().Bool("json", false, "write a machine-readable report to stdout")
	root.PersistentFlags().String("log-level", "warn", "debug, info, warn or error, to stderr")
	root.AddCommand(a.runCommand(), a.planCommand(), a.verifyCommand(), a.reportCommand(), a.rowsCommand(), a.exportCommand(), a.mergeCommand(), a.workCommand(), a.queueCommand(), a.inspectCommand(), a.quantizeCommand(), a.benchCommand(), a.selftestCommand(), a.versionCommand())
	return root
}
