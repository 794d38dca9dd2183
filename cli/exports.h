// What a shared library exports, read from its file: nothing of it is loaded.
#ifndef HONE_CLI_EXPORTS_H
#define HONE_CLI_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>

// Visits the names of symbols that an ELF file of 64 bits, little-endian, defines for others. False: it is none, or is
// damaged.
bool cli_exports(const char *bytes, size_t size, void (*visit)(void *ctx, const char *name), void *ctx);
// Whether a section of the file has this name.
bool cli_has_section(const char *bytes, size_t size, const char *name);

#endif
