// Who competes, and what each kernel's search begins with: its space or explicit list, what is known from elsewhere, and
// what an earlier contest measured.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "base/hash.h"

#include <string.h>

static const char where[] = "tune.candidates";

void hone_contest_exclude(hone_contest_state *state, size_t kernel, const char *reason)
{
    hone_contest_kernel *row = &state->out->kernels[kernel];
    hone_words_copy(row->reason, sizeof row->reason, reason);
    hone_search_destroy(&state->contestants[kernel].search);
    hone_bound_space_release(&state->contestants[kernel].space);
}

// Collecting -----------------------------------------------------------------------------------------------------

hone_status hone_tune_asks_for(
    const hone_tune_options *options, const char *kernel, hone_platform platform, hone_error *err)
{
    if (options->kernel && strcmp(options->kernel, kernel) != 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "left out: only kernel %s was asked for", options->kernel);
    if (options->platform && strcmp(options->platform, hone_platform_name(platform)) != 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "left out: only platform %s was asked for", options->platform);
    return HONE_OK;
}

static hone_status asked_for(const hone_contest_state *state, const hone_kernel *kernel, hone_error *err)
{
    if (kernel->is_reference) return hone_fail(err, HONE_UNSUPPORTED, where, "the reference, which never competes");
    return hone_tune_asks_for(&state->options, kernel->name, kernel->platform, err);
}

// On a CPU a kernel of Pallas is interpreted, step by step: it is right there, and how long it takes says nothing of it.
static hone_status is_worth_timing(const hone_kernel *kernel, const hone_device_info *device, hone_error *err)
{
    if (kernel->platform != HONE_PALLAS || device->backend != HONE_CPU) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where,
        "runs in interpret mode on a CPU, for correctness only: its time says nothing of the kernel, so it does not "
        "compete");
}

// Why this kernel does not compete, or its space bound to the call.
static hone_status admit(hone_contest_state *state, hone_contestant *contestant, hone_error *err)
{
    const hone_device_info *device = state->environment->device;
    const hone_tune_environment *environment = state->environment;
    hone_status status = asked_for(state, &contestant->ref->kernel, err);
    if (status == HONE_OK) status = hone_kernel_eligible(contestant->ref, state->call, device, err);
    if (status == HONE_OK) status = is_worth_timing(&contestant->ref->kernel, device, err);
    if (status == HONE_OK && environment->admits)
        status = environment->admits(environment->admits_ctx, contestant->ref, device, err);
    if (status == HONE_OK)
        status = hone_kernel_default_config(contestant->ref, state->call, device, &contestant->default_config, err);
    if (status == HONE_OK)
        status = hone_space_bind(contestant->ref->space, state->call, device, &contestant->space, err);
    contestant->has_default = status == HONE_OK;
    return status;
}

hone_status hone_contest_collect(hone_contest_state *state, hone_error *err)
{
    size_t count;
    const hone_allocator *allocator = &state->environment->allocator;
    const hone_kernel_ref *const *kernels = hone_registry_list(state->algorithm, &count);
    state->contestants = hone_alloc_array(allocator, count, sizeof *state->contestants);
    state->out->kernels = hone_alloc_array(allocator, count, sizeof *state->out->kernels);
    if (!state->contestants || !state->out->kernels) return hone_fail_memory(err, where);
    state->count = state->out->count = count;
    for (size_t i = 0; i < count; i++) {
        hone_error why = {0};
        state->contestants[i].ref = state->out->kernels[i].kernel = kernels[i];
        hone_status status = admit(state, &state->contestants[i], &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        if (status != HONE_OK) hone_contest_exclude(state, i, why.message);
    }
    return HONE_OK;
}

// Searches -------------------------------------------------------------------------------------------------------

// An explicit list may repeat itself and may name configs that the space does not have.
static hone_status list_explicit(
    const hone_contest_state *state, const hone_contestant *contestant, hone_config **out, size_t *out_count)
{
    const hone_kernel *kernel = &contestant->ref->kernel;
    size_t capacity = 0, most = state->options.evaluations;
    for (size_t i = 0; *out_count < most; i++) {
        hone_config config = {0};
        if (!kernel->candidates(kernel, state->call, i, &config)) break;
        if (hone_bound_space_check(contestant->space, &config, NULL) != HONE_OK) continue;
        if (!hone_grow(&state->environment->allocator, out, &capacity, *out_count + 1, sizeof **out))
            return HONE_OUT_OF_MEMORY;
        (*out)[(*out_count)++] = config;
    }
    return HONE_OK;
}

static hone_status create_search(
    const hone_contest_state *state,
    hone_contestant *contestant,
    const hone_config *configs,
    size_t count,
    hone_error *err)
{
    const char *name = contestant->ref->kernel.name;
    const hone_search_options options = {
        .seed = state->options.seed ^ hone_hash64(name, strlen(name)),
        .evaluations = state->options.evaluations,
        .priors = contestant->priors,
        .prior_count = contestant->prior_count,
        .configs = configs,
        .config_count = count,
    };
    return hone_search_create(&state->environment->allocator, contestant->space, &options, &contestant->search, err);
}

// *out_size: how many configs there are.
static hone_status begin_search(
    const hone_contest_state *state, hone_contestant *contestant, uint64_t *out_size, hone_error *err)
{
    uint64_t low; // a space that cannot be counted is a large one
    hone_config *listed = NULL;
    const hone_config *configs = contestant->configs;
    size_t count = contestant->config_count;
    hone_status status = HONE_OK;
    bool lists = !configs && contestant->ref->kernel.candidates;
    if (lists) status = list_explicit(state, contestant, &listed, &count);
    if (status == HONE_OUT_OF_MEMORY) hone_fail_memory(err, where);
    if (lists) configs = listed;
    *out_size = count;
    if (status == HONE_OK && !configs && !lists)
        status = hone_bound_space_bounds(contestant->space, &low, out_size, err);
    // An empty list is no list to the search, and here leaves the default alone.
    if (status == HONE_OK && (configs || !lists)) status = create_search(state, contestant, configs, count, err);
    hone_free(&state->environment->allocator, listed);
    if (*out_size == 0) *out_size = 1;
    return status;
}

static void tell_resumed(hone_contest_state *state)
{
    for (size_t i = 0; i < state->resumed_count; i++) {
        const hone_resumed *resumed = &state->resumed[i];
        const hone_contestant *contestant = &state->contestants[resumed->kernel];
        hone_contest_tell(contestant, &resumed->config, resumed->trial.low_ns, resumed->trial.failure);
    }
}

hone_status hone_contest_fill(hone_contest_state *state, hone_error *err)
{
    uint64_t total = 0, size = 0;
    for (size_t i = 0; i < state->count; i++) {
        hone_error why = {0};
        if (!state->contestants[i].space) continue;
        hone_status status = begin_search(state, &state->contestants[i], &size, &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        if (status != HONE_OK)
            hone_contest_exclude(state, i, why.message);
        else
            total = size > UINT64_MAX - total ? UINT64_MAX : total + size;
    }
    tell_resumed(state);
    state->exhaustive = total <= state->options.evaluations;
    state->total = state->exhaustive ? (uint32_t)total : state->options.evaluations;
    return HONE_OK;
}

// What the search cannot take (a config that its list does not have, a time of zero) it learns nothing from.
void hone_contest_tell(
    const hone_contestant *contestant, const hone_config *config, double time_ns, hone_failure failure)
{
    if (contestant->search) (void)!hone_search_tell(contestant->search, config, time_ns, failure, NULL);
}
