// What becomes of a stored choice when a contest that it was kept out of finds another.
#include "ground.h"
#include "runtime/api/inner.h"
#include "store/records.h"

#include <stdio.h>

static void tune_only(ground *g, const char *kernel)
{
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .kernel = kernel};
    hone_result *result = NULL;
    hone_call *call = describe_scale(g->f, 8, 4);
    if (hone_tune(g->f->op, call, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    assert_string_equal(hone_result_decision(result, 0)->kernel, kernel);
    hone_result_release(&result);
    hone_call_release(&call);
}

typedef struct kept_row {
    hone_store_decision row;
    char *texts[13];
    size_t count;
} kept_row;

static const char *copied(kept_row *kept, const char *text)
{
    if (text == NULL) return NULL;
    return kept->texts[kept->count++] = strdup(text);
}

static bool copy_row(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    kept_row *kept = ctx;
    kept->row = *row;
    kept->row.key = (hone_store_key){
        copied(kept, row->key.device), copied(kept, row->key.algorithm), copied(kept, row->key.version),
        copied(kept, row->key.key), copied(kept, row->key.spec)};
    kept->row.call = copied(kept, row->call);
    kept->row.kernel = copied(kept, row->kernel);
    kept->row.platform = copied(kept, row->platform);
    kept->row.config = copied(kept, row->config);
    kept->row.source = copied(kept, row->source);
    kept->row.revision = copied(kept, row->revision);
    kept->row.evidence = copied(kept, row->evidence);
    kept->row.environment = copied(kept, row->environment);
    return true;
}

// The stored kernel of the call; its time becomes time_ns when that is not 0.
static void look(ground *g, double time_ns, char kernel[32])
{
    kept_row kept = {.count = 0};
    size_t devices;
    hone_store *store = NULL;
    hone_call *call = describe_scale(g->f, 8, 4);
    const hone_store_key key = {
        hone_runtime_devices(g->f->rt, &devices)[0]->fingerprint, "scale", "1", hone_call_key(call),
        hone_call_spec(call)};
    assert_int_equal(hone_store_open(hone_allocator_system(), g->url, &store, &g->f->err), HONE_OK);
    assert_int_equal(
        hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, copy_row, &kept, &g->f->err), HONE_OK);
    snprintf(kernel, 32, "%s", kept.row.kernel);
    kept.row.time_ns = time_ns;
    if (time_ns > 0) assert_int_equal(hone_store_put(store, &kept.row, &g->f->err), HONE_OK);
    hone_store_close(&store);
    hone_call_release(&call);
    for (size_t i = 0; i < kept.count; i++)
        free(kept.texts[i]);
}

static void a_faster_choice_that_was_kept_out_stays(void **state)
{
    ground *g = *state;
    char kernel[32];
    tune_only(g, "fast");
    look(g, 1e-3, kernel);
    assert_string_equal(kernel, "fast");
    tune_only(g, "plain");
    look(g, 0, kernel);
    assert_string_equal(kernel, "fast");
    assert_string_equal(decide_scale(g->f, 8, 4).kernel, "plain"); // in this program what it asked for
    hone_cache_clear(g->f->rt);
    assert_string_equal(decide_scale(g->f, 8, 4).kernel, "fast");
}

static void a_slower_one_is_replaced(void **state)
{
    ground *g = *state;
    char kernel[32];
    tune_only(g, "fast");
    look(g, 1e12, kernel);
    tune_only(g, "plain");
    look(g, 0, kernel);
    assert_string_equal(kernel, "plain");
}

// The kernel itself competed: what it takes today counts.
static void a_choice_that_competed_is_replaced(void **state)
{
    ground *g = *state;
    char kernel[32];
    tune_only(g, "fast");
    look(g, 1e-3, kernel);
    tune_only(g, "fast");
    hone_cache_clear(g->f->rt);
    assert_true(decide_scale(g->f, 8, 4).evidence.time_ns > 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_faster_choice_that_was_kept_out_stays, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_slower_one_is_replaced, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_choice_that_competed_is_replaced, open_ground, close_ground),
    };
    return cmocka_run_group_tests_name("runtime_keep", tests, NULL, NULL);
}
