// What a step of a program reads once, and what is measured cold for it.
#include "fixture.h"
#include "offline/find.h"
#include "offline/forms/forms.h"

#define LABEL     "loc(\"jit(f)/ejkernel_ops#x@v0:0123456789abcdef/dot_general\")"
#define W         "tensor<64x64xbf16>"
#define X         "tensor<1x64xbf16>"
#define DOT(a, b) "stablehlo.dot_general " a ", " b ", contracting_dims = [1] x [0] : (" X ", " W ") -> " X " "

enum { W_BYTES = 64 * 64 * 2, X_BYTES = 64 * 2 };

// once: bytes of what the first find reads, of those that a step reads there alone; step: of all that the entry is given.
static void assert_bytes(const char *text, bool hlo, int64_t once, int64_t read, int64_t step)
{
    hone_graph graph;
    hone_finds finds;
    hone_allocator allocator = hone_allocator_system();
    hone_graph_init(&graph, &allocator);
    (hlo ? hone_hlo_read : hone_stablehlo_read)(hone_view_of(text), &graph);
    hone_graph_finish(&graph);
    assert_false(graph.failed);
    assert_true(hone_find_calls(&graph, &finds));
    assert_true(finds.count >= 1);
    if (finds.items[0].once_bytes != once || finds.items[0].read_bytes != read || finds.step_bytes != step)
        fail_msg(
            "%lld of %lld in %lld, not %lld of %lld in %lld:\n%s", (long long)finds.items[0].once_bytes,
            (long long)finds.items[0].read_bytes, (long long)finds.step_bytes, (long long)once, (long long)read,
            (long long)step, text);
    hone_free(&allocator, finds.items);
    hone_graph_deinit(&graph);
}

static void a_weight_that_one_call_reads_is_read_once(void **state)
{
    (void)state;
    assert_bytes(
        "func.func public @main(%x: " X ", %w: " W ", %unread: " W ") -> " X " {\n"
        "  %0 = stablehlo.sine %x : " X "\n"
        "  %1 = stablehlo.convert %w : (" W ") -> " W "\n"
        "  %2 = " DOT("%0", "%1") LABEL "\n"
                                        "  return %2 : " X "\n}\n",
        false, W_BYTES, W_BYTES + X_BYTES, W_BYTES + X_BYTES);
}

static void a_weight_that_two_read_is_not(void **state)
{
    (void)state;
    assert_bytes(
        "func.func public @main(%x: " X ", %w: " W ") -> " X " {\n"
        "  %0 = stablehlo.sine %x : " X "\n"
        "  %1 = " DOT("%0", "%w") LABEL "\n"
                                        "  %2 = " DOT("%1", "%w") "\n"
                                                                  "  return %2 : " X "\n}\n",
        false, 0, W_BYTES + X_BYTES, W_BYTES + X_BYTES);
}

static void what_the_program_makes_is_not(void **state)
{
    (void)state;
    assert_bytes(
        "func.func public @main(%x: " X ", %w: " W ") -> " X " {\n"
        "  %0 = stablehlo.sine %w : " W "\n"
        "  %1 = " DOT("%x", "%0") LABEL "\n"
                                        "  return %1 : " X "\n}\n",
        false, X_BYTES, W_BYTES + X_BYTES, W_BYTES + X_BYTES);
}

static void the_rows_of_a_table_that_are_looked_up_are_no_reading_of_it(void **state)
{
    (void)state;
    assert_bytes(
        "func.func public @main(%x: " X ", %w: " W ", %i: tensor<1xi32>) -> " X " {\n"
        "  %0 = \"stablehlo.gather\"(%w, %i) : (" W ", tensor<1xi32>) -> " X "\n"
        "  %1 = stablehlo.transpose %w, dims = [1, 0] : (" W ") -> " W "\n"
        "  %2 = " DOT("%0", "%1") LABEL "\n"
                                        "  return %2 : " X "\n}\n",
        false, W_BYTES, W_BYTES + X_BYTES, W_BYTES + 4);
}

// Two calls of one function, as nested jits lower: with a weight each, or with the same one.
static void each_call_of_a_function_reads_what_it_is_given(void **state)
{
    (void)state;
    static const struct {
        const char *second;
        int64_t once, step;
    } cases[] = {{"%v", W_BYTES, 2 * W_BYTES + X_BYTES}, {"%w", 0, W_BYTES + X_BYTES}};
    for (size_t i = 0; i < 2; i++) {
        char text[2048];
        snprintf(
            text, sizeof text,
            "func.func public @main(%%x: " X ", %%w: " W ", %%v: " W ") -> " X " {\n"
            "  %%0 = call @layer(%%x, %%w) : (" X ", " W ") -> " X "\n"
            "  %%1 = call @layer(%%0, %s) : (" X ", " W ") -> " X "\n"
            "  return %%1 : " X "\n}\n"
            "func.func private @layer(%%a: " X ", %%b: " W ") -> " X " {\n"
            "  %%c = stablehlo.sine %%a : " X "\n"
            "  %%0 = " DOT("%%c", "%%b") LABEL "\n"
                                               "  return %%0 : " X "\n}\n",
            cases[i].second);
        assert_bytes(text, false, cases[i].once, W_BYTES + X_BYTES, cases[i].step);
    }
}

// A scan over layers as JAX lowers it; `layers` arrays of weights, of which `weight` is made for a layer.
static void scan(char *text, size_t size, const char *trips, const char *layers, const char *weight)
{
    snprintf(
        text, size,
        "func.func public @main(%%x: " X ", %%w: %s) -> " X " {\n"
        "  %%c = stablehlo.constant dense<0> : tensor<i32>\n"
        "  %%0:3 = stablehlo.while(%%iterArg = %%w, %%iterArg_0 = %%c, %%iterArg_1 = %%x) : %s, tensor<i32>, " X "\n"
        "  cond {\n"
        "    %%c_2 = stablehlo.constant dense<%s> : tensor<i32>\n"
        "    %%1 = stablehlo.compare LT, %%iterArg_0, %%c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "    stablehlo.return %%1 : tensor<i1>\n"
        "  } do {\n"
        "    %s\n"
        "    %%2 = func.call @closed_call(%%iterArg_1, %%1) : (" X ", " W ") -> " X "\n"
        "    %%c_3 = stablehlo.constant dense<1> : tensor<i32>\n"
        "    %%3 = stablehlo.add %%iterArg_0, %%c_3 : tensor<i32>\n"
        "    stablehlo.return %%iterArg, %%3, %%2 : %s, tensor<i32>, " X "\n"
        "  }\n"
        "  return %%0#2 : " X "\n}\n"
        "func.func private @dynamic_index_in_dim(%%a: tensor<4x64x64xbf16>, %%i: tensor<i32>) -> " W " {\n"
        "  %%0 = stablehlo.dynamic_slice %%a, %%i, %%i, %%i, sizes = [1, 64, 64] : (tensor<4x64x64xbf16>, tensor<i32>, "
        "tensor<i32>, tensor<i32>) -> tensor<1x64x64xbf16>\n"
        "  %%1 = stablehlo.reshape %%0 : (tensor<1x64x64xbf16>) -> " W "\n"
        "  return %%1 : " W "\n}\n"
        "func.func private @closed_call(%%a: " X ", %%b: " W ") -> " X " {\n"
        "  %%c = stablehlo.sine %%a : " X "\n"
        "  %%0 = " DOT("%%c", "%%b") LABEL "\n"
                                           "  return %%0 : " X "\n}\n",
        layers, layers, trips, weight, layers);
}

static void a_scan_reads_the_weights_of_each_layer_once(void **state)
{
    (void)state;
    char text[4096];
    scan(
        text, sizeof text, "4", "tensor<4x64x64xbf16>",
        "%1 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_0) : (tensor<4x64x64xbf16>, tensor<i32>) -> " W);
    assert_bytes(text, false, W_BYTES, W_BYTES + X_BYTES, 4 * W_BYTES + X_BYTES);
}

// A product that takes its weight out of those of all layers where they lie, as a patched JAX lowers a scan.
static void a_call_that_takes_one_of_a_stack_reads_it_as_a_slice_would(void **state)
{
    (void)state;
    char text[4096];
    const char *const numbers[] = {", %iterArg_0", ""}, *const types[] = {", tensor<i32>", ""};
    for (int i = 0; i < 2; i++) { // with the number of the layer, and the same of all of them
        char call[512];
        snprintf(
            call, sizeof call,
            "%%1 = stablehlo.custom_call @hone_call(%%iterArg_1, %%iterArg%s) {hone_call = \"matmul(bf16[1,64], "
            "bf16[64,64])\"} : "
            "(" X ", tensor<4x64x64xbf16>%s) -> " W " loc(\"jit(f)/hone#matmul.v1:57a51cf74c5f0d37\")",
            numbers[i], types[i]);
        scan(text, sizeof text, "4", "tensor<4x64x64xbf16>", call);
        assert_bytes(
            text, false, i == 0 ? 4 * W_BYTES : 0, 4 * W_BYTES + X_BYTES + (i == 0 ? 4 : 0), 4 * W_BYTES + X_BYTES);
    }
}

static void a_loop_reads_what_stays_once_a_trip(void **state)
{
    (void)state;
    char text[4096];
    scan(text, sizeof text, "4", W, "%1 = stablehlo.convert %iterArg : (" W ") -> " W);
    assert_bytes(text, false, 0, W_BYTES + X_BYTES, W_BYTES + X_BYTES);
    scan(text, sizeof text, "1", W, "%1 = stablehlo.convert %iterArg : (" W ") -> " W);
    assert_bytes(text, false, W_BYTES, W_BYTES + X_BYTES, W_BYTES + X_BYTES);
}

static void hlo_shows_it_where_nothing_passes_through_a_loop(void **state)
{
    (void)state;
    assert_bytes(
        "HloModule m\n\nENTRY main.1 {\n"
        "  x = bf16[1,64]{1,0} parameter(0)\n"
        "  w = bf16[64,64]{1,0} parameter(1)\n"
        "  s = bf16[1,64]{1,0} sine(x)\n"
        "  ROOT d = bf16[1,64]{1,0} dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        "metadata={op_name=\"jit(f)/ejkernel_ops#x@v0:0123456789abcdef/dot_general\"}\n}\n",
        true, W_BYTES, W_BYTES + X_BYTES, W_BYTES + X_BYTES);
}

// A product of hone's whose weight is read once, beside another weight, which makes a step large.
static const char model[] =
    "func.func public @main(%x: " X ", %w: " W ", %v: tensor<1000x64xbf16>) -> " X " {\n"
    "  %0 = stablehlo.sine %x : " X "\n"
    "  %1 = stablehlo.custom_call @hone_call(%0, %w) {hone_call = \"matmul(bf16[1,64], bf16[64,64])\"} : (" X ", " W
    ") -> " X " loc(\"jit(f)/hone#matmul.v1:57a51cf74c5f0d37\")\n"
    "  %2 = stablehlo.sine %v : tensor<1000x64xbf16>\n"
    "  return %1 : " X "\n}\n";

static void what_the_caches_do_not_hold_until_the_next_step_is_measured_cold(void **state)
{
    (void)state;
    const int64_t step = W_BYTES + X_BYTES + 1000 * 64 * 2;
    static const struct {
        int64_t more; // of the caches than of the step
        hone_regime regime;
    } cases[] = {{-1, HONE_COLD}, {0, HONE_WARM}};
    for (size_t i = 0; i < 3; i++) {
        fixture f;
        fixture_open(&f);
        hone_error err = {0};
        f.environment.cache_bytes = i < 2 ? step + cases[i].more : 0; // 0: not known
        hone_program *program = fixture_read(&f, model);
        assert_int_equal(hone_program_step_bytes(program), step);
        assert_int_equal(hone_program_operations(program), 1);
        const hone_operation *operation = hone_program_operation(program, 0);
        assert_int_equal(operation->once_bytes, W_BYTES);
        assert_int_equal(operation->regime, i < 2 ? cases[i].regime : HONE_WARM);
        assert_int_equal(hone_offline_tune(&f.environment, program, true, &err), HONE_OK);
        assert_int_equal(strstr(f.log, " cold\n") != NULL, operation->regime == HONE_COLD);
        hone_program_release(&program);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_that_one_call_reads_is_read_once),
        cmocka_unit_test(a_weight_that_two_read_is_not),
        cmocka_unit_test(what_the_program_makes_is_not),
        cmocka_unit_test(the_rows_of_a_table_that_are_looked_up_are_no_reading_of_it),
        cmocka_unit_test(each_call_of_a_function_reads_what_it_is_given),
        cmocka_unit_test(a_scan_reads_the_weights_of_each_layer_once),
        cmocka_unit_test(a_call_that_takes_one_of_a_stack_reads_it_as_a_slice_would),
        cmocka_unit_test(a_loop_reads_what_stays_once_a_trip),
        cmocka_unit_test(hlo_shows_it_where_nothing_passes_through_a_loop),
        cmocka_unit_test(what_the_caches_do_not_hold_until_the_next_step_is_measured_cold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
