// Who competes, and with which configs: the default of every kernel first; then all configs when they are few, else a
// sample of each kernel's, none of which may take the whole budget.
#include "tune/contest.h"

#include "base/error.h"
#include "base/hash.h"
#include "tune/statistics.h"

#include <string.h>

enum {
    SLOW_AFTER = 8, // tries after which a kernel that is far behind gets fewer turns
    SLOW_TURNS = 4  // one in so many
};

static const double slow_factor = 2.0;
static const char where[] = "tune.candidates";

bool hone_config_equal(const hone_config *a, const hone_config *b)
{
    return a->count == b->count && memcmp(a->values, b->values, a->count * sizeof a->values[0]) == 0;
}

void hone_contest_exclude(hone_contest_state *state, size_t kernel, const char *reason)
{
    hone_contest_kernel *row = &state->out->kernels[kernel];
    hone_words_copy(row->reason, sizeof row->reason, reason);
    hone_bound_space_release(&state->contestants[kernel].space);
}

// Collecting -----------------------------------------------------------------------------------------------------

static hone_status asked_for(const hone_contest_state *state, const hone_kernel *kernel, hone_error *err)
{
    const hone_tune_options *options = &state->options;
    if (kernel->is_reference) return hone_fail(err, HONE_UNSUPPORTED, where, "the reference, which never competes");
    if (options->kernel && strcmp(options->kernel, kernel->name) != 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "left out: only kernel %s was asked for", options->kernel);
    if (options->platform && strcmp(options->platform, hone_platform_name(kernel->platform)) != 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "left out: only platform %s was asked for", options->platform);
    return HONE_OK;
}

// Why this kernel does not compete, or its space bound to the call.
static hone_status admit(hone_contest_state *state, hone_contestant *contestant, hone_error *err)
{
    const hone_device_info *device = state->environment->device;
    const hone_tune_environment *environment = state->environment;
    hone_status status = asked_for(state, &contestant->ref->kernel, err);
    if (status == HONE_OK && environment->admits)
        status = environment->admits(environment->admits_ctx, contestant->ref, err);
    if (status == HONE_OK) status = hone_kernel_eligible(contestant->ref, state->call, device, err);
    if (status == HONE_OK)
        status = hone_kernel_default_config(contestant->ref, state->call, device, &contestant->default_config, err);
    if (status == HONE_OK)
        status = hone_space_bind(contestant->ref->space, state->call, device, &contestant->space, err);
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

// Queues ---------------------------------------------------------------------------------------------------------

typedef struct listing {
    hone_contestant *contestant;
    const hone_allocator *allocator;
    size_t capacity, limit;
    bool failed;
} listing;

static bool add_config(void *ctx, const hone_config *config)
{
    listing *list = ctx;
    hone_contestant *contestant = list->contestant;
    if (hone_config_equal(config, &contestant->default_config)) return true;
    if (contestant->queued == list->limit) return false;
    if (!hone_grow(
            list->allocator, &contestant->queue, &list->capacity, contestant->queued + 1, sizeof *contestant->queue)) {
        list->failed = true;
        return false;
    }
    contestant->queue[contestant->queued++] = *config;
    return true;
}

// An explicit list may repeat itself and may name configs that the space does not have.
static void list_explicit(hone_contest_state *state, listing *list)
{
    hone_contestant *contestant = list->contestant;
    const hone_kernel *kernel = &contestant->ref->kernel;
    for (size_t i = 0;; i++) {
        hone_config config = {0};
        if (!kernel->candidates(kernel, state->call, i, &config)) return;
        if (hone_bound_space_check(contestant->space, &config, NULL) != HONE_OK) continue;
        bool known = false;
        for (size_t j = 0; j < contestant->queued && !known; j++)
            known = hone_config_equal(&contestant->queue[j], &config);
        if (!known && !add_config(list, &config)) return;
    }
}

static hone_status list_sample(hone_contest_state *state, listing *list, hone_error *err)
{
    // One more than wanted, since the default may be among them.
    size_t wanted = list->limit + 1, count = 0;
    const char *name = list->contestant->ref->kernel.name;
    hone_config *configs = hone_alloc_array(list->allocator, wanted, sizeof *configs);
    if (!configs) return hone_fail_memory(err, where);
    uint64_t seed = state->options.seed ^ hone_hash64(name, strlen(name));
    hone_status status = hone_bound_space_sample(list->contestant->space, seed, wanted, configs, &count, err);
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        if (!add_config(list, &configs[i])) break;
    hone_free(list->allocator, configs);
    return status;
}

static void shuffle(hone_contestant *contestant, uint64_t seed)
{
    for (size_t i = contestant->queued; i > 1; i--) {
        size_t other = hone_random_below(&seed, (uint32_t)i);
        hone_config config = contestant->queue[i - 1];
        contestant->queue[i - 1] = contestant->queue[other];
        contestant->queue[other] = config;
    }
}

static hone_status fill_one(
    hone_contest_state *state, hone_contestant *contestant, uint64_t size, size_t limit, hone_error *err)
{
    listing list = {contestant, &state->environment->allocator, 0, limit, false};
    hone_status status = HONE_OK;
    if (limit == 0) return HONE_OK;
    if (contestant->ref->kernel.candidates)
        list_explicit(state, &list);
    else if (size - 1 <= limit)
        status = hone_bound_space_enumerate(contestant->space, add_config, &list, err);
    else
        status = list_sample(state, &list, err);
    if (status == HONE_OK && list.failed) return hone_fail_memory(err, where);
    shuffle(contestant, state->options.seed + 1);
    return status;
}

// How many configs each contestant has, the default counted in; an explicit list may be as long as it likes.
static hone_status count_configs(hone_contest_state *state, uint64_t *sizes, hone_error *err)
{
    for (size_t i = 0; i < state->count; i++) {
        hone_contestant *contestant = &state->contestants[i];
        sizes[i] = 0;
        if (!contestant->space) continue;
        if (contestant->ref->kernel.candidates) {
            sizes[i] = state->options.evaluations;
            continue;
        }
        hone_status status = hone_bound_space_count(contestant->space, &sizes[i], err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// The largest share that, given to every contestant that can use it, keeps within the budget.
static uint64_t fair_share(const uint64_t *sizes, size_t count, uint64_t budget)
{
    uint64_t low = 0, high = budget;
    while (low < high) {
        uint64_t share = low + (high - low + 1) / 2, used = 0;
        for (size_t i = 0; i < count; i++)
            used += sizes[i] == 0 ? 0 : sizes[i] - 1 < share ? sizes[i] - 1 : share;
        if (used <= budget)
            low = share;
        else
            high = share - 1;
    }
    return low;
}

static hone_status fill_all(hone_contest_state *state, uint64_t *sizes, hone_error *err)
{
    uint64_t defaults = 0;
    hone_status status = count_configs(state, sizes, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; i < state->count; i++)
        defaults += sizes[i] > 0;
    uint64_t budget = state->options.evaluations > defaults ? state->options.evaluations - defaults : 0;
    uint64_t share = fair_share(sizes, state->count, budget);
    state->exhaustive = true;
    state->total = (uint32_t)defaults;
    for (size_t i = 0; i < state->count && status == HONE_OK; i++) {
        hone_contestant *contestant = &state->contestants[i];
        if (sizes[i] == 0) continue;
        status = fill_one(state, contestant, sizes[i], (size_t)share, err);
        if (sizes[i] - 1 > share && contestant->queued >= share) state->exhaustive = false;
        state->total += (uint32_t)contestant->queued;
    }
    if (state->total > state->options.evaluations) state->total = state->options.evaluations;
    return status;
}

hone_status hone_contest_fill(hone_contest_state *state, hone_error *err)
{
    const hone_allocator *allocator = &state->environment->allocator;
    uint64_t *sizes = hone_alloc_array(allocator, state->count, sizeof *sizes);
    if (!sizes) return hone_fail_memory(err, where);
    hone_status status = fill_all(state, sizes, err);
    hone_free(allocator, sizes);
    return status;
}

// Turns ----------------------------------------------------------------------------------------------------------

static bool is_left(const hone_contestant *contestant)
{
    return contestant->space && !contestant->put_aside && contestant->next < contestant->queued;
}

// Far behind after a fair number of tries: it gets one turn in SLOW_TURNS.
static bool sits_out(const hone_contest_state *state, const hone_contestant *contestant)
{
    if (contestant->tried < SLOW_AFTER || state->best < 0) return false;
    double best = state->candidates[state->best].rank_ns;
    bool slow = contestant->best_ns == 0 || contestant->best_ns > slow_factor * best;
    return slow && (state->turn / state->count) % SLOW_TURNS != 0;
}

bool hone_contest_next(hone_contest_state *state, uint32_t *out_kernel, hone_config *out_config)
{
    for (size_t looked = 0; looked < state->count * SLOW_TURNS; looked++) {
        uint32_t index = (uint32_t)(state->turn % state->count);
        hone_contestant *contestant = &state->contestants[index];
        bool plays = is_left(contestant) && !sits_out(state, contestant);
        state->turn++;
        if (!plays) continue;
        *out_kernel = index;
        *out_config = contestant->queue[contestant->next++];
        return true;
    }
    return false;
}
