package stages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// parseLine reads one line as read does, for a job with the given changes.
func parseLine(text string, change func(*jobs.Job)) *row.Row {
	list, err := jobs.Parse("j.yaml", ".", []byte("version: 1\njobs:\n  - { name: a, model: {path: models/tiny, aliases: [small]}, input: { path: x } }\n"))
	if err != nil {
		panic(err)
	}
	job := &list[0]
	if change != nil {
		change(job)
	}
	r := &reader{job: job, seen: map[[16]byte]struct{}{}}
	return r.row(&requests{job: job, names: modelNames(job.Model)}, line{number: 1, data: []byte(text)})
}

func TestFormsOfALine(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"OpenAI chat", `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"tiny","messages":[{"role":"user","content":"hi"}]}}`,
			`a messages [{"role":"user","content":"hi"}]`},
		{"OpenAI completion", `{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"model":"models/tiny","prompt":"hi"}}`, `a text "hi"`},
		{"OpenAI completion of ids", `{"custom_id":"a","url":"/v1/completions","body":{"prompt":[1,2]}}`, `a ids [1 2]`},
		{"OpenAI without method and url", `{"custom_id":"a","body":{"messages":[{"role":"user","content":"hi"}]}}`, `a messages [{"role":"user","content":"hi"}]`},
		{"Anthropic", `{"custom_id":"a","params":{"model":"small","max_tokens":5,"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]}}`,
			`a messages [{"role":"system","content":"S"},{"role":"user","content":"x\ny"}]`},
		{"messages", `{"messages":[{"role":"user","content":"<b>&"}]}`, `row-000000000 messages [{"role":"user","content":"<b>&"}]`},
		{"messages keep their other keys in order, but null", `{"messages":[{"z":1,"role":"assistant","content":null,"a":[2]}]}`, `row-000000000 messages [{"z":1,"role":"assistant","a":[2]}]`},
		{"prompt is what a user says", `{"prompt":"hi\u00e9"}`, `row-000000000 messages [{"role":"user","content":"hié"}]`},
		{"ids", `{"custom_id":12,"prompt_token_ids":[3,4]}`, `12 ids [3 4]`},
		{"kwargs", `{"prompt":"x","chat_template_kwargs":{"b":1,"a":2}}`, `row-000000000 messages [{"role":"user","content":"x"}] {"b":1,"a":2}`},
		{"values that ask for nothing", `{"prompt":"x","stream":false,"logprobs":null,"tools":[],"user":"u","metadata":{"k":1}}`, `row-000000000 messages [{"role":"user","content":"x"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := parseLine(c.line, nil)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if got := describe(r); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func describe(r *row.Row) string {
	p := r.Prompt
	switch {
	case p.Messages != nil:
		return strings.TrimSpace(fmt.Sprintf("%s messages %s %s", r.ID, p.Messages, p.Kwargs))
	case p.IDs != nil:
		return fmt.Sprintf("%s ids %v", r.ID, p.IDs)
	}
	return fmt.Sprintf("%s text %q", r.ID, p.Text)
}

func TestJobDecidesAboutPrompts(t *testing.T) {
	raw := parseLine(`{"prompt":"hi"}`, func(j *jobs.Job) { j.Prompt.Raw = true })
	if got := describe(raw); got != `row-000000000 text "hi"` {
		t.Errorf("raw: %s", got)
	}
	system := func(j *jobs.Job) { j.Prompt.System = "S" }
	for line, want := range map[string]string{
		`{"prompt":"hi"}`: `[{"role":"system","content":"S"},{"role":"user","content":"hi"}]`,
		`{"messages":[{"role":"system","content":"own"},{"role":"user","content":"x"}]}`:  `[{"role":"system","content":"own"},{"role":"user","content":"x"}]`,
		`{"params":{"system":"own","messages":[{"role":"user","content":"x"}]}}`:          `[{"role":"system","content":"own"},{"role":"user","content":"x"}]`,
		`{"messages":[{"role":"user","content":"x"},{"role":"system","content":"late"}]}`: `[{"role":"system","content":"S"},{"role":"user","content":"x"},{"role":"system","content":"late"}]`,
	} {
		if r := parseLine(line, system); string(r.Prompt.Messages) != want {
			t.Errorf("%s:\ngot  %s %v\nwant %s", line, r.Prompt.Messages, r.Err, want)
		}
	}
	named := parseLine(`{"uid":"x","prompt":"hi","lang":"de"}`, func(j *jobs.Job) { j.Input.IDField, j.Input.IgnoreFields = "uid", []string{"lang"} })
	if named.ID != "x" || named.Err != nil {
		t.Errorf("got id %q, error %v", named.ID, named.Err)
	}
}

func TestRowOverridesSampling(t *testing.T) {
	r := parseLine(`{"prompt":"x","temperature":0.25,"top_p":0.5,"top_k":-1,"min_p":0.1,"repetition_penalty":1.5,"presence_penalty":-1,`+
		`"frequency_penalty":1,"logit_bias":{"5":-100},"n":3,"max_completion_tokens":9,"stop":"END","stop_token_ids":[4],"seed":18446744073709551615,"response_format":{},"return_token_ids":true}`, nil)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := "{0.25 0.5 0 0.1 1.5 -1 1 map[5:-100] 3 9 [END] [4] 18446744073709551615 [123 125] true}"
	if got := fmt.Sprint(r.Sampling); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	kept := parseLine(`{"prompt":"x","temperature":null,"stop":null,"seed":null,"n":null}`, func(j *jobs.Job) { j.Sampling.Temperature, j.Sampling.Stop = 0.5, []string{"a"} })
	if kept.Err != nil || kept.Sampling.Temperature != 0.5 || len(kept.Sampling.Stop) != 1 {
		t.Errorf("null changed the job's values: %+v %v", kept.Sampling, kept.Err)
	}
}

func TestBadLines(t *testing.T) {
	const ok = `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		name, line string
		code       row.Code
		message    string
	}{
		{"nothing asked", `{"custom_id":"a"}`, row.MissingField, "line has none of body, params, messages, prompt and prompt_token_ids"},
		{"body without a prompt", `{"body":{}}`, row.MissingField, "line has none of messages, prompt and prompt_token_ids"},
		{"body no object", `{"body":"x"}`, row.InvalidValue, "body is a string, want an object"},
		{"two prompts", `{"prompt":"x",` + ok + `}`, row.InvalidValue, "more than one of messages, prompt and prompt_token_ids"},
		{"empty prompt", `{"prompt":""}`, row.InvalidValue, "prompt is empty"},
		{"prompt of another type", `{"prompt":{"a":1}}`, row.InvalidValue, "prompt is an object, want a string"},
		{"prompt null", `{"prompt":null}`, row.InvalidValue, "prompt is null, want a string"},
		{"list of prompts", `{"prompt":["a","b"]}`, row.InvalidValue, `prompt_token_ids[0] is "a", want a token id`},
		{"no ids", `{"prompt_token_ids":[]}`, row.InvalidValue, "prompt_token_ids is empty"},
		{"negative id", `{"prompt_token_ids":[1,-2]}`, row.InvalidValue, "prompt_token_ids[1] is -2, want a token id"},
		{"fractional id", `{"prompt_token_ids":[1.5]}`, row.InvalidValue, "prompt_token_ids[0] is 1.5, want a token id"},
		{"messages no list", `{"messages":"x"}`, row.InvalidValue, "messages is a string, want a list"},
		{"messages null", `{"messages":null}`, row.InvalidValue, "messages is null, want a list"},
		{"no messages", `{"messages":[]}`, row.InvalidValue, "messages is empty"},
		{"message no object", `{"messages":["x"]}`, row.InvalidValue, "messages[0] is a string, want an object"},
		{"message without role", `{"messages":[{"content":"x"}]}`, row.MissingField, "messages[0].role is missing or empty"},
		{"role no text", `{"messages":[{"role":1}]}`, row.InvalidValue, "messages[0].role is a number, want a string"},
		{"content no text", `{"messages":[{"role":"user","content":5}]}`, row.InvalidValue, "messages[0].content is a number, want a string"},
		{"image", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, row.UnsupportedField, `messages[0].content[0].type is "image_url", only text is supported`},
		{"unknown field", `{"prompt":"x","lang":"de"}`, row.UnsupportedField, "lang is not known; name it in input.ignore to pass over it"},
		{"wrong case", `{"prompt":"x","Temperature":1}`, row.UnsupportedField, "Temperature is not known; the name is temperature"},
		{"unknown field of a body", `{"body":{` + ok + `,"temprature":1}}`, row.UnsupportedField, "body.temprature is not known"},
		{"stream", `{"body":{` + ok + `,"stream":true}}`, row.UnsupportedField, "stream is true, which is not supported"},
		{"tools", `{"body":{` + ok + `,"tools":[{}]}}`, row.UnsupportedField, "tools is [{}], which is not supported"},
		{"other model", `{"body":{"model":"gpt-4",` + ok + `}}`, row.ModelNotFound, `model is "gpt-4", the job runs models/tiny, tiny, small; the job's model.aliases`},
		{"method", `{"method":"GET","body":{` + ok + `}}`, row.UnsupportedField, `method is "GET", want POST`},
		{"url", `{"url":"/v1/embeddings","body":{` + ok + `}}`, row.UnsupportedField, `url is "/v1/embeddings"`},
		{"prompt to the chat url", `{"url":"/v1/chat/completions","body":{"prompt":"x"}}`, row.MissingField, "messages is missing"},
		{"messages to the completions url", `{"url":"/v1/completions","body":{` + ok + `}}`, row.UnsupportedField, "messages is not known to /v1/completions"},
		{"temperature as text", `{"prompt":"x","temperature":"1"}`, row.InvalidValue, `temperature is "1", want a number`},
		{"temperature out of range", `{"prompt":"x","temperature":-1}`, row.InvalidValue, "temperature is -1, want 0 to 100"},
		{"temperature over f32", `{"prompt":"x","temperature":1e99}`, row.InvalidValue, "temperature is 1e99, want a number"},
		{"n fractional", `{"prompt":"x","n":1.5}`, row.InvalidValue, "n is 1.5, want a whole number"},
		{"n 0", `{"prompt":"x","n":0}`, row.InvalidValue, "n is 0, want 1 to 128"},
		{"max_tokens 0", `{"prompt":"x","max_tokens":0}`, row.InvalidValue, "max_tokens is 0, want 1 to"},
		{"seed negative", `{"prompt":"x","seed":-1}`, row.InvalidValue, "seed is -1, want 0 to"},
		{"stop of numbers", `{"prompt":"x","stop":[1]}`, row.InvalidValue, "stop[0] is a number, want a string"},
		{"empty stop", `{"prompt":"x","stop":""}`, row.InvalidValue, "stop string 0 has 0 bytes"},
		{"bias by text", `{"prompt":"x","logit_bias":{" Yes":1}}`, row.InvalidValue, `logit_bias has key " Yes", want a token id in digits`},
		{"id of another type", `{"custom_id":{},"prompt":"x"}`, row.InvalidValue, "custom_id is an object, want a string or a whole number"},
		{"empty id", `{"custom_id":"","prompt":"x"}`, row.InvalidValue, "custom_id has 0 bytes, want 1 to 512"},
		{"long id", `{"custom_id":"` + strings.Repeat("x", 513) + `","prompt":"x"}`, row.InvalidValue, "custom_id has 513 bytes"},
		{"kwargs no object", `{"prompt":"x","chat_template_kwargs":[]}`, row.InvalidValue, "chat_template_kwargs is a list, want an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := parseLine(c.line, nil)
			if r.Err == nil {
				t.Fatalf("accepted: %s", describe(r))
			}
			if r.Err.Code != c.code || !strings.Contains(r.Err.Message, c.message) {
				t.Errorf("got %v, want %s: %s", r.Err, c.code, c.message)
			}
		})
	}
}

func TestFormatOfTheJobIsHeld(t *testing.T) {
	r := parseLine(`{"prompt":"x"}`, func(j *jobs.Job) { j.Input.Format = jobs.FormatOpenAI })
	if r.Err == nil || r.Err.Code != row.MissingField {
		t.Errorf("got %v, want %s", r.Err, row.MissingField)
	}
}

// FuzzLine holds that no line panics, and that what is accepted asks one thing and can be drawn.
func FuzzLine(f *testing.F) {
	seeds, err := os.ReadFile(filepath.Join("testdata", "lines.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(seeds)) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := parseLine(text, nil)
		if r.Err != nil {
			if r.Err.Code == "" || r.Err.Message == "" || r.ID == "" {
				t.Fatalf("error without code, message or id: %+v", r)
			}
			return
		}
		asked := 0
		for _, has := range []bool{r.Prompt.Messages != nil, r.Prompt.Text != "", r.Prompt.IDs != nil} {
			if has {
				asked++
			}
		}
		s := jobs.Sampling(r.Sampling)
		if asked != 1 || s.Check() != nil {
			t.Fatalf("accepted %d prompts, sampling %+v", asked, s)
		}
	})
}
