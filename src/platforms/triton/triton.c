// Launches a variant of a pack in the same way as Triton's own launcher.
#include "platforms/triton/triton.h"

#include "base/error.h"
#include "pack/pack.h"
#include "platforms/cuda/cuda.h"
#include "platforms/cuda/loaded.h"
#include "platforms/shared/packages.h"
#include "platforms/triton/metadata.h"

#include <string.h>

static const char where[] = "triton.prepare";

static const hone_argument trailing_argument = {
    .kind = HONE_ARGUMENT_BITS, .type = HONE_ARGUMENT_POINTER, .size = sizeof(void *)};

static hone_status fail_many(hone_error *err)
{
    return hone_fail(err, HONE_UNSUPPORTED, where, "arguments: more than %d", HONE_MAX_ARGUMENTS);
}

// Checks that need no device ------------------------------------------------------------------------------------------

// The number of arguments in a list: its commas outside of brackets, plus one.
static uint32_t count_arguments(const char *list)
{
    uint32_t count = list[strspn(list, " ")] != '\0';
    int depth = 0;
    for (const char *at = list; *at != '\0'; at++) {
        if (*at == '(') depth++;
        if (*at == ')') depth--;
        if (*at == ',' && depth == 0) count++;
    }
    return count;
}

static hone_status check_count(
    const hone_cubin_function *function, const hone_triton_metadata *metadata, const char *arguments, hone_error *err)
{
    uint32_t listed = count_arguments(arguments);
    if (!function->says || function->count == listed + metadata->trailing) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "the binary takes %u parameters, and %u are listed, with %u that Triton %s adds (constexprs and integers that "
        "were specialised to 1 are none)",
        (unsigned)function->count, (unsigned)(listed + metadata->trailing), (unsigned)metadata->trailing,
        metadata->version);
}

static hone_status check_binary(
    const hone_code *code, const hone_triton_metadata *metadata, const hone_buffer *bytes, hone_error *err)
{
    hone_cubin_function function;
    hone_status status = hone_cubin_find(bytes->data, bytes->size, metadata->name, &function, err);
    if (status != HONE_OK) return status;
    if (function.capability != metadata->capability)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the binary is for sm_%d, its metadata says sm_%d", function.capability,
            metadata->capability);
    return check_count(&function, metadata, code->arguments, err);
}

// The list's maps must equal those that the binary was compiled for: it computes positions in shared memory from box
// and swizzle.
//   is_bound  whether the numbers in the list are those of a call
static hone_status check_maps(
    const hone_triton_metadata *metadata,
    const hone_argument *arguments,
    uint32_t count,
    bool is_bound,
    hone_error *err)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (arguments[i].kind != HONE_ARGUMENT_MAP || found++ >= metadata->descriptor_count) continue;
        const hone_triton_descriptor *wanted = &metadata->descriptors[found - 1];
        bool same = arguments[i].as.map.rank == wanted->rank;
        if (is_bound) same = same && arguments[i].as.map.swizzle == wanted->swizzle;
        for (uint32_t dim = 0; dim < wanted->rank && is_bound && same; dim++)
            same = arguments[i].as.map.last[dim] + 1u == wanted->box[dim];
        if (!same)
            return hone_fail(
                err, HONE_INCOMPATIBLE, where,
                "argument %u is a map with another box or swizzle than the binary's descriptor %u: %u dims, "
                "the last of %u elements, swizzle %u",
                (unsigned)i, (unsigned)found - 1, (unsigned)wanted->rank, (unsigned)wanted->box[wanted->rank - 1],
                (unsigned)wanted->swizzle);
    }
    if (found == metadata->descriptor_count) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "the binary takes %u tensor descriptors from the host, and %u are listed: each is map(TENSOR, "
        "SWIZZLE, BOX...), its sizes as i32 and its strides as i64",
        (unsigned)metadata->descriptor_count, (unsigned)found);
}

static hone_status triton_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    hone_triton_metadata metadata;
    hone_buffer bytes;
    (void)kernel;
    hone_status status = hone_triton_metadata_read(variant->facts, &metadata, err);
    if (status == HONE_OK && variant->file == NULL)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "has no file: name the cubin that Triton has written");
    if (status == HONE_OK && variant->code.arguments == NULL)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "does not list its arguments");
    if (status == HONE_OK && variant->code.scratch != NULL)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "scratch: is Triton's to say, in global_scratch_size");
    if (status != HONE_OK) return status;
    hone_buffer_init(&bytes, hone_allocator_system());
    status = hone_pack_read_file(variant->file, &bytes, err);
    if (status == HONE_OK) status = check_binary(&variant->code, &metadata, &bytes, err);
    hone_buffer_deinit(&bytes);
    return status;
}

// Compares the list, with the arguments that Triton adds, with those that the binary accepts.
static hone_status triton_fits(
    const hone_pack_variant *variant, const hone_argument *arguments, uint32_t count, hone_error *err)
{
    hone_argument all[HONE_MAX_ARGUMENTS] = {{.kind = HONE_ARGUMENT_BITS}};
    hone_cubin_function function;
    hone_triton_metadata metadata;
    hone_buffer bytes;
    hone_status status = hone_triton_metadata_read(variant->facts, &metadata, err);
    if (status != HONE_OK) return status;
    if (count + metadata.trailing > HONE_MAX_ARGUMENTS) return fail_many(err);
    status = check_maps(&metadata, arguments, count, false, err);
    if (status != HONE_OK) return status;
    memcpy(all, arguments, count * sizeof *all);
    for (uint32_t i = 0; i < metadata.trailing; i++)
        all[count++] = trailing_argument;
    hone_buffer_init(&bytes, hone_allocator_system());
    status = hone_pack_read_file(variant->file, &bytes, err);
    if (status == HONE_OK) status = hone_cubin_find(bytes.data, bytes.size, metadata.name, &function, err);
    if (status == HONE_OK && function.says) status = hone_cuda_compare_list(&function, all, count, err);
    hone_buffer_deinit(&bytes);
    return status;
}

// The launch ----------------------------------------------------------------------------------------------------------

// A binary runs on the GPU generation that it was compiled for; from 9.0 on Triton uses features that only the one chip
// has.
static hone_status check_device(const hone_triton_metadata *metadata, const hone_device_info *device, hone_error *err)
{
    const int own = metadata->capability, here = device->capability;
    if (own == here || (own < 90 && own / 10 == here / 10 && own <= here)) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "was compiled by Triton for sm_%d, %s is sm_%d: pack it for that one, too", own,
        device->name, here);
}

static void add_trailing(const hone_triton_metadata *metadata, hone_cuda_loaded *loaded)
{
    const uint32_t *grid = loaded->launch.grid;
    if (metadata->scratch_bytes > 0) {
        loaded->scratch_bytes = (size_t)metadata->scratch_bytes * grid[0] * grid[1] * grid[2];
        loaded->scratch_index = loaded->count;
    }
    for (uint32_t i = 0; i < metadata->trailing; i++)
        loaded->arguments[loaded->count++] = trailing_argument;
}

static hone_status set_launch(const hone_triton_metadata *metadata, hone_cuda_loaded *loaded, hone_error *err)
{
    hone_launch *launch = &loaded->launch;
    launch->block[0] = metadata->threads;
    launch->block[1] = launch->block[2] = 1;
    launch->shared_bytes = metadata->shared_bytes;
    launch->cluster[0] = metadata->blocks;
    launch->cluster[1] = launch->cluster[2] = 1;
    launch->flags |= (metadata->cooperative ? (uint32_t)HONE_CODE_COOPERATIVE : 0) |
                     (metadata->programmatic ? (uint32_t)HONE_CODE_PROGRAMMATIC_LAUNCH : 0);
    if (launch->grid[0] > INT32_MAX / metadata->blocks)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "its grid of %u programs is too large", (unsigned)launch->grid[0]);
    // A program of Triton is a cluster of blocks.
    launch->grid[0] *= metadata->blocks;
    if (loaded->count + metadata->trailing > HONE_MAX_ARGUMENTS) return fail_many(err);
    hone_status status = check_maps(metadata, loaded->arguments, loaded->count, true, err);
    add_trailing(metadata, loaded);
    return status;
}

static hone_status read_variant(
    hone_cuda_loaded *loaded, const hone_plan *plan, hone_cuda_image *image, hone_error *err)
{
    hone_triton_metadata metadata;
    const hone_allocator *allocator = &loaded->instance->allocator;
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    if (variant == NULL) return hone_fail(err, HONE_NOT_FOUND, where, "the pack has no variant of this config");
    hone_status status = hone_triton_metadata_read(variant->facts, &metadata, err);
    if (status == HONE_OK) status = check_device(&metadata, plan->device, err);
    if (status == HONE_OK) status = hone_launch_read(allocator, plan, &hone_cuda_launch, &loaded->launch, err);
    if (status == HONE_OK)
        status = hone_launch_arguments(allocator, plan, &hone_cuda_launch, loaded->arguments, &loaded->count, err);
    if (status == HONE_OK) status = set_launch(&metadata, loaded, err);
    if (status == HONE_OK) status = hone_pack_read_file(variant->file, &image->owned, err);
    if (status != HONE_OK) return status;
    hone_buffer_text(&image->text, metadata.name);
    image->entry = hone_buffer_string(&image->text);
    image->bytes = hone_buffer_string(&image->owned);
    image->size = image->owned.size;
    return image->text.failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status triton_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (plan->kernel->code != NULL) return hone_cuda_load(instance, plan, read_variant, out_state, err);
    return hone_cuda_prepare(instance, plan, out_state, out_scratch_bytes, err);
}

// Triton is needed only to make packs, not to run them.
static void triton_describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    hone_buffer_text(out, "packs are made with Triton, and run without: ");
    hone_package_describe("triton", out);
}

const hone_platform_ops hone_triton_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts = {.platform = HONE_TRITON, .name = "triton", .home = HONE_CUDA, .ranks = {{40, HONE_GPU}}},
    .prepare = triton_prepare,
    .release = hone_cuda_release,
    .run = hone_cuda_run,
    .describe = triton_describe,
    .digest = hone_cuda_digest,
    .check = triton_check,
    .fits = triton_fits,
    .wakes = true,
};
