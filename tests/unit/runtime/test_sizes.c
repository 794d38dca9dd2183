// Programs that were compiled with another version's headers have shorter or longer structs: what both know goes over.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hone/hone.h>

#include <string.h>

static const hone_store_key key = {"cpu:test", "rms_norm", "1", "0123456789abcdef", NULL};

static int open_store(void **state)
{
    return hone_store_open(hone_allocator_system(), "memory:", (hone_store **)state, NULL) == HONE_OK ? 0 : -1;
}

static int close_store(void **state)
{
    hone_store_close((hone_store **)state);
    return 0;
}

static hone_store_decision decision_of(const char *kernel, const char *call_key)
{
    hone_store_decision decision = {
        .key = key,
        .call = "rms_norm(f32[8,8], f32[8])",
        .kernel = kernel,
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .time_ns = 5,
        .evidence = "{}",
        .environment = "{}"};
    decision.key.key = call_key;
    return decision;
}

static bool count_one(void *ctx, const hone_store_decision *decision)
{
    assert_string_equal(decision->environment, "{}");
    ++*(int *)ctx;
    return true;
}

static int count_of(hone_store *store)
{
    int count = 0;
    assert_int_equal(hone_store_scan(store, NULL, count_one, &count, NULL), HONE_OK);
    return count;
}

// Two decisions as a newer program has them, with a field that this version does not know.
typedef struct newer_decision {
    hone_store_decision known;
    const char *later;
} newer_decision;

static void an_array_of_longer_structs_is_taken_where_what_is_new_is_zero(void **state)
{
    hone_store *store = *state;
    hone_error err;
    newer_decision two[2] = {
        {decision_of("avx2", "0123456789abcdef"), NULL}, {decision_of("avx512", "0123456789abcdee"), NULL}};
    assert_int_equal(hone_store_put_all_sized(store, &two[0].known, 2, sizeof *two, &err), HONE_OK);
    assert_int_equal(count_of(store), 2);
    two[0].known.key.key = "0123456789abcded";
    two[1].later = "used";
    assert_int_equal(hone_store_put_all_sized(store, &two[0].known, 2, sizeof *two, &err), HONE_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "hone_store_decision has"));
    assert_int_equal(count_of(store), 2);
}

static bool keep_samples(void *ctx, const hone_store_measurement *measurement)
{
    *(bool *)ctx = measurement->samples_ns != NULL;
    assert_string_equal(measurement->kernel, "avx2");
    return true;
}

static void what_a_shorter_struct_lacks_is_the_default(void **state)
{
    hone_store *store = *state;
    hone_error err;
    hone_store_measurement measurement;
    memset(&measurement, 0x5a, sizeof measurement); // behind the older struct lies something else
    memset(&measurement, 0, offsetof(hone_store_measurement, samples_ns));
    measurement.kernel = "avx2";
    measurement.config = "{}";
    measurement.revision = "1";
    measurement.time_ns = measurement.low_ns = measurement.high_ns = 5;
    bool has_samples = true;
    if (hone_store_put_measurement_sized(
            store, &key, &measurement, offsetof(hone_store_measurement, samples_ns), &err) != HONE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(hone_store_measurements(store, &key, keep_samples, &has_samples, NULL), HONE_OK);
    assert_false(has_samples);
}

static void a_size_that_is_none_is_refused_with_the_struct(void **state)
{
    hone_store *store = *state;
    hone_error err;
    const hone_store_decision decision = decision_of("avx2", "0123456789abcdef");
    const size_t sizes[] = {0, 3, sizeof decision + 1, (size_t)1 << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(hone_store_put_all_sized(store, &decision, 1, sizes[i], &err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "sizeof(hone_store_decision)"));
    }
}

static void a_result_is_as_long_as_the_program_has_it(void **state)
{
    hone_store *store = *state;
    const hone_store_decision decision = decision_of("avx2", "0123456789abcdef");
    assert_int_equal(hone_store_put(store, &decision, NULL), HONE_OK);
    union {
        hone_store_stat stat;
        unsigned char bytes[sizeof(hone_store_stat) + 16];
    } out;
    memset(&out, 0x5a, sizeof out);
    assert_int_equal(hone_store_get_stat_sized(store, &out.stat, sizeof(uint64_t), NULL), HONE_OK);
    assert_int_equal(out.stat.decisions, 1);
    assert_int_equal(out.bytes[sizeof(uint64_t)], 0x5a);
    assert_int_equal(hone_store_get_stat_sized(store, &out.stat, sizeof out, NULL), HONE_OK);
    assert_int_equal(out.stat.measurements, 0);
    assert_int_equal(out.bytes[sizeof out - 1], 0);
}

static void a_decision_is_as_long_as_the_program_has_it(void **state)
{
    (void)state;
    const hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    hone_runtime *rt = NULL;
    hone_error err;
    float x[8] = {0}, y[8];
    unsigned char bytes[sizeof(hone_decision)];
    memset(bytes, 0x5a, sizeof bytes);
    hone_decision *out = (hone_decision *)(void *)bytes;
    assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
    const hone_op *op = hone_op_find(rt, "softmax", &err);
    hone_tensor *tx = HONE_TENSOR(x, 8), *ty = HONE_TENSOR(y, 8);
    const hone_value args[] = {hone_of_tensor(tx), hone_of_tensor(ty)};
    if (hone_decide_sized(op, args, 2, out, offsetof(hone_decision, kernel), &err) != HONE_OK)
        fail_msg("%s", err.message);
    assert_string_equal(out->algorithm, "softmax");
    assert_int_equal(bytes[offsetof(hone_decision, kernel)], 0x5a);
    hone_runtime_close(&rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            an_array_of_longer_structs_is_taken_where_what_is_new_is_zero, open_store, close_store),
        cmocka_unit_test_setup_teardown(what_a_shorter_struct_lacks_is_the_default, open_store, close_store),
        cmocka_unit_test_setup_teardown(a_size_that_is_none_is_refused_with_the_struct, open_store, close_store),
        cmocka_unit_test_setup_teardown(a_result_is_as_long_as_the_program_has_it, open_store, close_store),
        cmocka_unit_test(a_decision_is_as_long_as_the_program_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
