// The CPU runtime of kernels: types shared by the scheduler (rt.c) and the checker (check.c).
#ifndef MSL_RT_H
#define MSL_RT_H

#include <stdint.h>

enum {
    MAX_THREADS = 1024,
    LANES = 32,
    STACK = 128 << 10,
    THREADGROUP_LIMIT = 32768,  // Apple's maxThreadgroupMemoryLength
    THREADGROUP_ARENA = 65536,  // room for that and a red zone around each variable
    MAX_VARIABLES = 64,
    MAX_BUFFERS = 31,
};

// What a thread is doing.
enum { RUNNING, AT_BARRIER, AT_SIMD, DONE };

// Barrier flags as in mem_flags.
enum { MEM_DEVICE = 1, MEM_THREADGROUP = 2 };

// One access to a byte. Epochs count the barriers that its thread had passed then.
typedef struct {
    uint32_t group;  // threadgroup serial + 1, 0 when there was none
    uint16_t thread;
    uint16_t epoch, simd_epoch;
} mark;

// The last write of a byte, and two reads since.
typedef struct {
    mark write, read[2];
} cell;

typedef struct {
    uint8_t* data;
    uint64_t len;
    cell* shadow;  // null where nothing can be written
    int readonly;
    char name[16];
} region;

typedef struct {
    void* sp;
    uint32_t state, kind;  // kind tells waits apart that must not meet
    void* site;            // where it waits
    uint16_t epoch[2], simd_epoch[2];  // [0] device, [1] threadgroup memory
} fiber;

// A worker runs one threadgroup at a time on one OS thread.
typedef struct worker {
    struct worker* next;  // idle
    fiber f[MAX_THREADS];
    uint8_t* stacks;
    void* scheduler;
    uint32_t current, threads;
    uint32_t group[3];
    uint32_t serial;
    uint32_t slots[2][MAX_THREADS];  // what lanes exchange, by parity of the exchange
    uint8_t parity[MAX_THREADS];
    uint8_t* arena;
    uint64_t used;
    uint8_t* variable[MAX_VARIABLES];
    uint64_t variable_len[MAX_VARIABLES];
    cell* arena_shadow;
    char err[512];
    int failed;
} worker;

typedef struct {
    void (*fn)(const uint64_t*);
    const uint64_t* args;
    region buffers[MAX_BUFFERS];
    int nbuffers;
    uint32_t grid[3], threads;
    uint32_t check, seed;
    uint64_t next, total;
    char* err;
    uint32_t errlen;
    int failed;
} launch;

extern __thread worker* W;
extern __thread launch* L;

// msl_fail ends the current thread's run and records the first failure.
void msl_fail(void* pc, const char* fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
