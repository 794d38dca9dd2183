// Every kernel of matmul, at configs from its space, against a sum in double, at odd shapes and strides, with guards
// around c and NaN wherever nothing may be read.
#include "kernels/tables.h"
#include "os/os.h"
#include "product.h"

#include "hone/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIGS = 4, MOST_THREADS = 8 };

static const int64_t shapes[][3] = {
    {1, 1, 1},    {1, 2, 3},    {2, 1, 5},     {3, 7, 2},      {5, 5, 5},     {7, 15, 17},  {15, 17, 31},
    {16, 16, 16}, {17, 31, 33}, {31, 33, 63},  {33, 63, 65},   {63, 65, 100}, {65, 100, 7}, {100, 15, 65},
    {1, 100, 64}, {1, 65, 129}, {2, 200, 100}, {4, 64, 64},    {4, 129, 257}, {8, 48, 300}, {16, 130, 520},
    {32, 97, 33}, {14, 96, 9},  {9, 144, 128}, {130, 50, 3},   {230, 70, 20}, {6, 1, 600},  {3, 4200, 5},
    {20, 300, 1}, {1, 1, 1000}, {64, 64, 64},  {12, 20, 1100},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct test_machine {
    hone_os_cpu cpu;
    hone_device_info device;
    hone_signature *signature;
} test_machine;

static int set_up(void **state)
{
    static test_machine machine;
    hone_error err = {0};
    hone_os_cpu_read(&machine.cpu);
    machine.device = (hone_device_info){
        .struct_size = sizeof machine.device,
        .platform = HONE_NATIVE,
        .backend = HONE_CPU,
        .features = machine.cpu.features,
        .threads = MOST_THREADS,
    };
    *state = &machine;
    const char *text = hone_matmul_table.algorithm->signature;
    return hone_signature_parse(hone_allocator_system(), text, &machine.signature, &err);
}

static int tear_down(void **state)
{
    test_machine *machine = *state;
    hone_signature_release(&machine->signature);
    return 0;
}

// Why a kernel cannot run a call here, or NULL.
static const char *reason_against(const test_machine *machine, const hone_kernel *kernel, const hone_call *call)
{
    static hone_error why;
    if ((kernel->needs & machine->device.features) != kernel->needs) return "this CPU cannot";
    if (!kernel->supports || kernel->supports(kernel, call, &why)) return NULL;
    assert_string_not_equal(why.message, "");
    return why.message;
}

static hone_bound_space *space_of(const test_machine *machine, const hone_kernel *kernel, const hone_call *call)
{
    hone_error err = {0};
    hone_space *space = NULL;
    hone_bound_space *bound = NULL;
    if (hone_space_parse(hone_allocator_system(), kernel->space, &space, &err) != HONE_OK ||
        hone_space_bind(space, call, &machine->device, &bound, &err) != HONE_OK)
        fail_msg("%s: %s", kernel->name, err.message);
    hone_space_release(&space);
    return bound;
}

static void fail_run(
    const hone_kernel *kernel, const test_product *product, const hone_config *config, const char *words)
{
    char values[256] = "";
    for (uint32_t i = 0; i < config->count; i++)
        snprintf(values + strlen(values), sizeof values - strlen(values), " %lld", (long long)config->values[i]);
    fail_msg(
        "%s [%s ] at %s, gap %d: %s", kernel->name, values, hone_call_text(product->call), (int)product->is.gap, words);
}

// A run with scratch of exactly the size that prepare asked for, full of NaN; without: the threads' own.
static hone_status run_prepared(const hone_plan *plan, const hone_value *args, bool bring_scratch)
{
    hone_execution execution = {.struct_size = sizeof execution};
    size_t size = (plan->scratch_bytes + 63) / 64 * 64;
    void *scratch = bring_scratch && size ? aligned_alloc(64, size) : NULL;
    if (scratch) memset(scratch, 0xff, size);
    execution.scratch = scratch;
    execution.scratch_bytes = scratch ? plan->scratch_bytes : 0;
    hone_status status = plan->run(plan, args, &execution);
    free(scratch);
    return status;
}

static bool run_config(
    const test_machine *machine,
    const hone_kernel *kernel,
    test_product *product,
    const hone_config *config,
    bool bring_scratch)
{
    hone_error err = {0};
    hone_plan plan = {
        .run = kernel->run,
        .config = config->values,
        .kernel = kernel,
        .call = product->call,
        .device = &machine->device,
    };
    if (kernel->prepare) {
        hone_status status = kernel->prepare(&plan, &plan.state, &plan.scratch_bytes, &err);
        if (status == HONE_UNAVAILABLE || status == HONE_UNSUPPORTED) return false;
        if (status != HONE_OK) fail_run(kernel, product, config, err.message);
    }
    product_poison(product);
    hone_status status = run_prepared(&plan, product->args, bring_scratch);
    if (status != HONE_OK) fail_run(kernel, product, config, hone_status_name(status));
    const char *words = product_check(product);
    if (words) fail_run(kernel, product, config, words);
    if (kernel->release) kernel->release(kernel, plan.state);
    return true;
}

// Runs the heuristic's config and some of the space's. Returns how many ran.
static int run_kernel(const test_machine *machine, const hone_kernel *kernel, test_product *product, uint64_t seed)
{
    hone_error err = {0};
    hone_config configs[CONFIGS + 1] = {{0}};
    size_t count = 0;
    int ran = 0;
    hone_bound_space *space = space_of(machine, kernel, product->call);
    if (hone_bound_space_sample(space, seed, CONFIGS, configs, &count, &err) != HONE_OK)
        fail_msg("%s: %s", kernel->name, err.message);
    if (kernel->heuristic && kernel->heuristic(kernel, product->call, &machine->device, &configs[count])) {
        if (hone_bound_space_check(space, &configs[count], &err) != HONE_OK)
            fail_run(kernel, product, &configs[count], err.message);
        count++;
    }
    for (size_t i = 0; i < count; i++)
        ran += run_config(machine, kernel, product, &configs[i], i % 2 == 0);
    hone_bound_space_release(&space);
    return ran;
}

// Every kernel at every shape.
static void run_all(void **state, hone_dtype_id dtype, bool transpose_b)
{
    const test_machine *machine = *state;
    for (size_t i = 0; i < SHAPES; i++) {
        test_product product;
        product_case is = {shapes[i][0], shapes[i][1], shapes[i][2], dtype, transpose_b, i % 3 == 0 ? 0 : (int64_t)i};
        product_init(&product, machine->signature, is);
        for (size_t j = 0; j < hone_matmul_table.count; j++) {
            const hone_kernel *kernel = &hone_matmul_table.kernels[j];
            if (!reason_against(machine, kernel, product.call)) run_kernel(machine, kernel, &product, i);
        }
        product_deinit(&product);
    }
}

static void every_kernel_multiplies_f32(void **state)
{
    run_all(state, HONE_F32, false);
}

static void every_kernel_multiplies_f32_with_b_transposed(void **state)
{
    run_all(state, HONE_F32, true);
}

static void every_kernel_multiplies_bf16(void **state)
{
    run_all(state, HONE_BF16, false);
}

static void every_kernel_multiplies_bf16_with_b_transposed(void **state)
{
    run_all(state, HONE_BF16, true);
}

static void every_kernel_multiplies_f16(void **state)
{
    run_all(state, HONE_F16, false);
}

static void every_kernel_multiplies_f16_with_b_transposed(void **state)
{
    run_all(state, HONE_F16, true);
}

static void a_product_over_nothing_is_zero(void **state)
{
    const test_machine *machine = *state;
    static const product_case cases[] = {
        {3, 5, 0, HONE_F32, false, 2}, {3, 5, 0, HONE_BF16, true, 0}, {0, 5, 4, HONE_F32, false, 0},
        {3, 0, 4, HONE_F16, true, 1},  {0, 0, 0, HONE_F32, true, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_product product;
        product_init(&product, machine->signature, cases[i]);
        for (size_t j = 0; j < hone_matmul_table.count; j++) {
            const hone_kernel *kernel = &hone_matmul_table.kernels[j];
            if (!reason_against(machine, kernel, product.call)) run_kernel(machine, kernel, &product, i);
        }
        product_deinit(&product);
    }
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
        if (reason)
            print_message("%s: %s\n", names[i], reason);
        else if (run_kernel(machine, kernel, &product, i) == 0)
            fail_msg("%s supports the product and cannot prepare it", names[i]);
    }
    product_deinit(&product);
}

static void a_left_out_transpose_b_is_false(void **state)
{
    const test_machine *machine = *state;
    test_product product;
    product_init(&product, machine->signature, (product_case){4, 4, 4, HONE_F32, false, 0});
    product.args[3] = (hone_value){.tag = -1, .as.pointer = &product}; // must not be looked at
    for (size_t j = 0; j < hone_matmul_table.count; j++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[j];
        if (!reason_against(machine, kernel, product.call)) run_kernel(machine, kernel, &product, j);
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
        else if (reason && strcmp(reason, "this CPU cannot") != 0)
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_multiplies_f32),
        cmocka_unit_test(every_kernel_multiplies_f32_with_b_transposed),
        cmocka_unit_test(every_kernel_multiplies_bf16),
        cmocka_unit_test(every_kernel_multiplies_bf16_with_b_transposed),
        cmocka_unit_test(every_kernel_multiplies_f16),
        cmocka_unit_test(every_kernel_multiplies_f16_with_b_transposed),
        cmocka_unit_test(a_product_over_nothing_is_zero),
        cmocka_unit_test(a_library_that_says_it_can_does),
        cmocka_unit_test(a_left_out_transpose_b_is_false),
        cmocka_unit_test(columns_that_do_not_lie_together_are_left_to_the_reference),
        cmocka_unit_test(the_cost_is_two_operations_a_term_and_each_byte_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
