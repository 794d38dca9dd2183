// Measures the time of runs on the device as the sum of the times of their kernels' events, so that the cost of
// starting them, and the gaps between them, are not included. Runs without an event (a kernel with a function of its
// own) are measured with the host's clock until all have ended.
#include "platforms/opencl/instance.h"

#include "base/error.h"

static hone_status add_event(hone_platform_instance *instance, opencl_event *event, double *total_ns, hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    uint64_t start = 0, end = 0;
    opencl_result state = OPENCL_SUCCESS;
    opencl_result result = icd->get_event_info(event, OPENCL_EVENT_STATUS, sizeof state, &state, NULL);
    if (result == OPENCL_SUCCESS && state < 0) result = state;
    if (result == OPENCL_SUCCESS)
        result = icd->get_profiling_info(event, OPENCL_PROFILING_START, sizeof start, &start, NULL);
    if (result == OPENCL_SUCCESS) result = icd->get_profiling_info(event, OPENCL_PROFILING_END, sizeof end, &end, NULL);
    if (end > start) *total_ns += (double)(end - start);
    return hone_opencl_check(instance, result, "the kernel", err);
}

// Waits for everything that was started, and adds the times of the events.
static hone_status drain(
    hone_platform_instance *instance, hone_opencl_device *device, double *total_ns, hone_error *err)
{
    hone_status status = hone_opencl_check(instance, instance->icd.finish(device->queue), "the kernel", err);
    for (uint32_t i = 0; i < device->event_count; i++) {
        if (status == HONE_OK) status = add_event(instance, device->events[i], total_ns, err);
        (void)instance->icd.release_event(device->events[i]);
    }
    device->event_count = 0;
    return status;
}

static hone_status flood(
    hone_platform_instance *instance, hone_opencl_device *device, const hone_timed_runs *runs, hone_error *err)
{
    const unsigned char one = 1;
    if (runs->flood == NULL) return HONE_OK;
    opencl_result result = instance->icd.fill(device->queue, runs->flood, &one, 1, 0, runs->flood_bytes, 0, NULL, NULL);
    if (result == OPENCL_SUCCESS) result = instance->icd.finish(device->queue);
    return hone_opencl_check(instance, result, "clEnqueueFillBuffer", err);
}

static hone_status start_and_drain(
    hone_platform_instance *instance,
    hone_opencl_device *device,
    const hone_timed_runs *runs,
    double *total_ns,
    bool *out_events,
    hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t i = 0; status == HONE_OK && i < runs->count; i++) {
        status = runs->run(runs->ctx);
        if (status != HONE_OK) hone_fail(err, status, "opencl", "run answered '%s'", hone_status_name(status));
        *out_events = *out_events || device->event_count > 0;
        if (status == HONE_OK && device->event_count == OPENCL_TIMED_EVENTS)
            status = drain(instance, device, total_ns, err);
    }
    hone_status drained = drain(instance, device, total_ns, status == HONE_OK ? err : NULL);
    return status == HONE_OK ? drained : status;
}

hone_status hone_opencl_time(
    hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err)
{
    hone_opencl_device *device = NULL;
    double total_ns = 0;
    bool has_events = false;
    hone_status status = hone_opencl_device_of(instance, runs->device, &device, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&device->timing);
    status = flood(instance, device, runs, err);
    if (status == HONE_OK) {
        atomic_store(&device->timed, true);
        uint64_t start = hone_os_now_ns();
        status = start_and_drain(instance, device, runs, &total_ns, &has_events, err);
        if (!has_events) total_ns = (double)(hone_os_now_ns() - start);
        atomic_store(&device->timed, false);
    }
    hone_mutex_unlock(&device->timing);
    if (status == HONE_OK) *out_ns = total_ns;
    return status;
}
