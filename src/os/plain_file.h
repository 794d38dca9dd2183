// Reading what must be a file: stores, lock files, the files of packs.
#ifndef HONE_OS_PLAIN_FILE_H
#define HONE_OS_PLAIN_FILE_H

#include "base/buffer.h"

// hone_os_read_file of a file, or of a link to one, never of standard input: a pipe, which would be waited for, a
// folder and a device are HONE_IO.
hone_status hone_os_read_plain_file(const char *path, size_t limit, hone_buffer *out, hone_error *err);

#endif
