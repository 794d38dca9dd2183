// A call of rms_norm on one row, bound to a platform's kernel: what bench_launch measures.
#ifndef HONE_BENCH_LAUNCH_H
#define HONE_BENCH_LAUNCH_H

#include "bench.h"

#include <hone/hone.h>

enum { DIM = 256, TENSORS = 3, ARGUMENTS = 4, ROUNDS = 101 };

typedef struct launch_subject {
    hone_runtime *rt;
    const hone_plan *plan;
    int64_t matrix[2], row[1];
    hone_tensor tensors[TENSORS];
    hone_value args[ARGUMENTS];
    hone_execution execution;
} launch_subject;

// Binds the default config of a platform's kernel. memory: of each tensor, NULL where it is made afterwards.
hone_status launch_bind(
    launch_subject *s, hone_platform platform, hone_device device, void *const memory[TENSORS], hone_error *err);
void launch_close(launch_subject *s);
// Says what went wrong; 1.
int launch_fail(const hone_error *err);
// A side of bench_compare: ctx is the subject.
int launch_run(void *ctx, uint64_t count);

// Each prints its rows; nonzero: something failed.
int launch_opencl(void);
int launch_xla(void);

#endif
