// Spaces: published ones enumerated into a table beside Kernel Tuner's solver, which reads the same files in a process
// of its own each round; and two of over 10^9 valid configs, counted and sampled. What memory they take is told on
// standard error.
//
//   bench_space FOLDER SCRIPT PACKAGES      the spaces, python_constraint.py, and where python-constraint2 is
#include "bench.h"

#include "space/rows.h"
#include "space/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, FAST_ROUNDS = 101, TEXT_SIZE = 1 << 16, COMMAND_SIZE = 8192, SAMPLE = 1000, ROWS_MAX = 1 << 24 };

typedef struct memory {
    size_t live, peak;
} memory;

typedef struct group {
    const char *name, *bound;
    const char *spaces[9];
    uint64_t count; // of configs
} group;

static const group groups[] = {
    {"space/published",
     "at most 50 ms",
     {"atf_prl_2x2", "atf_prl_4x4", "atf_prl_8x8", "dedispersion", "expdist", "gemm", "hotspot", "microhh"},
     971231},
    {"space/siblings", "at most 80 ms", {"atf_prl_16x16", "atf_prl_32x32"}, 695520},
};
static const group large[] = {
    {"space/product", "at most 10 ms", {"product"}, 570700136448},
    {"space/pipeline", "at most 10 ms", {"pipeline"}, 18463608405},
};

typedef struct measurement {
    const char *folder, *script, *packages;
    memory memory;
} measurement;

static void *counted(void *ctx, void *block, size_t old_size, size_t new_size)
{
    memory *m = ctx;
    if (m->live + new_size > m->peak) m->peak = m->live + new_size; // while a block moves both are there
    m->live += new_size - old_size;
    if (new_size > 0) return realloc(block, new_size);
    free(block);
    return NULL;
}

static hone_bound_space *read_space(measurement *m, const char *name, const char *ending)
{
    static char text[TEXT_SIZE];
    char path[1024];
    hone_error err;
    hone_space *space = NULL;
    hone_bound_space *bound = NULL;
    hone_allocator allocator = {&m->memory, counted};
    snprintf(path, sizeof path, "%s/%s.%s", m->folder, name, ending);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    hone_status status = strcmp(ending, "json") == 0 ? hone_space_parse_t1(allocator, text, size, &space, &err)
                                                     : hone_space_parse(allocator, text, &space, &err);
    if (status == HONE_OK) status = hone_space_bind(space, NULL, NULL, &bound, &err);
    if (status != HONE_OK) fprintf(stderr, "bench_space: %s: %s\n", path, err.message);
    hone_space_release(&space);
    return bound;
}

// All configs of a group's spaces as rows; the nanoseconds from the files on, 0 after a failure.
static double enumerate(measurement *m, const group *g)
{
    uint64_t count = 0, start = bench_now_ns();
    for (size_t i = 0; g->spaces[i] != NULL; i++) {
        hone_space_rows rows;
        hone_bound_space *bound = read_space(m, g->spaces[i], "json");
        if (bound == NULL) return 0;
        if (hone_space_rows_init(&rows, bound, ROWS_MAX, NULL) == HONE_OK) count += rows.count;
        hone_space_rows_deinit(&rows);
        hone_bound_space_release(&bound);
    }
    uint64_t elapsed = bench_now_ns() - start;
    return count == g->count ? (double)elapsed : 0;
}

static double solve(const measurement *m, const group *g, uint64_t *out_bytes)
{
    char command[COMMAND_SIZE], line[128] = "";
    int used = snprintf(command, sizeof command, "python3 -W ignore '%s' '%s'", m->script, m->packages);
    for (size_t i = 0; g->spaces[i] != NULL; i++)
        used += snprintf(command + used, sizeof command - (size_t)used, " '%s/%s.json'", m->folder, g->spaces[i]);
    uint64_t count = 0, elapsed = 0;
    FILE *process = popen(command, "r");
    if (process == NULL) return 0;
    bool read = fgets(line, sizeof line, process) != NULL &&
                sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &count, &elapsed, out_bytes) == 3;
    return pclose(process) == 0 && read && count == g->count ? (double)elapsed : 0;
}

static int compare(measurement *m, const group *g)
{
    double hone[ROUNDS], peer[ROUNDS], ratios[ROUNDS];
    uint64_t peer_bytes = 0;
    m->memory = (memory){0, 0};
    for (int i = 0; i < ROUNDS; i++) {
        hone[i] = enumerate(m, g);
        peer[i] = solve(m, g, &peer_bytes);
        if (hone[i] <= 0 || peer[i] <= 0) return 1;
        ratios[i] = hone[i] / peer[i];
    }
    bench_row row = {.hone_ns = bench_median(hone, ROUNDS), .peer_ns = bench_median(peer, ROUNDS)};
    row.ratio = bench_median(ratios, ROUNDS);
    bench_interval(ratios, ROUNDS, &row.low, &row.high);
    bench_print(g->name, "python-constraint2", &row, g->bound);
    fprintf(stderr, "%s: at most %zu bytes, the peer %" PRIu64 "\n", g->name, m->memory.peak, peer_bytes);
    return 0;
}

// From the file to a thousand configs.
static double count_and_sample(measurement *m, const group *g)
{
    static hone_config configs[SAMPLE];
    uint64_t count = 0, start = bench_now_ns();
    size_t sampled = 0;
    hone_bound_space *bound = read_space(m, g->spaces[0], "txt");
    if (bound == NULL) return 0;
    hone_status status = hone_bound_space_count(bound, &count, NULL);
    if (status == HONE_OK) status = hone_bound_space_sample(bound, start, SAMPLE, configs, &sampled, NULL);
    hone_bound_space_release(&bound);
    uint64_t elapsed = bench_now_ns() - start;
    return status == HONE_OK && count == g->count && sampled == SAMPLE ? (double)elapsed : 0;
}

static int measure_large(measurement *m, const group *g)
{
    const double limit_ns = 10e6;
    double times[FAST_ROUNDS], low, high;
    m->memory = (memory){0, 0};
    for (int i = 0; i < FAST_ROUNDS; i++) {
        times[i] = count_and_sample(m, g);
        if (times[i] <= 0) return 1;
    }
    double median = bench_median(times, FAST_ROUNDS);
    bench_interval(times, FAST_ROUNDS, &low, &high);
    bench_print_absolute(g->name, "the bound", median, limit_ns, low / limit_ns, high / limit_ns, g->bound);
    fprintf(stderr, "%s: at most %zu bytes\n", g->name, m->memory.peak);
    return 0;
}

int main(int count, char **arguments)
{
    int failed = 0;
    if (count != 4) {
        fprintf(stderr, "usage: bench_space FOLDER SCRIPT PACKAGES\n");
        return 2;
    }
    measurement m = {arguments[1], arguments[2], arguments[3], {0, 0}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups && !failed; i++)
        failed = compare(&m, &groups[i]);
    for (size_t i = 0; i < sizeof large / sizeof *large && !failed; i++)
        failed = measure_large(&m, &large[i]);
    if (failed) fprintf(stderr, "bench_space: a space could not be read, or has another number of configs\n");
    return failed;
}
