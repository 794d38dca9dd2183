// Failing with words. Messages are made in a buffer of their own first: the caller's old message may be
// among the arguments.
#include "base/error.h"

#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = sizeof((hone_error *)0)->message };

// Ends a text that was cut with "...", without leaving half of a UTF-8 character before it.
static void mark_cut(char *text)
{
    size_t end = MESSAGE_SIZE - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    memcpy(text + end, "...", 4);
}

// Appends to text, of which used bytes are there; returns the new length. A cut text takes no more.
static size_t append_list(char *text, size_t used, const char *format, va_list list)
{
    if (used >= MESSAGE_SIZE - 1) return used;
    int length = hone_print_list(text + used, MESSAGE_SIZE - used, format, list);
    if (length < 0) return used;
    if ((size_t)length < MESSAGE_SIZE - used) return used + (size_t)length;
    mark_cut(text);
    return MESSAGE_SIZE - 1;
}

__attribute__((format(printf, 3, 4))) static size_t append(char *text, size_t used, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    used = append_list(text, used, format, list);
    va_end(list);
    return used;
}

static void fill(hone_error *err, hone_status status, const char *where, int code, const char *message)
{
    err->status = status;
    err->system_code = code;
    err->where = where;
    memcpy(err->message, message, strlen(message) + 1);
}

hone_status hone_fail(hone_error *err, hone_status status, const char *where, const char *format, ...)
{
    if (err == NULL) return status;
    char message[MESSAGE_SIZE] = "";
    va_list list;
    va_start(list, format);
    append_list(message, 0, format, list);
    va_end(list);
    fill(err, status, where, 0, message);
    return status;
}

hone_status hone_fail_system(hone_error *err, hone_status status, const char *where, int code, const char *format, ...)
{
    if (err == NULL) return status;
    char message[MESSAGE_SIZE] = "", words[128];
    va_list list;
    va_start(list, format);
    size_t used = append_list(message, 0, format, list);
    va_end(list);
    append(message, used, ": %s", strerror_r(code, words, sizeof words));
    fill(err, status, where, code, message);
    return status;
}

hone_status hone_fail_memory(hone_error *err, const char *where)
{
    return hone_fail(err, HONE_OUT_OF_MEMORY, where, "out of memory");
}

hone_status hone_fail_prefix(hone_error *err, hone_status status, const char *format, ...)
{
    if (err == NULL) return status;
    char message[MESSAGE_SIZE] = "";
    va_list list;
    va_start(list, format);
    size_t used = append_list(message, 0, format, list);
    va_end(list);
    append(message, used, ": %s", err->message);
    memcpy(err->message, message, strlen(message) + 1);
    return err->status;
}
