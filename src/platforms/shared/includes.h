// The headers that a source may read, found by their names in it: for compilers that do not say which they have read.
#ifndef HONE_PLATFORMS_SHARED_INCLUDES_H
#define HONE_PLATFORMS_SHARED_INCLUDES_H

#include "base/buffer.h"

// Appends the path and the bytes' digest of every header that the text includes, and that those include, as far as they
// are found in the folders of the options (-IFOLDER, -I FOLDER, --include-path=FOLDER) or beside the header that
// includes them:
// also such as a condition leaves out. without: a folder whose headers are passed by; NULL: none.
// Allocation failures show as out->failed.
void hone_includes_digest(
    const char *text, const char *const *options, size_t count, const char *without, hone_buffer *out);

#endif
