#include "platforms/cuda/driver.h"

#include "base/error.h"
#include "os/functions.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "cuda.driver";

// The exported names, with the suffix of the newer version where there is one.
static const hone_library_function functions[] = {
    {"cuInit", offsetof(cuda_driver, init), false},
    {"cuDriverGetVersion", offsetof(cuda_driver, driver_get_version), false},
    {"cuDeviceGetCount", offsetof(cuda_driver, device_get_count), false},
    {"cuDeviceGet", offsetof(cuda_driver, device_get), false},
    {"cuDeviceGetName", offsetof(cuda_driver, device_get_name), false},
    {"cuDeviceTotalMem_v2", offsetof(cuda_driver, device_total_memory), false},
    {"cuDeviceGetAttribute", offsetof(cuda_driver, device_get_attribute), false},
    {"cuDeviceGetPCIBusId", offsetof(cuda_driver, device_get_bus), true},
    {"cuDevicePrimaryCtxRetain", offsetof(cuda_driver, primary_context_retain), false},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(cuda_driver, primary_context_release), false},
    {"cuCtxSetCurrent", offsetof(cuda_driver, context_set_current), false},
    {"cuCtxGetCurrent", offsetof(cuda_driver, context_get_current), false},
    {"cuMemAlloc_v2", offsetof(cuda_driver, memory_allocate), false},
    {"cuMemFree_v2", offsetof(cuda_driver, memory_free), false},
    {"cuMemcpyHtoD_v2", offsetof(cuda_driver, copy_in), false},
    {"cuMemcpyDtoH_v2", offsetof(cuda_driver, copy_out), false},
    {"cuMemcpyDtoD_v2", offsetof(cuda_driver, copy_within), false},
    {"cuMemcpyDtoDAsync_v2", offsetof(cuda_driver, copy_within_async), false},
    {"cuMemsetD8_v2", offsetof(cuda_driver, fill), false},
    {"cuMemsetD8Async", offsetof(cuda_driver, fill_async), false},
    {"cuStreamCreate", offsetof(cuda_driver, stream_create), false},
    {"cuStreamDestroy_v2", offsetof(cuda_driver, stream_destroy), false},
    {"cuStreamSynchronize", offsetof(cuda_driver, stream_synchronize), false},
    {"cuEventCreate", offsetof(cuda_driver, event_create), false},
    {"cuEventDestroy_v2", offsetof(cuda_driver, event_destroy), false},
    {"cuEventRecord", offsetof(cuda_driver, event_record), false},
    {"cuEventSynchronize", offsetof(cuda_driver, event_synchronize), false},
    {"cuEventElapsedTime", offsetof(cuda_driver, event_elapsed), false},
    {"cuModuleLoadDataEx", offsetof(cuda_driver, module_load), false},
    {"cuModuleGetFunction", offsetof(cuda_driver, module_get_function), false},
    {"cuModuleUnload", offsetof(cuda_driver, module_unload), false},
    {"cuFuncGetAttribute", offsetof(cuda_driver, function_get_attribute), false},
    {"cuFuncSetAttribute", offsetof(cuda_driver, function_set_attribute), false},
    {"cuLaunchKernel", offsetof(cuda_driver, launch), false},
    {"cuGetErrorName", offsetof(cuda_driver, get_error_name), false},
    {"cuGetErrorString", offsetof(cuda_driver, get_error_string), false},
    {"cuLibraryLoadData", offsetof(cuda_driver, library_load), true},
    {"cuLibraryUnload", offsetof(cuda_driver, library_unload), true},
    {"cuLibraryGetKernel", offsetof(cuda_driver, library_get_kernel), true},
    {"cuKernelGetFunction", offsetof(cuda_driver, kernel_get_function), true},
    {"cuFuncGetParamInfo", offsetof(cuda_driver, function_get_parameter), true},
    {"cuLaunchKernelEx", offsetof(cuda_driver, launch_ex), true},
    {"cuTensorMapEncodeTiled", offsetof(cuda_driver, encode_map), true},
    {"cuMemAllocAsync", offsetof(cuda_driver, allocate_async), true},
    {"cuMemFreeAsync", offsetof(cuda_driver, free_async), true},
    {"cuStreamBeginCapture_v2", offsetof(cuda_driver, begin_capture), true},
    {"cuStreamEndCapture", offsetof(cuda_driver, end_capture), true},
    {"cuStreamIsCapturing", offsetof(cuda_driver, is_capturing), true},
    {"cuGraphInstantiateWithFlags", offsetof(cuda_driver, graph_instantiate), true},
    {"cuGraphLaunch", offsetof(cuda_driver, graph_launch), true},
    {"cuGraphExecDestroy", offsetof(cuda_driver, graph_exec_destroy), true},
    {"cuGraphDestroy", offsetof(cuda_driver, graph_destroy), true},
    {"cuGraphGetNodes", offsetof(cuda_driver, graph_nodes), true},
};

static hone_status find_functions(cuda_driver *driver, hone_error *err)
{
    const char *missing =
        hone_library_functions(driver->library, functions, sizeof functions / sizeof *functions, driver);
    if (missing == NULL) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "the driver's library has no %s: it is too old or broken; install NVIDIA's driver of CUDA 11.0 or "
        "later",
        missing);
}

static hone_status initialise(cuda_driver *driver, hone_error *err)
{
    enum { LIBRARY_TO_LINK = 34, SYSTEM_DRIVER_MISMATCH = 803 };
    cuda_result result = driver->init(0);
    if (result == CUDA_SUCCESS) result = driver->driver_get_version(&driver->version);
    if (result == CUDA_SUCCESS) return HONE_OK;
    hone_error why = {.message = ""};
    (void)hone_cuda_fail(driver, result, where, "cuInit", &why);
    const char *advice = "look with nvidia-smi whether the driver works";
    if (result == CUDA_NO_DEVICE) advice = "there is no NVIDIA GPU here, or CUDA_VISIBLE_DEVICES hides it";
    if (result == LIBRARY_TO_LINK)
        advice = "it is the library that the toolkit has for linking: install NVIDIA's driver";
    if (result == SYSTEM_DRIVER_MISMATCH) advice = "library and kernel module differ: restart the machine";
    return hone_fail(err, HONE_UNAVAILABLE, where, "%s; %s", why.message, advice);
}

hone_status hone_cuda_driver_open(const hone_allocator *allocator, cuda_driver *driver, hone_error *err)
{
    const char *named = hone_os_variable("HONE_CUDA_DRIVER");
    const char *const usual[] = {"libcuda.so.1", NULL}, *const chosen[] = {named, NULL};
    hone_error why = {.message = ""};
    memset(driver, 0, sizeof *driver);
    hone_status status =
        hone_library_open(allocator, named != NULL && named[0] != '\0' ? chosen : usual, &driver->library, &why);
    if (status == HONE_UNAVAILABLE)
        return hone_fail(
            err, status, where, "the cuda platform needs an NVIDIA GPU and its driver (libcuda.so.1): %s", why.message);
    if (status != HONE_OK) return hone_fail_memory(err, where);
    status = find_functions(driver, err);
    if (status == HONE_OK) status = initialise(driver, err);
    if (status != HONE_OK) hone_cuda_driver_close(allocator, driver);
    return status;
}

void hone_cuda_driver_close(const hone_allocator *allocator, cuda_driver *driver)
{
    if (driver->library != NULL) hone_library_close(allocator, &driver->library);
}

static hone_status status_of(cuda_result result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return HONE_OK;
    case CUDA_INVALID_IMAGE:
    case CUDA_NO_BINARY_FOR_GPU:
    case CUDA_UNSUPPORTED_PTX_VERSION:
        return HONE_INCOMPATIBLE;
    case CUDA_NOT_FOUND:
        return HONE_NOT_FOUND;
    default:
        return HONE_KERNEL_FAILED;
    }
}

hone_status hone_cuda_fail(
    const cuda_driver *driver, cuda_result result, const char *from, const char *what, hone_error *err)
{
    const char *name = NULL, *text = NULL;
    if (driver->get_error_name(result, &name) != CUDA_SUCCESS || name == NULL) name = "an unknown CUresult";
    if (driver->get_error_string(result, &text) != CUDA_SUCCESS || text == NULL) text = "no words for it";
    hone_status status = hone_fail(err, status_of(result), from, "%s: %s (%d): %s", what, name, result, text);
    if (err != NULL) err->system_code = result;
    return status;
}

// The errors after which, according to cuda.h, the process must be ended and restarted.
bool hone_cuda_is_sticky(cuda_result result)
{
    static const cuda_result sticky[] = {700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810};
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        if (sticky[i] == result) return true;
    return false;
}
