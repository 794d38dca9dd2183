// Where Python's packages lie, whose libraries hone opens without Python.
#ifndef HONE_PLATFORMS_SHARED_PACKAGES_H
#define HONE_PLATFORMS_SHARED_PACKAGES_H

#include "base/buffer.h"

// Calls visit with each folder of packages (".../lib/python3.12/site-packages") that there is, until it answers false:
// those of VIRTUAL_ENV, ~/.local, /usr/local and /usr.
void hone_python_packages(bool (*visit)(void *ctx, const char *folder), void *ctx);

// Appends "apache-tvm-ffi 0.1.15, FOLDER" of an installed package, or "no apache-tvm-ffi: PyPI has it".
void hone_python_describe(const char *package, hone_buffer *out);

#endif
