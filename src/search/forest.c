// Extremely randomised trees over the told results (P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees",
// 2006):
// a node tries every feature, and sums and differences of columns, each with one random threshold between its least and
// its most value, and takes the split that tells the targets apart best. Leaves hold one lesson, or equal ones.
//
// The trees are not kept: growing one sorts all rows of the table into its leaves at once, so that a guess for each row
// is there when the tree is grown. A row's prediction is the mean of the trees' guesses and its doubt their deviation;
// the row of the lowest confidence bound is chosen, with a random number of deviations, so that steps differ in how far
// they venture.
//
// Invariant: lessons and rows stand in the order of the node that is worked on, [from, to) and [row_from, row_to). Cost
// of a tree with n lessons, r rows and f features: about n f log n + r log n. Of many results a few trees are grown a
// step, in turn.
#include "search/forest.h"

#include "base/assert.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum {
    FIT_ALL_UNDER = 60, // results: all trees are grown at every step
    FIT_MANY_UNDER = 200,
    FIT_MANY = 6,
    FIT_FEW = 2,
    PAIRS = 48, // sums and differences that a node tries, at most
    BLOCK = 64  // rows whose bounds are worked out together
};

// Of the exponential distribution that the number of deviations is drawn from.
static const double mean_deviations = 1.5;

void hone_forest_deinit(hone_forest *forest)
{
    if (forest->allocator.reallocate == NULL) return;
    for (size_t i = 0; i < HONE_FOREST_TREES; i++)
        hone_free(&forest->allocator, forest->guesses[i]);
    for (size_t i = 0; i < 2; i++)
        hone_free(&forest->allocator, forest->lessons[i]);
    hone_free(&forest->allocator, forest->order);
    hone_free(&forest->allocator, forest->spare);
}

static bool resize(const hone_forest *forest, void *array_pointer, size_t count, size_t size)
{
    void **array = array_pointer;
    void *block = hone_resize(&forest->allocator, *array, count * size);
    if (block != NULL) *array = block;
    return block != NULL;
}

bool hone_forest_reserve(hone_forest *forest, const hone_allocator *allocator, size_t rows, size_t features)
{
    if (rows <= forest->row_capacity) return true;
    forest->allocator = *allocator;
    for (size_t i = 0; i < HONE_FOREST_TREES; i++)
        if (!resize(forest, &forest->guesses[i], rows, sizeof *forest->guesses[i])) return false;
    for (size_t i = 0; i < 2; i++)
        if (!resize(forest, &forest->lessons[i], (features + 1) * HONE_FOREST_STRIDE, sizeof *forest->lessons[i]))
            return false;
    if (!resize(forest, &forest->order, rows, sizeof *forest->order)) return false;
    if (!resize(forest, &forest->spare, rows, sizeof *forest->spare)) return false;
    forest->row_capacity = rows;
    return true;
}

// Growing -------------------------------------------------------------------------------------------------------------

// Loops over the lessons go by LANES at once: the least and the most of numbers, and sums where a condition holds, are
// what compilers do not vectorise by themselves.
enum { LANES = HONE_FOREST_LANES };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline lanes load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline lanes select_lanes(masks where, lanes yes, lanes no)
{
    return (lanes)((where & (masks)yes) | (~where & (masks)no));
}

typedef struct growth {
    hone_forest *forest;
    float *guesses;
    const hone_features *features;
    uint64_t *random;
} growth;

// Where a node parts what it has: feature a + weight * feature b, against a threshold.
typedef struct split {
    size_t a, b;
    float weight, threshold;
} split;

// A part of the lessons and of all rows.
typedef struct node {
    size_t from, to, row_from, row_to;
    float sum; // of the targets
} node;

static float *lessons_of(const growth *g, size_t feature)
{
    return g->forest->lessons[0] + feature * HONE_FOREST_STRIDE;
}

static const float *targets_of(const growth *g)
{
    return lessons_of(g, g->features->count);
}

// The keys of the node's lessons, then infinities up to whole lanes; and between which numbers the keys are.
static void find_keys(const growth *g, const split *s, const node *n, float *out_low, float *out_high)
{
    float *keys = g->forest->keys;
    const float *a = lessons_of(g, s->a) + n->from, *b = lessons_of(g, s->b) + n->from;
    const float first = a[0] + s->weight * b[0];
    size_t count = n->to - n->from;
    lanes low = {first, first, first, first}, high = low;
    for (size_t i = 0; i < count; i += LANES) {
        int32_t left = (int32_t)(count - i);
        lanes key = load(a + i) + s->weight * load(b + i);
        masks is_there = (masks){0, 1, 2, 3} < left;
        lanes kept = select_lanes(is_there, key, high);
        low = select_lanes(kept < low, kept, low);
        high = select_lanes(kept > high, kept, high);
        key = select_lanes(is_there, key, (lanes){INFINITY, INFINITY, INFINITY, INFINITY});
        memcpy(keys + i, &key, sizeof key);
    }
    *out_low = fminf(fminf(low[0], low[1]), fminf(low[2], low[3]));
    *out_high = fmaxf(fmaxf(high[0], high[1]), fmaxf(high[2], high[3]));
}

// How many keys are at or under the threshold, and the sum of their targets.
static float sum_left(const growth *g, const node *n, float threshold, float *out_sum)
{
    const float *keys = g->forest->keys, *targets = targets_of(g) + n->from;
    lanes sum = {0};
    masks counted = {0};
    for (size_t i = 0; i < n->to - n->from; i += LANES) {
        masks is_left = load(keys + i) <= threshold;
        counted -= is_left;
        sum += (lanes)(is_left & (masks)load(targets + i));
    }
    *out_sum = sum[0] + sum[1] + sum[2] + sum[3];
    return (float)(counted[0] + counted[1] + counted[2] + counted[3]);
}

// Draws a threshold; returns by how much the split tells the targets apart, negative when it parts nothing.
static float draw_split(const growth *g, split *s, const node *n)
{
    float low, high, sum;
    find_keys(g, s, n, &low, &high);
    if (!(high - low > 1e-6f)) return -1;
    s->threshold = low + (high - low) * (float)(1 - hone_random_unit(g->random));
    if (s->threshold >= high) s->threshold = low;
    float left = sum_left(g, n, s->threshold, &sum), right = (float)(n->to - n->from) - left, rest = n->sum - sum;
    return left == 0 || right == 0 ? -1 : sum * sum / left + rest * rest / right;
}

static void keep_better(const growth *g, const node *n, split s, split *best, float *most)
{
    float gain = draw_split(g, &s, n);
    if (gain <= *most) return;
    *most = gain;
    *best = s;
}

// Each feature alone, and sums and differences of two columns: with sizes as logarithms these are products and ratios.
// The features' order is drawn, since few lessons are parted as well by many of them; two lessons are by any.
static bool find_split(const growth *g, const node *n, split *best)
{
    float most = -1;
    const hone_features *f = g->features;
    bool any = n->to - n->from == 2;
    size_t pairs = f->columns * (f->columns - 1), first = hone_random_below(g->random, (uint32_t)f->count);
    for (size_t i = 0; i < f->count && !(any && most >= 0); i++) {
        size_t a = (first + i) % f->count;
        keep_better(g, n, (split){a, a, 0, 0}, best, &most);
    }
    for (size_t i = 0; i < pairs && i < PAIRS && !(any && most >= 0); i++) {
        size_t pair = pairs <= PAIRS ? i : hone_random_below(g->random, (uint32_t)pairs);
        size_t a = pair / (f->columns - 1), b = pair % (f->columns - 1);
        b += b >= a;
        keep_better(g, n, (split){a, b, a < b ? 1 : -1, 0}, best, &most);
    }
    return most >= 0;
}

// Moves the lessons at or under the threshold to the front. Neither this nor part_rows has a branch that would be
// guessed wrong half the time.
static size_t part_lessons(const growth *g, const split *s, const node *n)
{
    hone_assert(n->from < n->to);
    size_t left = n->from, right = 0;
    uint16_t *moves = g->forest->moves, late[HONE_FOREST_LESSONS];
    const float *a = lessons_of(g, s->a), *b = lessons_of(g, s->b);
    for (size_t i = n->from; i < n->to; i++) {
        bool is_left = a[i] + s->weight * b[i] <= s->threshold;
        moves[left] = late[right] = (uint16_t)i;
        left += is_left;
        right += !is_left;
    }
    memcpy(&moves[left], late, right * sizeof *moves);
    for (size_t f = 0; f <= g->features->count; f++) {
        float *values = lessons_of(g, f), *moved = g->forest->keys; // which nobody needs now
        for (size_t i = n->from; i < n->to; i++)
            moved[i] = values[moves[i]];
        memcpy(&values[n->from], &moved[n->from], (n->to - n->from) * sizeof *values);
    }
    return left;
}

static size_t part_rows(const growth *g, const split *s, const node *n)
{
    size_t left = n->row_from, right = 0;
    uint32_t *order = g->forest->order, *spare = g->forest->spare;
    const float *a = g->features->values[s->a], *b = g->features->values[s->b];
    for (size_t i = n->row_from; i < n->row_to; i++) {
        uint32_t row = order[i];
        bool is_left = a[row] + s->weight * b[row] <= s->threshold;
        order[left] = spare[right] = row;
        left += is_left;
        right += !is_left;
    }
    memcpy(&order[left], spare, right * sizeof *order);
    return left;
}

static bool differ(const growth *g, const node *n)
{
    const float *targets = targets_of(g);
    for (size_t i = n->from + 1; i < n->to; i++)
        if (targets[i] != targets[n->from]) return true;
    return false;
}

static void add_up(const growth *g, node *n)
{
    double sum = 0;
    for (size_t i = n->from; i < n->to; i++)
        sum += targets_of(g)[i];
    n->sum = (float)sum;
}

static void fill(const growth *g, const node *n)
{
    hone_assert(n->from < n->to); // every leaf has a lesson to guess by
    float guess = n->sum / (float)(n->to - n->from);
    for (size_t i = n->row_from; i < n->row_to; i++)
        g->guesses[g->forest->order[i]] = guess;
}

// Leaves hold one lesson, or equal ones. The depth is at most the number of lessons.
static void grow(const growth *g, node n)
{
    while (n.row_from < n.row_to) {
        split s = {0, 0, 0, 0};
        add_up(g, &n);
        if (!differ(g, &n) || !find_split(g, &n, &s)) {
            fill(g, &n);
            return;
        }
        size_t middle = part_lessons(g, &s, &n), row_middle = part_rows(g, &s, &n);
        grow(g, (node){n.from, middle, n.row_from, row_middle, 0});
        n.from = middle;
        n.row_from = row_middle;
    }
}

static void grow_tree(growth *g, size_t tree, size_t count)
{
    for (size_t i = 0; i < g->features->rows; i++)
        g->forest->order[i] = (uint32_t)i;
    memcpy(
        g->forest->lessons[0], g->forest->lessons[1],
        (g->features->count + 1) * HONE_FOREST_STRIDE * sizeof *g->forest->lessons[0]);
    g->guesses = g->forest->guesses[tree];
    grow(g, (node){0, count, 0, g->features->rows, 0});
}

static void take_lessons(
    const hone_forest *forest, const hone_features *features, const uint32_t *rows, const float *targets, size_t count)
{
    for (size_t f = 0; f < features->count; f++)
        for (size_t i = 0; i < count; i++)
            forest->lessons[1][f * HONE_FOREST_STRIDE + i] = features->values[f][rows[i]];
    memcpy(forest->lessons[1] + features->count * HONE_FOREST_STRIDE, targets, count * sizeof *targets);
}

void hone_forest_fit(
    hone_forest *forest,
    const hone_features *features,
    const uint32_t *rows,
    const float *targets,
    size_t count,
    uint64_t *random)
{
    hone_assert(count > 0 && count <= HONE_FOREST_LESSONS && features->rows <= forest->row_capacity);
    growth g = {forest, NULL, features, random};
    size_t trees = count < FIT_MANY_UNDER ? FIT_MANY : FIT_FEW;
    if (count < FIT_ALL_UNDER || forest->grown < features->rows) trees = HONE_FOREST_TREES;
    forest->grown = features->rows;
    take_lessons(forest, features, rows, targets, count);
    for (size_t i = 0; i < trees; i++) {
        grow_tree(&g, forest->next, count);
        forest->next = (forest->next + 1) % HONE_FOREST_TREES;
    }
}

// The lower bounds of so many rows from `first`.
static void find_bounds(const hone_forest *forest, size_t first, size_t count, float deviations, float *out)
{
    float sum[BLOCK] = {0}, squares[BLOCK] = {0};
    for (size_t i = 0; i < HONE_FOREST_TREES; i++) {
        const float *guesses = forest->guesses[i] + first;
        for (size_t j = 0; j < count; j++) {
            sum[j] += guesses[j];
            squares[j] += guesses[j] * guesses[j];
        }
    }
    for (size_t j = 0; j < count; j++) {
        float mean = sum[j] / HONE_FOREST_TREES, variance = squares[j] / HONE_FOREST_TREES - mean * mean;
        out[j] = mean - deviations * sqrtf(variance > 0 ? variance : 0);
    }
}

uint32_t hone_forest_choose(const hone_forest *forest, const hone_config_table *table, uint64_t *random)
{
    float bounds[BLOCK], least = INFINITY;
    uint32_t best = HONE_TABLE_NONE;
    float deviations = (float)(-mean_deviations * log(hone_random_unit(random)));
    for (size_t first = 0; first < table->count; first += BLOCK) {
        size_t count = table->count - first < BLOCK ? table->count - first : BLOCK;
        find_bounds(forest, first, count, deviations, bounds);
        for (size_t j = 0; j < count; j++)
            if (bounds[j] < least && !table->taken[first + j]) {
                least = bounds[j];
                best = (uint32_t)(first + j);
            }
    }
    return best;
}
