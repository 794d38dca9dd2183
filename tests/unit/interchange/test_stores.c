// Two stores: merged, compared; and one that is pruned.
#include "fixture.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <sys/wait.h>
#include <unistd.h>

static hone_store_measurement measurement_of(const char *kernel, uint32_t samples)
{
    return (hone_store_measurement){
        .kernel = kernel,
        .config = "{\"unroll\":2,\"layout\":\"row\"}",
        .revision = "1",
        .time_ns = 10,
        .samples = samples,
        .max_error = -1};
}

static bool has_samples(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    assert_non_null(measurement->samples_ns);
    assert_string_equal(measurement->samples_ns, ctx);
    return true;
}

static void merging_keeps_the_better_and_loses_nothing(void **state)
{
    exchange *e = *state;
    hone_store_decision put = scale_decision(e), worse = put;
    worse.verified = false;
    worse.kernel = "plain";
    worse.config = "{}";
    worse.evidence = "{\"time_ns\":1}";
    assert_int_equal(hone_store_put(e->store, &worse, &e->err), HONE_OK);
    assert_int_equal(hone_store_put(e->other, &put, &e->err), HONE_OK);
    put.key.device = "cpu|only";
    assert_int_equal(hone_store_put(e->other, &put, &e->err), HONE_OK);
    hone_store_measurement measurement = measurement_of("fast", 9);
    measurement.samples_ns = "[1,2,3]";
    assert_int_equal(hone_store_put_measurement(e->other, &put.key, &measurement, &e->err), HONE_OK);
    const hone_store_foreign foreign = {
        .scheme = "ejkernel", .operation = "op@v1", .foreign_key = "k", .text = "{}", .origin = "op.json"};
    assert_int_equal(hone_store_put_foreign(e->other, &foreign, 1, &e->err), HONE_OK);
    const hone_import_options options = {.struct_size = sizeof options, .line = note_line, .ctx = e};
    assert_int_equal(hone_store_merge_from(e->store, e->other, &options, &e->report, &e->err), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_TAKEN], 2);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 1);
    assert_int_equal(e->report.measurements, 1);
    assert_int_equal(count_of(e, e->store).decisions, 2);
    assert_int_equal(count_of(e, e->store).measurements, 1);
    assert_int_equal(
        hone_store_scan(
            e->store, HONE_RECORD_MEASUREMENT, &put.key, has_samples, (void *)(uintptr_t) "[1,2,3]", &e->err),
        HONE_OK);
    // The other way the better one stays.
    assert_int_equal(hone_store_put(e->store, &worse, &e->err), HONE_OK);
    assert_int_equal(hone_store_merge_from(e->other, e->store, &options, &e->report, &e->err), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_KEPT], 1);
    assert_int_equal(hone_store_merge_from(e->store, e->store, NULL, NULL, &e->err), HONE_INVALID_ARGUMENT);
}

static bool note_difference(void *ctx, const hone_store_pair *pair)
{
    static const char *const names[] = {"left", "right", "choice", "times"};
    char *seen = ctx;
    strcat(seen, names[pair->difference]);
    strcat(seen, pair->left != NULL ? pair->left->key.device : pair->right->key.device);
    strcat(seen, " ");
    return strlen(seen) < 60;
}

static void differences_are_reported_in_key_order(void **state)
{
    exchange *e = *state;
    char seen[200] = "";
    hone_store_decision put = scale_decision(e);
    static const char *const devices[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++) {
        put.key.device = devices[i];
        if (i != 1) assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
        if (i == 2) put.config = "{\"unroll\":4,\"layout\":\"row\"}";
        if (i == 3) put.time_ns = 5;
        if (i != 0) assert_int_equal(hone_store_put(e->other, &put, &e->err), HONE_OK);
        put = scale_decision(e);
    }
    assert_int_equal(hone_store_diff(e->store, e->other, note_difference, seen, &e->err), HONE_OK);
    assert_string_equal(seen, "lefta rightb choicec timesd ");
    seen[0] = '\0';
    assert_int_equal(hone_store_diff(e->store, e->store, note_difference, seen, &e->err), HONE_OK);
    assert_string_equal(seen, "");
}

static void pruning_takes_what_no_kernel_here_can_serve(void **state)
{
    exchange *e = *state;
    hone_prune_report report;
    hone_store_decision put = scale_decision(e);
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    put.key.device = "gone kernel";
    put.kernel = "abacus";
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    put = scale_decision(e);
    put.key.device = "gone config";
    put.config = "{\"unroll\":3,\"layout\":\"row\"}";
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    put = scale_decision(e);
    put.key.device = "old revision";
    put.revision = "0";
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    put = scale_decision(e);
    put.key.algorithm = "somebody_elses";
    put.kernel = "abacus";
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    put = scale_decision(e);
    hone_store_measurement measurement = measurement_of("fast", 9);
    assert_int_equal(hone_store_put_measurement(e->store, &put.key, &measurement, &e->err), HONE_OK);
    measurement.kernel = "abacus";
    assert_int_equal(hone_store_put_measurement(e->store, &put.key, &measurement, &e->err), HONE_OK);
    for (int dry = 1; dry >= 0; dry--) {
        assert_int_equal(hone_store_prune(e->runtime->rt, e->store, dry != 0, &report, &e->err), HONE_OK);
        assert_int_equal(report.decisions, 3);
        assert_int_equal(report.measurements, 1);
        assert_int_equal(count_of(e, e->store).decisions, dry ? 5 : 2);
        assert_int_equal(count_of(e, e->store).measurements, dry ? 2 : 1);
    }
    assert_int_equal(hone_store_prune(e->runtime->rt, e->store, false, &report, &e->err), HONE_OK);
    assert_int_equal(report.decisions + report.measurements, 0);
}

// Another process that gives each key a measurement that goes, and only then its decision.
static int put_measurement_then_decision(const char *url, const char *key_format, int count)
{
    hone_store *store = NULL;
    bool ok = hone_store_open(hone_allocator_system(), url, &store, NULL) == HONE_OK;
    for (int i = 0; ok && i < count; i++) {
        char key[HONE_KEY_SIZE];
        snprintf(key, sizeof key, key_format, (unsigned)i);
        const hone_store_decision put = {
            .key = {"cpu|only", "scale", "1", key, NULL},
            .kernel = "fast",
            .platform = "native",
            .config = "{\"unroll\":2,\"layout\":\"row\"}",
            .revision = "1"};
        hone_store_measurement gone = measurement_of("abacus", 9);
        ok = hone_store_put_measurement(store, &put.key, &gone, NULL) == HONE_OK &&
             hone_store_put(store, &put, NULL) == HONE_OK;
    }
    hone_store_close(&store);
    return ok ? 0 : 1;
}

static void pruning_loses_nothing_that_another_process_puts(void **state)
{
    enum { COUNT = 300 };
    exchange *e = *state;
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    hone_store *store = NULL;
    hone_prune_report report;
    int left = -1;
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder.path);
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, &e->err), HONE_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(put_measurement_then_decision(url, "%016x", COUNT));
    while (waitpid(child, &left, WNOHANG) == 0)
        if (hone_store_prune(e->runtime->rt, store, false, &report, &e->err) != HONE_OK) fail_msg("%s", e->err.message);
    assert_int_equal(left, 0);
    assert_int_equal(hone_store_prune(e->runtime->rt, store, false, &report, &e->err), HONE_OK);
    assert_int_equal(count_of(e, store).decisions, COUNT);
    assert_int_equal(count_of(e, store).measurements, 0);
    hone_store_close(&store);
    temporary_folder_remove(&folder);
}

static bool note_file(void *ctx, const char *file)
{
    strcat(ctx, file);
    strcat(ctx, " ");
    return true;
}

static void entries_make_files_that_lead_nowhere_else(void **state)
{
    exchange *e = *state;
    char seen[600] = "";
    const hone_store_foreign foreigns[] = {
        {"ejkernel", "flash_attention@v2", "cpu|cpu", "a", "{}", "/tmp/../x/flash-attn.json"},
        {"ejkernel", "../../evil@v1", "cpu|cpu", "b", "{}", NULL},
        {"ejkernel", "op@v1", "cpu|cpu", "c", "{}", "..json"},
        {"tokamax", "../norm", "../../etc", "{}", "{}", NULL},
    };
    assert_int_equal(hone_store_put_foreign(e->store, foreigns, 4, &e->err), HONE_OK);
    assert_int_equal(
        hone_export_files(
            e->store,
            &(hone_export_options){.struct_size = sizeof(hone_export_options), .format = HONE_EXCHANGE_EJKERNEL},
            note_file, seen, &e->err),
        HONE_OK);
    assert_string_equal(seen, "_._.._evil.json _.json flash-attn.json ");
    seen[0] = '\0';
    assert_int_equal(
        hone_export_files(
            e->store,
            &(hone_export_options){.struct_size = sizeof(hone_export_options), .format = HONE_EXCHANGE_TOKAMAX},
            note_file, seen, &e->err),
        HONE_OK);
    assert_string_equal(seen, "_._.._etc/_._norm.json ");
    seen[0] = '\0';
    assert_int_equal(
        hone_export_files(
            e->store, &(hone_export_options){.struct_size = sizeof(hone_export_options), .format = HONE_EXCHANGE_ANY},
            note_file, seen, &e->err),
        HONE_OK);
    assert_string_equal(seen, "hone.json ");
    const hone_export_options options = {
        .struct_size = sizeof options, .format = HONE_EXCHANGE_EJKERNEL, .file = "flash-attn.json"};
    char *text = NULL;
    assert_int_equal(hone_export(e->store, &options, &text, NULL, &e->err), HONE_OK);
    assert_string_equal(text, "{\"cpu|cpu|flash_attention@v2|a\": {}}");
    hone_text_release(&text);
}

#define STORES_TEST(name) cmocka_unit_test_setup_teardown(name, exchange_set_up, exchange_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORES_TEST(merging_keeps_the_better_and_loses_nothing),
        STORES_TEST(differences_are_reported_in_key_order),
        STORES_TEST(pruning_takes_what_no_kernel_here_can_serve),
        STORES_TEST(pruning_loses_nothing_that_another_process_puts),
        STORES_TEST(entries_make_files_that_lead_nowhere_else),
    };
    return cmocka_run_group_tests_name("interchange stores", tests, NULL, NULL);
}
