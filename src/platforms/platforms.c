// Every platform in one table. A new one is a folder beside native/ and its ops in its row.
#include "platforms/native/native.h"
#include "platforms/null/null.h"
#include "platforms/platform.h"

#define LATER "not there yet in this version of hone"

const hone_platform_row hone_platforms[] = {
    {HONE_NATIVE, &hone_native_platform, NULL, NULL},
    {HONE_OPENCL, NULL, NULL,
     "the opencl platform is " LATER "; it will need the OpenCL loader (ocl-icd-libopencl1) and a driver, on a machine "
     "without a GPU PoCL (pocl-opencl-icd)"},
    {HONE_CUDA, NULL, NULL,
     "the cuda platform is " LATER
     "; it will need an NVIDIA GPU and its driver (libcuda.so.1), for sources also NVRTC"},
    {HONE_TRITON, NULL, NULL,
     "the triton platform is " LATER "; it will need an NVIDIA GPU and its driver (libcuda.so.1) and kernels that "
     "Triton has compiled"},
    {HONE_CUTE, NULL, NULL,
     "the cute platform is " LATER "; it will need an NVIDIA GPU, its driver (libcuda.so.1), NVRTC and the headers of "
     "CUTLASS"},
    {HONE_TILELANG, NULL, NULL, "tilelang is a known name without a loader: its kernels cannot be run by hone"},
    {HONE_XLA, NULL, NULL, "the xla platform is " LATER "; it will need a PJRT plugin, for CPU or for an accelerator"},
    {HONE_PALLAS, NULL, NULL,
     "the pallas platform is " LATER
     "; it will need a PJRT plugin for the TPU or GPU that the kernels were exported for"},
    {HONE_NULL, NULL, &hone_null_platform,
     "null is the skeleton that new platforms are copied from: it runs only when named"},
};

const size_t hone_platforms_count = sizeof hone_platforms / sizeof hone_platforms[0];

_Static_assert(
    sizeof hone_platforms / sizeof hone_platforms[0] == HONE_PLATFORM_COUNT - HONE_NATIVE, "a row for every platform");
