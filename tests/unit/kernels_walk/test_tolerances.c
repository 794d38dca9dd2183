// How wrong a kernel of hone may be, algorithm by algorithm. A rule that is looser by mistake lets wrong kernels win,
// and no test that measures by the rule itself sees it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "platforms/platform.h"

static const struct {
    const char *algorithm;
    hone_tolerance tolerance;
} rules[] = {
    {"attention", {.absolute = 2e-5, .scale = 1}},
    {"dot_product_attention", {.absolute = 2e-5, .scale = 1}},
    {"biased_attention", {.absolute = 2e-5, .scale = 1}},
    {"flash_attention", {.absolute = 2e-5, .scale = 1}},
    {"flash_attention_vjp", {.absolute = 2e-5, .relative = 1e-5, .scale = 4}},
    {"scaled_dot_product_attention", {.absolute = 2e-5, .scale = 1}},
    {"rwkv4", {.absolute = 2e-5, .scale = 1}},
    {"mean_pooling", {.absolute = 2e-6, .scale = 1}},
    {"rms_norm", {.relative = 1e-5, .scale = 1}},
    {"add_rms_norm", {.relative = 1e-5, .scale = 1}},
    {"layer_norm", {.relative = 1e-5, .scale = 1}},
    {"rope", {.relative = 1e-5, .scale = 1}},
    {"rope_vjp", {.relative = 1e-5, .scale = 1}},
    {"softmax", {.relative = 1e-5, .scale = 1}},
    {"softmax_vjp", {.relative = 1e-5, .scale = 1}},
    {"rms_norm_vjp", {.relative = 1e-5, .scale = 4}},
    {"add_rms_norm_vjp", {.relative = 1e-5, .scale = 4}},
    {"layer_norm_vjp", {.relative = 1e-5, .scale = 4}},
    {"silu_mul", {.relative = 1e-5, .scale = 1}},
    {"silu_mul_vjp", {.relative = 1e-5, .scale = 1}},
    {"reduction", {.relative = 1e-5, .scale = 256}},
    {"stencil", {.relative = 1e-5, .scale = 16}},
    {"matmul", {.scale = 0}}, // that of its dtype
};

static void every_algorithm_has_the_tolerance_that_was_decided(void **state)
{
    (void)state;
    const hone_allocator allocator = hone_allocator_system();
    hone_registry *registry = NULL;
    hone_error err = {0};
    assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &registry, &err), HONE_OK);
    assert_int_equal(hone_kernels_register(registry, &err), HONE_OK);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const hone_algorithm_entry *entry = hone_registry_find(registry, rules[i].algorithm, NULL);
        if (entry == NULL) fail_msg("no algorithm %s", rules[i].algorithm);
        const hone_tolerance *has = &entry->algorithm.tolerance, *wants = &rules[i].tolerance;
        if (has->absolute != wants->absolute || has->relative != wants->relative || has->scale != wants->scale)
            fail_msg(
                "%s: absolute %g, relative %g, scale %g", rules[i].algorithm, has->absolute, has->relative, has->scale);
    }
    hone_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_algorithm_has_the_tolerance_that_was_decided)};
    return cmocka_run_group_tests_name("kernels_tolerances", tests, NULL, NULL);
}
