// Checks a kernel of a pack for the CPU before any of it is compiled or loaded.
#include "base/error.h"
#include "platforms/native/native.h"

#include <string.h>

static const char where[] = "native.pack";

// Offsets and values of an ELF header, with which every library begins (elf(5)).
enum { ELF_HEAD = 64, ELF_CLASS = 4, ELF_TYPE = 16, ELF_MACHINE = 18, CLASS_64 = 2, TYPE_SHARED = 3 };
#if defined(__x86_64__)
enum { MACHINE = 62 };
#elif defined(__aarch64__)
enum { MACHINE = 183 };
#else
enum { MACHINE = 0 };
#endif

static bool ends_with(const char *text, const char *end)
{
    const size_t size = strlen(text), tail = strlen(end);
    return size > tail && strcmp(text + size - tail, end) == 0;
}

bool hone_native_is_library(const hone_pack_file *file)
{
    return ends_with(file->name, ".so");
}

hone_status hone_native_check_library(const hone_pack_file *file, hone_error *err)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
    unsigned char head[ELF_HEAD] = {0};
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_status status = hone_pack_read_file(file, &bytes, err);
    if (status == HONE_OK && bytes.size >= sizeof head) memcpy(head, bytes.data, sizeof head);
    hone_buffer_deinit(&bytes);
    if (status != HONE_OK) return status;
    const int machine = head[ELF_MACHINE] | head[ELF_MACHINE + 1] << 8;
    if (memcmp(head, magic, sizeof magic) != 0 || head[ELF_CLASS] != CLASS_64 || head[ELF_TYPE] != TYPE_SHARED)
        return hone_fail(err, HONE_CORRUPT, where, "file: '%.120s' is not a 64-bit shared library", file->name);
    if (machine == MACHINE) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "file: '%.120s' is for another machine: ELF machine %d, this one is %d",
        file->name, machine, MACHINE);
}

// Refuses fields that a kernel of the CPU does not use.
static hone_status check_absent(const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    const struct {
        const char *name, *text;
    } fields[] = {{"grid", code->grid}, {"block", code->block}, {"cluster", code->cluster}, {"shared", code->shared}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].text != NULL)
            return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: a kernel of native has none", fields[i].name);
    if (code->flags != 0) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "flags: a kernel of native has none");
    if (code->target != NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "target: a kernel of native names instruction sets in needs instead");
    if (strcmp(variant->facts, "{}") != 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "facts: platform native has none");
    return HONE_OK;
}

// Whether a text is a C identifier: it is written into the source that calls it.
static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return strchr("0123456789", text[0]) == NULL && strspn(text, letters) == strlen(text);
}

hone_status hone_native_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    const hone_code *code = &variant->code;
    if (kernel->backend != HONE_CPU && kernel->backend != HONE_ANY)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "backend: a kernel of native is for cpu");
    if (variant->file == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "file: is missing: a C source (.c) or a library (.so)");
    if (code->entry == NULL || code->entry[0] == '\0')
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "entry: is missing: the function's name");
    if (!is_name(code->entry))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "entry: '%.80s' is not the name of a C function", code->entry);
    hone_status status = check_absent(variant, err);
    if (status != HONE_OK) return status;
    if (hone_native_is_library(variant->file)) {
        if (code->arguments != NULL || code->options != NULL || code->constants != NULL || code->scratch != NULL)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where,
                "arguments, options, constants and scratch are for sources: a function of a library takes what "
                "hone/pack.h "
                "says");
        return hone_native_check_library(variant->file, err);
    }
    if (!ends_with(variant->file->name, ".c"))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "file: '%.120s' is neither a C source (.c) nor a library (.so)",
            variant->file->name);
    if (code->arguments == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "arguments: is missing: what the function takes, in order");
    return HONE_OK;
}
