// What the store knows of near calls is tried first.
#include "arena.h"
#include "hone/describe.h"
#include "store/records.h"

#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    if (ground_setup(state) != 0) return -1;
    ground *g = *state;
    g->options.evaluations = 5;
    return hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err) == HONE_OK ? 0 : -1;
}

typedef struct near {
    const char *call, *device, *config, *revision; // device NULL: this one
    hone_regime regime;
} near;

// A decision for a call of scale_crowd.
static void put(ground *g, near n)
{
    hone_call *call = NULL;
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, "scale_crowd", NULL);
    assert_int_equal(hone_call_parse(hone_allocator_system(), algorithm->signature, n.call, &call, &g->err), HONE_OK);
    const hone_store_decision decision = {
        .key =
            {n.device != NULL ? n.device : g->environment.device->fingerprint, algorithm->name, algorithm->version,
             hone_call_key(call), hone_call_spec(call)},
        .call = n.call,
        .kernel = "crowd",
        .platform = "native",
        .config = n.config,
        .revision = n.revision,
        .verified = true,
        .regime = n.regime,
        .time_ns = 1000,
    };
    if (hone_store_put(g->environment.store, &decision, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    hone_call_release(&call);
}

typedef struct seen {
    const char *config;
    bool found;
    int count;
} seen;

static bool look_for(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    seen *s = ctx;
    s->count++;
    s->found = s->found || strcmp(measurement->config, s->config) == 0;
    return true;
}

// Whether a contest of a few candidates out of a hundred has tried this one.
static bool tries(ground *g, const char *config)
{
    seen s = {config, false, 0};
    if (ground_tune(g, "crowd") != HONE_OK) fail_msg("%s", g->err.message);
    assert_int_equal(
        hone_store_scan(g->environment.store, HONE_RECORD_MEASUREMENT, NULL, look_for, &s, &g->err), HONE_OK);
    assert_true(s.count > 0 && s.count <= 5);
    return s.found;
}

static void the_config_of_a_near_shape_is_tried(void **state)
{
    ground *g = *state;
    put(g, (near){"scale_crowd(f32[1100])", NULL, "{\"delay\":28}", "1", HONE_WARM});
    assert_true(tries(g, "{\"delay\":28}"));
}

static void so_is_that_of_another_device(void **state)
{
    ground *g = *state;
    put(g, (near){"scale_crowd(f32[1000])", "cpu|Nobody,none,none,l1=0", "{\"delay\":28}", "1", HONE_WARM});
    assert_true(tries(g, "{\"delay\":28}"));
}

// Another regime, revision or dtype, a config that the space does not have, and one that cannot be read.
static void neighbours_that_do_not_apply_are_not_used(void **state)
{
    ground *g = *state;
    put(g, (near){"scale_crowd(f32[1100])", NULL, "{\"delay\":28}", "1", HONE_COLD});
    put(g, (near){"scale_crowd(f32[1200])", NULL, "{\"delay\":28}", "0", HONE_WARM});
    put(g, (near){"scale_crowd(f32[1400])", NULL, "{\"delay\":27}", "1", HONE_WARM});
    put(g, (near){"scale_crowd(f32[1500])", NULL, "{\"pause\":28}", "1", HONE_WARM});
    put(g, (near){"scale_crowd(f32[1600])", NULL, "{\"lot\":{}}", "1", HONE_WARM});
    assert_false(tries(g, "{\"delay\":28}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_config_of_a_near_shape_is_tried, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(so_is_that_of_another_device, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(neighbours_that_do_not_apply_are_not_used, setup, ground_teardown),
    };
    return cmocka_run_group_tests_name("tune_priors", tests, NULL, NULL);
}
