// RFC 1952: a file is one member or several behind one another, each with a header that begins with 1f 8b, and what it
// unpacks to is what its members do, one after the other (2.2). zlib reads one member; the loop is over members. The
// limit is looked at after each piece of 64 KiB, so that a small file that unpacks to gigabytes costs no more than the
// limit.
#include "base/gzip.h"

#include "base/assert.h"
#include "base/error.h"

#include <limits.h>
#include <stdint.h>
#include <zlib.h>

// 15: the largest window of deflate; 16 more ask zlib for gzip's header and checksum in place of its own.
enum { GZIP_WINDOW = 15 + 16, UNPACK_AT_ONCE = 1 << 16 };

bool hone_is_gzip(const void *bytes, size_t size)
{
    const unsigned char *head = bytes;
    return size >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

// The rest of the bytes, as many as zlib counts.
static void feed(z_stream *stream, const unsigned char *end)
{
    size_t left = (size_t)(end - stream->next_in);
    stream->avail_in = left < UINT_MAX ? (unsigned)left : UINT_MAX;
}

// Unpacks until a member's end (Z_STREAM_END), damage, or the end of the bytes.
static int inflate_member(z_stream *stream, const unsigned char *end, size_t limit, hone_buffer *out)
{
    unsigned char chunk[UNPACK_AT_ONCE];
    int result = Z_OK;
    while (result == Z_OK && out->size <= limit && !out->failed) {
        feed(stream, end);
        stream->next_out = chunk;
        stream->avail_out = sizeof chunk;
        result = inflate(stream, Z_NO_FLUSH);
        hone_buffer_append(out, chunk, sizeof chunk - stream->avail_out);
    }
    return result;
}

hone_status hone_gunzip(
    const char *where,
    const char *name,
    const void *bytes,
    size_t size,
    size_t limit,
    hone_buffer *out,
    bool *out_cut,
    hone_error *err)
{
    hone_assert(limit > 0 && out_cut != NULL);
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes};
    const unsigned char *end = stream.next_in + size;
    int result = inflateInit2(&stream, GZIP_WINDOW);
    if (result != Z_OK) return hone_fail_memory(err, where);
    do {
        result = inflate_member(&stream, end, limit, out);
    } while (result == Z_STREAM_END && hone_is_gzip(stream.next_in, (size_t)(end - stream.next_in)) &&
             inflateReset(&stream) == Z_OK);
    inflateEnd(&stream);
    if (out->failed || result == Z_MEM_ERROR) return hone_fail_memory(err, where);
    if (out->size > limit)
        return hone_fail(err, HONE_CORRUPT, where, "%s: unpacks to more than %zu MiB", name, limit >> 20);
    *out_cut = result != Z_STREAM_END;
    return HONE_OK;
}
