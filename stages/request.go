package stages

import (
	"slices"
	"strings"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// The endpoints of the OpenAI batch format that a line may name.
const (
	chatURL        = "/v1/chat/completions"
	completionsURL = "/v1/completions"
)

// requests turns lines into rows, one after the other. The zero value is not ready; job and
// model are.
type requests struct {
	job   *jobs.Job
	names []string // that a line may ask for as its model

	one   request           // the line that is read now
	known map[string]fields // what a line of each form may hold, all of it bound to one
}

// request is one line while it is read.
type request struct {
	*requests
	row      *row.Row
	sampling jobs.Sampling
	format   string // of the line
	chat     bool   // the line names the chat endpoint
	complete bool   // the line names the completions endpoint
	system   *string
}

// fields says what to do with each key of an object.
type fields map[string]func(value []byte) *row.Error

// parse fills r from an object's members. r.ID is set whenever the line has a usable one,
// whatever else is wrong with it.
func (q *requests) parse(r *row.Row, line []member) *row.Error {
	p := &q.one
	*p = request{requests: q, row: r, sampling: q.job.Sampling}
	if err := p.line(line); err != nil {
		return err
	}
	if err := p.settle(); err != nil {
		return err
	}
	if err := p.sampling.Check(); err != nil {
		return fail(row.InvalidValue, "%v", err)
	}
	r.Sampling = row.Sampling(p.sampling)
	return nil
}

// id takes the row's name first, so that an error of the line can be found by it.
func (q *requests) id(line []member) (string, *row.Error) {
	for _, m := range line {
		if m.key == q.job.Input.IDField {
			return readID(m.key, m.value)
		}
	}
	return "", nil
}

// line decides the form by the line's keys and hands them out.
func (p *request) line(line []member) *row.Error {
	form := formOf(line)
	if want := p.job.Input.Format; want != jobs.FormatAuto && form != want {
		return fail(row.MissingField, "line has no %q, which a line of format %s needs", formKey[want], want)
	}
	p.format = form
	if form == "" {
		return fail(row.MissingField, "line has none of body, params, messages, prompt and prompt_token_ids")
	}
	known, ok := p.known[form]
	if !ok {
		if p.known == nil {
			p.known = map[string]fields{}
		}
		known = p.fields(form)
		p.known[form] = known
	}
	return p.members("", line, known)
}

// fields is what a line of a form may hold.
func (p *request) fields(form string) fields {
	known, inner := fields{}, p.body()
	switch form {
	case jobs.FormatOpenAI:
		known["method"] = p.method
		known["url"] = p.url
		known["body"] = func(v []byte) *row.Error { return p.object("body", v, inner) }
	case jobs.FormatAnthropic:
		params := p.params()
		known["params"] = func(v []byte) *row.Error { return p.object("params", v, params) }
	default:
		known = inner
	}
	known[p.job.Input.IDField] = skip // read before
	return known
}

// formKey is the key that marks each form; formOrder is who wins when a line has several.
var (
	formKey = map[string]string{
		jobs.FormatOpenAI: "body", jobs.FormatAnthropic: "params", jobs.FormatMessages: "messages",
		jobs.FormatPrompt: "prompt", jobs.FormatTokens: "prompt_token_ids",
	}
	formOrder = []string{jobs.FormatOpenAI, jobs.FormatAnthropic, jobs.FormatMessages, jobs.FormatPrompt, jobs.FormatTokens}
)

func formOf(line []member) string {
	for _, form := range formOrder {
		if slices.ContainsFunc(line, func(m member) bool { return m.key == formKey[form] }) {
			return form
		}
	}
	return ""
}

// skip passes over a value.
func skip([]byte) *row.Error { return nil }

// object hands out the members of a nested object.
func (p *request) object(name string, value []byte, known fields) *row.Error {
	if value[0] != '{' {
		return fail(row.InvalidValue, "%s is %s, want an object", name, jsonKind(value))
	}
	return p.members(name+".", members(value), known)
}

func (p *request) members(prefix string, list []member, known fields) *row.Error {
	for _, m := range list {
		set, ok := known[m.key]
		if !ok && prefix == "" && slices.Contains(p.job.Input.IgnoreFields, m.key) {
			continue
		}
		if !ok {
			return fail(row.UnsupportedField, "%s%s is not known%s", prefix, clip(m.key), hint(prefix, m.key, known))
		}
		if err := set(m.value); err != nil {
			return err
		}
	}
	return nil
}

// hint tells a slip of the pen from a column that the job can pass over.
func hint(prefix, key string, known fields) string {
	for name := range known {
		if strings.EqualFold(name, key) {
			return "; the name is " + name
		}
	}
	if prefix == "" {
		return "; name it in input.ignore to pass over it"
	}
	return ""
}

func (p *request) method(v []byte) *row.Error {
	s, err := readText("method", v)
	if err == nil && s != "POST" {
		return fail(row.UnsupportedField, "method is %q, want POST", clip(s))
	}
	return err
}

func (p *request) url(v []byte) *row.Error {
	s, err := readText("url", v)
	if err != nil {
		return err
	}
	p.chat, p.complete = s == chatURL, s == completionsURL
	if !p.chat && !p.complete {
		return fail(row.UnsupportedField, "url is %q, want %s or %s", clip(s), chatURL, completionsURL)
	}
	return nil
}

// model refuses a line that was meant for another model: its replies would be mislabelled.
func (p *request) model(v []byte) *row.Error {
	s, err := readText("model", v)
	if err == nil && !slices.Contains(p.names, s) {
		return fail(row.ModelNotFound, "model is %q, the job runs %s; the job's model.aliases can name others", clip(s), strings.Join(p.names, ", "))
	}
	return err
}

// settle checks that the line asks one thing and turns a plain prompt into what the job says it is.
func (p *request) settle() *row.Error {
	prompt := &p.row.Prompt
	asked := 0
	for _, has := range []bool{prompt.Messages != nil, prompt.Text != "", prompt.IDs != nil} {
		if has {
			asked++
		}
	}
	switch {
	case asked > 1:
		return fail(row.InvalidValue, "line has more than one of messages, prompt and prompt_token_ids")
	case asked == 0:
		return fail(row.MissingField, "line has none of messages, prompt and prompt_token_ids")
	case p.chat && prompt.Messages == nil:
		return fail(row.MissingField, "messages is missing, which %s needs", chatURL)
	case p.complete && prompt.Messages != nil:
		return fail(row.UnsupportedField, "messages is not known to %s", completionsURL)
	}
	if prompt.Text != "" && p.format == jobs.FormatPrompt && !p.job.Prompt.Raw {
		prompt.Messages, prompt.Text = userMessage(prompt.Text), ""
	}
	if prompt.Messages != nil {
		prompt.Messages = p.withSystem(prompt.Messages)
	}
	return nil
}
