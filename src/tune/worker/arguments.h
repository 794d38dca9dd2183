// What a run gets besides memory: its values, the tensors among them with their shapes and strides, the plan with its
// config and kernel, and the execution. All of it is the caller's and outlives the run: a kernel that writes it changes
// the call of the next kernel, which is then wrong.
#ifndef HONE_TUNE_WORKER_ARGUMENTS_H
#define HONE_TUNE_WORKER_ARGUMENTS_H

#include "call/call.h"
#include "hone/kernel.h"

typedef struct hone_runner hone_runner;

// The arguments as they were before a run.
typedef struct hone_arguments {
    hone_value values[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
    hone_plan plan;
    hone_kernel kernel;
    hone_config config;
    hone_execution execution;
} hone_arguments;

// values: of the open call's signature.
void hone_arguments_keep(hone_arguments *kept, const hone_runner *runner, const hone_value *values);
// Restores what was changed since. Returns what that is, for example "the shape of", and in *out_index the index of the
// value, or -1. NULL: nothing was changed.
const char *hone_arguments_put_back(
    const hone_arguments *kept, hone_runner *runner, const hone_value *values, int *out_index);
// Digest of the arguments in the runner and in all sets of its session's buffers, except the execution, which changes
// from sample to sample.
uint64_t hone_arguments_digest(const hone_runner *runner);

#endif
