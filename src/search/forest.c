#include "search/forest.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

enum {
    FIT_ALL_UNDER = 60, // results: all trees are grown at every step
    FIT_MANY_UNDER = 200,
    FIT_MANY = 6,
    FIT_FEW = 2,
    PAIRS = 48 // sums and differences that a node tries, at most
};

// Of the exponential distribution that the number of deviations is drawn from.
static const double mean_deviations = 1.5;

void hone_forest_deinit(hone_forest *forest)
{
    if (forest->allocator.reallocate == NULL) return;
    for (size_t i = 0; i < HONE_FOREST_TREES; i++)
        hone_free(&forest->allocator, forest->guesses[i]);
    hone_free(&forest->allocator, forest->order);
}

bool hone_forest_reserve(hone_forest *forest, const hone_allocator *allocator, size_t rows)
{
    if (rows <= forest->row_capacity) return true;
    forest->allocator = *allocator;
    for (size_t i = 0; i < HONE_FOREST_TREES; i++) {
        float *guesses = hone_resize(allocator, forest->guesses[i], rows * sizeof *guesses);
        if (guesses == NULL) return false;
        forest->guesses[i] = guesses;
    }
    uint32_t *order = hone_resize(allocator, forest->order, rows * sizeof *order);
    if (order == NULL) return false;
    forest->order = order;
    forest->row_capacity = rows;
    return true;
}

// Growing -----------------------------------------------------------------------------------------------------------

typedef struct growth {
    hone_forest *forest;
    float *guesses;
    const hone_features *features;
    const uint32_t *rows;
    const float *targets;
    uint64_t *random;
} growth;

// Where a node parts its rows: a + weight * b, against a threshold.
typedef struct split {
    const float *a, *b;
    float weight, threshold;
} split;

// A part of the trained results and of all rows.
typedef struct node {
    size_t from, to, row_from, row_to;
} node;

static inline float key_of(const split *s, uint32_t row)
{
    return s->a[row] + s->weight * s->b[row];
}

// Draws a threshold; returns by how much the split tells the targets apart, negative when it parts nothing.
static double draw_split(const growth *g, split *s, const node *n)
{
    float low = INFINITY, high = -INFINITY;
    float *keys = g->forest->keys;
    const uint32_t *trained = g->forest->trained;
    for (size_t i = n->from; i < n->to; i++) {
        float key = keys[i] = key_of(s, g->rows[trained[i]]);
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    if (!(high - low > 1e-6f)) return -1;
    s->threshold = low + (high - low) * (float)(1 - hone_random_unit(g->random));
    if (s->threshold >= high) s->threshold = low;
    double left = 0, sum_left = 0, sum_right = 0;
    for (size_t i = n->from; i < n->to; i++) {
        float target = g->targets[trained[i]];
        bool is_left = keys[i] <= s->threshold;
        left += is_left;
        sum_left += is_left ? target : 0;
        sum_right += is_left ? 0 : target;
    }
    double right = (double)(n->to - n->from) - left;
    return left == 0 || right == 0 ? -1 : sum_left * sum_left / left + sum_right * sum_right / right;
}

static void keep_better(const growth *g, const node *n, split s, split *best, double *most)
{
    double gain = draw_split(g, &s, n);
    if (gain <= *most) return;
    *most = gain;
    *best = s;
}

// Each feature alone, and sums and differences of two columns: with sizes as logarithms these are products and ratios.
static bool find_split(const growth *g, const node *n, split *best)
{
    double most = -1;
    const hone_features *f = g->features;
    size_t pairs = f->columns * (f->columns - 1);
    for (size_t i = 0; i < f->count; i++)
        keep_better(g, n, (split){f->values[i], f->values[i], 0, 0}, best, &most);
    for (size_t i = 0; i < pairs && i < PAIRS; i++) {
        size_t pair = pairs <= PAIRS ? i : hone_random_below(g->random, (uint32_t)pairs);
        size_t a = pair / (f->columns - 1), b = pair % (f->columns - 1);
        b += b >= a;
        keep_better(g, n, (split){f->values[a], f->values[b], a < b ? 1 : -1, 0}, best, &most);
    }
    return most >= 0;
}

// Moves what lies at or under the threshold to the front; map: what the list's numbers stand for, NULL: rows.
static size_t part(const split *s, const uint32_t *map, uint32_t *list, size_t from, size_t to)
{
    while (from < to) {
        uint32_t entry = list[from];
        if (key_of(s, map != NULL ? map[entry] : entry) <= s->threshold) {
            from++;
            continue;
        }
        list[from] = list[--to];
        list[to] = entry;
    }
    return from;
}

static bool differ(const growth *g, const node *n)
{
    const uint32_t *trained = g->forest->trained;
    for (size_t i = n->from + 1; i < n->to; i++)
        if (g->targets[trained[i]] != g->targets[trained[n->from]]) return true;
    return false;
}

static void fill(const growth *g, const node *n)
{
    double sum = 0;
    for (size_t i = n->from; i < n->to; i++)
        sum += g->targets[g->forest->trained[i]];
    float guess = (float)(sum / (double)(n->to - n->from));
    for (size_t i = n->row_from; i < n->row_to; i++)
        g->guesses[g->forest->order[i]] = guess;
}

// Leaves hold one result, or equal ones. The depth is at most the number of results.
static void grow(const growth *g, node n)
{
    while (n.row_from < n.row_to) {
        split s = {NULL, NULL, 0, 0};
        if (!differ(g, &n) || !find_split(g, &n, &s)) {
            fill(g, &n);
            return;
        }
        size_t middle = part(&s, g->rows, g->forest->trained, n.from, n.to);
        size_t row_middle = part(&s, NULL, g->forest->order, n.row_from, n.row_to);
        grow(g, (node){n.from, middle, n.row_from, row_middle});
        n.from = middle;
        n.row_from = row_middle;
    }
}

static void grow_tree(growth *g, size_t tree, size_t count)
{
    for (size_t i = 0; i < g->features->rows; i++)
        g->forest->order[i] = (uint32_t)i;
    for (size_t i = 0; i < count; i++)
        g->forest->trained[i] = (uint32_t)i;
    g->guesses = g->forest->guesses[tree];
    grow(g, (node){0, count, 0, g->features->rows});
}

void hone_forest_fit(
    hone_forest *forest,
    const hone_features *features,
    const uint32_t *rows,
    const float *targets,
    size_t count,
    uint64_t *random)
{
    growth g = {forest, NULL, features, rows, targets, random};
    size_t trees = count < FIT_MANY_UNDER ? FIT_MANY : FIT_FEW;
    if (count < FIT_ALL_UNDER || forest->grown < features->rows) trees = HONE_FOREST_TREES;
    forest->grown = features->rows;
    for (size_t i = 0; i < trees; i++) {
        grow_tree(&g, forest->next, count);
        forest->next = (forest->next + 1) % HONE_FOREST_TREES;
    }
}

uint32_t hone_forest_choose(const hone_forest *forest, const hone_pool *pool, uint64_t *random)
{
    uint32_t best = HONE_POOL_NONE;
    double least = INFINITY, deviations = -mean_deviations * log(hone_random_unit(random));
    for (uint32_t row = 0; row < pool->count; row++) {
        if (pool->taken[row]) continue;
        float sum = 0, squares = 0;
        for (size_t i = 0; i < HONE_FOREST_TREES; i++) {
            float guess = forest->guesses[i][row];
            sum += guess;
            squares += guess * guess;
        }
        float mean = sum / HONE_FOREST_TREES, variance = squares / HONE_FOREST_TREES - mean * mean;
        double bound = mean - deviations * sqrtf(fmaxf(variance, 0));
        if (bound >= least) continue;
        least = bound;
        best = row;
    }
    return best;
}
