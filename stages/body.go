package stages

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// body is what an OpenAI request may hold, and a bare line too.
func (p *request) body() fields {
	s := &p.sampling
	known := fields{
		"model":                p.model,
		"messages":             p.messages,
		"prompt":               p.prompt,
		"prompt_token_ids":     p.promptIDs,
		"chat_template_kwargs": p.kwargs,

		"temperature":           number("temperature", &s.Temperature),
		"top_p":                 number("top_p", &s.TopP),
		"top_k":                 p.topK,
		"min_p":                 number("min_p", &s.MinP),
		"repetition_penalty":    number("repetition_penalty", &s.RepetitionPenalty),
		"presence_penalty":      number("presence_penalty", &s.PresencePenalty),
		"frequency_penalty":     number("frequency_penalty", &s.FrequencyPenalty),
		"logit_bias":            p.logitBias,
		"n":                     count("n", &s.N),
		"max_tokens":            count("max_tokens", &s.MaxTokens),
		"max_completion_tokens": count("max_completion_tokens", &s.MaxTokens),
		"stop":                  texts("stop", &s.Stop),
		"stop_ids":              ids("stop_ids", &s.StopIDs),
		"stop_token_ids":        ids("stop_token_ids", &s.StopIDs),
		"seed":                  p.seed,
		"response_format":       p.responseFormat,
		"return_token_ids":      truth("return_token_ids", &s.ReturnTokenIDs),
	}
	addUnsupported(known, "stream", "logprobs", "top_logprobs", "prompt_logprobs", "tools", "tool_choice",
		"functions", "function_call", "best_of", "echo", "suffix", "ignore_eos", "audio", "modalities")
	// These say something to a service, not to a model.
	for _, name := range []string{"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"} {
		known[name] = skip
	}
	return known
}

// params is what an Anthropic request may hold.
func (p *request) params() fields {
	s := &p.sampling
	known := fields{
		"model":          p.model,
		"messages":       p.messages,
		"system":         p.systemText,
		"max_tokens":     count("max_tokens", &s.MaxTokens),
		"temperature":    number("temperature", &s.Temperature),
		"top_p":          number("top_p", &s.TopP),
		"top_k":          p.topK,
		"stop_sequences": texts("stop_sequences", &s.Stop),
		"metadata":       skip,
		"service_tier":   skip,
	}
	addUnsupported(known, "stream", "tools", "tool_choice", "thinking", "container", "mcp_servers")
	return known
}

// addUnsupported knows keys only by the values that ask for nothing.
func addUnsupported(known fields, names ...string) {
	for _, name := range names {
		known[name] = func(v []byte) *row.Error {
			switch string(v) {
			case "null", "false", "[]", "0", `""`, `"none"`:
				return nil
			}
			return fail(row.UnsupportedField, "%s is %s, which is not supported", name, clip(string(v)))
		}
	}
}

func (p *request) prompt(v []byte) *row.Error {
	if v[0] == '[' && len(v) > 1 { // a list of ids; a list of texts fails there
		return p.promptIDs(v)
	}
	s, err := readText("prompt", v)
	if err == nil && s == "" {
		return fail(row.InvalidValue, "prompt is empty")
	}
	p.row.Prompt.Text = s
	return err
}

func (p *request) promptIDs(v []byte) *row.Error {
	list := []int32{}
	if err := ids("prompt_token_ids", &list)(v); err != nil {
		return err
	}
	if len(list) == 0 {
		return fail(row.InvalidValue, "prompt_token_ids is empty")
	}
	p.row.Prompt.IDs = list
	return nil
}

// topK takes -1 as off, as vLLM has it.
func (p *request) topK(v []byte) *row.Error {
	if string(v) == "-1" {
		v = []byte("0")
	}
	return count("top_k", &p.sampling.TopK)(v)
}

func (p *request) seed(v []byte) *row.Error {
	if isNull(v) {
		return nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return fail(row.InvalidValue, "seed is %s, want 0 to %d", clip(string(v)), uint64(math.MaxUint64))
	}
	p.sampling.Seed = n
	return nil
}

// responseFormat is looked into where the model's tokens are known.
func (p *request) responseFormat(v []byte) *row.Error {
	switch {
	case isNull(v):
	case v[0] != '{':
		return fail(row.InvalidValue, "response_format is %s, want an object", jsonKind(v))
	default:
		p.sampling.ResponseFormat = v
	}
	return nil
}

func (p *request) logitBias(v []byte) *row.Error {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		return fail(row.InvalidValue, "logit_bias is %s, want an object of token ids", jsonKind(v))
	}
	biases := map[int32]float32{}
	for _, m := range members(v) {
		id, err := strconv.ParseInt(m.key, 10, 32)
		if err != nil {
			return fail(row.InvalidValue, "logit_bias has key %q, want a token id in digits", clip(m.key))
		}
		var bias float32
		if err := number(fmt.Sprintf("logit_bias.%d", id), &bias)(m.value); err != nil {
			return err
		}
		biases[int32(id)] = bias
	}
	p.sampling.LogitBias = biases
	return nil
}

func isNull(v []byte) bool { return string(v) == "null" }

// number reads a JSON number; null leaves the job's value.
func number(name string, into *float32) func([]byte) *row.Error {
	return func(v []byte) *row.Error {
		if isNull(v) {
			return nil
		}
		f, err := strconv.ParseFloat(string(v), 32)
		if jsonKind(v) != "a number" || err != nil {
			return fail(row.InvalidValue, "%s is %s, want a number", name, clip(string(v)))
		}
		*into = float32(f)
		return nil
	}
}

// truth reads true or false; null leaves the job's value.
func truth(name string, into *bool) func([]byte) *row.Error {
	return func(v []byte) *row.Error {
		switch string(v) {
		case "null":
		case "true", "false":
			*into = v[0] == 't'
		default:
			return fail(row.InvalidValue, "%s is %s, want true or false", name, clip(string(v)))
		}
		return nil
	}
}

// count reads a whole JSON number; null leaves the job's value.
func count(name string, into *int) func([]byte) *row.Error {
	return func(v []byte) *row.Error {
		if isNull(v) {
			return nil
		}
		n, err := strconv.ParseInt(string(v), 10, strconv.IntSize)
		if err != nil {
			return fail(row.InvalidValue, "%s is %s, want a whole number", name, clip(string(v)))
		}
		*into = int(n)
		return nil
	}
}

// texts reads a text or a list of them; null leaves the job's value.
func texts(name string, into *[]string) func([]byte) *row.Error {
	return func(v []byte) *row.Error {
		if isNull(v) {
			return nil
		}
		if v[0] == '"' {
			*into = []string{text(v)}
			return nil
		}
		var list []json.RawMessage
		if err := json.Unmarshal(v, &list); err != nil {
			return fail(row.InvalidValue, "%s is %s, want a string or a list of strings", name, jsonKind(v))
		}
		out := make([]string, len(list))
		for i, element := range list {
			s, err := readText(fmt.Sprintf("%s[%d]", name, i), element)
			if err != nil {
				return err
			}
			out[i] = s
		}
		*into = out
		return nil
	}
}

// ids reads a list of token ids; null leaves the job's value.
func ids(name string, into *[]int32) func([]byte) *row.Error {
	return func(v []byte) *row.Error {
		if isNull(v) {
			return nil
		}
		var list []json.RawMessage
		if err := json.Unmarshal(v, &list); err != nil {
			return fail(row.InvalidValue, "%s is %s, want a list of token ids", name, jsonKind(v))
		}
		out := make([]int32, len(list))
		for i, element := range list {
			id, err := strconv.ParseInt(string(element), 10, 32)
			if err != nil || id < 0 {
				return fail(row.InvalidValue, "%s[%d] is %s, want a token id", name, i, clip(string(element)))
			}
			out[i] = int32(id)
		}
		*into = out
		return nil
	}
}

func readText(name string, v []byte) (string, *row.Error) {
	if v[0] != '"' {
		return "", fail(row.InvalidValue, "%s is %s, want a string", name, jsonKind(v))
	}
	return text(v), nil
}

// maxID is the longest row id in bytes; ids are kept in every row of the output.
const maxID = 512

// readID takes a string, or a whole number as its digits.
func readID(name string, v []byte) (string, *row.Error) {
	id := string(v)
	if v[0] == '"' {
		id = text(v)
	} else if _, err := strconv.ParseInt(id, 10, 64); err != nil {
		return "", fail(row.InvalidValue, "%s is %s, want a string or a whole number", name, jsonKind(v))
	}
	if id == "" || len(id) > maxID {
		return "", fail(row.InvalidValue, "%s has %d bytes, want 1 to %d", name, len(id), maxID)
	}
	return id, nil
}

// jsonKind names a JSON value for people.
func jsonKind(v []byte) string {
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// kwargs goes on top of the job's when the template is rendered.
func (p *request) kwargs(v []byte) *row.Error {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		return fail(row.InvalidValue, "chat_template_kwargs is %s, want an object", jsonKind(v))
	}
	p.row.Prompt.Kwargs = v
	return nil
}

// modelNames is what a line may call the job's model: as the job has it, without the
// builtin mark or the folders before it, and the aliases.
func modelNames(m jobs.Model) []string {
	full := m.Path.Name
	names := []string{full}
	if short := shortName(full); short != full {
		names = append(names, short)
	}
	return append(names, m.Aliases...)
}
