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

static void scalars_of_role_any_stand_at_their_default_or_at_1(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(
        "f(k: f32[n ~pow2], *, s: f64 = 1 / n #any, e: f64 = 0.5 #any, c: f64? = none #any, o: f64? = 2 #any, r: i64 "
        "#any, v: f64 = 3) -> y: f32[n]");
    check_bucket(signature, "f(f32[4], r=1)", true, NULL);
    check_bucket(signature, "f(f32[4], r=5)", true, "f(f32[4], r=1)");
    check_bucket(signature, "f(f32[3], r=5, s=7, e=7, c=7, o=7, v=7)", true, "f(f32[4], c=1.0, r=1, v=7.0)");
    check_bucket(signature, "f(f32[4], r=1, o=none, c=1)", true, NULL);
    check_bucket(signature, "f(f32[4], r=1, o=none, c=nan)", true, "f(f32[4], c=1.0, o=none, r=1)");
    check_bucket(signature, "f(f32[4], r=1, e=-0.5)", true, "f(f32[4], r=1)");
    hone_signature_release(&signature);
}

static void check_stand_ins(hone_signature *signature, const char *text, const char *const *wanted)
{
    hone_call *call = call_of(signature, text);
    hone_stand_ins stand_ins;
    hone_error err = {0};
    if (hone_call_stand_ins(call, &stand_ins, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_ptr_equal(stand_ins.calls[0], call);
    size_t count = 0;
    for (; wanted[count] != NULL; count++) {
        assert_true(count < stand_ins.count);
        assert_string_equal(hone_call_text(stand_ins.calls[count]), wanted[count]);
        assert_ptr_equal(
            hone_stand_ins_find(&stand_ins, hone_call_key(stand_ins.calls[count])), stand_ins.calls[count]);
    }
    assert_int_equal(stand_ins.count, count);
    assert_null(hone_stand_ins_find(&stand_ins, "0123456789abcdef"));
    hone_stand_ins_deinit(&stand_ins);
    hone_call_release(&call);
}

static void an_answer_is_asked_for_under_the_keys_that_it_may_have(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(
        "f(k: f32[n ~pow2, d], *, s: f64 = 1 / sqrt(d) #any, e: f64? = none #any) -> y: f32[n] where s < 100");
    check_stand_ins(signature, "f(f32[4,4])", (const char *const[]){"f(f32[4,4])", "f(f32[4,4], s=0.5)", NULL});
    check_stand_ins(
        signature, "f(f32[3,4])",
        (const char *const[]){"f(f32[3,4])", "f(f32[3,4], s=0.5)", "f(f32[4,4])", "f(f32[4,4], s=0.5)", NULL});
    check_stand_ins(
        signature, "f(f32[4,4], s=7)",
        (const char *const[]){"f(f32[4,4], s=7.0)", "f(f32[4,4])", "f(f32[4,4], s=0.3092)", NULL});
    check_stand_ins(
        signature, "f(f32[3,4], e=7)",
        (const char *const[]){
            "f(f32[3,4], e=7.0)", "f(f32[3,4], s=0.5, e=7.0)", "f(f32[4,4], e=7.0)", "f(f32[4,4], s=0.5, e=7.0)",
            "f(f32[4,4], e=1.0)", "f(f32[4,4], s=0.3092, e=0.6184)", NULL});
    hone_signature_release(&signature);
    signature = signature_of("f(x: f32[n], *, s: f64 = 2) -> y: f32[n]");
    check_stand_ins(signature, "f(f32[4], s=7)", (const char *const[]){"f(f32[4], s=7.0)", NULL});
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
        cmocka_unit_test(scalars_of_role_any_stand_at_their_default_or_at_1),
        cmocka_unit_test(an_answer_is_asked_for_under_the_keys_that_it_may_have),
        cmocka_unit_test(layout_and_alignment_stay),
        cmocka_unit_test(a_dim_of_what_was_not_given_stays_as_it_is),
        cmocka_unit_test(nothing_bucketed_means_no_bucket),
        cmocka_unit_test(a_bucket_that_breaks_a_condition_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
