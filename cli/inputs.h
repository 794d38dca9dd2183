// Made-up arguments for one call: tensors with data as tuning makes it, and results to write.
#ifndef HONE_CLI_INPUTS_H
#define HONE_CLI_INPUTS_H

#include "hone/hone.h"
#include "platforms/platform.h"

typedef struct cli_inputs {
    size_t count;
    hone_value *values;   // [count], what kernels get
    hone_tensor *tensors; // [count], the host's
    void **blocks;        // [count], their memory
    size_t *sizes;        // [count], its bytes
    hone_tensor *placed;  // [count], the same on the call's device
    void **device_blocks; // [count]
    // Of the call's device; NULL: kernels read the host's memory.
    const hone_platform_ops *ops;
    hone_platform_instance *instance;
    const hone_device_info *device;
} cli_inputs;

typedef enum cli_place { CLI_ON_HOST, CLI_ON_DEVICE } cli_place; // on device: where the call says that its tensors are

// Returns 0, or the exit code after printing what failed. Deinitialise either way.
int cli_inputs_make(cli_inputs *inputs, const hone_op *op, const hone_call *call, cli_place place, uint64_t seed);
// Waits for the runs that were started.
hone_status cli_inputs_wait(const cli_inputs *inputs, hone_error *err);
// Waits, and brings what runs have written to the host's tensors.
hone_status cli_inputs_fetch(const cli_inputs *inputs, hone_error *err);
void cli_inputs_deinit(cli_inputs *inputs);

#endif
