package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tfbatch/internal/jinja"
	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// encoder makes ids of prompts. Its workers share it; nothing in it changes.
type encoder struct {
	job      *jobs.Job
	model    *Model
	template *jinja.Template // nil: the checkpoint has none
	env      jinja.Env
	kwargs   []templateVar // of the job
}

type templateVar struct {
	name  string
	value jinja.Value
}

func newEncoder(s *Setup) (*encoder, error) {
	e := &encoder{job: &s.Job, model: &s.Model, template: s.Template}
	if day := s.Job.Prompt.Date; day != "" {
		now, err := time.Parse(jobs.DateLayout, day)
		if err != nil {
			return nil, fmt.Errorf("prompt.date: %w", err)
		}
		e.env.Now = now
	}
	for _, k := range s.Job.Prompt.Kwargs {
		v, err := jinja.FromJSON(k.Value)
		if err != nil {
			return nil, fmt.Errorf("prompt.kwargs.%s: %w", k.Key, err)
		}
		e.kwargs = append(e.kwargs, templateVar{k.Key, v})
	}
	return e, nil
}

// stage encodes on several workers: a template costs more than a token's share of a step.
func (e *encoder) stage(workers int) pipeline.Stage[*row.Row] {
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

func (e *encoder) encode(r *row.Row) *row.Error {
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

func (e *encoder) ids(p row.Prompt) ([]int32, *row.Error) {
	switch {
	case p.Chat():
		rendered, err := e.render(p)
		if err != nil {
			return nil, err
		}
		return e.tokens(rendered, false)
	case p.IDs != nil:
		return p.IDs, nil
	default:
		return e.tokens(p.Text, true)
	}
}

// tokens encodes text. A rendered template brings its own special tokens; other text gets
// those that the tokenizer adds, and not a second one where it brings the first itself.
func (e *encoder) tokens(text string, special bool) ([]int32, *row.Error) {
	if !special {
		return e.model.Tokenizer.Encode(text), nil
	}
	ids := e.model.Tokenizer.EncodeFramed(text)
	if len(ids) > 1 && ids[0] == e.model.BOS && ids[1] == e.model.BOS {
		ids = ids[1:]
	}
	return ids, nil
}

// render runs the chat template the way transformers does: special tokens by name, the
// job's variables over them, the row's over those.
func (e *encoder) render(p row.Prompt) (string, *row.Error) {
	if e.template == nil {
		return "", fail(row.TemplateError, "model has no chat template; set prompt.template to a file, or prompt.raw")
	}
	vars := jinja.NewMap()
	messages, err := jinja.FromJSON(p.Messages)
	if err != nil {
		return "", fail(row.TemplateError, "messages: %v", err)
	}
	vars.Set("messages", messages)
	vars.Set("add_generation_prompt", jinja.Bool(true))
	for _, token := range e.model.Special {
		vars.Set(token.Name, jinja.String(token.Text))
	}
	for _, k := range e.kwargs {
		vars.Set(k.name, k.value)
	}
	if err := setKwargs(vars, p.Kwargs); err != nil {
		return "", err
	}
	text, err := e.template.Render(vars, e.env)
	if err != nil {
		return "", fail(row.TemplateError, "%v", err)
	}
	return text, nil
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
func (e *encoder) check(ids []int32, s *row.Sampling) *row.Error {
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
