// Checks a kernel of xla or pallas in a pack, as far as possible without its device.
#include "pack/pack.h"
#include "base/error.h"
#include "platforms/xla/xla.h"

#include <string.h>

static const char where[] = "xla.pack";

static hone_status refuse(hone_error *err, const char *words)
{
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s", words);
}

static bool has(const hone_buffer *bytes, const char *text)
{
    return memmem(bytes->data, bytes->size, text, strlen(text)) != NULL;
}

// The names of custom calls are strings in a module, in text and in bytecode.
static hone_status check_calls(const hone_buffer *bytes, hone_backend backend, hone_error *err)
{
    static const struct {
        const char *call;
        hone_backend backend;
    } calls[] = {
        {"tpu_custom_call", HONE_TPU},
        {"__gpu$xla.gpu.triton", HONE_GPU},
        {"mosaic_gpu_v2", HONE_GPU},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (backend != calls[i].backend && has(bytes, calls[i].call))
            return hone_fail(
                err, HONE_INCOMPATIBLE, where, "backend: the module calls %s, which is for a %s", calls[i].call,
                hone_backend_name(calls[i].backend));
    return HONE_OK;
}

// A portable artifact contains the version of StableHLO that it is written for; a text contains its function's name.
static hone_status check_module(const hone_buffer *bytes, hone_backend backend, hone_error *err)
{
    bool bytecode = bytes->size >= 4 && memcmp(bytes->data, "ML\xefR", 4) == 0;
    if (!bytecode && !has(bytes, "@main"))
        return hone_fail(err, HONE_CORRUPT, where, "file: is neither bytecode of MLIR nor text with a function @main");
    if (bytecode && !has(bytes, "StableHLO_v"))
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "file: is bytecode of MLIR, but no portable artifact of StableHLO: export it with jax.export");
    return check_calls(bytes, backend, err);
}

static hone_status check_file(const hone_pack_variant *variant, hone_backend backend, hone_error *err)
{
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_status status = hone_pack_read_file(variant->file, &bytes, err);
    if (status == HONE_OK) status = check_module(&bytes, backend, err);
    hone_buffer_deinit(&bytes);
    return status;
}

hone_status hone_xla_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    if (kernel->backend != HONE_CPU && kernel->backend != HONE_GPU && kernel->backend != HONE_TPU &&
        kernel->backend != HONE_ANY)
        return refuse(err, "backend: a module is for cpu, gpu, tpu or any");
    if (variant->file == NULL) return refuse(err, "file: is missing: a module of StableHLO, text or bytecode");
    if (code->arguments == NULL) return refuse(err, "arguments: is missing: what main takes, in order");
    if (code->entry != NULL && strcmp(code->entry, "main") != 0)
        return refuse(err, "entry: a module of StableHLO has main");
    if (code->grid != NULL || code->block != NULL || code->cluster != NULL || code->shared != NULL ||
        code->flags != 0 || code->scratch != NULL || code->constants != NULL || code->target != NULL)
        return refuse(err, "a module has no grid, block, cluster, shared, flags, scratch, constants or target");
    if (strcmp(variant->facts, "{}") != 0) return refuse(err, "facts: a module has none");
    return check_file(variant, kernel->backend, err);
}
