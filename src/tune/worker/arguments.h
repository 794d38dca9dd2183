// What a run is given beside memory: its values, the tensors that some of them are, with shapes and strides, the plan with its
// config and kernel, the execution. All of it is the caller's, and lives longer than a run: who writes it changes the call of
// whoever runs next, so that another kernel is wrong.
#ifndef HONE_TUNE_WORKER_ARGUMENTS_H
#define HONE_TUNE_WORKER_ARGUMENTS_H

#include "call/call.h"
#include "hone/kernel.h"

typedef struct hone_runner hone_runner;

// As it was before a run.
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
// Puts back what was changed since. Returns what that is, "the shape of", and in *out_index of which value, or -1; NULL:
// nothing was.
const char *hone_arguments_put_back(
    const hone_arguments *kept, hone_runner *runner, const hone_value *values, int *out_index);
// Of the runner and of all sets of its session's buffers, but for the execution, which changes from sample to sample.
uint64_t hone_arguments_digest(const hone_runner *runner);

#endif
