package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/builtin"
)

// drafterFile is a file of the builtin drafter.
func drafterFile(t *testing.T, name string) []byte {
	t.Helper()
	files, err := builtin.Open("gopher-15m-dspark")
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// poisoned is a checkpoint whose header is whole and whose every weight is a NaN: whoever reads one fails on it.
func poisoned(data []byte) []byte {
	head := 8 + binary.LittleEndian.Uint64(data)
	return append(bytes.Clone(data[:head]), bytes.Repeat([]byte{0xff}, len(data)-int(head))...)
}

// TestDraftersAreRefusedBeforeAWeightIsRead changes one thing in the builtin drafter's config.json. plan and run say
// what, in one line that names the job, the drafter and the key, with code 8. No weight was read: each is a NaN, and
// a load would end with that and code 1.
func TestDraftersAreRefusedBeforeAWeightIsRead(t *testing.T) {
	config := string(drafterFile(t, configFile))
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "drafter"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("drafter/model.safetensors", poisoned(drafterFile(t, "model.safetensors")))
	write("in.jsonl", []byte("{\"prompt\":\"What is a rune?\"}\n"))
	job := func(name, drafter string) {
		write(name, fmt.Appendf(nil, "version: 1\njobs:\n  - { name: a, model: builtin:gopher-15m, lanes: 1, drafter: { path: ./drafter, %s }, input: { path: in.jsonl } }\n", drafter))
	}
	job("job.yaml", "precision: checkpoint")
	job("q4.yaml", "precision: q4")
	// call gives the code and what a user reads.
	call := func(command, job string) (int, string) {
		args := []string{command, filepath.Join(dir, job), "--out", filepath.Join(dir, "out")}
		if command == "run" {
			args = append(args, "--quiet")
		}
		var out, errs bytes.Buffer
		code := run(args, strings.NewReader(""), &out, &errs)
		return code, errs.String()
	}

	write("drafter/config.json", []byte(config))
	if code, text := call("plan", "job.yaml"); code != exitOK {
		t.Fatalf("plan of an unchanged config.json: code %d, %s", code, text)
	}
	if code, text := call("run", "job.yaml"); code != exitFailed || !strings.Contains(text, "drafter ./drafter: drafter: ") {
		t.Fatalf("run with weights of NaN: code %d, %s", code, text)
	}
	for _, c := range []struct{ was, now, want string }{
		{`"hidden_size": 256`, `"hidden_size": 512`, `"hidden_size" is 512, the target's is 256`},
		{`"num_target_layers": 8`, `"num_target_layers": 9`, `"num_target_layers" is 9, the target's is 8`},
		{`"vocab_size": 8192`, `"vocab_size": 8191`, `"vocab_size" is 8191, the target's is 8192`},
		{`"markov_rank": 64`, `"markov_rank": 257`, `"markov_rank" is 257, not between 1 and 256`},
		{`"hidden_act": "silu"`, `"hidden_act": "gelu"`, `"hidden_act" is "gelu"`},
		{`"rope_theta": 10000000.0`, `"rope_theta": 0`, `"rope_theta" is 0`},
		{`"rope_theta": 10000000.0`, `"rope_theta": -1`, `"rope_theta" is -1`},
		{`"rope_theta": 10000000.0`, `"rope_theta": 1e100`, `"rope_theta" is 1e+100`},
		{`"rope_theta": 10000000.0`, `"rope_theta": 1e400`, `"rope_theta"`},
		{`"rope_theta": 10000000.0`, `"rope_theta": NaN`, `config.json: not JSON`},
		{`"rope_theta": 10000000.0`, `"rope_theta": Infinity`, `config.json: not JSON`},
		{`"mask_token_id": 4`, `"mask_token_id": 8192`, `"mask_token_id" is 8192, not between 0 and 8191`},
		{`"mask_token_id": 4`, `"mask_token_id": -1`, `"mask_token_id" is -1`},
		{"      5,\n      6", "      6,\n      5", `"target_layer_ids" holds 5 at place 4; they must ascend`},
		{"      5,\n      6", "      5,\n      5", `"target_layer_ids" holds 5 at place 4; they must ascend`},
		{"      5,\n      6", "      5,\n      8", `"target_layer_ids" holds 8 at place 4; they must ascend and be between 0 and 7`},
		{`"markov_head_type": "vanilla"`, `"markov_head_type": "gated"`, `"markov_head_type" is "gated"`},
		{`"block_size": 9`, `"block_size": 0`, `"block_size" is 0, not between 1 and 32`},
		{`"Lfm2DSparkDraftModel"`, `"EvilModel"`, `"architectures" is ["EvilModel"]`},
	} {
		changed := strings.Replace(config, c.was, c.now, 1)
		if changed == config {
			t.Errorf("the config holds no %s", c.was)
		}
		write("drafter/config.json", []byte(changed))
		for _, command := range []string{"plan", "run"} {
			code, text := call(command, "job.yaml")
			if code != exitRefused || !strings.HasPrefix(text, "tfbatch: job a: drafter ./drafter: config.json: ") ||
				strings.Count(text, "\n") != 1 || !strings.Contains(text, c.want) {
				t.Errorf("%s with %s: code %d, %q\nwant %d and one line with %s", command, c.now, code, text, exitRefused, c.want)
			}
		}
	}
	write("drafter/config.json", []byte(config))
	for _, command := range []string{"plan", "run"} {
		code, text := call(command, "q4.yaml")
		if code != exitUsage || !strings.Contains(text, `drafter.precision: is "q4", want one of checkpoint, q8`) {
			t.Errorf("%s with 4 bits: code %d, %q", command, code, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "a", "rows.jsonl")); err == nil {
		t.Error("a refused job has rows")
	}
}
