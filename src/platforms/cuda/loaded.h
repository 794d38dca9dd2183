// Code that is loaded, with its launch: the state of a plan. Immutable but for the arguments of a run.
#ifndef HONE_PLATFORMS_CUDA_LOADED_H
#define HONE_PLATFORMS_CUDA_LOADED_H

#include "platforms/cuda/instance.h"
#include "platforms/launch.h"

typedef struct cuda_loaded {
    hone_platform_instance *instance;
    cuda_gpu *gpu;
    cuda_context *context;
    cuda_library *library; // one of the two
    cuda_module *module;
    cuda_function *function;
    hone_launch launch;
    cuda_launch_attribute attributes[3];
    uint32_t attribute_count;
    uint32_t count;
    hone_argument arguments[HONE_MAX_ARGUMENTS];
} cuda_loaded;

#endif
