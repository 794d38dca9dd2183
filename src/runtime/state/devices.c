// The devices of a runtime. They are detected when they are first needed, not when the runtime is opened: to open a
// driver can take longer than a program that never uses it.
#include "runtime/state/runtime.h"

#include "base/error.h"
#include "registry/names.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "runtime.devices";

enum { ANSWER_SECONDS = 30 }; // eight GPUs without persistence mode take ten

// The functions that open a platform here. Some platforms stay closed until the user names them.
static const hone_platform_ops *ops_of(const hone_runtime *rt, hone_platform platform)
{
    const hone_platform_ops *ops = hone_platform_ops_of(platform);
    if (ops == NULL || ops->reason == NULL) return ops;
    return ops->facts.is_by_name_only && (rt->platforms_asked & 1u << platform) != 0 ? ops : NULL;
}

bool hone_runtime_find_worker(hone_runtime *rt, char *out, size_t size)
{
    hone_mutex_lock(&rt->mutex);
    hone_status status = rt->workers != NULL ? HONE_OK : hone_workers_create(&rt->allocator, NULL, &rt->workers, NULL);
    hone_mutex_unlock(&rt->mutex);
    return status == HONE_OK && hone_workers_program(rt->workers, out, size, NULL) == HONE_OK;
}

// The last line that a process printed: the message of a refusal, or of a driver that ended the process.
static const char *last_line(char *text)
{
    size_t size = strlen(text);
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' '))
        text[--size] = '\0';
    const char *newline = strrchr(text, '\n');
    return newline != NULL ? newline + 1 : text;
}

// Converts the result of the worker process into a status of the platform.
static hone_status judge(const hone_platform_ops *ops, hone_status run, int code, char *said, hone_error *err)
{
    char how[128];
    const char *line = last_line(said);
    if (run == HONE_OK && code == HONE_PLATFORM_OPENED) return HONE_OK;
    if (run == HONE_OK && code == HONE_PLATFORM_REFUSED) return hone_fail(err, HONE_UNAVAILABLE, where, "%s", line);
    if (run == HONE_BUSY)
        snprintf(how, sizeof how, "did not answer within %d seconds", (int)ANSWER_SECONDS);
    else if (run == HONE_KERNEL_FAILED)
        snprintf(how, sizeof how, "ended the process by signal %d", err->system_code);
    else
        snprintf(how, sizeof how, "ended the process with exit code %d before there was an answer", code);
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "a driver of %s, when a process of its own asked for its devices, %s%s%.300s%s: it is not loaded here; mend or "
        "remove the driver, or leave the platform out with HONE_PLATFORMS",
        ops->facts.name, how, line[0] != '\0' ? " (it said: " : "", line, line[0] != '\0' ? ")" : "");
}

static int open_alone(void *ctx, int fd)
{
    const hone_platform_ops *ops = ctx;
    const hone_allocator allocator = hone_allocator_system();
    const hone_log silent = {.write = NULL};
    hone_platform_instance *instance = NULL;
    (void)fd;
    return ops->open(&allocator, &silent, &instance, NULL) == HONE_OK ? HONE_PLATFORM_OPENED : HONE_PLATFORM_REFUSED;
}

// Without a worker, a process with one thread tests the driver in a forked child. A driver's refusal in the child means
// little, since the child shares what the host has opened already: only a crash or a timeout counts.
static hone_status ask_child(hone_runtime *rt, const hone_platform_ops *ops, hone_error *err)
{
    hone_process child;
    char byte, silence[1] = "";
    int signal_number = 0, code = 0;
    if (hone_os_thread_count() != 1 || hone_process_fork(open_alone, (void *)(uintptr_t)ops, &child, NULL) != HONE_OK) {
        hone_log_write(
            &rt->log, HONE_LOG_INFO,
            "the drivers of %s are loaded without a trial: there is no hone-worker to try them in; HONE_WORKER names "
            "one",
            ops->facts.name);
        return HONE_OK;
    }
    const uint64_t deadline = hone_os_now_ns() + ANSWER_SECONDS * UINT64_C(1000000000);
    const bool is_late = hone_fd_read(child.fd, &byte, 1, deadline) == HONE_BUSY;
    hone_process_kill(&child, &signal_number, &code);
    if (!is_late && signal_number == 0 && code == HONE_PLATFORM_REFUSED) return HONE_OK;
    if (err != NULL) err->system_code = signal_number;
    return judge(ops, is_late ? HONE_BUSY : signal_number != 0 ? HONE_KERNEL_FAILED : HONE_OK, code, silence, err);
}

// A driver is foreign code that may abort, exit or hang when it is first called. So a worker calls it first, and this
// program loads only drivers that worked there.
static hone_status ask_worker(hone_runtime *rt, const hone_platform_ops *ops, hone_error *err)
{
    enum { PATH_SIZE = 4096, SAID_LIMIT = 16 << 10 };
    char worker[PATH_SIZE];
    if (!hone_runtime_find_worker(rt, worker, sizeof worker)) return ask_child(rt, ops, err);
    const char *const arguments[] = {worker, "devices", ops->facts.name, NULL};
    int code = 0;
    hone_buffer said;
    hone_buffer_init(&said, rt->allocator);
    const uint64_t deadline = hone_os_now_ns() + ANSWER_SECONDS * UINT64_C(1000000000);
    hone_status status = hone_process_run(arguments, deadline, SAID_LIMIT, &said, &code, err);
    if (said.failed)
        status = hone_fail_memory(err, where);
    else if (status != HONE_OUT_OF_MEMORY)
        status = judge(ops, status, code, said.size > 0 ? said.data : (char[1]){0}, err);
    hone_buffer_deinit(&said);
    return status;
}

// Opens one platform, or records the reason why it is not available.
static hone_status open_platform(hone_runtime *rt, hone_platform platform, hone_error *err)
{
    const hone_platform_ops *ops = ops_of(rt, platform);
    hone_error why = {.message = ""};
    if (rt->reasons[platform] != NULL || rt->instances[platform] != NULL) return HONE_OK;
    if (ops == NULL) {
        snprintf(why.message, sizeof why.message, "%s", hone_platforms[platform]->reason);
    } else {
        hone_status status = ops->wakes ? ask_worker(rt, ops, &why) : HONE_OK;
        if (status == HONE_OK) status = ops->open(&rt->allocator, &rt->log, &rt->instances[platform], &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        if (status == HONE_OK) return HONE_OK;
    }
    rt->reasons[platform] = hone_copy_text(&rt->allocator, why.message, strlen(why.message));
    return rt->reasons[platform] != NULL ? HONE_OK : hone_fail_memory(err, where);
}

// Opens the platforms that are slow to open (waking), or the others, and asks each for its devices or the reason why it
// has none. A platform that has a reason already was excluded by the environment.
static hone_status open_platforms(hone_runtime *rt, bool waking, hone_error *err)
{
    hone_status status = HONE_OK;
    for (int i = HONE_PLATFORM_NONE + 1; status == HONE_OK && i < HONE_PLATFORM_COUNT; i++) {
        const hone_platform platform = (hone_platform)i;
        const hone_platform_ops *ops = ops_of(rt, platform);
        bool is_guest = ops != NULL && ops->open == NULL;
        if (!is_guest && (ops != NULL && ops->wakes) == waking) status = open_platform(rt, platform, err);
    }
    return status;
}

// Makes a separate list for each of the two stages: a thread that reads the first continues while the second is made.
static hone_status collect_devices(hone_runtime *rt, hone_device_list *list, hone_error *err)
{
    size_t capacity = list->count;
    list->count = 0; // from an earlier attempt that ran out of memory
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
    hone_status status = open_platform(rt, home, err);
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
    if (rt == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "stream.is_captured", "the runtime or out is NULL");
    const hone_device_info *info = NULL;
    hone_status status = need_device(rt, device, &info, err);
    if (status != HONE_OK) return status;
    const hone_platform_ops *ops = ops_of(rt, info->platform);
    *out = ops->is_capturing != NULL && ops->is_capturing(rt->instances[info->platform], info, stream);
    return HONE_OK;
}

hone_status hone_stream_synchronize(hone_runtime *rt, hone_device device, void *stream, hone_error *err)
{
    if (rt == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "stream.synchronize", "the runtime is NULL");
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
    const bool known = rt != NULL && hone_runtime_wake(rt, &why) == HONE_OK;
    if (out_count != NULL) *out_count = known ? rt->all.count : 0;
    return known ? rt->all.devices : NULL;
}

hone_status hone_runtime_sees_disturbance(hone_runtime *rt, const hone_device_info *device, hone_error *err)
{
    unsigned marks;
    const hone_platform_ops *ops = ops_of(rt, device->platform);
    if (device->backend == HONE_CPU) return HONE_OK; // the operating system provides the numbers
    if (ops->disturbed != NULL) return ops->disturbed(rt->instances[device->platform], device, &marks, err);
    return hone_fail(err, HONE_UNAVAILABLE, where, "platform %s does not say it", ops->facts.name);
}

bool hone_runtime_platform(hone_runtime *rt, hone_platform platform, const char **out_reason)
{
    hone_error why;
    bool known = rt != NULL && platform > HONE_PLATFORM_NONE && platform < HONE_PLATFORM_COUNT;
    if (rt != NULL && hone_runtime_wake(rt, &why) != HONE_OK) known = false;
    hone_platform home = known ? hone_platform_home(platform) : platform;
    bool here = known && rt->reasons[platform] == NULL && rt->instances[home] != NULL;
    if (out_reason != NULL) {
        const char *reason = !known                          ? "no such platform"
                             : rt->reasons[platform] != NULL ? rt->reasons[platform]
                                                             : rt->reasons[home];
        *out_reason = here ? NULL : reason;
    }
    return here;
}

size_t hone_runtime_describe(hone_runtime *rt, hone_platform platform, char *out, size_t size)
{
    hone_buffer words;
    if (out == NULL) size = 0;
    if (size > 0) out[0] = '\0';
    if (rt == NULL) return 0;
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
