// y = x·wᵀ for every format. Bound by the weights' bytes
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
        threadgroup float part[CHAINS * MT * TILE];                                                                   \
        const uint first = group.x * NR;                                                                              \
        const uint row0 = group.y * MT;                                                                               \
        Sums<FORMAT, MT, NR> chain;                                                                                   \
        chain.clear();                                                                                                \
        if (c < args.chains) {                                                                                        \
            Inputs<MT> in = {x, sums, args.cols, args.units, args.runs, {}};                                          \
            in.set_rows(min(row0 + lane % MT, args.rows - 1));                                                        \
            Tiles tiles = {codes, scales, args.scales, min(uint(NR), args.tiles - first) - 1};                        \
            run_chain<FORMAT, MT, NR, ODD>(chain, tiles, in, first, c, args.chains, lane);                            \
        }                                                                                                             \
        _Pragma("unroll") for (int r = 0; r < NR; ++r) {                                                              \
            threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
            _Pragma("unroll") for (int m = 0; m < MT; ++m) {                                                          \
                part[(c * MT + uint(m)) * TILE + lane] = chain.acc[m][r];                                             \
            }                                                                                                         \
            threadgroup_barrier(mem_flags::mem_threadgroup);                                                          \
            for (uint i = tid; i < MT * TILE; i += THREADS) {                                                         \
                const uint row = row0 + i / TILE;                                                                     \
                const uint out = (first + uint(r)) * TILE + i % TILE;                                                 \
                if (row < args.rows && out < args.outs) {                                                             \
                    y[ulong(row) * args.outs + out] = fold(part + i, MT * TILE, args.chains);                         \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
    }

// Rows x tiles of a threadgroup: more tiles use a load of x more often, fewer fill the GPU
// when outputs are few. Formats that models rarely have get fewer choices.
#define MATMULS(NAME, FORMAT)               \
    MATMUL(NAME##_1x1, FORMAT, 1, 1, false) \
    MATMUL(NAME##_1x2, FORMAT, 1, 2, false) \
    MATMUL(NAME##_2x4, FORMAT, 2, 4, false) \
    MATMUL(NAME##_4x4, FORMAT, 4, 4, false) \
    MATMUL(NAME##_8x4, FORMAT, 8, 4, false)
#define FEW_MATMULS(NAME, FORMAT)           \
    MATMUL(NAME##_1x1, FORMAT, 1, 1, false) \
    MATMUL(NAME##_4x1, FORMAT, 4, 1, false)

FEW_MATMULS(matmul_affine2, 2)
FEW_MATMULS(matmul_affine3, 3)
MATMULS(matmul_affine4, 4)
FEW_MATMULS(matmul_affine5, 5)
MATMULS(matmul_affine6, 6)
MATMULS(matmul_affine8, 8)
MATMULS(matmul_bf16, BF16)
FEW_MATMULS(matmul_f16, F16)
FEW_MATMULS(matmul_f32, F32)
MATMUL(matmul_bf16_odd, BF16, 4, 1, true)
MATMUL(matmul_f16_odd, F16, 4, 1, true)
MATMUL(matmul_f32_odd, F32, 4, 1, true)
