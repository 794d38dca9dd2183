// Where Python's packages lie, whose libraries hone opens without Python.
#ifndef HONE_PLATFORMS_SHARED_PACKAGES_H
#define HONE_PLATFORMS_SHARED_PACKAGES_H

#include "base/buffer.h"
#include "os/os.h"

// Calls visit with each folder of packages (".../lib/python3.12/site-packages") that there is, until it answers false:
// those that HONE_PYTHON_PACKAGES names or an interpreter has lent, those of VIRTUAL_ENV, CONDA_PREFIX, ~/.local, /usr/local and /usr, and at
// last, of a hone that runs where it was built, the one into which scripts/setup installs.
void hone_packages_visit(bool (*visit)(void *ctx, const char *folder), void *ctx);

// Folders of an interpreter that runs here, absolute, a colon between, which workers are told. NULL: none.
//   folders  static: it is kept
void hone_packages_lend(const char *folders);

// A library of such a package.
typedef struct hone_package_library {
    const char *variable, *file, *package; // "HONE_TVM_FFI" names the file; "libtvm_ffi.so"; "apache-tvm-ffi"
    const char *const *below;              // where it lies in a folder of packages; NULL-ended
} hone_package_library;

// Opens the file that the variable names; else the loader's, then that of a package. Handlers of SIGSEGV that it sets
// are put back.
// Returns: HONE_UNAVAILABLE with who needs it and the package that brings it.
hone_status hone_package_library_open(
    const hone_allocator *allocator,
    const hone_package_library *wanted,
    const char *who,
    hone_library **out,
    hone_error *err);

// Appends "apache-tvm-ffi 0.1.15, FOLDER" of an installed package, or "no apache-tvm-ffi: PyPI has it".
void hone_package_describe(const char *package, hone_buffer *out);

#endif
