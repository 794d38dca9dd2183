// Foreign operations: every row that is built in against the algorithms that it names, and what rows make of arguments.
#include "call/foreign.h"

#include "base/error.h"
#include "hone/describe.h"
#include "kernels/kernels.h"
#include "platforms/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int open_registry(void **state)
{
    hone_registry *registry = NULL;
    hone_error err;
    hone_allocator system = hone_allocator_system();
    if (hone_registry_create(&system, hone_platform_facts_of, NULL, &registry, &err) != HONE_OK ||
        hone_kernels_register(registry, &err) != HONE_OK || hone_registry_load(registry, &err) != HONE_OK)
        return -1;
    *state = registry;
    return 0;
}

static int close_registry(void **state)
{
    hone_registry *registry = *state;
    hone_registry_destroy(&registry);
    return 0;
}

static const hone_foreign *foreign_of(hone_registry *registry)
{
    const hone_foreign *foreign = NULL;
    hone_error err;
    if (hone_registry_foreign(registry, &foreign, &err) != HONE_OK) fail_msg("%s", err.message);
    return foreign;
}

static hone_signature *signature_of(hone_registry *registry, const char *algorithm)
{
    const hone_algorithm_entry *entry = hone_registry_find(registry, algorithm, NULL);
    if (entry == NULL) fail_msg("there is no algorithm %s", algorithm);
    return entry->signature;
}

static void every_row_names_algorithms_and_their_parameters(void **state)
{
    const hone_foreign *foreign = foreign_of(*state);
    assert_null(foreign->older);
    for (size_t i = 0; i < foreign->count; i++) {
        const hone_foreign_row *row = &foreign->rows[i];
        for (size_t k = 0; k < hone_foreign_take_count(row); k++) {
            const hone_signature *signature = signature_of(*state, hone_foreign_algorithm(row, k));
            const char *theirs;
            json_t *ours, *arguments = json_object_get(json_array_get(row->takes, k), "arguments");
            json_object_foreach(arguments, theirs, ours)
            {
                if (hone_signature_find(signature, json_string_value(ours)) < 0)
                    fail_msg("%s: %s: %s", row->operation, theirs, json_string_value(ours));
            }
        }
    }
}

// What a library's signature has is an argument, so that a hash can be rebuilt; what its rows list is no part of it twice.
static void windows_of_a_row_are_parameters_of_its_signature(void **state)
{
    const hone_foreign *foreign = foreign_of(*state);
    for (size_t i = 0; i < foreign->count; i++) {
        const hone_foreign_row *row = &foreign->rows[i];
        for (size_t k = 0; k < json_array_size(row->windows); k++)
            if (hone_signature_find(row->signature, json_string_value(json_array_get(row->windows, k))) < 0)
                fail_msg("%s", row->operation);
    }
}

// Arguments of an operation, and the call that they make, or why they make none.
typedef struct taken {
    const char *library, *operation, *arguments, *call;
    int64_t times;
} taken;

static void check_taken(hone_registry *registry, const taken *t)
{
    const hone_foreign_row *row = hone_foreign_find(foreign_of(registry), t->library, hone_view_of(t->operation));
    const hone_allocator system = hone_allocator_system();
    json_t *arguments = NULL;
    hone_error err = {0};
    hone_call *call = NULL;
    int64_t times = 0;
    if (row == NULL) fail_msg("there is no row for %s", t->operation);
    assert_int_equal(hone_json_parse(t->arguments, strlen(t->arguments), &arguments, &err), HONE_OK);
    for (size_t i = 0; i < hone_foreign_take_count(row) && call == NULL; i++)
        (void)!hone_foreign_call(
            &system, row, i, signature_of(registry, hone_foreign_algorithm(row, i)), arguments, &call, &times, &err);
    assert_string_equal(call != NULL ? hone_call_text(call) : err.message, t->call);
    if (call != NULL) assert_int_equal(times, t->times);
    hone_call_release(&call);
    json_decref(arguments);
}

#define QKV "\"q\":\"bf16[4,8,2,16]\",\"k\":\"bf16[4,8,2,16]\",\"v\":\"bf16[4,8,2,16]\""
#define MAPPED                                                                                                         \
    "\"q\":\"f32[4,8,2,16]{vmap_axes=[[0,5]]}\",\"k\":\"f32[4,8,2,16]{vmap_axes=[[0,5]]}\","                           \
    "\"v\":\"f32[4,8,2,16]{vmap_axes=[[0,5]]}\""
#define FLASH "flash_attention(bf16[4,8,2,16], bf16[4,8,2,16], bf16[4,8,2,16]"
#define EJ                                                                                                             \
    "\"query\":{\"dtype\":\"float32\",\"shape\":[4,8,2,16]},\"key\":{\"dtype\":\"float32\",\"shape\":[4,8,2,16]},"     \
    "\"value\":{\"dtype\":\"float32\",\"shape\":[4,8,2,16]}"
#define FLASH32 "flash_attention(f32[4,8,2,16], f32[4,8,2,16], f32[4,8,2,16]"
#define DOT32   "dot_product_attention(f32[4,8,2,16], f32[4,8,2,16], f32[4,8,2,16]"

static void arguments_of_other_libraries_are_calls_of_hones(void **state)
{
    static const taken cases[] = {
        // dtypes by any of their names, and lists of what means nothing
        {"tokamax", "DotProductAttention",
         "{" QKV ",\"logits_dtype\":\"float32\",\"precision\":[\"DEFAULT\",\"DEFAULT\"]}", FLASH ")", 1},
        {"tokamax", "DotProductAttention", "{" QKV ",\"logits_dtype\":\"f32\",\"precision\":\"BF16_BF16_F32\"}",
         FLASH ")", 1},
        {"tokamax", "DotProductAttention", "{" QKV ",\"logits_dtype\":\"float64\"}",
         "logits_dtype is \"float64\", which hone's dot_product_attention cannot hold", 0},
        {"tokamax", "DotProductAttention", "{" QKV ",\"dropout_rate\":0.5}",
         "dropout_rate is 0.5, which hone's dot_product_attention cannot hold", 0},
        // parts of a value
        {"tokamax", "DotProductAttention", "{" QKV ",\"mask\":{\"is_causal\":true,\"bool_mask\":null}}",
         FLASH ", causal=true)", 1},
        {"tokamax", "DotProductAttention",
         "{" QKV ",\"bias\":\"bf16[1,2,8,8]\",\"mask\":{\"bool_mask\":\"bool[4,1,1,8]\"}}",
         "dot_product_attention(bf16[4,8,2,16], bf16[4,8,2,16], bf16[4,8,2,16], bf16[1,2,8,8], bool[4,1,1,8])", 1},
        // what vmap put in: in the first dim, as so many calls, or by leading dims
        {"tokamax", "DotProductAttention", "{" MAPPED "}",
         "flash_attention(f32[20,8,2,16], f32[20,8,2,16], f32[20,8,2,16])", 1},
        {"tokamax", "DotProductAttention", "{" MAPPED ",\"mask\":\"bool[4,1,1,8]{vmap_axes=[null]}\"}",
         DOT32 ", mask=bool[4,1,1,8])", 5},
        {"tokamax", "GatedLinearUnit",
         "{\"x\":\"f32[7,8]{vmap_axes=[[0,5]]}\",\"weights\":\"f32[8,2,3]{vmap_axes=[null]}\",\"activation\":"
         "\"jax._src.nn.functions.swish\"}",
         "gated_linear_unit(f32[5,7,8], f32[8,2,3], activation=\"silu\")", 1},
        {"tokamax", "GatedLinearUnit",
         "{\"x\":\"f32[7,8]\",\"weights\":\"f32[8,2,3]\",\"activation\":\"my.own.function\"}",
         "activation is \"my.own.function\", which hone's gated_linear_unit cannot hold", 0},
        {"tokamax", "Normalization",
         "{\"x\":\"bf16[8,64]\",\"scale\":\"bf16[64]\",\"offset\":null,\"axis\":-1,\"epsilon\":1e-06,\"subtract_mean\":"
         "false}",
         "rms_norm(bf16[8,64], bf16[64])", 1},
        {"tokamax", "Normalization", "{\"x\":\"bf16[8,64]\",\"scale\":\"bf16[64]\",\"subtract_mean\":true}",
         "layer_norm(bf16[8,64], bf16[64])", 1},
        {"tokamax", "Normalization",
         "{\"x\":\"bf16[8,64]\",\"scale\":\"f32[64]\",\"offset\":\"f32[64]\",\"scale_offset\":1.0,\"subtract_mean\":"
         "false,"
         "\"epsilon\":1e-5}",
         "layer_norm(bf16[8,64], f32[64], f32[64], subtract_mean=false, eps=1e-05, weight_offset=1.0)", 1},
        {"tokamax", "Normalization", "{\"x\":\"f32[7,8,64]\",\"scale\":null,\"offset\":null,\"subtract_mean\":false}",
         "layer_norm(f32[7,8,64], subtract_mean=false)", 1},
        {"tokamax", "Normalization", "{\"x\":\"bf16[8,64]\",\"scale\":\"bf16[8]\",\"axis\":0}",
         "axis is 0, which hone's layer_norm cannot hold", 0},
        // windows of one side and of two
        {"ejkernel", "flash_attention", "{" EJ ",\"sliding_window\":3}", FLASH32 ", sliding_window=3)", 1},
        {"ejkernel", "flash_attention", "{" EJ ",\"sliding_window\":[3,3]}", FLASH32 ", sliding_window=3)", 1},
        {"ejkernel", "flash_attention", "{" EJ ",\"sliding_window\":[3,0]}", FLASH32 ", causal=true, sliding_window=3)",
         1},
        {"ejkernel", "flash_attention", "{" EJ ",\"causal\":true,\"sliding_window\":[3,9]}",
         FLASH32 ", causal=true, sliding_window=3)", 1},
        {"ejkernel", "flash_attention", "{" EJ ",\"sliding_window\":[3,1]}", DOT32 ", window_left=3, window_right=1)",
         1},
        {"ejkernel", "flash_attention",
         "{" EJ ",\"sliding_window\":2,\"attention_mask\":{\"dtype\":\"bool\",\"shape\":[4,1,8,8]}}",
         DOT32 ", mask=bool[4,1,8,8], window_left=2, window_right=2)", 1},
        {"ejkernel", "attention", "{" EJ ",\"causal\":true,\"sliding_window\":3}",
         "attention(f32[4,8,2,16], f32[4,8,2,16], f32[4,8,2,16], causal=true, sliding_window=3)", 1},
        {"ejkernel", "attention",
         "{" EJ ",\"sliding_window\":[3,1],\"attention_mask\":{\"dtype\":\"bool\",\"shape\":[4,1,8,8]}}",
         "biased_attention(f32[4,8,2,16], f32[4,8,2,16], f32[4,8,2,16], mask=bool[4,1,8,8], window_left=3, "
         "window_right=1)",
         1},
        {"ejkernel", "attention", "{" EJ ",\"bias\":{\"dtype\":\"float32\",\"shape\":[4,2,8,8]}}",
         "biased_attention(f32[4,8,2,16], f32[4,8,2,16], f32[4,8,2,16], f32[4,2,8,8])", 1},
        {"ejkernel", "attention", "{" EJ ",\"softmax_aux\":{\"dtype\":\"float32\",\"shape\":[2]}}",
         "softmax_aux is {\"dtype\":\"float32\",\"shape\":[2]}, which hone's biased_attention cannot hold", 0},
        {"ejkernel", "flash_attention", "{" EJ ",\"dropout_prob\":0.1}",
         "dropout_prob is 0.1, which hone's dot_product_attention cannot hold", 0},
        {"ejkernel", "flash_attention", "{" EJ ",\"dropout_prob\":0.0,\"normalize_output\":true,\"platform\":\"cute\"}",
         FLASH32 ")", 1},
        {"ejkernel", "flash_attention", "{" EJ ",\"normalize_output\":false}",
         "normalize_output is false, which hone's dot_product_attention cannot hold", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_taken(*state, &cases[i]);
}

static void a_later_document_goes_before_an_earlier_one(void **state)
{
    static const char text[] = "[{\"library\":\"tokamax\",\"operation\":\"Softmax\",\"values\":{\"mode\":[\"fast\"]},"
                               "\"takes\":[{\"algorithm\":\"softmax\",\"arguments\":{\"logits\":\"x\"}}]},"
                               "{\"library\":\"tokamax\",\"operation\":\"Normalization\",\"takes\":[{\"algorithm\":"
                               "\"rms_norm\",\"arguments\":{\"gamma\":\"weight\"}}]}]";
    static const taken cases[] = {
        {"tokamax", "Softmax", "{\"logits\":\"f32[2,3]\",\"mode\":\"fast\"}", "softmax(f32[2,3])", 1},
        {"tokamax", "Normalization", "{\"x\":\"f32[2,3]\",\"gamma\":\"f32[3]\"}", "rms_norm(f32[2,3], f32[3])", 1},
        {"tokamax", "DotProductAttention", "{" QKV "}", FLASH ")", 1}, // what is built in is there still
    };
    hone_error err = {0};
    if (hone_registry_add_foreign(*state, text, strlen(text), &err) != HONE_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_taken(*state, &cases[i]);
}

static void a_document_that_says_something_else_is_refused_by_row_and_field(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{}", "an array of at most 4096 rows"},
        {"[1]", "row 0 of foreign operations: it: expected an object"},
        {"[{\"operation\":\"x\",\"takes\":[]}]", "row 0 of foreign operations: library: expected a text"},
        {"[{\"library\":\"a\",\"operation\":\"x\",\"takes\":[]}]",
         "takes: expected an array of at least one algorithm"},
        {"[{\"library\":\"a\",\"operation\":\"x\",\"takes\":[{}]}]", "takes: expected \"algorithm\", a text"},
        {"[{\"library\":\"a\",\"operation\":\"x\",\"takes\":[{\"algorithm\":\"y\"}],\"values\":{\"z\":[]}}]",
         "z: expected an array of at least one value"},
        {"[{\"library\":\"a\",\"operation\":\"x\",\"takes\":[{\"algorithm\":\"y\"}],\"value\":{}}]",
         "there is no field 'value'; the fields are: library operation signature values windows configs takes"},
        {"[{\"library\":\"a\",\"operation\":\"x\",\"takes\":[{\"algorithm\":\"y\"}],\"signature\":\"x(\"}]",
         "row 0 of foreign operations: "},
        {"[{\"library\":\"a\",\"operation\":\"x\",\"takes\":[{\"algorithm\":\"y\"}],\"windows\":[3]}]",
         "windows: expected an array of names"},
        {"[{\"library\":\"a\",", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_error err = {0};
        assert_int_not_equal(hone_registry_add_foreign(*state, cases[i].text, strlen(cases[i].text), &err), HONE_OK);
        if (strstr(err.message, cases[i].words) == NULL) fail_msg("%s: %s", cases[i].text, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_names_algorithms_and_their_parameters),
        cmocka_unit_test(windows_of_a_row_are_parameters_of_its_signature),
        cmocka_unit_test(arguments_of_other_libraries_are_calls_of_hones),
        cmocka_unit_test(a_later_document_goes_before_an_earlier_one),
        cmocka_unit_test(a_document_that_says_something_else_is_refused_by_row_and_field),
    };
    return cmocka_run_group_tests_name("kernels_foreign", tests, open_registry, close_registry);
}
