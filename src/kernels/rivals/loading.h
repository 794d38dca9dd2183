// Finding other libraries. Whether one is here is asked without loading it: a library that is loaded may start threads,
// and a process with threads must not be forked.
#ifndef HONE_KERNELS_RIVALS_LOADING_H
#define HONE_KERNELS_RIVALS_LOADING_H

#include "kernels/matmul/matmul.h"
#include "os/os.h"

// soname: "libopenblas.so.0". If it is not here, why says so and names the package to install.
bool hone_rival_is_here(const char *soname, const char *package, hone_error *why);
// The same for a file that comes with hone: beside the library or program that hone is in, or where plugins are
// installed, seen from there.
// path: where it is.
bool hone_rival_is_beside(const char *file, char *path, size_t size);

// Writes the address of a library's function to the function pointer that out_function points to. False: there is none.
bool hone_rival_function(hone_library *library, const char *name, void *out_function);

// A library that a package of Python brings along for itself.
typedef struct hone_packaged_library {
    const char *variable;  // names the file, or the folder that it lies in: "HONE_NUMPY_OPENBLAS"
    const char *package;   // of PyPI: "numpy"
    const char *folder;    // beside the package: "numpy.libs"
    const char *beginning; // of the file's name, which ends in a hash: "libscipy_openblas64_-"
} hone_packaged_library;
// The file that the variable names; else the one that this process has loaded, as Python has that has imported the
// package; else that of the first folder of Python packages that has it. Loads nothing and runs no Python. If there is
// none, why says what to do.
//   path  where it is, without links
bool hone_rival_find_packaged(const hone_packaged_library *library, char *path, size_t size, hone_error *why);

// The product has work in it and its sizes fit the library's integers; else why says so.
//   most  of these integers
bool hone_rival_can_count(const hone_matmul *product, const char *library, int64_t most, hone_error *why);

#endif
