package check

import (
	"encoding/binary"
	"strings"
	"testing"

	"tfbatch/metal/kernels"
)

// rules are kernels of 64 threads over x [128] and y [128], two threadgroups, with what the
// runtime has to say of each; nothing of the clean ones.
var rules = []struct{ name, body, want string }{
	{"clean", "threadgroup float b[64]; b[i] = x[at]; BARRIER(mem_threadgroup) y[at] = b[63 - i];", ""},
	{"clean_simdgroup", "threadgroup float b[64]; b[i] = x[at]; SIMD_BARRIER(mem_threadgroup) y[at] = b[i ^ 1];", ""},
	{"device_without_second_barrier", "y[at] = x[at]; BARRIER(mem_device) y[at] = y[g * 64 + (63 - i)] * 0.0f + x[at];", "race: read of buffer(1)"},
	{"clean_exchange", "y[at] = simd_shuffle_xor(x[at], 16);", ""},
	{"no_barrier", "threadgroup float b[64]; b[i] = x[at]; y[at] = b[63 - i];", "nobody wrote"},
	{"wrong_flags", "threadgroup float b[64]; b[i] = x[at]; BARRIER(mem_device) y[at] = b[63 - i];", "race: read of threadgroup"},
	{"no_flags", "threadgroup float b[64]; b[i] = x[at]; BARRIER(mem_none) y[at] = b[63 - i];", "race: read of threadgroup"},
	{"no_second_barrier", "threadgroup float b[64]; float s = 0; for (uint k = 0; k < 2; ++k) { b[i] = x[at] + float(k); BARRIER(mem_threadgroup) s += b[63 - i]; } y[at] = s;", "race: read of threadgroup"},
	{"simdgroup_barrier_for_all", "threadgroup float b[64]; b[i] = x[at]; SIMD_BARRIER(mem_threadgroup) y[at] = b[i ^ 32];", "nobody wrote"},
	{"read_past", "y[at] = x[at + 1];", "read of 4 bytes out of bounds: offset 512 of buffer(0)"},
	{"write_past", "y[at + 64] = x[at];", "write of 4 bytes out of bounds"},
	{"read_before", "y[at] = x[int(at) - 1];", "out of bounds: offset -4"},
	{"threadgroup_past", "threadgroup float b[64]; threadgroup float c[64]; threadgroup float* p = b; c[i] = 1.0f; p[i + 32] = 1.0f; BARRIER(mem_threadgroup) y[at] = c[i] + p[i + 32];", "outside every threadgroup variable"},
	{"misaligned", "const float4 v = *(device const float4*)(x + (i & 31) + 1); y[at] = v.x + v.y + v.z + v.w;", "misaligned"},
	{"between_groups", "y[i] = x[at];", "another threadgroup"},
	{"read_between_groups", "y[at] = x[at]; x_out[at] = y[(at + 64) % 128];", "another threadgroup"},
	{"unwritten", "threadgroup float b[64]; if (i < 32) { b[i] = 1.0f; } BARRIER(mem_threadgroup) y[at] = b[i];", "nobody wrote"},
	{"too_much", "threadgroup float b[9000]; b[i] = 1.0f; y[at] = b[i];", "36000 bytes of threadgroup memory, the limit is 32768"},
	{"barrier_for_some", "if (i < 32) { BARRIER(mem_threadgroup) } y[at] = x[at];", "returned while others wait"},
	{"lane_returns", "if (lane == 3) { return; } y[at] = simd_shuffle_xor(x[at], 1);", "diverged"},
	{"exchange_in_a_branch", "float v = x[at]; if (lane < 16) { v = simd_shuffle_xor(v, 1); } y[at] = v;", "diverged"},
	{"no_such_lane", "y[at] = simd_shuffle(x[at], 40);", "shuffle from lane 40"},
	{"index_of_array", "float v[4] = {1, 2, 3, 4}; y[at] = v[i & 7];", "array index out of range"},
	{"division_by_zero", "y[at] = float(7u / (i & 1));", "division by zero"},
	{"float_to_int", "y[at] = float(int(x[at] * 1e20f + 1e20f));", "out of range"},
}

// TestRuntimeKnowsMetalsRules runs each kernel alone.
func TestRuntimeKnowsMetalsRules(t *testing.T) {
	tools, _ := parse(t)
	var text strings.Builder
	text.WriteString("#include <metal_stdlib>\nusing namespace metal;\nstruct RuleArgs { uint n; };\n" +
		"#define BARRIER(F) threadgroup_barrier(mem_flags::F);\n#define SIMD_BARRIER(F) simdgroup_barrier(mem_flags::F);\n")
	for _, r := range rules {
		text.WriteString("[[max_total_threads_per_threadgroup(64)]]\nkernel void " + r.name +
			"(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], device float* x_out [[buffer(2)]], constant RuleArgs& args [[buffer(3)]],\n" +
			"uint g [[threadgroup_position_in_grid]], uint i [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {\n" +
			"const uint at = g * 64 + i;\n" + r.body + "\n}\n")
	}
	unit, err := tools.Parse("rules", text.String())
	if err != nil {
		t.Fatal(err)
	}
	lib, err := Build(tools, t.TempDir(), true, unit)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			err := runRule(t, lib, r.name)
			if r.want == "" && err != nil || r.want != "" && (err == nil || !strings.Contains(err.Error(), r.want)) {
				t.Errorf("got %v, want %q", err, r.want)
			}
		})
	}
}

func runRule(t *testing.T, lib *Library, name string) error {
	d := Open(lib)
	defer d.Close()
	k := &kernels.Kernel{Name: name, Threads: 64, Buffers: make([]kernels.Param, 3), ArgsSize: 4}
	var spans []kernels.Span
	for range k.Buffers {
		m, err := d.Alloc(512)
		if err != nil {
			t.Fatal(err)
		}
		spans = append(spans, kernels.Span{Mem: m, Len: 512})
	}
	return d.Run([]kernels.Launch{{Kernel: k, Grid: [3]uint32{2, 1, 1}, Buffers: spans, Args: binary.LittleEndian.AppendUint32(nil, 128)}})
}
