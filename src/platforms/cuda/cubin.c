#include "platforms/cuda/cubin.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "cuda.cubin";

// ELF, 64 bits, little endian.
enum {
    HEADER_SIZE = 64,
    SECTION_SIZE = 64,
    MACHINE_CUDA = 190,
    AT_ABI = 8, // 8 and later: the capability is in the second byte of the flags; before, in the first
    AT_MACHINE = 18,
    AT_SECTIONS = 40,
    AT_FLAGS = 48,
    AT_SECTION_SIZE = 58,
    AT_SECTION_COUNT = 60,
    AT_NAMES = 62
};

static const char info_prefix[] = ".nv.info.";

typedef struct section {
    const char *name; // its end is checked to lie within the file
    const unsigned char *data;
    uint64_t size;
} section;

typedef struct cubin {
    const unsigned char *bytes;
    size_t size;
    uint64_t sections; // offset of their headers
    uint32_t count;
    const unsigned char *names;
    uint64_t names_size;
} cubin;

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

bool hone_cubin_is_one(const void *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "\177ELF", 4) == 0;
}

static bool within(const cubin *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset;
}

static const unsigned char *head_of(const cubin *file, uint32_t index)
{
    return file->bytes + file->sections + (uint64_t)index * SECTION_SIZE;
}

static bool take_names(cubin *file, uint32_t index)
{
    if (index >= file->count) return false;
    const unsigned char *head = head_of(file, index);
    uint64_t offset = number(head + 24, 8);
    file->names_size = number(head + 32, 8);
    if (!within(file, offset, file->names_size) || file->names_size == 0) return false;
    file->names = file->bytes + offset;
    return file->names[file->names_size - 1] == '\0';
}

static hone_status open_cubin(cubin *file, const void *bytes, size_t size, hone_error *err)
{
    *file = (cubin){.bytes = bytes, .size = size};
    if (size < HEADER_SIZE || !hone_cubin_is_one(bytes, size))
        return hone_fail(err, HONE_CORRUPT, where, "the file of %zu bytes is not a cubin", size);
    if (number(file->bytes + AT_MACHINE, 2) != MACHINE_CUDA)
        return hone_fail(
            err, HONE_CORRUPT, where, "the file is for machine %d, a cubin for %d",
            (int)number(file->bytes + AT_MACHINE, 2), MACHINE_CUDA);
    file->sections = number(file->bytes + AT_SECTIONS, 8);
    file->count = (uint32_t)number(file->bytes + AT_SECTION_COUNT, 2);
    bool whole = number(file->bytes + AT_SECTION_SIZE, 2) == SECTION_SIZE &&
                 within(file, file->sections, (uint64_t)file->count * SECTION_SIZE) &&
                 take_names(file, (uint32_t)number(file->bytes + AT_NAMES, 2));
    return whole ? HONE_OK : hone_fail(err, HONE_CORRUPT, where, "the cubin is cut off, or damaged");
}

// False for a section that lies outside the file, or that has no bytes in the file.
static bool section_at(const cubin *file, uint32_t index, section *out)
{
    enum { NO_BYTES = 8 };
    const unsigned char *head = head_of(file, index);
    uint64_t name = number(head, 4), offset = number(head + 24, 8), size = number(head + 32, 8);
    if (name >= file->names_size || number(head + 4, 4) == NO_BYTES || !within(file, offset, size)) return false;
    *out = (section){(const char *)file->names + name, file->bytes + offset, size};
    return true;
}

// The function that the section belongs to: the name after ".nv.info.", NULL for other sections.
static const char *function_of(const section *s)
{
    return strncmp(s->name, info_prefix, sizeof info_prefix - 1) == 0 ? s->name + sizeof info_prefix - 1 : NULL;
}

// A record is a form, an attribute and two bytes, which in the last form are the size of the data that follow.
static hone_status read_info(const section *info, hone_cubin_function *out, hone_error *err)
{
    enum { FORM_SIZED = 4, PARAMETER = 0x17, PARAMETER_BYTES = 12, ALL_PARAMETERS = 0x19 };
    for (uint64_t at = 0; at + 4 <= info->size;) {
        const unsigned char *record = info->data + at;
        uint64_t size = record[0] == FORM_SIZED ? number(record + 2, 2) : 0;
        if (record[1] == ALL_PARAMETERS || record[1] == PARAMETER) out->says = true;
        at += 4 + size;
        if (record[0] != FORM_SIZED || record[1] != PARAMETER) continue;
        uint64_t index = at <= info->size && size == PARAMETER_BYTES ? number(record + 8, 2) : HONE_CUBIN_PARAMETERS;
        if (index >= HONE_CUBIN_PARAMETERS)
            return hone_fail(err, HONE_CORRUPT, where, "the cubin's list of parameters is damaged");
        out->parameters[index].offset = (uint32_t)number(record + 10, 2);
        out->parameters[index].size = (uint32_t)(number(record + 12, 4) >> 18);
        if (out->count <= index) out->count = (uint32_t)index + 1;
    }
    return HONE_OK;
}

static int capability_of(const cubin *file)
{
    uint64_t flags = number(file->bytes + AT_FLAGS, 4);
    return (int)(file->bytes[AT_ABI] >= 8 ? flags >> 8 & 255 : flags & 255);
}

// Lists the names of all functions, as far as they fit.
static size_t list_functions(const cubin *file, char *out, size_t size)
{
    size_t count = 0, used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < file->count; i++) {
        section s;
        if (!section_at(file, i, &s) || function_of(&s) == NULL) continue;
        int length = snprintf(out + used, size - used, "%s%s", count++ > 0 ? ", " : "", function_of(&s));
        used = length > 0 && (size_t)length < size - used ? used + (size_t)length : size - 1;
    }
    return count;
}

hone_status hone_cubin_find(
    const void *bytes, size_t size, const char *entry, hone_cubin_function *out, hone_error *err)
{
    cubin file;
    memset(out, 0, sizeof *out);
    hone_status status = open_cubin(&file, bytes, size, err);
    if (status != HONE_OK) return status;
    out->capability = capability_of(&file);
    for (uint32_t i = 0; i < file.count; i++) {
        section s;
        if (!section_at(&file, i, &s) || function_of(&s) == NULL || strcmp(function_of(&s), entry) != 0) continue;
        return read_info(&s, out, err);
    }
    char names[160];
    size_t count = list_functions(&file, names, sizeof names);
    return hone_fail(
        err, HONE_NOT_FOUND, where, "the cubin has no function %.80s; it has %s", entry, count > 0 ? names : "none");
}

hone_status hone_cubin_only(const void *bytes, size_t size, char *name, size_t name_size, hone_error *err)
{
    cubin file;
    hone_status status = open_cubin(&file, bytes, size, err);
    if (status != HONE_OK) return status;
    size_t count = list_functions(&file, name, name_size);
    if (count == 1 && strlen(name) + 1 < name_size) return HONE_OK;
    return hone_fail(
        err, HONE_NOT_FOUND, where, "the cubin has %zu functions (%.120s): name the one that is meant", count, name);
}
