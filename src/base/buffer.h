// A growing string of bytes, always NUL-terminated. Appending after a failure does nothing, so that a
// long text is built without a check a line and `failed` is looked at once, at the end.
#ifndef HONE_BASE_BUFFER_H
#define HONE_BASE_BUFFER_H

#include "hone/allocator.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hone_buffer {
    hone_allocator allocator;
    char *data; // NULL until the first append
    size_t size, capacity;
    bool failed; // an append found no memory
} hone_buffer;

void hone_buffer_init(hone_buffer *buffer, hone_allocator allocator);
void hone_buffer_deinit(hone_buffer *buffer);
void hone_buffer_clear(hone_buffer *buffer); // keeps the memory
void hone_buffer_append(hone_buffer *buffer, const void *bytes, size_t size);
void hone_buffer_text(hone_buffer *buffer, const char *text);
void hone_buffer_char(hone_buffer *buffer, char c);
void hone_buffer_integer(hone_buffer *buffer, int64_t value);
void hone_buffer_integers(hone_buffer *buffer, const int64_t *values, size_t count); // with commas between
void hone_buffer_format(hone_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hone_buffer_format_list(hone_buffer *buffer, const char *format, va_list list);
// The text, never NULL ("" when empty). Valid until the next append.
const char *hone_buffer_string(const hone_buffer *buffer);
// Hands the block over (free with hone_free); NULL when an append failed. The buffer is empty afterwards.
char *hone_buffer_take(hone_buffer *buffer);

#endif
