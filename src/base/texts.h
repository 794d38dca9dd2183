// Texts that live together: whoever makes many of them asks once, at the end, whether there was memory for all.
#ifndef HONE_BASE_TEXTS_H
#define HONE_BASE_TEXTS_H

#include "base/json_text.h"
#include "base/memory.h"

#include <stdarg.h>

// Begins with the arena's allocator alone; ended by hone_arena_destroy.
typedef struct hone_texts {
    hone_arena arena;
    bool failed; // there was no memory for one of them
} hone_texts;

// Each is never NULL: where there is no memory it is "", and failed says so.
const char *hone_texts_keep(hone_texts *texts, hone_view text);
const char *hone_texts_format(hone_texts *texts, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A checked JSON value without the space between its parts.
const char *hone_texts_compact(hone_texts *texts, hone_view value);
// What a JSON string stands for; NULL when it is no string or no C text.
const char *hone_texts_string(hone_texts *texts, hone_view string);

#endif
