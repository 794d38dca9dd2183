// What an operation, its kernels, regimes and devices say of themselves.
#include "fixture.h"

static void a_kernel_tells_its_space_its_default_and_whether_it_can_run(void **state)
{
    fixture *f = *state;
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0, devices = 0;
    hone_config config;
    hone_call *call = describe_scale(f, 2, 2);
    const hone_device_info *cpu = hone_runtime_devices(f->rt, &devices)[0];
    assert_int_equal(hone_registry_kernels(f->rt, "SCALE@v1", &kernels, &count, &f->err), HONE_OK);
    assert_int_equal(count, KERNELS);
    assert_string_equal(hone_kernel_of(kernels[0])->name, "fast");
    assert_int_equal(hone_space_parameters(hone_kernel_space(kernels[0])), 2);
    assert_string_equal(hone_space_value_json(hone_kernel_space(kernels[0]), 0, 2), "4");
    assert_string_equal(hone_space_value_json(hone_kernel_space(kernels[0]), 1, 1), "\"col\"");
    assert_int_equal(hone_space_parameters(hone_kernel_space(kernels[1])), 0);
    assert_int_equal(hone_kernel_default(kernels[0], call, cpu, &config, &f->err), HONE_OK);
    assert_int_equal(config.values[0], 1);
    assert_int_equal(hone_kernel_check(kernels[0], call, cpu, &f->err), HONE_OK);
    assert_int_equal(hone_kernel_check(kernels[0], NULL, NULL, &f->err), HONE_OK);
    hone_kernels_release(&kernels);
    assert_string_equal(hone_op_name(f->op), "scale");
    assert_ptr_equal(hone_op_algorithm(f->op)->reference, scale_reference);
    hone_call_release(&call);
}

static void a_kernel_of_a_platform_that_is_not_here_says_so(void **state)
{
    fixture *f = *state;
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    const hone_kernel elsewhere = {HONE_KERNEL,           .algorithm = "scale", .name = "elsewhere",
                                   .platform = HONE_NULL, .backend = HONE_CPU,  .run = scale_run,
                                   .priority = 90};
    assert_int_equal(hone_register_kernels(f->rt, &elsewhere, 1, &f->err), HONE_OK);
    assert_int_equal(hone_registry_kernels(f->rt, "scale", &kernels, &count, &f->err), HONE_OK);
    assert_string_equal(hone_kernel_of(kernels[0])->name, "elsewhere");
    assert_int_equal(hone_kernel_check(kernels[0], NULL, NULL, &f->err), HONE_UNAVAILABLE);
    hone_kernels_release(&kernels);
}

static void regimes_and_devices_have_names(void **state)
{
    hone_regime regime = HONE_WARM;
    hone_error err;
    char text[32];
    (void)state;
    for (int i = 0; i < HONE_REGIME_COUNT; i++) {
        assert_int_equal(hone_regime_parse(hone_regime_name((hone_regime)i), &regime, &err), HONE_OK);
        assert_int_equal(regime, i);
        assert_int_equal(hone_regime_is_stable(hone_regime_with(regime, true)), true);
        assert_int_equal(hone_regime_is_stable(hone_regime_with(regime, false)), false);
    }
    assert_int_equal(hone_regime_parse("tepid", &regime, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "graph"));
    assert_int_equal(hone_device_text((hone_device){HONE_DEVICE_CUDA, 1}, text, sizeof text), 6);
    assert_string_equal(text, "cuda:1");
    assert_int_equal(hone_device_text((hone_device){99, 1}, text, sizeof text), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_kernel_tells_its_space_its_default_and_whether_it_can_run, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_kernel_of_a_platform_that_is_not_here_says_so, setup_runtime, teardown_runtime),
        cmocka_unit_test(regimes_and_devices_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
