// Lock files from the inside: the set of lines, and its text.
#ifndef HONE_LOCK_LOCK_H
#define HONE_LOCK_LOCK_H

#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"
#include "hone/lock.h"

enum {
    HONE_LOCK_FORMAT = 2,       // 1, which is read, too, has no revisions
    HONE_LOCK_BYTES = 32 << 20, // of a file
    HONE_LOCK_VERSION_SIZE = 16 // of an algorithm's version, with its NUL
};

struct hone_lock {
    hone_arena arena; // of the lines, each one block with its texts
    hone_lock_line **lines;
    size_t count, capacity;
};

// The order of lines: algorithm, version, key, device.
int hone_lock_line_compare(const hone_lock_line *a, const hone_lock_line *b);
// Checks the fields of a line but for its config. where is static.
hone_status hone_lock_line_check(const hone_lock_line *line, const char *where, hone_error *err);
// Copies a line behind the last one, whatever the order. config is what config_text and the JSON are made of.
hone_status hone_lock_append(hone_lock *lock, const hone_lock_line *line, const json_t *config, hone_error *err);

// One line with its newline.
void hone_lock_put_text(const hone_lock_line *line, hone_buffer *out);
// The text of the whole file: header, hash and lines.
void hone_lock_text(const hone_lock *lock, hone_buffer *out);
// Reads that text. name stands before the line's number in messages: the file's.
hone_status hone_lock_parse(
    hone_allocator allocator,
    const char *name,
    const char *text,
    size_t size,
    unsigned flags,
    hone_lock **out,
    hone_error *err);

// Configs (config.c): "rows_per_task=4 unroll=2", sorted by name. A value is a number, true, false, a word, or a JSON
// string without spaces.
void hone_lock_config_text(const json_t *config, hone_buffer *out);
void hone_lock_config_json(const json_t *config, hone_buffer *out);
// HONE_OK when an object holds at most HONE_MAX_PARAMETERS numbers, strings and booleans, each under a name.
hone_status hone_lock_config_check(const json_t *config, const char *where, hone_error *err);
// Reads one NAME=VALUE into config. HONE_CORRUPT with what came and what was expected.
hone_status hone_lock_config_read(
    json_t *config, hone_buffer *scratch, const char *token, size_t size, hone_error *err);

// Escapes (escape.c): a field of a line is printable ASCII without spaces; every other byte, and '%', '#' and those of
// also, stands as %XX.
void hone_lock_escape(hone_buffer *out, const char *text, size_t size, const char *also);
// False if an escape is not valid, or stands for NUL.
bool hone_lock_unescape(hone_buffer *out, const char *text, size_t size);
// Call text keeps its spaces and, when it is UTF-8, its letters.
void hone_lock_escape_call(hone_buffer *out, const char *text);

#endif
