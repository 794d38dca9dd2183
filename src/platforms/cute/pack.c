// Checks a kernel of cute in a pack, as far as possible without a GPU.
#include "platforms/cute/pack.h"

#include "base/error.h"
#include "base/json.h"
#include "pack/pack.h"
#include "platforms/cuda/cubin.h"
#include "platforms/cuda/cuda.h"
#include "platforms/cute/export.h"
#include "platforms/native/kernel.h"

#include <string.h>

static const char where[] = "cute.pack";

// Compares the size of each parameter, in bytes, which the packer has read from the binary: {"parameters": [8, 8, 8, 4,
// 4, 4]}.
static hone_status compare_sizes(const json_t *sizes, const hone_cubin_function *function, hone_error *err)
{
    const json_t *size;
    size_t i;
    if (json_array_size(sizes) != function->count)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "facts: parameters: has %zu, the binary takes %u", json_array_size(sizes),
            (unsigned)function->count);
    json_array_foreach(sizes, i, size)
    {
        if (json_is_integer(size) && json_integer_value(size) == function->parameters[i].size) continue;
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "facts: parameters[%zu]: the binary's has %u bytes", i,
            (unsigned)function->parameters[i].size);
    }
    return HONE_OK;
}

static hone_status compare_binary(const json_t *sizes, const hone_pack_variant *variant, hone_error *err)
{
    hone_cubin_function function;
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_status status = hone_pack_read_file(variant->file, &bytes, err);
    if (status == HONE_OK) status = hone_cubin_find(bytes.data, bytes.size, variant->code.entry, &function, err);
    if (status == HONE_OK && function.says) status = compare_sizes(sizes, &function, err);
    hone_buffer_deinit(&bytes);
    return status;
}

static hone_status check_parameters(const hone_pack_variant *variant, hone_error *err)
{
    json_t *facts = NULL;
    hone_status status = hone_json_parse(variant->facts, strlen(variant->facts), &facts, err);
    if (status != HONE_OK) return status;
    const json_t *sizes = json_object_get(facts, "parameters");
    if (json_object_size(facts) != 1 || !json_is_array(sizes))
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "facts: of a cubin are {\"parameters\": [bytes of each]}, or none");
    else
        status = compare_binary(sizes, variant, err);
    json_decref(facts);
    return status;
}

hone_status hone_cute_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    if (variant->file != NULL && hone_native_is_library(variant->file))
        return hone_cute_export_check(kernel, variant, err);
    hone_pack_variant plain = *variant;
    plain.facts = "{}";
    hone_status status = hone_cuda_check_pack(kernel, &plain, err);
    return status == HONE_OK && strcmp(variant->facts, "{}") != 0 ? check_parameters(variant, err) : status;
}
