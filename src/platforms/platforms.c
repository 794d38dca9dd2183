// Every platform in one table. A new one is a folder beside native/ and its ops in its row.
#include "platforms/cuda/cuda.h"
#include "platforms/native/native.h"
#include "platforms/null/null.h"
#include "platforms/platform.h"

#define LATER "not there yet in this version of hone"

const hone_platform_row hone_platforms[] = {
    {HONE_NATIVE, &hone_native_platform, NULL, NULL},
    {HONE_OPENCL, NULL, NULL,
     "the opencl platform is " LATER "; it will need the OpenCL loader (ocl-icd-libopencl1) and a driver, on a machine "
     "without a GPU PoCL (pocl-opencl-icd)"},
    {HONE_CUDA, &hone_cuda_platform, NULL, NULL},
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

const hone_platform_ops *hone_platform_ops_of(hone_platform platform)
{
    unsigned index = (unsigned)platform - HONE_NATIVE;
    if (index >= hone_platforms_count) return NULL;
    const hone_platform_row *row = &hone_platforms[index];
    return row->ops != NULL ? row->ops : row->when_asked;
}

hone_run_function *hone_platform_run_of(const hone_kernel *kernel)
{
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    return kernel->run != NULL || ops == NULL ? kernel->run : ops->run;
}

hone_status hone_platform_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (instance != NULL && ops != NULL && ops->prepare != NULL)
        return ops->prepare(instance, plan, out_state, out_scratch_bytes, err);
    return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
}

void hone_platform_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    if (state == NULL) return;
    if (instance != NULL && ops != NULL && ops->release != NULL)
        ops->release(instance, kernel, state);
    else if (kernel->release != NULL)
        kernel->release(kernel, state);
}

_Static_assert(
    sizeof hone_platforms / sizeof hone_platforms[0] == HONE_PLATFORM_COUNT - HONE_NATIVE, "a row for every platform");
