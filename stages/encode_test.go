package stages

import (
	"strings"
	"testing"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// encodeLine takes a line through read's and encode's work.
func encodeLine(t *testing.T, line string, change func(*jobs.Job), template string) *row.Row {
	t.Helper()
	switch template {
	case "":
		template = fakeTemplate
	case "none":
		template = ""
	}
	return encodeWith(t, line, change, Templates{Default: template})
}

func encodeWith(t *testing.T, line string, change func(*jobs.Job), texts Templates) *row.Row {
	t.Helper()
	s := newSetup(t, "", change)
	e, err := NewEncoder(&s.Job, &s.Model, texts)
	if err != nil {
		t.Fatal(err)
	}
	r := parseLine(line, func(j *jobs.Job) { *j = s.Job })
	if r.Err == nil {
		r.Err = e.encode(r)
	}
	return r
}

// shown is the text of ids, the beginning written out.
func shown(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id == fakeBOS {
			b.WriteString("<bos>")
		} else {
			b.WriteString(fakeTokenizer{}.DecodeVisible([]int32{id}))
		}
	}
	return b.String()
}

func TestEncode(t *testing.T) {
	raw := func(j *jobs.Job) { j.Prompt.Raw = true }
	kwargs := func(j *jobs.Job) {
		j.Prompt.Kwargs = jobs.Kwargs{{Key: "a", Value: []byte(`"job"`)}, {Key: "b", Value: []byte(`[1,2]`)}}
		j.Prompt.Date = "2026-01-31"
	}
	for _, c := range []struct {
		name, line string
		change     func(*jobs.Job)
		template   string
		want       string
	}{
		{"chat has the template's beginning only", `{"prompt":"hi"}`, nil, "", "<bos>[user]hi[assistant]"},
		{"raw text gets one", `{"prompt":"hi"}`, raw, "", "<bos>hi"},
		{"raw text that brings its own is not given a second", `{"prompt":"<bos>hi"}`, raw, "", "<bos>hi"},
		{"ids are taken as they are", `{"prompt_token_ids":[104,105]}`, nil, "", "hi"},
		{"a row's variables go over the job's", `{"prompt":"x","chat_template_kwargs":{"a":"row"}}`, kwargs, "{{ a }}{{ b }}", "row[1, 2]"},
		{"the job's date is now", `{"prompt":"x"}`, kwargs, "{{ strftime_now('%d %b %Y') }}", "31 Jan 2026"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := encodeLine(t, c.line, c.change, c.template)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if got := shown(r.Tokens); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if r.PromptHash != row.PromptHash(r.Tokens) {
				t.Error("prompt hash is not of the ids")
			}
		})
	}
}

func TestEncodeRefusals(t *testing.T) {
	stop := func(j *jobs.Job) { j.Limits.Context = jobs.ContextStop }
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name, line string
		change     func(*jobs.Job)
		template   string
		code       row.Code // empty: accepted
		message    string
	}{
		{"reply past the context", `{"prompt":"x","max_tokens":190}`, nil, "", row.ContextLength, "prompt has 19 tokens and max_tokens is 190, the context 200"},
		{"reply may stop at the context", `{"prompt":"x","max_tokens":190}`, stop, "", "", ""},
		{"prompt past the context", `{"prompt":"` + long + `","max_tokens":1}`, stop, "", row.ContextLength, "prompt has 218 tokens, the context 200: no room"},
		{"prompt that fills the context", `{"prompt_token_ids":[` + strings.Repeat("1,", 199) + `1],"max_tokens":1}`, nil, "", row.ContextLength, "no room for a reply"},
		{"reply that fills the context", `{"prompt_token_ids":[` + strings.Repeat("1,", 198) + `1],"max_tokens":1}`, nil, "", "", ""},
		{"no such id", `{"prompt_token_ids":[1,258]}`, nil, "", row.InvalidValue, "prompt_token_ids[1] is 258, the vocabulary has 258"},
		{"no such stop id", `{"prompt":"x","stop_ids":[258]}`, nil, "", row.InvalidValue, "stop_ids has 258, the vocabulary has 258"},
		{"no such id of a bias", `{"prompt":"x","logit_bias":{"999":1}}`, nil, "", row.InvalidValue, "logit_bias has id 999, the vocabulary has 258"},
		{"template gives nothing", `{"prompt":"x"}`, nil, "{# #}", row.InvalidValue, "prompt has no tokens"},
		{"template refuses", `{"prompt":"x"}`, nil, "{{ raise_exception('roles must alternate') }}", row.TemplateError, "roles must alternate"},
		{"no template", `{"prompt":"x"}`, nil, "none", row.TemplateError, "model has no chat template; set prompt.template to a file, or prompt.raw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := encodeLine(t, c.line, c.change, c.template)
			switch {
			case c.code == "" && r.Err != nil:
				t.Errorf("refused: %v", r.Err)
			case c.code != "" && r.Err == nil:
				t.Errorf("accepted %q", shown(r.Tokens))
			case c.code != "" && (r.Err.Code != c.code || !strings.Contains(r.Err.Message, c.message)):
				t.Errorf("got %v, want %s: %s", r.Err, c.code, c.message)
			}
		})
	}
}

func TestToolsHaveTheirOwnTemplate(t *testing.T) {
	both := Templates{Default: "plain {{ tools is none }}", Tools: "{{ tools[0].name }}"}
	const tools = `{"prompt":"x","chat_template_kwargs":{"tools":[{"name":"f"}]}}`
	for _, c := range []struct {
		line  string
		texts Templates
		want  string
	}{
		{`{"prompt":"x"}`, both, "plain True"},
		{tools, both, "f"},
		{`{"prompt":"x","chat_template_kwargs":{"tools":null}}`, both, "plain True"},
		{tools, Templates{Default: both.Default}, "plain False"},
		{tools, Templates{Tools: both.Tools}, "f"},
	} {
		if r := encodeWith(t, c.line, nil, c.texts); r.Err != nil || shown(r.Tokens) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.line, shown(r.Tokens), r.Err, c.want)
		}
	}
	if r := encodeWith(t, `{"prompt":"x"}`, nil, Templates{Tools: both.Tools}); r.Err == nil || !strings.Contains(r.Err.Message, "template for tools only") {
		t.Errorf("without tools: %v", r.Err)
	}
}

func TestEncoderRefusesAJob(t *testing.T) {
	s := newSetup(t, "", nil)
	for template, want := range map[string]string{
		"{{ strftime_now('%Y') }}": "chat template asks for today's date; set prompt.date",
		"{% include 'x' %}":        "include",
		"{{":                       "checkpoint:1",
	} {
		if _, err := NewEncoder(&s.Job, &s.Model, Templates{Default: template}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", template, err, want)
		}
	}
}
