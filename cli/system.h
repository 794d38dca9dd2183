// What the commands ask of the operating system: they go through the library's own module for it, by this file alone.
#ifndef HONE_CLI_SYSTEM_H
#define HONE_CLI_SYSTEM_H

#include "hone/status.h"
#include "text.h"

#include <stdbool.h>

uint64_t cli_now_ns(void); // monotonic
void cli_sleep_ns(uint64_t nanoseconds);
void cli_utc_text(double seconds, char out[24]); // since 1970: "2026-11-20T12:34:56Z"
uint64_t cli_random_seed(void);                  // 1 to 2^52
// The next number of a sequence, uniform in [0, bound), bound > 0.
uint32_t cli_random_below(uint64_t *state, uint32_t bound);

bool cli_is_folder(const char *path);
// Reads a whole file of at most limit bytes; "-" is standard input. HONE_NOT_FOUND, HONE_IO, HONE_INVALID_ARGUMENT.
hone_status cli_read_file(const char *path, size_t limit, cli_text *out, hone_error *err);
// Visits the names in a folder until visit returns false. HONE_NOT_FOUND, HONE_IO.
hone_status cli_list_folder(const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err);
// Replaces a file, or makes it, in one step and on the disk. HONE_IO.
hone_status cli_write_file(const char *path, const void *bytes, size_t size, hone_error *err);
// A new folder of this process's own, and its removal with what is in it. hold tells others that it is in use.
bool cli_make_private_folder(char *out, size_t size, int *out_hold);
void cli_remove_private_folder(const char *folder, int *hold);

#endif
