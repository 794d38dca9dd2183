// The public face of the registry: the runtime's own.
#include "base/error.h"
#include "config/chain.h"
#include "runtime/api/api.h"
#include "runtime/api/inner.h"
#include "runtime/links/trust.h"
#include "runtime/links/verified.h"

#include <string.h>

static const char where[] = "registry.algorithms";

static hone_status need_runtime(const hone_runtime *rt, const char *operation, hone_error *err)
{
    return rt != NULL ? HONE_OK : hone_fail(err, HONE_INVALID_ARGUMENT, operation, "the runtime is NULL");
}

hone_status hone_register_algorithm(hone_runtime *rt, const hone_algorithm *algorithm, hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.add_algorithm", err);
    return status == HONE_OK ? hone_registry_add_algorithm(rt->registry, algorithm, false, err) : status;
}

hone_status hone_register_foreign(hone_runtime *rt, const char *rows, size_t size, hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.add_foreign", err);
    if (status != HONE_OK) return status;
    if (rows == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "registry.add_foreign", "the rows are NULL");
    hone_registry_load_late(rt->registry); // packs come first: later rows take precedence
    return hone_registry_add_foreign(rt->registry, rows, size, err);
}

// Whether a plan's kernel was replaced, or was guessed without knowledge of the new kernels.
static bool is_outdated(void *ctx, const hone_plan_entry *entry)
{
    (void)ctx;
    if (hone_source_is(entry->source, HONE_LINK_GUESSED)) return true;
    return !hone_kernel_is_registered(entry->kernel);
}

void hone_runtime_kernels_changed(hone_runtime *rt)
{
    hone_runtime_answers_changed(rt);
    hone_plan_table_drop(&rt->plans, is_outdated, NULL);
    hone_runtime_forget_asides(rt, false);
    hone_runtime_forget_wrongs(rt, false);
    hone_runtime_forget_verdicts(rt, false);
}

hone_status hone_register_kernels(hone_runtime *rt, const hone_kernel *kernels, size_t count, hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.add_kernels", err);
    if (status == HONE_OK) hone_registry_load_late(rt->registry);
    if (status == HONE_OK) status = hone_registry_add_kernels(rt->registry, kernels, count, false, false, err);
    if (status == HONE_OK) hone_runtime_kernels_changed(rt);
    return status;
}

hone_status hone_replace_kernels(hone_runtime *rt, const hone_kernel *kernels, size_t count, hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.replace_kernels", err);
    if (status == HONE_OK) hone_registry_load_late(rt->registry);
    if (status == HONE_OK) status = hone_registry_add_kernels(rt->registry, kernels, count, true, false, err);
    if (status == HONE_OK) hone_runtime_kernels_changed(rt);
    return status;
}

hone_status hone_registry_get(
    hone_runtime *rt, const hone_query *query, const hone_kernel_ref **out_kernel, hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.get", err);
    if (status == HONE_OK) status = hone_runtime_wake(rt, err);
    if (status != HONE_OK) return status;
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    status = hone_registry_query(rt->registry, query, out_kernel, err);
    if (status == HONE_OK)
        (void)hone_kernel_retain(*out_kernel); // the caller never releases it: it lives as long as the runtime
    hone_registry_leave(&reader);
    return status;
}

// Calls the operation under an override of exactly this kernel: checks, defaults and errors are those of any call.
hone_status hone_kernel_run(
    const hone_kernel_ref *kernel,
    const hone_value *args,
    size_t count,
    const hone_execution *execution,
    hone_error *err)
{
    if (kernel == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "kernel.run", "the kernel is NULL");
    hone_runtime *rt = kernel->owner;
    const hone_algorithm_entry *algorithm = kernel->algorithm;
    hone_context *context = NULL;
    hone_context_override override_ = {.platform = kernel->kernel.platform, .exactly = kernel};
    strcpy(override_.algorithm, algorithm->name);
    strcpy(override_.version, algorithm->version);
    strcpy(override_.kernel, kernel->kernel.name);
    const hone_op *op = NULL;
    char name[HONE_NAME_SIZE + 20];
    strcpy(stpcpy(stpcpy(name, algorithm->name), "@v"), algorithm->version);
    hone_status status = hone_op_get(rt, name, &op, err);
    if (status == HONE_OK)
        status = hone_context_new(rt->allocator, NULL, NULL, &override_, HONE_POLICY_DEFAULT, &context, err);
    if (status != HONE_OK) return status;
    hone_context *previous = hone_context_enter(context);
    status = hone_run_slowly(op, args, count, execution, err);
    (void)hone_context_enter(previous);
    hone_plan_table_drop(&rt->plans, hone_plan_entry_is_of_context, &context->number);
    hone_context_release(&context);
    return status;
}

// A list of names or kernels, which can be released without its runtime.
typedef struct list {
    hone_allocator allocator;
    const void *items[];
} list;

static list *new_list(hone_runtime *rt, size_t count, size_t more, const char *whose, hone_error *err)
{
    list *out = hone_alloc(&rt->allocator, sizeof *out + count * sizeof *out->items + more);
    if (out == NULL)
        (void)hone_fail_memory(err, whose);
    else
        out->allocator = rt->allocator;
    return out;
}

static void free_list(void *items)
{
    list *one = (list *)((char *)items - offsetof(list, items));
    const hone_allocator allocator = one->allocator;
    hone_free(&allocator, one);
}

// Returns the names in one block: first the array, then the strings.
hone_status hone_registry_algorithms(hone_runtime *rt, char ***out_names, size_t *out_count, hone_error *err)
{
    hone_status status = need_runtime(rt, where, err);
    if (status != HONE_OK) return status;
    if (out_names == NULL || out_count == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out_names and out_count must not be NULL");
    status = hone_registry_load(rt->registry, err);
    if (status != HONE_OK) return status;
    size_t count = 0, size = 0, names = 0;
    const hone_algorithm_entry *const *all = hone_registry_all(rt->registry, &count);
    for (size_t i = 0; i < count; i++)
        size += strlen(all[i]->name) + 1;
    list *names_list = new_list(rt, count, size, where, err);
    if (names_list == NULL) return HONE_OUT_OF_MEMORY;
    char **block = (char **)names_list->items;
    char *text = (char *)(block + count);
    for (size_t i = 0; i < count; i++) {
        if (names > 0 && strcmp(block[names - 1], all[i]->name) == 0) continue; // another version
        block[names++] = text;
        text = stpcpy(text, all[i]->name) + 1;
    }
    *out_names = block;
    *out_count = names;
    return HONE_OK;
}

void hone_names_release(char ***names)
{
    if (names == NULL || *names == NULL) return;
    free_list(*names);
    *names = NULL;
}

hone_status hone_registry_kernels(
    hone_runtime *rt, const char *algorithm, const hone_kernel_ref ***out_kernels, size_t *out_count, hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.kernels", err);
    if (status != HONE_OK) return status;
    if (algorithm == NULL || out_kernels == NULL || out_count == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "registry.kernels",
            "the algorithm, out_kernels and out_count must not be NULL");
    const hone_algorithm_entry *entry = hone_registry_find(rt->registry, algorithm, NULL);
    hone_error why;
    if (entry == NULL) status = hone_registry_fail_unknown(rt->registry, algorithm, &why);
    if (status != HONE_OK && status != HONE_NOT_FOUND) return hone_fail(err, status, why.where, "%s", why.message);
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    size_t count = 0;
    const hone_kernel_ref *const *kernels = entry == NULL ? NULL : hone_registry_list(entry, &count);
    list *copy = new_list(rt, count + 1, 0, "registry.kernels", err); // NULL behind the last
    for (size_t i = 0; copy != NULL && i < count; i++)
        copy->items[i] = hone_kernel_retain(kernels[i]);
    hone_registry_leave(&reader);
    if (copy == NULL) return HONE_OUT_OF_MEMORY;
    copy->items[count] = NULL;
    *out_kernels = (const hone_kernel_ref **)copy->items;
    *out_count = count;
    return HONE_OK;
}

void hone_kernels_release(const hone_kernel_ref ***kernels)
{
    if (kernels == NULL || *kernels == NULL) return;
    for (const hone_kernel_ref **kernel = *kernels; *kernel != NULL; kernel++)
        hone_kernel_release(*kernel);
    free_list(*kernels);
    *kernels = NULL;
}

hone_status hone_validate_signatures(
    hone_runtime *rt,
    const char *algorithm,
    bool verbose,
    bool (*visit)(void *ctx, const char *line),
    void *ctx,
    bool *out_ok,
    hone_error *err)
{
    hone_status status = need_runtime(rt, "registry.validate", err);
    if (status != HONE_OK) return status;
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    status = hone_registry_validate(rt->registry, algorithm, verbose, visit, ctx, out_ok, err);
    hone_registry_leave(&reader);
    return status;
}
