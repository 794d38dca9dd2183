// The helpers that all kernels share.
#include "kernels/common/half.h"
#include "kernels/common/peak.h"
#include "kernels/common/scratch.h"
#include "os/os.h"
#include "os/tiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>

static void every_f16_comes_back_from_float(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = hone_float_of_f16((uint16_t)half);
        if (!isnan(value))
            assert_int_equal(hone_f16_of_float(value), half);
        else
            assert_true(isnan(hone_float_of_f16(hone_f16_of_float(value))));
    }
}

static void every_bf16_comes_back_from_float(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = hone_float_of_bf16((uint16_t)half);
        if (!isnan(value))
            assert_int_equal(hone_bf16_of_float(value), half);
        else
            assert_true(isnan(hone_float_of_bf16(hone_bf16_of_float(value))));
    }
}

static void a_tie_goes_to_the_even_neighbour(void **state)
{
    (void)state;
    assert_int_equal(hone_f16_of_float(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(hone_f16_of_float(1.0f + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(hone_f16_of_float(0x1p-25f), 0);
    assert_int_equal(hone_f16_of_float(3 * 0x1p-25f), 2);
    assert_int_equal(hone_f16_of_float(65519.0f), 0x7bff);
    assert_int_equal(hone_f16_of_float(65520.0f), 0x7c00);
    assert_int_equal(hone_bf16_of_float(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(hone_bf16_of_float(1.0f + 3 * 0x1p-8f), 0x3f82);
    assert_int_equal(hone_bf16_of_float(3.4e38f), 0x7f80);
}

static void scratch_stays_where_it_is_until_it_is_too_small(void **state)
{
    (void)state;
    void *small = hone_scratch_get(100);
    assert_non_null(small);
    assert_int_equal((uintptr_t)small % 64, 0);
    assert_ptr_equal(hone_scratch_get(50), small);
    char *large = hone_scratch_get(1 << 20);
    assert_non_null(large);
    large[(1 << 20) - 1] = 1;
    assert_ptr_equal(hone_scratch_get(1), large);
}

static void scratch_that_cannot_be_is_null(void **state)
{
    (void)state;
    assert_null(hone_scratch_get(SIZE_MAX));
    assert_null(hone_scratch_get(SIZE_MAX / 2));
    assert_non_null(hone_scratch_get(10));
}

static void *own_block(void *argument)
{
    (void)argument;
    return hone_scratch_get(4096);
}

static void each_thread_has_its_own_scratch(void **state)
{
    (void)state;
    pthread_t other;
    void *theirs = NULL, *mine = hone_scratch_get(4096);
    assert_int_equal(pthread_create(&other, NULL, own_block, NULL), 0);
    pthread_join(other, &theirs);
    assert_non_null(theirs);
    assert_ptr_not_equal(theirs, mine);
}

static void brought_scratch_is_cut_into_pieces(void **state)
{
    (void)state;
    _Alignas(64) char memory[256];
    hone_execution execution = {.struct_size = sizeof execution, .scratch = memory, .scratch_bytes = sizeof memory};
    assert_ptr_equal(hone_scratch_piece(&execution, 0, 4, 50), memory);
    assert_ptr_equal(hone_scratch_piece(&execution, 3, 4, 64), memory + 192);
    assert_ptr_equal(hone_scratch_piece(&execution, 0, 4, 65), hone_scratch_get(65));
    assert_ptr_equal(hone_scratch_piece(NULL, 1, 2, 65), hone_scratch_get(65));
}

static const uint64_t avx2 = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C;
static const uint64_t avx512 = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ;

static void a_peak_is_measured_with_the_widest_instructions_of_the_features(void **state)
{
    (void)state;
    assert_ptr_equal(hone_peak_widest(0)->loop, hone_peak_loop_portable);
    assert_ptr_equal(hone_peak_widest(HONE_CPU_AVX2)->loop, hone_peak_loop_portable); // no FMA
    assert_ptr_equal(hone_peak_widest(avx2)->loop, hone_peak_loop_avx2);
    assert_ptr_equal(hone_peak_widest(avx2 | HONE_CPU_AVX512F)->loop, hone_peak_loop_avx2); // no BW, VL, DQ
    assert_ptr_equal(hone_peak_widest(avx2 | avx512)->loop, hone_peak_loop_avx512);
    assert_ptr_equal(hone_peak_widest(UINT64_MAX)->loop, hone_peak_loop_avx512);
}

static void a_peak_of_bf16_is_measured_over_pairs_where_the_cpu_multiplies_them(void **state)
{
    (void)state;
    assert_null(hone_peak_of_pairs(avx2 | avx512));
    assert_null(hone_peak_of_pairs(HONE_CPU_AVX512_BF16));
    assert_ptr_equal(hone_peak_of_pairs(avx512 | HONE_CPU_AVX512_BF16)->loop, hone_peak_loop_avx512_bf16);
    assert_true(hone_peak_of_bf16(avx512, 10, 0) == 10);                        // floats are what there is
    assert_true(hone_peak_of_bf16(avx512 | HONE_CPU_AVX512_BF16, 10, 8) == 10); // or are faster
    assert_true(hone_peak_of_bf16(avx512 | HONE_CPU_AVX512_BF16, 10, 19) == 19);
    assert_true(hone_peak_of_bf16(avx512 | HONE_CPU_AVX512_BF16 | HONE_CPU_AMX_BF16, 10, 19) == 160);
    assert_true(hone_peak_of_bf16(avx512 | HONE_CPU_AMX_INT8, 10, 0) == 10);
}

// How fast they are is the business of bench/peak.c.
static void a_peak_can_be_measured_with_every_instruction_set_of_this_machine(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    const uint64_t features[] = {0, cpu.features & avx2, cpu.features};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        hone_peak peak = {0};
        assert_int_equal(hone_peak_measure(&allocator, features[i], 1, 1 << 20, NULL, NULL, &peak, NULL), HONE_OK);
        assert_true(isfinite(peak.operations) && peak.operations > 0);
        assert_true(isfinite(peak.of_bf16) && peak.of_bf16 >= peak.operations);
        assert_true(isfinite(peak.bytes) && peak.bytes > 0);
    }
}

static void a_peak_takes_half_of_what_is_left_at_most_or_no_memory(void **state)
{
    (void)state;
    const int64_t mebibyte = 1 << 20;
    static const struct {
        int64_t cache, left, read; // in MiB
    } cases[] = {
        {32, 4096, 64}, {32, 128, 64},    {32, 127, 0},  {4, 4096, 64},     {4, 127, 8},
        {4, 15, 0},     {100, 4096, 200}, {100, 399, 0}, {800, 4096, 1024}, {800, 2000, 0},
        {0, 4096, 64},  {0, 127, 0},      {32, 0, 0},    {32, -5, 0},       {1 << 30, 1 << 30, 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(
            hone_peak_memory(cases[i].cache * mebibyte, cases[i].left * mebibyte), cases[i].read * mebibyte);
}

static void a_peak_without_memory_has_operations_alone(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_peak peak = {.bytes = 7};
    assert_int_equal(hone_peak_measure(&allocator, 0, 1, 0, NULL, NULL, &peak, NULL), HONE_OK);
    assert_true(peak.operations > 0 && peak.bytes == 0);
}

static void a_peak_of_no_threads_is_refused(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_peak peak = {.operations = 7};
    hone_error err = {0};
    assert_int_equal(hone_peak_measure(&allocator, 0, 0, 0, NULL, NULL, &peak, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "threads is 0"));
    assert_true(peak.operations == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_comes_back_from_float),
        cmocka_unit_test(every_bf16_comes_back_from_float),
        cmocka_unit_test(a_tie_goes_to_the_even_neighbour),
        cmocka_unit_test(scratch_stays_where_it_is_until_it_is_too_small),
        cmocka_unit_test(scratch_that_cannot_be_is_null),
        cmocka_unit_test(each_thread_has_its_own_scratch),
        cmocka_unit_test(brought_scratch_is_cut_into_pieces),
        cmocka_unit_test(a_peak_is_measured_with_the_widest_instructions_of_the_features),
        cmocka_unit_test(a_peak_of_bf16_is_measured_over_pairs_where_the_cpu_multiplies_them),
        cmocka_unit_test(a_peak_can_be_measured_with_every_instruction_set_of_this_machine),
        cmocka_unit_test(a_peak_takes_half_of_what_is_left_at_most_or_no_memory),
        cmocka_unit_test(a_peak_without_memory_has_operations_alone),
        cmocka_unit_test(a_peak_of_no_threads_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
