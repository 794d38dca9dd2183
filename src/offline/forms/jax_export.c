// Finds the program in what jax.export serialises: a flatbuffer (https://flatbuffers.dev/internals/) whose root table
// has, in one of its fields, a vector of bytes that are MLIR bytecode. The field is found by its content, so that fields
// may come and go before it.
#include "offline/forms/forms.h"

#include "offline/cursor.h"

// Little-endian numbers within the bytes; false beyond their end.
static bool read_number(hone_view bytes, size_t at, unsigned size, uint32_t *out)
{
    if (at > bytes.size || bytes.size - at < size) return false;
    *out = 0;
    for (unsigned i = 0; i < size; i++)
        *out |= (uint32_t)(unsigned char)bytes.data[at + i] << (8 * i);
    return true;
}

// The vector of bytes that the offset in `at` leads to; as much of it as is there.
static hone_view vector_at(hone_view bytes, size_t at, bool *out_cut)
{
    uint32_t offset, size;
    if (!read_number(bytes, at, 4, &offset) || !read_number(bytes, at + offset, 4, &size)) return (hone_view){0};
    size_t start = at + offset + 4, left = bytes.size - start;
    *out_cut = size > left;
    return (hone_view){bytes.data + start, *out_cut ? left : size};
}

static bool is_bytecode(hone_view bytes)
{
    return bytes.size > 4 && memcmp(bytes.data, "ML\xefR", 4) == 0;
}

hone_view hone_jax_export_module(hone_view bytes, bool *out_cut)
{
    uint32_t root, back, table_size, field;
    *out_cut = false;
    if (!read_number(bytes, 0, 4, &root) || !read_number(bytes, root, 4, &back)) return (hone_view){0};
    // A table begins with how far before it (or behind: the number is signed) its list of fields stands.
    int64_t fields = (int64_t)root - (int32_t)back;
    if (fields < 0 || !read_number(bytes, (size_t)fields, 2, &table_size)) return (hone_view){0};
    for (size_t at = 4; at + 2 <= table_size; at += 2) {
        if (!read_number(bytes, (size_t)fields + at, 2, &field)) break;
        bool cut = false;
        hone_view module = field > 0 ? vector_at(bytes, root + field, &cut) : (hone_view){0};
        if (!is_bytecode(module)) continue;
        *out_cut = cut;
        return module;
    }
    return (hone_view){0};
}
