// Made-up arguments of a call, and results checked against the reference's.
#include "fixture.h"

static hone_inputs *make_inputs(fixture *f, const hone_call *call, uint64_t seed)
{
    hone_inputs *inputs = NULL;
    if (hone_inputs_make(f->op, call, seed, &inputs, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return inputs;
}

static void the_same_seed_makes_the_same_data_and_results_are_zero(void **state)
{
    fixture *f = *state;
    hone_call *call = describe_scale(f, 3, 4);
    hone_inputs *made[] = {make_inputs(f, call, 7), make_inputs(f, call, 7), make_inputs(f, call, 8)};
    const hone_value *values[3];
    size_t count = 0;
    for (int i = 0; i < 3; i++)
        values[i] = hone_inputs_values(made[i], &count);
    assert_int_equal(count, 3);
    const size_t bytes = 12 * sizeof(float);
    const void *first = hone_tensor_data(values[0][0].as.tensor);
    assert_memory_equal(first, hone_tensor_data(values[1][0].as.tensor), bytes);
    assert_memory_not_equal(first, hone_tensor_data(values[2][0].as.tensor), bytes);
    for (int64_t i = 0; i < 3; i++)
        assert_true(*scale_at(values[0][1].as.tensor, i, 0) == 0);
    for (int i = 0; i < 3; i++)
        hone_inputs_release(&made[i]);
    hone_inputs_release(&made[0]);
    hone_call_release(&call);
}

static void results_are_right_when_they_are_the_references_and_else_the_first_wrong_one_is_named(void **state)
{
    fixture *f = *state;
    hone_call *call = describe_scale(f, 3, 4);
    hone_inputs *inputs = make_inputs(f, call, 1);
    hone_verified verified;
    size_t count = 0;
    const hone_value *values = hone_inputs_values(inputs, &count);
    assert_int_equal(hone_run(f->op, values, count, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_inputs_verify(inputs, &verified, &f->err), HONE_OK);
    assert_true(verified.has_reference);
    assert_true(verified.is_right);
    assert_string_equal(verified.wrong, "");
    *scale_at(values[1].as.tensor, 1, 2) += 100;
    assert_int_equal(hone_inputs_verify(inputs, &verified, &f->err), HONE_OK);
    assert_false(verified.is_right);
    assert_true(verified.max_error > 1);
    assert_non_null(strstr(verified.wrong, "[1, 2]"));
    hone_inputs_release(&inputs);
    hone_call_release(&call);
}

// y[i] is x[i] less x[0]: rows are not independent, columns are.
static hone_status less_the_first_row(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++)
            *scale_at(y, i, j) = *scale_at(x, i, j) - *scale_at(x, 0, j);
    return HONE_OK;
}

static void whether_parts_touch_each_other_is_asked_of_the_reference(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *signature, *independent, *call;
        hone_status status;
        const char *says;
    } rows[] = {
        {"by_rows(x: f32[m, n]) -> y: f32[m, n]", "m", "by_rows(f32[4,3])", HONE_KERNEL_FAILED,
         "independent = 'm' is not true of by_rows"},
        {"by_columns(x: f32[m, n]) -> y: f32[m, n]", "n", "by_columns(f32[4,3])", HONE_OK, NULL},
        {"of_one(x: f32[m, n]) -> y: f32[m, n]", "m", "of_one(f32[1,3])", HONE_UNSUPPORTED, "has no parts"},
        {"of_none(x: f32[m, n]) -> y: f32[m, n]", NULL, "of_none(f32[4,3])", HONE_UNSUPPORTED, "has no parts"},
        {"too_large(x: f32[m, n]) -> y: f32[m, n]", "m", "too_large(f32[4096,4096])", HONE_UNSUPPORTED, "at most"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const hone_algorithm algorithm = {
            HONE_ALGORITHM, .signature = rows[i].signature, .independent = rows[i].independent,
            .reference = less_the_first_row};
        const hone_op *op = NULL;
        hone_call *call = NULL;
        assert_int_equal(hone_register(f->rt, &algorithm, NULL, 0, &op, &f->err), HONE_OK);
        assert_int_equal(
            hone_call_parse(hone_allocator_system(), hone_op_signature(op), rows[i].call, &call, &f->err), HONE_OK);
        assert_int_equal(hone_inputs_check_parts(op, call, 1, &f->err), rows[i].status);
        if (rows[i].says != NULL) assert_non_null(strstr(f->err.message, rows[i].says));
        hone_call_release(&call);
    }
}

static void a_call_of_a_device_that_is_not_here_has_no_inputs(void **state)
{
    fixture *f = *state;
    hone_call *call = NULL;
    hone_inputs *inputs = NULL;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(f->op), "scale(f32[2,2]) @cuda:7", &call, &f->err),
        HONE_OK);
    assert_int_equal(hone_inputs_make(f->op, call, 1, &inputs, &f->err), HONE_UNAVAILABLE);
    assert_null(inputs);
    hone_call_release(&call);
}

static const char *const sum_signature = "sum_of(a: T[n]) -> s: T[] where T in f32";

static void a_call_of_another_operation_is_refused_by_all_that_take_both(void **state)
{
    fixture *f = *state;
    hone_signature *other = NULL;
    hone_call *call = NULL;
    hone_inputs *inputs = NULL;
    hone_result *result = NULL;
    hone_decision decision;
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    assert_int_equal(hone_signature_parse(hone_allocator_system(), sum_signature, &other, &f->err), HONE_OK);
    assert_int_equal(hone_call_parse(hone_allocator_system(), other, "sum_of(f32[5])", &call, &f->err), HONE_OK);
    assert_int_equal(hone_inputs_make(f->op, call, 1, &inputs, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "sum_of(f32[5]) is of another operation, expected a call of scale("));
    assert_int_equal(hone_decide_call(f->op, call, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_tune(f->op, call, NULL, &result, &f->err), HONE_INVALID_ARGUMENT);
    assert_null(result);
    assert_int_equal(hone_registry_kernels(f->rt, "scale@v1", &kernels, &count, &f->err), HONE_OK);
    assert_true(count > 0);
    assert_int_equal(hone_kernel_check(kernels[0], call, NULL, &f->err), HONE_INVALID_ARGUMENT);
    hone_kernels_release(&kernels);
    hone_call_release(&call);
    hone_signature_release(&other);
}

static void nothing_is_released_of_nothing(void **state)
{
    hone_inputs *inputs = *state;
    hone_inputs_release(NULL);
    hone_turn_end(NULL);
    hone_result_release(NULL);
    assert_int_equal(hone_inputs_make(NULL, NULL, 1, &inputs, NULL), HONE_INVALID_ARGUMENT);
    assert_null(inputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_same_seed_makes_the_same_data_and_results_are_zero, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            results_are_right_when_they_are_the_references_and_else_the_first_wrong_one_is_named, setup_runtime,
            teardown_runtime),
        cmocka_unit_test_setup_teardown(
            whether_parts_touch_each_other_is_asked_of_the_reference, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_call_of_a_device_that_is_not_here_has_no_inputs, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_call_of_another_operation_is_refused_by_all_that_take_both, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(nothing_is_released_of_nothing, setup_runtime, teardown_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
