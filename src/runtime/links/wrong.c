// The kernels that are known to be wrong: from contests of this process, and from the stores.
#include "runtime/links/trust.h"

#include "base/error.h"
#include "config/chain.h"
#include "registry/failure_kinds.h"
#include "store/ops.h"
#include "tune/contest/failures.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

static void write_words(char *out, size_t size, const char *call, hone_failure failure, const char *reason)
{
    snprintf(
        out, size, "was found wrong for %.200s (%s: %.160s)", call, hone_failure_name(failure),
        reason != NULL && reason[0] != '\0' ? reason : "no reason is known");
}

// In the stores -------------------------------------------------------------------------------------------------------

typedef struct search {
    const hone_kernel_ref *kernel;
    const char *config; // NULL: any
    bool found;
    char words[512];
    char with[256]; // the config that was wrong
} search;

// "the call softmax(f32[4,64])"; the key if nothing else is known.
static void name_call(const hone_kernel_ref *kernel, const hone_store_key *key, char *out, size_t size)
{
    hone_call *call = NULL;
    if (key->spec != NULL)
        (void)!hone_call_from_spec(
            hone_allocator_system(), kernel->algorithm->signature, key->spec, strlen(key->spec), &call, NULL);
    snprintf(out, size, "the call %.200s", call != NULL ? hone_call_text(call) : key->key);
    hone_call_release(&call);
}

// Time and environment do not matter: only another revision is other code.
static bool look_at(void *ctx, const hone_store_measured *row)
{
    search *s = ctx;
    const hone_store_measurement *failure = &row->measurement;
    if (!hone_failure_kind_of(failure->failure)->is_wrong || strcmp(failure->kernel, s->kernel->kernel.name) != 0 ||
        !hone_same_revision(failure->revision, s->kernel->kernel.revision) ||
        (s->config != NULL && strcmp(failure->config, s->config) != 0) ||
        failure->measured == NULL) // the failure was cleared (hone tune --fresh)
        return true;
    char call[256];
    name_call(s->kernel, &row->key, call, sizeof call);
    write_words(s->words, sizeof s->words, call, failure->failure, failure->reason);
    snprintf(s->with, sizeof s->with, "%s", failure->config);
    s->found = true;
    return false;
}

// If one store fails, the records of the other are still valid.
static hone_status look_in_stores(hone_runtime *rt, search *s, hone_error *why)
{
    hone_store *const stores[] = {hone_runtime_store(rt), hone_runtime_system_store(rt)};
    const hone_store_key filter = {.algorithm = s->kernel->algorithm->name, .version = s->kernel->algorithm->version};
    for (int i = 0; i < 2 && !s->found; i++) {
        hone_error ignored = {.message = ""};
        if (stores[i] != NULL && hone_store_failures(stores[i], &filter, look_at, s, &ignored) == HONE_OUT_OF_MEMORY)
            return hone_fail_memory(why, where);
    }
    return HONE_OK;
}

// In this process -----------------------------------------------------------------------------------------------------

// Under the mutex.
static const hone_wrong *find_here(
    const hone_runtime *rt, const hone_kernel_ref *kernel, const char *config, bool is_told)
{
    for (const hone_wrong *wrong = rt->wrongs; wrong != NULL; wrong = wrong->next)
        if (wrong->kernel == kernel && wrong->is_told == is_told &&
            (config == NULL || strcmp(wrong->config, config) == 0))
            return wrong;
    return NULL;
}

static void look_here(hone_runtime *rt, search *s)
{
    hone_mutex_lock(&rt->mutex);
    const hone_wrong *wrong = find_here(rt, s->kernel, s->config, false);
    if (wrong != NULL) memcpy(s->words, wrong->words, sizeof s->words);
    s->found = wrong != NULL;
    hone_mutex_unlock(&rt->mutex);
}

// Calls that the kernel answered are decided again. What a user named stays.
static bool is_doubted(void *kernel, const hone_plan_entry *entry)
{
    return entry->kernel == kernel && !hone_source_is(entry->source, HONE_LINK_NAMED);
}

// Returns true if the failure is new. is_told: a store reported it, and is asked again each time.
static bool note(hone_runtime *rt, const hone_kernel_ref *kernel, const char *config, const char *words, bool is_told)
{
    hone_wrong *wrong = hone_alloc(&rt->allocator, sizeof *wrong);
    if (wrong == NULL) return true;
    wrong->kernel = kernel;
    wrong->is_told = is_told;
    snprintf(wrong->config, sizeof wrong->config, "%s", config);
    snprintf(wrong->words, sizeof wrong->words, "%s", words);
    hone_mutex_lock(&rt->mutex);
    const bool is_new = find_here(rt, kernel, wrong->config, is_told) == NULL;
    if (is_new) {
        (void)hone_kernel_retain(kernel);
        wrong->next = rt->wrongs;
        rt->wrongs = wrong;
        wrong = NULL;
    }
    hone_mutex_unlock(&rt->mutex);
    hone_free(&rt->allocator, wrong);
    return is_new;
}

static void take_plans_back(hone_runtime *rt, const hone_kernel_ref *kernel)
{
    hone_runtime_answers_changed(rt);
    hone_plan_table_drop(&rt->plans, is_doubted, (void *)(uintptr_t)kernel);
}

void hone_runtime_found_wrong(
    void *ctx,
    const hone_kernel_ref *kernel,
    const char *config,
    const char *call,
    hone_failure failure,
    const char *reason)
{
    hone_runtime *rt = ctx;
    char words[512];
    if (kernel->builtin || !hone_failure_kind_of(failure)->is_wrong) return;
    write_words(words, sizeof words, call, failure, reason);
    (void)note(rt, kernel, config, words, false);
    take_plans_back(rt, kernel);
}

void hone_runtime_forget_wrongs(hone_runtime *rt, bool all)
{
    hone_mutex_lock(&rt->mutex);
    for (hone_wrong **link = &rt->wrongs; *link != NULL;) {
        hone_wrong *wrong = *link;
        if (!all && hone_kernel_is_registered(wrong->kernel)) {
            link = &wrong->next;
            continue;
        }
        *link = wrong->next;
        hone_kernel_release(wrong->kernel);
        hone_free(&rt->allocator, wrong);
    }
    hone_mutex_unlock(&rt->mutex);
}

// Asking --------------------------------------------------------------------------------------------------------------

hone_status hone_kernel_was_right(hone_runtime *rt, const hone_kernel_ref *kernel, const char *config, hone_error *why)
{
    search s = {.kernel = kernel, .config = config};
    if (kernel->builtin || kernel->kernel.is_reference) return HONE_OK;
    look_here(rt, &s);
    const bool is_here = s.found;
    hone_status status = s.found ? HONE_OK : look_in_stores(rt, &s, why);
    if (status != HONE_OK || !s.found) return status;
    // Another process found the failure: calls that this process answered with the kernel are decided again.
    if (!is_here && note(rt, kernel, s.with, s.words, true)) take_plans_back(rt, kernel);
    return hone_fail(
        why, HONE_KERNEL_FAILED, where, "%s%s%s %s; it is not taken again until its revision changes",
        kernel->kernel.name, config != NULL && config[0] != '\0' ? " " : "", config != NULL ? config : "", s.words);
}
