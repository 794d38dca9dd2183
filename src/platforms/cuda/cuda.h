// NVIDIA GPUs: sources that are compiled for the device, and binaries; the driver launches both.
#ifndef HONE_PLATFORMS_CUDA_H
#define HONE_PLATFORMS_CUDA_H

#include "platforms/cuda/cubin.h"
#include "platforms/platform.h"
#include "platforms/shared/launch.h"

extern const hone_platform_ops hone_cuda_platform;
extern const hone_launch_rules hone_cuda_launch;
// The platform's check of a kernel of a pack.
hone_status hone_cuda_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
// Compares the argument list with a cubin's own description; other files have none.
hone_status hone_cuda_fits(
    const hone_pack_variant *variant, const hone_argument *arguments, uint32_t count, hone_error *err);
hone_status hone_cuda_compare_list(
    const hone_cubin_function *function, const hone_argument *arguments, uint32_t count, hone_error *err);

#endif
