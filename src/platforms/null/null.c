// A complete platform without any hardware: its one device is the host under another name. It fills in every op, also
// those that the host does not need, so that each has an example that the conformance suite runs.
#include "platforms/null/instance.h"

#include "base/error.h"
#include "base/memory.h"
#include "os/os.h"
#include "platforms/shared/launch.h"

#include <stdint.h>
#include <string.h>

static const char where[] = "null.platform";

// Finds out whether the platform can run here. A missing library is not a failure of hone: return HONE_UNAVAILABLE,
// name the library and the package that provides it, and leave nothing open.
static hone_status null_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    instance->log = log;
    hone_mutex_init(&instance->mutex);
    instance->failure.status = HONE_OK;
    instance->device = (hone_device_info){
        .struct_size = sizeof instance->device,
        .platform = HONE_NULL,
        .backend = HONE_CPU,            // the hardware: a platform of GPUs has HONE_GPU
        .device = {HONE_DEVICE_CPU, 0}, // the device of its tensors, in DLPack's numbers
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
    hone_mutex_deinit(&gone->mutex);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

// The array belongs to the instance and does not change while it is open.
static const hone_device_info *null_devices(hone_platform_instance *instance, size_t *out_count)
{
    *out_count = 1;
    return &instance->device;
}

// For a platform that runs on the devices of other platforms, like this one: whether it can run on this device, whose
// platform is in facts.hosts.
static hone_status null_visits(hone_platform_instance *instance, const hone_device_info *device, hone_error *err)
{
    (void)instance;
    if (device->backend == HONE_CPU) return HONE_OK;
    return hone_fail(err, HONE_UNAVAILABLE, where, "%s is not a CPU", device->name);
}

// Describes the compiler and runtime of its kernels with their versions; or, without an instance, what has to be
// installed.
static void null_describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    hone_buffer_text(out, "a kernel is a number, by which elements are multiplied");
}

// Memory --------------------------------------------------------------------------------------------------------------

// Device memory, aligned to 64 bytes, for the inputs and outputs that tuning generates.
static hone_status null_allocate(
    hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err)
{
    enum { ALIGNMENT = 64 };
    if (device != &instance->device)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is not a device of this platform", device->name);
    if (size > SIZE_MAX - ALIGNMENT) return hone_fail_memory(err, where);
    char *block = hone_alloc(&instance->allocator, size + ALIGNMENT);
    if (block == NULL) return hone_fail_memory(err, where);
    // The block starts at a multiple of 16, so the byte before the memory is always its own: it holds the distance to
    // the block.
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

// The device's memory is the host's here, so all three directions are the same.
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

// Streams and time ----------------------------------------------------------------------------------------------------

// Runs end before they return, so a stream has no work to track.
typedef struct null_stream {
    const hone_device_info *device;
} null_stream;

static hone_status null_create_stream(
    hone_platform_instance *instance, const hone_device_info *device, void **out_stream, hone_error *err)
{
    null_stream *stream = hone_alloc(&instance->allocator, sizeof *stream);
    if (stream == NULL) return hone_fail_memory(err, where);
    stream->device = device;
    *out_stream = stream;
    return HONE_OK;
}

static void null_destroy_stream(hone_platform_instance *instance, const hone_device_info *device, void *stream)
{
    (void)device;
    hone_free(&instance->allocator, stream);
}

// Runs are synchronous, so there is nothing to hold.
static hone_status null_hold_streams(
    hone_platform_instance *instance, const hone_device_info *device, uint64_t nanoseconds, hone_error *err)
{
    (void)instance;
    (void)device;
    (void)nanoseconds;
    (void)err;
    return HONE_OK;
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

// A platform with graphs queries its driver.
static bool null_is_capturing(hone_platform_instance *instance, const hone_device_info *device, void *stream)
{
    (void)instance;
    (void)device;
    (void)stream;
    return false;
}

// A platform whose device has a clock records an event before the first run and one after the last.
static hone_status null_time(
    hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err)
{
    (void)instance;
    hone_status status = HONE_OK;
    if (runs->flood != NULL) memset(runs->flood, 0, runs->flood_bytes);
    const uint64_t start = hone_os_now_ns();
    for (uint32_t i = 0; status == HONE_OK && i < runs->count; i++)
        status = runs->run(runs->ctx);
    *out_ns = (double)(hone_os_now_ns() - start);
    return status == HONE_OK ? HONE_OK : hone_fail(err, status, where, "a run that was timed failed");
}

// A platform of GPUs queries their driver for clocks and for other processes.
static hone_status null_disturbed(
    hone_platform_instance *instance, const hone_device_info *device, unsigned *out_marks, hone_error *err)
{
    (void)instance;
    (void)device;
    (void)err;
    if (out_marks != NULL) *out_marks = 0;
    return HONE_OK;
}

// On a GPU an illegal address makes the context unusable, and every later call fails.
static bool null_is_lost(const hone_platform_instance *instance)
{
    (void)instance;
    return false;
}

// The limits of a launch: there are no launches.
static const hone_launch_rules no_launch = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1, .has_local = false};

const hone_platform_ops hone_null_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_NULL,
         .name = "null",
         .hosts = {HONE_NATIVE, HONE_NULL},
         .is_by_name_only = true,
         .takes_code = true,
         .refuses = hone_null_refuses},
    .reason = "null is the skeleton that new platforms are copied from: it runs only when named",
    .open = null_open,
    .close = null_close,
    .devices = null_devices,
    .prepare = hone_null_prepare,
    .release = hone_null_release,
    .allocate = null_allocate,
    .deallocate = null_deallocate,
    .synchronize = null_synchronize,
    .copy = null_copy,
    .fill = null_fill,
    .create_stream = null_create_stream,
    .destroy_stream = null_destroy_stream,
    .hold_streams = null_hold_streams,
    .is_capturing = null_is_capturing,
    .time = null_time,
    .disturbed = null_disturbed,
    .is_lost = null_is_lost,
    .run = hone_null_run,
    .visits = null_visits,
    .describe = null_describe,
    .check = hone_null_check_pack,
    .last_failure = hone_null_last_failure,
    .fits = hone_null_fits,
    .digest = hone_null_digest,
    .try_file = hone_null_try_file,
    .launch = &no_launch,
};
