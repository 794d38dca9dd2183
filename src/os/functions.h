// Looks up the functions of a library that is opened at run time, and stores them in a struct of pointers.
#ifndef HONE_OS_FUNCTIONS_H
#define HONE_OS_FUNCTIONS_H

#include "os/os.h"

typedef struct hone_library_function {
    const char *name; // as the library exports it
    size_t offset;    // of the pointer in the struct
    bool optional;    // older libraries lack it: the pointer is NULL then
} hone_library_function;

// Fills the pointers of a struct. Returns the name of the first required function that the library lacks, NULL if it
// lacks none.
const char *hone_library_functions(
    hone_library *library, const hone_library_function *functions, size_t count, void *out);

#endif
