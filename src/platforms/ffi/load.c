// Loads a variant of a pack as a function of tvm-ffi's C interface, and calls it.
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "platforms/ffi/instance.h"
#include "platforms/ffi/lent.h"
#include "platforms/ffi/returned.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "ffi.load";

enum { MOST = INT32_MAX };
const hone_launch_rules hone_ffi_launch = {
    {MOST, MOST, MOST}, {MOST, MOST, MOST}, {MOST, MOST, MOST}, .threads = MOST, .has_values = true};

// A kernel that is ready to run: plan->state.
typedef struct loaded_function {
    hone_platform_instance *instance;
    hone_library *library;
    hone_ffi_function *function;
    hone_ffi_list list;
    uint64_t digest;
    // On a GPU; NULL on the host.
    hone_ffi_driver *driver;
    hone_ffi_gpu *gpu;
    atomic_bool captured; // a graph of the host launches it, so its library stays loaded
} loaded_function;

// The plan ------------------------------------------------------------------------------------------------------------

hone_status hone_ffi_need_driver(hone_platform_instance *instance, hone_ffi_driver **out, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_mutex_lock(&instance->mutex);
    if (instance->driver == NULL)
        status = hone_ffi_driver_open(&instance->allocator, instance->log, &instance->driver, err);
    *out = instance->driver;
    hone_mutex_unlock(&instance->mutex);
    return status;
}

static hone_status find_device(loaded_function *made, const hone_device_info *device, hone_error *err)
{
    made->list.device = device->device;
    if (device->backend == HONE_CPU) return HONE_OK;
    hone_status status = hone_ffi_need_driver(made->instance, &made->driver, err);
    return status == HONE_OK ? hone_ffi_driver_gpu(made->driver, device, &made->gpu, err) : status;
}

static uint32_t count_passed(const hone_ffi_list *list)
{
    uint32_t count = 0;
    while (count < list->count && list->arguments[count].kind != HONE_ARGUMENT_RETURNED)
        count++;
    return count;
}

static hone_status take_list(loaded_function *made, const hone_plan *plan, hone_error *err)
{
    const hone_allocator system = hone_allocator_system();
    hone_ffi_list *list = &made->list;
    list->call = plan->call;
    hone_buffer_init(&list->objects, system);
    hone_status status =
        hone_launch_values(&system, plan, &hone_ffi_launch, list->arguments, &list->count, &list->objects, err);
    if (status == HONE_OK)
        status = hone_launch_scratch(&system, plan, list->arguments, list->count, &list->scratch_bytes, NULL, err);
    if (status == HONE_OK) list->passed = count_passed(list);
    return status;
}

// A digest of the library, the function and its arguments.
static uint64_t digest_of(const hone_ffi_list *list, const hone_pack_variant *variant)
{
    static const hone_launch launches_itself;
    uint64_t code = hone_hash64(variant->file->sha256, strlen(variant->file->sha256));
    code = hone_hash64_add(code, variant->code.entry, strlen(variant->code.entry));
    code = hone_hash64_add(code, list->objects.data, list->objects.size);
    code = hone_hash64_add(code, &list->scratch_bytes, sizeof list->scratch_bytes);
    return hone_launch_digest(code, &launches_itself, list->arguments, list->count);
}

static hone_status load(loaded_function *made, const hone_plan *plan, hone_error *err)
{
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_status status = take_list(made, plan, err);
    if (status == HONE_OK) status = find_device(made, plan->device, err);
    if (status == HONE_OK) status = hone_ffi_open_library(variant->file, &made->library, err);
    if (status == HONE_OK)
        status = hone_ffi_find_function(made->library, variant->file, variant->code.entry, &made->function, err);
    if (status != HONE_OK) return status;
    made->digest = digest_of(&made->list, variant);
    // So that a run allocates only when a second thread runs at the same time
    hone_ffi_frame *first = hone_ffi_frame_take(&made->list);
    if (first == NULL) return hone_fail_memory(err, where);
    uint32_t unused;
    (void)hone_ffi_frame_give_back(&made->list, first, &unused);
    return HONE_OK;
}

static void destroy(hone_platform_instance *instance, loaded_function *made)
{
    const hone_allocator system = hone_allocator_system();
    const bool captured = atomic_load_explicit(&made->captured, memory_order_relaxed);
    if (made->library != NULL && !captured) hone_library_close(&system, &made->library);
    hone_ffi_list_deinit(&made->list);
    hone_free(&instance->allocator, made);
}

hone_status hone_ffi_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code == NULL)
        return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
    loaded_function *made = hone_alloc(&instance->allocator, sizeof *made);
    if (made == NULL) return hone_fail_memory(err, where);
    memset(made, 0, sizeof *made);
    made->instance = instance;
    hone_status status = load(made, plan, err);
    if (status != HONE_OK) {
        destroy(instance, made);
        return status;
    }
    *out_state = made;
    // A GPU's scratch memory is borrowed for each run
    if (made->gpu == NULL) *out_scratch_bytes = made->list.scratch_bytes;
    return HONE_OK;
}

void hone_ffi_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    if (kernel->code != NULL)
        destroy(instance, state);
    else if (kernel->release != NULL)
        kernel->release(kernel, state);
}

uint64_t hone_ffi_digest(const hone_plan *plan)
{
    return ((const loaded_function *)plan->state)->digest;
}

// A run ---------------------------------------------------------------------------------------------------------------

// The state of one call, from its arguments to its message.
typedef struct one_call {
    const loaded_function *made;
    hone_ffi_frame *frame;
    const hone_value *args;
    hone_ffi_maker maker;
    char words[HONE_FFI_WORDS_SIZE]; // why it failed
} one_call;

static hone_status call_function(one_call *call)
{
    const loaded_function *made = call->made;
    const hone_ffi_runtime *runtime = &made->instance->runtime;
    hone_value result = hone_of_none();
    if (made->function(NULL, call->frame->values, (int32_t)made->list.passed, &result) != 0) {
        hone_ffi_runtime_words(runtime, call->words, sizeof call->words);
        return HONE_KERNEL_FAILED;
    }
    hone_status status = hone_ffi_take_results(&made->list, &call->maker, call->args, &result, call->words);
    if (result.tag >= HONE_FFI_FIRST_OBJECT) (void)runtime->drop(result.as.pointer);
    return status;
}

// Whether the stream has to be set in tvm-ffi's environment of this thread while the function runs. If it is set
// already, this only reads it, which takes a third of the time of setting and restoring it.
static bool needs_stream(const loaded_function *made, void *stream)
{
    const hone_ffi_runtime *runtime = &made->instance->runtime;
    const hone_device device = made->list.device;
    return made->gpu != NULL && (runtime->get_stream == NULL || runtime->get_stream(device.type, device.id) != stream);
}

// Calls the function with this thread's allocator set in the environment.
static hone_status call_in_environment(one_call *call)
{
    const loaded_function *made = call->made;
    const hone_ffi_runtime *runtime = &made->instance->runtime;
    const hone_device device = made->list.device;
    void *stream_before = NULL, *allocator_before = NULL;
    const hone_execution *execution = call->maker.execution;
    void *stream = execution != NULL ? execution->stream : NULL;
    const bool streams = needs_stream(made, stream);
    if (streams && runtime->set_stream(device.type, device.id, stream, &stream_before) != 0) {
        hone_ffi_runtime_words(runtime, call->words, sizeof call->words);
        return HONE_KERNEL_FAILED;
    }
    const bool is_set =
        runtime->set_allocator != NULL && runtime->set_allocator(hone_ffi_allocator(), 0, &allocator_before) == 0;
    const hone_ffi_maker *maker_before = hone_ffi_make_for(&call->maker);
    hone_status status = call_function(call);
    (void)hone_ffi_make_for(maker_before);
    if (is_set) (void)runtime->set_allocator(allocator_before, 0, NULL);
    if (streams) (void)runtime->set_stream(device.type, device.id, stream_before, NULL);
    return status;
}

static hone_status call_with_scratch(void *ctx, void *scratch)
{
    one_call *call = ctx;
    hone_ffi_frame_fill(&call->made->list, call->frame, call->args, scratch);
    return call_in_environment(call);
}

static hone_status start(loaded_function *made, one_call *call, const hone_execution *execution)
{
    if (made->gpu == NULL) return call_with_scratch(call, execution != NULL ? execution->scratch : NULL);
    return hone_ffi_gpu_run(
        made->driver, made->gpu, execution, made->list.scratch_bytes, &made->captured, call_with_scratch, call);
}

static hone_status give_back(const loaded_function *made, one_call *call, hone_status status)
{
    uint32_t argument;
    if (hone_ffi_frame_give_back(&made->list, call->frame, &argument)) return status;
    if (argument == made->list.passed) {
        snprintf(
            call->words, sizeof call->words,
            "keeps %lld tensors that tvm-ffi's environment has made for this call: they are hone's again when it has "
            "returned",
            (long long)atomic_load(&call->frame->made));
        return HONE_KERNEL_FAILED;
    }
    const uint32_t strong = (uint32_t)atomic_load(&call->frame->lent[argument].object.references);
    if (strong > 1)
        snprintf(
            call->words, sizeof call->words,
            "keeps %u references to argument %u when it has returned: what it is lent is hone's again then",
            (unsigned)strong - 1, (unsigned)argument);
    else
        snprintf(
            call->words, sizeof call->words, "gives up references to argument %u that it did not take",
            (unsigned)argument);
    return HONE_KERNEL_FAILED;
}

hone_status hone_ffi_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    loaded_function *made = plan->state;
    one_call call; // not fully initialised, since words is long
    call.made = made;
    call.args = args;
    call.words[0] = '\0';
    call.frame = hone_ffi_frame_take(&made->list);
    if (call.frame == NULL) return HONE_OUT_OF_MEMORY;
    call.maker = (hone_ffi_maker){call.frame, made->list.device, made->driver, execution};
    hone_status status = give_back(made, &call, start(made, &call, execution));
    return status == HONE_OK || call.words[0] == '\0' ? status : hone_plan_fail(plan, status, call.words);
}
