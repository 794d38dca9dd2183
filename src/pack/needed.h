// The libraries that a library names as those that it needs, and that lie in its pack's folder: what they do is what it does.
#ifndef HONE_PACK_NEEDED_H
#define HONE_PACK_NEEDED_H

#include "base/buffer.h"

// Appends the name, from `within` on, and the digest of the bytes of every library of the folder `within` that the bytes of
// one in `beside` need, and that those need: beside it, or where its search path says from its own place on ($ORIGIN).
// Both folders are absolute, and without links. What is no library of ELF needs none. Allocation failures show as
// out->failed.
void hone_needed_digest_within(const hone_buffer *library, const char *beside, const char *within, hone_buffer *out);

#endif
