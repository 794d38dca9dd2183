// Measures the time of runs on the device with its own events.
//
// A pair of events around work that is not queued yet also measures the host: 2 to 4 us, with 4 to 15 % of scatter. So
// a kernel that waits, or the flood of the caches, keeps the GPU busy until all work is queued. Runs of a few
// microseconds, which the host cannot start as fast as the GPU ends them, are captured into a graph. After each sample
// the GPU rests: 50 ms of uninterrupted work of the tensor cores bring an H200 to its power cap, and later samples are
// up to a fifth slower than earlier ones (docs/gpu.md).
#include "platforms/cuda/instance.h"

#include "base/error.h"

#include <string.h>

static const uint64_t wait_ns = 40000;
static const double rest_share = 3; // as a multiple of the measured time
static const double least_rest_ns = 100e3, most_rest_ns = 50e6;

// Loops until the GPU's clock has advanced by the given time.
static const char waiter_ptx[] = ".version 6.3\n"
                                 ".target sm_70\n"
                                 ".address_size 64\n"
                                 ".visible .entry hone_wait(.param .u64 nanoseconds)\n"
                                 "{\n"
                                 "    .reg .u64 %rd<5>;\n"
                                 "    .reg .pred %p<2>;\n"
                                 "    ld.param.u64 %rd1, [nanoseconds];\n"
                                 "    mov.u64 %rd2, %globaltimer;\n"
                                 "again:\n"
                                 "    mov.u64 %rd3, %globaltimer;\n"
                                 "    sub.u64 %rd4, %rd3, %rd2;\n"
                                 "    setp.lt.u64 %p1, %rd4, %rd1;\n"
                                 "    @%p1 bra again;\n"
                                 "    ret;\n"
                                 "}\n";

// Loads the waiting kernel. Without it samples only scatter more.
static void load_waiter(const cuda_driver *driver, hone_cuda_gpu *gpu)
{
    if (gpu->waiter_tried) return;
    gpu->waiter_tried = true;
    if (driver->module_load(&gpu->waiter, waiter_ptx, 0, NULL, NULL) != CUDA_SUCCESS) {
        gpu->waiter = NULL;
        return;
    }
    if (driver->module_get_function(&gpu->wait, gpu->waiter, "hone_wait") != CUDA_SUCCESS) gpu->wait = NULL;
}

static cuda_result make_events(const cuda_driver *driver, hone_cuda_gpu *gpu)
{
    cuda_result result = CUDA_SUCCESS;
    if (gpu->start == NULL) result = driver->event_create(&gpu->start, CUDA_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS && gpu->end == NULL) result = driver->event_create(&gpu->end, CUDA_EVENT_DEFAULT);
    return result;
}

void hone_cuda_forget_timing(hone_platform_instance *instance, hone_cuda_gpu *gpu)
{
    const cuda_driver *driver = &instance->driver;
    if (gpu->start != NULL) (void)driver->event_destroy(gpu->start);
    if (gpu->end != NULL) (void)driver->event_destroy(gpu->end);
    if (gpu->waiter != NULL) (void)driver->module_unload(gpu->waiter);
    gpu->start = gpu->end = NULL;
    gpu->waiter = NULL;
    hone_cuda_watch_end(&gpu->watch, &instance->allocator);
}

static cuda_result keep_waiting(
    const cuda_driver *driver, const hone_cuda_gpu *gpu, uint64_t nanoseconds, cuda_stream *stream)
{
    void *arguments[] = {&nanoseconds};
    if (gpu->wait == NULL) return CUDA_SUCCESS;
    return driver->launch(gpu->wait, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static cuda_result keep_busy(const cuda_driver *driver, const hone_cuda_gpu *gpu, const hone_timed_runs *runs)
{
    if (runs->flood != NULL)
        return driver->fill_async((cuda_address)(uintptr_t)runs->flood, 1, runs->flood_bytes, runs->stream);
    return keep_waiting(driver, gpu, wait_ns, runs->stream);
}

static hone_status start_runs(const hone_timed_runs *runs)
{
    hone_status status = HONE_OK;
    for (uint32_t i = 0; status == HONE_OK && i < runs->count; i++)
        status = runs->run(runs->ctx);
    return status;
}

// Whether the captured runs contain no work.
static bool is_empty(const cuda_driver *driver, cuda_graph *graph)
{
    size_t nodes = 1;
    return driver->graph_nodes != NULL && driver->graph_nodes(graph, NULL, &nodes) == CUDA_SUCCESS && nodes == 0;
}

// Captures all runs as one graph; NULL if that is not possible: a run waits, or the driver is old. A single run gains
// nothing from a graph, and is captured only for replays.
static cuda_graph_exec *capture(const cuda_driver *driver, hone_cuda_gpu *gpu, const hone_timed_runs *runs)
{
    cuda_graph *graph = NULL;
    cuda_graph_exec *exec = NULL;
    if ((runs->count < 2 && runs->replays == 0) || driver->begin_capture == NULL || driver->end_capture == NULL ||
        driver->graph_instantiate == NULL || driver->graph_launch == NULL || driver->graph_destroy == NULL ||
        driver->graph_exec_destroy == NULL)
        return NULL;
    if (driver->begin_capture(runs->stream, CUDA_CAPTURE_THREAD_LOCAL) != CUDA_SUCCESS) return NULL;
    atomic_store(&gpu->timed, runs->stream);
    hone_status status = start_runs(runs);
    atomic_store(&gpu->timed, NULL);
    cuda_result result = driver->end_capture(runs->stream, &graph);
    if (result != CUDA_SUCCESS || graph == NULL) return NULL;
    if (status == HONE_OK && is_empty(driver, graph)) *runs->out_elsewhere = true;
    if (status == HONE_OK && driver->graph_instantiate(&exec, graph, 0) != CUDA_SUCCESS) exec = NULL;
    (void)driver->graph_destroy(graph);
    return exec;
}

static hone_status measure(
    hone_platform_instance *instance,
    hone_cuda_gpu *gpu,
    const hone_timed_runs *runs,
    cuda_graph_exec *graph,
    double *out_ns,
    hone_error *err)
{
    const cuda_driver *driver = &instance->driver;
    float milliseconds = 0;
    cuda_result result = keep_busy(driver, gpu, runs);
    if (result == CUDA_SUCCESS) result = driver->event_record(gpu->start, runs->stream);
    if (result != CUDA_SUCCESS) return hone_cuda_check(instance, result, "cuEventRecord", err);
    hone_status status = HONE_OK;
    if (graph != NULL)
        status = hone_cuda_check(instance, driver->graph_launch(graph, runs->stream), "cuGraphLaunch", err);
    else if ((status = start_runs(runs)) != HONE_OK)
        hone_fail(err, status, "cuda", "run answered '%s'", hone_status_name(status));
    result = driver->event_record(gpu->end, runs->stream);
    if (result == CUDA_SUCCESS) result = driver->event_synchronize(gpu->end);
    if (status == HONE_OK) status = hone_cuda_check(instance, result, "the kernel", err);
    if (status != HONE_OK) return status;
    result = driver->event_elapsed(&milliseconds, gpu->start, gpu->end);
    *out_ns = (double)milliseconds * 1e6;
    return hone_cuda_check(instance, result, "cuEventElapsedTime", err);
}

// The first replay uploads the graph to the GPU.
static hone_status replay(
    hone_platform_instance *instance, const hone_timed_runs *runs, cuda_graph_exec *graph, hone_error *err)
{
    cuda_result result = CUDA_SUCCESS;
    if (graph == NULL)
        return hone_fail(
            err, HONE_UNSUPPORTED, "cuda",
            "its runs cannot be captured into a graph: they wait for the device, or ask what a capture forbids");
    for (uint32_t i = 0; i < runs->replays && result == CUDA_SUCCESS; i++)
        result = instance->driver.graph_launch(graph, runs->stream);
    return hone_cuda_check(instance, result, "cuGraphLaunch", err);
}

static void rest(double ns)
{
    double pause = rest_share * ns;
    if (pause < least_rest_ns) return;
    hone_os_sleep_ns((uint64_t)(pause < most_rest_ns ? pause : most_rest_ns));
}

static hone_status time_in_context(
    hone_platform_instance *instance, hone_cuda_gpu *gpu, const hone_timed_runs *runs, double *out_ns, hone_error *err)
{
    const cuda_driver *driver = &instance->driver;
    load_waiter(driver, gpu);
    hone_status status = hone_cuda_check(instance, make_events(driver, gpu), "cuEventCreate", err);
    if (status != HONE_OK) return status;
    cuda_graph_exec *graph = capture(driver, gpu, runs);
    if (runs->replays > 0) status = replay(instance, runs, graph, err);
    if (status == HONE_OK) status = measure(instance, gpu, runs, graph, out_ns, err);
    if (graph != NULL) (void)driver->graph_exec_destroy(graph);
    hone_cuda_watch_look(&gpu->watch); // before the GPU rests, when its clock drops
    if (status == HONE_OK) rest(*out_ns);
    return status;
}

hone_status hone_cuda_time(
    hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err)
{
    hone_cuda_gpu *gpu = NULL;
    cuda_context *before = NULL;
    hone_status status = hone_cuda_gpu_of(instance, runs->device, &gpu, err);
    if (status == HONE_OK) status = hone_cuda_enter(instance, gpu, &before, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&gpu->mutex);
    status = time_in_context(instance, gpu, runs, out_ns, err);
    hone_mutex_unlock(&gpu->mutex);
    hone_cuda_leave(instance, before);
    return status;
}

// Waits on the default stream, with which the streams that hone creates synchronise.
hone_status hone_cuda_hold_streams(
    hone_platform_instance *instance, const hone_device_info *device, uint64_t nanoseconds, hone_error *err)
{
    hone_cuda_gpu *gpu = NULL;
    cuda_context *before = NULL;
    hone_status status = hone_cuda_gpu_of(instance, device, &gpu, err);
    if (status == HONE_OK) status = hone_cuda_enter(instance, gpu, &before, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&gpu->mutex);
    load_waiter(&instance->driver, gpu);
    const cuda_result result = keep_waiting(&instance->driver, gpu, nanoseconds, NULL);
    hone_mutex_unlock(&gpu->mutex);
    status = hone_cuda_check(instance, result, "cuLaunchKernel", err);
    hone_cuda_leave(instance, before);
    return status;
}

hone_status hone_cuda_disturbed(
    hone_platform_instance *instance, const hone_device_info *device, unsigned *out_marks, hone_error *err)
{
    hone_cuda_gpu *gpu = NULL;
    cuda_context *before = NULL;
    hone_status status = hone_cuda_gpu_of(instance, device, &gpu, err);
    if (status == HONE_OK) status = hone_cuda_enter(instance, gpu, &before, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&gpu->mutex);
    hone_cuda_watch_begin(&gpu->watch, &instance->allocator, &instance->driver, gpu->device);
    if (out_marks != NULL) hone_cuda_watch_look(&gpu->watch);
    const unsigned marks = hone_cuda_watch_take(&gpu->watch);
    if (out_marks != NULL) *out_marks = marks;
    if (gpu->watch.reason[0] != '\0') status = hone_fail(err, HONE_UNAVAILABLE, "cuda.timing", "%s", gpu->watch.reason);
    hone_mutex_unlock(&gpu->mutex);
    hone_cuda_leave(instance, before);
    return status;
}
