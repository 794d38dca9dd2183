// Upper bounds of what the processor can do, for the floor of contest/floor.c: the fastest reading of each level of
// memory and the fastest fused multiply-adds, of all its threads together.
//
// The measured rates must not be less than what the best kernel reaches, whatever else the machine does. So each thread
// reads in pieces that take some microseconds, its fastest piece counts, and the rates of all threads are added: a
// thread that waits for a processor in between, or reads while the others wait, makes the sum larger and never smaller.
// Some pieces of memory may lie in a cache, so the fastest tenth of them does not count.
//
// The reported sizes of caches may be wrong: a virtual machine may report caches that its host does not have, or none
// at all. So the data of a level is no larger than it needs to be to lie beyond the levels before it: if those hold
// more than reported, a nearer level is measured, which is faster. A level is not measured if its own size or that of a
// level before it is unknown: data that lies in an unknown cache would be read too fast.
#include "tune/worker/session.h"

#include "os/limits.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE = 64,
    PIECE = 1 << 20,  // bytes that are read between two readings of the clock
    PIECES = 64,      // per cache
    SUMS = 12,        // independent multiply-adds: more than latency times units of any processor so far
    ROUNDS = 4096,    // of SUMS multiply-adds, between two readings of the clock
    IN_L1 = 16 << 10, // every first-level cache holds that much
    BEYOND_L1 = 128 << 10,
    USUAL_MEMORY = 64 << 20,
    MOST_MEMORY = 256 << 20,
    MOST_PIECES = MOST_MEMORY / PIECE
};

// Loops ---------------------------------------------------------------------------------------------------------------

typedef uint64_t read_loop(const char *from, size_t bytes);
typedef float add_loop(int rounds);

// Hides from the compiler what becomes of a sum, so that it keeps every round.
#if defined(__x86_64__)
#    define KEEP(sum) __asm__ volatile("" : "+x"(sum))
#elif defined(__aarch64__)
#    define KEEP(sum) __asm__ volatile("" : "+w"(sum))
#else
#    define KEEP(sum) (void)(sum)
#endif

// Unrolled, every index of a sum is a constant, so that the sums stay in registers.
#define UNROLL _Pragma("GCC unroll 16")

// Reads eight vectors at a time, each into its own sum, so that no operation waits for another.
#define LOOPS(name, width, attributes)                                                                                 \
    attributes __attribute__((noinline)) static uint64_t read_##name(const char *from, size_t bytes)                   \
    {                                                                                                                  \
        typedef uint64_t words __attribute__((vector_size(width), may_alias));                                         \
        words sums[8];                                                                                                 \
        UNROLL for (int i = 0; i < 8; i++) sums[i] = (words){0};                                                       \
        for (const char *at = from; at < from + bytes; at += 8 * width)                                                \
            UNROLL for (int i = 0; i < 8; i++) sums[i] ^=                                                              \
                *(const words *)__builtin_assume_aligned(at + i * width, width);                                       \
        UNROLL for (int i = 1; i < 8; i++) sums[0] ^= sums[i];                                                         \
        return sums[0][0];                                                                                             \
    }                                                                                                                  \
    attributes __attribute__((noinline)) static float add_##name(int rounds)                                           \
    {                                                                                                                  \
        typedef float floats __attribute__((vector_size(width)));                                                      \
        floats sums[SUMS], factor = (floats){0} + 0.999f, term = (floats){0} + 0.001f;                                 \
        UNROLL for (int i = 0; i < SUMS; i++) sums[i] = (floats){0} + (float)i;                                        \
        for (int round = 0; round < rounds; round++)                                                                   \
            UNROLL for (int i = 0; i < SUMS; i++)                                                                      \
            {                                                                                                          \
                sums[i] = sums[i] * factor + term;                                                                     \
                KEEP(sums[i]);                                                                                         \
            }                                                                                                          \
        UNROLL for (int i = 1; i < SUMS; i++) sums[0] += sums[i];                                                      \
        return sums[0][0];                                                                                             \
    }

LOOPS(plain, 16, )
#if defined(__x86_64__)
LOOPS(avx2, 32, __attribute__((target("avx2,fma"))))
LOOPS(avx512, 64, __attribute__((target("avx512f"))))
#endif

typedef struct loops {
    uint64_t needs; // HONE_CPU_*
    read_loop *read;
    add_loop *add;
    int width; // bytes of a vector
} loops;

// The widest first. The last one needs no feature.
static const loops all_loops[] = {
#if defined(__x86_64__)
    {HONE_CPU_AVX512F, read_avx512, add_avx512, 64},
    {HONE_CPU_AVX2 | HONE_CPU_FMA, read_avx2, add_avx2, 32},
#endif
    {0, read_plain, add_plain, 16},
};

static const loops *widest(uint64_t features)
{
    const loops *one = all_loops;
    while ((one->needs & features) != one->needs)
        one++;
    return one;
}

// One thread ----------------------------------------------------------------------------------------------------------

typedef struct thread_rates {
    double operations, bytes[HONE_LEVELS];
    uint64_t unused; // results of the loops, so that the compiler keeps them
    char apart[LINE];
} thread_rates;

typedef struct job {
    const loops *with;
    char *memory;
    size_t slice;              // bytes for each thread
    size_t spans[HONE_LEVELS]; // bytes that are read of each level; 0: it is not measured
    thread_rates *rates;       // of each thread
} job;

static double seconds_since(uint64_t start)
{
    const uint64_t now = hone_os_now_ns();
    return (double)(now > start ? now - start : 1) * 1e-9;
}

// Bytes per second of one piece: a span that is read repeatedly.
static double read_piece(const job *j, const char *from, size_t span, thread_rates *out)
{
    const size_t times = span < PIECE ? PIECE / span : 1;
    const uint64_t start = hone_os_now_ns();
    for (size_t i = 0; i < times; i++)
        out->unused += j->with->read(from, span);
    return (double)(times * span) / seconds_since(start);
}

static double rate_of_cache(const job *j, const char *from, size_t span, thread_rates *out)
{
    double best = 0;
    const size_t step = span < PIECE ? span : PIECE;
    out->unused += j->with->read(from, span);
    for (size_t i = 0, at = 0; i < PIECES; i++, at = at + 2 * step <= span ? at + step : 0) {
        const double rate = read_piece(j, from + at, step, out);
        if (rate > best) best = rate;
    }
    return best;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rate_of_memory(const job *j, const char *from, size_t span, thread_rates *out)
{
    double rates[MOST_PIECES];
    size_t count = 0;
    for (size_t at = 0; at + PIECE <= span && count < MOST_PIECES; at += PIECE)
        rates[count++] = read_piece(j, from + at, PIECE, out);
    if (count == 0) return 0;
    qsort(rates, count, sizeof rates[0], by_size);
    return rates[count - 1 - count / 10];
}

static double rate_of_sums(const job *j, thread_rates *out)
{
    double best = 0;
    for (int i = 0; i < PIECES; i++) {
        const uint64_t start = hone_os_now_ns();
        out->unused += (uint64_t)j->with->add(ROUNDS);
        const double rate = 2.0 * SUMS * ROUNDS * (j->with->width / 4) / seconds_since(start);
        if (rate > best) best = rate;
    }
    return best;
}

// The slice is written first, so that every page exists, near this thread.
static void measure_thread(void *ctx, int64_t index)
{
    const job *j = ctx;
    thread_rates *out = &j->rates[index];
    char *slice = j->memory + (size_t)index * j->slice;
    memset(slice, 1, j->slice);
    if (j->spans[HONE_LEVEL_MEMORY] > 0)
        out->bytes[HONE_LEVEL_MEMORY] = rate_of_memory(j, slice, j->spans[HONE_LEVEL_MEMORY], out);
    for (int level = HONE_LEVEL_3; level >= HONE_LEVEL_1; level--)
        if (j->spans[level] > 0) out->bytes[level] = rate_of_cache(j, slice, j->spans[level], out);
    out->operations = rate_of_sums(j, out);
}

// All of them ---------------------------------------------------------------------------------------------------------

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Rounds down to whole pages or pieces: the loops read several vectors at a time.
static size_t whole(size_t bytes, size_t of)
{
    return bytes / of * of;
}

void hone_peaks_choose_spans(
    const hone_os_cpu *cpu, int caches, size_t threads, int64_t memory_left, size_t out_spans[HONE_LEVELS])
{
    enum { PAGE = 4096 };
    const size_t l1 = (size_t)cpu->l1_bytes, l2 = (size_t)cpu->l2_bytes, l3 = (size_t)cpu->l3_bytes;
    const size_t outer = l3 * (size_t)(caches > 0 ? caches : 1);
    size_t memory = least(2 * outer > USUAL_MEMORY ? 2 * outer : USUAL_MEMORY, MOST_MEMORY);
    if ((int64_t)memory > memory_left) memory = 0;
    memset(out_spans, 0, HONE_LEVELS * sizeof out_spans[0]);
    out_spans[HONE_LEVEL_1] = IN_L1;
    if (l1 == 0 || l2 == 0) return;
    out_spans[HONE_LEVEL_2] = whole(least(l2 / 2, 2 * l1 > BEYOND_L1 ? 2 * l1 : BEYOND_L1), PAGE);
    if (l3 == 0) return;
    out_spans[HONE_LEVEL_3] = whole(least(least(l3 / 2, outer / 2 / threads), 4 * l2), PAGE);
    out_spans[HONE_LEVEL_MEMORY] = whole(memory / threads, PIECE);
}

// These rates are not measured. Per clock and core, Intel's AMX does 1,024 operations of bf16 and 2,048 of int8 (a
// TDPBF16PS of 16,384 and a TDPBSSD of 32,768 take 16 clocks each; on an Emerald Rapids, tiles in a loop reached 2,725
// and 5,514 GFLOP/s per core), while two units of AVX-512 do 64 of f32. Three products of bf16 give nearly f32.
// AVX512_BF16 and AVX512-FP16 do twice as many operations as f32, AVX512_VNNI four times as many.
void hone_peaks_fill_operations(double of_32, bool has_matrix_unit, hone_peaks *out)
{
    const double of_16 = (has_matrix_unit ? 16 : 4) * of_32;
    out->operations[HONE_WIDTH_64] = of_32 / 2; // half as many numbers fit into a vector
    out->operations[HONE_WIDTH_32] = has_matrix_unit ? of_16 / 3 : of_32;
    out->operations[HONE_WIDTH_16] = of_16;
    out->operations[HONE_WIDTH_8] = 2 * of_16;
    out->operations[HONE_WIDTH_4] = 4 * of_16;
}

// If the number of outer caches is unknown, each thread may have one.
static void choose_holds(const hone_os_cpu *cpu, int caches, double threads, hone_peaks *out)
{
    double sum = 0;
    const double outer = (caches > 0 ? caches : threads) * (double)cpu->l3_bytes;
    const double own[] = {threads * (double)cpu->l1_bytes, threads * (double)cpu->l2_bytes, outer};
    for (int level = HONE_LEVEL_1; level <= HONE_LEVEL_3; level++)
        out->holds[level] = sum += own[level];
}

// scale: usable threads per thread that measures.
static void add_rates(const job *j, size_t threads, double scale, hone_peaks *out)
{
    double operations = 0;
    for (size_t i = 0; i < threads; i++) {
        operations += scale * j->rates[i].operations;
        for (int level = 0; level < HONE_LEVELS; level++)
            out->bytes[level] += scale * j->rates[i].bytes[level];
    }
    hone_peaks_fill_operations(operations, hone_os_has_matrix_unit(), out);
}

// Skips levels behind those that hold all bytes of the call: none of them need come from there. Most of the time of
// this measurement goes into writing and reading the large block for the rate of memory.
static void leave_far_levels(const hone_peaks *peaks, size_t spans[HONE_LEVELS])
{
    for (int level = HONE_LEVEL_2; level < HONE_LEVELS; level++)
        if (peaks->holds[level - 1] >= peaks->reach) spans[level] = 0;
}

// reach: bytes of the call.
static bool measure(const hone_allocator *allocator, hone_pool *pool, double reach, hone_peaks *out)
{
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    // All processors that the process may run on: a quota lets it run on more of them for a moment.
    const int32_t usable = hone_os_affinity_threads();
    const size_t threads = pool != NULL ? (size_t)hone_pool_threads(pool) : 1;
    const int caches = hone_os_outer_caches("");
    const char *unused_by;
    job j = {.with = widest(cpu.features)};
    hone_peaks_choose_spans(&cpu, caches, threads, hone_os_memory_left("", &unused_by) / 4, j.spans);
    choose_holds(&cpu, caches, usable, out);
    out->reach = reach;
    leave_far_levels(out, j.spans);
    for (int level = 0; level < HONE_LEVELS; level++)
        if (j.spans[level] > j.slice) j.slice = j.spans[level];
    char *block = hone_alloc(allocator, threads * j.slice + 4096);
    j.rates = hone_alloc_array(allocator, threads, sizeof *j.rates);
    const bool there = block != NULL && j.rates != NULL;
    if (there) {
        j.memory = block + (4096 - (uintptr_t)block % 4096);
        if (threads > 1)
            hone_pool_run(pool, (int64_t)threads, measure_thread, &j);
        else
            measure_thread(&j, 0);
        add_rates(&j, threads, (size_t)usable > threads ? (double)usable / (double)threads : 1, out);
    }
    hone_free(allocator, block);
    hone_free(allocator, j.rates);
    return there;
}

void hone_session_answer_peaks(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_peaks peaks = {0};
    hone_pool *pool = hone_session_pool(session);
    const double reach = hone_wire_get_f64(reader);
    if (!measure(&session->allocator, pool, reach, &peaks)) peaks = (hone_peaks){0};
    hone_pool_rest(session->own_pool);
    hone_message_put_peaks(answer, &peaks);
}
