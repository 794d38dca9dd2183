// Bytes as they came: packed, cut short, or with numbers that JSON does not have.
#include "simulate/inside.h"

#include "base/error.h"
#include "base/gzip.h"

#include <string.h>

static const char where[] = "recorded.read";

enum { LARGEST_BYTES = 1 << 30 };

hone_status hone_recorded_unpack(
    const char *name, const void *bytes, size_t size, hone_buffer *out, bool *out_cut, hone_error *err)
{
    *out_cut = false;
    if (hone_is_gzip(bytes, size)) return hone_gunzip(where, name, bytes, size, LARGEST_BYTES, out, out_cut, err);
    hone_buffer_append(out, bytes, size);
    return out->failed ? hone_fail_memory(err, where) : HONE_OK;
}

// A scan over text that need not be whole.
typedef struct scan {
    char *text;
    size_t size, at, depth;
    char closing[2]; // of the outermost brackets that are open
    size_t whole;    // the text up to here, and then its two brackets, is a document
    char whole_closing[3];
} scan;

static void skip_string(scan *s)
{
    for (s->at++; s->at < s->size && s->text[s->at] != '"'; s->at++)
        if (s->text[s->at] == '\\') s->at++;
}

static void blank_word(scan *s, const char *word)
{
    size_t length = strlen(word);
    if (s->size - s->at < length || memcmp(&s->text[s->at], word, length) != 0) return;
    memset(&s->text[s->at], ' ', length);
    s->text[s->at] = '0';
}

static void open_bracket(scan *s, char closing)
{
    if (s->depth < sizeof s->closing) s->closing[s->depth] = closing;
    s->depth++;
}

// A document of rows is {"...": [row, row, ...]} or {"...": {"...": row, ...}}: depth 2 is between two rows. The text
// up to the last row that ended, and the two brackets that were open there, is a document of the rows that are whole.
static void close_bracket(scan *s)
{
    if (s->depth > 0) s->depth--;
    if (s->depth != 2) return;
    s->whole = s->at + 1;
    s->whole_closing[0] = s->closing[1];
    s->whole_closing[1] = s->closing[0];
}

static void step(scan *s)
{
    switch (s->text[s->at]) {
    case '"':
        skip_string(s);
        break;
    case '{':
        open_bracket(s, '}');
        break;
    case '[':
        open_bracket(s, ']');
        break;
    case '}':
    case ']':
        close_bracket(s);
        break;
    case 'N':
        blank_word(s, "NaN");
        break;
    case 'I':
        blank_word(s, "Infinity");
        break;
    default:
        break;
    }
}

// One pass, which knows no more of JSON than strings and brackets. Python writes NaN and Infinity, which JSON does not
// have:
// they become 0 in place.
bool hone_recorded_mend(char *text, size_t size, size_t *out_size, char out_closing[3])
{
    scan s = {.text = text, .size = size};
    for (; s.at < size; s.at++)
        step(&s);
    *out_size = s.whole;
    memcpy(out_closing, s.whole_closing, sizeof s.whole_closing);
    return s.whole > 0;
}
