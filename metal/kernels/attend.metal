// Attention of one query row over its lane's pages. `attend` makes the (max, sum, output) of
// one chunk of 256 keys, a page, for up to four heads that share it; `merge` folds the chunks
// in ascending order. A chunk depends on nothing but its keys and its query, so rows that
// travel together do not change one another. Bound by the bytes of keys and values.
#include "fma.h"

enum { PAGE = 256, MAX_DIM = 256, SHARED_HEADS = 4, SIMDGROUPS = PAGE / 32 };

struct AttendArgs {
    uint  heads;   // query heads
    uint  kv;      // key heads
    uint  dim;     // of a head
    uint  padded;  // dim rounded up to a multiple of 8
    uint  chunks;  // room for chunks of a row in part
    float scale;
};

// Eight neighbouring values of a page.
METAL_FUNC void load8(thread float* v, device const ushort* p) {
    const uint4 q = *(device const uint4*)p;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        v[2 * i] = as_type<float>(q[i] << 16);
        v[2 * i + 1] = as_type<float>(q[i] & 0xFFFF0000u);
    }
}
METAL_FUNC void load8(thread float* v, device const float* p) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float4 q = ((device const float4*)p)[i];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            v[4 * i + j] = q[j];
        }
    }
}
METAL_FUNC float load1(device const ushort* p) { return widen_bf16(*p); }
METAL_FUNC float load1(device const float* p) { return *p; }

// Scores of one key against the heads in q, ascending in dim.
template <typename T>
METAL_FUNC void score(thread float (&s)[SHARED_HEADS], device const T* key, threadgroup const float* q, uint dim, float scale) {
#pragma unroll
    for (int h = 0; h < SHARED_HEADS; ++h) {
        s[h] = 0.0f;
    }
    for (uint d8 = 0; d8 < dim; d8 += 8) {
        float k[8];
        load8(k, key + ulong(d8) * PAGE);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (d8 + uint(i) < dim) {
#pragma unroll
                for (int h = 0; h < SHARED_HEADS; ++h) {
                    s[h] = fma(q[uint(h) * MAX_DIM + d8 + uint(i)], k[i], s[h]);
                }
            }
        }
    }
#pragma unroll
    for (int h = 0; h < SHARED_HEADS; ++h) {
        s[h] = s[h] * scale;
    }
}

// table is the first entry of each row's lane in pages; part [rows, heads, chunks, 2 + dim].
// Grid: chunk, block of heads, row.
#define ATTEND(NAME, T)                                                                                     \
    [[max_total_threads_per_threadgroup(256)]]                                                              \
    kernel void NAME(device const float*  queries [[buffer(0)]],                                            \
                     device const T*      keys    [[buffer(1)]],                                            \
                     device const T*      values  [[buffer(2)]],                                            \
                     device const uint*   pos     [[buffer(3)]],                                            \
                     device const uint*   table   [[buffer(4)]],                                            \
                     device const uint*   pages   [[buffer(5)]],                                            \
                     device float*        part    [[buffer(6)]],                                            \
                     constant AttendArgs& args    [[buffer(7)]],                                            \
                     uint3 group [[threadgroup_position_in_grid]],                                          \
                     uint  tid   [[thread_index_in_threadgroup]],                                           \
                     uint  lane  [[thread_index_in_simdgroup]],                                             \
                     uint  sg    [[simdgroup_index_in_threadgroup]])                                        \
    {                                                                                                       \
        threadgroup float q[SHARED_HEADS * MAX_DIM];                                                        \
        threadgroup float p[SHARED_HEADS][PAGE];                                                            \
        threadgroup float most[SHARED_HEADS][SIMDGROUPS];                                                   \
        const uint row = group.z;                                                                           \
        const uint first = group.x * PAGE;                                                                  \
        if (first > pos[row]) {                                                                             \
            return;                                                                                         \
        }                                                                                                   \
        const uint count = min(uint(PAGE), pos[row] + 1 - first);                                           \
        const uint per_kv = args.heads / args.kv;                                                           \
        const uint blocks = (per_kv + SHARED_HEADS - 1) / SHARED_HEADS;                                     \
        const uint kv_head = group.y / blocks;                                                              \
        const uint in_kv = group.y % blocks * SHARED_HEADS;                                                 \
        const uint head0 = kv_head * per_kv + in_kv;                                                        \
        const uint heads = min(uint(SHARED_HEADS), per_kv - in_kv);                                         \
        const ulong page = (ulong(pages[table[row] + group.x]) * args.kv + kv_head) * args.padded * PAGE;   \
        for (uint i = tid; i < SHARED_HEADS * args.dim; i += PAGE) {                                        \
            const uint h = i / args.dim;                                                                    \
            const uint d = i % args.dim;                                                                    \
            q[h * MAX_DIM + d] = h < heads ? queries[(ulong(row) * args.heads + head0 + h) * args.dim + d] : 0.0f; \
        }                                                                                                   \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                    \
        float s[SHARED_HEADS];                                                                              \
        if (tid < count) {                                                                                  \
            score(s, keys + page + tid * 8, q, args.dim, args.scale);                                       \
        } else {                                                                                            \
            _Pragma("unroll") for (int h = 0; h < SHARED_HEADS; ++h) {                                      \
                s[h] = as_type<float>(0xFF800000u);                                                         \
            }                                                                                               \
        }                                                                                                   \
        _Pragma("unroll") for (int h = 0; h < SHARED_HEADS; ++h) {                                          \
            float m = s[h];                                                                                 \
            for (ushort x = 16; x > 0; x >>= 1) {                                                           \
                const float other = simd_shuffle_xor(m, x);                                                 \
                m = other > m ? other : m;                                                                  \
            }                                                                                               \
            if (lane == 0) {                                                                                \
                most[h][sg] = m;                                                                            \
            }                                                                                               \
        }                                                                                                   \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                    \
        float m[SHARED_HEADS];                                                                              \
        _Pragma("unroll") for (int h = 0; h < SHARED_HEADS; ++h) {                                          \
            m[h] = most[h][0];                                                                              \
            for (uint i = 1; i < SIMDGROUPS; ++i) {                                                         \
                m[h] = most[h][i] > m[h] ? most[h][i] : m[h];                                               \
            }                                                                                               \
            p[h][tid] = exp_v1(s[h] - m[h]);                                                                \
        }                                                                                                   \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                    \
        for (uint i = tid; i < heads * args.dim; i += PAGE) {                                               \
            const uint h = i / args.dim;                                                                    \
            const uint d = i % args.dim;                                                                    \
            device const T* v = values + page + d;                                                          \
            float l = 0.0f;                                                                                 \
            float o = 0.0f;                                                                                 \
            _Pragma("unroll 16") for (uint k = 0; k < count; ++k) {                                         \
                l = l + p[h][k];                                                                            \
                o = fma(p[h][k], load1(v + k * args.padded), o);                                            \
            }                                                                                               \
            device float* to = part + ((ulong(row) * args.heads + head0 + h) * args.chunks + group.x) * (2 + args.dim); \
            if (d == 0) {                                                                                   \
                to[0] = h == 0 ? m[0] : h == 1 ? m[1] : h == 2 ? m[2] : m[3];                               \
                to[1] = l;                                                                                  \
            }                                                                                               \
            to[2 + d] = o;                                                                                  \
        }                                                                                                   \
    }

ATTEND(attend_bf16, ushort)
ATTEND(attend_f32, float)

struct MergeArgs {
    uint n;       // values of dst
    uint heads;   // query heads
    uint dim;
    uint chunks;  // room for chunks of a row in part
};

// dst [rows, heads·dim] from part. One thread a value.
[[max_total_threads_per_threadgroup(256)]]
kernel void merge(device const float* part [[buffer(0)]],
                  device const uint*  pos  [[buffer(1)]],
                  device float*       dst  [[buffer(2)]],
                  constant MergeArgs& args [[buffer(3)]],
                  uint group [[threadgroup_position_in_grid]],
                  uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i >= args.n) {
        return;
    }
    const uint stride = 2 + args.dim;
    device const float* from = part + ulong(i / args.dim) * args.chunks * stride;
    const uint d = 2 + i % args.dim;
    const uint chunks = pos[i / (args.heads * args.dim)] / PAGE + 1;
    float m = from[0];
    float l = from[1];
    float o = from[d];
    for (uint c = 1; c < chunks; ++c) {
        from += stride;
        const float m2 = from[0];
        const float most = m2 > m ? m2 : m;
        const float a = exp_v1(m - most);
        const float b = exp_v1(m2 - most);
        l = fma(l, a, from[1] * b);
        o = fma(o, a, from[d] * b);
        m = most;
    }
    dst[i] = flush(o / l);
}
