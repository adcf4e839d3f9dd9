// RMSNorm of runs of n values. One simdgroup a run, a lane for each of the 32 chains;
// bound by the latency of a chain.
#include "fma.h"

struct RmsnormArgs {
    uint  runs;
    uint  n;    // values of a run, and of gain
    float eps;
};

// dst = (x · r) · gain, r = 1 / sqrt(mean(x²) + eps). [runs, n]; dst may be x.
[[max_total_threads_per_threadgroup(32)]]
kernel void rmsnorm(device const float*   gain [[buffer(0)]],
                    device const float*   x    [[buffer(1)]],
                    device float*         dst  [[buffer(2)]],
                    constant RmsnormArgs& args [[buffer(3)]],
                    uint run  [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]])
{
    const ulong base = ulong(run) * args.n;
    float acc = 0.0f;
#pragma unroll 8
    for (uint k = lane; k < args.n; k += 32) {
        const float v = x[base + k];
        acc = fma(v, v, acc);
    }
    acc = butterfly_sum(acc);
    const float r = 1.0f / precise::sqrt(acc / float(args.n) + args.eps);
    for (uint k = lane; k < args.n; k += 32) {
        dst[base + k] = flush((x[base + k] * r) * gain[k]);
    }
}
