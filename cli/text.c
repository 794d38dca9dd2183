#include "text.h"

#include <nettle/sha2.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 64 };

void cli_text_init(cli_text *text)
{
    memset(text, 0, sizeof *text);
}

void cli_text_deinit(cli_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

void cli_text_clear(cli_text *text)
{
    text->size = 0;
    text->failed = false;
    if (text->data != NULL) text->data[0] = '\0';
}

// Room for so many bytes more and a NUL.
static bool make_room(cli_text *text, size_t more)
{
    if (text->failed) return false;
    if (text->data != NULL && more < text->capacity - text->size) return true;
    size_t capacity = text->capacity < LEAST ? LEAST : text->capacity;
    while (capacity <= text->size + more)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void cli_text_append(cli_text *text, const void *bytes, size_t size)
{
    if (!make_room(text, size)) return;
    if (size > 0) memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void cli_text_put(cli_text *text, const char *string)
{
    cli_text_append(text, string, strlen(string));
}

void cli_text_char(cli_text *text, char c)
{
    cli_text_append(text, &c, 1);
}

void cli_text_format(cli_text *text, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int size = vsnprintf(NULL, 0, format, list);
    if (size < 0) text->failed = true;
    if (size >= 0 && make_room(text, (size_t)size)) {
        vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    va_end(list);
}

const char *cli_text_string(const cli_text *text)
{
    return text->data != NULL ? text->data : "";
}

void cli_sha256(const void *bytes, size_t size, char out[65])
{
    struct sha256_ctx ctx;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&ctx);
    sha256_update(&ctx, size, bytes);
    sha256_digest(&ctx, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

bool cli_is_key(const char *text)
{
    enum { DIGITS = 16 };
    return strlen(text) == DIGITS && strspn(text, "0123456789abcdef") == DIGITS;
}
