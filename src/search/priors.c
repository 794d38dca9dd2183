// What other calls, devices and versions know: which of their configs are tried first, and whom to believe no longer.
//
// Each source says how much slower a config is than its own best. A config's expected loss is the mean of the
// logarithms of that over its sources, weighted by the inverse of their distance (D. Shepard, "A Two-Dimensional
// Interpolation Function for Irregularly-Spaced Data", 1968), together with one source that knows nothing. The least
// expected loss is tried first. Constants were chosen by hand; docs/benchmarks.md has what warm searches gain with
// them.
#include "search/inside.h"

#include "base/error.h"

#include <math.h>

static const char where[] = "search.priors";

enum {
    KNOWN_FIRST = 8,  // known configs that are tried
    ENOUGH_TOLD = 2,  // results of a source, and of configs from elsewhere, before the source is judged
    ENOUGH_FAILED = 2 // failures with no success
};

// A source that does not know a config is taken to find it this much slower than its best, with the weight of a source
// at distance .75: what one source praises counts for less than what many do.
static const double unknown_relative = 1.25, unknown_weight = 1;

static double weight_of(const hone_search_prior *prior)
{
    return 1 / (.25 + prior->distance);
}

static bool is_sound(const hone_search_prior *prior)
{
    return prior->relative >= 1 && isfinite(prior->relative) && prior->distance >= 0 && isfinite(prior->distance);
}

// The nearest source of a config is the one that answers for it.
static void add_known(hone_search *search, uint32_t row, const hone_search_prior *prior)
{
    size_t place = 0;
    double weight = weight_of(prior);
    while (place < search->known_count && search->known[place].row != row)
        place++;
    if (place == search->known_count)
        search->known[search->known_count++] = (hone_search_known){row, prior->source, 0, 0};
    search->known[place].loss += weight * log(prior->relative);
    search->known[place].weight += weight;
}

static void sort_known(hone_search *search)
{
    hone_search_known *known = search->known;
    for (size_t i = 0; i < search->known_count; i++)
        known[i].loss = (known[i].loss + unknown_weight * log(unknown_relative)) / (known[i].weight + unknown_weight);
    for (size_t i = 1; i < search->known_count; i++)
        for (size_t j = i; j > 0 && known[j].loss < known[j - 1].loss; j--) {
            hone_search_known other = known[j];
            known[j] = known[j - 1];
            known[j - 1] = other;
        }
}

hone_status hone_search_plan_known(hone_search *search, const hone_search_options *options, hone_error *err)
{
    if (options->prior_count == 0) return HONE_OK;
    search->known = hone_alloc_array(&search->allocator, options->prior_count, sizeof *search->known);
    if (search->known == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < options->prior_count; i++) {
        const hone_search_prior *prior = &options->priors[i];
        uint32_t row = hone_config_table_find(&search->table, &prior->config);
        // What the space does not have, or its constraints refuse, is no error: it was another space's.
        if (row == HONE_TABLE_NONE && !search->table.complete &&
            hone_config_table_enter(&search->table, &prior->config, &row, err) == HONE_OUT_OF_MEMORY)
            return HONE_OUT_OF_MEMORY;
        if (row != HONE_TABLE_NONE && is_sound(prior)) add_known(search, row, prior);
    }
    sort_known(search);
    return HONE_OK;
}

static const hone_search_known *find_known(const hone_search *search, uint32_t row)
{
    for (size_t i = 0; i < search->known_count; i++)
        if (search->known[i].row == row) return &search->known[i];
    return NULL;
}

typedef struct record {
    size_t told, failed;
    double best;
} record;

static void note(record *r, const hone_observation *o)
{
    r->told++;
    if (o->failure != HONE_FAILURE_NONE)
        r->failed++;
    else if (r->best == 0 || o->time < r->best)
        r->best = o->time;
}

// Its configs fail, or the best of them loses against configs that nobody praised.
static bool misleads(const hone_search *search, uint32_t source)
{
    record own = {0}, unknown = {0};
    for (size_t i = 0; i < search->told_count; i++) {
        const hone_search_known *known = find_known(search, search->told[i].row);
        if (known == NULL)
            note(&unknown, &search->told[i]);
        else if (known->source == source)
            note(&own, &search->told[i]);
    }
    if (own.failed == own.told && own.failed >= ENOUGH_FAILED) return true;
    return own.told >= ENOUGH_TOLD && unknown.told >= ENOUGH_TOLD && unknown.best > 0 && own.best > unknown.best;
}

uint32_t hone_search_next_known(hone_search *search)
{
    while (search->next_known < search->known_count && search->next_known < KNOWN_FIRST) {
        const hone_search_known *known = &search->known[search->next_known++];
        if (!search->table.taken[known->row] && !misleads(search, known->source)) return known->row;
    }
    return HONE_TABLE_NONE;
}
