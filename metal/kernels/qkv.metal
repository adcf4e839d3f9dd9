// What happens to queries, keys and values between the projection and attention: the norms
// of q and k, the turn by position, and the write of k and v to their page. A simdgroup a
// (row, head), four a threadgroup; bound by latency.
//
// A page of keys is [head][dim/8][256][8] and one of values [head][256][dim padded to 8], so
// that attention reads both in whole lines.
#include "fma.h"

enum { PAGE = 256, MAX_DIM = 256, HEADS_A_GROUP = 4 };

enum { NORM_Q = 1, NORM_K = 2, INTERLEAVED = 4 };

struct QkvArgs {
    uint  q;       // query heads
    uint  kv;      // key heads, and as many of values
    uint  dim;     // of a head
    uint  padded;  // dim rounded up to a multiple of 8
    uint  flags;
    float eps;
};

// Stores a value of a page as bf16 or f32.
METAL_FUNC void store(device ushort* p, ulong i, float v) { p[i] = ushort(round_bf16(v)); }
METAL_FUNC void store(device float* p, ulong i, float v) { p[i] = v; }

// Norms and turns the head in v, the lanes together.
METAL_FUNC void norm_and_turn(threadgroup float* v, device const float* gain, device const float* rope, bool norm, bool interleaved,
                          uint dim, float eps, uint lane) {
    if (norm) {
        float acc = 0.0f;
        for (uint k = lane; k < dim; k += 32) {
            acc = fma(v[k], v[k], acc);
        }
        acc = butterfly_sum(acc);
        const float r = 1.0f / precise::sqrt(acc / float(dim) + eps);
        for (uint k = lane; k < dim; k += 32) {
            v[k] = flush((v[k] * r) * gain[k]);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    const uint half_dim = dim / 2;
    for (uint i = lane; i < half_dim; i += 32) {
        const uint at_a = interleaved ? 2 * i : i;
        const uint at_b = interleaved ? 2 * i + 1 : i + half_dim;
        const float a = v[at_a];
        const float b = v[at_b];
        const float c = rope[i];
        const float s = rope[half_dim + i];
        v[at_a] = flush(fma(-b, s, a * c));
        v[at_b] = flush(fma(a, s, b * c));
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

// qkv is [rows, (q + 2·kv)·dim], rope [positions, dim], pages the page of each row; queries
// [rows, q·dim].
#define QKV(NAME, T)                                                                                  \
    [[max_total_threads_per_threadgroup(128)]]                                                        \
    kernel void NAME(device const float* qkv     [[buffer(0)]],                                       \
                     device const float* q_norm  [[buffer(1)]],                                       \
                     device const float* k_norm  [[buffer(2)]],                                       \
                     device const float* rope    [[buffer(3)]],                                       \
                     device const uint*  pos     [[buffer(4)]],                                       \
                     device const uint*  pages   [[buffer(5)]],                                       \
                     device float*       queries [[buffer(6)]],                                       \
                     device T*           keys    [[buffer(7)]],                                       \
                     device T*           values  [[buffer(8)]],                                       \
                     constant QkvArgs&   args    [[buffer(9)]],                                       \
                     uint2 group [[threadgroup_position_in_grid]],                                    \
                     uint  lane  [[thread_index_in_simdgroup]],                                       \
                     uint  sg    [[simdgroup_index_in_threadgroup]])                                  \
    {                                                                                                 \
        threadgroup float heads[HEADS_A_GROUP][MAX_DIM];                                              \
        const uint head = group.x * HEADS_A_GROUP + sg;                                               \
        const uint row = group.y;                                                                     \
        const uint all = args.q + 2 * args.kv;                                                        \
        if (head >= all) {                                                                            \
            return;                                                                                   \
        }                                                                                             \
        threadgroup float* v = heads[sg];                                                             \
        for (uint k = lane; k < args.dim; k += 32) {                                                  \
            v[k] = qkv[(ulong(row) * all + head) * args.dim + k];                                     \
        }                                                                                             \
        simdgroup_barrier(mem_flags::mem_threadgroup);                                                \
        const bool is_q = head < args.q;                                                              \
        if (head < args.q + args.kv) {                                                                \
            norm_and_turn(v, is_q ? q_norm : k_norm, rope + ulong(pos[row]) * args.dim,               \
                          (args.flags & (is_q ? NORM_Q : NORM_K)) != 0, (args.flags & INTERLEAVED) != 0, \
                          args.dim, args.eps, lane);                                                  \
        }                                                                                             \
        const uint slot = pos[row] % PAGE;                                                            \
        const uint kv_head = is_q ? 0 : (head - args.q) % args.kv;                                    \
        const ulong page = (ulong(pages[row]) * args.kv + kv_head) * args.padded * PAGE;              \
        for (uint k = lane; k < args.dim; k += 32) {                                                  \
            if (is_q) {                                                                               \
                queries[(ulong(row) * args.q + head) * args.dim + k] = v[k];                          \
            } else if (head < args.q + args.kv) {                                                     \
                store(keys, page + (k / 8 * PAGE + slot) * 8 + k % 8, v[k]);                          \
            } else {                                                                                  \
                store(values, page + slot * args.padded + k, v[k]);                                   \
            }                                                                                         \
        }                                                                                             \
    }

QKV(qkv_bf16, ushort)
QKV(qkv_f32, float)
