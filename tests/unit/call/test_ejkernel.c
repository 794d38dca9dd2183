// ejkernel's text of a call of hone's, against texts and keys that ejkernel recorded.
#include "call/ejkernel.h"

#include "base/hash.h"
#include "calls.h"

#define SDPA                                                                                                           \
    "scaled_dot_product_attention(query: T[b, q, h, d], key: T[b, k, g, d], value: T[b, k, g, d], *, softmax_scale: "  \
    "f64? = none, causal: bool = false, sliding_window: i64? = none) -> out: T[b, q, h, d]"

static void check_key(
    const char *text,
    const char *call_text,
    const char *operation,
    const hone_ejkernel_extra *extras,
    size_t count,
    const char *key)
{
    hone_signature *signature = signature_of(text);
    hone_call *call = call_of(signature, call_text);
    hone_buffer out;
    hone_error err = {0};
    char came[HONE_KEY_SIZE];
    hone_buffer_init(&out, hone_allocator_system());
    if (hone_ejkernel_call_text(operation, call, extras, count, &out, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_hash_key(out.data, out.size, came);
    assert_string_equal(came, key);
    hone_buffer_deinit(&out);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void reconstructed_calls_prove_recorded_keys(void **state)
{
    (void)state;
    const char *shape = "scaled_dot_product_attention(f32[1,32,4,16], f32[1,32,4,16], f32[1,32,4,16]";
    char text[200];
    snprintf(text, sizeof text, "%s, causal=true)", shape);
    check_key(SDPA, text, "scaled_dot_product_attention@v0", NULL, 0, "2133cfa20c40fe20");
    snprintf(text, sizeof text, "%s)", shape);
    check_key(SDPA, text, "scaled_dot_product_attention@v0", NULL, 0, "6030860978d5766b");
    snprintf(text, sizeof text, "%s, softmax_scale=0.3)", shape);
    check_key(SDPA, text, "scaled_dot_product_attention@v0", NULL, 0, "b230b53c2a367816");
    const hone_ejkernel_extra window = {"sliding_window", "[8,0]"};
    snprintf(text, sizeof text, "%s)", shape);
    check_key(SDPA, text, "scaled_dot_product_attention@v0", &window, 1, "5d48c249e3752d21");
    const hone_ejkernel_extra platform = {"platform", "\"xla\""};
    check_key(
        FLASH, "flash_attention(f32[1,32,4,16], f32[1,32,4,16], f32[1,32,4,16])", "flash_attention@v2", &platform, 1,
        "ee831e4e3fea5782");
    check_key(
        FLASH, "flash_attention(bf16[1,128,8,64], bf16[1,128,8,64], bf16[1,128,8,64], causal=true)",
        "flash_attention@v2", NULL, 0, "8cec90fd5124278b");
}

static void an_operation_that_is_not_known_is_not_found(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(RMS_NORM);
    hone_call *call = call_of(signature, "rms_norm(f32[2,4], f32[4])");
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    assert_int_equal(hone_ejkernel_call_text("rms_norm@v0", call, NULL, 0, &out, NULL), HONE_NOT_FOUND);
    hone_buffer_deinit(&out);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void a_parameter_that_ejkernel_lacks_is_unsupported_when_it_says_something(void **state)
{
    (void)state;
    hone_signature *signature = signature_of(
        "mean_pooling(x: f32[b, s, d], *, chunk_size: i64 = 32, mode: str = \"plain\") -> y: f32[b, s, d]");
    hone_call *plain = call_of(signature, "mean_pooling(f32[1,2,3])"),
              *other = call_of(signature, "mean_pooling(f32[1,2,3], mode=fancy)");
    hone_buffer out;
    hone_error err = {0};
    hone_buffer_init(&out, hone_allocator_system());
    assert_int_equal(hone_ejkernel_call_text("mean_pooling@v0", plain, NULL, 0, &out, NULL), HONE_OK);
    assert_int_equal(hone_ejkernel_call_text("mean_pooling@v0", other, NULL, 0, &out, &err), HONE_UNSUPPORTED);
    assert_contains(err.message, "mean_pooling@v0 has no parameter mode");
    hone_buffer_deinit(&out);
    hone_call_release(&plain);
    hone_call_release(&other);
    hone_signature_release(&signature);
}

static hone_status encode(const char *json, hone_buffer *out, hone_error *err)
{
    json_t *argument = json_loads(json, JSON_ALLOW_NUL, NULL);
    assert_non_null(argument);
    hone_buffer_clear(out);
    hone_status status = hone_ejkernel_encode(argument, out, err);
    json_decref(argument);
    return status;
}

static void what_ejkernel_refuses_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{\"kind\":\"dict\",\"items\":[[{\"kind\":\"str\",\"value\":\"a\"},{\"kind\":\"none\"}],[{\"kind\":\"int\","
         "\"value\":\"1\"},{\"kind\":\"none\"}]]}",
         "do not compare"},
        {"{\"kind\":\"dict\",\"items\":[[{\"kind\":\"tuple\",\"items\":[]},{\"kind\":\"none\"}]]}",
         "no str, int, float"},
        {"{\"kind\":\"int\",\"value\":\"0x10\"}", "decimal"},
        {"{\"kind\":\"int\",\"value\":\"007\"}", "decimal"},
        {"{\"kind\":\"float\",\"value\":\"one\"}", "decimal"},
        {"{\"kind\":\"wish\"}", "unknown kind of argument 'wish'"},
        {"{}", "'kind'"},
        {"{\"kind\":\"list\"}", "items"},
    };
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_error err = {0};
        assert_int_not_equal(encode(wrong[i][0], &out, &err), HONE_OK);
        assert_contains(err.message, wrong[i][1]);
    }
    hone_buffer_deinit(&out);
}

static void nesting_without_end_is_refused(void **state)
{
    (void)state;
    hone_buffer json, out;
    hone_buffer_init(&json, hone_allocator_system());
    hone_buffer_init(&out, hone_allocator_system());
    for (int i = 0; i < 500; i++)
        hone_buffer_text(&json, "{\"kind\":\"list\",\"items\":[");
    hone_buffer_text(&json, "{\"kind\":\"none\"}");
    for (int i = 0; i < 500; i++)
        hone_buffer_text(&json, "]}");
    hone_error err = {0};
    assert_int_equal(encode(json.data, &out, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "deeper than 200");
    hone_buffer_deinit(&json);
    hone_buffer_deinit(&out);
}

#define INT_PAIR(digits) "[{\"kind\":\"int\",\"value\":\"" digits "\"},{\"kind\":\"none\"}]"

static void each_kind_has_its_text(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"kind\":\"np_bool\",\"value\":true}", "true"},
        {"{\"kind\":\"np_float\",\"dtype\":\"float64\",\"value\":\"1e+16\"}", "1e+16"},
        {"{\"kind\":\"np_float\",\"dtype\":\"bfloat16\",\"value\":\"1.5\"}", "\"1.5\""},
        {"{\"kind\":\"enum\",\"base\":\"str\",\"value\":\"a\",\"repr\":\"x\"}", "\"a\""},
        {"{\"kind\":\"enum\",\"base\":\"int\",\"value\":2,\"repr\":\"x\"}", "2"},
        {"{\"kind\":\"enum\",\"base\":\"plain\",\"value\":null,\"repr\":\"<C.R: 1>\"}", "\"<C.R: 1>\""},
        {"{\"kind\":\"int\",\"value\":\"123456789012345678901234567890\"}", "123456789012345678901234567890"},
        {"{\"kind\":\"dict\",\"items\":[" INT_PAIR("9007199254740993") "," INT_PAIR("9007199254740992") "," INT_PAIR(
             "-9007199254740992") "," INT_PAIR("-9007199254740993") "," INT_PAIR("2") "," INT_PAIR("10") "]}",
         "{\"-9007199254740993\":null,\"-9007199254740992\":null,\"2\":null,\"10\":null,\"9007199254740992\":null,"
         "\"9007199254740993\":null}"},
        {"{\"kind\":\"float\",\"hex\":\"0x1.8p+0\"}", "1.5"},
        {"{\"kind\":\"str\",\"value\":\"\\u0000\\u007f\"}", "\"\\u0000\\u007f\""},
    };
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(encode(pairs[i][0], &out, NULL), HONE_OK);
        assert_string_equal(hone_buffer_string(&out), pairs[i][1]);
    }
    hone_buffer_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reconstructed_calls_prove_recorded_keys),
        cmocka_unit_test(an_operation_that_is_not_known_is_not_found),
        cmocka_unit_test(a_parameter_that_ejkernel_lacks_is_unsupported_when_it_says_something),
        cmocka_unit_test(what_ejkernel_refuses_is_refused),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(each_kind_has_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
