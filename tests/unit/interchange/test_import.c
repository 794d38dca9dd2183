// Documents on their way into a store: what is taken, kept as it came, refused with a reason, or refused as a whole.
#include "fixture.h"
#include "interchange/exporter.h"
#include "runtime/api/inner.h"
#include "store/records.h"

static char *golden(const char *name)
{
    char path[600];
    hone_buffer text;
    snprintf(path, sizeof path, "%s/golden/persistent/%s", HONE_TEST_DATA, name);
    hone_buffer_init(&text, hone_allocator_system());
    assert_int_equal(hone_os_read_file(path, 1 << 20, &text, NULL), HONE_OK);
    return hone_buffer_take(&text);
}

// ejkernel ------------------------------------------------------------------------------------------------------------

static void what_ejkernel_wrote_is_kept_and_comes_out_again(void **state)
{
    exchange *e = *state;
    static const struct {
        const char *file;
        size_t count;
    } files[] = {
        {"empty-object.json", 0},
        {"null-values.json", 4},
        {"flash-attn.json", 0},
        {"grouped-matmul.json", 0},
        {"raw-unicode-nested.json", 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text = golden(files[i].file);
        if (import_text(e, e->store, files[i].file, HONE_EXCHANGE_ANY, text, NULL) != HONE_OK)
            fail_msg("%s: %s", files[i].file, e->err.message);
        size_t count = e->report.outcomes[HONE_IMPORT_FOREIGN];
        assert_int_equal(count + e->report.outcomes[HONE_IMPORT_REFUSED], count);
        if (files[i].count > 0) assert_int_equal(count, files[i].count);
        // Out and in again is the same, byte for byte.
        char *first = export_text(e, e->store, HONE_EXCHANGE_EJKERNEL);
        assert_int_equal(import_text(e, e->other, files[i].file, HONE_EXCHANGE_EJKERNEL, first, NULL), HONE_OK);
        char *second = export_text(e, e->other, HONE_EXCHANGE_EJKERNEL);
        assert_string_equal(first, second);
        assert_int_equal(count_of(e, e->store).foreigns, count_of(e, e->other).foreigns);
        hone_text_release(&first);
        hone_text_release(&second);
        hone_text_release(&text);
    }
    assert_int_equal(count_of(e, e->store).decisions, 0);
}

static void joined_keys_are_taken_apart_from_the_right(void **state)
{
    exchange *e = *state;
    static const char text[] = "{\"a|b|op@v1|k\": {\"m\": NaN}, \"|o|k\": 1, \"no bars\": 1, \"a||k\": 1, \"a|b|\": 1, "
                               "\"x\\ud800|o|k\": 1, \"a|b|c\": null}";
    assert_int_equal(import_text(e, e->store, "x.json", HONE_EXCHANGE_EJKERNEL, text, NULL), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 3);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_REFUSED], 4);
    assert_non_null(strstr(e->lines, "refused \"no bars\": the key is not device|operation|key"));
    assert_non_null(strstr(e->lines, "foreign b c: it has no config"));
    char *out = export_text(e, e->store, HONE_EXCHANGE_EJKERNEL);
    assert_string_equal(out, "{\"a|b|c\": null, \"|o|k\": 1, \"a|b|op@v1|k\": {\"m\": NaN}}");
    hone_text_release(&out);
}

static const char their_scale[] =
    "[{\"library\":\"ejkernel\",\"operation\":\"their_scale\",\"takes\":[{\"algorithm\":\"scale\"}],\"configs\":{"
    "\"file\":\"their-scale.json\",\"default\":{\"a\":1,\"fwd\":null},\"words\":{\"fwd.u\":[\"unroll\"],\"w\":["
    "\"warps\"]},"
    "\"platforms\":{\"native\":{\"platform\":\"xla\"},\"triton\":{\"platform\":\"triton\",\"backend\":\"gpu\"}}}}]";

static void put_decision(exchange *e, const char *device, const char *platform, const char *config)
{
    hone_store_decision put = scale_decision(e);
    put.key.device = device;
    put.platform = platform;
    put.config = config;
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
}

static char *export_for(exchange *e, const char *foreign_device)
{
    const hone_export_options options = {
        .struct_size = sizeof options,
        .format = HONE_EXCHANGE_EJKERNEL,
        .line = note_line,
        .ctx = e,
        .rt = e->runtime->rt,
        .foreign_device = foreign_device};
    char *text = NULL;
    e->lines[0] = '\0';
    assert_int_equal(hone_export(e->store, &options, &text, NULL, &e->err), HONE_OK);
    return text;
}

static void check_export(exchange *e)
{
    char *text = export_for(e, NULL);
    hone_text_release(&text);
}

static void expect_export(exchange *e, const char *foreign_device, const char *expected)
{
    char *text = export_for(e, foreign_device);
    assert_string_equal(text, expected);
    hone_text_release(&text);
}

// The device, key and words of ejkernel's; hone's own kernels say where to run, and nothing of blocks.
static void decisions_are_written_as_ejkernel_looks_for_them(void **state)
{
    exchange *e = *state;
    const char *here = hone_runtime_devices(e->runtime->rt, &(size_t){0})[0]->fingerprint;
    const hone_store_alias alias = {
        "ejkernel", "their_scale@v7", "0123456789abcdef", NULL, {NULL, "scale", "1", e->key, scale_spec}};
    assert_int_equal(hone_register_foreign(e->runtime->rt, their_scale, strlen(their_scale), &e->err), HONE_OK);
    put_decision(e, here, "native", "{\"unroll\":2,\"layout\":\"row\"}");
    expect_export(e, NULL, "{}");
    assert_non_null(strstr(e->lines, "no call of ejkernel's is known to be it"));
    assert_int_equal(hone_store_put_alias(e->store, &alias, &e->err), HONE_OK);
    expect_export(
        e, NULL, "{\"cpu|cpu|their_scale@v7|0123456789abcdef\": {\"a\": 1, \"fwd\": null, \"platform\": \"xla\"}}");
    assert_string_equal(e->lines, "");
    // What ejkernel itself found stays, where hone says nothing of its words.
    const hone_store_foreign theirs = {"ejkernel", "their_scale@v7", "cpu|cpu", "0123456789abcdef", "{\"a\": 9}", NULL};
    assert_int_equal(hone_store_put_foreign(e->store, &theirs, 1, &e->err), HONE_OK);
    expect_export(e, NULL, "{\"cpu|cpu|their_scale@v7|0123456789abcdef\": {\"a\": 9}}");
    put_decision(e, "cpu|of another machine", "native", "{}");
    put_decision(e, "cuda|H200", "triton", "{\"unroll\":4,\"warps\":8,\"other\":1,\"layout\":\"row\"}");
    put_decision(e, "opencl|x", "opencl", "{\"unroll\":4}");
    char *text = export_for(e, "NVIDIA|c 12");
    assert_non_null(strstr(
        text, "\"NVIDIA|c 12|their_scale@v7|0123456789abcdef\": {\"a\": 1, \"fwd\": {\"u\": 4}, "
              "\"platform\": \"triton\", \"backend\": \"gpu\", \"w\": 8}"));
    hone_text_release(&text);
    assert_non_null(strstr(e->lines, "of another CPU"));
    assert_non_null(strstr(e->lines, "no kernel of platform opencl"));
    check_export(e);
    assert_non_null(strstr(e->lines, "--foreign-device"));
}

// Where ejkernel recorded or tuned on the GPU, it has said what it calls it.
static void a_gpu_is_called_what_ejkernel_called_it(void **state)
{
    exchange *e = *state;
    static const char name[] = "NVIDIA H200|PJRT C API%0Acuda 12090"; // as hone record import keeps it
    const hone_store_alias alias = {
        "ejkernel", "their_scale@v7", "0123456789abcdef", NULL, {NULL, "scale", "1", e->key, scale_spec}};
    const hone_store_foreign other = {"ejkernel", "x@v1", "NVIDIA H200 NVL|c", "0123456789abcdef", "1", NULL};
    hone_store_invocation call = {.key = {name, "scale", "1", e->key, NULL}, .count = 1};
    assert_int_equal(hone_register_foreign(e->runtime->rt, their_scale, strlen(their_scale), &e->err), HONE_OK);
    assert_int_equal(hone_store_put_alias(e->store, &alias, &e->err), HONE_OK);
    assert_int_equal(hone_store_put_foreign(e->store, &other, 1, &e->err), HONE_OK);
    put_decision(e, "cuda|NVIDIA%20H200,sm_90,sms=132", "triton", "{\"unroll\":4}");
    check_export(e);
    assert_non_null(strstr(e->lines, "what ejkernel calls this device is not known"));
    assert_int_equal(hone_store_add_invocations(e->store, &call, 1, &e->err), HONE_OK);
    char *text = export_for(e, NULL);
    assert_non_null(strstr(text, "\"NVIDIA H200|PJRT C API\\ncuda 12090|their_scale@v7|0123456789abcdef\": {"));
    hone_text_release(&text);
    call.key.device = "NVIDIA H200|another version";
    assert_int_equal(hone_store_add_invocations(e->store, &call, 1, &e->err), HONE_OK);
    check_export(e);
    assert_non_null(strstr(e->lines, "several names"));
}

// Blocks that were measured stand in place of those that came.
static void words_that_map_stand_in_place_of_what_was_imported(void **state)
{
    exchange *e = *state;
    const hone_store_alias alias = {
        "ejkernel", "their_scale@v7", "0123456789abcdef", NULL, {NULL, "scale", "1", e->key, scale_spec}};
    const hone_store_foreign theirs = {"ejkernel", "their_scale@v7", "gpu|x", "0123456789abcdef", "{\"a\": 9}", NULL};
    assert_int_equal(hone_register_foreign(e->runtime->rt, their_scale, strlen(their_scale), &e->err), HONE_OK);
    assert_int_equal(hone_store_put_alias(e->store, &alias, &e->err), HONE_OK);
    assert_int_equal(hone_store_put_foreign(e->store, &theirs, 1, &e->err), HONE_OK);
    put_decision(e, "cuda|H200", "triton", "{\"unroll\":4}");
    expect_export(
        e, "gpu|x",
        "{\"gpu|x|their_scale@v7|0123456789abcdef\": {\"a\": 1, \"fwd\": {\"u\": 4}, \"platform\": \"triton\", "
        "\"backend\": \"gpu\"}}");
}

static void a_key_whose_call_was_recorded_gets_an_alias(void **state)
{
    exchange *e = *state;
    static const char spec[] =
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"factor\":2.0,\"platform\":null,"
        "\"x\":{\"dtype\":\"float32\",\"shape\":[4,8]}},\"method\":null}";
    char key[HONE_KEY_SIZE], text[300];
    hone_hash_key(spec, strlen(spec), key);
    const hone_store_invocation call = {
        .key = {.device = "cpu|cpu", .algorithm = "scale", .version = "7", .key = key, .spec = spec}, .count = 1};
    assert_int_equal(hone_store_add_invocations(e->store, &call, 1, &e->err), HONE_OK);
    snprintf(text, sizeof text, "{\"cpu|cpu|Scale@v7|%s\": {\"block_m\": 64}}", key);
    assert_int_equal(import_text(e, e->store, "x.json", HONE_EXCHANGE_ANY, text, NULL), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 1);
    assert_int_equal(e->report.aliases, 1);
    assert_int_equal(count_of(e, e->store).aliases, 1);
}

// tokamax -------------------------------------------------------------------------------------------------------------

static const char tokamax[] =
    "{\"{\\\"x\\\":\\\"bf16[384,64]\\\",\\\"axis\\\":-1}\": {\"{\\\"block_m\\\":32}\": {\"evaluation_times_ms\":"
    "[0.5,0.1,0.3]}, \"{\\\"block_m\\\":64}\": {\"evaluation_times_ms\":[0.2,0.2]}, \"{}\": "
    "{\"evaluation_times_ms\":[]}}, "
    "\"{\\\"x\\\":\\\"f32[1]\\\"}\": {}}";

static void tokamax_files_are_kept_with_their_winners_told(void **state)
{
    exchange *e = *state;
    static const char path[] = "data/autotuning/nvidia_h100/pallas_triton_normalization.json";
    assert_int_equal(import_text(e, e->store, path, HONE_EXCHANGE_ANY, tokamax, NULL), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 2);
    assert_non_null(strstr(e->lines, "foreign pallas_triton_normalization"));
    assert_non_null(strstr(e->lines, "{\"block_m\":64} is the best of 3"));
    assert_non_null(strstr(e->lines, "never measured"));
    char *out = export_text(e, e->store, HONE_EXCHANGE_TOKAMAX);
    assert_int_equal(import_text(e, e->other, path, HONE_EXCHANGE_TOKAMAX, out, NULL), HONE_OK);
    char *again = export_text(e, e->other, HONE_EXCHANGE_TOKAMAX);
    assert_string_equal(out, again);
    assert_string_equal(out, tokamax);
    hone_text_release(&out);
    hone_text_release(&again);
}

static void tokamax_results_and_other_keys_are_refused(void **state)
{
    exchange *e = *state;
    assert_int_equal(
        import_text(e, e->store, "x", HONE_EXCHANGE_TOKAMAX, "{\"device_kind\":\"H100\",\"data\":[]}", NULL),
        HONE_CORRUPT);
    assert_non_null(strstr(e->err.message, "cache file"));
    assert_int_equal(
        import_text(e, e->store, "x", HONE_EXCHANGE_TOKAMAX, "{\"{x\":{}, \"{}\":[], \"1\":{}, \"{}\":{}}", NULL),
        HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_REFUSED], 3);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 1);
}

// Bundles -------------------------------------------------------------------------------------------------------------

static void fill(exchange *e, hone_store *store)
{
    hone_store_decision put = scale_decision(e);
    assert_int_equal(hone_store_put(store, &put, &e->err), HONE_OK);
    put.regime = HONE_COLD;
    put.verified = false;
    put.evidence = "{\"samples\":3}";
    assert_int_equal(hone_store_put(store, &put, &e->err), HONE_OK);
    put.key.device = "cpu|y";
    put.evidence = put.environment = put.call = put.revision = NULL;
    assert_int_equal(hone_store_put(store, &put, &e->err), HONE_OK);
    hone_store_measurement measurement = {
        .kernel = "fast",
        .config = put.config,
        .revision = "1",
        .time_ns = 0.1,
        .low_ns = 0.05,
        .high_ns = 3,
        .samples = 7,
        .max_error = -1,
        .measured = "2026-11-20T12:34:56Z",
        .samples_ns = "[0.1,0.05,3]"};
    assert_int_equal(hone_store_put_measurement(store, &put.key, &measurement, &e->err), HONE_OK);
    measurement.kernel = "plain";
    measurement.config = "{}";
    measurement.failure = HONE_FAILURE_CRASH;
    measurement.reason = "signal 11";
    assert_int_equal(hone_store_put_measurement(store, &put.key, &measurement, &e->err), HONE_OK);
    const hone_store_alias alias = {
        .scheme = "ejkernel", .operation = "scale@v7", .foreign_key = "0123456789abcdef", .key = put.key};
    assert_int_equal(hone_store_put_alias(store, &alias, &e->err), HONE_OK);
    const hone_store_foreign foreign = {
        .scheme = "ejkernel",
        .operation = "op@v1",
        .device = "cpu|cpu",
        .foreign_key = "k",
        .text = "{\"m\": NaN}",
        .origin = "op.json"};
    assert_int_equal(hone_store_put_foreign(store, &foreign, 1, &e->err), HONE_OK);
}

static void a_bundle_holds_all_and_comes_out_again(void **state)
{
    exchange *e = *state;
    fill(e, e->store);
    char *first = export_text(e, e->store, HONE_EXCHANGE_HONE);
    assert_int_equal(import_text(e, e->other, "hone.json", HONE_EXCHANGE_ANY, first, NULL), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_TAKEN], 3);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 1);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_REFUSED], 0);
    assert_int_equal(e->report.measurements, 2);
    assert_int_equal(e->report.aliases, 1);
    char *second = export_text(e, e->other, HONE_EXCHANGE_HONE);
    assert_string_equal(second, first);
    // The same again changes nothing.
    assert_int_equal(import_text(e, e->other, "hone.json", HONE_EXCHANGE_ANY, first, NULL), HONE_OK);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_EQUAL], 3);
    assert_int_equal(e->report.measurements, 0);
    hone_text_release(&first);
    hone_text_release(&second);
}

static void entries_that_are_wrong_are_refused_one_by_one(void **state)
{
    exchange *e = *state;
    char text[4000];
    const char *entries[] = {
        "3",
        "{}",
        "{\"algorithm\":\"a\",\"key\":\"0123\",\"kernel\":\"k\",\"evidence\":{\"time_ns\":1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"evidence\":{}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"evidence\":{\"time_ns\":-1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":7,\"evidence\":{\"time_ns\":1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"config\":[],\"evidence\":{\"time_ns\":1}"
        "}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"platform\":\"abacus\",\"evidence\":{"
        "\"time_ns\":1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"source\":\"dream\",\"evidence\":{\"time_"
        "ns\":1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"spec\":\"{}\",\"evidence\":{\"time_ns\":"
        "1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"regime\":\"hot\",\"evidence\":{\"time_"
        "ns\":1}}",
        "{\"algorithm\":\"a\",\"key\":\"0123456789abcdef\",\"kernel\":\"k\",\"evidence\":{\"time_ns\":1}}",
    };
    enum { COUNT = sizeof entries / sizeof *entries };
    strcpy(text, "{\"hone_result\":1,\"device\":\"d\",\"entries\":[");
    for (size_t i = 0; i < COUNT; i++) {
        if (i > 0) strcat(text, ",");
        strcat(text, entries[i]);
    }
    strcat(
        text, "],\"measurements\":[{\"algorithm\":\"a\",\"key\":\"k\",\"kernel\":\"x\",\"time_ns\":1e999},1,"
              "{\"algorithm\":\"a\",\"key\":\"k\",\"kernel\":\"x\",\"regime\":\"hot\"}],"
              "\"aliases\":[{}],"
              "\"foreign\":[{\"scheme\":\"s\",\"operation\":\"o\",\"foreign_key\":\"k\",\"text\":\"{\"}]}");
    assert_int_equal(import_text(e, e->store, "x.json", HONE_EXCHANGE_ANY, text, NULL), HONE_OK);
    assert_non_null(strstr(e->lines, "refused measurements[0]"));
    assert_non_null(
        strstr(e->lines, "refused measurements[2]: regime: expected warm, cold, graph or eager, each with -stable"));
    assert_non_null(strstr(e->lines, "refused aliases[0]"));
    assert_non_null(strstr(e->lines, "refused foreign[0]"));
    assert_int_equal(e->report.outcomes[HONE_IMPORT_REFUSED], COUNT - 1 + 5);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_TAKEN], 1);
    assert_non_null(strstr(e->lines, "refused entries[0]: an object is expected"));
    assert_non_null(strstr(e->lines, "spec hashes to"));
    assert_non_null(strstr(e->lines, "abacus"));
    assert_non_null(
        strstr(e->lines, "refused entries[10]: regime: expected warm, cold, graph or eager, each with -stable"));
}

static void counts_and_times_of_a_measurement_have_bounds(void **state)
{
    static const struct {
        const char *field;
        bool taken;
    } rows[] = {
        {"\"samples\":0", true},           {"\"samples\":4294967295", true},  {"\"samples\":4294967296", false},
        {"\"samples\":-1", false},         {"\"samples\":\"7\"", false},      {"\"time_ns\":0", true},
        {"\"time_ns\":-1", false},         {"\"low_ns\":-0.5", false},        {"\"high_ns\":-2", false},
        {"\"max_error\":\"none\"", false}, {"\"config\":[]", false},          {"\"environment\":3", false},
        {"\"samples_ns\":[1, 2.5]", true}, {"\"samples_ns\":null", true},     {"\"samples_ns\":[-1]", false},
        {"\"samples_ns\":[\"1\"]", false}, {"\"samples_ns\":\"[1]\"", false},
    };
    exchange *e = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[400];
        snprintf(
            text, sizeof text,
            "{\"hone_result\":1,\"device\":\"d\",\"entries\":[],\"measurements\":[{\"algorithm\":\"a\","
            "\"key\":\"0123456789abcd%02zu\",\"kernel\":\"k\",%s}]}",
            i, rows[i].field);
        assert_int_equal(import_text(e, e->store, "x.json", HONE_EXCHANGE_ANY, text, NULL), HONE_OK);
        if (e->report.outcomes[HONE_IMPORT_REFUSED] != (rows[i].taken ? 0 : 1))
            fail_msg("%s\n%s", rows[i].field, e->lines);
    }
}

static void invalid_documents_leave_the_store_unchanged(void **state)
{
    exchange *e = *state;
    static const struct {
        hone_exchange format;
        const char *text;
        hone_status status;
    } cases[] = {
        {HONE_EXCHANGE_ANY, "", HONE_CORRUPT},
        {HONE_EXCHANGE_ANY, "[]", HONE_CORRUPT},
        {HONE_EXCHANGE_ANY, "{\"a|b|c\": 1", HONE_CORRUPT},
        {HONE_EXCHANGE_ANY, "{\"hone_result\":2,\"entries\":[]}", HONE_INCOMPATIBLE},
        {HONE_EXCHANGE_ANY, "{\"hone_result\":1}", HONE_CORRUPT},
        {HONE_EXCHANGE_ANY, "{\"hone_result\":1,\"entries\":[],\"foreign\":{}}", HONE_CORRUPT},
        {HONE_EXCHANGE_HONE, "{\"a|b|c\": 1}", HONE_CORRUPT},
        {HONE_EXCHANGE_HONE, "{\"hone_result\":1,\"entries\":[NaN]}", HONE_CORRUPT},
        {(hone_exchange)9, "{}", HONE_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(import_text(e, e->store, "x.json", cases[i].format, cases[i].text, NULL), cases[i].status);
        assert_true(e->err.message[0] != '\0');
    }
    const hone_store_stat stat = count_of(e, e->store);
    assert_int_equal(stat.decisions + stat.foreigns + stat.measurements + stat.aliases, 0);
}

static void several_documents_are_one_transaction(void **state)
{
    exchange *e = *state;
    fill(e, e->store);
    char *text = export_text(e, e->store, HONE_EXCHANGE_HONE);
    hone_importer *importer = NULL;
    assert_int_equal(hone_importer_create(NULL, NULL, &importer, &e->err), HONE_OK);
    assert_int_equal(hone_importer_add(importer, "a", HONE_EXCHANGE_ANY, text, strlen(text), &e->err), HONE_OK);
    assert_int_equal(hone_importer_add(importer, "b", HONE_EXCHANGE_ANY, "{", 1, &e->err), HONE_CORRUPT);
    assert_int_equal(hone_importer_add(importer, "c", HONE_EXCHANGE_ANY, "{\"d|o|k\":1}", 11, &e->err), HONE_OK);
    // Every allocation of the store may fail: then nothing of them is there.
    for (long long left = 0;; left++) {
        atomic_store(&e->memory.left, left);
        hone_status status = hone_importer_commit(importer, e->other, NULL, &e->err);
        atomic_store(&e->memory.left, -1);
        if (status == HONE_OK) break;
        assert_int_equal(status, HONE_OUT_OF_MEMORY);
        const hone_store_stat stat = count_of(e, e->other);
        assert_int_equal(stat.decisions + stat.foreigns + stat.measurements + stat.failures + stat.aliases, 0);
    }
    assert_int_equal(count_of(e, e->other).foreigns, 2);
    assert_int_equal(count_of(e, e->other).decisions, 3);
    assert_int_equal(hone_importer_commit(importer, e->other, NULL, &e->err), HONE_INVALID_ARGUMENT);
    hone_importer_release(&importer);
    hone_text_release(&text);
}

// Codecs --------------------------------------------------------------------------------------------------------------

// Reads and writes {"u": unroll}.
static hone_status load_u(void *ctx, const hone_store_foreign *entry, hone_store_decision *decision, hone_error *err)
{
    static char config[100];
    int unroll;
    ++*(int *)ctx;
    if (sscanf(entry->text, "{\"u\": %d}", &unroll) != 1) return HONE_NOT_FOUND;
    if (unroll < 0) {
        strcpy(err->message, "u is negative");
        return HONE_CORRUPT;
    }
    snprintf(config, sizeof config, "{\"unroll\":%d,\"layout\":\"row\"}", unroll);
    decision->kernel = "fast";
    decision->platform = "native";
    decision->config = config;
    decision->verified = true; // which is not the loader's to say
    return HONE_OK;
}

static hone_status dump_u(void *ctx, const hone_store_decision *decision, hone_store_foreign *entry, hone_error *err)
{
    static char text[100];
    int unroll;
    (void)err;
    if (sscanf(decision->config, "{\"unroll\":%d", &unroll) != 1) return HONE_NOT_FOUND;
    snprintf(text, sizeof text, "{\"u\": %d}", unroll);
    entry->text = *(int *)ctx < 0 ? "{\"u\"" : text;
    entry->device = "cpu|cpu";
    return HONE_OK;
}

static bool note_unverified(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    assert_false(decision->verified);
    assert_string_equal(decision->source, "store");
    strcat(ctx, decision->config);
    return true;
}

static void a_loader_says_what_foreign_configs_mean(void **state)
{
    exchange *e = *state;
    int calls = 0;
    char text[600], seen[200] = "";
    const hone_codec codec = {.struct_size = sizeof codec, .load = load_u, .dump = dump_u, .ctx = &calls};
    snprintf(
        text, sizeof text,
        "{\"d|scale@v1|%s\": {\"u\": 4}, \"e|scale@v1|%s\": {\"u\": 3}, \"f|scale@v1|%s\": {\"u\": -1}, "
        "\"g|scale@v1|%s\": {\"v\": 1}}",
        e->key, e->key, e->key, e->key);
    assert_int_equal(import_text(e, e->store, "x.json", HONE_EXCHANGE_ANY, text, &codec), HONE_OK);
    assert_int_equal(calls, 4);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_TAKEN], 1);
    assert_int_equal(e->report.outcomes[HONE_IMPORT_REFUSED], 2); // 3 is not in the space
    assert_int_equal(e->report.outcomes[HONE_IMPORT_FOREIGN], 1);
    assert_non_null(strstr(e->lines, "u is negative"));
    assert_int_equal(hone_store_scan(e->store, HONE_RECORD_DECISION, NULL, note_unverified, seen, &e->err), HONE_OK);
    assert_string_equal(seen, "{\"unroll\":4,\"layout\":\"row\"}");
}

static void a_dumper_writes_decisions_in_foreign_words(void **state)
{
    exchange *e = *state;
    int calls = 0;
    char *text = NULL, expected[100];
    const hone_codec codec = {.struct_size = sizeof codec, .load = load_u, .dump = dump_u, .ctx = &calls};
    hone_export_options options = {
        .struct_size = sizeof options, .format = HONE_EXCHANGE_EJKERNEL, .codec = &codec, .line = note_line, .ctx = e};
    hone_store_decision put = scale_decision(e);
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    put.kernel = "plain";
    put.config = "{}";
    put.key.device = "cpu|z";
    assert_int_equal(hone_store_put(e->store, &put, &e->err), HONE_OK);
    assert_int_equal(hone_export(e->store, &options, &text, NULL, &e->err), HONE_OK);
    snprintf(expected, sizeof expected, "{\"cpu|cpu|scale@v1|%s\": {\"u\": 2}}", e->key);
    assert_string_equal(text, expected);
    assert_non_null(strstr(e->lines, "the dumper left it out"));
    hone_text_release(&text);
    calls = -1; // then it writes what is no JSON
    assert_int_equal(hone_export(e->store, &options, &text, NULL, &e->err), HONE_CORRUPT);
    assert_non_null(strstr(e->err.message, "dumper"));
    assert_null(text);
}

static void formats_have_names(void **state)
{
    (void)state;
    hone_exchange format;
    hone_error err;
    for (int i = HONE_EXCHANGE_HONE; i < HONE_EXCHANGE_COUNT; i++) {
        assert_int_equal(hone_exchange_parse(hone_exchange_name((hone_exchange)i), &format, &err), HONE_OK);
        assert_int_equal(format, i);
    }
    assert_int_equal(hone_exchange_parse("xml", &format, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "ejkernel"));
    assert_int_equal(hone_exchange_parse(NULL, &format, &err), HONE_INVALID_ARGUMENT);
}

#define IMPORT_TEST(name) cmocka_unit_test_setup_teardown(name, exchange_set_up, exchange_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IMPORT_TEST(what_ejkernel_wrote_is_kept_and_comes_out_again),
        IMPORT_TEST(joined_keys_are_taken_apart_from_the_right),
        IMPORT_TEST(decisions_are_written_as_ejkernel_looks_for_them),
        IMPORT_TEST(a_gpu_is_called_what_ejkernel_called_it),
        IMPORT_TEST(words_that_map_stand_in_place_of_what_was_imported),
        IMPORT_TEST(a_key_whose_call_was_recorded_gets_an_alias),
        IMPORT_TEST(tokamax_files_are_kept_with_their_winners_told),
        IMPORT_TEST(tokamax_results_and_other_keys_are_refused),
        IMPORT_TEST(a_bundle_holds_all_and_comes_out_again),
        IMPORT_TEST(entries_that_are_wrong_are_refused_one_by_one),
        IMPORT_TEST(counts_and_times_of_a_measurement_have_bounds),
        IMPORT_TEST(invalid_documents_leave_the_store_unchanged),
        IMPORT_TEST(several_documents_are_one_transaction),
        IMPORT_TEST(a_loader_says_what_foreign_configs_mean),
        IMPORT_TEST(a_dumper_writes_decisions_in_foreign_words),
        cmocka_unit_test(formats_have_names),
    };
    return cmocka_run_group_tests_name("interchange import", tests, NULL, NULL);
}
