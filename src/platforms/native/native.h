// The CPU that this program runs on: built-in kernels, and functions that the program registers.
#ifndef HONE_PLATFORMS_NATIVE_H
#define HONE_PLATFORMS_NATIVE_H

#include "base/buffer.h"
#include "os/os.h"
#include "platforms/native/kernel.h"
#include "platforms/platform.h"

extern const hone_platform_ops hone_native_platform;

// Appends the fingerprint of a CPU, on one line:
//   cpu|AuthenticAMD,zen4,sse4_2+avx+avx2+fma+avx512f,l1=32768,l2=1048576,l3=33554432,threads=2
// Space, comma, '+', '=', '%', '|' and control characters inside a part are written as %20 and the like.
void hone_native_fingerprint(const hone_os_cpu *cpu, hone_buffer *out);

#endif
