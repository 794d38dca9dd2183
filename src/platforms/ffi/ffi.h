// Functions of shared libraries that speak tvm-ffi's C interface, on the CPU and on NVIDIA's GPUs. Nothing is asked of
// a machine but libtvm_ffi.so.
#ifndef HONE_PLATFORMS_FFI_FFI_H
#define HONE_PLATFORMS_FFI_FFI_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_ffi_platform;

#endif
