// NVIDIA GPUs: sources that are compiled for the device, and binaries that are loaded, launched by the driver.
#ifndef HONE_PLATFORMS_CUDA_H
#define HONE_PLATFORMS_CUDA_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_cuda_platform;

#endif
