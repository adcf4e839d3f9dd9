// RMSNorm of runs of n values. One threadgroup a run; the 32 chains are the lanes of its
// first simdgroup, and the others bring values and scale them. Bound by the latency of a chain.
#include "fma.h"

struct RmsnormArgs {
    uint  runs;
    uint  n;    // values of a run, and of gain
    float eps;
};

enum { STAGE = 4096, THREADS = 256 };

// dst = (x · r) · gain, r = 1 / sqrt(mean(x²) + eps). [runs, n]; dst may be x.
[[max_total_threads_per_threadgroup(256)]]
kernel void rmsnorm(device const float*   gain [[buffer(0)]],
                    device const float*   x    [[buffer(1)]],
                    device float*         dst  [[buffer(2)]],
                    constant RmsnormArgs& args [[buffer(3)]],
                    uint run  [[threadgroup_position_in_grid]],
                    uint tid  [[thread_index_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint sg   [[simdgroup_index_in_threadgroup]])
{
    threadgroup float stage[STAGE];
    threadgroup float scale[1];
    const ulong base = ulong(run) * args.n;
    float acc = 0.0f;
    for (uint from = 0; from < args.n; from += STAGE) {
        const uint count = min(uint(STAGE), args.n - from);
        for (uint k = tid; k < count; k += THREADS) {
            stage[k] = x[base + from + k];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (sg == 0) {
#pragma unroll 8
            for (uint k = lane; k < count; k += 32) {
                acc = fma(stage[k], stage[k], acc);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (sg == 0) {
        acc = butterfly_sum(acc);
        if (lane == 0) {
            scale[0] = 1.0f / precise::sqrt(acc / float(args.n) + args.eps);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float r = scale[0];
    for (uint k = tid; k < args.n; k += THREADS) {
        dst[base + k] = flush((x[base + k] * r) * gain[k]);
    }
}
