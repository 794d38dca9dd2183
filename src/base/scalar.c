// Arithmetic that never traps and never wraps: what cannot be done becomes an ERROR value.
#include "base/scalar.h"
#include "base/assert.h"

#include <math.h>
#include <string.h>

static hone_scalar failed(hone_scalar_error error)
{
    hone_scalar scalar = {.kind = HONE_SCALAR_ERROR};
    scalar.as.i64 = error;
    return scalar;
}

static bool is_integer(const hone_scalar *scalar)
{
    return scalar->kind == HONE_SCALAR_INT || scalar->kind == HONE_SCALAR_BOOL;
}

static bool is_number(const hone_scalar *scalar)
{
    return is_integer(scalar) || scalar->kind == HONE_SCALAR_FLOAT;
}

static double to_float(const hone_scalar *scalar)
{
    return scalar->kind == HONE_SCALAR_FLOAT ? scalar->as.f64 : (double)scalar->as.i64;
}

const char *hone_scalar_problem(const hone_scalar *error)
{
    static const char *const words[] = {
        [HONE_SCALAR_OVERFLOW] = "overflow of 64 bits",
        [HONE_SCALAR_DIVISION_BY_ZERO] = "division by zero",
        [HONE_SCALAR_WRONG_TYPE] = "an operation on types that it does not fit",
        [HONE_SCALAR_LOG_OF_NOTHING] = "log2 of a number that is not positive",
        [HONE_SCALAR_ROOT_OF_NEGATIVE] = "sqrt of a negative number",
    };
    hone_assert(error->kind == HONE_SCALAR_ERROR && (size_t)error->as.i64 < sizeof words / sizeof words[0]);
    return words[error->as.i64];
}

bool hone_scalar_truth(const hone_scalar *scalar)
{
    switch (scalar->kind) {
    case HONE_SCALAR_BOOL:
    case HONE_SCALAR_INT:
        return scalar->as.i64 != 0;
    case HONE_SCALAR_FLOAT:
        return scalar->as.f64 < 0 || scalar->as.f64 > 0 || isnan(scalar->as.f64);
    case HONE_SCALAR_TEXT:
        return scalar->as.text.size != 0;
    default:
        return false;
    }
}

enum { UNORDERED = 2 }; // of a NaN

static int order_of_floats(double a, double b)
{
    if (isnan(a) || isnan(b)) return UNORDERED;
    return (a > b) - (a < b);
}

// Exact: 2^53 + 1 is more than 9007199254740992.0.
static int order_of_int_and_float(int64_t a, double b)
{
    if (isnan(b)) return UNORDERED;
    if (b >= 9223372036854775808.0) return -1;
    if (b < -9223372036854775808.0) return 1;
    double whole = trunc(b);
    int64_t truncated = (int64_t)whole;
    if (a != truncated) return a < truncated ? -1 : 1;
    return order_of_floats(whole, b);
}

static int order_of_numbers(const hone_scalar *a, const hone_scalar *b)
{
    if (is_integer(a) && is_integer(b)) return (a->as.i64 > b->as.i64) - (a->as.i64 < b->as.i64);
    if (is_integer(a)) return order_of_int_and_float(a->as.i64, b->as.f64);
    if (!is_integer(b)) return order_of_floats(a->as.f64, b->as.f64);
    int order = order_of_int_and_float(b->as.i64, a->as.f64);
    return order == UNORDERED ? order : -order;
}

static int order_of_texts(hone_view a, hone_view b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size == 0 ? 0 : memcmp(a.data, b.data, size);
    if (order == 0) return (a.size > b.size) - (a.size < b.size);
    return order < 0 ? -1 : 1;
}

bool hone_scalar_equal(const hone_scalar *a, const hone_scalar *b)
{
    if (is_number(a) && is_number(b)) return order_of_numbers(a, b) == 0;
    if (a->kind != b->kind) return false;
    return a->kind == HONE_SCALAR_TEXT ? hone_view_equal(a->as.text, b->as.text) : a->kind == HONE_SCALAR_NONE;
}

static bool order_fits(hone_operation operation, int order)
{
    switch (operation) {
    case HONE_OPERATION_LESS:
        return order == -1;
    case HONE_OPERATION_LESS_EQUAL:
        return order == -1 || order == 0;
    case HONE_OPERATION_GREATER:
        return order == 1;
    default:
        return order == 1 || order == 0;
    }
}

static hone_scalar compare(hone_operation operation, const hone_scalar *a, const hone_scalar *b)
{
    if (operation == HONE_OPERATION_EQUAL) return hone_scalar_bool(hone_scalar_equal(a, b));
    if (operation == HONE_OPERATION_NOT_EQUAL) return hone_scalar_bool(!hone_scalar_equal(a, b));
    if (is_number(a) && is_number(b)) return hone_scalar_bool(order_fits(operation, order_of_numbers(a, b)));
    if (a->kind != HONE_SCALAR_TEXT || b->kind != HONE_SCALAR_TEXT) return failed(HONE_SCALAR_WRONG_TYPE);
    return hone_scalar_bool(order_fits(operation, order_of_texts(a->as.text, b->as.text)));
}

// As Python's: an integer as long as the exponent is not negative.
static hone_scalar power(const hone_scalar *a, const hone_scalar *b)
{
    int64_t value = 1, base = a->as.i64;
    if (!is_integer(a) || !is_integer(b) || b->as.i64 < 0) {
        double x = to_float(a), y = to_float(b), result = pow(x, y);
        if (y < 0 && !(x < 0 || x > 0)) return failed(HONE_SCALAR_DIVISION_BY_ZERO);
        if (isnan(result) && !isnan(x) && !isnan(y)) return failed(HONE_SCALAR_WRONG_TYPE); // a complex number
        if (isinf(result) && !isinf(x) && !isinf(y)) return failed(HONE_SCALAR_OVERFLOW);
        return hone_scalar_float(result);
    }
    for (int64_t left = b->as.i64; left > 0; left /= 2) {
        if (left % 2 != 0 && __builtin_mul_overflow(value, base, &value)) return failed(HONE_SCALAR_OVERFLOW);
        if (left > 1 && __builtin_mul_overflow(base, base, &base)) return failed(HONE_SCALAR_OVERFLOW);
    }
    return hone_scalar_int(value);
}

// The halves of `a if x else b`: an error of what is not taken does not count.
static hone_scalar choose(hone_operation operation, const hone_scalar *a, const hone_scalar *b)
{
    hone_scalar absent = {.kind = HONE_SCALAR_ABSENT};
    absent.as.i64 = 0;
    if (operation == HONE_OPERATION_ELSE) return a->kind == HONE_SCALAR_ABSENT ? *b : *a;
    if (a->kind == HONE_SCALAR_ERROR) return *a;
    return hone_scalar_truth(a) ? *b : absent;
}

// The left side decides alone where it can, so that `n != 0 and m % n == 0` holds for n = 0.
static hone_scalar join(hone_operation operation, const hone_scalar *a, const hone_scalar *b)
{
    bool decided_by = operation == HONE_OPERATION_OR;
    if (a->kind == HONE_SCALAR_ERROR) return *a;
    if (hone_scalar_truth(a) == decided_by) return hone_scalar_bool(decided_by);
    if (b->kind == HONE_SCALAR_ERROR) return *b;
    return hone_scalar_bool(hone_scalar_truth(b));
}

// The quotient rounded down, and the remainder with the divisor's sign; false: overflow.
static bool divide(int64_t a, int64_t b, int64_t *out_quotient, int64_t *out_remainder)
{
    if (b == -1) {
        *out_remainder = 0;
        return !__builtin_sub_overflow((int64_t)0, a, out_quotient);
    }
    int64_t quotient = a / b, remainder = a % b;
    bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    *out_quotient = adjust ? quotient - 1 : quotient;
    *out_remainder = adjust ? remainder + b : remainder;
    return true;
}

static hone_scalar divide_integers(hone_operation operation, int64_t a, int64_t b)
{
    int64_t quotient, remainder;
    if (b == 0) return failed(HONE_SCALAR_DIVISION_BY_ZERO);
    if (operation == HONE_OPERATION_TRUE_DIVIDE) return hone_scalar_float((double)a / (double)b);
    bool fits = divide(a, b, &quotient, &remainder);
    if (operation == HONE_OPERATION_MODULO) return hone_scalar_int(remainder);
    if (!fits) return failed(HONE_SCALAR_OVERFLOW);
    return hone_scalar_int(operation == HONE_OPERATION_CEILDIV && remainder != 0 ? quotient + 1 : quotient);
}

static hone_scalar integers(hone_operation operation, int64_t a, int64_t b)
{
    int64_t value;
    bool overflow;
    switch (operation) {
    case HONE_OPERATION_ADD:
        overflow = __builtin_add_overflow(a, b, &value);
        break;
    case HONE_OPERATION_SUBTRACT:
        overflow = __builtin_sub_overflow(a, b, &value);
        break;
    case HONE_OPERATION_MULTIPLY:
        overflow = __builtin_mul_overflow(a, b, &value);
        break;
    default:
        return divide_integers(operation, a, b);
    }
    return overflow ? failed(HONE_SCALAR_OVERFLOW) : hone_scalar_int(value);
}

// As CPython's float_divmod: the remainder is exact and takes the divisor's sign.
static double float_modulo(double a, double b)
{
    double remainder = fmod(a, b);
    if (remainder < 0 || remainder > 0) return (b < 0) != (remainder < 0) ? remainder + b : remainder;
    return copysign(0.0, b);
}

static double float_floor_divide(double a, double b)
{
    double quotient = (a - float_modulo(a, b)) / b, whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

static hone_scalar floats(hone_operation operation, double a, double b)
{
    switch (operation) {
    case HONE_OPERATION_ADD:
        return hone_scalar_float(a + b);
    case HONE_OPERATION_SUBTRACT:
        return hone_scalar_float(a - b);
    case HONE_OPERATION_MULTIPLY:
        return hone_scalar_float(a * b);
    case HONE_OPERATION_CEILDIV:
        return failed(HONE_SCALAR_WRONG_TYPE);
    default:
        break;
    }
    if (!(b < 0 || b > 0 || isnan(b))) return failed(HONE_SCALAR_DIVISION_BY_ZERO);
    if (operation == HONE_OPERATION_MODULO) return hone_scalar_float(float_modulo(a, b));
    return hone_scalar_float(operation == HONE_OPERATION_FLOOR_DIVIDE ? float_floor_divide(a, b) : a / b);
}

// The first of equals, as Python's.
static hone_scalar least_or_greatest(hone_operation operation, const hone_scalar *a, const hone_scalar *b)
{
    int wanted = operation == HONE_OPERATION_MIN ? -1 : 1;
    return order_of_numbers(b, a) == wanted ? *b : *a;
}

static hone_scalar arithmetic(hone_operation operation, const hone_scalar *a, const hone_scalar *b)
{
    if (!is_number(a) || !is_number(b)) return failed(HONE_SCALAR_WRONG_TYPE);
    if (operation == HONE_OPERATION_MIN || operation == HONE_OPERATION_MAX) return least_or_greatest(operation, a, b);
    if (operation == HONE_OPERATION_POWER) return power(a, b);
    if (is_integer(a) && is_integer(b)) return integers(operation, a->as.i64, b->as.i64);
    return floats(operation, to_float(a), to_float(b));
}

static hone_scalar log2_of(const hone_scalar *a)
{
    if (!is_number(a)) return failed(HONE_SCALAR_WRONG_TYPE);
    if (!(to_float(a) > 0)) return failed(HONE_SCALAR_LOG_OF_NOTHING);
    if (is_integer(a) && (a->as.i64 & (a->as.i64 - 1)) == 0)
        return hone_scalar_int(__builtin_ctzll((uint64_t)a->as.i64));
    return hone_scalar_float(log2(to_float(a)));
}

static hone_scalar sqrt_of(const hone_scalar *a)
{
    if (!is_number(a)) return failed(HONE_SCALAR_WRONG_TYPE);
    if (to_float(a) < 0) return failed(HONE_SCALAR_ROOT_OF_NEGATIVE);
    return hone_scalar_float(sqrt(to_float(a)));
}

static hone_scalar signed_as(hone_operation operation, const hone_scalar *a)
{
    if (!is_number(a)) return failed(HONE_SCALAR_WRONG_TYPE);
    bool negate = operation == HONE_OPERATION_NEGATE || (operation == HONE_OPERATION_ABS && signbit(to_float(a)));
    if (!is_integer(a)) return hone_scalar_float(negate ? -a->as.f64 : a->as.f64);
    return negate ? integers(HONE_OPERATION_SUBTRACT, 0, a->as.i64) : hone_scalar_int(a->as.i64);
}

static hone_scalar unary(hone_operation operation, const hone_scalar *a)
{
    if (operation == HONE_OPERATION_COPY) return *a;
    if (operation == HONE_OPERATION_NOT) return hone_scalar_bool(!hone_scalar_truth(a));
    if (operation == HONE_OPERATION_LOG2) return log2_of(a);
    return operation == HONE_OPERATION_SQRT ? sqrt_of(a) : signed_as(operation, a);
}

void hone_scalar_apply(hone_operation operation, const hone_scalar *a, const hone_scalar *b, hone_scalar *out)
{
    hone_assert(operation > HONE_OPERATION_SLOT && operation < HONE_OPERATION_COUNT);
    if (operation == HONE_OPERATION_AND || operation == HONE_OPERATION_OR)
        *out = join(operation, a, b);
    else if (operation == HONE_OPERATION_WHEN || operation == HONE_OPERATION_ELSE)
        *out = choose(operation, a, b);
    else if (a->kind == HONE_SCALAR_ERROR)
        *out = *a;
    else if (operation < HONE_OPERATION_AND)
        *out = unary(operation, a);
    else if (b->kind == HONE_SCALAR_ERROR)
        *out = *b;
    else if (operation < HONE_OPERATION_ADD)
        *out = compare(operation, a, b);
    else
        *out = arithmetic(operation, a, b);
}
