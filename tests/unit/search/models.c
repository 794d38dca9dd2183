// What the search's two models make of what they are shown.
#include "base/random.h"
#include "search/forest.h"
#include "search/gauss.h"
#include "search/inside.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LESSONS = 70 };

// A table of all configs of a space, and some of its rows with targets.
typedef struct scene {
    hone_allocator allocator;
    hone_bound_space *bound;
    hone_config_table table;
    hone_features features;
    uint64_t random;
    uint32_t rows[LESSONS];
    float targets[LESSONS];
} scene;

// Wavy, and another thing where the first two columns agree.
static float target_of(const scene *s, uint32_t row)
{
    const uint16_t *x = hone_config_table_row(&s->table, row);
    float sum = x[0] == x[1] ? 0.5f : 0;
    for (size_t i = 0; i < s->table.columns; i++)
        sum += sinf((float)x[i] * 0.4f + (float)i);
    return sum;
}

static void open_scene(scene *s, const char *text)
{
    hone_space *space;
    *s = (scene){.allocator = hone_allocator_system(), .random = 5};
    assert_int_equal(hone_space_parse(s->allocator, text, &space, NULL), HONE_OK);
    assert_int_equal(hone_space_bind(space, NULL, NULL, &s->bound, NULL), HONE_OK);
    hone_space_release(&space);
    assert_int_equal(hone_config_table_init(&s->table, &s->allocator, s->bound, NULL, 0, 1, NULL), HONE_OK);
    assert_int_equal(hone_features_init(&s->features, &s->allocator, &s->table, NULL), HONE_OK);
    for (size_t i = 0; i < LESSONS; i++) {
        s->rows[i] = hone_config_table_draw(&s->table, &s->random);
        hone_config_table_take(&s->table, s->rows[i]);
        s->targets[i] = target_of(s, s->rows[i]);
    }
}

static void close_scene(scene *s)
{
    hone_features_deinit(&s->features);
    hone_config_table_deinit(&s->table);
    hone_bound_space_release(&s->bound);
}

static void every_tree_knows_what_it_was_grown_on(void **state)
{
    (void)state;
    scene s;
    hone_forest *forest = calloc(1, sizeof *forest);
    assert_non_null(forest);
    open_scene(&s, "x: 0..12\ny: 0..12\nz: 1..16 *2");
    assert_true(hone_forest_reserve(forest, &s.allocator, s.table.capacity, s.features.count));
    for (size_t count = 2; count <= LESSONS; count += 17) {
        forest->grown = 0; // all trees anew
        hone_forest_fit(forest, &s.features, s.rows, s.targets, count, &s.random);
        for (size_t tree = 0; tree < HONE_FOREST_TREES; tree++)
            for (size_t i = 0; i < count; i++)
                assert_true(fabsf(forest->guesses[tree][s.rows[i]] - s.targets[i]) < 1e-5f);
    }
    hone_forest_deinit(forest);
    free(forest);
    close_scene(&s);
}

static void a_forest_chooses_the_lowest_of_what_is_not_taken(void **state)
{
    (void)state;
    scene s;
    hone_forest *forest = calloc(1, sizeof *forest);
    assert_non_null(forest);
    open_scene(&s, "x: 0..12\ny: 0..12");
    assert_true(hone_forest_reserve(forest, &s.allocator, s.table.capacity, s.features.count));
    for (size_t tree = 0; tree < HONE_FOREST_TREES; tree++)
        for (uint32_t row = 0; row < s.table.count; row++)
            forest->guesses[tree][row] = target_of(&s, row); // no doubt: all trees agree
    uint32_t chosen = hone_forest_choose(forest, &s.table, &s.random);
    assert_false(s.table.taken[chosen]);
    for (uint32_t row = 0; row < s.table.count; row++)
        assert_true(s.table.taken[row] || target_of(&s, chosen) <= target_of(&s, row) + 1e-3f);
    hone_forest_deinit(forest);
    free(forest);
    close_scene(&s);
}

// The process once more, in the plainest way --------------------------------------------------------------------------

static double covariance(const scene *s, const hone_gauss *g, uint32_t a, uint32_t b)
{
    double squared = 0;
    for (size_t d = 0; d < s->features.count; d++) {
        double difference = s->features.values[d][a] - s->features.values[d][b];
        squared += (double)g->weights[d] * difference * difference;
    }
    double r = sqrt(5 * squared);
    return (1 + r + r * r / 3) * exp(-r);
}

// Expected improvement of a row, by elimination in the matrix of covariances.
static double plain_improvement(const scene *s, const hone_gauss *g, size_t count, uint32_t row, double target)
{
    static double m[LESSONS][LESSONS + 2];
    double mean = 0, left = 1;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++)
            m[i][j] = covariance(s, g, s->rows[i], s->rows[j]) + (i == j ? g->noise : 0);
        m[i][count] = (s->targets[i] - g->mean) / g->scale;
        m[i][count + 1] = covariance(s, g, s->rows[i], row);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            double factor = m[j][i] / m[i][i];
            for (size_t k = 0; k < count + 2 && j != i; k++)
                m[j][k] -= factor * m[i][k];
        }
    for (size_t i = 0; i < count; i++) {
        double k = covariance(s, g, s->rows[i], row);
        mean += k * m[i][count] / m[i][i];
        left -= k * m[i][count + 1] / m[i][i];
    }
    double deviation = sqrt(left), z = ((target - g->mean) / g->scale - mean) / deviation;
    return g->scale * deviation * (z * 0.5 * erfc(-z / sqrt(2)) + exp(-0.5 * z * z) / sqrt(2 * acos(-1)));
}

static void check_choices(const char *space)
{
    scene s;
    uint32_t rows[LESSONS], chosen;
    float scratch[LESSONS];
    hone_gauss *gauss = calloc(1, sizeof *gauss);
    assert_non_null(gauss);
    open_scene(&s, space);
    gauss->parts = calloc(s.features.count, sizeof *gauss->parts);
    assert_non_null(gauss->parts);
    for (size_t count = 5; count <= LESSONS; count += 13) {
        double target = INFINITY, most = 0, of_chosen = 0;
        hone_gauss_fit(gauss, &s.features, s.rows, s.targets, count, false);
        for (size_t i = 0; i < count; i++)
            target = fmin(target, s.targets[i]);
        for (size_t i = 0; i < LESSONS; i++)
            rows[i] = hone_config_table_draw(&s.table, &s.random);
        double gain = hone_gauss_choose(gauss, &s.features, &s.table, rows, LESSONS, target, scratch, &chosen);
        for (size_t i = 0; i < LESSONS; i++) {
            double expected = plain_improvement(&s, gauss, count, rows[i], target);
            most = fmax(most, expected);
            if (rows[i] == chosen) of_chosen = expected;
        }
        assert_true(fabs(gain - most) < 0.1 * most);
        assert_true(of_chosen > 0.98 * most);
    }
    free(gauss->parts);
    free(gauss);
    close_scene(&s);
}

static void the_process_chooses_by_expected_improvement(void **state)
{
    (void)state;
    check_choices("x: 0..79\ny: 0..4\nz: 1..16 *2");         // more values than slots: their parts take turns
    check_choices("tile_x: 1..99\ntile_y: 1..3\nway: 0..4"); // so do those of a product
}

// What the models see -------------------------------------------------------------------------------------------------

static size_t products_of(const char *space)
{
    scene s;
    open_scene(&s, space);
    size_t products = s.features.count - s.features.single;
    close_scene(&s);
    return products;
}

static void sizes_whose_names_differ_in_one_letter_are_seen_as_a_product_too(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "block_x: 1..64 *2\nblock_y: 1..8\nunroll: 1..4");
    assert_int_equal(s.features.count - s.features.single, 1);
    for (uint32_t row = 0; row < s.table.count; row++) {
        const uint16_t *positions = hone_config_table_row(&s.table, row);
        double product = exp2(positions[0]) * (positions[1] + 1);
        assert_true(fabs(s.features.values[s.features.single][row] - log2(product) / log2(64 * 8)) < 1e-6);
    }
    close_scene(&s);
    assert_int_equal(products_of("block_x: 0..8\nblock_y: 1..8\nunroll: 1..8"), 0);            // no size is 0
    assert_int_equal(products_of("side_x: 1..8\nside_y: red | green | blue\nsides: 1..8"), 0); // nor a word
    assert_int_equal(products_of("a: 1..3\nb: 1..3\nc: 1..3\nd: 1..3\ne: 1..3\nf: 1..3"), HONE_FEATURES_PAIRS);
}

// Arms ----------------------------------------------------------------------------------------------------------------

static void the_process_alone_proposes_until_thirty_results_are_there(void **state)
{
    (void)state;
    scene s;
    size_t of_process = 0, of_others = 0;
    hone_search *search;
    open_scene(&s, "x: 0..12\ny: 0..12\nz: 1..16 *2");
    assert_int_equal(hone_search_create(&s.allocator, s.bound, NULL, &search, NULL), HONE_OK);
    for (size_t i = 0; i < 90; i++) {
        hone_config config;
        assert_int_equal(hone_search_next(search, &config, NULL), HONE_OK);
        uint32_t row = hone_config_table_find(&search->table, &config);
        size_t arm = search->arm_of[row] - 1u;
        bool is_beginning = arm == HONE_ARMS;
        of_process += arm == HONE_ARM_GAUSS && i < 30;
        of_others += arm != HONE_ARM_GAUSS && i >= 30;
        assert_true(i >= 30 || is_beginning || arm == HONE_ARM_GAUSS);
        assert_int_equal(hone_search_tell(search, &config, exp(target_of(&s, row)), HONE_FAILURE_NONE, NULL), HONE_OK);
    }
    assert_true(of_process >= 20);
    assert_true(of_others > 0);
    hone_search_destroy(&search);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tree_knows_what_it_was_grown_on),
        cmocka_unit_test(a_forest_chooses_the_lowest_of_what_is_not_taken),
        cmocka_unit_test(the_process_chooses_by_expected_improvement),
        cmocka_unit_test(sizes_whose_names_differ_in_one_letter_are_seen_as_a_product_too),
        cmocka_unit_test(the_process_alone_proposes_until_thirty_results_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
