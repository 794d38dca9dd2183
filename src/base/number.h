// Numbers as text: the shortest float that reads back the same, in Python's spelling, and strict readers.
#ifndef HONE_BASE_NUMBER_H
#define HONE_BASE_NUMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HONE_NUMBER_SIZE = 32 };

// Python's repr of a float: 0.1, 1e-07, 1e+22, 123456789012345.0, -0.0; NaN, Infinity, -Infinity as json.dumps writes
// them. Exponent form when the decimal exponent is < -4 or >= 16. Independent of the locale. Returns out.
char *hone_number_print(double value, char out[HONE_NUMBER_SIZE]);
// The number that somebody wrote who got this float: the shortest decimal that reads back the same as a float,
// read as a double. 0.7 for 0.699999988f.
double hone_number_of_float(float value);
// Reads exactly size bytes as a decimal number (no locale, no spaces, no hex). False when they are none.
bool hone_number_parse(const char *text, size_t size, double *out_value);
// Reads exactly size bytes as a decimal integer with an optional minus; false when none or out of range.
bool hone_integer_parse(const char *text, size_t size, int64_t *out_value);

// The C library's, with the numbers of the C locale. A host that called setlocale writes 3,00 for 3.00, and what hone
// stores, shows and compiles is read by others. Every float that the C library prints for hone goes through these.
int hone_print_list(char *out, size_t size, const char *format, va_list list);                         // vsnprintf
__attribute__((format(printf, 3, 4))) int hone_print(char *out, size_t size, const char *format, ...); // snprintf
double hone_number_read(const char *text, char **out_end);                                             // strtod

#endif
