// Matrix products of routed experts: (row, rank) pairs p = row·topK + rank, each with its
// expert's matrix. The dot is matmul's. Few pairs go one by one; more are grouped by expert,
// in blocks of up to 2 or 8 that read a weight once.
#include "matmul.h"

struct GroupArgs {
    uint pairs;
    uint experts;  // at most 1024
    uint size;     // pairs of a block
    uint blocks;   // room, in blocks
};

// Sorts pairs by expert, stably, and cuts each expert's run into blocks {expert, first, count}.
// Blocks past the last get count 0. One threadgroup; a thread owns every 256th expert.
[[max_total_threads_per_threadgroup(256)]]
kernel void group(device const uint*  ids    [[buffer(0)]],
                  device uint*        order  [[buffer(1)]],
                  device uint*        blocks [[buffer(2)]],
                  constant GroupArgs& args   [[buffer(3)]],
                  uint tid [[thread_index_in_threadgroup]])
{
    threadgroup uint first[1024];
    threadgroup uint first_block[1024];
    threadgroup uint total;
    for (uint e = tid; e < args.experts; e += 256) {
        uint n = 0;
        for (uint p = 0; p < args.pairs; ++p) {
            n += ids[p] == e ? 1 : 0;
        }
        first[e] = n;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid == 0) {
        uint pairs = 0;
        uint used = 0;
        for (uint e = 0; e < args.experts; ++e) {
            const uint n = first[e];
            first[e] = pairs;
            first_block[e] = used;
            pairs += n;
            used += (n + args.size - 1) / args.size;
        }
        total = used;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = tid; e < args.experts; e += 256) {
        const uint from = first[e];
        uint at = from;
        for (uint p = 0; p < args.pairs; ++p) {
            if (ids[p] == e) {
                order[at] = p;
                ++at;
            }
        }
        uint b = first_block[e];
        for (uint i = from; i < at; i += args.size) {
            blocks[3 * b] = e;
            blocks[3 * b + 1] = i;
            blocks[3 * b + 2] = min(args.size, at - i);
            ++b;
        }
    }
    for (uint b = total + tid; b < args.blocks; b += 256) {
        blocks[3 * b + 2] = 0;
    }
}

struct ExpertArgs {
    uint outs;    // columns of y
    uint cols;    // inputs
    uint units;
    uint runs;    // runs of 32 inputs in a unit
    uint chains;  // 1, 2, 4 or 8
    uint scales;  // kind of scale and bias
    uint tiles;   // of 32 outputs, of one expert
    uint share;   // pairs that share a row of x: topK, or 1
};

// EACH takes one pair a threadgroup, its expert from ids; else a block of `group`.
#define EXPERT(NAME, FORMAT, MT, NR, EACH, ODD)                                                                       \
    [[max_total_threads_per_threadgroup(256)]]                                                                        \
    kernel void NAME(device const uint*   codes  [[buffer(0)]],                                                       \
                     device const uint*   scales [[buffer(1)]],                                                       \
                     device const float*  x      [[buffer(2)]],                                                       \
                     device const float*  sums   [[buffer(3)]],                                                       \
                     device const uint*   ids    [[buffer(4)]],                                                       \
                     device const uint*   order  [[buffer(5)]],                                                       \
                     device const uint*   blocks [[buffer(6)]],                                                       \
                     device float*        y      [[buffer(7)]],                                                       \
                     constant ExpertArgs& args   [[buffer(8)]],                                                       \
                     uint2 group [[threadgroup_position_in_grid]],                                                    \
                     uint  tid   [[thread_index_in_threadgroup]],                                                     \
                     uint  lane  [[thread_index_in_simdgroup]],                                                       \
                     uint  c     [[simdgroup_index_in_threadgroup]])                                                  \
    {                                                                                                                 \
        threadgroup float part[CHAINS * MT * TILE];                                                                   \
        const uint expert = EACH ? ids[group.y] : blocks[3 * group.y];                                                \
        const uint first = EACH ? group.y : blocks[3 * group.y + 1];                                                  \
        const uint count = EACH ? 1 : blocks[3 * group.y + 2];                                                        \
        if (count == 0) {                                                                                             \
            return;                                                                                                   \
        }                                                                                                             \
        const uint first_tile = group.x * NR;                                                                         \
        Sums<FORMAT, MT, NR> chain;                                                                                   \
        chain.clear();                                                                                                \
        if (c < args.chains) {                                                                                        \
            const uint at = first + min(lane % MT, count - 1);                                                        \
            Inputs<MT> in = {x, sums, args.cols, args.units, args.runs, {}};                                          \
            in.set_rows((EACH ? at : order[at]) / args.share);                                                        \
            Tiles tiles = {codes, scales, args.scales, min(uint(NR), args.tiles - first_tile) - 1};                   \
            run_chain<FORMAT, MT, NR, ODD>(chain, tiles, in, ulong(expert) * args.tiles + first_tile, c, args.chains, lane); \
        }                                                                                                             \
        _Pragma("unroll") for (int r = 0; r < NR; ++r) {                                                              \
            threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
            _Pragma("unroll") for (int m = 0; m < MT; ++m) {                                                          \
                part[(c * MT + uint(m)) * TILE + lane] = chain.acc[m][r];                                             \
            }                                                                                                         \
            threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
            for (uint i = tid; i < MT * TILE; i += THREADS) {                                                         \
                const uint m = i / TILE;                                                                              \
                const uint out = (first_tile + uint(r)) * TILE + i % TILE;                                            \
                if (m < count && out < args.outs) {                                                                   \
                    const uint pair = EACH ? first : order[first + m];                                                \
                    y[ulong(pair) * args.outs + out] = fold(part + i, MT * TILE, args.chains);                        \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
    }

#define EXPERTS(NAME, FORMAT)                      \
    EXPERT(NAME##_1x1, FORMAT, 1, 1, true, false)  \
    EXPERT(NAME##_1x2, FORMAT, 1, 2, true, false)  \
    EXPERT(NAME##_2x4, FORMAT, 2, 4, false, false) \
    EXPERT(NAME##_8x4, FORMAT, 8, 4, false, false)
#define FEW_EXPERTS(NAME, FORMAT)                 \
    EXPERT(NAME##_1x1, FORMAT, 1, 1, true, false) \
    EXPERT(NAME##_2x1, FORMAT, 2, 1, false, false) \
    EXPERT(NAME##_8x1, FORMAT, 8, 1, false, false)

FEW_EXPERTS(expert_affine2, 2)
FEW_EXPERTS(expert_affine3, 3)
EXPERTS(expert_affine4, 4)
FEW_EXPERTS(expert_affine5, 5)
EXPERTS(expert_affine6, 6)
EXPERTS(expert_affine8, 8)
EXPERTS(expert_bf16, BF16)
FEW_EXPERTS(expert_f16, F16)
FEW_EXPERTS(expert_f32, F32)
EXPERT(expert_bf16_odd, BF16, 1, 1, true, true)
EXPERT(expert_f16_odd, F16, 1, 1, true, true)
EXPERT(expert_f32_odd, F32, 1, 1, true, true)
