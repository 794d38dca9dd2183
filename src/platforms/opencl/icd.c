#include "platforms/opencl/icd.h"

#include "base/error.h"
#include "base/memory.h"
#include "os/functions.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "opencl.icd";

// All functions of OpenCL 1.2, which every current driver has.
static const hone_library_function functions[] = {
    {"clGetPlatformIDs", offsetof(opencl_icd, get_platforms), false},
    {"clGetPlatformInfo", offsetof(opencl_icd, get_platform_info), false},
    {"clGetDeviceIDs", offsetof(opencl_icd, get_devices), false},
    {"clGetDeviceInfo", offsetof(opencl_icd, get_device_info), false},
    {"clCreateContext", offsetof(opencl_icd, create_context), false},
    {"clRetainContext", offsetof(opencl_icd, retain_context), false},
    {"clReleaseContext", offsetof(opencl_icd, release_context), false},
    {"clCreateCommandQueue", offsetof(opencl_icd, create_queue), false},
    {"clReleaseCommandQueue", offsetof(opencl_icd, release_queue), false},
    {"clGetCommandQueueInfo", offsetof(opencl_icd, get_queue_info), false},
    {"clCreateBuffer", offsetof(opencl_icd, create_buffer), false},
    {"clCreateSubBuffer", offsetof(opencl_icd, create_view), false},
    {"clReleaseMemObject", offsetof(opencl_icd, release_memory), false},
    {"clGetMemObjectInfo", offsetof(opencl_icd, get_memory_info), false},
    {"clEnqueueReadBuffer", offsetof(opencl_icd, read), false},
    {"clEnqueueWriteBuffer", offsetof(opencl_icd, write), false},
    {"clEnqueueCopyBuffer", offsetof(opencl_icd, copy), false},
    {"clEnqueueFillBuffer", offsetof(opencl_icd, fill), false},
    {"clCreateProgramWithSource", offsetof(opencl_icd, create_with_source), false},
    {"clCreateProgramWithBinary", offsetof(opencl_icd, create_with_binary), false},
    {"clBuildProgram", offsetof(opencl_icd, build), false},
    {"clGetProgramInfo", offsetof(opencl_icd, get_program_info), false},
    {"clGetProgramBuildInfo", offsetof(opencl_icd, get_build_info), false},
    {"clReleaseProgram", offsetof(opencl_icd, release_program), false},
    {"clCreateKernel", offsetof(opencl_icd, create_kernel), false},
    {"clReleaseKernel", offsetof(opencl_icd, release_kernel), false},
    {"clGetKernelInfo", offsetof(opencl_icd, get_kernel_info), false},
    {"clGetKernelWorkGroupInfo", offsetof(opencl_icd, get_group_info), false},
    {"clGetKernelArgInfo", offsetof(opencl_icd, get_argument_info), false},
    {"clSetKernelArg", offsetof(opencl_icd, set_argument), false},
    {"clEnqueueNDRangeKernel", offsetof(opencl_icd, launch), false},
    {"clFlush", offsetof(opencl_icd, flush), false},
    {"clFinish", offsetof(opencl_icd, finish), false},
    {"clWaitForEvents", offsetof(opencl_icd, wait), false},
    {"clGetEventInfo", offsetof(opencl_icd, get_event_info), false},
    {"clGetEventProfilingInfo", offsetof(opencl_icd, get_profiling_info), false},
    {"clReleaseEvent", offsetof(opencl_icd, release_event), false},
};

static hone_status find_functions(opencl_icd *icd, hone_error *err)
{
    const char *missing = hone_library_functions(icd->library, functions, sizeof functions / sizeof *functions, icd);
    if (missing == NULL) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "the OpenCL loader has no %s: it is older than OpenCL 1.2, or broken; install ocl-icd-libopencl1", missing);
}

// Refuses variables from which the loader and PoCL load code. They read these even in a program that runs with more
// rights than the user who set them.
static hone_status refuse_foreign_code(hone_error *err)
{
    static const char *const names[] = {"OCL_ICD_VENDORS",   "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES", "OPENCL_LAYERS",
                                        "OPENCL_LAYER_PATH", "HWLOC_PLUGINS_PATH", "POCL_CACHE_DIR",    NULL};
    const char *name = hone_os_withheld_variable(names);
    if (name == NULL) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "%s is set, which OpenCL loads code by, and this program has more rights than the user who started it (setuid, "
        "setgid, "
        "capabilities): unset it",
        name);
}

hone_status hone_opencl_icd_open(const hone_allocator *allocator, opencl_icd *icd, hone_error *err)
{
    const char *named = hone_os_variable("HONE_OPENCL");
    const char *const usual[] = {"libOpenCL.so.1", NULL}, *const chosen[] = {named, NULL};
    hone_error why = {.message = ""};
    memset(icd, 0, sizeof *icd);
    hone_status status = refuse_foreign_code(err);
    if (status != HONE_OK) return status;
    status = hone_library_open(allocator, named != NULL && named[0] != '\0' ? chosen : usual, &icd->library, &why);
    if (status == HONE_UNAVAILABLE)
        return hone_fail(
            err, status, where,
            "the opencl platform needs the OpenCL loader (libOpenCL.so.1, package ocl-icd-libopencl1) and a driver, on "
            "a "
            "machine without a GPU PoCL (package pocl-opencl-icd): %s",
            why.message);
    if (status != HONE_OK) return hone_fail_memory(err, where);
    status = find_functions(icd, err);
    if (status != HONE_OK) hone_opencl_icd_close(allocator, icd);
    return status;
}

void hone_opencl_icd_close(const hone_allocator *allocator, opencl_icd *icd)
{
    if (icd->library != NULL) hone_library_close(allocator, &icd->library);
}

// Platforms -----------------------------------------------------------------------------------------------------------

static const char *const lists[] = {"OCL_ICD_FILENAMES", "OPENCL_LAYERS"};

enum { LIST_COUNT = sizeof lists / sizeof *lists };

typedef struct kept_list {
    char *place; // in the environment; NULL: not set
    char *text;
    size_t size;
} kept_list;

static bool keep(const hone_allocator *allocator, const char *name, kept_list *out)
{
    char *place = getenv(name);
    *out = (kept_list){.place = place, .size = place != NULL ? strlen(place) : 0};
    if (place == NULL) return true;
    out->text = hone_copy_text(allocator, place, out->size);
    return out->text != NULL;
}

// Restores the list in the same memory, where it was changed: no memory is moved that another thread may be reading.
static void put_back(const hone_allocator *allocator, const char *name, kept_list *list)
{
    if (list->text != NULL && getenv(name) == list->place && memcmp(list->place, list->text, list->size) != 0)
        memcpy(list->place, list->text, list->size);
    hone_free(allocator, list->text);
}

hone_status hone_opencl_get_platforms(
    const hone_allocator *allocator,
    const opencl_icd *icd,
    uint32_t room,
    opencl_platform **out,
    uint32_t *out_count,
    opencl_result *out_result)
{
    kept_list kept[LIST_COUNT];
    bool all = true;
    for (size_t i = 0; i < LIST_COUNT; i++)
        all = keep(allocator, lists[i], &kept[i]) && all;
    if (all) *out_result = icd->get_platforms(room, out, out_count);
    for (size_t i = 0; i < LIST_COUNT; i++)
        put_back(allocator, lists[i], &kept[i]);
    return all ? HONE_OK : HONE_OUT_OF_MEMORY;
}

// Errors --------------------------------------------------------------------------------------------------------------

static const struct {
    opencl_result result;
    const char *name;
    hone_status status;
} errors[] = {
    {-1, "CL_DEVICE_NOT_FOUND", HONE_UNAVAILABLE},
    {-2, "CL_DEVICE_NOT_AVAILABLE", HONE_KERNEL_FAILED},
    {-3, "CL_COMPILER_NOT_AVAILABLE", HONE_UNAVAILABLE},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", HONE_OUT_OF_MEMORY},
    {-5, "CL_OUT_OF_RESOURCES", HONE_KERNEL_FAILED},
    {-6, "CL_OUT_OF_HOST_MEMORY", HONE_OUT_OF_MEMORY},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE", HONE_KERNEL_FAILED},
    {-11, "CL_BUILD_PROGRAM_FAILURE", HONE_INVALID_ARGUMENT},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", HONE_UNSUPPORTED},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", HONE_KERNEL_FAILED},
    {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", HONE_KERNEL_FAILED},
    {-30, "CL_INVALID_VALUE", HONE_KERNEL_FAILED},
    {-33, "CL_INVALID_DEVICE", HONE_KERNEL_FAILED},
    {-34, "CL_INVALID_CONTEXT", HONE_KERNEL_FAILED},
    {-36, "CL_INVALID_COMMAND_QUEUE", HONE_KERNEL_FAILED},
    {-38, "CL_INVALID_MEM_OBJECT", HONE_KERNEL_FAILED},
    {-42, "CL_INVALID_BINARY", HONE_INCOMPATIBLE},
    {-43, "CL_INVALID_BUILD_OPTIONS", HONE_INVALID_ARGUMENT},
    {-44, "CL_INVALID_PROGRAM", HONE_KERNEL_FAILED},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE", HONE_KERNEL_FAILED},
    {-46, "CL_INVALID_KERNEL_NAME", HONE_NOT_FOUND},
    {-48, "CL_INVALID_KERNEL", HONE_KERNEL_FAILED},
    {-49, "CL_INVALID_ARG_INDEX", HONE_INCOMPATIBLE},
    {-50, "CL_INVALID_ARG_VALUE", HONE_INCOMPATIBLE},
    {-51, "CL_INVALID_ARG_SIZE", HONE_INCOMPATIBLE},
    {-52, "CL_INVALID_KERNEL_ARGS", HONE_INCOMPATIBLE},
    {-54, "CL_INVALID_WORK_GROUP_SIZE", HONE_UNSUPPORTED},
    {-55, "CL_INVALID_WORK_ITEM_SIZE", HONE_UNSUPPORTED},
    {-58, "CL_INVALID_EVENT", HONE_KERNEL_FAILED},
    {-61, "CL_INVALID_BUFFER_SIZE", HONE_OUT_OF_MEMORY},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE", HONE_UNSUPPORTED},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", HONE_UNAVAILABLE},
    {-9999, "a fault of the kernel", HONE_KERNEL_FAILED},
};

const char *hone_opencl_error_name(opencl_result result)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result) return errors[i].name;
    return "an unknown error";
}

hone_status hone_opencl_fail(opencl_result result, const char *from, const char *what, hone_error *err)
{
    hone_status status = HONE_KERNEL_FAILED;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result) status = errors[i].status;
    hone_fail(err, status, from, "%s: %s (%d)", what, hone_opencl_error_name(result), (int)result);
    if (err != NULL) err->system_code = result;
    return status;
}

bool hone_opencl_is_sticky(opencl_result result)
{
    return result == OPENCL_DEVICE_NOT_AVAILABLE || result == OPENCL_INVALID_COMMAND_QUEUE ||
           result == OPENCL_DRIVER_FAULT;
}
