// A compiled module with its arguments and results: the state of a plan. Immutable.
#ifndef HONE_PLATFORMS_XLA_LOADED_H
#define HONE_PLATFORMS_XLA_LOADED_H

#include "platforms/xla/instance.h"

// The source of one argument of the module.
typedef struct hone_xla_argument {
    hone_argument_kind kind;
    hone_argument_type scalar; // SCALAR: the type that gives its bits
    uint32_t value;            // TENSOR, SCALAR: index of the run's value
    bool is_result;            // the module may write into it: its memory is that of a result
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
    bool on_host; // tensors are in the host's memory
    pjrt_loaded *loaded;
    uint64_t digest; // of the module, its compile options and its arguments
    uint32_t argument_count, result_count;
    hone_xla_argument arguments[HONE_MAX_ARGUMENTS];
    hone_xla_result results[HONE_MAX_ARGUMENTS];
} hone_xla_loaded;

#endif
