// Text: views, and the Unicode lower case that algorithm names are compared in.
#ifndef HONE_BASE_TEXT_H
#define HONE_BASE_TEXT_H

#include "base/buffer.h"

#include <string.h>

// Bytes that somebody else owns.
typedef struct hone_view {
    const char *data;
    size_t size;
} hone_view;

#define HONE_VIEW(literal)                                                                                             \
    {                                                                                                                  \
        literal, sizeof literal - 1                                                                                    \
    } // a view of a literal, for tables

hone_view hone_view_of(const char *text); // of a NUL-terminated string; NULL gives an empty view

// Inline, for readers of programs ask them of every operation: the length of a literal is then known.
static inline bool hone_view_equal(hone_view a, hone_view b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool hone_view_is(hone_view view, const char *text)
{
    size_t size = text != NULL ? strlen(text) : 0;
    return view.size == size && (size == 0 || memcmp(view.data, text, size) == 0);
}

// Appends the full Unicode lower case of text, as Python's str.lower gives it ("İ" becomes two code points).
// Bytes that are no UTF-8 are kept as they are.
void hone_text_lower(hone_buffer *out, const char *text, size_t size);
// Where the first control character of a text is, 0x7f among them; size when there is none.
size_t hone_text_control(const char *text, size_t size);
// Appends text with its control characters as "%0A" and the like; and such a text as it was.
void hone_text_escape_controls(hone_buffer *out, const char *text);
void hone_text_unescape_controls(hone_buffer *out, const char *text);
// True when text is well-formed UTF-8.
bool hone_text_is_utf8(const char *text, size_t size);

#endif
