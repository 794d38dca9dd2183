#include "contest.h"

#include "kernels/common/half.h"
#include "kernels/common/matrix.h"
#include "os/os.h"

#include "hone/describe.h"
#include "hone/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GUARD = 256, POISON = 0xff, MOST_THREADS = 4, MOST_CONFIGS = 64 };

static bool is_result(const contest *own, size_t i)
{
    return hone_signature_parameter(own->signature, i)->is_result;
}

static hone_dtype_id dtype_of(const contest *own, size_t i)
{
    return hone_float_id(own->tensors[i].dtype);
}

// Memory --------------------------------------------------------------------------------------------------------------

// A tensor of the shape that the call text gives, with a gap behind each row.
static void place(contest *own, size_t i, const hone_tensor *shape, int64_t gap)
{
    hone_tensor *tensor = &own->tensors[i];
    *tensor = *shape;
    memcpy(own->shapes[i], shape->shape, (size_t)shape->ndim * sizeof *shape->shape);
    tensor->shape = own->shapes[i];
    tensor->strides = own->strides[i];
    int64_t stride = 1, elements = 1;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        own->strides[i][axis] = stride;
        elements += (tensor->shape[axis] - 1) * stride;
        stride *= tensor->shape[axis];
        if (axis == tensor->ndim - 1) stride += gap;
    }
    own->bytes[i] = (size_t)(elements * hone_element_size(dtype_of(own, i)));
    own->memory[i] = malloc(own->bytes[i] + 2 * GUARD);
    own->expected[i] = malloc(own->bytes[i] + 2 * GUARD);
    assert_true(own->memory[i] && own->expected[i]);
    memset(own->memory[i], POISON, own->bytes[i] + 2 * GUARD);
    tensor->data = own->memory[i] + GUARD;
    tensor->byte_offset = 0;
    own->args[i] = hone_of_tensor(tensor);
}

// Calls visit with the offset of each element.
static void each_element(const hone_tensor *tensor, void (*visit)(void *ctx, int64_t offset), void *ctx)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor->ndim; axis++)
        count *= tensor->shape[axis];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, offset = 0;
        for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
            offset += rest % tensor->shape[axis] * tensor->strides[axis];
            rest /= tensor->shape[axis];
        }
        visit(ctx, offset);
    }
}

typedef struct filling {
    void *data;
    hone_dtype_id dtype;
    uint64_t state;
    double spread;
} filling;

static void fill_element(void *ctx, int64_t offset)
{
    filling *own = ctx;
    own->state ^= own->state << 13;
    own->state ^= own->state >> 7;
    own->state ^= own->state << 17;
    double unit = (double)(own->state >> 11) * 0x1p-53;
    hone_element_put(own->data, own->dtype, offset, (float)((2 * unit - 1) * own->spread));
}

static hone_device_info this_machine(void)
{
    static hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    hone_device_info device = {
        .struct_size = sizeof device,
        .platform = HONE_NATIVE,
        .backend = HONE_CPU,
        .features = cpu.features,
        .threads = MOST_THREADS,
        .l1_bytes = 1 << 15,
        .l2_bytes = 1 << 20,
        .l3_bytes = 1 << 22,
    };
    return device;
}

void contest_init(contest *own, const hone_kernel_table *table, const char *call_text, int64_t gap, double spread)
{
    *own = (contest){.table = table, .device = this_machine(), .spread = spread};
    hone_error err = {0};
    hone_call *described = NULL;
    if (hone_signature_parse(hone_allocator_system(), table->algorithm->signature, &own->signature, &err) != HONE_OK ||
        hone_call_parse(hone_allocator_system(), own->signature, call_text, &described, &err) != HONE_OK)
        fail_msg("%s: %s", call_text, err.message);
    own->count = hone_signature_count(own->signature);
    for (size_t i = 0; i < own->count; i++) {
        own->args[i] = hone_call_values(described)[i];
        const hone_tensor *tensor = hone_call_tensor(described, i);
        if (tensor == NULL) continue;
        place(own, i, tensor, gap);
        filling fill = {own->tensors[i].data, dtype_of(own, i), 0x9e3779b97f4a7c15u + i, spread};
        if (!is_result(own, i)) each_element(&own->tensors[i], fill_element, &fill);
    }
    if (hone_call_bind(hone_allocator_system(), own->signature, own->args, own->count, false, &own->call, &err) !=
        HONE_OK)
        fail_msg("%s: %s", call_text, err.message);
    hone_call_release(&described);
}

void contest_deinit(contest *own)
{
    hone_call_release(&own->call);
    hone_signature_release(&own->signature);
    for (size_t i = 0; i < own->count; i++) {
        free(own->memory[i]);
        free(own->expected[i]);
    }
}

// Checks --------------------------------------------------------------------------------------------------------------

typedef struct comparison {
    const void *is, *right;
    hone_dtype_id dtype;
    const hone_tolerance *tolerance;
    double largest;
    unsigned char *touched; // a byte an element of the tensor's reach
    double worst;           // error over what is allowed
    int64_t where;
} comparison;

static void find_largest(void *ctx, int64_t offset)
{
    comparison *own = ctx;
    double right = fabs((double)hone_element_get(own->right, own->dtype, offset));
    if (isfinite(right) && right > own->largest) own->largest = right;
}

static void compare_element(void *ctx, int64_t offset)
{
    comparison *own = ctx;
    own->touched[offset] = 1;
    double eps = own->dtype == HONE_F32 ? 0x1p-23 : own->dtype == HONE_BF16 ? 0x1p-7 : 0x1p-10;
    double is = (double)hone_element_get(own->is, own->dtype, offset);
    double right = (double)hone_element_get(own->right, own->dtype, offset);
    double allowed =
        own->tolerance->absolute + own->tolerance->relative * fabs(right) + own->tolerance->scale * eps * own->largest;
    double error = fabs(is - right) / allowed;
    if (is == right || (isnan(is) && isnan(right)) || error <= own->worst) return;
    own->worst = isnan(error) ? INFINITY : error;
    own->where = offset;
}

// The algorithm's, or what docs/tolerance.md gives where it has none.
static hone_tolerance tolerance_of(const contest *own, hone_dtype_id dtype)
{
    const hone_tolerance *given = &own->table->algorithm->tolerance;
    if (given->absolute != 0 || given->relative != 0 || given->scale != 0) return *given;
    if (dtype == HONE_F32) return (hone_tolerance){.relative = 1e-5, .scale = 256};
    return dtype == HONE_BF16 ? (hone_tolerance){.relative = 3.2e-2, .scale = 4}
                              : (hone_tolerance){.relative = 8e-3, .scale = 8};
}

// NULL, or what is wrong with value i after a run.
static const char *check_result(const contest *own, size_t i)
{
    static char words[256];
    int64_t size = hone_element_size(dtype_of(own, i));
    const hone_tolerance tolerance = tolerance_of(own, dtype_of(own, i));
    comparison compare = {
        .is = own->memory[i] + GUARD,
        .right = own->expected[i] + GUARD,
        .dtype = dtype_of(own, i),
        .tolerance = &tolerance,
        .touched = calloc(own->bytes[i] + 1, 1),
    };
    assert_non_null(compare.touched);
    each_element(&own->tensors[i], find_largest, &compare);
    each_element(&own->tensors[i], compare_element, &compare);
    const char *wrong = NULL;
    if (compare.worst > 1) {
        snprintf(
            words, sizeof words, "element at %lld is %.9g, not %.9g: %.3g times what is allowed",
            (long long)compare.where, (double)hone_element_get(compare.is, compare.dtype, compare.where),
            (double)hone_element_get(compare.right, compare.dtype, compare.where), compare.worst);
        wrong = words;
    }
    for (int64_t byte = -GUARD; byte < (int64_t)own->bytes[i] + GUARD && wrong == NULL; byte++) {
        bool inside = byte >= 0 && byte < (int64_t)own->bytes[i] && compare.touched[byte / size];
        if (inside || own->memory[i][GUARD + byte] == POISON) continue;
        snprintf(words, sizeof words, "byte %lld outside the result was written", (long long)byte);
        wrong = words;
    }
    free(compare.touched);
    return wrong;
}

static void check(const contest *own, const char *kernel, const char *config)
{
    for (size_t i = 0; i < own->count; i++) {
        if (own->memory[i] == NULL) continue;
        const char *wrong = NULL;
        if (is_result(own, i))
            wrong = check_result(own, i);
        else if (memcmp(own->memory[i], own->expected[i], own->bytes[i] + 2 * GUARD) != 0)
            wrong = "the input was changed";
        if (wrong != NULL)
            fail_msg(
                "%s %s: %s of %s: %s", kernel, config, hone_signature_parameter(own->signature, i)->name,
                hone_call_text(own->call), wrong);
    }
}

static bool is_rival(const hone_kernel *kernel)
{
    return kernel->library != NULL || strstr(kernel->name, "libxsmm") != NULL;
}

// Runs ----------------------------------------------------------------------------------------------------------------

static void poison(contest *own)
{
    for (size_t i = 0; i < own->count; i++)
        if (own->memory[i] != NULL && is_result(own, i)) memset(own->memory[i], POISON, own->bytes[i] + 2 * GUARD);
}

static hone_plan plan_of(const contest *own, const hone_kernel *kernel, const hone_config *config)
{
    hone_plan plan = {.call = own->call, .kernel = kernel, .device = &own->device, .run = kernel->run};
    plan.config = config->values;
    return plan;
}

// False: a library that has no such operation on this processor, as oneDNN has no softmax of bf16 without AVX-512.
static bool run_config(contest *own, const hone_kernel *kernel, const hone_config *config, const char *words)
{
    hone_plan plan = plan_of(own, kernel, config);
    hone_error err = {0};
    hone_status status =
        kernel->prepare != NULL ? kernel->prepare(&plan, &plan.state, &plan.scratch_bytes, &err) : HONE_OK;
    if (status == HONE_UNSUPPORTED && is_rival(kernel) && err.message[0] != '\0') return false;
    if (status != HONE_OK) fail_msg("%s %s: %s", kernel->name, words, err.message);
    poison(own);
    status = kernel->run(&plan, own->args, NULL);
    if (kernel->release != NULL) kernel->release(kernel, plan.state);
    if (status != HONE_OK)
        fail_msg("%s %s on %s: %s", kernel->name, words, hone_call_text(own->call), hone_status_name(status));
    return true;
}

static void keep_expected(contest *own)
{
    hone_config config = {0};
    hone_plan plan = plan_of(own, &own->table->kernels[own->table->count - 1], &config);
    poison(own);
    assert_int_equal(own->table->algorithm->reference(&plan, own->args, NULL), HONE_OK);
    for (size_t i = 0; i < own->count; i++)
        if (own->memory[i] != NULL) memcpy(own->expected[i], own->memory[i], own->bytes[i] + 2 * GUARD);
}

// The heuristic's config, which its space must hold; the space's default when there is no heuristic.
static void first_config(const contest *own, const hone_kernel *kernel, const hone_bound_space *space, hone_config *out)
{
    hone_error err = {0};
    *out = (hone_config){0};
    bool given = kernel->heuristic != NULL && kernel->heuristic(kernel, own->call, &own->device, out);
    hone_status status = given ? hone_bound_space_check(space, out, &err) : hone_bound_space_default(space, out, &err);
    if (status != HONE_OK) fail_msg("%s on %s: %s", kernel->name, hone_call_text(own->call), err.message);
}

static void run_kernel(contest *own, const hone_kernel *kernel, size_t configs, bool checked)
{
    hone_error err = {0};
    hone_space *space = NULL;
    hone_bound_space *bound = NULL;
    if (hone_space_parse(hone_allocator_system(), kernel->space, &space, &err) != HONE_OK ||
        hone_space_bind(space, own->call, &own->device, &bound, &err) != HONE_OK)
        fail_msg("%s: %s", kernel->name, err.message);
    hone_config picked[MOST_CONFIGS + 1];
    size_t count = 0;
    first_config(own, kernel, bound, &picked[0]);
    assert_int_equal(
        hone_bound_space_sample(bound, configs + own->bytes[0], configs, picked + 1, &count, &err), HONE_OK);
    for (size_t i = 0; i <= count; i++) {
        char words[256];
        hone_config_text(space, &picked[i], words, sizeof words);
        if (run_config(own, kernel, &picked[i], words) && checked) check(own, kernel->name, words);
    }
    hone_bound_space_release(&bound);
    hone_space_release(&space);
    own->kernels_run++;
}

void contest_run(contest *own, size_t configs)
{
    assert_true(configs <= MOST_CONFIGS);
    keep_expected(own);
    for (size_t i = 0; i < own->table->count; i++) {
        const hone_kernel *kernel = &own->table->kernels[i];
        hone_error why = {0};
        if (kernel->is_reference || kernel->platform != HONE_NATIVE || (own->only_own && is_rival(kernel)) ||
            (kernel->needs & own->device.features) != kernel->needs)
            continue;
        if (kernel->supports != NULL && !kernel->supports(kernel, own->call, &why)) {
            assert_true(why.message[0] != '\0');
            continue;
        }
        run_kernel(own, kernel, configs, true);
    }
}

void contest_once(const hone_kernel_table *table, const char *call_text, size_t configs)
{
    for (int64_t gap = 0; gap <= 5; gap += 5) {
        contest own;
        contest_init(&own, table, call_text, gap, 2);
        contest_run(&own, configs);
        if (own.kernels_run == 0) fail_msg("no kernel ran %s", call_text);
        contest_deinit(&own);
    }
}

void contest_run_kernel(contest *own, const char *name)
{
    for (size_t i = 0; i < own->table->count; i++)
        if (strcmp(own->table->kernels[i].name, name) == 0) {
            run_kernel(own, &own->table->kernels[i], 0, false);
            return;
        }
    fail_msg("no kernel named %s", name);
}

double contest_get(const contest *own, size_t value, int64_t index)
{
    return (double)hone_element_get(own->tensors[value].data, dtype_of(own, value), index);
}

void contest_set(contest *own, size_t value, int64_t index, double number)
{
    hone_element_put(own->tensors[value].data, dtype_of(own, value), index, (float)number);
}

void contest_expect(const contest *own, size_t value, int64_t index, double right, double allowed)
{
    double is = contest_get(own, value, index);
    if (!(fabs(is - right) <= allowed))
        fail_msg("element %lld of value %zu is %.9g, not %.9g", (long long)index, value, is, right);
}
