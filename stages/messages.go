package stages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// messages checks a conversation and keeps it as JSON for the template, which may read any
// of its keys. Content that comes in parts is joined.
func (p *request) messages(v []byte) *row.Error {
	if v[0] != '[' {
		return fail(row.InvalidValue, "messages is %s, want a list", jsonKind(v))
	}
	list := elements(v)
	if len(list) == 0 {
		return fail(row.InvalidValue, "messages is empty")
	}
	for i, m := range list {
		flat, err := checkMessage(fmt.Sprintf("messages[%d]", i), m)
		if err != nil {
			return err
		}
		list[i] = flat
	}
	p.row.Prompt.Messages = array(list)
	return nil
}

func checkMessage(name string, v []byte) (json.RawMessage, *row.Error) {
	if v[0] != '{' {
		return nil, fail(row.InvalidValue, "%s is %s, want an object", name, jsonKind(v))
	}
	list := members(v)
	role := false
	for i, m := range list {
		var err *row.Error
		switch m.key {
		case "role":
			var s string
			s, err = readText(name+".role", m.value)
			role = s != ""
		case "content":
			if m.value[0] == '[' {
				list[i].value, err = joinParts(name+".content", m.value)
			} else if !isNull(m.value) {
				_, err = readText(name+".content", m.value)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if !role {
		return nil, fail(row.MissingField, "%s.role is missing or empty", name)
	}
	return object(asTransformers(list)), nil
}

// reasoningKeys are the names of a message's reasoning, the one that templates read most first.
var reasoningKeys = []string{"reasoning_content", "thinking", "reasoning"}

// asTransformers changes a message as apply_chat_template (transformers 5.24) does before a template sees it: keys
// that are null go, and reasoning under any of its names is there under both that templates read.
func asTransformers(list []member) []member {
	list = slices.DeleteFunc(list, func(m member) bool { return isNull(m.value) })
	find := func(key string) int { return slices.IndexFunc(list, func(m member) bool { return m.key == key }) }
	var reasoning json.RawMessage
	for _, key := range reasoningKeys {
		if i := find(key); i >= 0 {
			reasoning = list[i].value
			break
		}
	}
	if reasoning == nil {
		return list
	}
	if i := find("reasoning_content"); i < 0 {
		list = append(list, member{"reasoning_content", reasoning})
	}
	thinking := member{"thinking", reasoning}
	if i := find("thinking"); i >= 0 {
		thinking = list[i]
		list = slices.Delete(list, i, i+1)
	}
	return append([]member{thinking}, list...)
}

// joinParts makes one text of text parts, with a line feed between two, as vLLM does.
func joinParts(name string, v []byte) (json.RawMessage, *row.Error) {
	parts := elements(v)
	texts := make([]string, len(parts))
	for i, part := range parts {
		at := fmt.Sprintf("%s[%d]", name, i)
		s, err := partText(at, part)
		if err != nil {
			return nil, err
		}
		texts[i] = s
	}
	return encodeJSON(strings.Join(texts, "\n")), nil
}

func partText(name string, v []byte) (string, *row.Error) {
	if v[0] != '{' {
		return "", fail(row.InvalidValue, "%s is %s, want an object", name, jsonKind(v))
	}
	var out *string
	for _, m := range members(v) {
		s, err := "", (*row.Error)(nil)
		switch m.key {
		case "type":
			if s, err = readText(name+".type", m.value); err == nil && s != "text" {
				err = fail(row.UnsupportedField, "%s.type is %q, only text is supported", name, clip(s))
			}
		case "text":
			s, err = readText(name+".text", m.value)
			out = &s
		case "cache_control": // says something to a service, not to a model
		default:
			err = fail(row.UnsupportedField, "%s.%s is not known", name, clip(m.key))
		}
		if err != nil {
			return "", err
		}
	}
	if out == nil {
		return "", fail(row.MissingField, "%s.text is missing", name)
	}
	return *out, nil
}

// systemText is Anthropic's system prompt: a text, or text parts.
func (p *request) systemText(v []byte) *row.Error {
	if isNull(v) {
		return nil
	}
	if v[0] == '[' {
		joined, err := joinParts("system", v)
		if err != nil {
			return err
		}
		v = joined
	}
	s, err := readText("system", v)
	p.system = &s
	return err
}

// withSystem puts the line's own system prompt, else the job's, before a conversation that
// does not start with one.
func (p *request) withSystem(messages json.RawMessage) json.RawMessage {
	system := p.job.Prompt.System
	if p.system != nil {
		system = *p.system
	}
	if system == "" {
		return messages
	}
	list := elements(messages)
	if startsWithSystem(list[0]) {
		return messages
	}
	return array(append([]json.RawMessage{newMessage("system", system)}, list...))
}

func startsWithSystem(first json.RawMessage) bool {
	for _, m := range members(first) {
		if m.key == "role" {
			role := text(m.value)
			return role == "system" || role == "developer"
		}
	}
	return false
}

func userMessage(content string) json.RawMessage {
	return array([]json.RawMessage{newMessage("user", content)})
}

func newMessage(role, content string) json.RawMessage {
	return object([]member{{"role", encodeText(role)}, {"content", encodeText(content)}})
}

// object writes members in their order.
func object(list []member) json.RawMessage {
	var b bytes.Buffer
	for i, m := range list {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(encodeText(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// array writes a list of values.
func array(list []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// encodeText is encodeJSON, with a short way for text in which nothing is escaped.
func encodeText(s string) json.RawMessage {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return encodeJSON(s)
		}
	}
	b := make([]byte, 0, len(s)+2)
	return append(append(append(b, '"'), s...), '"')
}

// encodeJSON writes v without escaping <, > and &, which nothing here shows in a web page.
func encodeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("stages: encode %T: %v", v, err)) // only our own types come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

func shortName(model string) string {
	if name, ok := strings.CutPrefix(model, jobs.BuiltinPrefix); ok {
		return name
	}
	return filepath.Base(filepath.Clean(model))
}
