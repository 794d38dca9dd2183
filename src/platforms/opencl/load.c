// Makes a kernel of the device from a plan: compiles its program or finds it in the cache, checks its requirements, and
// computes its launch.
#include "platforms/opencl/loaded.h"

#include "base/error.h"
#include "base/hash.h"
#include "pack/pack.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "opencl.load";

const hone_launch_rules hone_opencl_launch = {
    .grid = {INT32_MAX, INT32_MAX, INT32_MAX},
    .block = {65536, 65536, 65536},
    .cluster = {1, 1, 1},
    .threads = 65536,
    .has_local = true,
};

// Checking ------------------------------------------------------------------------------------------------------------

static hone_status check_items(const hone_opencl_loaded *loaded, opencl_kernel *kernel, hone_error *err)
{
    const hone_opencl_device *device = loaded->device;
    const size_t *local = loaded->local;
    size_t most = 0, items = local[0] * local[1] * local[2];
    for (int axis = 0; axis < 3; axis++)
        if (device->item_sizes[axis] > 0 && local[axis] > device->item_sizes[axis])
            return hone_fail(
                err, HONE_UNSUPPORTED, where, "its work-groups have %zu items along axis %d, %s takes %zu", local[axis],
                axis, device->name, device->item_sizes[axis]);
    if (loaded->instance->icd.get_group_info(kernel, device->id, OPENCL_KERNEL_GROUP_SIZE, sizeof most, &most, NULL) !=
            OPENCL_SUCCESS ||
        most == 0)
        most = device->group_items;
    if (items <= most) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "its work-groups have %zu items, and this kernel may have %zu on %s", items, most,
        device->name);
}

static hone_status check_local(const hone_opencl_loaded *loaded, opencl_kernel *kernel, hone_error *err)
{
    const hone_opencl_device *device = loaded->device;
    uint64_t wanted = 0;
    (void)loaded->instance->icd.get_group_info(
        kernel, device->id, OPENCL_KERNEL_LOCAL_BYTES, sizeof wanted, &wanted, NULL);
    for (uint32_t i = 0; i < loaded->count; i++)
        if (loaded->arguments[i].kind == HONE_ARGUMENT_LOCAL) wanted += loaded->arguments[i].as.bits;
    if (device->info.smem_bytes <= 0 || wanted <= (uint64_t)device->info.smem_bytes) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "its work-groups need %llu bytes of local memory, %s has %lld",
        (unsigned long long)wanted, device->name, (long long)device->info.smem_bytes);
}

static hone_status check_space(const hone_opencl_loaded *loaded, opencl_kernel *kernel, uint32_t index, hone_error *err)
{
    static const char *const names[] = {"global", "local", "constant", "private"};
    opencl_name space = 0;
    opencl_result result = loaded->instance->icd.get_argument_info(
        kernel, index, OPENCL_KERNEL_ARGUMENT_SPACE, sizeof space, &space, NULL);
    // A binary may lack this information.
    if (result != OPENCL_SUCCESS || space < OPENCL_SPACE_GLOBAL || space > OPENCL_SPACE_PRIVATE) return HONE_OK;
    const hone_argument_kind kind = loaded->arguments[index].kind;
    bool is_tensor = loaded->arguments[index].type == HONE_ARGUMENT_POINTER && kind != HONE_ARGUMENT_LOCAL;
    bool fits = is_tensor                     ? space == OPENCL_SPACE_GLOBAL || space == OPENCL_SPACE_CONSTANT
                : kind == HONE_ARGUMENT_LOCAL ? space == OPENCL_SPACE_LOCAL
                                              : space == OPENCL_SPACE_PRIVATE;
    if (fits) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "argument %u is %s memory in the kernel, and %s in the list", (unsigned)index,
        names[space - OPENCL_SPACE_GLOBAL],
        is_tensor                     ? "a tensor"
        : kind == HONE_ARGUMENT_LOCAL ? "local"
                                      : "a scalar");
}

static hone_status check_arguments(const hone_opencl_loaded *loaded, opencl_kernel *kernel, hone_error *err)
{
    uint32_t count = 0;
    opencl_result result =
        loaded->instance->icd.get_kernel_info(kernel, OPENCL_KERNEL_ARGUMENT_COUNT, sizeof count, &count, NULL);
    hone_status status = hone_opencl_check(loaded->instance, result, "clGetKernelInfo", err);
    if (status == HONE_OK && count != loaded->count)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the kernel takes %u arguments, %u are listed", (unsigned)count,
            (unsigned)loaded->count);
    for (uint32_t i = 0; status == HONE_OK && i < loaded->count; i++)
        status = check_space(loaded, kernel, i, err);
    return status;
}

// Binding -------------------------------------------------------------------------------------------------------------

// Also sets those that each run sets, so that an argument whose size the kernel does not accept is reported now.
static hone_status set_arguments(const hone_opencl_loaded *loaded, opencl_kernel *kernel, hone_error *err)
{
    for (uint32_t i = 0; i < loaded->count; i++) {
        const hone_argument *argument = &loaded->arguments[i];
        const bool is_local = argument->kind == HONE_ARGUMENT_LOCAL;
        opencl_result result = loaded->instance->icd.set_argument(
            kernel, i, is_local ? (size_t)argument->as.bits : argument->size, is_local ? NULL : &argument->as.bits);
        if (result == OPENCL_SUCCESS) continue;
        char what[80];
        snprintf(what, sizeof what, "argument %u, of %u bytes in the list", (unsigned)i, (unsigned)argument->size);
        return hone_opencl_check(loaded->instance, result, what, err);
    }
    return HONE_OK;
}

static hone_status make_kernel(const hone_opencl_loaded *loaded, hone_opencl_binding *binding, hone_error *err)
{
    opencl_result result = OPENCL_SUCCESS;
    binding->kernel = loaded->instance->icd.create_kernel(binding->program, loaded->entry, &result);
    if (result == OPENCL_INVALID_KERNEL_NAME)
        return hone_fail(err, HONE_NOT_FOUND, where, "the program has no kernel %s", loaded->entry);
    hone_status status = hone_opencl_check(loaded->instance, result, "clCreateKernel", err);
    if (status == HONE_OK) status = check_arguments(loaded, binding->kernel, err);
    if (status == HONE_OK) status = check_items(loaded, binding->kernel, err);
    if (status == HONE_OK) status = check_local(loaded, binding->kernel, err);
    return status == HONE_OK ? set_arguments(loaded, binding->kernel, err) : status;
}

hone_status hone_opencl_bind(
    const hone_opencl_loaded *loaded, opencl_context *context, hone_opencl_binding *binding, hone_error *err)
{
    const opencl_icd *icd = &loaded->instance->icd;
    opencl_result result = icd->retain_context(context);
    if (result != OPENCL_SUCCESS) return hone_opencl_check(loaded->instance, result, "clRetainContext", err);
    binding->context = context;
    hone_mutex_init_long(&binding->mutex);
    hone_status status = hone_opencl_build(
        loaded->instance, loaded->device, context, &loaded->source, &binding->program, &binding->digest, err);
    if (status == HONE_OK) status = make_kernel(loaded, binding, err);
    if (status != HONE_OK) hone_opencl_unbind(loaded, binding);
    return status;
}

void hone_opencl_unbind(const hone_opencl_loaded *loaded, hone_opencl_binding *binding)
{
    const opencl_icd *icd = &loaded->instance->icd;
    if (binding->context == NULL) return;
    if (binding->kernel != NULL) (void)icd->release_kernel(binding->kernel);
    if (binding->program != NULL) (void)icd->release_program(binding->program);
    if (binding->queue != NULL) (void)icd->release_queue(binding->queue);
    (void)icd->release_context(binding->context);
    hone_mutex_deinit(&binding->mutex);
    memset(binding, 0, sizeof *binding);
}

// Preparing -----------------------------------------------------------------------------------------------------------

// Collects the macros and the kernel's own options in one text, and the option that is needed to check the argument
// list.
static hone_status collect_options(const hone_plan *plan, hone_opencl_loaded *loaded, hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    hone_buffer *out = &loaded->options, macros;
    hone_buffer_init(&macros, loaded->instance->allocator);
    hone_status status = hone_launch_macros(&loaded->instance->allocator, plan, &macros, err);
    hone_buffer_text(out, "-cl-kernel-arg-info");
    for (const char *macro = macros.data; status == HONE_OK && macro < macros.data + macros.size;
         macro += strlen(macro) + 1) {
        if (strpbrk(macro, " \t\n\"'\\") != NULL)
            status = hone_fail(
                err, HONE_UNSUPPORTED, where, "%.80s: OpenCL's compilers take no macro with spaces or quotes", macro);
        hone_buffer_char(out, ' ');
        hone_buffer_text(out, macro);
    }
    hone_buffer_deinit(&macros);
    if (code->options != NULL) hone_buffer_format(out, " %s", code->options);
    // Headers of a pack's sources are in its folder.
    if (code->pack != NULL && strchr(code->pack->folder, ' ') == NULL)
        hone_buffer_format(out, " -I%s", code->pack->folder);
    return status == HONE_OK && out->failed ? hone_fail_memory(err, where) : status;
}

static hone_status check_scratch(const hone_opencl_loaded *loaded, hone_error *err)
{
    const hone_opencl_device *device = loaded->device;
    if (device->info.memory_bytes <= 0 || loaded->scratch_bytes <= (uint64_t)device->info.memory_bytes) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "its runs need %zu bytes of scratch memory, %s has %lld in all",
        loaded->scratch_bytes, device->name, (long long)device->info.memory_bytes);
}

static void take_extent(const hone_launch *launch, hone_opencl_loaded *loaded)
{
    for (int axis = 0; axis < 3; axis++) {
        loaded->local[axis] = launch->block[axis];
        loaded->global[axis] = (size_t)launch->grid[axis] * launch->block[axis];
    }
}

// Reads a pack's file, whose digest is checked each time, or takes the source that the program registered.
static hone_status take_code(const hone_plan *plan, hone_opencl_loaded *loaded, hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    hone_opencl_source *source = &loaded->source;
    source->name = plan->kernel->name;
    source->options = hone_buffer_string(&loaded->options);
    source->text = code->source;
    source->binary = code->binary;
    source->binary_size = code->binary_size;
    if (code->pack == NULL) return HONE_OK;
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_status status = hone_pack_read_file(variant->file, &loaded->file, err);
    if (status != HONE_OK) return status;
    if (hone_code_is_binary(variant->file->name)) {
        source->binary = loaded->file.data;
        source->binary_size = loaded->file.size;
    } else {
        source->text = hone_buffer_string(&loaded->file);
    }
    return HONE_OK;
}

static uint64_t digest_of(const hone_opencl_loaded *loaded, const hone_launch *launch)
{
    if (loaded->first.digest == 0) return 0;
    uint64_t code = hone_hash64_add(loaded->first.digest, loaded->entry, strlen(loaded->entry));
    code = hone_hash64_add(code, &loaded->scratch_bytes, sizeof loaded->scratch_bytes);
    return hone_launch_digest(code, launch, loaded->arguments, loaded->count);
}

static hone_status prepare_loaded(
    hone_platform_instance *instance, const hone_plan *plan, hone_opencl_loaded *loaded, hone_error *err)
{
    hone_launch launch;
    hone_status status = hone_opencl_device_of(instance, plan->device, &loaded->device, err);
    if (status == HONE_OK) status = hone_launch_read(&instance->allocator, plan, &hone_opencl_launch, &launch, err);
    if (status == HONE_OK)
        status = hone_launch_arguments(
            &instance->allocator, plan, &hone_opencl_launch, loaded->arguments, &loaded->count, err);
    if (status == HONE_OK)
        status = hone_launch_scratch(
            &instance->allocator, plan, loaded->arguments, loaded->count, &loaded->scratch_bytes, NULL, err);
    if (status == HONE_OK) status = check_scratch(loaded, err);
    if (status == HONE_OK) status = collect_options(plan, loaded, err);
    if (status == HONE_OK) status = take_code(plan, loaded, err);
    if (status != HONE_OK) return status;
    take_extent(&launch, loaded);
    loaded->entry = hone_code_of_plan(plan)->entry;
    status = hone_opencl_bind(loaded, atomic_load(&loaded->device->context), &loaded->first, err);
    if (status == HONE_OK) loaded->digest = digest_of(loaded, &launch);
    return status;
}

static void unload(hone_opencl_loaded *loaded)
{
    const hone_allocator allocator = loaded->instance->allocator;
    hone_opencl_binding *next = atomic_load(&loaded->first.next);
    while (next != NULL) {
        hone_opencl_binding *binding = next;
        next = atomic_load(&binding->next);
        hone_opencl_unbind(loaded, binding);
        hone_free(&allocator, binding);
    }
    hone_opencl_unbind(loaded, &loaded->first);
    hone_buffer_deinit(&loaded->file);
    hone_buffer_deinit(&loaded->options);
    hone_mutex_deinit(&loaded->growing);
    hone_free(&allocator, loaded);
}

static hone_status prepare_code(
    hone_platform_instance *instance, const hone_plan *plan, void **out_state, hone_error *err)
{
    hone_opencl_loaded *loaded = hone_alloc(&instance->allocator, sizeof *loaded);
    if (loaded == NULL) return hone_fail_memory(err, where);
    loaded->instance = instance;
    hone_mutex_init_long(&loaded->growing);
    hone_buffer_init(&loaded->options, instance->allocator);
    hone_buffer_init(&loaded->file, instance->allocator);
    hone_status status = prepare_loaded(instance, plan, loaded, err);
    if (status == HONE_OK)
        *out_state = loaded;
    else
        unload(loaded);
    return status;
}

hone_status hone_opencl_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code != NULL) return prepare_code(instance, plan, out_state, err);
    return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
}

void hone_opencl_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    (void)instance;
    if (kernel->code != NULL && state != NULL) unload(state);
    if (kernel->code == NULL && kernel->release != NULL) kernel->release(kernel, state);
}

uint64_t hone_opencl_digest(const hone_plan *plan)
{
    const hone_opencl_loaded *loaded = plan->state;
    return loaded->digest;
}
