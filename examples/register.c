// Registers an algorithm with two kernels of this program and has hone tune them.
#include <hone/hone.h>

#include <stdio.h>

// axpy(x, y, alpha) -> z: the values stand in the order of the signature, results after the positional parameters.
static hone_status scale_add(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    const float *x = hone_tensor_data(args[0].as.tensor), *y = hone_tensor_data(args[1].as.tensor);
    float *z = hone_tensor_data(args[2].as.tensor), alpha = (float)args[3].as.f64;
    for (int64_t i = 0; i < args[0].as.tensor->shape[0]; i++)
        z[i] = alpha * x[i] + y[i];
    return HONE_OK;
}

// The same in blocks; the block is a parameter of the kernel's space.
static hone_status scale_add_blocked(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const float *x = hone_tensor_data(args[0].as.tensor), *y = hone_tensor_data(args[1].as.tensor);
    float *z = hone_tensor_data(args[2].as.tensor), alpha = (float)args[3].as.f64;
    int64_t n = args[0].as.tensor->shape[0], block = plan->config[0];
    for (int64_t start = 0; start < n; start += block)
        for (int64_t i = start; i < n && i < start + block; i++)
            z[i] = alpha * x[i] + y[i];
    return HONE_OK;
}

static const hone_algorithm axpy = {
    .struct_size = sizeof axpy,
    .signature = "axpy(x: f32[n], y: f32[n], *, alpha: f64 = 1.0) -> z: f32[n]",
    .reference = scale_add};
static const hone_kernel kernels[] = {
    {HONE_KERNEL, .algorithm = "axpy", .name = "plain", .platform = HONE_NATIVE, .backend = HONE_CPU, .run = scale_add},
    {HONE_KERNEL, .algorithm = "axpy", .name = "blocked", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .space = "block: 64..1024 *4", .run = scale_add_blocked},
};

// Under this name the command finds it, too: cc -shared -fPIC register.c -o libaxpy.so, and
// hone tune --program ./libaxpy.so 'axpy(f32[100000], f32[100000], alpha=2.0)'
HONE_API hone_program_register_function hone_program_register;

hone_status hone_program_register(hone_runtime *rt, hone_error *err)
{
    const hone_status status = hone_register_algorithm(rt, &axpy, err);
    return status == HONE_OK ? hone_register_kernels(rt, kernels, 2, err) : status;
}

int main(void)
{
    hone_runtime *rt = NULL;
    hone_error err;
    hone_result *result = NULL;
    // These kernels are functions of this program; in_process is the consent to run them here while tuning.
    hone_tune_options options = {.struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .seconds = 2};
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    if (status == HONE_OK) status = hone_program_register(rt, &err);
    if (status == HONE_OK)
        status = hone_tune_text(rt, "axpy(f32[100000], f32[100000], alpha=2.0)", &options, &result, &err);
    if (status == HONE_OK)
        printf(
            "chosen: %s %s\n", hone_result_decision(result, 0)->kernel, hone_result_decision(result, 0)->config_json);
    // Code that was loaded anew takes the place of the old. What was decided for another revision is no longer served.
    hone_kernel anew = kernels[1];
    anew.revision = "2";
    if (status == HONE_OK) status = hone_replace_kernels(rt, &anew, 1, &err);
    if (status != HONE_OK) fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
