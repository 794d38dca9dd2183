// Proposals that need no model: they see what it is blind to.
//
// far: of a few random rows the one farthest from all that was told (D. P. Mitchell, "Spectrally Optimal Sampling for
// Distribution Ray Tracing", 1991: the best candidate). mix: each parameter from one of the best three, as in uniform
// crossover (G. Syswerda, 1989). sweep: a row that differs from the best in one parameter. Numbers of draws were chosen
// by hand.
#include "search/inside.h"

#include "base/error.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum {
    FAR_DRAWS = 16,
    MIDDLE_DRAWS = 64, // few of the whole: searches of other seeds begin elsewhere
    MIX_DRAWS = 24,
    MIX_BEST = 3 // configs that are recombined
};

// In each column as a part of its positions, squared.
static double distance(const hone_config_table *table, uint32_t a, uint32_t b)
{
    double sum = 0;
    const uint16_t *x = hone_config_table_row(table, a), *y = hone_config_table_row(table, b);
    for (size_t i = 0; i < table->columns; i++) {
        double step = ((double)x[i] - y[i]) / (double)hone_config_table_values(table, i);
        sum += step * step;
    }
    return sum;
}

static double distance_to_told(const hone_search *search, uint32_t row)
{
    double least = INFINITY;
    for (size_t i = 0; i < search->told_count; i++)
        least = fmin(least, distance(&search->table, row, search->told[i].row));
    return least;
}

// Over the columns whose order means something.
static double nearness_to_middle(const hone_search *search, uint32_t row)
{
    double sum = 0;
    const hone_features *features = &search->model.features;
    for (size_t i = 0; i < features->columns; i++) {
        double step = features->values[i][row] - 0.5;
        if (features->is_ordered[i]) sum += step * step;
    }
    return -sum;
}

// Of so many random rows the one of most worth; HONE_TABLE_NONE: all are taken.
static uint32_t draw_best(
    hone_search *search, size_t draws, double (*worth_of)(const hone_search *search, uint32_t row))
{
    uint32_t best = HONE_TABLE_NONE;
    double most = -INFINITY;
    for (size_t i = 0; i < draws; i++) {
        uint32_t row = hone_config_table_draw(&search->table, &search->random);
        double worth = row == HONE_TABLE_NONE ? -INFINITY : worth_of(search, row);
        if (worth > most) {
            most = worth;
            best = row;
        }
    }
    return best;
}

uint32_t hone_search_far(hone_search *search)
{
    return draw_best(search, FAR_DRAWS, distance_to_told);
}

uint32_t hone_search_middle(hone_search *search)
{
    return draw_best(search, MIDDLE_DRAWS, nearness_to_middle);
}

static size_t differences(const hone_config_table *table, const uint16_t *a, const uint16_t *b)
{
    size_t count = 0;
    for (size_t i = 0; i < table->columns; i++)
        count += a[i] != b[i];
    return count;
}

// A row that differs from the best in one column; each is as likely as another.
uint32_t hone_search_sweep(hone_search *search)
{
    const hone_config_table *table = &search->table;
    uint32_t found = HONE_TABLE_NONE, seen = 0;
    if (search->best == SIZE_MAX) return HONE_TABLE_NONE;
    const uint16_t *best = hone_config_table_row(table, search->told[search->best].row);
    for (uint32_t row = 0; row < table->count; row++)
        if (!table->taken[row] && differences(table, best, hone_config_table_row(table, row)) == 1 &&
            hone_random_below(&search->random, ++seen) == 0)
            found = row;
    return found;
}

static size_t find_parents(const hone_search *search, const hone_observation **out)
{
    size_t count = 0;
    for (size_t i = 0; i < search->told_count; i++) {
        const hone_observation *next = &search->told[i];
        if (next->failure != HONE_FAILURE_NONE) continue;
        for (size_t j = 0; j < count; j++)
            if (next->time < out[j]->time) {
                const hone_observation *other = out[j];
                out[j] = next;
                next = other;
            }
        if (count < MIX_BEST) out[count++] = next;
    }
    return count;
}

// Each column from one of the best: a few draws until there is such a row that is not taken.
uint32_t hone_search_mix(hone_search *search)
{
    const hone_observation *parents[MIX_BEST];
    uint16_t child[HONE_MAX_PARAMETERS];
    size_t count = find_parents(search, parents);
    for (size_t i = 0; i < MIX_DRAWS && count > 1; i++) {
        for (size_t j = 0; j < search->table.columns; j++) {
            uint32_t parent = hone_random_below(&search->random, (uint32_t)count);
            child[j] = hone_config_table_row(&search->table, parents[parent]->row)[j];
        }
        uint32_t row = hone_config_table_find_positions(&search->table, child);
        if (row != HONE_TABLE_NONE && !search->table.taken[row]) return row;
    }
    return HONE_TABLE_NONE;
}

typedef struct visitor {
    hone_config_table *table;
    hone_status status;
    hone_error *err;
} visitor;

static bool enter_neighbour(void *ctx, const hone_config *config)
{
    uint32_t row;
    visitor *v = ctx;
    v->status = hone_config_table_enter_valid(v->table, config, &row, v->err);
    return v->status == HONE_OK && v->table->count < HONE_TABLE_LARGEST;
}

hone_status hone_search_extend(hone_search *search, uint32_t row, hone_error *err)
{
    hone_config config;
    visitor v = {&search->table, HONE_OK, err};
    if (search->table.complete || search->table.count >= HONE_TABLE_LARGEST) return HONE_OK;
    hone_config_table_get(&search->table, row, &config);
    hone_status status =
        hone_bound_space_neighbours(search->table.bound, &config, HONE_NEIGHBOURS_HAMMING, enter_neighbour, &v, err);
    return status == HONE_OK ? v.status : status;
}
