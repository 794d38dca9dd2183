// Reading lowered programs whole, from bytes to matched operations, beside XLA's and MLIR's own parsers, which read the
// same files in a process of their own and match nothing.
//
//   bench_read FOLDER SCRIPT PACKAGES      the folder that programs are written to, lowered.py, which does it, and where jax is
#include "bench.h"

#include <hone/hone.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, READS = 9, SIZE_MAX_READ = 1 << 25, COMMAND_SIZE = 8192, MILLION = 1000 * 1000, ABSENT = '\x01' };

typedef struct form {
    const char *title, *file;
    const char *bound; // on the time of a million bytes, or of the whole; NULL: none
    bool whole;        // the time of the whole is told
    bool scanned;      // jaxlib has no parser for it: beside it the bytes are looked through once
    char *bytes;
    size_t size;
    double hone[ROUNDS], peer[ROUNDS]; // nanoseconds of a read, the median of a round
} form;

static form forms[] = {
    {.title = "StableHLO text", .file = "block.mlir", .bound = "at least 300 MB/s"},
    {.title = "the same, whole", .file = "block.mlir", .bound = "at most 10 ms", .whole = true},
    {.title = "StableHLO text, 400 functions", .file = "small.mlir", .bound = "at least 300 MB/s"},
    {.title = "HLO text", .file = "block.hlo.txt", .bound = "at least 300 MB/s", .scanned = true},
    {.title = "HLO proto", .file = "block.hlo.pb", .bound = "at least 500 MB/s"},
    {.title = "MLIR bytecode", .file = "block.bc", .whole = true},
    {.title = "portable artifact", .file = "block.portable.bc", .whole = true},
    {.title = "jax.export blob", .file = "block.export", .whole = true},
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

static int read_file(const char *folder, form *f)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, f->file);
    FILE *file = fopen(path, "rb");
    f->bytes = malloc(SIZE_MAX_READ);
    f->size = file != NULL && f->bytes != NULL ? fread(f->bytes, 1, SIZE_MAX_READ, file) : 0;
    if (file != NULL) fclose(file);
    if (f->size == 0) fprintf(stderr, "bench_read: %s cannot be read\n", path);
    return f->size == 0;
}

// Nanoseconds of one read; 0 after a failure, or when nothing was found.
static double read_once(hone_runtime *rt, const form *f)
{
    hone_program *program = NULL;
    hone_error err = {0};
    uint64_t start = bench_now_ns();
    hone_status status = hone_program_read(rt, f->file, f->bytes, f->size, &program, &err);
    uint64_t elapsed = bench_now_ns() - start;
    bool found = status == HONE_OK && hone_program_operations(program) > 0;
    if (!found) fprintf(stderr, "bench_read: %s: %s\n", f->file, status == HONE_OK ? "nothing found" : err.message);
    hone_program_release(&program);
    return found ? (double)elapsed : 0;
}

// Nanoseconds of looking for a byte that is not there.
static double scan(const form *f)
{
    double times[READS];
    for (int i = 0; i < READS; i++) {
        uint64_t start = bench_now_ns();
        const void *found = memchr(f->bytes, ABSENT, f->size);
        times[i] = (double)(bench_now_ns() - start) + (found != NULL);
    }
    return bench_median(times, READS);
}

static int read_round(hone_runtime *rt, int round)
{
    for (form *f = forms; f < forms + FORM_COUNT; f++) {
        double times[READS];
        for (int i = 0; i < READS; i++)
            if ((times[i] = read_once(rt, f)) <= 0) return 1;
        f->hone[round] = bench_median(times, READS);
        if (f->scanned) f->peer[round] = scan(f);
    }
    return 0;
}

// The peers' process says a line for each file: its name, and the nanoseconds of a read.
static int parse_round(const char *command, int round)
{
    char line[256], name[128];
    double elapsed;
    int known = 0, wanted = 0;
    FILE *process = popen(command, "r");
    if (process == NULL) return 1;
    while (fgets(line, sizeof line, process) != NULL) {
        if (sscanf(line, "%127s %lf", name, &elapsed) != 2) continue;
        for (form *f = forms; f < forms + FORM_COUNT; f++) {
            if (strcmp(f->file, name) != 0) continue;
            f->peer[round] = elapsed;
            known++;
        }
    }
    for (const form *f = forms; f < forms + FORM_COUNT; f++)
        wanted += !f->scanned;
    return pclose(process) != 0 || known != wanted;
}

static void print_row(form *f)
{
    char name[160];
    double ratios[ROUNDS], unit = f->whole ? 1 : (double)MILLION / (double)f->size;
    for (int i = 0; i < ROUNDS; i++)
        ratios[i] = f->hone[i] / f->peer[i];
    bench_row row = {.hone_ns = unit * bench_median(f->hone, ROUNDS), .peer_ns = unit * bench_median(f->peer, ROUNDS)};
    row.ratio = bench_median(ratios, ROUNDS);
    bench_interval(ratios, ROUNDS, &row.low, &row.high);
    snprintf(name, sizeof name, "read/%s, %.2f MB", f->title, (double)f->size / MILLION);
    bench_print(name, f->scanned ? "memchr" : "jaxlib's parser", &row, f->bound);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: bench_read FOLDER SCRIPT PACKAGES\n");
        return 2;
    }
    char make[COMMAND_SIZE], parse[COMMAND_SIZE];
    snprintf(make, sizeof make, "python3 -W ignore '%s' make '%s' '%s'", argv[2], argv[3], argv[1]);
    snprintf(parse, sizeof parse, "python3 -W ignore '%s' parse '%s' '%s'", argv[2], argv[3], argv[1]);
    hone_runtime *rt = NULL;
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    hone_error err = {0};
    int failed = system(make) != 0 || hone_runtime_open(&options, &rt, &err) != HONE_OK;
    for (int i = 0; i < FORM_COUNT && !failed; i++)
        failed = read_file(argv[1], &forms[i]);
    for (int round = 0; round < ROUNDS && !failed; round++)
        failed = parse_round(parse, round) || read_round(rt, round);
    for (int i = 0; i < FORM_COUNT; i++) {
        if (!failed) print_row(&forms[i]);
        free(forms[i].bytes);
    }
    hone_runtime_close(&rt);
    if (failed) fprintf(stderr, "bench_read: not measured: %s\n", err.message[0] != '\0' ? err.message : "see above");
    return failed;
}
