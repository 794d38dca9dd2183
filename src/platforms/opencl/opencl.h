// OpenCL: sources that are compiled by the device's driver and cached as its binaries, on any GPU with a driver and on
// CPUs with PoCL.
#ifndef HONE_PLATFORMS_OPENCL_H
#define HONE_PLATFORMS_OPENCL_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_opencl_platform;
extern const struct hone_launch_rules hone_opencl_launch;

// pack.c: hone_pack_judge.
hone_status hone_opencl_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);

#endif
