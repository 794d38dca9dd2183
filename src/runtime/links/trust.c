#include "runtime/links/trust.h"

#include "base/error.h"
#include "config/chain.h"
#include "registry/failure_kinds.h"
#include "registry/origin.h"
#include "store/ops.h"
#include "tune/contest/failures.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

static const hone_pack_kernel *pack_of(const hone_kernel_ref *kernel)
{
    return kernel->kernel.code != NULL ? kernel->kernel.code->pack : NULL;
}

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
} search;

// Neither time nor environment counts: only another revision is other code.
static bool look_at(void *ctx, const hone_store_measured *row)
{
    search *s = ctx;
    const hone_store_measurement *failure = &row->measurement;
    if (!hone_failure_kind_of(failure->failure)->is_wrong || strcmp(failure->kernel, s->kernel->kernel.name) != 0 ||
        !hone_same_revision(failure->revision, s->kernel->kernel.revision) ||
        (s->config != NULL && strcmp(failure->config, s->config) != 0) ||
        failure->measured == NULL) // it was forgotten (hone tune --fresh)
        return true;
    char call[HONE_KEY_SIZE + 16];
    snprintf(call, sizeof call, "the call %s", row->key.key);
    write_words(s->words, sizeof s->words, call, failure->failure, failure->reason);
    s->found = true;
    return false;
}

// A store that fails keeps nothing from being true that the other says.
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
static const hone_wrong *find_here(const hone_runtime *rt, const hone_kernel_ref *kernel, const char *config)
{
    for (const hone_wrong *wrong = rt->wrongs; wrong != NULL; wrong = wrong->next)
        if (wrong->kernel == kernel && (config == NULL || strcmp(wrong->config, config) == 0)) return wrong;
    return NULL;
}

static void look_here(hone_runtime *rt, search *s)
{
    hone_mutex_lock(&rt->mutex);
    const hone_wrong *wrong = find_here(rt, s->kernel, s->config);
    if (wrong != NULL) memcpy(s->words, wrong->words, sizeof s->words);
    s->found = wrong != NULL;
    hone_mutex_unlock(&rt->mutex);
}

// Calls that it answered are decided again. What a user named stays.
static bool is_doubted(void *kernel, const hone_plan_entry *entry)
{
    return entry->kernel == kernel && !hone_source_is(entry->source, HONE_LINK_NAMED);
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
    if (kernel->builtin || !hone_failure_kind_of(failure)->is_wrong) return;
    hone_wrong *wrong = hone_alloc(&rt->allocator, sizeof *wrong);
    if (wrong != NULL) {
        wrong->kernel = kernel;
        snprintf(wrong->config, sizeof wrong->config, "%s", config);
        write_words(wrong->words, sizeof wrong->words, call, failure, reason);
        hone_mutex_lock(&rt->mutex);
        if (find_here(rt, kernel, wrong->config) == NULL) {
            (void)hone_kernel_retain(kernel);
            wrong->next = rt->wrongs;
            rt->wrongs = wrong;
            wrong = NULL;
        }
        hone_mutex_unlock(&rt->mutex);
        hone_free(&rt->allocator, wrong);
    }
    hone_runtime_answers_changed(rt);
    hone_plan_table_drop(&rt->plans, is_doubted, (void *)(uintptr_t)kernel);
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
    hone_status status = s.found ? HONE_OK : look_in_stores(rt, &s, why);
    if (status != HONE_OK || !s.found) return status;
    return hone_fail(
        why, HONE_KERNEL_FAILED, where, "%s%s%s %s; it is not taken again until its revision changes",
        kernel->kernel.name, config != NULL && config[0] != '\0' ? " " : "", config != NULL ? config : "", s.words);
}

// The reference of an algorithm that came with a pack: it says what is right. Of an algorithm that was there before, or
// was brought by another pack, it is not, whatever its pack calls it.
static bool is_own_reference(const hone_kernel_ref *kernel)
{
    const hone_algorithm_entry *entry = kernel->algorithm;
    const char *name = entry->algorithm.reference_kernel;
    size_t count = 0;
    if (!kernel->kernel.is_reference || entry->builtin || entry->algorithm.reference != NULL || name == NULL ||
        strcmp(name, kernel->kernel.name) != 0)
        return false;
    const hone_kernel_ref *const *kernels = hone_registry_list(entry, &count);
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->order < kernel->order && strcmp(kernels[i]->kernel.name, name) == 0) return false;
    return true;
}

hone_status hone_request_trusts(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    const hone_pack_kernel *pack = pack_of(kernel);
    hone_status status = hone_kernel_was_right(request->rt, kernel, NULL, why);
    if (status != HONE_OK || pack == NULL) return status;
    if (is_own_reference(kernel)) return HONE_OK;
    return hone_fail(
        why, HONE_NOT_FOUND, where,
        "%s of pack %s was never verified for this call, and answers when it was: hone tune '%.300s' verifies and "
        "measures it, so does the policy tune",
        kernel->kernel.name, pack->pack, hone_call_text(request->call));
}

hone_status hone_request_still_trusts(const hone_request *request, const hone_decision *decision, hone_error *why)
{
    const hone_kernel_ref *kernel = hone_decision_kernel(request->op->algorithm, decision);
    hone_status status = HONE_OK;
    if (kernel == NULL || kernel->builtin || kernel->kernel.is_reference) return HONE_OK;
    const bool is_named = decision->source == HONE_SOURCE_OVERRIDE || decision->source == HONE_SOURCE_MEMORY;
    if (!decision->verified && is_named) return HONE_OK; // a user's own word
    if (!decision->verified) status = hone_request_trusts(request, kernel, why);
    if (status == HONE_OK) status = hone_kernel_was_right(request->rt, kernel, decision->config_json, why);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY) why->status = status = HONE_NOT_FOUND;
    return status;
}

void hone_request_warn(const hone_request *request, const hone_kernel_ref *kernel, const hone_decision *decision)
{
    hone_error why = {.message = ""};
    const bool is_named = hone_source_is(decision->source, HONE_LINK_NAMED) ||
                          (decision->source == HONE_SOURCE_MEMORY && !decision->verified);
    // A frozen program asks its lock file and nothing else.
    if (!is_named || kernel == NULL || hone_request_policy(request) == HONE_POLICY_FROZEN) return;
    if (hone_kernel_was_right(request->rt, kernel, NULL, &why) != HONE_KERNEL_FAILED) return;
    hone_log_write(
        &request->rt->log, HONE_LOG_WARNING, "%s: the %s names a kernel that was found wrong, and is followed: %s",
        hone_call_text(request->call), hone_source_name(decision->source), why.message);
}
