#include "base/structs.h"

#include "base/error.h"

#include <string.h>

hone_status hone_struct_copy(
    void *out, size_t known, const void *from, size_t came, const char *what, const char *where, hone_error *err)
{
    enum { LARGEST = 4096 }; // a size that was never set must not send the reader far
    if (came < sizeof(size_t) || came > LARGEST || came % sizeof(void *) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "struct_size of the %s is %zu: set it to sizeof(%s)", what, came, what);
    const unsigned char *bytes = from;
    for (size_t i = known; i < came; i++)
        if (bytes[i] != 0)
            return hone_fail(
                err, HONE_INCOMPATIBLE, where,
                "the %s has %zu bytes and uses what this hone (%zu bytes) does not know: use the newer library", what,
                came, known);
    memset(out, 0, known);
    memcpy(out, from, came < known ? came : known);
    *(size_t *)out = known;
    return HONE_OK;
}
