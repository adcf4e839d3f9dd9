// The operators that touch each value once. One thread a value; bound by memory.
#include "fma.h"

struct AddArgs {
    uint n;  // values
};

// dst = a + b. [n]
[[max_total_threads_per_threadgroup(256)]]
kernel void add(device const float* a    [[buffer(0)]],
                device const float* b    [[buffer(1)]],
                device float*       dst  [[buffer(2)]],
                constant AddArgs&   args [[buffer(3)]],
                uint group [[threadgroup_position_in_grid]],
                uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i < args.n) {
        dst[i] = flush(a[i] + b[i]);
    }
}

struct BiasArgs {
    uint n;     // values of x
    uint cols;  // values of b
};

// x = x + b in every row. [n/cols, cols]
[[max_total_threads_per_threadgroup(256)]]
kernel void bias(device const float* b    [[buffer(0)]],
                 device float*       x    [[buffer(1)]],
                 constant BiasArgs&  args [[buffer(2)]],
                 uint group [[threadgroup_position_in_grid]],
                 uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i < args.n) {
        x[i] = flush(x[i] + b[i % args.cols]);
    }
}

struct SwigluArgs {
    uint n;      // values of dst
    uint width;  // columns of dst
};

// dst = silu(g)·u, g and u the halves of each row of gu. [n/width, width] from [n/width, 2·width]
[[max_total_threads_per_threadgroup(256)]]
kernel void swiglu(device const float*  gu   [[buffer(0)]],
                   device float*        dst  [[buffer(1)]],
                   constant SwigluArgs& args [[buffer(2)]],
                   uint group [[threadgroup_position_in_grid]],
                   uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i >= args.n) {
        return;
    }
    const uint at = i / args.width * (2 * args.width) + i % args.width;
    dst[i] = flush(silu_v1(gu[at]) * gu[at + args.width]);
}

struct GatherArgs {
    uint n;     // values of dst
    uint cols;  // of a row
};

// dst[i] = src[rows[i]]. [n/cols, cols]
[[max_total_threads_per_threadgroup(256)]]
kernel void gather(device const float*  src  [[buffer(0)]],
                   device const uint*   rows [[buffer(1)]],
                   device float*        dst  [[buffer(2)]],
                   constant GatherArgs& args [[buffer(3)]],
                   uint group [[threadgroup_position_in_grid]],
                   uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i < args.n) {
        dst[i] = src[ulong(rows[i / args.cols]) * args.cols + i % args.cols];
    }
}

struct TapArgs {
    uint n;       // values of src
    uint cols;    // of a row of src
    uint stride;  // columns of dst
    uint at;      // first column of dst
};

// dst[:, at:at+cols] = src. [n/cols, stride] from [n/cols, cols]
[[max_total_threads_per_threadgroup(256)]]
kernel void tap(device const float* src  [[buffer(0)]],
                device float*       dst  [[buffer(1)]],
                constant TapArgs&   args [[buffer(2)]],
                uint group [[threadgroup_position_in_grid]],
                uint tid   [[thread_index_in_threadgroup]])
{
    const uint i = group * 256 + tid;
    if (i < args.n) {
        dst[i / args.cols * args.stride + args.at + i % args.cols] = src[i];
    }
}
