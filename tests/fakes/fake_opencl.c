#include "fake_opencl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_log.h"

#define EXPORT __attribute__((visibility("default")))
// They are declared in CL/cl.h, with other names for their types.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef enum fake_kind {
    FAKE_CONTEXT = 0x0c1c0de1,
    FAKE_QUEUE,
    FAKE_BUFFER,
    FAKE_PROGRAM,
    FAKE_KERNEL,
    FAKE_EVENT
} fake_kind;

// What every handle points to first: a wrong one is seen.
typedef struct object {
    fake_kind kind;
    atomic_int references;
} object;

struct opencl_context {
    object is;
};
struct opencl_queue {
    object is;
    opencl_context *context;
    opencl_flags flags;
    opencl_id *id;
};
struct opencl_memory {
    object is;
    opencl_context *context;
    opencl_memory *of; // a view's buffer
    char *bytes;
    size_t size, offset;
};
struct opencl_program {
    object is;
    opencl_context *context;
    char *text;
    char options[1024];
    char log[256];
};
struct opencl_kernel {
    object is;
    char name[FAKE_NAME_SIZE];
    uint32_t count;
    fake_argument arguments[FAKE_MAX_ARGUMENTS];
};
struct opencl_event {
    object is;
    uint64_t start, end;
};

static const char magic[] = "fake clbin\n";
enum { MAX_DEVICES = 8 };
static char the_platforms[2], the_devices[2][MAX_DEVICES];
static atomic_int live;        // handles that are not given back
static atomic_llong allocated; // bytes of buffers

static long long number_of(const char *variable, long long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && *text ? strtoll(text, NULL, 10) : otherwise;
}

// What the environment wants a function to answer; 0: its work.
static opencl_result fault(const char *function)
{
    const char *text = getenv("FAKE_OPENCL_FAULT");
    size_t size = strlen(function);
    if (text == NULL || strncmp(text, function, size) != 0 || text[size] != '=') return OPENCL_SUCCESS;
    return (opencl_result)strtol(text + size + 1, NULL, 10);
}

static opencl_result answer(opencl_result result, opencl_result *out)
{
    if (out != NULL) *out = result;
    return result;
}

static void *make(fake_kind kind, size_t size)
{
    object *made = calloc(1, size);
    made->kind = kind;
    atomic_store(&made->references, 1);
    atomic_fetch_add(&live, 1);
    return made;
}

static bool is_a(const void *handle, fake_kind kind)
{
    return handle != NULL && ((const object *)handle)->kind == kind;
}

// True when that was the last one.
static bool drop(void *handle)
{
    object *it = handle;
    if (atomic_fetch_sub(&it->references, 1) > 1) return false;
    it->kind = 0;
    atomic_fetch_sub(&live, 1);
    return true;
}

static opencl_result give(const void *value, size_t size, size_t room, void *to, size_t *out_size)
{
    if (out_size != NULL) *out_size = size;
    if (to != NULL && room < size) return OPENCL_INVALID_VALUE;
    if (to != NULL) memcpy(to, value, size);
    return OPENCL_SUCCESS;
}

static opencl_result give_text(const char *text, size_t room, void *to, size_t *out_size)
{
    return give(text, strlen(text) + 1, room, to, out_size);
}

// Platform and devices ------------------------------------------------------------------------------------------------

// As Khronos's loader does: in the environment itself.
static void cut_list(void)
{
    char *colon = getenv("OCL_ICD_FILENAMES");
    while (colon != NULL && (colon = strchr(colon, ':')) != NULL)
        *colon = '\0';
}

// A driver that ends the process, or never answers.
static void end_as_told(void)
{
    const char *how = getenv("FAKE_OPENCL_END");
    if (how == NULL) return;
    fprintf(stderr, "the driver gives up\n");
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "exit") == 0) exit(0);
    if (strcmp(how, "hang") == 0)
        for (;;)
            sleep(1);
}

EXPORT opencl_result clGetPlatformIDs(uint32_t room, opencl_platform **platforms, uint32_t *count)
{
    opencl_result result = fault("platforms");
    end_as_told();
    cut_list();
    if (result != OPENCL_SUCCESS) return result;
    const uint32_t there = number_of("FAKE_OPENCL_PLATFORMS", 1) > 1 ? 2 : 1;
    for (uint32_t i = 0; platforms != NULL && i < there && i < room; i++)
        platforms[i] = (opencl_platform *)&the_platforms[i];
    if (count != NULL) *count = there;
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clGetPlatformInfo(opencl_platform *p, opencl_name what, size_t room, void *to, size_t *size)
{
    (void)p;
    return give_text(what == OPENCL_PLATFORM_NAME ? "Fake" : "OpenCL 3.0 fake platform", room, to, size);
}

// As the driver of a GPU may do: addresses for more memory than the machine has, none of which is touched.
static bool reserve(void)
{
    static atomic_bool done;
    const size_t size = (size_t)number_of("FAKE_OPENCL_RESERVES", 0);
    if (size == 0 || atomic_exchange(&done, true)) return true;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    atomic_store(&done, mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED);
    return atomic_load(&done);
}

EXPORT opencl_result
clGetDeviceIDs(opencl_platform *p, opencl_flags type, uint32_t room, opencl_id **devices, uint32_t *count)
{
    (void)type;
    const bool second = p == (opencl_platform *)&the_platforms[1];
    opencl_result result = fault("devices");
    if (second && !reserve()) return OPENCL_OUT_OF_HOST_MEMORY;
    uint32_t there = (uint32_t)number_of("FAKE_OPENCL_DEVICES", 1);
    if (result != OPENCL_SUCCESS) return result;
    if (there == 0) return OPENCL_DEVICE_NOT_FOUND;
    for (uint32_t i = 0; devices != NULL && i < there && i < room; i++)
        devices[i] = (opencl_id *)&the_devices[second][i];
    if (count != NULL) *count = there;
    return OPENCL_SUCCESS;
}

static const char *device_words(opencl_name what)
{
    const char *version = getenv("FAKE_OPENCL_VERSION");
    switch (what) {
    case OPENCL_DEVICE_NAME:
        return "  Fake device ";
    case OPENCL_DEVICE_VENDOR:
        return "Fake Corp";
    case OPENCL_DRIVER_VERSION:
        return "7.5";
    case OPENCL_DEVICE_VERSION:
        return version != NULL && *version ? version : "OpenCL 3.0 fake";
    case OPENCL_DEVICE_C_VERSION:
        return "OpenCL C 1.2 fake";
    default:
        return NULL;
    }
}

EXPORT opencl_result clGetDeviceInfo(opencl_id *id, opencl_name what, size_t room, void *to, size_t *size)
{
    (void)id;
    const size_t items[3] = {256, 256, 64};
    const char *words = device_words(what);
    if (words != NULL) return give_text(words, room, to, size);
    if (what == OPENCL_DEVICE_ITEM_SIZES) return give(items, sizeof items, room, to, size);
    const struct {
        opencl_name what;
        uint64_t value;
        size_t size;
    } numbers[] = {
        {OPENCL_DEVICE_TYPE, OPENCL_TYPE_GPU, 8},
        {OPENCL_DEVICE_UNITS, 12, 4},
        {OPENCL_DEVICE_GROUP_SIZE, 256, 8},
        {OPENCL_DEVICE_CLOCK_MHZ, 1500, 4},
        {OPENCL_DEVICE_LARGEST_BUFFER, 1 << 28, 8},
        {OPENCL_DEVICE_VIEW_ALIGN_BITS, 1024, 4},
        {OPENCL_DEVICE_CACHE_BYTES, 1 << 20, 8},
        {OPENCL_DEVICE_MEMORY_BYTES, (uint64_t)number_of("FAKE_OPENCL_MEMORY", 1 << 30), 8},
        {OPENCL_DEVICE_LOCAL_BYTES, 32 << 10, 8},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].what == what) return give(&numbers[i].value, numbers[i].size, room, to, size);
    return OPENCL_INVALID_VALUE;
}

// Contexts and queues -------------------------------------------------------------------------------------------------

EXPORT opencl_context *clCreateContext(
    const intptr_t *properties,
    uint32_t count,
    opencl_id *const *devices,
    void (*notify)(const char *words, const void *info, size_t size, void *ctx),
    void *ctx,
    opencl_result *result)
{
    (void)properties;
    (void)count;
    (void)devices;
    (void)notify;
    (void)ctx;
    if (answer(fault("context"), result) != OPENCL_SUCCESS) return NULL;
    return make(FAKE_CONTEXT, sizeof(opencl_context));
}

EXPORT opencl_result clRetainContext(opencl_context *context)
{
    if (!is_a(context, FAKE_CONTEXT)) return -34;
    atomic_fetch_add(&context->is.references, 1);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clReleaseContext(opencl_context *context)
{
    if (!is_a(context, FAKE_CONTEXT)) return -34;
    if (!drop(context)) return OPENCL_SUCCESS;
    free(context);
    fake_log("context ended, live %d", atomic_load(&live));
    return OPENCL_SUCCESS;
}

EXPORT opencl_queue *clCreateCommandQueue(
    opencl_context *context, opencl_id *id, opencl_flags flags, opencl_result *result)
{
    if (answer(fault("queue"), result) != OPENCL_SUCCESS) return NULL;
    opencl_queue *queue = make(FAKE_QUEUE, sizeof *queue);
    queue->context = context;
    queue->flags = flags;
    queue->id = id;
    return queue;
}

EXPORT opencl_result clReleaseCommandQueue(opencl_queue *queue)
{
    if (!is_a(queue, FAKE_QUEUE)) return OPENCL_INVALID_COMMAND_QUEUE;
    if (drop(queue)) free(queue);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clGetCommandQueueInfo(opencl_queue *queue, opencl_name what, size_t room, void *to, size_t *size)
{
    if (!is_a(queue, FAKE_QUEUE)) return OPENCL_INVALID_COMMAND_QUEUE;
    if (what == OPENCL_QUEUE_CONTEXT) return give(&queue->context, sizeof queue->context, room, to, size);
    if (what == OPENCL_QUEUE_DEVICE) return give(&queue->id, sizeof queue->id, room, to, size);
    return OPENCL_INVALID_VALUE;
}

EXPORT opencl_result clFlush(opencl_queue *queue)
{
    return is_a(queue, FAKE_QUEUE) ? OPENCL_SUCCESS : OPENCL_INVALID_COMMAND_QUEUE;
}

EXPORT opencl_result clFinish(opencl_queue *queue)
{
    return is_a(queue, FAKE_QUEUE) ? fault("finish") : OPENCL_INVALID_COMMAND_QUEUE;
}

// Memory --------------------------------------------------------------------------------------------------------------

EXPORT opencl_memory *clCreateBuffer(
    opencl_context *context, opencl_flags flags, size_t size, void *host, opencl_result *result)
{
    (void)flags;
    (void)host;
    long long room = number_of("FAKE_OPENCL_MEMORY", 1 << 30);
    if (answer(fault("buffer"), result) != OPENCL_SUCCESS) return NULL;
    if ((long long)size + atomic_load(&allocated) > room) {
        answer(OPENCL_MEMORY_ALLOCATION_FAILURE, result);
        return NULL;
    }
    opencl_memory *memory = make(FAKE_BUFFER, sizeof *memory);
    memory->context = context;
    memory->size = size;
    memory->bytes = calloc(1, size);
    atomic_fetch_add(&allocated, (long long)size);
    return memory;
}

EXPORT opencl_memory *clCreateSubBuffer(
    opencl_memory *buffer, opencl_flags flags, opencl_name kind, const void *region, opencl_result *result)
{
    enum { MISALIGNED = -13 };
    const opencl_region *part = region;
    (void)flags;
    (void)kind;
    bool fits =
        is_a(buffer, FAKE_BUFFER) && buffer->of == NULL && part->size > 0 && part->offset + part->size <= buffer->size;
    if (!fits || part->offset % 128 != 0) {
        answer(fits ? MISALIGNED : OPENCL_INVALID_VALUE, result);
        return NULL;
    }
    opencl_memory *view = make(FAKE_BUFFER, sizeof *view);
    *view = (opencl_memory){view->is, buffer->context, buffer, buffer->bytes + part->offset, part->size, part->offset};
    atomic_fetch_add(&buffer->is.references, 1);
    answer(OPENCL_SUCCESS, result);
    return view;
}

EXPORT opencl_result clReleaseMemObject(opencl_memory *memory)
{
    if (!is_a(memory, FAKE_BUFFER)) return OPENCL_INVALID_MEMORY;
    if (!drop(memory)) return OPENCL_SUCCESS;
    if (memory->of != NULL) {
        (void)clReleaseMemObject(memory->of);
    } else {
        atomic_fetch_sub(&allocated, (long long)memory->size);
        free(memory->bytes);
    }
    free(memory);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clGetMemObjectInfo(opencl_memory *memory, opencl_name what, size_t room, void *to, size_t *size)
{
    if (!is_a(memory, FAKE_BUFFER)) return OPENCL_INVALID_MEMORY;
    if (what != OPENCL_MEMORY_CONTEXT) return OPENCL_INVALID_VALUE;
    return give(&memory->context, sizeof memory->context, room, to, size);
}

static bool reaches(const opencl_memory *memory, size_t offset, size_t size)
{
    return is_a(memory, FAKE_BUFFER) && size <= memory->size && offset <= memory->size - size;
}

#define WAITS uint32_t waits, opencl_event *const *wait, opencl_event **event
#define NO_WAITS                                                                                                       \
    (void)waits;                                                                                                       \
    (void)wait;                                                                                                        \
    (void)event

EXPORT opencl_result clEnqueueReadBuffer(
    opencl_queue *queue, opencl_memory *from, uint32_t blocking, size_t offset, size_t size, void *to, WAITS)
{
    (void)blocking;
    NO_WAITS;
    if (!is_a(queue, FAKE_QUEUE) || !reaches(from, offset, size)) return OPENCL_INVALID_VALUE;
    memcpy(to, from->bytes + offset, size);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clEnqueueWriteBuffer(
    opencl_queue *queue, opencl_memory *to, uint32_t blocking, size_t offset, size_t size, const void *from, WAITS)
{
    (void)blocking;
    NO_WAITS;
    if (!is_a(queue, FAKE_QUEUE) || !reaches(to, offset, size)) return OPENCL_INVALID_VALUE;
    opencl_result result = fault("write");
    if (result == OPENCL_SUCCESS) memcpy(to->bytes + offset, from, size);
    return result;
}

EXPORT opencl_result clEnqueueCopyBuffer(
    opencl_queue *queue, opencl_memory *from, opencl_memory *to, size_t from_at, size_t to_at, size_t size, WAITS)
{
    NO_WAITS;
    if (!is_a(queue, FAKE_QUEUE) || !reaches(from, from_at, size) || !reaches(to, to_at, size))
        return OPENCL_INVALID_VALUE;
    memmove(to->bytes + to_at, from->bytes + from_at, size);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clEnqueueFillBuffer(
    opencl_queue *queue, opencl_memory *to, const void *pattern, size_t pattern_size, size_t at, size_t size, WAITS)
{
    NO_WAITS;
    if (!is_a(queue, FAKE_QUEUE) || !reaches(to, at, size) || pattern_size != 1) return OPENCL_INVALID_VALUE;
    memset(to->bytes + at, *(const unsigned char *)pattern, size);
    return OPENCL_SUCCESS;
}

// Programs ------------------------------------------------------------------------------------------------------------

static opencl_program *program_of(opencl_context *context, const char *text, size_t size)
{
    opencl_program *program = make(FAKE_PROGRAM, sizeof *program);
    program->context = context;
    program->text = calloc(1, size + 1);
    memcpy(program->text, text, size);
    return program;
}

EXPORT opencl_program *clCreateProgramWithSource(
    opencl_context *context, uint32_t count, const char **texts, const size_t *sizes, opencl_result *result)
{
    (void)sizes;
    if (!is_a(context, FAKE_CONTEXT) || count != 1) {
        answer(OPENCL_INVALID_VALUE, result);
        return NULL;
    }
    answer(OPENCL_SUCCESS, result);
    return program_of(context, texts[0], strlen(texts[0]));
}

EXPORT opencl_program *clCreateProgramWithBinary(
    opencl_context *context,
    uint32_t count,
    opencl_id *const *devices,
    const size_t *sizes,
    const unsigned char **binaries,
    opencl_result *each,
    opencl_result *result)
{
    (void)devices;
    opencl_result why = fault("binary");
    if (count != 1 || sizes[0] < sizeof magic - 1 || memcmp(binaries[0], magic, sizeof magic - 1) != 0)
        why = OPENCL_INVALID_BINARY;
    if (each != NULL) *each = why;
    if (answer(why, result) != OPENCL_SUCCESS) return NULL;
    fake_log("binary of %zu bytes", sizes[0]);
    return program_of(context, (const char *)binaries[0] + sizeof magic - 1, sizes[0] - (sizeof magic - 1));
}

EXPORT opencl_result clBuildProgram(
    opencl_program *program,
    uint32_t count,
    opencl_id *const *devices,
    const char *options,
    void (*notify)(opencl_program *program, void *ctx),
    void *ctx)
{
    (void)count;
    (void)devices;
    (void)notify;
    (void)ctx;
    const char *error = strstr(program->text, "#error ");
    opencl_result result = fault("build");
    snprintf(program->options, sizeof program->options, "%s", options);
    fake_log("build %s", options);
    if (result != OPENCL_SUCCESS || error == NULL) return result;
    snprintf(
        program->log, sizeof program->log, "note: first\nfake.cl:1: error: %.*s\nfake.cl:2: error: the second\n",
        (int)strcspn(error + 7, "\n"), error + 7);
    return OPENCL_BUILD_FAILURE;
}

EXPORT opencl_result clGetProgramInfo(opencl_program *program, opencl_name what, size_t room, void *to, size_t *size)
{
    const size_t text = strlen(program->text), all = text + sizeof magic - 1;
    if (what == OPENCL_PROGRAM_BINARY_SIZES) return give(&all, sizeof all, room, to, size);
    if (what != OPENCL_PROGRAM_BINARIES || room < sizeof(char *)) return OPENCL_INVALID_VALUE;
    char *binary = *(char **)to;
    memcpy(binary, magic, sizeof magic - 1);
    memcpy(binary + sizeof magic - 1, program->text, text);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result
clGetProgramBuildInfo(opencl_program *program, opencl_id *id, opencl_name what, size_t room, void *to, size_t *size)
{
    (void)id;
    return what == OPENCL_PROGRAM_LOG ? give_text(program->log, room, to, size) : OPENCL_INVALID_VALUE;
}

EXPORT opencl_result clReleaseProgram(opencl_program *program)
{
    if (!is_a(program, FAKE_PROGRAM)) return -44;
    if (!drop(program)) return OPENCL_SUCCESS;
    free(program->text);
    free(program);
    return OPENCL_SUCCESS;
}

// Kernels -------------------------------------------------------------------------------------------------------------

// One parameter's words: "__global const float *x", "long n".
static void read_parameter(const char *words, size_t size, fake_argument *out)
{
    char text[128] = "";
    memcpy(text, words, size < sizeof text ? size : sizeof text - 1);
    bool wide = strstr(text, "long") != NULL || strstr(text, "double") != NULL;
    out->space = strstr(text, "__global") != NULL     ? FAKE_GLOBAL
                 : strstr(text, "__local") != NULL    ? FAKE_LOCAL
                 : strstr(text, "__constant") != NULL ? FAKE_CONSTANT
                                                      : FAKE_PRIVATE;
    out->size = out->space != FAKE_PRIVATE || wide ? 8 : 4;
}

EXPORT opencl_kernel *clCreateKernel(opencl_program *program, const char *name, opencl_result *result)
{
    char wanted[FAKE_NAME_SIZE + 16];
    snprintf(wanted, sizeof wanted, "__kernel void %s(", name);
    const char *at = strstr(program->text, wanted);
    if (answer(at != NULL ? fault("kernel") : OPENCL_INVALID_KERNEL_NAME, result) != OPENCL_SUCCESS) return NULL;
    opencl_kernel *kernel = make(FAKE_KERNEL, sizeof *kernel);
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    for (at += strlen(wanted); *at != ')' && *at != '\0' && kernel->count < FAKE_MAX_ARGUMENTS;) {
        size_t size = strcspn(at, ",)");
        read_parameter(at, size, &kernel->arguments[kernel->count++]);
        at += size + (at[size] == ',');
    }
    return kernel;
}

EXPORT opencl_result clReleaseKernel(opencl_kernel *kernel)
{
    if (!is_a(kernel, FAKE_KERNEL)) return -48;
    if (drop(kernel)) free(kernel);
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clGetKernelInfo(opencl_kernel *kernel, opencl_name what, size_t room, void *to, size_t *size)
{
    if (what != OPENCL_KERNEL_ARGUMENT_COUNT) return OPENCL_INVALID_VALUE;
    return give(&kernel->count, sizeof kernel->count, room, to, size);
}

EXPORT opencl_result
clGetKernelWorkGroupInfo(opencl_kernel *kernel, opencl_id *id, opencl_name what, size_t room, void *to, size_t *size)
{
    (void)id;
    (void)kernel;
    const uint64_t value = what == OPENCL_KERNEL_GROUP_SIZE ? 128 : 1024;
    return give(&value, sizeof value, room, to, size);
}

EXPORT opencl_result
clGetKernelArgInfo(opencl_kernel *kernel, uint32_t index, opencl_name what, size_t room, void *to, size_t *size)
{
    if (index >= kernel->count || what != OPENCL_KERNEL_ARGUMENT_SPACE) return OPENCL_INVALID_VALUE;
    const opencl_name space = OPENCL_SPACE_GLOBAL + (opencl_name)kernel->arguments[index].space;
    return give(&space, sizeof space, room, to, size);
}

#ifndef FAKE_BROKEN
EXPORT opencl_result clSetKernelArg(opencl_kernel *kernel, uint32_t index, size_t size, const void *value)
{
    if (index >= kernel->count) return -49;
    fake_argument *argument = &kernel->arguments[index];
    if (argument->space == FAKE_LOCAL) {
        argument->local_bytes = size;
        return value != NULL ? -50 : OPENCL_SUCCESS;
    }
    if (size != argument->size) return OPENCL_INVALID_ARGUMENT_SIZE;
    if (argument->space == FAKE_PRIVATE) {
        memcpy(argument->bytes, value, size);
        return OPENCL_SUCCESS;
    }
    memcpy(&argument->memory, value, sizeof argument->memory);
    return argument->memory == NULL || is_a(argument->memory, FAKE_BUFFER) ? OPENCL_SUCCESS : OPENCL_INVALID_MEMORY;
}
#endif

// Launching -----------------------------------------------------------------------------------------------------------

static size_t write_argument(const fake_argument *argument, char *out, size_t room)
{
    size_t used = 0;
    const opencl_memory *memory = argument->memory;
    if (argument->space == FAKE_LOCAL) return (size_t)snprintf(out, room, " local:%zu", argument->local_bytes);
    if (argument->space != FAKE_PRIVATE)
        return memory != NULL ? (size_t)snprintf(out, room, " buffer:%zu+%zu", memory->offset, memory->size)
                              : (size_t)snprintf(out, room, " buffer:none");
    used = (size_t)snprintf(out, room, " ");
    for (size_t i = 0; i < argument->size; i++)
        used += (size_t)snprintf(out + used, room - used, "%02x", argument->bytes[i]);
    return used;
}

static void log_launch(const opencl_kernel *kernel, const size_t *global, const size_t *local)
{
    char line[2048] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < kernel->count && used + 64 < sizeof line; i++)
        used += write_argument(&kernel->arguments[i], line + used, sizeof line - used);
    fake_log(
        "launch %s global %zu,%zu,%zu local %zu,%zu,%zu arguments%s", kernel->name, global[0], global[1], global[2],
        local[0], local[1], local[2], line);
}

// y = factor * x: the one kernel that there is. The factor is its fourth argument, or 3 where it has none.
static void scale(const opencl_kernel *kernel)
{
    int32_t n;
    float factor = 3;
    memcpy(&n, kernel->arguments[2].bytes, sizeof n);
    if (kernel->count > 3) memcpy(&factor, kernel->arguments[3].bytes, sizeof factor);
    const float *x = (const float *)(const void *)kernel->arguments[0].memory->bytes;
    float *y = (float *)(void *)kernel->arguments[1].memory->bytes;
    for (int32_t i = 0; i < n; i++)
        y[i] = factor * x[i];
}

EXPORT opencl_result clEnqueueNDRangeKernel(
    opencl_queue *queue,
    opencl_kernel *kernel,
    uint32_t dims,
    const size_t *offset,
    const size_t *global,
    const size_t *local,
    uint32_t waits,
    opencl_event *const *wait,
    opencl_event **event)
{
    (void)offset;
    (void)waits;
    (void)wait;
    if (!is_a(queue, FAKE_QUEUE)) return OPENCL_INVALID_COMMAND_QUEUE;
    if (dims != 3) return -53;
    log_launch(kernel, global, local);
    opencl_result result = fault("launch");
    if (result != OPENCL_SUCCESS) return result;
    if (strcmp(kernel->name, "triple") == 0 || strcmp(kernel->name, "scale") == 0) scale(kernel);
    if (event != NULL) {
        *event = make(FAKE_EVENT, sizeof **event);
        (*event)->start = 1000;
        (*event)->end = 6000; // every launch takes 5 us
    }
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clWaitForEvents(uint32_t count, opencl_event *const *events)
{
    (void)count;
    (void)events;
    return OPENCL_SUCCESS;
}

EXPORT opencl_result clGetEventInfo(opencl_event *event, opencl_name what, size_t room, void *to, size_t *size)
{
    (void)event;
    const opencl_result state = fault("event");
    return what == OPENCL_EVENT_STATUS ? give(&state, sizeof state, room, to, size) : OPENCL_INVALID_VALUE;
}

EXPORT opencl_result clGetEventProfilingInfo(opencl_event *event, opencl_name what, size_t room, void *to, size_t *size)
{
    return give(what == OPENCL_PROFILING_START ? &event->start : &event->end, sizeof event->start, room, to, size);
}

EXPORT opencl_result clReleaseEvent(opencl_event *event)
{
    if (!is_a(event, FAKE_EVENT)) return -58;
    if (drop(event)) free(event);
    return OPENCL_SUCCESS;
}
