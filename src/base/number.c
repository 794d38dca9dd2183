// Numbers as text without the locale: the C library is only ever given and asked for digits with an exponent, where no
// decimal point stands, or is under the C locale.
//
// The shortest text that reads back (the goal of G. L. Steele and J. L. White, "How to Print Floating-Point Numbers
// Accurately", 1990) is found by trial, with the C library's correct rounding both ways: no double needs more than 17
// digits, so that at most three lengths are tried of a normal one. No table and no long arithmetic of our own.
//
// Invariant: what is printed reads back as the same double, and as Python's repr prints it but for NaN and infinities.
#include "base/number.h"

#include "base/assert.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// 767 digits decide every double's rounding; one more says whether anything followed.
enum { DIGITS_MAX = 17, MANTISSA_MAX = 780 };

// value = 0.d1d2d3... * 10^point
typedef struct decimal {
    char digits[DIGITS_MAX + 1];
    int count, point;
} decimal;

// Rounds |value| to `count` digits.
static void round_to(double value, int count, decimal *out)
{
    char text[40];
    hone_assert(count >= 1 && count <= DIGITS_MAX && isfinite(value));
    snprintf(text, sizeof text, "%.*e", count - 1, fabs(value));
    out->count = 0;
    const char *p = text;
    for (; *p != 'e'; p++) // the radix character, of any locale, is skipped
        if (*p >= '0' && *p <= '9') out->digits[out->count++] = *p;
    out->digits[out->count] = '\0';
    out->point = atoi(p + 1) + 1;
}

static double decimal_value(const decimal *number)
{
    char text[40];
    snprintf(text, sizeof text, "%se%d", number->digits, number->point - number->count);
    return strtod(text, NULL);
}

// The next larger decimal of as many digits.
static void step_up(decimal *number)
{
    int i = number->count - 1;
    while (i >= 0 && number->digits[i] == '9')
        number->digits[i--] = '0';
    if (i >= 0) {
        number->digits[i]++;
        return;
    }
    number->digits[0] = '1'; // 99 -> 100: the last zero goes
    number->point++;
}

// The shortest decimal that reads back as value. Two decimals of 15 digits never meet in one normal double, so
// only subnormal numbers need the search from one digit on. At a power of two the doubles below are closer
// than those above: the nearest decimal may read back as another number while the next one up reads back right.
static void shortest(double value, decimal *out)
{
    double magnitude = fabs(value);
    hone_assert(isfinite(value) && magnitude > 0);
    for (int count = isnormal(value) ? 15 : 1; count <= DIGITS_MAX; count++) {
        round_to(value, count, out);
        if (decimal_value(out) == magnitude) break;
        decimal up = *out;
        step_up(&up);
        if (count < DIGITS_MAX && decimal_value(&up) == magnitude) {
            *out = up;
            break;
        }
    }
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        out->digits[--out->count] = '\0';
}

double hone_number_of_float(float value)
{
    if (!isfinite(value) || value == 0) return value;
    decimal number;
    for (int count = 1; count <= 9; count++) {
        round_to(value, count, &number);
        double magnitude = decimal_value(&number);
        if ((float)magnitude == fabsf(value)) return value < 0 ? -magnitude : magnitude;
    }
    return value;
}

static void write_exponent(const decimal *number, char *out)
{
    int exponent = number->point - 1;
    *out++ = number->digits[0];
    if (number->count > 1) *out++ = '.';
    snprintf(out, HONE_NUMBER_SIZE - 4, "%se%c%02d", number->digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
}

// Positional, with ".0" behind a whole number. At most 16 digits before the point, four zeros behind it.
static void write_plain(const decimal *number, char *out)
{
    int whole = number->point;
    if (whole <= 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = whole; i < 0; i++)
            *out++ = '0';
        memcpy(out, number->digits, (size_t)number->count + 1);
        return;
    }
    for (int i = 0; i < whole; i++)
        *out++ = i < number->count ? number->digits[i] : '0';
    *out++ = '.';
    const char *rest = whole < number->count ? number->digits + whole : "0";
    memcpy(out, rest, strlen(rest) + 1);
}

static char *print_special(double value, char *out)
{
    return strcpy(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
}

char *hone_number_print(double value, char out[HONE_NUMBER_SIZE])
{
    if (!isfinite(value)) return print_special(value, out);
    char *p = out;
    if (signbit(value)) *p++ = '-';
    if (value == 0) {
        memcpy(p, "0.0", 4);
        return out;
    }
    decimal number;
    shortest(value, &number);
    if (number.point - 1 < -4 || number.point - 1 >= 16)
        write_exponent(&number, p);
    else
        write_plain(&number, p);
    return out;
}

// What a number's text says: its significant digits without leading zeros and a decimal exponent.
typedef struct scan {
    const char *at, *end;
    char digits[MANTISSA_MAX + 1];
    int count;
    bool any; // a digit was seen
    bool negative;
    int64_t point; // digits before the decimal point, counted from the first kept digit
} scan;

static bool is_digit(const scan *s)
{
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static void keep_digit(scan *s, char digit)
{
    if (s->count == 0 && digit == '0') return;
    if (s->count < MANTISSA_MAX)
        s->digits[s->count++] = digit;
    else if (digit != '0')
        s->digits[MANTISSA_MAX - 1] = '1'; // what follows only breaks ties
}

static void scan_mantissa(scan *s)
{
    for (; is_digit(s); s->at++) {
        s->any = true;
        keep_digit(s, *s->at);
        if (s->count > 0) s->point++;
    }
    if (s->at == s->end || *s->at != '.') return;
    for (s->at++; is_digit(s); s->at++) {
        s->any = true;
        keep_digit(s, *s->at);
        if (s->count == 0) s->point--;
    }
}

static bool scan_exponent(scan *s)
{
    if (s->at == s->end || (*s->at | 0x20) != 'e') return true;
    s->at++;
    bool negative = s->at < s->end && *s->at == '-';
    if (s->at < s->end && (*s->at == '-' || *s->at == '+')) s->at++;
    if (!is_digit(s)) return false;
    int64_t exponent = 0;
    for (; is_digit(s); s->at++)
        if (exponent < 100000000) exponent = exponent * 10 + (*s->at - '0');
    s->point += negative ? -exponent : exponent;
    return true;
}

static double scanned_value(scan *s)
{
    if (s->count == 0) return s->negative ? -0.0 : 0.0;
    int64_t exponent = s->point - s->count;
    int64_t limit = 200000000; // far outside a double; keeps the text short
    exponent = exponent > limit ? limit : exponent < -limit ? -limit : exponent;
    char text[MANTISSA_MAX + 16];
    snprintf(text, sizeof text, "%.*se%d", s->count, s->digits, (int)exponent);
    double value = strtod(text, NULL);
    return s->negative ? -value : value;
}

bool hone_number_parse(const char *text, size_t size, double *out_value)
{
    if (size == 0) return false;
    scan s = {.at = text, .end = text + size};
    s.negative = *text == '-';
    if (*text == '-' || *text == '+') s.at++;
    scan_mantissa(&s);
    if (!s.any || !scan_exponent(&s) || s.at != s.end) return false;
    *out_value = scanned_value(&s);
    return true;
}

bool hone_integer_parse(const char *text, size_t size, int64_t *out_value)
{
    bool negative = size > 0 && text[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == size) return false;
    int64_t value = 0; // built on the negative side, which reaches one further
    for (; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, text[i] - '0', &value))
            return false;
    }
    if (!negative && __builtin_sub_overflow(0, value, &value)) return false;
    *out_value = value;
    return true;
}

// The C library's numbers ----------------------------------------------------------------------------------------------

// The thread's locale alone is changed, and for the call: setlocale is every thread's. newlocale of all of "C" makes
// nothing: it answers a locale that is always there.
static locale_t enter_c_locale(locale_t *made)
{
    *made = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return *made != (locale_t)0 ? uselocale(*made) : (locale_t)0;
}

static void leave_c_locale(locale_t before, locale_t made)
{
    if (before != (locale_t)0) (void)uselocale(before);
    if (made != (locale_t)0) freelocale(made);
}

int hone_print_list(char *out, size_t size, const char *format, va_list list)
{
    locale_t made, before = enter_c_locale(&made);
    const int length = vsnprintf(out, size, format, list);
    leave_c_locale(before, made);
    return length;
}

int hone_print(char *out, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = hone_print_list(out, size, format, list);
    va_end(list);
    return length;
}

double hone_number_read(const char *text, char **out_end)
{
    locale_t made, before = enter_c_locale(&made);
    const double value = strtod(text, out_end);
    leave_c_locale(before, made);
    return value;
}
