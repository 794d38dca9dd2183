// Bytes as they came: packed, cut short, or with numbers that JSON does not have.
#include "recorded/inside.h"

#include "base/error.h"

#include <string.h>
#include <zlib.h>

static const char where[] = "recorded.read";

enum { GZIP_WINDOW = 15 + 16, UNPACK_AT_ONCE = 1 << 16, LARGEST_BYTES = 1 << 30 };

static bool is_gzip(const unsigned char *bytes, size_t size)
{
    return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static hone_status inflate_all(const char *name, z_stream *stream, hone_buffer *out, bool *out_cut, hone_error *err)
{
    unsigned char chunk[UNPACK_AT_ONCE];
    int result = Z_OK;
    while (result == Z_OK) {
        stream->next_out = chunk;
        stream->avail_out = sizeof chunk;
        result = inflate(stream, Z_NO_FLUSH);
        hone_buffer_append(out, chunk, sizeof chunk - stream->avail_out);
        if (out->failed || result == Z_MEM_ERROR) return hone_fail_memory(err, where);
        if (out->size > LARGEST_BYTES)
            return hone_fail(err, HONE_CORRUPT, where, "%s: unpacks to more than 1 GiB", name);
    }
    // What was unpacked before the bytes went wrong, or ended, is good.
    *out_cut = result != Z_STREAM_END;
    return HONE_OK;
}

hone_status hone_recorded_unpack(
    const char *name, const void *bytes, size_t size, hone_buffer *out, bool *out_cut, hone_error *err)
{
    z_stream stream = {0};
    *out_cut = false;
    if (!is_gzip(bytes, size)) {
        hone_buffer_append(out, bytes, size);
        return out->failed ? hone_fail_memory(err, where) : HONE_OK;
    }
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in = (unsigned)size;
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK) return hone_fail_memory(err, where);
    hone_status status = inflate_all(name, &stream, out, out_cut, err);
    inflateEnd(&stream);
    return status;
}

// A scan over text that need not be whole.
typedef struct scan {
    char *text;
    size_t size, at, depth;
    char closing[2]; // of the outermost brackets that are open
    size_t whole;    // the text up to here, and then its two brackets, is a document
    char whole_closing[3];
} scan;

static void skip_string(scan *s)
{
    for (s->at++; s->at < s->size && s->text[s->at] != '"'; s->at++)
        if (s->text[s->at] == '\\') s->at++;
}

static void blank_word(scan *s, const char *word)
{
    size_t length = strlen(word);
    if (s->size - s->at < length || memcmp(&s->text[s->at], word, length) != 0) return;
    memset(&s->text[s->at], ' ', length);
    s->text[s->at] = '0';
}

static void open_bracket(scan *s, char closing)
{
    if (s->depth < sizeof s->closing) s->closing[s->depth] = closing;
    s->depth++;
}

static void close_bracket(scan *s)
{
    if (s->depth > 0) s->depth--;
    if (s->depth != 2) return;
    s->whole = s->at + 1;
    s->whole_closing[0] = s->closing[1];
    s->whole_closing[1] = s->closing[0];
}

static void step(scan *s)
{
    switch (s->text[s->at]) {
    case '"':
        skip_string(s);
        break;
    case '{':
        open_bracket(s, '}');
        break;
    case '[':
        open_bracket(s, ']');
        break;
    case '}':
    case ']':
        close_bracket(s);
        break;
    case 'N':
        blank_word(s, "NaN");
        break;
    case 'I':
        blank_word(s, "Infinity");
        break;
    default:
        break;
    }
}

bool hone_recorded_mend(char *text, size_t size, size_t *out_size, char out_closing[3])
{
    scan s = {.text = text, .size = size};
    for (; s.at < size; s.at++)
        step(&s);
    *out_size = s.whole;
    memcpy(out_closing, s.whole_closing, sizeof s.whole_closing);
    return s.whole > 0;
}
