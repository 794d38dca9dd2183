// An image pipeline: an operation of the program's own with two kernels, tuned, bound, and run frame by frame.
// long/image.c is the same without hone/args.h.
#include <hone/hone.h>

#include <stdio.h>

enum { HEIGHT = 240, WIDTH = 320, FRAMES = 50 };

// A row: each pixel, and `amount` times what it differs by from the mean of the three around it.
static void sharpen_row(void *args, int64_t y)
{
    HONE_UNPACK(args, const hone_tensor *, image, float *, out, double, amount);
    const int64_t width = image->shape[1];
    const float *in = (const float *)hone_tensor_data(image) + y * width;
    for (int64_t x = 0; x < width; x++) {
        double mean = (in[x > 0 ? x - 1 : 0] + in[x] + in[x < width - 1 ? x + 1 : x]) / 3.0;
        out[y * width + x] = (float)(in[x] + amount * (in[x] - mean));
    }
}

HONE_ROWS(sharpen_rows, sharpen_row)

int main(void)
{
    static float image[HEIGHT][WIDTH], sharp[HEIGHT][WIDTH];
    const char *signature = "sharpen(image: f32[h, w], *, amount: f64 = 1.0) -> out: f32[h, w]";
    const hone_kernel kernels[] = {
        {HONE_KERNEL, .name = "plain", HONE_ON_CPU, .run = sharpen_rows},
        {HONE_KERNEL, .name = "threaded", HONE_ON_CPU, .run = sharpen_rows, .space = "threads: 2 | 4"}};
    hone_tensor *in = HONE_TENSOR(image[0], HEIGHT, WIDTH), *out = HONE_TENSOR(sharp[0], HEIGHT, WIDTH);
    hone_runtime *rt = NULL;
    const hone_op *sharpen = NULL;
    const hone_plan *plan = NULL;
    hone_error err;
    hone_status status = hone_runtime_open(HONE_OPTIONS(hone_runtime_options, .flags = HONE_RUNTIME_ZYGOTE), &rt, &err);
    if (status == HONE_OK) status = HONE_REGISTER(rt, signature, sharpen_rows, kernels, &sharpen, &err);
    if (status == HONE_OK)
        status = HONE_TUNE(sharpen, HONE_OPTIONS(hone_tune_options, .seconds = 1), NULL, &err, in, out, 0.5);
    if (status == HONE_OK) status = HONE_BIND(sharpen, &plan, &err, in, out, 0.5);
    for (int frame = 0; frame < FRAMES && status == HONE_OK; frame++) {
        image[7][frame] = 3;
        status = hone_plan_failed(plan, HONE_CALL_PLAN(plan, in, out, 0.5), &err);
    }
    if (status == HONE_OK) printf("%s: sharp[7][0] = %g\n", plan->kernel->name, (double)sharp[7][0]);
    if (status != HONE_OK) fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_plan_release(&plan);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
