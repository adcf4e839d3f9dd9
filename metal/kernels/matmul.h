// The dot of fma-v1. A threadgroup owns NR tiles of 32 outputs and MT rows of x. A simdgroup
// is a chain, a lane an output: the inputs are the same for all lanes, so that one load of x
// serves 32 outputs, and the weights are read in whole lines. The chain behind an output
// mentions neither MT nor NR.
#include "weight.h"

enum { CHAINS = 8, THREADS = CHAINS * 32 };

// One pass over a weight by one simdgroup.
template <int FORMAT, int MT, int NR>
struct Chain {
    float acc[MT][NR];

    void clear() {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int r = 0; r < NR; ++r) {
                acc[m][r] = 0.0f;
            }
        }
    }

    // Continues the chains `to` over a run of inputs that begins at k.
    static void multiply(thread float (&to)[MT][NR], device const uint* block, ulong tile_words, device const float* x,
                         thread const uint* row, uint cols, uint k, uint last, uint lane) {
        uint w[NR][run_words(FORMAT)];
#pragma unroll
        for (int r = 0; r < NR; ++r) {
            load_run<FORMAT>(w[r], block + (uint(r) < last ? uint(r) : last) * tile_words, lane);
        }
#pragma unroll
        for (int i = 0; i < RUN; i += 4) {
            float c[NR][4];
#pragma unroll
            for (int r = 0; r < NR; ++r) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    c[r][j] = code<FORMAT>(w[r], i + j);
                }
            }
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                const float4 v = *(device const float4*)(x + ulong(row[m]) * cols + k + uint(i));
#pragma unroll
                for (int r = 0; r < NR; ++r) {
                    to[m][r] = fma(c[r][0], v.x, to[m][r]);
                    to[m][r] = fma(c[r][1], v.y, to[m][r]);
                    to[m][r] = fma(c[r][2], v.z, to[m][r]);
                    to[m][r] = fma(c[r][3], v.w, to[m][r]);
                }
            }
        }
    }

    // The same where cols is no multiple of 32: x is read value by value, up to its end.
    static void multiply_odd(thread float (&to)[MT][NR], device const uint* block, device const float* x,
                             thread const uint* row, uint cols, uint k, uint lane) {
        for (uint i = 0; i < min(uint(RUN), cols - k); ++i) {
            const float c = dense_at(FORMAT, block, lane, i);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                to[m][0] = fma(c, x[ulong(row[m]) * cols + k + i], to[m][0]);
            }
        }
    }
};

// Chain c of a tile: units c, c+S, c+2S, …
template <int FORMAT, int MT, int NR, bool ODD>
inline void run_chain(thread Chain<FORMAT, MT, NR>& chain, device const uint* codes, device const uint* scales, device const float* x,
                      uint my_row, ulong tile, uint last, uint c, uint lane, uint cols, uint units, uint runs, uint S, uint kind) {
    constexpr uint BLOCK = run_words(FORMAT) * TILE;
    const ulong tile_words = ulong(units) * runs * BLOCK;
    uint row[MT];
#pragma unroll
    for (int m = 0; m < MT; ++m) {
        row[m] = simd_shuffle(my_row, ushort(m));
    }
    // Sums of x: lane l takes unit l / MT of the next 32 / MT of this chain, row l % MT.
    constexpr uint AHEAD = 32 / MT;
    for (uint first = c; first < units; first += AHEAD * S) {
        float sum = 0.0f;
        if constexpr (FORMAT <= 8) {
            const uint u = first + lane / MT * S;
            if (u < units) {
                device const float* from = x + ulong(my_row) * cols + u * runs * RUN;
                for (uint k = 0; k < runs * RUN; k += 4) {
                    const float4 v = *(device const float4*)(from + k);
                    sum = sum + v.x;
                    sum = sum + v.y;
                    sum = sum + v.z;
                    sum = sum + v.w;
                }
            }
        }
        for (uint j = 0; j < AHEAD; ++j) {
            const uint u = first + j * S;
            if (u >= units) {
                break;
            }
            device const uint* block = codes + tile * tile_words + ulong(u) * runs * BLOCK;
            if constexpr (FORMAT <= 8) {
                Chain<FORMAT, MT, NR> part;
                part.clear();
                for (uint r = 0; r < runs; ++r) {
                    part.multiply(part.acc, block + r * BLOCK, tile_words, x, row, cols, (u * runs + r) * RUN, last, lane);
                }
#pragma unroll
                for (int r = 0; r < NR; ++r) {
                    const ulong at = ((tile + min(uint(r), last)) * units + u) * TILE + lane;
                    const float2 s = load_scale(scales, at, kind);
#pragma unroll
                    for (int m = 0; m < MT; ++m) {
                        chain.acc[m][r] = fma(s.x, part.acc[m][r], chain.acc[m][r]);
                        chain.acc[m][r] = fma(s.y, simd_shuffle(sum, ushort(j * MT + uint(m))), chain.acc[m][r]);
                    }
                }
            } else {
                for (uint r = 0; r < runs && (u * runs + r) * RUN < cols; ++r) {
                    if constexpr (ODD) {
                        chain.multiply_odd(chain.acc, block + r * BLOCK, x, row, cols, (u * runs + r) * RUN, lane);
                    } else {
                        chain.multiply(chain.acc, block + r * BLOCK, tile_words, x, row, cols, (u * runs + r) * RUN, last, lane);
                    }
                }
            }
        }
    }
}

// The chains' sums in their fixed order: acc_c + acc_{c+s} for s = S/2, …, 1.
inline float fold(threadgroup const float* part, uint stride, uint S) {
    float v[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) {
        v[c] = uint(c) < S ? part[uint(c) * stride] : 0.0f;
    }
    if (S >= 8) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            v[c] = v[c] + v[c + 4];
        }
    }
    if (S >= 4) {
        v[0] = v[0] + v[2];
        v[1] = v[1] + v[3];
    }
    if (S >= 2) {
        v[0] = v[0] + v[1];
    }
    return flush(v[0]);
}
