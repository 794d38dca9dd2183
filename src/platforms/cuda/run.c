// A launch: the overhead of a cuda plan over the driver's own call. Nothing here allocates, locks or waits.
#include "platforms/cuda/borrowed.h"
#include "platforms/cuda/loaded.h"

static hone_status fail_launch(hone_platform_instance *instance, cuda_result result)
{
    atomic_store(&instance->failed, result);
    if (hone_cuda_is_sticky(result)) atomic_store(&instance->lost, result);
    return result == CUDA_LAUNCH_OUT_OF_RESOURCES ? HONE_UNSUPPORTED : HONE_KERNEL_FAILED;
}

static cuda_result launch_first(const hone_cuda_loaded *loaded, cuda_stream *stream, void **arguments)
{
    const cuda_driver *driver = &loaded->instance->driver;
    const hone_launch *shape = &loaded->launch;
    if (loaded->attribute_count == 0)
        return driver->launch(
            loaded->function, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
            shape->block[2], shape->shared_bytes, stream, arguments, NULL);
    const cuda_launch_config config = {
        .grid = {shape->grid[0], shape->grid[1], shape->grid[2]},
        .block = {shape->block[0], shape->block[1], shape->block[2]},
        .shared_bytes = shape->shared_bytes,
        .stream = stream,
        .attributes = (cuda_launch_attribute *)(uintptr_t)loaded->attributes,
        .attribute_count = loaded->attribute_count,
    };
    return driver->launch_ex(&config, loaded->function, arguments, NULL);
}

static cuda_result launch(const hone_cuda_loaded *loaded, cuda_stream *stream, void **arguments)
{
    const hone_launch *shape = &loaded->launch;
    const cuda_result result = launch_first(loaded, stream, arguments);
    if (result != CUDA_SUCCESS || loaded->finish == NULL) return result;
    return loaded->instance->driver.launch(
        loaded->finish, shape->finish_grid[0], shape->finish_grid[1], shape->finish_grid[2], shape->finish_block[0],
        shape->finish_block[1], shape->finish_block[2], 0, stream, arguments, NULL);
}

// In stream order: a later run on the stream may get the same memory.
static cuda_result launch_with_scratch(
    const hone_cuda_loaded *loaded, const hone_execution *execution, uint64_t *values, void **arguments)
{
    const cuda_driver *driver = &loaded->instance->driver;
    hone_cuda_borrowed memory;
    cuda_result result = hone_cuda_borrow(driver, execution, loaded->scratch_bytes, &memory);
    if (result != CUDA_SUCCESS) return result;
    values[loaded->scratch_index] = memory.address;
    result = launch(loaded, execution != NULL ? execution->stream : NULL, arguments);
    cuda_result returned = hone_cuda_return(driver, execution, &memory);
    return result != CUDA_SUCCESS ? result : returned;
}

// The legacy default stream cannot be captured.
void hone_cuda_note_capture(hone_platform_instance *instance, hone_cuda_gpu *gpu, void *stream, atomic_bool *captured)
{
    const cuda_driver *driver = &instance->driver;
    int captures = CUDA_CAPTURE_NONE;
    if (stream == NULL || driver->is_capturing == NULL) return;
    if (atomic_load_explicit(captured, memory_order_relaxed)) return;
    if (driver->is_capturing(stream, &captures) != CUDA_SUCCESS || captures == CUDA_CAPTURE_NONE) return;
    if (stream != atomic_load(&gpu->timed)) atomic_store_explicit(captured, true, memory_order_relaxed);
}

// Encodes the maps for a run, since the memory that they describe differs each time.
static cuda_result encode_maps(
    const hone_cuda_loaded *loaded, const hone_value *args, unsigned char (*maps)[HONE_MAP_BYTES], void **arguments)
{
    uint32_t map = 0;
    for (uint32_t i = 0; i < loaded->count; i++) {
        if (loaded->arguments[i].kind != HONE_ARGUMENT_MAP) continue;
        void *memory = hone_tensor_data(args[loaded->arguments[i].value].as.tensor);
        cuda_result result = hone_cuda_encode_map(&loaded->instance->driver, &loaded->maps[map], memory, maps[map]);
        if (result != CUDA_SUCCESS) return result;
        arguments[i] = maps[map++];
    }
    return CUDA_SUCCESS;
}

hone_status hone_cuda_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_cuda_loaded *loaded = plan->state;
    const cuda_driver *driver = &loaded->instance->driver;
    uint64_t values[HONE_MAX_ARGUMENTS];
    void *arguments[HONE_MAX_ARGUMENTS];
    _Alignas(HONE_MAP_ALIGN) unsigned char maps[HONE_CUDA_MAPS][HONE_MAP_BYTES];
    for (uint32_t i = 0; i < loaded->count; i++) {
        const hone_argument *argument = &loaded->arguments[i];
        values[i] = argument->as.bits;
        if (argument->kind == HONE_ARGUMENT_TENSOR)
            values[i] = (uint64_t)(uintptr_t)hone_tensor_data(args[argument->value].as.tensor);
        else if (argument->kind == HONE_ARGUMENT_SCALAR)
            values[i] = hone_argument_bits(argument->type, &args[argument->value]);
        arguments[i] = &values[i];
    }
    cuda_context *before = NULL;
    (void)driver->context_get_current(&before);
    if (before != loaded->context && driver->context_set_current(loaded->context) != CUDA_SUCCESS)
        return HONE_KERNEL_FAILED;
    cuda_stream *stream = execution != NULL ? execution->stream : NULL;
    hone_cuda_note_capture(loaded->instance, loaded->gpu, stream, &loaded->captured);
    cuda_result result = loaded->map_count > 0 ? encode_maps(loaded, args, maps, arguments) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = loaded->scratch_bytes == 0 ? launch(loaded, stream, arguments)
                                            : launch_with_scratch(loaded, execution, values, arguments);
    if (before != loaded->context) (void)driver->context_set_current(before);
    return result == CUDA_SUCCESS ? HONE_OK : fail_launch(loaded->instance, result);
}
