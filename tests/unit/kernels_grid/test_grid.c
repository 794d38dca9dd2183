// stencil and reduction: every kernel at configs from its space against the reference, and the rules by hand.
#include "contest.h"

#include "kernels/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static void every_stencil_meets_its_reference(void **state)
{
    static const int shapes[][3] = {
        {1, 1, 1}, {1, 1, 2}, {2, 1, 1},  {1, 3, 17},  {3, 1, 16},  {5, 4, 3},    {2, 9, 33},   {7, 5, 15},
        {4, 4, 4}, {9, 7, 1}, {3, 3, 64}, {6, 10, 50}, {2, 3, 127}, {17, 33, 31}, {1, 2, 2049}, {2, 70, 140},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[120];
        snprintf(text, sizeof text, "stencil(f32[%d,%d,%d], f32[7])", shapes[i][0], shapes[i][1], shapes[i][2]);
        contest_once(&hone_stencil_table, text, 24);
    }
}

static void every_reduction_meets_its_reference(void **state)
{
    static const int shapes[][2] = {
        {1, 1},  {1, 2},  {3, 1},   {2, 7},   {5, 8},    {4, 15},   {7, 16},   {3, 17},    {64, 3},
        {65, 5}, {9, 33}, {1, 127}, {6, 255}, {11, 256}, {130, 40}, {2, 4099}, {3, 16500},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[80];
        snprintf(text, sizeof text, "reduction(f32[%d,%d])", shapes[i][0], shapes[i][1]);
        contest_once(&hone_reduction_table, text, 24);
    }
}

static void set_all(contest *own, size_t value, int64_t count, double number)
{
    for (int64_t i = 0; i < count; i++)
        contest_set(own, value, i, number);
}

// One point that is not zero leaves its weights in its neighbours: the one to its left has it to its right.
static void a_stencil_spreads_a_point_by_its_weights(void **state)
{
    static const struct {
        int64_t at;
        int weight;
    } spread[] = {{13, 0}, {12, 2}, {14, 1}, {10, 4}, {16, 3}, {4, 6}, {22, 5}};
    (void)state;
    contest own;
    contest_init(&own, &hone_stencil_table, "stencil(f32[3,3,3], f32[7])", 0, 1);
    set_all(&own, 0, 27, 0);
    contest_set(&own, 0, 13, 2);
    for (int i = 0; i < 7; i++)
        contest_set(&own, 1, i, i + 1);
    contest_run_kernel(&own, "reference");
    double sum = 0;
    for (size_t i = 0; i < sizeof spread / sizeof *spread; i++)
        contest_expect(&own, 2, spread[i].at, 2 * (spread[i].weight + 1), 0);
    for (int64_t i = 0; i < 27; i++)
        sum += contest_get(&own, 2, i);
    assert_true(sum == 56);
    contest_deinit(&own);
}

static const char *const kernels[] = {"reference", "portable", "avx2", "avx512"};

static bool can_run(const contest *own, const char *name)
{
    for (size_t i = 0; i < own->table->count; i++)
        if (strcmp(own->table->kernels[i].name, name) == 0)
            return (own->table->kernels[i].needs & own->device.features) == own->table->kernels[i].needs;
    return false;
}

// What lies beyond an edge is 0, not 0 times what happens to lie there: an infinite edge stays where it is.
static void beyond_the_edges_there_is_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        contest own;
        contest_init(&own, &hone_stencil_table, "stencil(f32[2,2,40], f32[7])", 0, 1);
        if (can_run(&own, kernels[i])) {
            set_all(&own, 0, 160, 1);
            set_all(&own, 1, 7, 1);
            contest_set(&own, 0, 0, INFINITY);
            contest_run_kernel(&own, kernels[i]);
            contest_expect(&own, 2, 39, 4, 0); // a corner: itself, left, down, above
            contest_expect(&own, 2, 20, 5, 0); // an edge
            assert_true(isinf(contest_get(&own, 2, 1)));
            contest_expect(&own, 2, 2, 5, 0);
        }
        contest_deinit(&own);
    }
}

static void a_reduction_adds_a_row_and_keeps_what_is_no_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        contest own;
        contest_init(&own, &hone_reduction_table, "reduction(f32[3,100])", 0, 1);
        if (can_run(&own, kernels[i])) {
            for (int64_t j = 0; j < 300; j++)
                contest_set(&own, 0, j, (double)(j % 100));
            contest_set(&own, 0, 150, (double)NAN);
            contest_run_kernel(&own, kernels[i]);
            contest_expect(&own, 1, 0, 4950, 0);
            assert_true(isnan(contest_get(&own, 1, 1)));
            contest_expect(&own, 1, 2, 4950, 0);
        }
        contest_deinit(&own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stencil_meets_its_reference),
        cmocka_unit_test(every_reduction_meets_its_reference),
        cmocka_unit_test(a_stencil_spreads_a_point_by_its_weights),
        cmocka_unit_test(beyond_the_edges_there_is_nothing),
        cmocka_unit_test(a_reduction_adds_a_row_and_keeps_what_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
