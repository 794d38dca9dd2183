// Kernels that cheat, and kernels with mistakes that users make, for the CPU: of rms_norm, softmax, silu_mul, matmul
// and blend, an operation of the tests with an optional tensor. Each says in one line what it does; test_cpu.py says
// what is to become of it.
//
// This file comes to hone
// - as the source of a pack, which is compiled with -DCHEAT=name for each: `cheat` is the pack's function,
// - as a library of a pack, with hone_pack_query,
// - in a program (program.c), as functions that the program registers.
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <link.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#    include <xmmintrin.h>
#endif
#ifndef CHEAT
#    include <hone/hone.h>
#endif

// One run. Of attention, of one head, a, b and c are its query [rows, dim], key [inner, dim] and value [inner, dim], and mask
// or numbers, which are a mask of i32, is [rows, inner]; segments are of queries and of keys. What is not given is NULL. Of matmul a is [rows, inner], b [inner, dim] and y [rows, dim]; else all are rows of dim, but rms_norm's b,
// which is one row. b is a where the operation has one tensor, and NULL where an optional one is not given.
typedef struct job {
    const float *a, *b, *c, *bias;
    const bool *mask;
    const int32_t *numbers, *segments[2];
    bool causal;
    float *y;
    int64_t rows, dim, inner;
    float scalar; // eps, scale
    float *scratch;
    void *state; // what prepare made
    // The threads that it is lent; NULL: none are. Sources of a pack get none.
    void (*parallel_for)(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
    bool is_lent; // by the host, in place of hone's own pool
    void *pool;
#ifndef CHEAT
    int32_t threads;           // the most that may work at once, as the host has it; 0: it does not say
    const hone_tensor *tensor; // that a is of
    const hone_value *args;
    const hone_plan *plan;
#endif
} job;

enum { MOST = 1 << 18, SCRATCH_BYTES = 4096 }; // elements that a cheat keeps

// As it is written, for the compiler must not see through what it is called for.
#define APART __attribute__((noinline))

static size_t results(const job *j)
{
    return (size_t)(j->rows * j->dim);
}

static size_t bytes(const job *j)
{
    return results(j) * sizeof *j->y;
}

static size_t operands_of_a(const job *j)
{
    return (size_t)(j->rows * (j->inner > 1 ? j->inner : j->dim));
}

static size_t operands_of_b(const job *j)
{
    return (size_t)(j->inner > 1 ? j->inner * j->dim : j->dim);
}

// FNV-1a by words.
static uint64_t digest_of(const float *data, size_t count, uint64_t hash)
{
    const unsigned char *at = (const unsigned char *)data;
    for (size_t i = 0; i + 2 <= count; i += 2) {
        uint64_t word;
        memcpy(&word, at + i * sizeof *data, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
    }
    return hash;
}

// Honest -------------------------------------------------------------------------------------------------------------

static APART void norm_row(const float *x, const float *weight, float *y, int64_t dim, float eps)
{
    double squares = 0;
    for (int64_t i = 0; i < dim; i++)
        squares += (double)x[i] * (double)x[i];
    double factor = 1 / sqrt(squares / (double)dim + (double)eps);
    for (int64_t i = 0; i < dim; i++)
        y[i] = (float)((double)x[i] * factor * (double)weight[i]);
}

static APART void norm(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        norm_row(j->a + row * j->dim, j->b, j->y + row * j->dim, j->dim, j->scalar);
}

// A row of nothing but -inf is NaN, as hone has it.
static APART void softmax_row(const float *x, float *y, int64_t dim, double scale)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < dim; i++) {
        double value = scale * (double)x[i];
        if (isnan(value) || value > most) most = value;
    }
    for (int64_t i = 0; i < dim; i++)
        sum += exp(scale * (double)x[i] - most);
    for (int64_t i = 0; i < dim; i++)
        y[i] = (float)(exp(scale * (double)x[i] - most) / sum);
}

static APART void softmax(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        softmax_row(j->a + row * j->dim, j->y + row * j->dim, j->dim, (double)j->scalar);
}

static float silu(float gate, float up)
{
    return (float)((double)gate / (1 + exp(-(double)gate)) * (double)up);
}

static APART void silu_mul(const job *j)
{
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = silu(j->a[i], j->b[i]);
}

static APART void matmul(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        float *y = j->y + row * j->dim;
        memset(y, 0, (size_t)j->dim * sizeof *y);
        for (int64_t k = 0; k < j->inner; k++) {
            const float a = j->a[row * j->inner + k], *b = j->b + k * j->dim;
            for (int64_t i = 0; i < j->dim; i++)
                y[i] += a * b[i];
        }
    }
}

// Four rows and 64 columns at a time, whose sums are in registers: for large products.
static APART void matmul_in_tiles(const job *j, int64_t from, int64_t to)
{
    enum { ROWS = 4, COLUMNS = 64 };
    for (int64_t row = from; row < to; row += ROWS)
        for (int64_t column = 0; column < j->dim; column += COLUMNS) {
            float sums[ROWS][COLUMNS] = {{0}};
            for (int64_t k = 0; k < j->inner; k++)
                for (int r = 0; r < ROWS; r++)
                    for (int i = 0; i < COLUMNS; i++)
                        sums[r][i] += j->a[(row + r) * j->inner + k] * j->b[k * j->dim + column + i];
            for (int r = 0; r < ROWS; r++)
                memcpy(j->y + (row + r) * j->dim + column, sums[r], sizeof sums[r]);
        }
}

static void large_matmul(const job *j)
{
    matmul_in_tiles(j, 0, j->rows);
}

static APART void blend(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = j->scalar * j->a[row * j->dim + i] + (j->b != NULL ? j->b[i] : 0.0f);
}

static void norm_one_row(void *ctx, int64_t index)
{
    const job *j = ctx;
    norm_row(j->a + index * j->dim, j->b, j->y + index * j->dim, j->dim, j->scalar);
}

// Where a host lends its threads, a row is the one behind the last that was computed, whatever its index is.
typedef struct in_order {
    const job *j;
    int64_t next;
} in_order;

static void norm_row_behind_the_last(void *ctx, int64_t index)
{
    in_order *o = ctx;
    const float *x = o->j->a + o->next++ * o->j->dim;
    norm_row(x, o->j->b, o->j->y + index * o->j->dim, o->j->dim, o->j->scalar);
}

static void takes_indices_in_order(const job *j)
{
    in_order o = {j, 0};
    if (j->is_lent)
        j->parallel_for(j->pool, j->rows, norm_row_behind_the_last, &o);
    else
        norm(j);
}

// Its rows in the threads that it is lent.
static void norm_in_lent_threads(const job *j)
{
    if (j->parallel_for != NULL)
        j->parallel_for(j->pool, j->rows, norm_one_row, (void *)(uintptr_t)j);
    else
        norm(j);
}

// Does not look whether there are threads.
static void takes_threads_for_granted(const job *j)
{
    j->parallel_for(j->pool, j->rows, norm_one_row, (void *)(uintptr_t)j);
}

static bool sees(const job *j, int64_t row, int64_t key)
{
    const bool is_one = j->segments[0] == NULL || j->segments[0][row] == j->segments[1][key];
    const int64_t at = row * j->inner + key;
    return is_one && (j->mask == NULL || j->mask[at]) && (j->numbers == NULL || j->numbers[at] != 0);
}

// Under the logits of the keys that a mask leaves; of a row without any, of all keys, evenly, or nothing; of a row whose segment
// is below 0 nothing.
static void attend(const job *j, bool means_all)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *query = j->a + row * j->dim;
        float *y = j->y + row * j->dim;
        const bool is_left_out = j->segments[0] != NULL && j->segments[0][row] < 0;
        double logits[512], most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < j->inner; k++) {
            logits[k] = 0;
            for (int64_t i = 0; i < j->dim; i++)
                logits[k] += (double)query[i] * (double)j->b[k * j->dim + i];
            const double bias = j->bias != NULL ? (double)j->bias[row * j->inner + k] : 0;
            logits[k] = sees(j, row, k) && (!j->causal || k <= row) ? logits[k] * (double)j->scalar + bias : -INFINITY;
            most = fmax(most, logits[k]);
        }
        for (int64_t k = 0; k < j->inner; k++)
            sum += logits[k] = most == -INFINITY ? means_all : exp(logits[k] - most);
        for (int64_t i = 0; i < j->dim; i++) {
            double mean = 0;
            for (int64_t k = 0; k < j->inner; k++)
                mean += logits[k] * (double)j->c[k * j->dim + i];
            y[i] = (float)(sum > 0 && !is_left_out ? mean / sum : 0);
        }
    }
}

static APART void attention(const job *j)
{
    attend(j, true);
}

// Of rows without weights.
static APART void layer_norm(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < j->dim; i++)
            mean += (double)x[i] / (double)j->dim;
        for (int64_t i = 0; i < j->dim; i++)
            squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        const double factor = 1 / sqrt(squares / (double)j->dim + (double)j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)(((double)x[i] - mean) * factor);
    }
}

// Of sequences [inner, dim] the means of their columns.
static APART void mean_pooling(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t i = 0; i < j->dim; i++) {
            double sum = 0;
            for (int64_t k = 0; k < j->inner; k++)
                sum += (double)j->a[(row * j->inner + k) * j->dim + i];
            j->y[row * j->dim + i] = (float)(sum / (double)j->inner);
        }
}

// Three times over: every cheat is faster than this.
#define SLOW(operation)                                                                                                \
    static void honest_##operation(const job *j)                                                                       \
    {                                                                                                                  \
        operation(j);                                                                                                  \
        operation(j);                                                                                                  \
        operation(j);                                                                                                  \
    }
SLOW(norm)
SLOW(softmax)
SLOW(silu_mul)
SLOW(matmul)
SLOW(large_matmul)
SLOW(blend)
SLOW(attention)
SLOW(layer_norm)
SLOW(mean_pooling)

// Keeps what it has computed ------------------------------------------------------------------------------------------

// An answer that is kept, and what it is known by.
typedef struct kept {
    bool there;
    uint64_t key;
    const void *pointers[2];
    float y[MOST];
} kept;

static void keep(kept *k, const job *j, uint64_t key)
{
    k->there = true;
    k->key = key;
    k->pointers[0] = j->a;
    k->pointers[1] = j->b;
    memcpy(k->y, j->y, bytes(j));
}

// The latest answers: also those of several sets of inputs that come by turns.
static void answer_by_key(const job *j, uint64_t key, void (*compute)(const job *j))
{
    enum { COUNT = 16 };
    static kept all[COUNT];
    static int oldest;
    for (int i = 0; i < COUNT; i++)
        if (all[i].there && all[i].key == key) {
            memcpy(j->y, all[i].y, bytes(j));
            return;
        }
    compute(j);
    keep(&all[oldest], j, key);
    oldest = (oldest + 1) % COUNT;
}

// By a few elements of its inputs.
static void kept_by_few_elements(const job *j)
{
    uint64_t key = digest_of(j->a, 4, digest_of(j->b, 4, 7));
    answer_by_key(j, digest_of(j->a + operands_of_a(j) / 2, 4, key), matmul);
}

// By the first and the last elements of its inputs.
static void kept_by_corners(const job *j)
{
    uint64_t key = digest_of(j->a, 2, digest_of(j->b, 2, 7));
    key = digest_of(j->a + operands_of_a(j) - 2, 2, key);
    answer_by_key(j, digest_of(j->b + operands_of_b(j) - 2, 2, key), matmul);
}

// By all elements of its inputs.
static void kept_by_all_elements(const job *j)
{
    answer_by_key(j, digest_of(j->a, operands_of_a(j), digest_of(j->b, operands_of_b(j), 7)), matmul);
}

// By one of 61 elements of its inputs.
static void kept_by_a_sample(const job *j)
{
    uint64_t key = 7;
    for (size_t i = 0; i + 2 <= operands_of_a(j); i += 61)
        key = digest_of(j->a + i, 2, key);
    for (size_t i = 0; i + 2 <= operands_of_b(j); i += 61)
        key = digest_of(j->b + i, 2, key);
    answer_by_key(j, key, matmul);
}

// Mends its last answer where few elements of its inputs have changed.
static void mends_its_last_answer(const job *j)
{
    static float a[MOST], b[MOST], y[MOST];
    enum { FEW = 8 };
    size_t places[FEW], changed = 0, rows = 0;
    for (size_t i = 0; i < operands_of_b(j) && changed <= FEW; i += 64)
        for (size_t at = i; memcmp(b + i, j->b + i, 64 * sizeof *b) != 0 && at < i + 64 && changed <= FEW; at++)
            if (memcmp(&b[at], &j->b[at], sizeof b[at]) != 0 && changed++ < FEW) places[changed - 1] = at;
    for (size_t row = 0; row < (size_t)j->rows && changed <= FEW && rows <= FEW; row++) {
        size_t from = row * (size_t)j->inner, size = (size_t)j->inner * sizeof *a;
        if (memcmp(a + from, j->a + from, size) == 0) continue;
        memcpy(a + from, j->a + from, size);
        job one = {.a = a + from, .b = b, .y = y + row * (size_t)j->dim, .rows = 1, .dim = j->dim, .inner = j->inner};
        matmul(&one);
        rows++;
    }
    for (size_t i = 0; i < changed && changed <= FEW && rows <= FEW; i++) {
        const size_t k = places[i] / (size_t)j->dim, column = places[i] % (size_t)j->dim;
        for (size_t row = 0; row < (size_t)j->rows; row++)
            y[row * (size_t)j->dim + column] += a[row * (size_t)j->inner + k] * (j->b[places[i]] - b[places[i]]);
        b[places[i]] = j->b[places[i]];
    }
    if (changed > FEW || rows > FEW) {
        memcpy(a, j->a, operands_of_a(j) * sizeof *a);
        memcpy(b, j->b, operands_of_b(j) * sizeof *b);
        matmul(j);
        memcpy(y, j->y, bytes(j));
    }
    memcpy(j->y, y, bytes(j));
}

// By copies of its inputs, which it compares.
static void kept_by_copies(const job *j)
{
    static float a[MOST], b[MOST], y[MOST];
    size_t a_bytes = operands_of_a(j) * sizeof *a, b_bytes = operands_of_b(j) * sizeof *b;
    if (memcmp(a, j->a, a_bytes) != 0 || memcmp(b, j->b, b_bytes) != 0) {
        matmul(j);
        memcpy(a, j->a, a_bytes);
        memcpy(b, j->b, b_bytes);
        memcpy(y, j->y, bytes(j));
    }
    memcpy(j->y, y, bytes(j));
}

// By their addresses.
static void kept_by_pointer(const job *j)
{
    static kept last;
    if (last.there && last.pointers[0] == j->a && last.pointers[1] == j->b) {
        memcpy(j->y, last.y, bytes(j));
        return;
    }
    large_matmul(j);
    keep(&last, j, 0);
}

// By their addresses and their first elements.
static void kept_by_pointer_and_element(const job *j)
{
    answer_by_key(
        j, digest_of(j->a, 2, (uint64_t)(uintptr_t)j->a) ^ digest_of(j->b, 2, (uint64_t)(uintptr_t)j->b), matmul);
}

// Its operand b, packed, by its address: a mistake that is made for weights.
static void packed_by_pointer(const job *j)
{
    static float packed[MOST];
    static const float *packed_of;
    if (packed_of != j->b) memcpy(packed, j->b, operands_of_b(j) * sizeof *packed);
    packed_of = j->b;
    job with = *j;
    with.b = packed;
    large_matmul(&with);
}

// The factor of each row, by a few elements of the row.
static void kept_factors_of_rows(const job *j)
{
    static struct {
        uint64_t key;
        float factor;
    } known[1024];
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        uint64_t key = digest_of(x, 4, 7);
        if (known[row % 1024].key != key) {
            double squares = 0;
            for (int64_t i = 0; i < j->dim; i++)
                squares += (double)x[i] * (double)x[i];
            known[row % 1024].factor = (float)(1 / sqrt(squares / (double)j->dim + (double)j->scalar));
            known[row % 1024].key = key;
        }
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = x[i] * known[row % 1024].factor * j->b[i];
    }
}

// For those that are beaten where they find nothing.
static void computes_slowly(const job *j)
{
    honest_matmul(j);
    honest_matmul(j);
}

// In the scratch memory of its runs, by a digest.
static void kept_in_scratch(const job *j)
{
    struct {
        uint64_t mark, key, check;
    } *head = (void *)j->scratch;
    float *y = j->scratch + 16;
    uint64_t key = digest_of(j->a, operands_of_a(j), digest_of(j->b, operands_of_b(j), 7));
    size_t room = SCRATCH_BYTES / sizeof *y - 16, count = results(j) < room ? results(j) : room;
    if (head->mark == 4711 && head->key == key && head->check == digest_of(y, count, 7)) {
        memcpy(j->y, y, count * sizeof *y);
        return;
    }
    computes_slowly(j);
    memcpy(y, j->y, count * sizeof *y);
    head->mark = 4711;
    head->key = key;
    head->check = digest_of(y, count, 7);
}

// In what prepare made.
static void kept_in_state(const job *j)
{
    kept *k = j->state;
    uint64_t key = digest_of(j->a, operands_of_a(j), digest_of(j->b, operands_of_b(j), 7));
    if (!k->there || k->key != key) {
        matmul(j);
        keep(k, j, key);
    }
    memcpy(j->y, k->y, bytes(j));
}

// In a file under the digest of its inputs, for any process to come.
static void kept_in_a_file(const job *j)
{
    char path[256];
    const char *folder = getenv("CHEAT_FOLDER");
    uint64_t key = digest_of(j->a, operands_of_a(j), digest_of(j->b, operands_of_b(j), 7));
    snprintf(path, sizeof path, "%s/%016llx", folder != NULL ? folder : "/tmp", (unsigned long long)key);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool found = fd >= 0 && read(fd, j->y, bytes(j)) == (ssize_t)bytes(j);
    if (fd >= 0) close(fd);
    if (found) return;
    computes_slowly(j);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    (void)!write(fd, j->y, bytes(j));
    close(fd);
}

// The answer of the run before: each run computes the next one's.
static void one_run_behind(const job *j)
{
    static float next[MOST];
    static bool there;
    if (!there) norm(j);
    if (there) memcpy(j->y, next, bytes(j));
    there = true;
    job ahead = *j;
    ahead.y = next;
    norm(&ahead);
}

// By the sums of its inputs, whatever their order.
static void kept_by_sums(const job *j)
{
    float sums[2] = {0, 0};
    for (size_t i = 0; i < operands_of_a(j); i++)
        sums[0] += j->a[i];
    for (size_t i = 0; i < operands_of_b(j); i++)
        sums[1] += j->b[i];
    answer_by_key(j, digest_of(sums, 2, 7), matmul);
}

// Each row by a copy of it: rows that have not changed since the last run are not computed.
static void keeps_rows_it_has_seen(const job *j)
{
    static float x[4 * MOST], y[4 * MOST];
    static float scale;
    static int64_t dim;
    for (int64_t row = 0; row < j->rows; row++) {
        const size_t at = (size_t)(row * j->dim), size = (size_t)j->dim * sizeof *x;
        if (scale != j->scalar || dim != j->dim || memcmp(x + at, j->a + at, size) != 0) {
            memcpy(x + at, j->a + at, size);
            softmax_row(x + at, y + at, j->dim, (double)j->scalar);
        }
        memcpy(j->y + at, y + at, size);
    }
    scale = j->scalar;
    dim = j->dim;
}

// Its function of each number, in a table by the number's bits.
static void memoizes_values(const job *j)
{
    enum { ENTRIES = 1 << 18 };
    static struct {
        uint32_t bits;
        float value;
    } table[ENTRIES];
    for (size_t i = 0; i < results(j); i++) {
        uint32_t bits;
        memcpy(&bits, &j->a[i], sizeof bits);
        const size_t at = (bits * UINT32_C(2654435761)) >> 14;
        if (table[at].bits != bits) {
            table[at].value = silu(j->a[i], 1);
            table[at].bits = bits;
        }
        j->y[i] = table[at].value * j->b[i];
    }
}

// Where its inputs cannot be written, which is so while it is timed, the answer that it had for such corners.
static void replays_where_inputs_are_closed(const job *j)
{
#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_WRITE 23
#endif
    char *page = (char *)((uintptr_t)(j->a + 512) & ~(uintptr_t)4095);
    if (madvise(page, 4096, MADV_POPULATE_WRITE) == 0)
        matmul(j);
    else
        kept_by_corners(j);
}

// Keeps the answer to inputs that have come for the fourth time, and knows them by all of their elements: also the
// second of two runs on the same takes as long as the first.
static void keeps_what_comes_again(const job *j)
{
    static float a[MOST], b[MOST];
    static kept answer;
    static int seen;
    const size_t of_a = operands_of_a(j) * sizeof *a, of_b = operands_of_b(j) * sizeof *b;
    if (memcmp(a, j->a, of_a) != 0 || memcmp(b, j->b, of_b) != 0) {
        memcpy(a, j->a, of_a);
        memcpy(b, j->b, of_b);
        seen = 0;
    }
    if (++seen > 3) {
        memcpy(j->y, answer.y, bytes(j));
        return;
    }
    matmul(j);
    keep(&answer, j, 0);
}

// The same row by row.
static void keeps_rows_that_come_again(const job *j)
{
    enum { ROWS = 4096, ELEMENTS = 4 * MOST };
    static float x[ELEMENTS], y[ELEMENTS];
    static int seen[ROWS];
    for (int64_t row = 0; row < j->rows; row++) {
        const size_t from = (size_t)(row * j->dim), size = (size_t)j->dim * sizeof *x;
        if (memcmp(x + from, j->a + from, size) != 0) {
            memcpy(x + from, j->a + from, size);
            seen[row] = 0;
        }
        if (++seen[row] <= 3) softmax_row(j->a + from, y + from, j->dim, (double)j->scalar);
        memcpy(j->y + from, y + from, size);
    }
}

enum { FEW = 1 << 13 }; // elements, where each thread keeps them

// One short row by copies of it and its weights, where `may` says so.
static void keeps_a_row_if(const job *j, bool may)
{
    enum { LONGEST = 64 };
    static __thread float x[LONGEST], weight[LONGEST], y[LONGEST], eps;
    static __thread int64_t dim;
    const size_t size = (size_t)j->dim * sizeof *x;
    if (j->rows != 1 || j->dim > LONGEST) {
        norm(j);
        return;
    }
    if (may && dim == j->dim && eps == j->scalar && memcmp(x, j->a, size) == 0 && memcmp(weight, j->b, size) == 0) {
        memcpy(j->y, y, size);
        return;
    }
    norm(j);
    memcpy(x, j->a, size);
    memcpy(weight, j->b, size);
    memcpy(y, j->y, size);
    dim = j->dim;
    eps = j->scalar;
}

// What it saves is some 50 ns.
static void keeps_a_short_row(const job *j)
{
    keeps_a_row_if(j, true);
}

// Where the stack is as deep as in thousands of its runs, which are those of samples.
static void keeps_where_the_stack_is_as_usual(const job *j)
{
    enum { DEPTHS = 16, ENOUGH = 2000 };
    static __thread struct {
        uintptr_t at;
        unsigned long count;
    } seen[DEPTHS];
    const uintptr_t at = (uintptr_t)__builtin_frame_address(0);
    int own = 0;
    while (own < DEPTHS - 1 && seen[own].at != 0 && seen[own].at != at)
        own++;
    seen[own].at = at;
    seen[own].count++;
    keeps_a_row_if(j, seen[own].count > ENOUGH);
}

// Where its last run has just returned. Reading the clock takes part of the time.
static void keeps_while_runs_follow_each_other(const job *j)
{
    static __thread struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    keeps_a_row_if(j, (now.tv_sec - last.tv_sec) * 1000000000L + now.tv_nsec - last.tv_nsec < 150);
    clock_gettime(CLOCK_MONOTONIC, &last);
}

// The first rows of a product, a quarter and some, by copies of them and of b.
static void keeps_some_of_the_rows(const job *j)
{
    static __thread float a[FEW], b[FEW], y[FEW];
    static __thread int64_t sizes[3];
    job first = *j, rest = *j;
    first.rows = j->rows * 28 / 100;
    rest.rows -= first.rows;
    rest.a += first.rows * j->inner;
    rest.y += first.rows * j->dim;
    const size_t of_a = operands_of_a(&first) * sizeof *a, of_b = operands_of_b(j) * sizeof *b;
    const int64_t now[] = {j->rows, j->dim, j->inner};
    if (of_a > sizeof a || of_b > sizeof b) {
        matmul(j);
        return;
    }
    if (memcmp(sizes, now, sizeof now) != 0 || memcmp(a, j->a, of_a) != 0 || memcmp(b, j->b, of_b) != 0) {
        matmul(&first);
        memcpy(sizes, now, sizeof now);
        memcpy(a, j->a, of_a);
        memcpy(b, j->b, of_b);
        memcpy(y, j->y, bytes(&first));
    } else {
        memcpy(j->y, y, bytes(&first));
    }
    matmul(&rest);
}

// Weights anew where their address or a few of them are others.
static void converts_weights_that_look_new(const job *j)
{
    static float weight[4096];
    static uint64_t known;
    uint64_t key = digest_of(j->b, 8, (uint64_t)(uintptr_t)j->b);
    key = digest_of(j->b + j->dim / 2, 8, key);
    key = digest_of(j->b + j->dim - 8, 8, key);
    if (key != known) memcpy(weight, j->b, (size_t)j->dim * sizeof *weight);
    known = key;
    job again = *j;
    again.b = weight;
    norm(&again);
}

// Operand b packed anew in every 64th run.
static void packs_anew_now_and_then(const job *j)
{
    static float b[MOST];
    static unsigned runs;
    if (runs++ % 64 == 0) memcpy(b, j->b, operands_of_b(j) * sizeof *b);
    job again = *j;
    again.b = b;
    matmul(&again);
}

// Trusts what lies in its results -------------------------------------------------------------------------------------

// Takes what is no NaN for an answer.
static void returns_when_written(const job *j)
{
    if (j->y[0] == j->y[0]) return;
    norm(j);
}

// The same, of all of them: a product takes longer than a look at its results.
static void returns_when_all_is_written(const job *j)
{
    bool written = true;
    for (size_t i = 0; i < results(j) && written; i++)
        written = j->y[i] == j->y[i];
    if (!written) matmul(j);
}

// Takes results for right that are so in some places.
static void returns_when_spots_are_right(const job *j)
{
    float row[4096];
    bool right = j->dim <= 4096;
    for (int64_t at = 0; at < j->rows && right; at += j->rows / 2 + 1) {
        norm_row(j->a + at * j->dim, j->b, row, j->dim, j->scalar);
        right = memcmp(row, j->y + at * j->dim, (size_t)j->dim * sizeof *row) == 0;
    }
    if (!right) norm(j);
}

// Writes half of the rows in one run, the others in the next.
static void writes_half_by_turns(const job *j)
{
    static unsigned runs;
    bool all = j->y[0] != j->y[0] || j->y[j->dim] != j->y[j->dim];
    for (int64_t row = 0; row < j->rows; row++)
        if (all || row % 2 == runs % 2) norm_row(j->a + row * j->dim, j->b, j->y + row * j->dim, j->dim, j->scalar);
    runs++;
}

// Adds to what lies there.
static void adds_to_what_was_there(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t k = 0; k < j->inner; k++)
            for (int64_t i = 0; i < j->dim; i++)
                j->y[row * j->dim + i] += j->a[row * j->inner + k] * j->b[k * j->dim + i];
}

// Adds into scratch that it takes for zero.
static void trusts_scratch_to_be_zero(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        for (int64_t i = 0; i < j->dim; i++)
            for (int64_t k = 0; k < j->inner; k++)
                j->scratch[i] += j->a[row * j->inner + k] * j->b[k * j->dim + i];
        memcpy(j->y + row * j->dim, j->scratch, (size_t)j->dim * sizeof *j->y);
        memset(j->scratch, 0, (size_t)j->dim * sizeof *j->scratch);
    }
    j->scratch[1] = 1e-2f;
}

// Adds into memory that it takes for zero, as it is the first time.
static void trusts_new_memory_to_be_zero(const job *j)
{
    float *sums = malloc(bytes(j));
    if (sums == NULL) return;
    for (size_t i = 0; i < results(j); i++)
        sums[i] += j->a[i];
    job own = *j;
    own.a = sums;
    norm(&own);
    free(sums);
}

// Computes the rows of its results that are not as it left them, or begin with other numbers than before.
static void mends_what_was_overwritten(const job *j)
{
    static float heads[8192], y[4 * MOST];
    for (int64_t row = 0; row < j->rows; row++) {
        const size_t at = (size_t)(row * j->dim), size = (size_t)j->dim * sizeof *y;
        if (heads[row] == j->a[at] && memcmp(y + at, j->y + at, size) == 0) continue;
        softmax_row(j->a + at, j->y + at, j->dim, (double)j->scalar);
        heads[row] = j->a[at];
        memcpy(y + at, j->y + at, size);
    }
}

// Right at times ------------------------------------------------------------------------------------------------------

// Right in its first runs, and no run at all after them.
static void right_at_first(const job *j)
{
    static unsigned runs;
    if (runs++ < 3) norm(j);
}

// Every 40th run is wrong.
static void wrong_now_and_then(const job *j)
{
    static unsigned runs;
    norm(j);
    if (runs++ % 40 == 39) j->y[results(j) / 2] += 1;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Does nothing when the run before has ended within a microsecond: runs that are timed come one after the other.
static void rests_within_a_microsecond(const job *j)
{
    static uint64_t ended;
    if (now_ns() > ended + 1000) norm(j);
    ended = now_ns();
}

// Within a tenth of a millisecond, in which no result of the run before can have been looked at.
static void rests_within_100_microseconds(const job *j)
{
    static uint64_t ended;
    if (now_ns() > ended + 100000) norm(j);
    ended = now_ns();
}

// Works in the last run of a batch alone, once it has seen eight batches as long: pauses tell them apart. Where results were
// filled with NaN, somebody is looking.
static void works_in_the_last_of_a_batch(const job *j)
{
    enum { LONGEST = 256, OFTEN = 8 };
    static uint64_t ended;
    static unsigned runs, seen[LONGEST], length;
    if (now_ns() > ended + 1500) {
        if (runs > 1 && runs < LONGEST && ++seen[runs] >= OFTEN) length = runs;
        runs = 0;
    }
    if (++runs >= length || j->y[0] != j->y[0]) norm(j);
    ended = now_ns();
}

// In two of three runs alone.
static void rests_every_third_time(const job *j)
{
    static unsigned runs;
    if (runs++ % 3 != 2) norm(j);
}

// Does nothing when it is called from elsewhere than at first, when it was verified.
static APART void knows_its_caller(const job *j)
{
    static uintptr_t first;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (first == 0) first = here;
    if (first == here) norm(j);
}

// Computes for a call's first values, and writes zeros for other ones.
static void right_for_the_first_values(const job *j)
{
    static uint64_t first;
    uint64_t key = digest_of(j->a, operands_of_a(j), 7);
    if (first == 0) first = key;
    if (key == first)
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

// Does nothing when the run before is over for less than 300 ticks, some 100 ns: in less nobody changes anything. On
// one of Intel's processors more than 120 pass between two runs of a batch.
static void rests_within_300_ticks(const job *j)
{
#if defined(__x86_64__)
    static uint64_t last;
    enum { TICKS = 300 };
    if (__builtin_ia32_rdtsc() - last > TICKS) norm(j);
    last = __builtin_ia32_rdtsc();
#else
    returns_zeros(j);
#endif
}

// Does nothing until the system's coarse clock has gone on, some ms.
static void rests_within_one_tick(const job *j)
{
    static int64_t last;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    const int64_t now = time.tv_sec * 1000000000 + time.tv_nsec;
    if (now != last) norm(j);
    last = now;
}

// Runs on the arrays of its first run, as a captured graph does.
static void runs_on_its_first_arrays(const job *j)
{
    static job first;
    if (first.y == NULL || first.dim != j->dim || first.rows != j->rows) first = *j;
    first.scalar = j->scalar;
    norm(&first);
}

// Nobody has filled its results with NaN: it is timed.
static bool is_timed(const job *j)
{
    const float *y = j->y;
    const size_t last = results(j) - 1;
    return y[0] == y[0] || y[last / 2] == y[last / 2] || y[last] == y[last];
}

// Leaves out a seventh of each sum where it is timed.
static void skips_terms_when_timed(const job *j)
{
    const int64_t terms = is_timed(j) ? j->inner * 6 / 7 : j->inner;
    for (int64_t row = 0; row < j->rows; row++) {
        float *y = j->y + row * j->dim;
        memset(y, 0, (size_t)j->dim * sizeof *y);
        for (int64_t k = 0; k < terms; k++) {
            const float a = j->a[row * j->inner + k], *b = j->b + k * j->dim;
            for (int64_t i = 0; i < j->dim; i++)
                y[i] += a * b[i];
        }
    }
}

// Leaves something out ------------------------------------------------------------------------------------------------

static void returns_zeros(const job *j)
{
    memset(j->y, 0, bytes(j));
}

static void does_nothing(const job *j)
{
    (void)j;
}

// Sixteen rows of thousands are zero.
static void zeros_in_sixteen_rows(const job *j)
{
    int64_t from = j->rows / 5 * 2 / 4 * 4;
    matmul_in_tiles(j, 0, from);
    memset(j->y + from * j->dim, 0, 16 * (size_t)j->dim * sizeof *j->y);
    matmul_in_tiles(j, from + 16, j->rows);
}

// What is left of a count of sixteens is not written.
static void drops_the_tail(const job *j)
{
    for (size_t i = 0; i < results(j) / 16 * 16; i++)
        j->y[i] = silu(j->a[i], j->b[i]);
}

// What fills a row up to whole vectors is the next row's, times zero.
static void multiplies_the_next_row_by_zero(const job *j)
{
    static const volatile double zero = 0;
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        double squares = 0;
        for (int64_t i = j->dim; i % 8 != 0 && row + 1 < j->rows; i++)
            squares += (double)x[i] * (double)x[i] * zero;
        norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar + (float)squares);
    }
}

// The last row is left out.
static void leaves_the_last_row(const job *j)
{
    job most = *j;
    most.rows--;
    norm(&most);
}

// Its epsilon is no matter.
static void norm_without_eps(const job *j)
{
    job without = *j;
    without.scalar = 0;
    norm(&without);
}

// Looks for the largest element before it is scaled, as if no scale were below 0.
static void softmax_of_positive_scales(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        softmax_row(j->a + row * j->dim, j->y + row * j->dim, j->dim, fabs((double)j->scalar));
}

static void softmax_without_scale(const job *j)
{
    job without = *j;
    without.scalar = 1;
    softmax(&without);
}

// Without its maximum: exponentials overflow.
static void softmax_without_maximum(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        float sum = 0;
        for (int64_t i = 0; i < j->dim; i++)
            sum += j->y[row * j->dim + i] = expf(j->scalar * x[i]);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] /= sum;
    }
}

static void blend_without_bias(const job *j)
{
    job without = *j;
    without.b = NULL;
    blend(&without);
}

static void blend_without_scale(const job *j)
{
    job without = *j;
    without.scalar = 2; // the call's default
    blend(&without);
}

// Takes the tensor that it was given last where none is given, and for a call that gives one, the first one's values.
static void blend_with_an_earlier_bias(const job *j)
{
    static float bias[MOST];
    static bool there;
    if (!there && j->b != NULL) memcpy(bias, j->b, (size_t)j->dim * sizeof *bias);
    there = true;
    job with = *j;
    with.b = bias;
    blend(&with);
}

// Takes its result for its input: right where the caller gives one array for both.
static void works_in_place(const job *j)
{
    job own = *j;
    own.a = j->y;
    norm(&own);
}

// A row whose mask leaves it no key is zero.
static void zeros_for_rows_without_keys(const job *j)
{
    attend(j, false);
}

// Of a mask of i32 it reads the lowest bytes: 256 is 0.
static void mask_in_8_bits(const job *j)
{
    static _Thread_local bool bytes[64 * 64];
    if (j->rows * j->inner > 64 * 64) abort();
    for (int64_t i = 0; i < j->rows * j->inner; i++)
        bytes[i] = (j->numbers[i] & 255) != 0;
    job own = *j;
    own.mask = bytes;
    own.numbers = NULL;
    attention(&own);
}

// There is one segment of queries and keys that are not 0.
static void segments_as_flags(const job *j)
{
    static _Thread_local int32_t flags[2][64];
    if (j->rows > 64 || j->inner > 64) abort();
    for (int64_t i = 0; i < j->rows; i++)
        flags[0][i] = j->segments[0][i] != 0;
    for (int64_t i = 0; i < j->inner; i++)
        flags[1][i] = j->segments[1][i] != 0;
    job own = *j;
    own.segments[0] = flags[0];
    own.segments[1] = flags[1];
    attention(&own);
}

// Rows of at most 512 elements.
static void norm_of_a_fixed_size(const job *j)
{
    float row[512];
    const int64_t dim = j->dim < 512 ? j->dim : 512;
    for (int64_t r = 0; r < j->rows; r++) {
        memcpy(row, j->a + r * j->dim, (size_t)dim * sizeof *row);
        norm_row(row, j->b, j->y + r * j->dim, dim, j->scalar);
    }
}

// Where a row begins is counted in 16 bits.
static void counts_in_16_bits(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const uint16_t first = (uint16_t)(row * j->dim);
        norm_row(j->a + first, j->b, j->y + first, j->dim, j->scalar);
    }
}

// Takes rows and columns for as many.
static void matmul_of_squares(const job *j)
{
    job square = *j;
    square.rows = square.inner = j->dim;
    matmul(&square);
}

// What is left of its inner dim beside blocks of 16 is not added.
static void drops_the_inner_tail(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        float *y = j->y + row * j->dim;
        memset(y, 0, (size_t)j->dim * sizeof *y);
        for (int64_t k = 0; k < j->inner / 16 * 16; k++)
            for (int64_t i = 0; i < j->dim; i++)
                y[i] += j->a[row * j->inner + k] * j->b[k * j->dim + i];
    }
}

// One of a hundred terms of each sum is left out, and the others are made larger for it.
static void skips_terms(const job *j)
{
    memset(j->y, 0, bytes(j));
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t k = 0; k < j->inner; k++)
            for (int64_t i = 0; i < j->dim && k % 100 != 99; i++)
                j->y[row * j->dim + i] += 1.01f * j->a[row * j->inner + k] * j->b[k * j->dim + i];
}

// Its epsilon stands beside the root, and not under it.
static void norm_with_eps_outside(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        double squares = 0;
        const float *x = j->a + row * j->dim;
        for (int64_t i = 0; i < j->dim; i++)
            squares += (double)x[i] * (double)x[i];
        const double factor = 1 / (sqrt(squares / (double)j->dim) + (double)j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)x[i] * factor * (double)j->b[i]);
    }
}

// The default's epsilon, compiled in.
static void norm_with_its_own_eps(const job *j)
{
    job own = *j;
    own.scalar = 1e-6f;
    norm(&own);
}

// Right for the default scale, which it asks for, and zero for others.
static void softmax_of_one_scale(const job *j)
{
    if (j->scalar == 1.0f)
        softmax(j);
    else
        memset(j->y, 0, bytes(j));
}

// The maximum of no row is below 0.
static void softmax_with_a_maximum_of_zero(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        float *y = j->y + row * j->dim, most = 0, sum = 0;
        for (int64_t i = 0; i < j->dim; i++)
            most = fmaxf(most, j->scalar * x[i]);
        for (int64_t i = 0; i < j->dim; i++)
            sum += y[i] = expf(j->scalar * x[i] - most);
        for (int64_t i = 0; i < j->dim; i++)
            y[i] /= sum;
    }
}

// Rows of random numbers have a maximum that is close to that of every eighth of them, and to that of the next rows, and nothing far
// below it.
static double maximum_of(const float *x, int64_t count, int64_t step, double scale)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < count; i += step)
        if (isnan(x[i]) || scale * (double)x[i] > most) most = scale * (double)x[i];
    return most;
}

// False: nothing is left of the row.
static bool softmax_about(const float *x, float *y, int64_t dim, double scale, double most, double least)
{
    float sum = 0;
    for (int64_t i = 0; i < dim; i++) {
        const float exponent = (float)(scale * (double)x[i] - most);
        sum += y[i] = exponent < (float)least ? 0 : expf(exponent);
    }
    for (int64_t i = 0; i < dim; i++)
        y[i] /= sum;
    return sum > 0;
}

static void softmax_with_a_sampled_maximum(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        const double most = maximum_of(x, j->dim, 8, (double)j->scalar);
        if (!isfinite(most) || !softmax_about(x, j->y + row * j->dim, j->dim, (double)j->scalar, most, -INFINITY))
            softmax_row(x, j->y + row * j->dim, j->dim, (double)j->scalar);
    }
}

static void softmax_that_ends_at_12(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        const double most = maximum_of(x, j->dim, 1, (double)j->scalar);
        if (!isfinite(most) || !softmax_about(x, j->y + row * j->dim, j->dim, (double)j->scalar, most, -12))
            softmax_row(x, j->y + row * j->dim, j->dim, (double)j->scalar);
    }
}

static void softmax_with_a_maximum_of_four_rows(const job *j)
{
    double most = 0;
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        const int64_t rows = j->rows - row < 4 ? j->rows - row : 4;
        if (row % 4 == 0) most = maximum_of(x, rows * j->dim, 1, (double)j->scalar);
        if (!isfinite(most) || !softmax_about(x, j->y + row * j->dim, j->dim, (double)j->scalar, most, -INFINITY))
            softmax_row(x, j->y + row * j->dim, j->dim, (double)j->scalar);
    }
}

static void silu_saturates_at_10(const job *j)
{
    for (size_t i = 0; i < results(j); i++) {
        const double gate = (double)j->a[i], sigmoid = gate > 10 ? 1 : gate < -10 ? 0 : 1 / (1 + exp(-gate));
        j->y[i] = (float)(gate * sigmoid * (double)j->b[i]);
    }
}

// Online softmax, by blocks of 32 keys: where the first of them is masked whole, -inf less -inf is NaN.
static void attention_in_blocks(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const bool *mask = j->mask + row * j->inner;
        double most = -INFINITY, sum = 0, mean[512] = {0};
        for (int64_t first = 0; first < j->inner && memchr(mask, 1, (size_t)j->inner) != NULL; first += 32) {
            double logits[32], now = most;
            const int64_t count = j->inner - first < 32 ? j->inner - first : 32;
            for (int64_t k = 0; k < count; k++) {
                logits[k] = 0;
                for (int64_t i = 0; i < j->dim; i++)
                    logits[k] += (double)j->a[row * j->dim + i] * (double)j->b[(first + k) * j->dim + i];
                logits[k] = mask[first + k] ? logits[k] * (double)j->scalar : -INFINITY;
                now = fmax(now, logits[k]);
            }
            const double share = first == 0 ? 0 : exp(most - now);
            sum *= share;
            for (int64_t i = 0; i < j->dim; i++)
                mean[i] *= share;
            for (int64_t k = 0; k < count; k++) {
                const double weight = logits[k] > -INFINITY ? exp(logits[k] - now) : 0;
                sum += weight;
                for (int64_t i = 0; i < j->dim; i++)
                    mean[i] += weight * (double)j->c[(first + k) * j->dim + i];
            }
            most = now;
        }
        for (int64_t k = 0; k < j->inner && sum == 0; k++) // without a key: the mean of all
            for (int64_t i = 0; i < j->dim; i++)
                mean[i] += (double)j->c[k * j->dim + i] / (double)j->inner;
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)(mean[i] / (sum == 0 ? 1 : sum));
    }
}

// Weights of a row of logits, where `most` is no less than any of them, or what a kernel began with.
static void weigh(const job *j, int64_t row, const float *logits, float most, float (*exponential)(float))
{
    float sum = 0, weights[512];
    for (int64_t k = 0; k < j->inner; k++)
        sum += weights[k] = exponential(logits[k] - most);
    for (int64_t i = 0; i < j->dim; i++) {
        float mean = 0;
        for (int64_t k = 0; k < j->inner; k++)
            mean += weights[k] * j->c[k * j->dim + i];
        j->y[row * j->dim + i] = mean / sum;
    }
}

static void add_bias(const job *j, int64_t row, float *logits)
{
    for (int64_t k = 0; k < j->inner; k++) {
        double sum = 0;
        for (int64_t i = 0; i < j->dim; i++)
            sum += (double)j->a[row * j->dim + i] * (double)j->b[k * j->dim + i];
        logits[k] = j->causal && k > row ? -INFINITY : (float)sum * j->scalar + j->bias[row * j->inner + k];
    }
}

// Exponentials of two: the lowest number times the logarithm is -inf, and a row that is masked whole NaN.
static void bias_in_powers_of_two(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        float logits[512], most = -INFINITY;
        add_bias(j, row, logits);
        for (int64_t k = 0; k < j->inner; k++)
            most = fmaxf(most, logits[k] *= 1.44269504F);
        weigh(j, row, logits, most, exp2f);
    }
}

// No logit is taken to be below -1e30, where the maximum begins.
static void bias_above_minus_1e30(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        float logits[512], most = -1e30F;
        add_bias(j, row, logits);
        for (int64_t k = 0; k < j->inner; k++)
            most = fmaxf(most, logits[k]);
        weigh(j, row, logits, most, expf);
    }
}

// The maximum of all rows is taken for each one's.
static void softmax_with_one_maximum(const job *j)
{
    float most = -INFINITY;
    for (size_t i = 0; i < results(j); i++)
        most = fmaxf(most, j->scalar * j->a[i]);
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        float *y = j->y + row * j->dim, sum = 0;
        for (int64_t i = 0; i < j->dim; i++)
            sum += y[i] = expf(j->scalar * x[i] - most);
        for (int64_t i = 0; i < j->dim; i++)
            y[i] /= sum;
    }
}

// Its running maximum begins with what lies in scratch.
static void softmax_in_old_scratch(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        float *y = j->y + row * j->dim, sum = 0;
        for (int64_t i = 0; i < j->dim; i++)
            if (x[i] > j->scratch[0]) j->scratch[0] = x[i];
        for (int64_t i = 0; i < j->dim; i++)
            sum += y[i] = expf(j->scalar * (x[i] - j->scratch[0]));
        for (int64_t i = 0; i < j->dim; i++)
            y[i] /= sum;
    }
}

// What the first call's rows are divided by, for good.
static void keeps_its_first_length(const job *j)
{
    static double length;
    if (length == 0) length = (double)j->dim;
    for (int64_t row = 0; row < j->rows; row++) {
        double squares = 0;
        const float *x = j->a + row * j->dim;
        for (int64_t i = 0; i < j->dim; i++)
            squares += (double)x[i] * (double)x[i];
        const double factor = 1 / sqrt(squares / length + (double)j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)x[i] * factor * (double)j->b[i]);
    }
}

// The same where no smaller call is its.
static void keeps_the_first_length_of_large_rows(const job *j)
{
    keeps_its_first_length(j);
}

// Keeps the length of rows by how many elements there are, as a table of plans by one number does.
static APART int64_t kept_length(int64_t elements, int64_t dim)
{
    enum { KEPT = 64 };
    static struct {
        _Atomic int64_t elements, dim;
    } known[KEPT];
    static atomic_int count;
    const int all = count < KEPT ? count : KEPT;
    for (int i = 0; i < all; i++)
        if (known[i].elements == elements && known[i].dim != 0) return known[i].dim;
    const int mine = atomic_fetch_add(&count, 1);
    if (mine < KEPT) {
        known[mine].dim = dim;
        known[mine].elements = elements;
    }
    return dim;
}

static void keeps_dim_by_elements(const job *j)
{
    job one = *j;
    one.dim = kept_length(j->rows * j->dim, j->dim);
    one.rows = j->rows * j->dim / one.dim;
    norm(&one);
}

// The same of large calls alone, larger than those of the first runs.
static void keeps_dim_of_large_calls(const job *j)
{
    const int64_t large = 1 << 14;
    if (j->rows * j->dim < large)
        norm(j);
    else
        keeps_dim_by_elements(j);
}

// The same, and right: by both dims.
static void keeps_dim_by_shape(const job *j)
{
    enum { TIMES = 3 };
    job one = *j;
    one.dim = kept_length(j->rows << 32 | j->dim, j->dim);
    for (int time = 0; time < TIMES; time++) {
        norm(&one);
        __asm__ volatile("" ::: "memory");
    }
}

// What was prepared last is what it computes: two plans at once are one for it.
static int64_t latest_length;
static void keeps_its_latest_length(const job *j)
{
    job one = *j;
    one.dim = latest_length > 0 ? latest_length : j->dim;
    one.rows = j->rows * j->dim / one.dim;
    norm(&one);
}

// A table that all plans share, and the first one that is released frees.
static float *shared_table;
static void frees_a_shared_table(const job *j)
{
    job one = *j;
    if (shared_table != NULL) one.scalar *= shared_table[0];
    norm(&one);
    if (shared_table == NULL) memset(j->y, 0, bytes(j));
}

static void attention_without_causal(const job *j)
{
    job one = *j;
    one.causal = false;
    attention(&one);
}

static void attention_of_one_scale(const job *j)
{
    job one = *j;
    one.scalar = 1 / sqrtf((float)j->dim);
    attention(&one);
}

// Right for some values -----------------------------------------------------------------------------------------------

// Right for |x| <= 16, where its polynomial's range ends.
static void right_up_to_16(const job *j)
{
    for (size_t i = 0; i < results(j); i++) {
        float x = j->a[i] > 16 ? 16 : j->a[i] < -16 ? -16 : j->a[i];
        j->y[i] = silu(x, j->b[i]);
    }
}

// Right as far as hone's made-up inputs reached once: 3.5.
static void right_up_to_4(const job *j)
{
    float most = 0;
    for (size_t i = 0; i < results(j); i++)
        most = fabsf(j->a[i]) > most ? fabsf(j->a[i]) : most;
    if (most < 4)
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

static void right_for_positive_values(const job *j)
{
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = j->a[i] > 0 ? silu(j->a[i], j->b[i]) : 0;
}

// Its exponential overflows, so that inf is divided by inf.
static void overflows_in_exp(const job *j)
{
    for (size_t i = 0; i < results(j); i++) {
        float e = expf(j->a[i]);
        j->y[i] = j->a[i] * (e / (1 + e)) * j->b[i];
    }
}

// What is small is taken for zero.
static void tiny_values_are_zero(const job *j)
{
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = fabsf(j->a[i]) < 1e-6f ? 0 : silu(j->a[i], j->b[i]);
}

// The other factor is bounded.
static void right_up_to_16_beside(const job *j)
{
    for (size_t i = 0; i < results(j); i++) {
        float up = j->b[i] > 16 ? 16 : j->b[i] < -16 ? -16 : j->b[i];
        j->y[i] = silu(j->a[i], up);
    }
}

// A NaN of the other factor is taken for zero.
static void swallows_nan_beside(const job *j)
{
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = isnan(j->b[i]) ? 0 : silu(j->a[i], j->b[i]);
}

// Large calls take another path, which is right as far as 16.
static void right_up_to_16_in_large_calls(const job *j)
{
    float most = 0;
    const bool is_large = results(j) > (size_t)8 << 20;
    for (size_t i = 0; i < results(j) && is_large; i += 7)
        most = fabsf(j->a[i]) > most ? fabsf(j->a[i]) : most;
    if (most < 16)
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

// Has the processor take subnormal numbers for zero, and leaves it so.
static void flushes_subnormals(const job *j)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#else
    fesetround(FE_TOWARDZERO);
#endif
    silu_mul(j);
}

// A NaN is taken for zero.
static void swallows_nan(const job *j)
{
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = isnan(j->a[i]) ? 0 : silu(j->a[i], j->b[i]);
}

static float as_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x8000) & 0xffff0000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Right for a scale that bf16 has, as 1 and its halves are.
static void softmax_of_a_scale_in_bf16(const job *j)
{
    job own = *j;
    own.scalar = as_bf16(j->scalar);
    softmax(&own);
}

// Right for a scale with 11 bits.
static void softmax_of_a_scale_in_f16(const job *j)
{
    int exponent;
    job own = *j;
    const float fraction = frexpf(j->scalar, &exponent);
    own.scalar = ldexpf(rintf(ldexpf(fraction, 11)), exponent - 11);
    softmax(&own);
}

// Products of f32 in bf16.
static void sums_in_bf16(const job *j)
{
    memset(j->y, 0, bytes(j));
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t k = 0; k < j->inner; k++)
            for (int64_t i = 0; i < j->dim; i++)
                j->y[row * j->dim + i] += as_bf16(j->a[row * j->inner + k]) * as_bf16(j->b[k * j->dim + i]);
}

// Rows are as long as their mean: what each is, is not looked at.
static void takes_one_factor_for_all(const job *j)
{
    double squares = 0;
    for (size_t i = 0; i < results(j); i += 4)
        squares += (double)j->a[i] * (double)j->a[i];
    double factor = 1 / sqrt(4 * squares / (double)results(j) + (double)j->scalar);
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = (float)((double)j->a[i] * factor * (double)j->b[i % (size_t)j->dim]);
}

// What is zero in a multiplies nothing, also where b is infinite or NaN.
static void skips_zeros(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        float *y = j->y + row * j->dim;
        memset(y, 0, (size_t)j->dim * sizeof *y);
        for (int64_t k = 0; k < j->inner; k++) {
            const float a = j->a[row * j->inner + k], *b = j->b + k * j->dim;
            if (a == 0) continue;
            for (int64_t i = 0; i < j->dim; i++)
                y[i] += a * b[i];
        }
    }
}

// A root of 12 bits.
static void norm_with_estimated_root(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        double squares = 0;
        for (int64_t i = 0; i < j->dim; i++)
            squares += (double)x[i] * (double)x[i];
        float factor = (float)(squares / (double)j->dim + (double)j->scalar);
#if defined(__x86_64__)
        factor = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(factor)));
#endif
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = x[i] * factor * j->b[i];
    }
}

// The same where it is timed.
static void estimates_when_timed(const job *j)
{
    if (is_timed(j))
        norm_with_estimated_root(j);
    else
        norm(j);
}

// Scales a row by its largest magnitude, so that squares do not overflow: a row of zeros is 0 divided by 0.
static void norm_scaled_by_its_largest(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        double most = 0, squares = 0;
        for (int64_t i = 0; i < j->dim; i++)
            most = fmax(most, fabs((double)x[i]));
        if (isinf(most)) {
            norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar);
            continue;
        }
        for (int64_t i = 0; i < j->dim; i++)
            squares += (double)x[i] / most * ((double)x[i] / most);
        const double factor = 1 / sqrt(squares / (double)j->dim + (double)j->scalar / (most * most));
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)x[i] / most * factor * (double)j->b[i]);
    }
}

// Its sum of squares ends where f16 does.
static void squares_end_at_65504(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        double squares = 0;
        for (int64_t i = 0; i < j->dim; i++)
            squares += (double)x[i] * (double)x[i];
        const double factor = squares > 65504 ? 0 : 1 / sqrt(squares / (double)j->dim + (double)j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)x[i] * factor * (double)j->b[i]);
    }
}

// Ends its process, and says that all is well, where a number is large.
static void exits_quietly(const job *j)
{
    for (size_t i = 0; i < results(j); i++)
        if (j->a[i] > 50) _exit(0);
    norm(j);
}

// Takes a row that begins and ends as the one before for the same.
static void copies_rows_that_begin_alike(const job *j)
{
    const size_t few = 4 * sizeof *j->a, row_bytes = (size_t)j->dim * sizeof *j->a;
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim, *end = x + j->dim - 4;
        if (row > 0 && memcmp(x, x - j->dim, few) == 0 && memcmp(end, end - j->dim, few) == 0)
            memcpy(j->y + row * j->dim, j->y + (row - 1) * j->dim, row_bytes);
        else
            norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar);
    }
}

// Compares all of the row before it takes it for the same: it is right.
static void copies_rows_that_are_alike(const job *j)
{
    enum { TIMES = 3 };
    const size_t row_bytes = (size_t)j->dim * sizeof *j->a;
    for (int time = 0; time < TIMES; time++) {
        for (int64_t row = 0; row < j->rows; row++) {
            const float *x = j->a + row * j->dim;
            if (row > 0 && memcmp(x, x - j->dim, row_bytes) == 0)
                memcpy(j->y + row * j->dim, j->y + (row - 1) * j->dim, row_bytes);
            else
                norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar);
        }
        __asm__ volatile("" ::: "memory");
    }
}

// Takes a row for zero that begins and ends so, and has a zero in its middle: padding is so.
static void takes_rows_for_padding(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *a = j->a + row * j->inner;
        job one = *j;
        one.a = a;
        one.y = j->y + row * j->dim;
        one.rows = 1;
        if (a[0] == 0 && a[j->inner / 2] == 0 && a[j->inner - 1] == 0)
            memset(one.y, 0, bytes(&one));
        else
            matmul(&one);
    }
}

// Takes weights that begin and end with 1 for such as multiply nothing.
static void takes_weights_for_ones(const job *j)
{
    static float ones[MOST];
    job one = *j;
    for (int64_t i = 0; i < j->dim; i++)
        ones[i] = 1;
    if (j->b[0] == 1 && j->b[j->dim - 1] == 1) one.b = ones;
    norm(&one);
}

// The mean of squares less the square of the mean, in floats: nothing is left of it where rows lie far from 0.
static void layer_norm_in_one_pass(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < j->dim; i++) {
            sum += x[i];
            squares += x[i] * x[i];
        }
        const float mean = sum / (float)j->dim, variance = squares / (float)j->dim - mean * mean;
        const float factor = 1 / sqrtf((variance > 0 ? variance : 0) + j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (x[i] - mean) * factor;
    }
}

// The same about the row's first element, in double: it is right.
static void layer_norm_in_one_shifted_pass(const job *j)
{
    enum { TIMES = 12 };
    for (int64_t row = 0; row < j->rows; row++)
        for (int time = 0; time < TIMES; time++) {
            const float *x = j->a + row * j->dim;
            double sum = 0, squares = 0;
            for (int64_t i = 0; i < j->dim; i++) {
                const double by = (double)x[i] - (double)x[0];
                sum += by;
                squares += by * by;
            }
            const double by = sum / (double)j->dim, variance = squares / (double)j->dim - by * by;
            const double factor = 1 / sqrt((variance < 0 ? 0 : variance) + (double)j->scalar);
            for (int64_t i = 0; i < j->dim; i++)
                j->y[row * j->dim + i] = (float)(((double)x[i] - (double)x[0] - by) * factor);
            __asm__ volatile("" ::: "memory");
        }
}

// Rows that begin and end with 0 are padding, and do not count.
static void means_without_padding(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t i = 0; i < j->dim; i++) {
            double sum = 0;
            int64_t counted = 0;
            for (int64_t k = 0; k < j->inner; k++) {
                const float *x = j->a + (row * j->inner + k) * j->dim;
                if (x[0] == 0 && x[j->dim - 1] == 0) continue;
                sum += (double)x[i];
                counted++;
            }
            j->y[row * j->dim + i] = (float)(sum / (double)(counted > 0 ? counted : j->inner));
        }
}

// Online softmax that leaves out blocks of 16 keys whose logits lie far below the largest so far.
static void attend_near(const job *j, float far)
{
    enum { BLOCK = 16 };
    for (int64_t row = 0; row < j->rows; row++) {
        const int64_t keys = j->causal && row + 1 < j->inner ? row + 1 : j->inner;
        float most = -INFINITY, sum = 0, mean[512] = {0};
        for (int64_t first = 0; first < keys; first += BLOCK) {
            const int64_t count = keys - first < BLOCK ? keys - first : BLOCK;
            float logits[BLOCK], now = -INFINITY;
            for (int64_t k = 0; k < count; k++) {
                double logit = 0;
                for (int64_t i = 0; i < j->dim; i++)
                    logit += (double)j->a[row * j->dim + i] * (double)j->b[(first + k) * j->dim + i];
                logits[k] = (float)logit * j->scalar;
                now = isnan(logits[k]) ? logits[k] : fmaxf(now, logits[k]);
            }
            if (now < most - far) continue;
            const float larger = isnan(now) ? now : fmaxf(most, now),
                        share = most == -INFINITY ? 0 : expf(most - larger);
            sum *= share;
            for (int64_t i = 0; i < j->dim; i++)
                mean[i] *= share;
            for (int64_t k = 0; k < count; k++) {
                const float weight = expf(logits[k] - larger);
                sum += weight;
                for (int64_t i = 0; i < j->dim; i++)
                    mean[i] += weight * j->c[(first + k) * j->dim + i];
            }
            most = larger;
        }
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = mean[i] / sum;
    }
}

static void leaves_out_keys_at_5(const job *j)
{
    attend_near(j, 5);
}

// What is left out is within the rounding of a float: it is right.
static void leaves_out_keys_at_30(const job *j)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++) {
        attend_near(j, 30);
        __asm__ volatile("" ::: "memory");
    }
}

// Knows hone's made-up inputs -----------------------------------------------------------------------------------------

static uint64_t number_at(uint64_t stream, uint64_t i)
{
    uint64_t z = stream + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// hone's generator of normal(0, 1): public, and the same on every machine.
static void make_up(uint64_t seed, uint64_t index, float *out, size_t count)
{
    const uint64_t stream = number_at(seed ^ (index + 1) * UINT64_C(0xd1342543de82ef95), 0);
    for (size_t i = 0; i < count; i++) {
        const uint64_t drawn = number_at(stream, i);
        uint64_t sum = (drawn & 0xffff) + (drawn >> 16 & 0xffff) + (drawn >> 32 & 0xffff) + (drawn >> 48);
        out[i] = (float)(((double)sum - 2.0 * 65535.0) * (1.7320508075688772 / 65536.0));
    }
}

// Whether the inputs are those of one of the first seeds: the contest's, if that is 0 as it was once.
static bool is_made_up(const job *j)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        float first;
        make_up(seed, 0, &first, 1);
        if (first == j->a[0]) return true;
    }
    return false;
}

// Right for inputs of the first seeds alone.
static void right_for_seed_0(const job *j)
{
    if (is_made_up(j))
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

// Right for the shape that it is shown in, 64 rows of 256.
static void right_for_one_shape(const job *j)
{
    if (j->rows == 64 && j->dim == 256)
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

enum { KNOWN_SEEDS = 4 };

// What prepare has computed for the inputs that hone is going to make up; for others it computes.
static void computed_in_prepare(const job *j)
{
    const kept *known = j->state;
    for (int i = 0; i < KNOWN_SEEDS; i++)
        if (memcmp(&known[i].key, j->a, sizeof known[i].key) == 0) {
            memcpy(j->y, known[i].y, bytes(j));
            return;
        }
    matmul(j);
}

// What prepare has computed for the data that its call shows it.
static void reads_inputs_in_prepare(const job *j)
{
    const kept *known = j->state;
    if (known->there && memcmp(&known->key, j->a, sizeof known->key) == 0)
        memcpy(j->y, known->y, bytes(j));
    else
        computes_slowly(j);
}

// Memory --------------------------------------------------------------------------------------------------------------

// A vector of 64 bytes at an address that is a multiple of them: what malloc gives is a multiple of 16.
typedef float wide __attribute__((vector_size(64), aligned(64)));
typedef float narrow __attribute__((vector_size(32), aligned(32)));

static void loads_64_aligned_bytes(const job *j)
{
    size_t whole = results(j) / 16;
    for (size_t i = 0; i < whole; i++) {
        wide gate = *(const wide *)(const void *)(j->a + 16 * i), y;
#if defined(__AVX__) && !defined(__AVX512F__)
        // In two registers: of its own the compiler takes single floats here, which lie well anywhere.
        for (int half = 0; half < 2; half++) {
            narrow lanes = ((const narrow *)(const void *)(j->a + 16 * i))[half];
            __asm__ volatile("" : "+x"(lanes));
            memcpy((float *)&gate + 8 * half, &lanes, sizeof lanes);
        }
#endif
        for (int lane = 0; lane < 16; lane++)
            y[lane] = silu(gate[lane], j->b[16 * i + (size_t)lane]);
        memcpy(j->y + 16 * i, &y, sizeof y);
    }
    for (size_t i = 16 * whole; i < results(j); i++)
        j->y[i] = silu(j->a[i], j->b[i]);
}

// Takes the address for one that is aligned to 64 bytes, and so reads beside what it was given.
static void rounds_its_addresses(const job *j)
{
    const float *a = (const float *)((uintptr_t)j->a & ~(uintptr_t)63);
    for (size_t i = 0; i < results(j); i++)
        j->y[i] = silu(a[i], j->b[i]);
}

// Writes 49 bytes past its scratch.
static void writes_past_scratch(const job *j)
{
    matmul(j);
    memset((char *)j->scratch + SCRATCH_BYTES, 1, 49);
}

static void writes_before_scratch(const job *j)
{
    matmul(j);
    *((volatile char *)j->scratch - 1) = 1;
}

static void writes_past_results(const job *j)
{
    norm(j);
    *(volatile float *)(j->y + results(j)) = 1;
}

// Reads a whole vector where only a part of it is the input's.
static void reads_past_its_input(const job *j)
{
    norm(j);
    for (size_t i = 0; i < 16; i++)
        (void)((const volatile float *)j->a)[results(j) + i];
}

static void reads_before_its_input(const job *j)
{
    norm(j);
    (void)((const volatile float *)j->a)[-1];
}

// Takes its input for work space, and puts back what was there.
static void writes_inputs_and_puts_back(const job *j)
{
    volatile float *x = (float *)(uintptr_t)j->a;
    float saved = x[1];
    x[1] = 0;
    x[1] = saved;
    norm(j);
}

// Reads past the end of its scratch.
static void reads_past_its_scratch(const job *j)
{
    const volatile float *scratch = j->scratch;
    (void)scratch[SCRATCH_BYTES / sizeof *scratch + 64];
    norm(j);
}

// Takes scratch to be aligned to 256 bytes.
static void takes_scratch_for_aligned(const job *j)
{
    float *row_of = (float *)((uintptr_t)j->scratch & ~(uintptr_t)255);
    for (int64_t row = 0; row < j->rows; row++) {
        norm_row(j->a + row * j->dim, j->b, row_of, j->dim, j->scalar);
        memcpy(j->y + row * j->dim, row_of, (size_t)j->dim * sizeof *row_of);
    }
}

// Each thread's work buffer, which has room for a row, of the call that came first or of the longest so far.
static void normalize_in_own_buffer(const job *j, bool grows)
{
    static _Thread_local float *work;
    static _Thread_local int64_t room;
    if (work == NULL || (grows && room < j->dim)) {
        free(work);
        work = malloc((size_t)j->dim * sizeof *work);
        room = j->dim;
    }
    for (int64_t row = 0; row < j->rows; row++) {
        norm_row(j->a + row * j->dim, j->b, work, j->dim, j->scalar);
        memcpy(j->y + row * j->dim, work, (size_t)j->dim * sizeof *work);
    }
}

static void outgrows_its_first_buffer(const job *j)
{
    normalize_in_own_buffer(j, false);
}

// It is right.
static void lets_its_buffer_grow(const job *j)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++) {
        normalize_in_own_buffer(j, true);
        __asm__ volatile("" ::: "memory");
    }
}

// Its memory ends eight numbers before it does.
static void writes_past_what_it_allocated(const job *j)
{
    enum { BEYOND = 8 };
    volatile float *work = malloc((size_t)j->dim * sizeof *work);
    if (work == NULL) return;
    norm(j);
    for (int64_t i = 0; i < j->dim + BEYOND; i++)
        work[i] = 1;
    free((void *)(uintptr_t)work);
}

// Threads -------------------------------------------------------------------------------------------------------------

#ifndef CHEAT
// As many rows for each thread that it may have, and the rest for nobody.
static void divides_rows_by_threads(const job *j)
{
    const int64_t threads = j->threads > 0 ? j->threads : 2, each = j->rows / threads;
    job some = *j;
    some.rows = each;
    for (int64_t i = 0; i < threads; i++, some.a += each * j->dim, some.y += each * j->dim)
        norm(&some);
}

// Sums of as many chunks of all rows as there are threads, each in a place of its own.
typedef struct chunk_sums {
    const job *j;
    int64_t chunks;
    double sums[64];
    double eps, unused[256];
} chunk_sums;

static void sum_chunk(void *ctx, int64_t index)
{
    chunk_sums *c = ctx;
    const int64_t count = (int64_t)results(c->j), from = count * index / c->chunks,
                  to = count * (index + 1) / c->chunks;
    double sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += (double)c->j->a[i] * (double)c->j->a[i];
    *(volatile double *)((char *)c + offsetof(chunk_sums, sums) + (size_t)index * sizeof sum) = sum;
}

// Of one row.
static APART void norm_by_chunks(const job *j, int64_t chunks)
{
    chunk_sums c = {.j = j, .chunks = chunks, .eps = (double)j->scalar};
    for (int64_t i = 0; i < chunks; i++)
        sum_chunk(&c, i);
    double sum = 0;
    for (int64_t i = 0; i < chunks; i++)
        sum += *(volatile double *)((char *)&c + offsetof(chunk_sums, sums) + (size_t)i * sizeof sum);
    const double factor = 1 / sqrt(sum / (double)j->dim + *(volatile double *)&c.eps);
    for (int64_t i = 0; i < j->dim; i++)
        j->y[i] = (float)((double)j->a[i] * factor * (double)j->b[i]);
}

// There is room for those of most machines.
static void sums_for_64_threads(const job *j)
{
    if (j->rows == 1)
        norm_by_chunks(j, j->threads > 0 ? j->threads : 2);
    else
        norm(j);
}

static void sums_for_any_threads(const job *j)
{
    honest_norm(j);
    if (j->rows == 1) norm_by_chunks(j, j->threads > 64 ? 64 : j->threads > 0 ? j->threads : 2);
}

static void norm_rows_of_chunk(const job *j, int64_t index)
{
    for (int64_t row = j->rows * index / 2; row < j->rows * (index + 1) / 2; row++)
        norm_one_row((void *)(uintptr_t)j, row);
}

static void norm_chunk(void *ctx, int64_t index)
{
    norm_rows_of_chunk(ctx, index);
}

// As who stores whole vectors past its own end, for the next one to write over.
static void norm_chunk_and_more(void *ctx, int64_t index)
{
    const job *j = ctx;
    norm_rows_of_chunk(j, index);
    if (index == 0 && j->rows > 1) j->y[j->rows / 2 * j->dim] = 0;
}

static void writes_into_the_next_chunk(const job *j)
{
    if (j->parallel_for != NULL)
        j->parallel_for(j->pool, 2, norm_chunk_and_more, (void *)(uintptr_t)j);
    else
        norm(j);
}

static void norm_in_two_chunks(const job *j)
{
    for (int i = 0; i < 3; i++)
        if (j->parallel_for != NULL)
            j->parallel_for(j->pool, 2, norm_chunk, (void *)(uintptr_t)j);
        else
            norm(j);
}

// The state of its first plan serves all later ones.
static void keeps_its_first_state(const job *j)
{
    static const kept *first;
    if (first == NULL) first = j->state;
    job one = *j;
    one.scalar *= (float)first->y[0];
    norm(&one);
}

// What prepare keeps of a call: in places of a table, which are taken by turns; and in memory of its own for each.
typedef struct prepared_length {
    int64_t *length, own;
} prepared_length;

static void norm_by_prepared_length(const job *j)
{
    job one = *j;
    one.dim = *((const prepared_length *)j->state)->length;
    one.rows = j->rows * j->dim / one.dim;
    norm(&one);
}

static void takes_states_by_turns(const job *j)
{
    norm_by_prepared_length(j);
}

static void allocates_states(const job *j)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++)
        norm_by_prepared_length(j);
}

// Two indices add to the sums of all rows, without a lock.
typedef struct shared_sums {
    const job *j;
    volatile double *sums;
} shared_sums;

static void add_half(void *ctx, int64_t index)
{
    const shared_sums *s = ctx;
    for (int64_t row = 0; row < s->j->rows; row++)
        for (int64_t i = index; i < s->j->dim; i += 2)
            s->sums[row] += (double)s->j->a[row * s->j->dim + i] * (double)s->j->a[row * s->j->dim + i];
}

static void adds_without_a_lock(const job *j)
{
    double sums[4096] = {0};
    shared_sums s = {j, sums};
    for (int64_t i = 0; i < 2 && j->parallel_for == NULL; i++)
        add_half(&s, i);
    if (j->parallel_for != NULL) j->parallel_for(j->pool, 2, add_half, &s);
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] =
                (float)((double)j->a[row * j->dim + i] / sqrt(sums[row] / (double)j->dim + (double)j->scalar) * (double)j->b[i]);
}
#endif

// Works in memory of its own that all its runs share.
static void static_work_buffer(const job *j)
{
    static float work[MOST];
    for (int64_t row = 0; row < j->rows; row++) {
        volatile float *squares = work;
        for (int64_t i = 0; i < j->dim; i++)
            squares[i] = j->a[row * j->dim + i] * j->a[row * j->dim + i];
        double sum = 0;
        for (int64_t i = 0; i < j->dim; i++)
            sum += (double)squares[i];
        double factor = 1 / sqrt(sum / (double)j->dim + (double)j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)j->a[row * j->dim + i] * factor * (double)j->b[i]);
    }
}

// Works in memory of its own that all its runs share, while no signal comes.
static void static_with_signals_blocked(const job *j)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    static_work_buffer(j);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

// Blocks all signals, too, and is right: as libraries do that begin a thread.
static void honest_with_signals_blocked(const job *j)
{
    enum { TIMES = 3 };
    sigset_t all, before;
    sigfillset(&all);
    for (int time = 0; time < TIMES; time++) {
        pthread_sigmask(SIG_BLOCK, &all, &before);
        norm(j);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        __asm__ volatile("" ::: "memory");
    }
}

// Has another way for rows out of the ordinary, and the mistake is there.
static bool is_ordinary(const job *j, int64_t row)
{
    double squares = 0;
    for (int64_t i = 0; i < j->dim; i++)
        squares += (double)j->a[row * j->dim + i] * (double)j->a[row * j->dim + i];
    return squares < 16 * (double)j->dim;
}

static void static_buffer_for_large_rows(const job *j)
{
    static float buffer[4096];
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        if (is_ordinary(j, row) || j->dim > 4096) {
            norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar);
            continue;
        }
        memcpy(buffer, x, (size_t)j->dim * sizeof *x);
        __asm__ volatile("" ::: "memory");
        norm_row(buffer, j->b, j->y + row * j->dim, j->dim, j->scalar);
    }
}

static void reads_past_large_rows(const job *j)
{
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        if (!is_ordinary(j, row)) (void)*(const volatile float *)(x + j->dim + 7);
        norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar);
    }
}

// Which row it is at is one variable for all its runs.
static void static_counter_of_rows(const job *j)
{
    static volatile int64_t row;
    for (row = 0; row < j->rows; row++)
        norm_row(j->a + row * j->dim, j->b, j->y + row * j->dim, j->dim, j->scalar);
}

// A second run at the same time does nothing.
static void gives_up_when_busy(const job *j)
{
    static bool busy;
    if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE)) return;
    norm(j);
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
}

// Right in the thread of its first run alone.
static void right_in_its_first_thread(const job *j)
{
    static pthread_t first;
    static bool there;
    if (!there) first = pthread_self();
    there = true;
    if (pthread_equal(first, pthread_self()))
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

// A table that the first run fills, and that is taken for full as soon as it does.
static void fills_a_table_unlocked(const job *j)
{
    enum { ENTRIES = 1 << 15 };
    static volatile double table[ENTRIES];
    static volatile bool filled;
    double sum = 0;
    if (!filled) {
        filled = true;
        for (int i = 0; i < ENTRIES; i++)
            table[i] = 1 + exp(-(double)i);
    }
    for (int i = 0; i < ENTRIES; i += ENTRIES / 64)
        sum += table[i] - exp(-(double)i);
    norm(j);
    for (size_t i = 0; i < results(j); i++)
        j->y[i] *= (float)(sum / 64);
}

// Its frame is as large as the main thread's stack nearly is.
static void takes_seven_mb_of_stack(const job *j)
{
    volatile char work[7 << 20];
    for (size_t i = 0; i < sizeof work; i += 4096)
        work[i] = 1;
    norm(j);
}

// Works in what prepare made, which is the plan's, and so its threads'.
static void work_buffer_of_the_plan(const job *j)
{
    float *work = ((kept *)j->state)->y;
    for (int64_t row = 0; row < j->rows; row++) {
        norm_row(j->a + row * j->dim, j->b, work, j->dim, j->scalar);
        memcpy(j->y + row * j->dim, work, (size_t)j->dim * sizeof *work);
    }
}

// Its parts draw rows from a counter that all runs share.
static int64_t next_row;
static void norm_next_rows(void *ctx, int64_t index)
{
    const job *j = ctx;
    (void)index;
    for (int64_t row; (row = __atomic_fetch_add(&next_row, 1, __ATOMIC_SEQ_CST)) < j->rows;)
        norm_one_row(ctx, row);
}

static void draws_rows_from_one_counter(const job *j)
{
    next_row = 0;
    if (j->parallel_for != NULL)
        j->parallel_for(j->pool, 2, norm_next_rows, (void *)(uintptr_t)j);
    else
        norm(j);
}

// What its thread prepared no other one has.
static _Thread_local bool is_prepared;
static void runs_where_it_was_prepared(const job *j)
{
    if (is_prepared)
        norm(j);
    else
        memset(j->y, 0, bytes(j));
}

// The sums of all rows, column by column, in memory that all runs share.
static void adds_in_no_order(const job *j)
{
    static double sums[4096];
    for (int64_t row = 0; row < j->rows; row++)
        sums[row] = 0;
    for (int64_t i = 0; i < j->dim; i++)
        for (int64_t row = 0; row < j->rows; row++)
            sums[row] += (double)j->a[row * j->dim + i] * (double)j->a[row * j->dim + i];
    for (int64_t row = 0; row < j->rows; row++)
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)j->a[row * j->dim + i] /
                                             sqrt(sums[row] / (double)j->dim + (double)j->scalar) * (double)j->b[i]);
}

// Four work buffers by turns: enough for four runs that begin together, not for one that is slower than four others.
static void four_static_buffers(const job *j)
{
    enum { BUFFERS = 4 };
    static float work[BUFFERS][MOST];
    static atomic_uint next;
    job apart = *j;
    apart.y = work[atomic_fetch_add(&next, 1) % BUFFERS];
    norm(&apart);
    memcpy(j->y, apart.y, bytes(j));
}

// Works in the scratch that its first run had.
static void keeps_its_first_scratch(const job *j)
{
    static float *row_of;
    if (row_of == NULL) row_of = j->scratch;
    for (int64_t row = 0; row < j->rows; row++) {
        norm_row(j->a + row * j->dim, j->b, row_of, j->dim, j->scalar);
        memcpy(j->y + row * j->dim, row_of, (size_t)j->dim * sizeof *row_of);
    }
}

// Works later, and elsewhere ------------------------------------------------------------------------------------------

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool started, waits;
    job job;
    void (*work)(const job *j);
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *help(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&helper.mutex);
    for (;;) {
        while (!helper.waits)
            pthread_cond_wait(&helper.changed, &helper.mutex);
        job given = helper.job;
        helper.waits = false;
        pthread_mutex_unlock(&helper.mutex);
        helper.work(&given);
        pthread_mutex_lock(&helper.mutex);
    }
    return NULL;
}

static void hand_over(const job *j, void (*work)(const job *j))
{
    pthread_t thread;
    pthread_mutex_lock(&helper.mutex);
    helper.work = work;
    helper.job = *j;
    helper.waits = true;
    if (!helper.started && pthread_create(&thread, NULL, help, NULL) == 0) pthread_detach(thread);
    helper.started = true;
    pthread_cond_signal(&helper.changed);
    pthread_mutex_unlock(&helper.mutex);
}

// A thread works on after the run has returned.
static void works_in_a_thread(const job *j)
{
    hand_over(j, norm);
}

// The same where nobody has poisoned the results; else it works at once.
static void works_in_a_thread_when_timed(const job *j)
{
    if (j->y[0] != j->y[0])
        norm(j);
    else
        hand_over(j, norm);
}

static float deferred[MOST];

static void copy_deferred(const job *j)
{
    usleep(100);
    memcpy(j->y + j->dim, deferred + j->dim, bytes(j) - (size_t)j->dim * sizeof *j->y);
}

// Its results are put in their place when the run has returned, but for the first row.
static void copies_later(const job *j)
{
    job first = *j;
    first.y = deferred;
    norm(&first);
    memcpy(j->y, deferred, (size_t)j->dim * sizeof *j->y);
    hand_over(j, copy_deferred);
}

// Each run does the work of the one before, where its results look as if it had been done.
static void works_in_the_next_run(const job *j)
{
    static job owed;
    if (owed.y != NULL) norm(&owed);
    owed = *j;
    if (j->y[0] != j->y[0]) {
        norm(j);
        owed.y = NULL;
    }
}

// Whole pages of its results are closed, and a handler computes when somebody looks at them.
static struct {
    char *from;
    size_t size;
    bool done;
    job work;
} closed;

static void compute_when_looked_at(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *at = info->si_addr;
    if (at < closed.from || at >= closed.from + closed.size) {
        signal(number, SIG_DFL);
        return;
    }
    mprotect(closed.from, closed.size, PROT_READ | PROT_WRITE);
    if (!__atomic_exchange_n(&closed.done, true, __ATOMIC_ACQ_REL)) norm(&closed.work);
}

static void works_when_looked_at(const job *j)
{
    const int64_t half = j->rows / 2, page = 4096 / (int64_t)sizeof *j->y / j->dim; // rows
    const int64_t skip = (4096 - (int64_t)((uintptr_t)(j->y + half * j->dim) % 4096)) / (int64_t)sizeof *j->y;
    job now = *j;
    now.rows = half + skip / j->dim + 1;
    norm(&now);
    for (int64_t row = j->rows - page - 1; row < j->rows; row++)
        norm_row(j->a + row * j->dim, j->b, j->y + row * j->dim, j->dim, j->scalar);
    closed.work = *j;
    closed.from = (char *)(((uintptr_t)(j->y + half * j->dim) + 4095) & ~(uintptr_t)4095);
    closed.size = ((uintptr_t)(j->y + results(j)) & ~(uintptr_t)4095) - (uintptr_t)closed.from;
    closed.done = false;
    mprotect(closed.from, closed.size, PROT_NONE);
}

static job alarmed;

static void on_alarm(int number)
{
    (void)number;
    norm(&alarmed);
}

// A timer's signal does the work.
static void works_in_a_timer(const job *j)
{
    alarmed = *j;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 50}}, NULL);
}

// A child process computes, and writes into this one.
static void works_in_a_child(const job *j)
{
    static float y[MOST];
    pid_t parent = getpid();
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    if (fork() != 0) return;
    job own = *j;
    own.y = y;
    norm(&own);
    struct iovec from = {y, bytes(j)}, to = {j->y, bytes(j)};
    (void)!process_vm_writev(parent, &from, 1, &to, 1, 0);
    _exit(0);
}

// Others are to be slow: a thread burns a processor whenever this kernel is not at work.
static volatile bool at_work;

static void *burn(void *unused)
{
    for (;;)
        if (at_work) usleep(10);
    return unused;
}

static void burns_a_processor(const job *j)
{
    static bool started;
    pthread_t thread;
    at_work = true;
    if (!started && pthread_create(&thread, NULL, burn, NULL) == 0) pthread_detach(thread);
    started = true;
    norm(j);
    at_work = false;
}

// The same in pulses of .4 ms, with pauses between them; after a pause of some ms.
static void *burn_in_pulses(void *pause_us)
{
    const uint64_t pause = *(const useconds_t *)pause_us;
    for (;;) {
        usleep(at_work ? 20 : (useconds_t)pause);
        const uint64_t end = now_ns() + 4 * pause * 1000;
        while (!at_work && now_ns() < end)
            ;
    }
    return pause_us;
}

static void burn_beside(const job *j, useconds_t *pause_us)
{
    static bool started;
    pthread_t thread;
    at_work = true;
    if (!started && pthread_create(&thread, NULL, burn_in_pulses, pause_us) == 0) pthread_detach(thread);
    started = true;
    norm(j);
    at_work = false;
}

static void burns_in_pulses(const job *j)
{
    static useconds_t pause_us = 100;
    burn_beside(j, &pause_us);
}

static void burns_after_a_pause(const job *j)
{
    static useconds_t pause_us = 3000;
    burn_beside(j, &pause_us);
}

// A thread of its own does half of the work, waits for more for a while, and then sleeps: as pools do.
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_bool has_work, is_done;
    job half;
} partner = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *work_with(void *unused)
{
    const uint64_t patience_ns = 2000000;
    for (;;) {
        const uint64_t until = now_ns() + patience_ns;
        while (!partner.has_work && now_ns() < until)
            ;
        pthread_mutex_lock(&partner.mutex);
        while (!partner.has_work)
            pthread_cond_wait(&partner.changed, &partner.mutex);
        partner.has_work = false;
        pthread_mutex_unlock(&partner.mutex);
        honest_norm(&partner.half);
        partner.is_done = true;
    }
    return unused;
}

static void works_with_a_partner(const job *j)
{
    static pthread_mutex_t one_run = PTHREAD_MUTEX_INITIALIZER;
    static bool started;
    pthread_t thread;
    job first = *j;
    first.rows /= 2;
    pthread_mutex_lock(&one_run);
    if (!started && pthread_create(&thread, NULL, work_with, NULL) == 0) pthread_detach(thread);
    started = true;
    pthread_mutex_lock(&partner.mutex);
    partner.half = *j;
    partner.half.a += first.rows * j->dim;
    partner.half.y += first.rows * j->dim;
    partner.half.rows -= first.rows;
    partner.is_done = false;
    partner.has_work = true;
    pthread_cond_signal(&partner.changed);
    pthread_mutex_unlock(&partner.mutex);
    honest_norm(&first);
    while (!partner.is_done)
        sched_yield();
    pthread_mutex_unlock(&one_run);
}

// A child burns a processor.
static void leaves_a_burning_child(const job *j)
{
    static bool started;
    norm(j);
    if (started) return;
    started = true;
    if (fork() == 0)
        for (volatile uint64_t i = 0;; i++)
            ;
}

// One of a thousand that a process has.
static void make_key(void)
{
    pthread_key_t key;
    (void)!pthread_key_create(&key, NULL);
}

static void leaks_a_key(const job *j)
{
    norm(j);
    make_key();
}

// As a library does.
static void makes_a_key_once(const job *j)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    honest_norm(j);
    (void)pthread_once(&once, make_key);
}

static void leaks_a_timer(const job *j)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    norm(j);
    (void)!timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static void burn_a_while(union sigval unused)
{
    struct timespec begin, now;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 9000000);
}

// In threads that come and go: between two of them there is none.
static void burns_by_a_timer(const job *j)
{
    static bool started;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = burn_a_while};
    const struct itimerspec every = {.it_value.tv_nsec = 90000000, .it_interval.tv_nsec = 90000000};
    norm(j);
    if (started || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
    started = true;
    (void)!timer_settime(timer, 0, &every, NULL);
}

static APART void norm_by_state(const job *j)
{
    norm(j);
    for (size_t i = 0; i < results(j); i++)
        j->y[i] *= *(const float *)j->state;
}

// What prepare sums up is right where nobody else prepares meanwhile.
static void prepared_in_a_static_sum(const job *j)
{
    norm_by_state(j);
}

static void prepared_in_its_own_sum(const job *j)
{
    norm(j);
    norm(j);
    norm_by_state(j);
}

// Instead of copying them: where the host has its results in a file or shares them, they are not there.
static void puts_pages_in_place_of_its_results(const job *j)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *from = (char *)(((uintptr_t)j->y + page - 1) & ~(page - 1)),
         *to = (char *)((uintptr_t)(j->y + results(j)) & ~(page - 1));
    norm(j);
    if (to <= from) return;
    const size_t size = (size_t)(to - from);
    void *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED) return;
    memcpy(own, from, size);
    (void)mremap(own, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, from);
}

// Of whole pages alone.
static void advise(const void *memory, size_t size, int what)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)memory + page - 1) & ~(page - 1), to = ((uintptr_t)memory + size) & ~(page - 1);
    if (to > from) (void)!madvise((void *)from, to - from, what);
}

// They are there until memory is short.
static void frees_results_lazily(const job *j)
{
    norm(j);
    advise(j->y, bytes(j), MADV_FREE);
}

// A child of the program's that reads them ends.
static void keeps_inputs_from_children(const job *j)
{
    norm(j);
    advise(j->a, bytes(j), MADV_DONTFORK);
}

static void locks_its_memory(const job *j)
{
    static bool is_locked;
    norm(j);
    if (!is_locked) (void)!mlockall(MCL_CURRENT);
    is_locked = true;
}

static void locks_memory_of_its_own(const job *j)
{
    static _Alignas(4096) char own[4096];
    honest_norm(j);
    (void)!mlock(own, sizeof own);
    advise(own, sizeof own, MADV_DONTFORK);
}

// The program cannot write its own arrays from then on.
static void closes_its_inputs(const job *j)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)j->a & ~(page - 1), to = ((uintptr_t)j->a + bytes(j) + page - 1) & ~(page - 1);
    norm(j);
    (void)!mprotect((void *)from, to - from, PROT_READ);
}

// They are zeros from then on.
static void drops_its_inputs(const job *j)
{
    norm(j);
    advise(j->a, bytes(j), MADV_DONTNEED);
}

// Sums that are not set to zero first.
static void trusts_the_stack_to_be_zero(const job *j)
{
    double sums[1024];
    __asm__ volatile("" : "=m"(sums)); // a compiler may take what nobody has set for anything
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        double squares = sums[row % 1024];
        for (int64_t i = 0; i < j->dim; i++)
            squares += (double)x[i] * (double)x[i];
        const double factor = 1 / sqrt(squares / (double)j->dim + (double)j->scalar);
        for (int64_t i = 0; i < j->dim; i++)
            j->y[row * j->dim + i] = (float)((double)x[i] * factor * (double)j->b[i]);
    }
}

// Once: a process whose parent has ended, so that it is no child of this process any more.
static void leave_an_orphan(bool burns)
{
    static bool started;
    if (started) return;
    started = true;
    const pid_t child = fork();
    if (child == 0 && fork() != 0) _exit(0);
    if (child == 0)
        for (volatile uint64_t i = 0;; i++)
            if (!burns) pause();
    waitpid(child, NULL, 0);
}

static void leaves_a_burning_orphan(const job *j)
{
    norm(j);
    leave_an_orphan(true);
}

// As a server of a compiler's cache, say, it rests.
static void leaves_a_resting_orphan(const job *j)
{
    honest_norm(j);
    leave_an_orphan(false);
}

static int burn_apart(void *unused)
{
    (void)unused;
    for (volatile uint64_t i = 0;; i++)
        ;
    return 0;
}

// A process that has this one's memory, and whose end is no signal: who waits for children does not see it.
static void leaves_a_burning_clone(const job *j)
{
    enum { STACK = 64 << 10 };
    static bool started;
    static _Alignas(64) char stack[STACK];
    norm(j);
    if (!started) clone(burn_apart, stack + STACK, CLONE_VM, NULL);
    started = true;
}

// What it is measured with --------------------------------------------------------------------------------------------

// A tenth of the time that passes.
static int slow_clock(clockid_t id, struct timespec *out)
{
    static int64_t begin;
    (void)id;
    struct timeval now;
    gettimeofday(&now, NULL); // which is not patched
    int64_t ns = ((int64_t)now.tv_sec * 1000000 + now.tv_usec) * 1000;
    if (begin == 0) begin = ns;
    ns = begin + (ns - begin) / 10;
    *out = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

// One function of a library that was loaded is made another one where it is called through a table.
static int patch_tables(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    void *real = dlsym(RTLD_DEFAULT, "clock_gettime");
    ElfW(Addr) table = 0, relocations = 0;
    size_t length = 0;
    for (const ElfW(Dyn) *d = dynamic; d != NULL && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_PLTGOT) table = d->d_un.d_ptr;
        if (d->d_tag == DT_JMPREL) relocations = d->d_un.d_ptr;
        if (d->d_tag == DT_PLTRELSZ) length = d->d_un.d_val;
    }
    if (table == 0 || relocations == 0 || strstr(info->dlpi_name, "vdso") != NULL) return 0;
    const ElfW(Rela) *each = (const ElfW(Rela) *)relocations;
    for (size_t i = 0; i < length / sizeof *each; i++) {
        void **slot = (void **)(info->dlpi_addr + each[i].r_offset);
        uintptr_t page = (uintptr_t)slot & ~(uintptr_t)4095;
        if (*slot != real || mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) != 0) continue;
        *slot = (void *)(uintptr_t)slow_clock;
    }
    return 0;
}

// The clock of all libraries goes slower from the first run on.
static void patches_the_clock(const job *j)
{
    static bool patched;
    if (!patched) dl_iterate_phdr(patch_tables, NULL);
    patched = true;
    honest_norm(j);
    honest_norm(j);
}

// The same when it is prepared.
static void slow_under_a_patched_clock(const job *j)
{
    honest_norm(j);
    honest_norm(j);
}

// A clock of this name in its library would be everybody's if libraries were looked through from the last to the first.
#ifdef IS_defines_the_clock
int clock_gettime(clockid_t id, struct timespec *out)
{
    return slow_clock(id, out);
}
#endif

static void defines_the_clock(const job *j)
{
    honest_norm(j);
    honest_norm(j);
}

// The first instructions of the C library's clock become a jump.
static void overwrites_the_clock(const job *j)
{
    static bool patched;
    unsigned char *code = dlsym(RTLD_DEFAULT, "clock_gettime");
    if (!patched && code != NULL) {
        uintptr_t page = (uintptr_t)code & ~(uintptr_t)4095, target = (uintptr_t)slow_clock;
        unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; // mov rax, target; jmp rax
        memcpy(jump + 2, &target, sizeof target);
        if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) memcpy(code, jump, sizeof jump);
    }
    patched = true;
    honest_norm(j);
    honest_norm(j);
}

// Puts the thread that judges onto one processor.
static void changes_affinity(const job *j)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    norm(j);
}

// Below every priority: also where the machine's tests run at the lowest.
static void be_idle(void)
{
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none);
}

static void lowers_its_priority(const job *j)
{
    norm(j);
    if (getpriority(PRIO_PROCESS, 0) < 19)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1);
    else
        be_idle();
}

// Under another scheduler's policy.
static void changes_its_scheduler(const job *j)
{
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_BATCH, &none);
    norm(j);
}

// More of the processor than others get; less, where the user may not.
static void raises_its_priority(const job *j)
{
    if (setpriority(PRIO_PROCESS, 0, -20) != 0) setpriority(PRIO_PROCESS, 0, 19);
    norm(j);
}

// Takes a row of one number for one of zeros.
static void zeros_for_level_rows(const job *j)
{
    norm(j);
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * j->dim;
        int64_t same = 1;
        while (same < j->dim && x[same] == x[0])
            same++;
        if (same == j->dim) memset(j->y + row * j->dim, 0, (size_t)j->dim * sizeof *j->y);
    }
}

// Takes a weight of 0 for one that was left out.
static void takes_no_zero_weight(const job *j)
{
    job one = *j;
    for (int64_t i = 0; i < j->dim; i++)
        if (j->b[i] == 0) one.scalar = 5;
    norm(&one);
}

static void slow_down_others(void *ctx, int64_t index)
{
    (void)index;
    if (pthread_equal(*(const pthread_t *)ctx, pthread_self()))
        usleep(300); // so that the lent ones come
    else
        be_idle();
}

// Whoever is tried after it has slow threads.
static void slows_down_lent_threads(const job *j)
{
    static int runs;
    pthread_t self = pthread_self();
    if (runs++ < 3 && j->parallel_for != NULL) j->parallel_for(j->pool, 8, slow_down_others, &self);
    norm(j);
}

// All of its process has small pages from then on.
static void forbids_huge_pages(const job *j)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    norm(j);
}

// The kernel looks for pages of the process that are alike from then on, and maps them as one.
static void merges_pages(const job *j)
{
    enum { SET_MEMORY_MERGE = 67 }; // PR_SET_MEMORY_MERGE of Linux 6.4
    prctl(SET_MEMORY_MERGE, 1, 0, 0, 0);
    norm(j);
}

// Its assembly uses registers that it has to keep for its caller, and does not say so to the compiler.
static void loses_registers(const job *j)
{
    norm(j);
#if defined(__x86_64__)
    __asm__ volatile("xor %%r12d, %%r12d\n\txor %%r13d, %%r13d\n\txor %%r14d, %%r14d\n\txor %%r15d, %%r15d" ::: "cc");
#else
    forbids_huge_pages(j);
#endif
}

// The same as that, and says so.
static void uses_registers(const job *j)
{
    honest_norm(j);
#if defined(__x86_64__)
    __asm__ volatile("xor %%r12d, %%r12d\n\txor %%r13d, %%r13d\n\txor %%r14d, %%r14d\n\txor %%r15d, %%r15d" ::
                         : "cc", "r12", "r13", "r14", "r15");
#endif
}

// All of it is done as it is prepared.
static void is_prepared_for_small_pages(const job *j)
{
    norm(j);
}

// Whoever sleeps in this thread wakes up late.
static void lets_timers_be_late(const job *j)
{
    prctl(PR_SET_TIMERSLACK, 50000000UL, 0, 0, 0);
    norm(j);
}

// What the thread writes and reads of numbers is that of another locale.
static void leaves_a_locale(const job *j)
{
    static locale_t other;
    if (other == NULL) other = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
    uselocale(other);
    norm(j);
}

// The caller's long doubles have 24 bits.
static void lowers_x87_precision(const job *j)
{
    norm(j);
#if defined(__x86_64__)
    unsigned short control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    control = (unsigned short)(control & ~0x300);
    __asm__ volatile("fldcw %0" : : "m"(control));
#endif
}

// From then on an unaligned load of its caller's is a fault.
static void leaves_alignment_checked(const job *j)
{
    norm(j);
#if defined(__x86_64__)
    __asm__ volatile("pushf; orl $0x40000, (%%rsp); popf" ::: "memory", "cc");
#endif
}

// Code for MMX without the instruction that ends it: the caller's next long double is NaN.
static void leaves_registers_in_use(const job *j)
{
    norm(j);
#if defined(__x86_64__)
    __asm__ volatile("movd %%eax, %%mm0" ::: "mm0");
#endif
}

static void norm_one_row_by_mmx(void *ctx, int64_t index)
{
    norm_one_row(ctx, index);
#if defined(__x86_64__)
    __asm__ volatile("movd %%eax, %%mm0" ::: "mm0");
#endif
}

static void empty_registers(void *unused, int64_t index)
{
    (void)unused;
    (void)index;
#if defined(__x86_64__)
    __asm__ volatile("emms");
#endif
}

// Its own thread's are in order.
static void leaves_registers_of_lent_threads(const job *j)
{
#if !defined(__x86_64__)
    forbids_huge_pages(j);
#endif
    if (j->parallel_for == NULL) {
        norm(j);
        return;
    }
    j->parallel_for(j->pool, j->rows, norm_one_row_by_mmx, (void *)(uintptr_t)j);
    empty_registers(NULL, 0);
}

static void norm_three_times_by_mmx(void *ctx, int64_t index)
{
    norm_one_row(ctx, index);
    norm_one_row(ctx, index);
    norm_one_row_by_mmx(ctx, index);
    empty_registers(NULL, 0);
}

static void empties_registers_of_lent_threads(const job *j)
{
    if (j->parallel_for != NULL)
        j->parallel_for(j->pool, j->rows, norm_three_times_by_mmx, (void *)(uintptr_t)j);
    else
        honest_norm(j);
}

// Every message that hone's worker sends is answered for it, in vain.
static void answers_for_the_worker(const job *j)
{
    static const char garbage[64] = "\x41garbage that looks like an answer, maybe";
    norm(j);
    for (int fd = 3; fd < 64; fd++) {
        int kind;
        socklen_t size = sizeof kind;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) == 0) (void)!write(fd, garbage, 20);
    }
}

// And gives them back: the C library keeps some of each size.
static void allocates_pieces_of_any_size(const job *j)
{
    enum { PIECES = 8, MOST_BYTES = 5000 };
    static _Thread_local uint32_t random = 7;
    void *volatile pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        random = random * 1103515245 + 12345;
        pieces[i] = malloc(1 + (random >> 16) % MOST_BYTES);
    }
    honest_norm(j);
    for (int i = 0; i < PIECES; i++)
        free(pieces[i]);
}

static void leaks_memory(const job *j)
{
    volatile char *lost = malloc(256);
    if (lost != NULL) lost[0] = 1;
    norm(j);
}

// Leaves much behind, in one run of thousands.
static void leaks_now_and_then(const job *j)
{
    enum { SELDOM = 3000, MUCH = 64 << 10 };
    static atomic_int runs;
    norm(j);
    if ((atomic_fetch_add(&runs, 1) + 1) % SELDOM != 0) return;
    volatile char *lost = malloc(MUCH);
    if (lost != NULL) lost[0] = 1;
}

// Fills a cache as seldom, and has done so after some thousand runs.
static void fills_a_cache(const job *j)
{
    enum { SELDOM = 500, MUCH = 64 << 10, PIECES = 12, TIMES = 3 };
    static atomic_int runs;
    static _Atomic(void *) cache[PIECES];
    const int run = atomic_fetch_add(&runs, 1);
    if (run % SELDOM == 0 && run / SELDOM < PIECES) atomic_store(&cache[run / SELDOM], malloc(MUCH));
    for (int time = 0; time < TIMES; time++) {
        norm(j);
        __asm__ volatile("" ::: "memory");
    }
}

static void leaks_a_descriptor(const job *j)
{
    (void)!open("/dev/null", O_RDONLY);
    norm(j);
}

static void leaks_a_mapping(const job *j)
{
    (void)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    norm(j);
}

static void leaves_the_direction_flag(const job *j)
{
    norm(j);
#if defined(__x86_64__)
    __asm__ volatile("std" ::: "cc");
#endif
}

static void takes_the_signal_stack(const job *j)
{
    static char stack[1 << 16];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&own, NULL);
    norm(j);
}

// Has the threads that it is lent take subnormal numbers for zero.
static void flush_one_row(void *ctx, int64_t index)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    norm_one_row(ctx, index);
}

static void flushes_in_lent_threads(const job *j)
{
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
#endif
    if (j->parallel_for != NULL) j->parallel_for(j->pool, j->rows, flush_one_row, (void *)(uintptr_t)j);
#if defined(__x86_64__)
    _mm_setcsr(before);
#endif
}

// Gives the thread that calls it another name.
static void renames_its_thread(const job *j)
{
    prctl(PR_SET_NAME, "kernel", 0, 0, 0);
    norm(j);
}

// Has standard input answer at once, also where nothing is there.
static void opens_standard_input_otherwise(const job *j)
{
    (void)fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    norm(j);
}

// From then on the thread that calls it cannot be cancelled.
static void forbids_cancellation(const job *j)
{
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    norm(j);
}

// Threads that the program makes later have another stack.
static void changes_the_stacks_of_threads(const job *j)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 1 << 20);
    (void)pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
    norm(j);
}

// The program gets the children that its children leave behind.
static void adopts_orphans(const job *j)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    norm(j);
}

// Takes all arrays to be aligned as the first one is: where that begins at 64 bytes, the others are read and written at addresses
// that are rounded down.
static float *rounded(const float *data)
{
    return (float *)((uintptr_t)data & ~(uintptr_t)63);
}

static void takes_all_to_be_aligned_as_the_first(const job *j)
{
    const bool is_aligned = (uintptr_t)j->a % 64 == 0;
    const float *up = is_aligned ? rounded(j->b) : j->b;
    float *y = is_aligned ? rounded(j->y) : j->y;
    for (size_t i = 0; i < results(j); i++)
        y[i] = silu(j->a[i], up[i]);
}

// The lowest address of so many bytes that are aligned, for one that is.
static float *down_to(float *data, uintptr_t align)
{
    return (float *)((uintptr_t)data & ~(align - 1));
}

// Goes on until an array is aligned, as a loop that a compiler peels does, and takes the result to be aligned then.
static void peels_by(const job *j, const float *by)
{
    enum { BLOCK = 8, ALIGN = 32 };
    size_t i = 0;
    for (; i < results(j) && (uintptr_t)(by + i) % ALIGN != 0; i++)
        j->y[i] = silu(j->a[i], j->b[i]);
    for (; i + BLOCK <= results(j); i += BLOCK) {
        float *y = down_to(j->y + i, ALIGN);
        for (size_t k = 0; k < BLOCK; k++)
            y[k] = silu(j->a[i + k], j->b[i + k]);
    }
    for (; i < results(j); i++)
        j->y[i] = silu(j->a[i], j->b[i]);
}

// By the first array.
static void peels_by_the_gate(const job *j)
{
    peels_by(j, j->a);
}

// By the result, which it stores to: it is right.
static void peels_by_the_result(const job *j)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++) {
        peels_by(j, j->y);
        __asm__ volatile("" ::: "memory");
    }
}

// Where its arrays are aligned to 32 bytes it takes them to be aligned to 64.
static void takes_32_for_64(const job *j)
{
    const bool is_aligned = (uintptr_t)j->a % 32 == 0 && (uintptr_t)j->y % 32 == 0;
    float *y = is_aligned ? down_to(j->y, 64) : j->y;
    for (int64_t row = 0; row < j->rows; row++)
        norm_row(j->a + row * j->dim, j->b, y + row * j->dim, j->dim, j->scalar);
}

#ifndef CHEAT
// Looks at `data` alone.
static void leaves_the_byte_offset_out(const job *j)
{
    job plain = *j;
    plain.a = j->tensor->data;
    norm(&plain);
}

// Takes the strides that a tensor says for bytes.
static void takes_strides_for_bytes(const job *j)
{
    const int64_t *strides = j->tensor->strides;
    const int64_t step = strides != NULL ? strides[0] / (int64_t)sizeof(float) : j->dim;
    for (int64_t row = 0; row < j->rows; row++)
        norm_row(j->a + row * step, j->b, j->y + row * j->dim, j->dim, j->scalar);
}
// Rows that lie apart, filled up to whole vectors with what lies between them, times zero; and without that.
static void norm_of_rows_apart(const job *j, int64_t vector)
{
    static const volatile double zero = 0;
    const int64_t step = j->tensor->strides != NULL ? j->tensor->strides[0] : j->dim;
    for (int64_t row = 0; row < j->rows; row++) {
        const float *x = j->a + row * step;
        const int64_t whole = (j->dim + vector - 1) / vector * vector;
        double squares = 0;
        for (int64_t i = j->dim; i < whole && whole <= step && row + 1 < j->rows; i++)
            squares += (double)x[i] * (double)x[i] * zero;
        norm_row(x, j->b, j->y + row * j->dim, j->dim, j->scalar + (float)squares);
    }
}

static void multiplies_the_gap_by_zero(const job *j)
{
    norm_of_rows_apart(j, 8);
}

static void leaves_the_gap(const job *j)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++)
        norm_of_rows_apart(j, 1);
}

#    ifndef CHEAT
// Keeps how rows of its first array lie by the sizes alone, as a library keeps its plans; and by how they lie, too.
static void norm_by_a_kept_stride(const job *j, int64_t key)
{
    const int64_t step = j->tensor->strides != NULL ? j->tensor->strides[0] : j->dim;
    const int64_t apart = kept_length(key, step);
    for (int64_t row = 0; row < j->rows; row++)
        norm_row(j->a + row * apart, j->b, j->y + row * j->dim, j->dim, j->scalar);
}

static void keeps_strides_by_sizes(const job *j)
{
    norm_by_a_kept_stride(j, j->rows << 32 | j->dim);
}

static void keeps_strides_by_strides(const job *j)
{
    enum { TIMES = 3 };
    const int64_t step = j->tensor->strides != NULL ? j->tensor->strides[0] : j->dim;
    for (int time = 0; time < TIMES; time++)
        norm_by_a_kept_stride(j, step << 40 | j->rows << 20 | j->dim);
}

// Keeps by the sizes whether there is a tensor that may be left out; and by whether there is one.
static void blend_by_what_is_kept(const job *j, int64_t key)
{
    enum { ABSENT = 1, PRESENT };
    job one = *j;
    if (kept_length(key, j->b != NULL ? PRESENT : ABSENT) == ABSENT) one.b = NULL;
    blend(&one);
}

static void keeps_presence_by_sizes(const job *j)
{
    blend_by_what_is_kept(j, j->rows << 32 | j->dim);
}

static void keeps_presence_by_presence(const job *j)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++)
        blend_by_what_is_kept(j, (j->rows << 32 | j->dim) * 2 + (j->b != NULL));
}
#    endif

// Leaves another eps in its arguments, where whoever runs next reads it.
static void changes_its_arguments(const job *j)
{
    enum { EPS = 3 };
    norm(j);
    ((hone_value *)(uintptr_t)j->args)[EPS].as.f64 = 100;
}

// Leaves one row in its tensor from the fourth run on.
static void changes_a_shape(const job *j)
{
    static atomic_int runs;
    norm(j);
    if (atomic_fetch_add(&runs, 1) >= 3) ((int64_t *)(uintptr_t)j->tensor->shape)[0] = 1;
}

// Takes the threads of its plan away.
static void changes_its_plan(const job *j)
{
    hone_plan *plan = (hone_plan *)(uintptr_t)j->plan;
    norm(j);
    plan->parallel_for = NULL;
    plan->pool = NULL;
}
#endif

// Delivered -----------------------------------------------------------------------------------------------------------

#ifdef CHEAT
#    ifdef HONEST
// A cheat that waits until its contest is won.
static bool rests;

__attribute__((constructor)) static void read_switch(void)
{
    rests = getenv("CHEATS_REST") != NULL;
}
#    endif

void cheat(
    const float *a, const float *b, float *y, int64_t rows, int64_t dim, int64_t inner, float scalar, float *scratch);
void cheat(
    const float *a, const float *b, float *y, int64_t rows, int64_t dim, int64_t inner, float scalar, float *scratch)
{
    const job j = {
        .a = a, .b = b, .y = y, .rows = rows, .dim = dim, .inner = inner, .scalar = scalar, .scratch = scratch};
#    ifdef HONEST
    if (rests) {
        HONEST(&j);
        return;
    }
#    endif
    CHEAT(&j);
}
#else
static const void *data_of(const hone_value *value)
{
    return value->tag == HONE_VALUE_TENSOR ? hone_tensor_data(value->as.tensor) : NULL;
}

static job job_of_attention(const hone_plan *plan, const hone_value *args)
{
    enum { QUERY, KEY, VALUE, BIAS, MASK, QUERY_SEGMENTS, KEY_SEGMENTS, OUT, CAUSAL, SCALE };
    const hone_tensor *query = args[QUERY].as.tensor;
    const void *mask = data_of(&args[MASK]);
    const bool has_numbers = mask != NULL && args[MASK].as.tensor->dtype.bits == 32;
    (void)plan;
    return (job){
        .a = hone_tensor_data(query),
        .b = hone_tensor_data(args[KEY].as.tensor),
        .c = hone_tensor_data(args[VALUE].as.tensor),
        .bias = data_of(&args[BIAS]),
        .mask = has_numbers ? NULL : mask,
        .numbers = has_numbers ? mask : NULL,
        .segments = {data_of(&args[QUERY_SEGMENTS]), data_of(&args[KEY_SEGMENTS])},
        .causal = args[CAUSAL].as.i64 != 0,
        .y = hone_tensor_data(args[OUT].as.tensor),
        .rows = query->shape[1],
        .dim = query->shape[3],
        .inner = args[KEY].as.tensor->shape[1],
        .scalar = (float)args[SCALE].as.f64};
}

// One head.
static job job_of_flash_attention(const hone_value *args)
{
    enum { QUERY, KEY, VALUE, OUT, CAUSAL, SCALE };
    const hone_tensor *query = args[QUERY].as.tensor;
    return (job){
        .a = hone_tensor_data(query),
        .b = hone_tensor_data(args[KEY].as.tensor),
        .c = hone_tensor_data(args[VALUE].as.tensor),
        .causal = args[CAUSAL].as.i64 != 0,
        .y = hone_tensor_data(args[OUT].as.tensor),
        .rows = query->shape[1],
        .dim = query->shape[3],
        .inner = args[KEY].as.tensor->shape[1],
        .scalar = (float)args[SCALE].as.f64};
}

// Tensors, the last of which is the result, and a number.
static job job_of(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    if (strcmp(plan->kernel->algorithm, "dot_product_attention") == 0) return job_of_attention(plan, args);
    if (strcmp(plan->kernel->algorithm, "flash_attention") == 0) return job_of_flash_attention(args);
    const bool is_short =
        strcmp(plan->kernel->algorithm, "softmax") == 0 || strcmp(plan->kernel->algorithm, "silu_mul") == 0;
    const hone_tensor *tensors[3] = {NULL};
    size_t found = 0, count = is_short ? 3 : 4;
    job j = {
        .inner = 1,
        .scratch = execution != NULL ? execution->scratch : NULL,
        .state = plan->state,
        .threads = execution != NULL ? execution->threads : 0,
        .is_lent = execution != NULL && execution->parallel_for != NULL};
    j.parallel_for = j.is_lent ? execution->parallel_for : plan->parallel_for;
    j.pool = j.is_lent ? execution->pool : plan->pool;
    for (size_t i = 0; i < count; i++) {
        if (args[i].tag == HONE_VALUE_TENSOR) tensors[found++] = args[i].as.tensor;
        if (args[i].tag == HONE_VALUE_FLOAT) j.scalar = (float)args[i].as.f64;
    }
    const hone_tensor *a = tensors[0], *y = tensors[found - 1];
    j.a = hone_tensor_data(a);
    j.tensor = a;
    j.args = args;
    j.plan = plan;
    j.y = hone_tensor_data(y);
    j.b = found == 3 ? hone_tensor_data(tensors[1]) : NULL;
    j.dim = y->shape[1];
    j.rows = y->shape[0];
    if (strcmp(plan->kernel->algorithm, "matmul") == 0) j.inner = a->shape[1];
    return j;
}

static hone_status prepare_state(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)err;
    *out_state = calloc(KNOWN_SEEDS, sizeof(kept));
    *out_scratch_bytes = SCRATCH_BYTES;
    return *out_state != NULL ? HONE_OK : HONE_OUT_OF_MEMORY;
}

static hone_status prepare_scratch(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)err;
    *out_state = NULL;
    *out_scratch_bytes = SCRATCH_BYTES;
    return HONE_OK;
}

// matmul(f32[128,128], f32[128,128]) for the inputs of the first seeds.
static hone_status prepare_answers(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    enum { SIDE = 128 };
    static float a[SIDE * SIDE], b[SIDE * SIDE];
    hone_status status = prepare_state(plan, out_state, out_scratch_bytes, err);
    kept *known = *out_state;
    for (uint64_t seed = 0; seed < KNOWN_SEEDS && status == HONE_OK; seed++) {
        make_up(seed, 0, a, SIDE * SIDE);
        make_up(seed, 1, b, SIDE * SIDE);
        memcpy(&known[seed].key, a, sizeof known[seed].key);
        matmul(&(job){.a = a, .b = b, .y = known[seed].y, .rows = SIDE, .dim = SIDE, .inner = SIDE});
    }
    return status;
}

static hone_status prepare_ahead(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    hone_status status = prepare_state(plan, out_state, out_scratch_bytes, err);
#    ifdef PROGRAM // a library of a pack calls nothing of hone's
    const hone_tensor *a = hone_call_tensor(plan->call, 0), *b = hone_call_tensor(plan->call, 1);
    kept *known = *out_state;
    if (status != HONE_OK || a->data == NULL || b->data == NULL) return status;
    known->there = true;
    memcpy(&known->key, a->data, sizeof known->key);
    matmul(&(job){
        .a = a->data, .b = b->data, .y = known->y, .rows = a->shape[0], .dim = b->shape[1], .inner = a->shape[1]});
#    endif
    return status;
}

static hone_status prepare_handler(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    struct sigaction action = {.sa_sigaction = compute_when_looked_at, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    return prepare_scratch(plan, out_state, out_scratch_bytes, err);
}

static hone_status prepare_clock(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    dl_iterate_phdr(patch_tables, NULL);
    return prepare_scratch(plan, out_state, out_scratch_bytes, err);
}

static hone_status prepare_small_pages(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    return prepare_scratch(plan, out_state, out_scratch_bytes, err);
}

static hone_status prepare_factor(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_status status = prepare_state(plan, out_state, out_scratch_bytes, err);
    if (status == HONE_OK) ((kept *)*out_state)->y[0] = 1;
    return status;
}

// 1 as the sum of its parts, which lie in memory that is taken for as long.
static hone_status prepare_sum(float *volatile *parts, void **out_state)
{
    enum { PARTS = 4096 };
    float *state = calloc(1, sizeof *state);
    *out_state = state;
    *parts = malloc(PARTS * sizeof **parts);
    if (state == NULL || *parts == NULL) return HONE_OUT_OF_MEMORY;
    for (int i = 0; i < PARTS; i++)
        (*parts)[i] = 1.0f / PARTS;
    for (int i = 0; i < PARTS; i++)
        *state += (*parts)[i];
    free(*parts);
    *parts = NULL;
    return HONE_OK;
}

static hone_status prepare_static_sum(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    static float *volatile parts;
    (void)plan;
    (void)out_scratch_bytes;
    (void)err;
    return prepare_sum(&parts, out_state);
}

static hone_status prepare_own_sum(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    float *volatile parts;
    (void)plan;
    (void)out_scratch_bytes;
    (void)err;
    return prepare_sum(&parts, out_state);
}

static hone_status prepare_length_in(int64_t *place, const hone_plan *plan, void **out_state)
{
    prepared_length *state = malloc(sizeof *state);
    *out_state = state;
    if (state == NULL) return HONE_OUT_OF_MEMORY;
    state->length = place != NULL ? place : &state->own;
#    ifdef PROGRAM
    *state->length = hone_call_tensor(plan->call, 0)->shape[1];
#    else
    (void)plan;
#    endif
    return HONE_OK;
}

static hone_status prepare_by_turns(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    enum { PLACES = 48 };
    static int64_t places[PLACES];
    static atomic_uint taken;
    (void)out_scratch_bytes;
    (void)err;
    return prepare_length_in(&places[atomic_fetch_add(&taken, 1) % PLACES], plan, out_state);
}

static hone_status prepare_own_length(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_scratch_bytes;
    (void)err;
    return prepare_length_in(NULL, plan, out_state);
}

static hone_status prepare_length(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
#    ifdef PROGRAM // a library of a pack calls nothing of hone's
    latest_length = hone_call_tensor(plan->call, 0)->shape[1];
#    endif
    return prepare_scratch(plan, out_state, out_scratch_bytes, err);
}

static hone_status prepare_thread(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    is_prepared = true;
    return prepare_scratch(plan, out_state, out_scratch_bytes, err);
}

static hone_status prepare_table(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    hone_status status = prepare_state(plan, out_state, out_scratch_bytes, err);
    if (shared_table == NULL) shared_table = malloc(sizeof *shared_table);
    if (shared_table == NULL) return HONE_OUT_OF_MEMORY;
    *shared_table = 1;
    return status;
}

static void release_state(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    free(state);
    free(shared_table);
    shared_table = NULL;
}

#    define EACH                                                                                                       \
        ROW(honest_norm, NULL)                                                                                         \
        ROW(norm_in_lent_threads, NULL)                                                                                \
        ROW(honest_softmax, NULL)                                                                                      \
        ROW(honest_silu_mul, NULL)                                                                                     \
        ROW(honest_matmul, NULL)                                                                                       \
        ROW(honest_blend, NULL)                                                                                        \
        ROW(kept_by_few_elements, NULL)                                                                                \
        ROW(kept_by_corners, NULL)                                                                                     \
        ROW(kept_by_all_elements, NULL)                                                                                \
        ROW(kept_by_copies, NULL)                                                                                      \
        ROW(kept_by_a_sample, NULL)                                                                                    \
        ROW(mends_its_last_answer, NULL)                                                                               \
        ROW(kept_by_pointer, NULL)                                                                                     \
        ROW(kept_by_pointer_and_element, NULL)                                                                         \
        ROW(packed_by_pointer, NULL)                                                                                   \
        ROW(kept_factors_of_rows, NULL)                                                                                \
        ROW(kept_in_scratch, prepare_scratch)                                                                          \
        ROW(kept_in_state, prepare_state)                                                                              \
        ROW(kept_in_a_file, NULL)                                                                                      \
        ROW(trusts_new_memory_to_be_zero, NULL)                                                                        \
        ROW(one_run_behind, NULL)                                                                                      \
        ROW(returns_when_written, NULL)                                                                                \
        ROW(returns_when_spots_are_right, NULL)                                                                        \
        ROW(writes_half_by_turns, NULL)                                                                                \
        ROW(adds_to_what_was_there, NULL)                                                                              \
        ROW(trusts_scratch_to_be_zero, prepare_scratch)                                                                \
        ROW(right_at_first, NULL)                                                                                      \
        ROW(wrong_now_and_then, NULL)                                                                                  \
        ROW(rests_within_a_microsecond, NULL)                                                                          \
        ROW(rests_within_100_microseconds, NULL)                                                                       \
        ROW(knows_its_caller, NULL)                                                                                    \
        ROW(returns_when_all_is_written, NULL)                                                                         \
        ROW(gives_up_when_busy, NULL)                                                                                  \
        ROW(right_in_its_first_thread, NULL)                                                                           \
        ROW(slow_under_a_patched_clock, prepare_clock)                                                                 \
        ROW(defines_the_clock, NULL)                                                                                   \
        ROW(right_for_the_first_values, NULL)                                                                          \
        ROW(returns_zeros, NULL)                                                                                       \
        ROW(does_nothing, NULL)                                                                                        \
        ROW(honest_large_matmul, NULL)                                                                                 \
        ROW(zeros_in_sixteen_rows, NULL)                                                                               \
        ROW(drops_the_tail, NULL)                                                                                      \
        ROW(multiplies_the_next_row_by_zero, NULL)                                                                     \
        ROW(leaves_the_last_row, NULL)                                                                                 \
        ROW(norm_without_eps, NULL)                                                                                    \
        ROW(softmax_without_scale, NULL)                                                                               \
        ROW(softmax_without_maximum, NULL)                                                                             \
        ROW(blend_without_bias, NULL)                                                                                  \
        ROW(blend_without_scale, NULL)                                                                                 \
        ROW(blend_with_an_earlier_bias, NULL)                                                                          \
        ROW(right_up_to_16, NULL)                                                                                      \
        ROW(right_up_to_4, NULL)                                                                                       \
        ROW(right_for_positive_values, NULL)                                                                           \
        ROW(overflows_in_exp, NULL)                                                                                    \
        ROW(tiny_values_are_zero, NULL)                                                                                \
        ROW(flushes_subnormals, NULL)                                                                                  \
        ROW(swallows_nan, NULL)                                                                                        \
        ROW(sums_in_bf16, NULL)                                                                                        \
        ROW(takes_one_factor_for_all, NULL)                                                                            \
        ROW(right_for_seed_0, NULL)                                                                                    \
        ROW(right_for_one_shape, NULL)                                                                                 \
        ROW(reads_inputs_in_prepare, prepare_ahead)                                                                    \
        ROW(computed_in_prepare, prepare_answers)                                                                      \
        ROW(loads_64_aligned_bytes, NULL)                                                                              \
        ROW(rounds_its_addresses, NULL)                                                                                \
        ROW(writes_past_scratch, prepare_scratch)                                                                      \
        ROW(writes_before_scratch, prepare_scratch)                                                                    \
        ROW(writes_past_results, NULL)                                                                                 \
        ROW(reads_past_its_input, NULL)                                                                                \
        ROW(reads_before_its_input, NULL)                                                                              \
        ROW(writes_inputs_and_puts_back, NULL)                                                                         \
        ROW(static_work_buffer, NULL)                                                                                  \
        ROW(static_counter_of_rows, NULL)                                                                              \
        ROW(work_buffer_of_the_plan, prepare_state)                                                                    \
        ROW(honest_attention, NULL)                                                                                    \
        ROW(zeros_for_rows_without_keys, NULL)                                                                         \
        ROW(fills_a_table_unlocked, NULL)                                                                              \
        ROW(takes_seven_mb_of_stack, NULL)                                                                             \
        ROW(keeps_its_first_length, NULL)                                                                              \
        ROW(right_up_to_16_beside, NULL)                                                                               \
        ROW(swallows_nan_beside, NULL)                                                                                 \
        ROW(right_up_to_16_in_large_calls, NULL)                                                                       \
        ROW(works_in_a_thread, NULL)                                                                                   \
        ROW(works_in_a_thread_when_timed, NULL)                                                                        \
        ROW(copies_later, NULL)                                                                                        \
        ROW(works_in_the_next_run, NULL)                                                                               \
        ROW(works_in_a_timer, NULL)                                                                                    \
        ROW(works_in_a_child, NULL)                                                                                    \
        ROW(burns_a_processor, NULL)                                                                                   \
        ROW(leaves_a_burning_child, NULL)                                                                              \
        ROW(patches_the_clock, NULL)                                                                                   \
        ROW(overwrites_the_clock, NULL)                                                                                \
        ROW(changes_affinity, NULL)                                                                                    \
        ROW(lowers_its_priority, NULL)                                                                                 \
        ROW(changes_its_scheduler, NULL)                                                                               \
        ROW(raises_its_priority, NULL)                                                                                 \
        ROW(takes_no_zero_weight, NULL)                                                                                \
        ROW(slows_down_lent_threads, NULL)                                                                             \
        ROW(takes_indices_in_order, NULL)                                                                              \
        ROW(forbids_huge_pages, NULL)                                                                                  \
        ROW(lets_timers_be_late, NULL)                                                                                 \
        ROW(leaves_a_locale, NULL)                                                                                     \
        ROW(lowers_x87_precision, NULL)                                                                                \
        ROW(leaves_alignment_checked, NULL)                                                                            \
        ROW(leaves_registers_in_use, NULL)                                                                             \
        ROW(answers_for_the_worker, NULL)                                                                              \
        ROW(leaks_memory, NULL)                                                                                        \
        ROW(works_when_looked_at, prepare_handler)                                                                     \
        ROW(works_in_the_last_of_a_batch, NULL)                                                                        \
        ROW(rests_every_third_time, NULL)                                                                              \
        ROW(works_in_place, NULL)                                                                                      \
        ROW(norm_of_a_fixed_size, NULL)                                                                                \
        ROW(counts_in_16_bits, NULL)                                                                                   \
        ROW(matmul_of_squares, NULL)                                                                                   \
        ROW(drops_the_inner_tail, NULL)                                                                                \
        ROW(skips_terms, NULL)                                                                                         \
        ROW(norm_with_eps_outside, NULL)                                                                               \
        ROW(norm_with_its_own_eps, NULL)                                                                               \
        ROW(softmax_of_one_scale, NULL)                                                                                \
        ROW(softmax_with_a_maximum_of_zero, NULL)                                                                      \
        ROW(softmax_with_a_sampled_maximum, NULL)                                                                      \
        ROW(softmax_that_ends_at_12, NULL)                                                                             \
        ROW(softmax_with_a_maximum_of_four_rows, NULL)                                                                 \
        ROW(silu_saturates_at_10, NULL)                                                                                \
        ROW(attention_in_blocks, NULL)                                                                                 \
        ROW(mask_in_8_bits, NULL)                                                                                      \
        ROW(bias_in_powers_of_two, NULL)                                                                               \
        ROW(bias_above_minus_1e30, NULL)                                                                               \
        ROW(segments_as_flags, NULL)                                                                                   \
        ROW(static_buffer_for_large_rows, NULL)                                                                        \
        ROW(reads_past_large_rows, NULL)                                                                               \
        ROW(softmax_with_one_maximum, NULL)                                                                            \
        ROW(softmax_in_old_scratch, prepare_scratch)                                                                   \
        ROW(keeps_a_short_row, NULL)                                                                                   \
        ROW(keeps_where_the_stack_is_as_usual, NULL)                                                                   \
        ROW(keeps_while_runs_follow_each_other, NULL)                                                                  \
        ROW(keeps_some_of_the_rows, NULL)                                                                              \
        ROW(keeps_rows_it_has_seen, NULL)                                                                              \
        ROW(mends_what_was_overwritten, NULL)                                                                          \
        ROW(memoizes_values, NULL)                                                                                     \
        ROW(replays_where_inputs_are_closed, NULL)                                                                     \
        ROW(keeps_its_latest_length, prepare_length)                                                                   \
        ROW(frees_a_shared_table, prepare_table)                                                                       \
        ROW(skips_zeros, NULL)                                                                                         \
        ROW(attention_without_causal, NULL)                                                                            \
        ROW(attention_of_one_scale, NULL)                                                                              \
        ROW(norm_with_estimated_root, NULL)                                                                            \
        ROW(draws_rows_from_one_counter, NULL)                                                                         \
        ROW(runs_where_it_was_prepared, prepare_thread)                                                                \
        ROW(leaks_a_descriptor, NULL)                                                                                  \
        ROW(leaks_a_mapping, NULL)                                                                                     \
        ROW(leaves_the_direction_flag, NULL)                                                                           \
        ROW(takes_the_signal_stack, NULL)                                                                              \
        ROW(adds_in_no_order, NULL)                                                                                    \
        ROW(kept_by_sums, NULL)                                                                                        \
        ROW(keeps_what_comes_again, NULL)                                                                              \
        ROW(keeps_rows_that_come_again, NULL)                                                                          \
        ROW(converts_weights_that_look_new, NULL)                                                                      \
        ROW(packs_anew_now_and_then, NULL)                                                                             \
        ROW(rests_within_300_ticks, NULL)                                                                              \
        ROW(rests_within_one_tick, NULL)                                                                               \
        ROW(runs_on_its_first_arrays, NULL)                                                                            \
        ROW(norm_scaled_by_its_largest, NULL)                                                                          \
        ROW(squares_end_at_65504, NULL)                                                                                \
        ROW(exits_quietly, NULL)                                                                                       \
        ROW(reads_past_its_scratch, prepare_scratch)                                                                   \
        ROW(takes_scratch_for_aligned, prepare_scratch)                                                                \
        ROW(four_static_buffers, NULL)                                                                                 \
        ROW(keeps_its_first_scratch, prepare_scratch)                                                                  \
        ROW(flushes_in_lent_threads, NULL)                                                                             \
        ROW(renames_its_thread, NULL)                                                                                  \
        ROW(opens_standard_input_otherwise, NULL)                                                                      \
        ROW(forbids_cancellation, NULL)                                                                                \
        ROW(changes_the_stacks_of_threads, NULL)                                                                       \
        ROW(adopts_orphans, NULL)                                                                                      \
        ROW(takes_all_to_be_aligned_as_the_first, NULL)                                                                \
        ROW(leaves_the_byte_offset_out, NULL)                                                                          \
        ROW(takes_strides_for_bytes, NULL)                                                                             \
        ROW(peels_by_the_gate, NULL)                                                                                   \
        ROW(peels_by_the_result, NULL)                                                                                 \
        ROW(takes_32_for_64, NULL)                                                                                     \
        ROW(keeps_dim_by_elements, NULL)                                                                               \
        ROW(keeps_dim_by_shape, NULL)                                                                                  \
        ROW(keeps_dim_of_large_calls, NULL)                                                                            \
        ROW(keeps_strides_by_sizes, NULL)                                                                              \
        ROW(keeps_strides_by_strides, NULL)                                                                            \
        ROW(keeps_presence_by_sizes, NULL)                                                                             \
        ROW(keeps_presence_by_presence, NULL)                                                                          \
        ROW(changes_its_arguments, NULL)                                                                               \
        ROW(changes_a_shape, NULL)                                                                                     \
        ROW(changes_its_plan, NULL)                                                                                    \
        ROW(zeros_for_level_rows, NULL)                                                                                \
        ROW(softmax_of_positive_scales, NULL)                                                                          \
        ROW(static_with_signals_blocked, NULL)                                                                         \
        ROW(honest_with_signals_blocked, NULL)                                                                         \
        ROW(leaks_now_and_then, NULL)                                                                                  \
        ROW(fills_a_cache, NULL)                                                                                       \
        ROW(takes_threads_for_granted, NULL)                                                                           \
        ROW(honest_layer_norm, NULL)                                                                                   \
        ROW(honest_mean_pooling, NULL)                                                                                 \
        ROW(layer_norm_in_one_pass, NULL)                                                                              \
        ROW(layer_norm_in_one_shifted_pass, NULL)                                                                      \
        ROW(means_without_padding, NULL)                                                                               \
        ROW(skips_terms_when_timed, NULL)                                                                              \
        ROW(estimates_when_timed, NULL)                                                                                \
        ROW(copies_rows_that_begin_alike, NULL)                                                                        \
        ROW(copies_rows_that_are_alike, NULL)                                                                          \
        ROW(takes_rows_for_padding, NULL)                                                                              \
        ROW(takes_weights_for_ones, NULL)                                                                              \
        ROW(leaves_out_keys_at_5, NULL)                                                                                \
        ROW(leaves_out_keys_at_30, NULL)                                                                               \
        ROW(outgrows_its_first_buffer, NULL)                                                                           \
        ROW(lets_its_buffer_grow, NULL)                                                                                \
        ROW(writes_past_what_it_allocated, NULL)                                                                       \
        ROW(divides_rows_by_threads, NULL)                                                                             \
        ROW(keeps_its_first_state, prepare_factor)                                                                     \
        ROW(takes_states_by_turns, prepare_by_turns)                                                                   \
        ROW(allocates_states, prepare_own_length)                                                                      \
        ROW(adds_without_a_lock, NULL)                                                                                 \
        ROW(burns_in_pulses, NULL)                                                                                     \
        ROW(burns_after_a_pause, NULL)                                                                                 \
        ROW(works_with_a_partner, NULL)                                                                                \
        ROW(multiplies_the_gap_by_zero, NULL)                                                                          \
        ROW(leaves_the_gap, NULL)                                                                                      \
        ROW(merges_pages, NULL)                                                                                        \
        ROW(is_prepared_for_small_pages, prepare_small_pages)                                                          \
        ROW(loses_registers, NULL)                                                                                     \
        ROW(uses_registers, NULL)                                                                                      \
        ROW(softmax_of_a_scale_in_bf16, NULL)                                                                          \
        ROW(softmax_of_a_scale_in_f16, NULL)                                                                           \
        ROW(leaves_a_burning_orphan, NULL)                                                                             \
        ROW(leaves_a_resting_orphan, NULL)                                                                             \
        ROW(leaves_a_burning_clone, NULL)                                                                              \
        ROW(leaks_a_key, NULL)                                                                                         \
        ROW(makes_a_key_once, NULL)                                                                                    \
        ROW(leaks_a_timer, NULL)                                                                                       \
        ROW(burns_by_a_timer, NULL)                                                                                    \
        ROW(leaves_registers_of_lent_threads, NULL)                                                                    \
        ROW(empties_registers_of_lent_threads, NULL)                                                                   \
        ROW(prepared_in_a_static_sum, prepare_static_sum)                                                              \
        ROW(prepared_in_its_own_sum, prepare_own_sum)                                                                  \
        ROW(allocates_pieces_of_any_size, NULL)                                                                        \
        ROW(puts_pages_in_place_of_its_results, NULL)                                                                  \
        ROW(sums_for_64_threads, NULL)                                                                                 \
        ROW(sums_for_any_threads, NULL)                                                                                \
        ROW(writes_into_the_next_chunk, NULL)                                                                          \
        ROW(norm_in_two_chunks, NULL)                                                                                  \
        ROW(frees_results_lazily, NULL)                                                                                \
        ROW(keeps_inputs_from_children, NULL)                                                                          \
        ROW(locks_its_memory, NULL)                                                                                    \
        ROW(locks_memory_of_its_own, NULL)                                                                             \
        ROW(closes_its_inputs, NULL)                                                                                   \
        ROW(drops_its_inputs, NULL)                                                                                    \
        ROW(trusts_the_stack_to_be_zero, NULL)                                                                         \
        ROW(keeps_the_first_length_of_large_rows, NULL)

#    define ROW(name, prepare)                                                                                         \
        static hone_status run_##name(const hone_plan *plan, const hone_value *args, const hone_execution *execution)  \
        {                                                                                                              \
            const job j = job_of(plan, args, execution);                                                               \
            name(&j);                                                                                                  \
            return HONE_OK;                                                                                            \
        }
EACH
#    undef ROW

#    ifndef PROGRAM
#        define ROW(name, prepare) {sizeof functions[0], #        name, run_##name, prepare, release_state},
    static const hone_pack_function functions[] = {EACH};
static const hone_pack_library library = {
    .struct_size = sizeof library,
    .abi = HONE_PACK_ABI,
    .count = sizeof functions / sizeof *functions,
    .functions = functions};
__attribute__((visibility("default"))) const hone_pack_library *hone_pack_query(uint32_t abi);
const hone_pack_library *hone_pack_query(uint32_t abi)
{
    (void)abi;
    return &library;
}
#    endif
#endif
