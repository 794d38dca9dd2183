// hone/args.h: one line of arguments is the call that its long form is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hone/hone.h>

#include <string.h>

// y = by * x + rows of the bias, where there is one; twice as much with `twice`.
static hone_status scale(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    HONE_UNPACK(args, const float *, x, const hone_tensor *, bias, float *, y, double, by, int64_t, plus, bool, twice);
    for (int64_t i = 0; i < args[0].as.tensor->shape[0] * args[0].as.tensor->shape[1]; i++) {
        float more = bias != NULL ? ((const float *)hone_tensor_data(bias))[i % bias->shape[0]] : 0;
        y[i] = (float)(by * (double)x[i] + (double)plus) + more;
        if (twice) y[i] *= 2;
    }
    return HONE_OK;
}

typedef struct fixture {
    hone_runtime *rt;
    const hone_op *op;
    hone_error err;
    float x[2][3], bias[3], y[2][3];
} fixture;

static int open_it(void **state)
{
    static fixture f;
    memset(&f, 0, sizeof f);
    for (int i = 0; i < 6; i++)
        f.x[i / 3][i % 3] = (float)i;
    const hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    const hone_algorithm algorithm = {
        HONE_ALGORITHM,
        .signature =
            "scale(x: f32[m, n], bias: f32[n]?, *, by: f64 = 1.0, plus: i64 = 0, twice: bool = false) -> y: f32[m, n]",
        .reference = scale};
    const hone_kernel kernels[] = {{HONE_KERNEL, .name = "plain", HONE_ON_CPU, .run = scale}};
    if (hone_runtime_open(&options, &f.rt, &f.err) != HONE_OK) fail_msg("%s", f.err.message);
    if (hone_register(f.rt, &algorithm, kernels, 1, &f.op, &f.err) != HONE_OK) fail_msg("%s", f.err.message);
    *state = &f;
    return 0;
}

static int close_it(void **state)
{
    fixture *f = *state;
    hone_runtime_close(&f->rt);
    return 0;
}

static void a_tensor_of_an_array_says_dtype_and_dims(void **state)
{
    (void)state;
    uint8_t bytes[4][5] = {{0}};
    const double doubles[7] = {0};
    const hone_tensor *a = HONE_TENSOR(bytes[0], 4, 5), *b = HONE_TENSOR(doubles, 7);
    assert_int_equal(hone_dtype_find(a->dtype)->id, HONE_U8);
    assert_int_equal(a->ndim, 2);
    assert_int_equal(a->shape[0] * 10 + a->shape[1], 45);
    assert_ptr_equal(a->data, bytes);
    assert_int_equal(hone_dtype_find(b->dtype)->id, HONE_F64);
    assert_int_equal(hone_tensor_elements(b), 7);
    assert_null(b->strides);
}

static void values_are_what_their_types_say(void **state)
{
    (void)state;
    hone_tensor tensor = {0};
    const hone_value values[] = {
        HONE_EACH(HONE_VALUE, &tensor, 3, 4u, 5L, 6.5f, 7.5, (bool)1, "eight", hone_of_none())};
    const int32_t tags[] = {HONE_VALUE_TENSOR, HONE_VALUE_INT,  HONE_VALUE_INT,    HONE_VALUE_INT, HONE_VALUE_FLOAT,
                            HONE_VALUE_FLOAT,  HONE_VALUE_BOOL, HONE_VALUE_STRING, HONE_VALUE_NONE};
    assert_int_equal(HONE_COUNT(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), 16);
    assert_int_equal(sizeof values / sizeof *values, sizeof tags / sizeof *tags);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        assert_int_equal(values[i].tag, tags[i]);
    assert_true(values[4].as.f64 == 6.5);
}

static void a_call_in_one_line_gives_its_kernel_each_argument(void **state)
{
    fixture *f = *state;
    f->bias[2] = 100;
    hone_tensor *x = HONE_TENSOR(f->x[0], 2, 3), *bias = HONE_TENSOR(f->bias, 3), *y = HONE_TENSOR(f->y[0], 2, 3);
    assert_int_equal(HONE_CALL(f->op, &f->err, x, bias, y, 2.0, 1, hone_of_bool(true)), HONE_OK);
    assert_true(f->y[1][2] == 222);
    assert_int_equal(HONE_CALL(f->op, &f->err, x, hone_of_none(), y, 3), HONE_OK);
    assert_true(f->y[1][2] == 15);
    assert_int_equal(HONE_CALL(f->op, &f->err, x, bias, y, "two"), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "by is \"two\""));
}

static void a_call_is_tuned_and_bound_in_one_line_each(void **state)
{
    fixture *f = *state;
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .seconds = 0.2};
    hone_tensor *x = HONE_TENSOR(f->x[0], 2, 3), *y = HONE_TENSOR(f->y[0], 2, 3);
    hone_result *result = NULL;
    const hone_plan *plan = NULL;
    if (HONE_TUNE(f->op, &options, &result, &f->err, x, hone_of_none(), y) != HONE_OK) fail_msg("%s", f->err.message);
    assert_string_equal(hone_result_decision(result, 0)->kernel, "plain");
    assert_int_equal(HONE_BIND(f->op, &plan, &f->err, x, hone_of_none(), y, 4.0), HONE_OK);
    assert_int_equal(HONE_CALL_PLAN(plan, x, hone_of_none(), y, 4.0), HONE_OK);
    assert_true(f->y[1][2] == 20);
    hone_plan_release(&plan);
    hone_result_release(&result);
}

static void what_is_registered_twice_in_one_line_is_refused_with_words(void **state)
{
    fixture *f = *state;
    const hone_op *op = NULL;
    const hone_algorithm same = {HONE_ALGORITHM, .signature = "other(x: f32[n]) -> y: f32[n]", .reference = scale};
    const hone_algorithm broken = {HONE_ALGORITHM, .signature = "other(", .reference = scale};
    const hone_kernel twice[] = {
        {HONE_KERNEL, .name = "one", HONE_ON_CPU, .run = scale},
        {HONE_KERNEL, .name = "one", HONE_ON_CPU, .run = scale}};
    assert_int_equal(hone_register(f->rt, &broken, twice, 1, &op, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_register(f->rt, &same, twice, 2, &op, &f->err), HONE_INVALID_ARGUMENT);
    assert_null(op);
    assert_non_null(strstr(f->err.message, "one"));
}

static void double_row(void *args, int64_t i)
{
    HONE_UNPACK(args, const hone_tensor *, x, float *, y);
    const float *row = (const float *)hone_tensor_data(x) + i * x->shape[1];
    for (int64_t j = 0; j < x->shape[1]; j++)
        y[i * x->shape[1] + j] += 2 * row[j];
}

HONE_ROWS(double_rows, double_row)

static void a_kernel_of_rows_visits_each_row_once_with_any_number_of_threads(void **state)
{
    fixture *f = *state;
    const hone_op *op = NULL;
    hone_context *context = NULL;
    const hone_kernel kernels[] = {
        {HONE_KERNEL, .name = "one", HONE_ON_CPU, .run = double_rows},
        {HONE_KERNEL, .name = "many", HONE_ON_CPU, .run = double_rows, .space = "threads: 1..8"}};
    const hone_status status =
        HONE_REGISTER(f->rt, "rows(x: f32[m, n]) -> y: f32[m, n]", double_rows, kernels, &op, &f->err);
    if (status != HONE_OK) fail_msg("%s", f->err.message);
    static float x[64][3], y[64][3];
    for (int i = 0; i < 64 * 3; i++)
        x[i / 3][i % 3] = (float)i;
    const hone_override overrides[] = {
        {.algorithm = "rows", .kernel = "one"}, {.algorithm = "rows", .kernel = "many", .config = "threads=8"}};
    for (int which = 0; which < 2; which++) {
        memset(y, 0, sizeof y);
        assert_int_equal(
            hone_context_derive(f->rt, NULL, NULL, &overrides[which], HONE_POLICY_DEFAULT, &context, &f->err), HONE_OK);
        hone_context *before = hone_context_enter(context);
        assert_int_equal(HONE_CALL(op, &f->err, HONE_TENSOR(x[0], 64, 3), HONE_TENSOR(y[0], 64, 3)), HONE_OK);
        (void)hone_context_enter(before);
        hone_context_release(&context);
        for (int i = 0; i < 64 * 3; i++)
            assert_true(y[i / 3][i % 3] == 2 * x[i / 3][i % 3]);
    }
}

static void tuning_needs_no_result_and_options_no_variable(void **state)
{
    fixture *f = *state;
    hone_tensor *x = HONE_TENSOR(f->x[0], 2, 3), *y = HONE_TENSOR(f->y[0], 2, 3);
    const hone_status status = HONE_TUNE(
        f->op, HONE_OPTIONS(hone_tune_options, .isolation = HONE_ISOLATION_IN_PROCESS, .seconds = 0.2), NULL, &f->err,
        x, hone_of_none(), y, 2.0, 1, (bool)0);
    if (status != HONE_OK) fail_msg("%s", f->err.message);
    assert_int_equal(
        HONE_TUNE(f->op, HONE_OPTIONS(hone_tune_options, .seconds = -1), NULL, &f->err, x, hone_of_none(), y, 2.0),
        HONE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_of_an_array_says_dtype_and_dims),
        cmocka_unit_test(values_are_what_their_types_say),
        cmocka_unit_test_setup_teardown(a_call_in_one_line_gives_its_kernel_each_argument, open_it, close_it),
        cmocka_unit_test_setup_teardown(a_call_is_tuned_and_bound_in_one_line_each, open_it, close_it),
        cmocka_unit_test_setup_teardown(
            a_kernel_of_rows_visits_each_row_once_with_any_number_of_threads, open_it, close_it),
        cmocka_unit_test_setup_teardown(tuning_needs_no_result_and_options_no_variable, open_it, close_it),
        cmocka_unit_test_setup_teardown(what_is_registered_twice_in_one_line_is_refused_with_words, open_it, close_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
