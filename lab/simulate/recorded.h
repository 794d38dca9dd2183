// Recorded spaces: what every config of a kernel took, measured once by some tuner and kept as a file. Reads the cache
// files of Kernel Tuner and T4 results, plain or gzipped, also when they were cut short.
#ifndef HONE_SIMULATE_RECORDED_H
#define HONE_SIMULATE_RECORDED_H

#include "base/buffer.h"
#include "hone/space.h"

// What became of one config. Times are milliseconds; a cost that the file does not have is 0.
typedef struct hone_recorded_row {
    hone_config config;
    hone_failure failure; // PREPARE: did not compile; RUN: did not run; WRONG; UNSUPPORTED: refused; TIMEOUT
    double time;          // as the file has it, mostly the samples' mean; > 0 unless it failed
    const double *samples;
    size_t sample_count; // 0 when the file has only the time
    double compile, verification, benchmark, framework;
} hone_recorded_row;

typedef struct hone_recorded hone_recorded;

// bytes: the file's, gzipped or not. A file that ends too early gives what is whole in it; hone_recorded_is_cut says
// so.
//   name  for messages
// Any thread may read a recorded space; it never changes.
// Returns: HONE_OK; HONE_CORRUPT: no such file's content, or nothing of it is whole; HONE_OUT_OF_MEMORY.
hone_status hone_recorded_parse(
    hone_allocator allocator, const char *name, const void *bytes, size_t size, hone_recorded **out, hone_error *err);
// Also HONE_NOT_FOUND, HONE_IO, and HONE_INVALID_ARGUMENT for more than 1 GiB.
hone_status hone_recorded_open(hone_allocator allocator, const char *path, hone_recorded **out, hone_error *err);
void hone_recorded_destroy(hone_recorded **recorded);

bool hone_recorded_is_cut(const hone_recorded *recorded);
// "" when the file does not say.
const char *hone_recorded_device(const hone_recorded *recorded);
const char *hone_recorded_kernel(const hone_recorded *recorded);
// Parameters and values, without constraints: which configs there are the rows say. The space bound to no call.
hone_space *hone_recorded_space(const hone_recorded *recorded);
const hone_bound_space *hone_recorded_bound(const hone_recorded *recorded);

// The rows in the order of the file, each config once.
size_t hone_recorded_count(const hone_recorded *recorded);
const hone_recorded_row *hone_recorded_at(const hone_recorded *recorded, size_t index);
// The configs of the rows, as hone_search_options.configs takes them.
const hone_config *hone_recorded_configs(const hone_recorded *recorded);
// NULL: the config was not recorded.
const hone_recorded_row *hone_recorded_find(const hone_recorded *recorded, const hone_config *config);
// What trying the config cost: compiling, verifying, measuring and the framework.
double hone_recorded_cost(const hone_recorded_row *row);

#endif
