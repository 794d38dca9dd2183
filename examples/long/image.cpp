// The program of ../image.cpp with the functions of C: what hone/hone.hpp stands for.
#include <hone/hone.h>

#include <cstdint>
#include <cstdio>
#include <vector>

// Row y: each pixel, and `amount` times what it differs by from the mean of the three around it.
static void sharpen_row(const float *in, float *out, std::int64_t width, double amount)
{
    for (std::int64_t x = 0; x < width; x++) {
        const double mean = (in[x > 0 ? x - 1 : 0] + in[x] + in[x < width - 1 ? x + 1 : x]) / 3.0;
        out[x] = static_cast<float>(in[x] + amount * (in[x] - mean));
    }
}

static void sharpen_one(void *ctx, std::int64_t y)
{
    const hone_value *args = static_cast<const hone_value *>(ctx);
    const float *in = static_cast<const float *>(hone_tensor_data(args[0].as.tensor));
    float *out = static_cast<float *>(hone_tensor_data(args[1].as.tensor));
    const std::int64_t width = args[0].as.tensor->shape[1];
    sharpen_row(in + y * width, out + y * width, width, args[2].as.f64);
}

static hone_status plain(const hone_plan *, const hone_value *args, const hone_execution *)
{
    if (!hone_tensor_is_row_major(args[0].as.tensor) || !hone_tensor_is_row_major(args[1].as.tensor))
        return HONE_UNSUPPORTED;
    for (std::int64_t y = 0; y < args[0].as.tensor->shape[0]; y++)
        sharpen_one(const_cast<hone_value *>(args), y);
    return HONE_OK;
}

static hone_status threaded(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    if (!hone_tensor_is_row_major(args[0].as.tensor) || !hone_tensor_is_row_major(args[1].as.tensor))
        return HONE_UNSUPPORTED;
    hone_plan_parallel_for(
        plan, execution, static_cast<std::int32_t>(plan->config[0]), args[0].as.tensor->shape[0], sharpen_one,
        const_cast<hone_value *>(args));
    return HONE_OK;
}

static hone_status register_sharpen(hone_runtime *rt, const hone_op **out, hone_error *err)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "sharpen(image: f32[h, w], *, amount: f64 = 1.0) -> out: f32[h, w]";
    algorithm.reference = plain;
    hone_kernel kernels[2];
    for (hone_kernel &kernel : kernels) {
        hone_kernel_init(&kernel);
        kernel.algorithm = "sharpen";
        kernel.platform = HONE_NATIVE;
        kernel.backend = HONE_CPU;
    }
    kernels[0].name = "plain";
    kernels[0].run = plain;
    kernels[1].name = "threaded";
    kernels[1].run = threaded;
    kernels[1].space = "threads: 1 | 2 | 4";
    hone_status status = hone_register_algorithm(rt, &algorithm, err);
    if (status == HONE_OK) status = hone_register_kernels(rt, kernels, 2, err);
    if (status == HONE_OK) status = hone_op_get(rt, "sharpen", out, err);
    return status;
}

static hone_status tune(const hone_op *sharpen, const hone_value *args, std::size_t count, hone_error *err)
{
    hone_tune_options options{};
    options.struct_size = sizeof options;
    options.seconds = 1;
    hone_call *call = nullptr;
    hone_result *result = nullptr;
    hone_status status =
        hone_call_bind(hone_allocator_system(), hone_op_signature(sharpen), args, count, false, &call, err);
    if (status == HONE_OK) status = hone_tune(sharpen, call, &options, &result, err);
    hone_result_release(&result);
    hone_call_release(&call);
    return status;
}

int main()
{
    constexpr std::int64_t height = 240, width = 320;
    std::vector<float> image(height * width), sharp(height * width);
    std::int64_t shape[] = {height, width};
    hone_tensor in = hone_tensor_of(image.data(), HONE_F32, 2, shape);
    hone_tensor out = hone_tensor_of(sharp.data(), HONE_F32, 2, shape);
    const hone_value args[] = {hone_of_tensor(&in), hone_of_tensor(&out), hone_of_float(0.5)};
    hone_runtime_options options{};
    options.struct_size = sizeof options;
    options.flags = HONE_RUNTIME_ZYGOTE;
    hone_runtime *rt = nullptr;
    const hone_op *sharpen = nullptr;
    const hone_plan *plan = nullptr;
    hone_error err;
    hone_status status = hone_runtime_open(&options, &rt, &err);
    if (status == HONE_OK) status = register_sharpen(rt, &sharpen, &err);
    if (status == HONE_OK) status = tune(sharpen, args, 3, &err);
    if (status == HONE_OK) status = hone_bind(sharpen, args, 3, &plan, &err);
    for (std::size_t frame = 0; frame < 50 && status == HONE_OK; frame++) {
        image[7 * width + frame] = 3;
        status = plan->run(plan, args, nullptr);
        if (status != HONE_OK) status = hone_plan_failed(plan, status, &err);
    }
    if (status == HONE_OK)
        std::printf("%s: sharp[7][0] = %g\n", plan->kernel->name, static_cast<double>(sharp[7 * width]));
    else
        std::fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_plan_release(&plan);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
