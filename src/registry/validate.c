// Whether the kernels of an algorithm agree about what they are called with: every pair is compared, not each with the
// first, so that the report says which two differ.
#include "registry/tables.h"

#include "base/buffer.h"
#include "base/error.h"
#include "call/call.h"

static const char where[] = "registry.validate";

typedef struct validation {
    hone_registry *registry;
    bool (*visit)(void *ctx, const char *line);
    void *ctx;
    const hone_kernel_ref *first, *second; // the pair at hand
    bool ok;
    bool failed;  // no memory for a line
    bool is_over; // visit returned false: the rest is compared and not visited
} validation;

static void say(validation *run, hone_buffer *line)
{
    if (line->failed)
        run->failed = true;
    else
        run->is_over = !run->visit(run->ctx, hone_buffer_string(line));
    hone_buffer_deinit(line);
}

static void append_kernel(hone_buffer *line, const hone_kernel_ref *ref)
{
    hone_buffer_format(
        line, "kernel '%s' (%s/%s)", ref->kernel.name, hone_registry_platform_name(ref->registry, ref->kernel.platform),
        hone_backend_name(ref->kernel.backend));
}

// One mismatch of the pair, with who it is between.
static void on_mismatch(void *ctx, const char *mismatch)
{
    validation *run = ctx;
    if (run->visit == NULL || run->is_over) return;
    hone_buffer line;
    hone_buffer_init(&line, run->registry->allocator);
    hone_buffer_format(&line, "%s, in ", mismatch);
    append_kernel(&line, run->first);
    hone_buffer_text(&line, " against ");
    append_kernel(&line, run->second);
    say(run, &line);
}

static void compare_pair(validation *run, const hone_kernel_ref *first, const hone_kernel_ref *second)
{
    if (first->signature == second->signature) return;
    bool failed = false;
    run->first = first;
    run->second = second;
    bool same = hone_signature_compare(first->signature, second->signature, on_mismatch, run, &failed);
    run->ok = run->ok && same;
    run->failed = run->failed || failed;
}

static void report_kernels(validation *run, const hone_kernel_list *kernels)
{
    for (size_t i = 0; i < kernels->count && !run->is_over; i++) {
        const hone_kernel_ref *ref = kernels->refs[i];
        hone_buffer line;
        hone_buffer_init(&line, run->registry->allocator);
        hone_buffer_format(&line, "%s: ", ref->algorithm->name);
        append_kernel(&line, ref);
        hone_buffer_format(&line, ": %s", hone_signature_text(ref->signature));
        say(run, &line);
    }
}

static void validate_one(validation *run, const hone_algorithm_entry *entry, bool verbose)
{
    const hone_kernel_list *kernels = hone_registry_kernels_now(entry);
    if (verbose && run->visit != NULL) report_kernels(run, kernels);
    for (size_t i = 0; i < kernels->count; i++)
        for (size_t j = i + 1; j < kernels->count; j++)
            compare_pair(run, kernels->refs[i], kernels->refs[j]);
}

hone_status hone_registry_validate(
    hone_registry *registry,
    const char *algorithm,
    bool verbose,
    bool (*visit)(void *ctx, const char *line),
    void *ctx,
    bool *out_ok,
    hone_error *err)
{
    if (out_ok == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out_ok is NULL");
    hone_status status = algorithm == NULL ? hone_registry_load(registry, err) : HONE_OK;
    if (status != HONE_OK) return status;
    size_t count = 0;
    const hone_algorithm_entry *const *entries = hone_registry_all(registry, &count);
    const hone_algorithm_entry *only = NULL;
    if (algorithm != NULL) {
        only = hone_registry_find(registry, algorithm, NULL);
        if (only == NULL) return hone_registry_fail_unknown(registry, algorithm, err);
        entries = &only;
        count = 1;
    }
    validation run = {.registry = registry, .visit = visit, .ctx = ctx, .ok = true};
    for (size_t i = 0; i < count; i++)
        validate_one(&run, entries[i], verbose);
    if (run.failed) return hone_fail_memory(err, where);
    *out_ok = run.ok;
    return HONE_OK;
}
