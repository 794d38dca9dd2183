// Functions of shared libraries with tvm-ffi's C interface, on the CPU and on NVIDIA's GPUs. A machine needs only
// libtvm_ffi.so.
#ifndef HONE_PLATFORMS_FFI_FFI_H
#define HONE_PLATFORMS_FFI_FFI_H

#include "platforms/platform.h"

extern const hone_platform_ops hone_ffi_platform;

#endif
