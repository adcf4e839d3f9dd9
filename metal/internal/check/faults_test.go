package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
	"tfbatch/internal/gpu/gputest"
	"tfbatch/metal/internal/msl"
)

// fault is a change of a kernel file that the suite under the checking runtime must notice,
// in the checks whose names start with see.
type fault struct {
	file, kernel, kind string
	old, new           string
	see                string
}

const (
	barrier     = "threadgroup_barrier(mem_flags::mem_threadgroup);"
	simdBarrier = "simdgroup_barrier(mem_flags::mem_threadgroup);"
	nan         = "as_type<float>(0x7FC00000u)"
)

// faults are planted one at a time. Kinds: order of operations, barrier, index out of bounds,
// mask (what belongs to a row, a lane, a block), NaN (made, lost, or memory that nobody wrote).
var faults = []fault{
	{"elementwise.metal", "add", "index", "if (i < args.n) {\n        dst[i] = flush(a", "if (i < args.n + 1) {\n        dst[i] = flush(a", "add"},
	{"elementwise.metal", "bias", "mask", "b[i % args.cols]", "b[i % (args.cols + 1)]", "bias"},
	{"elementwise.metal", "bias", "index", "x[i] = flush(x[i]", "x[i + 1] = flush(x[i]", "bias"},
	{"elementwise.metal", "swiglu", "order", "silu_v1(gu[at]) * gu[at + args.width]", "gu[at] * (gu[at + args.width] * sigmoid_v1(gu[at]))", "swiglu"},
	{"elementwise.metal", "swiglu", "mask", "silu_v1(gu[at]) * gu[at + args.width]", "silu_v1(gu[at + args.width]) * gu[at]", "swiglu"},
	{"elementwise.metal", "swiglu", "index", "args.width * (2 * args.width)", "args.width * (3 * args.width)", "swiglu"},
	{"elementwise.metal", "gather", "mask", "rows[i / args.cols]", "rows[0]", "gather"},
	{"elementwise.metal", "gather", "index", "rows[i / args.cols]", "rows[i]", "gather"},
	{"elementwise.metal", "tap", "mask", "args.stride + args.at +", "args.stride +", "tap"},
	{"elementwise.metal", "tap", "index", "args.at + i % args.cols", "args.at + i", "tap"},
	{"fma.h", "swiglu", "NaN", "return x / (1.0f + exp_v1(-x));", "return x != x ? 0.0f : x / (1.0f + exp_v1(-x));", "swiglu"},
	{"fma.h", "swiglu", "order", "p = fma(p, r, 0.5f);", "p = p * r + 0.5f;", "swiglu"},

	{"rmsnorm.metal", "rmsnorm", "order", "acc = fma(stage[k], stage[k], acc)", "acc = acc + stage[k] * stage[k]", "rms norm"},
	{"rmsnorm.metal", "rmsnorm", "barrier", barrier + "\n        if (sg == 0)", "if (sg == 0)", "rms norm"},
	{"rmsnorm.metal", "rmsnorm", "barrier", "mem_flags::mem_threadgroup);\n    const float r", "mem_flags::mem_device);\n    const float r", "rms norm"},
	{"rmsnorm.metal", "rmsnorm", "index", "k < args.n; k += THREADS", "k <= args.n; k += THREADS", "rms norm"},
	{"rmsnorm.metal", "rmsnorm", "mask", "min(uint(STAGE), args.n - from)", "uint(STAGE)", "rms norm"},
	{"rmsnorm.metal", "rmsnorm", "NaN", "if (lane == 0)", "if (lane == 32)", "rms norm"},

	{"matmul.h", "matmul", "order", "v[c] = v[c] + v[c + 4]", "v[c] = v[c] + v[7 - c]", "gpu matmul bf16"},
	{"matmul.metal", "matmul", "barrier", "            " + barrier + strings.Repeat(" ", 58) + "\\\n            for (uint i = tid", "            for (uint i = tid", "gpu matmul bf16"},
	{"matmul.metal", "matmul", "index", "out < args.outs", "out <= args.outs", "gpu matmul bf16"},
	{"matmul.metal", "matmul", "mask", "min(row0 + lane % MT, args.rows - 1)", "row0 + lane % MT", "gpu matmul bf16"},
	{"matmul.metal", "matmul", "mask", "min(uint(NR), args.tiles - first) - 1", "uint(NR) - 1", "gpu matmul bf16"},
	{"matmul.h", "matmul", "NaN", "acc[m][r] = 0.0f;", "acc[m][r] = " + nan + ";", "gpu matmul bf16"},

	{"expert.metal", "expert", "order", "chain.acc[m][r];", "chain.acc[m][NR - 1 - r];", "gpu experts bf16"},
	{"expert.metal", "expert", "barrier", "            " + barrier + strings.Repeat(" ", 58) + "\\\n            for (uint i = tid", "            for (uint i = tid", "gpu experts bf16"},
	{"expert.metal", "expert", "index", "m < count && out < args.outs", "out < args.outs", "gpu experts bf16"},
	{"expert.metal", "expert", "mask", "order[at]) / args.share", "order[at])", "gpu experts bf16"},
	{"expert.metal", "group", "barrier", barrier + "\n    if (tid == 0)", "if (tid == 0)", "gpu experts bf16"},
	{"expert.metal", "group", "barrier", barrier + "\n    for (uint e = tid", "for (uint e = tid", "gpu experts bf16"},
	{"expert.metal", "group", "mask", "min(args.size, at - i)", "args.size", "gpu experts bf16"},
	{"expert.metal", "group", "index", "order[at] = p;", "order[at + 1] = p;", "gpu experts bf16"},
	{"expert.metal", "group", "NaN", "first[e] = n;", "first[e] = e == 0 ? n + 1 : n;", "gpu experts bf16"},

	{"embed.metal", "embed", "index", "if (i >= args.n)", "if (i > args.n)", "embed"},
	{"embed.metal", "embed", "mask", "id % TILE", "(id + 1) % TILE", "embed"},
	{"weight.h", "embed", "order", "const uint h = i % 2 == 0", "const uint h = i % 2 != 0", "embed"},

	{"qkv.metal", "qkv", "order", "flush(fma(a, s, b * c))", "flush(fma(b, c, a * s))", "attention/bf16"},
	{"qkv.metal", "qkv", "barrier", simdBarrier + strings.Repeat(" ", 48) + "\\\n        const bool is_q", "const bool is_q", "attention/bf16"},
	{"qkv.metal", "qkv", "index", "slot = pos[row] % PAGE", "slot = pos[row]", "attention/bf16"},
	{"qkv.metal", "qkv", "mask", "(head - args.q) % args.kv", "(head - args.q) % (args.kv + 1)", "attention/bf16"},
	{"qkv.metal", "qkv", "NaN", "v[k] = qkv[", "if (k + 1 < args.dim) v[k] = qkv[", "attention/bf16"},

	{"attend.metal", "attend", "order", "o = fma(p[h][k], load1(v + k * args.padded), o)", "o = o + p[h][k] * load1(v + k * args.padded)", "attention/bf16"},
	{"attend.metal", "attend", "barrier", barrier + strings.Repeat(" ", 52) + "\\\n        float m[SHARED_HEADS]", "float m[SHARED_HEADS]", "attention/bf16"},
	{"attend.metal", "attend", "index", "pages[table[row] + group.x]", "pages[table[row] + group.x + 1]", "attention/bf16"},
	{"attend.metal", "attend", "mask", "pos[row] + 1 - first", "pos[row] + 2 - first", "attention/bf16"},
	{"attend.metal", "attend", "NaN", "s[h] = 0.0f;", "s[h] = " + nan + ";", "attention/bf16"},
	{"attend.metal", "merge", "order", "l = fma(l, a, from[1] * b)", "l = l * a + from[1] * b", "attention/bf16"},
	{"attend.metal", "merge", "mask", "c < chunks; ++c", "c + 1 < chunks; ++c", "attention/bf16"},
	{"attend.metal", "merge", "index", "/ PAGE + 1;", "/ PAGE + 2;", "attention/bf16"},
	{"attend.metal", "merge", "NaN", "m = most;", "m = m2;", "attention/bf16"},

	{"shortconv.metal", "shortconv", "order", "back = args.taps - 1 - t;", "back = t;", "short conv"},
	{"shortconv.metal", "shortconv", "mask", " && lane[row - back] == lane[row]", "", "short conv"},
	{"shortconv.metal", "shortconv", "index", "(p - back) % args.ring", "(p - back)", "short conv"},
	{"shortconv.metal", "shortconv", "NaN", "float u = 0.0f;", "float u = " + nan + ";", "short conv"},
	{"shortconv.metal", "remember", "mask", "lane[row + args.ring] == lane[row]", "lane[row + args.ring] != lane[row]", "short conv"},
	{"shortconv.metal", "remember", "index", "pos[row] % args.ring", "pos[row]", "short conv"},

	{"route.metal", "route", "order", "w = w / (sum + 1e-6f)", "w = w * (1.0f / (sum + 1e-6f))", "experts/odd"},
	{"route.metal", "route", "barrier", simdBarrier, "", "experts/odd"},
	{"route.metal", "route", "index", "e < args.experts; e += 32) {\n        const float x", "e <= args.experts; e += 32) {\n        const float x", "experts/odd"},
	{"route.metal", "route", "mask", "taken[e] == 0 && ", "", "experts/odd"},
	{"route.metal", "route", "NaN", "return a != a && (b == b || i < j);", "return false;", "experts/odd"},
	{"route.metal", "route", "order", "exp_v1(score[id] - first)", "exp_v1(score[id])", "experts/softmax"},
	{"route.metal", "combine", "order", "acc = fma(weights[pair], y[ulong(pair) * args.cols + i % args.cols], acc)", "acc = acc + weights[pair] * y[ulong(pair) * args.cols + i % args.cols]", "experts/odd"},
	{"route.metal", "combine", "mask", "rank < args.top; ++rank) {\n        const uint pair", "rank + 1 < args.top; ++rank) {\n        const uint pair", "experts/odd"},
	{"route.metal", "combine", "index", "pair = row * args.top + rank", "pair = (row + 1) * args.top + rank", "experts/odd"},
}

// otherFormats are the stampings of matrix kernels that the faults' checks do not run.
var otherFormats = regexp.MustCompile(`(?m)^(FEW_)?(MATMUL|EXPERT)S?\((matmul|expert)_(affine|f16|f32).*\n`)

// needs are the files that the checks of a fault run. The others are left out.
var needs = map[string][]string{
	"add": {"elementwise"}, "bias": {"elementwise"}, "swiglu": {"elementwise"}, "gather": {"elementwise"}, "tap": {"elementwise"},
	"rms norm": {"rmsnorm"}, "embed": {"embed"}, "attention/bf16": {"qkv", "attend"}, "short conv": {"shortconv"},
	"gpu matmul bf16": {"matmul", "embed"}, "gpu experts bf16": {"expert", "route"}, "experts/odd": {"expert", "route"}, "experts/softmax": {"expert", "route"},
}

// TestFaultsAreSeen runs the checks without a fault, where they must pass, plants every fault
// and prints what saw it.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	tools, _ := parse(t)
	for see := range needs {
		if why := (fault{see: see}).plant(t, tools); why != "" {
			t.Fatalf("%s fails without a fault: %s", see, why)
		}
	}
	var table strings.Builder
	for _, f := range faults {
		caught := f.plant(t, tools)
		if caught == "" {
			t.Errorf("%s of %s is not seen: %q for %q", f.kind, f.kernel, f.new, f.old)
			caught = "NOT SEEN"
		}
		fmt.Fprintf(&table, "%-10s %-8s %.150s\n", f.kernel, f.kind, caught)
	}
	t.Logf("%d faults and what saw them\n%s", len(faults), table.String())
}

// plant runs the checks over kernels with the fault and returns the first failure.
func (f fault) plant(t *testing.T, tools *msl.Toolchain) string {
	folder := t.TempDir()
	copyKernels(t, folder, func(name, text string) string {
		if name != f.file {
			return text
		}
		if !strings.Contains(text, f.old) {
			t.Fatalf("%s has no %q", f.file, f.old)
		}
		return strings.Replace(text, f.old, f.new, 1)
	})
	tools = tools.Including(folder)
	var units []*msl.Unit
	for _, file := range needs[f.see] {
		text, err := os.ReadFile(filepath.Join(folder, file+".metal"))
		if err != nil {
			t.Fatal(err)
		}
		u, err := tools.Parse(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, u)
	}
	lib, err := Build(tools, folder, true, units...)
	if err != nil {
		t.Fatalf("%s of %s: %v", f.kind, f.kernel, err)
	}
	device := func(t testing.TB) backend.Device { return open(t, lib, 0) }
	if see, ok := strings.CutPrefix(f.see, "gpu "); ok {
		return gputest.Failure(t, device, see)
	}
	said := &listener{TB: t}
	backendtest.Failures(said, device, f.see)
	return said.first
}

// listener is a test that keeps the first line that is logged.
type listener struct {
	testing.TB
	first string
}

func (*listener) Helper() {}

func (l *listener) Logf(format string, args ...any) {
	if l.first == "" {
		l.first = fmt.Sprintf(format, args...)
	}
}

// copyKernels copies the kernel files through change.
func copyKernels(t *testing.T, folder string, change func(name, text string) string) {
	paths, err := filepath.Glob(filepath.Join(kernelFolder, "*.[mh]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if ext := filepath.Ext(path); ext != ".metal" && ext != ".h" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		changed := otherFormats.ReplaceAllString(change(name, string(text)), "")
		if err := os.WriteFile(filepath.Join(folder, name), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
