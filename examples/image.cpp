// An image pipeline in C++17: an operation of the program's own with two kernels, tuned, bound, and run frame by frame.
// long/image.cpp is the same with the functions of C.
#include <hone/hone.hpp>

#include <cstdio>

// Row y: each pixel, and `amount` times what it differs by from the mean of the three around it.
static void sharpen_row(const float *in, float *out, std::int64_t width, double amount)
{
    for (std::int64_t x = 0; x < width; x++) {
        const double mean = (in[x > 0 ? x - 1 : 0] + in[x] + in[x < width - 1 ? x + 1 : x]) / 3.0;
        out[x] = static_cast<float>(in[x] + amount * (in[x] - mean));
    }
}

int main()
try {
    constexpr std::int64_t height = 240, width = 320;
    std::vector<float> image(height * width), sharp(height * width);
    hone_runtime_options zygote{};
    zygote.flags = HONE_RUNTIME_ZYGOTE;
    hone::runtime rt(zygote);
    hone::operation sharpen = rt.algorithm(
        "sharpen(image: f32[h, w], *, amount: f64 = 1.0) -> out: f32[h, w]",
        [](hone::run &run, hone::span<const float> in, hone::span<float> out, double amount) {
            const std::int64_t w = run.dim("w");
            for (std::int64_t y = 0; y < run.dim("h"); y++)
                sharpen_row(&in[y * w], &out[y * w], w, amount);
        });
    hone::about threads;
    threads.space = "threads: 1 | 2 | 4";
    sharpen.kernel(
        "threaded",
        [](hone::run &run, hone::span<const float> in, hone::span<float> out, double amount) {
            const std::int64_t w = run.dim("w");
            run.parallel_for(static_cast<std::int32_t>(run.config(0)), run.dim("h"), [&](std::int64_t y) {
                sharpen_row(&in[y * w], &out[y * w], w, amount);
            });
        },
        threads);
    const hone::tensor in(image, {height, width}), out(sharp, {height, width});
    hone_tune_options briefly{};
    briefly.seconds = 1;
    sharpen.tune(briefly, in, out, 0.5);
    const hone::plan plan = sharpen.bind(in, out, 0.5);
    for (std::size_t frame = 0; frame < 50; frame++) {
        image[7 * width + frame] = 3;
        plan(in, out, 0.5);
    }
    std::printf("%s: sharp[7][0] = %g\n", plan.kernel().c_str(), static_cast<double>(sharp[7 * width]));
} catch (const hone::error &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
