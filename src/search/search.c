// Which config is next: known ones, the default, the middle, a few far from it; then arms that a bandit chooses
// between.
//
// The arms are two models (gauss.c while results are few, forest.c), a sweep along one parameter, a mix of good
// configs, and a random one. Each arm has a fixed share, times the share of its own proposals that became the best;
// tries and gains of long ago fade. The shares were chosen on recorded spaces (docs/search.md). No arm is ever without
// a chance: a model that is wrong about a space delays the search and does not prevent its end.
#include "search/search.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "search/inside.h"

#include <math.h>
#include <string.h>

static const char where[] = "search";

enum {
    SPREAD_FIRST = 6, // a config from the middle and others far from it, before the model is asked
    SPREAD_LESS =
        3,         // where a good one was told beforehand: the last is one that differs from the best in one parameter
    ALTERNATE = 2, // of the beginning, one in so many is a known config; the very first is one
    ALONE_UNDER = 30, // results under which the process alone proposes
    LESSONS_MOST = 4000
};

static hone_status start(hone_search *search, const hone_search_options *options, hone_error *err)
{
    hone_config config;
    hone_status status = hone_config_table_init(
        &search->table, &search->allocator, search->table.bound, options->configs, options->config_count, options->seed,
        err);
    if (status == HONE_OK) status = hone_search_plan_known(search, options, err);
    if (status == HONE_OK) status = hone_model_init(&search->model, &search->allocator, &search->table, err);
    if (status != HONE_OK || options->configs != NULL) return status;
    status = hone_bound_space_default(search->table.bound, &config, err);
    if (status == HONE_NOT_FOUND || status == HONE_UNSUPPORTED) return HONE_OK;
    return status == HONE_OK ? hone_config_table_enter(&search->table, &config, &search->default_row, err) : status;
}

hone_status hone_search_create(
    const hone_allocator *allocator,
    const hone_bound_space *space,
    const hone_search_options *options,
    hone_search **out,
    hone_error *err)
{
    static const hone_search_options none = {0};
    *out = NULL;
    hone_search *search = hone_alloc(allocator, sizeof *search);
    if (search == NULL) return hone_fail_memory(err, where);
    if (options == NULL) options = &none;
    search->allocator = *allocator;
    search->table.bound = space;
    search->random = options->seed;
    search->best = SIZE_MAX;
    search->default_row = HONE_TABLE_NONE;
    hone_status status = start(search, options, err);
    if (status == HONE_OK)
        *out = search;
    else
        hone_search_destroy(&search);
    return status;
}

void hone_search_destroy(hone_search **search)
{
    if (search == NULL || *search == NULL) return;
    hone_search *dying = *search;
    *search = NULL;
    hone_allocator allocator = dying->allocator;
    hone_model_deinit(&dying->model);
    hone_config_table_deinit(&dying->table);
    hone_free(&allocator, dying->known);
    hone_free(&allocator, dying->told);
    hone_free(&allocator, dying->arm_of);
    hone_free(&allocator, dying);
}

// The beginning -------------------------------------------------------------------------------------------------------

static uint32_t next_default(hone_search *search)
{
    uint32_t row = search->is_given ? HONE_TABLE_NONE : search->default_row;
    search->default_row = HONE_TABLE_NONE;
    return row != HONE_TABLE_NONE && !search->table.taken[row] ? row : HONE_TABLE_NONE;
}

// Who tells a config that nobody proposed, such as a kernel's default for this very call, has a better beginning than
// any that is far from it.
static uint32_t next_spread(hone_search *search)
{
    const size_t most = search->is_given ? SPREAD_LESS : SPREAD_FIRST;
    if (search->spread >= most) return HONE_TABLE_NONE;
    const size_t turn = search->spread++;
    if (turn == 0) return hone_search_middle(search);
    const uint32_t row = turn + 1 == SPREAD_LESS && search->is_given ? hone_search_sweep(search) : HONE_TABLE_NONE;
    return row != HONE_TABLE_NONE ? row : hone_search_far(search);
}

// Known configs alternate with others: only beside those it is seen that they are good.
static uint32_t begin(hone_search *search)
{
    uint32_t row = HONE_TABLE_NONE;
    if (search->begun++ % ALTERNATE == 0) row = hone_search_next_known(search);
    if (row == HONE_TABLE_NONE) row = next_default(search);
    if (row == HONE_TABLE_NONE) row = next_spread(search);
    return row == HONE_TABLE_NONE ? hone_search_next_known(search) : row;
}

// Arms ----------------------------------------------------------------------------------------------------------------

// What each arm gets while nothing is known about how it does, in percent.
static const double shares[HONE_ARMS] = {
    [HONE_ARM_GAUSS] = 58, [HONE_ARM_FOREST] = 36, [HONE_ARM_SWEEP] = 2, [HONE_ARM_MIX] = 2, [HONE_ARM_RANDOM] = 2,
};
// Gains and tries that every arm is given before it has any, and how much of them is remembered from step to step.
static const double given_gains = 1, given_tries = 10, memory = 0.98;

// By its share, and by how often a proposal of it became the best: probability matching, with what every arm is given
// as a prior, so that none is ever out.
static hone_arm draw_arm(hone_search *search)
{
    double worth[HONE_ARMS], sum = 0;
    for (size_t i = 0; i < HONE_ARMS; i++) {
        worth[i] = shares[i] * (search->gains[i] + given_gains) / (search->tries[i] + given_tries);
        sum += worth[i];
    }
    double drawn = hone_random_unit(&search->random) * sum;
    size_t arm = 0;
    while (arm + 1 < HONE_ARMS && drawn > worth[arm])
        drawn -= worth[arm++];
    return (hone_arm)arm;
}

// False: there is too little to learn from.
static bool teach(hone_search *search)
{
    size_t first = search->told_count > LESSONS_MOST ? search->told_count - LESSONS_MOST : 0;
    for (size_t i = first; i < search->told_count; i++) {
        const hone_observation *o = &search->told[i];
        bool failed = o->failure != HONE_FAILURE_NONE;
        float target = failed ? 0 : (float)(log(o->time) - search->origin);
        search->model.lessons[i - first] = (hone_lesson){o->row, failed, target};
    }
    return hone_model_learn(&search->model, search->told_count - first);
}

static uint32_t ask_arm(hone_search *search, hone_arm arm)
{
    switch (arm) {
    case HONE_ARM_GAUSS:
        return hone_model_choose_gauss(&search->model, &search->table, search->told[search->best].row, &search->random);
    case HONE_ARM_FOREST:
        return hone_model_choose_forest(&search->model, &search->table, &search->random);
    case HONE_ARM_SWEEP:
        return hone_search_sweep(search);
    case HONE_ARM_MIX:
        return hone_search_mix(search);
    default:
        return hone_config_table_draw(&search->table, &search->random);
    }
}

static uint32_t choose(hone_search *search, hone_arm *out_arm)
{
    uint32_t row = begin(search);
    *out_arm = HONE_ARMS;
    if (row != HONE_TABLE_NONE) return row;
    *out_arm = search->told_count < ALONE_UNDER ? HONE_ARM_GAUSS : draw_arm(search);
    bool learnt = *out_arm > HONE_ARM_FOREST || teach(search);
    row = learnt ? ask_arm(search, *out_arm) : HONE_TABLE_NONE;
    if (row != HONE_TABLE_NONE) return row;
    *out_arm = HONE_ARM_RANDOM;
    return hone_config_table_draw(&search->table, &search->random);
}

// Ask and tell --------------------------------------------------------------------------------------------------------

static hone_status make_room(hone_search *search, hone_error *err)
{
    hone_status status = hone_config_table_refill(&search->table, err);
    if (status != HONE_OK) return status;
    size_t rows = search->table.count, lessons = search->told_count < LESSONS_MOST ? search->told_count : LESSONS_MOST;
    if (!hone_grow(&search->allocator, &search->arm_of, &search->arm_capacity, rows, sizeof *search->arm_of))
        return hone_fail_memory(err, where);
    return hone_model_reserve(&search->model, &search->table, lessons + 1, err);
}

hone_status hone_search_next(hone_search *search, hone_config *out_config, hone_error *err)
{
    hone_arm arm;
    hone_status status = make_room(search, err);
    if (status != HONE_OK) return status;
    if (search->table.left == 0) return hone_fail(err, HONE_NOT_FOUND, where, "every config was proposed");
    uint32_t row = choose(search, &arm);
    hone_assert(row < search->table.count && !search->table.taken[row]); // nothing is proposed twice
    hone_config_table_take(&search->table, row);
    search->arm_of[row] = (uint8_t)(arm + 1);
    hone_config_table_get(&search->table, row, out_config);
    return HONE_OK;
}

static size_t find_told(const hone_search *search, uint32_t row)
{
    size_t i = 0;
    while (i < search->told_count && search->told[i].row != row)
        i++;
    return i;
}

static void find_best(hone_search *search)
{
    search->best = SIZE_MAX;
    for (size_t i = 0; i < search->told_count; i++) {
        const hone_observation *o = &search->told[i];
        if (o->failure == HONE_FAILURE_NONE && (search->best == SIZE_MAX || o->time < search->told[search->best].time))
            search->best = i;
    }
}

// The arm that proposed a row gets what became of it. What was long ago counts less.
static void credit(hone_search *search, uint32_t row, bool gained)
{
    size_t arm = row < search->arm_capacity && search->arm_of[row] > 0 ? search->arm_of[row] - 1u : HONE_ARMS;
    if (arm == HONE_ARMS) return;
    for (size_t i = 0; i < HONE_ARMS; i++) {
        search->tries[i] *= memory;
        search->gains[i] *= memory;
    }
    search->tries[arm]++;
    search->gains[arm] += gained;
}

hone_status hone_search_tell(
    hone_search *search, const hone_config *config, double time_ns, hone_failure failure, hone_error *err)
{
    uint32_t row;
    if (failure == HONE_FAILURE_NONE && !(isfinite(time_ns) && time_ns > 0))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a time is finite and above 0, not %g", time_ns);
    hone_status status = hone_config_table_enter(&search->table, config, &row, err);
    if (status != HONE_OK) return status;
    search->is_given = search->is_given || (!search->table.taken[row] && failure == HONE_FAILURE_NONE);
    size_t index = search->table.taken[row] ? find_told(search, row) : search->told_count;
    if (!hone_grow(&search->allocator, &search->told, &search->told_capacity, index + 1, sizeof *search->told))
        return hone_fail_memory(err, where);
    hone_config_table_take(&search->table, row);
    search->told[index] = (hone_observation){row, time_ns, failure};
    if (index == search->told_count) search->told_count++;
    if (search->best == SIZE_MAX && failure == HONE_FAILURE_NONE) search->origin = log(time_ns);
    find_best(search);
    credit(search, row, search->best == index);
    return search->best == index ? hone_search_extend(search, row, err) : HONE_OK;
}

// The model's word, and beside it what stands against its being wrong.
double hone_search_expected_gain(const hone_search *search)
{
    if (search->table.left == 0 && search->table.complete) return 0;
    if (search->best == SIZE_MAX) return 1;
    double blind = 0.05 / (double)(search->told_count + 1);
    if (search->model.gain < 0) return 1 / (double)(search->told_count + 1);
    return fmax(-expm1(-search->model.gain), blind);
}
