// Kernels written in CuTe, a part of CUTLASS: sources in C++, which NVRTC compiles with CUTLASS's headers, and
// binaries. Devices, memory and timing are those of cuda.
#ifndef HONE_PLATFORMS_CUTE_H
#define HONE_PLATFORMS_CUTE_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_cute_platform;

#endif
