// Kernels that TileLang compiled for the CPU (target "c"), as the C code that it writes: one function of plain
// pointers. They are compiled and called like native's, on native's device.
#ifndef HONE_PLATFORMS_TILELANG_TILELANG_H
#define HONE_PLATFORMS_TILELANG_TILELANG_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_tilelang_platform;

#endif
