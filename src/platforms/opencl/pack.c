// Checks a kernel of opencl in a pack, as far as possible without a device.
#include "pack/pack.h"
#include "base/error.h"
#include "platforms/opencl/opencl.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "opencl.pack";

static hone_status refuse(hone_error *err, const char *words)
{
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s", words);
}

static hone_status check_target(const hone_code *code, hone_error *err)
{
    int target = 0, used = 0;
    if (code->target == NULL) return HONE_OK;
    if (sscanf(code->target, "cl_%d%n", &target, &used) == 1 && target > 0 && code->target[used] == '\0')
        return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "target: '%.40s' is not a target: write cl_12 or cl_30", code->target);
}

hone_status hone_opencl_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    (void)kernel; // any backend: OpenCL runs on GPUs and CPUs
    if (variant->file == NULL) return refuse(err, "file: is missing: a source, or a .clbin");
    if (code->entry == NULL || code->entry[0] == '\0') return refuse(err, "entry: is missing: the kernel's name");
    if (code->arguments == NULL) return refuse(err, "arguments: is missing: what the kernel takes, in order");
    if (code->cluster != NULL) return refuse(err, "cluster: opencl has none");
    if (code->shared != NULL) return refuse(err, "shared: on opencl it is an argument, local(BYTES)");
    if (code->flags != 0) return refuse(err, "flags: opencl has none");
    if (strcmp(variant->facts, "{}") != 0) return refuse(err, "facts: platform opencl has none");
    return check_target(code, err);
}
