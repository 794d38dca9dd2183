// The platform with everything in place and nothing behind it: one device, which is the host under another name. It
// fills in every op, also those that the host would not need, so that each has an example that the conformance suite
// runs.
#include "platforms/null/null.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

// What one open platform owns: here the loaded driver library, its functions, its contexts and streams would stand.
struct hone_platform_instance {
    hone_allocator allocator;
    const hone_log *log;
    hone_device_info device;
};

// Finds out whether the platform can run here. A missing library is no failure of hone's: answer HONE_UNAVAILABLE, name
// the library and the package that brings it, and leave nothing open.
static hone_status null_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, "null.open");
    instance->allocator = *allocator;
    instance->log = log;
    instance->device = (hone_device_info){
        .struct_size = sizeof instance->device,
        .platform = HONE_NULL,
        .backend = HONE_CPU,            // the hardware: a platform of GPUs says HONE_GPU
        .device = {HONE_DEVICE_CPU, 0}, // what the tensors on it say, as DLPack numbers it
        .name = "null device",          // for people
        .fingerprint = "null|0",        // for decisions: KIND|DETAILS, see docs/fingerprints.md
        .threads = 1,
    };
    hone_log_write(log, HONE_LOG_DEBUG, "null: one device");
    *out = instance;
    return HONE_OK;
}

static void null_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

// The array belongs to the instance and does not change while it is open.
static const hone_device_info *null_devices(hone_platform_instance *instance, size_t *out_count)
{
    *out_count = 1;
    return &instance->device;
}

// Makes a plan ready: compile or load the kernel's code for plan->device, look its function up, then let the kernel
// prepare itself. Here there is no code to load. What it gives back comes to run as plan->state.
static hone_status null_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    (void)instance;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (plan->kernel->prepare == NULL) return HONE_OK;
    return plan->kernel->prepare(plan, out_state, out_scratch_bytes, err);
}

static void null_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    (void)instance;
    if (kernel->release != NULL) kernel->release(kernel, state);
}

// Memory of the device, aligned to 64 bytes, for the inputs and outputs that tuning makes.
static hone_status null_allocate(
    hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err)
{
    enum { ALIGNMENT = 64 };
    if (device != &instance->device)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "null.allocate", "%s is no device of this platform", device->name);
    if (size > SIZE_MAX - ALIGNMENT) return hone_fail_memory(err, "null.allocate");
    char *block = hone_alloc(&instance->allocator, size + ALIGNMENT);
    if (block == NULL) return hone_fail_memory(err, "null.allocate");
    // The block starts at a multiple of 16, so the byte before the memory is always its own: it holds the way back.
    size_t step = ALIGNMENT - (uintptr_t)block % ALIGNMENT;
    block[step - 1] = (char)step;
    *out = block + step;
    return HONE_OK;
}

static void null_deallocate(hone_platform_instance *instance, const hone_device_info *device, void *memory, size_t size)
{
    (void)device;
    (void)size;
    if (memory == NULL) return;
    char *bytes = memory;
    hone_free(&instance->allocator, bytes - bytes[-1]);
}

// Waits until everything that was started on the stream is done. Runs of this platform end before they return.
static hone_status null_synchronize(
    hone_platform_instance *instance, const hone_device_info *device, void *stream, hone_error *err)
{
    (void)instance;
    (void)device;
    (void)stream;
    (void)err;
    return HONE_OK;
}

// The device's memory is the host's here: all three ways are one.
static hone_status null_copy(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_copy way,
    hone_place to,
    hone_place from,
    size_t size,
    hone_error *err)
{
    (void)instance;
    (void)device;
    (void)way;
    (void)err;
    memcpy((char *)to.memory + to.offset, (const char *)from.memory + from.offset, size);
    return HONE_OK;
}

static hone_status null_fill(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_place to,
    unsigned char byte,
    size_t size,
    hone_error *err)
{
    (void)instance;
    (void)device;
    (void)err;
    memset((char *)to.memory + to.offset, byte, size);
    return HONE_OK;
}

const hone_platform_ops hone_null_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .platform = HONE_NULL,
    .name = "null",
    .open = null_open,
    .close = null_close,
    .devices = null_devices,
    .prepare = null_prepare,
    .release = null_release,
    .allocate = null_allocate,
    .deallocate = null_deallocate,
    .synchronize = null_synchronize,
    .copy = null_copy,
    .fill = null_fill,
};
