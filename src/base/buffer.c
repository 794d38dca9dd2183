// A growing string. Room for the NUL is always kept, so that data is a C string after every append.
#include "base/buffer.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

void hone_buffer_init(hone_buffer *buffer, hone_allocator allocator)
{
    *buffer = (hone_buffer){.allocator = allocator};
}

void hone_buffer_deinit(hone_buffer *buffer)
{
    hone_free(&buffer->allocator, buffer->data);
    hone_buffer_init(buffer, buffer->allocator);
}

void hone_buffer_clear(hone_buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
    if (buffer->data != NULL) buffer->data[0] = '\0';
}

static bool reserve(hone_buffer *buffer, size_t more)
{
    hone_assert(buffer->size <= buffer->capacity);
    if (buffer->failed) return false;
    size_t needed;
    bool fits = !__builtin_add_overflow(buffer->size, more, &needed) && needed < SIZE_MAX;
    buffer->failed = !fits || !hone_grow(&buffer->allocator, &buffer->data, &buffer->capacity, needed + 1, 1);
    return !buffer->failed;
}

void hone_buffer_append(hone_buffer *buffer, const void *bytes, size_t size)
{
    if (size == 0 || !reserve(buffer, size)) return;
    memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void hone_buffer_text(hone_buffer *buffer, const char *text)
{
    hone_buffer_append(buffer, text, strlen(text));
}

void hone_buffer_char(hone_buffer *buffer, char c)
{
    hone_buffer_append(buffer, &c, 1);
}

// Without printf, which takes ten times as long: texts of calls are made by the thousand where keys are proved.
void hone_buffer_integer(hone_buffer *buffer, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0) *--at = '-';
    hone_buffer_append(buffer, at, (size_t)(digits + sizeof digits - at));
}

void hone_buffer_integers(hone_buffer *buffer, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(buffer, ',');
        hone_buffer_integer(buffer, values[i]);
    }
}

void hone_buffer_format_list(hone_buffer *buffer, const char *format, va_list list)
{
    va_list measured;
    va_copy(measured, list);
    int length = hone_print_list(NULL, 0, format, measured);
    va_end(measured);
    if (length < 0) buffer->failed = true;
    if (length <= 0 || !reserve(buffer, (size_t)length)) return;
    (void)hone_print_list(buffer->data + buffer->size, (size_t)length + 1, format, list);
    buffer->size += (size_t)length;
}

void hone_buffer_format(hone_buffer *buffer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    hone_buffer_format_list(buffer, format, list);
    va_end(list);
}

const char *hone_buffer_string(const hone_buffer *buffer)
{
    return buffer->data != NULL ? buffer->data : "";
}

char *hone_buffer_take(hone_buffer *buffer)
{
    reserve(buffer, 0); // an empty buffer gives an empty string
    char *taken = buffer->failed ? NULL : buffer->data;
    if (buffer->failed) hone_free(&buffer->allocator, buffer->data);
    hone_buffer_init(buffer, buffer->allocator);
    return taken;
}
