// A launch: the overhead of an opencl plan over clEnqueueNDRangeKernel.
//
// An OpenCL kernel object holds its arguments, so threads that run one plan take a lock to set them and start the
// kernel. Its program belongs to a context, and so does a tensor's buffer, to the caller's: the first run in a context
// that is new to the plan compiles the program for it (or finds it in the cache).
#include "hone/describe.h"
#include "platforms/opencl/loaded.h"

static hone_status fail_launch(hone_platform_instance *instance, opencl_result result)
{
    atomic_store(&instance->failed, result);
    if (hone_opencl_is_sticky(result)) atomic_store(&instance->lost, result);
    bool too_large = result == OPENCL_OUT_OF_RESOURCES || result == OPENCL_MEMORY_ALLOCATION_FAILURE ||
                     result == OPENCL_INVALID_WORK_GROUP_SIZE || result == OPENCL_INVALID_WORK_ITEM_SIZE;
    return too_large ? HONE_UNSUPPORTED : HONE_KERNEL_FAILED;
}

// Contexts ------------------------------------------------------------------------------------------------------------

// The context of a run: its queue's, else its buffers', else hone's.
static opencl_result find_context(
    const hone_opencl_loaded *loaded, const hone_value *args, opencl_queue *queue, opencl_context **out)
{
    const opencl_icd *icd = &loaded->instance->icd;
    *out = loaded->first.context;
    if (queue == loaded->device->queue) return OPENCL_SUCCESS;
    if (queue != NULL) return icd->get_queue_info(queue, OPENCL_QUEUE_CONTEXT, sizeof *out, out, NULL);
    for (uint32_t i = 0; i < loaded->count; i++) {
        if (loaded->arguments[i].kind != HONE_ARGUMENT_TENSOR) continue;
        opencl_memory *memory = args[loaded->arguments[i].value].as.tensor->data;
        if (memory != NULL) return icd->get_memory_info(memory, OPENCL_MEMORY_CONTEXT, sizeof *out, out, NULL);
    }
    return OPENCL_SUCCESS;
}

static hone_opencl_binding *find_binding(
    hone_opencl_loaded *loaded, const opencl_context *context, hone_opencl_binding **out_last)
{
    hone_opencl_binding *binding = &loaded->first;
    while (binding != NULL && binding->context != context) {
        *out_last = binding;
        binding = atomic_load_explicit(&binding->next, memory_order_acquire);
    }
    return binding;
}

static hone_status make_binding(
    hone_opencl_loaded *loaded, opencl_context *context, hone_opencl_binding *last, hone_opencl_binding **out)
{
    const opencl_icd *icd = &loaded->instance->icd;
    const hone_allocator *allocator = &loaded->instance->allocator;
    opencl_result result = OPENCL_SUCCESS;
    hone_opencl_binding *binding = hone_alloc(allocator, sizeof *binding);
    hone_status status = binding == NULL ? HONE_OUT_OF_MEMORY : hone_opencl_bind(loaded, context, binding, NULL);
    if (status == HONE_OK) {
        binding->queue = icd->create_queue(context, loaded->device->id, OPENCL_PROFILING, &result);
        if (binding->queue == NULL || result != OPENCL_SUCCESS) {
            hone_opencl_unbind(loaded, binding);
            status = fail_launch(loaded->instance, result);
        }
    }
    if (status != HONE_OK) {
        hone_free(allocator, binding);
        return status;
    }
    atomic_store_explicit(&last->next, binding, memory_order_release);
    *out = binding;
    return HONE_OK;
}

static hone_status need_binding(hone_opencl_loaded *loaded, opencl_context *context, hone_opencl_binding **out)
{
    hone_opencl_binding *last = &loaded->first;
    *out = find_binding(loaded, context, &last);
    if (*out != NULL) return HONE_OK;
    hone_mutex_lock(&loaded->growing);
    *out = find_binding(loaded, context, &last);
    hone_status status = *out != NULL ? HONE_OK : make_binding(loaded, context, last, out);
    hone_mutex_unlock(&loaded->growing);
    return status;
}

// Launching -----------------------------------------------------------------------------------------------------------

// A tensor that begins inside its buffer is passed as a view, which lives as long as the launch needs it.
static opencl_result view_of(const opencl_icd *icd, const hone_tensor *tensor, opencl_memory **out)
{
    int64_t bytes = 0, below = 0;
    if (hone_tensor_span(tensor, &bytes, &below) != HONE_OK) return OPENCL_INVALID_MEMORY;
    return hone_opencl_make_view(icd, tensor->data, tensor->byte_offset, (size_t)bytes, out);
}

static opencl_result set_tensor(
    const opencl_icd *icd, opencl_kernel *kernel, uint32_t index, const hone_tensor *tensor, opencl_memory **out_view)
{
    opencl_memory *memory = tensor->data;
    if (memory != NULL && tensor->byte_offset > 0) {
        opencl_result result = view_of(icd, tensor, out_view);
        if (result != OPENCL_SUCCESS) return result;
        memory = *out_view;
    }
    return icd->set_argument(kernel, index, sizeof memory, &memory);
}

// The memory of one run other than its tensors, which is released after the launch.
typedef struct run_memory {
    const hone_execution *execution; // may be NULL
    opencl_memory *own[HONE_MAX_ARGUMENTS];
    uint32_t count;
    void *lent; // lent by the host; NULL: none
} run_memory;

static opencl_memory *take_from_host(const hone_opencl_loaded *loaded, run_memory *memory)
{
    const hone_execution *execution = memory->execution;
    if (!hone_launch_is_lent(execution)) return NULL;
    memory->lent = execution->take(execution->memory, loaded->scratch_bytes);
    return memory->lent;
}

// Creates a buffer for this run alone, which the launch retains for as long as it needs it. None for 0 bytes.
static opencl_result set_scratch(
    const hone_opencl_loaded *loaded, const hone_opencl_binding *binding, uint32_t index, run_memory *memory)
{
    const opencl_icd *icd = &loaded->instance->icd;
    opencl_result result = OPENCL_SUCCESS;
    opencl_memory *scratch = loaded->scratch_bytes > 0 ? take_from_host(loaded, memory) : NULL;
    if (loaded->scratch_bytes > 0 && scratch == NULL) {
        scratch = icd->create_buffer(binding->context, OPENCL_READ_WRITE, loaded->scratch_bytes, NULL, &result);
        if (scratch != NULL) memory->own[memory->count++] = scratch;
    }
    return result == OPENCL_SUCCESS ? icd->set_argument(binding->kernel, index, sizeof scratch, &scratch) : result;
}

static opencl_result set_arguments(
    const hone_opencl_loaded *loaded, const hone_opencl_binding *binding, const hone_value *args, run_memory *memory)
{
    const opencl_icd *icd = &loaded->instance->icd;
    opencl_result result = OPENCL_SUCCESS;
    for (uint32_t i = 0; result == OPENCL_SUCCESS && i < loaded->count; i++) {
        const hone_argument *argument = &loaded->arguments[i];
        if (argument->kind == HONE_ARGUMENT_TENSOR) {
            opencl_memory *view = NULL;
            result = set_tensor(icd, binding->kernel, i, args[argument->value].as.tensor, &view);
            if (view != NULL) memory->own[memory->count++] = view;
        } else if (argument->kind == HONE_ARGUMENT_SCRATCH) {
            result = set_scratch(loaded, binding, i, memory);
        } else if (argument->kind == HONE_ARGUMENT_SCALAR) {
            uint64_t bits = hone_argument_bits(argument->type, &args[argument->value]);
            result = icd->set_argument(binding->kernel, i, argument->size, &bits);
        }
    }
    return result;
}

static void give_back(const hone_opencl_loaded *loaded, const run_memory *memory)
{
    const hone_execution *execution = memory->execution;
    for (uint32_t i = 0; i < memory->count; i++)
        (void)loaded->instance->icd.release_memory(memory->own[i]);
    if (memory->lent != NULL) execution->give_back(execution->memory, memory->lent, loaded->scratch_bytes);
}

static opencl_result launch(const hone_opencl_loaded *loaded, opencl_kernel *kernel, opencl_queue *queue)
{
    hone_opencl_device *device = loaded->device;
    const opencl_icd *icd = &loaded->instance->icd;
    bool timed = queue == device->queue && atomic_load_explicit(&device->timed, memory_order_relaxed) &&
                 device->event_count < OPENCL_TIMED_EVENTS;
    opencl_event **event = timed ? &device->events[device->event_count] : NULL;
    opencl_result result = icd->launch(queue, kernel, 3, NULL, loaded->global, loaded->local, 0, NULL, event);
    if (timed && result == OPENCL_SUCCESS) device->event_count++;
    return result;
}

static opencl_result start(
    const hone_opencl_loaded *loaded,
    hone_opencl_binding *binding,
    const hone_value *args,
    const hone_execution *execution,
    opencl_queue *queue)
{
    run_memory memory; // not fully initialised, since its list is long
    memory.execution = execution;
    memory.count = 0;
    memory.lent = NULL;
    hone_mutex_lock(&binding->mutex);
    opencl_result result = set_arguments(loaded, binding, args, &memory);
    if (result == OPENCL_SUCCESS) result = launch(loaded, binding->kernel, queue);
    hone_mutex_unlock(&binding->mutex);
    give_back(loaded, &memory);
    return result;
}

hone_status hone_opencl_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_opencl_loaded *loaded = plan->state;
    const opencl_icd *icd = &loaded->instance->icd;
    opencl_queue *queue = execution != NULL ? execution->stream : NULL;
    opencl_context *context = NULL;
    hone_opencl_binding *binding = NULL;
    opencl_result result = find_context(loaded, args, queue, &context);
    if (result != OPENCL_SUCCESS) return fail_launch(loaded->instance, result);
    hone_status status = need_binding(loaded, context, &binding);
    if (status != HONE_OK) return status;
    const bool is_own = binding == &loaded->first;
    const bool waits = queue == NULL && !is_own; // only this function can wait for that queue
    if (queue == NULL) queue = is_own ? loaded->device->queue : binding->queue;
    result = start(loaded, binding, args, execution, queue);
    if (result == OPENCL_SUCCESS && waits) result = icd->finish(queue);
    return result == OPENCL_SUCCESS ? HONE_OK : fail_launch(loaded->instance, result);
}
