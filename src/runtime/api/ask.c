// Questions that a worker process answers, since loading the libraries starts threads and may end the process.
#include "base/error.h"
#include "base/json.h"
#include "hone/measure.h"
#include "hone/pack.h"
#include "os/os.h"
#include "platforms/platform.h"
#include "runtime/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_SIZE = 4096,
    RIVALS_LIMIT = 1023,
    RIVALS_SECONDS = 20,
    FUNCTIONS = 1024,
    WORDS_LIMIT = 4 << 20,
    WORDS_SECONDS = 60
};

// Runs the worker with these arguments, of which the first is the worker's path. refusal: the status to return if the
// worker exits with a failure.
static hone_status ask(
    hone_runtime *rt,
    const char **arguments,
    uint64_t seconds,
    size_t limit,
    hone_status refusal,
    hone_buffer *out,
    const char *where,
    hone_error *err)
{
    char worker[PATH_SIZE];
    int code = 0;
    if (!hone_runtime_find_worker(rt, worker, sizeof worker))
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "there is no hone-worker: install it beside the library, or set HONE_WORKER to its path");
    arguments[0] = worker;
    const uint64_t deadline = hone_os_now_ns() + seconds * UINT64_C(1000000000);
    const hone_status status = hone_process_run(arguments, deadline, limit, out, &code, err);
    if (status != HONE_OK) return status;
    if (out->failed) return hone_fail_memory(err, where);
    return code == 0 ? HONE_OK : hone_fail(err, refusal, where, "%.900s", hone_buffer_string(out));
}

// Lines begin with "!" for rivals that use fewer instructions than the machine has, with " " for the others.
static void visit_lines(char *text, bool (*visit)(void *ctx, const hone_rival *rival), void *ctx)
{
    while (text[0] == ' ' || text[0] == '!') {
        const size_t size = strcspn(text, "\n");
        const bool is_last = text[size] == '\0';
        text[size] = '\0';
        const hone_rival rival = {.text = text + 1, .is_below = text[0] == '!'};
        if (!visit(ctx, &rival) || is_last) return;
        text += size + 1;
    }
}

hone_status hone_rivals(hone_runtime *rt, bool (*visit)(void *ctx, const hone_rival *rival), void *ctx, hone_error *err)
{
    static const char where[] = "rivals";
    const char *arguments[] = {NULL, "libraries", NULL};
    hone_buffer text;
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and visit must not be NULL");
    hone_buffer_init(&text, rt->allocator);
    const hone_status status = ask(rt, arguments, RIVALS_SECONDS, RIVALS_LIMIT, HONE_UNAVAILABLE, &text, where, err);
    if (status == HONE_OK && text.size > 0) visit_lines(text.data, visit, ctx);
    hone_buffer_deinit(&text);
    return status;
}

hone_status hone_pack_describe(
    hone_runtime *rt,
    hone_platform platform,
    const char *library,
    const char *const *functions,
    size_t count,
    char **out_text,
    hone_error *err)
{
    static const char where[] = "pack.describe";
    char path[PATH_SIZE];
    const char *arguments[FUNCTIONS + 5] = {NULL, "tell", NULL, path};
    const hone_platform_ops *ops = hone_platform_ops_of(platform);
    hone_buffer text;
    if (rt == NULL || library == NULL || out_text == NULL || (functions == NULL && count > 0) || count > FUNCTIONS)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the runtime, the library, the functions and out_text must not be NULL, and there are at most %d functions",
            (int)FUNCTIONS);
    *out_text = NULL;
    if (ops == NULL || ops->describes == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "libraries of that platform do not describe functions");
    if (!hone_os_real_path(library, path, sizeof path))
        return hone_fail(err, HONE_NOT_FOUND, where, "there is no library %.900s", library);
    arguments[2] = ops->facts.name;
    for (size_t i = 0; i < count; i++)
        arguments[4 + i] = functions[i];
    // The text is freed without a runtime, hence the system's allocator.
    hone_buffer_init(&text, hone_allocator_system());
    hone_status status = ask(rt, arguments, WORDS_SECONDS, WORDS_LIMIT, HONE_KERNEL_FAILED, &text, where, err);
    json_t *object = status == HONE_OK ? json_loads(hone_buffer_string(&text), 0, NULL) : NULL;
    if (status == HONE_OK && !json_is_object(object))
        status = hone_fail(err, HONE_KERNEL_FAILED, where, "%.900s", hone_buffer_string(&text));
    json_decref(object);
    if (status == HONE_OK) *out_text = hone_buffer_take(&text);
    hone_buffer_deinit(&text);
    if (status == HONE_OK && *out_text == NULL) return hone_fail_memory(err, where);
    return status;
}
