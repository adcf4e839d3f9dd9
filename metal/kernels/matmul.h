// The dot of fma-v1. A threadgroup owns NR tiles of 32 outputs and MT rows of x. A simdgroup
// is a chain, a lane an output: the inputs are the same for all lanes, so that one load of x
// serves 32 outputs, and the weights are read in whole lines. The chain behind an output
// mentions neither MT nor NR.
#include "weight.h"

enum { CHAINS = 8, THREADS = CHAINS * 32 };

// The rows of x that a simdgroup multiplies.
template <int MT>
struct Inputs {
    device const float* x;
    device const float* sums;  // of x over each unit, [row][unit]; unused below 4 rows
    uint cols, units, runs;
    uint row[MT];

    // Lane m brings row m.
    METAL_FUNC void set_rows(uint my_row) {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            row[m] = simd_shuffle(my_row, ushort(m));
        }
    }
};

// What a simdgroup adds up: MT rows of NR outputs a lane. Few rows of an affine weight sum
// their inputs as they go; many would repeat that for every tile.
template <int FORMAT, int MT, int NR>
struct Sums {
    float acc[MT][NR];
    float x[MT];

    METAL_FUNC void clear() {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            x[m] = 0.0f;
#pragma unroll
            for (int r = 0; r < NR; ++r) {
                acc[m][r] = 0.0f;
            }
        }
    }

    // Continues every chain over a run of inputs from k on, w its codes.
    METAL_FUNC void multiply(thread const uint (&w)[NR][run_words(FORMAT)], thread const Inputs<MT>& in, uint k) {
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
                const float4 v = *(device const float4*)(in.x + ulong(in.row[m]) * in.cols + k + uint(i));
                if constexpr (FORMAT <= 8 && MT < 4) {
                    x[m] = x[m] + v.x;
                    x[m] = x[m] + v.y;
                    x[m] = x[m] + v.z;
                    x[m] = x[m] + v.w;
                }
#pragma unroll
                for (int r = 0; r < NR; ++r) {
                    acc[m][r] = fma(c[r][0], v.x, acc[m][r]);
                    acc[m][r] = fma(c[r][1], v.y, acc[m][r]);
                    acc[m][r] = fma(c[r][2], v.z, acc[m][r]);
                    acc[m][r] = fma(c[r][3], v.w, acc[m][r]);
                }
            }
        }
    }

    // The same where cols is no multiple of 32: x is read value by value, up to its end.
    METAL_FUNC void multiply_odd(device const uint* block, thread const Inputs<MT>& in, uint k, uint lane) {
        for (uint i = 0; i < min(uint(RUN), in.cols - k); ++i) {
            const float c = dense_at(FORMAT, block, lane, i);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                acc[m][0] = fma(c, in.x[ulong(in.row[m]) * in.cols + k + i], acc[m][0]);
            }
        }
    }
};

// Where the tiles of a threadgroup lie. Tile number r of it is its min(r, last)th.
struct Tiles {
    device const uint* codes;
    device const uint* scales;
    uint kind;  // of scales
    uint last;
};

template <int FORMAT, int NR>
METAL_FUNC void load_tiles(thread uint (&w)[NR][run_words(FORMAT)], thread const Tiles& t, ulong run, ulong runs, uint lane) {
#pragma unroll
    for (int r = 0; r < NR; ++r) {
        load_run<FORMAT>(w[r], t.codes + (min(uint(r), t.last) * runs + run) * (run_words(FORMAT) * TILE), lane);
    }
}

// Chain c of S of an affine weight: units c, c+S, c+2S, …
template <int FORMAT, int MT, int NR>
METAL_FUNC void affine_chain(thread Sums<FORMAT, MT, NR>& chain, thread const Tiles& t, thread const Inputs<MT>& in, uint c, uint S, uint lane) {
    // What waits for memory most asks for two runs at once.
    constexpr int ASK = MT == 1 && NR == 1 ? 2 : 1;
    const ulong runs = ulong(in.units) * in.runs;  // of a tile
    for (uint u = c; u < in.units; u += S) {
        float2 s[NR];
#pragma unroll
        for (int r = 0; r < NR; ++r) {
            s[r] = load_scale(t.scales, (ulong(min(uint(r), t.last)) * in.units + u) * TILE + lane, t.kind);
        }
        Sums<FORMAT, MT, NR> unit;
        unit.clear();
        for (uint r = 0; r < in.runs; r += ASK) {
            uint w[ASK][NR][run_words(FORMAT)];
#pragma unroll
            for (int a = 0; a < ASK; ++a) {
                load_tiles<FORMAT, NR>(w[a], t, u * in.runs + min(r + uint(a), in.runs - 1), runs, lane);
            }
#pragma unroll
            for (int a = 0; a < ASK; ++a) {
                if (r + uint(a) < in.runs) {
                    unit.multiply(w[a], in, (u * in.runs + r + uint(a)) * RUN);
                }
            }
        }
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            const float sum = MT < 4 ? unit.x[m] : in.sums[ulong(in.row[m]) * in.units + u];
#pragma unroll
            for (int r = 0; r < NR; ++r) {
                chain.acc[m][r] = fma(s[r].x, unit.acc[m][r], chain.acc[m][r]);
                chain.acc[m][r] = fma(s[r].y, sum, chain.acc[m][r]);
            }
        }
    }
}

// The same of a dense weight; ODD where cols is no multiple of 32.
template <int FORMAT, int MT, int NR, bool ODD>
METAL_FUNC void dense_chain(thread Sums<FORMAT, MT, NR>& chain, thread const Tiles& t, thread const Inputs<MT>& in, uint c, uint S, uint lane) {
    const ulong runs = ulong(in.units) * in.runs;  // of a tile
    for (uint u = c; u < in.units; u += S) {
        for (uint run = u * in.runs; run < (u + 1) * in.runs && run * RUN < in.cols; ++run) {
            if constexpr (ODD) {
                chain.multiply_odd(t.codes + ulong(run) * (run_words(FORMAT) * TILE), in, run * RUN, lane);
            } else {
                uint w[NR][run_words(FORMAT)];
                load_tiles<FORMAT, NR>(w, t, run, runs, lane);
                chain.multiply(w, in, run * RUN);
            }
        }
    }
}

// Runs chain c over the tiles from `tile` on, counted over all experts.
template <int FORMAT, int MT, int NR, bool ODD>
METAL_FUNC void run_chain(thread Sums<FORMAT, MT, NR>& chain, thread Tiles& t, thread const Inputs<MT>& in, ulong tile, uint c, uint S, uint lane) {
    chain.clear();
    t.codes += tile * in.units * in.runs * (run_words(FORMAT) * TILE);
    if constexpr (FORMAT <= 8) {
        t.scales += tile * in.units * (t.kind == SCALE_F32 ? 2 * TILE : TILE);
        affine_chain(chain, t, in, c, S, lane);
    } else {
        dense_chain<FORMAT, MT, NR, ODD>(chain, t, in, c, S, lane);
    }
}

// The chains' sums in their fixed order: acc_c + acc_{c+s} for s = S/2, …, 1.
METAL_FUNC float fold(threadgroup const float* part, uint stride, uint S) {
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
