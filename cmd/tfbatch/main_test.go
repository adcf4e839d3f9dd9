package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the outputs that scripts compare")

// TestMain lets the test binary be tfbatch for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tfbatch": main})
}

// TestScripts runs testdata/script: commands, what they print and their exit codes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"compress":  compress,
			"expand":    expand,
			"sameset":   sameSet,
			"sums":      sums,
			"untilrows": untilRows,
			"fulldisk":  fullDisk,
			"deafened":  deafened,
			"takenport": takenPort,

			"samemanifest": sameManifest,

			"repeat":          repeat,
			"forge":           forge,
			"gate":            gateCode,
			"thisbuild":       thisBuild,
			"replace":         replace,
			"valid":           valid,
			"samebutvolatile": sameButVolatile,
		},
	})
}

// exits runs a command and wants its exit code: exits 2 tfbatch run x.yaml.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want := args[0]
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
}

// gateCode runs a command that may find the machine slow: its code is 0 or 6.
func gateCode(ts *testscript.TestScript, _ bool, args []string) {
	if err := ts.Exec(args[0], args[1:]...); err != nil && err.Error() != "exit status 6" {
		ts.Fatalf("%v, want code 0 or 6", err)
	}
}

// thisBuild holds a gate's metadata to the program that ran: thisbuild FILE.
func thisBuild(ts *testscript.TestScript, _ bool, args []string) {
	path, err := os.Executable()
	ts.Check(err)
	program, err := os.ReadFile(path)
	ts.Check(err)
	var m struct {
		Version string
		Binary  string `json:"binary_sha256"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &m))
	if want := fmt.Sprintf("%x", sha256.Sum256(program)); m.Binary != want || m.Version != version() {
		ts.Fatalf("%s is of %q, %q; this is %q, %q", args[0], m.Version, m.Binary, version(), want)
	}
}

// forge replaces a text in the job of a manifest and digests the job again, as one would who
// wants to pass off replies as those of another job.
func forge(ts *testscript.TestScript, _ bool, args []string) {
	var m map[string]json.RawMessage
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &m))
	var job bytes.Buffer
	ts.Check(json.Compact(&job, m["job"]))
	changed := strings.Replace(job.String(), args[1], args[2], 1)
	if changed == job.String() {
		ts.Fatalf("the job holds no %s", args[1])
	}
	m["job"] = json.RawMessage(changed)
	m["job_sha256"] = json.RawMessage(fmt.Sprintf("\"%x\"", sha256.Sum256([]byte(changed))))
	out, err := json.Marshal(m)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out, 0o644))
}

// replace replaces the first of a text in a file.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	was := ts.ReadFile(args[0])
	now := strings.Replace(was, args[1], args[2], 1)
	if was == now {
		ts.Fatalf("%s holds no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(now), 0o644))
}

// compress writes FILE.gz and FILE.zst.
func compress(ts *testscript.TestScript, _ bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(data)
	g.Close()
	z, err := zstd.NewWriter(&zs)
	ts.Check(err)
	z.Write(data)
	z.Close()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".gz"), gz.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".zst"), zs.Bytes(), 0o644))
}

// expand replaces Go escapes ("\xff", "\ufeff", "\r") in a file, and <N> by N letters.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	var out strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if head, n, ok := strings.Cut(line, "<"); ok {
			count, tail, _ := strings.Cut(n, ">")
			letters, err := strconv.Atoi(count)
			ts.Check(err)
			line = head + strings.Repeat("x", letters) + tail
		}
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `"`, `\"`) + `"`)
		ts.Check(err)
		out.WriteString(text + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(out.String()), 0o644))
}

// sameSet compares the token hashes of two rows files as sets.
func sameSet(ts *testscript.TestScript, _ bool, args []string) {
	a, b := tokenHashes(ts.ReadFile(args[0])), tokenHashes(ts.ReadFile(args[1]))
	if len(a) == 0 || !slices.Equal(a, b) {
		ts.Fatalf("%s has hashes\n%s\n%s has\n%s", args[0], strings.Join(a, "\n"), args[1], strings.Join(b, "\n"))
	}
}

func tokenHashes(rows string) []string {
	var out []string
	for _, part := range strings.Split(rows, `"token_sha256":"`)[1:] {
		out = append(out, part[:64])
	}
	slices.Sort(out)
	return out
}

// sums holds the digests that a manifest names against its files: sums DIR.
func sums(ts *testscript.TestScript, _ bool, args []string) {
	manifest := ts.ReadFile(args[0] + "/manifest.json")
	for _, name := range []string{"rows.jsonl", "errors.jsonl"} {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(ts.ReadFile(args[0]+"/"+name))))
		if !strings.Contains(manifest, sum) {
			ts.Fatalf("%s: the manifest does not have %s", name, sum)
		}
	}
}

// untilRows waits until so many rows are in the journal of a folder: untilrows DIR N.
func untilRows(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0] + "/journal.log")
	for range 4000 {
		if data, err := os.ReadFile(path); err == nil && bytes.Count(data, []byte(`"custom_id":`)) >= want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	ts.Fatalf("%s has fewer than %d rows", path, want)
}

// sameManifest compares what is not volatile in the manifests of two folders, or of a folder
// and a file: samemanifest DIR DIR [FILE].
func sameManifest(ts *testscript.TestScript, _ bool, args []string) {
	other := args[1] + "/manifest.json"
	if len(args) > 2 {
		other = args[2]
	}
	a, _, _ := strings.Cut(ts.ReadFile(args[0]+"/manifest.json"), `"volatile"`)
	b, _, _ := strings.Cut(ts.ReadFile(other), `"volatile"`)
	if len(a) < 100 || a != b {
		ts.Fatalf("%s has\n%s\n%s has\n%s", args[0], a, other, b)
	}
}

// fullDisk runs a command that can write files of so many KiB only: fulldisk CODE KIB COMMAND.
func fullDisk(ts *testscript.TestScript, _ bool, args []string) {
	limit := fmt.Sprintf("ulimit -f %s; exec \"$@\"", args[1])
	exits(ts, false, append([]string{args[0], "bash", "-c", limit, "bash"}, args[2:]...))
}

// deafened runs a command whose stdout and stderr nobody reads: deafened CODE COMMAND.
func deafened(ts *testscript.TestScript, _ bool, args []string) {
	// The reader is gone before the command starts: it holds the door until then.
	script := `exec 3> >(exec 0<&-); sleep 0.2; "$@" >&3 2>&3; exit $?`
	exits(ts, false, append([]string{args[0], "bash", "-c", script, "bash"}, args[1:]...))
}

// takenPort puts the number of a port that is taken until the end of the script into a variable: takenport NAME.
func takenPort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// repeat writes the text of a file several times: repeat FILE N.
func repeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(ts.ReadFile(args[0]), n)), 0o644))
}

// sameButVolatile compares two manifests apart from how their runs went.
func sameButVolatile(ts *testscript.TestScript, _ bool, args []string) {
	var read [2]map[string]any
	for i, name := range args {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &read[i]))
		delete(read[i], "volatile")
	}
	if diff := cmp.Diff(read[0], read[1]); diff != "" {
		ts.Fatalf("%s and %s differ:\n%s", args[0], args[1], diff)
	}
}
