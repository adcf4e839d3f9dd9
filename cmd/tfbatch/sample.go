package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tfbatch/internal/report"
	"tfbatch/internal/row"
	"tfbatch/stages"
)

// How many rows a report shows: a fair sample, and of each code the first that failed.
const (
	sampleRows   = 8
	failuresEach = 3
	mostFailures = 24
	shownReplies = 4 // of a row
)

// chosen is a row on its way to the page.
type chosen struct {
	*stages.Pair
	why  string
	pick uint64
}

// choice is what a report takes of the rows that it sees.
type choice struct {
	page   *report.Page
	sample []chosen // in the order of pick
	long   chosen
	longAt int
	codes  map[row.Code]int
}

// chooseRows reads every row: lengths, a sample of them, the first errors.
func (a *app) chooseRows(ctx context.Context, p *report.Page, v *stages.View) error {
	c := &choice{page: p, codes: map[row.Code]int{}}
	err := v.Lines(stages.InputOrder, func(line []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := stages.ParseLine(line)
		if err == nil {
			c.take(r)
		}
		return err
	})
	list := c.rows()
	prompts := map[int64][]report.Turn{}
	if err == nil && len(list) > 0 {
		prompts, p.Note = a.prompts(ctx, v, list)
	}
	for _, r := range list {
		p.Samples = append(p.Samples, shown(&r, prompts[r.Index]))
	}
	return err
}

func (c *choice) take(r *stages.Pair) {
	if r.Error != "" {
		if c.codes[r.Error]++; c.codes[r.Error] <= failuresEach && len(c.page.Failures) < mostFailures {
			c.page.Failures = append(c.page.Failures, report.Row{ID: r.ID, Index: r.Index, Error: fmt.Sprintf("%s: %s", r.Error, r.Message)})
		}
		return
	}
	tokens := 0
	for i := range r.Replies {
		if i == 0 {
			c.page.Prompts.Add(r.Replies[i].PromptTokens)
		}
		c.page.Texts.Add(r.Replies[i].Tokens)
		tokens = max(tokens, r.Replies[i].Tokens)
	}
	if c.long.Pair == nil || tokens > c.longAt {
		c.long, c.longAt = chosen{r, "the longest reply", 0}, tokens
	}
	one := chosen{r, "of a fair sample", stages.Pick(r.ID)}
	at, _ := slices.BinarySearchFunc(c.sample, one, func(a, b chosen) int { return cmp.Compare(a.pick, b.pick) })
	c.sample = slices.Insert(c.sample, at, one)
	c.sample = c.sample[:min(len(c.sample), sampleRows)]
}

// rows are the chosen ones in the order of the input.
func (c *choice) rows() []chosen {
	out := slices.Clone(c.sample)
	if c.long.Pair != nil && !slices.ContainsFunc(out, func(r chosen) bool { return r.Index == c.long.Index }) {
		out = append(out, c.long)
	}
	slices.SortFunc(out, func(a, b chosen) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// prompts are what the rows of list were asked, or why that is not known.
func (a *app) prompts(ctx context.Context, v *stages.View, list []chosen) (map[int64][]report.Turn, string) {
	if v.Record == nil {
		return nil, "Prompts are shown once the job is complete."
	}
	if input := a.set.verify.input; input != "" {
		v.Record.Job.Input.Path.File = input
	}
	out := map[int64][]report.Turn{}
	err := v.Record.Pairs(ctx, func(r *stages.Pair) error {
		if slices.ContainsFunc(list, func(c chosen) bool { return c.Index == r.Index }) {
			out[r.Index] = asked(&r.Prompt)
		}
		if r.Index == list[len(list)-1].Index {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, "Prompts are not shown: " + err.Error()
	}
	return out, ""
}

// asked is a prompt as turns of a talk.
func asked(p *row.Prompt) []report.Turn {
	switch {
	case p.IDs != nil:
		return []report.Turn{{Role: "prompt", Text: fmt.Sprintf("%d token ids", len(p.IDs))}}
	case !p.Chat():
		return []report.Turn{{Role: "prompt", Text: p.Text}}
	}
	turns, err := turnsOf(p.Messages)
	if err != nil {
		return []report.Turn{{Role: "messages", Text: string(p.Messages)}}
	}
	var out []report.Turn
	for _, t := range turns {
		out = append(out, report.Turn{Role: t.Role, Text: t.Content})
	}
	return out
}

func shown(r *chosen, turns []report.Turn) report.Row {
	out := report.Row{ID: r.ID, Index: r.Index, Why: r.why, Turns: turns}
	for i := range r.Replies[:min(len(r.Replies), shownReplies)] {
		one := &r.Replies[i]
		out.Replies = append(out.Replies, report.Reply{Text: one.Text, Finish: string(one.Finish), Prompt: one.PromptTokens, Tokens: one.Tokens})
	}
	return out
}

// counted lists counts, the largest first.
func counted[K ~string](m map[K]int64) []report.Count {
	var out []report.Count
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, report.Count{Name: string(key), N: m[key]})
	}
	slices.SortStableFunc(out, func(a, b report.Count) int { return cmp.Compare(b.N, a.N) })
	return out
}
