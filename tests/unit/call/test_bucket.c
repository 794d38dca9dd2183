// Buckets: one answer for a growing length.
#include "call/bound.h"
#include "calls.h"

static void check_bucket(hone_signature *signature, const char *text, bool upper, const char *wanted)
{
    hone_call *call = call_of(signature, text), *bucket = NULL;
    hone_error err = {0};
    if (hone_call_bucket(call, upper, &bucket, &err) != HONE_OK) fail_msg("%s", err.message);
    if (wanted == NULL)
        assert_null(bucket);
    else
        assert_string_equal(hone_call_text(bucket), wanted);
    hone_call_release(&bucket);
    hone_call_release(&call);
}

static void dims_round_up_to_a_power_of_two(void **state)
{
    (void)state;
    hone_signature *signature =
        signature_of("f(k: f32[b, n ~pow2, d], v: f32[b, n, d], w: f32[n + 1]?) -> y: f32[n * 2]");
    check_bucket(signature, "f(f32[3,100,5], f32[3,100,5])", true, "f(f32[3,128,5], f32[3,128,5])");
    check_bucket(signature, "f(f32[3,100,5], f32[3,100,5])", false, "f(f32[3,96,5], f32[3,96,5])");
    check_bucket(
        signature, "f(f32[3,65,5], f32[3,65,5], f32[66]) @cuda:1", true,
        "f(f32[3,128,5], f32[3,128,5], f32[129]) @cuda:1");
    check_bucket(signature, "f(f32[3,128,5], f32[3,128,5])", true, NULL);
    check_bucket(signature, "f(f32[3,128,5], f32[3,128,5])", false, "f(f32[3,96,5], f32[3,96,5])");
    check_bucket(signature, "f(f32[3,2,5], f32[3,2,5])", false, NULL);
    check_bucket(signature, "f(f32[3,0,5], f32[3,0,5])", true, NULL);
    check_bucket(signature, "f(f32[3,3,5], f32[3,3,5])", true, "f(f32[3,4,5], f32[3,4,5])");
    hone_signature_release(&signature);
}

static void a_length_is_rounded_up_as_far_as_64_bits_hold_its_power(void **state)
{
    (void)state;
    static const int64_t known[][2] = {
        {INT64_MIN, INT64_MIN},
        {-5, -5},
        {0, 0},
        {1, 1},
        {2, 2},
        {3, 4},
        {4, 4},
        {5, 8},
        {(INT64_C(1) << 40) - 1, INT64_C(1) << 40},
        {INT64_C(1) << 40, INT64_C(1) << 40},
        {(INT64_C(1) << 40) + 1, INT64_C(1) << 41},
        {(INT64_C(1) << 61) + 1, INT64_C(1) << 62},
        {INT64_C(1) << 62, INT64_C(1) << 62},
        {(INT64_C(1) << 62) + 1, (INT64_C(1) << 62) + 1}, // there is none
        {INT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(hone_round_up_pow2(known[i][0]), known[i][1]);
}

static void every_length_of_a_bucket_has_its_key(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(FLASH);
    char key[17] = "";
    for (int n = 65; n <= 128; n++) {
        char text[200];
        snprintf(text, sizeof text, "flash_attention(f32[1,1,4,8], f32[1,%d,4,8], f32[1,%d,4,8])", n, n);
        hone_call *call = call_of(signature, text), *bucket = NULL;
        assert_int_equal(hone_call_bucket(call, true, &bucket, NULL), HONE_OK);
        assert_int_equal(bucket == NULL, n == 128);
        const char *came = hone_call_key(bucket != NULL ? bucket : call);
        if (key[0] == '\0') strcpy(key, came);
        assert_string_equal(came, key);
        hone_call_release(&bucket);
        hone_call_release(&call);
    }
    hone_signature_release(&signature);
}

static void a_default_that_dims_say_stays_left_out(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(k: f32[n ~pow2], *, s: f64 = 1 / n) -> y: f32[n]");
    check_bucket(signature, "f(f32[3])", true, "f(f32[4])");
    check_bucket(signature, "f(f32[3], s=2)", true, "f(f32[4], s=2.0)");
    hone_signature_release(&signature);
}

static void layout_and_alignment_stay(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(k: f32[n ~pow2, d]) -> y: f32[n]");
    check_bucket(signature, "f(f32[5,4]{strides=8,1;align=4})", true, "f(f32[8,4]{strides=8,1;align=4})");
    hone_signature_release(&signature);
}

static void a_dim_of_what_was_not_given_stays_as_it_is(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(k: f32[n ~pow2], v: f32[m + n], w: f32[m]?) -> y: f32[n]");
    check_bucket(signature, "f(f32[5], f32[9])", true, "f(f32[8], f32[9])");
    check_bucket(signature, "f(f32[5], f32[9], f32[4])", true, "f(f32[8], f32[12], f32[4])");
    hone_signature_release(&signature);
}

static void nothing_bucketed_means_no_bucket(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(MATMUL);
    assert_false(hone_signature_has_buckets(signature));
    check_bucket(signature, "matmul(f32[3,5], f32[5,7])", true, NULL);
    hone_signature_release(&signature);
}

static void a_bucket_that_breaks_a_condition_is_refused(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(k: f32[n ~pow2]) -> y: f32[n] where n < 100");
    hone_call *call = call_of(signature, "f(f32[70])"), *bucket = NULL;
    hone_error err = {0};
    assert_int_equal(hone_call_bucket(call, true, &bucket, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "the bucket of f(f32[70]): f: n < 100 does not hold");
    hone_call_release(&call);
    hone_signature_release(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_round_up_to_a_power_of_two),
        cmocka_unit_test(a_length_is_rounded_up_as_far_as_64_bits_hold_its_power),
        cmocka_unit_test(every_length_of_a_bucket_has_its_key),
        cmocka_unit_test(a_default_that_dims_say_stays_left_out),
        cmocka_unit_test(layout_and_alignment_stay),
        cmocka_unit_test(a_dim_of_what_was_not_given_stays_as_it_is),
        cmocka_unit_test(nothing_bucketed_means_no_bucket),
        cmocka_unit_test(a_bucket_that_breaks_a_condition_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
