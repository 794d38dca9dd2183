// Memory for candidates: what is written where it must not be is seen, and made good.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "call/call.h"
#include "failing_allocator.h"
#include "tune/worker/buffers.h"
#include "tune/worker/variants.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const hone_site host = {.ops = NULL};

typedef struct fixture {
    failing_allocator memory;
    hone_arena arena;
    hone_buffer message;
    hone_signature *signature;
    hone_call *described, *call;
    hone_algorithm algorithm;
    hone_wire_value *values;
    uint32_t count;
    hone_buffers buffers;
    hone_error err;
} fixture;

static const char signature_text[] =
    "op(x: T[m, n], w: f32[n]? = none, *, eps: f64 = 1.0) -> y: T[m, n] where T in f32, u4, i32, u32";

// The call goes through a message, as it does on its way to a worker.
static hone_status make_of(fixture *f, const char *signature, const char *text)
{
    hone_allocator allocator = failing_allocator_of(&f->memory, -1);
    f->arena.allocator = allocator;
    f->algorithm.struct_size = sizeof f->algorithm;
    hone_buffer_init(&f->message, allocator);
    assert_int_equal(hone_signature_parse(allocator, signature, &f->signature, &f->err), HONE_OK);
    hone_status status = hone_call_parse(allocator, f->signature, text, &f->described, &f->err);
    if (status != HONE_OK) print_message("%s\n", f->err.message);
    assert_int_equal(status, HONE_OK);
    hone_message_put_call(&f->message, f->described);
    hone_wire_reader reader = {f->message.data, f->message.size, 0, &f->arena, false, false};
    hone_message_get_call(&reader, &f->values, &f->count);
    assert_false(reader.failed);
    return hone_buffers_create(
        &f->buffers, allocator, f->signature, &f->algorithm, &host, f->values, f->count, &f->err);
}

static hone_status make(fixture *f, const char *text)
{
    return make_of(f, signature_text, text);
}

static void fill(fixture *f)
{
    hone_status status =
        hone_call_bind(f->arena.allocator, f->signature, f->buffers.sets[0].values, f->count, false, &f->call, &f->err);
    if (status != HONE_OK) print_message("%s\n", f->err.message);
    assert_int_equal(status, HONE_OK);
    assert_int_equal(hone_buffers_fill(&f->buffers, f->call, 5, &f->err), HONE_OK);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(fixture));
    return *state != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    fixture *f = *state;
    hone_buffers_deinit(&f->buffers);
    hone_call_release(&f->call);
    hone_call_release(&f->described);
    hone_signature_release(&f->signature);
    hone_buffer_deinit(&f->message);
    hone_arena_destroy(&f->arena);
    int leaked = f->memory.live != 0;
    free(f);
    return leaked;
}

static unsigned char *bytes_of(fixture *f, const char *name)
{
    return f->buffers.sets[0].values[hone_signature_find(f->signature, name)].as.tensor->data;
}

static void untouched_buffers_pass_and_have_the_calls_key(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[3,5], f32[5])"), HONE_OK);
    fill(f);
    assert_string_equal(hone_call_key(f->call), hone_call_key(f->described));
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    assert_int_equal((uintptr_t)bytes_of(f, "x") % 64, 0);
}

static void results_may_be_written_and_nothing_else(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[3,5], f32[5])"), HONE_OK);
    fill(f);
    unsigned char *y = bytes_of(f, "y"), *x = bytes_of(f, "x");
    memset(y, 1, 60);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    y[60] = 1;
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "1 byte past the end of y"));
    assert_int_equal(hone_buffers_restore(&f->buffers, f->call, &f->err), HONE_OK);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    unsigned char first = x[0];
    x[0] = (unsigned char)(first + 1);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "x, an input"));
    assert_int_equal(hone_buffers_restore(&f->buffers, f->call, &f->err), HONE_OK);
    assert_int_equal(x[0], first);
    x[-3] = 1;
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "3 bytes before the start of x"));
}

static void layouts_of_the_call_are_kept(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[3,5]{strides=7,1;align=4}, f32[5]{align=8})"), HONE_OK);
    fill(f);
    assert_string_equal(hone_call_key(f->call), hone_call_key(f->described));
    assert_int_equal((uintptr_t)bytes_of(f, "x") % 8, 4);
    assert_int_equal((uintptr_t)bytes_of(f, "w") % 16, 8);
}

static void equal_calls_of_other_layouts_get_equal_data(void **state)
{
    fixture *f = *state, other = {0};
    assert_int_equal(make(f, "op(f32[3,5]{strides=7,1})"), HONE_OK);
    assert_int_equal(make(&other, "op(f32[3,5])"), HONE_OK);
    fill(f);
    fill(&other);
    const float *strided = (const float *)(const void *)bytes_of(f, "x");
    const float *dense = (const float *)(const void *)bytes_of(&other, "x");
    for (int row = 0; row < 3; row++)
        assert_memory_equal(strided + 7 * row, dense + 5 * row, 5 * sizeof(float));
    hone_buffers_deinit(&other.buffers);
    hone_call_release(&other.call);
    hone_call_release(&other.described);
    hone_signature_release(&other.signature);
    hone_buffer_deinit(&other.message);
    hone_arena_destroy(&other.arena);
}

static void holes_of_a_strided_result_are_watched(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[3,5])"), HONE_OK);
    int64_t strides[2] = {8, 1};
    int y = hone_signature_find(f->signature, "y");
    f->values[y].tensor.strides = strides;
    hone_buffers_deinit(&f->buffers);
    assert_int_equal(
        hone_buffers_create(
            &f->buffers, f->arena.allocator, f->signature, &f->algorithm, &host, f->values, f->count, &f->err),
        HONE_OK);
    fill(f);
    float *data = (float *)(void *)bytes_of(f, "y");
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 5; column++)
            data[8 * row + column] = 1;
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    data[6] = 1;
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "between the elements of y"));
}

static void cold_sets_are_copies_and_are_checked_too(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[3,5]{align=4}, f32[5])"), HONE_OK);
    fill(f);
    assert_int_equal(hone_buffers_rotate(&f->buffers, f->values, 1000, &f->err), HONE_OK);
    assert_true(f->buffers.set_count > 2);
    for (size_t set = 0; set < f->buffers.set_count; set++) {
        assert_int_equal(hone_buffers_check(&f->buffers, set, &f->err), HONE_OK);
        assert_memory_equal(f->buffers.sets[set].values[0].as.tensor->data, bytes_of(f, "x"), 60);
    }
    ((char *)f->buffers.sets[1].values[0].as.tensor->data)[0] ^= 1;
    assert_int_equal(hone_buffers_check(&f->buffers, 1, &f->err), HONE_KERNEL_FAILED);
    assert_int_equal(hone_buffers_restore(&f->buffers, f->call, &f->err), HONE_OK);
    assert_int_equal(hone_buffers_check(&f->buffers, 1, &f->err), HONE_OK);
}

// What kernels forget: no number, both infinities, both zeros, and what is too small to be normal, in every format.
static void seasoned_inputs_hold_the_numbers_that_kernels_forget(void **state)
{
    fixture *f = *state;
    enum { ROWS = 64, COUNT = ROWS * ROWS };
    int nan = 0, infinity[2] = {0}, zero[2] = {0}, least[2] = {0}, subnormal = 0, of_f16 = 0, changed = 0;
    assert_int_equal(make(f, "op(f32[64,64])"), HONE_OK);
    fill(f);
    static float before[COUNT];
    const float *x = (const float *)(const void *)bytes_of(f, "x");
    memcpy(before, x, sizeof before);
    assert_int_equal(hone_buffers_season(&f->buffers, 3, &f->err), HONE_OK);
    for (int i = 0; i < COUNT; i++) {
        if (memcmp(&x[i], &before[i], sizeof x[i]) == 0) continue;
        changed++;
        const bool negative = signbit(x[i]) != 0;
        if (isnan(x[i]))
            nan++;
        else if (isinf(x[i]))
            infinity[negative]++;
        else if (x[i] == 0)
            zero[negative]++; // what is too small for this format is one of them
        else if (fabsf(x[i]) == 0x1p-149f)
            least[negative]++;
        else if (x[i] == 0x1p-140f)
            subnormal++;
        else if (x[i] == 0x1p-24f)
            of_f16++;
        else
            fail_msg("%a was put in", (double)x[i]);
    }
    assert_true(
        nan > 0 && infinity[0] > 0 && infinity[1] > 0 && zero[0] > 0 && zero[1] > 0 && subnormal > 0 && of_f16 > 0);
    assert_true(least[1] > 0 && least[0] == 0);
    assert_in_range(changed, COUNT / 74, COUNT / 18); // one in 37
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
}

// Bits are compared byte by byte, and where nothing was kept there is nothing to be equal to.
static void a_result_of_other_bits_is_refused_with_the_first_byte_that_differs(void **state)
{
    static const size_t places[] = {0, 1, 37, 59};
    fixture *f = *state;
    hone_variants variants;
    char words[64];
    assert_int_equal(make(f, "op(f32[3,5])"), HONE_OK);
    fill(f);
    unsigned char *y = bytes_of(f, "y");
    memset(y, 1, 60);
    hone_variants_init(&variants, f->arena.allocator);
    assert_int_equal(hone_variants_make(&variants, HONE_VARIANT_ORIGINAL, &f->buffers, f->call, 5, &f->err), HONE_OK);
    assert_int_equal(hone_variants_compare_bits(&variants, &f->buffers, &f->err), HONE_OK);
    assert_int_equal(hone_variants_keep_bits(&variants, &f->buffers, &f->err), HONE_OK);
    assert_int_equal(hone_variants_compare_bits(&variants, &f->buffers, &f->err), HONE_OK);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        memset(y, 1, 60);
        memset(y + places[i], 2, 60 - places[i]);
        assert_int_equal(hone_variants_compare_bits(&variants, &f->buffers, &f->err), HONE_KERNEL_FAILED);
        snprintf(words, sizeof words, "y differs from the default's in its bits, first in byte %zu of 60", places[i]);
        if (strstr(f->err.message, words) == NULL) fail_msg("%s not in %s", words, f->err.message);
    }
    memset(y, 1, 60);
    assert_int_equal(hone_variants_compare_bits(&variants, &f->buffers, &f->err), HONE_OK);
    hone_variants_deinit(&variants);
}

// A guard sees each write, also of what was there already.
static void guarded_inputs_are_watched_by_the_system(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[64,96], f32[96])"), HONE_OK);
    hone_buffers_work_with(&f->buffers, NULL, true);
    fill(f);
    volatile unsigned char *x = bytes_of(f, "x"), *w = bytes_of(f, "w");
    const hone_fenced *of_x = &f->buffers.sets[0].fenced[0];
    assert_true(of_x->guard.size >= of_x->span);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    w[5] = w[5];
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "w, an input"));
    assert_int_equal(hone_buffers_restore(&f->buffers, f->call, &f->err), HONE_OK);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    x[64 * 96 * 4] = 1;
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "1 byte past the end of x"));
    assert_int_equal(hone_buffers_restore(&f->buffers, f->call, &f->err), HONE_OK);
    of_x->block[0] = 1; // on a page that is not the block's alone
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "before the start of x"));
}

// Who compares a part of its inputs with those of its last run must take these for the same.
static void of_nearly_the_same_inputs_a_few_elements_differ(void **state)
{
    fixture *f = *state;
    enum { COUNT = 64 * 96, MOST = 8 };
    static float original[COUNT];
    assert_int_equal(make(f, "op(f32[64,96])"), HONE_OK);
    fill(f);
    memcpy(original, bytes_of(f, "x"), sizeof original);
    assert_int_equal(hone_buffers_change_few(&f->buffers, 11, &f->err), HONE_OK);
    const float *now = (const float *)(const void *)bytes_of(f, "x");
    size_t others = 0;
    for (size_t i = 0; i < COUNT; i++)
        others += now[i] < original[i] || now[i] > original[i];
    assert_in_range(others, 1, MOST);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
}

static float largest_of(const float *row, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(row[i]));
    return largest;
}

// An outlier, a row far below and a large one come in each array of more than two rows, also in its first and last rows.
static void uneven_rows_are_unlike_each_other(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 10; rows++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            void *own = NULL;
            char call[32];
            int outliers = 0, below = 0, large = 0;
            assert_int_equal(setup(&own), 0);
            fixture *f = own;
            snprintf(call, sizeof call, "op(f32[%d,40])", (int)rows);
            assert_int_equal(make(f, call), HONE_OK);
            fill(f);
            assert_int_equal(hone_buffers_make_uneven(&f->buffers, seed, &f->err), HONE_OK);
            const float *x = (const float *)(const void *)bytes_of(f, "x");
            for (int64_t row = 0; row < rows; row++, x += 40) {
                const float largest = largest_of(x, 40);
                below += largest > 90 && x[0] < -90 && x[1] < -90;
                outliers += largest > 99 && largest < 101 && x[0] > -90;
                large += largest > 10 && largest < 90 + 30 && x[0] > -90 && !(largest > 99 && largest < 101);
                if (row == 0 || row == rows - 1) assert_true(largest > 10);
            }
            assert_true(outliers + below + large >= rows * 3 / 4);
            assert_true(rows < 4 || (outliers > 0 && below > 0 && large > 0));
            assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
            assert_int_equal(teardown(&own), 0);
        }
}

// Of one row that one; of more also such as are left as they are.
static void level_rows_are_of_one_number_that_is_not_zero(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 10; rows++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            void *own = NULL;
            char call[32];
            int level = 0, large = 0;
            assert_int_equal(setup(&own), 0);
            fixture *f = own;
            snprintf(call, sizeof call, "op(f32[%d,40])", (int)rows);
            assert_int_equal(make(f, call), HONE_OK);
            fill(f);
            assert_int_equal(hone_buffers_level_rows(&f->buffers, seed, &f->err), HONE_OK);
            const float *x = (const float *)(const void *)bytes_of(f, "x");
            for (int64_t row = 0; row < rows; row++, x += 40) {
                int same = 0;
                for (int i = 0; i < 40; i++)
                    same += x[i] == x[0];
                level += same == 40 && fabsf(x[0]) > 0;
                large += same == 40 && fabsf(x[0]) > 10;
                if (row == 0 || row == rows - 1) assert_int_equal(same, 40);
            }
            assert_true(level >= rows * 3 / 4 && (rows < 4 || (large > 0 && level > large && level < rows)));
            assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
            assert_int_equal(teardown(&own), 0);
        }
}

// A mask whose numbers are read as bytes leaves all out there; what is not 0 stays so, and what may be an index stays small.
static void some_rows_of_integers_are_wide(void **state)
{
    fixture *f = *state;
    enum { ROWS = 64, COLUMNS = 40 };
    static int32_t original[ROWS * COLUMNS];
    assert_int_equal(make(f, "op(i32[64,40])"), HONE_OK);
    fill(f);
    memcpy(original, bytes_of(f, "x"), sizeof original);
    assert_int_equal(hone_buffers_even_rows(&f->buffers, 3, &f->err), HONE_OK);
    const int32_t *now = (const int32_t *)(const void *)bytes_of(f, "x");
    int wide = 0, same = 0;
    for (int row = 0; row < ROWS; row++) {
        int wides = 0, zeros = 0, others = 0;
        for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; i++) {
            wides += now[i] == 256 && original[i] != 0;
            zeros += now[i] == 0 && original[i] == 0;
            others += now[i] != original[i];
        }
        wide += wides > 0 && wides + zeros == COLUMNS;
        same += others == 0;
    }
    assert_in_range(wide, 3, ROWS / 2);
    assert_in_range(same, 3, ROWS / 2);
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
    void *own = NULL;
    assert_int_equal(setup(&own), 0);
    f = own;
    assert_int_equal(make(f, "op(u32[64,40])"), HONE_OK);
    fill(f);
    assert_int_equal(hone_buffers_even_rows(&f->buffers, 3, &f->err), HONE_OK);
    const uint32_t *indices = (const uint32_t *)(const void *)bytes_of(f, "x");
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_in_range(indices[i], 0, 15);
    assert_int_equal(teardown(&own), 0);
}

// The lowest number throughout, before a place, from one on, or here and there; in f16 in no row throughout.
static void some_rows_of_a_bias_are_masked(void **state)
{
    enum { ROWS = 64, COLUMNS = 40 };
    static const char *const calls[] = {"op(f32[64,40])", "op(f16[64,40])"};
    (void)state;
    for (size_t dtype = 0; dtype < 2; dtype++) {
        void *own = NULL;
        assert_int_equal(setup(&own), 0);
        fixture *f = own;
        const hone_dtype_id id = dtype == 0 ? HONE_F32 : HONE_F16;
        const double lowest = dtype == 0 ? -0x1.fep127 : -65504;
        const char *signature = "op(x: T[m, n] ~ bias()) -> y: T[m, n] where T in f32, f16";
        assert_int_equal(make_of(f, signature, calls[dtype]), HONE_OK);
        fill(f);
        assert_true(hone_buffers_has_choices(&f->buffers));
        int whole = 0, before = 0, behind = 0, some = 0, none = 0;
        assert_int_equal(hone_buffers_even_rows(&f->buffers, 3, &f->err), HONE_OK);
        for (int row = 0; row < ROWS; row++) {
            int masked = 0, changes = 0, last = -1;
            for (int i = 0; i < COLUMNS; i++) {
                const double value = hone_element_load(id, bytes_of(f, "x"), row * COLUMNS + i);
                const int is_masked = value <= lowest;
                assert_true(is_masked || (value > -4 && value < 4));
                masked += is_masked;
                changes += last >= 0 && is_masked != last;
                last = is_masked;
            }
            whole += masked == COLUMNS;
            none += masked == 0;
            before += changes == 1 && last == 0;
            behind += changes == 1 && last == 1;
            some += changes > 1;
        }
        assert_true(before > 2 && behind > 2 && some > 2 && none > 2);
        assert_true(dtype == 0 ? whole > 2 : whole == 0);
        assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
        assert_int_equal(teardown(&own), 0);
    }
}

static void every_other_row_has_an_outlier(void **state)
{
    fixture *f = *state;
    enum { ROWS = 64, COLUMNS = 40 };
    int outliers = 0;
    assert_int_equal(make(f, "op(f32[64,40])"), HONE_OK);
    fill(f);
    assert_int_equal(hone_buffers_put_outliers(&f->buffers, 3, &f->err), HONE_OK);
    const float *x = (const float *)(const void *)bytes_of(f, "x");
    for (int row = 1; row < ROWS; row++)
        outliers += largest_of(x + row * COLUMNS, COLUMNS) >= 9;
    assert_in_range(outliers, ROWS / 2 - 1, ROWS / 2); // and the first
    assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
}

// Also where it is the only row, whatever the seed.
static void a_long_row_has_outliers_of_each_negative_size(void **state)
{
    fixture *f = *state;
    enum { COLUMNS = 640 };
    assert_int_equal(make(f, "op(f32[1,640])"), HONE_OK);
    fill(f);
    for (uint64_t seed = 0; seed < 8; seed++) {
        static const float sizes[] = {9, 11, 13, 30};
        float *x = (float *)(void *)bytes_of(f, "x");
        memset(x, 0, COLUMNS * sizeof *x);
        assert_int_equal(hone_buffers_put_outliers(&f->buffers, seed, &f->err), HONE_OK);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            int found = 0;
            for (int column = 0; column < COLUMNS; column++)
                found += x[column] == -sizes[i];
            assert_true(found >= 2);
        }
    }
}

// Variants come and go in guarded memory; what a kernel writes into one shows.
static void a_variant_of_guarded_inputs_is_watched_too(void **state)
{
    fixture *f = *state;
    hone_variants variants;
    assert_int_equal(make(f, "op(f32[64,96])"), HONE_OK);
    hone_buffers_work_with(&f->buffers, NULL, true);
    fill(f);
    hone_variants_init(&variants, f->arena.allocator);
    float first = *(const float *)(const void *)bytes_of(f, "x");
    for (int kind = HONE_VARIANT_ORIGINAL; kind <= HONE_VARIANT_OTHER; kind += HONE_VARIANT_OTHER)
        assert_int_equal(
            hone_variants_make(&variants, (hone_variant_kind)kind, &f->buffers, f->call, 5, &f->err), HONE_OK);
    for (int round = 0; round < 2; round++)
        for (int kind = HONE_VARIANT_ORIGINAL; kind <= HONE_VARIANT_OTHER; kind += HONE_VARIANT_OTHER) {
            assert_int_equal(hone_variants_load(&variants, (hone_variant_kind)kind, &f->buffers, &f->err), HONE_OK);
            float *x = (float *)(void *)bytes_of(f, "x");
            assert_true((*x == first) == (kind == HONE_VARIANT_ORIGINAL));
            assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
            if (round == 0) continue;
            *(volatile float *)x = 77;
            assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_KERNEL_FAILED);
        }
    hone_variants_deinit(&variants);
}

typedef struct special_values {
    bool small, padding, lowest, minus_infinity, infinity, nan;
} special_values;

static void look_for_special(const float *x, int64_t count, special_values *seen)
{
    for (int64_t i = 0; i < count; i++) {
        seen->small = seen->small || fabsf(x[i]) < 1e-30F;
        seen->lowest = seen->lowest || (x[i] < -1e38F && isfinite(x[i]));
        seen->minus_infinity = seen->minus_infinity || (isinf(x[i]) && x[i] < 0);
        seen->infinity = seen->infinity || (isinf(x[i]) && x[i] > 0);
        seen->nan = seen->nan || isnan(x[i]);
    }
}

static bool is_zero_throughout(const float *row, int64_t count)
{
    int64_t zeros = 0;
    while (zeros < count && row[zeros] == 0 && !signbit(row[zeros]))
        zeros++;
    return zeros == count;
}

// A row holds one kind: of few rows there are several sets, so that no kind is left to chance.
static void every_kind_of_special_value_comes_also_in_few_rows(void **state)
{
    static const struct {
        const char *call;
        int64_t rows, sets;
    } calls[] = {{"op(f32[1,40])", 1, 6}, {"op(f32[2,40])", 2, 3},   {"op(f32[4,40])", 4, 6},
                 {"op(f32[8,40])", 8, 3}, {"op(f32[15,40])", 15, 2}, {"op(f32[64,40])", 64, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            void *own = NULL;
            assert_int_equal(setup(&own), 0);
            fixture *f = own;
            hone_variants variants;
            special_values seen = {0};
            int64_t sets = 0;
            f->algorithm.special = HONE_SPECIAL_SMALL | HONE_SPECIAL_LOWEST | HONE_SPECIAL_MINUS_INFINITY |
                                   HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN;
            assert_int_equal(make(f, calls[i].call), HONE_OK);
            fill(f);
            hone_variants_init(&variants, f->arena.allocator);
            variants.shares = true;
            assert_int_equal(
                hone_variants_make(&variants, HONE_VARIANT_ORIGINAL, &f->buffers, f->call, seed, &f->err), HONE_OK);
            for (int kind = HONE_VARIANT_DEFINED; kind <= HONE_VARIANT_DEFINED_6; kind++) {
                if (!hone_variant_is_asked((hone_variant_kind)kind, false, &f->buffers)) continue;
                sets++;
                assert_int_equal(
                    hone_variants_make(&variants, (hone_variant_kind)kind, &f->buffers, f->call, seed, &f->err),
                    HONE_OK);
                const float *x = (const float *)(const void *)bytes_of(f, "x");
                look_for_special(x, calls[i].rows * 40, &seen);
                for (int64_t row = 0; row < calls[i].rows; row++)
                    seen.padding = seen.padding || is_zero_throughout(x + row * 40, 40);
            }
            hone_variants_deinit(&variants);
            assert_int_equal(teardown(&own), 0);
            assert_int_equal(sets, calls[i].sets);
            if (!seen.small || !seen.padding || !seen.lowest || !seen.minus_infinity || !seen.infinity || !seen.nan)
                fail_msg("%s, seed %d", calls[i].call, (int)seed);
        }
}

// Whoever keeps w by its address is verified with another one all the same.
static void what_a_kind_does_not_change_is_shared_only_where_other_kinds_change_it(void **state)
{
    fixture *f = *state;
    enum { COUNT = 40 };
    static const hone_variant_kind others[] = {HONE_VARIANT_OTHER, HONE_VARIANT_LARGE, HONE_VARIANT_TINY};
    float original[COUNT];
    assert_int_equal(make(f, "op(f32[4,40], f32[40])"), HONE_OK);
    for (int shares = 0; shares < 2; shares++) {
        hone_variants variants;
        hone_call_release(&f->call);
        fill(f);
        memcpy(original, bytes_of(f, "w"), sizeof original);
        hone_variants_init(&variants, f->arena.allocator);
        variants.shares = shares == 1;
        assert_int_equal(
            hone_variants_make(&variants, HONE_VARIANT_ORIGINAL, &f->buffers, f->call, 5, &f->err), HONE_OK);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            assert_int_equal(hone_variants_make(&variants, others[i], &f->buffers, f->call, 5, &f->err), HONE_OK);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            assert_int_equal(hone_variants_load(&variants, others[i], &f->buffers, &f->err), HONE_OK);
            const bool is_original = memcmp(original, bytes_of(f, "w"), sizeof original) == 0;
            assert_int_equal(is_original, shares == 1 && others[i] != HONE_VARIANT_OTHER);
            assert_int_equal(hone_buffers_check(&f->buffers, 0, &f->err), HONE_OK);
        }
        assert_int_equal(hone_variants_load(&variants, HONE_VARIANT_ORIGINAL, &f->buffers, &f->err), HONE_OK);
        assert_memory_equal(original, bytes_of(f, "w"), sizeof original);
        hone_variants_deinit(&variants);
    }
}

static hone_status answer_twice(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[2].as.tensor;
    for (int64_t i = 0; i < hone_tensor_elements(y); i++)
        ((float *)y->data)[i] = 2 * ((const float *)x->data)[i];
    return HONE_OK;
}

// pool NULL: by the calling thread. Else by several, as hone's own references are.
static void compute(fixture *f, hone_pool *pool, const hone_reference_use *use, hone_reference *out)
{
    static const hone_device_info device = {.threads = 1};
    const hone_reference_means means = {
        .algorithm = &f->algorithm, .device = &device, .pool = pool, .is_concurrent = pool != NULL};
    assert_int_equal(hone_reference_compute(out, &means, f->call, &f->buffers, use, 5, &f->err), HONE_OK);
}

// Bits that were compared once are right again, with the error that they had; others are compared.
static void results_of_known_bits_are_right_and_others_are_compared(void **state)
{
    fixture *f = *state;
    hone_reference reference;
    const hone_tolerance tolerance = {0, 0, 0}, loose = {1000, 0, 0};
    double error = 0, again = 0;
    assert_int_equal(make(f, "op(f32[8,5])"), HONE_OK);
    fill(f);
    f->algorithm.reference = answer_twice;
    compute(f, NULL, &hone_reference_ordinary, &reference);
    float *y = (float *)(void *)bytes_of(f, "y");
    const float *right = (const float *)(const void *)reference.results[2].low;
    memcpy(y, right, 160);
    y[7] = nextafterf(y[7], 1e9f);
    for (int round = 0; round < 6; round++) { // more than there is room for
        y[0] = nextafterf(y[0], 1e9f);
        assert_int_equal(hone_reference_check(&reference, &f->buffers, 0, &tolerance, NULL, &error, &f->err), HONE_OK);
        assert_int_equal(hone_reference_check(&reference, &f->buffers, 0, &loose, NULL, &again, &f->err), HONE_OK);
        assert_true(error > 0 && again == error);
    }
    y[39] += 1;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(
            hone_reference_check(&reference, &f->buffers, 0, &tolerance, NULL, &error, &f->err), HONE_KERNEL_FAILED);
        assert_non_null(strstr(f->err.message, "y[7, 4]"));
    }
    hone_reference_deinit(&reference);
}

// bf16's 3 % are twice as much as the numbers themselves with a slack of 64: zeros would pass.
static void zeros_are_not_near_enough_to_large_results_whatever_the_slack(void **state)
{
    fixture *f = *state;
    hone_reference reference;
    const hone_reference_use use = {.seconds = 2, .slack = 64};
    const hone_tolerance tolerance = {.relative = 0.032};
    double error = 0;
    assert_int_equal(make(f, "op(f32[8,5])"), HONE_OK);
    fill(f);
    f->algorithm.reference = answer_twice;
    compute(f, NULL, &use, &reference);
    float *y = (float *)(void *)bytes_of(f, "y");
    memcpy(y, reference.results[2].low, 160);
    assert_int_equal(hone_reference_check(&reference, &f->buffers, 0, &tolerance, NULL, &error, &f->err), HONE_OK);
    memset(y, 0, 160);
    assert_int_equal(
        hone_reference_check(&reference, &f->buffers, 0, &tolerance, NULL, &error, &f->err), HONE_KERNEL_FAILED);
    hone_reference_deinit(&reference);
}

static void says_some_work(const hone_call *call, hone_cost *out)
{
    (void)call;
    *out = (hone_cost){.operations = 1e8};
}

static atomic_int pieces_seen;

static hone_status answer_twice_and_count(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    atomic_fetch_add(&pieces_seen, 1);
    return answer_twice(plan, args, execution);
}

// Twelve rows are eight pieces at most for two threads: six, which divide them.
static void threads_share_a_reference_of_hones_own_and_no_other(void **state)
{
    fixture *f = *state;
    hone_reference alone, shared;
    hone_pool *pool = NULL;
    const hone_allocator allocator = hone_allocator_system();
    assert_int_equal(hone_pool_create(&allocator, 2, &pool, &f->err), HONE_OK);
    assert_int_equal(make(f, "op(f32[12,5])"), HONE_OK);
    fill(f);
    f->algorithm.reference = answer_twice_and_count;
    f->algorithm.model = says_some_work;
    f->algorithm.independent = "m";
    atomic_store(&pieces_seen, 0);
    compute(f, NULL, &hone_reference_ordinary, &alone);
    assert_int_equal(atomic_load(&pieces_seen), 1);
    compute(f, pool, &hone_reference_ordinary, &shared);
    assert_int_equal(atomic_load(&pieces_seen), 1 + 6);
    assert_int_equal(shared.part_count, 0);
    assert_memory_equal(alone.results[2].low, shared.results[2].low, 12 * 5 * sizeof(float));
    hone_reference_deinit(&alone);
    hone_reference_deinit(&shared);
    hone_pool_destroy(&pool);
}

static void says_much_work(const hone_call *call, hone_cost *out)
{
    (void)call;
    *out = (hone_cost){.operations = 1e15};
}

static hone_status hear(fixture *f, hone_reference *reference, const char *who)
{
    const hone_tolerance tolerance = {0, 0, 0};
    double error;
    return hone_reference_check(reference, &f->buffers, 0, &tolerance, who, &error, &f->err);
}

static void answer(fixture *f, bool zeros_in_a_row)
{
    const float *x = (const float *)(const void *)bytes_of(f, "x");
    float *y = (float *)(void *)bytes_of(f, "y");
    for (int i = 0; i < 64 * 5; i++)
        y[i] = zeros_in_a_row && i / 5 == 30 ? 0 : 2 * x[i];
}

static void compute_two_rows(fixture *f, hone_reference *out)
{
    compute(f, NULL, &hone_reference_ordinary, out);
    assert_int_equal(out->part_count, 2);
}

// Of 64 rows the reference computes two; the others are compared with what another candidate gave.
static void results_of_another_kernel_reveal_errors_outside_the_computed_parts(void **state)
{
    fixture *f = *state;
    hone_reference reference;
    assert_int_equal(make(f, "op(f32[64,5])"), HONE_OK);
    fill(f);
    f->algorithm.reference = answer_twice;
    f->algorithm.independent = "m";
    f->algorithm.model = says_much_work;
    compute_two_rows(f, &reference);
    answer(f, false);
    assert_int_equal(hear(f, &reference, NULL), HONE_OK);
    assert_string_equal(reference.witness.name, "");
    float *y = (float *)(void *)bytes_of(f, "y");
    y[7] = nextafterf(y[7], 1e9f);
    assert_int_equal(hear(f, &reference, "first"), HONE_OK);
    assert_string_equal(reference.witness.name, "first");
    y[8] = nextafterf(y[8], 1e9f);
    assert_int_equal(hear(f, &reference, "first"), HONE_OK);
    assert_false(reference.witness.agrees); // with nobody but itself
    y[9] = nextafterf(y[9], 1e9f);
    assert_int_equal(hear(f, &reference, "second"), HONE_OK);
    assert_true(reference.witness.agrees);
    answer(f, true);
    assert_int_equal(hear(f, &reference, "second"), HONE_KERNEL_FAILED);
    assert_non_null(strstr(f->err.message, "part 30 of 64"));
    assert_int_equal(reference.part_count, 3);
    hone_reference_deinit(&reference);
    // The wrong kernel comes first: the right one exposes it and replaces it as the witness.
    compute_two_rows(f, &reference);
    assert_int_equal(hear(f, &reference, "cheat"), HONE_OK);
    answer(f, false);
    assert_int_equal(hear(f, &reference, "honest"), HONE_OK);
    assert_string_equal(reference.witness.name, "honest");
    answer(f, true);
    assert_int_equal(hear(f, &reference, "cheat"), HONE_KERNEL_FAILED);
    hone_reference_deinit(&reference);
}

static hone_status answer_nothing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_KERNEL_FAILED;
}

// Where it fails for the part in which two differ, neither is called wrong, and the parts stay what they are.
static void a_reference_that_fails_on_a_disputed_part_rejects_nothing(void **state)
{
    fixture *f = *state;
    hone_reference reference;
    assert_int_equal(make(f, "op(f32[64,5])"), HONE_OK);
    fill(f);
    f->algorithm.reference = answer_twice;
    f->algorithm.independent = "m";
    f->algorithm.model = says_much_work;
    compute_two_rows(f, &reference);
    answer(f, false);
    assert_int_equal(hear(f, &reference, "first"), HONE_OK);
    f->algorithm.reference = answer_nothing;
    answer(f, true);
    assert_int_equal(hear(f, &reference, "second"), HONE_OK);
    assert_int_equal(reference.part_count, 2);
    assert_string_equal(reference.witness.name, "first");
    hone_reference_deinit(&reference);
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    assert_int_equal(make(f, "op(f32[3,5]{strides=7,1}, f32[5])"), HONE_OK);
    fill(f);
    hone_buffers_deinit(&f->buffers);
    for (long long allowed = 0; allowed < 20; allowed++) {
        atomic_store(&f->memory.left, allowed);
        hone_status status = hone_buffers_create(
            &f->buffers, f->arena.allocator, f->signature, &f->algorithm, &host, f->values, f->count, &f->err);
        if (status == HONE_OK) status = hone_buffers_fill(&f->buffers, f->call, 5, &f->err);
        if (status == HONE_OK) status = hone_buffers_rotate(&f->buffers, f->values, 100, &f->err);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        if (status == HONE_OUT_OF_MEMORY) hone_buffers_deinit(&f->buffers);
        if (status == HONE_OK) break;
        assert_true(allowed < 19);
    }
    atomic_store(&f->memory.left, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(untouched_buffers_pass_and_have_the_calls_key, setup, teardown),
        cmocka_unit_test_setup_teardown(results_may_be_written_and_nothing_else, setup, teardown),
        cmocka_unit_test_setup_teardown(layouts_of_the_call_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_calls_of_other_layouts_get_equal_data, setup, teardown),
        cmocka_unit_test_setup_teardown(holes_of_a_strided_result_are_watched, setup, teardown),
        cmocka_unit_test_setup_teardown(cold_sets_are_copies_and_are_checked_too, setup, teardown),
        cmocka_unit_test_setup_teardown(seasoned_inputs_hold_the_numbers_that_kernels_forget, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_result_of_other_bits_is_refused_with_the_first_byte_that_differs, setup, teardown),
        cmocka_unit_test_setup_teardown(guarded_inputs_are_watched_by_the_system, setup, teardown),
        cmocka_unit_test_setup_teardown(of_nearly_the_same_inputs_a_few_elements_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(uneven_rows_are_unlike_each_other, setup, teardown),
        cmocka_unit_test(level_rows_are_of_one_number_that_is_not_zero),
        cmocka_unit_test_setup_teardown(some_rows_of_integers_are_wide, setup, teardown),
        cmocka_unit_test(some_rows_of_a_bias_are_masked),
        cmocka_unit_test_setup_teardown(every_other_row_has_an_outlier, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_row_has_outliers_of_each_negative_size, setup, teardown),
        cmocka_unit_test_setup_teardown(a_variant_of_guarded_inputs_is_watched_too, setup, teardown),
        cmocka_unit_test(every_kind_of_special_value_comes_also_in_few_rows),
        cmocka_unit_test_setup_teardown(
            what_a_kind_does_not_change_is_shared_only_where_other_kinds_change_it, setup, teardown),
        cmocka_unit_test_setup_teardown(results_of_known_bits_are_right_and_others_are_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_share_a_reference_of_hones_own_and_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(zeros_are_not_near_enough_to_large_results_whatever_the_slack, setup, teardown),
        cmocka_unit_test_setup_teardown(
            results_of_another_kernel_reveal_errors_outside_the_computed_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reference_that_fails_on_a_disputed_part_rejects_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
