// Fields that may hold any text, in a line whose fields are separated by spaces.
#include "lock/lock.h"

#include "base/text.h"

#include <string.h>

// A byte that would end a field or a line, or be read as an escape, stands as %XX, as in URLs (RFC 3986, 2.1), in
// upper-case hex. Each text has one form, so that equal choices are equal lines: only what must be is escaped, and
// reading takes upper-case digits alone. A NUL is never read.
static void put_byte(hone_buffer *out, unsigned char byte)
{
    hone_buffer_format(out, "%%%02X", byte);
}

void hone_lock_escape(hone_buffer *out, const char *text, size_t size, const char *also)
{
    for (size_t i = 0; i < size; i++) {
        bool plain = text[i] > ' ' && text[i] <= '~' && text[i] != '%' && text[i] != '#';
        if (plain && strchr(also, text[i]) == NULL)
            hone_buffer_char(out, text[i]);
        else
            put_byte(out, (unsigned char)text[i]);
    }
}

void hone_lock_escape_call(hone_buffer *out, const char *text)
{
    bool letters = hone_text_is_utf8(text, strlen(text));
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain = (byte >= ' ' && byte < 0x7f && byte != '%') || (byte >= 0x80 && letters);
        if (plain)
            hone_buffer_char(out, *text);
        else
            put_byte(out, byte);
    }
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool hone_lock_unescape(hone_buffer *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '%') {
            hone_buffer_char(out, text[i]);
            continue;
        }
        if (size - i < 3) return false;
        int high = digit(text[i + 1]), low = digit(text[i + 2]);
        if (high < 0 || low < 0 || high + low == 0) return false; // no digit, or a NUL
        hone_buffer_char(out, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}
