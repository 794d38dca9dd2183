// What the commands ask of the operating system: clocks, and files as a whole. The library's own module for it, src/os, is
// not public: a program has such functions of its own.
#ifndef HONE_CLI_SYSTEM_H
#define HONE_CLI_SYSTEM_H

#include "hone/status.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>

// system.c
// A variable of the environment, as the library reads it: NULL where it is not set, or where the command has more rights than who
// starts it.
const char *cli_variable(const char *name);
uint64_t cli_now_ns(void); // monotonic
void cli_sleep_ns(uint64_t nanoseconds);
void cli_utc_text(double seconds, char out[24]); // since 1970: "2026-11-20T12:34:56Z"
uint64_t cli_random_seed(void);                  // 1 to 2^52
bool cli_random_bit(uint64_t *state);            // the next of a sequence

bool cli_is_folder(const char *path);
bool cli_is_file(const char *path);       // a plain one, or a link to it
bool cli_is_plain_file(const char *path); // and no link to one
// The path without links in it; false when there is no such file or the path does not fit.
bool cli_real_path(const char *path, char *out, size_t size);

// files.c
// Creates a folder and its parents. HONE_OK also when it is there; HONE_IO.
hone_status cli_make_folders(const char *path, hone_error *err);
// Reads a whole file of at most limit bytes; "-" is standard input. HONE_NOT_FOUND, HONE_IO, HONE_INVALID_ARGUMENT,
// HONE_OUT_OF_MEMORY. out is to be freed, also after a failure.
hone_status cli_read_file(const char *path, size_t limit, cli_text *out, hone_error *err);
// The same of a plain file or a link to one, never of standard input: a pipe, a folder and a device are HONE_IO.
hone_status cli_read_plain_file(const char *path, size_t limit, cli_text *out, hone_error *err);
// Visits the names in a folder until visit returns false. HONE_NOT_FOUND, HONE_IO.
hone_status cli_list_folder(const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err);
// Replaces a file, or makes it, in one step and on the disk: after a failure the old bytes stand. Its mode is kept; a
// link is followed; a device or a pipe is written to. HONE_IO.
hone_status cli_write_file(const char *path, const void *bytes, size_t size, hone_error *err);

#endif
