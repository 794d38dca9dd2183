// The two roofs of a machine (Williams, Waterman and Patterson, "Roofline", 2009): operations per second of a loop
// whose sums stay in registers, over floats and over pairs of bf16, and bytes per second of reading memory that is in
// no cache. For the first, the least time of many repeats counts, since every disturbance makes it longer, and a clock
// that rises under load reaches its maximum; for the second, the least of a few, since one reading is long. All threads
// do the same work at once, each on its own memory and sums, and the time ends when the last thread has finished.
#include "kernels/common/peak.h"

#include "base/error.h"
#include "base/memory.h"
#include "os/os.h"
#include "os/tiles.h"

enum {
    ROUNDS = 100000,        // of a loop: about 300 us, longer than a thread of the pool takes to wake
    REPEATS = 400,          // of a loop; the best counts
    READS = 4,              // of the memory
    USUAL_BYTES = 64 << 20, // read
    MOST_BYTES = 1 << 30,
    LINE = 64,
    WORDS = 16
};

static const char where[] = "peak.measure";

// The widest first; the last one needs no features.
static const hone_peak_set sets[] = {
    {HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ, hone_peak_loop_avx512, 16},
    {HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C, hone_peak_loop_avx2, 8},
    {0, hone_peak_loop_portable, 4},
};

static const hone_peak_set pairs = {
    HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ | HONE_CPU_AVX512_BF16,
    hone_peak_loop_avx512_bf16, 32};

const hone_peak_set *hone_peak_of_pairs(uint64_t features)
{
    return (pairs.needs & features) == pairs.needs ? &pairs : NULL;
}

double hone_peak_of_bf16(uint64_t features, double of_floats, double of_pairs)
{
    if ((features & HONE_CPU_AMX_BF16) != 0) return 16 * of_floats;
    return of_pairs > of_floats ? of_pairs : of_floats;
}

// The search always ends, since the last set needs no features.
const hone_peak_set *hone_peak_widest(uint64_t features)
{
    const hone_peak_set *set = sets;
    while ((set->needs & features) != set->needs)
        set++;
    return set;
}

typedef struct peak_job {
    hone_parallel_for *parallel_for;
    void *pool;
    int32_t threads;
    hone_peak_loop *loop;
    const unsigned char *memory;
    size_t bytes;   // of memory, for each thread
    uint64_t *sums; // of each thread, a cache line apart
} peak_job;

static void work(const peak_job *job, void (*body)(void *ctx, int64_t index))
{
    if (job->threads == 1 || job->parallel_for == NULL)
        body((void *)job, 0);
    else
        job->parallel_for(job->pool, job->threads, body, (void *)job);
}

// The least time of the repeats, in seconds.
static double time_of(const peak_job *job, void (*body)(void *ctx, int64_t index), int repeats)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < repeats; i++) {
        uint64_t start = hone_os_now_ns();
        work(job, body);
        uint64_t time = hone_os_now_ns() - start;
        if (time < least) least = time;
    }
    return (double)(least > 0 ? least : 1) * 1e-9;
}

static void compute(void *ctx, int64_t index)
{
    const peak_job *job = ctx;
    job->sums[index * LINE] += (uint64_t)job->loop(ROUNDS);
}

// Reads two cache lines at a time, and adds each word to a separate sum, so that no addition waits for another.
static void read_memory(void *ctx, int64_t index)
{
    const peak_job *job = ctx;
    const uint64_t *words = (const uint64_t *)(const void *)(job->memory + (size_t)index * job->bytes);
    uint64_t sums[WORDS] = {0};
    for (size_t i = 0; i < job->bytes / sizeof *words; i += WORDS)
        for (size_t j = 0; j < WORDS; j++)
            sums[j] += words[i + j];
    for (size_t j = 0; j < WORDS; j++)
        job->sums[index * LINE] += sums[j];
}

// Twice the size of the last cache, so that reading the memory from end to end finds nothing in the cache; more, if
// there is room, for a steadier time. At most half of the free memory, which leaves the rest to others.
size_t hone_peak_memory(int64_t cache_bytes, int64_t left_bytes)
{
    const int64_t twice = cache_bytes > MOST_BYTES / 2 ? MOST_BYTES : cache_bytes * 2;
    const int64_t least = cache_bytes > 0 ? twice : USUAL_BYTES, usual = twice > USUAL_BYTES ? twice : USUAL_BYTES;
    const int64_t room = left_bytes > 0 ? left_bytes / 2 : 0;
    return (size_t)(room >= usual ? usual : room >= least ? least : 0);
}

static double rate_of(peak_job *job, const hone_peak_set *set)
{
    if (set == NULL) return 0;
    job->loop = set->loop;
    double operations = 2.0 * ROUNDS * HONE_PEAK_SUMS * set->width * job->threads;
    return operations / time_of(job, compute, REPEATS);
}

static void measure(peak_job *job, uint64_t features, hone_peak *out)
{
    out->operations = rate_of(job, hone_peak_widest(features));
    out->of_bf16 = hone_peak_of_bf16(features, out->operations, rate_of(job, hone_peak_of_pairs(features)));
    out->bytes = job->bytes > 0 ? (double)job->bytes * job->threads / time_of(job, read_memory, READS) : 0;
}

hone_status hone_peak_measure(
    const hone_allocator *allocator,
    uint64_t features,
    int32_t threads,
    size_t memory_bytes,
    hone_parallel_for *parallel_for,
    void *pool,
    hone_peak *out,
    hone_error *err)
{
    if (threads < 1 || threads > 1024)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "threads is %d, expected 1 to 1024", threads);
    peak_job job = {.parallel_for = parallel_for, .pool = pool, .threads = parallel_for != NULL ? threads : 1};
    job.bytes = memory_bytes / (size_t)job.threads / 4096 * 4096;
    // Zeroed, so that every page exists.
    void *memory = job.bytes > 0 ? hone_alloc(allocator, job.bytes * (size_t)job.threads) : NULL;
    job.memory = memory;
    job.sums = hone_alloc_array(allocator, (size_t)job.threads * LINE, sizeof *job.sums);
    hone_status status =
        (memory != NULL || job.bytes == 0) && job.sums != NULL ? HONE_OK : hone_fail_memory(err, where);
    if (status == HONE_OK) measure(&job, features, out);
    hone_free(allocator, memory);
    hone_free(allocator, job.sums);
    return status;
}
