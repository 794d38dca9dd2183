// Kernels of the null platform. Its language is minimal: a source is one number, and its kernel writes every element of
// the first tensor, times the number, into the second. Comments describe what a platform with a compiler does at each
// step.
#include "platforms/null/instance.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "platforms/shared/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "null.code";

// A kernel that is ready to run: plan->state.
typedef struct scaler {
    hone_platform_instance *instance;
    float factor;
    uint32_t from, to; // indices of the run's values
    uint64_t digest;
} scaler;

// Compiling -----------------------------------------------------------------------------------------------------------

static hone_status compile(const char *source, float *out, hone_error *err)
{
    char *end = NULL;
    *out = (float)hone_number_read(source, &end);
    if (end != source && end[strspn(end, " \n")] == '\0') return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "'%.40s' is not a source: expected a number", source);
}

static hone_status check_list(const hone_argument *arguments, uint32_t count, hone_error *err)
{
    if (count == 2 && arguments[0].kind == HONE_ARGUMENT_TENSOR && arguments[1].kind == HONE_ARGUMENT_TENSOR)
        return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "arguments: the kernel takes 2 tensors, %u arguments are listed",
        (unsigned)count);
}

static hone_status compile_plan(scaler *made, const hone_plan *plan, hone_error *err)
{
    hone_buffer text;
    hone_buffer_init(&text, made->instance->allocator);
    hone_status status = hone_launch_source(plan, &text, err);
    if (status == HONE_OK) status = compile(hone_buffer_string(&text), &made->factor, err);
    hone_buffer_deinit(&text);
    return status;
}

static hone_status read_arguments(scaler *made, const hone_plan *plan, hone_error *err)
{
    static const hone_launch no_launch;
    hone_argument arguments[HONE_MAX_ARGUMENTS] = {{.kind = HONE_ARGUMENT_BITS}};
    uint32_t count = 0;
    hone_status status = hone_launch_arguments(&made->instance->allocator, plan, NULL, arguments, &count, err);
    if (status == HONE_OK) status = check_list(arguments, count, err);
    if (status != HONE_OK) return status;
    made->from = arguments[0].value;
    made->to = arguments[1].value;
    made->digest = hone_launch_digest(hone_hash64(&made->factor, sizeof made->factor), &no_launch, arguments, count);
    return HONE_OK;
}

// Prepares a plan: compiles or loads the kernel's code for plan->device and looks its function up. The state that it
// returns is plan->state in a run. A kernel that is a function prepares itself.
hone_status hone_null_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code == NULL)
        return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
    scaler *made = hone_alloc(&instance->allocator, sizeof *made);
    if (made == NULL) return hone_fail_memory(err, where);
    made->instance = instance;
    hone_status status = compile_plan(made, plan, err);
    if (status == HONE_OK) status = read_arguments(made, plan, err);
    if (status == HONE_OK)
        *out_state = made;
    else
        hone_free(&instance->allocator, made);
    return status;
}

void hone_null_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    if (kernel->code != NULL)
        hone_free(&instance->allocator, state);
    else if (kernel->release != NULL)
        kernel->release(kernel, state);
}

// Kernels for calls whose differences do not reach the code have the same digest, and are measured once.
uint64_t hone_null_digest(const hone_plan *plan)
{
    const scaler *made = plan->state;
    return made->digest;
}

// Running -------------------------------------------------------------------------------------------------------------

// A run only returns a status: its message is kept until it is queried.
static hone_status note_failure(hone_platform_instance *instance, const char *words)
{
    hone_mutex_lock(&instance->mutex);
    hone_fail(&instance->failure, HONE_KERNEL_FAILED, "null.run", "%s", words);
    hone_mutex_unlock(&instance->mutex);
    return HONE_KERNEL_FAILED;
}

hone_status hone_null_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const scaler *made = plan->state;
    const hone_tensor *from = args[made->from].as.tensor, *to = args[made->to].as.tensor;
    const int64_t count = hone_tensor_elements(from);
    (void)execution;
    if (from->dtype.bits != 32 || to->dtype.bits != 32 || hone_tensor_elements(to) != count)
        return note_failure(made->instance, "expected two tensors of f32 with equally many elements");
    if (!isfinite(made->factor)) return note_failure(made->instance, "the factor is not finite");
    const float *x = hone_tensor_data(from);
    float *y = hone_tensor_data(to);
    for (int64_t i = 0; i < count; i++)
        y[i] = made->factor * x[i];
    return HONE_OK;
}

bool hone_null_last_failure(hone_platform_instance *instance, hone_error *err)
{
    hone_mutex_lock(&instance->mutex);
    const bool is_new = instance->failure.status != HONE_OK;
    if (is_new) *err = instance->failure;
    instance->failure.status = HONE_OK;
    hone_mutex_unlock(&instance->mutex);
    return is_new;
}

// Packs ---------------------------------------------------------------------------------------------------------------

// A file has one kernel, which may have any name.
hone_status hone_null_try_file(const hone_pack_file *file, const char *entry, hone_error *err)
{
    float factor;
    hone_buffer text;
    (void)entry;
    hone_buffer_init(&text, hone_allocator_system());
    hone_status status = hone_pack_read_file(file, &text, err);
    if (status == HONE_OK) status = compile(hone_buffer_string(&text), &factor, err);
    hone_buffer_deinit(&text);
    return status;
}

// Checks what is possible without a device: the platform's own facts, missing fields, a source that does not compile.
hone_status hone_null_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    (void)kernel; // any backend
    if (variant->file == NULL || variant->code.arguments == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "expected file, with a number in it, and arguments");
    if (strcmp(variant->facts, "{}") != 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "facts: platform null has none");
    return hone_null_try_file(variant->file, variant->code.entry, err);
}

// Compares with the signature of the algorithm; a platform whose binaries describe their parameters compares them here.
hone_status hone_null_fits(
    const hone_pack_variant *variant, const struct hone_argument *arguments, uint32_t count, hone_error *err)
{
    (void)variant;
    return check_list(arguments, count, err);
}

// The same check for a kernel that a program registers.
const char *hone_null_refuses(const hone_code *code)
{
    if (code->grid != NULL || code->block != NULL || code->cluster != NULL || code->shared != NULL ||
        code->flags != 0 || code->finish != NULL)
        return "describes a launch, which null does not have";
    return code->source == NULL ? "is no source" : NULL;
}
