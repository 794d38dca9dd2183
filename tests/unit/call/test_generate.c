// Input data: what each generator promises, the same on every machine.
#include "calls.h"

#include "base/hash.h"

enum { MOST = 4096 };

// Generates the first parameter of a call and gives it as doubles.
static hone_status make(
    const char *text, const char *call_text, uint64_t seed, double out[MOST], int64_t *out_count, hone_error *err)
{
    static unsigned char memory[MOST * 16];
    hone_signature *signature = signature_of(text);
    hone_call *call = call_of(signature, call_text);
    hone_tensor tensor = *hone_call_tensor(call, 0);
    memset(memory, 0xcc, sizeof memory);
    tensor.data = memory;
    *out_count = hone_tensor_elements(&tensor);
    const hone_status status = hone_generate(call, 0, &tensor, seed, 1, NULL, err);
    const hone_dtype_id dtype = hone_dtype_find(tensor.dtype)->id;
    for (int64_t i = 0; status == HONE_OK && i < *out_count; i++)
        out[i] = hone_element_load(dtype, memory, i);
    hone_call_release(&call);
    hone_signature_release(&signature);
    return status;
}

static int64_t made(const char *text, const char *call_text, uint64_t seed, double out[MOST])
{
    int64_t count;
    hone_error err = {0};
    if (make(text, call_text, seed, out, &count, &err) != HONE_OK) fail_msg("%s", err.message);
    return count;
}

static void floats_are_nearly_normal_by_default(void **state)
{
    (void)state;
    static const char *const calls[] = {"f(f32[64,64])",     "f(bf16[64,64])",      "f(f16[64,64])", "f(f64[64,64])",
                                        "f(f8_e5m2[64,64])", "f(f8_e4m3fn[64,64])", "f(c64[64,64])"};
    static double values[MOST];
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int64_t count = made("f(x: T[n, m]) -> y: T[n]", calls[i], 1, values);
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < count; k++) {
            sum += values[k];
            squares += values[k] * values[k];
        }
        assert_true(sum / (double)count < 0.06 && sum / (double)count > -0.06);
        assert_true(squares / (double)count < 1.1 && squares / (double)count > 0.9);
    }
}

static void integers_are_small_and_bools_are_fair_by_default(void **state)
{
    (void)state;
    static double values[MOST];
    static const struct {
        const char *call;
        double low, high;
    } cases[] = {
        {"f(i4[64])", -8, 7},
        {"f(u4[64])", 0, 15},
        {"f(i8[999])", -8, 7},
        {"f(u64[999])", 0, 15},
        {"f(bool[999])", 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t count = made("f(x: T[n]) -> y: T[n]", cases[i].call, 3, values);
        double low = 99, high = -99;
        for (int64_t k = 0; k < count; k++) {
            if (values[k] < low) low = values[k];
            if (values[k] > high) high = values[k];
        }
        assert_true(low == cases[i].low && high == cases[i].high);
    }
}

static void uniform_takes_both_bounds_and_reads_dims(void **state)
{
    (void)state;
    static double values[MOST];
    bool seen[9] = {false};
    const int64_t count =
        made("f(x: i32[n] ~ uniform(1, m * 2), p: f32[m]) -> y: i32[n]", "f(i32[500], f32[4])", 5, values);
    for (int64_t i = 0; i < count; i++) {
        assert_true(values[i] >= 1 && values[i] <= 8);
        seen[(int)values[i]] = true;
    }
    for (int i = 1; i < 9; i++)
        assert_true(seen[i]);
    made("f(x: f32[n] ~ uniform(-0.5, 2)) -> y: f32[n]", "f(f32[500])", 5, values);
    for (int64_t i = 0; i < 500; i++)
        assert_true(values[i] >= -0.5 && values[i] <= 2);
}

static void uniform_floats_fill_their_whole_range(void **state)
{
    (void)state;
    static double values[MOST];
    const int64_t count = made("f(x: f64[n] ~ uniform(-1, 3)) -> y: f64[n]", "f(f64[4096])", 1, values);
    double least = 3, largest = -1, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_true(values[i] >= -1 && values[i] <= 3);
        least = values[i] < least ? values[i] : least;
        largest = values[i] > largest ? values[i] : largest;
        sum += values[i];
    }
    assert_true(least < -0.98 && largest > 2.98);
    assert_true(sum / (double)count > 0.9 && sum / (double)count < 1.1);
}

static void a_permutation_has_each_number_once(void **state)
{
    (void)state;
    static double values[MOST];
    made("f(x: i32[n, m] ~ permutation(n * m)) -> y: i32[n]", "f(i32[8,16])", 5, values);
    int times[128] = {0}, moved = 0;
    for (int i = 0; i < 128; i++) {
        times[(int)values[i]]++;
        moved += values[i] != i;
    }
    for (int i = 0; i < 128; i++)
        assert_int_equal(times[i], 1);
    assert_true(moved > 100);
}

static void segments_sum_up_and_offsets_run_up_to_the_total(void **state)
{
    (void)state;
    static double values[MOST];
    for (uint64_t seed = 0; seed < 20; seed++) {
        made("f(x: i32[n, m] ~ segments(100)) -> y: i32[n]", "f(i32[3,8])", seed, values);
        for (int row = 0; row < 3; row++) {
            double sum = 0;
            for (int i = 0; i < 8; i++) {
                assert_true(values[row * 8 + i] >= 0);
                sum += values[row * 8 + i];
            }
            assert_true(sum == 100);
        }
        made("f(x: i32[n] ~ offsets(100)) -> y: i32[n]", "f(i32[9])", seed, values);
        assert_true(values[0] == 0 && values[8] == 100);
        for (int i = 1; i < 9; i++)
            assert_true(values[i] >= values[i - 1]);
    }
}

static void constants_are_constant(void **state)
{
    (void)state;
    static double values[MOST];
    made("f(x: bf16[n] ~ ones()) -> y: bf16[n]", "f(bf16[9])", 1, values);
    for (int i = 0; i < 9; i++)
        assert_true(values[i] == 1);
    made("f(x: u4[n] ~ zeros()) -> y: u4[n]", "f(u4[9])", 1, values);
    for (int i = 0; i < 9; i++)
        assert_true(values[i] == 0);
}

static void the_same_seed_gives_the_same_bytes_everywhere(void **state)
{
    (void)state;
    static double values[MOST], again[MOST];
    char key[HONE_KEY_SIZE];
    const int64_t count = made("f(x: f32[n]) -> y: f32[n]", "f(f32[64])", 42, values);
    made("f(x: f32[n]) -> y: f32[n]", "f(f32[64])", 42, again);
    assert_memory_equal(values, again, (size_t)count * sizeof *values);
    made("f(x: f32[n]) -> y: f32[n]", "f(f32[64])", 43, again);
    assert_memory_not_equal(values, again, (size_t)count * sizeof *values);
    hone_hash_key(values, (size_t)count * sizeof *values, key);
    assert_string_equal(key, "f33c4506da13ec28");
}

// A tensor of two pieces and a rest, by one thread, by three, and into a view of other strides.
static void any_pool_and_any_strides_give_the_same_elements(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 500 };
    static uint16_t alone[ROWS * COLUMNS], pooled[ROWS * COLUMNS], apart[COLUMNS * (ROWS + 1)];
    hone_signature *signature = signature_of("f(x: T[n, m]) -> y: T[n]");
    hone_call *call = call_of(signature, "f(f16[300,500])");
    hone_allocator allocator = hone_allocator_system();
    hone_pool *pool = NULL;
    hone_error err = {0};
    assert_int_equal(hone_pool_create(&allocator, 3, &pool, &err), HONE_OK);
    int64_t shape[] = {ROWS, COLUMNS}, strides[] = {1, ROWS + 1};
    hone_tensor tensor = hone_tensor_of(alone, HONE_F16, 2, shape);
    assert_int_equal(hone_generate(call, 0, &tensor, 7, 1, NULL, &err), HONE_OK);
    tensor.data = pooled;
    assert_int_equal(hone_generate(call, 0, &tensor, 7, 1, pool, &err), HONE_OK);
    assert_memory_equal(alone, pooled, sizeof alone);
    tensor.data = apart;
    tensor.strides = strides;
    assert_int_equal(hone_generate(call, 0, &tensor, 7, 1, pool, &err), HONE_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_int_equal(apart[i / COLUMNS + i % COLUMNS * (ROWS + 1)], alone[i]);
    hone_pool_destroy(&pool);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void elements_are_rounded_as_they_are_stored(void **state)
{
    (void)state;
    static double wide[MOST], narrow[MOST];
    static const char *const narrow_calls[] = {"f(f16[4000])", "f(bf16[4000])"};
    static const hone_dtype_id ids[] = {HONE_F16, HONE_BF16};
    static const char *const scales[] = {
        "f(x: T[n] ~ normal(0, 1)) -> y: T[n]", "f(x: T[n] ~ normal(0, 1e-5)) -> y: T[n]",
        "f(x: T[n] ~ normal(0, 40000)) -> y: T[n]"};
    for (size_t d = 0; d < 2; d++)
        for (size_t s = 0; s < 3; s++) {
            const int64_t count = made(scales[s], "f(f32[4000])", 9, wide);
            made(scales[s], narrow_calls[d], 9, narrow);
            for (int64_t i = 0; i < count; i++) {
                uint16_t element;
                hone_element_store(ids[d], &element, 0, wide[i]);
                assert_true(hone_element_load(ids[d], &element, 0) == narrow[i]);
            }
        }
}

static void only_the_elements_of_a_view_are_written(void **state)
{
    (void)state;
    hone_signature *signature = signature_of("f(x: f32[n, m] ~ ones()) -> y: f32[n]");
    hone_call *call = call_of(signature, "f(f32[3,2])");
    float memory[64];
    int64_t shape[] = {3, 2}, strides[] = {-8, 3};
    for (int i = 0; i < 64; i++)
        memory[i] = 7;
    hone_tensor tensor = hone_tensor_of(memory + 20, HONE_F32, 2, shape);
    tensor.strides = strides;
    assert_int_equal(hone_generate(call, 0, &tensor, 1, 1, NULL, NULL), HONE_OK);
    int ones = 0;
    for (int i = 0; i < 64; i++)
        ones += memory[i] == 1.0f;
    assert_int_equal(ones, 6);
    for (int row = 0; row < 3; row++)
        assert_true(memory[20 - 8 * row] == 1.0f && memory[23 - 8 * row] == 1.0f);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

// Makes the first parameter of a call with a scale of 2.
static int64_t made_wide(const char *text, const char *call_text, double out[MOST])
{
    static unsigned char memory[MOST * 16];
    hone_signature *signature = signature_of(text);
    hone_call *call = call_of(signature, call_text);
    hone_tensor tensor = *hone_call_tensor(call, 0);
    tensor.data = memory;
    const int64_t count = hone_tensor_elements(&tensor);
    const hone_dtype_id dtype = hone_dtype_find(tensor.dtype)->id;
    assert_true(hone_has_limits(call, 0));
    assert_int_equal(hone_generate(call, 0, &tensor, 5, 2, NULL, NULL), HONE_OK);
    for (int64_t i = 0; i < count; i++)
        out[i] = hone_element_load(dtype, memory, i);
    hone_call_release(&call);
    hone_signature_release(&signature);
    return count;
}

static void at_the_limits_numbers_are_the_ends_of_what_their_generator_says(void **state)
{
    (void)state;
    static double values[MOST];
    int64_t count = made_wide("f(x: i32[n, 4] ~ uniform(-3, 100000)) -> y: i32[n]", "f(i32[64,4])", values);
    for (int column = 0; column < 4; column++) {
        int lowest = 0, highest = 0, others = 0;
        for (int64_t i = column; i < count; i += 4) {
            lowest += values[i] == -3;
            highest += values[i] == 100000;
            others += values[i] > -3 && values[i] < 100000;
        }
        assert_true(lowest == 16 && highest == 16 && others == 32);
    }
    int empty = 0, first = 0, last = 0, filled = 0;
    count = made_wide("f(x: i32[n, 33] ~ offsets(100000)) -> y: i32[n]", "f(i32[64,33])", values);
    for (int64_t row = 0; row < count; row += 33) {
        assert_true(values[row] == 0 && values[row + 32] == 100000);
        for (int i = 1; i < 33; i++) {
            assert_true(values[row + i - 1] <= values[row + i]);
            empty += values[row + i - 1] == values[row + i];
        }
        first += values[row + 1] == 0;
        last += values[row + 31] == 100000;
        filled += values[row + 1] > 0;
    }
    assert_true(empty > 64 * 32 / 2 && first > 8 && last > 32 && filled > 8);
    count = made_wide("f(x: u16[n, 8] ~ segments(50)) -> y: i32[n]", "f(u16[64,8])", values);
    for (int64_t row = 0; row < count; row += 8) {
        double sum = 0;
        for (int i = 0; i < 8; i++)
            sum += values[row + i];
        assert_true(sum == 50);
    }
    count = made_wide("f(x: f32[n] ~ ones()) -> y: f32[n]", "f(f32[999])", values);
    for (int64_t i = 0; i < count; i++)
        assert_true(values[i] >= 0.75 && values[i] <= 1.25 && (i == 0 || values[i] != values[i - 1]));
    count = made_wide("f(x: bf16[n] ~ zeros()) -> y: bf16[n]", "f(bf16[999])", values);
    for (int64_t i = 0; i < count; i++)
        assert_true(values[i] >= 0 && values[i] <= 0.5);
}

// What may be an index stays small, and so does what a result has no room for.
static void without_a_generator_numbers_are_as_large_as_results_and_dims_allow(void **state)
{
    (void)state;
    static const struct {
        const char *text, *call;
        double least, most; // of the largest; 0: none is
    } calls[] = {
        {"f(x: u8[n], s: f32[n]) -> y: f32[n]", "f(u8[999], f32[999])", 255, 255},
        {"f(x: u8[n, k], s: f32[n]) -> y: f32[n, 1]", "f(u8[9,99], f32[9])", 255, 255},
        {"f(x: u8[n], table: f32[m]) -> y: f32[n]", "f(u8[999], f32[999])", 0, 0},
        {"f(x: u8[n], table: f32[256]) -> y: f32[n]", "f(u8[999], f32[256])", 0, 0},
        {"f(x: u8[n], table: f32[256]) -> y: u8[n]", "f(u8[999], f32[256])", 255, 255},
        {"f(x: u32[n]) -> y: i32[n]", "f(u32[999])", 0, 0},
        {"f(x: u32[n]) -> y: u32[n]", "f(u32[999])", 0xffffffff, 0xffffffff},
        {"f(x: u16[n]) -> y: f32[1]", "f(u16[999])", 65535, 65535},
        {"f(x: u32[n], m: i64) -> y: u32[m]", "f(u32[999], 9)", 0, 0},
        {"f(x: i64[n]) -> y: i64[n]", "f(i64[999])", 0x3ffffffff, 0x3ffffffff},
        {"f(x: i64[n]) -> y: i32[n]", "f(i64[999])", 0, 0},
        {"f(x: i32[n]) -> y: i32[n]", "f(i32[999])", 32767, 32767},
        {"f(x: i32[n], w: i32[m]) -> y: i32[n]", "f(i32[999], i32[9])", 0, 0},
        {"f(x: i32[n], w: i32[m]) -> y: i64[n]", "f(i32[999], i32[9])", 0xffffff, 0xffffff},
        {"f(x: bool[n]) -> y: bool[n]", "f(bool[999])", 0, 0},
    };
    static double values[MOST];
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].most == 0) {
            hone_signature *signature = signature_of(calls[i].text);
            hone_call *call = call_of(signature, calls[i].call);
            if (hone_has_limits(call, 0)) fail_msg("%s", calls[i].text);
            hone_call_release(&call);
            hone_signature_release(&signature);
            continue;
        }
        double largest = 0;
        for (int64_t at = made_wide(calls[i].text, calls[i].call, values); at > 0; at--)
            if (values[at - 1] > largest) largest = values[at - 1];
        if (largest < calls[i].least || largest > calls[i].most) fail_msg("%s: %f", calls[i].text, largest);
    }
}

static void a_generator_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[][3] = {
        {"f(x: i32[n] ~ uniform(5, 1)) -> y: i32[n]", "f(i32[2])", "f: x of i32: uniform(lo, hi) with lo > hi"},
        {"f(x: i8[n] ~ uniform(0, 128)) -> y: i8[n]", "f(i8[2])", "beyond what the dtype holds"},
        {"f(x: i8[n] ~ uniform(0, 1.5)) -> y: i8[n]", "f(i8[2])", "needs integers"},
        {"f(x: u4[n] ~ permutation(17)) -> y: u4[n]", "f(u4[2])", "beyond what the dtype holds"},
        {"f(x: i32[n] ~ permutation(0)) -> y: i32[n]", "f(i32[2])", "n > 0"},
        {"f(x: f32[n] ~ normal(0, -1)) -> y: f32[n]", "f(f32[2])", "negative sd"},
        {"f(x: i32[n] ~ bias()) -> y: i32[n]", "f(i32[2])", "bias() is for a tensor of floats"},
        {"f(x: i32[n] ~ segments(-1)) -> y: i32[n]", "f(i32[2])", "from 0 on"},
        {"f(x: i32[n] ~ uniform(0, n / k), k: i64) -> y: i32[n]", "f(i32[2], 0)", "division by zero"},
        {"f(x: i32[n] ~ uniform(0, m), w: f32[m]?) -> y: i32[n]", "f(i32[2])", "no given tensor"},
    };
    static double values[MOST];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_error err = {0};
        int64_t count;
        assert_int_equal(make(wrong[i][0], wrong[i][1], 1, values, &count, &err), HONE_INVALID_ARGUMENT);
        assert_contains(err.message, wrong[i][2]);
    }
}

// Numbers of at most 53 bits are exact on their way.
static void a_bound_must_be_one_that_the_dtype_holds(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        int64_t low, high;
    } known[] = {
        {"i4", -8, 7},
        {"u4", 0, 15},
        {"i8", -128, 127},
        {"u8", 0, 255},
        {"i16", -32768, 32767},
        {"u16", 0, 65535},
        {"i32", INT32_MIN, INT32_MAX},
        {"u32", 0, UINT32_MAX},
        {"i64", -(INT64_C(1) << 52), (INT64_C(1) << 52) - 1},
        {"u64", 0, (INT64_C(1) << 53) - 1},
        {"bool", 0, 1},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const int64_t constants[] = {known[i].low - 1, known[i].low, known[i].high, known[i].high + 1};
        for (int k = 0; k < 4; k++) {
            static double values[MOST];
            char text[96], call[96];
            int64_t count;
            hone_error err = {0};
            snprintf(text, sizeof text, "f(x: %s[n] ~ uniform(k, k), k: i64) -> y: f32[n]", known[i].dtype);
            snprintf(call, sizeof call, "f(%s[3], %lld)", known[i].dtype, (long long)constants[k]);
            const hone_status status = make(text, call, 1, values, &count, &err);
            if (status != (k == 0 || k == 3 ? HONE_INVALID_ARGUMENT : HONE_OK)) fail_msg("%s: %s", call, err.message);
            for (int64_t at = 0; status == HONE_OK && at < count; at++)
                assert_true(values[at] == (double)constants[k]);
        }
    }
}

static void an_empty_tensor_needs_no_data(void **state)
{
    (void)state;
    static double values[MOST];
    assert_int_equal(made("f(x: i32[n, m] ~ uniform(0, m - 1)) -> y: i32[n]", "f(i32[3,0])", 1, values), 0);
}

// Values of a call with other scalars, as text.
static const char *changed(const char *signature_text, const char *call_text, hone_scalar_change change)
{
    static char text[256];
    hone_error err = {0};
    hone_signature *signature = signature_of(signature_text);
    hone_call *call = call_of(signature, call_text), *other = NULL;
    hone_value values[HONE_MAX_VALUES];
    const size_t count = hone_signature_count(signature);
    memcpy(values, hone_call_values(call), count * sizeof values[0]);
    snprintf(text, sizeof text, "nothing");
    if (hone_change_scalars(signature, change, values)) {
        assert_int_equal(
            hone_call_bind(hone_allocator_system(), signature, values, count, true, &other, &err), HONE_OK);
        snprintf(text, sizeof text, "%s", hone_call_text(other));
    }
    hone_call_release(&other);
    hone_call_release(&call);
    hone_signature_release(&signature);
    return text;
}

static void other_scalars_are_far_from_a_calls_own(void **state)
{
    (void)state;
    const char *norm =
        "f(x: f32[n], *, eps: f64 = 1e-6, scale: f64? = none, width: i64 = 3, causal: bool = false) -> y: f32[n]";
    const char *turned = "f(x: f32[n, m] if turned else [m, n], *, turned: bool = false) -> y: f32[n]";
    const char *texts = "f(x: f32[n], *, mode: str = \"mean\", most: f64 = inf) -> y: f32[n]";
    assert_string_equal(changed(norm, "f(f32[4])", HONE_CHANGE_SCALARS), "f(f32[4], eps=0.4796, causal=true)");
    assert_string_equal(
        changed(norm, "f(f32[4], scale=-2.0)", HONE_CHANGE_FLOATS), "f(f32[4], eps=0.4796, scale=-1.2368)");
    assert_string_equal(changed(norm, "f(f32[4], causal=true)", HONE_CHANGE_SWITCHES), "f(f32[4])");
    assert_string_equal(changed(turned, "f(f32[4,4])", HONE_CHANGE_SCALARS), "nothing");
    assert_string_equal(changed(texts, "f(f32[4])", HONE_CHANGE_SCALARS), "nothing");
    assert_string_equal(changed(norm, "f(f32[4], scale=2.0)", HONE_CHANGE_SIGNS), "nothing");
    const char *any = "f(x: f32[n], *, eps: f64 = 1e-6 #any, scale: f64 = 1.0 #any, causal: bool = false) -> y: f32[n]";
    assert_string_equal(changed(any, "f(f32[4])", HONE_CHANGE_SIGNS), "f(f32[4], scale=-1.0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_nearly_normal_by_default),
        cmocka_unit_test(integers_are_small_and_bools_are_fair_by_default),
        cmocka_unit_test(uniform_takes_both_bounds_and_reads_dims),
        cmocka_unit_test(uniform_floats_fill_their_whole_range),
        cmocka_unit_test(a_permutation_has_each_number_once),
        cmocka_unit_test(segments_sum_up_and_offsets_run_up_to_the_total),
        cmocka_unit_test(constants_are_constant),
        cmocka_unit_test(the_same_seed_gives_the_same_bytes_everywhere),
        cmocka_unit_test(any_pool_and_any_strides_give_the_same_elements),
        cmocka_unit_test(elements_are_rounded_as_they_are_stored),
        cmocka_unit_test(only_the_elements_of_a_view_are_written),
        cmocka_unit_test(at_the_limits_numbers_are_the_ends_of_what_their_generator_says),
        cmocka_unit_test(without_a_generator_numbers_are_as_large_as_results_and_dims_allow),
        cmocka_unit_test(a_generator_that_does_not_fit_is_refused),
        cmocka_unit_test(a_bound_must_be_one_that_the_dtype_holds),
        cmocka_unit_test(an_empty_tensor_needs_no_data),
        cmocka_unit_test(other_scalars_are_far_from_a_calls_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
