// A text that grows, always NUL-terminated. Appending after a failure does nothing, so that `failed` is looked at once, at
// the end.
#ifndef HONE_CLI_TEXT_H
#define HONE_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_text {
    char *data; // NULL until the first append
    size_t size, capacity;
    bool failed; // an append found no memory
} cli_text;

void cli_text_init(cli_text *text);
void cli_text_deinit(cli_text *text);
void cli_text_clear(cli_text *text); // keeps the memory
void cli_text_append(cli_text *text, const void *bytes, size_t size);
void cli_text_put(cli_text *text, const char *string);
void cli_text_char(cli_text *text, char c);
void cli_text_format(cli_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Never NULL ("" when empty). Valid until the next append.
const char *cli_text_string(const cli_text *text);

// SHA-256 of bytes as 64 lower-case hex digits; the first 16 over the canonical text of a call are its key.
void cli_sha256(const void *bytes, size_t size, char out[65]);
// Whether a text has the form of a call key: 16 lower-case hex digits.
bool cli_is_key(const char *text);
// The end of a noun with a count before it: "" of one, else "s".
static inline const char *cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
