// Which kernel answers a query. The rules, in order:
//   a kernel of backend "any" matches every backend that is asked for; a query for "any" matches only those;
//   an unset backend keeps kernels of hardware that is here, a backend that is named is taken at its word;
//   platform "auto" walks the platforms of the devices that are here, most specialised first;
//   what matched nothing is asked once more: backend any for the default backend, on every platform; another backend on
//   a platform that falls back to any with backend any. That is all: no fall-back leads to another.
// Of the matches the one of highest priority answers, then the earliest; a reference only when there is nothing else.
#include "registry/tables.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "registry.get";

// A list of words for a message. What does not fit is cut there and marked by hone_fail.
typedef struct words {
    char text[sizeof((hone_error *)0)->message];
    size_t used;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *list, const char *format, ...)
{
    if (list->used >= sizeof list->text) return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(list->text + list->used, sizeof list->text - list->used, format, arguments);
    va_end(arguments);
    list->used += length > 0 ? (size_t)length : 0;
}

hone_status hone_registry_fail_unknown_now(hone_registry *registry, const char *name, hone_error *err)
{
    words list = {.used = 0};
    size_t count = 0;
    hone_registry_name wanted;
    const bool is_name = name != NULL && hone_registry_name_read(name, &wanted);
    const char *meant = NULL;
    const hone_algorithm_entry *const *entries = hone_registry_all_now(registry, &count);
    for (size_t i = 0; i < count; i++) {
        const char *both[] = {meant != NULL ? meant : entries[i]->name, entries[i]->name};
        if (is_name) meant = hone_names_nearest(wanted.name, both, 2);
        bool versions = (i > 0 && strcmp(entries[i - 1]->name, entries[i]->name) == 0) ||
                        (i + 1 < count && strcmp(entries[i + 1]->name, entries[i]->name) == 0);
        say(&list, "%s%s", i > 0 ? ", " : "", entries[i]->name);
        if (versions || strcmp(entries[i]->version, "1") != 0) say(&list, "@v%s", entries[i]->version);
    }
    // What was meant comes first: the list may be cut.
    return hone_fail(
        err, HONE_NOT_FOUND, where, "no algorithm named '%.120s'; %s%s%s: %s", name == NULL ? "" : name,
        meant != NULL ? "did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "? There are" : "there are",
        count > 0 ? list.text : "none");
}

hone_status hone_registry_fail_unknown(hone_registry *registry, const char *name, hone_error *err)
{
    hone_registry_name wanted;
    if (name != NULL && hone_registry_name_read(name, &wanted)) {
        hone_status status = hone_registry_load_name(registry, wanted.name, err);
        if (status != HONE_OK) return status;
        // It was not there a moment ago: memory was short when it was first asked for.
        if (hone_registry_find_now(registry, &wanted) != NULL) return hone_fail_memory(err, where);
    }
    (void)hone_registry_load(registry, NULL);
    return hone_registry_fail_unknown_now(registry, name, err);
}

static const char *platform_word(const hone_registry *registry, hone_platform platform)
{
    if (platform == HONE_PLATFORM_AUTO) return "auto";
    return platform == HONE_PLATFORM_NONE ? "unset" : hone_registry_platform_name(registry, platform);
}

static const char *backend_word(hone_backend backend)
{
    return backend == HONE_BACKEND_NONE ? "unset" : hone_backend_name(backend);
}

static hone_status fail_no_kernel(
    const hone_registry *registry, const hone_algorithm_entry *entry, const hone_query *query, hone_error *err)
{
    words present = {.used = 0};
    for (int backend = HONE_GPU; backend < HONE_ANY; backend++)
        if (registry->present_backends >> backend & 1)
            say(&present, "%s%s", present.used > 0 ? " " : "", hone_backend_name((hone_backend)backend));
    words list = {.used = 0};
    const hone_kernel_list *kernels = hone_registry_kernels_now(entry);
    for (size_t i = 0; i < kernels->count; i++) {
        const hone_kernel *kernel = &kernels->refs[i]->kernel;
        say(&list, "%s%s (%s/%s)", i > 0 ? ", " : "", kernel->name,
            hone_registry_platform_name(registry, kernel->platform), hone_backend_name(kernel->backend));
    }
    return hone_fail(
        err, HONE_NOT_FOUND, where,
        "no kernel for algorithm=%.120s, platform=%s, backend=%s; hardware here: %s; there are: %s", query->algorithm,
        platform_word(registry, query->platform), backend_word(query->backend),
        present.used > 0 ? present.text : "none", kernels->count > 0 ? list.text : "no kernels");
}

static bool platform_matches(const hone_registry *registry, hone_platform asked, hone_platform platform)
{
    if (asked != HONE_PLATFORM_NONE) return asked == platform;
    const hone_platform_facts *facts = registry->platforms(platform);
    return facts != NULL && !facts->is_by_name_only;
}

static bool backend_matches(const hone_registry *registry, hone_backend asked, const hone_kernel *kernel)
{
    if (kernel->backend == HONE_ANY || kernel->backend == asked) return true;
    return asked == HONE_BACKEND_NONE && (registry->present_backends >> kernel->backend & 1) != 0;
}

// Those whose instructions are missing here come last, and only where a backend was named: the caller may know more.
static const hone_kernel_ref *best(
    const hone_registry *registry, const hone_algorithm_entry *entry, hone_platform platform, hone_backend backend)
{
    const hone_kernel_ref *reference = NULL, *missing = NULL;
    const hone_kernel_list *kernels = hone_registry_kernels_now(entry);
    for (size_t i = 0; i < kernels->count; i++) {
        const hone_kernel_ref *ref = kernels->refs[i];
        if (!platform_matches(registry, platform, ref->kernel.platform) ||
            !backend_matches(registry, backend, &ref->kernel))
            continue;
        if ((ref->kernel.needs & ~registry->features) != 0) {
            if (missing == NULL && backend != HONE_BACKEND_NONE) missing = ref;
            continue;
        }
        if (!ref->kernel.is_reference) return ref;
        if (reference == NULL) reference = ref;
    }
    return reference != NULL ? reference : missing;
}

// One platform: as asked, then its one fall-back.
static const hone_kernel_ref *best_or_fallback(
    const hone_registry *registry, const hone_algorithm_entry *entry, hone_platform platform, hone_backend backend)
{
    const hone_kernel_ref *found = best(registry, entry, platform, backend);
    if (found != NULL) return found;
    if (backend == HONE_ANY) return best(registry, entry, platform, registry->default_backend);
    const hone_platform_facts *facts = registry->platforms(platform);
    return facts != NULL && facts->falls_back_to_any ? best(registry, entry, platform, HONE_ANY) : NULL;
}

// The lowest rank above `after` and the platform that has it; its rank is 0 when there is none.
static hone_platform_rank next_rank(const hone_registry *registry, int after, hone_platform *out_platform)
{
    hone_platform_rank next = {0, HONE_BACKEND_NONE};
    for (int platform = HONE_PLATFORM_NONE + 1; platform < HONE_PLATFORM_COUNT; platform++) {
        const hone_platform_facts *facts = registry->platforms((hone_platform)platform);
        for (size_t i = 0; facts != NULL && i < HONE_PLATFORM_RANKS; i++) {
            const hone_platform_rank own = facts->ranks[i];
            if (own.rank <= after || (next.rank != 0 && own.rank >= next.rank)) continue;
            next = own;
            *out_platform = (hone_platform)platform;
        }
    }
    return next;
}

// "auto": the platforms by their ranks, as far as their hardware is here.
static const hone_kernel_ref *best_automatic(
    const hone_registry *registry, const hone_algorithm_entry *entry, hone_backend backend)
{
    hone_platform platform = HONE_PLATFORM_NONE;
    hone_platform_rank at = next_rank(registry, 0, &platform);
    for (; at.rank != 0; at = next_rank(registry, at.rank, &platform)) {
        const hone_backend hardware = at.backend;
        if (hardware != HONE_BACKEND_NONE && (registry->present_backends >> hardware & 1) == 0) continue;
        const hone_backend asked = backend == HONE_BACKEND_NONE ? hardware : backend;
        const hone_kernel_ref *found = best_or_fallback(registry, entry, platform, asked);
        if (found != NULL) return found;
    }
    return NULL;
}

static hone_status check_query(const hone_query *query, hone_error *err)
{
    if ((unsigned)query->platform >= HONE_PLATFORM_COUNT && query->platform != HONE_PLATFORM_AUTO)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is not a platform", (int)query->platform);
    if ((unsigned)query->backend >= HONE_BACKEND_COUNT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is not a backend", (int)query->backend);
    return HONE_OK;
}

hone_status hone_registry_query(
    hone_registry *registry, const hone_query *query, const hone_kernel_ref **out, hone_error *err)
{
    if (query == NULL || query->algorithm == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the query, its algorithm or out is NULL");
    const hone_algorithm_entry *entry = hone_registry_find(registry, query->algorithm, NULL);
    if (entry == NULL) return hone_registry_fail_unknown(registry, query->algorithm, err);
    hone_status status = check_query(query, err);
    if (status != HONE_OK) return status;
    const hone_kernel_ref *found = query->platform == HONE_PLATFORM_AUTO
                                       ? best_automatic(registry, entry, query->backend)
                                       : best_or_fallback(registry, entry, query->platform, query->backend);
    if (found == NULL) return fail_no_kernel(registry, entry, query, err);
    *out = found;
    return HONE_OK;
}
