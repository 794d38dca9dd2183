// The headers that a source may read, found by their names in it: for compilers that do not say which they have read.
#ifndef HONE_PACK_INCLUDES_H
#define HONE_PACK_INCLUDES_H

#include "base/buffer.h"

// Appends the path and the bytes' digest of every header that the text includes, and that those include, as far as they
// are found in the folders of the options (-IFOLDER, -I FOLDER, --include-path=FOLDER) or beside the header that
// includes them:
// also such as a condition leaves out. without: a folder whose headers are passed by; NULL: none.
// Allocation failures show as out->failed.
void hone_includes_digest(
    const char *text, const char *const *options, size_t count, const char *without, hone_buffer *out);
// The same for a source that lies in a folder: of the headers that lie in `within`, each with its name from there on.
// What is found elsewhere is passed by. Both folders are absolute, and without links.
void hone_includes_digest_within(const char *text, const char *beside, const char *within, hone_buffer *out);

#endif
