// One element of any dtype as a double and back.
#include "call/call.h"

#include <math.h>
#include <string.h>

// A float of at most 32 bits, by its fields.
typedef struct float_format {
    int exponent_bits, mantissa_bits;
    uint32_t largest, over, nan; // codes without the sign: of the largest finite number, of what is larger, of NaN
} float_format;

static const float_format formats[HONE_DTYPE_COUNT] = {
    [HONE_F8_E4M3FN] = {4, 3, 0x7e, 0x7e, 0x7f}, // no infinity
    [HONE_F8_E5M2] = {5, 2, 0x7b, 0x7c, 0x7e},
    [HONE_F16] = {5, 10, 0x7bff, 0x7c00, 0x7e00},
    [HONE_BF16] = {8, 7, 0x7f7f, 0x7f80, 0x7fc0},
};

static int bias_of(const float_format *format)
{
    return (1 << (format->exponent_bits - 1)) - 1;
}

// Rounds to nearest, ties to even, on the bits of the double, as tuning inputs are made of millions of these.
//
//     double   s eeeeeeeeeee mm...m (52)
//     narrow   s e..e m..m
//
// The mantissa with its leading one is shifted right until its unit is the narrow format's last place, one place more
// for each step below that format's normal numbers.
static uint32_t encode(const float_format *format, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 63) << (format->exponent_bits + format->mantissa_bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (isnan(value)) return sign | format->nan;
    const int lowest = 1 - bias_of(format);
    if (exponent > bias_of(format) + 1) return sign | format->over;
    const int shift = 52 - format->mantissa_bits + (exponent < lowest ? lowest - exponent : 0);
    if (shift > 53) return sign; // below half of the smallest
    // In units of the last place; one rounding, and a carry runs on into the exponent by itself.
    const uint64_t full = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    const uint64_t rest = full & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    // Without a branch: on random data none could be predicted.
    uint32_t units = (uint32_t)(full >> shift);
    units += (uint32_t)(rest > half) | ((uint32_t)(rest == half) & units & 1);
    // A normal number's units hold the leading one, which adds the last step of its exponent field.
    const uint32_t steps = exponent < lowest ? 0 : (uint32_t)(exponent - lowest);
    const uint32_t code = (steps << format->mantissa_bits) + units;
    return sign | (code > format->largest ? format->over : code);
}

static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static double decode(const float_format *format, uint32_t code)
{
    const uint32_t magnitude = code & ((UINT32_C(1) << (format->exponent_bits + format->mantissa_bits)) - 1);
    const uint32_t mantissa = magnitude & ((UINT32_C(1) << format->mantissa_bits) - 1);
    const int field = (int)(magnitude >> format->mantissa_bits);
    const uint32_t leading = field == 0 ? 0 : UINT32_C(1) << format->mantissa_bits;
    const bool has_infinity = format->over != format->largest;
    double value =
        (double)(mantissa + leading) * power_of_two((field == 0 ? 1 : field) - bias_of(format) - format->mantissa_bits);
    if (magnitude > format->largest) value = has_infinity && magnitude == format->over ? (double)INFINITY : (double)NAN;
    return magnitude == code ? value : -value;
}

// Rounded to nearest even and held between the bounds; bounds are exact powers of two or less, so the comparison is
// too.
static int64_t to_integer(double value, int64_t low, int64_t high)
{
    if (isnan(value)) return 0;
    if (value <= (double)low) return low;
    if (value >= (double)high) return high;
    return (int64_t)nearbyint(value);
}

static uint64_t to_u64(double value)
{
    if (isnan(value) || value <= 0) return 0;
    return value >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)nearbyint(value);
}

// Two in a byte, low half first.
static uint8_t load_half(const void *array, int64_t index)
{
    const uint8_t byte = ((const uint8_t *)array)[index >> 1];
    return (index & 1) != 0 ? byte >> 4 : byte & 15;
}

static void store_half(void *array, int64_t index, unsigned half)
{
    uint8_t *byte = (uint8_t *)array + (index >> 1);
    const unsigned kept = (index & 1) != 0 ? *byte & 0x0fu : *byte & 0xf0u;
    *byte = (uint8_t)(kept | ((index & 1) != 0 ? half << 4u : half));
}

// Views of odd alignment are allowed: bytes are copied, never cast.
#define LOAD(type)                                                                                                     \
    {                                                                                                                  \
        type element;                                                                                                  \
        memcpy(&element, (const char *)array + index * (int64_t)sizeof element, sizeof element);                       \
        return (double)element;                                                                                        \
    }
#define STORE(type, number)                                                                                            \
    {                                                                                                                  \
        const type element = (type)(number);                                                                           \
        memcpy((char *)array + index * (int64_t)sizeof element, &element, sizeof element);                             \
        return;                                                                                                        \
    }

static double load_small_float(hone_dtype_id dtype, const void *array, int64_t index)
{
    uint16_t code = 0;
    const size_t size = hone_dtype_info_of(dtype)->bits / 8;
    memcpy(&code, (const char *)array + index * (int64_t)size, size);
    return decode(&formats[dtype], code);
}

double hone_element_load(hone_dtype_id dtype, const void *array, int64_t index)
{
    switch (dtype) {
    case HONE_BOOL:
    case HONE_U8:
        LOAD(uint8_t)
    case HONE_I4:
        return (double)((load_half(array, index) ^ 8) - 8);
    case HONE_U4:
        return (double)load_half(array, index);
    case HONE_I8:
        LOAD(int8_t)
    case HONE_I16:
        LOAD(int16_t)
    case HONE_I32:
        LOAD(int32_t)
    case HONE_I64:
        LOAD(int64_t)
    case HONE_U16:
        LOAD(uint16_t)
    case HONE_U32:
        LOAD(uint32_t)
    case HONE_U64:
        LOAD(uint64_t)
    case HONE_F32:
        LOAD(float)
    case HONE_F64:
        LOAD(double)
    case HONE_C64:
        return hone_element_load(HONE_F32, array, 2 * index);
    case HONE_C128:
        return hone_element_load(HONE_F64, array, 2 * index);
    case HONE_F8_E4M3FN:
    case HONE_F8_E5M2:
    case HONE_F16:
    case HONE_BF16:
        return load_small_float(dtype, array, index);
    default:
        return (double)NAN;
    }
}

static void store_small_float(hone_dtype_id dtype, void *array, int64_t index, double value)
{
    const uint32_t code = encode(&formats[dtype], value);
    if (hone_dtype_info_of(dtype)->bits == 8) STORE(uint8_t, code)
    STORE(uint16_t, code)
}

static void store_complex(hone_dtype_id part, void *array, int64_t index, double value)
{
    hone_element_store(part, array, 2 * index, value);
    hone_element_store(part, array, 2 * index + 1, 0);
}

void hone_element_store(hone_dtype_id dtype, void *array, int64_t index, double value)
{
    switch (dtype) {
    case HONE_BOOL:
        STORE(uint8_t, value != 0 && !isnan(value))
    case HONE_I4:
        store_half(array, index, (unsigned)to_integer(value, -8, 7) & 15u);
        return;
    case HONE_U4:
        store_half(array, index, (unsigned)to_integer(value, 0, 15));
        return;
    case HONE_I8:
        STORE(int8_t, to_integer(value, INT8_MIN, INT8_MAX))
    case HONE_I16:
        STORE(int16_t, to_integer(value, INT16_MIN, INT16_MAX))
    case HONE_I32:
        STORE(int32_t, to_integer(value, INT32_MIN, INT32_MAX))
    case HONE_I64:
        STORE(int64_t, to_integer(value, INT64_MIN, INT64_MAX))
    case HONE_U8:
        STORE(uint8_t, to_integer(value, 0, UINT8_MAX))
    case HONE_U16:
        STORE(uint16_t, to_integer(value, 0, UINT16_MAX))
    case HONE_U32:
        STORE(uint32_t, to_integer(value, 0, UINT32_MAX))
    case HONE_U64:
        STORE(uint64_t, to_u64(value))
    case HONE_F32:
        STORE(float, value)
    case HONE_F64:
        STORE(double, value)
    case HONE_C64:
        store_complex(HONE_F32, array, index, value);
        return;
    case HONE_C128:
        store_complex(HONE_F64, array, index, value);
        return;
    case HONE_F8_E4M3FN:
    case HONE_F8_E5M2:
    case HONE_F16:
    case HONE_BF16:
        store_small_float(dtype, array, index, value);
        return;
    default:
        return;
    }
}
