// The canonical JSON of a call and its key, written and read, also as ejkernel writes it.
#include "calls.h"

#include <math.h>

static hone_status from_spec(hone_signature *signature, const char *spec, hone_call **out, hone_error *err)
{
    return hone_call_from_spec(hone_allocator_system(), signature, spec, strlen(spec), out, err);
}

static void the_key_is_that_of_the_documented_text(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(RMS_NORM);
    hone_call *call = call_of(signature, "rms_norm(f32[1024,4096], f32[4096])");
    assert_string_equal(
        hone_call_spec(call), "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"eps\":1e-06,\"weight\":{"
                              "\"dtype\":\"float32\",\"shape\":[4096]},"
                              "\"x\":{\"dtype\":\"float32\",\"shape\":[1024,4096]}},\"method\":null}");
    assert_string_equal(hone_call_key(call), "180f3da29f455ea8");
    hone_call_release(&call);
    hone_signature_release(&signature);
}

// A signature that gets parameters keeps the keys of calls that do not use them.
static void a_parameter_that_came_later_is_in_the_key_where_it_is_given(void **state)
{
    (void)state;
    hone_signature *before = signature_of("f(x: f32[n], *, t: bool = false) -> y: f32[n]");
    hone_signature *after = signature_of(
        "f(x: f32[n], *, t: bool = false, bias: f32[n]? = none #given, act: str? = none #given, k: i64 = 3 #given) -> "
        "y: f32[n]");
    hone_call *old = call_of(before, "f(f32[4])"), *same = call_of(after, "f(f32[4], k=3, act=none)");
    assert_string_equal(hone_call_key(old), hone_call_key(same));
    assert_string_equal(hone_call_spec(old), hone_call_spec(same));
    static const char *const others[] = {"f(f32[4], k=4)", "f(f32[4], act=a)", "f(f32[4], bias=f32[4])"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hone_call *other = call_of(after, others[i]), *read = NULL;
        assert_string_not_equal(hone_call_key(old), hone_call_key(other));
        const char *spec = hone_call_spec(other);
        assert_int_equal(hone_call_from_spec(hone_allocator_system(), after, spec, strlen(spec), &read, NULL), HONE_OK);
        assert_string_equal(hone_call_key(read), hone_call_key(other));
        hone_call_release(&read);
        hone_call_release(&other);
    }
    hone_call_release(&old);
    hone_call_release(&same);
    hone_signature_release(&before);
    hone_signature_release(&after);
}

static void keys_tell_calls_apart_and_spellings_not(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(
        "f(x: f32[n], *, seed: i64 = 0 #ignore, len: i64 = 1 #bucket, s: f64 = 1.0, m: str = a) -> y: f32[n]");
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"f(f32[4], seed=1)", "f(f32[4], seed=2)", true},
        {"f(f32[4], len=5)", "f(f32[4], len=8)", true},
        {"f(f32[4], len=9)", "f(f32[4], len=8)", false},
        {"f(f32[4], len=-5)", "f(f32[4], len=-8)", false},
        {"f(f32[4], s=1)", "f(f32[4])", true},
        {"f(f32[4], s=0.0)", "f(f32[4], s=-0.0)", false},
        {"f(f32[4], m=b)", "f(f32[4], m=c)", false},
        {"f(f32[4]{align=4})", "f(f32[4])", false},
        {"f(f32[4]{strides=2})", "f(f32[4])", false},
        {"f(f32[4]) @cuda:1", "f(f32[4])", true},
        {"f(f32[4]{align=32})", "f(f32[4]{align=16})", true},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hone_call *a = call_of(signature, pairs[i].a), *b = call_of(signature, pairs[i].b);
        assert_int_equal(strcmp(hone_call_key(a), hone_call_key(b)) == 0, pairs[i].same);
        assert_int_equal(strcmp(hone_call_spec(a), hone_call_spec(b)) == 0, pairs[i].same);
        hone_call_release(&a);
        hone_call_release(&b);
    }
    hone_signature_release(&signature);
}

static void a_default_that_dims_say_has_one_key_however_it_is_given(void **state)
{
    (void)state;
    hone_signature *signature =
        signature_of("f(x: f32[n, d], w: f32[k]?, *, s: f64 = 1/sqrt(d), t: f64? = n, u: i64 = 2*k) -> y: f32[n]");
    static const struct {
        const char *text, *printed, *scalars;
    } calls[] = {
        {"f(f32[4,32], f32[3])", "f(f32[4,32], f32[3])", "\"s\":null,\"t\":4.0,\"u\":null"},
        {"f(f32[4,32], f32[3], s=0.1767766952966369, u=6)", "f(f32[4,32], f32[3], s=0.1767766952966369)",
         "\"s\":0.1767766952966369,\"t\":4.0,\"u\":null"}, // 32**-0.5, and not 1 / sqrt(32)
        {"f(f32[4,32], f32[3], s=0.17677669529663687, t=4)", "f(f32[4,32], f32[3])", "\"s\":null,\"t\":4.0,\"u\":null"},
        {"f(f32[4,64], u=1, s=0.125)", "f(f32[4,64], u=1)", "\"s\":null,\"t\":4.0,\"u\":1"},
        {"f(f32[4,64], u=1, s=1, t=none)", "f(f32[4,64], s=1.0, t=none, u=1)", "\"s\":1.0,\"t\":null,\"u\":1"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        hone_call *call = call_of(signature, calls[i].text), *again = NULL;
        assert_string_equal(hone_call_text(call), calls[i].printed);
        assert_contains(hone_call_spec(call), calls[i].scalars);
        hone_error err = {0};
        if (from_spec(signature, hone_call_spec(call), &again, &err) != HONE_OK) fail_msg("%s", err.message);
        assert_string_equal(hone_call_key(again), hone_call_key(call));
        assert_memory_equal(hone_call_values(again) + 3, hone_call_values(call) + 3, 3 * sizeof(hone_value));
        hone_call_release(&again);
        hone_call_release(&call);
    }
    hone_call *call = call_of(signature, "f(f32[4,32], f32[3])");
    assert_true(
        hone_call_values(call)[3].as.f64 >= 1 / sqrt(32.0) && hone_call_values(call)[3].as.f64 <= 1 / sqrt(32.0));
    assert_int_equal(hone_call_values(call)[5].as.i64, 6);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void a_default_that_nothing_says_is_asked_for(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"f(f32[4])", "u is missing, and nothing given says what its default 2 * k is"},
        {"f(f32[0], u=1)", "f: s is missing, and its default: '1 / n': division by zero"},
        {"f(f32[3], u=1, s=2)", "v is 1.5 (a float), expected i64"},
    };
    hone_signature *signature =
        signature_of("f(x: f32[n], w: f32[k]?, *, s: i64 = 1 / n, u: i64 = 2 * k, v: i64 = n * 0.5) -> y: f32[n]");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        hone_call *call = NULL;
        hone_error err = {0};
        assert_int_equal(
            hone_call_parse(hone_allocator_system(), signature, refused[i][0], &call, &err), HONE_INVALID_ARGUMENT);
        assert_contains(err.message, refused[i][1]);
    }
    hone_call *call = call_of(signature, "f(f32[0], u=1, s=2, v=0)");
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void a_written_spec_reads_back_to_the_same_key(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(
        "f(x: f32[n, m], b: f32[n]?, *, e: f64 = 0.5, k: i64 = 1, t: bool = true, s: str = \"\") -> y: f32[n]");
    static const char *const calls[] = {
        "f(f32[4,5])",
        "f(bf16[4,5])",
        "f(f32[4,5]{strides=1,4;align=2}, f32[4])",
        "f(f32[4,5], e=inf)",
        "f(f32[4,5], e=-inf, s=\"-Infinity NaN \\\" NaN\")",
        "f(f32[4,5], e=nan, k=-9223372036854775808)",
        "f(f32[4,5], t=false, s=\"\\u00e4\\ud83d\\ude00\\u0007\")",
        "f(f32[0,5])",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (i == 1) continue; // refused by the signature
        hone_call *call = call_of(signature, calls[i]), *again = NULL;
        hone_error err = {0};
        if (from_spec(signature, hone_call_spec(call), &again, &err) != HONE_OK) fail_msg("%s", err.message);
        assert_string_equal(hone_call_spec(again), hone_call_spec(call));
        assert_string_equal(hone_call_key(again), hone_call_key(call));
        assert_string_equal(hone_call_text(again), hone_call_text(call));
        hone_call_release(&call);
        hone_call_release(&again);
    }
    hone_signature_release(&signature);
}

#define SHAPED "{\"dtype\":\"float32\",\"shape\":[1,32,4,16]}"

static void ejkernels_extra_parameters_may_say_their_defaults(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(FLASH);
    hone_call *call = NULL;
    hone_error err = {0};
    const char *spec =
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"attention_mask\":null,\"bias\":null,\"causal\":true,"
        "\"dropout_prob\":0.0,"
        "\"key\":" SHAPED ",\"logits_dtype\":{\"__callable_obj__\":\"jax._src.numpy.scalar_types._ScalarMeta\"},"
        "\"normalize_output\":true,\"platform\":\"xla\",\"precision\":\"Precision.DEFAULT\",\"query\":" SHAPED
        ",\"sliding_window\":null,"
        "\"softmax_scale\":1,\"value\":" SHAPED "},\"method\":null}";
    if (from_spec(signature, spec, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_string_equal(
        hone_call_text(call),
        "flash_attention(f32[1,32,4,16], f32[1,32,4,16], f32[1,32,4,16], causal=true, softmax_scale=1.0)");
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void what_hone_cannot_hold_is_unsupported_with_its_value(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"sliding_window\":[8,0]", "parameter sliding_window is [8,0], which hone's signature cannot hold"},
        {"\"dropout_prob\":0.1", "parameter dropout_prob is 0.1, and hone's signature has no such parameter"},
        {"\"precision\":\"Precision.HIGHEST\"", "parameter precision is \"Precision.HIGHEST\""},
        {"\"normalize_output\":false", "parameter normalize_output is false"},
        {"\"act_fn\":{\"__callable_obj__\":\"jaxlib._jax.PjitFunction\"}", "parameter act_fn"},
        {"\"bias\":" SHAPED, "parameter bias is {"},
        {"\"out\":" SHAPED, "parameter out"},
        {"\"causal\":1", "parameter causal is 1"},
        {"\"softmax_scale\":\"big\"", "parameter softmax_scale is \"big\""},
        {"\"value\":{\"dtype\":\"float4_e2m1fn\",\"shape\":[1,32,4,16]}", "whose dtype hone does not have"},
        {"\"value\":{\"dtype\":\"float32\",\"shape\":[1,2,3,4,5,6,7,8,9]}", "at most 8 dims"},
        {"\"value\":{\"dtype\":\"float32\",\"shape\":[1,32,4,16],\"align\":5}", "layout or alignment"},
        {"\"value\":{\"dtype\":\"float32\",\"shape\":[1,32,4,16],\"color\":5}", "layout or alignment"},
        {"\"value\":3", "expected an array"},
        {"\"value\":{\"dtype\":\"float32\"}", "expected an array"},
        {"\"value\":{\"shape\":[1,32,4,16]}", "expected an array"},
    };
    hone_signature *signature = signature_of(FLASH);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char spec[1024];
        hone_call *call = NULL;
        hone_error err = {0};
        snprintf(
            spec, sizeof spec,
            "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"key\":" SHAPED ",\"query\":" SHAPED
            ",\"value\":" SHAPED ",%s},\"method\":null}",
            cases[i][0]);
        assert_int_equal(from_spec(signature, spec, &call, &err), HONE_UNSUPPORTED);
        assert_contains(err.message, cases[i][1]);
        assert_null(call);
    }
    hone_signature_release(&signature);
}

// As ejkernel's own kernels are called: names are the signature's, in its order.
static void positional_arguments_are_named_by_the_signature(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "{\"args_spec\":[" SHAPED "," SHAPED "," SHAPED "],\"kwargs_spec\":{\"causal\":true}}",
        "{\"args_spec\":[" SHAPED "," SHAPED "],\"kwargs_spec\":{\"causal\":true,\"value\":" SHAPED "}}",
        "{\"args_spec\":[" SHAPED "," SHAPED "," SHAPED ",null,null],\"kwargs_spec\":{\"causal\":true}}",
    };
    static const char *const wrong[][2] = {
        {"{\"args_spec\":[" SHAPED "," SHAPED "," SHAPED ",null,2.0],\"kwargs_spec\":{}}", "positional argument 5"},
        {"{\"args_spec\":[" SHAPED "," SHAPED "," SHAPED "],\"kwargs_spec\":{\"key\":" SHAPED "}}",
         "parameter key is {"},
        {"{\"args_spec\":[3],\"kwargs_spec\":{}}", "parameter query is 3, expected an array"},
    };
    hone_signature *signature = signature_of(FLASH);
    hone_error err = {0};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        hone_call *call = NULL;
        if (from_spec(signature, specs[i], &call, &err) != HONE_OK) fail_msg("%s", err.message);
        assert_string_equal(
            hone_call_text(call), "flash_attention(f32[1,32,4,16], f32[1,32,4,16], f32[1,32,4,16], causal=true)");
        hone_call_release(&call);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_call *call = NULL;
        assert_int_equal(from_spec(signature, wrong[i][0], &call, &err), HONE_UNSUPPORTED);
        assert_contains(err.message, wrong[i][1]);
    }
    hone_signature_release(&signature);
}

static void other_transforms_are_unsupported(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "{\"args_spec\":[],\"batch_axes\":{\"x\":0},\"kwargs_spec\":{},\"method\":null}",
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{},\"method\":\"shard_map\"}",
    };
    hone_signature *signature = signature_of(RMS_NORM);
    hone_call *call = NULL;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(from_spec(signature, specs[i], &call, NULL), HONE_UNSUPPORTED);
    hone_signature_release(&signature);
}

static void an_invalid_spec_is_corrupt(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "", "{", "[]", "3", "{}", "{\"kwargs_spec\":[]}", "{\"kwargs_spec\":{\"x\":NaN"};
    hone_signature *signature = signature_of(RMS_NORM);
    hone_call *call = NULL;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_int_equal(from_spec(signature, specs[i], &call, NULL), HONE_CORRUPT);
    hone_signature_release(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_that_of_the_documented_text),
        cmocka_unit_test(a_parameter_that_came_later_is_in_the_key_where_it_is_given),
        cmocka_unit_test(keys_tell_calls_apart_and_spellings_not),
        cmocka_unit_test(a_default_that_dims_say_has_one_key_however_it_is_given),
        cmocka_unit_test(a_default_that_nothing_says_is_asked_for),
        cmocka_unit_test(a_written_spec_reads_back_to_the_same_key),
        cmocka_unit_test(ejkernels_extra_parameters_may_say_their_defaults),
        cmocka_unit_test(what_hone_cannot_hold_is_unsupported_with_its_value),
        cmocka_unit_test(positional_arguments_are_named_by_the_signature),
        cmocka_unit_test(other_transforms_are_unsupported),
        cmocka_unit_test(an_invalid_spec_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
