// Collects the kernels that compete, and begins the search of each with its space or explicit list, with configs known
// from similar calls, and with what an earlier contest measured.
#include "tune/contest/field.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "platforms/platform.h"
#include "tune/contest/known.h"

#include <stdatomic.h>
#include <string.h>

static const char where[] = "tune.candidates";

const hone_contestant *hone_field_default(const hone_field *field)
{
    const hone_contestant *of_pack = NULL, *yielding = NULL;
    for (size_t i = 0; i < field->count; i++) {
        const hone_contestant *contestant = &field->contestants[i];
        if (contestant->space == NULL) continue;
        const hone_contestant **later = hone_kernel_is_of_pack(contestant->ref) ? &of_pack : &yielding;
        if (later == &yielding && !contestant->yields) return contestant;
        if (*later == NULL) *later = contestant;
    }
    return yielding != NULL ? yielding : of_pack;
}

bool hone_field_has_anybody(const hone_field *field)
{
    for (size_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL) return true;
    return false;
}

void hone_field_exclude(hone_field *field, size_t kernel, const char *reason)
{
    hone_assert(kernel < field->count);
    hone_contest_kernel *row = &field->rows[kernel];
    hone_words_copy(row->reason, sizeof row->reason, reason);
    hone_search_destroy(&field->contestants[kernel].search);
    hone_bound_space_release(&field->contestants[kernel].space);
}

void hone_field_warn_left_out(const hone_field *field, const hone_question *question, size_t kernel, const char *reason)
{
    hone_assert(kernel < field->count);
    const hone_kernel_ref *ref = field->contestants[kernel].ref;
    if (ref->builtin || atomic_exchange((atomic_bool *)(uintptr_t)&ref->left_out, true)) return;
    hone_log_write(
        question->environment->log, HONE_LOG_WARNING, "kernel %s is left out of the contest for %s: %s",
        ref->kernel.name, question->title, reason);
}

void hone_field_note_failure(hone_field *field, uint32_t kernel, hone_failure failure, const char *reason)
{
    hone_assert(kernel < field->count && failure < HONE_FAILURE_COUNT);
    hone_contest_kernel *row = &field->rows[kernel];
    row->rejected[failure]++;
    hone_words_copy(row->reason, sizeof row->reason, reason);
}

void hone_field_deinit(hone_field *field, const hone_allocator *allocator)
{
    for (size_t i = 0; i < field->count; i++) {
        hone_search_destroy(&field->contestants[i].search);
        hone_bound_space_release(&field->contestants[i].space);
        hone_free(allocator, field->contestants[i].environment);
    }
    hone_free(allocator, field->contestants);
    hone_free(allocator, field->priors);
}

// Collecting ----------------------------------------------------------------------------------------------------------

hone_status hone_tune_asks_for(
    const hone_tune_options *options, const char *kernel, hone_platform platform, hone_error *err)
{
    if (options->kernel != NULL && strcmp(options->kernel, kernel) != 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "left out: only kernel %s was asked for", options->kernel);
    if (options->platform != NULL && strcmp(options->platform, hone_platform_name(platform)) != 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "left out: only platform %s was asked for", options->platform);
    return HONE_OK;
}

static hone_status asked_for(const hone_question *question, const hone_kernel *kernel, hone_error *err)
{
    if (kernel->is_reference) return hone_fail(err, HONE_UNSUPPORTED, where, "the reference, which never competes");
    return hone_tune_asks_for(&question->options, kernel->name, kernel->platform, err);
}

static hone_status is_worth_timing(const hone_kernel *kernel, const hone_device_info *device, hone_error *err)
{
    const hone_platform_facts *platform = hone_platform_facts_of(kernel->platform);
    const char *why = platform->is_untimed != NULL ? platform->is_untimed(device) : NULL;
    return why == NULL ? HONE_OK : hone_fail(err, HONE_UNSUPPORTED, where, "%s", why);
}

// Decides whether this kernel competes: binds its space to the call, or returns the reason why it does not.
static hone_status admit(const hone_question *question, hone_contestant *contestant, hone_error *err)
{
    const hone_device_info *device = question->environment->device;
    const hone_tune_environment *environment = question->environment;
    hone_status status = asked_for(question, &contestant->ref->kernel, err);
    if (status == HONE_OK) status = hone_kernel_eligible(contestant->ref, question->call, device, err);
    if (status == HONE_OK) status = is_worth_timing(&contestant->ref->kernel, device, err);
    if (status == HONE_OK && environment->admits != NULL)
        status = environment->admits(environment->admits_ctx, contestant->ref, device, err);
    if (status == HONE_OK)
        status = hone_kernel_default_config(contestant->ref, question->call, device, &contestant->default_config, err);
    if (status == HONE_OK)
        status = hone_space_bind(contestant->ref->space, question->call, device, &contestant->space, err);
    contestant->has_default = status == HONE_OK;
    contestant->yields = status == HONE_OK && hone_kernel_yields(contestant->ref, question->call, device);
    return status;
}

hone_status hone_field_collect(hone_field *field, const hone_question *question, hone_contest *out, hone_error *err)
{
    size_t count;
    const hone_allocator *allocator = &question->environment->allocator;
    const hone_kernel_ref *const *kernels = hone_registry_list(question->algorithm, &count);
    field->contestants = hone_alloc_array(allocator, count, sizeof *field->contestants);
    field->rows = out->kernels = hone_alloc_array(allocator, count, sizeof *field->rows);
    if (field->contestants == NULL || field->rows == NULL) return hone_fail_memory(err, where);
    field->count = out->count = count;
    for (size_t i = 0; i < count; i++) {
        hone_error why = {0};
        field->contestants[i].ref = field->rows[i].kernel = kernels[i];
        hone_status status = admit(question, &field->contestants[i], &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        field->rows[i].elsewhere = status != HONE_OK && asked_for(question, &kernels[i]->kernel, NULL) == HONE_OK;
        if (status != HONE_OK) hone_field_exclude(field, i, why.message);
    }
    return HONE_OK;
}

// Searches ------------------------------------------------------------------------------------------------------------

// Lists the configs of an explicit list. The list may repeat configs, and may name some that the space does not have.
static hone_status list_explicit(
    const hone_question *question, const hone_contestant *contestant, hone_config **out, size_t *out_count)
{
    const hone_kernel *kernel = &contestant->ref->kernel;
    size_t capacity = 0, most = question->options.evaluations;
    for (size_t i = 0; *out_count < most; i++) {
        hone_config config = {0};
        if (!kernel->candidates(kernel, question->call, i, &config)) break;
        if (hone_bound_space_check(contestant->space, &config, NULL) != HONE_OK) continue;
        if (!hone_grow(&question->environment->allocator, out, &capacity, *out_count + 1, sizeof **out))
            return HONE_OUT_OF_MEMORY;
        (*out)[(*out_count)++] = config;
    }
    return HONE_OK;
}

static hone_status create_search(
    const hone_question *question,
    hone_contestant *contestant,
    const hone_config *configs,
    size_t count,
    hone_error *err)
{
    const char *name = contestant->ref->kernel.name;
    const hone_search_options options = {
        .seed = question->options.seed ^ hone_hash64(name, strlen(name)),
        .evaluations = question->options.evaluations,
        .priors = contestant->priors,
        .prior_count = contestant->prior_count,
        .configs = configs,
        .config_count = count,
    };
    return hone_search_create(&question->environment->allocator, contestant->space, &options, &contestant->search, err);
}

// *out_size: number of configs.
static hone_status begin_search(
    const hone_question *question, hone_contestant *contestant, uint64_t *out_size, hone_error *err)
{
    uint64_t low; // the lower bound is not used: a space that cannot be counted counts as large
    hone_config *listed = NULL;
    const hone_config *configs = contestant->configs;
    size_t count = contestant->config_count;
    hone_status status = HONE_OK;
    bool lists = configs == NULL && contestant->ref->kernel.candidates != NULL;
    if (lists) status = list_explicit(question, contestant, &listed, &count);
    if (status == HONE_OUT_OF_MEMORY) hone_fail_memory(err, where);
    if (lists) configs = listed;
    *out_size = count;
    if (status == HONE_OK && configs == NULL && !lists)
        status = hone_bound_space_bounds(contestant->space, &low, out_size, err);
    // For the search an empty list means no list. Here it means that the default is the only config.
    if (status == HONE_OK && (configs != NULL || !lists))
        status = create_search(question, contestant, configs, count, err);
    hone_free(&question->environment->allocator, listed);
    if (*out_size == 0) *out_size = 1;
    return status;
}

static void tell_resumed(const hone_field *field, const hone_known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        const hone_resumed *resumed = &known->resumed[i];
        const hone_contestant *contestant = &field->contestants[resumed->kernel];
        hone_contestant_tell(contestant, &resumed->config, resumed->trial.low_ns, resumed->trial.failure);
    }
}

hone_status hone_field_begin_searches(
    hone_field *field, const hone_question *question, const hone_known *known, hone_error *err)
{
    uint64_t total = 0, size = 0;
    for (size_t i = 0; i < field->count; i++) {
        hone_error why = {0};
        if (field->contestants[i].space == NULL) continue;
        hone_status status = begin_search(question, &field->contestants[i], &size, &why);
        field->contestants[i].size = size;
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        if (status != HONE_OK)
            hone_field_exclude(field, i, why.message);
        else
            total = size > UINT64_MAX - total ? UINT64_MAX : total + size;
    }
    tell_resumed(field, known);
    field->exhaustive = total <= question->options.evaluations;
    field->planned = field->exhaustive ? (uint32_t)total : question->options.evaluations;
    return HONE_OK;
}

// The search ignores what it cannot take: a config that its list does not have, or a time of zero.
void hone_contestant_tell(
    const hone_contestant *contestant, const hone_config *config, double time_ns, hone_failure failure)
{
    if (contestant->search != NULL) (void)!hone_search_tell(contestant->search, config, time_ns, failure, NULL);
}
