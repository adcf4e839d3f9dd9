package jobs

import (
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// version of the job format.
const version = 1

// Bounds of what a job file may ask for.
const (
	maxLanes   = 4096
	maxChunk   = 1 << 16
	maxThreads = 1024
	maxJobs    = 1000
	minLine    = 64 // bytes: below it no line of any form fits
)

// safeName is a job name: a folder of this name is made, on any system.
var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// jobs reads the document: defaults first, then each job on top of them.
func (d *decoder) jobs(body ast.Node) []Job {
	var defaults, list value
	seen := int64(0)
	top := value{node: body}
	d.mapping(top, fields{
		"version":  d.integer(version, version, func(n int64) { seen = n }),
		"defaults": func(v value) { defaults = v },
		"jobs":     func(v value) { list = v },
	})
	if seen == 0 && len(d.errs) == 0 {
		d.bad(top, "version is missing; write version: %d", version)
	}
	base := fallback()
	base.Output.Dir.File = d.resolve(base.Output.Dir.Name)
	if defaults.node != nil {
		d.settings(defaults, &base)
	}
	if list.node == nil {
		d.bad(top, "jobs is missing; it is a list of jobs with name, model and input")
		return nil
	}
	return d.jobList(list, base)
}

func (d *decoder) jobList(list value, base Job) []Job {
	var jobs []Job
	names := map[string]bool{}
	d.list(list, func(v value) {
		j := base.clone()
		d.job(v, &j)
		if low := strings.ToLower(j.Name); low != "" && names[low] {
			d.bad(v, "name %q is used twice (case apart); results would share a folder", j.Name)
		} else {
			names[low] = true
		}
		jobs = append(jobs, j)
	})
	if len(jobs) == 0 && len(d.errs) == 0 {
		d.bad(list, "holds no job")
	}
	if len(jobs) > maxJobs {
		d.bad(list, "holds %d jobs, at most %d", len(jobs), maxJobs)
	}
	return jobs
}

// clone copies what a job's own settings change in place.
func (j Job) clone() Job {
	j.Sampling.LogitBias = maps.Clone(j.Sampling.LogitBias)
	return j
}

func (d *decoder) job(v value, j *Job) {
	table := d.settingsTable(j)
	table["name"] = func(v value) {
		s, ok := d.readText(v)
		if ok && !safeName.MatchString(s) {
			d.bad(v, "is %q, want letters, digits, '.', '_' and '-', at most 64, the first a letter or digit", s)
		} else if ok {
			j.Name = s
		}
	}
	before := len(d.errs)
	d.mapping(v, table)
	if len(d.errs) > before {
		return
	}
	for _, need := range []struct{ name, value string }{
		{"name", j.Name}, {"model", j.Model.Path.Name}, {"input.path", j.Input.Path.Name},
	} {
		if need.value == "" {
			d.bad(v, "%s is missing", need.name)
		}
	}
}

// settings reads what defaults and jobs have in common.
func (d *decoder) settings(v value, j *Job) { d.mapping(v, d.settingsTable(j)) }

func (d *decoder) settingsTable(j *Job) fields {
	return fields{
		"model":   d.model(&j.Model),
		"device":  d.filled(&j.Run.Device),
		"lanes":   d.auto(&j.Run.Lanes, maxLanes),
		"chunk":   d.count(&j.Run.Chunk, 1, maxChunk),
		"threads": d.auto(&j.Run.Threads, maxThreads),
		"memory":  d.memory(&j.Run.Memory),
		"kv":      d.oneOf(&j.KV, "bf16", "f32"),

		"arithmetic": d.oneOf((*string)(&j.Arithmetic), string(FMA), string(I8)),

		"sampling": func(v value) { d.sampling(v, &j.Sampling) },
		"input":    func(v value) { d.input(v, &j.Input) },
		"prompt":   func(v value) { d.prompt(v, &j.Prompt) },
		"limits":   func(v value) { d.limits(v, &j.Limits) },
		"output":   func(v value) { d.output(v, &j.Output) },
		"drafter":  d.drafter(&j.Drafter),
		"audit":    d.audit(&j.Audit),
		"locked":   d.later,
	}
}

func (d *decoder) model(m *Model) func(value) {
	path := d.path(&m.Path, BuiltinPrefix+"NAME or the folder of a checkpoint", BuiltinPrefix)
	return func(v value) {
		switch v.node.(type) {
		case *ast.StringNode, *ast.LiteralNode:
			m.Aliases = []string{} // those of the defaults name another model
			path(v)
		default:
			d.mapping(v, fields{"path": path, "aliases": d.texts(&m.Aliases), "precision": d.later})
		}
	}
}

func (d *decoder) memory(m *Amount) func(value) {
	return func(v value) {
		d.mapping(v, fields{
			"limit": d.amount(m, d.size(1, func(n int64) { *m = Amount{Count: n} })),
		})
	}
}

func (d *decoder) sampling(v value, s *Sampling) {
	before := len(d.errs)
	d.mapping(v, fields{
		"temperature":        d.number(&s.Temperature),
		"top_p":              d.number(&s.TopP),
		"top_k":              d.count(&s.TopK, 0, math.MaxInt32),
		"min_p":              d.number(&s.MinP),
		"repetition_penalty": d.number(&s.RepetitionPenalty),
		"presence_penalty":   d.number(&s.PresencePenalty),
		"frequency_penalty":  d.number(&s.FrequencyPenalty),
		"logit_bias":         d.logitBias(s),
		"n":                  d.count(&s.N, 1, maxN),
		"max_tokens":         d.count(&s.MaxTokens, 1, maxReply),
		"stop":               d.texts(&s.Stop),
		"stop_ids":           d.ids(&s.StopIDs),
		"seed":               d.seed(&s.Seed),
		"logprobs":           d.later,
		"response_format":    d.json(&s.ResponseFormat),
		"return_token_ids":   d.boolean(&s.ReturnTokenIDs),
	})
	if len(d.errs) > before {
		return
	}
	if err := s.Check(); err != nil {
		at := v.at()
		if place := d.places[v.path+"."+err.Field]; place != nil {
			at = place
		}
		d.fail(at, v.path+"."+err.Field, "%s", err.Problem)
	}
}

// logitBias merges into what the defaults set, as every mapping does.
func (d *decoder) logitBias(s *Sampling) func(value) {
	return func(v value) {
		list, _ := d.entries(v)
		for _, e := range list {
			id, err := strconv.ParseInt(e.key, 10, 32)
			if err != nil {
				d.fail(e.value.keyAt, e.value.path, "key is %q, want a token id in digits", e.key)
				continue
			}
			var bias float32
			d.number(&bias)(e.value)
			s.LogitBias[int32(id)] = bias
		}
	}
}

func (d *decoder) ids(into *[]int32) func(value) {
	return func(v value) {
		out := []int32{}
		d.list(v, d.integer(0, math.MaxInt32, func(n int64) { out = append(out, int32(n)) }))
		*into = out
	}
}

func (d *decoder) input(v value, in *Input) {
	d.mapping(v, fields{
		"path":           d.path(&in.Path, "a file of rows, or "+StdinPath+" for standard input"),
		"format":         d.oneOf(&in.Format, FormatAuto, FormatOpenAI, FormatAnthropic, FormatMessages, FormatPrompt, FormatTokens),
		"id_field":       d.filled(&in.IDField),
		"ignore":         d.texts(&in.IgnoreFields),
		"on_duplicate":   d.oneOf(&in.OnDuplicate, OnDuplicateError, OnDuplicateSkip),
		"on_bad_line":    d.oneOf(&in.OnBadLine, OnBadLineRow, OnBadLineStop),
		"max_line_bytes": d.size(minLine, func(n int64) { in.MaxLineBytes = n }),
		"max_rows":       d.integer(1, math.MaxInt64, func(n int64) { in.MaxRows = n }),
	})
}

func (d *decoder) prompt(v value, p *Prompt) {
	d.mapping(v, fields{
		"template": d.path(&p.Template, TemplateCheckpoint+" or a Jinja file"),
		"system":   d.text(&p.System),
		"date":     d.date(&p.Date),
		"kwargs":   d.kwargs(&p.Kwargs),
		"raw":      d.boolean(&p.Raw),
	})
}

// DateLayout is how prompt.date is written.
const DateLayout = "2006-01-02"

func (d *decoder) date(into *string) func(value) {
	return func(v value) {
		s, ok := d.readText(v)
		if !ok {
			return
		}
		if _, err := time.Parse(DateLayout, s); err != nil {
			d.bad(v, "is %q, want a day as 2026-01-31", s)
			return
		}
		*into = s
	}
}

func (d *decoder) limits(v value, l *Limits) {
	d.mapping(v, fields{
		"context": d.oneOf(&l.Context, ContextError, ContextStop),
		"max_row_errors": d.amount(&l.MaxRowErrors,
			d.integer(0, math.MaxInt64, func(n int64) { l.MaxRowErrors = Amount{Count: n} })),
		"row_timeout": d.later,
		"retries":     d.later,
	})
}

func (d *decoder) output(v value, o *Output) {
	d.mapping(v, fields{
		"dir":     d.path(&o.Dir, "a folder"),
		"order":   d.later,
		"rows":    d.later,
		"parquet": d.later,
		"card":    d.later,
	})
}
