// Failing with words: fills the caller's hone_error and returns the status.
#ifndef HONE_BASE_ERROR_H
#define HONE_BASE_ERROR_H

#include "hone/status.h"

// Fills err (which may be NULL) and returns status, so that a failure is one line:
//   return hone_fail(err, HONE_NOT_FOUND, "registry.get", "no algorithm named '%s'", name);
//   where  static string
// A message that does not fit is cut and ends with "...".
hone_status hone_fail(hone_error *err, hone_status status, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The same with the operating system's word for code (an errno) after the message.
hone_status hone_fail_system(hone_error *err, hone_status status, const char *where, int code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// HONE_OUT_OF_MEMORY with the usual words.
hone_status hone_fail_memory(hone_error *err, const char *where);

// Puts "prefix: " before the message of a failure that is passed on. Returns err's status (or status when err is NULL).
hone_status hone_fail_prefix(hone_error *err, hone_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
