// Each loop is compiled for three instruction sets and leaves its vectors to the compiler: no branch, one flag for all.
// A division for each element would take most of the time, so the bound is multiplied out:
// |out - reference| <= most * (base + relative * |reference|). Four million f32 that are in the last cache take 1 ms.
#include "tune/worker/verify_block.h"

#include "base/assert.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// The product rounds otherwise than the quotient does: what is so near to the bound is not taken for certain.
static const double margin = 1 - 1e-12;

typedef struct bound {
    double base, relative;
} bound;

typedef bool within_function(const void *out, const void *reference, size_t count, bound most);

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
#define PLAIN
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

LOOP(read_f32, f32_plain, PLAIN)
LOOP(read_f64, f64_plain, PLAIN)
LOOP(read_bf16, bf16_plain, PLAIN)
#if defined(__x86_64__)
LOOP(read_f32, f32_avx2, AVX2)
LOOP(read_f64, f64_avx2, AVX2)
LOOP(read_bf16, bf16_avx2, AVX2)
LOOP(read_f32, f32_avx512, AVX512)
LOOP(read_f64, f64_avx512, AVX512)
LOOP(read_bf16, bf16_avx512, AVX512)
#else
#    define f32_avx2    f32_plain
#    define f64_avx2    f64_plain
#    define bf16_avx2   bf16_plain
#    define f32_avx512  f32_plain
#    define f64_avx512  f64_plain
#    define bf16_avx512 bf16_plain
#endif

static const struct {
    hone_dtype_id id;
    within_function *plain, *avx2, *avx512;
} loops[] = {
    {HONE_F32, f32_plain, f32_avx2, f32_avx512},
    {HONE_F64, f64_plain, f64_avx2, f64_avx512},
    {HONE_BF16, bf16_plain, bf16_avx2, bf16_avx512},
};
enum { LOOPS = sizeof loops / sizeof loops[0] };

static within_function *choose(size_t loop)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return loops[loop].avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return loops[loop].avx2;
#endif
    return loops[loop].plain;
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
    return choose(loop)(out, reference, count, scaled);
}
