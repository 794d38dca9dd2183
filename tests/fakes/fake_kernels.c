// What the fake GPU can compute: the kernels of the tests, and hone's own by the names of their entries.
#include "fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static float bf16_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t bf16_of_float(float value)
{
    uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

typedef struct array {
    void *data;
    bool is_bf16;
} array;

static float get(array from, int64_t index)
{
    return from.is_bf16 ? bf16_to_float(((const uint16_t *)from.data)[index]) : ((const float *)from.data)[index];
}

static void put(array to, int64_t index, float value)
{
    if (to.is_bf16)
        ((uint16_t *)to.data)[index] = bf16_of_float(value);
    else
        ((float *)to.data)[index] = value;
}

static array array_at(const fake_launch *launch, int index, bool is_bf16)
{
    array a = {.is_bf16 = is_bf16};
    memcpy(&a.data, launch->arguments[index], sizeof a.data);
    return a;
}

static int32_t int_at(const fake_launch *launch, int index)
{
    int32_t value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

static float float_at(const fake_launch *launch, int index)
{
    float value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

static int64_t long_at(const fake_launch *launch, int index)
{
    int64_t value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

static double double_at(const fake_launch *launch, int index)
{
    double value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

// Rows of floats, which hone's own kernels over rows take in: the mean and the factor of a norm.
static void norm_row(const float *x, int64_t dim, bool subtract, double eps, double *out_mean, double *out_factor)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < dim; i++)
        sum += x[i];
    *out_mean = subtract ? sum / (double)dim : 0;
    for (int64_t i = 0; i < dim; i++)
        squares += (x[i] - *out_mean) * (x[i] - *out_mean);
    *out_factor = 1 / sqrt(squares / (double)dim + eps);
}

// (x, y, rows, dim, scale)
static int softmax(const fake_launch *launch)
{
    const float *x = array_at(launch, 0, false).data;
    float *y = array_at(launch, 1, false).data;
    const int64_t dim = int_at(launch, 3), count = long_at(launch, 2) * dim;
    for (int64_t row = 0; row < count; row += dim) {
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < dim; i++)
            most = fmax(most, double_at(launch, 4) * x[row + i]);
        for (int64_t i = 0; i < dim; i++)
            sum += exp(double_at(launch, 4) * x[row + i] - most);
        for (int64_t i = 0; i < dim; i++)
            y[row + i] = (float)(exp(double_at(launch, 4) * x[row + i] - most) / sum);
    }
    return 0;
}

// (x, weight, bias, y, rows, dim, eps, weight_offset), weight and bias of floats
static int layer_norm(const fake_launch *launch)
{
    const float *x = array_at(launch, 0, false).data, *weight = array_at(launch, 1, false).data;
    const float *bias = array_at(launch, 2, false).data;
    float *y = array_at(launch, 3, false).data;
    const int64_t dim = int_at(launch, 5), count = long_at(launch, 4) * dim;
    const bool subtract = fake_has_option(launch->function->image, "-DSUBTRACT_MEAN=1");
    for (int64_t row = 0; row < count; row += dim) {
        double mean, factor;
        norm_row(x + row, dim, subtract, double_at(launch, 6), &mean, &factor);
        for (int64_t i = 0; i < dim; i++) {
            const double scale = weight != NULL ? weight[i] + double_at(launch, 7) : 1;
            y[row + i] = (float)((x[row + i] - mean) * factor * scale + (bias != NULL ? (double)bias[i] : 0));
        }
    }
    return 0;
}

// (x, residual, weight, sum, y, rows, dim, eps)
static int add_rms_norm(const fake_launch *launch)
{
    const float *x = array_at(launch, 0, false).data, *residual = array_at(launch, 1, false).data;
    const float *weight = array_at(launch, 2, false).data;
    float *sum = array_at(launch, 3, false).data, *y = array_at(launch, 4, false).data;
    const int64_t dim = int_at(launch, 6), count = long_at(launch, 5) * dim;
    for (int64_t i = 0; i < count; i++)
        sum[i] = x[i] + residual[i];
    for (int64_t row = 0; row < count; row += dim) {
        double mean, factor;
        norm_row(sum + row, dim, false, double_at(launch, 7), &mean, &factor);
        for (int64_t i = 0; i < dim; i++)
            y[row + i] = (float)(sum[row + i] * factor * weight[i]);
    }
    return 0;
}

// (gate, up, y, count)
static int silu_mul(const fake_launch *launch)
{
    const float *gate = array_at(launch, 0, false).data, *up = array_at(launch, 1, false).data;
    float *y = array_at(launch, 2, false).data;
    for (int64_t i = 0; i < long_at(launch, 3); i++)
        y[i] = (float)(gate[i] / (1 + exp(-(double)gate[i])) * up[i]);
    return 0;
}

// (x, out, batches, length, channels)
static int mean_pooling(const fake_launch *launch)
{
    const float *x = array_at(launch, 0, false).data;
    float *out = array_at(launch, 1, false).data;
    const int64_t length = long_at(launch, 3), channels = long_at(launch, 4);
    for (int64_t i = 0; i < long_at(launch, 2) * channels; i++) {
        double sum = 0;
        for (int64_t step = 0; step < length; step++)
            sum += x[(i / channels * length + step) * channels + i % channels];
        out[i] = (float)(sum / (double)length);
    }
    return 0;
}

// (x, cos, sin, y, tokens, positions), of heads of 16 elements that are pairs
static int rope(const fake_launch *launch)
{
    enum { HALF = 8 };
    const float *x = array_at(launch, 0, false).data, *cos = array_at(launch, 1, false).data;
    const float *sin = array_at(launch, 2, false).data;
    float *y = array_at(launch, 3, false).data;
    const int64_t heads = fake_has_option(launch->function->image, "-DHEADS=3") ? 3 : 0;
    for (int64_t at = 0; at < long_at(launch, 4) * heads * HALF; at++) {
        const int64_t first = at / HALF * 2 * HALF + at % HALF;
        const int64_t angle = at / (heads * HALF) % long_at(launch, 5) * HALF + at % HALF;
        y[first] = x[first] * cos[angle] - x[first + HALF] * sin[angle];
        y[first + HALF] = x[first + HALF] * cos[angle] + x[first] * sin[angle];
    }
    return 0;
}

// (x, weight, y, rows, dim, eps)
static int rms_norm(const fake_launch *launch)
{
    bool is_bf16 = fake_has_option(launch->function->image, "-Dhone_x_bf16=1");
    array x = array_at(launch, 0, is_bf16), weight = array_at(launch, 1, is_bf16), y = array_at(launch, 2, is_bf16);
    int64_t rows = int_at(launch, 3), dim = int_at(launch, 4);
    for (int64_t row = 0; row < rows; row++) {
        double squares = 0;
        for (int64_t i = 0; i < dim; i++)
            squares += (double)get(x, row * dim + i) * get(x, row * dim + i);
        double factor = 1 / sqrt(squares / (double)dim + float_at(launch, 5));
        for (int64_t i = 0; i < dim; i++)
            put(y, row * dim + i, (float)(get(x, row * dim + i) * factor * get(weight, i)));
    }
    return 0;
}

// (a, b, c, m, n, k), or with tensor maps, which begin with the tensor's address here (c, m, n, k, a, b)
static int matmul(const fake_launch *launch)
{
    const char *image = launch->function->image;
    bool is_bf16 = fake_has_option(image, "-Dhone_a_bf16=1"), transposed = fake_has_option(image, "-DTRANSPOSE_B=1");
    // A cubin of the real compiler says no options, but what its parameters take.
    const fake_function *function = launch->function;
    const bool has_maps = function->count > 5 ? function->sizes[5] == 128 : fake_has_option(image, "-Dpromote_every=0");
    const int maps = has_maps ? 4 : 0, results = has_maps ? 0 : 2;
    array a = array_at(launch, maps, is_bf16), b = array_at(launch, maps + 1, is_bf16);
    array c = array_at(launch, results, is_bf16);
    int64_t m = int_at(launch, results + 1), n = int_at(launch, results + 2), k = int_at(launch, results + 3);
    for (int64_t row = 0; row < m; row++)
        for (int64_t column = 0; column < n; column++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += (double)get(a, row * k + i) * get(b, transposed ? column * k + i : i * n + column);
            put(c, row * n + column, (float)sum);
        }
    return 0;
}

// The kernels of the tests: (x, y, n)
static int scale_by(const fake_launch *launch, float factor, int more)
{
    array x = array_at(launch, 0, false), y = array_at(launch, 1, false);
    for (int64_t i = 0; i < int_at(launch, 2) + more; i++)
        put(y, i, factor * (i < int_at(launch, 2) ? get(x, i) : 1));
    return 0;
}

// (x, y, o, n) and what Triton adds behind
static int add_vectors(const fake_launch *launch, float sign, int more)
{
    array x = array_at(launch, 0, false), y = array_at(launch, 1, false), o = array_at(launch, 2, false);
    const int64_t n = int_at(launch, 3);
    for (int64_t i = 0; i < n + more; i++)
        put(o, i, i < n ? get(x, i) + sign * get(y, i) : 1);
    return 0;
}

static int vadd(const fake_launch *launch)
{
    return add_vectors(launch, 1, 0);
}

static int vsub(const fake_launch *launch)
{
    return add_vectors(launch, -1, 0);
}

static int over(const fake_launch *launch)
{
    return add_vectors(launch, 1, 5);
}

static int triple(const fake_launch *launch)
{
    return scale_by(launch, 3, 0);
}

// y = used * x + alpha: (x, y, n, alpha), used being a macro.
static int shifted(const fake_launch *launch)
{
    const float used = fake_has_option(launch->function->image, "-Dused=2") ? 2 : 1;
    array x = array_at(launch, 0, false), y = array_at(launch, 1, false);
    for (int64_t i = 0; i < int_at(launch, 2); i++)
        put(y, i, used * get(x, i) + float_at(launch, 3));
    return 0;
}

// As triple by way of scratch memory: (x, y, scratch, n).
static int by_way(const fake_launch *launch)
{
    array x = array_at(launch, 0, false), y = array_at(launch, 1, false), scratch = array_at(launch, 2, false);
    for (int32_t i = 0; i < int_at(launch, 3); i++)
        put(scratch, i, 3 * get(x, i));
    memcpy(y.data, scratch.data, (size_t)int_at(launch, 3) * sizeof(float));
    return 0;
}

// by_way in two functions: the second takes what the first has left in scratch memory.
static int first_half(const fake_launch *launch)
{
    array x = array_at(launch, 0, false), scratch = array_at(launch, 2, false);
    for (int32_t i = 0; i < int_at(launch, 3); i++)
        put(scratch, i, 3 * get(x, i));
    return 0;
}

static int second_half(const fake_launch *launch)
{
    array y = array_at(launch, 1, false), scratch = array_at(launch, 2, false);
    memcpy(y.data, scratch.data, (size_t)int_at(launch, 3) * sizeof(float));
    return 0;
}

// The same, and 49 bytes farther in scratch memory.
static int past_scratch(const fake_launch *launch)
{
    array scratch = array_at(launch, 2, false);
    memset((char *)scratch.data + sizeof(float) * (size_t)int_at(launch, 3), 0, 49);
    return by_way(launch);
}

static int wrong(const fake_launch *launch)
{
    return scale_by(launch, 2, 0);
}

static int overrun(const fake_launch *launch)
{
    return scale_by(launch, 3, 5);
}

static int illegal(const fake_launch *launch)
{
    (void)launch;
    return 700;
}

static int hang(const fake_launch *launch)
{
    while (launch != NULL)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return 0;
}

static int nothing(const fake_launch *launch)
{
    (void)launch;
    return 0;
}

int fake_run(const fake_launch *launch)
{
    static const struct {
        const char *name;
        int (*run)(const fake_launch *launch);
    } kernels[] = {
        {"rms_norm", rms_norm},
        {"rms_norm_whole", rms_norm},
        {"rms_norm_twice", rms_norm},
        {"softmax", softmax},
        {"layer_norm", layer_norm},
        {"add_rms_norm", add_rms_norm},
        {"silu_mul", silu_mul},
        {"mean_pooling", mean_pooling},
        {"rope", rope},
        {"matmul", matmul},
        {"matmul_0", matmul}, // as the CuTe DSL names it
        {"vadd", vadd},
        {"add", vadd}, // of docs/triton.md
        {"vsub", vsub},
        {"over", over},
        {"triple", triple},
        {"shifted", shifted},
        {"by_way", by_way},
        {"first_half", first_half},
        {"second_half", second_half},
        {"past_scratch", past_scratch},
        {"wrong", wrong},
        {"overrun", overrun},
        {"illegal", illegal},
        {"fail", illegal},
        {"hang", hang},
        {"hone_wait", nothing}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, launch->function->name) == 0) return kernels[i].run(launch);
    return 719;
}
