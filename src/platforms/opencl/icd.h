// OpenCL's loader of drivers, which is opened when it is needed and never linked. hone declares the types itself; a
// test compares them with CL/cl.h where that is installed.
#ifndef HONE_PLATFORMS_OPENCL_ICD_H
#define HONE_PLATFORMS_OPENCL_ICD_H

#include "base/memory.h"
#include "os/os.h"

typedef int32_t opencl_result;                  // cl_int
typedef uint32_t opencl_name;                   // cl_device_info, cl_program_info, ...
typedef uint64_t opencl_flags;                  // cl_bitfield
typedef struct opencl_platform opencl_platform; // *: cl_platform_id, and so on
typedef struct opencl_id opencl_id;             // *: cl_device_id
typedef struct opencl_context opencl_context;
typedef struct opencl_queue opencl_queue;
typedef struct opencl_memory opencl_memory;
typedef struct opencl_program opencl_program;
typedef struct opencl_kernel opencl_kernel;
typedef struct opencl_event opencl_event;

enum {
    OPENCL_SUCCESS = 0,
    OPENCL_DEVICE_NOT_FOUND = -1,
    OPENCL_DEVICE_NOT_AVAILABLE = -2,
    OPENCL_MEMORY_ALLOCATION_FAILURE = -4,
    OPENCL_OUT_OF_RESOURCES = -5,
    OPENCL_OUT_OF_HOST_MEMORY = -6,
    OPENCL_BUILD_FAILURE = -11,
    OPENCL_INVALID_VALUE = -30,
    OPENCL_INVALID_COMMAND_QUEUE = -36,
    OPENCL_INVALID_MEMORY = -38,
    OPENCL_INVALID_BINARY = -42,
    OPENCL_INVALID_KERNEL_NAME = -46,
    OPENCL_INVALID_ARGUMENT_SIZE = -51,
    OPENCL_INVALID_WORK_GROUP_SIZE = -54,
    OPENCL_INVALID_WORK_ITEM_SIZE = -55,
    OPENCL_INVALID_BUFFER_SIZE = -61,
    OPENCL_PLATFORM_NOT_FOUND = -1001,
    OPENCL_DRIVER_FAULT = -9999 // NVIDIA's driver returns it for a kernel that reads an invalid address
};

// Bits of a device's type, and of a buffer's and queue's creation.
enum { OPENCL_TYPE_CPU = 1 << 1, OPENCL_TYPE_GPU = 1 << 2 };
#define OPENCL_TYPE_ALL ((opencl_flags)0xffffffff)
enum { OPENCL_READ_WRITE = 1 << 0, OPENCL_PROFILING = 1 << 1 };

enum {
    OPENCL_PLATFORM_VERSION = 0x0901,
    OPENCL_PLATFORM_NAME = 0x0902,
    OPENCL_DEVICE_TYPE = 0x1000,
    OPENCL_DEVICE_UNITS = 0x1002,
    OPENCL_DEVICE_GROUP_SIZE = 0x1004,
    OPENCL_DEVICE_ITEM_SIZES = 0x1005,
    OPENCL_DEVICE_CLOCK_MHZ = 0x100c,
    OPENCL_DEVICE_LARGEST_BUFFER = 0x1010,
    OPENCL_DEVICE_VIEW_ALIGN_BITS = 0x1019,
    OPENCL_DEVICE_CACHE_BYTES = 0x101e,
    OPENCL_DEVICE_MEMORY_BYTES = 0x101f,
    OPENCL_DEVICE_LOCAL_BYTES = 0x1023,
    OPENCL_DEVICE_NAME = 0x102b,
    OPENCL_DEVICE_VENDOR = 0x102c,
    OPENCL_DRIVER_VERSION = 0x102d,
    OPENCL_DEVICE_VERSION = 0x102f,
    OPENCL_DEVICE_C_VERSION = 0x103d,
    OPENCL_CONTEXT_PROPERTY_PLATFORM = 0x1084,
    OPENCL_QUEUE_CONTEXT = 0x1090,
    OPENCL_QUEUE_DEVICE = 0x1091,
    OPENCL_MEMORY_CONTEXT = 0x1106,
    OPENCL_PROGRAM_BINARY_SIZES = 0x1165,
    OPENCL_PROGRAM_BINARIES = 0x1166,
    OPENCL_PROGRAM_LOG = 0x1183,
    OPENCL_KERNEL_ARGUMENT_COUNT = 0x1191,
    OPENCL_KERNEL_ARGUMENT_SPACE = 0x1196,
    OPENCL_KERNEL_GROUP_SIZE = 0x11b0,
    OPENCL_KERNEL_LOCAL_BYTES = 0x11b2,
    OPENCL_SPACE_GLOBAL = 0x119b,
    OPENCL_SPACE_LOCAL = 0x119c,
    OPENCL_SPACE_CONSTANT = 0x119d,
    OPENCL_SPACE_PRIVATE = 0x119e,
    OPENCL_BUFFER_REGION = 0x1220,
    OPENCL_EVENT_STATUS = 0x11d3,
    OPENCL_PROFILING_START = 0x1282,
    OPENCL_PROFILING_END = 0x1283
};

typedef struct opencl_region {
    size_t offset, size;
} opencl_region;

// A pointer for each function, under the name that the library exports.
typedef struct opencl_icd {
    hone_library *library;
    opencl_result (*get_platforms)(uint32_t room, opencl_platform **platforms, uint32_t *count);
    opencl_result (*get_platform_info)(opencl_platform *p, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*get_devices)(
        opencl_platform *p, opencl_flags type, uint32_t room, opencl_id **devices, uint32_t *count);
    opencl_result (*get_device_info)(opencl_id *id, opencl_name what, size_t room, void *to, size_t *size);
    opencl_context *(*create_context)(
        const intptr_t *properties,
        uint32_t count,
        opencl_id *const *devices,
        void (*notify)(const char *words, const void *info, size_t size, void *ctx),
        void *ctx,
        opencl_result *result);
    opencl_result (*retain_context)(opencl_context *context);
    opencl_result (*release_context)(opencl_context *context);
    opencl_queue *(*create_queue)(opencl_context *context, opencl_id *id, opencl_flags flags, opencl_result *result);
    opencl_result (*release_queue)(opencl_queue *queue);
    opencl_result (*get_queue_info)(opencl_queue *queue, opencl_name what, size_t room, void *to, size_t *size);
    opencl_memory *(*create_buffer)(
        opencl_context *context, opencl_flags flags, size_t size, void *host, opencl_result *result);
    opencl_memory *(*create_view)(
        opencl_memory *buffer, opencl_flags flags, opencl_name kind, const void *region, opencl_result *result);
    opencl_result (*release_memory)(opencl_memory *memory);
    opencl_result (*get_memory_info)(opencl_memory *memory, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*read)(
        opencl_queue *queue,
        opencl_memory *from,
        uint32_t blocking,
        size_t offset,
        size_t size,
        void *to,
        uint32_t waits,
        opencl_event *const *wait,
        opencl_event **event);
    opencl_result (*write)(
        opencl_queue *queue,
        opencl_memory *to,
        uint32_t blocking,
        size_t offset,
        size_t size,
        const void *from,
        uint32_t waits,
        opencl_event *const *wait,
        opencl_event **event);
    opencl_result (*copy)(
        opencl_queue *queue,
        opencl_memory *from,
        opencl_memory *to,
        size_t from_offset,
        size_t to_offset,
        size_t size,
        uint32_t waits,
        opencl_event *const *wait,
        opencl_event **event);
    opencl_result (*fill)(
        opencl_queue *queue,
        opencl_memory *to,
        const void *pattern,
        size_t pattern_size,
        size_t offset,
        size_t size,
        uint32_t waits,
        opencl_event *const *wait,
        opencl_event **event);
    opencl_program *(*create_with_source)(
        opencl_context *context, uint32_t count, const char **texts, const size_t *sizes, opencl_result *result);
    opencl_program *(*create_with_binary)(
        opencl_context *context,
        uint32_t count,
        opencl_id *const *devices,
        const size_t *sizes,
        const unsigned char **binaries,
        opencl_result *each,
        opencl_result *result);
    opencl_result (*build)(
        opencl_program *program,
        uint32_t count,
        opencl_id *const *devices,
        const char *options,
        void (*notify)(opencl_program *program, void *ctx),
        void *ctx);
    opencl_result (*get_program_info)(opencl_program *program, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*get_build_info)(
        opencl_program *program, opencl_id *id, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*release_program)(opencl_program *program);
    opencl_kernel *(*create_kernel)(opencl_program *program, const char *name, opencl_result *result);
    opencl_result (*release_kernel)(opencl_kernel *kernel);
    opencl_result (*get_kernel_info)(opencl_kernel *kernel, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*get_group_info)(
        opencl_kernel *kernel, opencl_id *id, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*get_argument_info)(
        opencl_kernel *kernel, uint32_t index, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*set_argument)(opencl_kernel *kernel, uint32_t index, size_t size, const void *value);
    opencl_result (*launch)(
        opencl_queue *queue,
        opencl_kernel *kernel,
        uint32_t dims,
        const size_t *offset,
        const size_t *global,
        const size_t *local,
        uint32_t waits,
        opencl_event *const *wait,
        opencl_event **event);
    opencl_result (*flush)(opencl_queue *queue);
    opencl_result (*finish)(opencl_queue *queue);
    opencl_result (*wait)(uint32_t count, opencl_event *const *events);
    opencl_result (*get_event_info)(opencl_event *event, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*get_profiling_info)(opencl_event *event, opencl_name what, size_t room, void *to, size_t *size);
    opencl_result (*release_event)(opencl_event *event);
} opencl_icd;

// HONE_UNAVAILABLE with the package that provides what is missing.
hone_status hone_opencl_icd_open(const hone_allocator *allocator, opencl_icd *icd, hone_error *err);
void hone_opencl_icd_close(const hone_allocator *allocator, opencl_icd *icd);
// Calls clGetPlatformIDs, whose first call loads the drivers, and restores the environment afterwards. Khronos's loader
// writes NULs into the lists in it (OCL_ICD_FILENAMES, OPENCL_LAYERS), and a process started later would see only their
// first names. HONE_OUT_OF_MEMORY; otherwise *out_result is the loader's result.
hone_status hone_opencl_get_platforms(
    const hone_allocator *allocator,
    const opencl_icd *icd,
    uint32_t room,
    opencl_platform **out,
    uint32_t *out_count,
    opencl_result *out_result);
// "CL_OUT_OF_RESOURCES"; "an unknown error" for a number that is not one.
const char *hone_opencl_error_name(opencl_result result);
// Fails with OpenCL's name of the error: "what: NAME (NUMBER)".
hone_status hone_opencl_fail(opencl_result result, const char *from, const char *what, hone_error *err);
// Whether every later call fails in a process that has received this result.
bool hone_opencl_is_sticky(opencl_result result);

#endif
