// What the commands ask of the operating system: this file alone goes through the library's module for it, src/os. A program
// has such functions of its own, so that they are no part of hone's public headers.
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
bool cli_is_file(const char *path);       // a plain one, or a link to it
bool cli_is_plain_file(const char *path); // and no link to one
// The path without links in it; false when there is no such file or the path does not fit.
bool cli_real_path(const char *path, char *out, size_t size);
// Creates a folder and its parents. HONE_OK also when it is there; HONE_IO.
hone_status cli_make_folders(const char *path, hone_error *err);
// Reads a whole file of at most limit bytes; "-" is standard input. HONE_NOT_FOUND, HONE_IO, HONE_INVALID_ARGUMENT.
hone_status cli_read_file(const char *path, size_t limit, cli_text *out, hone_error *err);
// The same of a plain file or a link to one, never of standard input: a pipe, a folder and a device are HONE_IO.
hone_status cli_read_plain_file(const char *path, size_t limit, cli_text *out, hone_error *err);
// Visits the names in a folder until visit returns false. HONE_NOT_FOUND, HONE_IO.
hone_status cli_list_folder(const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err);
// Replaces a file, or makes it, in one step and on the disk. HONE_IO.
hone_status cli_write_file(const char *path, const void *bytes, size_t size, hone_error *err);
// Runs a program to its end, found as a shell finds it, and takes what it prints, at most limit bytes.
//   arguments  NULL-ended, the program first
//   out_code   its exit code; 127: it was not found
// Returns: HONE_OK; HONE_BUSY: the seconds passed, and it was ended; HONE_KERNEL_FAILED: a signal ended it; HONE_IO.
hone_status cli_run_program(
    const char *const *arguments, unsigned seconds, size_t limit, cli_text *out, int *out_code, hone_error *err);
// A new folder of this process's own, and its removal with what is in it. hold tells others that it is in use.
bool cli_make_private_folder(char *out, size_t size, int *out_hold);
void cli_remove_private_folder(const char *folder, int *hold);

#endif
