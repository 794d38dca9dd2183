// Makes a function of the device from a plan: compiles or reads the code, loads it, checks its requirements, and
// computes its launch.
#include "platforms/cuda/loaded.h"

#include "base/error.h"
#include "base/hash.h"
#include "pack/pack.h"
#include "platforms/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "cuda.load";

const hone_launch_rules hone_cuda_launch = {
    .grid = {INT32_MAX, 65535, 65535},
    .block = {1024, 1024, 64},
    .cluster = {16, 16, 16},
    .threads = 1024,
    .has_maps = true,
};

// Loading -------------------------------------------------------------------------------------------------------------

// The older call, whose compiler of PTX gives messages that the newer call does not.
static hone_status load_module(
    hone_platform_instance *instance, const hone_cuda_image *image, hone_cuda_loaded *loaded, hone_error *err)
{
    enum { LOG_SIZE = 2048 };
    char log[LOG_SIZE] = "";
    int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)LOG_SIZE};
    const cuda_driver *driver = &instance->driver;
    cuda_result result = driver->module_load(&loaded->module, image->bytes, 2, options, values);
    if (result != CUDA_SUCCESS) {
        loaded->module = NULL;
        hone_status status = hone_cuda_check(instance, result, "cuModuleLoadDataEx", err);
        log[LOG_SIZE - 1] = '\0';
        if (log[0] != '\0' && err != NULL)
            status = hone_fail(err, status, where, "the driver does not load the code (%d): %.180s", result, log);
        return status;
    }
    result = driver->module_get_function(&loaded->function, loaded->module, image->entry);
    if (result == CUDA_SUCCESS && image->finish != NULL)
        result = driver->module_get_function(&loaded->finish, loaded->module, image->finish);
    return hone_cuda_check(instance, result, "cuModuleGetFunction", err);
}

static cuda_result find_function(
    const cuda_driver *driver, cuda_library *library, const char *name, cuda_function **out)
{
    cuda_kernel *kernel = NULL;
    cuda_result result = driver->library_get_kernel(&kernel, library, name);
    return result == CUDA_SUCCESS ? driver->kernel_get_function(out, kernel) : result;
}

// *out_missing: the function that the code lacks.
static cuda_result load_library(
    const cuda_driver *driver, const hone_cuda_image *image, hone_cuda_loaded *loaded, const char **out_missing)
{
    cuda_result result = driver->library_load(&loaded->library, image->bytes, NULL, NULL, 0, NULL, NULL, 0);
    if (result != CUDA_SUCCESS) loaded->library = NULL;
    *out_missing = image->entry;
    if (result == CUDA_SUCCESS) result = find_function(driver, loaded->library, image->entry, &loaded->function);
    if (result != CUDA_SUCCESS || image->finish == NULL) return result;
    *out_missing = image->finish;
    return find_function(driver, loaded->library, image->finish, &loaded->finish);
}

static bool has_libraries(const cuda_driver *driver)
{
    return driver->library_load != NULL && driver->library_unload != NULL && driver->library_get_kernel != NULL &&
           driver->kernel_get_function != NULL;
}

// Loads with the newer call if the driver has it; if that refuses, tries the older call for its error message.
static hone_status load(
    hone_platform_instance *instance, const hone_cuda_image *image, hone_cuda_loaded *loaded, hone_error *err)
{
    const cuda_driver *driver = &instance->driver;
    const char *missing = NULL;
    if (!has_libraries(driver)) return load_module(instance, image, loaded, err);
    cuda_result result = load_library(driver, image, loaded, &missing);
    if (result == CUDA_SUCCESS) return HONE_OK;
    if (result == CUDA_NOT_FOUND)
        return hone_fail(err, HONE_NOT_FOUND, where, "the code has no function %s (is it extern \"C\"?)", missing);
    if (hone_cuda_is_sticky(result)) return hone_cuda_check(instance, result, "cuLibraryLoadData", err);
    if (loaded->library != NULL) (void)driver->library_unload(loaded->library);
    loaded->library = NULL;
    return load_module(instance, image, loaded, err);
}

// Reading -------------------------------------------------------------------------------------------------------------

// Headers of a pack's sources are in its folder.
static void put_options(const hone_code *code, const char *options, hone_buffer *out)
{
    hone_buffer_format(out, "%s %s", options != NULL ? options : "", code->options != NULL ? code->options : "");
    if (code->pack != NULL && strchr(code->pack->folder, ' ') == NULL)
        hone_buffer_format(out, " -I%s", code->pack->folder);
}

static hone_status compile(
    const hone_cuda_loaded *loaded,
    const hone_plan *plan,
    const char *text,
    const char *options,
    hone_buffer *out,
    hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    hone_platform_instance *instance = loaded->instance;
    char name[HONE_NAME_SIZE + 8];
    hone_buffer macros, all;
    hone_buffer_init(&macros, instance->allocator);
    hone_buffer_init(&all, instance->allocator);
    put_options(code, options, &all);
    snprintf(name, sizeof name, "%.*s.cu", HONE_NAME_SIZE - 1, plan->kernel->name);
    hone_status status = hone_launch_macros(&instance->allocator, plan, &macros, err);
    if (status == HONE_OK && all.failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK) {
        const hone_cuda_source source = {
            .text = text,
            .name = name,
            .macros = hone_buffer_string(&macros),
            .macros_size = macros.size,
            .options = hone_buffer_string(&all),
            .capability = loaded->gpu->info.capability,
        };
        status = hone_cuda_compile(&instance->compiler, &source, out, err);
    }
    hone_buffer_deinit(&macros);
    hone_buffer_deinit(&all);
    return status;
}

// Reads the file of a pack, whose digest is checked each time.
static hone_status read_pack(
    const hone_cuda_loaded *loaded, const hone_plan *plan, const char *options, hone_buffer *out, hone_error *err)
{
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_buffer text;
    if (hone_code_is_binary(variant->file->name)) return hone_pack_read_file(variant->file, out, err);
    hone_buffer_init(&text, out->allocator);
    hone_status status = hone_pack_read_file(variant->file, &text, err);
    if (status == HONE_OK) status = compile(loaded, plan, hone_buffer_string(&text), options, out, err);
    hone_buffer_deinit(&text);
    return status;
}

hone_status hone_cuda_read_code(
    hone_cuda_loaded *loaded, const hone_plan *plan, const char *options, hone_cuda_image *image, hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    const hone_allocator *allocator = &loaded->instance->allocator;
    hone_status status = hone_launch_read(allocator, plan, &hone_cuda_launch, &loaded->launch, err);
    if (status == HONE_OK)
        status = hone_launch_arguments(allocator, plan, &hone_cuda_launch, loaded->arguments, &loaded->count, err);
    if (status == HONE_OK)
        status = hone_launch_scratch(
            allocator, plan, loaded->arguments, loaded->count, &loaded->scratch_bytes, &loaded->scratch_index, err);
    if (status == HONE_OK && code->pack != NULL)
        status = read_pack(loaded, plan, options, &image->owned, err);
    else if (status == HONE_OK && code->binary == NULL)
        status = compile(loaded, plan, code->source, options, &image->owned, err);
    image->entry = code->entry;
    image->finish = code->finish;
    image->bytes = code->binary != NULL ? code->binary : hone_buffer_string(&image->owned);
    image->size = code->binary != NULL ? code->binary_size : image->owned.size;
    return status;
}

static hone_status read_plainly(
    hone_cuda_loaded *loaded, const hone_plan *plan, hone_cuda_image *image, hone_error *err)
{
    return hone_cuda_read_code(loaded, plan, NULL, image, err);
}

static uint64_t digest_of(const hone_cuda_loaded *loaded, const hone_cuda_image *image)
{
    uint64_t code = hone_hash64(image->bytes, image->size);
    code = hone_hash64_add(code, image->entry, strlen(image->entry));
    if (image->finish != NULL) code = hone_hash64_add(code, image->finish, strlen(image->finish));
    code = hone_hash64_add(code, &loaded->scratch_bytes, sizeof loaded->scratch_bytes);
    return hone_launch_digest(code, &loaded->launch, loaded->arguments, loaded->count);
}

static hone_status read_and_load(hone_cuda_loaded *loaded, const hone_plan *plan, hone_cuda_read *read, hone_error *err)
{
    hone_cuda_image image = {.entry = NULL};
    hone_buffer_init(&image.owned, loaded->instance->allocator);
    hone_buffer_init(&image.text, loaded->instance->allocator);
    hone_status status = read(loaded, plan, &image, err);
    if (status == HONE_OK) loaded->digest = digest_of(loaded, &image);
    if (status == HONE_OK) status = load(loaded->instance, &image, loaded, err);
    hone_buffer_deinit(&image.owned);
    hone_buffer_deinit(&image.text);
    return status;
}

// Checking ------------------------------------------------------------------------------------------------------------

static hone_status check_threads(
    const cuda_driver *driver, cuda_function *function, const uint32_t block[3], hone_error *err)
{
    int most = 0, registers = 0;
    uint32_t threads = block[0] * block[1] * block[2];
    if (driver->function_get_attribute(&most, CUDA_FUNCTION_MAX_THREADS, function) != CUDA_SUCCESS ||
        threads <= (uint32_t)most)
        return HONE_OK;
    (void)driver->function_get_attribute(&registers, CUDA_FUNCTION_REGISTERS, function);
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "its block has %u threads, and with %d registers each at most %d fit",
        (unsigned)threads, registers, most);
}

static hone_status allow_shared(
    hone_platform_instance *instance, const hone_cuda_gpu *gpu, const hone_cuda_loaded *loaded, hone_error *err)
{
    enum { WITHOUT_ASKING = 48 << 10 };
    const cuda_driver *driver = &instance->driver;
    int fixed = 0;
    (void)driver->function_get_attribute(&fixed, CUDA_FUNCTION_STATIC_SHARED, loaded->function);
    int64_t wanted = (int64_t)loaded->launch.shared_bytes + fixed;
    if (gpu->info.smem_bytes > 0 && wanted > gpu->info.smem_bytes)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "its blocks need %lld bytes of shared memory, %s has %lld", (long long)wanted,
            gpu->name, (long long)gpu->info.smem_bytes);
    if (wanted <= WITHOUT_ASKING) return HONE_OK;
    cuda_result result = driver->function_set_attribute(
        loaded->function, CUDA_FUNCTION_MAX_DYNAMIC_SHARED, (int)loaded->launch.shared_bytes);
    return hone_cuda_check(instance, result, "cuFuncSetAttribute of shared memory", err);
}

static hone_status check_scratch(const cuda_driver *driver, const hone_cuda_loaded *loaded, hone_error *err)
{
    const hone_cuda_gpu *gpu = loaded->gpu;
    const size_t wanted = loaded->scratch_bytes;
    if (wanted == 0) return HONE_OK;
    if (gpu->info.memory_bytes > 0 && wanted > (uint64_t)gpu->info.memory_bytes)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "its runs need %zu bytes of scratch memory, %s has %lld in all", wanted,
            gpu->name, (long long)gpu->info.memory_bytes);
    if (driver->allocate_async != NULL && driver->free_async != NULL) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "its scratch memory needs a driver of CUDA 11.2 or later (this one: %s)",
        gpu->driver);
}

// Compares the arguments with the binary's own description, which an older driver does not provide.
static hone_status check_parameters(
    const cuda_driver *driver, const hone_cuda_loaded *loaded, cuda_function *of, hone_error *err)
{
    hone_cubin_function function = {.says = driver->function_get_parameter != NULL};
    size_t offset = 0, size = 0;
    if (!function.says) return HONE_OK;
    while (function.count < HONE_CUBIN_PARAMETERS &&
           driver->function_get_parameter(of, function.count, &offset, &size) == CUDA_SUCCESS) {
        function.parameters[function.count].offset = (uint32_t)offset;
        function.parameters[function.count++].size = (uint32_t)size;
    }
    return hone_cuda_compare_list(&function, loaded->arguments, loaded->count, err);
}

static hone_status check_function(
    const cuda_driver *driver,
    const hone_cuda_loaded *loaded,
    cuda_function *function,
    const uint32_t block[3],
    hone_error *err)
{
    hone_status status = check_parameters(driver, loaded, function, err);
    return status == HONE_OK ? check_threads(driver, function, block, err) : status;
}

// Attributes ----------------------------------------------------------------------------------------------------------

static cuda_launch_attribute *next_attribute(hone_cuda_loaded *loaded, int id)
{
    cuda_launch_attribute *attribute = &loaded->attributes[loaded->attribute_count++];
    attribute->id = id;
    attribute->value.number = 1;
    return attribute;
}

static hone_status set_cluster(hone_platform_instance *instance, hone_cuda_loaded *loaded, hone_error *err)
{
    const uint32_t *size = loaded->launch.cluster, *grid = loaded->launch.grid;
    uint32_t blocks = size[0] * size[1] * size[2];
    if (blocks == 1) return HONE_OK;
    for (int axis = 0; axis < 3; axis++)
        if (grid[axis] % size[axis] != 0)
            return hone_fail(
                err, HONE_UNSUPPORTED, where, "its grid of %u blocks does not divide into clusters of %u",
                (unsigned)grid[axis], (unsigned)size[axis]);
    cuda_launch_attribute *attribute = next_attribute(loaded, CUDA_LAUNCH_CLUSTER);
    attribute->value.cluster.x = size[0];
    attribute->value.cluster.y = size[1];
    attribute->value.cluster.z = size[2];
    if (blocks <= 8) return HONE_OK;
    cuda_result result =
        instance->driver.function_set_attribute(loaded->function, CUDA_FUNCTION_NON_PORTABLE_CLUSTER, 1);
    return hone_cuda_check(instance, result, "cuFuncSetAttribute of clusters", err);
}

static hone_status set_attributes(hone_platform_instance *instance, hone_cuda_loaded *loaded, hone_error *err)
{
    hone_status status = set_cluster(instance, loaded, err);
    if ((loaded->launch.flags & HONE_CODE_COOPERATIVE) != 0) next_attribute(loaded, CUDA_LAUNCH_COOPERATIVE);
    if ((loaded->launch.flags & HONE_CODE_PROGRAMMATIC_LAUNCH) != 0) next_attribute(loaded, CUDA_LAUNCH_PROGRAMMATIC);
    if (status == HONE_OK && loaded->attribute_count > 0 && instance->driver.launch_ex == NULL)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "clusters and launch flags need a driver of CUDA 11.8 or later (this one: %s)", loaded->gpu->driver);
    return status;
}

// ------------------------------------------------------------------------------------------------------------------

static hone_status prepare_loaded(
    hone_platform_instance *instance,
    const hone_plan *plan,
    hone_cuda_read *read,
    hone_cuda_loaded *loaded,
    hone_error *err)
{
    hone_status status = read_and_load(loaded, plan, read, err);
    if (status == HONE_OK) status = hone_cuda_read_maps(loaded, plan, err);
    if (status == HONE_OK)
        status = check_function(&instance->driver, loaded, loaded->function, loaded->launch.block, err);
    if (status == HONE_OK && loaded->finish != NULL)
        status = check_function(&instance->driver, loaded, loaded->finish, loaded->launch.finish_block, err);
    if (status == HONE_OK) status = check_scratch(&instance->driver, loaded, err);
    if (status == HONE_OK) status = allow_shared(instance, loaded->gpu, loaded, err);
    return status == HONE_OK ? set_attributes(instance, loaded, err) : status;
}

static void unload(hone_cuda_loaded *loaded)
{
    const cuda_driver *driver = &loaded->instance->driver;
    bool captured = atomic_load_explicit(&loaded->captured, memory_order_relaxed);
    if (loaded->library != NULL && !captured) (void)driver->library_unload(loaded->library);
    if (loaded->module != NULL && !captured) (void)driver->module_unload(loaded->module);
    hone_free(&loaded->instance->allocator, loaded);
}

hone_status hone_cuda_load(
    hone_platform_instance *instance, const hone_plan *plan, hone_cuda_read *read, void **out_state, hone_error *err)
{
    cuda_context *before = NULL;
    hone_cuda_loaded *loaded = hone_alloc(&instance->allocator, sizeof *loaded);
    if (loaded == NULL) return hone_fail_memory(err, where);
    loaded->instance = instance;
    hone_status status = hone_cuda_gpu_of(instance, plan->device, &loaded->gpu, err);
    if (status == HONE_OK) status = hone_cuda_enter(instance, loaded->gpu, &before, err);
    if (status != HONE_OK) {
        hone_free(&instance->allocator, loaded);
        return status;
    }
    loaded->context = atomic_load(&loaded->gpu->context);
    status = prepare_loaded(instance, plan, read, loaded, err);
    if (status == HONE_OK)
        *out_state = loaded;
    else
        unload(loaded);
    hone_cuda_leave(instance, before);
    return status;
}

// Prepares a kernel with its own function, for example a library's: it finds the device's context current, and keeps it
// for its runs.
static hone_status prepare_own(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    hone_cuda_gpu *gpu = NULL;
    cuda_context *before = NULL;
    if (plan->kernel->prepare == NULL) return HONE_OK;
    hone_status status = hone_cuda_gpu_of(instance, plan->device, &gpu, err);
    if (status == HONE_OK) status = hone_cuda_enter(instance, gpu, &before, err);
    if (status != HONE_OK) return status;
    status = plan->kernel->prepare(plan, out_state, out_scratch_bytes, err);
    hone_cuda_leave(instance, before);
    return status;
}

hone_status hone_cuda_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code != NULL) return hone_cuda_load(instance, plan, read_plainly, out_state, err);
    return prepare_own(instance, plan, out_state, out_scratch_bytes, err);
}

void hone_cuda_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    hone_cuda_loaded *loaded = state;
    cuda_context *before = NULL;
    if (kernel->code == NULL) {
        if (kernel->release != NULL) kernel->release(kernel, state);
        return;
    }
    if (loaded == NULL || hone_cuda_enter(instance, loaded->gpu, &before, NULL) != HONE_OK) return;
    unload(loaded);
    hone_cuda_leave(instance, before);
}

uint64_t hone_cuda_digest(const hone_plan *plan)
{
    const hone_cuda_loaded *loaded = plan->state;
    return loaded->digest;
}
