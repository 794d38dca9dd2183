// One element of any dtype as a double and back.
#include "calls.h"

#include <math.h>

static uint32_t code_of(hone_dtype_id dtype, double value)
{
    uint32_t code = 0;
    hone_element_store(dtype, &code, 0, value);
    return code;
}

static void small_floats_have_their_documented_codes(void **state)
{
    (void)state;
    static const struct {
        hone_dtype_id dtype;
        double value;
        uint32_t code;
    } known[] = {
        {HONE_F16, 1.0, 0x3c00},         {HONE_F16, -2.0, 0xc000},        {HONE_F16, 65504.0, 0x7bff},
        {HONE_F16, 65520.0, 0x7c00},     {HONE_F16, 65519.0, 0x7bff},     {HONE_F16, 0x1p-24, 1},
        {HONE_F16, 0x1p-25, 0},          {HONE_F16, 0x1.8p-25, 1},        {HONE_F16, 0x1.ff8p-15, 0x03ff},
        {HONE_F16, 0x1.ffcp-15, 0x0400}, {HONE_F16, 1e300, 0x7c00},       {HONE_BF16, 1.0, 0x3f80},
        {HONE_BF16, 1.00390625, 0x3f80}, {HONE_BF16, 1.01171875, 0x3f82}, {HONE_BF16, 3.3895313892515355e38, 0x7f7f},
        {HONE_BF16, -INFINITY, 0xff80},  {HONE_F8_E4M3FN, 448.0, 0x7e},   {HONE_F8_E4M3FN, 1e9, 0x7e},
        {HONE_F8_E4M3FN, 1.0, 0x38},     {HONE_F8_E4M3FN, 0x1p-9, 1},     {HONE_F8_E5M2, 1.0, 0x3c},
        {HONE_F8_E5M2, 57344.0, 0x7b},   {HONE_F8_E5M2, 61440.0, 0x7c},   {HONE_F8_E5M2, -0.0, 0x80},
        {HONE_F16, 0x1p-1074, 0},        {HONE_BF16, 0x1p-133, 1},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (code_of(known[i].dtype, known[i].value) != known[i].code)
            fail_msg(
                "%s of %g is %x, expected %x", hone_dtype_info_of(known[i].dtype)->name, known[i].value,
                code_of(known[i].dtype, known[i].value), known[i].code);
}

static void every_code_of_a_small_float_survives_the_way_through_double(void **state)
{
    (void)state;
    static const hone_dtype_id dtypes[] = {HONE_F16, HONE_BF16, HONE_F8_E4M3FN, HONE_F8_E5M2};
    for (size_t i = 0; i < 4; i++)
        for (uint32_t code = 0; code < 1u << hone_dtype_info_of(dtypes[i])->bits; code++) {
            const double value = hone_element_load(dtypes[i], &code, 0);
            const double again_value = value;
            if (isnan(value))
                assert_true(isnan(hone_element_load(dtypes[i], &(uint32_t){code_of(dtypes[i], value)}, 0)));
            else
                assert_int_equal(code_of(dtypes[i], again_value), code);
        }
}

static void codes_at_the_ends_of_small_floats_have_their_documented_values(void **state)
{
    (void)state;
    static const struct {
        hone_dtype_id dtype;
        uint32_t code;
        double value; // NAN: none
    } known[] = {
        {HONE_F16, 0x0000, 0},          {HONE_F16, 0x0001, 0x1p-24},    {HONE_F16, 0x03ff, 0x1.ff8p-15},
        {HONE_F16, 0x0400, 0x1p-14},    {HONE_F16, 0x7bff, 65504},      {HONE_F16, 0x7c00, INFINITY},
        {HONE_F16, 0xfc00, -INFINITY},  {HONE_F16, 0x7c01, NAN},        {HONE_F16, 0xffff, NAN},
        {HONE_BF16, 0x0001, 0x1p-133},  {HONE_BF16, 0x0080, 0x1p-126},  {HONE_BF16, 0x7f7f, 0x1.fep127},
        {HONE_BF16, 0x7f80, INFINITY},  {HONE_BF16, 0xff80, -INFINITY}, {HONE_BF16, 0x7f81, NAN},
        {HONE_F8_E4M3FN, 0x01, 0x1p-9}, {HONE_F8_E4M3FN, 0x08, 0x1p-6}, {HONE_F8_E4M3FN, 0x7e, 448},
        {HONE_F8_E4M3FN, 0xfe, -448},   {HONE_F8_E4M3FN, 0x7f, NAN}, // it has no infinity
        {HONE_F8_E4M3FN, 0xff, NAN},    {HONE_F8_E5M2, 0x01, 0x1p-16},  {HONE_F8_E5M2, 0x04, 0x1p-14},
        {HONE_F8_E5M2, 0x7b, 57344},    {HONE_F8_E5M2, 0x7c, INFINITY}, {HONE_F8_E5M2, 0xfc, -INFINITY},
        {HONE_F8_E5M2, 0x7d, NAN},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const double value = hone_element_load(known[i].dtype, &known[i].code, 0), wanted = known[i].value;
        const bool right = isnan(wanted) ? isnan(value) : memcmp(&value, &wanted, sizeof value) == 0;
        if (!right)
            fail_msg(
                "%x of %s is %g, expected %g", known[i].code, hone_dtype_info_of(known[i].dtype)->name, value, wanted);
    }
}

static void integers_round_to_even_and_stop_at_their_bounds(void **state)
{
    (void)state;
    static const struct {
        hone_dtype_id dtype;
        double value, wanted;
    } known[] = {
        {HONE_I8, 2.5, 2},
        {HONE_I8, 3.5, 4},
        {HONE_I8, 1000, 127},
        {HONE_I8, -1000, -128},
        {HONE_U8, -3, 0},
        {HONE_U8, 300, 255},
        {HONE_I32, 1e18, 2147483647},
        {HONE_I4, -9, -8},
        {HONE_I4, -3, -3},
        {HONE_I4, 9, 7},
        {HONE_U4, 16, 15},
        {HONE_BOOL, 0.2, 1},
        {HONE_I64, 1e30, 9223372036854775807.0},
        {HONE_U64, 1e30, 18446744073709551615.0},
        {HONE_U64, -1, 0},
        {HONE_I16, NAN, 0},
        {HONE_F32, 0.1, 0.1f},
        {HONE_F64, 0.1, 0.1},
        {HONE_C64, 2.5, 2.5},
        {HONE_C128, -1, -1},
        {HONE_U16, 65536, 65535},
        {HONE_U32, 7, 7},
        {HONE_I8, 127, 127},
        {HONE_I8, 126.5, 126},
        {HONE_I8, -127.5, -128},
        {HONE_I8, -126.5, -126},
        {HONE_U8, 0.5, 0},
        {HONE_U8, 1.5, 2},
        {HONE_U8, 254.5, 254},
        {HONE_I16, 32767.5, 32767},
        {HONE_I16, -32768.5, -32768},
        {HONE_I4, 7.5, 7},
        {HONE_I4, 6.5, 6},
        {HONE_U4, 14.5, 14},
        {HONE_U4, -1, 0},
        {HONE_BOOL, NAN, 0},
        {HONE_BOOL, 0, 0},
        {HONE_I64, -1e30, -9223372036854775808.0},
        {HONE_U64, 0.5, 0},
        {HONE_U64, 1.5, 2},
        {HONE_U64, 18446744073709549568.0, 18446744073709549568.0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        unsigned char room[64] = {0};
        hone_element_store(known[i].dtype, room, 1, known[i].value);
        assert_true(hone_element_load(known[i].dtype, room, 1) == known[i].wanted);
        assert_true(hone_element_load(known[i].dtype, room, 0) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_have_their_documented_codes),
        cmocka_unit_test(every_code_of_a_small_float_survives_the_way_through_double),
        cmocka_unit_test(codes_at_the_ends_of_small_floats_have_their_documented_values),
        cmocka_unit_test(integers_round_to_even_and_stop_at_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
