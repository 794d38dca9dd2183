// The vector functions that have an error of their own, in their portable form; the others compute the same polynomial.
#include "kernels/vector/portable.h"

#define VEC_NAME(name) name##_portable
#include "kernels/vector/pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

// |is - right| in units of right's last place.
static double ulps(float is, double right)
{
    int exponent;
    frexp(right, &exponent);
    return fabs((double)is - right) / ldexp(1, exponent - 24);
}

static double worst(vec (*function)(vec), double (*right)(double), float first, float last, int steps)
{
    double most = 0;
    for (int i = 0; i <= steps; i++) {
        float x = first + (last - first) * (float)i / (float)steps;
        double error = ulps(function(vec_set(x))[0], right((double)x));
        if (!(error <= most)) most = error;
    }
    return most;
}

static vec power(vec x)
{
    return vec_exp2(x);
}

static vec exponential(vec x)
{
    return vec_exp(x);
}

static vec tangent(vec x)
{
    return vec_tanh(x);
}

static void two_to_a_power_is_within_its_bound(void **state)
{
    (void)state;
    assert_true(worst(power, exp2, -125.9f, 0.5f, 1000000) <= 1.3);
}

static void the_exponential_is_within_its_bound(void **state)
{
    (void)state;
    assert_true(worst(exponential, exp, -87, 0, 1000000) <= 1.6);
}

static void the_hyperbolic_tangent_is_within_its_bound(void **state)
{
    (void)state;
    assert_true(worst(tangent, tanh, -12, -1e-3f, 1000000) <= 4);
    assert_true(worst(tangent, tanh, 1e-6f, 1e-3f, 100000) <= 4);
}

static void lanes_are_unzipped_and_zipped_again(void **state)
{
    (void)state;
    float numbers[2 * VEC_WIDTH];
    for (int i = 0; i < 2 * VEC_WIDTH; i++)
        numbers[i] = (float)i;
    vec a = vec_load(numbers, HONE_F32, 0), b = vec_load(numbers, HONE_F32, VEC_WIDTH);
    vec_unzip(&a, &b);
    for (int i = 0; i < VEC_WIDTH; i++) {
        assert_true(a[i] == (float)(2 * i));
        assert_true(b[i] == (float)(2 * i + 1));
    }
    vec_zip(&a, &b);
    for (int i = 0; i < VEC_WIDTH; i++) {
        assert_true(a[i] == (float)i);
        assert_true(b[i] == (float)(VEC_WIDTH + i));
    }
}

static void nothing_remains_of_minus_infinity_and_nan_stays(void **state)
{
    (void)state;
    assert_true(vec_exp2(vec_set(-INFINITY))[0] == 0);
    assert_true(vec_exp2(vec_set(-1000))[0] == 0);
    assert_true(vec_exp(vec_set(-INFINITY))[0] == 0);
    assert_true(vec_tanh(vec_set(INFINITY))[0] == 1);
    assert_true(isnan(vec_exp2(vec_set(NAN))[0]));
    assert_true(isnan(vec_exp(vec_set(NAN))[0]));
    assert_true(isnan(vec_tanh(vec_set(NAN))[0]));
}

static void every_half_comes_back_as_it_was(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 1 << 16; bits += 4) {
        uint16_t halves[2][VEC_WIDTH], back[2 * VEC_WIDTH]; // as large as floats, which the compiler thinks of too
        for (uint32_t i = 0; i < VEC_WIDTH; i++)
            halves[0][i] = halves[1][i] = (uint16_t)(bits + i);
        const hone_dtype_id dtypes[] = {HONE_BF16, HONE_F16};
        for (int k = 0; k < 2; k++) {
            vec value = vec_load(halves[k], dtypes[k], 0);
            vec_store(back, dtypes[k], 0, value);
            for (int i = 0; i < VEC_WIDTH; i++)
                assert_true(isnan(value[i]) ? isnan(hone_element_get(back, dtypes[k], i)) : back[i] == halves[k][i]);
        }
    }
}

static void check_f16(uint32_t from, uint32_t step)
{
    float numbers[VEC_WIDTH];
    uint16_t halves[VEC_WIDTH];
    for (uint32_t i = 0; i < VEC_WIDTH; i++)
        numbers[i] = hone_float_of_bits(from + i * step);
    vec_store(halves, HONE_F16, 0, vec_load(numbers, HONE_F32, 0));
    for (int i = 0; i < VEC_WIDTH; i++)
        if (halves[i] != hone_f16_of_float(numbers[i])) fail_msg("%a becomes f16 %#x", (double)numbers[i], halves[i]);
}

static void floats_become_the_f16_that_each_is_by_itself(void **state)
{
    (void)state;
    const uint32_t step = 4099; // over all floats: infinities, NaN and subnormals, too
    for (uint64_t bits = 0; bits >> 32 == 0; bits += VEC_WIDTH * step)
        check_f16((uint32_t)bits, step);
    for (uint32_t half = 0; half < 1 << 16; half++) { // at each half, and about the middle to the next
        const uint32_t bits = hone_float_bits(hone_float_of_f16((uint16_t)half));
        check_f16(bits - 1, 1);
        check_f16(bits + 0xffe, 1);
        check_f16(hone_float_bits(((float)(half & 0x3ff) + 0.5f) * 0x1p-24f) - 1, 1); // of subnormals
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_to_a_power_is_within_its_bound),
        cmocka_unit_test(the_exponential_is_within_its_bound),
        cmocka_unit_test(the_hyperbolic_tangent_is_within_its_bound),
        cmocka_unit_test(lanes_are_unzipped_and_zipped_again),
        cmocka_unit_test(nothing_remains_of_minus_infinity_and_nan_stays),
        cmocka_unit_test(every_half_comes_back_as_it_was),
        cmocka_unit_test(floats_become_the_f16_that_each_is_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
