#include "base/structs.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

enum { LARGEST = 4096 }; // a size that was never set must not send the reader far

static hone_status fail_newer(size_t came, size_t known, const char *what, const char *where, hone_error *err)
{
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "the %s has %zu bytes and uses what this hone (%zu bytes) does not know: use the newer library", what, came,
        known);
}

static bool is_zero_behind(const void *from, size_t known, size_t came)
{
    const unsigned char *bytes = from;
    for (size_t i = known; i < came; i++)
        if (bytes[i] != 0) return false;
    return true;
}

hone_status hone_struct_copy(
    void *out, size_t known, const void *from, size_t came, const char *what, const char *where, hone_error *err)
{
    if (came < sizeof(size_t) || came > LARGEST || came % sizeof(void *) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "struct_size of the %s is %zu: set it to sizeof(%s)", what, came, what);
    if (!is_zero_behind(from, known, came)) return fail_newer(came, known, what, where, err);
    memset(out, 0, known);
    memcpy(out, from, came < known ? came : known);
    *(size_t *)out = known;
    return HONE_OK;
}

hone_status hone_structs_take(
    hone_structs *out,
    const void *given,
    size_t count,
    size_t size,
    size_t known,
    const char *what,
    const char *where,
    hone_error *err)
{
    *out = (hone_structs){.items = given};
    if (size < sizeof(void *) || size > LARGEST || size % sizeof(void *) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the size of the %s is %zu: pass sizeof(%s)", what, size, what);
    if (size == known || given == NULL || count == 0) return HONE_OK;
    const hone_allocator allocator = hone_allocator_system();
    out->copy = count <= SIZE_MAX / known ? hone_alloc(&allocator, count * known) : NULL;
    if (out->copy == NULL) return hone_fail_memory(err, where);
    out->items = out->copy;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *from = (const unsigned char *)given + i * size;
        if (!is_zero_behind(from, known, size)) return fail_newer(size, known, what, where, err);
        hone_struct_give((unsigned char *)out->copy + i * known, known, from, size);
    }
    return HONE_OK;
}

void hone_structs_drop(hone_structs *taken)
{
    const hone_allocator allocator = hone_allocator_system();
    hone_free(&allocator, taken->copy);
}

void hone_struct_give(void *out, size_t size, const void *own, size_t known)
{
    const size_t both = size < known ? size : known;
    memcpy(out, own, both);
    memset((unsigned char *)out + both, 0, size - both);
}
