// When two signatures of one algorithm agree.
#include "calls.h"

typedef struct lines {
    char text[2048];
    int count;
} lines;

static void keep(void *ctx, const char *line)
{
    lines *kept = ctx;
    kept->count++;
    strncat(kept->text, line, sizeof kept->text - strlen(kept->text) - 2);
    strcat(kept->text, "\n");
}

static bool agree(const char *a, const char *b, lines *kept)
{
    hone_signature *x = signature_of(a), *y = signature_of(b);
    bool failed = true;
    *kept = (lines){{0}, 0};
    const bool same = hone_signature_compare(x, y, keep, kept, &failed);
    assert_false(failed);
    assert_int_equal(same, kept->count == 0);
    hone_signature_release(&x);
    hone_signature_release(&y);
    return same;
}

static void names_of_dims_and_types_are_the_authors_own(void **state)
{
    (void)state;
    lines kept;
    assert_true(agree(MATMUL, MATMUL, &kept));
    assert_true(agree(
        MATMUL,
        "matmul(a: X[rows, inner], b: X[cols,inner] if transpose_b else [inner,cols], *, transpose_b: bool=false)"
        "-> c: X[rows, cols] where X in f32",
        &kept));
    assert_false(agree("f(x: f32[m, n], w: f32[n]) -> y: f32[m]", "f(x: f32[n, m], w: f32[n]) -> y: f32[n]", &kept));
    assert_contains(kept.text, "parameter 'w': type: f32[d2] against f32[d1]");
    assert_false(agree("f(x: f32[n], w: f32[n + 1]) -> y: f32[n]", "f(x: f32[k], w: f32[k + 2]) -> y: f32[k]", &kept));
}

static void tuning_parameters_are_left_out(void **state)
{
    (void)state;
    lines kept;
    assert_true(agree(
        "f(x: f32[n], *, block_m: i64 = 64) -> y: f32[n]",
        "f(x: f32[n], *, num_warps: i64 = 4, num_stages: i64 = 2) -> y: f32[n]", &kept));
}

static void a_parameter_that_came_later_may_be_missing(void **state)
{
    (void)state;
    lines kept;
    static const char without[] = "f(x: f32[n]) -> y: f32[n]";
    assert_true(agree("f(x: f32[n], *, b: f32[n]? = none #given) -> y: f32[n]", without, &kept));
    assert_true(agree(without, "f(x: f32[n], *, b: f32[n]? = none #given) -> y: f32[n]", &kept));
    assert_false(agree(without, "f(x: f32[n], *, b: f32[n]? = none) -> y: f32[n]", &kept));
    assert_false(agree(
        "f(x: f32[n], *, b: f32[n]? = none #given) -> y: f32[n]",
        "f(x: f32[n], *, b: f16[n]? = none #given) -> y: f32[n]", &kept));
}

// What takes no batch takes the calls that have none. What else differs is told.
static void a_side_without_leading_dims_is_compared_without_them(void **state)
{
    (void)state;
    lines kept;
    static const char batched[] =
        "f(a: T[..., m, k], b: T[..., n, k] if t else [..., k, n], v: T[n], *, t: bool = false) -> "
        "c: T[..., m, n]";
    static const char plain[] = "f(a: T[m, k], b: T[n, k] if t else [k, n], v: T[n], *, t: bool = false) -> c: T[m, n]";
    assert_true(agree(batched, plain, &kept));
    assert_true(agree(plain, batched, &kept));
    assert_false(
        agree(batched, "f(a: T[m, k], b: T[n, k] if t else [k, n], v: T[m], *, t: bool = false) -> c: T[m, n]", &kept));
    assert_contains(kept.text, "parameter 'v': type");
    assert_false(
        agree("f(x: f32[..., n], y: f32[n]) -> z: f32[n]", "f(x: f32[n], y: f32[..., n]) -> z: f32[n]", &kept));
}

static void each_difference_is_reported(void **state)
{
    (void)state;
    lines kept;
    assert_false(agree("f(x: f32[n], e: f64 = 1.0) -> y: f32[n]", "f(x: f16[n], *, e: f64 = 2.0) -> z: f32[n]", &kept));
    assert_int_equal(kept.count, 4);
    assert_contains(kept.text, "Signature mismatch for algorithm 'f' parameter 'x': type: f32[n] against f16[n]");
}

static void a_missing_parameter_is_named(void **state)
{
    (void)state;
    lines kept;
    assert_false(agree("f(x: f32[n], e: f64 = 1.0) -> y: f32[n]", "f(x: f32[n]) -> y: f32[n]", &kept));
    assert_int_equal(kept.count, 1);
    assert_contains(kept.text, "3 against 2; only the first has e");
}

static void defaults_differ_by_value_not_by_spelling(void **state)
{
    (void)state;
    lines kept;
    assert_true(
        agree("f(x: f32[n], e: f64 = 1e-6) -> y: f32[n]", "f(x: f32[n], e: f64 = 0.000001) -> y: f32[n]", &kept));
    assert_false(agree("f(x: f32[n], e: f64 = 1e-6) -> y: f32[n]", "f(x: f32[n], e: f64) -> y: f32[n]", &kept));
    assert_contains(kept.text, "default: 1e-06 against no default");
    assert_true(agree("f(x: f32[n]?) -> y: f32[2]", "f(x: f32[n]? = none) -> y: f32[2]", &kept));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_dims_and_types_are_the_authors_own),
        cmocka_unit_test(tuning_parameters_are_left_out),
        cmocka_unit_test(a_parameter_that_came_later_may_be_missing),
        cmocka_unit_test(a_side_without_leading_dims_is_compared_without_them),
        cmocka_unit_test(each_difference_is_reported),
        cmocka_unit_test(a_missing_parameter_is_named),
        cmocka_unit_test(defaults_differ_by_value_not_by_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
