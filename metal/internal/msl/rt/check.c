// The checker. Kernels are compiled with -fsanitize=thread, whose callbacks are
// defined here (libtsan is not linked): bounds, alignment, first reads and races by
// Metal's rules, exact and independent of the schedule. Overlapping buffers of one
// launch are two regions, so hazards through aliases are the host's business.
#include <stdio.h>
#include <string.h>

#include "rt.h"

// ordered says whether the earlier access m is ordered before one by the current thread.
static int ordered(const mark* m, int local) {
    const fiber* f = &W->f[W->current];
    if (m->group != W->serial + 1) return m->group == 0;
    if (m->thread == W->current) return 1;
    if (m->epoch != f->epoch[local]) return 1;
    return m->thread / LANES == W->current / LANES && m->simd_epoch != f->simd_epoch[local];
}

static const char* verb(int write) { return write ? "write" : "read"; }

static const char* whose(const mark* m) { return m->group == W->serial + 1 ? "the same threadgroup" : "another threadgroup"; }

// find_variable makes *r the threadgroup variable at p.
static int find_variable(uint8_t* p, region* r) {
    for (uint32_t i = 0; i < MAX_VARIABLES; i++) {
        uint8_t* v = W->variable[i];
        if (!v || p < v || p >= v + W->variable_len[i]) continue;
        *r = (region){v, W->variable_len[i], W->arena_shadow + (v - W->arena), 0, "threadgroup"};
        return 1;
    }
    return 0;
}

static const region* find_buffer(uint8_t* p, uint64_t n) {
    for (int i = 0; i < L->nbuffers; i++) {
        const region* r = &L->buffers[i];
        if (p + n > r->data && p < r->data + r->len) return r;
    }
    return 0;
}

static void fail_outside(uint8_t* p, uint64_t n, int write, void* pc) {
    const region* near = 0;
    uint64_t best = ~0ull;
    for (int i = 0; i < L->nbuffers; i++) {
        const region* r = &L->buffers[i];
        uint64_t away = p < r->data ? r->data - p : p - r->data - r->len;
        if (away < best) best = away, near = r;
    }
    if (!near) msl_fail(pc, "%s of %lu bytes at a wild address", verb(write), n);
    msl_fail(pc, "%s of %lu bytes out of bounds: offset %ld of %s, which has %lu bytes", verb(write), n, (long)(p - near->data), near->name, near->len);
}

static void note_read(cell* c, mark me, int local) {
    // Keep two unordered readers of different simdgroups; ordered ones are done with.
    if (c->read[0].group == 0 || ordered(&c->read[0], local))
        c->read[0] = me;
    else if (c->read[1].group == 0 || ordered(&c->read[1], local) || c->read[1].thread / LANES == c->read[0].thread / LANES)
        c->read[1] = me;
}

static void check_byte(const region* r, uint64_t at, int write, int local, mark me, void* pc) {
    cell* c = &r->shadow[at];
    if (local && c->write.group != me.group) {
        c->write.group = c->read[0].group = c->read[1].group = 0;
        if (!write) msl_fail(pc, "read of threadgroup memory nobody wrote: offset %lu", at);
    }
    if (!ordered(&c->write, local))
        msl_fail(pc, "race: %s of %s+%lu, written by thread %u of %s with no barrier between", verb(write), r->name, at, c->write.thread, whose(&c->write));
    if (!write) {
        note_read(c, me, local);
        return;
    }
    for (int j = 0; j < 2; j++)
        if (!ordered(&c->read[j], local))
            msl_fail(pc, "race: write of %s+%lu, read by thread %u of %s with no barrier between", r->name, at, c->read[j].thread, whose(&c->read[j]));
    c->write = me;
}

static void check_access(void* addr, uint64_t n, int write, void* pc) {
    if (!W) return;
    uint8_t* p = addr;
    region variable;
    const region* r = &variable;
    int local = p >= W->arena && p < W->arena + THREADGROUP_ARENA;
    if (local) {
        if (!find_variable(p, &variable)) msl_fail(pc, "%s of %lu bytes outside every threadgroup variable", verb(write), n);
    } else {
        if (p >= W->stacks && p < W->stacks + (uint64_t)W->threads * STACK) return;  // thread memory
        r = find_buffer(p, n);
        if (!r) fail_outside(p, n, write, pc);
    }
    uint64_t at = p - r->data;
    if (p < r->data || at + n > r->len)
        msl_fail(pc, "%s of %lu bytes out of bounds: offset %ld of %s, which has %lu bytes", verb(write), n, (long)(p - r->data), r->name, r->len);
    if ((uint64_t)p & (n - 1)) msl_fail(pc, "%s of %lu bytes misaligned: offset %lu of %s", verb(write), n, at, r->name);
    if (write && r->readonly) msl_fail(pc, "write to the constant %s", r->name);
    if (!r->shadow) return;
    const fiber* f = &W->f[W->current];
    mark me = {W->serial + 1, W->current, f->epoch[local], f->simd_epoch[local]};
    for (uint64_t i = 0; i < n; i++) check_byte(r, at + i, write, local, me, pc);
}

#define PC __builtin_return_address(0)
#define ACCESS(N)                                                                   \
    void __tsan_read##N(void* p) { check_access(p, N, 0, PC); }                      \
    void __tsan_write##N(void* p) { check_access(p, N, 1, PC); }                     \
    void __tsan_unaligned_read##N(void* p) { check_access(p, N, 0, PC); }             \
    void __tsan_unaligned_write##N(void* p) { check_access(p, N, 1, PC); }            \
    void __tsan_read_write##N(void* p) {                                            \
        check_access(p, N, 0, PC);                                                  \
        check_access(p, N, 1, PC);                                                  \
    }                                                                               \
    void __tsan_unaligned_read_write##N(void* p) {                                  \
        check_access(p, N, 0, PC);                                                  \
        check_access(p, N, 1, PC);                                                  \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_init(void) {}
void __tsan_func_entry(void* pc) { (void)pc; }
void __tsan_func_exit(void) {}

void* __tsan_memcpy(void* d, const void* s, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        check_access((uint8_t*)s + i, 1, 0, PC);
        check_access((uint8_t*)d + i, 1, 1, PC);
    }
    return memcpy(d, s, n);
}

void* __tsan_memset(void* d, int v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) check_access((uint8_t*)d + i, 1, 1, PC);
    return memset(d, v, n);
}

// -fsanitize-minimal-runtime calls these.
#define UNDEFINED(NAME, TEXT) \
    void __ubsan_handle_##NAME##_minimal(void) { \
        if (W) msl_fail(PC, TEXT); \
    }
UNDEFINED(out_of_bounds, "array index out of range")
UNDEFINED(divrem_overflow, "integer division by zero")
UNDEFINED(type_mismatch, "misaligned or null pointer")
UNDEFINED(alignment_assumption, "misaligned pointer")
UNDEFINED(float_cast_overflow, "float to integer conversion out of range")
