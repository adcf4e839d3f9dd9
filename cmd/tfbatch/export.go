package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tfbatch/internal/dataset"
	"tfbatch/stages"
)

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export DIR --out DATASET",
		Short: "write a finished job's replies as a dataset: Parquet, Arrow, chats",
		Long: `export takes the folder of a finished job, whose files it first holds against the manifest, joins the replies to
their prompts and writes DATASET/data/train-00000-of-00001.parquet, and so on, with a card, so that
datasets.load_dataset("DATASET") works. Replies come in the order of the input; rows without reply are left out
unless --errors keeps them.

Formats: parquet, arrow (IPC files), jsonl (chats with the reply as last turn), sharegpt, and speculators (ids
and loss mask, of jobs with sampling.return_token_ids).`,
		Example: `  tfbatch export out/qa --out datasets/qa
  tfbatch export out/qa --out datasets/qa-chat --format jsonl --split test
  tfbatch export out/qa --out datasets/qa-draft --format speculators`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("export takes the folder of one finished job; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.export(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.String("format", string(dataset.Parquet), "parquet, arrow, jsonl, sharegpt or speculators")
	f.String("split", "train", "first part of the files' names")
	f.Int64("shard-rows", 50_000, "replies in one file at most")
	f.Int64("group-rows", 2_000, "replies in one row group or record batch")
	f.Bool("errors", false, "keep rows without reply, in parquet and arrow")
	f.String("out", "", "folder of the dataset, which must have no data yet")
	f.String("input", "", "where the input is now")
	return c
}

// exportSettings are the flags of export.
type exportSettings struct {
	format, split        string
	shardRows, groupRows int64
	errors               bool
}

// exported is what export did, for machines.
type exported struct {
	Dir        string `json:"dir"`
	Rows       int64  `json:"rows"`
	Duplicates int64  `json:"duplicate_replies"`
}

func (a *app) export(ctx context.Context, dir string) error {
	o, err := a.set.export.options()
	if err != nil {
		return usage(err)
	}
	if a.set.out == "" {
		return usage(errors.New("--out is missing: the folder of the dataset"))
	}
	record, err := stages.OpenRecord(dir)
	if err != nil {
		return incomparable(dir, err)
	}
	if input := a.set.verify.input; input != "" {
		record.Job.Input.Path.File = input
	}
	hashes, err := record.CheckHashes(ctx)
	if err == nil && len(hashes.Problems) > 0 {
		err = fmt.Errorf("%w: problem 1 of %d: %s", stages.ErrRecord, len(hashes.Problems), hashes.Problems[0])
	}
	if err != nil {
		return incomparable(dir, err)
	}
	done, err := a.writeSet(ctx, record, o)
	if err != nil {
		return incomparable(dir, err)
	}
	if a.set.json {
		return writeJSON(a.stdout, done)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d replies, %d of them the same tokens as one before\n", done.Dir, done.Rows, done.Duplicates)
	return err
}

// incomparable gives a record that does not fit its files the exit code that verify has for it.
func incomparable(dir string, err error) error {
	if errors.Is(err, stages.ErrRecord) {
		return &coded{exitIncomparable, fmt.Errorf("%s: %w", dir, err)}
	}
	return err
}

// options are what the flags say, checked.
func (s *exportSettings) options() (o dataset.Options, err error) {
	o = dataset.Options{Format: dataset.Format(s.format), Split: s.split, ShardRows: s.shardRows, GroupRows: s.groupRows}
	switch {
	case !slices.Contains(dataset.Formats, o.Format):
		err = fmt.Errorf("--format: is %q, want one of %s", s.format, strings.Join(dataset.FormatNames(), ", "))
	case !splitName.MatchString(s.split):
		err = fmt.Errorf("--split: is %q, want letters, digits and '_'", s.split)
	case s.shardRows < 1 || s.groupRows < 1:
		err = fmt.Errorf("--shard-rows and --group-rows: are %d and %d, want at least 1", s.shardRows, s.groupRows)
	case s.errors && o.Format != dataset.Parquet && o.Format != dataset.Arrow:
		err = fmt.Errorf("--errors: %s has no place for a row without reply", s.format)
	}
	return o, err
}

// splitName is what datasets takes for a split: the part of a file's name before the first '-'.
var splitName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

func (a *app) writeSet(ctx context.Context, record *stages.Record, o dataset.Options) (*exported, error) {
	facts := record.Facts()
	o.Rows = facts.Counts.Replies
	if a.set.export.errors {
		o.Rows += facts.Counts.Errors
	}
	o.Facts = map[string]string{
		"tfbatch.version": facts.Version, "tfbatch.arithmetic": facts.Arithmetic,
		"tfbatch.job_root": facts.Root.String(), "tfbatch.job_sha256": facts.JobSHA256,
	}
	set, err := dataset.Create(a.set.out, o)
	if err != nil {
		return nil, refused(err)
	}
	err = record.Pairs(ctx, func(p *stages.Pair) error { return a.writePair(set, p) })
	if err == nil {
		err = set.Close()
	}
	if err != nil {
		return nil, errors.Join(err, set.Discard())
	}
	done := &exported{a.set.out, o.Rows, set.Duplicates()}
	return done, set.Card(record.Job.Name, cardLines(&facts, done))
}

// writePair writes each reply of a row, or the row without one.
func (a *app) writePair(set *dataset.Set, p *stages.Pair) error {
	turns, err := turnsOf(p.Prompt.Messages)
	if err != nil {
		return fmt.Errorf("row %q: %w", p.ID, err)
	}
	out := dataset.Row{CustomID: p.ID, Row: p.Index, Messages: turns, Prompt: p.Prompt.Text}
	if p.Error != "" {
		if out.ErrorCode = string(p.Error); !a.set.export.errors {
			return nil
		}
		return set.Write(&out)
	}
	out.PromptIDs = p.IDs
	for i := range p.Replies {
		r := &p.Replies[i]
		out.Sample, out.Completion, out.FinishReason, out.Seed = int32(r.Sample), r.Text, r.Finish.Reason(), r.Seed
		out.PromptTokens, out.CompletionTokens, out.TokenIDs = int32(r.PromptTokens), int32(r.Tokens), r.IDs
		out.PromptSHA256, out.TokenSHA256 = r.PromptSHA256.String(), r.TokenSHA256.String()
		if err := set.Write(&out); err != nil {
			return err
		}
	}
	return nil
}

// turnsOf reads messages; of a content in parts it takes the text.
func turnsOf(messages json.RawMessage) ([]dataset.Message, error) {
	if messages == nil {
		return nil, nil
	}
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(messages, &list); err != nil {
		return nil, err
	}
	out := make([]dataset.Message, len(list))
	for i, m := range list {
		out[i] = dataset.Message{Role: m.Role, Content: contentText(m.Content)}
	}
	return out, nil
}

func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // null, or what templates alone understand, has no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// cardLines are the facts of the card, in order.
func cardLines(f *stages.Facts, done *exported) []dataset.Line {
	c := &f.Counts
	lines := []dataset.Line{
		{Name: "model", Value: f.Model + " (" + f.Arch + ")"},
		{Name: "arithmetic", Value: f.Arithmetic},
		{Name: "input", Value: filepath.Base(f.Input)},
		{Name: "rows", Value: fmt.Sprintf("%d, of which %d without reply", c.Rows, c.Errors)},
		{Name: "replies", Value: fmt.Sprintf("%d; %d of them have the same tokens as one before", c.Replies, done.Duplicates)},
		{Name: "tokens", Value: fmt.Sprintf("%d of prompts, %d of replies", c.PromptTokens, c.CompletionTokens)},
		{Name: "temperature, top_p, top_k, min_p", Value: fmt.Sprint(f.Sampling.Temperature, ", ", f.Sampling.TopP, ", ", f.Sampling.TopK, ", ", f.Sampling.MinP)},
		{Name: "seed", Value: fmt.Sprint(f.Sampling.Seed)},
	}
	for _, finish := range slices.Sorted(maps.Keys(c.ByFinish)) {
		lines = append(lines, dataset.Line{Name: "ended by " + string(finish), Value: fmt.Sprint(c.ByFinish[finish])})
	}
	if f.Drafter != "" {
		lines = append(lines, dataset.Line{Name: "drafter", Value: f.Drafter + ", which cannot change a token"})
	}
	for _, s := range f.Shards {
		lines = append(lines, dataset.Line{Name: s.Name, Value: "sha256 " + s.SHA256.String()})
	}
	return append(lines,
		dataset.Line{Name: "job root", Value: f.Root.String()},
		dataset.Line{Name: "made by", Value: "tfbatch " + f.Version + "; `tfbatch verify` checks the job's folder, with --mode replay its replies"})
}
