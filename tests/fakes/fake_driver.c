// The driver. One context, one fault at a time; a kernel runs when it is launched, and its failure is told at the next
// synchronisation, as a real one's is.
#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500
};

// State ---------------------------------------------------------------------------------------------------------------

static _Thread_local void *current;
static char the_context;
static int pending; // of a kernel that failed
static size_t allocated;

// A driver's memory is aligned as no malloc's is.
enum { ALIGNMENT = 256 };

typedef struct block {
    _Alignas(ALIGNMENT) size_t size;
} block;

typedef struct module {
    char *image;
    fake_function functions[8];
    int count;
    struct module *next;
} module;
static module *loaded;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

// A captured launch keeps its arguments.
typedef struct kept {
    fake_launch launch;
    uint64_t values[FAKE_MAX_PARAMETERS][16]; // of which a tensor map takes all
    void *pointers[FAKE_MAX_PARAMETERS];
    struct kept *next;
} kept;
static kept *captured;
static bool capturing;
#ifndef FAKE_OLD
static void *capturing_stream;
#endif

static long number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && *text ? atol(text) : otherwise;
}

static int here(void)
{
    if (current == NULL) return INVALID_CONTEXT;
    return pending;
}

// Library and devices -------------------------------------------------------------------------------------------------

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    (void)flags;
    return (int)number("FAKE_CUDA_INIT", OK);
}

EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
#ifdef FAKE_OLD
    *version = 11040;
#else
    *version = 13000;
#endif
    return OK;
}

EXPORT int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    *count = (int)number("FAKE_CUDA_DEVICES", 1);
    return OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return OK;
}

EXPORT int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "Fake GPU");
    return OK;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)number("FAKE_CUDA_MEMORY", 1L << 30);
    return OK;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    int capability = (int)number("FAKE_CUDA_CAPABILITY", 90);
    switch (attribute) {
    case 13:
        *value = 1980000;
        return OK;
    case 16:
        *value = 132;
        return OK;
    case 38:
        *value = 1 << 20;
        return OK;
    case 75:
        *value = capability / 10;
        return OK;
    case 76:
        *value = capability % 10;
        return OK;
    case 97:
        *value = 232448;
        return OK;
    default:
        return INVALID_VALUE;
    }
}

EXPORT int cuDeviceGetPCIBusId(char *bus, int size, int device);
int cuDeviceGetPCIBusId(char *bus, int size, int device)
{
    snprintf(bus, (size_t)size, "0000:%02d:00.0", device + 1);
    return OK;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &the_context;
    return OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return OK;
}

EXPORT int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    current = context;
    return OK;
}

EXPORT int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    *context = current;
    return OK;
}

EXPORT int cuGetErrorName(int result, const char **name);
int cuGetErrorName(int result, const char **name)
{
    static const struct {
        int result;
        const char *name;
    } names[] = {{1, "CUDA_ERROR_INVALID_VALUE"},   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {100, "CUDA_ERROR_NO_DEVICE"},     {200, "CUDA_ERROR_INVALID_IMAGE"},
                 {500, "CUDA_ERROR_NOT_FOUND"},     {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {34, "CUDA_ERROR_STUB_LIBRARY"},   {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
                 {719, "CUDA_ERROR_LAUNCH_FAILED"}, {201, "CUDA_ERROR_INVALID_CONTEXT"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].result != result) continue;
        *name = names[i].name;
        return OK;
    }
    return INVALID_VALUE;
}

EXPORT int cuGetErrorString(int result, const char **text);
int cuGetErrorString(int result, const char **text)
{
    *text = "words of the fake driver";
    return result == OK ? INVALID_VALUE : OK;
}

// Memory --------------------------------------------------------------------------------------------------------------

static int allocate(unsigned long long *address, size_t size)
{
    if (here() != OK) return here();
    if (allocated + size > (size_t)number("FAKE_CUDA_MEMORY", 1L << 30)) return OUT_OF_MEMORY;
    block *b = aligned_alloc(ALIGNMENT, (sizeof *b + size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (b == NULL) return OUT_OF_MEMORY;
    b->size = size;
    allocated += size;
    *address = (unsigned long long)(uintptr_t)(b + 1);
    return OK;
}

#ifndef FAKE_BROKEN
EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemAlloc_v2(unsigned long long *address, size_t size)
{
    return allocate(address, size);
}
#endif

EXPORT int cuMemFree_v2(unsigned long long address);
int cuMemFree_v2(unsigned long long address)
{
    block *b = (block *)(uintptr_t)address - 1;
    allocated -= b->size;
    free(b);
    return OK;
}

static int copy(void *to, const void *from, size_t size)
{
    if (here() != OK) return here();
    memcpy(to, from, size);
    return OK;
}

EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size);
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size)
{
    return copy((void *)(uintptr_t)to, from, size);
}

EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size);
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size)
{
    return copy(to, (const void *)(uintptr_t)from, size);
}

EXPORT int cuMemcpyDtoD_v2(unsigned long long to, unsigned long long from, size_t size);
int cuMemcpyDtoD_v2(unsigned long long to, unsigned long long from, size_t size)
{
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
}

EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t size, void *stream);
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t size, void *stream)
{
    (void)stream;
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
}

EXPORT int cuMemsetD8_v2(unsigned long long memory, unsigned char byte, size_t size);
int cuMemsetD8_v2(unsigned long long memory, unsigned char byte, size_t size)
{
    if (here() != OK) return here();
    memset((void *)(uintptr_t)memory, byte, size);
    return OK;
}

EXPORT int cuMemsetD8Async(unsigned long long memory, unsigned char byte, size_t size, void *stream);
int cuMemsetD8Async(unsigned long long memory, unsigned char byte, size_t size, void *stream)
{
    (void)stream;
    return cuMemsetD8_v2(memory, byte, size);
}

// Streams and events --------------------------------------------------------------------------------------------------

EXPORT int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = malloc(1);
    return here();
}

EXPORT int cuStreamDestroy_v2(void *stream);
int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return OK;
}

EXPORT int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream)
{
    if (stream != NULL) fake_log("wait for %p", stream);
    return here();
}

EXPORT int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(struct timespec));
    return here();
}

EXPORT int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event)
{
    free(event);
    return OK;
}

EXPORT int cuEventRecord(void *event, void *stream);
int cuEventRecord(void *event, void *stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, event);
    return here();
}

EXPORT int cuEventSynchronize(void *event);
int cuEventSynchronize(void *event)
{
    (void)event;
    return here();
}

EXPORT int cuEventElapsedTime(float *milliseconds, const struct timespec *start, const struct timespec *end);
int cuEventElapsedTime(float *milliseconds, const struct timespec *start, const struct timespec *end)
{
    *milliseconds =
        (float)((double)(end->tv_sec - start->tv_sec) * 1e3 + (double)(end->tv_nsec - start->tv_nsec) * 1e-6);
    return here();
}

// Modules -------------------------------------------------------------------------------------------------------------

bool fake_has_option(const char *image, const char *option)
{
    char line[256];
    snprintf(line, sizeof line, "option %s\n", option);
    return strstr(image, line) != NULL;
}

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

// A section ".nv.info.NAME" of a real cubin as the line "function NAME 8 8 4": records of which one in four bytes and
// more is a parameter, the last one first.
static size_t put_function(char *out, size_t size, const char *name, const unsigned char *info, uint64_t bytes)
{
    uint32_t sizes[FAKE_MAX_PARAMETERS] = {0}, count = 0;
    for (uint64_t at = 0; at + 4 <= bytes; at += 4 + (info[at] == 4 ? little(info + at + 2, 2) : 0)) {
        if (info[at] != 4 || info[at + 1] != 0x17) continue;
        uint32_t index = (uint32_t)little(info + at + 8, 2) % FAKE_MAX_PARAMETERS;
        sizes[index] = (uint32_t)little(info + at + 12, 4) >> 18;
        if (index >= count) count = index + 1;
    }
    size_t used = (size_t)snprintf(out, size, "function %s", name);
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, size - used, " %u", sizes[i]);
    return used + (size_t)snprintf(out + used, size - used, "\n");
}

// A real cubin as the fake compiler would have written it, with FAKE_CUDA_OPTIONS as its options.
static char *text_of_cubin(const unsigned char *image)
{
    enum { SIZE = 1 << 14, PREFIX = 9 };
    const unsigned char *heads = image + little(image + 40, 8);
    const unsigned char *names = image + little(heads + 64 * little(image + 62, 2) + 24, 8);
    const char *options = getenv("FAKE_CUDA_OPTIONS");
    char *text = malloc(SIZE);
    size_t used = (size_t)snprintf(text, SIZE, FAKE_MAGIC "option %s\n", options != NULL ? options : "");
    for (uint64_t i = 0; i < little(image + 60, 2); i++) {
        const unsigned char *head = heads + 64 * i;
        const char *name = (const char *)names + little(head, 4);
        if (strncmp(name, ".nv.info.", PREFIX) == 0)
            used += put_function(
                text + used, SIZE - used, name + PREFIX, image + little(head + 24, 8), little(head + 32, 8));
    }
    return text;
}

static void read_functions(module *m)
{
    for (const char *line = strstr(m->image, "function "); line != NULL && m->count < 8;
         line = strstr(line, "\nfunction ")) {
        fake_function *f = &m->functions[m->count++];
        if (*line == '\n') line++;
        int used = 0;
        sscanf(line, "function %63s%n", f->name, &used);
        const char *at = line + used;
        for (unsigned size; f->count < FAKE_MAX_PARAMETERS && sscanf(at, " %u%n", &size, &used) == 1; at += used)
            f->sizes[f->count++] = size;
        f->image = m->image;
        line = at;
    }
}

static int load(module **out, const void *image)
{
    static const char waiter[] = FAKE_MAGIC "function hone_wait 8\n";
    if (here() != OK) return here();
    const char *text = strncmp(image, ".version", 8) == 0 ? waiter : image;
    bool is_cubin = strncmp(text, "\177ELF", 4) == 0;
    if (!is_cubin && strncmp(text, FAKE_MAGIC, strlen(FAKE_MAGIC)) != 0) return INVALID_IMAGE;
    *out = calloc(1, sizeof **out);
    (*out)->image = is_cubin ? text_of_cubin(image) : strdup(text);
    read_functions(*out);
    pthread_mutex_lock(&loading);
    (*out)->next = loaded;
    loaded = *out;
    pthread_mutex_unlock(&loading);
    return OK;
}

static int find(fake_function **out, module *m, const char *name)
{
    for (int i = 0; i < m->count; i++) {
        if (strcmp(m->functions[i].name, name) != 0) continue;
        *out = &m->functions[i];
        return OK;
    }
    return NOT_FOUND;
}

static int unload(module *m)
{
    fake_log("unload");
    pthread_mutex_lock(&loading);
    module **at = &loaded;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    pthread_mutex_unlock(&loading);
    free(m->image);
    free(m);
    return OK;
}

// What a host never unloads goes with the driver.
__attribute__((destructor)) static void unload_all(void)
{
    while (loaded != NULL)
        (void)unload(loaded);
}

EXPORT int cuModuleLoadDataEx(module **out, const void *image, unsigned count, int *options, void **values);
int cuModuleLoadDataEx(module **out, const void *image, unsigned count, int *options, void **values)
{
    int result = load(out, image);
    if (result != OK && count == 2 && options[0] == 5)
        snprintf(values[0], (size_t)(uintptr_t)values[1], "no such image");
    return result;
}

EXPORT int cuModuleGetFunction(fake_function **function, module *m, const char *name);
int cuModuleGetFunction(fake_function **function, module *m, const char *name)
{
    return find(function, m, name);
}

EXPORT int cuModuleUnload(module *m);
int cuModuleUnload(module *m)
{
    return unload(m);
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, fake_function *f);
int cuFuncGetAttribute(int *value, int attribute, fake_function *f)
{
    (void)f;
    *value = attribute == 0 ? 512 : attribute == 4 ? 96 : 0;
    return OK;
}

EXPORT int cuFuncSetAttribute(fake_function *f, int attribute, int value);
int cuFuncSetAttribute(fake_function *f, int attribute, int value)
{
    if (attribute == 8) f->max_dynamic_shared = value;
    if (attribute == 14) f->non_portable_cluster = value;
    fake_log("attribute %s %d %d", f->name, attribute, value);
    return OK;
}

// Launching -----------------------------------------------------------------------------------------------------------

static void log_launch(const fake_launch *launch, const char *attributes)
{
    char bytes[2048] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < launch->function->count && used + 20 < sizeof bytes; i++) {
        const unsigned char *value = launch->arguments[i];
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, " ");
        for (uint32_t j = 0; j < launch->function->sizes[i]; j++)
            used += (size_t)snprintf(bytes + used, sizeof bytes - used, "%02x", value[j]);
    }
    fake_log(
        "launch %s grid %u,%u,%u block %u,%u,%u shared %u%s arguments%s", launch->function->name, launch->grid[0],
        launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2], launch->shared_bytes,
        attributes, bytes);
}

static int capture(const fake_launch *launch)
{
    kept *k = calloc(1, sizeof *k);
    k->launch = *launch;
    for (uint32_t i = 0; i < launch->function->count; i++) {
        memcpy(k->values[i], launch->arguments[i], launch->function->sizes[i]);
        k->pointers[i] = k->values[i];
    }
    k->launch.arguments = k->pointers;
    kept **last = &captured;
    while (*last != NULL)
        last = &(*last)->next;
    *last = k;
    return OK;
}

static int start(const fake_launch *launch, const char *attributes)
{
    if (here() != OK) return here();
    int dynamic = launch->function->max_dynamic_shared;
    if (launch->shared_bytes > (uint32_t)(dynamic > 49152 ? dynamic : 49152)) return INVALID_VALUE;
    log_launch(launch, attributes);
    if (capturing) return capture(launch);
    pending = fake_run(launch);
    return OK;
}

EXPORT int cuLaunchKernel(
    fake_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int cuLaunchKernel(
    fake_function *f,
    unsigned grid_x,
    unsigned grid_y,
    unsigned grid_z,
    unsigned block_x,
    unsigned block_y,
    unsigned block_z,
    unsigned shared_bytes,
    void *stream,
    void **arguments,
    void **extra)
{
    (void)extra;
    if (stream != NULL) fake_log("on %p", stream);
    const fake_launch launch = {f, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, arguments};
    return start(&launch, "");
}

#ifndef FAKE_OLD
typedef struct attribute {
    int id;
    char pad[4];
    union {
        int number;
        uint32_t cluster[3];
        char pad[64];
    } value;
} attribute;

typedef struct config {
    uint32_t grid[3], block[3], shared_bytes;
    void *stream;
    attribute *attributes;
    uint32_t count;
} config;

EXPORT int cuLaunchKernelEx(const config *c, fake_function *f, void **arguments, void **extra);
int cuLaunchKernelEx(const config *c, fake_function *f, void **arguments, void **extra)
{
    (void)extra;
    if (c->stream != NULL) fake_log("on %p", c->stream);
    char words[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const attribute *a = &c->attributes[i];
        if (a->id == 4)
            used += (size_t)snprintf(
                words + used, sizeof words - used, " cluster %u,%u,%u", a->value.cluster[0], a->value.cluster[1],
                a->value.cluster[2]);
        else
            used += (size_t)snprintf(words + used, sizeof words - used, " attribute %d=%d", a->id, a->value.number);
    }
    fake_launch launch = {.function = f, .shared_bytes = c->shared_bytes, .arguments = arguments};
    memcpy(launch.grid, c->grid, sizeof launch.grid);
    memcpy(launch.block, c->block, sizeof launch.block);
    return start(&launch, words);
}

EXPORT int cuMemAllocAsync(unsigned long long *address, size_t size, void *stream);
int cuMemAllocAsync(unsigned long long *address, size_t size, void *stream)
{
    (void)stream;
    fake_log("allocate %zu", size);
    return allocate(address, size);
}

EXPORT int cuMemFreeAsync(unsigned long long address, void *stream);
int cuMemFreeAsync(unsigned long long address, void *stream)
{
    (void)stream;
    fake_log("free");
    return cuMemFree_v2(address);
}

EXPORT int cuLibraryLoadData(
    module **out, const void *image, int *a, void **b, unsigned c, int *d, void **e, unsigned f);
int cuLibraryLoadData(module **out, const void *image, int *a, void **b, unsigned c, int *d, void **e, unsigned f)
{
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    (void)e;
    (void)f;
    return load(out, image);
}

EXPORT int cuLibraryUnload(module *m);
int cuLibraryUnload(module *m)
{
    return unload(m);
}

EXPORT int cuLibraryGetKernel(fake_function **kernel, module *m, const char *name);
int cuLibraryGetKernel(fake_function **kernel, module *m, const char *name)
{
    return find(kernel, m, name);
}

EXPORT int cuKernelGetFunction(fake_function **function, fake_function *kernel);
int cuKernelGetFunction(fake_function **function, fake_function *kernel)
{
    *function = kernel;
    return OK;
}

// The map has the address, then zeros. As the driver does it asks for a context, for rows of 16 bytes and for a box that fits
// the swizzle.
EXPORT int cuTensorMapEncodeTiled(
    void *,
    int,
    uint32_t,
    void *,
    const uint64_t *,
    const uint64_t *,
    const uint32_t *,
    const uint32_t *,
    int,
    int,
    int,
    int);
int cuTensorMapEncodeTiled(
    void *out,
    int type,
    uint32_t rank,
    void *memory,
    const uint64_t *sizes,
    const uint64_t *steps,
    const uint32_t *box,
    const uint32_t *element_steps,
    int interleave,
    int swizzle,
    int promotion,
    int fill)
{
    static const int bytes_of_type[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    if (here() != OK) return here();
    if ((uintptr_t)memory % 16 != 0 || (uintptr_t)out % 64 != 0 || element_steps[0] != 1 || interleave != 0 ||
        fill != 0)
        return INVALID_VALUE;
    if (swizzle > 0 && box[0] * (uint32_t)bytes_of_type[type] > 16u << swizzle) return INVALID_VALUE;
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (steps[i] % 16 != 0) return INVALID_VALUE;
    fake_log(
        "map type %d rank %u size %llu box %u rows %llu of %llu box %u swizzle %d promotion %d", type, (unsigned)rank,
        (unsigned long long)sizes[0], (unsigned)box[0], rank > 1 ? (unsigned long long)sizes[1] : 1,
        rank > 1 ? (unsigned long long)steps[0] : 0, rank > 1 ? (unsigned)box[1] : 1, swizzle, promotion);
    memset(out, 0, 128);
    memcpy(out, &memory, sizeof memory); // fake_kernels.c reads it there
    return OK;
}

EXPORT int cuFuncGetParamInfo(const fake_function *f, size_t index, size_t *offset, size_t *size);
int cuFuncGetParamInfo(const fake_function *f, size_t index, size_t *offset, size_t *size)
{
    size_t at = 0;
    if (index >= f->count) return INVALID_VALUE;
    for (size_t i = 0; i <= index; i++) {
        const size_t align = f->sizes[i] > 8 ? 64 : f->sizes[i];
        at = (at + align - 1) / align * align;
        *offset = at;
        at += f->sizes[i];
    }
    *size = f->sizes[index];
    return OK;
}

// Graphs --------------------------------------------------------------------------------------------------------------

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    if (number("FAKE_CUDA_UNCAPTURED", 0)) return 900; // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    capturing_stream = stream;
    capturing = true;
    return here();
}

static kept nothing; // a graph of no launch

// FAKE_CUDA_UNCAPTURED: no stream can be captured. FAKE_CUDA_ON_HOST: fakes of libraries compute on the host, so that a graph of theirs says nothing: there is none.
EXPORT int cuStreamEndCapture(void *stream, kept **out);
int cuStreamEndCapture(void *stream, kept **out)
{
    (void)stream;
    *out = captured != NULL ? captured : number("FAKE_CUDA_ON_HOST", 0) ? NULL : &nothing;
    captured = NULL;
    capturing = false;
    return here();
}

// FAKE_CUDA_CAPTURED: the number of a stream that somebody else captures.
EXPORT int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
    long theirs = number("FAKE_CUDA_CAPTURED", 0);
    if (stream == NULL && theirs && number("FAKE_CUDA_BLOCKING", 0)) return 906; // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
    *status = (theirs && (long)(intptr_t)stream == theirs) || (capturing && stream == capturing_stream);
    return here();
}

EXPORT int cuGraphInstantiateWithFlags(kept **exec, kept *from, unsigned long long flags);
int cuGraphInstantiateWithFlags(kept **exec, kept *from, unsigned long long flags)
{
    (void)flags;
    *exec = from;
    return OK;
}

EXPORT int cuGraphLaunch(kept *exec, void *stream);
int cuGraphLaunch(kept *exec, void *stream)
{
    (void)stream;
    fake_log("replay");
    for (; exec != NULL && exec != &nothing && pending == OK; exec = exec->next)
        pending = fake_run(&exec->launch);
    return OK;
}

EXPORT int cuGraphExecDestroy(kept *exec);
int cuGraphExecDestroy(kept *exec)
{
    while (exec != NULL && exec != &nothing) {
        kept *next = exec->next;
        free(exec);
        exec = next;
    }
    return OK;
}

EXPORT int cuGraphGetNodes(const kept *from, void **nodes, size_t *count);
int cuGraphGetNodes(const kept *from, void **nodes, size_t *count)
{
    (void)nodes;
    *count = 0;
    for (; from != NULL && from != &nothing; from = from->next)
        ++*count;
    return OK;
}

// The launches live on in what was made of it.
EXPORT int cuGraphDestroy(kept *from);
int cuGraphDestroy(kept *from)
{
    (void)from;
    return OK;
}
#endif
