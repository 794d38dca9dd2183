// hone_explain: what it says of each link, each kernel and the nearest stored calls, as text and as JSON.
#include "fixture.h"

#include "runtime/api/api.h"
#include "runtime/links/links.h"
#include "store/records.h"

#include <jansson.h>
#include <stdio.h>

static const char *explain_text(fixture *f, int64_t rows, int64_t cols)
{
    static saying said;
    said.size = 0;
    hone_call *call = describe_scale(f, rows, cols);
    if (hone_explain(f->op, call, HONE_TEXT, collect_saying, &said, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_call_release(&call);
    return said.data;
}

static json_t *explain_json(fixture *f, int64_t rows, int64_t cols)
{
    saying said = {.size = 0};
    json_error_t err;
    hone_call *call = describe_scale(f, rows, cols);
    if (hone_explain(f->op, call, HONE_JSON, collect_saying, &said, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_call_release(&call);
    json_t *document = json_loads(said.data, JSON_REJECT_DUPLICATES, &err);
    if (document == NULL) fail_msg("%s: %s", err.text, said.data);
    return document;
}

static const char *string_of(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    assert_non_null(value);
    return json_is_null(value) ? NULL : json_string_value(value);
}

// The row of an array whose field says name.
static const json_t *row_of(const json_t *document, const char *array, const char *field, const char *name)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(document, array), i, row)
    {
        if (strcmp(string_of(row, field), name) == 0) return row;
    }
    fail_msg("no %s in %s", name, array);
    return NULL;
}

static void assert_contains(const char *whole, const char *part)
{
    if (strstr(whole, part) == NULL) fail_msg("'%s' not in:\n%s", part, whole);
}

static void store_plain_for(fixture *f, int64_t rows, int64_t cols)
{
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    (void)decide_scale(f, rows, cols);
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static int setup_store(void **state)
{
    *state = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:"});
    return 0;
}

static void the_text_names_the_call_each_link_and_each_kernel(void **state)
{
    fixture *f = *state;
    const char *said = explain_text(f, 4, 4);
    assert_contains(said, "scale(f32[4,4])\n");
    assert_contains(said, "answered by heuristic: native/fast {\"unroll\":1,\"layout\":\"row\"} (unverified)");
    static const char *const lines[] = {"  override   none",      "  overlay    none", "  lock       none",
                                        "  memory     none",      "  store      none", "  transfer   none",
                                        "  autotune   not asked", "  heuristic  fast"};
    const char *at = said;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        at = strstr(at, lines[i]);
        if (at == NULL) fail_msg("'%s' not in its place in:\n%s", lines[i], said);
    }
    assert_contains(said, "chosen");
    assert_contains(said, "could run it");
    assert_contains(said, "the reference");
    assert_contains(said, "only the policy tune tunes");
    assert_null(strstr(said, "bucket")); // no dim of it is rounded
}

static void a_call_that_is_rounded_is_explained_with_its_bucket(void **state)
{
    fixture *f = *state;
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "grow(x: f32[n ~pow2]) -> y: f32[n]";
    hone_kernel kernel = f->kernels[FAST];
    kernel.algorithm = "grow";
    assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    const hone_op *op = hone_op_find(f->rt, "grow", &f->err);
    hone_call *call = NULL;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(op), "grow(f32[11])", &call, &f->err), HONE_OK);
    saying said = {.size = 0};
    assert_int_equal(hone_explain(op, call, HONE_TEXT, collect_saying, &said, &f->err), HONE_OK);
    assert_contains(said.data, "\nbucket ");
    assert_contains(said.data, ", grow(f32[16])\n");
    hone_call_release(&call);
}

static bool yields_above_eight(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device)
{
    int64_t n = 0;
    (void)kernel, (void)device;
    return hone_call_dim(call, "n", &n) == HONE_OK && n > 8;
}

static void a_kernel_that_yields_answers_after_the_others(void **state)
{
    static const struct {
        const char *call, *chosen, *beside;
    } rows[] = {
        {"grow(f32[8])", "answered by heuristic: native/first", "the heuristic takes the first by priority"},
        {"grow(f32[9])", "answered by heuristic: native/second",
         "the heuristic expects another to be faster for this call"},
    };
    fixture *f = *state;
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "grow(x: f32[n]) -> y: f32[n]";
    hone_kernel kernels[] = {f->kernels[FAST], f->kernels[FAST]};
    kernels[0].algorithm = kernels[1].algorithm = "grow";
    kernels[0].name = "first";
    kernels[1].name = "second";
    kernels[1].priority = kernels[0].priority - 1;
    kernels[0].yields = yields_above_eight;
    assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, kernels, 2, &f->err), HONE_OK);
    const hone_op *op = hone_op_find(f->rt, "grow", &f->err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hone_call *call = NULL;
        assert_int_equal(
            hone_call_parse(hone_allocator_system(), hone_op_signature(op), rows[i].call, &call, &f->err), HONE_OK);
        saying said = {.size = 0};
        assert_int_equal(hone_explain(op, call, HONE_TEXT, collect_saying, &said, &f->err), HONE_OK);
        assert_contains(said.data, rows[i].chosen);
        assert_contains(said.data, rows[i].beside);
        hone_call_release(&call);
    }
}

// A contest that had time for one kernel says nothing of the others.
static void what_was_never_measured_is_not_called_slower(void **state)
{
    fixture *f = *state;
    size_t count;
    hone_call *call = describe_scale(f, 4, 4);
    const hone_store_key key = {
        hone_runtime_devices(f->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call), hone_call_spec(call)};
    hone_store_measurement slow = {
        .kernel = "plain", .config = "{}", .time_ns = 5000, .low_ns = 5000, .high_ns = 5000, .samples = 1};
    put_in_cache(f, 4, 4, "fast");
    const char *said = explain_text(f, 4, 4);
    assert_contains(said, "could run it; no measurement of it is stored");
    assert_null(strstr(said, "faster"));
    assert_int_equal(hone_store_put_measurement(hone_runtime_store(f->rt), &key, &slow, NULL), HONE_OK);
    assert_contains(explain_text(f, 4, 4), "could run it; measured: 5.000 us, the fastest of 1 config\n");
    slow.failure = HONE_FAILURE_WRONG;
    slow.reason = "far off";
    assert_int_equal(hone_store_put_measurement(hone_runtime_store(f->rt), &key, &slow, NULL), HONE_OK);
    assert_contains(explain_text(f, 4, 4), "could run it; what was tried of it failed");
    hone_call_release(&call);
}

static void an_undecided_contest_is_explained_with_its_evidence(void **state)
{
    fixture *f = *state;
    static const char why[] = "1 of 2 kernels was never tried; try --seconds 30";
    size_t count;
    hone_call *call = describe_scale(f, 4, 4);
    hone_store_decision row = {
        .key =
            {hone_runtime_devices(f->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call),
             hone_call_spec(call)},
        .kernel = "plain",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .verified = true,
        .time_ns = 5000,
        .evidence = "{\"time_ns\":5000,\"seconds\":2}"};
    assert_int_equal(hone_store_put(hone_runtime_store(f->rt), &row, &f->err), HONE_OK);
    assert_null(strstr(explain_text(f, 4, 4), "undecided"));
    hone_call_release(&call);
    call = describe_scale(f, 4, 6);
    row.key.key = hone_call_key(call);
    row.key.spec = hone_call_spec(call);
    row.evidence = "{\"time_ns\":5000,\"undecided\":\"1 of 2 kernels was never tried; try --seconds 30\"}";
    assert_int_equal(hone_store_put(hone_runtime_store(f->rt), &row, &f->err), HONE_OK);
    assert_contains(explain_text(f, 4, 6), "\n  undecided: 1 of 2 kernels was never tried; try --seconds 30\n");
    json_t *document = explain_json(f, 4, 6);
    assert_string_equal(string_of(json_object_get(document, "evidence"), "undecided"), why);
    json_decref(document);
    hone_call_release(&call);
}

static void the_json_has_the_fields_that_scripts_rely_on(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "fast");
    json_t *document = explain_json(f, 4, 4);
    hone_call *call = describe_scale(f, 4, 4);
    assert_string_equal(string_of(document, "call"), "scale(f32[4,4])");
    assert_string_equal(string_of(document, "key"), hone_call_key(call));
    assert_string_equal(string_of(document, "source"), "memory");
    assert_string_equal(string_of(document, "kernel"), "fast");
    assert_string_equal(string_of(document, "platform"), "native");
    assert_string_equal(string_of(document, "policy"), "heuristic");
    assert_null(string_of(document, "bucket"));
    const json_t *config = json_object_get(document, "config");
    assert_int_equal(json_integer_value(json_object_get(config, "unroll")), 4);
    assert_string_equal(json_string_value(json_object_get(config, "layout")), "col");
    assert_true(json_is_false(json_object_get(document, "verified")));
    assert_int_equal(json_array_size(json_object_get(document, "chain")), HONE_SOURCE_COUNT - 1);
    assert_string_equal(string_of(row_of(document, "chain", "link", "memory"), "answer"), "fast");
    assert_null(string_of(row_of(document, "chain", "link", "memory"), "why"));
    assert_string_equal(string_of(row_of(document, "chain", "link", "override"), "answer"), "none");
    assert_string_equal(string_of(row_of(document, "chain", "link", "autotune"), "answer"), "not asked");
    assert_int_equal(json_array_size(json_object_get(document, "kernels")), KERNELS);
    assert_true(json_is_true(json_object_get(row_of(document, "kernels", "name", "plain"), "eligible")));
    assert_string_equal(string_of(row_of(document, "kernels", "name", "fast"), "why"), "chosen");
    assert_int_equal(json_array_size(json_object_get(document, "nearest")), 0);
    hone_call_release(&call);
    json_decref(document);
}

static bool refuses_five(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    int64_t cols = 0;
    if (hone_call_dim(call, "cols", &cols) == HONE_OK && cols != 5) return true;
    snprintf(why->message, sizeof why->message, "\"five\" columns\n\tare one too many");
    return false;
}

static void a_kernel_that_cannot_run_says_why_whatever_it_says(void **state)
{
    fixture *f = *state;
    hone_kernel picky = f->kernels[PLAIN];
    picky.name = "picky";
    picky.priority = 50;
    picky.supports = refuses_five;
    hone_kernel foreign = f->kernels[PLAIN];
    foreign.name = "foreign";
    foreign.platform = HONE_CUDA;
    foreign.backend = HONE_GPU;
    hone_kernel kernels[] = {picky, foreign};
    assert_int_equal(hone_register_kernels(f->rt, kernels, 2, &f->err), HONE_OK);
    json_t *document = explain_json(f, 4, 5);
    const json_t *row = row_of(document, "kernels", "name", "picky");
    assert_true(json_is_false(json_object_get(row, "eligible")));
    assert_string_equal(string_of(row, "why"), "\"five\" columns\n\tare one too many");
    row = row_of(document, "kernels", "name", "foreign");
    assert_true(json_is_false(json_object_get(row, "eligible")));
    assert_contains(string_of(row, "why"), "cuda");
    json_decref(document);
}

static void a_miss_shows_the_nearest_stored_calls_with_the_fields_that_differ(void **state)
{
    fixture *f = *state;
    store_plain_for(f, 32, 8);
    store_plain_for(f, 4, 8);
    store_plain_for(f, 16, 2);
    store_plain_for(f, 8, 4);
    json_t *document = explain_json(f, 4, 4);
    const json_t *nearest = json_object_get(document, "nearest");
    assert_int_equal(json_array_size(nearest), 3);
    hone_call *twice = describe_scale(f, 4, 8), *tall = describe_scale(f, 8, 4);
    const char *first = string_of(json_array_get(nearest, 0), "key"),
               *second = string_of(json_array_get(nearest, 1), "key");
    assert_true(
        (strcmp(first, hone_call_key(twice)) == 0 && strcmp(second, hone_call_key(tall)) == 0) ||
        (strcmp(first, hone_call_key(tall)) == 0 && strcmp(second, hone_call_key(twice)) == 0));
    hone_call_release(&twice);
    hone_call_release(&tall);
    const json_t *differs = json_object_get(json_array_get(nearest, 2), "differs");
    assert_int_equal(json_array_size(differs), 2);
    assert_string_equal(json_string_value(json_array_get(differs, 0)), "x.shape[0]: 4, stored 16");
    assert_string_equal(json_string_value(json_array_get(differs, 1)), "x.shape[1]: 4, stored 2");
    json_decref(document);
    const char *said = explain_text(f, 4, 4);
    assert_contains(said, "nearest stored calls\n");
    assert_contains(said, "    x.shape[0]: 4, stored 16\n");
}

static void scalars_and_dtypes_that_differ_are_named_too(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    e.args[2] = hone_of_float(3);
    e.tensors[0].dtype = e.tensors[1].dtype = hone_dtype_of(HONE_F64);
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_decision decision;
    hone_context_enter(context);
    assert_int_equal(hone_decide(f->op, e.args, 3, &decision, &f->err), HONE_OK);
    hone_context_enter(NULL);
    hone_context_release(&context);
    const char *said = explain_text(f, 4, 4);
    assert_contains(said, "x.dtype: \"float32\", stored \"float64\"");
    assert_contains(said, "factor: 2.0, stored 3.0");
}

static void an_answer_from_the_store_says_so_each_time_and_explaining_writes_nothing(void **state)
{
    fixture *f = *state;
    store_plain_for(f, 4, 4);
    for (int i = 0; i < 2; i++) {
        json_t *document = explain_json(f, 4, 4);
        assert_string_equal(string_of(document, "source"), "store");
        json_decref(document);
    }
    assert_int_equal(hone_cache_size(f->rt), 0);
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    (void)explain_text(f, 9, 9);
    hone_context_enter(NULL);
    hone_context_release(&context);
    assert_int_equal(decide_scale(f, 9, 9).source, HONE_SOURCE_HEURISTIC);
}

static void explaining_under_the_policy_tune_does_not_tune(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_TUNE});
    json_t *document = explain_json(f, 4, 4);
    assert_string_equal(string_of(document, "source"), "heuristic");
    assert_contains(string_of(row_of(document, "chain", "link", "autotune"), "why"), "explain never tunes");
    json_decref(document);
    for (int i = 0; i < KERNELS; i++)
        assert_int_equal(f->probes[i].runs + f->probes[i].prepares, 0);
    close_fixture(f);
}

static void a_policy_without_an_answer_is_explained_as_such(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FAIL});
    json_t *document = explain_json(f, 4, 4);
    assert_null(string_of(document, "source"));
    assert_null(string_of(document, "kernel"));
    assert_true(json_is_null(json_object_get(document, "config")));
    assert_true(json_is_null(json_object_get(document, "evidence")));
    json_decref(document);
    assert_contains(explain_text(f, 4, 4), "no answer under the policy fail");
    close_fixture(f);
}

static void an_override_that_cannot_be_followed_is_what_the_explanation_ends_with(void **state)
{
    fixture *f = *state;
    hone_kernel picky = f->kernels[PLAIN];
    picky.name = "picky";
    picky.supports = refuses_five;
    assert_int_equal(hone_register_kernels(f->rt, &picky, 1, &f->err), HONE_OK);
    put_in_cache(f, 4, 5, "plain");
    hone_context *context = overriding(f, "picky", NULL);
    hone_context_enter(context);
    json_t *document = explain_json(f, 4, 5);
    assert_null(string_of(document, "source")); // as hone_run, which fails
    assert_string_equal(string_of(row_of(document, "chain", "link", "override"), "answer"), "error");
    json_decref(document);
    assert_contains(explain_text(f, 4, 5), "override");
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static void a_kernel_that_was_put_aside_is_explained_by_its_failure(void **state)
{
    fixture *f = *state;
    atomic_store(&f->probes[FAST].status, HONE_UNSUPPORTED);
    run_example(f, 4, 4);
    json_t *document = explain_json(f, 4, 4);
    const json_t *row = row_of(document, "kernels", "name", "fast");
    assert_true(json_is_false(json_object_get(row, "eligible")));
    assert_contains(string_of(row, "why"), "disabled for this call");
    assert_string_equal(string_of(document, "kernel"), "plain");
    json_decref(document);
}

static void null_is_refused(void **state)
{
    fixture *f = *state;
    hone_call *call = describe_scale(f, 4, 4);
    assert_int_equal(hone_explain(NULL, call, HONE_TEXT, collect_saying, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_explain(f->op, NULL, HONE_TEXT, collect_saying, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_explain(f->op, call, HONE_TEXT, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    hone_call_release(&call);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)
#define WITH_STORE(test)   cmocka_unit_test_setup_teardown(test, setup_store, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(the_text_names_the_call_each_link_and_each_kernel),
        WITH_RUNTIME(a_call_that_is_rounded_is_explained_with_its_bucket),
        WITH_RUNTIME(a_kernel_that_yields_answers_after_the_others),
        WITH_RUNTIME(the_json_has_the_fields_that_scripts_rely_on),
        WITH_STORE(what_was_never_measured_is_not_called_slower),
        WITH_STORE(an_undecided_contest_is_explained_with_its_evidence),
        WITH_RUNTIME(a_kernel_that_cannot_run_says_why_whatever_it_says),
        WITH_STORE(a_miss_shows_the_nearest_stored_calls_with_the_fields_that_differ),
        WITH_STORE(scalars_and_dtypes_that_differ_are_named_too),
        WITH_STORE(an_answer_from_the_store_says_so_each_time_and_explaining_writes_nothing),
        cmocka_unit_test(explaining_under_the_policy_tune_does_not_tune),
        cmocka_unit_test(a_policy_without_an_answer_is_explained_as_such),
        WITH_RUNTIME(an_override_that_cannot_be_followed_is_what_the_explanation_ends_with),
        WITH_RUNTIME(a_kernel_that_was_put_aside_is_explained_by_its_failure),
        WITH_RUNTIME(null_is_refused),
    };
    return cmocka_run_group_tests_name("runtime_explain", tests, NULL, NULL);
}
