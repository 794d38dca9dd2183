// Keeps compiled code on disk: in the folder HONE_COMPILE_CACHE ("none": keeps nothing), else in
// $XDG_CACHE_HOME/hone/compiled, else in ~/.cache/hone/compiled. Any platform may use it. Threads and processes: any.
#ifndef HONE_PLATFORMS_SHARED_COMPILED_H
#define HONE_PLATFORMS_SHARED_COMPILED_H

#include "base/buffer.h"

#include <stdbool.h>

// key: 64 hex digits, the digest of everything from which the bytes were made.
bool hone_compiled_find(const char *key, hone_buffer *out);
// Readers see the whole file or none. A file that cannot be written is not an error.
void hone_compiled_keep(const char *key, const hone_buffer *bytes);

// For bytes that also depend on files which are known only after they are made: headers. The list of these files is
// kept under key; the bytes are kept under a second key, the digest of key and of the list with the files' current
// contents. False: the bytes were never made, or a file has changed or was removed.
bool hone_compiled_find_with_files(const char *key, hone_buffer *out);
// files: paths, each followed by a NUL.
void hone_compiled_keep_with_files(const char *key, const char *files, size_t files_size, const hone_buffer *bytes);

#endif
