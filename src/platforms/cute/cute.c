// Compiles a source in CuTe like one in CUDA C++, with additional options: CUTLASS's headers, the toolkit's C++
// library, and functions that are device functions by default.
#include "platforms/cute/cute.h"

#include "base/error.h"
#include "platforms/cuda/loaded.h"
#include "platforms/cuda/toolkit.h"
#include "platforms/cute/export.h"
#include "platforms/cute/pack.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024 };

static const char where[] = "cute.headers";

typedef struct finding {
    const char *header; // relative to the folder that is searched for
    const char *below;  // relative to the folder that is offered
    char found[PATH_SIZE];
} finding;

static bool look(void *ctx, const char *folder)
{
    finding *f = ctx;
    char path[PATH_SIZE];
    int size = snprintf(path, sizeof path, "%s%s%s", folder, f->below, f->header);
    if (size <= 0 || (size_t)size >= sizeof path || !hone_os_is_file(path)) return true;
    snprintf(f->found, sizeof f->found, "%s%s", folder, f->below);
    return false;
}

static bool look_in_packages(void *ctx, const char *packages)
{
    char folder[PATH_SIZE];
    int size = snprintf(folder, sizeof folder, "%s/cutlass_library/source", packages);
    return size <= 0 || (size_t)size >= sizeof folder || look(ctx, folder);
}

// HONE_CUTLASS_PATH may name a checkout of CUTLASS, or its include folder.
static hone_status find_cutlass(finding *f, hone_error *err)
{
    const char *named = hone_os_variable("HONE_CUTLASS_PATH");
    *f = (finding){.header = "/cute/tensor.hpp", .below = "/include"};
    if (named == NULL || named[0] == '\0') {
        hone_packages_visit(look_in_packages, f);
    } else if (look(f, named)) {
        f->below = "";
        (void)look(f, named);
    }
    if (f->found[0] != '\0') return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "sources in CuTe need CUTLASS's headers: install PyPI's nvidia-cutlass, or name CUTLASS's folder in "
        "HONE_CUTLASS_PATH%s%s",
        named != NULL ? ", which is " : "", named != NULL ? named : "");
}

static bool has_space(const char *path)
{
    return strpbrk(path, " \t\n") != NULL;
}

static hone_status find_options(hone_buffer *out, hone_error *err)
{
    finding cutlass, library = {.header = "/cuda/std/type_traits", .below = "/include/cccl"};
    hone_status status = find_cutlass(&cutlass, err);
    if (status != HONE_OK) return status;
    if (has_space(cutlass.found))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s has a space in it", cutlass.found);
    hone_cuda_toolkit_folders(look, &library);
    if (library.found[0] == '\0')
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "sources in CuTe need the C++ library of CUDA: install the CUDA toolkit or PyPI's nvidia-cuda-cccl");
    hone_buffer_format(out, "-default-device -I%s", cutlass.found);
    if (!has_space(library.found)) hone_buffer_format(out, " -I%s", library.found);
    return out->failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status read_cute(hone_cuda_loaded *loaded, const hone_plan *plan, hone_cuda_image *image, hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    hone_buffer options;
    hone_buffer_init(&options, loaded->instance->allocator);
    bool is_source = code != NULL && code->binary == NULL && (code->file == NULL || !hone_code_is_binary(code->file));
    hone_status status = is_source ? find_options(&options, err) : HONE_OK;
    if (status == HONE_OK) status = hone_cuda_read_code(loaded, plan, hone_buffer_string(&options), image, err);
    hone_buffer_deinit(&options);
    return status;
}

static hone_status cute_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (hone_cute_is_export(plan->kernel)) return hone_cute_export_prepare(instance, plan, out_state, err);
    if (plan->kernel->code != NULL) return hone_cuda_load(instance, plan, read_cute, out_state, err);
    return hone_cuda_prepare(instance, plan, out_state, out_scratch_bytes, err);
}

static void cute_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    if (hone_cute_is_export(kernel))
        hone_cute_export_release(instance, state);
    else
        hone_cuda_release(instance, kernel, state);
}

static hone_status cute_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return hone_cute_is_export(plan->kernel) ? hone_cute_export_run(plan, args, execution)
                                             : hone_cuda_run(plan, args, execution);
}

// "#define CUTLASS_MAJOR 4" and the like.
static int read_define(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    return found != NULL ? atoi(found + strlen(name)) : 0;
}

static void describe_cutlass(hone_buffer *out)
{
    enum { LIMIT = 64 << 10 };
    finding cutlass;
    hone_error why = {.message = ""};
    char path[PATH_SIZE + 32];
    hone_buffer text;
    if (find_cutlass(&cutlass, &why) != HONE_OK) {
        hone_buffer_text(out, why.message);
        return;
    }
    hone_buffer_init(&text, hone_allocator_system());
    snprintf(path, sizeof path, "%s/cutlass/version.h", cutlass.found);
    (void)!hone_os_read_file(path, LIMIT, &text, NULL);
    const char *words = hone_buffer_string(&text);
    hone_buffer_format(
        out, "sources in CuTe: CUTLASS %d.%d.%d, %s", read_define(words, "#define CUTLASS_MAJOR "),
        read_define(words, "#define CUTLASS_MINOR "), read_define(words, "#define CUTLASS_PATCH "), cutlass.found);
    hone_buffer_deinit(&text);
}

static void cute_describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    describe_cutlass(out);
    hone_buffer_text(out, "\nexports of the CuTe DSL: ");
    hone_package_describe("apache-tvm-ffi", out);
    hone_buffer_text(out, "; ");
    hone_package_describe("nvidia-cutlass-dsl", out);
}

static uint64_t cute_digest(const hone_plan *plan)
{
    return hone_cute_is_export(plan->kernel) ? hone_cute_export_digest(plan) : hone_cuda_digest(plan);
}

const hone_platform_ops hone_cute_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts = {.platform = HONE_CUTE, .name = "cute", .home = HONE_CUDA, .ranks = {{20, HONE_GPU}}, .takes_code = true},
    .prepare = cute_prepare,
    .release = cute_release,
    .run = cute_run,
    .describe = cute_describe,
    .check = hone_cute_check,
    .fits = hone_cuda_fits,
    .wakes = true,
    .digest = cute_digest,
};
