// libhone_ffi.so under the real libtvm_ffi.so: its functions as a host calls them, without tvm-ffi's headers.
#include "hone/hone.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// cmocka wants the four above.
#include <cmocka.h>

enum { TENSOR = 70, ARRAY = 71, FUNCTION = 68, SMALL_TEXT = 11, TEXT = 65, ROWS = 4, DIM = 64 };

typedef int function(void *self, const hone_value *arguments, int32_t count, hone_value *result);
extern function __tvm_ffi_hone_run, __tvm_ffi_hone_bind, __tvm_ffi_hone_decide, __tvm_ffi_hone_explain,
    __tvm_ffi_hone_tune;

static void *library;
static float x[ROWS * DIM], weight[DIM], y[ROWS * DIM];
static int64_t matrix[] = {ROWS, DIM}, row[] = {DIM};
static hone_tensor tensors[3];

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

static void drop(const hone_value *value)
{
    int (*release)(void *);
    void *address = symbol("TVMFFIObjectDecRef");
    memcpy(&release, &address, sizeof address);
    if (value->tag >= 64) assert_int_equal(release(value->as.pointer), 0);
}

// As a host passes a short text.
static hone_value small(const char *text)
{
    hone_value value = hone_of_int(0);
    value.tag = SMALL_TEXT;
    value.zero = (uint32_t)strlen(text);
    assert_true(strlen(text) < 8);
    memcpy(&value.as, text, strlen(text));
    return value;
}

typedef struct text {
    const char *data;
    size_t size;
} text;

// What stands behind an object's header.
static const void *content(const hone_value *value)
{
    return (const char *)value->as.pointer + 24;
}

static void assert_says(const hone_value *value, const char *words)
{
    assert_int_equal(value->tag, TEXT);
    assert_non_null(strstr(((const text *)content(value))->data, words));
}

// The kind and the message of the error that was raised.
static void assert_raised(const char *kind, const char *words)
{
    void (*take)(void **);
    void *address = symbol("TVMFFIErrorMoveFromRaised"), *error = NULL;
    memcpy(&take, &address, sizeof address);
    take(&error);
    assert_non_null(error);
    const text *parts = (const text *)(const void *)((const char *)error + 24);
    assert_memory_equal(parts[0].data, kind, strlen(kind));
    assert_non_null(strstr(parts[1].data, words));
    hone_value value = hone_of_pointer(error);
    value.tag = TENSOR;
    drop(&value);
}

static void fill(void)
{
    for (int i = 0; i < ROWS * DIM; i++) {
        x[i] = (float)(i % 7) - 3;
        y[i] = 0;
    }
    for (int i = 0; i < DIM; i++)
        weight[i] = 2;
    tensors[0] = hone_tensor_of(x, HONE_F32, 2, matrix);
    tensors[1] = hone_tensor_of(weight, HONE_F32, 1, row);
    tensors[2] = hone_tensor_of(y, HONE_F32, 2, matrix);
}

static void assert_right(const float *given)
{
    for (int r = 0; r < ROWS; r++) {
        double squares = 0;
        for (int i = 0; i < DIM; i++)
            squares += (double)x[r * DIM + i] * (double)x[r * DIM + i];
        const double factor = 2 / __builtin_sqrt(squares / DIM + 1e-6);
        for (int i = 0; i < DIM; i++)
            assert_true(__builtin_fabs((double)given[r * DIM + i] - (double)x[r * DIM + i] * factor) < 1e-5);
    }
}

static void a_result_that_is_given_is_written_and_nothing_is_returned(void **state)
{
    (void)state;
    fill();
    const hone_value given[] = {
        hone_of_string("rms_norm"), hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1]),
        hone_of_tensor(&tensors[2]), hone_of_float(1e-6)};
    hone_value result = hone_of_int(7);
    assert_int_equal(__tvm_ffi_hone_run(NULL, given, 4, &result), 0);
    assert_int_equal(result.tag, HONE_VALUE_NONE);
    assert_right(y);
    fill();
    assert_int_equal(__tvm_ffi_hone_run(NULL, given, 5, &result), 0);
    assert_right(y);
}

static void a_result_that_is_left_out_is_made_and_returned(void **state)
{
    (void)state;
    fill();
    const hone_value given[] = {
        hone_of_string("rms_norm"), hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1]), hone_of_none(),
        hone_of_float(1e-6)};
    for (int32_t count = 3; count <= 5; count++) {
        hone_value result = hone_of_none();
        assert_int_equal(__tvm_ffi_hone_run(NULL, given, count, &result), 0);
        assert_int_equal(result.tag, TENSOR);
        assert_right(((const hone_tensor *)content(&result))->data);
        drop(&result);
    }
}

static void several_results_are_an_array(void **state)
{
    (void)state;
    static float data[3][64];
    static int64_t shape[] = {1, 4, 2, 8};
    hone_tensor three[3];
    hone_value given[4] = {hone_of_string("attention")}, result = hone_of_none();
    for (int i = 0; i < 3; i++) {
        three[i] = hone_tensor_of(data[i], HONE_F32, 4, shape);
        given[i + 1] = hone_of_tensor(&three[i]);
    }
    assert_int_equal(__tvm_ffi_hone_run(NULL, given, 4, &result), 0);
    assert_int_equal(result.tag, ARRAY);
    drop(&result);
}

static void a_plan_is_a_function_that_refuses_other_values(void **state)
{
    (void)state;
    int (*call)(void *, const hone_value *, int32_t, hone_value *);
    void *address = symbol("TVMFFIFunctionCall");
    memcpy(&call, &address, sizeof address);
    fill();
    hone_value given[] = {
        hone_of_string("rms_norm"), hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1]),
        hone_of_tensor(&tensors[2])};
    hone_value plan = hone_of_none(), result = hone_of_none();
    assert_int_equal(__tvm_ffi_hone_bind(NULL, given, 4, &plan), 0);
    assert_int_equal(plan.tag, FUNCTION);
    assert_int_equal(call(plan.as.pointer, given + 1, 3, &result), 0);
    assert_right(y);
    assert_int_not_equal(call(plan.as.pointer, given + 1, 2, &result), 0);
    assert_raised("TypeError", "was bound with 3 values, and 2 came");
    tensors[0].shape = (int64_t[]){DIM, ROWS};
    assert_int_not_equal(call(plan.as.pointer, given + 1, 3, &result), 0);
    assert_raised("ValueError", "x is not as it was");
    fill();
    tensors[2].data = NULL;
    assert_int_not_equal(call(plan.as.pointer, given + 1, 3, &result), 0);
    assert_raised("ValueError", "y is not as it was");
    drop(&plan);
}

static void calls_are_described_by_values_and_by_text(void **state)
{
    (void)state;
    fill();
    const hone_value whole = hone_of_string("rms_norm(f32[4,64], f32[64])");
    const hone_value given[] = {hone_of_string("rms_norm"), hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1])};
    hone_value result = hone_of_none();
    assert_int_equal(__tvm_ffi_hone_decide(NULL, given, 3, &result), 0);
    assert_says(&result, "\"call\": \"rms_norm(f32[4,64], f32[64])\", \"kernel\": \"");
    drop(&result);
    assert_int_equal(__tvm_ffi_hone_decide(NULL, &whole, 1, &result), 0);
    assert_says(&result, "\"verified\": false");
    drop(&result);
    assert_int_equal(__tvm_ffi_hone_explain(NULL, &whole, 1, &result), 0);
    assert_says(&result, "heuristic");
    drop(&result);
}

static void a_call_is_tuned_within_its_seconds(void **state)
{
    (void)state;
    const hone_value given[] = {hone_of_float(0.5), hone_of_string("rms_norm(f32[4,64], f32[64])")};
    hone_value result = hone_of_none();
    assert_int_equal(__tvm_ffi_hone_tune(NULL, given, 2, &result), 0);
    assert_says(&result, "\"evidence\"");
    drop(&result);
}

static void errors_are_raised_with_their_kind(void **state)
{
    (void)state;
    fill();
    hone_value list = hone_of_pointer(&list), result = hone_of_none();
    list.tag = ARRAY;
    hone_value given[] = {hone_of_string("rms_norm"), hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[0]), list};
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given, 0, &result), 0);
    assert_raised("TypeError", "takes the name of an algorithm");
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given + 1, 1, &result), 0);
    assert_raised("TypeError", "takes the name of an algorithm");
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given, 3, &result), 0);
    assert_raised("ValueError", "weight is a tensor f32[4,64]");
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given, 4, &result), 0);
    assert_raised("TypeError", "y of rms_norm is an array (tvm-ffi's type 71)");
    given[3] = hone_of_tensor(NULL);
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given, 4, &result), 0);
    assert_raised("TypeError", "y of rms_norm is a pointer to no tensor");
    given[0] = small("rms\0or");
    given[0].zero = 6;
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given, 3, &result), 0);
    assert_raised("TypeError", "takes the name of an algorithm");
    given[0] = small("nothing");
    assert_int_not_equal(__tvm_ffi_hone_run(NULL, given, 1, &result), 0);
    assert_raised("KeyError", "no algorithm named 'nothing'");
    const hone_value cut = hone_of_string("rms_norm(f32[4");
    assert_int_not_equal(__tvm_ffi_hone_decide(NULL, &cut, 1, &result), 0);
    assert_raised("ValueError", "offset 14");
    assert_int_not_equal(__tvm_ffi_hone_tune(NULL, &cut, 1, &result), 0);
    assert_raised("TypeError", "hone_tune takes the seconds");
    const hone_value never[] = {hone_of_float(-1), hone_of_string("rms_norm(f32[4,64], f32[64])")};
    assert_int_not_equal(__tvm_ffi_hone_tune(NULL, never, 2, &result), 0);
    assert_raised("ValueError", "-1 seconds");
}

int main(int argc, char **argv)
{
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        print_message("skipped: %s is not here: scripts/setup python\n", argc > 1 ? argv[1] : "libtvm_ffi.so");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_that_is_given_is_written_and_nothing_is_returned),
        cmocka_unit_test(a_result_that_is_left_out_is_made_and_returned),
        cmocka_unit_test(several_results_are_an_array),
        cmocka_unit_test(a_plan_is_a_function_that_refuses_other_values),
        cmocka_unit_test(calls_are_described_by_values_and_by_text),
        cmocka_unit_test(a_call_is_tuned_within_its_seconds),
        cmocka_unit_test(errors_are_raised_with_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
