// The arithmetic fma-v1 (internal/backend/ARITHMETIC.md) in Metal: what every kernel file
// includes first. The host puts this text in the place of the include, because Metal's
// run-time compiler reads no files.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#endif
using namespace metal;

METAL_FUNC float exp_v1(float x) {
    if (x < -87.0f) {
        x = -87.0f;
    }
    if (x > 88.0f) {
        x = 88.0f;
    }
    const float n = rint(x * 1.44269504f);
    float r = fma(n, -0.693145752f, x);
    r = fma(n, -1.42860677e-6f, r);
    float p = 1.0f / 720.0f;
    p = fma(p, r, 1.0f / 120.0f);
    p = fma(p, r, 1.0f / 24.0f);
    p = fma(p, r, 1.0f / 6.0f);
    p = fma(p, r, 0.5f);
    p = fma(p, r, 1.0f);
    p = fma(p, r, 1.0f);
    if (p != p) {
        return p;  // n is no number either
    }
    return p * as_type<float>(uint(int(n) + 127) << 23);
}

METAL_FUNC float sigmoid_v1(float x) { return 1.0f / (1.0f + exp_v1(-x)); }
METAL_FUNC float silu_v1(float x) { return x / (1.0f + exp_v1(-x)); }

// What an operator writes is never subnormal: a device may flush those, so all do.
METAL_FUNC float flush(float x) {
    const uint bits = as_type<uint>(x);
    return (bits & 0x7F800000u) == 0 ? as_type<float>(bits & 0x80000000u) : x;
}

METAL_FUNC float widen_bf16(uint h) { return as_type<float>(h << 16); }

// By its bits: a device may flush the subnormals of half, and here they count. Under the
// exponent of 2^-14 the mantissa of a subnormal counts what it should.
METAL_FUNC float widen_f16(uint h) {
    const uint magnitude = h & 0x7FFFu;
    const uint wide = magnitude << 13;
    const float subnormal = as_type<float>(wide | 113u << 23) - 0x1p-14f;
    const uint normal = magnitude < 0x7C00u ? wide + (112u << 23) : wide | 0x7F800000u;
    return as_type<float>((magnitude < 0x400u ? as_type<uint>(subnormal) : normal) | (h & 0x8000u) << 16);
}

METAL_FUNC uint round_bf16(float x) {
    const uint bits = as_type<uint>(x);
    if (x != x) {
        return bits >> 16 | 0x40u;
    }
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

// The sum of 32 lanes, the same in each: acc_j + acc_{j xor s} for s = 16, 8, 4, 2, 1.
METAL_FUNC float butterfly_sum(float v) {
    for (ushort s = 16; s > 0; s >>= 1) {
        v = v + simd_shuffle_xor(v, s);
    }
    return v;
}
