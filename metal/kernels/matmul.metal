// y = x·wᵀ for every format, in variants of 1, 2, 4 and 8 rows. Bound by the weights' bytes
// at few rows, by fma at many.
#include "matmul.h"

struct UnitsumsArgs {
    uint n;      // rows · units
    uint units;
    uint width;  // inputs of a unit
};

// sums [rows][units] of x [rows, units·width], each ascending. One thread a sum; bound by the
// latency of a chain.
[[max_total_threads_per_threadgroup(64)]]
kernel void unit_sums(device const float*    x    [[buffer(0)]],
                      device float*          sums [[buffer(1)]],
                      constant UnitsumsArgs& args [[buffer(2)]],
                      uint group [[threadgroup_position_in_grid]],
                      uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 64 + tid;
    if (i >= args.n) {
        return;
    }
    device const float4* from = (device const float4*)(x + ulong(i) * args.width);
    float sum = 0.0f;
#pragma unroll 8
    for (uint k = 0; k < args.width / 4; ++k) {
        const float4 v = from[k];
        sum = sum + v.x;
        sum = sum + v.y;
        sum = sum + v.z;
        sum = sum + v.w;
    }
    sums[i] = sum;
}

struct MatmulArgs {
    uint rows;    // of x and y
    uint outs;    // columns of y
    uint cols;    // inputs
    uint units;
    uint runs;    // runs of 32 inputs in a unit
    uint chains;  // 1, 2, 4 or 8
    uint scales;  // kind of scale and bias
    uint tiles;   // of 32 outputs
};

#define MATMUL(NAME, FORMAT, MT, NR, ODD)                                                                             \
    [[max_total_threads_per_threadgroup(256)]]                                                                        \
    kernel void NAME(device const uint*   codes  [[buffer(0)]],                                                       \
                     device const uint*   scales [[buffer(1)]],                                                       \
                     device const float*  x      [[buffer(2)]],                                                       \
                     device const float*  sums   [[buffer(3)]],                                                       \
                     device float*        y      [[buffer(4)]],                                                       \
                     constant MatmulArgs& args   [[buffer(5)]],                                                       \
                     uint2 group [[threadgroup_position_in_grid]],                                                    \
                     uint  tid   [[thread_index_in_threadgroup]],                                                     \
                     uint  lane  [[thread_index_in_simdgroup]],                                                       \
                     uint  c     [[simdgroup_index_in_threadgroup]])                                                  \
    {                                                                                                                 \
        threadgroup float part[CHAINS * MT * NR * TILE];                                                              \
        const uint first = group.x * NR;                                                                              \
        const uint row0 = group.y * MT;                                                                               \
        if (c < args.chains) {                                                                                        \
            Inputs<MT> in = {x, sums, args.cols, args.units, args.runs, {}};                                          \
            in.set_rows(min(row0 + lane % MT, args.rows - 1));                                                        \
            Tiles tiles = {codes, scales, args.scales, min(uint(NR), args.tiles - first) - 1};                        \
            Sums<FORMAT, MT, NR> chain;                                                                               \
            run_chain<FORMAT, MT, NR, ODD>(chain, tiles, in, first, c, args.chains, lane);                            \
            _Pragma("unroll") for (int i = 0; i < MT * NR; ++i) {                                                     \
                part[(c * MT * NR + uint(i)) * TILE + lane] = chain.acc[i / NR][i % NR];                              \
            }                                                                                                         \
        }                                                                                                             \
        threadgroup_barrier(mem_flags::mem_threadgroup);                                                              \
        for (uint i = tid; i < MT * NR * TILE; i += THREADS) {                                                        \
            const uint row = row0 + i / (NR * TILE);                                                                  \
            const uint out = first * TILE + i % (NR * TILE);                                                          \
            if (row < args.rows && out < args.outs) {                                                                 \
                y[ulong(row) * args.outs + out] = fold(part + i, MT * NR * TILE, args.chains);                        \
            }                                                                                                         \
        }                                                                                                             \
    }

#define MATMULS(NAME, FORMAT)          \
    MATMUL(NAME##_1, FORMAT, 1, 1, false) \
    MATMUL(NAME##_2, FORMAT, 2, 1, false) \
    MATMUL(NAME##_4, FORMAT, 4, 1, false) \
    MATMUL(NAME##_8, FORMAT, 8, 2, false)

MATMULS(matmul_affine2, 2)
MATMULS(matmul_affine3, 3)
MATMULS(matmul_affine4, 4)
MATMULS(matmul_affine5, 5)
MATMULS(matmul_affine6, 6)
MATMULS(matmul_affine8, 8)
MATMULS(matmul_bf16, BF16)
// Half takes too many registers to unpack two tiles at once.
MATMUL(matmul_f16_1, F16, 1, 1, false)
MATMUL(matmul_f16_2, F16, 2, 1, false)
MATMUL(matmul_f16_4, F16, 4, 1, false)
MATMUL(matmul_f16_8, F16, 8, 1, false)
MATMULS(matmul_f32, F32)
MATMUL(matmul_bf16_odd, BF16, 4, 1, true)
MATMUL(matmul_f16_odd, F16, 4, 1, true)
MATMUL(matmul_f32_odd, F32, 4, 1, true)
