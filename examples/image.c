// An image pipeline: an operation of the program's own with two kernels, tuned, bound, and run frame by frame.
// long/image.c is the same without hone/args.h.
#include <hone/hone.h>

#include <stdio.h>

enum { HEIGHT = 240, WIDTH = 320, FRAMES = 50 };

// A row: each pixel, and `amount` times what it differs by from the mean of the three around it.
static void sharpen_row(void *args, int64_t y)
{
    HONE_UNPACK((const hone_value *)args, const hone_tensor *, image, float *, out, double, amount);
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

int main(void)
{
    static float image[HEIGHT][WIDTH], sharp[HEIGHT][WIDTH];
    const hone_algorithm algorithm = {
        HONE_ALGORITHM, .signature = "sharpen(image: f32[h, w], *, amount: f64 = 1.0) -> out: f32[h, w]",
        .reference = plain};
    const hone_kernel kernels[] = {
        {HONE_KERNEL, .name = "plain", HONE_ON_CPU, .run = plain},
        {HONE_KERNEL, .name = "threaded", HONE_ON_CPU, .run = threaded, .space = "threads: 2 | 4"}};
    const hone_runtime_options zygote = {.struct_size = sizeof zygote, .flags = HONE_RUNTIME_ZYGOTE};
    const hone_tune_options briefly = {.struct_size = sizeof briefly, .seconds = 1};
    hone_tensor *in = HONE_TENSOR(image[0], HEIGHT, WIDTH), *out = HONE_TENSOR(sharp[0], HEIGHT, WIDTH);
    hone_runtime *rt = NULL;
    const hone_op *sharpen = NULL;
    const hone_plan *plan = NULL;
    hone_result *result = NULL;
    hone_error err;
    hone_status status = hone_runtime_open(&zygote, &rt, &err);
    if (status == HONE_OK) status = hone_register(rt, &algorithm, kernels, 2, &sharpen, &err);
    if (status == HONE_OK) status = HONE_TUNE(sharpen, &briefly, &result, &err, in, out, 0.5);
    if (status == HONE_OK) status = HONE_BIND(sharpen, &plan, &err, in, out, 0.5);
    for (int frame = 0; frame < FRAMES && status == HONE_OK; frame++) {
        image[7][frame] = 3;
        status = hone_plan_failed(plan, HONE_CALL_PLAN(plan, in, out, 0.5), &err);
    }
    if (status == HONE_OK) printf("%s: sharp[7][0] = %g\n", plan->kernel->name, (double)sharp[7][0]);
    if (status != HONE_OK) fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_plan_release(&plan);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
