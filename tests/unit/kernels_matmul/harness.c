#include "harness.h"

#include "hone/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CONFIGS = 4, MOST_THREADS = 8 };

static const int64_t shapes[][3] = {
    {1, 1, 1},    {1, 2, 3},    {2, 1, 5},     {3, 7, 2},      {5, 5, 5},       {7, 15, 17},     {15, 17, 31},
    {16, 16, 16}, {17, 31, 33}, {31, 33, 63},  {33, 63, 65},   {63, 65, 100},   {65, 100, 7},    {100, 15, 65},
    {1, 100, 64}, {1, 65, 129}, {2, 200, 100}, {4, 64, 64},    {4, 129, 257},   {8, 48, 300},    {16, 130, 520},
    {32, 97, 33}, {14, 96, 9},  {9, 144, 128}, {130, 50, 3},   {230, 70, 20},   {6, 1, 600},     {3, 4200, 5},
    {20, 300, 1}, {1, 1, 1000}, {64, 64, 64},  {12, 20, 1100}, {150, 40, 1090}, {20, 600, 1100},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

int machine_set_up(void **state)
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
    return (int)hone_signature_parse(hone_allocator_system(), text, &machine.signature, &err);
}

int machine_tear_down(void **state)
{
    test_machine *machine = *state;
    hone_signature_release(&machine->signature);
    return 0;
}

const char *reason_against(const test_machine *machine, const hone_kernel *kernel, const hone_call *call)
{
    static hone_error why;
    if (kernel->platform != HONE_NATIVE) return "this CPU cannot";
    if ((kernel->needs & machine->device.features) != kernel->needs) return "this CPU cannot";
    if (kernel->supports == NULL || kernel->supports(kernel, call, &why)) return NULL;
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
    if (scratch != NULL) memset(scratch, 0xff, size);
    execution.scratch = scratch;
    execution.scratch_bytes = scratch != NULL ? plan->scratch_bytes : 0;
    hone_status status = plan->run(plan, args, &execution);
    free(scratch);
    return status;
}

static bool run_unchecked(
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
    if (kernel->prepare != NULL) {
        hone_status status = kernel->prepare(&plan, &plan.state, &plan.scratch_bytes, &err);
        if (status == HONE_UNAVAILABLE || status == HONE_UNSUPPORTED) return false;
        if (status != HONE_OK) fail_run(kernel, product, config, err.message);
    }
    product_poison(product);
    hone_status status = run_prepared(&plan, product->args, bring_scratch);
    if (status != HONE_OK) fail_run(kernel, product, config, hone_status_name(status));
    if (kernel->release != NULL) kernel->release(kernel, plan.state);
    return true;
}

static bool run_config(
    const test_machine *machine,
    const hone_kernel *kernel,
    test_product *product,
    const hone_config *config,
    bool bring_scratch)
{
    if (!run_unchecked(machine, kernel, product, config, bring_scratch)) return false;
    const char *words = product_check(product);
    if (words != NULL) fail_run(kernel, product, config, words);
    return true;
}

bool run_once(const test_machine *machine, const hone_kernel *kernel, test_product *product)
{
    hone_config config = {0};
    if (kernel->heuristic != NULL) (void)kernel->heuristic(kernel, product->call, &machine->device, &config);
    return run_unchecked(machine, kernel, product, &config, false);
}

int run_kernel(const test_machine *machine, const hone_kernel *kernel, test_product *product, uint64_t seed)
{
    hone_error err = {0};
    hone_config configs[CONFIGS + 1] = {{0}};
    size_t count = 0;
    int ran = 0;
    hone_bound_space *space = space_of(machine, kernel, product->call);
    if (hone_bound_space_sample(space, seed, CONFIGS, configs, &count, &err) != HONE_OK)
        fail_msg("%s: %s", kernel->name, err.message);
    if (kernel->heuristic != NULL && kernel->heuristic(kernel, product->call, &machine->device, &configs[count])) {
        if (hone_bound_space_check(space, &configs[count], &err) != HONE_OK)
            fail_run(kernel, product, &configs[count], err.message);
        count++;
    }
    for (size_t i = 0; i < count; i++)
        ran += run_config(machine, kernel, product, &configs[i], i % 2 == 0);
    hone_bound_space_release(&space);
    return ran;
}

void run_kernels(const test_machine *machine, test_kernels *kernels, product_case is)
{
    run_finished(machine, kernels, is, (product_epilogue){false, false, NULL});
}

static int run_product(const test_machine *machine, test_kernels *kernels, test_product *product)
{
    int ran = 0;
    for (size_t i = 0; i < hone_matmul_table.count; i++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[i];
        if (kernels(kernel) && reason_against(machine, kernel, product->call) == NULL)
            ran += run_kernel(machine, kernel, product, (uint64_t)(product->is.m + product->is.n + product->is.k)) > 0;
    }
    product_deinit(product);
    return ran;
}

int run_finished(const test_machine *machine, test_kernels *kernels, product_case is, product_epilogue epilogue)
{
    test_product product;
    product_init_finished(&product, machine->signature, is, epilogue);
    return run_product(machine, kernels, &product);
}

void run_shapes(const test_machine *machine, test_kernels *kernels, hone_dtype_id dtype, bool transpose_b)
{
    for (size_t i = 0; i < SHAPES; i++) {
        int64_t gap = i % 3 == 0 ? 0 : (int64_t)i;
        run_kernels(
            machine, kernels, (product_case){shapes[i][0], shapes[i][1], shapes[i][2], dtype, transpose_b, gap});
    }
}

// Products that are fewer than threads, as many, and more; for the kernels of a few rows and for others; a k of several
// blocks; and batches that are none.
void run_batches(const test_machine *machine, test_kernels *kernels, hone_dtype_id dtype, bool transpose_b)
{
    static const struct {
        int axes;
        int64_t sizes[2], m, n, k;
    } batches[] = {
        {1, {2}, 33, 70, 20},   {1, {3}, 1, 130, 65},    {1, {70}, 5, 7, 9},      {2, {2, 3}, 17, 51, 33},
        {2, {5, 4}, 1, 65, 40}, {2, {1, 6}, 64, 64, 64}, {1, {4}, 20, 100, 1100}, {1, {9}, 40, 33, 7},
        {1, {0}, 5, 7, 9},      {2, {3, 0}, 1, 7, 9},    {1, {3}, 5, 7, 0},       {2, {2, 2}, 0, 7, 3},
    };
    static const product_epilogue epilogues[] = {{false, false, NULL}, {true, true, "silu"}};
    // Every other layout of each, with an epilogue in every other one of these.
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        for (int lies = (int)i % 2; lies < BATCH_LAYOUTS; lies += 2) {
            const product_case is = {batches[i].m, batches[i].n, batches[i].k,
                                     dtype,        transpose_b,  (int64_t)(i + (size_t)lies) % 3};
            const product_batch batch = {
                batches[i].axes, {batches[i].sizes[0], batches[i].sizes[1]}, (product_layout)lies};
            test_product product;
            product_init_batch(&product, machine->signature, is, epilogues[(i / 2 + (size_t)lies / 2) % 2], batch);
            (void)run_product(machine, kernels, &product);
        }
}
