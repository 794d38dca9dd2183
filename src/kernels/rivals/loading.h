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

// The product has work in it and its sizes fit the library's 32 bit integers; else why says so.
bool hone_rival_can_count(const hone_matmul *product, const char *library, hone_error *why);

#endif
