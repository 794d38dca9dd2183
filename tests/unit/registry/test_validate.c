#include "fixture.h"

#include <stdio.h>

typedef struct report {
    size_t lines;
    char text[4096];
} report;

static bool on_line(void *ctx, const char *line)
{
    report *all = ctx;
    all->lines++;
    size_t used = strlen(all->text);
    snprintf(all->text + used, sizeof all->text - used, "%s\n", line);
    return true;
}

static bool validate(fixture *f, const char *algorithm, bool verbose, report *out)
{
    bool same = false;
    *out = (report){0};
    assert_int_equal(hone_registry_validate(f->registry, algorithm, verbose, on_line, out, &same, &f->err), HONE_OK);
    return same;
}

static void add_with(fixture *f, const char *name, const char *signature)
{
    hone_kernel kernel = a_kernel("op", name, HONE_NATIVE, HONE_CPU, 0);
    kernel.signature = signature;
    assert_int_equal(add_kernel(f, kernel), HONE_OK);
}

static int open_with_op(void **state)
{
    if (open_cpu_registry(state) != 0) return -1;
    return add_algorithm(*state, "op(x: T[m, n], *, scale: f64 = 1.0) -> y: T[m, n] where T in f32, f16") == HONE_OK
               ? 0
               : -1;
}

static void kernels_without_a_signature_of_their_own_agree(void **state)
{
    fixture *f = *state;
    report lines;
    add_with(f, "a", NULL);
    add_with(f, "b", NULL);
    assert_true(validate(f, "OP", false, &lines));
    assert_int_equal(lines.lines, 0);
}

static void names_of_dims_and_tuning_parameters_make_no_difference(void **state)
{
    fixture *f = *state;
    report lines;
    add_with(f, "a", NULL);
    add_with(f, "b", "op(x: D[rows, cols], *, scale: f64 = 1.0, block_m: i64 = 32) -> y: D[rows, cols] where D in f32");
    assert_true(validate(f, "op", false, &lines));
}

static void every_pair_is_compared_and_each_mismatch_reported(void **state)
{
    fixture *f = *state;
    report lines;
    add_with(f, "a", NULL);
    add_with(f, "b", "op(x: T[m, n], *, scale: f64 = 2.0) -> y: T[m, n]");
    add_with(f, "c", "op(x: T[m, n], *, scale: f64 = 2.0) -> y: T[n, m]");
    assert_false(validate(f, "op", false, &lines));
    assert_int_equal(lines.lines, 4); // a-b: default; a-c: default and type; b-c: type
    assert_non_null(
        strstr(lines.text, "'scale': default: 1.0 against 2.0, in kernel 'a' (native/cpu) against kernel 'b'"));
    assert_non_null(strstr(lines.text, "parameter 'y': type"));
    assert_non_null(strstr(lines.text, "kernel 'b' (native/cpu) against kernel 'c' (native/cpu)"));
}

static void another_number_of_parameters_is_reported_once_per_pair(void **state)
{
    fixture *f = *state;
    report lines;
    add_with(f, "a", NULL);
    add_with(f, "b", "op(x: T[m, n]) -> y: T[m, n]");
    add_with(f, "c", "op(x: D[m, n]) -> y: D[m, n]"); // agrees with b, which makes nothing good again
    assert_false(validate(f, "op", false, &lines));
    assert_int_equal(lines.lines, 2);
    assert_non_null(strstr(lines.text, "scale"));
}

static void without_a_name_all_algorithms_are_asked_and_one_answer_is_given(void **state)
{
    fixture *f = *state;
    report lines;
    add_with(f, "a", NULL);
    must_add(f, "x", HONE_NATIVE, HONE_CPU, 0);
    assert_true(validate(f, NULL, false, &lines));
    add_with(f, "b", "op(x: T[m, n]) -> y: T[m, n]");
    assert_false(validate(f, NULL, false, &lines));
    assert_true(validate(f, "fa", false, &lines));
}

static void verbose_tells_of_every_kernel_also_for_all(void **state)
{
    fixture *f = *state;
    report lines;
    add_with(f, "a", NULL);
    must_add(f, "x", HONE_XLA, HONE_ANY, 0);
    assert_true(validate(f, NULL, true, &lines));
    assert_int_equal(lines.lines, 2);
    assert_non_null(strstr(lines.text, "fa: kernel 'x' (xla/any): fa(x: f32[n]) -> y: f32[n]"));
}

static void an_unknown_algorithm_is_not_found(void **state)
{
    fixture *f = *state;
    bool same = true;
    assert_int_equal(hone_registry_validate(f->registry, "nope", false, NULL, NULL, &same, &f->err), HONE_NOT_FOUND);
    assert_says(f, "did you mean op? There are: op");
    assert_int_equal(
        hone_registry_validate(f->registry, NULL, false, NULL, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "out_ok is NULL");
    assert_true(same);
}

static void validation_works_without_a_callback(void **state)
{
    fixture *f = *state;
    bool same = true;
    add_with(f, "a", NULL);
    add_with(f, "b", "op(x: T[m, n]) -> y: T[m, n]");
    assert_int_equal(hone_registry_validate(f->registry, NULL, true, NULL, NULL, &same, &f->err), HONE_OK);
    assert_false(same);
}

#define validate_test(f) cmocka_unit_test_setup_teardown(f, open_with_op, close_registry)

int main(void)
{
    const struct CMUnitTest tests[] = {
        validate_test(kernels_without_a_signature_of_their_own_agree),
        validate_test(names_of_dims_and_tuning_parameters_make_no_difference),
        validate_test(every_pair_is_compared_and_each_mismatch_reported),
        validate_test(another_number_of_parameters_is_reported_once_per_pair),
        validate_test(without_a_name_all_algorithms_are_asked_and_one_answer_is_given),
        validate_test(verbose_tells_of_every_kernel_also_for_all),
        validate_test(an_unknown_algorithm_is_not_found),
        validate_test(validation_works_without_a_callback),
    };
    return cmocka_run_group_tests_name("registry_validate", tests, NULL, NULL);
}
