// LFM2's gated short convolution. State is a ring of u = B·x by position, so a rollback is
// no work. `shortconv` reads the ring only before a lane's first row and computes the rest
// from the batch; `remember` then stores the newest rows. One thread a value; bound by memory.
#include "fma.h"

struct ShortconvArgs {
    uint n;         // values of dst
    uint channels;
    uint taps;
    uint ring;      // positions
    uint has_bias;
};

// dst [rows, channels] from bcx [rows, 3·channels], w [channels, taps], ring [lane][position][channel].
[[max_total_threads_per_threadgroup(256)]]
kernel void shortconv(device const float*     bcx  [[buffer(0)]],
                      device const float*     w    [[buffer(1)]],
                      device const float*     bias [[buffer(2)]],
                      device const float*     ring [[buffer(3)]],
                      device const uint*      lane [[buffer(4)]],
                      device const uint*      pos  [[buffer(5)]],
                      device float*           dst  [[buffer(6)]],
                      constant ShortconvArgs& args [[buffer(7)]],
                      uint group [[threadgroup_position_in_grid]],
                      uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i >= args.n) {
        return;
    }
    const uint row = i / args.channels;
    const uint ch = i % args.channels;
    const uint p = pos[row];
    float y = 0.0f;
    for (uint t = 0; t < args.taps; ++t) {
        const uint back = args.taps - 1 - t;
        float u = 0.0f;
        if (back <= row && lane[row - back] == lane[row]) {
            device const float* from = bcx + ulong(row - back) * 3 * args.channels + ch;
            u = flush(from[0] * from[2 * args.channels]);
        } else if (back <= p) {
            u = ring[(ulong(lane[row]) * args.ring + (p - back) % args.ring) * args.channels + ch];
        }
        y = fma(w[ch * args.taps + t], u, y);
    }
    if (args.has_bias != 0) {
        y = flush(y + bias[ch]);
    }
    dst[i] = flush(y * bcx[ulong(row) * 3 * args.channels + args.channels + ch]);
}

struct RememberArgs {
    uint n;         // rows · channels
    uint rows;
    uint channels;
    uint ring;      // positions
};

// Stores u of the last `ring` rows of each lane.
[[max_total_threads_per_threadgroup(256)]]
kernel void remember(device const float*    bcx  [[buffer(0)]],
                     device const uint*     lane [[buffer(1)]],
                     device const uint*     pos  [[buffer(2)]],
                     device float*          ring [[buffer(3)]],
                     constant RememberArgs& args [[buffer(4)]],
                     uint group [[threadgroup_position_in_grid]],
                     uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i >= args.n) {
        return;
    }
    const uint row = i / args.channels;
    const uint ch = i % args.channels;
    if (row + args.ring < args.rows && lane[row + args.ring] == lane[row]) {
        return;  // a later row has this place
    }
    device const float* from = bcx + ulong(row) * 3 * args.channels + ch;
    ring[(ulong(lane[row]) * args.ring + pos[row] % args.ring) * args.channels + ch] = flush(from[0] * from[2 * args.channels]);
}
