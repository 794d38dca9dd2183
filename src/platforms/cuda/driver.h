// NVIDIA's driver, which is opened when it is needed and never linked. hone declares the types itself; a test compares
// them with cuda.h where that is installed.
#ifndef HONE_PLATFORMS_CUDA_DRIVER_H
#define HONE_PLATFORMS_CUDA_DRIVER_H

#include "base/memory.h"
#include "os/os.h"

typedef int cuda_result; // CUresult
typedef int cuda_device; // CUdevice
typedef unsigned long long cuda_address;
typedef struct cuda_context cuda_context;
typedef struct cuda_stream cuda_stream;
typedef struct cuda_event cuda_event;
typedef struct cuda_function cuda_function;
typedef struct cuda_module cuda_module;
typedef struct cuda_library cuda_library;
typedef struct cuda_kernel cuda_kernel;
typedef struct cuda_graph cuda_graph;
typedef struct cuda_graph_exec cuda_graph_exec;

enum {
    CUDA_SUCCESS = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_IMAGE = 200,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_INVALID_PTX = 218,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_NOT_FOUND = 500,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_CAPTURE_IMPLICIT = 906
};

// CUdevice_attribute.
enum {
    CUDA_MAX_GRID_Y = 6,
    CUDA_CLOCK_KHZ = 13,
    CUDA_MULTIPROCESSORS = 16,
    CUDA_MEMORY_CLOCK_KHZ = 36,
    CUDA_MEMORY_BUS_BITS = 37,
    CUDA_L2_BYTES = 38,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
    CUDA_COOPERATIVE_LAUNCH = 95,
    CUDA_SHARED_BYTES_OPTIN = 97,
    CUDA_CLUSTER_LAUNCH = 120
};

// CUfunction_attribute.
enum {
    CUDA_FUNCTION_MAX_THREADS = 0,
    CUDA_FUNCTION_STATIC_SHARED = 1,
    CUDA_FUNCTION_REGISTERS = 4,
    CUDA_FUNCTION_MAX_DYNAMIC_SHARED = 8,
    CUDA_FUNCTION_NON_PORTABLE_CLUSTER = 14
};

// CUlaunchAttributeID.
enum { CUDA_LAUNCH_COOPERATIVE = 2, CUDA_LAUNCH_CLUSTER = 4, CUDA_LAUNCH_PROGRAMMATIC = 6 };

typedef struct cuda_launch_attribute {
    int32_t id;
    char pad[4];
    union {
        char pad[64];
        int32_t number;
        struct {
            uint32_t x, y, z;
        } cluster;
    } value;
} cuda_launch_attribute;

typedef struct cuda_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    cuda_stream *stream;
    cuda_launch_attribute *attributes;
    uint32_t attribute_count;
} cuda_launch_config;

_Static_assert(sizeof(cuda_launch_attribute) == 72 && sizeof(cuda_launch_config) == 56, "as CUlaunchConfig in cuda.h");

// CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion.
enum {
    CUDA_MAP_U8 = 0,
    CUDA_MAP_U16 = 1,
    CUDA_MAP_I32 = 3,
    CUDA_MAP_I64 = 5,
    CUDA_MAP_F16 = 6,
    CUDA_MAP_F32 = 7,
    CUDA_MAP_F64 = 8,
    CUDA_MAP_BF16 = 9
};
enum { CUDA_MAP_SWIZZLE_NONE = 0, CUDA_MAP_SWIZZLE_32 = 1, CUDA_MAP_SWIZZLE_64 = 2, CUDA_MAP_SWIZZLE_128 = 3 };
enum { CUDA_MAP_PROMOTE_256 = 3 };

enum { CUDA_JIT_ERROR_LOG = 5, CUDA_JIT_ERROR_LOG_BYTES = 6 };
enum { CUDA_STREAM_DEFAULT = 0, CUDA_EVENT_DEFAULT = 0, CUDA_CAPTURE_THREAD_LOCAL = 1, CUDA_CAPTURE_NONE = 0 };

typedef struct cuda_driver {
    hone_library *library;
    int version; // 13000
    cuda_result (*init)(unsigned flags);
    cuda_result (*driver_get_version)(int *version);
    cuda_result (*device_get_count)(int *count);
    cuda_result (*device_get)(cuda_device *device, int ordinal);
    cuda_result (*device_get_name)(char *name, int size, cuda_device device);
    cuda_result (*device_total_memory)(size_t *bytes, cuda_device device);
    cuda_result (*device_get_attribute)(int *value, int attribute, cuda_device device);
    cuda_result (*device_get_bus)(char *bus, int size, cuda_device device);
    cuda_result (*primary_context_retain)(cuda_context **context, cuda_device device);
    cuda_result (*primary_context_release)(cuda_device device);
    cuda_result (*context_set_current)(cuda_context *context);
    cuda_result (*context_get_current)(cuda_context **context);
    cuda_result (*memory_allocate)(cuda_address *address, size_t size);
    cuda_result (*memory_free)(cuda_address address);
    cuda_result (*copy_in)(cuda_address to, const void *from, size_t size);
    cuda_result (*copy_out)(void *to, cuda_address from, size_t size);
    cuda_result (*copy_within)(cuda_address to, cuda_address from, size_t size);
    cuda_result (*copy_within_async)(cuda_address to, cuda_address from, size_t size, cuda_stream *stream);
    cuda_result (*fill)(cuda_address memory, unsigned char byte, size_t size);
    cuda_result (*fill_async)(cuda_address memory, unsigned char byte, size_t size, cuda_stream *stream);
    cuda_result (*stream_create)(cuda_stream **stream, unsigned flags);
    cuda_result (*stream_destroy)(cuda_stream *stream);
    cuda_result (*stream_synchronize)(cuda_stream *stream);
    cuda_result (*event_create)(cuda_event **event, unsigned flags);
    cuda_result (*event_destroy)(cuda_event *event);
    cuda_result (*event_record)(cuda_event *event, cuda_stream *stream);
    cuda_result (*event_synchronize)(cuda_event *event);
    cuda_result (*event_elapsed)(float *milliseconds, cuda_event *start, cuda_event *end);
    cuda_result (*module_load)(cuda_module **module, const void *image, unsigned count, int *options, void **values);
    cuda_result (*module_get_function)(cuda_function **function, cuda_module *module, const char *name);
    cuda_result (*module_unload)(cuda_module *module);
    cuda_result (*function_get_attribute)(int *value, int attribute, cuda_function *function);
    cuda_result (*function_set_attribute)(cuda_function *function, int attribute, int value);
    cuda_result (*launch)(
        cuda_function *function,
        unsigned grid_x,
        unsigned grid_y,
        unsigned grid_z,
        unsigned block_x,
        unsigned block_y,
        unsigned block_z,
        unsigned shared_bytes,
        cuda_stream *stream,
        void **arguments,
        void **extra);
    cuda_result (*get_error_name)(cuda_result result, const char **name);
    cuda_result (*get_error_string)(cuda_result result, const char **text);
    // Functions that an older driver does not have: they may be NULL.
    cuda_result (*library_load)(
        cuda_library **library,
        const void *image,
        int *jit_options,
        void **jit_values,
        unsigned jit_count,
        int *options,
        void **values,
        unsigned count);
    cuda_result (*library_unload)(cuda_library *library);
    cuda_result (*library_get_kernel)(cuda_kernel **kernel, cuda_library *library, const char *name);
    cuda_result (*kernel_get_function)(cuda_function **function, cuda_kernel *kernel);
    cuda_result (*function_get_parameter)(cuda_function *function, size_t index, size_t *offset, size_t *size);
    cuda_result (*launch_ex)(const cuda_launch_config *config, cuda_function *function, void **arguments, void **extra);
    // Sizes, strides and box begin with the innermost dim, which has no stride.
    cuda_result (*encode_map)(
        void *out_map,
        int type,
        uint32_t rank,
        void *memory,
        const uint64_t *sizes,
        const uint64_t *steps_in_bytes,
        const uint32_t *box,
        const uint32_t *element_steps,
        int interleave,
        int swizzle,
        int promotion,
        int fill);
    cuda_result (*allocate_async)(cuda_address *address, size_t size, cuda_stream *stream);
    cuda_result (*free_async)(cuda_address address, cuda_stream *stream);
    cuda_result (*begin_capture)(cuda_stream *stream, int mode);
    cuda_result (*end_capture)(cuda_stream *stream, cuda_graph **graph);
    cuda_result (*is_capturing)(cuda_stream *stream, int *status);
    cuda_result (*graph_instantiate)(cuda_graph_exec **exec, cuda_graph *graph, unsigned long long flags);
    cuda_result (*graph_launch)(cuda_graph_exec *exec, cuda_stream *stream);
    cuda_result (*graph_exec_destroy)(cuda_graph_exec *exec);
    cuda_result (*graph_destroy)(cuda_graph *graph);
    cuda_result (*graph_nodes)(cuda_graph *graph, void **nodes, size_t *count);
} cuda_driver;

// Opens the library, finds its functions and initialises it. HONE_UNAVAILABLE with what is missing and the package that
// provides it.
hone_status hone_cuda_driver_open(const hone_allocator *allocator, cuda_driver *driver, hone_error *err);
void hone_cuda_driver_close(const hone_allocator *allocator, cuda_driver *driver);

// Fails with the driver's message: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".
hone_status hone_cuda_fail(
    const cuda_driver *driver, cuda_result result, const char *where, const char *what, hone_error *err);
// Whether a result means that this process cannot use the device any more.
bool hone_cuda_is_sticky(cuda_result result);

#endif
