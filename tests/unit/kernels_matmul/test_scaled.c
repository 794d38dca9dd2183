// scaled_matmul: sums at their limits, sizes and strides at which kernels of integers change their ways. What its kernels have in
// common with all others is in kernels_walk.
#include "harness.h"

#include "base/random.h"
#include "call/call.h"
#include "hone/describe.h"
#include "hone/space.h"
#include "kernels/scaled_matmul/scaled_matmul.h"
#include "os/tiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CONFIGS = 4 };

// A call and its arrays. The result is f32, so that sums are seen to their last bits.
typedef struct scaled {
    hone_dtype_id dtype; // of a and b
    int64_t m, n, k;
    bool transpose_b;
    int8_t *a, *b;
    float *a_scale, *b_scale, *bias, *c;
    int64_t shapes[6][2], strides[2][1];
    hone_tensor tensors[6];
    hone_value args[SCALED_MATMUL_VALUES];
    hone_call *call;
} scaled;

static hone_signature *signature(void)
{
    hone_error err = {0};
    hone_signature *made = NULL;
    const char *text = hone_scaled_matmul_table.algorithm->signature;
    if (hone_signature_parse(hone_allocator_system(), text, &made, &err) != HONE_OK) fail_msg("%s", err.message);
    return made;
}

// Ends where the next byte must not be touched: masked loads that AddressSanitizer does not see end the process there.
static void *array(int64_t count, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)count * size;
    const size_t whole = (bytes + page - 1) / page * page;
    char *made = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(made, MAP_FAILED);
    assert_int_equal(mprotect(made + whole, page, PROT_NONE), 0);
    return made + whole - bytes;
}

static void drop(void *data, int64_t count, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)count * size;
    const size_t whole = (bytes + page - 1) / page * page;
    assert_int_equal(munmap((char *)data + bytes - whole, whole + page), 0);
}

static void put(scaled *s, size_t index, void *data, hone_dtype_id dtype, int32_t ndim, int64_t rows, int64_t columns)
{
    s->shapes[index][0] = rows;
    s->shapes[index][1] = columns;
    s->tensors[index] = hone_tensor_of(data, dtype, ndim, s->shapes[index]);
    s->args[index] = hone_of_tensor(&s->tensors[index]);
}

// scales_stride: 1, or 0: one for all.
static scaled *make_of(hone_dtype_id dtype, int64_t m, int64_t n, int64_t k, bool transpose_b, int64_t scales_stride)
{
    scaled *s = calloc(1, sizeof *s);
    assert_non_null(s);
    *s = (scaled){.dtype = dtype, .m = m, .n = n, .k = k, .transpose_b = transpose_b};
    s->a = array(m * k, 1);
    s->b = array(k * n, 1);
    s->a_scale = array(m, sizeof(float));
    s->b_scale = array(n, sizeof(float));
    s->bias = array(n, sizeof(float));
    s->c = array(m * n, sizeof(float));
    for (int64_t i = 0; i < m; i++)
        s->a_scale[i] = 1.0f / (float)(i + 2);
    for (int64_t j = 0; j < n; j++) {
        s->b_scale[j] = 0.25f + (float)(j % 7);
        s->bias[j] = (float)(j % 5) - 2;
    }
    put(s, SCALED_MATMUL_A, s->a, dtype, 2, m, k);
    put(s, SCALED_MATMUL_B, s->b, dtype, 2, transpose_b ? n : k, transpose_b ? k : n);
    put(s, SCALED_MATMUL_A_SCALE, s->a_scale, HONE_F32, 1, m, 0);
    put(s, SCALED_MATMUL_B_SCALE, s->b_scale, HONE_F32, 1, n, 0);
    put(s, SCALED_MATMUL_BIAS, s->bias, HONE_F32, 1, n, 0);
    put(s, SCALED_MATMUL_C, s->c, HONE_F32, 2, m, n);
    for (size_t i = 0; i < 2; i++) {
        s->strides[i][0] = scales_stride;
        s->tensors[SCALED_MATMUL_A_SCALE + i].strides = s->strides[i];
    }
    s->args[SCALED_MATMUL_TRANSPOSE_B] = hone_of_bool(transpose_b);
    hone_error err = {0};
    hone_signature *text = signature();
    if (hone_call_bind(hone_allocator_system(), text, s->args, SCALED_MATMUL_VALUES, false, &s->call, &err) != HONE_OK)
        fail_msg("%s", err.message);
    hone_signature_release(&text);
    return s;
}

static scaled *make(int64_t m, int64_t n, int64_t k, bool transpose_b, int64_t scales_stride)
{
    return make_of(HONE_I8, m, n, k, transpose_b, scales_stride);
}

static void release(scaled *s)
{
    hone_call_release(&s->call);
    drop(s->a, s->m * s->k, 1);
    drop(s->b, s->k * s->n, 1);
    drop(s->a_scale, s->m, sizeof(float));
    drop(s->b_scale, s->n, sizeof(float));
    drop(s->bias, s->n, sizeof(float));
    drop(s->c, s->m * s->n, sizeof(float));
    free(s);
}

static int8_t *b_at(scaled *s, int64_t p, int64_t j)
{
    return s->transpose_b ? &s->b[j * s->k + p] : &s->b[p * s->n + j];
}

// The sum, and of its terms' sizes.
static double sum_of(scaled *s, int64_t row, int64_t column, double *out_terms)
{
    double sum = 0;
    *out_terms = 0;
    for (int64_t p = 0; p < s->k; p++) {
        const double term =
            hone_element_load(s->dtype, s->a, row * s->k + p) * hone_element_load(s->dtype, b_at(s, p, column), 0);
        sum += term;
        *out_terms += fabs(term);
    }
    return sum;
}

// Four roundings in float: of the sum, of two products and of the bias' addition; of floats each of k additions has one in double.
static void check(scaled *s, const hone_kernel *kernel)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double terms;
            const double sum = sum_of(s, i, j, &terms), bias = (double)s->bias[j], got = (double)s->c[i * s->n + j];
            const double scale = (double)s->a_scale[i * s->strides[0][0]] * (double)s->b_scale[j * s->strides[1][0]];
            const double want = sum * scale + bias;
            const double additions = s->dtype == HONE_I8 ? 0 : 0x1p-29 * (double)s->k * terms * fabs(scale);
            const double bound = 0x1p-24 * (4 * (fabs(want) + 2 * fabs(bias)) + additions);
            if (isfinite(want) ? fabs(got - want) <= bound : isnan(want) ? isnan(got) : got == want) continue;
            fail_msg(
                "%s at %s: c[%d, %d] is %.9g, expected %.9g", kernel->name, hone_call_text(s->call), (int)i, (int)j,
                got, want);
        }
}

static bool can_run(const test_machine *machine, const hone_kernel *kernel, const scaled *s)
{
    return !kernel->is_reference && reason_against(machine, kernel, s->call) == NULL;
}

static bool run(const test_machine *machine, const hone_kernel *kernel, scaled *s, const hone_config *config)
{
    hone_error err = {0};
    const hone_execution execution = {.struct_size = sizeof execution};
    hone_plan plan = {
        .run = kernel->run, .config = config->values, .kernel = kernel, .call = s->call, .device = &machine->device};
    if (kernel->prepare != NULL) {
        const hone_status status = kernel->prepare(&plan, &plan.state, &plan.scratch_bytes, &err);
        if (status == HONE_UNAVAILABLE || status == HONE_UNSUPPORTED) return false;
        if (status != HONE_OK) fail_msg("%s: %s", kernel->name, err.message);
    }
    memset(s->c, 0xff, (size_t)(s->m * s->n) * sizeof(float));
    const hone_status status = plan.run(&plan, s->args, &execution);
    if (kernel->release != NULL) kernel->release(kernel, plan.state);
    assert_int_equal(status, HONE_OK);
    return true;
}

static size_t configs_of(const test_machine *machine, const hone_kernel *kernel, const scaled *s, hone_config *out)
{
    hone_error err = {0};
    hone_space *space = NULL;
    hone_bound_space *bound = NULL;
    size_t count = 0;
    if (hone_space_parse(hone_allocator_system(), kernel->space, &space, &err) != HONE_OK ||
        hone_space_bind(space, s->call, &machine->device, &bound, &err) != HONE_OK ||
        hone_bound_space_sample(bound, 7, CONFIGS, out, &count, &err) != HONE_OK)
        fail_msg("%s: %s", kernel->name, err.message);
    count += kernel->heuristic(kernel, s->call, &machine->device, &out[count]);
    hone_bound_space_release(&bound);
    hone_space_release(&space);
    return count;
}

// Every kernel that can, at the heuristic's config and some others. Returns how many kernels ran.
static int run_all(const test_machine *machine, scaled *s)
{
    int ran = 0;
    for (size_t i = 0; i < hone_scaled_matmul_table.count; i++) {
        const hone_kernel *kernel = &hone_scaled_matmul_table.kernels[i];
        hone_config configs[CONFIGS + 1] = {{0}};
        if (!can_run(machine, kernel, s)) continue;
        const size_t count = configs_of(machine, kernel, s, configs);
        bool has_run = false;
        for (size_t c = 0; c < count; c++) {
            if (!run(machine, kernel, s, &configs[c])) continue;
            check(s, kernel);
            has_run = true;
        }
        ran += has_run;
    }
    return ran;
}

// The largest k that is summed in 32 bits, of the largest products of either sign: rows of a are all -128, all 127, and both in turn.
static void sums_at_the_limit_of_32_bits(void **state)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        scaled *s = make(3, 5, SCALED_MATMUL_MOST_K, transposed, 1);
        for (int64_t p = 0; p < s->k; p++) {
            s->a[p] = -128;
            s->a[s->k + p] = 127;
            s->a[2 * s->k + p] = p % 2 == 0 ? -128 : 127;
            for (int64_t j = 0; j < s->n; j++)
                *b_at(s, p, j) = (int8_t)(j == 0 ? -128 : j == 1 ? 127 : j == 2 ? 0 : p % (j + 1) == 0 ? 127 : -128);
        }
        assert_true(run_all(*state, s) > 0);
        release(s);
    }
}

static void one_more_is_refused_with_words_by_who_sums_in_32_bits(void **state)
{
    const test_machine *machine = *state;
    scaled *s = make(1, 1, SCALED_MATMUL_MOST_K + 1, true, 1);
    memset(s->a, -128, (size_t)s->k);
    memset(s->b, -128, (size_t)s->k);
    for (size_t i = 0; i < hone_scaled_matmul_table.count; i++) {
        const hone_kernel *kernel = &hone_scaled_matmul_table.kernels[i];
        if (kernel->is_reference || kernel->platform != HONE_NATIVE) continue;
        if ((kernel->needs & machine->device.features) != kernel->needs) continue;
        const char *why = reason_against(machine, kernel, s->call);
        if (strcmp(kernel->name, "portable") != 0)
            assert_non_null(
                strstr(why, "k is 131072; this kernel sums in 32 bits, which hold at most 131071 products"));
        else
            assert_null(why);
    }
    assert_int_equal(run_all(machine, s), 1); // the portable one, whose sums have 64 bits
    release(s);
}

// A few rows and many; sizes beside those of words, vectors, tiles and blocks.
static void sizes_beside_those_of_words_and_tiles(void **state)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1},    {1, 2, 3},      {2, 17, 4},    {3, 16, 5},   {4, 33, 63},  {5, 64, 64},
        {6, 65, 65},  {7, 130, 9},    {9, 48, 127},  {15, 31, 66}, {16, 32, 64}, {17, 33, 257},
        {32, 47, 12}, {33, 49, 1030}, {40, 70, 7},   {65, 9, 100}, {40, 17, 65}, {33, 40, 59},
        {8, 1, 1300}, {70, 33, 513},  {1, 300, 129}, {31, 96, 16},
    };
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const int64_t *size = sizes[i / 2];
        scaled *s = make(size[0], size[1], size[2], i % 2 == 0, (int64_t)(i / 2 % 2));
        uint64_t seed = i;
        for (int64_t j = 0; j < s->m * s->k; j++)
            s->a[j] = (int8_t)(hone_random_next(&seed) >> 56);
        for (int64_t j = 0; j < s->n * s->k; j++)
            s->b[j] = (int8_t)(hone_random_next(&seed) >> 56);
        assert_true(run_all(*state, s) > 0);
        release(s);
    }
}

// Nothing is summed: the bias is the result, but for a scale that makes NaN of 0.
static void without_k_the_result_is_the_bias(void **state)
{
    scaled *s = make(3, 20, 0, false, 1);
    s->a_scale[1] = NAN;
    s->b_scale[4] = INFINITY;
    assert_true(run_all(*state, s) > 0);
    release(s);
}

// What a call that was never tuned takes --------------------------------------------------------------------------------

// The first of a table that has its instructions, can run the call and does not yield.
static const char *first_of(
    const hone_kernel_table *table, const char *text, uint64_t features, const char *fingerprint)
{
    const hone_device_info device = {
        .features = features, .fingerprint = fingerprint, .threads = 2, .l2_bytes = 1 << 20};
    hone_signature *made = NULL;
    hone_call *call = NULL;
    hone_error err = {0};
    const hone_kernel *first = NULL;
    if (hone_signature_parse(hone_allocator_system(), table->algorithm->signature, &made, &err) != HONE_OK ||
        hone_call_parse(hone_allocator_system(), made, text, &call, &err) != HONE_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < table->count; i++) {
        const hone_kernel *kernel = &table->kernels[i];
        const bool runs = kernel->platform == HONE_NATIVE && !kernel->is_reference &&
                          (kernel->needs & ~features) == 0 &&
                          (kernel->supports == NULL || kernel->supports(kernel, call, &err)) &&
                          (kernel->yields == NULL || !kernel->yields(kernel, call, &device));
        if (runs && (first == NULL || kernel->priority > first->priority)) first = kernel;
    }
    hone_call_release(&call);
    hone_signature_release(&made);
    return first != NULL ? first->name : "none";
}

static void few_rows_are_read_as_they_lie_and_more_are_packed(void **state)
{
    static const uint64_t avx512 = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C | HONE_CPU_AVX512F | HONE_CPU_AVX512BW |
                                   HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ,
                          pairs = HONE_CPU_AVX512_BF16 | HONE_CPU_AVX512_VNNI,
                          tiles = HONE_CPU_AMX_BF16 | HONE_CPU_AMX_INT8;
    static const char intel[] = "cpu|GenuineIntel,x", amd[] = "cpu|AuthenticAMD,x";
    static const struct {
        const char *bf16, *i8; // of so many rows
        uint64_t features;
        const char *fingerprint, *bf16_takes, *i8_takes;
    } rows[] = {
        {"4", "4", avx512 | pairs | tiles, intel, "avx512_bf16_decode", "avx512_vnni_decode"},
        {"8", "10", avx512 | pairs | tiles, intel, "amx_bf16", "amx_int8"},
        {"100", "100", avx512 | pairs | tiles, intel, "amx_bf16", "amx_int8"},
        {"7", "13", avx512 | pairs, intel, "avx512_bf16_decode", "avx512_vnni_decode"},
        {"8", "13", avx512 | pairs, intel, "avx512_decode", "avx512_vnni_decode"},
        {"32", "13", avx512 | pairs, intel, "avx512_decode", "avx512_vnni_decode"},
        {"32", "13", avx512 | pairs, amd, "avx512_bf16_decode", "avx512_vnni_decode"},
        {"33", "14", avx512 | pairs, intel, "avx512", "avx512_vnni"},
        {"33", "32", avx512 | pairs, amd, "avx512_bf16_in_place", "avx512_vnni"},
        {"33", "14", avx512, amd, "avx512", "avx512"},
        {"32", "13", avx512, amd, "avx512_decode", "avx512_decode"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        const bool has_tiles = (rows[i].features & tiles) != 0;
        if (has_tiles && !hone_os_lend_tiles()) continue; // decided by what the system lends
        snprintf(text, sizeof text, "matmul(bf16[%s,64], bf16[64,96])", rows[i].bf16);
        assert_string_equal(
            first_of(&hone_matmul_table, text, rows[i].features, rows[i].fingerprint), rows[i].bf16_takes);
        snprintf(
            text, sizeof text, "scaled_matmul(i8[%s,64], i8[64,96], f32[%s], f32[96], bf16[96])", rows[i].i8,
            rows[i].i8);
        assert_string_equal(
            first_of(&hone_scaled_matmul_table, text, rows[i].features, rows[i].fingerprint), rows[i].i8_takes);
    }
}

static void where_packing_is_slow_products_of_floats_are_read_as_they_lie(void **state)
{
    static const uint64_t avx512 = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C | HONE_CPU_AVX512F | HONE_CPU_AVX512BW |
                                   HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ;
    static const char zen5[] = "cpu|AuthenticAMD,zen5,avx512f", zen4[] = "cpu|AuthenticAMD,zen4,avx512f",
                      intel[] = "cpu|GenuineIntel,x,avx512f";
    static const struct {
        const char *call, *fingerprint, *takes;
    } rows[] = {
        {"matmul(f32[100,64], f32[64,96])", zen5, "avx512_unpacked"},
        {"matmul(f64[100,64], f64[64,96])", zen5, "avx512_unpacked"},
        {"matmul(f32[4,64], f32[64,96])", zen5, "avx512_unpacked"},
        {"matmul(f32[3,64], f32[64,96])", zen5, "avx512_decode"},
        {"matmul(f32[100,64], f32[96,64], transpose_b=true)", zen5, "avx512_rows_in_place"},
        {"matmul(f32[4,64], f32[96,64], transpose_b=true)", zen5, "avx512_decode"},
        {"matmul(f16[100,64], f16[64,96])", zen5, "avx512"},
        {"matmul(f32[100,64], f32[64,96])", zen4, "avx512"},
        {"matmul(f32[4,64], f32[64,96])", zen4, "avx512_decode"},
        {"matmul(f32[100,64], f32[64,96])", "cpu|AuthenticAMD,zen50,avx512f", "avx512"},
        {"matmul(f32[100,512], f32[512,256])", intel, "avx512_unpacked"},
        {"matmul(f32[100,512], f32[512,257])", intel, "avx512"},
        {"matmul(f32[100,64], f32[96,64], transpose_b=true)", intel, "avx512"},
        {"matmul(f16[100,64], f16[64,96])", intel, "avx512"},
        {"matmul(f32[4,64], f32[64,96])", intel, "avx512_decode"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(first_of(&hone_matmul_table, rows[i].call, avx512, rows[i].fingerprint), rows[i].takes);
}

// mr of the config that avx512_unpacked has for a call without tuning.
static int64_t default_rows_of(const char *text)
{
    const hone_device_info device = {.threads = 2, .l3_bytes = 32 << 20};
    hone_config config = {0};
    hone_signature *made = NULL;
    hone_call *call = NULL;
    hone_error err = {0};
    if (hone_signature_parse(hone_allocator_system(), hone_matmul_table.algorithm->signature, &made, &err) != HONE_OK ||
        hone_call_parse(hone_allocator_system(), made, text, &call, &err) != HONE_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < hone_matmul_table.count; i++) {
        const hone_kernel *kernel = &hone_matmul_table.kernels[i];
        if (strcmp(kernel->name, "avx512_unpacked") == 0)
            assert_true(kernel->heuristic(kernel, call, &device, &config));
    }
    hone_call_release(&call);
    hone_signature_release(&made);
    assert_true(config.count > 0);
    return config.values[0];
}

static void few_rows_have_the_tile_that_they_fill_where_the_cache_holds_b(void **state)
{
    static const struct {
        const char *call;
        int64_t rows;
    } table[] = {
        {"matmul(f32[6,2048], f32[2048,2048])", 6},  {"matmul(f32[7,2048], f32[2048,2048])", 9},
        {"matmul(f32[8,2048], f32[2048,2048])", 9},  {"matmul(f32[9,2048], f32[2048,2048])", 9},
        {"matmul(f32[10,2048], f32[2048,2048])", 6}, {"matmul(f64[8,512], f64[512,1024])", 9},
        {"matmul(f32[8,2048], f32[2048,3072])", 6},  {"matmul(f64[8,2048], f64[2048,2048])", 6},
        {"matmul(f32[8,4096], f32[4096,64])", 6}, // 64 columns are 96 in tiles of 48
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (default_rows_of(table[i].call) != table[i].rows) fail_msg("%s", table[i].call);
}

// 8 bit floats: what each of the 256 bytes stands for, by itself in a product with 1, in both ways that b may lie.
static void bytes_of_floats_stand_for_what_the_dtype_says(void **state)
{
    static const hone_dtype_id dtypes[] = {HONE_F8_E4M3FN, HONE_F8_E5M2};
    const test_machine *machine = *state;
    for (int i = 0; i < 4; i++) {
        const hone_dtype_id dtype = dtypes[i / 2];
        scaled *s = make_of(dtype, 256, 70, 3, i % 2, 1);
        memset(s->a, 0, 256 * 3);
        memset(s->b, 0, 70 * 3);
        for (int64_t row = 0; row < 256; row++)
            s->a[row * 3] = (int8_t)row;
        for (int64_t j = 0; j < 70; j++)
            hone_element_store(dtype, b_at(s, 0, j), 0, j % 3 == 0 ? 1 : -2);
        assert_int_equal(run_all(machine, s), 1); // no kernel of vectors reads them
        release(s);
    }
}

// Sums of floats, whose roundings add up, at sizes beside those of blocks.
static void floats_are_summed_at_any_size(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 64, 65}, {17, 65, 130}, {5, 130, 7}, {40, 63, 1030}, {3, 5, 0}};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const int64_t *size = sizes[i / 2];
        scaled *s =
            make_of(i % 3 == 0 ? HONE_F8_E5M2 : HONE_F8_E4M3FN, size[0], size[1], size[2], i % 2, (int64_t)i / 2 % 2);
        for (int64_t p = 0; p < s->m * s->k; p++)
            hone_element_store(s->dtype, s->a, p, (double)((p * 37 + 11) % 41 - 20) / 8);
        for (int64_t p = 0; p < s->k * s->n; p++)
            hone_element_store(s->dtype, s->b, p, (double)((p * 29 + 5) % 31 - 15) / 4);
        assert_int_equal(run_all(*state, s), 1);
        release(s);
    }
}

// Ones, more than a float counts: a sum in float would stay at 2^24.
static void a_long_sum_of_floats_of_one_sign_goes_on(void **state)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        scaled *s = make_of(HONE_F8_E4M3FN, 1, 1, (1 << 24) + 4096, transposed, 1);
        int8_t one = 0;
        hone_element_store(s->dtype, &one, 0, 1);
        memset(s->a, one, (size_t)s->k);
        memset(s->b, one, (size_t)s->k);
        assert_int_equal(run_all(*state, s), 1);
        release(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_at_the_limit_of_32_bits),
        cmocka_unit_test(one_more_is_refused_with_words_by_who_sums_in_32_bits),
        cmocka_unit_test(sizes_beside_those_of_words_and_tiles),
        cmocka_unit_test(without_k_the_result_is_the_bias),
        cmocka_unit_test(few_rows_are_read_as_they_lie_and_more_are_packed),
        cmocka_unit_test(where_packing_is_slow_products_of_floats_are_read_as_they_lie),
        cmocka_unit_test(few_rows_have_the_tile_that_they_fill_where_the_cache_holds_b),
        cmocka_unit_test(bytes_of_floats_stand_for_what_the_dtype_says),
        cmocka_unit_test(floats_are_summed_at_any_size),
        cmocka_unit_test(a_long_sum_of_floats_of_one_sign_goes_on),
    };
    return cmocka_run_group_tests(tests, machine_set_up, machine_tear_down);
}
