// Each loop is compiled for three instruction sets, and the compiler vectorises it: it has no branch, and one flag for
// all elements. A division for each element would take most of the time, so the bound is multiplied out: |out -
// reference| <= most * (base + relative * |reference|). Four million f32 that are in the last-level cache take 1 ms.
#include "tune/worker/verify_block.h"

#include "base/assert.h"
#include "call/call.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// The product is rounded differently from the quotient: an error so near to the bound is not taken for certain.
static const double margin = 1 - 1e-12;

typedef struct bound {
    double base, relative;
} bound;

typedef bool within_function(const void *out, const void *reference, size_t count, bound most);
// Bits of the largest finite magnitude; UINT64_MAX: there is a NaN.
typedef uint64_t largest_function(const void *data, size_t count);

static inline double read_f32(const void *data, size_t i)
{
    return (double)((const float *)data)[i];
}

static inline double read_f64(const void *data, size_t i)
{
    return ((const double *)data)[i];
}

// The upper half of an f32.
static inline double read_bf16(const void *data, size_t i)
{
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

// Numbers of at least 2^-14 differ from an f32's in the width of their fields, smaller ones count steps of 2^-24.
// Infinities are read as NaN, too: their blocks are compared element by element.
static inline double read_f16(const void *data, size_t i)
{
    const uint32_t bits = ((const uint16_t *)data)[i], magnitude = bits & 0x7fff;
    const uint32_t wide = magnitude >= 0x7c00 ? 0x7fc00000 : (magnitude << 13) + (112u << 23);
    float value;
    memcpy(&value, &wide, sizeof value);
    value = magnitude < 0x400 ? (float)(int32_t)magnitude * 0x1p-24f : value;
    return (double)(bits & 0x8000 ? -value : value);
}

#define LOOP(READ, NAME, TARGET)                                                                                       \
    TARGET static bool NAME(const void *out, const void *reference, size_t count, bound most)                          \
    {                                                                                                                  \
        uint64_t beyond = 0;                                                                                           \
        for (size_t i = 0; i < count; i++) {                                                                           \
            double right = READ(reference, i), difference = fabs(READ(out, i) - right);                                \
            beyond |= (uint64_t) !(difference <= most.base + most.relative * fabs(right));                             \
        }                                                                                                              \
        return beyond == 0;                                                                                            \
    }
// Magnitudes are ordered as their bits are, with NaN above infinity.
#define LARGEST(TYPE, INFINITE, NAME, TARGET)                                                                          \
    TARGET static uint64_t NAME(const void *data, size_t count)                                                        \
    {                                                                                                                  \
        const TYPE *bits = data, rest = (TYPE)((TYPE) ~(TYPE)0 >> 1);                                                  \
        TYPE largest = 0, nan = 0;                                                                                     \
        for (size_t i = 0; i < count; i++) {                                                                           \
            const TYPE magnitude = bits[i] & rest, finite = magnitude < (INFINITE) ? magnitude : 0;                    \
            largest = largest > finite ? largest : finite;                                                             \
            nan |= (TYPE)(magnitude > (INFINITE));                                                                     \
        }                                                                                                              \
        return nan != 0 ? UINT64_MAX : largest;                                                                        \
    }
#define PLAIN
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

LOOP(read_f32, f32_plain, PLAIN)
LOOP(read_f64, f64_plain, PLAIN)
LOOP(read_bf16, bf16_plain, PLAIN)
LOOP(read_f16, f16_plain, PLAIN)
LARGEST(uint32_t, 0x7f800000, f32_largest_plain, PLAIN)
LARGEST(uint64_t, UINT64_C(0x7ff0000000000000), f64_largest_plain, PLAIN)
LARGEST(uint16_t, 0x7f80, bf16_largest_plain, PLAIN)
LARGEST(uint16_t, 0x7c00, f16_largest_plain, PLAIN)
#if defined(__x86_64__)
LOOP(read_f32, f32_avx2, AVX2)
LOOP(read_f64, f64_avx2, AVX2)
LOOP(read_bf16, bf16_avx2, AVX2)
LOOP(read_f16, f16_avx2, AVX2)
LARGEST(uint32_t, 0x7f800000, f32_largest_avx2, AVX2)
LARGEST(uint64_t, UINT64_C(0x7ff0000000000000), f64_largest_avx2, AVX2)
LARGEST(uint16_t, 0x7f80, bf16_largest_avx2, AVX2)
LARGEST(uint16_t, 0x7c00, f16_largest_avx2, AVX2)
LOOP(read_f32, f32_avx512, AVX512)
LOOP(read_f64, f64_avx512, AVX512)
LOOP(read_bf16, bf16_avx512, AVX512)
LOOP(read_f16, f16_avx512, AVX512)
LARGEST(uint32_t, 0x7f800000, f32_largest_avx512, AVX512)
LARGEST(uint64_t, UINT64_C(0x7ff0000000000000), f64_largest_avx512, AVX512)
LARGEST(uint16_t, 0x7f80, bf16_largest_avx512, AVX512)
LARGEST(uint16_t, 0x7c00, f16_largest_avx512, AVX512)
#endif

// A loop for each instruction set, the widest first. The last one runs everywhere.
typedef struct dtype_loops {
    hone_dtype_id id;
    size_t bytes;
    within_function *within[3];
    largest_function *largest[3];
} dtype_loops;

#if defined(__x86_64__)
#    define ALL(NAME)                                                                                                  \
        {                                                                                                              \
            NAME##_avx512, NAME##_avx2, NAME##_plain                                                                   \
        }
#else
#    define ALL(NAME)                                                                                                  \
        {                                                                                                              \
            NAME##_plain, NAME##_plain, NAME##_plain                                                                   \
        }
#endif

static const dtype_loops loops[] = {
    {HONE_F32, 4, ALL(f32), ALL(f32_largest)},
    {HONE_F64, 8, ALL(f64), ALL(f64_largest)},
    {HONE_BF16, 2, ALL(bf16), ALL(bf16_largest)},
    {HONE_F16, 2, ALL(f16), ALL(f16_largest)},
};
enum { LOOPS = sizeof loops / sizeof loops[0] };

static size_t widest(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 2;
}

static size_t find(hone_dtype_id id)
{
    size_t loop = 0;
    while (loop < LOOPS && loops[loop].id != id)
        loop++;
    return loop;
}

bool hone_verify_block_takes(hone_dtype_id id)
{
    return find(id) < LOOPS;
}

bool hone_verify_block_within(
    hone_dtype_id id,
    const void *out,
    const void *reference,
    size_t count,
    const hone_yardstick *yardstick,
    double most)
{
    const size_t loop = find(id);
    hone_assert(loop < LOOPS);
    const bound scaled = {most * margin * yardstick->base, most * margin * yardstick->relative};
    return loops[loop].within[widest()](out, reference, count, scaled);
}

bool hone_verify_block_largest(hone_dtype_id id, const void *data, size_t count, double *out_largest)
{
    const size_t loop = find(id);
    hone_assert(loop < LOOPS);
    const uint64_t bits = loops[loop].largest[widest()](data, count);
    if (bits == UINT64_MAX) return false;
    union {
        uint16_t half;
        uint32_t single;
        uint64_t wide;
    } element;
    switch (loops[loop].bytes) {
    case sizeof element.half:
        element.half = (uint16_t)bits;
        break;
    case sizeof element.single:
        element.single = (uint32_t)bits;
        break;
    default:
        element.wide = bits;
    }
    *out_largest = fmax(*out_largest, hone_element_load(id, &element, 0));
    return true;
}
