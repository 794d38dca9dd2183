// Reads what must be a regular file: stores, lock files, the files of packs.
#ifndef HONE_OS_PLAIN_FILE_H
#define HONE_OS_PLAIN_FILE_H

#include "base/buffer.h"

// Like hone_os_read_file, but only for a regular file or a link to one, never standard input. A pipe (reading it could
// wait), a folder and a device are HONE_IO.
hone_status hone_os_read_plain_file(const char *path, size_t limit, hone_buffer *out, hone_error *err);

#endif
