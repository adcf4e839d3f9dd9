// The choice of experts. One simdgroup a row; bound by latency.
#include "fma.h"

enum { MAX_EXPERTS = 1024 };

struct RouteArgs {
    uint  experts;
    uint  top;
    uint  has_bias;
    uint  softmax;
    uint  normalize;
    float scale;
};

// Whether expert i with value a comes before expert j with value b. A NaN is above all, so
// that it shows in the output.
METAL_FUNC bool before(float a, uint i, float b, uint j) {
    if (a != a || b != b) {
        return a != a && (b == b || i < j);
    }
    return a > b || (a == b && i < j);
}

// ids and weights [rows, top] from logits [rows, experts]: the largest of score + bias, ties
// to the lower id, with the unbiased scores as weights. With softmax the largest logits, whose
// scores are seen from the first of them.
[[max_total_threads_per_threadgroup(32)]]
kernel void route(device const float* logits  [[buffer(0)]],
                  device const float* bias    [[buffer(1)]],
                  device uint*        ids     [[buffer(2)]],
                  device float*       weights [[buffer(3)]],
                  constant RouteArgs& args    [[buffer(4)]],
                  uint row  [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float score[MAX_EXPERTS];
    threadgroup float choice[MAX_EXPERTS];
    threadgroup uint taken[MAX_EXPERTS];
    for (uint e = lane; e < args.experts; e += 32) {
        const float x = logits[ulong(row) * args.experts + e];
        score[e] = args.softmax != 0 ? x : sigmoid_v1(x);
        choice[e] = args.has_bias != 0 ? score[e] + bias[e] : score[e];
        taken[e] = 0;
    }
    // From here on a lane reads its own choices and any score.
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0.0f;
    float first = 0.0f;
    for (uint rank = 0; rank < args.top; ++rank) {
        float best = 0.0f;
        uint id = args.experts;
        for (uint e = lane; e < args.experts; e += 32) {
            if (taken[e] == 0 && (id == args.experts || before(choice[e], e, best, id))) {
                best = choice[e];
                id = e;
            }
        }
        for (ushort s = 16; s > 0; s >>= 1) {
            const float other = simd_shuffle_xor(best, s);
            const uint other_id = simd_shuffle_xor(id, s);
            if (other_id != args.experts && (id == args.experts || before(other, other_id, best, id))) {
                best = other;
                id = other_id;
            }
        }
        if (id % 32 == lane) {
            taken[id] = 1;
        }
        if (rank == 0) {
            first = score[id];
        }
        const float s = args.softmax != 0 ? exp_v1(score[id] - first) : score[id];
        sum = sum + s;
        if (lane == 0) {
            ids[row * args.top + rank] = id;
            weights[row * args.top + rank] = s;
        }
    }
    if (lane != 0) {
        return;
    }
    if (args.softmax != 0 && args.normalize == 0) {
        sum = 0.0f;
        for (uint e = 0; e < args.experts; ++e) {
            sum = sum + exp_v1(score[e] - first);
        }
    }
    for (uint rank = 0; rank < args.top; ++rank) {
        float w = weights[row * args.top + rank];
        if (args.softmax != 0) {
            w = w / sum;
        } else if (args.normalize != 0) {
            w = w / (sum + 1e-6f);
        }
        weights[row * args.top + rank] = flush(w * args.scale);
    }
}

struct CombineArgs {
    uint n;     // values of dst
    uint cols;
    uint top;
};

// dst[i] = Σ over rank of fma(weight, y[i·top+rank], acc), from 0. [n/cols, cols]
[[max_total_threads_per_threadgroup(256)]]
kernel void combine(device const float*   y       [[buffer(0)]],
                    device const float*   weights [[buffer(1)]],
                    device float*         dst     [[buffer(2)]],
                    constant CombineArgs& args    [[buffer(3)]],
                    uint group [[threadgroup_position_in_grid]],
                    uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i >= args.n) {
        return;
    }
    const uint row = i / args.cols;
    float acc = 0.0f;
    for (uint rank = 0; rank < args.top; ++rank) {
        const uint pair = row * args.top + rank;
        acc = fma(weights[pair], y[ulong(pair) * args.cols + i % args.cols], acc);
    }
    dst[i] = flush(acc);
}
