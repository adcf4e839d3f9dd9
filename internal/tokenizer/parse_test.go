package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file is a small tokenizer.json with some of its parts replaced: key, value, key, value.
func file(parts ...string) string {
	fields := map[string]string{"version": `"1.0"`, "model": bpe("")}
	for i := 0; i < len(parts); i += 2 {
		fields[parts[i]] = parts[i+1]
	}
	var list []string
	for key, value := range fields {
		list = append(list, fmt.Sprintf("%q: %s", key, value))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func bpe(more string) string {
	return `{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]` + more + `}`
}

func added(more string) string {
	return `[{"id": 3, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true` + more + `}]`
}

// replaces puts text in the place of an a; repeated is a Sequence of one step n times.
func replaces(text string) string {
	return `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + text + `"}`
}

func repeated(key, step string, n int) string {
	return `{"type": "Sequence", "` + key + `": [` + strings.Repeat(step+",", n-1) + step + `]}`
}

func metaspaced(more string) string {
	return `{"type": "Metaspace", "replacement": "▁", ` + more + `}`
}

func TestAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"the least":       file(),
		"no type":         file("model", strings.Replace(bpe(""), `"type": "BPE", `, "", 1)),
		"empty affixes":   file("model", bpe(`, "continuing_subword_prefix": "", "end_of_word_suffix": "", "dropout": 0.0`)),
		"nulls":           file("normalizer", "null", "pre_tokenizer", "null", "decoder", "null", "truncation", "null"),
		"merges in pairs": file("model", `{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}`),
		"version line":    file("model", `{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["#version: 0.2", "a b"]}`),
		"added":           file("added_tokens", added("")),
		"four steps grow": file("normalizer", repeated("normalizers", `{"type": "Replace", "pattern": {"String": "x"}, "content": "xxxx"}`, 4)),
		"of a last user":  file("truncation", `{"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}`, "padding", `{"strategy": {"Fixed": 8}}`),
	} {
		tok, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(tok.Encode("abba")); got != "[2 1 0]" {
			t.Errorf("%s: abba is %s", name, got)
		}
	}
}

// TestRefused: what is not done exactly is named, with its place.
func TestRefused(t *testing.T) {
	split := func(more string) string {
		return `{"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated", "invert": false, ` + more + `}]}`
	}
	frame := func(single string) string {
		return `{"type": "TemplateProcessing", "single": ` + single + `, "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}`
	}
	for text, want := range map[string]string{
		`[]`:                     `cannot unmarshal array`,
		"{\"model\": \"\xff\"}":  `not valid UTF-8`,
		file("extra", "1"):       `extra: this key is not supported`,
		file("Model", "1"):       `Model: this key is not supported`,
		file("version", `"2.0"`): `version: "2.0" is not supported`,
		`{}`:                     `model: missing`,

		file("model", `{"type": "WordPiece", "vocab": {}, "unk_token": "[UNK]"}`): `model.type: "WordPiece" is not supported`,
		file("model", `{"type": "Unigram", "vocab": [], "unk_id": 0}`):            `model.type: "Unigram" is not supported`,
		file("model", bpe(`, "dropout": 0.1`)):                                    `model.dropout: 0.1 is not supported`,
		file("model", bpe(`, "continuing_subword_prefix": "##"`)):                 `model.continuing_subword_prefix: "##" is not supported`,
		file("model", bpe(`, "end_of_word_suffix": "</w>"`)):                      `model.end_of_word_suffix: "</w>" is not supported`,
		file("model", bpe(`, "unk_token": "<unk>"`)):                              `model.unk_token: "<unk>" is not in the vocabulary`,
		file("model", bpe(`, "other": 1`)):                                        `model.other: this key is not supported`,
		file("model", `{"vocab": {"a": 0, "b": 0}, "merges": []}`):                `model.vocab: id 0 stands for`,
		file("model", `{"vocab": {"a": -1}, "merges": []}`):                       `model.vocab: id -1 of "a" is outside`,
		file("model", `{"vocab": {"a": 4294967295}, "merges": []}`):               `model.vocab: id 4294967295 of "a" is outside`,
		file("model", `{"vocab": {"a": 0}, "merges": ["a b"]}`):                   `model.merges: merge 0 joins "a" and "b"`,
		file("model", `{"vocab": {"a": 0}, "merges": ["a"]}`):                     `model.merges: merge 0 is "a", not two tokens`,
		file("model", `{"vocab": {"a": 0}, "merges": [["a"]]}`):                   `model.merges: merge 0 has 1 parts`,
		file("model", `{"vocab": {"a": 0}}`):                                      `model.merges: missing`,
		file("model", `{"vocab": {"`+strings.Repeat("a", maxToken+1)+`": 0}}`):    `has 8193 bytes, limit is 8192`,

		file("normalizer", `{"type": "Lowercase"}`):                                                                           `normalizer.type: "Lowercase" is not supported`,
		file("normalizer", `{"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Precompiled"}]}`):                 `normalizer.normalizers[1].type: "Precompiled" is not supported`,
		file("normalizer", `{"type": "Replace", "pattern": {"String": ""}, "content": ""}`):                                   `normalizer.pattern: an empty string`,
		file("normalizer", strings.Repeat(`{"type": "Sequence", "normalizers": [`, 12)+"null"+strings.Repeat("]}", 12)):       `nested deeper than`,
		file("normalizer", `{"type": "Sequence", "normalizers": [`+strings.Repeat(`{"type": "NFC"},`, 80)+`{"type":"NFC"}]}`): `more than 64 steps`,

		file("normalizer", repeated("normalizers", replaces("aaaa"), 5)):                                                            `normalizer: the steps make a text over 256 times as long`,
		file("decoder", repeated("decoders", replaces("aaaa"), 5)):                                                                  `decoder.decoders[4]: the steps make a text over 256 times as long`,
		file("pre_tokenizer", repeated("pretokenizers", `{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}`, 9)): `pre_tokenizer: the steps make a text over 256 times as long`,
		file("model", `{"vocab": {"a": 0}, "merges": [`+strings.Repeat(`[],`, maxMerges)+`[]]}`):                                    `model.merges: 2097153 merges, limit is 2097152`,
		file("model", `{"vocab": {`+strings.Repeat(`"a": 0,`, maxTokens)+`"a": 0}, "merges": []}`):                                  `model.vocab: 1048577 tokens, limit is 1048576`,
		file("added_tokens", `[`+strings.Repeat(`1,`, maxAdded)+`1]`):                                                               `added_tokens: 65537 added tokens, limit is 65536`,
		file("pre_tokenizer", `{"type": "Metaspace"}`):                                                                              `pre_tokenizer.replacement: missing`,
		file("pre_tokenizer", `{"type": "Metaspace", "replacement": "▁▁"}`):                                                         `pre_tokenizer.replacement: "▁▁" is not one character`,
		file("pre_tokenizer", metaspaced(`"prepend_scheme": "last"`)):                                                               `pre_tokenizer.prepend_scheme: "last" is not known`,
		file("pre_tokenizer", metaspaced(`"add_prefix_space": false`)):                                                              `pre_tokenizer.add_prefix_space: false does not go with prepend_scheme always`,
		file("pre_tokenizer", metaspaced(`"add_prefix_space": 1`)):                                                                  `pre_tokenizer.add_prefix_space: json`,
		file("decoder", `{"type": "Sequence", "decoders": [{"type": "Fuse"}, `+metaspaced(`"split": true`)+`]}`):                    `Metaspace after the tokens were joined`,
		file("pre_tokenizer", split(`"pattern": {"Regex": "(a)\\1"}`)):                                                              `pre_tokenizer.pretokenizers[0].pattern.Regex: pattern at byte 5: escape \1`,
		file("pre_tokenizer", split(`"pattern": {"Glob": "*"}`)):                                                                    `pattern.Glob: this key is not supported`,
		file("pre_tokenizer", split(`"pattern": {}`)):                                                                               `pattern: needs either String or Regex`,
		file("pre_tokenizer", strings.Replace(split(`"pattern": {}`), "Isolated", "Merged", 1)):                                     `pretokenizers[0].behavior: "Merged" is not known`,
		file("pre_tokenizer", `{"type": "Digits", "individual_digits": 3}`):                                                         `pre_tokenizer.individual_digits: json`,
		file("pre_tokenizer", `{"type": "ByteLevel", "add_prefix_space": false, "mode": "new"}`):                                    `pre_tokenizer.mode: this key is not supported`,

		file("post_processor", `{"type": "BertProcessing"}`):                                                                      `post_processor.type: "BertProcessing" is not supported`,
		file("post_processor", frame(`[{"SpecialToken": {"id": "<t>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]`)): `post_processor.single[0]: "<t>" is not among`,
		file("post_processor", frame(`[{"Sequence": {"id": "B", "type_id": 0}}]`)):                                                `post_processor.single[0]: sequence "B"`,
		file("post_processor", frame(`[]`)):                                                                                       `post_processor.single: the text itself has no place`,
		file("post_processor", `{"type": "Sequence", "processors": [`+strings.Repeat(frame(`[{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]`)+",", 2)+`{"type": "ByteLevel"}]}`): `more than one TemplateProcessing`,

		file("decoder", `{"type": "WordPiece"}`):                                                          `decoder.type: "WordPiece" is not supported`,
		file("decoder", `{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]}`): `decoder.decoders[1]: ByteFallback after the tokens were joined`,
		file("decoder", `{"type": "Strip", "content": " ", "start": 0, "stop": 1}`):                       `decoder.stop: 1 is not supported`,
		file("decoder", `{"type": "Strip", "content": "ab", "start": 1, "stop": 0}`):                      `decoder.content: "ab" is not one character`,

		file("added_tokens", added(`, "color": 1`)):                                          `added_tokens[0].color: this key is not supported`,
		file("added_tokens", strings.Replace(added(""), "3", "7", 1)):                        `added_tokens[0]: "<x>" has id 7, by the vocabulary it would be 3`,
		file("added_tokens", strings.Replace(added(""), "<x>", "", 1)):                       `added_tokens[0]: "" is empty or`,
		file("added_tokens", `[{"id": 3, "content": "<x>"}]`):                                `added_tokens[0].single_word: missing`,
		file("added_tokens", strings.Replace(added(""), "<x>", strings.Repeat("x", 300), 1)): `longer than 256 bytes`,
		file("added_tokens", `3`):                                                            `added_tokens: json`,
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "tokenizer.json: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s\nerror %v\nwant one with %s", text, err, want)
		}
	}
}

// FuzzParse: no file may crash or hang, and what is accepted must encode and decode.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(file("added_tokens", added(""))))
	f.Add([]byte(file("pre_tokenizer", `{"type": "Split", "pattern": {"Regex": "(?:a|aa)+b"}, "behavior": "Removed", "invert": true}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		ids := tok.EncodeFramed("It's  12 <x> aab\r\nÄé中 👍" + string(data[:min(len(data), 64)]))
		decoded := tok.Decode(ids)
		if streamed := stream(t, tok.Stream(), ids); streamed != decoded {
			t.Errorf("decodes to %+q, streams as %+q", decoded, streamed)
		}
	})
}
