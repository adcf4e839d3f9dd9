// How a weight lies in memory, for the kernels that read one. kernels/pack.go writes it.
//
// Outputs come in tiles of 32, one a lane. A unit of inputs (a quantisation group, or 64
// inputs of a dense weight) is cut into runs of 32, and a run of a tile is a block: the
// words of 32 codes of 32 outputs, dealt so that the lanes of a simdgroup read neighbouring
// vectors. Scales are [tile][unit][lane].
#include "fma.h"

// A format is its bits for an affine code, and these for the rest.
enum { BF16 = 16, F16 = 17, F32 = 32 };

// Kinds of scale and bias.
enum { SCALE_BF16 = 0, SCALE_F16 = 1, SCALE_F32 = 2 };

enum { TILE = 32, RUN = 32 };

// Words that hold a run of one output.
constexpr int run_words(int format) { return format == F16 ? 16 : format; }

// Words that a lane reads at once.
constexpr int vector_words(int format) { return format % 4 == 0 || format == F16 ? 4 : format % 2 == 0 ? 2 : 1; }

// The field of `bits` bits at `shift` of a word as a float, without a conversion: under the
// exponent of 2^(23-shift) a mantissa bit at `shift` counts one.
METAL_FUNC float field_at(uint w, int bits, int shift) {
    const uint one = uint(150 - shift) << 23;
    return as_type<float>((w & ((1u << bits) - 1) << shift) | one) - as_type<float>(one);
}

// Code i of a run of affine codes: a little-endian stream of bits.
template <int BITS>
METAL_FUNC float affine_code(thread const uint* w, int i) {
    const int word = i * BITS / 32;
    const int shift = i * BITS % 32;
    if (shift + BITS > 32) {
        return field_at(w[word] >> shift | w[word + 1 < BITS ? word + 1 : word] << (32 - shift), BITS, 0);
    }
    if (shift + BITS > 23) {
        return field_at(w[word] >> 9, BITS, shift - 9);
    }
    return field_at(w[word], BITS, shift);
}

// Weight i of a run of a dense format.
template <int FORMAT>
METAL_FUNC float dense_code(thread const uint* w, int i) {
    if (FORMAT == F32) {
        return as_type<float>(w[i]);
    }
    const uint pair = w[i / 2];
    if (FORMAT == F16) {
        return widen_f16(i % 2 == 0 ? pair & 0xFFFFu : pair >> 16);
    }
    return as_type<float>(i % 2 == 0 ? pair << 16 : pair & 0xFFFF0000u);
}

// Weight i of lane's run of a dense block, for the kernels that read values one by one.
METAL_FUNC float dense_at(int format, device const uint* block, uint lane, uint i) {
    const uint word = format == F32 ? i : i / 2;
    const uint w = block[(word / 4 * TILE + lane) * 4 + word % 4];
    if (format == F32) {
        return as_type<float>(w);
    }
    const uint h = i % 2 == 0 ? w & 0xFFFFu : w >> 16;
    return format == F16 ? widen_f16(h) : widen_bf16(h);
}

template <int FORMAT>
METAL_FUNC float code(thread const uint* w, int i) {
    if constexpr (FORMAT <= 8) {
        return affine_code<FORMAT>(w, i);
    } else {
        return dense_code<FORMAT>(w, i);
    }
}

// Reads lane's words of a block.
template <int FORMAT>
METAL_FUNC void load_run(thread uint* w, device const uint* block, uint lane) {
    constexpr int V = vector_words(FORMAT);
#pragma unroll
    for (int v = 0; v < run_words(FORMAT) / V; ++v) {
        device const uint* p = block + (uint(v) * TILE + lane) * V;
        if constexpr (V == 4) {
            const uint4 q = *(device const uint4*)p;
            w[4 * v] = q.x;
            w[4 * v + 1] = q.y;
            w[4 * v + 2] = q.z;
            w[4 * v + 3] = q.w;
        } else if constexpr (V == 2) {
            const uint2 q = *(device const uint2*)p;
            w[2 * v] = q.x;
            w[2 * v + 1] = q.y;
        } else {
            w[v] = *p;
        }
    }
}

// Scale and bias number i.
METAL_FUNC float2 load_scale(device const uint* scales, ulong i, uint kind) {
    float2 s;
    if (kind == SCALE_F32) {
        s.x = as_type<float>(scales[2 * i]);
        s.y = as_type<float>(scales[2 * i + 1]);
        return s;
    }
    const uint pair = scales[i];
    if (kind == SCALE_F16) {
        s.x = widen_f16(pair & 0xFFFFu);
        s.y = widen_f16(pair >> 16);
        return s;
    }
    s.x = widen_bf16(pair);
    s.y = as_type<float>(pair & 0xFFFF0000u);
    return s;
}
