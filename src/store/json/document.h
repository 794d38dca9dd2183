// The text of one file of a JSON store: a record a line, each with its checksum.
//
//   {"hone_store": 2, "records": [
//   {"decision": {"device": "...", "algorithm": "rms_norm", ...}, "checksum": "0123456789abcdef"},
//   {"damaged": {"text": "...", "reason": "..."}}
//   ]}
//
// A line that is damaged costs that line alone: it is kept as it is, as a record of what was found. A file that another
// program laid out anew, with the same JSON in it, is read as well.
#ifndef HONE_STORE_JSON_DOCUMENT_H
#define HONE_STORE_JSON_DOCUMENT_H

#include "base/buffer.h"
#include "store/common/row.h"

void hone_document_begin(hone_buffer *out);
void hone_document_row(hone_buffer *out, const hone_row_shape *shape, const hone_row *row);
void hone_document_damage(hone_buffer *out, const char *text, const char *reason);
void hone_document_end(hone_buffer *out);

// Who reads a file. A visit returns false when there is no memory, which ends the reading.
typedef struct hone_document_reader {
    hone_allocator allocator;
    void *ctx;
    // A sound record; its texts are borrowed.
    bool (*row)(void *ctx, const hone_row_shape *shape, const hone_row *row);
    // A line that is no sound record. text has no NUL in it. is_new: it was not found before.
    bool (*damage)(void *ctx, const char *text, const char *reason, bool is_new);
} hone_document_reader;

// Reads a file's text, which ends with a NUL that size does not count.
//   path        for messages
//   shapes      of the records that are known, NULL-ended
//   out_broken  true: more than single lines are damaged: the file is to be kept aside before it is written anew
// Returns: HONE_OK; HONE_INCOMPATIBLE (something else, or of a newer hone); HONE_OUT_OF_MEMORY.
hone_status hone_document_read(
    const char *path,
    const char *text,
    size_t size,
    const hone_row_shape *const *shapes,
    const hone_document_reader *reader,
    bool *out_broken,
    hone_error *err);

#endif
