// The program of ../image.c without hone/args.h: what its macros stand for.
#include <hone/hone.h>

#include <stdio.h>

enum { HEIGHT = 240, WIDTH = 320, FRAMES = 50 };

// A row: each pixel, and `amount` times what it differs by from the mean of the three around it.
static void sharpen_row(void *ctx, int64_t y)
{
    const hone_value *args = ctx;
    const hone_tensor *image = args[0].as.tensor;
    float *out = hone_tensor_data(args[1].as.tensor);
    double amount = args[2].as.f64;
    const int64_t width = image->shape[1];
    const float *in = (const float *)hone_tensor_data(image) + y * width;
    for (int64_t x = 0; x < width; x++) {
        double mean = (in[x > 0 ? x - 1 : 0] + in[x] + in[x < width - 1 ? x + 1 : x]) / 3.0;
        out[y * width + x] = (float)(in[x] + amount * (in[x] - mean));
    }
}

static hone_status plain(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_plan_parallel_for(plan, execution, 1, args[0].as.tensor->shape[0], sharpen_row, (void *)args);
    return HONE_OK;
}

static hone_status threaded(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    int32_t threads = (int32_t)plan->config[0];
    hone_plan_parallel_for(plan, execution, threads, args[0].as.tensor->shape[0], sharpen_row, (void *)args);
    return HONE_OK;
}

static hone_status register_sharpen(hone_runtime *rt, const hone_op **out, hone_error *err)
{
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = "sharpen(image: f32[h, w], *, amount: f64 = 1.0) -> out: f32[h, w]",
        .reference = plain,
    };
    const hone_kernel kernels[] = {
        {HONE_KERNEL, .algorithm = "sharpen", .name = "plain", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .run = plain},
        {HONE_KERNEL, .algorithm = "sharpen", .name = "threaded", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .space = "threads: 2 | 4", .run = threaded},
    };
    hone_status status = hone_register_algorithm(rt, &algorithm, err);
    if (status == HONE_OK) status = hone_register_kernels(rt, kernels, 2, err);
    if (status == HONE_OK) status = hone_op_get(rt, "sharpen", out, err);
    return status;
}

static hone_status tune(const hone_op *sharpen, const hone_value *args, size_t count, hone_error *err)
{
    const hone_tune_options options = {.struct_size = sizeof options, .seconds = 1};
    hone_call *call = NULL;
    hone_result *result = NULL;
    hone_status status =
        hone_call_bind(hone_allocator_system(), hone_op_signature(sharpen), args, count, false, &call, err);
    if (status == HONE_OK) status = hone_tune(sharpen, call, &options, &result, err);
    hone_result_release(&result);
    hone_call_release(&call);
    return status;
}

int main(void)
{
    static float image[HEIGHT][WIDTH], sharp[HEIGHT][WIDTH];
    int64_t shape[] = {HEIGHT, WIDTH};
    hone_tensor in = hone_tensor_of(image, HONE_F32, 2, shape), out = hone_tensor_of(sharp, HONE_F32, 2, shape);
    const hone_value args[] = {hone_of_tensor(&in), hone_of_tensor(&out), hone_of_float(0.5)};
    const hone_runtime_options options = {.struct_size = sizeof options, .flags = HONE_RUNTIME_ZYGOTE};
    hone_runtime *rt = NULL;
    const hone_op *sharpen = NULL;
    const hone_plan *plan = NULL;
    hone_error err;
    hone_status status = hone_runtime_open(&options, &rt, &err);
    if (status == HONE_OK) status = register_sharpen(rt, &sharpen, &err);
    if (status == HONE_OK) status = tune(sharpen, args, 3, &err);
    if (status == HONE_OK) status = hone_bind(sharpen, args, 3, &plan, &err);
    for (int frame = 0; frame < FRAMES && status == HONE_OK; frame++) {
        image[7][frame] = 3;
        status = plan->run(plan, args, NULL);
        if (status != HONE_OK) status = hone_plan_failed(plan, status, &err);
    }
    if (status == HONE_OK)
        printf("%s: sharp[7][0] = %g\n", plan->kernel->name, (double)sharp[7][0]);
    else
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_plan_release(&plan);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
