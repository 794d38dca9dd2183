// Checks a kernel of a pack before any of it is loaded.
#include "base/error.h"
#include "platforms/ffi/instance.h"
#include "platforms/native/kernel.h"

#include <string.h>

static const char where[] = "ffi.pack";

// Refuses fields for what a function does itself, or what was fixed when it was compiled.
static hone_status check_absent(const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    const struct {
        const char *name, *text;
    } fields[] = {{"grid", code->grid},     {"block", code->block},     {"cluster", code->cluster},
                  {"shared", code->shared}, {"options", code->options}, {"constants", code->constants},
                  {"target", code->target}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].text != NULL)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "%s: a kernel of ffi has none: it is compiled, and launches itself",
                fields[i].name);
    if (code->flags != 0) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "flags: a kernel of ffi has none");
    if (strcmp(variant->facts, "{}") == 0) return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "facts: platform ffi has none");
}

hone_status hone_ffi_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    if (kernel->backend != HONE_CPU && kernel->backend != HONE_GPU)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "backend: a kernel of ffi is for cpu or for gpu");
    if (variant->file == NULL || !hone_native_is_library(variant->file))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "file: expected a shared library (.so)");
    if (code->arguments == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "arguments: is missing: what the function takes, in order");
    hone_status status = hone_ffi_check_entry(code, err);
    if (status == HONE_OK) status = check_absent(variant, err);
    return status == HONE_OK ? hone_native_check_library(variant->file, err) : status;
}
