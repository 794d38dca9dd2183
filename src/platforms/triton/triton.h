// Kernels that Triton has compiled, launched through NVIDIA's driver without Python. They come from packs; devices,
// memory and timing are those of cuda.
#ifndef HONE_PLATFORMS_TRITON_H
#define HONE_PLATFORMS_TRITON_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_triton_platform;

#endif
