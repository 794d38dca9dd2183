// Checks a kernel of cuda in a pack, as far as possible without a GPU.
#include "pack/pack.h"
#include "base/error.h"
#include "platforms/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "cuda.pack";

static hone_status refuse(hone_error *err, const char *words)
{
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s", words);
}

// A cubin runs on GPUs of its major version, from its minor version on; a cubin with an "a" only on its own capability.
static hone_status check_capability(const hone_code *code, int capability, hone_error *err)
{
    int target = 0;
    if (code->target == NULL || sscanf(code->target, "sm_%d", &target) != 1) return HONE_OK;
    if (target / 10 == capability / 10 && target >= capability) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "its cubin is code for sm_%d, and its target is %s", capability, code->target);
}

static hone_status check_cubin(const hone_pack_variant *variant, const hone_buffer *bytes, hone_error *err)
{
    hone_cubin_function function;
    if (!hone_cubin_is_one(bytes->data, bytes->size))
        return hone_fail(
            err, HONE_CORRUPT, where, "'%.120s' is called a cubin, and does not begin as one", variant->file->name);
    hone_status status = hone_cubin_find(bytes->data, bytes->size, variant->code.entry, &function, err);
    return status == HONE_OK ? check_capability(&variant->code, function.capability, err) : status;
}

static bool is_cubin(const hone_pack_file *file)
{
    const char *dot = strrchr(file->name, '.');
    return dot != NULL && strcmp(dot, ".cubin") == 0;
}

static hone_status check_file(const hone_pack_variant *variant, hone_error *err)
{
    if (!is_cubin(variant->file)) return HONE_OK;
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_status status = hone_pack_read_file(variant->file, &bytes, err);
    if (status == HONE_OK) status = check_cubin(variant, &bytes, err);
    hone_buffer_deinit(&bytes);
    return status;
}

hone_status hone_cuda_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    int target = 0;
    if (kernel->backend != HONE_GPU && kernel->backend != HONE_ANY)
        return refuse(err, "backend: a kernel of cuda is for gpu");
    if (variant->file == NULL) return refuse(err, "file: is missing: a source, a .cubin, a .fatbin or a .ptx");
    if (code->entry == NULL || code->entry[0] == '\0') return refuse(err, "entry: is missing: the function's name");
    if (code->arguments == NULL) return refuse(err, "arguments: is missing: what the function takes, in order");
    if (strcmp(variant->facts, "{}") != 0) return refuse(err, "facts: platform cuda has none");
    if (code->target != NULL && (sscanf(code->target, "sm_%d", &target) != 1 || target <= 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "target: '%.40s' is not a target: write sm_80 or sm_90a", code->target);
    return check_file(variant, err);
}

// The list ------------------------------------------------------------------------------------------------------------

static bool is_map(const hone_argument *arguments, uint32_t count, uint32_t index)
{
    return index < count && arguments[index].kind == HONE_ARGUMENT_MAP;
}

hone_status hone_cuda_compare_list(
    const hone_cubin_function *function, const hone_argument *arguments, uint32_t count, hone_error *err)
{
    uint32_t expected = 0;
    for (uint32_t i = 0; i < function->count; i++)
        if (function->parameters[i].size > sizeof(uint64_t) && !is_map(arguments, count, i))
            return hone_fail(
                err, HONE_INCOMPATIBLE, where,
                "argument %u is a struct of %u bytes in the function, which no list makes: export the kernel for "
                "tvm-ffi, or hand its parts over one by one%s",
                (unsigned)i, (unsigned)function->parameters[i].size,
                function->parameters[i].size == HONE_MAP_BYTES ? " (a tensor map is map(TENSOR, SWIZZLE, BOX...))"
                                                               : "");
    for (uint32_t i = 0; i < count && i < function->count; i++) {
        const uint32_t wanted = arguments[i].size, offset = function->parameters[i].offset;
        // A map's address is aligned, but not its offset: parameters begin at 528 on sm_90.
        const bool is_placed = is_map(arguments, count, i) && offset >= expected && offset - expected < HONE_MAP_ALIGN;
        expected = is_placed ? offset : (expected + wanted - 1) / wanted * wanted;
        if (function->parameters[i].size != wanted || offset != expected)
            return hone_fail(
                err, HONE_INCOMPATIBLE, where,
                "argument %u has %u bytes at %u in the function, and %u at %u in the list", (unsigned)i,
                (unsigned)function->parameters[i].size, (unsigned)offset, (unsigned)wanted, (unsigned)expected);
        expected += wanted;
    }
    if (function->count == count) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "the function takes %u arguments, %u are listed", (unsigned)function->count,
        (unsigned)count);
}

hone_status hone_cuda_fits(
    const hone_pack_variant *variant, const hone_argument *arguments, uint32_t count, hone_error *err)
{
    hone_cubin_function function;
    hone_buffer bytes;
    if (!is_cubin(variant->file)) return HONE_OK;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_status status = hone_pack_read_file(variant->file, &bytes, err);
    if (status == HONE_OK) status = hone_cubin_find(bytes.data, bytes.size, variant->code.entry, &function, err);
    if (status == HONE_OK && function.says) status = hone_cuda_compare_list(&function, arguments, count, err);
    hone_buffer_deinit(&bytes);
    return status;
}
