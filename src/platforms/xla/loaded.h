// A module that is compiled, with what goes in and out: the state of a plan. Immutable.
#ifndef HONE_PLATFORMS_XLA_LOADED_H
#define HONE_PLATFORMS_XLA_LOADED_H

#include "platforms/xla/instance.h"

// What one argument of the module is made from.
typedef struct hone_xla_argument {
    hone_argument_kind kind;
    hone_argument_type scalar; // SCALAR: how its bits are made
    uint32_t value;            // TENSOR, SCALAR: index of the run's value
    bool is_result;            // the module may write into it: its memory is a result's
    uint64_t bits;             // BITS
    int type;                  // hone_dtype_info.pjrt
    int64_t dims[HONE_MAX_RANK];
    size_t rank;
} hone_xla_argument;

typedef struct hone_xla_result {
    uint32_t value;
    size_t bytes;
} hone_xla_result;

typedef struct hone_xla_loaded {
    hone_platform_instance *instance;
    const hone_xla_client *client;
    pjrt_device *device;
    const hone_device_info *info;
    bool on_host; // tensors lie in the host's memory
    pjrt_loaded *loaded;
    uint64_t digest; // of the module, the options that it is compiled with and its arguments
    uint32_t argument_count, result_count;
    hone_xla_argument arguments[HONE_MAX_ARGUMENTS];
    hone_xla_result results[HONE_MAX_ARGUMENTS];
} hone_xla_loaded;

#endif
