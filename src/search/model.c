// What both models are shown: the logarithm of the time, so that a factor counts the same for a fast and a slow config.
// Of many lessons each model takes the best and, of the others, a sample by selection (D. E. Knuth, "The Art of
// Computer Programming", volume 2, 3.4.2, algorithm S), so that a step's cost is bounded. Counts and slopes were chosen
// by hand on recorded spaces (docs/search.md); lab/score computes what they come to.
#include "search/model.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "search.model";

enum {
    GAUSS_BEST = 80,         // when there are more lessons than the process takes: so many of the best, and others
    GAUSS_CANDIDATES = 3000, // rows that it looks at in a step, and all within two columns of the best
    GAUSS_NEAR = 2,
    FIT_ALWAYS = 60, // lessons under which lengths are fitted at every step
    FIT_OFTEN = 100, // under which they are at every FIT_PERIOD-th
    FIT_PERIOD = 8,
    FIT_LATE_PERIOD = 32
};

// Times above the median matter only as being slow: this much of their distance is kept, so that the model spends
// itself on what is fast. Failures stand above them all, by this much of the spread.
static const float slow_slope = 0.3f, failure_rise = 0.1f;

hone_status hone_model_init(
    hone_model *model, const hone_allocator *allocator, const hone_config_table *table, hone_error *err)
{
    *model = (hone_model){.allocator = *allocator, .gain = -1};
    model->gauss = hone_alloc(allocator, sizeof *model->gauss);
    if (model->gauss == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_features_init(&model->features, allocator, table, err);
    if (status != HONE_OK) return status;
    size_t parts = table->columns + model->features.count - model->features.single;
    model->gauss->parts = hone_alloc_array(allocator, parts, sizeof *model->gauss->parts);
    return model->gauss->parts == NULL ? hone_fail_memory(err, where) : HONE_OK;
}

void hone_model_deinit(hone_model *model)
{
    if (model->allocator.reallocate == NULL) return;
    hone_features_deinit(&model->features);
    hone_forest_deinit(&model->forest);
    if (model->gauss != NULL) hone_free(&model->allocator, model->gauss->parts);
    hone_free(&model->allocator, model->gauss);
    hone_free(&model->allocator, model->lessons);
    hone_free(&model->allocator, model->sorted);
    hone_free(&model->allocator, model->rows);
    hone_free(&model->allocator, model->targets);
    hone_free(&model->allocator, model->candidates);
    hone_free(&model->allocator, model->scratch);
}

static bool resize(const hone_model *model, void *array_pointer, size_t count, size_t size)
{
    void **array = array_pointer;
    void *block = hone_resize(&model->allocator, *array, count * size);
    if (block != NULL) *array = block;
    return block != NULL;
}

hone_status hone_model_reserve(hone_model *model, const hone_config_table *table, size_t lessons, hone_error *err)
{
    if (lessons > model->lesson_capacity) {
        size_t room = lessons * 2;
        if (!resize(model, &model->lessons, room, sizeof *model->lessons) ||
            !resize(model, &model->sorted, room, sizeof *model->sorted) ||
            !resize(model, &model->rows, room, sizeof *model->rows) ||
            !resize(model, &model->targets, room, sizeof *model->targets))
            return hone_fail_memory(err, where);
        model->lesson_capacity = room;
    }
    if (table->capacity > model->row_capacity) {
        if (!resize(model, &model->candidates, table->capacity, sizeof *model->candidates) ||
            !resize(model, &model->scratch, table->capacity, sizeof *model->scratch))
            return hone_fail_memory(err, where);
        model->row_capacity = table->capacity;
    }
    if (!hone_forest_reserve(&model->forest, &model->allocator, table->capacity, model->features.count))
        return hone_fail_memory(err, where);
    return hone_features_update(&model->features, table, err);
}

// Learning ------------------------------------------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float clipped(float target, float middle)
{
    return target > middle ? middle + slow_slope * (target - middle) : target;
}

bool hone_model_learn(hone_model *model, size_t count)
{
    hone_assert(count <= model->lesson_capacity);
    model->lesson_count = count;
    model->sorted_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!model->lessons[i].failed) model->sorted[model->sorted_count++] = model->lessons[i].target;
    if (model->sorted_count < 2) return false;
    qsort(model->sorted, model->sorted_count, sizeof *model->sorted, compare);
    float best = model->sorted[0], middle = model->sorted[model->sorted_count / 2];
    float worst = clipped(model->sorted[model->sorted_count - 1], middle);
    for (size_t i = 0; i < count; i++) {
        hone_lesson *lesson = &model->lessons[i];
        lesson->target = lesson->failed ? worst + failure_rise * (worst - best) : clipped(lesson->target, middle);
    }
    return true;
}

static size_t add(hone_model *model, size_t count, const hone_lesson *lesson)
{
    model->rows[count] = lesson->row;
    model->targets[count] = lesson->target;
    return count + 1;
}

// The best lessons, and of the others a sample without order.
static size_t pick_lessons(hone_model *model, size_t best, size_t most, uint64_t *random)
{
    size_t count = 0, others = model->lesson_count, wanted = most;
    bool all = model->lesson_count <= most;
    float limit = all || model->sorted_count <= best ? INFINITY : model->sorted[best];
    for (size_t i = 0; i < model->lesson_count && count < most; i++)
        if (all || (model->lessons[i].target < limit && !model->lessons[i].failed))
            count = add(model, count, &model->lessons[i]);
    if (all) return count;
    others -= count;
    wanted -= count;
    for (size_t i = 0; i < model->lesson_count && wanted > 0 && others > 0; i++) {
        if (model->lessons[i].target < limit && !model->lessons[i].failed) continue;
        if (hone_random_below(random, (uint32_t)others--) >= wanted) continue;
        count = add(model, count, &model->lessons[i]);
        wanted--;
    }
    return count;
}

// The Gaussian process ------------------------------------------------------------------------------------------------

static bool is_near(const hone_config_table *table, uint32_t a, uint32_t b)
{
    size_t differences = 0;
    const uint16_t *x = hone_config_table_row(table, a), *y = hone_config_table_row(table, b);
    for (size_t i = 0; i < table->columns; i++)
        differences += x[i] != y[i];
    return differences <= GAUSS_NEAR;
}

static void pick_candidates(hone_model *model, const hone_config_table *table, uint32_t best, uint64_t *random)
{
    bool all = table->left <= GAUSS_CANDIDATES;
    model->candidate_count = 0;
    for (uint32_t row = 0; row < table->count; row++) {
        if (table->taken[row]) continue;
        if (all || is_near(table, row, best) || hone_random_below(random, (uint32_t)table->left) < GAUSS_CANDIDATES)
            model->candidates[model->candidate_count++] = row;
    }
}

uint32_t hone_model_choose_gauss(hone_model *model, const hone_config_table *table, uint32_t best, uint64_t *random)
{
    uint32_t row = HONE_TABLE_NONE;
    size_t count = pick_lessons(model, GAUSS_BEST, HONE_GAUSS_MOST, random);
    size_t period = model->lesson_count < FIT_OFTEN ? FIT_PERIOD : FIT_LATE_PERIOD;
    hone_assert(best < table->count && model->sorted_count >= 2); // hone_model_learn was true
    bool search = model->lesson_count < FIT_ALWAYS || model->lesson_count % period == 0;
    hone_gauss_fit(model->gauss, &model->features, model->rows, model->targets, count, search);
    pick_candidates(model, table, best, random);
    if (model->candidate_count == 0) return HONE_TABLE_NONE;
    model->gain = hone_gauss_choose(
        model->gauss, &model->features, table, model->candidates, model->candidate_count, model->sorted[0],
        model->scratch, &row);
    return row;
}

// The forest ----------------------------------------------------------------------------------------------------------

uint32_t hone_model_choose_forest(hone_model *model, const hone_config_table *table, uint64_t *random)
{
    size_t count = pick_lessons(model, HONE_FOREST_LESSONS / 2, HONE_FOREST_LESSONS, random);
    hone_forest_fit(&model->forest, &model->features, model->rows, model->targets, count, random);
    return hone_forest_choose(&model->forest, table, random);
}
