// Tuning what was found: order, failures, aliases, what is left out and what ends the batch.
#include "fixture.h"

#define KEYED(op, key) "loc(\"jit(f)/ejkernel_ops#" op "@v0:" key "/x\")"

// Three calls of mean_pooling, of which the last is heaviest, one under two labels, and one operation that hone does
// not have.
static const char program_text[] =
    "func.func public @main(%a: tensor<2x64x24xf32>, %b: tensor<2x32x24xf32>, %c: tensor<4x64x24xf32>) -> "
    "tensor<4x64x24xf32> {\n"
    "  %0 = stablehlo.sine %a : tensor<2x64x24xf32> " KEYED(
        "mean_pooling",
        "b2fadcdadf800aa8") "\n"
                            "  %1 = stablehlo.sine %b : tensor<2x32x24xf32> "
                            "loc(\"jit(f)/ejkernel_ops#mean_pooling\")\n"
                            "  %2 = stablehlo.sine %a : tensor<2x64x24xf32> " KEYED(
                                "rwkv99",
                                "2222222222222222") "\n"
                                                    "  %3 = call @work(%c) : (tensor<4x64x24xf32>) -> "
                                                    "tensor<4x64x24xf32>\n"
                                                    "  %4 = call @work(%3) : (tensor<4x64x24xf32>) -> "
                                                    "tensor<4x64x24xf32>\n"
                                                    "  return %4 : tensor<4x64x24xf32>\n"
                                                    "}\n"
                                                    "func.func private @work(%a: tensor<4x64x24xf32>) -> "
                                                    "tensor<4x64x24xf32> {\n"
                                                    "  %0 = stablehlo.sine %a : tensor<4x64x24xf32> " KEYED(
                                                        "mean_pooling",
                                                        "c2d934db6c1d7ca6") "\n"
                                                                            "  return %0 : tensor<4x64x24xf32>\n"
                                                                            "}\n";

static hone_program *read_program(fixture *f)
{
    return fixture_read(f, program_text);
}

static void assert_log(const fixture *f, const char *expected)
{
    if (strcmp(f->log, expected) != 0) fail_msg("got:\n%s\nexpected:\n%s", f->log, expected);
}

static void only_what_is_proved_is_tuned_unless_asked(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    hone_program *program = read_program(&f);
    assert_int_equal(hone_program_operations(program), 4);
    assert_int_equal(hone_offline_tune(&f.environment, program, false, &err), HONE_OK);
    assert_non_null(strstr(
        f.log, "tune mean_pooling(f32[2,64,24])\n"
               "alias ejkernel mean_pooling@v0 b2fadcdadf800aa8 with its text -> mean_pooling@v1 "));
    assert_null(strstr(f.log, "tune mean_pooling(f32[2,32,24])"));
    assert_non_null(strstr(f.log, "failed mean_pooling(f32[2,32,24]) "));
    assert_non_null(strstr(f.log, "operands alone"));
    assert_non_null(strstr(f.log, "failed - 2222222222222222: hone has no algorithm named 'rwkv99'\n"));
    f.log[0] = '\0';
    assert_int_equal(hone_offline_tune(&f.environment, program, true, &err), HONE_OK);
    assert_non_null(strstr(f.log, "tune mean_pooling(f32[2,32,24])\n"));
    assert_null(strstr(strstr(f.log, "tune mean_pooling(f32[2,32,24])\n") + 32, "alias")); // it has no key
    hone_program_release(&program);
    fixture_close(&f);
}

static void the_heaviest_call_is_tuned_first(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    hone_program *program = read_program(&f);
    assert_int_equal(hone_offline_tune(&f.environment, program, true, &err), HONE_OK);
    assert_memory_equal(f.log, "tune mean_pooling(f32[4,64,24])\n", 32); // twice; the others once
    assert_true(
        strstr(f.log, "f32[2,64,24]") < strstr(f.log, "tune mean_pooling(f32[2,32,24])")); // in the program's order
    hone_program_release(&program);
    fixture_close(&f);
}

static void one_that_fails_ends_nothing(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    hone_program *program = read_program(&f);
    f.fail = "[4,64,24]";
    f.fail_status = HONE_KERNEL_FAILED;
    assert_int_equal(hone_offline_tune(&f.environment, program, false, &err), HONE_OK);
    const char *failed = strstr(f.log, "failed mean_pooling(f32[4,64,24]) ");
    assert_non_null(failed);
    assert_non_null(strstr(failed, ": nobody won\n"));
    assert_non_null(strstr(f.log, "tune mean_pooling(f32[2,64,24])\nalias"));
    hone_program_release(&program);
    fixture_close(&f);
}

static void cancelling_ends_the_batch(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    hone_program *program = read_program(&f);
    f.fail = "[4,64,24]";
    f.fail_status = HONE_CANCELLED;
    assert_int_equal(hone_offline_tune(&f.environment, program, true, &err), HONE_CANCELLED);
    assert_log(&f, "tune mean_pooling(f32[4,64,24])\n");
    assert_int_equal(err.status, HONE_CANCELLED);
    hone_program_release(&program);
    fixture_close(&f);
}

static void two_labels_of_one_call_cost_one_contest(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_error err = {0};
    // Two payloads that differ in the platform, which says nothing here: two keys, one call.
    static const char text[] =
        "HloModule m\nENTRY main {\n  a = f32[2,64,24]{2,1,0} parameter(0)\n"
        "  b = f32[2,64,24]{2,1,0} sine(a), "
        "metadata={op_name=\"ejkernel_ops:{\\\"args\\\":[],\\\"cfg\\\":0,\\\"kwargs\\\":{\\\"chunk_size\\\":32,"
        "\\\"cu_seqlens\\\":null,\\\"platform\\\":null,\\\"x\\\":{\\\"dtype\\\":\\\"float32\\\",\\\"shape\\\":[2,64,24]"
        "}},"
        "\\\"op_id\\\":\\\"mean_pooling@v0\\\"}/x\"}\n"
        "  ROOT c = f32[2,64,24]{2,1,0} sine(b), "
        "metadata={op_name=\"ejkernel_ops:{\\\"args\\\":[],\\\"cfg\\\":0,\\\"kwargs\\\":{\\\"chunk_size\\\":32,"
        "\\\"cu_seqlens\\\":null,\\\"platform\\\":\\\"xla\\\",\\\"x\\\":{\\\"dtype\\\":\\\"float32\\\",\\\"shape\\\":["
        "2,64,24]}},"
        "\\\"op_id\\\":\\\"mean_pooling@v0\\\"}/x\"}\n}\n";
    hone_program *program = fixture_read(&f, text);
    assert_int_equal(hone_program_operations(program), 2);
    assert_int_equal(hone_offline_tune(&f.environment, program, false, &err), HONE_OK);
    const char *tuned = strstr(f.log, "tune mean_pooling(f32[2,64,24])\n"), *alias = strstr(f.log, "alias ejkernel");
    assert_non_null(tuned);
    assert_null(strstr(tuned + 1, "tune "));
    assert_non_null(alias);
    assert_non_null(strstr(alias + 1, "alias ejkernel"));
    hone_program_release(&program);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_proved_is_tuned_unless_asked),
        cmocka_unit_test(the_heaviest_call_is_tuned_first),
        cmocka_unit_test(one_that_fails_ends_nothing),
        cmocka_unit_test(cancelling_ends_the_batch),
        cmocka_unit_test(two_labels_of_one_call_cost_one_contest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
