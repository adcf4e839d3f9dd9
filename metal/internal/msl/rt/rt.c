// Runs kernels compiled for the CPU: one hand-switched fiber per thread, one
// threadgroup at a time per worker. Simdgroups are 32 threads that run until they
// meet; barriers and exchanges are rendezvous. The order of threadgroups, simdgroups
// and lanes is shuffled by a seed, because none of them may matter.
#define _GNU_SOURCE
#include "rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__thread worker* W;
__thread launch* L;

// ---- context switch ---------------------------------------------------------
// msl_switch saves the callee-saved registers on the stack, its pointer in *save,
// and continues on the stack `to`.
void msl_switch(void** save, void* to);
#if defined(__x86_64__)
enum { SAVED_WORDS = 6, ENTRY_WORD = 6 };
__asm__(
    ".text\n.globl msl_switch\n.type msl_switch,@function\nmsl_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
#else
#error "the checking runtime knows x86-64 only"
#endif

static void pause_(void) { msl_switch(&W->f[W->current].sp, W->scheduler); }

static void where(char* out, int n, void* pc) {
    Dl_info i;
    if (pc && dladdr(pc, &i) && i.dli_sname)
        snprintf(out, n, "%s+0x%lx", i.dli_sname, (unsigned long)((uint8_t*)pc - (uint8_t*)i.dli_saddr));
    else
        snprintf(out, n, "?");
}

void msl_fail(void* pc, const char* fmt, ...) {
    if (!W->failed) {
        char at[128];
        where(at, sizeof at, pc);
        int k = snprintf(W->err, sizeof W->err, "threadgroup (%u,%u,%u) thread %u: ", W->group[0], W->group[1], W->group[2], W->current);
        va_list ap;
        va_start(ap, fmt);
        k += vsnprintf(W->err + k, sizeof W->err - k, fmt, ap);
        va_end(ap);
        if (k < (int)sizeof W->err) snprintf(W->err + k, sizeof W->err - k, " [%s]", at);
        W->failed = 1;
    }
    W->f[W->current].state = DONE;
    pause_();
}

// fail_group records what went wrong between threads, from the scheduler.
static int fail_group(const char* fmt, ...) {
    int k = snprintf(W->err, sizeof W->err, "threadgroup (%u,%u,%u): ", W->group[0], W->group[1], W->group[2]);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(W->err + k, sizeof W->err - k, fmt, ap);
    va_end(ap);
    return W->failed = 1;
}

static void entry(void) {
    L->fn(L->args);
    W->f[W->current].state = DONE;
    pause_();
    __builtin_trap();
}

// ---- called by kernels ------------------------------------------------------
uint32_t msl_rt_id(uint32_t which, uint32_t dim) {
    if (which == 0) return dim == 0 ? W->current : 0;
    return W->group[dim];
}

static void wait_(uint32_t state, uint32_t kind, void* site) {
    fiber* f = &W->f[W->current];
    f->state = state;
    f->kind = kind;
    f->site = site;
    pause_();
}

enum { KIND_BARRIER = 16, KIND_SHUFFLE = 32 };

void msl_rt_barrier(uint32_t simd, uint32_t flags) {
    wait_(simd ? AT_SIMD : AT_BARRIER, KIND_BARRIER | flags, __builtin_return_address(0));
}

// Each lane leaves its word, everyone meets, then all are readable until the
// exchange after the next one.
uint32_t msl_rt_shuffle(uint32_t v, uint32_t arg, uint32_t is_xor) {
    void* site = __builtin_return_address(0);
    uint32_t me = W->current, p = W->parity[me] ^= 1;
    W->slots[p][me] = v;
    wait_(AT_SIMD, KIND_SHUFFLE | is_xor, site);
    uint32_t src = is_xor ? (me % LANES) ^ arg : arg;
    uint32_t from = me / LANES * LANES + src;
    if (src >= LANES || from >= W->threads) msl_fail(site, "shuffle from lane %u, which does not exist", src);
    return W->slots[p][from];
}

void* msl_rt_threadgroup(uint32_t id, uint64_t size) {
    void* site = __builtin_return_address(0);
    if (id >= MAX_VARIABLES) msl_fail(site, "more than %d threadgroup variables", MAX_VARIABLES);
    if (!W->variable[id]) {
        uint64_t sum = size;
        for (uint32_t i = 0; i < MAX_VARIABLES; i++) sum += W->variable_len[i];
        if (sum > THREADGROUP_LIMIT) msl_fail(site, "%lu bytes of threadgroup memory, the limit is %d", sum, THREADGROUP_LIMIT);
        uint64_t at = (W->used + 64 + 15) & ~15ull;  // a red zone before each
        W->used = at + size + 64;
        W->variable[id] = W->arena + at;
        W->variable_len[id] = size;
        memset(W->variable[id], 0xFF, size);  // nothing is promised about its first contents: NaNs show up
    }
    return W->variable[id];
}

// ---- scheduler --------------------------------------------------------------
static uint32_t next_random(uint32_t* s) {
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s;
}

static int same_wait(const fiber* a, const fiber* b) { return a->state == b->state && a->kind == b->kind && a->site == b->site; }

static void pass(fiber* f, int simd_only) {
    for (int m = 0; m < 2; m++) {
        if (!(f->kind & KIND_BARRIER) || !(f->kind & (m ? MEM_THREADGROUP : MEM_DEVICE))) continue;
        f->simd_epoch[m]++;
        if (!simd_only) f->epoch[m]++;
    }
    f->state = RUNNING;
}

// release_simd lets threads first..end of a simdgroup go on, when they all wait at one place.
static int release_simd(uint32_t first, uint32_t end) {
    const fiber* a = &W->f[first];
    for (uint32_t i = first; i < end; i++) {
        const fiber* b = &W->f[i];
        if (b->state == AT_SIMD && same_wait(a, b)) continue;
        char pa[128], pb[128];
        where(pa, sizeof pa, a->state == DONE ? 0 : a->site);
        where(pb, sizeof pb, b->state == DONE ? 0 : b->site);
        return fail_group("simdgroup %u diverged: thread %u %s %s, thread %u %s %s", first / LANES, first, a->state == DONE ? "has returned" : "waits at", pa, i,
                          b->state == DONE ? "has returned" : "waits at", pb);
    }
    for (uint32_t i = first; i < end; i++) pass(&W->f[i], 1);
    return 0;
}

// release_group lets the threadgroup go on from a barrier. It returns 1 when all have returned.
static int release_group(void) {
    const fiber* first = 0;
    uint32_t done = 0, returned = 0;
    for (uint32_t i = 0; i < W->threads; i++) {
        const fiber* f = &W->f[i];
        if (f->state == DONE) {
            done++;
            returned = i;
        } else if (!first) {
            first = f;
        } else if (!same_wait(first, f)) {
            char a[128], b[128];
            where(a, sizeof a, first->site);
            where(b, sizeof b, f->site);
            return fail_group("threads wait at different barriers: %s and %s", a, b);
        }
    }
    if (done == W->threads) return 1;
    if (done) {
        char a[128];
        where(a, sizeof a, first->site);
        return fail_group("thread %u returned while others wait at the barrier %s", returned, a);
    }
    for (uint32_t i = 0; i < W->threads; i++) pass(&W->f[i], 0);
    return 0;
}

static void start(fiber* f, uint8_t* stack_end) {
    memset(f, 0, sizeof *f);
    void** sp = (void**)(stack_end - 64);
    *--sp = 0;  // the alignment that a call leaves
    *--sp = (void*)entry;
    f->sp = sp - SAVED_WORDS;
}

// run_simdgroup runs threads first..end until all have returned or wait for the others.
static void run_simdgroup(uint32_t first, uint32_t end, uint32_t* seed) {
    for (;;) {
        uint32_t turn = *seed ? next_random(seed) : 0, waiting = 0;
        for (uint32_t j = 0; j < end - first; j++) {
            uint32_t i = first + (j + turn) % (end - first);
            if (W->f[i].state != RUNNING) continue;
            W->current = i;
            msl_switch(&W->scheduler, W->f[i].sp);
            if (W->failed) return;
        }
        for (uint32_t i = first; i < end; i++) waiting |= W->f[i].state == AT_SIMD;
        if (!waiting || release_simd(first, end)) return;
    }
}

static void run_group(uint64_t id) {
    W->group[0] = id % L->grid[0];
    W->group[1] = id / L->grid[0] % L->grid[1];
    W->group[2] = id / L->grid[0] / L->grid[1];
    W->serial = id;
    W->used = 0;
    memset(W->variable, 0, sizeof W->variable);
    memset(W->variable_len, 0, sizeof W->variable_len);
    memset(W->parity, 0, sizeof W->parity);
    for (uint32_t i = 0; i < W->threads; i++) start(&W->f[i], W->stacks + (uint64_t)(i + 1) * STACK);
    uint32_t seed = L->seed ? (L->seed + (uint32_t)id * 2654435761u) | 1 : 0;
    uint32_t simdgroups = (W->threads + LANES - 1) / LANES;
    do {
        uint32_t turn = seed ? next_random(&seed) : 0;
        for (uint32_t s = 0; s < simdgroups; s++) {
            uint32_t first = (s + turn) % simdgroups * LANES;
            run_simdgroup(first, first + LANES < W->threads ? first + LANES : W->threads, &seed);
            if (W->failed) return;
        }
    } while (!release_group());
}

// Workers that no launch uses: a thread lives for one launch, its stacks for all.
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static worker* idle;

static worker* take_worker(void) {
    pthread_mutex_lock(&idle_lock);
    worker* w = idle;
    if (w) idle = w->next;
    pthread_mutex_unlock(&idle_lock);
    if (w) return w;
    w = calloc(1, sizeof *w);
    w->stacks = mmap(0, (uint64_t)MAX_THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    w->arena = aligned_alloc(4096, THREADGROUP_ARENA);
    w->arena_shadow = calloc(THREADGROUP_ARENA, sizeof(cell));
    return w;
}

static void return_worker(worker* w) {
    pthread_mutex_lock(&idle_lock);
    w->next = idle;
    idle = w;
    pthread_mutex_unlock(&idle_lock);
}

static void* work(void* arg) {
    L = arg;
    W = take_worker();
    W->failed = 0;
    W->threads = L->threads;
    if (L->check) memset(W->arena_shadow, 0, THREADGROUP_ARENA * sizeof(cell));
    for (;;) {
        uint64_t id = __atomic_fetch_add(&L->next, 1, __ATOMIC_SEQ_CST);
        if (id >= L->total || __atomic_load_n(&L->failed, __ATOMIC_SEQ_CST)) break;
        run_group(L->seed ? L->total - 1 - id : id);
        if (W->failed) {
            if (!__atomic_exchange_n(&L->failed, 1, __ATOMIC_SEQ_CST)) snprintf(L->err, L->errlen, "%s", W->err);
            break;
        }
    }
    return_worker(W);
    W = 0;
    return 0;
}

static void run_workers(launch* l, uint32_t workers) {
    enum { MAX_WORKERS = 64 };
    pthread_t t[MAX_WORKERS];
    if (workers > MAX_WORKERS) workers = MAX_WORKERS;
    if (l->check || workers <= 1 || l->total == 1) {
        work(l);
        return;
    }
    for (uint32_t i = 0; i < workers; i++) pthread_create(&t[i], 0, work, l);
    for (uint32_t i = 0; i < workers; i++) pthread_join(t[i], 0);
}

// msl_launch runs fn over shape: grid x, y, z and threads of a threadgroup. args[i] and
// len[i] are the buffer at index i (0 where there is none), readonly[i] that it is constant.
// check needs a library built for it, and runs on one worker.
int msl_launch(void (*fn)(const uint64_t*), const uint64_t* args, const uint64_t* len, const uint8_t* readonly, const uint32_t* shape, uint32_t check, uint32_t seed,
               uint32_t workers, char* err, uint32_t errlen) {
    if (shape[3] == 0 || shape[3] > MAX_THREADS) {
        snprintf(err, errlen, "%u threads in a threadgroup", shape[3]);
        return 1;
    }
    launch* l = calloc(1, sizeof *l);
    l->fn = fn;
    l->args = args;
    memcpy(l->grid, shape, sizeof l->grid);
    l->threads = shape[3];
    l->check = check;
    l->seed = seed;
    l->total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    l->err = err;
    l->errlen = errlen;
    for (int i = 0; i < MAX_BUFFERS; i++) {
        if (!args[i]) continue;
        region* r = &l->buffers[l->nbuffers++];
        r->data = (uint8_t*)args[i];
        r->len = len[i];
        r->readonly = readonly[i];
        snprintf(r->name, sizeof r->name, "buffer(%d)", i);
        if (check && !readonly[i]) r->shadow = mmap(0, len[i] * sizeof(cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    run_workers(l, workers);
    for (int i = 0; i < l->nbuffers; i++)
        if (l->buffers[i].shadow) munmap(l->buffers[i].shadow, l->buffers[i].len * sizeof(cell));
    int failed = l->failed;
    free(l);
    return failed;
}
