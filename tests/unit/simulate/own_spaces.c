// The spaces in bench/spaces, recorded by lab/record-spaces: whole, every config with its samples.
#include "simulate/recorded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    const char *name, *kernel;
    size_t configs, parameters;
} spaces[] = {
    {"matmul-192", "matmul", 434, 6},
    {"flash_attention-128", "flash_attention", 288, 5},
    {"stencil-64", "stencil", 4320, 9},
    {"reduction-512x2048", "reduction", 2880, 7},
};

static void every_space_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        char path[1024];
        hone_recorded *recorded = NULL;
        hone_error err = {0};
        snprintf(path, sizeof path, "%s/../bench/spaces/%s.json.gz", HONE_TEST_DATA, spaces[i].name);
        if (hone_recorded_open(hone_allocator_system(), path, &recorded, &err) != HONE_OK) fail_msg("%s", err.message);
        assert_false(hone_recorded_is_cut(recorded));
        assert_string_equal(hone_recorded_kernel(recorded), spaces[i].kernel);
        assert_int_equal(hone_recorded_count(recorded), spaces[i].configs);
        assert_int_equal(hone_space_parameters(hone_recorded_space(recorded)), spaces[i].parameters);
        for (size_t k = 0; k < spaces[i].configs; k++) {
            const hone_recorded_row *row = hone_recorded_at(recorded, k);
            assert_int_equal(row->failure, HONE_FAILURE_NONE);
            assert_true(row->sample_count >= 10 && row->time > 0 && hone_recorded_cost(row) > row->time);
            assert_ptr_equal(hone_recorded_find(recorded, &row->config), row);
        }
        hone_recorded_destroy(&recorded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_space_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
