// Finds the folders of Python packages, whose libraries hone opens without Python.
#ifndef HONE_PLATFORMS_SHARED_PACKAGES_H
#define HONE_PLATFORMS_SHARED_PACKAGES_H

#include "base/buffer.h"
#include "os/os.h"

// Calls visit with each existing folder of packages (".../lib/python3.12/site-packages") until it returns false: first
// those that HONE_PYTHON_PACKAGES names or an interpreter has lent; then those of VIRTUAL_ENV, CONDA_PREFIX, ~/.local,
// /usr/local and /usr; last, if hone runs from its build folder, the one into which scripts/setup installs.
void hone_packages_visit(bool (*visit)(void *ctx, const char *folder), void *ctx);

// Sets the package folders of this process's interpreter, absolute, separated by colons, and passes them to workers.
// NULL: none.
//   folders  static: the pointer is kept
void hone_packages_lend(const char *folders);

// A library of such a package.
typedef struct hone_package_library {
    const char *variable, *file, *package; // "HONE_TVM_FFI" names the file; "libtvm_ffi.so"; "apache-tvm-ffi"
    const char *const *below;              // the possible folders of the file in a folder of packages; NULL-ended
} hone_package_library;

// Opens the file that the variable names; otherwise tries the loader's, then that of a package. Restores the handlers
// of SIGSEGV that the library replaces.
// Returns: HONE_UNAVAILABLE with who needs it and the package that provides it.
hone_status hone_package_library_open(
    const hone_allocator *allocator,
    const hone_package_library *wanted,
    const char *who,
    hone_library **out,
    hone_error *err);

// Appends "apache-tvm-ffi 0.1.15, FOLDER" for an installed package, else "no apache-tvm-ffi: PyPI has it".
void hone_package_describe(const char *package, hone_buffer *out);

#endif
