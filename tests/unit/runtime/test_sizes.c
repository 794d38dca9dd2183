// Programs that were compiled with another version's headers have shorter or longer structs: what both know goes over.
#include "store/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hone/hone.h>

#include <string.h>

static int open_store(void **state)
{
    return hone_store_open(hone_allocator_system(), "memory:", (hone_store **)state, NULL) == HONE_OK ? 0 : -1;
}

static int close_store(void **state)
{
    hone_store_close((hone_store **)state);
    return 0;
}

static hone_store_foreign foreign_of(const char *call_key)
{
    return (hone_store_foreign){
        .scheme = "ejkernel",
        .operation = "rms_norm@v1",
        .device = "cpu:test",
        .foreign_key = call_key,
        .text = "{\"rows\":8}",
        .origin = "rms_norm.json"};
}

static size_t count_of(hone_store *store)
{
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(store, &stat, NULL), HONE_OK);
    return (size_t)stat.foreigns;
}

// Two configs as a newer program has them, with a field that this version does not know.
typedef struct newer_foreign {
    hone_store_foreign known;
    const char *later;
} newer_foreign;

static void an_array_of_longer_structs_is_taken_where_what_is_new_is_zero(void **state)
{
    hone_store *store = *state;
    hone_error err;
    newer_foreign two[2] = {{foreign_of("0123456789abcdef"), NULL}, {foreign_of("0123456789abcdee"), NULL}};
    assert_int_equal(hone_store_put_foreign_sized(store, &two[0].known, 2, sizeof *two, &err), HONE_OK);
    assert_int_equal(count_of(store), 2);
    two[0].known.foreign_key = "0123456789abcded";
    two[1].later = "used";
    assert_int_equal(hone_store_put_foreign_sized(store, &two[0].known, 2, sizeof *two, &err), HONE_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "hone_store_foreign has"));
    assert_int_equal(count_of(store), 2);
}

static bool keep_origin(void *ctx, const hone_store_record *record)
{
    *(bool *)ctx = record->foreign->origin != NULL;
    assert_string_equal(record->foreign->text, "{\"rows\":8}");
    return true;
}

static void fields_missing_from_a_shorter_struct_have_defaults(void **state)
{
    hone_store *store = *state;
    hone_error err;
    const hone_store_foreign whole = foreign_of("0123456789abcdef");
    hone_store_foreign foreign;
    memset(&foreign, 0x5a, sizeof foreign); // behind the older struct lies something else
    memcpy(&foreign, &whole, offsetof(hone_store_foreign, origin));
    bool has_origin = true;
    const hone_store_key key = hone_store_foreign_key(&whole);
    if (hone_store_put_foreign_sized(store, &foreign, 1, offsetof(hone_store_foreign, origin), &err) != HONE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(
        hone_store_get(store, HONE_RECORD_FOREIGN, &key, HONE_WARM, keep_origin, &has_origin, NULL), HONE_OK);
    assert_false(has_origin);
}

static void an_invalid_struct_size_is_refused_with_the_struct(void **state)
{
    hone_store *store = *state;
    hone_error err;
    const hone_store_foreign foreign = foreign_of("0123456789abcdef");
    const size_t sizes[] = {0, 3, sizeof foreign + 1, (size_t)1 << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(hone_store_put_foreign_sized(store, &foreign, 1, sizes[i], &err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "sizeof(hone_store_foreign)"));
    }
}

static void a_result_is_as_long_as_the_program_has_it(void **state)
{
    hone_store *store = *state;
    const hone_store_decision decision = {
        .key = {"cpu:test", "rms_norm", "1", "0123456789abcdef", NULL},
        .kernel = "avx2",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "1",
        .evidence = "{}",
        .environment = "{}"};
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
        cmocka_unit_test_setup_teardown(fields_missing_from_a_shorter_struct_have_defaults, open_store, close_store),
        cmocka_unit_test_setup_teardown(an_invalid_struct_size_is_refused_with_the_struct, open_store, close_store),
        cmocka_unit_test_setup_teardown(a_result_is_as_long_as_the_program_has_it, open_store, close_store),
        cmocka_unit_test(a_decision_is_as_long_as_the_program_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
