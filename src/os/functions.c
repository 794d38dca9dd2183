#include "os/functions.h"

#include "base/assert.h"

#include <string.h>

// Copies the bytes of a pointer to data into a pointer to a function: C has no cast between them, and POSIX makes their
// sizes equal.
const char *hone_library_functions(
    hone_library *library, const hone_library_function *functions, size_t count, void *out)
{
    _Static_assert(sizeof(void *) == sizeof(void (*)(void)), "dlsym gives functions as pointers to data");
    hone_assert(library != NULL);
    for (size_t i = 0; i < count; i++) {
        void *function = hone_library_symbol(library, functions[i].name);
        if (function == NULL && !functions[i].optional) return functions[i].name;
        memcpy((char *)out + functions[i].offset, &function, sizeof function);
    }
    return NULL;
}
