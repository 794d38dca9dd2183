// From a label and its surroundings to a call of hone's, and what is said when there is none.
#include "fixture.h"

#include "base/hash.h"
#include "offline/operands.h"

// A program with one call of `operation` as a function: arguments a, b (and c) of the given types.
static const char *program_of(const char *label, const char *types, const char *operands)
{
    static char text[4096];
    snprintf(
        text, sizeof text,
        "func.func public @main(%s) -> tensor<4xf32> {\n"
        "  %%0 = call @inner(%s) : (%s) -> tensor<4xf32> loc(\"jit(f)/%s/jit(inner)\")\n"
        "  return %%0 : tensor<4xf32>\n"
        "}\n"
        "func.func private @inner(%s) -> tensor<4xf32> {\n"
        "  %%cst = stablehlo.constant dense<4.99999987e-01> : tensor<f32>\n"
        "  %%cst_0 = stablehlo.constant dense<3.000000e+01> : tensor<f32>\n"
        "  return %%cst : tensor<4xf32>\n"
        "}\n",
        operands, "%a, %b, %c", types, label, operands);
    return text;
}

static const hone_operation *only(const hone_program *program)
{
    assert_int_equal(hone_program_operations(program), 1);
    assert_null(hone_program_operation(program, 1));
    return hone_program_operation(program, 0);
}

static void make_label(char out[128], const char *operation, const char *spec)
{
    char key[HONE_KEY_SIZE];
    hone_hash_key(spec, strlen(spec), key);
    snprintf(out, 128, "ejkernel_ops#%s:%s", operation, key);
}

#define QUERY "{\"dtype\":\"bfloat16\",\"shape\":[2,16,8,64]}"
#define KEYS  "{\"dtype\":\"bfloat16\",\"shape\":[2,48,2,64]}"

static void grouped_heads_with_scale_and_cap_are_proved(void **state)
{
    (void)state;
    static const char spec[] =
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"attention_mask\":null,\"bias\":null,\"block_tables\":"
        "null,\"causal\":true,"
        "\"cum_seqlens_k\":null,\"cum_seqlens_q\":null,\"dropout_prob\":0.0,\"dropout_seed\":null,\"key\":" KEYS
        ",\"kv_segment_ids\":null,\"logits_dtype\":{\"__callable_obj__\":\"jax._src.numpy.scalar_types._ScalarMeta\"},"
        "\"logits_soft_cap\":30.0,\"normalize_output\":true,\"platform\":\"xla\",\"precision\":\"Precision.DEFAULT\","
        "\"q_segment_ids\":null,"
        "\"query\":" QUERY ",\"sliding_window\":null,\"softmax_aux\":null,\"softmax_scale\":0.5,\"value\":" KEYS
        "},\"method\":null}";
    fixture f;
    fixture_open(&f);
    char label[128];
    make_label(label, "flash_attention@v2", spec);
    hone_program *program = fixture_read(
        &f, program_of(
                label, "tensor<2x16x8x64xbf16>, tensor<2x48x2x64xbf16>, tensor<2x48x2x64xbf16>",
                "%a: tensor<2x16x8x64xbf16>, %b: tensor<2x48x2x64xbf16>, %c: tensor<2x48x2x64xbf16>"));
    const hone_operation *o = only(program);
    assert_int_equal(o->matched, HONE_MATCH_PROVED);
    assert_string_equal(
        o->call, "flash_attention(bf16[2,16,8,64], bf16[2,48,2,64], bf16[2,48,2,64], softmax_scale=0.5, causal=true, "
                 "logits_soft_cap=30.0)");
    assert_true(o->tunable);
    hone_program_release(&program);
    fixture_close(&f);
}

static void a_key_that_nothing_hashes_to_leaves_the_operands(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(
        &f, program_of(
                "ejkernel_ops#attention@v0:0123456789abcdef",
                "tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>",
                "%a: tensor<1x8x2x16xf32>, %b: tensor<1x8x2x16xf32>, %c: tensor<1x8x2x16xf32>"));
    const hone_operation *o = only(program);
    assert_int_equal(o->matched, HONE_MATCH_OPERANDS);
    assert_string_equal(o->call, "attention(f32[1,8,2,16], f32[1,8,2,16], f32[1,8,2,16])");
    assert_string_equal(o->key, "0123456789abcdef");
    assert_false(o->tunable); // that they are others' is known
    assert_non_null(strstr(o->reason, "the label's key is of other arguments than the program shows"));
    hone_program_release(&program);
    fixture_close(&f);
}

static void hones_own_labels_are_proved_by_hones_key(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    const hone_algorithm_entry *entry = hone_registry_find(f.registry, "matmul", "1");
    hone_call *call = NULL;
    assert_int_equal(
        hone_call_parse(f.allocator, entry->signature, "matmul(f32[8,16], f32[4,16], transpose_b=true)", &call, &err),
        HONE_OK);
    char label[128], text[1024];
    snprintf(label, sizeof label, "hone#matmul.v1:%s", hone_call_key(call));
    snprintf(
        text, sizeof text,
        "HloModule m\nENTRY main {\n  a = f32[8,16]{1,0} parameter(0)\n  b = f32[4,16]{1,0} parameter(1)\n"
        "  ROOT c = f32[8,4]{1,0} dot(a, b), lhs_contracting_dims={1}, metadata={op_name=\"jit(f)/%s/dot\"}\n}\n",
        label);
    hone_program *program = fixture_read(&f, text);
    const hone_operation *o = only(program);
    assert_int_equal(o->matched, HONE_MATCH_PROVED);
    assert_string_equal(o->call, "matmul(f32[8,16], f32[4,16], transpose_b=true)");
    assert_string_equal(o->call_key, o->key);
    assert_string_equal(o->label, label);
    hone_program_release(&program);
    hone_call_release(&call);
    fixture_close(&f);
}

static void a_custom_call_brings_its_call_text(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char text[] =
        "func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x4xf32>) -> tensor<8x4xf32> {\n"
        "  %0 = stablehlo.custom_call @hone(%arg0, %arg1) {backend_config = {hone_call = \"matmul(f32[8,16], "
        "f32[16,4])\"}} : "
        "(tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> "
        "loc(\"jit(f)/hone#matmul.v1:0123456789abcdef/ffi_call\")\n"
        "  return %0 : tensor<8x4xf32>\n"
        "}\n";
    hone_program *program = fixture_read(&f, text);
    const hone_operation *o = only(program);
    assert_int_equal(o->matched, HONE_MATCH_LABEL);
    assert_string_equal(o->call, "matmul(f32[8,16], f32[16,4])");
    hone_program_release(&program);
    fixture_close(&f);
}

static void a_call_text_that_neither_key_nor_operands_bear_out_is_none(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char text[] =
        "func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x4xf32>) -> tensor<8x4xf32> {\n"
        "  %0 = stablehlo.custom_call @hone(%arg0, %arg1) {backend_config = {hone_call = \"matmul(f32[8,16], "
        "f32[16,32])\"}} : "
        "(tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> "
        "loc(\"jit(f)/hone#matmul.v1:0123456789abcdef/ffi_call\")\n"
        "  return %0 : tensor<8x4xf32>\n"
        "}\n";
    hone_program *program = fixture_read(&f, text);
    const hone_operation *o = only(program);
    assert_int_not_equal(o->matched, HONE_MATCH_LABEL);
    assert_null(o->call == NULL ? NULL : strstr(o->call, "[16,32]"));
    hone_program_release(&program);
    fixture_close(&f);
}

static void what_hone_does_not_have_is_listed_with_the_reason(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char text[] =
        "func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %0 = stablehlo.sine %arg0 : tensor<8xf32> "
        "loc(\"jit(f)/ejkernel_ops#gated_delta_rule@v2:0123456789abcdef/sin\")\n"
        "  %1 = stablehlo.sine %0 : tensor<8xf32> loc(\"jit(f)/hone#matmul.v9:0123456789abcdef/sin\")\n"
        "  return %1 : tensor<8xf32>\n"
        "}\n";
    hone_program *program = fixture_read(&f, text);
    assert_int_equal(hone_program_operations(program), 2);
    const hone_operation *o = hone_program_operation(program, 0);
    assert_string_equal(o->algorithm, "gated_delta_rule");
    assert_string_equal(o->version, "2");
    assert_int_equal(o->matched, HONE_MATCH_NONE);
    assert_int_equal(o->count, 1);
    assert_false(o->tunable);
    assert_non_null(strstr(o->reason, "no algorithm named 'gated_delta_rule'"));
    o = hone_program_operation(program, 1);
    assert_false(o->tunable);
    assert_non_null(strstr(o->reason, "version 9"));
    hone_program_release(&program);
    fixture_close(&f);
}

static void an_algorithm_without_kernels_cannot_be_tuned(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    hone_algorithm bare = {.struct_size = sizeof bare, .signature = "lonely(x: f32[n]) -> y: f32[n]"};
    assert_int_equal(hone_registry_add_algorithm(f.registry, &bare, true, &err), HONE_OK);
    static const char text[] = "HloModule m\nENTRY main {\n  a = f32[8]{0} parameter(0)\n"
                               "  ROOT c = f32[8]{0} sine(a), metadata={op_name=\"jit(f)/ejkernel_ops#lonely\"}\n}\n";
    hone_program *program = fixture_read(&f, text);
    const hone_operation *o = only(program);
    assert_string_equal(o->call, "lonely(f32[8])");
    assert_false(o->tunable);
    assert_string_equal(o->reason, "no kernel of 'lonely' is registered");
    hone_program_release(&program);
    fixture_close(&f);
}

static void labels_that_disagree_with_their_operands_are_reported(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    static const char record[] = "{\"invocations\":[{\"op\":\"mean_pooling@v0\",\"key\":\"d078c4bb1d5fca07\",\"spec\":"
                                 "\"{\\\"args_spec\\\":[],\\\"batch_axes\\\":null,"
                                 "\\\"kwargs_spec\\\":{\\\"chunk_size\\\":16,\\\"cu_seqlens\\\":null,\\\"platform\\\":"
                                 "null,\\\"x\\\":{\\\"dtype\\\":\\\"float32\\\","
                                 "\\\"shape\\\":[2,64,24]}},\\\"method\\\":null}\"}]}";
    assert_int_equal(hone_json_parse(record, strlen(record), &f.recorded, &err), HONE_OK);
    static const char form[] =
        "func.func public @main(%%arg0: tensor<%sxf32>) -> tensor<%sxf32> {\n"
        "  %%0 = stablehlo.sine %%arg0 : tensor<%sxf32> loc(\"ejkernel_ops#mean_pooling@v0:d078c4bb1d5fca07/sin\")\n"
        "  return %%0 : tensor<%sxf32>\n}\n";
    char text[1024];
    snprintf(text, sizeof text, form, "2x64x24", "2x64x24", "2x64x24", "2x64x24");
    hone_program *program = fixture_read(&f, text);
    assert_int_equal(only(program)->matched, HONE_MATCH_RECORDED);
    assert_null(hone_program_note(program));
    hone_program_release(&program);
    snprintf(text, sizeof text, form, "2x32x24", "2x32x24", "2x32x24", "2x32x24");
    program = fixture_read(&f, text);
    assert_int_equal(only(program)->matched, HONE_MATCH_RECORDED);
    assert_non_null(strstr(hone_program_note(program), "disagree"));
    hone_program_release(&program);
    fixture_close(&f);
}

#define LABEL "ejkernel_ops#x@v0:0123456789abcdef"

static void a_gradient_is_counted_forwards(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char text[] =
        "func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.sine %arg0 : tensor<4xf32> loc(\"jit(f)/jvp(" LABEL ")/sin\")\n"
        "  %1 = stablehlo.cosine %arg0 : tensor<4xf32> loc(\"jit(f)/jvp(" LABEL ")/cos\")\n"
        "  %2 = stablehlo.sine %arg0 : tensor<4xf32> loc(\"jit(f)/rematted_computation/" LABEL "/sin\")\n"
        "  %3 = stablehlo.multiply %arg1, %1 : tensor<4xf32> loc(\"jit(f)/transpose(jvp(" LABEL "))/mul\")\n"
        "  %4 = stablehlo.add %3, %2 : tensor<4xf32> loc(\"jit(f)/add\")\n"
        "  return %4 : tensor<4xf32>\n"
        "}\n";
    hone_program *program = fixture_read(&f, text);
    assert_int_equal(only(program)->count, 2); // once, and once more recomputed
    hone_program_release(&program);
    fixture_close(&f);
}

// Two backward parts that were reached in two ways, before the call itself.
static void a_gradient_that_stands_first_is_counted_forwards_too(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char text[] =
        "func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.cosine %arg0 : tensor<4xf32> loc(\"jit(f)/transpose(jvp(" LABEL "))/cos\")\n"
        "  %1 = stablehlo.cosine %arg1 : tensor<8xf32> loc(\"jit(f)/transpose(custom(" LABEL "))/cos\")\n"
        "  %2 = stablehlo.sine %arg0 : tensor<4xf32> loc(\"jit(f)/jvp(" LABEL ")/sin\")\n"
        "  return %2 : tensor<4xf32>\n"
        "}\n";
    hone_program *program = fixture_read(&f, text);
    assert_int_equal(only(program)->count, 1);
    hone_program_release(&program);
    fixture_close(&f);
}

// HLO gives what it makes of one value the place of another call, and takes each result of a loop out of a tuple.
// What of a loop's call does not change is taken out of the loop, and is no call of its own. In either order.
static void what_was_taken_out_of_a_loop_is_not_counted(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        fixture f;
        fixture_open(&f);
        char text[2048], parts[2][300];
        for (int part = 0; part < 2; part++) {
            const bool product = part == way;
            snprintf(
                parts[part], sizeof parts[part],
                "  %%%d = stablehlo.%s %%arg0, %%arg%d%s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> "
                "loc(\"jit(f)/%s/hone#matmul.v1:0123456789abcdef/x\")\n",
                part, product ? "dot_general" : "and", part, product ? ", contracting_dims = [1] x [0]" : "",
                product ? "while" : "jvp()");
        }
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<4x4xf32>, %%arg1: tensor<4x4xf32>) -> tensor<4x4xf32> {\n%s%s"
            "  return %%1 : tensor<4x4xf32>\n}\n",
            parts[0], parts[1]);
        hone_program *program = fixture_read(&f, text);
        assert_int_equal(only(program)->count, 1);
        hone_program_release(&program);
        fixture_close(&f);
    }
}

static void what_hlo_tears_apart_is_one_call(void **state)
{
    (void)state;
#define CUT "metadata={op_name=\"jit(f)/jvp(ejkernel_ops#mean_pooling\"}"
    static const struct {
        const char *body;
        int64_t count;
    } cases[] = {
        {"  e = f32[16]{0} exponential(p), " CUT "\n"
         "  b = f32[1,16]{1,0} reshape(e), metadata={op_name=\"jit(f)/broadcast_in_dim\"}\n"
         "  ROOT d = f32[1,1]{1,0} dot(b, q), " CUT "\n",
         1},
        {"  w = (f32[16]{0}, f32[16]{0}, f32[16]{0}) custom-call(p), custom_call_target=\"x\", " CUT "\n"
         "  x = f32[16]{0} get-tuple-element(w), index=0, " CUT "\n"
         "  y = f32[16]{0} get-tuple-element(w), index=1, " CUT "\n"
         "  z = f32[16]{0} get-tuple-element(w), index=2, " CUT "\n"
         "  ROOT t = (f32[16]{0}, f32[16]{0}, f32[16]{0}) tuple(x, y, z)\n",
         1},
        {"  d = f32[1,1]{1,0} dot(q, q), " CUT "\n" // two calls, the second of what the first gave
         "  b = f32[1,1]{1,0} reshape(d), metadata={op_name=\"jit(f)/broadcast_in_dim\"}\n"
         "  ROOT e = f32[1,1]{1,0} dot(b, q), " CUT "\n",
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_open(&f);
        char text[2048];
        snprintf(
            text, sizeof text,
            "HloModule m\nENTRY main {\n  p = f32[16]{0} parameter(0)\n  q = f32[16,1]{1,0} parameter(1)\n%s}\n",
            cases[i].body);
        hone_program *program = fixture_read(&f, text);
        int64_t count = 0;
        for (size_t k = 0; k < hone_program_operations(program); k++)
            count += hone_program_operation(program, k)->count;
        if (count != cases[i].count) fail_msg("case %zu: %lld", i, (long long)count);
        hone_program_release(&program);
        fixture_close(&f);
    }
#undef CUT
}

#define POOLED "{\\22dtype\\22:\\22float32\\22,\\22shape\\22:[2,64,24]}"

// One operation at two places: by its key alone, and with its arguments.
static void the_place_that_shows_more_of_an_operation_is_believed(void **state)
{
    (void)state;
    static const char spec[] =
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2,64,24]}},"
        "\"method\":null}";
    static const char payload[] = "ejkernel_ops:{\\22args\\22:[],\\22cfg\\22:0,\\22kwargs\\22:{\\22x\\22:" POOLED
                                  "},\\22op_id\\22:\\22mean_pooling@v0\\22}";
    char label[128];
    make_label(label, "mean_pooling@v0", spec);
    for (int way = 0; way < 2; way++) {
        fixture f;
        fixture_open(&f);
        char text[2048];
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<5xf32>) -> tensor<5xf32> {\n"
            "  %%0 = stablehlo.sine %%arg0 : tensor<5xf32> loc(\"jit(f)/%s/sin\")\n"
            "  %%1 = stablehlo.sine %%0 : tensor<5xf32> loc(\"jit(f)/%s/sin\")\n"
            "  return %%1 : tensor<5xf32>\n"
            "}\n",
            way == 0 ? label : payload, way == 0 ? payload : label);
        hone_program *program = fixture_read(&f, text);
        const hone_operation *o = only(program);
        assert_int_equal(o->matched, HONE_MATCH_LABEL);
        assert_string_equal(o->call, "mean_pooling(f32[2,64,24])");
        assert_int_equal(o->count, 2);
        assert_true(o->tunable);
        hone_program_release(&program);
        fixture_close(&f);
    }
}

typedef struct asked {
    fixture f;
    int times;
} asked;

static bool count_recorded(
    void *ctx, const char *algorithm, const char *version, const char *key, hone_buffer *out_spec)
{
    asked *a = ctx;
    (void)algorithm;
    (void)version;
    (void)key;
    a->times++;
    hone_buffer_text(
        out_spec,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2,64,24]}},"
        "\"method\":null}");
    return true;
}

// One that is known for certain is looked for once, however often it stands there; one that is not, at each place.
static void an_operation_that_is_known_is_looked_for_once(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        asked a = {.times = 0};
        fixture_open(&a.f);
        a.f.environment.ctx = &a;
        a.f.environment.recorded = count_recorded;
        char label[128];
        make_label(
            label, "mean_pooling@v0",
            known ? "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2,"
                    "64,24]}},"
                    "\"method\":null}"
                  : "another");
        hone_buffer text;
        hone_buffer_init(&text, a.f.allocator);
        hone_buffer_text(&text, "module @m {\n");
        for (int i = 0; i < 4; i++)
            hone_buffer_format(
                &text,
                "func.func public @f%d(%%arg0: tensor<%dxf32>) -> tensor<%dxf32> {\n"
                "  %%0 = stablehlo.sine %%arg0 : tensor<%dxf32> loc(\"jit(f%d)/%s/sin\")\n"
                "  return %%0 : tensor<%dxf32>\n}\n",
                i, 4 + i, 4 + i, 4 + i, i, label, 4 + i);
        hone_buffer_text(&text, "}\n");
        hone_program *program = fixture_read(&a.f, hone_buffer_string(&text));
        assert_int_equal(only(program)->count, 4);
        assert_int_equal(only(program)->matched, known ? HONE_MATCH_RECORDED : HONE_MATCH_NONE);
        assert_int_equal(a.times, known ? 1 : 4);
        hone_program_release(&program);
        hone_buffer_deinit(&text);
        fixture_close(&a.f);
    }
}

// Its sides are constants of the program, up to 2^20.
static void a_window_of_two_sides_is_proved_by_the_constants_that_it_has(void **state)
{
    (void)state;
    static const struct {
        const char *window, *left, *right;
        bool proved;
    } cases[] = {
        {"[30,7]", "30", "7", true},
        {"[7,30]", "30", "7", true},
        {"[0,7]", "0", "7", true},
        {"[7,0]", "0", "7", true},
        {"[1048576,7]", "7", "1048576", true},
        {"[7,1048576]", "7", "1048576", true},
        {"[1048577,7]", "7", "1048577", false},
        {"[7,1048577]", "7", "1048577", false},
        {"[-1,7]", "-1", "7", false},
        {"[7,-1]", "-1", "7", false},
        {"[30,8]", "30", "7", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_open(&f);
        char spec[2048], label[128], text[2048];
        snprintf(
            spec, sizeof spec,
            "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"attention_mask\":null,\"bias\":null,\"block_"
            "tables\":"
            "null,\"causal\":false,\"cum_seqlens_k\":null,\"cum_seqlens_q\":null,\"dropout_prob\":0.0,\"dropout_seed\":"
            "null,"
            "\"key\":" KEYS ",\"kv_segment_ids\":null,\"logits_dtype\":{\"__callable_obj__\":\"jax._src.numpy.scalar_"
            "types._ScalarMeta\"},"
            "\"logits_soft_cap\":null,\"normalize_output\":true,\"platform\":\"xla\",\"precision\":\"Precision."
            "DEFAULT\","
            "\"q_segment_ids\":null,\"query\":" QUERY
            ",\"sliding_window\":%s,\"softmax_aux\":null,\"softmax_scale\":null,\"value\":" KEYS "},\"method\":null}",
            cases[i].window);
        make_label(label, "flash_attention@v2", spec);
        snprintf(
            text, sizeof text,
            "func.func public @main(%%a: tensor<2x16x8x64xbf16>, %%b: tensor<2x48x2x64xbf16>) -> "
            "tensor<2x16x8x64xbf16> {\n"
            "  %%0 = call @inner(%%a, %%b, %%b) : (tensor<2x16x8x64xbf16>, tensor<2x48x2x64xbf16>, "
            "tensor<2x48x2x64xbf16>) "
            "-> tensor<2x16x8x64xbf16> loc(\"jit(f)/%s/jit(inner)\")\n"
            "  return %%0 : tensor<2x16x8x64xbf16>\n}\n"
            "func.func private @inner(%%a: tensor<2x16x8x64xbf16>, %%b: tensor<2x48x2x64xbf16>, "
            "%%c: tensor<2x48x2x64xbf16>) -> tensor<2x16x8x64xbf16> {\n"
            "  %%c_0 = stablehlo.constant dense<%s> : tensor<i32>\n"
            "  %%c_1 = stablehlo.constant dense<%s> : tensor<i32>\n"
            "  return %%a : tensor<2x16x8x64xbf16>\n}\n",
            label, cases[i].left, cases[i].right);
        hone_program *program = fixture_read(&f, text);
        const hone_operation *o = only(program);
        if (o->matched != (cases[i].proved ? HONE_MATCH_PROVED : HONE_MATCH_OPERANDS))
            fail_msg("%s: %s", cases[i].window, hone_match_name(o->matched));
        assert_int_equal(o->tunable, cases[i].proved);
        hone_program_release(&program);
        fixture_close(&f);
    }
}

// The function of a call takes its arguments in the order in which it uses them; what it gives tells which is which.
static void arguments_in_another_order_are_sorted_by_what_the_call_gives(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    static const char text[] =
        "func.func public @main(%q: tensor<2x64x8x32xf32>, %k: tensor<2x64x2x32xf32>) -> tensor<2x64x8x32xf32> {\n"
        "  %0 = call @flash_attention(%k, %q, %k) : (tensor<2x64x2x32xf32>, tensor<2x64x8x32xf32>, "
        "tensor<2x64x2x32xf32>) -> "
        "tensor<2x64x8x32xf32> loc(\"ejkernel_ops#flash_attention@v2:0123456789abcdef/jit(flash_attention)\")\n"
        "  return %0 : tensor<2x64x8x32xf32>\n"
        "}\n"
        "func.func private @flash_attention(%k: tensor<2x64x2x32xf32>, %q: tensor<2x64x8x32xf32>, %v: "
        "tensor<2x64x2x32xf32>) -> "
        "tensor<2x64x8x32xf32> {\n"
        "  return %q : tensor<2x64x8x32xf32>\n"
        "}\n";
    hone_program *program = fixture_read(&f, text);
    assert_string_equal(only(program)->call, "flash_attention(f32[2,64,8,32], f32[2,64,2,32], f32[2,64,2,32])");
    hone_program_release(&program);
    fixture_close(&f);
}

static void types_of_both_dialects_are_read(void **state)
{
    (void)state;
    hone_array array;
    assert_true(hone_array_read(hone_view_of("tensor<2x3xbf16>"), &array));
    assert_int_equal(array.ndim, 2);
    assert_int_equal(array.dims[1], 3);
    assert_int_equal(array.dtype.code, HONE_CODE_BFLOAT);
    assert_true(hone_array_read(hone_view_of("tensor<i1>"), &array));
    assert_int_equal(array.ndim, 0);
    assert_true(hone_array_read(hone_view_of("tensor<0x4xui8>"), &array));
    assert_int_equal(array.dims[0], 0);
    assert_true(hone_array_read(hone_view_of("tensor<4x3xf32, #sparse>"), &array));
    assert_true(hone_array_read(hone_view_of("pred[8,128]{1,0:T(8,128)}"), &array));
    assert_int_equal(array.dims[1], 128);
    assert_true(hone_array_read(hone_view_of("s32[]"), &array));
    static const char *const none[] = {
        "tensor<?x3xf32>",
        "tensor<3xf99>",
        "(f32[2], f32[3])",
        "f32[<=4]",
        "f32[2",
        "tensor<2x",
        "token[]",
        "",
        "tensor<1x1x1x1x1x1x1x1x1xf32>",
        "f32[99999999999999999999]"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(hone_array_read(hone_view_of(none[i]), &array));
}

// Which operand a tensor is: the first with its dims, else in HLO the first with as many elements.
static void a_tensor_is_found_among_operands_by_its_dims(void **state)
{
    (void)state;
    static const struct {
        const char *types[3];
        int64_t dims[3];
        int32_t ndim;
        uint32_t batches;
        int place;
    } cases[] = {
        {{"f32[2,3]{1,0}", "f32[4]{0}"}, {2, 3}, 2, 0, 0},
        {{"f32[4]{0}", "f32[2,3]{1,0}", "f32[2,3]{1,0}"}, {2, 3}, 2, 0, 1},
        {{"f32[4]{0}", "f32[3,2]{1,0}"}, {2, 3}, 2, 0, HONE_OPERANDS_RESHAPED + 1},
        {{"f32[6]{0}", "f32[3,2]{1,0}", "f32[2,3]{1,0}"}, {2, 3}, 2, 0, 2}, // before any that was reshaped
        {{"f32[6]{0}", "f32[3,2]{1,0}"}, {2, 3}, 2, 0, HONE_OPERANDS_RESHAPED},
        {{"tensor<6xf32>", "tensor<3x2xf32>"}, {2, 3}, 2, 0, HONE_OPERANDS_NONE}, // MLIR's reshapes are its own
        {{"tensor<6xf32>", "tensor<2x3xf32>"}, {2, 3}, 2, 0, 1},
        {{"tensor<5x2x3xf32>"}, {2, 3}, 2, 0, HONE_OPERANDS_NONE},
        {{"tensor<5x2x3xf32>"}, {2, 3}, 2, 1, 0},
        {{"tensor<2x5x3xf32>"}, {2, 3}, 2, 1, 0},
        {{"tensor<2x3x5xf32>"}, {2, 3}, 2, 1, 0},
        {{"tensor<5x2x7x3xf32>"}, {2, 3}, 2, 1, HONE_OPERANDS_NONE},
        {{"tensor<5x2x7x3xf32>"}, {2, 3}, 2, 2, 0},
        {{"tensor<3x2xf32>"}, {2, 3}, 2, 1, HONE_OPERANDS_NONE},
        {{"tensor<2xf32>"}, {2, 3}, 2, 1, HONE_OPERANDS_NONE},
        {{"tensor<f32>"}, {0}, 0, 0, 0},
        {{"(f32[2,3])", "", "f32[2,3]"}, {2, 3}, 2, 0, 2}, // what is no array is passed over
        {{"f32[99999999999,99999999999]", "f32[6]"}, {2, 3}, 2, 0, HONE_OPERANDS_RESHAPED + 1},
        {{NULL}, {2, 3}, 2, 0, HONE_OPERANDS_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_operands operands = {.count = 0};
        for (int k = 0; k < 3 && cases[i].types[k] != NULL; k++)
            operands.types[operands.count++] = hone_view_of(cases[i].types[k]);
        int64_t dims[3];
        memcpy(dims, cases[i].dims, sizeof dims);
        const hone_tensor tensor = {.ndim = cases[i].ndim, .shape = dims};
        int place = hone_operands_find(&operands, &tensor, cases[i].batches);
        if (place != cases[i].place) fail_msg("case %zu: %d", i, place);
    }
}

static void the_arguments_of_a_call_may_all_be_without_batches(void **state)
{
    (void)state;
    static const char *const keys[] = {"e1782c2c165c8739", "0123456789abcdef"}; // the call's, and of none
    for (int i = 0; i < 2; i++) {
        fixture f;
        fixture_open(&f);
        char text[1024];
        snprintf(
            text, sizeof text,
            "module @m {\n"
            "  func.func public @main(%%arg0: tensor<4x8xf32>, %%arg1: tensor<8x16xf32>) -> tensor<4x16xf32> {\n"
            "    %%0 = call @inner(%%arg0, %%arg1) : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> "
            "loc(\"jit(f)/vmap(hone#matmul.v1:%s)/jit(inner)\")\n"
            "    return %%0 : tensor<4x16xf32>\n  }\n"
            "  func.func private @inner(%%arg0: tensor<4x8xf32>, %%arg1: tensor<8x16xf32>) -> tensor<4x16xf32> {\n"
            "    return %%arg0 : tensor<4x8xf32>\n  }\n}\n",
            keys[i]);
        hone_program *program = fixture_read(&f, text);
        const hone_operation *o = only(program);
        assert_int_equal(o->matched, i == 0 ? HONE_MATCH_PROVED : HONE_MATCH_OPERANDS);
        assert_string_equal(o->call, "matmul(f32[4,8], f32[8,16])");
        hone_program_release(&program);
        fixture_close(&f);
    }
}

// Whose optional arrays a call's further operands are is not guessed where no key tells.
static void operands_alone_give_no_optional_arrays(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(
        &f, "func.func public @main(%q: tensor<1x8x2x16xf32>, %m: tensor<1x2x8x8xi1>) -> tensor<1x8x2x16xf32> {\n"
            "  %0 = call @inner(%q, %q, %q, %m) : (tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, "
            "tensor<1x2x8x8xi1>) -> tensor<1x8x2x16xf32> "
            "loc(\"jit(f)/ejkernel_ops#flash_attention@v2:0123456789abcdef/jit(inner)\")\n"
            "  return %0 : tensor<1x8x2x16xf32>\n}\n"
            "func.func private @inner(%q: tensor<1x8x2x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, "
            "%m: tensor<1x2x8x8xi1>) -> tensor<1x8x2x16xf32> {\n"
            "  return %q : tensor<1x8x2x16xf32>\n}\n");
    const hone_operation *o = only(program);
    assert_int_equal(o->matched, HONE_MATCH_OPERANDS);
    assert_string_equal(o->call, "flash_attention(f32[1,8,2,16], f32[1,8,2,16], f32[1,8,2,16])");
    hone_program_release(&program);
    fixture_close(&f);
}

static void arguments_that_vmap_did_not_map_keep_their_dims(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(
        &f,
        "module @m {\n"
        "  func.func public @main(%arg0: tensor<3x4x8xf32>, %arg1: tensor<8x16xf32>) -> tensor<3x4x16xf32> {\n"
        "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0] : (tensor<3x4x8xf32>, "
        "tensor<8x16xf32>) -> tensor<3x4x16xf32> loc(\"jit(f)/vmap(hone#matmul.v1:e1782c2c165c8739)/dot_general\")\n"
        "    return %0 : tensor<3x4x16xf32>\n  }\n}\n");
    assert_int_equal(hone_program_operations(program), 1);
    assert_int_equal(hone_program_operation(program, 0)->matched, HONE_MATCH_PROVED);
    assert_string_equal(hone_program_operation(program, 0)->call, "matmul(f32[4,8], f32[8,16])");
    hone_program_release(&program);
    fixture_close(&f);
}

// An attention with a scale, a cap and a window, whose arrays vmap maps at axes of their own, or not at all; the scope
// that the transformation is written around is not the label's.
static void arguments_that_vmap_mapped_at_different_axes_are_proved(void **state)
{
    (void)state;
    static const char array[] = "{\"dtype\":\"float32\",\"shape\":[2,8,%d,16]}";
    char query[64], keys[64], spec[1024], label[128];
    snprintf(query, sizeof query, array, 4);
    snprintf(keys, sizeof keys, array, 2);
    snprintf(
        spec, sizeof spec,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"attention_mask\":null,\"bias\":null,\"block_tables\":"
        "null,"
        "\"causal\":true,\"cum_seqlens_k\":null,\"cum_seqlens_q\":null,\"dropout_prob\":0.0,\"dropout_seed\":null,"
        "\"key\":%s,"
        "\"kv_segment_ids\":null,\"logits_dtype\":{\"__callable_obj__\":\"jax._src.numpy.scalar_types._ScalarMeta\"},"
        "\"logits_soft_cap\":20.0,\"normalize_output\":true,\"platform\":null,\"precision\":\"Precision.DEFAULT\","
        "\"q_segment_ids\":null,\"query\":%s,\"sliding_window\":4,\"softmax_aux\":null,\"softmax_scale\":0.3,\"value\":"
        "%s},"
        "\"method\":null}",
        keys, query, keys);
    make_label(label, "flash_attention@v2", spec);
    static const char *const axes[][3] = {
        {"3x2x8x4x16", "3x2x8x2x16", "3x2x8x2x16"},
        {"2x8x3x4x16", "3x2x8x2x16", "3x2x8x2x16"},
        {"2x8x4x3x16", "2x8x2x16", "2x3x8x2x16"},
        {"3x2x8x4x16", "2x8x2x16", "2x8x2x16"},
    };
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        fixture f;
        fixture_open(&f);
        char text[2048];
        snprintf(
            text, sizeof text,
            "func.func public @main(%%q: tensor<%sxf32>, %%k: tensor<%sxf32>, %%v: tensor<%sxf32>) -> tensor<4xf32> {\n"
            "  %%s = stablehlo.constant dense<3.000000e-01> : tensor<f32>\n"
            "  %%c = stablehlo.constant dense<2.000000e+01> : tensor<f32>\n"
            "  %%w = stablehlo.constant dense<4> : tensor<i32>\n"
            "  %%0 = stablehlo.composite \"x\" %%q, %%k, %%v, %%s, %%c, %%w : (tensor<%sxf32>, tensor<%sxf32>, "
            "tensor<%sxf32>, tensor<f32>, tensor<f32>, tensor<i32>) -> tensor<4xf32> "
            "loc(\"jit(f)/vmap(layer0)/attn/%s/exp\")\n"
            "  return %%0 : tensor<4xf32>\n}\n",
            axes[i][0], axes[i][1], axes[i][2], axes[i][0], axes[i][1], axes[i][2], label);
        hone_program *program = fixture_read(&f, text);
        assert_int_equal(only(program)->matched, HONE_MATCH_PROVED);
        assert_string_equal(
            only(program)->call, "flash_attention(f32[2,8,4,16], f32[2,8,2,16], f32[2,8,2,16], softmax_scale=0.3, "
                                 "causal=true, sliding_window=4, logits_soft_cap=20.0)");
        hone_program_release(&program);
        fixture_close(&f);
    }
}

// A library whose function works its defaults out before its key is made; and one that leaves them to the kernel. Nothing
// in the program shows the number.
static void defaults_of_a_foreign_signature_that_dims_say_are_tried(void **state)
{
    (void)state;
    static const char row[] = "[{\"library\": \"ejkernel\", \"operation\": \"my_attention\", "
                              "\"signature\": \"my_attention(q: T[b, n, h, d], k: T[b, m, hk, d], v: T[b, m, hk, d], "
                              "*, causal: bool = false, "
                              "scale: f64 = 1 / sqrt(7 * d + m)) -> o: T[b, n, h, d] where T in f32, bf16\", "
                              "\"takes\": [{\"algorithm\": \"attention\", \"arguments\": {\"q\": \"query\", \"k\": "
                              "\"key\", \"v\": \"value\", "
                              "\"scale\": \"softmax_scale\"}}]}]";
    static const struct {
        const char *scale, *said;
    } cases[] = {
        {"1.0", "softmax_scale=1.0, "},
        {"0.04490132550669373", "softmax_scale=0.04490132550669373, "}, // 1 / sqrt(7 * 64 + 48)
        {"null", "softmax_scale=0.04490132550669373, "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_open(&f);
        assert_int_equal(hone_registry_add_foreign(f.registry, row, strlen(row), NULL), HONE_OK);
        char spec[512], label[128], call[256];
        snprintf(
            spec, sizeof spec,
            "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"causal\":true,\"k\":" KEYS ",\"q\":" QUERY
            ",\"scale\":%s,"
            "\"v\":" KEYS "},\"method\":null}",
            cases[i].scale);
        make_label(label, "my_attention@v1", spec);
        hone_program *program = fixture_read(
            &f, program_of(
                    label, "tensor<2x16x8x64xbf16>, tensor<2x48x2x64xbf16>, tensor<2x48x2x64xbf16>",
                    "%a: tensor<2x16x8x64xbf16>, %b: tensor<2x48x2x64xbf16>, %c: tensor<2x48x2x64xbf16>"));
        snprintf(
            call, sizeof call, "attention(bf16[2,16,8,64], bf16[2,48,2,64], bf16[2,48,2,64], %scausal=true)",
            cases[i].said);
        assert_int_equal(only(program)->matched, HONE_MATCH_PROVED);
        assert_string_equal(only(program)->call, call);
        hone_program_release(&program);
        fixture_close(&f);
    }
}

// ejkernel's attention gives bf16 where it is told no dtype: what it gave is the query of the next one, with keys of f32.
static void arrays_of_different_dtypes_are_proved_and_reported(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(
        &f, program_of(
                "ejkernel_ops#attention@v0:44c52cbcd7ecee74",
                "tensor<2x32x4x64xbf16>, tensor<2x32x4x64xf32>, tensor<2x32x4x64xf32>",
                "%a: tensor<2x32x4x64xbf16>, %b: tensor<2x32x4x64xf32>, %c: tensor<2x32x4x64xf32>"));
    assert_int_equal(only(program)->matched, HONE_MATCH_PROVED);
    assert_false(only(program)->tunable);
    assert_non_null(strstr(only(program)->reason, "key is f32 but T is bf16"));
    hone_program_release(&program);
    fixture_close(&f);
}

// What optimisation tore off a call reads the same arrays as the rest of it, and fewer.
static void a_torn_off_part_of_an_operation_is_none_of_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *head, *part, *whole;
        size_t operations;
    } cases[] = {
        {"HloModule m, is_scheduled=true", "f32[1,8,2,16]", "f32[1,24,2,16]", 1},
        {"HloModule m", "f32[1,8,2,16]", "f32[1,24,2,16]", 2}, // nothing is torn off there
        {"HloModule m, is_scheduled=true", "f32[1,9,2,16]", "f32[1,24,2,16]", 2},
        {"HloModule m, is_scheduled=true", "bf16[1,8,2,16]", "f32[1,24,2,16]", 2},
        {"HloModule m, is_scheduled=true", "f32[1,8,2,32]", "f32[1,24,2,16]", 2},
        {"HloModule m, is_scheduled=true", "f32[1,24,2,16]", "f32[1,24,2,16]", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_open(&f);
        char text[2048];
        snprintf(
            text, sizeof text,
            "%s\nENTRY main {\n"
            "  p = %s{3,2,1,0} parameter(0)\n"
            "  q = f32[1,8,2,16]{3,2,1,0} parameter(1)\n"
            "  k = %s{3,2,1,0} parameter(2)\n"
            "  a = %s{3,2,1,0} sine(p), metadata={op_name=\"jit(f)/ejkernel_ops#attention\"}\n"
            "  b = f32[1,8,2,16]{3,2,1,0} custom-call(q, k), custom_call_target=\"x\", "
            "metadata={op_name=\"jit(f)/ejkernel_ops#attention\"}\n"
            "  ROOT t = (f32[4]{0}, f32[4]{0}) tuple(a, b)\n}\n",
            cases[i].head, cases[i].part, cases[i].whole, cases[i].part);
        hone_program *program = fixture_read(&f, text);
        if (hone_program_operations(program) != cases[i].operations) {
            for (size_t k = 0; k < hone_program_operations(program); k++)
                print_message("%s\n", hone_program_operation(program, k)->call);
            fail_msg("%s of %s", cases[i].part, cases[i].whole);
        }
        hone_program_release(&program);
        fixture_close(&f);
    }
}

// One of as many dims as there may be, the first of which vmap put in.
static void an_array_of_the_most_dims_may_be_batched(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    hone_algorithm deep = {
        .struct_size = sizeof deep,
        .signature = "deep(x: f32[a, b, c, d, e, f, g], *, k: i64 = 1) -> y: f32[a, b, c, d, e, f, g]"};
    assert_int_equal(hone_registry_add_algorithm(f.registry, &deep, true, &err), HONE_OK);
    const hone_algorithm_entry *entry = hone_registry_find(f.registry, "deep", NULL);
    for (int axis = 0; axis < 4; axis++) {
        hone_call *call = NULL;
        assert_int_equal(
            hone_call_parse(f.allocator, entry->signature, "deep(f32[1,2,3,4,5,6,7])", &call, &err), HONE_OK);
        char dims[128] = "", text[1024];
        for (int i = 0; i < 8; i++)
            snprintf(dims + strlen(dims), 16, "%dx", i == axis ? 9 : i < axis ? i + 1 : i);
        snprintf(
            text, sizeof text,
            "func.func public @main(%%arg0: tensor<%sf32>) -> tensor<%sf32> {\n"
            "  %%0 = stablehlo.sine %%arg0 : tensor<%sf32> loc(\"jit(f)/vmap(hone#deep.v1:%s)/sin\")\n"
            "  return %%0 : tensor<%sf32>\n}\n",
            dims, dims, dims, hone_call_key(call), dims);
        hone_program *program = fixture_read(&f, text);
        assert_int_equal(only(program)->matched, HONE_MATCH_PROVED);
        assert_string_equal(only(program)->call, "deep(f32[1,2,3,4,5,6,7])");
        hone_program_release(&program);
        hone_call_release(&call);
    }
    fixture_close(&f);
}

static void a_program_without_labels_says_so(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = fixture_read(
        &f, "module @m {\n  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n    return %arg0 : "
            "tensor<4xf32>\n  }\n}\n");
    assert_int_equal(hone_program_operations(program), 0);
    assert_non_null(strstr(hone_program_note(program), "no labels"));
    hone_program_release(&program);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grouped_heads_with_scale_and_cap_are_proved),
        cmocka_unit_test(a_key_that_nothing_hashes_to_leaves_the_operands),
        cmocka_unit_test(hones_own_labels_are_proved_by_hones_key),
        cmocka_unit_test(a_custom_call_brings_its_call_text),
        cmocka_unit_test(a_call_text_that_neither_key_nor_operands_bear_out_is_none),
        cmocka_unit_test(what_hone_does_not_have_is_listed_with_the_reason),
        cmocka_unit_test(an_algorithm_without_kernels_cannot_be_tuned),
        cmocka_unit_test(labels_that_disagree_with_their_operands_are_reported),
        cmocka_unit_test(what_was_taken_out_of_a_loop_is_not_counted),
        cmocka_unit_test(what_hlo_tears_apart_is_one_call),
        cmocka_unit_test(a_gradient_is_counted_forwards),
        cmocka_unit_test(a_gradient_that_stands_first_is_counted_forwards_too),
        cmocka_unit_test(the_place_that_shows_more_of_an_operation_is_believed),
        cmocka_unit_test(an_operation_that_is_known_is_looked_for_once),
        cmocka_unit_test(a_window_of_two_sides_is_proved_by_the_constants_that_it_has),
        cmocka_unit_test(arguments_in_another_order_are_sorted_by_what_the_call_gives),
        cmocka_unit_test(types_of_both_dialects_are_read),
        cmocka_unit_test(a_tensor_is_found_among_operands_by_its_dims),
        cmocka_unit_test(the_arguments_of_a_call_may_all_be_without_batches),
        cmocka_unit_test(operands_alone_give_no_optional_arrays),
        cmocka_unit_test(arguments_that_vmap_did_not_map_keep_their_dims),
        cmocka_unit_test(arguments_that_vmap_mapped_at_different_axes_are_proved),
        cmocka_unit_test(arrays_of_different_dtypes_are_proved_and_reported),
        cmocka_unit_test(defaults_of_a_foreign_signature_that_dims_say_are_tried),
        cmocka_unit_test(a_torn_off_part_of_an_operation_is_none_of_its_own),
        cmocka_unit_test(an_array_of_the_most_dims_may_be_batched),
        cmocka_unit_test(a_program_without_labels_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
