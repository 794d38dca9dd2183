// The floor: what no honest run takes less than.
#include "tune/contest/floor.h"

#include "base/memory.h"
#include "tune/worker/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char signature_text[] =
    "scan(x: T[n, m], mask: bool[n]? = none, at: i64[n]? = none) -> y: T[n, m] where T in f32, f16, bf16, f64, i64";

static const hone_device_info processor = {.struct_size = sizeof processor, .backend = HONE_CPU};
// An H200.
static const hone_device_info gpu = {
    .struct_size = sizeof gpu,
    .backend = HONE_GPU,
    .sms = 132,
    .l2_bytes = 50 << 20,
    .capability = 90,
    .clock_mhz = 1980,
    .memory_rate = 4.917e12,
};

// A machine of round figures: a byte a nanosecond is 1e9 a second.
static const hone_peaks peaks = {
    .operations = {5e11, 1e12, 4e12, 8e12, 16e12}, .bytes = {1e12, 5e11, 1e11, 1e10}, .holds = {1e5, 1e6, 1e7, 0}};

static hone_cost said; // by the model

static void model(const hone_call *call, hone_cost *out_cost)
{
    (void)call;
    *out_cost = said;
}

static hone_floor floor_of(
    const char *text, const hone_cost *of_model, const hone_device_info *device, const hone_peaks *of, hone_cost *cost)
{
    hone_error err = {.message = ""};
    hone_signature *signature = NULL;
    hone_call *call = NULL;
    const hone_allocator allocator = hone_allocator_system();
    hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = signature_text};
    if (of_model != NULL) {
        said = *of_model;
        algorithm.model = model;
    }
    assert_int_equal(hone_signature_parse(allocator, signature_text, &signature, &err), HONE_OK);
    if (hone_call_parse(allocator, signature, text, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    *cost = hone_floor_cost(&algorithm, call);
    const hone_floor found = hone_floor_of(&algorithm, call, device, of);
    hone_call_release(&call);
    hone_signature_release(&signature);
    return found;
}

static hone_floor floor_by(const char *text, double bytes, double operations)
{
    hone_cost unused;
    return floor_of(text, &(hone_cost){bytes, operations}, &processor, &peaks, &unused);
}

static hone_cost cost_by(const char *text, const hone_cost *of_model)
{
    hone_cost cost;
    (void)floor_of(text, of_model, &processor, &peaks, &cost);
    return cost;
}

static void close_to(double value, double expected)
{
    if (!(value > expected * 0.999 && value < expected * 1.001)) fail_msg("%g, expected %g", value, expected);
}

static void a_model_counts_what_must_be_moved_and_at_most_the_arguments(void **state)
{
    (void)state;
    close_to(cost_by("scan(f32[100,10])", &(hone_cost){6000, 1}).bytes, 6000);
    close_to(cost_by("scan(f32[100,10])", &(hone_cost){1e9, 1}).bytes, 8000);
    close_to(cost_by("scan(f32[100,10], bool[100])", &(hone_cost){1e9, 1}).bytes, 8100);
    close_to(cost_by("scan(f32[100,10])", &(hone_cost){0.0 / 0.0, 1}).bytes, 8000);
}

static void without_a_model_only_results_must_be_moved(void **state)
{
    (void)state;
    close_to(cost_by("scan(f32[100,10], bool[100])", NULL).bytes, 4000);
    assert_true(cost_by("scan(f32[100,10])", NULL).operations == 0);
}

static void elements_that_share_their_memory_count_once(void **state)
{
    (void)state;
    const hone_cost much = {1e9, 1};
    close_to(cost_by("scan(f32[100,10]{strides=0,1})", &much).bytes, 4000 + 40);
    close_to(cost_by("scan(f32[100,10]{strides=1,1})", &much).bytes, 4000 + 4 * 109);
}

// Half of what the peaks allow.
static void the_level_that_holds_the_data_decides(void **state)
{
    (void)state;
    const struct {
        double bytes, ns;
        const char *at;
    } looks[] = {
        {4e4, 4e4 / 1e12 * 1e9 / 2, "L1"},
        {9e5, (9e5 - 1e5) / 5e11 * 1e9 / 2, "L2"},
        {9e6, (9e6 - 1e6) / 1e11 * 1e9 / 2, "L3"},
        {9e7, (9e7 - 1e7) / 1e10 * 1e9 / 2, "memory"},
    };
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        const hone_floor found = floor_by("scan(f32[4096,4096])", looks[i].bytes, 1);
        close_to(found.ns, looks[i].ns);
        assert_string_equal(found.at, looks[i].at);
        assert_false(hone_floor_is_broken(&found, looks[i].ns * 1.01));
        assert_true(hone_floor_is_broken(&found, looks[i].ns * 0.99));
    }
}

static void a_level_that_is_not_known_bounds_nothing(void **state)
{
    (void)state;
    hone_peaks some = peaks;
    hone_cost unused;
    some.bytes[HONE_LEVEL_MEMORY] = 0;
    close_to(
        floor_of("scan(f32[4096,4096])", &(hone_cost){9e7, 1}, &processor, &some, &unused).ns,
        (9e7 - 1e6) / 1e11 * 1e9 / 2);
}

static void operations_bound_too_and_narrow_numbers_go_faster(void **state)
{
    (void)state;
    const hone_floor wide = floor_by("scan(f32[100,10])", 100, 1e9), narrow = floor_by("scan(bf16[100,10])", 100, 1e9);
    close_to(wide.ns, 1e9 / 1e12 * 1e9 / 2);
    assert_string_equal(wide.at, "arithmetic");
    assert_true(narrow.ns <= wide.ns / 4);
    // Of f64 half as many; indices of 64 bits say nothing.
    assert_true(floor_by("scan(f64[100,10])", 100, 1e9).ns > 1.9 * wide.ns);
    close_to(floor_by("scan(i64[100,10])", 100, 1e9).ns, wide.ns);
    // Nor do they where they stand behind narrower numbers.
    close_to(floor_by("scan(bf16[100,10], bool[100], i64[100])", 100, 1e9).ns, narrow.ns);
    // A mask says nothing of the numbers.
    close_to(floor_by("scan(f32[100,10], bool[100])", 100, 1e9).ns, wide.ns);
}

// A matrix unit does 16 times as many of 16 bits, and f32 as three products of these.
static void a_matrix_unit_counts_for_narrow_numbers_and_for_wide_ones(void **state)
{
    (void)state;
    static const double times[][HONE_WIDTHS] = {{.5, 1, 4, 8, 16}, {.5, 16.0 / 3, 16, 32, 64}};
    for (int has_unit = 0; has_unit < 2; has_unit++) {
        hone_peaks of = {.bytes = {0}};
        hone_peaks_fill_operations(1e11, has_unit == 1, &of);
        for (int width = 0; width < HONE_WIDTHS; width++)
            close_to(of.operations[width], times[has_unit][width] * 1e11);
    }
}

// What is said of a processor, and what of each level is read then.
static void a_level_behind_a_cache_that_is_not_known_is_not_measured(void **state)
{
    (void)state;
    enum { KB = 1 << 10, MB = 1 << 20 };
    const int64_t much = (int64_t)1 << 40;
    const struct {
        int64_t l1, l2, l3;
        int caches;
        size_t threads;
        int64_t left;
        size_t spans[HONE_LEVELS];
    } looks[] = {
        {48 * KB, 1 * MB, 32 * MB, 1, 2, much, {16 * KB, 128 * KB, 4 * MB, 32 * MB}},
        {48 * KB, 1 * MB, 32 * MB, 8, 64, much, {16 * KB, 128 * KB, 2 * MB, 4 * MB}},
        {48 * KB, 2 * MB, 260 * MB, 1, 1, much, {16 * KB, 128 * KB, 8 * MB, 256 * MB}},
        {48 * KB, 1 * MB, 32 * MB, 0, 4, much, {16 * KB, 128 * KB, 4 * MB, 16 * MB}}, // one at least
        {48 * KB, 1 * MB, 32 * MB, 1, 2, 10 * MB, {16 * KB, 128 * KB, 4 * MB, 0}},
        {48 * KB, 1 * MB, 0, 0, 2, much, {16 * KB, 128 * KB, 0, 0}}, // no third cache, or one that is hidden
        {48 * KB, 0, 32 * MB, 1, 2, much, {16 * KB, 0, 0, 0}},
        {0, 1 * MB, 32 * MB, 1, 2, much, {16 * KB, 0, 0, 0}},
        {0, 0, 0, 0, 2, much, {16 * KB, 0, 0, 0}},
        {32 * MB, 64 * MB, 128 * MB, 1, 2, much, {16 * KB, 32 * MB, 32 * MB, 128 * MB}}, // odd, and in no nearer one
    };
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        size_t spans[HONE_LEVELS];
        const hone_os_cpu cpu = {.l1_bytes = looks[i].l1, .l2_bytes = looks[i].l2, .l3_bytes = looks[i].l3};
        hone_peaks_choose_spans(&cpu, looks[i].caches, looks[i].threads, looks[i].left, spans);
        for (int level = 0; level < HONE_LEVELS; level++)
            if (spans[level] != looks[i].spans[level]) fail_msg("look %zu, level %d: %zu", i, level, spans[level]);
    }
}

static void without_peaks_there_is_no_floor_and_it_says_so(void **state)
{
    (void)state;
    char words[120];
    hone_cost unused;
    const hone_floor found = floor_of("scan(f32[64,64])", NULL, &processor, &(hone_peaks){0}, &unused);
    assert_true(found.ns == 0);
    assert_false(hone_floor_is_broken(&found, 1e-9));
    hone_floor_say(&found, words, sizeof words);
    assert_string_equal(words, "none: nothing is known of what the device can do at best");
}

// What a kernel won rms_norm(bf16[4096,4096]) with that looked at a few elements of each row: 16,130 GB/s, in 4.16 us.
// The best honest one took 19.0 us.
static void a_gpu_is_bounded_by_its_clocks_and_widths(void **state)
{
    (void)state;
    char words[120];
    hone_cost unused;
    const hone_peaks of_gpu = hone_peaks_of_gpu(&gpu);
    const hone_cost moved = {2.0 * 4096 * 4096 * 2, 4.0 * 4096 * 4096};
    hone_floor found = floor_of("scan(bf16[4096,4096])", &moved, &gpu, &of_gpu, &unused);
    assert_true(hone_floor_is_broken(&found, 4160));
    assert_false(hone_floor_is_broken(&found, 8000));
    hone_floor_say(&found, words, sizeof words);
    assert_non_null(strstr(words, "told by the driver of L2"));
    // Out of its memory 4.9 TB/s come: 1 GB beside what the cache holds takes 203 us.
    found = floor_of("scan(bf16[32768,8192])", &(hone_cost){1.0525e9, 0}, &gpu, &of_gpu, &unused);
    close_to(found.ns, (1.0525e9 - (50 << 20)) / 4.917e12 * 1e9 / 1.25);
    hone_device_info cacheless = gpu, unknown = gpu;
    cacheless.l2_bytes = 0;
    const hone_peaks of_cacheless = hone_peaks_of_gpu(&cacheless);
    assert_string_equal(
        floor_of("scan(bf16[4096,4096])", &(hone_cost){6e7, 0}, &cacheless, &of_cacheless, &unused).at, "L2");
    unknown.capability = 130;
    unknown.memory_rate = 0;
    const hone_peaks nothing = hone_peaks_of_gpu(&unknown);
    assert_true(floor_of("scan(bf16[4096,4096])", &moved, &unknown, &nothing, &unused).ns == 0);
}

static void the_words_have_the_figures(void **state)
{
    (void)state;
    char words[256];
    const hone_floor found = floor_by("scan(f32[4096,4096])", 9e6, 1);
    hone_floor_say_broken(&found, 14, words, sizeof words);
    assert_string_equal(words, "14 ns for 8 MB is 571 TB/s; L3 gives 100 GB/s here, and nothing takes less than 40 us");
    hone_floor_say(&found, words, sizeof words);
    assert_string_equal(words, "40 us, for 8 MB at 2 times the 100 GB/s measured of L3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_counts_what_must_be_moved_and_at_most_the_arguments),
        cmocka_unit_test(without_a_model_only_results_must_be_moved),
        cmocka_unit_test(elements_that_share_their_memory_count_once),
        cmocka_unit_test(the_level_that_holds_the_data_decides),
        cmocka_unit_test(a_level_that_is_not_known_bounds_nothing),
        cmocka_unit_test(operations_bound_too_and_narrow_numbers_go_faster),
        cmocka_unit_test(a_matrix_unit_counts_for_narrow_numbers_and_for_wide_ones),
        cmocka_unit_test(a_level_behind_a_cache_that_is_not_known_is_not_measured),
        cmocka_unit_test(without_peaks_there_is_no_floor_and_it_says_so),
        cmocka_unit_test(a_gpu_is_bounded_by_its_clocks_and_widths),
        cmocka_unit_test(the_words_have_the_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
