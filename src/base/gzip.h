// Unpacks gzip into memory, within a bound.
#ifndef HONE_BASE_GZIP_H
#define HONE_BASE_GZIP_H

#include "base/buffer.h"
#include "hone/status.h"

// True when the bytes begin as gzip does.
bool hone_is_gzip(const void *bytes, size_t size);
// Appends what size bytes of gzip unpack to, several members one behind another as well. What was unpacked before the
// bytes went wrong, or ended, is good and stays: *out_cut says so.
//   where, name  for messages
// Returns: HONE_OK; HONE_CORRUPT (it unpacks to more than limit bytes); HONE_OUT_OF_MEMORY.
hone_status hone_gunzip(
    const char *where,
    const char *name,
    const void *bytes,
    size_t size,
    size_t limit,
    hone_buffer *out,
    bool *out_cut,
    hone_error *err);

#endif
