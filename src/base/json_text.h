// JSON as text: a document is checked once, and its parts are then taken as they are written, so that what comes in can
// go out again byte for byte. No tree is built: memory is the text's own.
#ifndef HONE_BASE_JSON_TEXT_H
#define HONE_BASE_JSON_TEXT_H

#include "base/text.h"

typedef enum hone_json_dialect {
    HONE_JSON_STRICT,
    HONE_JSON_PYTHON // also NaN, Infinity and -Infinity, as Python's json writes and reads them
} hone_json_dialect;

enum { HONE_JSON_DEPTH = 200 };

// Checks a whole document in one pass. *out_value is its value, without the space around it.
// Returns: HONE_OK; HONE_CORRUPT with line and column (no UTF-8, no JSON, deeper than HONE_JSON_DEPTH).
hone_status hone_json_text_check(hone_view text, hone_json_dialect dialect, hone_view *out_value, hone_error *err);

// A walk over the members of an object or the items of an array, which was checked. A value that is neither has none.
typedef struct hone_json_walk {
    const char *at, *end;
    bool is_object;
} hone_json_walk;

hone_json_walk hone_json_walk_of(hone_view value);
// The next one; false at the end. key, as written with its quotes, is empty in an array.
bool hone_json_walk_next(hone_json_walk *walk, hone_view *out_key, hone_view *out_value);
// The last member of that name, as Python and jansson take it; empty when there is none. Compares names without
// escapes.
hone_view hone_json_member(hone_view object, const char *name);

bool hone_json_is_object(hone_view value);
bool hone_json_is_array(hone_view value);
bool hone_json_is_string(hone_view value);
bool hone_json_is_number(hone_view value);
bool hone_json_is_null(hone_view value);
// Appends what a string stands for. False, with nothing appended, when that is no C text: a NUL, or half of a surrogate
// pair.
// Running out of memory shows as out->failed.
bool hone_json_decode(hone_view string, hone_buffer *out);
// Appends a checked value without the space between its parts.
void hone_json_compact(hone_view value, hone_buffer *out);

#endif
