// The devices of a runtime. They are looked for by the first that needs them, not when the runtime is opened: a driver can
// take longer to wake than the program that never calls it.
#include "runtime/runtime.h"

#include "base/error.h"
#include "registry/names.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "runtime.devices";

// What opens a platform here: some stand by until somebody names them.
static const hone_platform_ops *ops_of(const hone_runtime *rt, hone_platform platform)
{
    for (size_t i = 0; i < hone_platforms_count; i++) {
        const hone_platform_row *row = &hone_platforms[i];
        if (row->platform != platform) continue;
        return row->ops == NULL && (rt->platforms_asked & 1u << platform) != 0 ? row->when_asked : row->ops;
    }
    return NULL;
}

// Opens one platform, or keeps the reason why it is not here.
static hone_status open_platform(hone_runtime *rt, const hone_platform_row *row, hone_error *err)
{
    const hone_platform_ops *ops = ops_of(rt, row->platform);
    hone_error why = {.message = ""};
    if (rt->reasons[row->platform] != NULL || rt->instances[row->platform] != NULL) return HONE_OK;
    if (ops == NULL) {
        snprintf(why.message, sizeof why.message, "%s", row->reason);
    } else {
        hone_status status = ops->open(&rt->allocator, &rt->log, &rt->instances[row->platform], &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        if (status == HONE_OK) return HONE_OK;
    }
    rt->reasons[row->platform] = hone_copy_text(&rt->allocator, why.message, strlen(why.message));
    return rt->reasons[row->platform] != NULL ? HONE_OK : hone_fail_memory(err, where);
}

// Asks the platforms that take long to open, or the others, for their devices, or why they have none. One with a reason
// already was left out by the environment.
static hone_status open_platforms(hone_runtime *rt, bool waking, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < hone_platforms_count; i++) {
        const hone_platform_row *row = &hone_platforms[i];
        const hone_platform_ops *ops = ops_of(rt, row->platform);
        bool is_guest = ops != NULL && ops->open == NULL;
        if (!is_guest && (ops != NULL && ops->wakes) == waking) status = open_platform(rt, row, err);
    }
    return status;
}

// A list of its own for each of the two times: who reads the first goes on while the second is made.
static hone_status collect_devices(hone_runtime *rt, hone_device_list *list, hone_error *err)
{
    size_t capacity = list->count;
    list->count = 0; // of an earlier try that ran out of memory
    for (int platform = 0; platform < HONE_PLATFORM_COUNT; platform++) {
        if (rt->instances[platform] == NULL) continue;
        const hone_platform_ops *ops = ops_of(rt, (hone_platform)platform);
        size_t count = 0;
        const hone_device_info *devices = ops->devices(rt->instances[platform], &count);
        if (!hone_grow(&rt->allocator, &list->devices, &capacity, list->count + count, sizeof *list->devices))
            return hone_fail_memory(err, where);
        for (size_t i = 0; i < count; i++) {
            list->devices[list->count++] = &devices[i];
            if (rt->cpu == NULL && devices[i].backend == HONE_CPU) rt->cpu = &devices[i];
        }
    }
    if (rt->cpu == NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "no platform reports a CPU");
    return HONE_OK;
}

static void tell_registry(const hone_runtime *rt, const hone_device_list *list)
{
    uint32_t present = 1u << HONE_CPU;
    for (size_t i = 0; i < list->count; i++)
        present |= 1u << list->devices[i]->backend;
    hone_backend backend = (present & 1u << HONE_GPU) != 0 ? HONE_GPU : HONE_CPU;
    hone_registry_set_hardware(rt->registry, present, backend, rt->cpu->features);
    hone_registry_leave_out(rt->registry, rt->platforms_asked != 0 ? ~rt->platforms_asked : 0);
}

hone_status hone_runtime_discover(hone_runtime *rt, hone_error *err)
{
    if (atomic_load_explicit(&rt->discovered, memory_order_acquire)) return HONE_OK;
    hone_mutex_lock(&rt->discovery);
    hone_status status = HONE_OK;
    if (!atomic_load_explicit(&rt->discovered, memory_order_relaxed)) {
        status = open_platforms(rt, false, err);
        if (status == HONE_OK) status = collect_devices(rt, &rt->near, err);
        if (status == HONE_OK) {
            tell_registry(rt, &rt->near);
            if (rt->pool_threads <= 0) rt->pool_threads = rt->cpu->threads;
            atomic_store_explicit(&rt->discovered, true, memory_order_release);
        }
    }
    hone_mutex_unlock(&rt->discovery);
    return status;
}

hone_status hone_runtime_wake(hone_runtime *rt, hone_error *err)
{
    hone_status status = hone_runtime_discover(rt, err);
    if (status != HONE_OK || atomic_load_explicit(&rt->woken, memory_order_acquire)) return status;
    hone_mutex_lock(&rt->discovery);
    if (!atomic_load_explicit(&rt->woken, memory_order_relaxed)) {
        status = open_platforms(rt, true, err);
        if (status == HONE_OK) status = collect_devices(rt, &rt->all, err);
        if (status == HONE_OK) {
            tell_registry(rt, &rt->all);
            atomic_store_explicit(&rt->woken, true, memory_order_release);
        }
    }
    hone_mutex_unlock(&rt->discovery);
    return status;
}

hone_status hone_runtime_visit(
    hone_runtime *rt, const hone_kernel_ref *kernel, const hone_device_info *device, hone_error *err)
{
    hone_platform home = hone_platform_home(kernel->kernel.platform);
    const hone_platform_ops *ops = ops_of(rt, home);
    if (ops == NULL || ops->visits == NULL || device == NULL) return HONE_OK;
    hone_mutex_lock(&rt->discovery);
    hone_status status = open_platform(rt, &hone_platforms[home - HONE_NATIVE], err);
    hone_mutex_unlock(&rt->discovery);
    if (status != HONE_OK) return status;
    if (rt->instances[home] == NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "%s", rt->reasons[home]);
    return ops->visits(rt->instances[home], device, err);
}

hone_status hone_runtime_find_device(
    hone_runtime *rt, hone_device device, const hone_device_info **out, hone_error *err)
{
    *out = NULL;
    bool is_near = device.type == HONE_DEVICE_CPU;
    hone_status status = is_near ? hone_runtime_discover(rt, err) : hone_runtime_wake(rt, err);
    const hone_device_list *list = is_near ? &rt->near : &rt->all;
    for (size_t i = 0; status == HONE_OK && *out == NULL && i < list->count; i++) {
        const hone_device *candidate = &list->devices[i]->device;
        if (candidate->type == device.type && candidate->id == device.id) *out = list->devices[i];
    }
    return status;
}

static hone_status need_device(hone_runtime *rt, hone_device device, const hone_device_info **out, hone_error *err)
{
    hone_status status = hone_runtime_find_device(rt, device, out, err);
    if (status != HONE_OK || *out != NULL) return status;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "no platform here has device type %d, id %d (hone devices lists them)",
        (int)device.type, (int)device.id);
}

hone_status hone_stream_is_captured(hone_runtime *rt, hone_device device, void *stream, bool *out, hone_error *err)
{
    const hone_device_info *info = NULL;
    hone_status status = need_device(rt, device, &info, err);
    if (status != HONE_OK) return status;
    const hone_platform_ops *ops = ops_of(rt, info->platform);
    *out = ops->is_capturing != NULL && ops->is_capturing(rt->instances[info->platform], info, stream);
    return HONE_OK;
}

hone_status hone_stream_synchronize(hone_runtime *rt, hone_device device, void *stream, hone_error *err)
{
    const hone_device_info *info = NULL;
    hone_status status = need_device(rt, device, &info, err);
    if (status != HONE_OK) return status;
    const hone_platform_ops *ops = ops_of(rt, info->platform);
    return ops->synchronize != NULL ? ops->synchronize(rt->instances[info->platform], info, stream, err) : HONE_OK;
}

void hone_runtime_close_platforms(hone_runtime *rt)
{
    for (int platform = 0; platform < HONE_PLATFORM_COUNT; platform++) {
        if (rt->instances[platform] != NULL) ops_of(rt, (hone_platform)platform)->close(&rt->instances[platform]);
        hone_free(&rt->allocator, rt->reasons[platform]);
    }
    hone_free(&rt->allocator, rt->near.devices);
    hone_free(&rt->allocator, rt->all.devices);
}

const hone_device_info *const *hone_runtime_devices(hone_runtime *rt, size_t *out_count)
{
    hone_error why;
    bool known = hone_runtime_wake(rt, &why) == HONE_OK;
    *out_count = known ? rt->all.count : 0;
    return known ? rt->all.devices : NULL;
}

bool hone_runtime_platform(hone_runtime *rt, hone_platform platform, const char **out_reason)
{
    hone_error why;
    bool known = platform > HONE_PLATFORM_NONE && platform < HONE_PLATFORM_COUNT;
    if (hone_runtime_wake(rt, &why) != HONE_OK) known = false;
    hone_platform home = known ? hone_platform_home(platform) : platform;
    bool here = known && rt->reasons[platform] == NULL && rt->instances[home] != NULL;
    if (out_reason != NULL) {
        const char *reason = !known                  ? "no such platform"
                             : rt->reasons[platform] ? rt->reasons[platform]
                                                     : rt->reasons[home];
        *out_reason = here ? NULL : reason;
    }
    return here;
}

size_t hone_runtime_describe(hone_runtime *rt, hone_platform platform, char *out, size_t size)
{
    hone_buffer words;
    hone_buffer_init(&words, rt->allocator);
    bool here = hone_runtime_platform(rt, platform, NULL);
    const hone_platform_ops *ops = hone_platform_ops_of(platform);
    if (ops != NULL && ops->describe != NULL)
        ops->describe(here ? rt->instances[hone_platform_home(platform)] : NULL, &words);
    size_t whole = words.size;
    if (size > 0) snprintf(out, size, "%s", hone_buffer_string(&words));
    hone_buffer_deinit(&words);
    return whole;
}
