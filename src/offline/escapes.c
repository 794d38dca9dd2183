#include "offline/escapes.h"

#include <string.h>

char *hone_unescape_mlir(hone_arena *arena, hone_view text, size_t *out_size)
{
    char *out = hone_arena_alloc(arena, text.size + 1), *to = out;
    for (size_t i = 0; out != NULL && i < text.size; i++) {
        int high = text.data[i] == '\\' && i + 2 < text.size ? hone_hex_value(text.data[i + 1]) : -1;
        int low = high >= 0 ? hone_hex_value(text.data[i + 2]) : -1;
        if (low >= 0) {
            *to++ = (char)(high * 16 + low);
            i += 2;
            continue;
        }
        if (text.data[i] == '\\' && i + 1 < text.size) i++; // \\ and \"
        *to++ = text.data[i];
    }
    if (out_size != NULL) *out_size = (size_t)(to - out);
    return out;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

// The byte that an escape of C stands for; *at is moved to its last character.
static char unescape_c(const char **at, const char *end)
{
    static const char letters[] = "ntrabfv", bytes[] = "\n\t\r\a\b\f\v";
    const char *c = ++*at;
    if (is_octal(*c)) {
        int value = 0, digits = 0;
        for (; digits < 3 && c < end && is_octal(*c); c++, digits++)
            value = value * 8 + (*c - '0');
        *at = c - 1;
        return (char)value;
    }
    const char *letter = *c != '\0' ? strchr(letters, *c) : NULL;
    return letter != NULL ? bytes[letter - letters] : *c;
}

char *hone_unescape_hlo(hone_arena *arena, hone_view text, size_t *out_size)
{
    char *out = hone_arena_alloc(arena, text.size + 1), *to = out;
    const char *end = text.data + text.size;
    for (const char *at = text.data; out != NULL && at < end; at++)
        *to++ = *at == '\\' && at + 1 < end ? unescape_c(&at, end) : *at;
    if (out_size != NULL) *out_size = (size_t)(to - out);
    return out;
}
