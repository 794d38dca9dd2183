// Made-up arguments for one call: tensors with data as tuning makes it, and results to write.
#ifndef HONE_CLI_INPUTS_H
#define HONE_CLI_INPUTS_H

#include "hone/hone.h"

typedef struct cli_inputs {
    size_t count;
    hone_value *values;
    hone_tensor *tensors; // [count]
    void **blocks;        // [count]
} cli_inputs;

// Returns 0, or the exit code after printing what failed. Deinitialise either way.
int cli_inputs_make(cli_inputs *inputs, const hone_op *op, const hone_call *call, uint64_t seed);
void cli_inputs_deinit(cli_inputs *inputs);

#endif
