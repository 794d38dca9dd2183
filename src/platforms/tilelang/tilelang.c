#include "platforms/tilelang/tilelang.h"

#include "base/error.h"
#include "platforms/native/kernel.h"

static const char where[] = "tilelang.pack";

// Code that TileLang writes for GPUs needs TVM's runtime, or is CUDA.
static hone_status check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    if (kernel->backend != HONE_CPU)
        return hone_fail(
            err, HONE_UNSUPPORTED, where,
            "backend: a kernel of tilelang is for cpu, the C of its target \"c\": its CUDA source, "
            "get_kernel_source(), "
            "is one for platform cuda, with TileLang's headers on the include path");
    if (variant->file != NULL && hone_native_is_library(variant->file))
        return hone_fail(
            err, HONE_UNSUPPORTED, where,
            "file: '%.120s' is a library: name the C that TileLang writes, get_kernel_source(), as a file that ends in "
            ".c",
            variant->file->name);
    return hone_native_check_pack(kernel, variant, err);
}

static void describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    hone_buffer_text(out, "C of TileLang's target \"c\", compiled as sources of packs are");
}

const hone_platform_ops hone_tilelang_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts = {.platform = HONE_TILELANG, .name = "tilelang", .home = HONE_NATIVE, .ranks = {{65, HONE_CPU}}},
    .prepare = hone_native_prepare,
    .release = hone_native_release,
    .run = hone_native_run,
    .describe = describe,
    .check = check_pack,
    .stands_alone = true,
    .digest = hone_native_digest,
};
