// What was compiled, on disk: the folder HONE_COMPILE_CACHE ("none": nothing is kept), else
// $XDG_CACHE_HOME/hone/compiled, else ~/.cache/hone/compiled. Any platform may keep its own there. Threads and
// processes: any.
#ifndef HONE_PLATFORMS_SHARED_COMPILED_H
#define HONE_PLATFORMS_SHARED_COMPILED_H

#include "base/buffer.h"

#include <stdbool.h>

// key: 64 hex digits, the digest of everything that the bytes were made from.
bool hone_compiled_find(const char *key, hone_buffer *out);
// Readers see the whole file or none. That it cannot be written is no failure.
void hone_compiled_keep(const char *key, const hone_buffer *bytes);

// Bytes that were also made from files which are known only once they were made: headers. What is kept under key is
// their list.
// The second key, for the bytes themselves, is that of key and of the list as its files are now. False: they were never
// made, or a file has changed or is gone.
bool hone_compiled_find_with_files(const char *key, hone_buffer *out);
// files: paths, each with a NUL behind it.
void hone_compiled_keep_with_files(const char *key, const char *files, size_t files_size, const hone_buffer *bytes);

#endif
