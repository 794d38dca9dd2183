// A driver and a compiler of CUDA without a GPU: memory is the host's, kernels are C functions of the name of their
// entry, and each launch is written down byte by byte. What a real one cannot be asked for, an environment variable
// asks for:
//   FAKE_CUDA_DEVICES   how many GPUs (default 1)
//   FAKE_CUDA_MEMORY    bytes of the GPU's memory (default 1 GiB)
//   FAKE_CUDA_INIT      what cuInit answers, a CUresult
//   FAKE_CUDA_CAPABILITY  90
//   FAKE_CUDA_OPTIONS  an option that real cubins count as compiled with: "-Dhone_x_bf16=1"
//   FAKE_CUDA_LOG       a file that gets a line a launch, and a line a compilation
// Built with FAKE_OLD it is a driver from before cuLibraryLoadData; with FAKE_BROKEN it lacks a function of every
// driver.
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "fake_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What the fake compiler writes in place of a cubin: this line, then "option" lines, then one "function" line for each
// entry with the sizes of its parameters, "function rms_norm 8 8 8 4 4 4".
#define FAKE_MAGIC "fake cubin\n"

enum { FAKE_MAX_PARAMETERS = 64, FAKE_NAME_SIZE = 64 };

typedef struct fake_function {
    char name[FAKE_NAME_SIZE];
    uint32_t sizes[FAKE_MAX_PARAMETERS];
    uint32_t count;
    const char *image; // of its module
    int max_dynamic_shared, non_portable_cluster;
} fake_function;

typedef struct fake_launch {
    const fake_function *function;
    uint32_t grid[3], block[3], shared_bytes;
    void **arguments;
} fake_launch;

// Runs a kernel; a CUresult that the next synchronisation answers.
int fake_run(const fake_launch *launch);
// Whether the image was compiled with an option, "-Dhone_x_bf16=1".
bool fake_has_option(const char *image, const char *option);

#endif
