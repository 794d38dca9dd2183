#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unistr.h>

hone_view hone_view_of(const char *text)
{
    return (hone_view){text, text != NULL ? strlen(text) : 0};
}

// Bytes of well-formed UTF-8 at the start of text.
static size_t sound_prefix(const char *text, size_t size)
{
    const uint8_t *bad = size > 0 ? u8_check((const uint8_t *)text, size) : NULL;
    return bad != NULL ? (size_t)(bad - (const uint8_t *)text) : size;
}

// Eight bytes at a time, each with what tells in its highest bit.
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static uint64_t eight_bytes(const char *text)
{
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    return bytes;
}

static bool is_ascii(const char *text, size_t size)
{
    size_t i = 0;
    for (; size - i >= 8; i += 8)
        if ((eight_bytes(text + i) & EACH(0x80)) != 0) return false;
    for (; i < size; i++)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

// Whether one of eight bytes is a control character: below a space, or 0x7f. A borrow marks no byte but behind one that
// is. The two tests are S. E. Anderson's "Bit Twiddling Hacks": a byte less than n, and a zero byte.
static bool have_control(uint64_t bytes)
{
    const uint64_t below = (bytes - EACH(0x20)) & ~bytes, other = bytes ^ EACH(0x7f);
    return ((below | ((other - EACH(0x01)) & ~other)) & EACH(0x80)) != 0;
}

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

void hone_text_escape_controls(hone_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (is_control((unsigned char)*text))
            hone_buffer_format(out, "%%%02X", (unsigned char)*text);
        else
            hone_buffer_char(out, *text);
    }
}

void hone_text_unescape_controls(hone_buffer *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text != '\0'; text++) {
        const char *high = text[0] == '%' && text[1] != '\0' ? strchr(digits, text[1]) : NULL;
        const char *low = high != NULL && text[2] != '\0' ? strchr(digits, text[2]) : NULL;
        const unsigned char byte = low == NULL ? 0 : (unsigned char)((high - digits) * 16 + (low - digits));
        const bool is_escape = low != NULL && byte != 0 && is_control(byte);
        hone_buffer_char(out, is_escape ? (char)byte : *text);
        text += is_escape ? 2 : 0;
    }
}

size_t hone_text_control(const char *text, size_t size)
{
    size_t i = 0;
    while (size - i >= 8 && !have_control(eight_bytes(text + i)))
        i += 8;
    while (i < size && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f)
        i++;
    return i;
}

static void lower_ascii(hone_buffer *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hone_buffer_char(out, text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i]);
}

// Lower case of well-formed text. The whole of it at once: a final sigma depends on what stands around it.
static void lower_sound(hone_buffer *out, const char *text, size_t size)
{
    uint8_t room[256];
    size_t length = sizeof room;
    uint8_t *lower = u8_tolower((const uint8_t *)text, size, NULL, NULL, room, &length);
    if (lower == NULL) {
        out->failed = true; // the text is sound, so only memory can be short
        return;
    }
    hone_buffer_append(out, lower, length);
    if (lower != room) free(lower);
}

void hone_text_lower(hone_buffer *out, const char *text, size_t size)
{
    if (is_ascii(text, size)) {
        lower_ascii(out, text, size);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        size_t sound = sound_prefix(text + i, size - i);
        if (sound > 0) lower_sound(out, text + i, sound);
        i += sound;
        if (i < size) hone_buffer_char(out, text[i]);
    }
}

bool hone_text_is_utf8(const char *text, size_t size)
{
    return is_ascii(text, size) || sound_prefix(text, size) == size;
}
