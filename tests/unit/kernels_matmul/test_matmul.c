// Every kernel of matmul that is hone's own, at odd shapes and strides, with guards around c and NaN wherever nothing
// may be read.
#include "harness.h"
#include "os/tiles.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// ThreadSanitizer checks how threads share a product. That follows from its shape and its layout: not from the activation,
// and it is the same for each dtype of a kernel. There each is run once, where other builds run all pairs of them.
#if defined(__SANITIZE_THREAD__)
static const bool only_sharing = true;
#else
static const bool only_sharing = false;
#endif

static bool own(const hone_kernel *kernel)
{
    return kernel->release == NULL; // a library's product is prepared and released
}

static void every_kernel_multiplies_f32(void **state)
{
    run_shapes(*state, own, HONE_F32, false);
}

static void every_kernel_multiplies_f32_with_b_transposed(void **state)
{
    run_shapes(*state, own, HONE_F32, true);
}

static void every_kernel_multiplies_bf16(void **state)
{
    run_shapes(*state, own, HONE_BF16, false);
}

static void every_kernel_multiplies_bf16_with_b_transposed(void **state)
{
    run_shapes(*state, own, HONE_BF16, true);
}

static void every_kernel_multiplies_f16(void **state)
{
    run_shapes(*state, own, HONE_F16, false);
}

static void every_kernel_multiplies_f16_with_b_transposed(void **state)
{
    run_shapes(*state, own, HONE_F16, true);
}

static void every_kernel_multiplies_f64(void **state)
{
    run_shapes(*state, own, HONE_F64, false);
    run_shapes(*state, own, HONE_F64, true);
    if (!only_sharing) run_batches(*state, own, HONE_F64, false);
}

static void every_kernel_multiplies_batches(void **state)
{
    for (int transpose_b = 0; transpose_b < 2; transpose_b++) {
        if (!only_sharing || transpose_b == 0) run_batches(*state, own, HONE_F32, transpose_b == 1);
        if (!only_sharing || transpose_b == 1) run_batches(*state, own, HONE_BF16, transpose_b == 1);
    }
    if (!only_sharing) run_batches(*state, own, HONE_F16, true);
}

static const product_epilogue nothing_more = {false, false, NULL};

// A NaN, or an infinity, of one product stays there.
static void what_is_not_finite_stays_in_its_product(void **state)
{
    const test_machine *machine = *state;
    const product_case is = {5, 40, 33, HONE_F32, false, 0};
    test_product product;
    product_init_batch(&product, machine->signature, is, nothing_more, (product_batch){1, {4, 0}, BATCH_FOLLOWS});
    float *a = product.tensors[0].data, *b = product.tensors[1].data, *c = product.tensors[2].data;
    a[(1 * 5 + 2) * 33 + 7] = NAN;
    b[(2 * 33 + 32) * 40 + 39] = INFINITY;
    for (size_t j = 0; j < hone_matmul_table.count; j++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[j];
        if (!own(kernel) || reason_against(machine, kernel, product.call) != NULL) continue;
        assert_true(run_once(machine, kernel, &product));
        for (int64_t at = 0; at < 4 * 5 * 40; at++) {
            const int64_t index = at / 200, row = at / 40 % 5, column = at % 40;
            if (index == 1 && row == 2)
                assert_true(isnan(c[at]));
            else if (index == 2 && column == 39)
                assert_true(isinf(c[at]));
            else
                assert_true(isfinite(c[at]));
        }
    }
    product_deinit(&product);
}

// Of 64 products each of 8 threads has some: what runs one product's threads at a time asks for more pieces.
static void many_small_products_are_shared_out_whole(void **state)
{
    const test_machine *machine = *state;
    const product_case is = {64, 64, 64, HONE_F32, false, 0};
    const hone_kernel *kernel = hone_matmul_table.kernels;
    test_product product;
    product_init_batch(&product, machine->signature, is, nothing_more, (product_batch){1, {64, 0}, BATCH_FOLLOWS});
    while (strcmp(kernel->name, "portable") != 0)
        kernel++;
    parallel_calls = parallel_pieces = 0;
    assert_true(run_once(machine, kernel, &product));
    assert_int_equal(parallel_calls, 1);
    assert_int_equal(parallel_pieces, machine->device.threads);
    product_deinit(&product);
}

static void a_product_over_nothing_is_zero(void **state)
{
    const test_machine *machine = *state;
    static const product_case cases[] = {
        {3, 5, 0, HONE_F32, false, 2}, {3, 5, 0, HONE_BF16, true, 0}, {0, 5, 4, HONE_F32, false, 0},
        {3, 0, 4, HONE_F16, true, 1},  {0, 0, 0, HONE_F32, true, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_kernels(machine, own, cases[i]);
}

// Rows for the kernels of a few rows, for whole tiles and for those that are cut; a k that is one block and several.
static void every_kernel_finishes_its_sums(void **state)
{
    static const int64_t shapes[][3] = {{1, 70, 33}, {3, 200, 40}, {6, 37, 8}, {19, 51, 17}, {70, 100, 1100}};
    static const char *const activations[] = {NULL, "relu", "gelu_tanh", "gelu_erf", "silu"};
    static const hone_dtype_id dtypes[] = {HONE_F32, HONE_BF16, HONE_F16, HONE_F64};
    const test_machine *machine = *state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++)
            for (size_t k = 0; k < sizeof activations / sizeof *activations; k++)
                for (int arrays = 0; arrays < 4; arrays++) {
                    // Of the long sums each activation once, and all arrays: sums are finished alike behind them.
                    const bool is_long = shapes[i][2] > 1000;
                    if ((only_sharing || is_long) && (size_t)arrays != k % 4) continue;
                    if (only_sharing && is_long && k > 0) continue;
                    product_case is = {shapes[i][0], shapes[i][1], shapes[i][2], dtypes[j], (i + k) % 2 == 0, arrays};
                    product_epilogue epilogue = {arrays % 2 == 1, arrays / 2 == 1, activations[k]};
                    assert_true(run_finished(machine, own, is, epilogue) > 1);
                }
}

static void a_product_over_nothing_is_finished(void **state)
{
    const test_machine *machine = *state;
    static const product_epilogue whole = {true, true, "gelu_erf"};
    assert_true(run_finished(machine, own, (product_case){3, 5, 0, HONE_F32, false, 2}, whole) > 1);
    assert_true(run_finished(machine, own, (product_case){2, 70, 0, HONE_BF16, true, 1}, whole) > 1);
    assert_true(run_finished(machine, own, (product_case){0, 5, 4, HONE_F16, true, 0}, whole) > 1);
}

static void an_activation_that_nobody_knows_is_refused_by_all(void **state)
{
    const test_machine *machine = *state;
    test_product product;
    hone_call *call = NULL;
    product_init(&product, machine->signature, (product_case){4, 4, 4, HONE_F32, false, 0});
    product.args[5] = hone_of_string("gelu");
    assert_int_equal(
        hone_call_bind(hone_allocator_system(), machine->signature, product.args, 7, false, &call, NULL), HONE_OK);
    for (size_t j = 0; j < hone_matmul_table.count; j++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[j];
        if (kernel->platform != HONE_NATIVE || (kernel->needs & machine->device.features) != kernel->needs) continue;
        assert_string_equal(
            reason_against(machine, kernel, call),
            "activation is 'gelu', expected relu, gelu_tanh, gelu_erf or silu, or none of them");
    }
    hone_call_release(&call);
    product_deinit(&product);
}

static void a_bias_with_gaps_is_left_to_the_reference(void **state)
{
    const test_machine *machine = *state;
    test_product product;
    hone_call *call = NULL;
    product_init_finished(
        &product, machine->signature, (product_case){4, 4, 4, HONE_F32, false, 0},
        (product_epilogue){true, false, NULL});
    product.strides[3][1] = 2;
    assert_int_equal(
        hone_call_bind(hone_allocator_system(), machine->signature, product.args, 7, false, &call, NULL), HONE_OK);
    for (size_t j = 0; j < hone_matmul_table.count; j++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[j];
        const char *reason = reason_against(machine, kernel, call);
        if (kernel->is_reference)
            assert_null(reason);
        else if (reason != NULL && strcmp(reason, "this CPU cannot") != 0)
            assert_string_equal(reason, "bias has stride 2; this kernel reads elements that lie side by side");
        else
            assert_non_null(reason);
    }
    hone_call_release(&call);
    product.strides[3][1] = 1;
    product_deinit(&product);
}

// Freivalds' check is of sums alone.
static void only_a_product_without_an_epilogue_is_checked_as_one(void **state)
{
    static const product_epilogue epilogues[] = {{true, false, NULL}, {false, true, NULL}, {false, false, "relu"}};
    const test_machine *machine = *state;
    const product_case is = {4, 4, 4, HONE_F32, false, 0};
    test_product product;
    hone_product as;
    product_init(&product, machine->signature, is);
    assert_true(hone_matmul_table.algorithm->product(product.call, &as));
    product_deinit(&product);
    for (size_t i = 0; i < sizeof epilogues / sizeof *epilogues; i++) {
        product_init_finished(&product, machine->signature, is, epilogues[i]);
        assert_false(hone_matmul_table.algorithm->product(product.call, &as));
        product_deinit(&product);
    }
}

static void a_left_out_transpose_b_is_false(void **state)
{
    const test_machine *machine = *state;
    test_product product;
    product_init(&product, machine->signature, (product_case){4, 4, 4, HONE_F32, false, 0});
    product.args[3] = (hone_value){.tag = -1, .as.pointer = &product}; // must not be looked at
    for (size_t j = 0; j < hone_matmul_table.count; j++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[j];
        if (own(kernel) && reason_against(machine, kernel, product.call) == NULL)
            run_kernel(machine, kernel, &product, j);
    }
    product_deinit(&product);
}

static void columns_that_do_not_lie_together_are_left_to_the_reference(void **state)
{
    const test_machine *machine = *state;
    test_product product;
    product_init(&product, machine->signature, (product_case){6, 6, 6, HONE_F32, false, 0});
    product.strides[0][0] = 1;
    product.strides[0][1] = 6; // a transposed: every sum differs
    hone_call *call = NULL;
    assert_int_equal(
        hone_call_bind(hone_allocator_system(), machine->signature, product.args, 4, false, &call, NULL), HONE_OK);
    for (size_t j = 0; j < hone_matmul_table.count; j++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[j];
        const char *reason = reason_against(machine, kernel, call);
        if (kernel->is_reference)
            assert_null(reason);
        else if (reason != NULL && strcmp(reason, "this CPU cannot") != 0)
            assert_non_null(strstr(reason, "a has strides [1, 6]"));
    }
    hone_call_release(&call);
    product.strides[0][0] = 6;
    product.strides[0][1] = 1;
    product_deinit(&product);
}

static void the_cost_is_two_operations_a_term_and_each_byte_once(void **state)
{
    const test_machine *machine = *state;
    test_product product;
    hone_cost cost;
    product_init(&product, machine->signature, (product_case){3, 5, 7, HONE_BF16, true, 0});
    hone_matmul_table.algorithm->model(product.call, &cost);
    assert_true(cost.operations == 2.0 * 3 * 5 * 7);
    assert_true(cost.bytes == 2.0 * (3 * 7 + 5 * 7 + 3 * 5));
    product_deinit(&product);
    product_init_finished(
        &product, machine->signature, (product_case){3, 5, 7, HONE_BF16, true, 0},
        (product_epilogue){true, true, "silu"});
    hone_matmul_table.algorithm->model(product.call, &cost);
    assert_true(cost.operations == 2.0 * 3 * 5 * 7 + 3.0 * 3 * 5);
    assert_true(cost.bytes == 2.0 * (3 * 7 + 5 * 7 + 5 + 2 * 3 * 5));
    product_deinit(&product);
}

#if defined(__x86_64__)
// The registers that are in use (Intel's manual, volume 1, chapter 13: XINUSE): what the system saves with a thread.
static bool tiles_are_in_use(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low >> 18 & 1) != 0;
}

// Of several tiles, in the middle and at the ends, and a k that is cut into blocks.
static void a_thread_returns_without_tiles(void **state)
{
    const test_machine *machine = *state;
    if ((machine->cpu.features & HONE_CPU_AMX_BF16) == 0) {
        print_message("this processor has no tiles to give back\n");
        return;
    }
    test_product product;
    product_init(&product, machine->signature, (product_case){70, 90, 1100, HONE_BF16, false, 0});
    int ran = 0;
    for (size_t i = 0; i < hone_matmul_table.count; i++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[i];
        if (strcmp(kernel->name, "amx_bf16") != 0 || reason_against(machine, kernel, product.call) != NULL) continue;
        ran += run_kernel(machine, kernel, &product, 7);
        assert_false(tiles_are_in_use());
    }
    product_deinit(&product);
    if (ran == 0) print_message("the compiler, or the signal stack of a sanitizer, leaves no kernel with tiles\n");
}
#else
static void a_thread_returns_without_tiles(void **state)
{
    (void)state;
    print_message("this processor has no tiles to give back\n");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_multiplies_f32),
        cmocka_unit_test(every_kernel_multiplies_f32_with_b_transposed),
        cmocka_unit_test(every_kernel_multiplies_bf16),
        cmocka_unit_test(every_kernel_multiplies_bf16_with_b_transposed),
        cmocka_unit_test(every_kernel_multiplies_f16),
        cmocka_unit_test(every_kernel_multiplies_f16_with_b_transposed),
        cmocka_unit_test(every_kernel_multiplies_f64),
        cmocka_unit_test(every_kernel_multiplies_batches),
        cmocka_unit_test(what_is_not_finite_stays_in_its_product),
        cmocka_unit_test(many_small_products_are_shared_out_whole),
        cmocka_unit_test(a_product_over_nothing_is_zero),
        cmocka_unit_test(every_kernel_finishes_its_sums),
        cmocka_unit_test(a_product_over_nothing_is_finished),
        cmocka_unit_test(an_activation_that_nobody_knows_is_refused_by_all),
        cmocka_unit_test(a_bias_with_gaps_is_left_to_the_reference),
        cmocka_unit_test(only_a_product_without_an_epilogue_is_checked_as_one),
        cmocka_unit_test(a_left_out_transpose_b_is_false),
        cmocka_unit_test(columns_that_do_not_lie_together_are_left_to_the_reference),
        cmocka_unit_test(the_cost_is_two_operations_a_term_and_each_byte_once),
        cmocka_unit_test(a_thread_returns_without_tiles),
    };
    return cmocka_run_group_tests(tests, machine_set_up, machine_tear_down);
}
