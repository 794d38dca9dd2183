// A run: makes buffers of the plugin from tensors, runs the module, and puts its results into the caller's memory.
//
// On the CPU nothing is copied: a buffer is the tensor's memory, and if the module takes a result as an argument that
// it may overwrite (tf.aliasing_output), its result is that memory, too. Three things are copied once: a result that is
// not such an argument, a result whose memory is also an argument's, and memory that is not aligned to 64 bytes. On a
// GPU arguments are views of their memory, and results are copied within the GPU's memory. A run has ended when its
// function returns.
#include "base/error.h"
#include "platforms/cuda/cuda.h"
#include "platforms/xla/loaded.h"

#include <string.h>

// The buffers of one run, which are destroyed at its end.
typedef struct in_flight {
    const hone_xla_loaded *loaded;
    pjrt_buffer *arguments[HONE_MAX_ARGUMENTS];
    pjrt_buffer *results[HONE_MAX_ARGUMENTS];
    uint64_t scalars[HONE_MAX_ARGUMENTS];
    hone_error why; // written if something fails
} in_flight;

static void keep_memory(void *data, void *context)
{
    (void)data;
    (void)context;
}

static hone_status make_view(in_flight *flight, const hone_xla_argument *argument, void *data, pjrt_buffer **out)
{
    const hone_xla_loaded *loaded = flight->loaded;
    pjrt_view arguments = {
        PJRT_HEAD(pjrt_view),     .client = loaded->client->client, .data = data,
        .dims = argument->dims,   .dim_count = argument->rank,      .type = argument->type,
        .device = loaded->device, .on_delete = keep_memory,
    };
    hone_status status = hone_xla_call(
        &loaded->client->plugin, PJRT_CLIENT_VIEW_OF_DEVICE_BUFFER, &arguments, "PJRT_Client_CreateViewOfDeviceBuffer",
        &flight->why);
    *out = arguments.buffer;
    return status;
}

static hone_status make_buffer(
    in_flight *flight,
    const hone_xla_argument *argument,
    const void *data,
    pjrt_host_semantics semantics,
    pjrt_buffer **out)
{
    const hone_xla_loaded *loaded = flight->loaded;
    const hone_xla_plugin *plugin = &loaded->client->plugin;
    pjrt_buffer_from_host arguments = {
        PJRT_HEAD(pjrt_buffer_from_host), .client = loaded->client->client, .data = data,
        .type = argument->type,           .dims = argument->dims,           .dim_count = argument->rank,
        .semantics = semantics,           .device = loaded->device,
    };
    hone_status status = hone_xla_call(
        plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &arguments, "PJRT_Client_BufferFromHostBuffer", &flight->why);
    if (status != HONE_OK) return status;
    hone_xla_destroy(plugin, PJRT_EVENT_DESTROY, arguments.done);
    *out = arguments.buffer;
    return HONE_OK;
}

// Whether a result shares its memory with an argument: the module may write the result before it has read the argument.
static bool is_shared(const hone_xla_loaded *loaded, const hone_xla_argument *result, const hone_value *args)
{
    const void *memory = hone_tensor_data(args[result->value].as.tensor);
    for (uint32_t i = 0; i < loaded->argument_count; i++) {
        const hone_xla_argument *other = &loaded->arguments[i];
        if (other->kind == HONE_ARGUMENT_TENSOR && other->value != result->value &&
            hone_tensor_data(args[other->value].as.tensor) == memory)
            return true;
    }
    return false;
}

static hone_status make_argument(in_flight *flight, uint32_t index, const hone_value *args)
{
    const hone_xla_loaded *loaded = flight->loaded;
    const hone_xla_argument *argument = &loaded->arguments[index];
    pjrt_buffer **out = &flight->arguments[index];
    if (argument->kind != HONE_ARGUMENT_TENSOR) {
        flight->scalars[index] = argument->kind == HONE_ARGUMENT_BITS
                                     ? argument->bits
                                     : hone_argument_bits(argument->scalar, &args[argument->value]);
        return make_buffer(flight, argument, &flight->scalars[index], PJRT_HOST_COPY, out);
    }
    void *data = hone_tensor_data(args[argument->value].as.tensor);
    if (!loaded->on_host) return make_view(flight, argument, data, out);
    pjrt_host_semantics semantics = PJRT_HOST_IMMUTABLE;
    if (argument->is_result) semantics = is_shared(loaded, argument, args) ? PJRT_HOST_COPY : PJRT_HOST_MUTABLE;
    return make_buffer(flight, argument, data, semantics, out);
}

static hone_status execute(in_flight *flight)
{
    const hone_xla_loaded *loaded = flight->loaded;
    const hone_xla_plugin *plugin = &loaded->client->plugin;
    pjrt_execute_options options = {PJRT_HEAD(pjrt_execute_options)};
    pjrt_buffer *const *const argument_lists[] = {flight->arguments};
    pjrt_buffer **const output_lists[] = {flight->results};
    pjrt_event *complete[] = {NULL};
    pjrt_execute arguments = {
        PJRT_HEAD(pjrt_execute),
        .loaded = loaded->loaded,
        .options = &options,
        .argument_lists = argument_lists,
        .device_count = 1,
        .argument_count = loaded->argument_count,
        .output_lists = output_lists,
        .complete = complete,
        .device = loaded->device == loaded->client->devices[0] ? NULL : loaded->device,
    };
    hone_status status =
        hone_xla_call(plugin, PJRT_LOADED_EXECUTE, &arguments, "PJRT_LoadedExecutable_Execute", &flight->why);
    if (status != HONE_OK || complete[0] == NULL) return status;
    pjrt_one await = {PJRT_HEAD(pjrt_one), .object = complete[0]};
    status = hone_xla_call(plugin, PJRT_EVENT_AWAIT, &await, "PJRT_Event_Await", &flight->why);
    hone_xla_destroy(plugin, PJRT_EVENT_DESTROY, complete[0]);
    return status;
}

static hone_status copy_result(in_flight *flight, void *to, void *from, size_t bytes)
{
    const hone_xla_loaded *loaded = flight->loaded;
    if (to == from || bytes == 0) return HONE_OK;
    if (!loaded->on_host)
        return hone_cuda_platform.copy(
            loaded->instance->cuda, loaded->info, HONE_COPY_WITHIN, (hone_place){to, 0}, (hone_place){from, 0}, bytes,
            &flight->why);
    memcpy(to, from, bytes);
    return HONE_OK;
}

static hone_status take_results(in_flight *flight, const hone_value *args)
{
    const hone_xla_loaded *loaded = flight->loaded;
    hone_status status = HONE_OK;
    for (uint32_t i = 0; status == HONE_OK && i < loaded->result_count; i++) {
        const hone_xla_result *result = &loaded->results[i];
        pjrt_get get = {PJRT_HEAD(pjrt_get), .object = flight->results[i]};
        status = hone_xla_call(
            &loaded->client->plugin, PJRT_BUFFER_DEVICE_POINTER, &get, "PJRT_Buffer_OpaqueDeviceMemoryDataPointer",
            &flight->why);
        if (status == HONE_OK)
            status = copy_result(flight, hone_tensor_data(args[result->value].as.tensor), get.value, result->bytes);
    }
    return status;
}

static void land(in_flight *flight)
{
    const hone_xla_loaded *loaded = flight->loaded;
    for (uint32_t i = 0; i < loaded->argument_count; i++)
        hone_xla_destroy(&loaded->client->plugin, PJRT_BUFFER_DESTROY, flight->arguments[i]);
    for (uint32_t i = 0; i < loaded->result_count; i++)
        hone_xla_destroy(&loaded->client->plugin, PJRT_BUFFER_DESTROY, flight->results[i]);
}

// A run only returns a status: its message is kept until it is queried.
static hone_status note_failure(const in_flight *flight)
{
    hone_platform_instance *instance = flight->loaded->instance;
    hone_mutex_lock(&instance->telling);
    instance->failure = flight->why;
    hone_mutex_unlock(&instance->telling);
    return HONE_KERNEL_FAILED;
}

bool hone_xla_last_failure(hone_platform_instance *instance, hone_error *err)
{
    hone_mutex_lock(&instance->telling);
    *err = instance->failure;
    instance->failure.status = HONE_OK;
    hone_mutex_unlock(&instance->telling);
    return err->status != HONE_OK;
}

// The plugin would run on its own streams, outside of the graph. That is not an error of the kernel, which is not
// disabled.
static hone_status refuse_capture(in_flight *flight)
{
    hone_fail(
        &flight->why, HONE_UNAVAILABLE, "xla.run",
        "the stream is being captured into a graph, and kernels of XLA run on streams of their own: choose another "
        "kernel "
        "for this call before the capture begins (hone.override, HONE_DENY)");
    (void)note_failure(flight);
    return HONE_UNAVAILABLE;
}

hone_status hone_xla_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_xla_loaded *loaded = plan->state;
    in_flight flight;
    hone_status status = HONE_OK;
    flight.loaded = loaded;
    memset(flight.arguments, 0, loaded->argument_count * sizeof flight.arguments[0]);
    memset(flight.results, 0, loaded->result_count * sizeof flight.results[0]);
    // The plugin has its own streams, so work that was started on the caller's stream must end first.
    void *stream = execution != NULL ? execution->stream : NULL;
    if (!loaded->on_host && hone_cuda_platform.is_capturing(loaded->instance->cuda, loaded->info, stream))
        return refuse_capture(&flight);
    if (!loaded->on_host)
        status = hone_cuda_platform.synchronize(loaded->instance->cuda, loaded->info, stream, &flight.why);
    for (uint32_t i = 0; status == HONE_OK && i < loaded->argument_count; i++)
        status = make_argument(&flight, i, args);
    if (status == HONE_OK) status = execute(&flight);
    if (status == HONE_OK) status = take_results(&flight, args);
    land(&flight);
    return status == HONE_OK ? HONE_OK : note_failure(&flight);
}
