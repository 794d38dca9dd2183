// Binding values: defaults, dims, types, results, and the words of every refusal.
#include "calls.h"

#include <math.h>

static hone_value values[8];
static hone_tensor tensors[8];
static int64_t shapes[8][4];
static float memory[8][64];

static hone_tensor *tensor(int i, int64_t rows, int64_t columns)
{
    shapes[i][0] = rows;
    shapes[i][1] = columns;
    tensors[i] = hone_tensor_of(memory[i], HONE_F32, 2, shapes[i]);
    values[i] = hone_of_tensor(&tensors[i]);
    return &tensors[i];
}

static hone_status bind(hone_signature *signature, size_t count, hone_call **out, hone_error *err)
{
    return hone_call_bind(hone_allocator_system(), signature, values, count, false, out, err);
}

static void a_call_holds_its_values_in_order_with_defaults(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(MATMUL);
    hone_call *call = NULL;
    tensor(0, 2, 3), tensor(1, 3, 4), tensor(2, 2, 4);
    assert_int_equal(bind(signature, 3, &call, NULL), HONE_OK);
    const hone_value *bound = hone_call_values(call);
    assert_ptr_equal(bound[0].as.tensor->data, memory[0]);
    assert_ptr_not_equal(bound[0].as.tensor, &tensors[0]);
    assert_int_equal(bound[3].tag, HONE_VALUE_BOOL);
    assert_int_equal(bound[3].as.i64, 0);
    assert_false(hone_call_is_inferred(call, 2));
    assert_false(hone_call_is_description(call));
    assert_null(hone_call_tensor(call, 3));
    shapes[0][0] = 99;
    assert_int_equal(hone_call_tensor(call, 0)->shape[0], 2);
    hone_call *other = hone_call_retain(call);
    hone_call_release(&call);
    hone_signature_release(&signature);
    assert_string_equal(hone_call_text(other), "matmul(f32[2,3], f32[3,4])");
    hone_call_release(&other);
}

static void dims_scalars_and_expressions_can_be_asked_for(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(FLASH);
    hone_call *call =
        call_of(signature, "flash_attention(bf16[1,5,32,128], bf16[1,9,8,128], bf16[1,9,8,128], causal=true)");
    static const struct {
        const char *name;
        int64_t value;
    } known[] = {{"heads", 32},       {"kv_len", 9},     {"causal", 1},
                 {"key.shape[1]", 9}, {"query.ndim", 4}, {"heads / kv_heads + 1", 5}};
    int64_t value;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(hone_call_dim(call, known[i].name, &value), HONE_OK);
        assert_int_equal(value, known[i].value);
    }
    static const char *const unknown[] = {"nothing",      "sliding_window", "query",
                                          "key.shape[7]", "nothing.ndim",   "heads + nothing"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(hone_call_dim(call, unknown[i], &value), HONE_NOT_FOUND);
    assert_int_equal(hone_call_dim(call, NULL, &value), HONE_NOT_FOUND);
    assert_int_equal(hone_call_dim(call, "heads +", &value), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_call_dim(call, "heads / 0", &value), HONE_INVALID_ARGUMENT);
    assert_string_equal(hone_call_dtype(call, "T")->name, "bf16");
    assert_null(hone_call_dtype(call, "U"));
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void results_are_inferred_in_a_description_only(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: T[..., n], k: i64) -> (y: T[..., n * 2, k], z: i32[])");
    hone_call *call = call_of(signature, "f(f16[3,4,5], 7)");
    const hone_tensor *y = hone_call_tensor(call, 2);
    assert_int_equal(y->ndim, 4);
    assert_int_equal(y->shape[0], 3);
    assert_int_equal(y->shape[2], 10);
    assert_int_equal(y->shape[3], 7);
    assert_int_equal(y->dtype.bits, 16);
    assert_null(y->data);
    assert_true(hone_call_is_inferred(call, 2) && hone_call_is_inferred(call, 3));
    assert_int_equal(hone_call_tensor(call, 3)->ndim, 0);
    hone_call_release(&call);
    hone_error err = {0};
    tensor(0, 2, 3);
    values[1] = hone_of_int(1);
    assert_int_equal(bind(signature, 2, &call, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "f: the result y is missing");
    hone_signature_release(&signature);
}

static void none_means_the_default_where_none_is_not_allowed(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n], a: i64 = 3, b: i64? = 4, *, c: f64? = none) -> y: f32[n]");
    hone_call *call = call_of(signature, "f(f32[2], none, none)");
    assert_int_equal(hone_call_values(call)[1].as.i64, 3);
    assert_int_equal(hone_call_values(call)[2].tag, HONE_VALUE_NONE);
    assert_string_equal(hone_call_text(call), "f(f32[2], b=none)");
    hone_call_release(&call);
    call = call_of(signature, "f(f32[2])");
    assert_int_equal(hone_call_values(call)[2].as.i64, 4);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void an_integer_fits_a_float_and_nothing_else_is_converted(void **state)
{
    (void)state;
    hone_signature *signature =
        signature_of("f(x: f32[n], *, e: f64 = 0.5, k: i64 = 1, b: bool = false, s: str = \"m\") -> y: f32[n]");
    hone_call *call = call_of(signature, "f(f32[2], e=1)");
    assert_string_equal(hone_call_text(call), "f(f32[2], e=1.0)");
    hone_call_release(&call);
    hone_error err;
    assert_contains(refusal(signature, "f(f32[2], b=1)", &err), "f: b is 1 (an integer), expected bool");
    assert_contains(refusal(signature, "f(f32[2], k=1.0)", &err), "f: k is 1.0 (a float), expected i64");
    assert_contains(refusal(signature, "f(f32[2], k=true)", &err), "f: k is true (a bool), expected i64");
    assert_contains(refusal(signature, "f(f32[2], s=3)", &err), "f: s is 3 (an integer), expected str");
    assert_contains(refusal(signature, "f(f32[2], e=9007199254740993)", &err), "expected f64");
    assert_contains(refusal(signature, "f(f32[2], e=f32[1])", &err), "f: e is a tensor f32[1], expected f64");
    assert_contains(refusal(signature, "f(3)", &err), "f: x is 3 (an integer), expected f32[n]");
    tensor(0, 2, 2);
    values[1] = hone_of_tensor(&tensors[0]);
    values[2] = hone_of_pointer(&err);
    assert_int_equal(bind(signature, 3, &call, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "e is a pointer, expected f64");
    hone_signature_release(&signature);
}

static const char *refusal_of_values(hone_signature *signature, const hone_value *given, size_t count, hone_error *err)
{
    hone_call *call = NULL;
    hone_status status = hone_call_bind(hone_allocator_system(), signature, given, count, true, &call, err);
    assert_int_equal(status, HONE_INVALID_ARGUMENT);
    assert_null(call);
    return err->message;
}

static void null_arguments_are_refused_by_name(void **state)
{
    (void)state;
    hone_error err;
    hone_signature *signature = signature_of("f(s: str, e: f64 = 1.0) -> y: f32[2]");
    const hone_value wrong[] = {hone_of_string(NULL), hone_of_float(1)};
    assert_contains(refusal_of_values(signature, wrong, 2, &err), "f: s is a string that is NULL");
    const hone_value wrong_kind[] = {hone_of_string("a"), hone_of_string(NULL)};
    assert_contains(refusal_of_values(signature, wrong_kind, 2, &err), "f: e is a string that is NULL, expected f64");
    assert_contains(
        refusal_of_values(signature, NULL, 2, &err), "f: 2 values are said to come, and their array is NULL");
    hone_signature_release(&signature);
}

static void a_wrong_dim_names_where_the_right_one_came_from(void **state)
{
    (void)state;
    hone_error err;
    hone_signature *signature = signature_of(MATMUL);
    assert_contains(
        refusal(signature, "matmul(f32[8,512], f32[511,16])", &err), "matmul: b[0] is 511 but k is 512 (from a[1])");
    assert_contains(
        refusal(signature, "matmul(f32[8,512], f32[512])", &err),
        "matmul: b is a tensor f32[512], expected T[n, k] if transpose_b else [k, n]; give a dim that is missing as an "
        "axis of size 1");
    assert_contains(
        refusal(signature, "matmul(f32[8,512], f64[512,4])", &err), "matmul: b is f64 but T is f32 (from a)");
    assert_contains(
        refusal(signature, "matmul(i32[8,512], i32[512,4])", &err), "matmul: a is i32, expected T in f16, bf16, f32");
    assert_contains(refusal(signature, "matmul(f32[8,512])", &err), "matmul: b is missing");
    hone_signature_release(&signature);
    signature =
        signature_of("f(x: f32[..., n], w: f32[k], z: f32[n * 2], *, k: i64 = 3) -> y: f32[..., n] where n > 2");
    assert_string_equal(refusal(signature, "f(f32[3], f32[4], f32[6])", &err), "f: w[0] is 4 but k is 3");
    assert_contains(refusal(signature, "f(f32[3], f32[3], f32[7])", &err), "f: z[0] is 7 but n * 2 is 6");
    assert_contains(refusal(signature, "f(f32[1,2], f32[3], f32[4])", &err), "f: n > 2 does not hold (n is 2)");
    assert_contains(
        refusal(signature, "f(f32[], f32[3], f32[4])", &err), "f: x is a tensor f32[], expected f32[..., n]");
    hone_signature_release(&signature);
    signature = signature_of("g(x: f32[..., n], y: f32[..., n]) -> z: f32[n]");
    assert_contains(
        refusal(signature, "g(f32[2,3,4], f32[2,5,4])", &err),
        "g: y[1] is 5 but x[1] is 3, and '...' is the same everywhere");
    assert_contains(
        refusal(signature, "g(f32[2,3,4], f32[3,4])", &err), "g: y has 1 leading dims but '...' is 2 dims (from x)");
    hone_signature_release(&signature);
}

static void a_dim_that_only_an_absent_tensor_had_cannot_be_inferred(void **state)
{
    (void)state;
    hone_error err;
    hone_signature *signature = signature_of("f(x: f32[n], b: T[m]?) -> y: f32[n, m] where m > 1");
    assert_contains(
        refusal(signature, "f(f32[2])", &err), "f: the shape of y cannot be inferred: nothing given says what m is");
    hone_signature_release(&signature);
    signature = signature_of("f(x: f32[n], b: f32[..., n]?) -> y: f32[..., n]");
    assert_contains(
        refusal(signature, "f(f32[2])", &err), "f: the shape of y cannot be inferred: nothing says what '...' is");
    hone_signature_release(&signature);
    signature = signature_of("f(x: f32[n], b: T[m]?) -> y: T[n]");
    assert_contains(refusal(signature, "f(f32[2])", &err), "f: the dtype of y cannot be inferred");
    hone_signature_release(&signature);
    signature = signature_of("f(x: f32[n], b: f32[m]?) -> y: f32[n] where m > 1 where b.shape[0] > 1");
    hone_call *call = call_of(signature, "f(f32[2])");
    hone_call_release(&call);
    assert_contains(refusal(signature, "f(f32[2], f32[1])", &err), "m > 1 does not hold (m is 1)");
    hone_signature_release(&signature);
}

static void expressions_that_cannot_be_computed_are_refused(void **state)
{
    (void)state;
    hone_error err;
    hone_signature *signature = signature_of("f(x: f32[n], k: i64) -> y: f32[n / k]");
    assert_contains(refusal(signature, "f(f32[2], 0)", &err), "division by zero");
    assert_contains(refusal(signature, "f(f32[2], -1)", &err), "f: the dim n / k is not a whole number, 0 or more");
    hone_signature_release(&signature);
    signature = signature_of("f(x: f32[n], k: i64) -> y: f32[n, k, k]");
    assert_contains(refusal(signature, "f(f32[2], 9000000000000000000)", &err), "larger than memory");
    hone_signature_release(&signature);
}

static void unsound_tensors_are_refused_by_name(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(MATMUL);
    hone_call *call = NULL;
    hone_error err = {0};
    static const char *const words[] = {
        "a has no data",
        "a has 9 dims",
        "a has an unknown dtype",
        "a has no shape",
        "a[0] is -1",
        "a is on device type 77",
        "b is on cuda:0, but the tensors before it are on cpu:0",
        "a is a NULL tensor",
        "a is larger than memory"};
    for (int i = 0; i < 9; i++) {
        tensor(0, 2, 3), tensor(1, 3, 4), tensor(2, 2, 4);
        int64_t strides[] = {INT64_MAX, 1};
        if (i == 0) tensors[0].data = NULL;
        if (i == 1) tensors[0].ndim = 9;
        if (i == 2) tensors[0].dtype.lanes = 2;
        if (i == 3) tensors[0].shape = NULL;
        if (i == 4) shapes[0][0] = -1;
        if (i == 5) tensors[0].device.type = 77;
        if (i == 6) tensors[1].device.type = HONE_DEVICE_CUDA;
        if (i == 7) values[0].as.tensor = NULL;
        if (i == 8) tensors[0].strides = strides;
        assert_int_equal(bind(signature, 3, &call, &err), HONE_INVALID_ARGUMENT);
        assert_contains(err.message, words[i]);
        assert_null(call);
    }
    values[4] = values[3] = hone_of_none();
    assert_int_equal(bind(signature, 5, &call, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "5 values came");
    hone_signature_release(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_holds_its_values_in_order_with_defaults),
        cmocka_unit_test(dims_scalars_and_expressions_can_be_asked_for),
        cmocka_unit_test(results_are_inferred_in_a_description_only),
        cmocka_unit_test(none_means_the_default_where_none_is_not_allowed),
        cmocka_unit_test(an_integer_fits_a_float_and_nothing_else_is_converted),
        cmocka_unit_test(null_arguments_are_refused_by_name),
        cmocka_unit_test(a_wrong_dim_names_where_the_right_one_came_from),
        cmocka_unit_test(a_dim_that_only_an_absent_tensor_had_cannot_be_inferred),
        cmocka_unit_test(expressions_that_cannot_be_computed_are_refused),
        cmocka_unit_test(unsound_tensors_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
