//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A hostile checkpoint is a good one with one thing wrong. Each goes through inspect, plan and run as a user
// would call them: each must end, in one line that names the file and the cause, and take little memory.

// maxHostileHeap bounds what three commands allocate on one checkpoint, all in all, and so what any of them
// holds at once. A config.json of a million numbers takes the most.
const maxHostileHeap = 768 << 20

// stage is what the first command is that notices.
type hostileStage int

const (
	byInspect hostileStage = iota // and so by plan and run
	byPlan                        // and run: of a job, not of a checkpoint
	byRow                         // plan counts an error row, run writes it
	byLoad                        // run alone: it is in the weights
	harmless                      // nothing is wrong for us
)

type hostileCase struct {
	name  string
	stage hostileStage
	want  string // in the line
	spoil func(c *checkpoint)
}

func TestHostileCheckpoints(t *testing.T) {
	var cases []hostileCase
	for _, list := range [][]hostileCase{hostileWeights, hostileIndexes, hostileConfigs, hostileTokenizers, hostileTemplates, hostileJobs} {
		cases = append(cases, list...)
	}
	good := goodCheckpoint(t)
	for _, h := range cases {
		t.Run(h.name, func(t *testing.T) {
			c := good.copy(t)
			if h.spoil != nil {
				h.spoil(c)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			h.check(t, c)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > maxHostileHeap {
				t.Errorf("allocated %d MiB, limit is %d", n>>20, maxHostileHeap>>20)
			}
			c.untouched()
		})
	}
	if len(cases) < 60 {
		t.Errorf("%d cases", len(cases))
	}
}

// check runs the three commands. Those before the one that notices must be content.
func (h hostileCase) check(t *testing.T, c *checkpoint) {
	inspect := []string{"inspect", c.at("model")}
	plan := []string{"plan", c.at("job.yaml"), "--out", c.at("out")}
	run := []string{"run", c.at("job.yaml"), "--out", c.at("out"), "--quiet"}
	switch h.stage {
	case byInspect:
		c.refused(h.want, exitRefused, inspect)
		c.refused(h.want, exitRefused, plan)
		c.refused(h.want, exitRefused, run)
	case byPlan:
		c.refused(h.want, exitRefused, plan)
		c.refused(h.want, exitRefused, run)
	case byRow:
		c.works(inspect)
		if out := c.works(plan); !strings.Contains(out, "0 blank lines") || !strings.Contains(out, h.want) {
			t.Errorf("plan says %s\nwant %s", out, h.want)
		}
		c.refused("1 of 1 rows failed", exitRowError, run)
	case byLoad:
		c.works(inspect)
		c.works(plan)
		c.refused(h.want, exitFailed, run)
	case harmless:
		c.works(inspect)
		c.works(plan)
		c.works(run)
	}
}

// checkpoint is a folder with a model, a job and its input, and a secret that nobody may reach.
type checkpoint struct {
	t   *testing.T
	dir string
}

// goodCheckpoint is the llama family's own test model with a tokenizer of bytes.
func goodCheckpoint(t *testing.T) *checkpoint {
	t.Helper()
	c := &checkpoint{t, t.TempDir()}
	c.must(os.Mkdir(c.at("model"), 0o755))
	for _, name := range []string{"model.safetensors", "config.json", "generation_config.json"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "internal", "model", "llama", "testdata", name))
		c.must(err)
		c.write(name, string(data))
	}
	c.write("tokenizer.json", tokenizerOf(byteVocab()))
	c.write("tokenizer_config.json", `{"bos_token": "<s>"}`)
	c.write("chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}")
	c.must(os.WriteFile(c.at("secret"), []byte("secret"), 0o644))
	c.must(os.WriteFile(c.at("in.jsonl"), []byte(`{"prompt": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "max_tokens": 2}`+"\n"), 0o644))
	c.must(os.WriteFile(c.at("job.yaml"), []byte("version: 1\njobs:\n  - name: a\n    model: {path: ./model}\n    lanes: 1\n    input: {path: in.jsonl}\n"), 0o644))
	return c
}

func (c *checkpoint) copy(t *testing.T) *checkpoint {
	to := &checkpoint{t, t.TempDir()}
	to.must(os.CopyFS(to.dir, os.DirFS(c.dir)))
	return to
}

func (c *checkpoint) at(name string) string    { return filepath.Join(c.dir, name) }
func (c *checkpoint) model(name string) string { return filepath.Join(c.dir, "model", name) }

func (c *checkpoint) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *checkpoint) write(name, text string) {
	c.must(os.WriteFile(c.model(name), []byte(text), 0o644))
}
func (c *checkpoint) remove(name string) { c.must(os.RemoveAll(c.model(name))) }

func (c *checkpoint) read(name string) string {
	data, err := os.ReadFile(c.model(name))
	c.must(err)
	return string(data)
}

// link, pipe and folder take a file's place.
func (c *checkpoint) link(name, target string) {
	c.remove(name)
	c.must(os.Symlink(target, c.model(name)))
}
func (c *checkpoint) pipe(name string)   { c.remove(name); c.must(syscall.Mkfifo(c.model(name), 0o600)) }
func (c *checkpoint) folder(name string) { c.remove(name); c.must(os.Mkdir(c.model(name), 0o755)) }

// socket has a short name: a system bounds them.
func (c *checkpoint) socket(name string) {
	dir, err := os.MkdirTemp("", "s")
	c.must(err)
	c.t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	c.must(err)
	c.t.Cleanup(func() { l.Close() })
	c.remove(name)
	c.must(os.Rename(filepath.Join(dir, "s"), c.model(name)))
}

// call is one command, in this process.
func (c *checkpoint) call(args []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(""), &out, &errs)
	if strings.ContainsAny(out.String()+errs.String(), "\x1b\r\a") {
		c.t.Errorf("%s writes control characters: %q %q", args[0], out.String(), errs.String())
	}
	return code, out.String(), errs.String()
}

func (c *checkpoint) works(args []string) string {
	c.t.Helper()
	code, out, errs := c.call(args)
	if code != exitOK {
		c.t.Errorf("%s: code %d: %s%s", args[0], code, out, errs)
	}
	return out
}

// refused wants one line with the cause: on stderr, or, of inspect, in its report.
func (c *checkpoint) refused(want string, wantCode int, args []string) {
	c.t.Helper()
	code, out, errs := c.call(args)
	text := errs
	if args[0] == "inspect" && errs == "" {
		text = "tfbatch: "
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "  refused") {
				text += line
			}
		}
	}
	if code != wantCode || !strings.HasPrefix(text, "tfbatch: ") || strings.Count(text, "\n") != 1 || len(text) > 1000 || !strings.Contains(text, want) {
		c.t.Errorf("%s: code %d, %.1500q\nwant %d and one line with %s", args[0], code, text, wantCode, want)
	}
}

// untouched looks whether anything ran or was written that should not.
func (c *checkpoint) untouched() {
	data, err := os.ReadFile(c.at("secret"))
	if err != nil || string(data) != "secret" {
		c.t.Errorf("the secret is %q, %v", data, err)
	}
	for _, path := range []string{"owned", c.at("owned"), c.model("owned")} {
		if _, err := os.Lstat(path); err == nil {
			c.t.Errorf("something was executed: it made %s", path)
		}
	}
}

// --- weights ---

// rewrite puts another header, and other bytes, in place of the model's own.
func (c *checkpoint) rewrite(change func(h map[string]map[string]json.RawMessage, data []byte) []byte) {
	raw := []byte(c.read("model.safetensors"))
	n := binary.LittleEndian.Uint64(raw)
	var h map[string]map[string]json.RawMessage
	c.must(json.Unmarshal(raw[8:8+n], &h))
	data := change(h, raw[8+n:])
	header, err := json.Marshal(h)
	c.must(err)
	c.weights(string(header), string(data))
}

func (c *checkpoint) weights(header, data string) {
	c.write("model.safetensors", string(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))+header+data)
}

// field changes one field of one tensor.
func field(name, key, value string) func(*checkpoint) {
	return func(c *checkpoint) {
		c.rewrite(func(h map[string]map[string]json.RawMessage, data []byte) []byte {
			h[name][key] = json.RawMessage(value)
			return data
		})
	}
}

const norm = "model.norm.weight"

// smear writes the same two bytes all over a tensor.
func smear(name string, low, high byte) func(*checkpoint) {
	return func(c *checkpoint) {
		c.rewrite(func(h map[string]map[string]json.RawMessage, data []byte) []byte {
			var at [2]int
			c.must(json.Unmarshal(h[name]["data_offsets"], &at))
			for i := at[0]; i < at[1]; i += 2 {
				data[i], data[i+1] = low, high
			}
			return data
		})
	}
}

func only(header string) func(*checkpoint) { return func(c *checkpoint) { c.weights(header, "") } }

func file(name, text string) func(*checkpoint) { return func(c *checkpoint) { c.write(name, text) } }

func length(n uint64) func(*checkpoint) {
	return func(c *checkpoint) {
		c.write("model.safetensors", string(binary.LittleEndian.AppendUint64(nil, n))+c.read("model.safetensors")[8:])
	}
}

var hostileWeights = []hostileCase{
	{"good", harmless, "", nil},
	{"no weights", byInspect, "no model.safetensors and no model.safetensors.index.json", func(c *checkpoint) { c.remove("model.safetensors") }},
	{"weights empty", byInspect, "model.safetensors: no safetensors header in 0 bytes", file("model.safetensors", "")},
	{"weights of five bytes", byInspect, "model.safetensors: no safetensors header in 5 bytes", file("model.safetensors", "short")},
	{"header of 2^63", byInspect, "model.safetensors: header of 9223372036854775808 bytes", length(1 << 63)},
	{"header of 100 MB", byInspect, "model.safetensors: header of 100000000 bytes in a file of", length(100_000_000)},
	{"header past the file", byInspect, "cut short?", length(90_000_000)},
	{"header is a list", byInspect, "model.safetensors: header: ", only("[]")},
	{"header is text", byInspect, "model.safetensors: header: ", only("import os; os.system('touch owned')")},
	{"header not UTF-8", byInspect, "model.safetensors: header: not UTF-8", only("{\"\xff\": 1}")},
	{"header deep", byInspect, "model.safetensors: header: ", only(`{"x": ` + strings.Repeat(`{"a":`, 200_000) + "1" + strings.Repeat("}", 200_001))},
	{"header of lists in lists", byInspect, "model.safetensors: header: ", only(`{"x": {"shape": ` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + "}}")},
	{"tensor twice", byInspect, `is there twice`, only(`{"x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}`)},
	{"field twice", byInspect, `key "shape" is there twice`, only(`{"x": {"dtype": "U8", "shape": [0], "shape": [1], "data_offsets": [0, 0]}}`)},
	{"metadata is a pickle", byInspect, `__metadata__`, only(`{"__metadata__": {"code": ["cos", "system"]}}`)},
	{"dtype unknown", byInspect, `dtype "Q4_K" is none of`, field(norm, "dtype", `"Q4_K"`)},
	{"dtype F64", byInspect, `dtype "F64" is none of`, field(norm, "dtype", `"F64"`)},
	{"dimension negative", byInspect, `"-64" is not a whole number`, field(norm, "shape", "[-64]")},
	{"dimension a fraction", byInspect, `"64.5" is not a whole number`, field(norm, "shape", "[64.5]")},
	{"dimension with an exponent", byInspect, `"6.4e1" is not a whole number`, field(norm, "shape", "[6.4e1]")},
	{"dimension 2^63", byInspect, `"9223372036854775808" is not a whole number`, field(norm, "shape", "[9223372036854775808]")},
	{"shape overflows", byInspect, "overflows", field(norm, "shape", "[4294967296, 4294967296]")},
	{"shape times zero", byInspect, "[9223372036854775807 0] of BF16 overflows", field(norm, "shape", "[9223372036854775807, 0]")},
	{"rank 1000", byInspect, "more than 8 numbers", field(norm, "shape", "["+strings.Repeat("1,", 999)+"64]")},
	{"shape of another size", byInspect, "hold 128 bytes, BF16 of shape [65] needs 130", field(norm, "shape", "[65]")},
	{"offsets reversed", byInspect, "are not a begin and an end", field(norm, "data_offsets", "[128, 0]")},
	{"offsets overlap", byInspect, "inside tensor", field(norm, "data_offsets", "[0, 128]")},
	{"offsets near 2^63", byInspect, "bytes from", field(norm, "data_offsets", "[9223372036854775679, 9223372036854775807]")},
	{"one offset", byInspect, "are not a begin and an end", field(norm, "data_offsets", "[0]")},
	{"bytes cut", byInspect, "cut short?", func(c *checkpoint) {
		raw := c.read("model.safetensors")
		c.write("model.safetensors", raw[:len(raw)-1])
	}},
	{"bytes appended", byInspect, "the file holds", func(c *checkpoint) { c.write("model.safetensors", c.read("model.safetensors")+"x") }},
	{"a tensor less", byInspect, norm, func(c *checkpoint) {
		c.rewrite(func(h map[string]map[string]json.RawMessage, data []byte) []byte {
			h["other"] = h[norm]
			delete(h, norm)
			return data
		})
	}},
	{"a tensor of another shape", byInspect, norm, field(norm, "shape", "[8, 8]")},
	{"NaN in a norm", byLoad, `tensor "model.norm.weight": encode: holds a NaN or an infinity`, smear(norm, 0xC0, 0x7F)},
	{"infinite embedding", byLoad, `tensor "model.embed_tokens.weight": encode: holds a NaN or an infinity`, smear("model.embed_tokens.weight", 0x80, 0x7F)},
	{"weights a pipe", byInspect, "model.safetensors is a named pipe, not a file", func(c *checkpoint) { c.pipe("model.safetensors") }},
	{"weights a socket", byInspect, "model.safetensors is a socket, not a file", func(c *checkpoint) { c.socket("model.safetensors") }},
	{"weights a folder", byInspect, "model.safetensors is a directory, not a file", func(c *checkpoint) { c.folder("model.safetensors") }},
	{"weights out of the folder", byInspect, "model.safetensors in", func(c *checkpoint) { c.link("model.safetensors", "../secret") }},
	{"weights an absolute link", byInspect, "is a link out of that folder", func(c *checkpoint) { c.link("model.safetensors", "/etc/passwd") }},
	{"weights a device", byInspect, "is a link out of that folder", func(c *checkpoint) { c.link("model.safetensors", "/dev/zero") }},
	{"weights a link to itself", byInspect, "model.safetensors", func(c *checkpoint) { c.link("model.safetensors", "model.safetensors") }},
	{"weights a link to nothing", byInspect, "no model.safetensors", func(c *checkpoint) { c.link("model.safetensors", "gone") }},
}

// --- index ---

// index makes a sharded checkpoint of two files that both are the model's own.
func index(text string) func(*checkpoint) {
	return func(c *checkpoint) {
		c.must(os.Rename(c.model("model.safetensors"), c.model("a.safetensors")))
		c.write("model.safetensors.index.json", text)
	}
}

var hostileIndexes = []hostileCase{
	{"shards missing", byInspect, "2 of the 3 shards that model.safetensors.index.json lists are missing: b.safetensors, c.safetensors", index(`{"weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "c.safetensors"}}`)},
	{"shard above", byInspect, `shard "../secret.safetensors" is not the plain name of a file`, index(`{"weight_map": {"x": "../secret.safetensors"}}`)},
	{"shard absolute", byInspect, "is not the plain name of a file", index(`{"weight_map": {"x": "/etc/passwd"}}`)},
	{"shard a pickle", byInspect, "is not a .safetensors file", index(`{"weight_map": {"x": "pytorch_model.bin"}}`)},
	{"index lists other tensors", byInspect, "is not in weight_map", index(`{"weight_map": {"x": "a.safetensors"}}`)},
	{"index empty", byInspect, "model.safetensors.index.json: no weight_map", index(`{"weight_map": {}}`)},
	{"index deep", byInspect, "model.safetensors.index.json: ", index(`{"metadata": ` + strings.Repeat("[", 1_000_000))},
	{"index and weights disagree", byInspect, "are both there and disagree", file("model.safetensors.index.json", `{"weight_map": {"x": "b.safetensors"}}`)},
	{"index a pipe", byInspect, "model.safetensors.index.json is a named pipe", func(c *checkpoint) { c.pipe("model.safetensors.index.json") }},
	{"shard a pipe", byInspect, "b.safetensors is a named pipe", func(c *checkpoint) {
		index(`{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}`)(c)
		c.pipe("b.safetensors")
	}},
}

// --- config.json and generation_config.json ---

// config sets one key.
func config(key, value string) func(*checkpoint) {
	return func(c *checkpoint) {
		var keys map[string]json.RawMessage
		c.must(json.Unmarshal([]byte(c.read("config.json")), &keys))
		keys[key] = json.RawMessage(value)
		var text []string
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			text = append(text, fmt.Sprintf("%q: %s", key, keys[key]))
		}
		c.write("config.json", "{"+strings.Join(text, ",\n")+"}")
	}
}

var hostileConfigs = []hostileCase{
	{"config missing", byInspect, "config.json", func(c *checkpoint) { c.remove("config.json") }},
	{"config empty", byInspect, "config.json: ", file("config.json", "")},
	{"config a list", byInspect, "config.json: ", file("config.json", "[]")},
	{"config deep", byInspect, "config.json: ", file("config.json", `{"x": `+strings.Repeat("[", 500_000))},
	{"config not UTF-8", byInspect, "config.json: ", file("config.json", "{\"model_type\": \"\xff\"}")},
	{"config of 32 MB", byInspect, "config.json has 33554432 bytes", file("config.json", strings.Repeat(" ", 32<<20))},
	{"config key twice", byInspect, "config.json: ", func(c *checkpoint) {
		c.write("config.json", strings.Replace(c.read("config.json"), "{", `{"vocab_size": 3,`, 1))
	}},
	{"config a pipe", byInspect, "config.json is a named pipe", func(c *checkpoint) { c.pipe("config.json") }},
	{"config out of the folder", byInspect, "config.json in", func(c *checkpoint) { c.link("config.json", "../secret") }},
	{"code in the config", byInspect, "config.json: ", config("architectures", `["__import__('os').system('touch owned')"]`)},
	{"an auto_map is not followed", harmless, "", config("auto_map", `{"AutoModelForCausalLM": "modeling.Evil"}`)},
	{"hidden 2^63", byInspect, `config.json: "hidden_size"`, config("hidden_size", "9223372036854775808")},
	{"hidden a fraction", byInspect, `config.json: "hidden_size"`, config("hidden_size", "64.5")},
	{"hidden a text", byInspect, `config.json: "hidden_size"`, config("hidden_size", `"64"`)},
	{"layers negative", byInspect, `config.json: "num_hidden_layers"`, config("num_hidden_layers", "-1")},
	{"layers a billion", byInspect, `config.json: "num_hidden_layers"`, config("num_hidden_layers", "1000000000")},
	{"more layers than tensors", byInspect, "model.layers.4", config("num_hidden_layers", "5")},
	{"vocabulary zero", byInspect, `config.json: "vocab_size"`, config("vocab_size", "0")},
	{"vocabulary of a billion", byInspect, `config.json: "vocab_size"`, config("vocab_size", "1000000000")},
	{"heads zero", byInspect, "config.json: ", config("num_attention_heads", "0")},
	{"heads do not divide", byInspect, "config.json: ", config("num_key_value_heads", "3")},
	{"context 10^18", byInspect, `config.json: "max_position_embeddings"`, config("max_position_embeddings", "1000000000000000000")},
	{"epsilon NaN", byInspect, "config.json: ", config("rms_norm_eps", "NaN")},
	{"epsilon 10^400", byInspect, "config.json: ", config("rms_norm_eps", "1e400")},
	{"epsilon zero", byInspect, "config.json: ", config("rms_norm_eps", "0")},
	{"rope of base zero", byInspect, "config.json: ", config("rope_parameters", `{"rope_theta": 0, "rope_type": "default"}`)},
	{"another architecture", byInspect, `architecture "MambaForCausalLM"`, config("architectures", `["MambaForCausalLM"]`)},
	{"GPTQ", byInspect, `gptq`, config("quantization_config", `{"quant_method": "gptq", "bits": 4}`)},
	{"groups of zero", byInspect, "config.json: ", config("quantization", `{"bits": 4, "group_size": 0}`)},
	{"end past the vocabulary", byInspect, `"eos_token_id"`, config("eos_token_id", "512")},
	{"a million ends", byInspect, `"eos_token_id"`, config("eos_token_id", "["+strings.Repeat("1,", 999_999)+"1]")},
	{"generation a pipe", byInspect, "generation_config.json is a named pipe", func(c *checkpoint) { c.pipe("generation_config.json") }},
	{"generation broken", byInspect, "generation_config.json: ", file("generation_config.json", `{"temperature": `)},
	{"generation with a text", byInspect, "generation_config.json: temperature is", file("generation_config.json", `{"temperature": "hot"}`)},
}

// --- tokenizer.json ---

// byteVocab has an id for every byte, and <s>.
func byteVocab() string {
	list := []string{`"<s>": 256`}
	for b := range 256 {
		list = append(list, fmt.Sprintf("%q: %d", string(byteLetter(b)), b))
	}
	return strings.Join(list, ", ")
}

// byteLetter is how GPT-2 writes a byte.
func byteLetter(b int) rune {
	n := 0
	for c := range 256 {
		printable := '!' <= c && c <= '~' || 0xA1 <= c && c <= 0xAC || c >= 0xAE
		switch {
		case c == b && printable:
			return rune(b)
		case c == b:
			return rune(256 + n)
		case !printable:
			n++
		}
	}
	panic("no such byte")
}

// tokenizerOf puts parts of a tokenizer.json together: key, value, key, value.
func tokenizerOf(vocab string, parts ...string) string {
	keys := map[string]string{
		"version": `"1.0"`, "added_tokens": "[]", "decoder": `{"type": "ByteLevel"}`, "merges": "[]",
		"pre_tokenizer": `{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}`,
	}
	for i := 0; i < len(parts); i += 2 {
		keys[parts[i]] = parts[i+1]
	}
	merges := keys["merges"]
	delete(keys, "merges")
	if keys["model"] == "" {
		keys["model"] = `{"type": "BPE", "vocab": {` + vocab + `}, "merges": ` + merges + `}`
	}
	var text []string
	for key, value := range keys {
		text = append(text, fmt.Sprintf("%q: %s", key, value))
	}
	return "{" + strings.Join(text, ", ") + "}"
}

func tokens(parts ...string) func(*checkpoint) {
	return func(c *checkpoint) { c.write("tokenizer.json", tokenizerOf(byteVocab(), parts...)) }
}

// cutBy is a pre-tokenizer that cuts by an expression before bytes.
func cutBy(expr string) string {
	return fmt.Sprintf(`{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": %q}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}`, expr)
}

var hostileTokenizers = []hostileCase{
	{"tokenizer missing", byInspect, "no tokenizer.json", func(c *checkpoint) { c.remove("tokenizer.json") }},
	{"tokenizer a pipe", byInspect, "tokenizer.json is a named pipe", func(c *checkpoint) { c.pipe("tokenizer.json") }},
	{"tokenizer out of the folder", byInspect, "tokenizer.json in", func(c *checkpoint) { c.link("tokenizer.json", "../secret") }},
	{"tokenizer not UTF-8", byInspect, "tokenizer.json: not valid UTF-8", file("tokenizer.json", "{\"\xff\": 1}")},
	{"tokenizer deep", byInspect, "tokenizer.json: ", tokens("normalizer", strings.Repeat(`{"type": "Sequence", "normalizers": [`, 20_000))},
	{"tokenizer Unigram", byInspect, `tokenizer.json: model.type: "Unigram" is not supported`, tokens("model", `{"type": "Unigram", "vocab": [], "unk_id": 0}`)},
	{"vocabulary of one id 2^40", byInspect, "tokenizer.json: model.vocab: id 1099511627776", file("tokenizer.json", tokenizerOf(`"a": 1099511627776`))},
	{"vocabulary of one negative id", byInspect, "tokenizer.json: model.vocab: id -1", file("tokenizer.json", tokenizerOf(`"a": -1`))},
	{"vocabulary ids twice", byInspect, "tokenizer.json: model.vocab: id 0 stands for", file("tokenizer.json", tokenizerOf(`"a": 0, "b": 0`))},
	{"a token of a megabyte", byInspect, "bytes, limit is 8192", file("tokenizer.json", tokenizerOf(`"`+strings.Repeat("a", 1<<20)+`": 0`))},
	{"three million merges", byInspect, "tokenizer.json: model.merges: 3000000 merges, limit is 2097152", tokens("merges", "["+strings.Repeat(`"a b",`, 2_999_999)+`"a b"]`)},
	{"merges of nothing", byInspect, "tokenizer.json: model.merges: merge 0", tokens("merges", `["zz yy"]`)},
	{"an expression that explodes", harmless, "", tokens("pre_tokenizer", cutBy(`(?:a+)+b|(?:a|a)*c|(?:a{1,9}){1,9}d`))},
	{"an expression repeated a billion times", byInspect, "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex: ", tokens("pre_tokenizer", cutBy(`(?:a{1,1000}){1,1000000}`))},
	{"an expression that refers back", byInspect, "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex: ", tokens("pre_tokenizer", cutBy(`(a+)\1`))},
	{"an expression nested", byInspect, "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex: ", tokens("pre_tokenizer", cutBy(strings.Repeat("(?:", 20_000)+"a"+strings.Repeat(")*", 20_000)))},
	{"a replacement that grows", byInspect, "tokenizer.json: normalizer", tokens("normalizer", `{"type": "Sequence", "normalizers": [`+strings.Repeat(`{"type": "Replace", "pattern": {"String": "a"}, "content": "`+strings.Repeat("a", 64)+`"},`, 63)+`{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}]}`)},
	{"an id past the model's vocabulary", byRow, "is 600, the vocabulary has 512", func(c *checkpoint) {
		c.write("tokenizer.json", tokenizerOf(byteVocab()+`, "<far>": 600`, "added_tokens", `[{"id": 600, "content": "<far>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}]`))
		c.write("chat_template.jinja", "<far>")
	}},
	{"special tokens of a wrong kind", byInspect, "tokenizer_config.json: bos_token is", file("tokenizer_config.json", `{"bos_token": {"__class__": "os.system"}}`)},
	{"tokenizer_config a pipe", byInspect, "tokenizer_config.json is a named pipe", func(c *checkpoint) { c.pipe("tokenizer_config.json") }},
	{"special tokens a pipe", byInspect, "special_tokens_map.json is a named pipe", func(c *checkpoint) { c.pipe("special_tokens_map.json") }},
}

// --- chat templates ---

func template(text string) func(*checkpoint) { return file("chat_template.jinja", text) }

// laughs is a hundred million characters by eight assignments.
func laughs() string {
	text := "{% set a = 'ha ha ha ha ' %}"
	for range 16 {
		text += "{% set a = a ~ a ~ a ~ a %}"
	}
	return text + "{{ a }}"
}

var hostileTemplates = []hostileCase{
	{"a billion laughs", byRow, "is over the limit of", template(laughs())},
	{"a loop without end", byRow, "runs over the limit of", template("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")},
	{"a range of a billion", byRow, "template chat_template.jinja:1: ", template("{% for a in range(1000000000) %}x{% endfor %}")},
	{"a text times a billion", byRow, "is over the limit of", template("{{ 'ha' * 1000000000 }}")},
	{"a number of a billion digits", byRow, "template chat_template.jinja:1: ", template("{{ 10 ** 1000000000 }}")},
	{"a macro that calls itself", byRow, "calls nest over the limit", template("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")},
	{"a list in itself", byRow, "template chat_template.jinja:1: ", template("{% set a = [] %}{% set _ = a.append(a) %}{{ a }}")},
	{"padding of a billion", byRow, "template chat_template.jinja:1: ", template("{{ '%1000000000d' % 1 }}")},
	{"an include", byInspect, "chat_template.jinja:1: tag 'include' is not supported", template("{% include '/etc/passwd' %}")},
	{"an include of itself", byInspect, "tag 'include' is not supported", template("{% include 'chat_template.jinja' %}")},
	{"an import", byInspect, "tag 'import' is not supported", template("{% import 'os' as os %}{{ os.system('touch owned') }}")},
	{"a way out of the sandbox", byRow, "template chat_template.jinja:1: ", template("{{ ''.__class__.__mro__[1].__subclasses__() }}")},
	{"a way through format gives nothing", byRow, "prompt has no tokens", template("{{ '{0.__class__}'.format(messages) }}")},
	{"a way through globals", byRow, "template chat_template.jinja:1: ", template("{{ cycler.__init__.__globals__.os.popen('touch owned').read() }}")},
	{"parentheses", byInspect, "chat_template.jinja:1: ", template("{{ " + strings.Repeat("(", 50_000) + "1" + strings.Repeat(")", 50_000) + " }}")},
	{"blocks in blocks", byInspect, "chat_template.jinja:1: ", template(strings.Repeat("{% if 1 %}", 20_000))},
	{"a template of two megabytes", byInspect, "chat_template.jinja has 2097152 bytes", template(strings.Repeat("x", 2<<20))},
	{"a template not UTF-8", byInspect, "chat_template.jinja:1: template is not UTF-8", template("\xff")},
	{"a template that does not end", byInspect, "chat_template.jinja:1: ", template("{% for m in messages %}")},
	{"a template a pipe", byInspect, "chat_template.jinja is a named pipe", func(c *checkpoint) { c.pipe("chat_template.jinja") }},
	{"a template out of the folder", byInspect, "chat_template.jinja in", func(c *checkpoint) { c.link("chat_template.jinja", "../secret") }},
	{"a further template a pipe", byInspect, "tool_use.jinja is a named pipe", func(c *checkpoint) {
		c.folder("additional_chat_templates")
		c.pipe("additional_chat_templates/tool_use.jinja")
	}},
	{"templates out of the folder", byInspect, "additional_chat_templates", func(c *checkpoint) { c.link("additional_chat_templates", "/etc") }},
	{"a template that paints", byRow, "be\uFFFD[2Jware; of", template("{{ raise_exception('be\x1b[2Jware\nof') }}")},
	{"a template of today", byPlan, "set prompt.date", template("{{ strftime_now('%Y') }}")},
}

// --- what a job names ---

var hostileJobs = []hostileCase{
	{"input a pipe", byPlan, "in.jsonl is a named pipe, not a file", func(c *checkpoint) { c.pipe("../in.jsonl") }},
	{"input a folder", byPlan, "in.jsonl is a directory, not a file", func(c *checkpoint) { c.folder("../in.jsonl") }},
	{"input a device", byPlan, "in.jsonl is a device, not a file", func(c *checkpoint) { c.link("../in.jsonl", "/dev/zero") }},
	{"template of the job a pipe", byPlan, "t.jinja is a named pipe, not a file", func(c *checkpoint) {
		c.pipe("../t.jinja")
		c.must(os.WriteFile(c.at("job.yaml"), []byte("version: 1\njobs:\n  - name: a\n    model: {path: ./model}\n    prompt: {template: t.jinja}\n    input: {path: in.jsonl}\n"), 0o644))
	}},
}
