#include "tune/contest/floor.h"

#include "base/number.h"
#include "call/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Of a processor: chosen so that the best kernels over bench/shapes stay clear of the floor (docs/benchmarks.md). Of a
// GPU, whose peaks are computed from its clocks: these may run a little above the highest that the driver reports.
static const double processor_margin = 2, gpu_margin = 1.25;

// Peaks ---------------------------------------------------------------------------------------------------------------

bool hone_floor_is_measured_on(const hone_device_info *device)
{
    return device->backend == HONE_CPU;
}

// What an NVIDIA GPU does per clock. Source: NVIDIA's whitepapers of each architecture, dense products of 16 bits on
// tensor cores. A multiprocessor reads 64 bytes per clock from its second cache; for some architectures the whole
// cache is known to give less.
typedef struct gpu_facts {
    int32_t capability;
    double operations;  // of one multiprocessor
    double cache_bytes; // of the whole second cache; 0: 64 for each multiprocessor
} gpu_facts;

static const gpu_facts gpus[] = {
    {70, 1024, 2048}, {75, 1024, 0},    {80, 2048, 5120}, {86, 1024, 0},  {87, 2048, 0},
    {89, 1024, 0},    {90, 4096, 5120}, {100, 8192, 0},   {103, 8192, 0}, {120, 2048, 0},
};

static const gpu_facts *facts_of(int32_t capability)
{
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
        if (gpus[i].capability == capability) return &gpus[i];
    return NULL;
}

// A launch reads from the second cache, and what that does not hold from the memory. If the size of the second cache is
// not known, all may come from it, so there is no peak of the memory.
hone_peaks hone_peaks_of_gpu(const hone_device_info *device)
{
    hone_peaks peaks = {.bytes[HONE_LEVEL_MEMORY] = device->l2_bytes > 0 ? device->memory_rate : 0, .reach = INFINITY};
    const gpu_facts *facts = device->capability > 0 ? facts_of(device->capability) : NULL;
    const double clocks = (double)device->clock_mhz * 1e6, sms = (double)device->sms;
    peaks.holds[HONE_LEVEL_2] = peaks.holds[HONE_LEVEL_3] = (double)device->l2_bytes;
    if (facts == NULL || !(clocks > 0)) return peaks;
    // f32 may go through the tensor cores as TF32, at half the rate of 16 bits. How much of f64 arithmetic narrower
    // numbers can do is not known, so f64 counts as f32.
    const double of_16 = facts->operations * sms * clocks;
    const double operations[HONE_WIDTHS] = {of_16 / 2, of_16 / 2, of_16, 2 * of_16, 4 * of_16};
    memcpy(peaks.operations, operations, sizeof operations);
    peaks.bytes[HONE_LEVEL_2] = (facts->cache_bytes > 0 ? facts->cache_bytes : 64 * sms) * clocks;
    return peaks;
}

void hone_peaks_add(hone_peaks *peaks, const hone_peaks *more)
{
    for (int width = 0; width < HONE_WIDTHS; width++)
        peaks->operations[width] = fmax(peaks->operations[width], more->operations[width]);
    for (int level = 0; level < HONE_LEVELS; level++) {
        peaks->bytes[level] = fmax(peaks->bytes[level], more->bytes[level]);
        peaks->holds[level] = fmax(peaks->holds[level], more->holds[level]);
    }
    peaks->reach = fmax(peaks->reach, more->reach);
}

// The cost of a call --------------------------------------------------------------------------------------------------

// The bytes of the memory that a tensor's elements lie in. An axis with stride 0 counts as one element, and axes that
// overlap count with their span.
static double bytes_of(const hone_tensor *tensor)
{
    double elements = 1, span = 1;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        const double length = (double)tensor->shape[i];
        const int64_t stride = tensor->strides != NULL ? tensor->strides[i] : 1;
        if (length <= 0) return 0;
        if (stride != 0) elements *= length;
        span += (length - 1) * fabs((double)stride);
    }
    return (tensor->strides != NULL ? fmin(elements, span) : elements) * tensor->dtype.bits * tensor->dtype.lanes / 8.0;
}

static double bytes_of_arguments(const hone_call *call, bool results_only)
{
    double bytes = 0;
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL && (!results_only || hone_signature_parameter(signature, i)->is_result))
            bytes += bytes_of(tensor);
    }
    return bytes;
}

hone_cost hone_floor_cost(const hone_algorithm *algorithm, const hone_call *call)
{
    hone_cost cost = {0, 0};
    if (algorithm->model == NULL) return (hone_cost){bytes_of_arguments(call, true), 0};
    algorithm->model(call, &cost);
    const double most = bytes_of_arguments(call, false);
    if (!(cost.bytes <= most)) cost.bytes = most;
    if (!(cost.bytes > 0)) cost.bytes = 0;
    if (!isfinite(cost.operations) || cost.operations < 0) cost.operations = 0;
    return cost;
}

// The width of the narrowest numbers among the inputs: the arithmetic may be done with these. Wide integers may be
// indices of what is computed in floats, so they count as 32 bits.
static hone_number_width narrowest(const hone_call *call)
{
    int bits = 0; // no input has been seen
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor == NULL || hone_signature_parameter(signature, i)->is_result || tensor->dtype.code == HONE_CODE_BOOL)
            continue;
        const bool is_wide_integer = tensor->dtype.bits == 64 && tensor->dtype.code != HONE_CODE_FLOAT;
        const int own = is_wide_integer ? 32 : tensor->dtype.bits;
        if (bits == 0 || own < bits) bits = own;
    }
    if (bits == 64) return HONE_WIDTH_64;
    if (bits == 0) return HONE_WIDTH_32;
    return bits > 16 ? HONE_WIDTH_32 : bits > 8 ? HONE_WIDTH_16 : bits > 4 ? HONE_WIDTH_8 : HONE_WIDTH_4;
}

// The floor -----------------------------------------------------------------------------------------------------------

static void raise(hone_floor *floor, double amount, double rate, const char *at, bool is_of_operations)
{
    if (!(rate > 0) || !(amount > 0)) return;
    const double ns = amount / rate * 1e9 / floor->margin;
    if (ns <= floor->ns) return;
    floor->ns = ns;
    floor->amount = amount;
    floor->rate = rate;
    floor->at = at;
    floor->is_of_operations = is_of_operations;
}

const char *hone_level_name(hone_memory_level level)
{
    static const char *const names[HONE_LEVELS] = {"L1", "L2", "L3", "memory"};
    return names[level];
}

bool hone_roofline_of(
    const hone_algorithm *algorithm, const hone_call *call, const hone_peaks *peaks, hone_roofline *out)
{
    *out = (hone_roofline){.cost = hone_floor_cost(algorithm, call), .operations = peaks->operations[narrowest(call)]};
    memcpy(out->bytes, peaks->bytes, sizeof out->bytes);
    return out->cost.operations > 0 && out->cost.bytes > 0 && out->operations > 0;
}

hone_floor hone_floor_of(
    const hone_algorithm *algorithm, const hone_call *call, const hone_device_info *device, const hone_peaks *peaks)
{
    const bool is_measured = hone_floor_is_measured_on(device);
    hone_floor floor = {.is_measured = is_measured, .margin = is_measured ? processor_margin : gpu_margin};
    const hone_cost cost = hone_floor_cost(algorithm, call);
    for (int level = 0; level < HONE_LEVELS; level++) {
        const double before = level > 0 ? peaks->holds[level - 1] : 0;
        raise(&floor, cost.bytes - before, peaks->bytes[level], hone_level_name((hone_memory_level)level), false);
    }
    raise(&floor, cost.operations, peaks->operations[narrowest(call)], "arithmetic", true);
    if (floor.ns > 0) return floor;
    floor.lacks =
        cost.bytes > 0 ? "nothing is known of what the device can do at best" : "the call has no results of any size";
    return floor;
}

bool hone_floor_is_broken(const hone_floor *floor, double time_ns)
{
    return floor->ns > 0 && time_ns < floor->ns;
}

// Messages ------------------------------------------------------------------------------------------------------------

// Formats a number with three digits and a prefix: "8.39 M".
static const char *scaled(double value, char out[24])
{
    static const char prefixes[] = " kMGTPE";
    size_t i = 0;
    while (value >= 999.5 && i + 2 < sizeof prefixes) {
        value /= 1000;
        i++;
    }
    hone_print(out, 24, i > 0 ? "%.3g %c" : "%.3g ", value, prefixes[i]);
    return out;
}

static const char *time_text(double ns, char out[24])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t i = 0;
    while (ns >= 999.5 && i + 1 < sizeof units / sizeof units[0]) {
        ns /= 1000;
        i++;
    }
    hone_print(out, 24, "%.3g %s", ns, units[i]);
    return out;
}

void hone_floor_say_broken(const hone_floor *floor, double time_ns, char *out, size_t size)
{
    char time[24], amount[24], seen[24], rate[24], least[24];
    const char *unit = floor->is_of_operations ? "FLOP" : "B";
    snprintf(
        out, size, "%s for %s%s is %s%s/s; %s gives %s%s/s here, and nothing takes less than %s",
        time_text(time_ns, time), scaled(floor->amount, amount), unit,
        scaled(floor->amount / fmax(time_ns, 1e-3) * 1e9, seen), unit, floor->at, scaled(floor->rate, rate), unit,
        time_text(floor->ns, least));
}

void hone_floor_say(const hone_floor *floor, char *out, size_t size)
{
    char amount[24], rate[24], least[24];
    const char *unit = floor->is_of_operations ? "FLOP" : "B";
    if (!(floor->ns > 0)) {
        snprintf(out, size, "none: %s", floor->lacks != NULL ? floor->lacks : "it was not looked for");
        return;
    }
    hone_print(
        out, size, "%s, for %s%s at %g times the %s%s/s %s of %s", time_text(floor->ns, least),
        scaled(floor->amount, amount), unit, floor->margin, scaled(floor->rate, rate), unit,
        floor->is_measured ? "measured" : "told by the driver", floor->at);
}
