// The devices of every driver that the loader knows, in its order; their fingerprints (equal if two devices can share a
// decision); and the context of each.
#include "platforms/opencl/instance.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PLATFORMS = 32, MAX_DEVICES = 64, LEAST_VERSION = 12 };

static const char where[] = "opencl.devices";

hone_status hone_opencl_check(hone_platform_instance *instance, opencl_result result, const char *what, hone_error *err)
{
    if (result == OPENCL_SUCCESS) return HONE_OK;
    int none = 0;
    if (hone_opencl_is_sticky(result)) atomic_compare_exchange_strong(&instance->lost, &none, result);
    return hone_opencl_fail(result, "opencl", what, err);
}

// Describing ----------------------------------------------------------------------------------------------------------

static uint64_t number(const opencl_icd *icd, opencl_id *id, opencl_name what)
{
    uint64_t value = 0; // the driver writes 4 or 8 bytes
    return icd->get_device_info(id, what, sizeof value, &value, NULL) == OPENCL_SUCCESS ? value : 0;
}

// Makes a text one line, without control characters, and without blanks at its ends.
static void tidy(char *text)
{
    size_t size = strlen(text), lead = strspn(text, " ");
    memmove(text, text + lead, size - lead + 1);
    for (size = strlen(text); size > 0 && text[size - 1] == ' '; size--)
        text[size - 1] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
}

static void words_of_device(const opencl_icd *icd, opencl_id *id, opencl_name what, char *out, size_t size)
{
    if (icd->get_device_info(id, what, size - 1, out, NULL) != OPENCL_SUCCESS) out[0] = '\0';
    tidy(out);
}

static void words_of_platform(const opencl_icd *icd, opencl_platform *p, opencl_name what, char *out, size_t size)
{
    if (icd->get_platform_info(p, what, size - 1, out, NULL) != OPENCL_SUCCESS) out[0] = '\0';
    tidy(out);
}

// "OpenCL 3.0 PoCL ..." is 30; 0 if it is not a version.
static int32_t version_of(const char *words)
{
    int major = 0, minor = 0;
    return sscanf(words, "OpenCL %d.%d", &major, &minor) == 2 && major < 100 && minor < 10 ? 10 * major + minor : 0;
}

static void append_word(hone_buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte <= ' ' || byte == 0x7f || strchr(",+=%|", byte) != NULL)
            hone_buffer_format(out, "%%%02X", byte);
        else
            hone_buffer_char(out, *c);
    }
}

// The fingerprint holds the driver's platform, the model and its size; not versions, clocks, or memory, which a driver
// counts again at each start.
static void write_fingerprint(hone_opencl_device *device, const char *platform)
{
    const hone_device_info *info = &device->info;
    hone_buffer_text(&device->fingerprint, "opencl|");
    append_word(&device->fingerprint, platform);
    hone_buffer_char(&device->fingerprint, ',');
    append_word(&device->fingerprint, device->name);
    hone_buffer_format(
        &device->fingerprint, ",units=%" PRId64 ",group=%zu,local=%" PRId64 ",cache=%" PRId64, info->sms,
        device->group_items, info->smem_bytes, info->backend == HONE_CPU ? info->l3_bytes : info->l2_bytes);
}

static hone_backend backend_of(uint64_t type)
{
    return (type & OPENCL_TYPE_CPU) != 0 ? HONE_CPU : HONE_GPU;
}

static void read_texts(const opencl_icd *icd, hone_opencl_device *device, char *version, size_t size)
{
    char vendor[128] = "", number_of_driver[128] = "";
    words_of_device(icd, device->id, OPENCL_DEVICE_NAME, device->name, sizeof device->name);
    words_of_device(icd, device->id, OPENCL_DEVICE_VENDOR, vendor, sizeof vendor);
    words_of_device(icd, device->id, OPENCL_DEVICE_VERSION, version, size);
    words_of_device(icd, device->id, OPENCL_DRIVER_VERSION, number_of_driver, sizeof number_of_driver);
    words_of_device(icd, device->id, OPENCL_DEVICE_C_VERSION, device->compiler, sizeof device->compiler);
    words_of_platform(icd, device->platform, OPENCL_PLATFORM_VERSION, device->runtime, sizeof device->runtime);
    snprintf(device->architecture, sizeof device->architecture, "%s, %.120s", vendor, version);
    snprintf(device->driver, sizeof device->driver, "OpenCL %.100s", number_of_driver);
}

static hone_status read_device(hone_platform_instance *instance, hone_opencl_device *device, int32_t ordinal)
{
    const opencl_icd *icd = &instance->icd;
    char version[256] = "", platform[128] = "";
    read_texts(icd, device, version, sizeof version);
    words_of_platform(icd, device->platform, OPENCL_PLATFORM_NAME, platform, sizeof platform);
    const hone_backend backend = backend_of(number(icd, device->id, OPENCL_DEVICE_TYPE));
    const int64_t units = (int64_t)number(icd, device->id, OPENCL_DEVICE_UNITS);
    const int64_t cache = (int64_t)number(icd, device->id, OPENCL_DEVICE_CACHE_BYTES);
    device->view_align = number(icd, device->id, OPENCL_DEVICE_VIEW_ALIGN_BITS) / 8;
    device->group_items = number(icd, device->id, OPENCL_DEVICE_GROUP_SIZE);
    device->largest_buffer = number(icd, device->id, OPENCL_DEVICE_LARGEST_BUFFER);
    (void)icd->get_device_info(
        device->id, OPENCL_DEVICE_ITEM_SIZES, sizeof device->item_sizes, device->item_sizes, NULL);
    device->info = (hone_device_info){
        .struct_size = sizeof device->info,
        .platform = HONE_OPENCL,
        .backend = backend,
        .device = {HONE_DEVICE_OPENCL, ordinal},
        .name = device->name,
        .threads = backend == HONE_CPU && units > 0 ? (int32_t)units : 1,
        .l2_bytes = backend == HONE_CPU ? 0 : cache,
        .l3_bytes = backend == HONE_CPU ? cache : 0,
        .memory_bytes = (int64_t)number(icd, device->id, OPENCL_DEVICE_MEMORY_BYTES),
        .smem_bytes = (int64_t)number(icd, device->id, OPENCL_DEVICE_LOCAL_BYTES),
        .sms = units,
        .driver = device->driver,
        .capability = version_of(version),
        .clock_mhz = (int32_t)number(icd, device->id, OPENCL_DEVICE_CLOCK_MHZ),
        .architecture = device->architecture,
        .runtime = device->runtime,
        .compiler = device->compiler,
    };
    write_fingerprint(device, platform);
    device->info.fingerprint = hone_buffer_string(&device->fingerprint);
    return device->fingerprint.failed ? HONE_OUT_OF_MEMORY : HONE_OK;
}

// Finding -------------------------------------------------------------------------------------------------------------

typedef struct found {
    opencl_platform *platform[MAX_DEVICES];
    opencl_id *id[MAX_DEVICES];
    uint32_t count;
} found;

static void note_silent(hone_platform_instance *instance, opencl_platform *platform, opencl_result result)
{
    char name[128] = "";
    hone_buffer *out = &instance->silent;
    words_of_platform(&instance->icd, platform, OPENCL_PLATFORM_NAME, name, sizeof name);
    hone_buffer_format(
        out, "%sdriver %s shows no device: clGetDeviceIDs: %s (%d)", out->size > 0 ? "\n" : "", name,
        hone_opencl_error_name(result), (int)result);
}

static void find_on(hone_platform_instance *instance, opencl_platform *platform, found *all)
{
    const opencl_icd *icd = &instance->icd;
    uint32_t count = 0, room = MAX_DEVICES - all->count;
    if (room == 0) return;
    opencl_result result = icd->get_devices(platform, OPENCL_TYPE_ALL, room, all->id + all->count, &count);
    if (result != OPENCL_SUCCESS) {
        note_silent(instance, platform, result);
        return;
    }
    for (uint32_t i = 0; i < count && i < room; i++)
        all->platform[all->count++] = platform;
}

static hone_status find_all(hone_platform_instance *instance, found *all, hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    opencl_platform *platforms[MAX_PLATFORMS];
    uint32_t count = 0;
    opencl_result result = OPENCL_SUCCESS;
    if (hone_opencl_get_platforms(&instance->allocator, icd, MAX_PLATFORMS, platforms, &count, &result) != HONE_OK)
        return hone_fail_memory(err, where);
    if (result != OPENCL_SUCCESS && result != OPENCL_PLATFORM_NOT_FOUND) {
        hone_error why;
        (void)hone_opencl_fail(result, where, "clGetPlatformIDs", &why);
        return hone_fail(err, HONE_UNAVAILABLE, where, "the OpenCL loader is here, and broken: %s", why.message);
    }
    if (result == OPENCL_PLATFORM_NOT_FOUND || count == 0)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "the OpenCL loader is here, and no driver: install that of the GPU, or for the CPU PoCL (package "
            "pocl-opencl-icd)");
    for (uint32_t i = 0; i < count && i < MAX_PLATFORMS; i++)
        find_on(instance, platforms[i], all);
    if (instance->silent.failed) return hone_fail_memory(err, where);
    if (all->count > 0) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "none of %u OpenCL drivers shows a device: is the GPU allowed to this user, and HOME a folder that PoCL can "
        "write to? %s",
        (unsigned)count, hone_buffer_string(&instance->silent));
}

static void start_device(hone_platform_instance *instance, hone_opencl_device *device)
{
    hone_mutex_init_long(&device->mutex);
    hone_mutex_init_long(&device->timing);
    hone_buffer_init(&device->fingerprint, instance->allocator);
}

static void drop_device(hone_opencl_device *device)
{
    hone_buffer_deinit(&device->fingerprint);
    hone_mutex_deinit(&device->timing);
    hone_mutex_deinit(&device->mutex);
}

// Skips devices whose version is too old. Ids count all existing devices, so they stay the same when hone supports
// more.
static hone_status take_devices(hone_platform_instance *instance, const found *all, hone_error *err)
{
    char oldest[160] = "";
    for (uint32_t i = 0; i < all->count; i++) {
        hone_opencl_device *device = &instance->all[instance->count];
        device->platform = all->platform[i];
        device->id = all->id[i];
        start_device(instance, device);
        hone_status status = read_device(instance, device, (int32_t)i);
        bool is_new = device->info.capability >= LEAST_VERSION;
        if (!is_new) snprintf(oldest, sizeof oldest, "%.80s has %.70s", device->name, device->architecture);
        if (status == HONE_OK && is_new) {
            instance->devices[instance->count++] = device->info;
            continue;
        }
        drop_device(device);
        memset(device, 0, sizeof *device);
        if (status != HONE_OK) return hone_fail_memory(err, where);
    }
    if (instance->count > 0) return HONE_OK;
    return hone_fail(err, HONE_UNAVAILABLE, where, "OpenCL 1.2 or later is needed; %s", oldest);
}

static hone_status find_devices(hone_platform_instance *instance, hone_error *err)
{
    found all = {.count = 0};
    hone_status status = find_all(instance, &all, err);
    if (status != HONE_OK) return status;
    instance->all = hone_alloc_array(&instance->allocator, all.count, sizeof *instance->all);
    instance->devices = hone_alloc_array(&instance->allocator, all.count, sizeof *instance->devices);
    if (instance->all == NULL || instance->devices == NULL) return hone_fail_memory(err, where);
    return take_devices(instance, &all, err);
}

// Only one runtime at a time: a driver detects its devices at the first query, and PoCL 3.1 crashed in 38 of 60
// processes when another thread queried meanwhile.
hone_status hone_opencl_find_devices(hone_platform_instance *instance, hone_error *err)
{
    static hone_mutex one_at_a_time = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    hone_mutex_lock(&one_at_a_time);
    const hone_status status = find_devices(instance, err);
    hone_mutex_unlock(&one_at_a_time);
    return status;
}

void hone_opencl_forget_devices(hone_platform_instance *instance)
{
    for (size_t i = 0; i < instance->count; i++) {
        hone_opencl_device *device = &instance->all[i];
        opencl_context *context = atomic_load(&device->context);
        if (device->queue != NULL) (void)instance->icd.release_queue(device->queue);
        if (context != NULL) (void)instance->icd.release_context(context);
        drop_device(device);
    }
    hone_free(&instance->allocator, instance->all);
    hone_free(&instance->allocator, instance->devices);
}

// Contexts ------------------------------------------------------------------------------------------------------------

static hone_status make_context(hone_platform_instance *instance, hone_opencl_device *device, hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    const intptr_t properties[] = {OPENCL_CONTEXT_PROPERTY_PLATFORM, (intptr_t)device->platform, 0};
    opencl_result result = OPENCL_SUCCESS;
    opencl_context *context = icd->create_context(properties, 1, &device->id, NULL, NULL, &result);
    if (context == NULL || result != OPENCL_SUCCESS) return hone_opencl_check(instance, result, "clCreateContext", err);
    opencl_queue *queue = icd->create_queue(context, device->id, OPENCL_PROFILING, &result);
    if (queue == NULL || result != OPENCL_SUCCESS) {
        (void)icd->release_context(context);
        return hone_opencl_check(instance, result, "clCreateCommandQueue", err);
    }
    device->queue = queue;
    atomic_store_explicit(&device->context, context, memory_order_release);
    return HONE_OK;
}

static hone_status need_context(hone_platform_instance *instance, hone_opencl_device *device, hone_error *err)
{
    hone_status status = HONE_OK;
    if (atomic_load_explicit(&device->context, memory_order_acquire) != NULL) return HONE_OK;
    hone_mutex_lock(&device->mutex);
    if (atomic_load_explicit(&device->context, memory_order_relaxed) == NULL)
        status = make_context(instance, device, err);
    hone_mutex_unlock(&device->mutex);
    return status;
}

hone_status hone_opencl_device_of(
    hone_platform_instance *instance, const hone_device_info *info, hone_opencl_device **out, hone_error *err)
{
    for (size_t i = 0; i < instance->count; i++) {
        const hone_device_info *known = &instance->all[i].info;
        if (info->device.type != known->device.type || info->device.id != known->device.id) continue;
        *out = &instance->all[i];
        return need_context(instance, *out, err);
    }
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s, opencl:%d, is not a device of this platform", info->name,
        (int)info->device.id);
}
