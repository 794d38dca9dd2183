// What hone declares of NVIDIA's driver and of NVRTC in its own words is what their headers say.
// Both call it by one name.
#define CUDA_SUCCESS HEADER_SUCCESS
#include <cuda.h>
#include <nvrtc.h>
#undef CUDA_SUCCESS

#include "same.h"

#include "platforms/cuda/compiler.h"
#include "platforms/cuda/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void numbers_are_those_of_the_header(void **state)
{
    (void)state;
    static const int pairs[][2] = {
        {CUDA_SUCCESS, HEADER_SUCCESS},
        {CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
        {CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
        {CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE},
        {CUDA_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE},
        {CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {CUDA_INVALID_PTX, CUDA_ERROR_INVALID_PTX},
        {CUDA_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
        {CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND},
        {CUDA_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
        {CUDA_MAX_GRID_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
        {CUDA_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {CUDA_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {CUDA_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
        {CUDA_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {CUDA_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {CUDA_COOPERATIVE_LAUNCH, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
        {CUDA_SHARED_BYTES_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
        {CUDA_CLUSTER_LAUNCH, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
        {CUDA_FUNCTION_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
        {CUDA_FUNCTION_STATIC_SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
        {CUDA_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS},
        {CUDA_FUNCTION_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
        {CUDA_FUNCTION_NON_PORTABLE_CLUSTER, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED},
        {CUDA_LAUNCH_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE},
        {CUDA_LAUNCH_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION},
        {CUDA_LAUNCH_PROGRAMMATIC, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION},
        {CUDA_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER},
        {CUDA_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
        {CUDA_STREAM_DEFAULT, CU_STREAM_DEFAULT},
        {CUDA_EVENT_DEFAULT, CU_EVENT_DEFAULT},
        {CUDA_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        {CUDA_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE},
        {CUDA_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(pairs[i][0], pairs[i][1]);
}

// The results after which the header says that the process must be ended and started anew.
static void sticky_errors_are_those_of_the_header(void **state)
{
    (void)state;
    static const int sticky[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUDA_ERROR_MPS_CLIENT_TERMINATED,
    };
    static const int mild[] = {
        CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES};
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        assert_true(hone_cuda_is_sticky(sticky[i]));
    for (size_t i = 0; i < sizeof mild / sizeof *mild; i++)
        assert_false(hone_cuda_is_sticky(mild[i]));
}

static void structs_have_the_fields_of_the_header(void **state)
{
    (void)state;
    FIELD(cuda_launch_config, grid, CUlaunchConfig, gridDimX);
    FIELD(cuda_launch_config, block, CUlaunchConfig, blockDimX);
    FIELD(cuda_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
    FIELD(cuda_launch_config, stream, CUlaunchConfig, hStream);
    FIELD(cuda_launch_config, attributes, CUlaunchConfig, attrs);
    FIELD(cuda_launch_config, attribute_count, CUlaunchConfig, numAttrs);
    FIELD(cuda_launch_attribute, id, CUlaunchAttribute, id);
    FIELD(cuda_launch_attribute, value, CUlaunchAttribute, value);
    FIELD(cuda_launch_attribute, value.number, CUlaunchAttribute, value.cooperative);
    FIELD(cuda_launch_attribute, value.cluster.z, CUlaunchAttribute, value.clusterDim.z);
    assert_int_equal(sizeof(cuda_launch_config), sizeof(CUlaunchConfig));
    assert_int_equal(sizeof(cuda_launch_attribute), sizeof(CUlaunchAttribute));
    assert_int_equal(sizeof(cuda_address), sizeof(CUdeviceptr));
    assert_int_equal(sizeof(cuda_device), sizeof(CUdevice));
    assert_int_equal(sizeof(cuda_result), sizeof(CUresult));
}

static void functions_of_the_driver_take_what_the_header_says(void **state)
{
    (void)state;
    static cuda_driver d;
    void *p = NULL;
    int n = 0;
    unsigned u = 0;
    size_t z = 0;
    unsigned long long w = 0;
    (void)p, (void)n, (void)u, (void)z, (void)w;
    SAME(d.init, cuInit, u);
    SAME(d.driver_get_version, cuDriverGetVersion, p);
    SAME(d.device_get_count, cuDeviceGetCount, p);
    SAME(d.device_get, cuDeviceGet, p, n);
    SAME(d.device_get_name, cuDeviceGetName, p, n, n);
    SAME(d.device_total_memory, cuDeviceTotalMem, p, n);
    SAME(d.device_get_attribute, cuDeviceGetAttribute, p, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, n);
    SAME(d.primary_context_retain, cuDevicePrimaryCtxRetain, p, n);
    SAME(d.primary_context_release, cuDevicePrimaryCtxRelease, n);
    SAME(d.context_set_current, cuCtxSetCurrent, p);
    SAME(d.context_get_current, cuCtxGetCurrent, p);
    SAME(d.memory_allocate, cuMemAlloc, p, z);
    SAME(d.memory_free, cuMemFree, w);
    SAME(d.copy_in, cuMemcpyHtoD, w, p, z);
    SAME(d.copy_out, cuMemcpyDtoH, p, w, z);
    SAME(d.copy_within, cuMemcpyDtoD, w, w, z);
    SAME(d.fill, cuMemsetD8, w, 'a', z);
    SAME(d.fill_async, cuMemsetD8Async, w, 'a', z, p);
    SAME(d.stream_create, cuStreamCreate, p, u);
    SAME(d.stream_destroy, cuStreamDestroy, p);
    SAME(d.stream_synchronize, cuStreamSynchronize, p);
    SAME(d.event_create, cuEventCreate, p, u);
    SAME(d.event_destroy, cuEventDestroy, p);
    SAME(d.event_record, cuEventRecord, p, p);
    SAME(d.event_synchronize, cuEventSynchronize, p);
    SAME(d.event_elapsed, cuEventElapsedTime, p, p, p);
    SAME(d.module_load, cuModuleLoadDataEx, p, p, u, p, p);
    SAME(d.module_get_function, cuModuleGetFunction, p, p, p);
    SAME(d.module_unload, cuModuleUnload, p);
    SAME(d.function_get_attribute, cuFuncGetAttribute, p, CU_FUNC_ATTRIBUTE_NUM_REGS, p);
    SAME(d.function_set_attribute, cuFuncSetAttribute, p, CU_FUNC_ATTRIBUTE_NUM_REGS, n);
    SAME(d.launch, cuLaunchKernel, p, u, u, u, u, u, u, u, p, p, p);
    SAME(d.get_error_name, cuGetErrorName, HEADER_SUCCESS, p);
    SAME(d.get_error_string, cuGetErrorString, HEADER_SUCCESS, p);
    SAME(d.library_load, cuLibraryLoadData, p, p, p, p, u, p, p, u);
    SAME(d.library_unload, cuLibraryUnload, p);
    SAME(d.library_get_kernel, cuLibraryGetKernel, p, p, p);
    SAME(d.kernel_get_function, cuKernelGetFunction, p, p);
    SAME(d.function_get_parameter, cuFuncGetParamInfo, p, z, p, p);
    SAME(d.launch_ex, cuLaunchKernelEx, p, p, p, p);
    SAME(d.allocate_async, cuMemAllocAsync, p, z, p);
    SAME(d.free_async, cuMemFreeAsync, w, p);
    SAME(d.begin_capture, cuStreamBeginCapture, p, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    SAME(d.end_capture, cuStreamEndCapture, p, p);
    SAME(d.is_capturing, cuStreamIsCapturing, p, p);
    SAME(d.graph_instantiate, cuGraphInstantiateWithFlags, p, p, w);
    SAME(d.graph_launch, cuGraphLaunch, p, p);
    SAME(d.graph_exec_destroy, cuGraphExecDestroy, p);
    SAME(d.graph_destroy, cuGraphDestroy, p);
    SAME(d.graph_nodes, cuGraphGetNodes, p, p, p);
}

static void functions_of_the_compiler_take_what_the_header_says(void **state)
{
    (void)state;
    static hone_cuda_compiler c;
    nvrtcProgram theirs = NULL;
    void *p = NULL;
    int n = 0;
    (void)p, (void)n, (void)theirs;
    SAME(c.get_version, nvrtcVersion, p, p);
    SAME(c.get_arch_count, nvrtcGetNumSupportedArchs, p);
    SAME(c.get_archs, nvrtcGetSupportedArchs, p);
    SAME(c.create, nvrtcCreateProgram, p, p, p, n, p, p);
    SAME(c.destroy, nvrtcDestroyProgram, p);
    SAME(c.compile, nvrtcCompileProgram, p, n, p);
    SAME(c.get_log_size, nvrtcGetProgramLogSize, p, p);
    SAME(c.get_log, nvrtcGetProgramLog, p, p);
    SAME(c.get_binary_size, nvrtcGetCUBINSize, p, p);
    SAME(c.get_binary, nvrtcGetCUBIN, p, p);
    SAME(c.get_ptx_size, nvrtcGetPTXSize, p, p);
    SAME(c.get_ptx, nvrtcGetPTX, p, p);
    SAME(c.get_error_string, nvrtcGetErrorString, NVRTC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_header),
        cmocka_unit_test(sticky_errors_are_those_of_the_header),
        cmocka_unit_test(structs_have_the_fields_of_the_header),
        cmocka_unit_test(functions_of_the_driver_take_what_the_header_says),
        cmocka_unit_test(functions_of_the_compiler_take_what_the_header_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
