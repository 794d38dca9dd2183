// Call text, read and printed in its one canonical form.
#include "call/call.h"
#include "calls.h"

#define MANY                                                                                                           \
    "f@v2(x: f32[n], a: i64? = none, b: f64 = 0.5, *, s: str = \"m\", k: i64 = 1, t: bool = true, bias: f32[n]? = "    \
    "none) "                                                                                                           \
    "-> y: f32[n]"

static void canonical(hone_signature *signature, const char *text, const char *wanted)
{
    hone_call *call = call_of(signature, text);
    assert_string_equal(hone_call_text(call), wanted);
    hone_call *again = call_of(signature, hone_call_text(call));
    assert_string_equal(hone_call_text(again), wanted);
    assert_string_equal(hone_call_key(again), hone_call_key(call));
    hone_call_release(&again);
    hone_call_release(&call);
}

static void every_way_of_writing_a_call_prints_as_one(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(MANY);
    canonical(signature, "f(f32[4])", "f@v2(f32[4])");
    canonical(signature, "F@v2( x = float32 [ 4 ] )", "f@v2(f32[4])");
    canonical(signature, "f(f32[4], none, 0.50, k=1, s=m, t=true)", "f@v2(f32[4])");
    canonical(signature, "f(f32[4], 7, 2)", "f@v2(f32[4], 7, 2.0)");
    canonical(signature, "f(f32[4], b=1e-7)", "f@v2(f32[4], b=1e-07)");
    canonical(signature, "f(f32[4], t=false, s=\"a \\\"b\\u00e4\")", "f@v2(f32[4], s=\"a \\\"b\\u00e4\", t=false)");
    canonical(signature, "f(f32[4], bias=f32[4])", "f@v2(f32[4], bias=f32[4])");
    canonical(signature, "f(f32[4], -9223372036854775808, -inf)", "f@v2(f32[4], -9223372036854775808, -inf)");
    canonical(signature, "f(f32[4], b=nan)", "f@v2(f32[4], b=nan)");
    canonical(signature, "f(f32[4]) @cpu", "f@v2(f32[4])");
    canonical(signature, "f(f32[4])@cuda", "f@v2(f32[4]) @cuda:0");
    canonical(signature, "f(f32[4]) @ cpu : 1", "f@v2(f32[4]) @cpu:1");
    hone_signature_release(&signature);
}

static void floats_are_distinguished_by_their_bits(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n], a: f64 = 0.0, *, b: f64 = nan) -> y: f32[n]");
    canonical(signature, "f(f32[4], 0, b=nan)", "f(f32[4])");
    canonical(signature, "f(f32[4], -0.0)", "f(f32[4], -0.0)");
    hone_signature_release(&signature);
}

static void numbers_are_read_as_far_as_their_types_hold_them(void **state)
{
    (void)state;
    static const struct {
        const char *given, *printed; // NULL: refused; "": the default, which is not printed
    } cases[] = {
        {"i=9223372036854775807", "i=9223372036854775807"},
        {"i=9223372036854775808", NULL},
        {"i=-9223372036854775807", "i=-9223372036854775807"},
        {"i=-9223372036854775808", "i=-9223372036854775808"},
        {"i=-9223372036854775809", NULL},
        {"i=-92233720368547758080", NULL},
        {"i=- 5", "i=-5"},
        {"i=5.0", NULL},
        {"i=inf", NULL},
        {"i=true", NULL},
        {"i=\"5\"", NULL},
        {"d=-9223372036854775808.0", "d=-9.223372036854776e+18"},
        {"d=9007199254740992", "d=9007199254740992.0"}, // a float holds whole numbers up to 2^53
        {"d=-9007199254740992", "d=-9007199254740992.0"},
        {"d=9007199254740993", NULL},
        {"d=-9007199254740993", NULL},
        {"d=1e308", "d=1e+308"},
        {"d=inf", "d=inf"},
        {"d=-inf", "d=-inf"},
        {"d=nan", "d=nan"},
        {"d=true", NULL},
        {"b=false", ""},
        {"b=true", "b=true"},
        {"b=1", NULL},
        {"s=word", "s=\"word\""},
        {"s=5", NULL},
        {"i=none", ""},
        {"o=none", ""},
        {"o=0", "o=0"},
    };
    hone_signature *signature = signature_of(
        "f(x: f32[n], *, i: i64 = 0, d: f64 = 0.5, b: bool = false, s: str = \"\", o: i64? = none) -> y: f32[n]");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128], wanted[128] = "f(f32[4])";
        snprintf(text, sizeof text, "f(f32[4], %s)", cases[i].given);
        if (cases[i].printed != NULL && cases[i].printed[0] != '\0')
            snprintf(wanted, sizeof wanted, "f(f32[4], %s)", cases[i].printed);
        hone_call *call = NULL;
        hone_error err = {0};
        const hone_status status = hone_call_parse(hone_allocator_system(), signature, text, &call, &err);
        if (status != (cases[i].printed != NULL ? HONE_OK : HONE_INVALID_ARGUMENT))
            fail_msg("%s: %s", text, err.message);
        if (status != HONE_OK) continue;
        assert_string_equal(hone_call_text(call), wanted);
        hone_call_release(&call);
    }
    hone_signature_release(&signature);
}

static void layout_is_written_only_where_it_is_not_ordinary(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n, m]) -> y: f32[n, m]");
    canonical(signature, "f(f32[4,5]{strides=5,1;align=64})", "f(f32[4,5])");
    canonical(signature, "f(f32[4,5]{align=4;strides=1,4})", "f(f32[4,5]{strides=1,4;align=4})");
    canonical(signature, "f(f32[1,5]{strides=77,2})", "f(f32[1,5]{strides=10,2})");
    canonical(signature, "f(f32[4,5]{strides=-5,1})", "f(f32[4,5]{strides=-5,1})");
    hone_call *call = call_of(signature, "f(f32[4,5]{align=8})");
    assert_false(hone_call_is_ordinary(call, 0));
    assert_true(hone_call_is_ordinary(call, 1));
    assert_int_equal(hone_call_align(call, 0), 8);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void an_alignment_is_a_power_of_two_up_to_a_gigabyte(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n]) -> y: f32[n]");
    for (int64_t align = -2; align <= 65; align++) {
        char text[64];
        snprintf(text, sizeof text, "f(f32[4]{align=%lld})", (long long)align);
        const bool is_power =
            align == 1 || align == 2 || align == 4 || align == 8 || align == 16 || align == 32 || align == 64;
        hone_error err = {0};
        if (!is_power) {
            assert_contains(refusal(signature, text, &err), "a power of two");
            continue;
        }
        hone_call *call = call_of(signature, text);
        assert_int_equal(hone_call_align(call, 0), align < 16 ? align : 0);
        hone_call_release(&call);
    }
    hone_error err = {0};
    canonical(signature, "f(f32[4]{align=1073741824})", "f(f32[4])");
    assert_contains(refusal(signature, "f(f32[4]{align=2147483648})", &err), "a power of two");
    hone_signature_release(&signature);
}

static void wrong_text_says_where_and_what_was_expected(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "offset 0: expected the name 'f'"},
        {"g(f32[4])", "expected the name 'f', found 'g'"},
        {"f@v3(f32[4])", "expected the version '@v2' or none"},
        {"f f32[4]", "expected '('"},
        {"f(f32[4]", "',' or ')'"},
        {"f(f32[4,])", "expected an integer"},
        {"f(f31[4])", "expected a dtype"},
        {"f(f32[1,2,3,4,5,6,7,8,9])", "at most 8 dims"},
        {"f(f32[4], y=f32[4])", "results are not written"},
        {"f(f32[4], q=1)", "expected the name of a parameter, found 'q'"},
        {"f(f32[4], x=f32[4])", "this one has its value"},
        {"f(x=f32[4], 3)", "what follows a named value is named"},
        {"f(f32[4], 1, 2.0, 3)", "all positional parameters have their values"},
        {"f(f32[4]{strides=1,2})", "one stride a dim"},
        {"f(f32[4]{align=3})", "a power of two"},
        {"f(f32[4]{color=3})", "'strides=' or 'align='"},
        {"f(f32[4]) @mars:1", "expected a device"},
        {"f(f32[4]) @5", "expected a device"},
        {"f(f32[4]) @", "expected a device"},
        {"f(f32[4]) @cuda:-1", "a device number from 0 on"},
        {"f(f32[4]) and", "the end"},
        {"f(f32[4], s=\"a\\u0000b\")", "has a NUL"},
        {"f(f32[4], k=99999999999999999999)", "64 bits cannot hold"},
        {"f(f32[9999999999,9999999999,9999999999])", "larger than memory"},
    };
    hone_signature *signature = signature_of(MANY);
    hone_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_contains(refusal(signature, wrong[i][0], &err), wrong[i][1]);
    hone_signature_release(&signature);
}

static void names_are_compared_in_unicode_lower_case(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("ÄLG(x: f32[n]) -> y: f32[n]");
    canonical(signature, "älg(f32[2])", "ÄLG(f32[2])");
    hone_signature_release(&signature);
}

static void the_name_in_front_can_be_read_alone(void **state)
{
    (void)state;
    char name[16], version[8];
    hone_error err = {0};
    assert_int_equal(hone_call_text_name("f@v2(x)", name, sizeof name, version, sizeof version, &err), HONE_OK);
    assert_string_equal(name, "f");
    assert_string_equal(version, "2");
    assert_int_equal(hone_call_text_name(" rms_norm", name, sizeof name, version, sizeof version, &err), HONE_OK);
    assert_string_equal(name, "rms_norm");
    assert_string_equal(version, "");
    assert_int_equal(hone_call_text_name("(f)", name, sizeof name, NULL, 0, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_call_text_name("f@x", name, sizeof name, NULL, 0, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(
        hone_call_text_name("a_very_long_name_indeed", name, sizeof name, NULL, 0, &err), HONE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_writing_a_call_prints_as_one),
        cmocka_unit_test(floats_are_distinguished_by_their_bits),
        cmocka_unit_test(numbers_are_read_as_far_as_their_types_hold_them),
        cmocka_unit_test(layout_is_written_only_where_it_is_not_ordinary),
        cmocka_unit_test(an_alignment_is_a_power_of_two_up_to_a_gigabyte),
        cmocka_unit_test(wrong_text_says_where_and_what_was_expected),
        cmocka_unit_test(names_are_compared_in_unicode_lower_case),
        cmocka_unit_test(the_name_in_front_can_be_read_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
