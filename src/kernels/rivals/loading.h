// Finds other libraries. A search does not load the library: a library that is loaded may start threads, and a process
// with threads must not be forked.
#ifndef HONE_KERNELS_RIVALS_LOADING_H
#define HONE_KERNELS_RIVALS_LOADING_H

#include "kernels/matmul/matmul.h"
#include "os/os.h"

// soname: "libopenblas.so.0". If it is not installed, why says so and names the package to install.
bool hone_rival_is_here(const char *soname, const char *package, hone_error *why);
// The same for a file that hone provides: in the folder of the library or program that contains hone, or in the folder
// of plugins relative to it.
// path: receives its path.
bool hone_rival_is_beside(const char *file, char *path, size_t size);

// Writes the address of a library's function to the function pointer that out_function points to. False if there is
// none.
bool hone_rival_function(hone_library *library, const char *name, void *out_function);

// A library that a Python package contains.
typedef struct hone_packaged_library {
    const char *variable;  // names the file, or its folder: "HONE_NUMPY_OPENBLAS"
    const char *package;   // of PyPI: "numpy"
    const char *folder;    // beside the package: "numpy.libs"
    const char *beginning; // of the file's name, which ends in a hash: "libscipy_openblas64_-"
} hone_packaged_library;
// Finds the file that the variable names; else the one that this process has loaded, for example when Python has
// imported the package; else that of the first folder of Python packages that has it. Loads nothing and runs no Python.
// If it is missing, why says what to do.
//   path  receives its path, with links resolved
bool hone_rival_find_packaged(const hone_packaged_library *library, char *path, size_t size, hone_error *why);

// Whether the product is not empty and its sizes fit the library's integers; else why gives the reason.
//   most  of these integers
bool hone_rival_can_count(const hone_matmul *product, const char *library, int64_t most, hone_error *why);

#endif
