#include "base/json.h"

#include "base/error.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

#include <unistr.h>

static const char where[] = "json.parse";

static void append_unit(hone_buffer *buffer, unsigned unit)
{
    hone_buffer_format(buffer, "\\u%04x", unit);
}

// One character outside printable ASCII, as one or two UTF-16 units.
static void append_escaped(hone_buffer *buffer, ucs4_t c)
{
    if (c < 0x10000) {
        append_unit(buffer, (unsigned)c);
        return;
    }
    append_unit(buffer, 0xd800 + (unsigned)((c - 0x10000) >> 10));
    append_unit(buffer, 0xdc00 + (unsigned)((c - 0x10000) & 0x3ff));
}

static const char *short_escape(char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    default:
        return NULL;
    }
}

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

void hone_json_string(hone_buffer *buffer, const char *text, size_t size)
{
    hone_buffer_char(buffer, '"');
    for (size_t i = 0; i < size;) {
        size_t start = i;
        while (i < size && is_plain(text[i]))
            i++;
        hone_buffer_append(buffer, text + start, i - start);
        if (i == size) break;
        const char *escape = short_escape(text[i]);
        if (escape != NULL) {
            hone_buffer_text(buffer, escape);
            i++;
            continue;
        }
        ucs4_t c;
        int length = u8_mbtoucr(&c, (const uint8_t *)text + i, size - i);
        append_escaped(buffer, length > 0 ? c : 0xfffd);
        i += length > 0 ? (size_t)length : 1;
    }
    hone_buffer_char(buffer, '"');
}

void hone_json_field(hone_buffer *buffer, const char *name, const char *text)
{
    hone_buffer_format(buffer, "\"%s\":", name);
    if (text == NULL)
        hone_buffer_text(buffer, "null");
    else
        hone_json_string(buffer, text, strlen(text));
}

void hone_json_number(hone_buffer *buffer, double value)
{
    char text[HONE_NUMBER_SIZE];
    hone_buffer_text(buffer, isfinite(value) ? hone_number_print(value, text) : "null");
}

hone_status hone_json_parse(const char *text, size_t size, json_t **out, hone_error *err)
{
    *out = NULL;
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_DECODE_ANY, &error);
    if (root != NULL) {
        *out = root;
        return HONE_OK;
    }
    if (json_error_code(&error) == json_error_out_of_memory) return hone_fail_memory(err, where);
    return hone_fail(err, HONE_CORRUPT, where, "line %d, column %d: %s", error.line, error.column, error.text);
}
