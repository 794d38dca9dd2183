// Which config is next: known ones, the default, a few far from one another, then the others.
#include "search/search.h"

#include "base/error.h"
#include "base/random.h"
#include "search/pool.h"

#include <math.h>
#include <string.h>

static const char where[] = "search";

enum {
    FIRST_POINTS = 6, // far from one another, before anything else is known
    FIRST_DRAWS = 16, // configs of which each of them is the farthest
    PRIORS_FIRST = 8  // of the known ones that are tried first
};

typedef struct observation {
    uint32_t row;
    double time; // not read when it failed
    hone_failure failure;
} observation;

struct hone_search {
    hone_allocator allocator;
    hone_pool pool;
    uint64_t random;
    uint32_t *firsts; // rows that are tried first, in order
    size_t first_count, next_first;
    observation *told;
    size_t told_count, told_capacity;
    size_t best; // of told; SIZE_MAX: none
    size_t points;
};

// Firsts -----------------------------------------------------------------------------------------------------------

typedef struct scored {
    uint32_t row;
    double loss, weight;
} scored;

// Of a config that several sources know the mean logarithm of its slowdown, by their weights, one that knows nothing
// standing in with the neutral bound: what many near sources like comes first.
static size_t score_priors(hone_search *search, const hone_search_options *options, scored *out)
{
    size_t count = 0;
    for (size_t i = 0; i < options->prior_count; i++) {
        const hone_search_prior *prior = &options->priors[i];
        uint32_t row = hone_pool_find(&search->pool, &prior->config);
        if (row == HONE_POOL_NONE || !(prior->relative >= 1) || !(prior->distance >= 0)) continue;
        size_t place = 0;
        while (place < count && out[place].row != row)
            place++;
        if (place == count) out[count++] = (scored){row, 0, 0};
        double weight = 1 / (.25 + prior->distance);
        out[place].loss += weight * log(prior->relative);
        out[place].weight += weight;
    }
    return count;
}

static void order_priors(scored *scores, size_t count)
{
    for (size_t i = 0; i < count; i++)
        scores[i].loss = (scores[i].loss + log(1.25)) / (scores[i].weight + 1);
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && scores[j].loss < scores[j - 1].loss; j--) {
            scored other = scores[j];
            scores[j] = scores[j - 1];
            scores[j - 1] = other;
        }
}

// Configs that the space does not have, or that its constraints refuse, are left out.
static hone_status enter_priors(hone_search *search, const hone_search_options *options, hone_error *err)
{
    for (size_t i = 0; i < options->prior_count && !search->pool.complete; i++) {
        uint32_t row;
        hone_status status = hone_pool_enter(&search->pool, &options->priors[i].config, &row, err);
        if (status == HONE_OUT_OF_MEMORY) return status;
    }
    return HONE_OK;
}

static hone_status plan_priors(hone_search *search, const hone_search_options *options, hone_error *err)
{
    hone_status status = enter_priors(search, options, err);
    if (status != HONE_OK || options->prior_count == 0) return status;
    scored *scores = hone_alloc_array(&search->allocator, options->prior_count, sizeof *scores);
    if (scores == NULL) return hone_fail_memory(err, where);
    size_t count = score_priors(search, options, scores);
    order_priors(scores, count);
    for (size_t i = 0; i < count && i < PRIORS_FIRST; i++)
        search->firsts[search->first_count++] = scores[i].row;
    hone_free(&search->allocator, scores);
    return HONE_OK;
}

static hone_status plan_default(hone_search *search, const hone_search_options *options, hone_error *err)
{
    hone_config config;
    uint32_t row;
    hone_status status = hone_bound_space_default(search->pool.bound, &config, err);
    if (options->configs != NULL || status == HONE_NOT_FOUND) return HONE_OK;
    if (status == HONE_OK) status = hone_pool_enter(&search->pool, &config, &row, err);
    if (status == HONE_OK) search->firsts[search->first_count++] = row;
    return status;
}

static hone_status start(hone_search *search, const hone_search_options *options, hone_error *err)
{
    search->firsts = hone_alloc_array(&search->allocator, PRIORS_FIRST + 1, sizeof *search->firsts);
    if (search->firsts == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_pool_init(
        &search->pool, &search->allocator, search->pool.bound, options->configs, options->config_count, options->seed,
        err);
    if (status == HONE_OK) status = plan_priors(search, options, err);
    return status == HONE_OK ? plan_default(search, options, err) : status;
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
    search->pool.bound = space;
    search->random = options->seed;
    search->best = SIZE_MAX;
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
    hone_pool_deinit(&dying->pool);
    hone_free(&allocator, dying->firsts);
    hone_free(&allocator, dying->told);
    hone_free(&allocator, dying);
}

// Ask --------------------------------------------------------------------------------------------------------------

static uint32_t next_first(hone_search *search)
{
    while (search->next_first < search->first_count) {
        uint32_t row = search->firsts[search->next_first++];
        if (!search->pool.taken[row]) return row;
    }
    return HONE_POOL_NONE;
}

// How far two rows are apart: in each column as a part of its positions.
static double distance(const hone_pool *pool, uint32_t a, uint32_t b)
{
    double sum = 0;
    const uint16_t *x = hone_pool_row(pool, a), *y = hone_pool_row(pool, b);
    for (size_t i = 0; i < pool->columns; i++) {
        double step = ((double)x[i] - y[i]) / (double)hone_pool_values(pool, i);
        sum += step * step;
    }
    return sum;
}

static double distance_to_told(const hone_search *search, uint32_t row)
{
    double least = INFINITY;
    for (size_t i = 0; i < search->told_count; i++) {
        double d = distance(&search->pool, row, search->told[i].row);
        if (d < least) least = d;
    }
    return least;
}

static uint32_t farthest(hone_search *search)
{
    uint32_t best = HONE_POOL_NONE;
    double most = -1;
    for (size_t i = 0; i < FIRST_DRAWS; i++) {
        uint32_t row = hone_pool_draw(&search->pool, &search->random);
        double d = distance_to_told(search, row);
        if (d > most) {
            most = d;
            best = row;
        }
    }
    return best;
}

static uint32_t choose(hone_search *search)
{
    uint32_t row = next_first(search);
    if (row != HONE_POOL_NONE) return row;
    return search->points++ < FIRST_POINTS ? farthest(search) : hone_pool_draw(&search->pool, &search->random);
}

hone_status hone_search_next(hone_search *search, hone_config *out_config, hone_error *err)
{
    hone_status status = hone_pool_refill(&search->pool, err);
    if (status != HONE_OK) return status;
    if (search->pool.left == 0) return hone_fail(err, HONE_NOT_FOUND, where, "every config was proposed");
    uint32_t row = choose(search);
    hone_pool_take(&search->pool, row);
    hone_pool_get(&search->pool, row, out_config);
    return HONE_OK;
}

// Tell -------------------------------------------------------------------------------------------------------------

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
        const observation *o = &search->told[i];
        if (o->failure == HONE_FAILURE_NONE && (search->best == SIZE_MAX || o->time < search->told[search->best].time))
            search->best = i;
    }
}

hone_status hone_search_tell(
    hone_search *search, const hone_config *config, double time_ns, hone_failure failure, hone_error *err)
{
    uint32_t row;
    if (failure == HONE_FAILURE_NONE && !(isfinite(time_ns) && time_ns > 0))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a time is finite and above 0, not %g", time_ns);
    hone_status status = hone_pool_enter(&search->pool, config, &row, err);
    if (status != HONE_OK) return status;
    size_t index = find_told(search, row);
    if (!hone_grow(&search->allocator, &search->told, &search->told_capacity, index + 1, sizeof *search->told))
        return hone_fail_memory(err, where);
    hone_pool_take(&search->pool, row);
    search->told[index] = (observation){row, time_ns, failure};
    if (index == search->told_count) search->told_count++;
    find_best(search);
    return HONE_OK;
}

double hone_search_expected_gain(const hone_search *search)
{
    if (search->pool.left == 0 && search->pool.complete) return 0;
    if (search->best == SIZE_MAX) return 1;
    return 1 / (double)(search->told_count + 1);
}
