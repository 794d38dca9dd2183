// A place in program text that moves forward and never over the end. For the readers of both dialects.
#ifndef HONE_OFFLINE_CURSOR_H
#define HONE_OFFLINE_CURSOR_H

#include "base/text.h"

#include <string.h>

typedef struct hone_cursor {
    const char *at, *end;
} hone_cursor;

static inline hone_cursor cursor_of(hone_view text)
{
    const char *start = text.data != NULL ? text.data : ""; // nothing may be added to a null pointer, not even nothing
    return (hone_cursor){start, start + text.size};
}

static inline char peek(const hone_cursor *c)
{
    return c->at < c->end ? *c->at : '\0';
}

// Inlined also where it is asked often: the length of a literal is then known.
__attribute__((always_inline)) static inline bool accept(hone_cursor *c, const char *text)
{
    size_t size = strlen(text);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, text, size) != 0) return false;
    c->at += size;
    return true;
}

static inline void skip_spaces(hone_cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

// What a byte may be, by its value. Letters, digits and what names consist of besides; the rest is what readers stop
// at.
enum {
    BYTE_NAME = 1,
    BYTE_STRING = 2,    // ends a string, or an escape in it begins
    BYTE_BRACKET = 4,   // opens or closes one, or a string
    BYTE_TYPE = 8,      // may end a type of MLIR, or open something within
    BYTE_STATEMENT = 16 // means something in a statement of MLIR
};
extern const unsigned char hone_byte_classes[256];

static inline bool is_class(char b, unsigned classes)
{
    return (hone_byte_classes[(unsigned char)b] & classes) != 0;
}

static inline bool is_name_byte(char b)
{
    return is_class(b, BYTE_NAME);
}

// The name at the cursor, without what marks it; empty when there is none.
static inline hone_view take_name(hone_cursor *c)
{
    const char *start = c->at;
    while (c->at < c->end && is_name_byte(*c->at))
        c->at++;
    return (hone_view){start, (size_t)(c->at - start)};
}

// The number that a text is, when no other text is the same number: digits, none of them a zero in front. At most nine.
static inline bool number_in(hone_view text, uint32_t *out)
{
    uint32_t number = 0;
    if (text.size == 0 || text.size > 9 || (text.size > 1 && text.data[0] == '0')) return false;
    for (size_t i = 0; i < text.size; i++) {
        uint32_t digit = (uint32_t)(unsigned char)text.data[i] - '0';
        if (digit > 9) return false;
        number = number * 10 + digit;
    }
    *out = number;
    return true;
}

// Behind the string that opens at the cursor. A string does not go over a line's end.
static inline void skip_string(hone_cursor *c)
{
    const char *at = c->at + 1, *end = c->end;
    for (;; at++) {
        while (at < end && !is_class(*at, BYTE_STRING))
            at++;
        if (at >= end || *at != '\\') break;
        at += at + 1 < end && at[1] != '\n';
    }
    c->at = at < end && *at == '"' ? at + 1 : at;
}

// The inside of the string that opens at the cursor, and the cursor behind it.
static inline hone_view take_string(hone_cursor *c)
{
    const char *start = c->at + 1;
    skip_string(c);
    const char *stop = c->at > start && c->at[-1] == '"' ? c->at - 1 : c->at;
    return (hone_view){start, (size_t)(stop - start)};
}

// Behind the bracket that closes the one at the cursor, strings left out; at the end when it is not closed.
// Angle brackets are not counted: comparisons and arrows have them too.
static inline void skip_brackets(hone_cursor *c)
{
    int depth = 0;
    for (;;) {
        while (c->at < c->end && !is_class(*c->at, BYTE_BRACKET))
            c->at++;
        if (c->at >= c->end) return;
        char b = *c->at;
        if (b == '"') {
            skip_string(c);
            continue;
        }
        c->at++;
        if (b == '(' || b == '[' || b == '{')
            depth++;
        else if (--depth <= 0)
            return;
    }
}

// The line at the cursor, without its end; the cursor behind it. A line goes on over the end of no string.
static inline hone_view take_line(hone_cursor *c)
{
    const char *start = c->at, *stop = memchr(start, '\n', (size_t)(c->end - start));
    if (stop == NULL) stop = c->end;
    c->at = stop < c->end ? stop + 1 : stop;
    return (hone_view){start, (size_t)(stop - start)};
}

static inline hone_view view_between(const char *start, const char *stop)
{
    return (hone_view){start, (size_t)(stop - start)};
}

static inline const char *find_text(hone_view in, const char *what)
{
    return in.size > 0 ? memmem(in.data, in.size, what, strlen(what)) : NULL;
}

// The inside of the first string behind a mark; empty: there is none.
static inline hone_view string_behind(hone_view in, const char *mark)
{
    const char *found = find_text(in, mark);
    if (found == NULL) return (hone_view){0};
    const char *end = in.data + in.size, *quote = memchr(found, '"', (size_t)(end - found));
    hone_cursor c = {quote, end};
    return quote != NULL ? take_string(&c) : (hone_view){0};
}

#endif
