// Other libraries' products as kernels of matmul. Apart from the other kernels, since a leak checker cannot look
// through the threads that these libraries start.
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool rival(const hone_kernel *kernel)
{
    return kernel->release != NULL;
}

static void every_library_multiplies_f32(void **state)
{
    run_shapes(*state, rival, HONE_F32, false);
    run_shapes(*state, rival, HONE_F32, true);
}

static void every_library_multiplies_bf16(void **state)
{
    run_shapes(*state, rival, HONE_BF16, false);
    run_shapes(*state, rival, HONE_BF16, true);
}

static void every_library_leaves_what_it_cannot_to_others(void **state)
{
    run_shapes(*state, rival, HONE_F16, false);
    run_kernels(*state, rival, (product_case){3, 5, 0, HONE_F32, false, 0});
    run_kernels(*state, rival, (product_case){0, 5, 3, HONE_F32, true, 0});
}

static void a_library_that_says_it_can_does(void **state)
{
    static const char *const names[] = {"openblas", "onednn", "libxsmm"};
    const test_machine *machine = *state;
    test_product product;
    product_init(&product, machine->signature, (product_case){33, 64, 48, HONE_F32, false, 3});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const hone_kernel *kernel = hone_matmul_table.kernels;
        while (strcmp(kernel->name, names[i]) != 0)
            kernel++;
        const char *reason = reason_against(machine, kernel, product.call);
        if (reason != NULL)
            print_message("%s: %s\n", names[i], reason);
        else if (run_kernel(machine, kernel, &product, i) == 0)
            fail_msg("%s supports the product and cannot prepare it", names[i]);
    }
    product_deinit(&product);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_library_multiplies_f32),
        cmocka_unit_test(every_library_multiplies_bf16),
        cmocka_unit_test(every_library_leaves_what_it_cannot_to_others),
        cmocka_unit_test(a_library_that_says_it_can_does),
    };
    return cmocka_run_group_tests(tests, machine_set_up, machine_tear_down);
}
