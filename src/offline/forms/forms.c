// The table of forms, and how each is recognised: by its first bytes, or by words in its text. To
// add a form: a row of `forms` at the place where it is asked for, how its bytes are told, and a reader in a file of
// its own.
#include "offline/forms/forms.h"

#include "base/error.h"
#include "base/gzip.h"
#include "offline/forms/bytecode.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "offline.read";

enum { UNPACKED_MAX_SIZE = 1 << 30, WRAPPINGS_MAX = 4 };

// What begins with bytes of its own and is no program, or not one that can be read.
typedef struct magic {
    const char *bytes;
    size_t size;
    const char *name;
} magic;

static const magic other_forms[] = {
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd"},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz"},
    {"BZh", 3, "compressed by bzip2"},
    {"PK\x03\x04", 4, "a zip archive"},
    {"\x7f"
     "ELF",
     4, "a compiled program"},
};

static const char *other_form(hone_view bytes)
{
    for (size_t i = 0; i < sizeof other_forms / sizeof other_forms[0]; i++) {
        const magic *m = &other_forms[i];
        if (bytes.size >= m->size && memcmp(bytes.data, m->bytes, m->size) == 0) return m->name;
    }
    return NULL;
}

static bool is_binary(hone_view bytes)
{
    hone_view head = {bytes.data, bytes.size < 65536 ? bytes.size : 65536};
    return head.size > 0 && memchr(head.data, '\0', head.size) != NULL;
}

static hone_view first_line(hone_view text)
{
    hone_cursor c = cursor_of(text);
    while (c.at < c.end) {
        hone_view line = take_line(&c);
        while (line.size > 0 && (*line.data == ' ' || *line.data == '\t' || *line.data == '\r'))
            line.data++, line.size--;
        if (line.size > 0 && !(line.size > 1 && line.data[0] == '/' && line.data[1] == '/')) return line;
    }
    return (hone_view){0};
}

static bool starts_with(hone_view text, const char *start)
{
    return text.size >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

// How bytes are told ------------------------------------------------------------------------------------------------

static bool is_portable_artifact(hone_program_bytes *program)
{
    uint64_t version;
    hone_view producer;
    return hone_bytecode_head(program->bytes, &version, &producer) && starts_with(producer, "StableHLO_v");
}

static bool is_mlir_bytecode(hone_program_bytes *program)
{
    uint64_t version;
    hone_view producer;
    return hone_bytecode_head(program->bytes, &version, &producer);
}

// The bytes are narrowed to the bytecode that the blob holds.
static bool is_jax_export(hone_program_bytes *program)
{
    bool cut;
    hone_view module = hone_jax_export_module(program->bytes, &cut);
    if (module.size == 0) return false;
    program->bytes = module;
    program->cut |= cut;
    return true;
}

static bool is_hlo_proto(hone_program_bytes *program)
{
    return hone_hlo_proto_module(program->bytes).size > 0;
}

static bool is_hlo_text(hone_program_bytes *program)
{
    return !is_binary(program->bytes) && hone_graph_is_hlo_head(first_line(program->bytes));
}

static bool is_stablehlo_text(hone_program_bytes *program)
{
    static const char *const heads[] = {"module", "#loc", "func.func", "builtin.module", "\"builtin.module\"", "#map"};
    if (is_binary(program->bytes)) return false;
    hone_view line = first_line(program->bytes);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (starts_with(line, heads[i])) return true;
    return find_text(program->bytes, "stablehlo.") != NULL || find_text(program->bytes, "func.func") != NULL;
}

// Pieces of programs have no head, and are told by what stands in them.
static bool is_piece_of_hlo_text(hone_program_bytes *program)
{
    return !is_binary(program->bytes) && find_text(program->bytes, "metadata={") != NULL;
}

// The first row whose question is answered with yes. Bytes with a head of their own come first; a piece of a program,
// which has none, is asked for last.
static const struct {
    bool (*is)(hone_program_bytes *program);
    hone_form form;
} forms[] = {
    {is_portable_artifact, {"stablehlo", "StableHLO portable artifact", false, hone_bytecode_read}},
    {is_mlir_bytecode, {"stablehlo", "MLIR bytecode", false, hone_bytecode_read}},
    {is_jax_export, {"stablehlo", "jax.export blob", false, hone_bytecode_read}},
    {is_hlo_proto, {"hlo", "HLO proto", false, hone_hlo_proto_read}},
    {is_hlo_text, {"hlo", "HLO text", true, hone_hlo_read}},
    {is_stablehlo_text, {"stablehlo", "StableHLO text", true, hone_stablehlo_read}},
    {is_piece_of_hlo_text, {"hlo", "HLO text", true, hone_hlo_read}},
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

// NULL: none of them.
static const hone_form *find_form(hone_program_bytes *program)
{
    for (size_t i = 0; i < FORM_COUNT; i++)
        if (forms[i].is(program)) return &forms[i].form;
    return NULL;
}

// The names of the forms, each once.
static void list_forms(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < FORM_COUNT && used < size; i++) {
        const char *name = forms[i].form.name;
        size_t before = 0;
        while (before < i && strcmp(forms[before].form.name, name) != 0)
            before++;
        if (before == i) used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
}

// Newer bytecode is laid out in a way that nobody here knows; so are newer major versions of portable artifacts.
static hone_status check_version(const char *name, const hone_program_bytes *bytes, hone_error *err)
{
    uint64_t version;
    hone_view producer;
    if (!hone_bytecode_head(bytes->bytes, &version, &producer)) return HONE_OK;
    if (version > HONE_BYTECODE_NEWEST)
        return hone_fail(
            err, HONE_UNSUPPORTED, where,
            "%s is MLIR bytecode of version %llu; versions up to %d are read: export it for an older version, or as "
            "StableHLO text",
            name, (unsigned long long)version, HONE_BYTECODE_NEWEST);
    if (starts_with(producer, "StableHLO_v") && !starts_with(producer, "StableHLO_v1.") &&
        !starts_with(producer, "StableHLO_v0."))
        return hone_fail(
            err, HONE_UNSUPPORTED, where,
            "%s is a portable artifact of %.*s; versions 0 and 1 are read: export it for an older version, or as "
            "StableHLO text",
            name, (int)(producer.size < 64 ? producer.size : 64), producer.data);
    return HONE_OK;
}

// Unpacks what is compressed, also more than once: someone compresses what was.
static hone_status unwrap(const hone_allocator *allocator, const char *name, hone_program_bytes *out, hone_error *err)
{
    for (int depth = 0; hone_is_gzip(out->bytes.data, out->bytes.size); depth++) {
        if (depth == WRAPPINGS_MAX)
            return hone_fail(err, HONE_CORRUPT, where, "%s is compressed more than %d times", name, WRAPPINGS_MAX);
        hone_buffer inside;
        bool cut = false;
        hone_buffer_init(&inside, *allocator);
        hone_status status =
            hone_gunzip(where, name, out->bytes.data, out->bytes.size, UNPACKED_MAX_SIZE, &inside, &cut, err);
        hone_buffer_deinit(&out->unpacked);
        out->unpacked = inside;
        if (status != HONE_OK) return status;
        out->bytes = (hone_view){hone_buffer_string(&out->unpacked), out->unpacked.size};
        out->cut |= cut;
    }
    return HONE_OK;
}

// What stands before the string of a place: "loc(", "fused[", "callsite(", "at", or the name of an attribute.
static bool opens_place(hone_view text, const char *quote)
{
    static const char *const before[] = {
        "loc(",          "callsite(",  " at ", "[", ", ", "op_name=", "metadata_payload=", "metadata_payload = ",
        "hone_label = ", "hone_label="};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        size_t size = strlen(before[i]);
        if ((size_t)(quote - text.data) >= size && memcmp(quote - size, before[i], size) == 0) return true;
    }
    return false;
}

enum { FAR = 4096 }; // so much text a path may have before its label, and a line before its path

// True when a comment stands there: one that began with the line, or one in the line that was not closed.
static bool is_comment(hone_view text, const char *at)
{
    const char *start = at - text.data > FAR ? at - FAR : text.data;
    const char *end_before = memrchr(start, '\n', (size_t)(at - start));
    hone_cursor line = {end_before != NULL ? end_before + 1 : start, at};
    skip_spaces(&line);
    if (accept(&line, "//")) return true;
    const char *open = find_text(view_between(line.at, at), "/*");
    for (const char *close = open; open != NULL; open = find_text(view_between(close, at), "/*")) {
        close = find_text(view_between(open, at), "*/");
        if (close == NULL) return true;
    }
    return false;
}

bool hone_form_names_place(hone_view text, const char *label)
{
    const char *at = label;
    while (at > text.data && label - at < FAR && at[-1] != '\n' &&
           (at[-1] != '"' || (at - 1 > text.data && at[-2] == '\\')))
        at--;
    return at > text.data && at[-1] == '"' && opens_place(text, at - 1) && !is_comment(text, at - 1);
}

hone_status hone_program_open(
    const hone_allocator *allocator, const char *name, hone_view bytes, hone_program_bytes *out, hone_error *err)
{
    *out = (hone_program_bytes){.bytes = bytes};
    hone_buffer_init(&out->unpacked, *allocator);
    hone_status status = unwrap(allocator, name, out, err);
    if (status != HONE_OK) return status;
    const char *other = other_form(out->bytes);
    if (other != NULL)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s is %s, which is not read: unpack it, or give the program itself", name,
            other);
    if (out->bytes.size >= UINT32_MAX)
        return hone_fail(err, HONE_UNSUPPORTED, where, "%s is larger than 4 GiB, which is not read", name);
    out->form = find_form(out);
    if (out->form != NULL) return check_version(name, out, err);
    char known[256];
    list_forms(known, sizeof known);
    return hone_fail(
        err, HONE_CORRUPT, where, "%s is not one of the forms that a lowered program has: %s", name, known);
}
