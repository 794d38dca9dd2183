// Hostile programs: bounded time, bounded memory, no deep stack; and memory that runs out at every allocation in turn.
#include "failing_allocator.h"
#include "fixture.h"

#include <stdlib.h>
#include <time.h>

enum { TIMES = 10000 };

typedef struct writer {
    char *text;
    size_t size;
} writer;

static void repeat(writer *w, const char *piece, size_t count)
{
    size_t size = strlen(piece);
    w->text = realloc(w->text, w->size + size * count + 1);
    assert_non_null(w->text);
    for (size_t i = 0; i < count; i++)
        memcpy(w->text + w->size + i * size, piece, size);
    w->size += size * count;
    w->text[w->size] = '\0';
}

// Reads what must be read, or refused, within minutes of the processor, which work that grows with the square does not
// keep on any machine.
static void assert_bounded(fixture *f, writer *w)
{
    hone_error err = {0};
    hone_program *program = NULL;
    clock_t start = clock();
    hone_status status = hone_offline_read(&f->environment, "hostile", w->text, w->size, &program, &err);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_true(status == HONE_OK || status == HONE_CORRUPT || status == HONE_UNSUPPORTED);
    if (seconds > 300) fail_msg("%.1f s for %zu bytes", seconds, w->size);
    hone_program_release(&program);
    free(w->text);
    *w = (writer){0};
}

static void begin_function(writer *w)
{
    repeat(w, "module @m {\nfunc.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n", 1);
}

static const char *const mlir_pieces[] = {
    "%0 = \"stablehlo.case\"(%a) ({\n", // regions without end
    "module {\n",
    "}\n",
    "%0:9999999 = stablehlo.while(%i = %a : tensor<4xf32>\n", // brackets that do not close
    "func.func @f(%a: tensor<4xf32>, (((((\n",
    "%0 = stablehlo.sine %a : tensor<4xf32> loc(callsite(callsite(callsite(\"a\" at \"b\") at #loc1) at #loc2))\n",
    "%0 = stablehlo.sine %a : tensor<4xf32> loc(\"jit(f)/ejkernel_ops#x@v0:0123456789abcdef/x\")\n",
    "%0 = stablehlo.sine %0 : tensor<4xf32> loc(fused[#loc1, #loc1, #loc1, #loc1, #loc1, #loc1, #loc1, #loc1])\n",
    "%0 = stablehlo.constant dense<\"0x",
    "#loc1 = loc(\"ejkernel_ops:{\\22args\\22:[",
    "ejkernel_ops#",
    "%0, %1, %2, %3, %4, %5 = \"a.b\"(%0, %1, %2, %3, %4, %5, %6) : (tensor<1xf32>) -> tensor<1xf32>\n",
    "cond {\n",
    "^bb0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>):\n",
    "call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>\n",
    "\"",
    "<<<<<<<<<< : : : : ->",
};

static void any_piece_may_come_again_and_again(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    writer w = {0};
    for (size_t i = 0; i < sizeof mlir_pieces / sizeof mlir_pieces[0]; i++) {
        begin_function(&w);
        repeat(&w, mlir_pieces[i], TIMES);
        assert_bounded(&f, &w);
    }
    fixture_close(&f);
}

static const char *const hlo_pieces[] = {
    "c {\n",
    "  a = f32[4]{0} call(a), to_apply=c, metadata={op_name=\"jit(f)/ejkernel_ops#x/y\"}\n",
    "  a = f32[4]{0} fusion(a), kind=kLoop, calls=c, metadata={op_name=\"jit(f)/ejkernel_ops#x/y\"}\n",
    "  a = ((((((((((\n",
    "  a = (f32[4]{0}) tuple(a)\n",
    "  a = f32[4]{0} get-tuple-element(a), index=0\n",
    "  a = f32[4]{0} parameter(0)\n}\nc {\n",
    "  ROOT a = f32[4]{0} sine(a), metadata={op_name=\"vmap(vmap(vmap(transpose(jvp(ejkernel_ops#x\"}\n",
    "  b = f32[8]{0} sine(x), metadata={op_name=\"jit(f)/ejkernel_ops#x\"}\n",
    ("  w = (s32[]) while(w), condition=c, body=c, "
     "backend_config={\"known_trip_count\":{\"n\":\"9223372036854775807\"}}\n"),
    "  a = f32[4]{0} sine(a), metadata={op_name=\"ejkernel_ops:{\\\"op_id\\\":\\\"x",
    "  a = f32[4]{0} sine(/*index=5*/a, {{{{{ \n",
};

static void the_same_for_hlo(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    writer w = {0};
    for (int optimised = 0; optimised < 2; optimised++) {
        for (size_t i = 0; i < sizeof hlo_pieces / sizeof hlo_pieces[0]; i++) {
            repeat(&w, optimised ? "HloModule m, is_scheduled=true\nc {\n" : "HloModule m\nc {\n", 1);
            repeat(&w, hlo_pieces[i], TIMES);
            assert_bounded(&f, &w);
        }
    }
    fixture_close(&f);
}

static void a_path_may_be_nothing_but_labels(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    writer w = {0};
    begin_function(&w);
    repeat(&w, "%0 = stablehlo.sine %a : tensor<4xf32> loc(\"", 1);
    repeat(&w, "vmap(ejkernel_ops#x/", 200000);
    repeat(&w, "\")\n}\n}\n", 1);
    assert_bounded(&f, &w);
    fixture_close(&f);
}

static void false_keys_exhaust_only_the_provers_budget(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    writer w = {0};
    begin_function(&w);
    repeat(&w, "%q = stablehlo.sine %z : tensor<1x8x2x16xf32> loc(\"jit(f)/sin\")\n", 1);
    for (unsigned i = 0; i < 300; i++) {
        char line[200];
        snprintf(
            line, sizeof line,
            "%%0 = call @g(%%q, %%q, %%q) : (tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> "
            "tensor<1x8x2x16xf32> loc(\"ejkernel_ops#flash_attention@v2:%016x/y\")\n",
            i);
        repeat(&w, line, 1);
    }
    assert_bounded(&f, &w);
    fixture_close(&f);
}

static void aliases_may_go_in_circles(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    writer w = {0};
    begin_function(&w);
    repeat(
        &w,
        "%0 = stablehlo.sine %a : tensor<4xf32> loc(#loc1)\n}\n}\n#loc1 = loc(\"a\"(#loc2))\n#loc2 = "
        "loc(\"b\"(#loc1))\n",
        1);
    assert_bounded(&f, &w);
    fixture_close(&f);
}

static void many_different_labels_end_at_a_limit(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    writer w = {0};
    begin_function(&w);
    for (unsigned i = 0; i < 30000; i++) {
        char line[160];
        snprintf(line, sizeof line, "%%0 = stablehlo.sine %%a : tensor<4xf32> loc(\"ejkernel_ops#x@v0:%016x/y\")\n", i);
        repeat(&w, line, 1);
    }
    repeat(&w, "}\n}\n", 1);
    hone_error err = {0};
    hone_program *program = NULL;
    assert_int_equal(hone_offline_read(&f.environment, "m", w.text, w.size, &program, &err), HONE_OK);
    assert_int_equal(hone_program_operations(program), 20000);
    assert_non_null(strstr(hone_program_note(program), "more operations"));
    hone_program_release(&program);
    free(w.text);
    fixture_close(&f);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const texts[] = {fixture_mlir, fixture_hlo};
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < 2; i++) {
        hone_status status = HONE_OUT_OF_MEMORY;
        for (long long left = 0; status != HONE_OK; left++) {
            failing_allocator failing;
            hone_offline_environment environment = f.environment;
            environment.allocator = failing_allocator_of(&failing, left);
            hone_error err = {0};
            hone_program *program = NULL;
            status = hone_offline_read(&environment, "m", texts[i], strlen(texts[i]), &program, &err);
            if (status != HONE_OK) {
                assert_int_equal(status, HONE_OUT_OF_MEMORY);
                assert_null(program);
            } else {
                assert_int_equal(hone_program_operations(program), 1 + (i == 0));
                assert_int_equal(hone_offline_tune(&environment, program, true, &err), HONE_OUT_OF_MEMORY);
                atomic_store(&failing.left, -1);
                assert_int_equal(hone_offline_tune(&environment, program, true, &err), HONE_OK);
            }
            hone_program_release(&program);
            assert_int_equal(atomic_load(&failing.live), 0);
            assert_true(left < 100000);
        }
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_piece_may_come_again_and_again),
        cmocka_unit_test(the_same_for_hlo),
        cmocka_unit_test(a_path_may_be_nothing_but_labels),
        cmocka_unit_test(false_keys_exhaust_only_the_provers_budget),
        cmocka_unit_test(aliases_may_go_in_circles),
        cmocka_unit_test(many_different_labels_end_at_a_limit),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
