// A check reads the clock, the reasons that limit it, and the recent use of the GPU by each process. It takes 10 us to
// a millisecond, depending on the driver. So the next check comes only after thirty times that duration, and the time
// between two checks is judged by them.
#include "platforms/cuda/nvml.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/functions.h"
#include "platforms/platform.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PROCESSES = 64 };

static const double pause_share = 30; // as a multiple of the duration of the last check
static const double full_clock = 0.97;
static const unsigned least_use = 3; // percent of the multiprocessors
// The driver has a new sample of processes every 1/6 to 1 s. A sample that shows other processes is valid until the
// next.
static const uint64_t shared_ns = 1500 * 1000 * 1000;
static const size_t probe_bytes = (size_t)64 << 20;
static const char where[] = "cuda.nvml";

static const hone_library_function functions[] = {
    {"nvmlInit_v2", offsetof(nvml, init), false},
    {"nvmlShutdown", offsetof(nvml, shutdown), false},
    {"nvmlErrorString", offsetof(nvml, error_string), false},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(nvml, device_by_bus), false},
    {"nvmlDeviceGetClockInfo", offsetof(nvml, clock), false},
    {"nvmlDeviceGetCurrentClocksEventReasons", offsetof(nvml, reasons), true},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(nvml, reasons_by_old_name), true},
    {"nvmlDeviceGetMigMode", offsetof(nvml, mig_mode), true},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(nvml, processes), true},
    {"nvmlDeviceGetProcessUtilization", offsetof(nvml, utilization), true},
};

// Opening -------------------------------------------------------------------------------------------------------------

static hone_status open_library(hone_cuda_watch *watch, const hone_allocator *allocator, hone_error *err)
{
    const char *named = hone_os_variable("HONE_NVML");
    const char *const usual[] = {"libnvidia-ml.so.1", NULL}, *const chosen[] = {named, NULL};
    hone_status status =
        hone_library_open(allocator, named != NULL && named[0] != '\0' ? chosen : usual, &watch->nvml.library, err);
    if (status != HONE_OK) return status;
    const char *missing =
        hone_library_functions(watch->nvml.library, functions, sizeof functions / sizeof *functions, &watch->nvml);
    nvml_result result = missing == NULL ? watch->nvml.init() : NVML_SUCCESS;
    if (missing == NULL && result == NVML_SUCCESS) return HONE_OK;
    hone_library_close(allocator, &watch->nvml.library);
    if (missing != NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "libnvidia-ml.so.1 has no %s", missing);
    return hone_fail(err, HONE_UNAVAILABLE, where, "nvmlInit answered %d", result);
}

// The bus id identifies the driver's device in NVML: CUDA_VISIBLE_DEVICES renumbers only the driver's devices.
static hone_status find_device(hone_cuda_watch *watch, const cuda_driver *driver, cuda_device device, hone_error *err)
{
    char bus[32];
    unsigned now = 0, pending = 0;
    if (driver->device_get_bus == NULL || driver->device_get_bus(bus, sizeof bus, device) != CUDA_SUCCESS)
        return hone_fail(err, HONE_UNAVAILABLE, where, "the driver does not report the bus of the GPU");
    nvml_result result = watch->nvml.device_by_bus(bus, &watch->device);
    if (result != NVML_SUCCESS)
        return hone_fail(err, HONE_UNAVAILABLE, where, "NVML on GPU %s: %s", bus, watch->nvml.error_string(result));
    if (watch->nvml.mig_mode == NULL || watch->nvml.mig_mode(watch->device, &now, &pending) != NVML_SUCCESS ||
        now != NVML_MIG_ON)
        return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "GPU %s is divided by MIG, and NVML reports nothing about its parts", bus);
}

// Which process is this one -------------------------------------------------------------------------------------------

typedef struct process_list {
    nvml_process processes[MOST_PROCESSES];
    unsigned count;
} process_list;

static void list_processes(const hone_cuda_watch *watch, process_list *out)
{
    out->count = MOST_PROCESSES;
    if (watch->nvml.processes == NULL ||
        watch->nvml.processes(watch->device, &out->count, out->processes) != NVML_SUCCESS ||
        out->count > MOST_PROCESSES)
        out->count = 0;
}

static const nvml_process *find_process(const process_list *list, unsigned id)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->processes[i].id == id) return &list->processes[i];
    return NULL;
}

// The process whose memory has grown by what this one allocated. 0 if there is none, or several.
static unsigned find_grown(const process_list *before, const process_list *after)
{
    unsigned found = 0;
    for (unsigned i = 0; i < after->count; i++) {
        const nvml_process *now = &after->processes[i], *then = find_process(before, now->id);
        if (then == NULL || now->memory < then->memory + probe_bytes / 2) continue;
        if (found != 0) return 0;
        found = now->id;
    }
    return found;
}

// In a container the process ids are those of the host, and none is this process's. This process is in the list, since
// it has a context: it is the only one, or the one whose memory grows when it allocates some.
static unsigned find_own(const hone_cuda_watch *watch, const cuda_driver *driver)
{
    const unsigned id = (unsigned)hone_os_process_id();
    process_list before, after;
    cuda_address probe = 0;
    list_processes(watch, &before);
    if (find_process(&before, id) != NULL) return id;
    if (before.count == 1) return before.processes[0].id;
    if (before.count == 0 || driver->memory_allocate(&probe, probe_bytes) != CUDA_SUCCESS) return 0;
    list_processes(watch, &after);
    (void)driver->memory_free(probe);
    return find_grown(&before, &after);
}

void hone_cuda_watch_begin(
    hone_cuda_watch *watch, const hone_allocator *allocator, const cuda_driver *driver, cuda_device device)
{
    hone_error why = {.message = ""};
    if (watch->begun) return;
    watch->begun = true;
    hone_status status = open_library(watch, allocator, &why);
    if (status == HONE_OK) status = find_device(watch, driver, device, &why);
    if (status == HONE_OK) {
        watch->own = find_own(watch, driver);
        return;
    }
    watch->device = NULL;
    snprintf(watch->reason, sizeof watch->reason, "%.199s", why.message);
}

void hone_cuda_watch_end(hone_cuda_watch *watch, const hone_allocator *allocator)
{
    if (watch->nvml.library != NULL) {
        (void)watch->nvml.shutdown();
        hone_library_close(allocator, &watch->nvml.library);
    }
    memset(watch, 0, sizeof *watch);
}

// Looking -------------------------------------------------------------------------------------------------------------

static unsigned long long read_reasons(const hone_cuda_watch *watch)
{
    unsigned long long reasons = 0;
    nvml_result (*read)(nvml_device *, unsigned long long *) =
        watch->nvml.reasons != NULL ? watch->nvml.reasons : watch->nvml.reasons_by_old_name;
    return read != NULL && read(watch->device, &reasons) == NVML_SUCCESS ? reasons : 0;
}

// The clock of an idle GPU says nothing about the clock during a run.
static unsigned look_at_clock(hone_cuda_watch *watch)
{
    static const unsigned long long throttles =
        NVML_POWER_CAP | NVML_HW_SLOWDOWN | NVML_SW_THERMAL | NVML_HW_THERMAL | NVML_POWER_BRAKE;
    const unsigned long long reasons = read_reasons(watch);
    unsigned mhz = 0, marks = (reasons & throttles) != 0 ? HONE_DEVICE_THROTTLED : 0;
    if ((reasons & NVML_IDLE) != 0) return 0;
    if (watch->nvml.clock(watch->device, NVML_CLOCK_OF_SM, &mhz) != NVML_SUCCESS) return marks;
    if (mhz > watch->top_mhz) watch->top_mhz = mhz;
    return (double)mhz < full_clock * watch->top_mhz ? marks | HONE_DEVICE_SLOWED : marks;
}

// Use by others before the first check concerns no sample.
static void read_others(hone_cuda_watch *watch, uint64_t now_ns)
{
    nvml_utilization seen[MOST_PROCESSES];
    unsigned count = MOST_PROCESSES;
    const unsigned long long since_us = watch->seen_us;
    bool shared = false;
    if (watch->nvml.utilization(watch->device, seen, &count, since_us) != NVML_SUCCESS) return;
    for (unsigned i = 0; i < count && i < MOST_PROCESSES; i++) {
        if (seen[i].at_us <= since_us) continue;
        if (seen[i].at_us > watch->seen_us) watch->seen_us = seen[i].at_us;
        shared = shared || (seen[i].id != watch->own && seen[i].sm > least_use);
    }
    if (watch->seen_us > since_us && since_us > 0) watch->shared_until_ns = shared ? now_ns + shared_ns : 0;
}

static unsigned look_at_others(hone_cuda_watch *watch, uint64_t now_ns)
{
    if (watch->own == 0 || watch->nvml.utilization == NULL) return 0;
    read_others(watch, now_ns);
    return now_ns < watch->shared_until_ns ? HONE_DEVICE_SHARED : 0;
}

void hone_cuda_watch_look(hone_cuda_watch *watch)
{
    const uint64_t now_ns = hone_os_now_ns();
    if (watch->device == NULL) return;
    if (now_ns >= watch->next_ns) {
        watch->marks = look_at_clock(watch) | look_at_others(watch, now_ns);
        const uint64_t end_ns = hone_os_now_ns();
        watch->next_ns = end_ns + (uint64_t)(pause_share * (double)(end_ns - now_ns));
    }
    watch->noted |= watch->marks;
}

unsigned hone_cuda_watch_take(hone_cuda_watch *watch)
{
    const unsigned noted = watch->noted;
    watch->noted = 0;
    return noted;
}
