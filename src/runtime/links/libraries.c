#include "runtime/links/libraries.h"

#include "base/error.h"
#include "pack/pack.h"
#include "platforms/platform.h"
#include "registry/origin.h"
#include "runtime/links/verified.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "runtime.packs";

static hone_status try_library(
    const hone_runtime *rt,
    const char *worker,
    hone_platform platform,
    const hone_pack_variant *variant,
    hone_error *err)
{
    enum { SECONDS = 20, LIMIT = 900 };
    const char *const arguments[] = {
        worker, "query", hone_platform_name(platform), variant->file->path, variant->file->sha256, variant->code.entry,
        NULL};
    int code = 0;
    hone_buffer words;
    hone_buffer_init(&words, rt->allocator);
    hone_status status =
        hone_process_run(arguments, hone_os_now_ns() + SECONDS * UINT64_C(1000000000), LIMIT, &words, &code, err);
    if (status != HONE_OK)
        status = hone_fail_prefix(err, status, "%.200s, when it is asked for its functions", variant->file->name);
    else if (code == HONE_PACK_QUERY_REFUSED)
        status = hone_fail(
            err, HONE_INCOMPATIBLE, where, "%.*s", (int)strcspn(hone_buffer_string(&words), "\n"),
            hone_buffer_string(&words));
    else if (code != HONE_PACK_QUERY_FOUND)
        status = hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%.200s, when it is asked for its functions: the process ended with exit code %d before there was an "
            "answer: a library must not exit when it is loaded or queried",
            variant->file->name, code);
    hone_buffer_deinit(&words);
    return status;
}

// The variant that has a library of its own, which its platform loads; NULL if it has none.
static const hone_pack_variant *library_of(const hone_pack_kernel *kernel, size_t index)
{
    if (hone_platform_ops_of(kernel->platform)->try_file == NULL || kernel->refusal != NULL ||
        index >= kernel->variant_count)
        return NULL;
    const hone_pack_file *file = kernel->variants[index].file;
    const char *dot = file != NULL ? strrchr(file->name, '.') : NULL;
    return dot != NULL && strcmp(dot, ".so") == 0 ? &kernel->variants[index] : NULL;
}

hone_status hone_runtime_try_libraries(hone_runtime *rt, const hone_kernel *kernel, hone_error *why)
{
    enum { PATH_SIZE = 4096 };
    char worker[PATH_SIZE] = "";
    const hone_pack_kernel *pack = kernel->code != NULL ? kernel->code->pack : NULL;
    for (size_t i = 0; pack != NULL && library_of(pack, i) != NULL; i++) {
        if (worker[0] == '\0' && !hone_runtime_find_worker(rt, worker, sizeof worker)) return HONE_OK;
        hone_status status = try_library(rt, worker, kernel->platform, library_of(pack, i), why);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

hone_status hone_request_try_libraries(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    static const char key[] = "libraries";
    hone_status status = HONE_OK;
    if (!hone_kernel_is_of_pack(kernel)) return HONE_OK;
    if (hone_verdict_recall(request->rt, kernel, key, "", &status, why)) return status;
    status = hone_runtime_try_libraries(request->rt, &kernel->kernel, why);
    return status == HONE_OUT_OF_MEMORY ? status : hone_verdict_remember(request->rt, kernel, key, "", status, why);
}
