// Rows of an embedding table in any format. One thread a value; bound by memory.
#include "weight.h"

struct EmbedArgs {
    uint n;       // values of dst
    uint cols;    // of the table
    uint units;
    uint runs;    // runs of 32 inputs in a unit
    uint format;  // bits of an affine code, or BF16, F16, F32
    uint scales;  // kind of scale and bias
};

// Code i of lane's run of an affine block.
METAL_FUNC uint affine_at(uint bits, device const uint* block, uint lane, uint i) {
    const uint V = bits % 4 == 0 ? 4 : bits % 2 == 0 ? 2 : 1;
    const uint word = i * bits / 32;
    const uint shift = i * bits % 32;
    uint v = block[(word / V * TILE + lane) * V + word % V] >> shift;
    if (shift + bits > 32) {
        v |= block[((word + 1) / V * TILE + lane) * V + (word + 1) % V] << (32 - shift);
    }
    return v & ((1u << bits) - 1);
}

// dst[i] = table[ids[i]]. [n/cols, cols]
[[max_total_threads_per_threadgroup(256)]]
kernel void embed(device const uint*  codes  [[buffer(0)]],
                  device const uint*  scales [[buffer(1)]],
                  device const uint*  ids    [[buffer(2)]],
                  device float*       dst    [[buffer(3)]],
                  constant EmbedArgs& args   [[buffer(4)]],
                  uint group [[threadgroup_position_in_grid]],
                  uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i >= args.n) {
        return;
    }
    const uint id = ids[i / args.cols];
    const uint k = i % args.cols;
    const uint lane = id % TILE;
    const uint words = (args.format == F16 ? 16 : args.format) * TILE;
    const ulong unit = ulong(id / TILE) * args.units + k / (args.runs * RUN);
    device const uint* block = codes + (unit * args.runs + k / RUN % args.runs) * words;
    if (args.format > 8) {
        dst[i] = dense_at(int(args.format), block, lane, k % RUN);
        return;
    }
    const float2 s = load_scale(scales, unit * TILE + lane, args.scales);
    dst[i] = flush(fma(s.x, float(affine_at(args.format, block, lane, k % RUN)), s.y));
}
