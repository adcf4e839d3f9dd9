package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"tfbatch/jobs"
	"tfbatch/stages"
)

// settings are how the tool works: flags, then TFBATCH_* variables, then for what a job file
// says too the job file, then the user's config file. They never hold job data: viper folds
// the case of keys and splits them at dots. None of them can change a reply.
type settings struct {
	json      bool
	quiet     bool
	progress  string
	overwrite bool

	retryErrors bool
	grace       time.Duration
	isa         string
	metricsAddr string
	out         string
	only        []string
	limit       int64
	lanes       []int // that bench tries
	tokens      int   // that bench draws per lane
	rounds      int   // of bench
	rotations   int   // of the gate
	clock       string
	draws       []string
	arms        []string
	bits        int // that quantize leaves of a weight
	group       int
	digests     bool
	drafter     string // that inspect holds to the model

	// above goes over a job file; below fills in what the file leaves to us.
	above, below jobs.Run
	verify       verifySettings
	export       exportSettings
	rows         rowsSettings
	shard        stages.Shard
	work         workSettings
	draft        jobs.Guesses
	draftFrom    source
}

// envPrefix is before every variable: TFBATCH_LANES, TFBATCH_LOG_LEVEL.
const envPrefix = "TFBATCH"

// source is where a setting comes from, the stronger the higher.
type source int

const (
	fromDefault source = iota
	fromFile
	fromEnv
	fromFlag
)

// settle reads the settings of one command. Viper finds each value; the flag of its name
// says what it means, so that a variable is read as strictly as a flag.
func (a *app) settle(c *cobra.Command) error {
	file, err := readConfig(c.Root())
	if err != nil {
		return err
	}
	v := viper.New()
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := errors.Join(v.BindPFlags(c.Flags()), v.MergeConfigMap(file.AllSettings())); err != nil {
		return err
	}
	origin := map[string]source{}
	var errs []error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		origin[f.Name] = sourceOf(f, file)
		if from := origin[f.Name]; from == fromEnv || from == fromFile {
			if err := f.Value.Set(v.GetString(f.Name)); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", nameOf(f.Name, from), err))
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return a.take(c.Flags(), origin)
}

func sourceOf(f *pflag.Flag, file *viper.Viper) source {
	_, env := os.LookupEnv(variable(f.Name))
	switch {
	case f.Changed:
		return fromFlag
	case env:
		return fromEnv
	case file.IsSet(f.Name):
		return fromFile
	}
	return fromDefault
}

func variable(flag string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func nameOf(flag string, from source) string {
	switch from {
	case fromFlag:
		return "--" + flag
	case fromEnv:
		return variable(flag)
	}
	return configName + ": " + flag
}

// configName is the user's file of tool settings, below the folder that the system has for such.
const configName = "tfbatch/config.yaml"

// readConfig reads the user's file, if there is one. A key that no flag has is refused.
func readConfig(root *cobra.Command) (*viper.Viper, error) {
	v := viper.New()
	dir, err := os.UserConfigDir()
	if err != nil {
		return v, nil // no home, no file
	}
	path := filepath.Join(dir, filepath.FromSlash(configName))
	v.SetConfigFile(path)
	if err := v.ReadInConfig(); errors.Is(err, fs.ErrNotExist) {
		return v, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, key := range v.AllKeys() {
		if !hasFlag(root, key) {
			return nil, fmt.Errorf("%s: %q is no setting of tfbatch; what a job needs belongs in its job file", path, key)
		}
	}
	return v, nil
}

func hasFlag(root *cobra.Command, name string) bool {
	return root.PersistentFlags().Lookup(name) != nil ||
		slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Flags().Lookup(name) != nil })
}

// take fills the settings from the flags that the command has.
func (a *app) take(flags *pflag.FlagSet, origin map[string]source) error {
	s := &a.set
	s.json, _ = flags.GetBool("json") // an error is a command without the flag
	s.quiet, _ = flags.GetBool("quiet")
	s.progress, _ = flags.GetString("progress")
	s.overwrite, _ = flags.GetBool("overwrite")
	s.retryErrors, _ = flags.GetBool("retry-errors")
	if s.overwrite && s.retryErrors {
		return errors.New("--overwrite begins anew, so there are no errors to retry; use one of the two")
	}
	s.grace, _ = flags.GetDuration("grace")
	s.isa, _ = flags.GetString("isa")
	s.out, _ = flags.GetString("out")
	s.only, _ = flags.GetStringSlice("only")
	s.limit, _ = flags.GetInt64("limit")
	s.bits, _ = flags.GetInt("bits")
	s.group, _ = flags.GetInt("group")
	s.digests, _ = flags.GetBool("digests")
	s.drafter, _ = flags.GetString("drafter")
	s.takeBench(flags)
	s.takeRecord(flags)
	if err := s.work.take(flags); err != nil {
		return err
	}
	if text, _ := flags.GetString("metrics-addr"); text != "" {
		var err error
		if s.metricsAddr, err = listenAddress(text); err != nil {
			return fmt.Errorf("%s: %w", nameOf("metrics-addr", origin["metrics-addr"]), err)
		}
	}
	if err := s.rows.take(flags); err != nil {
		return fmt.Errorf("%s: %w", nameOf("order", origin["order"]), err)
	}
	if c := s.progress; c != "" && !slices.Contains(progressKinds, c) {
		return fmt.Errorf("progress: is %q, want one of %s", c, strings.Join(progressKinds, ", "))
	}
	if text, _ := flags.GetString("shard"); text != "" {
		var err error
		if s.shard, err = stages.ParseShard(text); err != nil {
			return fmt.Errorf("%s: %w", nameOf("shard", origin["shard"]), err)
		}
	}
	if err := s.takeDraft(flags, origin["draft"]); err != nil {
		return err
	}
	for key, source := range origin {
		into := &s.above
		if source == fromFile {
			into = &s.below
		} else if source == fromDefault {
			continue
		}
		if err := setRun(into, flags, key); err != nil {
			return fmt.Errorf("%s: %w", nameOf(key, source), err)
		}
	}
	level := new(slog.LevelVar)
	text, _ := flags.GetString("log-level")
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("log-level: %w", err)
	}
	a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	return nil
}

// takeBench takes the flags of what is measured.
func (s *settings) takeBench(flags *pflag.FlagSet) {
	s.lanes, _ = flags.GetIntSlice("try-lanes")
	s.tokens, _ = flags.GetInt("tokens")
	s.rounds, _ = flags.GetInt("rounds")
	s.rotations, _ = flags.GetInt("rotations")
	s.clock, _ = flags.GetString("clock")
	s.draws, _ = flags.GetStringSlice("draws")
	s.arms, _ = flags.GetStringSlice("arms")
}

// takeRecord takes the flags of what works on a finished job.
func (s *settings) takeRecord(flags *pflag.FlagSet) {
	s.verify.mode, _ = flags.GetString("mode")
	s.verify.sample, _ = flags.GetString("sample")
	s.verify.model, _ = flags.GetString("model")
	s.verify.input, _ = flags.GetString("input")
	s.verify.template, _ = flags.GetString("template")
	s.verify.receipt, _ = flags.GetString("verified")
	s.export.format, _ = flags.GetString("format")
	s.export.split, _ = flags.GetString("split")
	s.export.shardRows, _ = flags.GetInt64("shard-rows")
	s.export.groupRows, _ = flags.GetInt64("group-rows")
	s.export.errors, _ = flags.GetBool("errors")
}

func (s *settings) takeDraft(flags *pflag.FlagSet, from source) error {
	if from == fromDefault {
		return nil
	}
	text, _ := flags.GetString("draft")
	n, err := jobs.ParseGuesses(text)
	if err != nil {
		return fmt.Errorf("%s: %w", nameOf("draft", from), err)
	}
	s.draft, s.draftFrom = n, from
	return nil
}

// setRun sets the run setting of a flag's name; other flags are none.
func setRun(r *jobs.Run, flags *pflag.FlagSet, key string) error {
	var into *int
	switch key {
	case "device":
		r.Device, _ = flags.GetString(key)
		return nil
	case "lanes":
		into = &r.Lanes
	case "chunk":
		into = &r.Chunk
	case "threads":
		into = &r.Threads
	default:
		return nil
	}
	if *into, _ = flags.GetInt(key); *into < 1 || *into > maxRunSetting {
		return fmt.Errorf("is %d, want 1 to %d", *into, maxRunSetting)
	}
	return nil
}

// maxRunSetting bounds lanes, chunk and threads far above any use.
const maxRunSetting = 1 << 16

// apply puts the settings over and under those of a job.
func (s *settings) apply(j *jobs.Job) {
	overlay(&j.Run.Lanes, s.above.Lanes, s.below.Lanes, 0)
	overlay(&j.Run.Threads, s.above.Threads, s.below.Threads, 0)
	overlay(&j.Run.Chunk, s.above.Chunk, 0, 0)
	overlay(&j.Run.Device, s.above.Device, s.below.Device, jobs.Auto)
	if s.draftFrom > fromFile || s.draftFrom == fromFile && j.Drafter.Guesses == jobs.DraftAuto {
		j.Drafter.Guesses = s.draft
	}
	if s.out != "" {
		j.Output.Dir = jobs.Path{Name: s.out, File: s.out}
	}
	if s.limit > 0 && (j.Input.MaxRows == 0 || s.limit < j.Input.MaxRows) {
		j.Input.MaxRows = s.limit
	}
}

// overlay takes above if it is set, else below where the job says auto.
func overlay[T comparable](job *T, above, below, auto T) {
	var none T
	switch {
	case above != none:
		*job = above
	case *job == auto && below != none:
		*job = below
	}
}
