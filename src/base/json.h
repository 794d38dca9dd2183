// JSON: jansson reads, hone writes (canonical text needs Python's numbers and escapes).
#ifndef HONE_BASE_JSON_H
#define HONE_BASE_JSON_H

#include "base/buffer.h"

#include <jansson.h>

// Appends text as a JSON string in quotes, as Python's json.dumps does: everything outside printable ASCII
// (and 0x7f) as \uXXXX in lower hex, with surrogate pairs; \" \\ \n \r \t \b \f short. Bytes that are no UTF-8 become
// \ufffd.
void hone_json_string(hone_buffer *buffer, const char *text, size_t size);
// Appends "name":"text", and null for a text that is NULL. The name is plain ASCII.
void hone_json_field(hone_buffer *buffer, const char *name, const char *text);
// Appends a double as a JSON number (null when it is not finite: for documents, not for canonical text).
void hone_json_number(hone_buffer *buffer, double value);
// Reads one JSON document of size bytes. depth and size are bounded by jansson (2048 levels).
//   out  a new reference; json_decref it
// Returns: HONE_OK; HONE_CORRUPT with line and column; HONE_OUT_OF_MEMORY.
hone_status hone_json_parse(const char *text, size_t size, json_t **out, hone_error *err);

#endif
