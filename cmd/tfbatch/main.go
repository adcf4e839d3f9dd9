// Command tfbatch turns JSONL prompts into JSONL replies, offline, with a hash of the token
// ids of each. It wires the packages: flags, signals, exit codes, the choice of device.
//
// Start with [run], then run.go for the command of that name.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"tfbatch/jobs"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// The exit codes, which scripts rely on.
const (
	exitOK           = 0   // all rows done, errors within limits.max_row_errors
	exitFailed       = 1   // a device, a disk or a bug ended the run
	exitUsage        = 2   // flags or job file; nothing was run
	exitRowError     = 3   // finished, with too many error rows
	exitDiffers      = 4   // a reply is not the one that plain decoding gives
	exitIncomparable = 5   // verify: a file is missing or changed, or made by something else
	exitBelow        = 6   // bench gate: drafting was slower than none
	exitChanged      = 7   // the folder was begun with another model, template, job, input or arithmetic
	exitRefused      = 8   // refused before the start: memory, model, template, device, output
	exitSignal       = 128 // plus the signal: stopped after a clean flush
)

// coded is an error with the exit code that it means. A nil error is a code without words.
type coded struct {
	code int
	error
}

func (c *coded) Unwrap() error { return c.error }

func usage(err error) error { return &coded{exitUsage, err} }

// refused is the error of what was not started, unless it has a code of its own.
func refused(err error) error {
	var c *coded
	if errors.As(err, &c) {
		return c
	}
	return &coded{exitRefused, err}
}

// run is the program: one command, and what its error means to the shell.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.command()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	code := exitUsage // what cobra finds wrong with flags and arguments
	if a.started {
		code = exitFailed
	}
	var c *coded
	if errors.As(err, &c) {
		code, err = c.code, c.error
	}
	if err != nil {
		explain(stderr, err)
	}
	return code
}

// explain prints an error for people: job files with the line and a caret.
func explain(w io.Writer, err error) {
	var list jobs.Errors
	if !errors.As(err, &list) {
		fmt.Fprintf(w, "tfbatch: %s\n", oneLine(err.Error()))
		return
	}
	for _, e := range list {
		fmt.Fprintf(w, "%v\n", e)
		if excerpt := e.Excerpt(); excerpt != "" {
			fmt.Fprintln(w, excerpt)
		}
	}
}

// oneLine is a message on one line, whatever was joined in it, and without the control characters that a file may
// have put there: a terminal would obey them.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ReplaceAll(text, "\n", "; "))
}
