package stages

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tfbatch/internal/jinja"
	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// Encoder makes ids of prompts. Goroutines share it; nothing in it changes.
type Encoder struct {
	job      *jobs.Job
	model    *Model
	template *jinja.Template // nil: there is none
	tools    *jinja.Template // of rows with tools; nil: as any other
	env      jinja.Env
	kwargs   []templateVar // of the job
}

type templateVar struct {
	name  string
	value jinja.Value
}

// Templates are the texts of a job's chat templates, empty when there is none.
type Templates struct {
	From    string // the file, for errors; empty: as the job names it
	Default string
	Tools   string // of rows with tools, where they have their own
}

// NewEncoder prepares a job's prompts. What the templates or the job get wrong for every row
// is an error here.
func NewEncoder(job *jobs.Job, m *Model, texts Templates) (_ *Encoder, err error) {
	e := &Encoder{job: job, model: m}
	from := cmp.Or(texts.From, job.Prompt.Template.Name)
	if e.template, err = parseTemplate(from, texts.Default); err != nil {
		return nil, err
	}
	if e.tools, err = parseTemplate(from+" (tool_use)", texts.Tools); err != nil {
		return nil, err
	}
	if err := e.date(texts); err != nil {
		return nil, err
	}
	for _, k := range job.Prompt.Kwargs {
		v, err := jinja.FromJSON(k.Value)
		if err != nil {
			return nil, fmt.Errorf("prompt.kwargs.%s: %w", k.Key, err)
		}
		e.kwargs = append(e.kwargs, templateVar{k.Key, v})
	}
	return e, nil
}

func parseTemplate(name, text string) (*jinja.Template, error) {
	if text == "" {
		return nil, nil
	}
	return jinja.Parse(name, text)
}

// date pins what the template takes for today: with the clock's, no run could be repeated.
func (e *Encoder) date(texts Templates) error {
	day := e.job.Prompt.Date
	if day == "" {
		if strings.Contains(texts.Default+texts.Tools, "strftime_now") {
			return errors.New("chat template asks for today's date; set prompt.date")
		}
		return nil
	}
	now, err := time.Parse(jobs.DateLayout, day)
	if err != nil {
		return fmt.Errorf("prompt.date: %w", err)
	}
	e.env.Now = now
	return nil
}

// stage encodes on several workers: a template costs more than a token's share of a step.
func (e *Encoder) stage(workers int) pipeline.Stage[*row.Row] {
	return pipeline.Stage[*row.Row]{Name: "encode", Workers: workers,
		Do: func(ctx context.Context, in <-chan *row.Row, out chan<- *row.Row) error {
			for r := range in {
				if r.Err == nil {
					r.Err = e.encode(r)
				}
				if err := pipeline.Send(ctx, out, r); err != nil {
					return err
				}
			}
			return nil
		}}
}

func (e *Encoder) encode(r *row.Row) *row.Error {
	ids, err := e.ids(r.Prompt)
	if err != nil {
		return err
	}
	if err := e.check(ids, &r.Sampling); err != nil {
		return err
	}
	r.Tokens, r.PromptHash = ids, row.PromptHash(ids)
	return nil
}

func (e *Encoder) ids(p row.Prompt) ([]int32, *row.Error) {
	switch {
	case p.Chat():
		rendered, err := e.render(p)
		if err != nil {
			return nil, err
		}
		return e.model.Tokenizer.Encode(rendered), nil // it brings its own special tokens
	case p.IDs != nil:
		return p.IDs, nil
	default:
		return e.framed(p.Text), nil
	}
}

// framed encodes text that no template rendered: with the special tokens that the tokenizer
// adds, and not a second one where the text brings the first itself.
func (e *Encoder) framed(text string) []int32 {
	ids := e.model.Tokenizer.EncodeFramed(text)
	if len(ids) > 1 && ids[0] == e.model.BOS && ids[1] == e.model.BOS {
		ids = ids[1:]
	}
	return ids
}

// render runs the chat template the way transformers does: special tokens by name, the
// job's variables over them, the row's over those.
func (e *Encoder) render(p row.Prompt) (string, *row.Error) {
	if e.template == nil && e.tools == nil {
		return "", fail(row.TemplateError, "model has no chat template; set prompt.template to a file, or prompt.raw")
	}
	vars, err := e.vars(p)
	if err != nil {
		return "", err
	}
	template := e.template
	if tools, _ := vars.Get("tools"); e.tools != nil && tools != jinja.None() {
		template = e.tools
	}
	if template == nil {
		return "", fail(row.TemplateError, "model has a chat template for tools only; give chat_template_kwargs.tools, or set prompt.template to a file")
	}
	text, failed := template.Render(vars, e.env)
	if failed != nil {
		return "", fail(row.TemplateError, "%v", failed)
	}
	return text, nil
}

// vars is what the template can read. Like transformers it has tools and documents where nobody gave any.
func (e *Encoder) vars(p row.Prompt) (*jinja.Map, *row.Error) {
	vars := jinja.NewMap()
	messages, err := jinja.FromJSON(p.Messages)
	if err != nil {
		return nil, fail(row.TemplateError, "messages: %v", err)
	}
	vars.Set("messages", messages)
	vars.Set("tools", jinja.None())
	vars.Set("documents", jinja.None())
	vars.Set("add_generation_prompt", jinja.Bool(true))
	for _, token := range e.model.Special {
		vars.Set(token.Name, jinja.String(token.Text))
	}
	for _, k := range e.kwargs {
		vars.Set(k.name, k.value)
	}
	return vars, setKwargs(vars, p.Kwargs)
}

func setKwargs(vars *jinja.Map, object json.RawMessage) *row.Error {
	if object == nil {
		return nil
	}
	for _, m := range members(object) {
		v, err := jinja.FromJSON(m.value)
		if err != nil {
			return fail(row.TemplateError, "chat_template_kwargs.%s: %v", clip(m.key), err)
		}
		vars.Set(m.key, v)
	}
	return nil
}

// check holds ids against the model before a lane is spent on them.
func (e *Encoder) check(ids []int32, s *row.Sampling) *row.Error {
	if len(ids) == 0 {
		return fail(row.InvalidValue, "prompt has no tokens")
	}
	room := e.model.Context - len(ids)
	if room < 1 {
		return fail(row.ContextLength, "prompt has %d tokens, the context %d: no room for a reply", len(ids), e.model.Context)
	}
	if s.MaxTokens > room && e.job.Limits.Context == jobs.ContextError {
		return fail(row.ContextLength, "prompt has %d tokens and max_tokens is %d, the context %d; lower max_tokens or set limits.context: stop",
			len(ids), s.MaxTokens, e.model.Context)
	}
	if _, err := e.model.Formats.of(s.ResponseFormat); err != nil {
		return fail(row.UnsupportedField, "response_format: %v", err)
	}
	for i, id := range ids {
		if int(id) >= e.model.Vocab {
			return fail(row.InvalidValue, "prompt_token_ids[%d] is %d, the vocabulary has %d", i, id, e.model.Vocab)
		}
	}
	for _, id := range s.StopIDs {
		if int(id) >= e.model.Vocab {
			return fail(row.InvalidValue, "stop_ids has %d, the vocabulary has %d", id, e.model.Vocab)
		}
	}
	for id := range s.LogitBias {
		if int(id) >= e.model.Vocab {
			return fail(row.InvalidValue, "logit_bias has id %d, the vocabulary has %d", id, e.model.Vocab)
		}
	}
	return nil
}
