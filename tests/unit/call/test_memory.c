// Where results may lie: apart from everything, or, for inout, exactly on one parameter.
#include "calls.h"

static float memory[256];

typedef struct place {
    size_t offset; // in floats
    int64_t strides[2];
} place;

// Binds f(x, w) -> y with three [4, 4] views; the words of the refusal or "".
static const char *bind_at(const char *text, place x, place w, place y, hone_error *err)
{
    hone_signature *signature = signature_of(text);
    place places[] = {x, w, y};
    int64_t shape[] = {4, 4};
    hone_tensor tensors[3];
    hone_value values[3];
    for (int i = 0; i < 3; i++) {
        tensors[i] = hone_tensor_of(memory + places[i].offset, HONE_F32, 2, shape);
        if (places[i].strides[0] != 0 || places[i].strides[1] != 0) tensors[i].strides = places[i].strides;
        values[i] = hone_of_tensor(&tensors[i]);
    }
    hone_call *call = NULL;
    *err = (hone_error){0};
    if (hone_call_bind(hone_allocator_system(), signature, values, 3, false, &call, err) == HONE_OK)
        hone_call_release(&call);
    hone_signature_release(&signature);
    return err->message;
}

#define OUT   "f(x: f32[n, m], w: f32[n, m]) -> y: f32[n, m]"
#define INOUT "f(x: f32[n, m], w: f32[n, m]) -> inout y: f32[n, m]"

static void results_apart_from_all_are_fine(void **state)
{
    (void)state;
    hone_error err;
    assert_string_equal(bind_at(OUT, (place){0}, (place){0}, (place){16, {0}}, &err), "");
    // interleaved columns of one [4, 8] matrix
    assert_string_equal(bind_at(OUT, (place){0, {8, 1}}, (place){64, {0}}, (place){4, {8, 1}}, &err), "");
}

static void a_result_on_a_parameter_is_refused(void **state)
{
    (void)state;
    hone_error err;
    assert_contains(
        bind_at(OUT, (place){0}, (place){32, {0}}, (place){0}, &err),
        "f: the result y overlaps x: results must be apart");
    assert_contains(bind_at(OUT, (place){0}, (place){32, {0}}, (place){15, {0}}, &err), "overlaps x");
}

static void inout_may_be_exactly_one_parameter(void **state)
{
    (void)state;
    hone_error err;
    assert_string_equal(bind_at(INOUT, (place){0}, (place){32, {0}}, (place){0}, &err), "");
    assert_string_equal(bind_at(INOUT, (place){0}, (place){32, {0}}, (place){32, {4, 1}}, &err), "");
    assert_contains(
        bind_at(INOUT, (place){0}, (place){32, {0}}, (place){1, {0}}, &err), "overlaps x: it may be exactly");
    assert_contains(bind_at(INOUT, (place){0}, (place){32, {0}}, (place){0, {1, 4}}, &err), "overlaps x");
    assert_contains(bind_at(INOUT, (place){0}, (place){0}, (place){0}, &err), "overlaps w");
}

static void a_result_that_overlaps_itself_is_refused(void **state)
{
    (void)state;
    hone_error err;
    assert_contains(
        bind_at(OUT, (place){0}, (place){32, {0}}, (place){64, {0, 1}}, &err),
        "strides that put two of its elements in one place");
}

static void two_results_must_be_apart(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n]) -> (inout y: f32[n], inout z: f32[n])");
    int64_t shape[] = {8};
    hone_tensor tensors[3];
    hone_value values[3];
    for (int i = 0; i < 3; i++) {
        tensors[i] = hone_tensor_of(memory + (i == 0 ? 0 : 32), HONE_F32, 1, shape);
        values[i] = hone_of_tensor(&tensors[i]);
    }
    hone_call *call = NULL;
    hone_error err = {0};
    assert_int_equal(
        hone_call_bind(hone_allocator_system(), signature, values, 3, false, &call, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "f: the result z overlaps y");
    hone_signature_release(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_apart_from_all_are_fine),
        cmocka_unit_test(a_result_on_a_parameter_is_refused),
        cmocka_unit_test(inout_may_be_exactly_one_parameter),
        cmocka_unit_test(a_result_that_overlaps_itself_is_refused),
        cmocka_unit_test(two_results_must_be_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
