// Attributes and types by their codes: those of mlir/IR/BuiltinDialectBytecode.td, and of StableHLO's
// StablehloBytecode.cpp and VhloBytecode.cpp. Only the ones that a call shows itself in are read; each is bounded by
// its own bytes.
#include "offline/forms/bytecode.h"

#include "base/number.h"
#include "call/call.h"

#include <math.h>
#include <stdio.h>

enum { DIMS_MAX = 32, TYPE_SIZE = DIMS_MAX * 21 + 64, TYPE_DEPTH = 4 };

typedef struct attribute_code {
    hone_bytecode_dialect dialect;
    uint64_t code;
    hone_bytecode_kind kind;
} attribute_code;

static const attribute_code attribute_codes[] = {
    {DIALECT_BUILTIN, 1, KIND_DICTIONARY},  {DIALECT_BUILTIN, 2, KIND_STRING},
    {DIALECT_BUILTIN, 3, KIND_STRING},      {DIALECT_BUILTIN, 4, KIND_SYMBOL},
    {DIALECT_BUILTIN, 5, KIND_SYMBOL},      {DIALECT_BUILTIN, 10, KIND_CALL_SITE},
    {DIALECT_BUILTIN, 12, KIND_FUSED},      {DIALECT_BUILTIN, 13, KIND_FUSED},
    {DIALECT_BUILTIN, 14, KIND_NAME},       {DIALECT_BUILTIN, 18, KIND_ELEMENTS},
    {DIALECT_STABLEHLO, 2, KIND_DIRECTION}, {DIALECT_VHLO, 3, KIND_DIRECTION},
    {DIALECT_VHLO, 6, KIND_DICTIONARY},     {DIALECT_VHLO, 14, KIND_STRING},
    {DIALECT_VHLO, 15, KIND_ELEMENTS},
};

hone_bytecode_kind hone_bytecode_attribute(const hone_bytecode *code, uint64_t index, hone_cursor *out)
{
    uint64_t number;
    if (index >= code->attribute_count) return KIND_OTHER;
    const hone_bytecode_entry *entry = &code->attributes[index];
    *out = cursor_of(entry->bytes);
    if (!entry->encoded || !hone_bytecode_varint(out, &number)) return KIND_OTHER;
    for (size_t i = 0; i < sizeof attribute_codes / sizeof attribute_codes[0]; i++) {
        const attribute_code *row = &attribute_codes[i];
        if (row->dialect == entry->dialect && row->code == number) return row->kind;
    }
    return KIND_OTHER;
}

hone_view hone_bytecode_text(const hone_bytecode *code, uint64_t index)
{
    hone_cursor c;
    uint64_t number;
    hone_bytecode_kind kind = hone_bytecode_attribute(code, index, &c);
    if (kind == KIND_SYMBOL) { // its root is a string attribute
        if (!hone_bytecode_varint(&c, &index)) return (hone_view){0};
        kind = hone_bytecode_attribute(code, index, &c);
    }
    bool sound = kind == KIND_STRING && hone_bytecode_varint(&c, &number) && number < code->string_count;
    return sound ? code->strings[number] : (hone_view){0};
}

uint64_t hone_bytecode_member(const hone_bytecode *code, uint64_t dictionary, const char *name)
{
    hone_cursor c;
    uint64_t count, key, value;
    if (hone_bytecode_attribute(code, dictionary, &c) != KIND_DICTIONARY || !hone_bytecode_varint(&c, &count))
        return HONE_GRAPH_NONE;
    for (; count > 0 && hone_bytecode_varint(&c, &key) && hone_bytecode_varint(&c, &value); count--)
        if (hone_view_is(hone_bytecode_text(code, key), name)) return value;
    return HONE_GRAPH_NONE;
}

hone_view hone_bytecode_direction(const hone_bytecode *code, uint64_t index)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    hone_cursor c;
    uint64_t value;
    bool sound = hone_bytecode_attribute(code, index, &c) == KIND_DIRECTION && hone_bytecode_varint(&c, &value) &&
                 value < sizeof directions / sizeof directions[0];
    return sound ? hone_view_of(directions[value]) : (hone_view){0};
}

uint64_t hone_bytecode_property(const hone_bytecode *code, uint64_t properties, const char *layout)
{
    if (properties >= code->property_count) return HONE_GRAPH_NONE;
    hone_cursor c = cursor_of(code->properties[properties]);
    uint64_t value = HONE_GRAPH_NONE;
    for (; *layout; layout++) {
        bool there = true;
        bool sound = *layout == 'R' ? hone_bytecode_varint(&c, &value) : hone_bytecode_flagged(&c, &value, &there);
        if (!sound) return HONE_GRAPH_NONE;
        if (!there) value = HONE_GRAPH_NONE;
    }
    return value;
}

// --- types

typedef struct type_code {
    hone_bytecode_dialect dialect;
    uint64_t code;
    const char *name;
} type_code;

static const type_code element_codes[] = {
    {DIALECT_BUILTIN, 1, "index"},     {DIALECT_BUILTIN, 3, "bf16"}, {DIALECT_BUILTIN, 4, "f16"},
    {DIALECT_BUILTIN, 5, "f32"},       {DIALECT_BUILTIN, 6, "f64"},  {DIALECT_BUILTIN, 22, "f8E5M2"},
    {DIALECT_BUILTIN, 24, "f8E4M3FN"}, {DIALECT_VHLO, 0, "i1"},      {DIALECT_VHLO, 2, "bf16"},
    {DIALECT_VHLO, 3, "f16"},          {DIALECT_VHLO, 4, "f32"},     {DIALECT_VHLO, 5, "f64"},
    {DIALECT_VHLO, 6, "f8E4M3FN"},     {DIALECT_VHLO, 7, "f8E5M2"},  {DIALECT_VHLO, 9, "index"},
    {DIALECT_VHLO, 10, "i4"},          {DIALECT_VHLO, 11, "i8"},     {DIALECT_VHLO, 12, "i16"},
    {DIALECT_VHLO, 13, "i32"},         {DIALECT_VHLO, 14, "i64"},    {DIALECT_VHLO, 15, "ui4"},
    {DIALECT_VHLO, 16, "ui8"},         {DIALECT_VHLO, 17, "ui16"},   {DIALECT_VHLO, 18, "ui32"},
    {DIALECT_VHLO, 19, "ui64"},
};

typedef struct type_writer {
    const hone_bytecode *code;
    char text[TYPE_SIZE];
    size_t size;
} type_writer;

static void write_text(type_writer *w, const char *text)
{
    size_t size = strlen(text);
    if (size > sizeof w->text - w->size) size = sizeof w->text - w->size;
    memcpy(w->text + w->size, text, size);
    w->size += size;
}

static bool write_type(type_writer *w, uint64_t index, int depth);

static bool write_dims(type_writer *w, hone_cursor *c)
{
    uint64_t count, zigzag;
    if (!hone_bytecode_varint(c, &count) || count > DIMS_MAX) return false;
    for (; count > 0; count--) {
        char dim[24];
        if (!hone_bytecode_varint(c, &zigzag)) return false;
        int64_t value = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
        snprintf(dim, sizeof dim, "%lldx", (long long)value);
        write_text(w, value == INT64_MIN ? "?x" : dim); // no size: it is known only when the program runs
    }
    return true;
}

static bool write_tensor(type_writer *w, hone_cursor *c, bool with_encoding, int depth)
{
    uint64_t encoding, element;
    write_text(w, "tensor<");
    if (with_encoding && !hone_bytecode_varint(c, &encoding)) return false;
    if (!write_dims(w, c) || !hone_bytecode_varint(c, &element) || !write_type(w, element, depth)) return false;
    write_text(w, with_encoding ? ", #encoding>" : ">");
    return true;
}

static bool write_integer(type_writer *w, hone_cursor *c)
{
    static const char *const signs[] = {"i", "si", "ui", "i"};
    char text[32];
    uint64_t value;
    if (!hone_bytecode_varint(c, &value)) return false;
    snprintf(text, sizeof text, "%s%llu", signs[value & 3], (unsigned long long)(value >> 2));
    write_text(w, text);
    return true;
}

static bool write_complex(type_writer *w, hone_cursor *c, int depth)
{
    uint64_t element;
    write_text(w, "complex<");
    if (!hone_bytecode_varint(c, &element) || !write_type(w, element, depth)) return false;
    write_text(w, ">");
    return true;
}

static bool write_encoded(type_writer *w, const hone_bytecode_entry *entry, int depth)
{
    hone_cursor c = cursor_of(entry->bytes);
    uint64_t number;
    if (!hone_bytecode_varint(&c, &number)) return false;
    for (size_t i = 0; i < sizeof element_codes / sizeof element_codes[0]; i++) {
        const type_code *row = &element_codes[i];
        if (row->dialect != entry->dialect || row->code != number) continue;
        write_text(w, row->name);
        return true;
    }
    bool builtin = entry->dialect == DIALECT_BUILTIN, vhlo = entry->dialect == DIALECT_VHLO;
    if (builtin && number == 0) return write_integer(w, &c);
    if ((builtin && number == 9) || (vhlo && number == 1)) return write_complex(w, &c, depth);
    if ((builtin && (number == 13 || number == 14)) || (vhlo && (number == 20 || number == 21)))
        return write_tensor(w, &c, number == 14 || number == 21, depth);
    return false;
}

// Types hold types, some levels deep.
static bool write_type(type_writer *w, uint64_t index, int depth)
{
    if (index >= w->code->type_count || depth == TYPE_DEPTH) return false;
    const hone_bytecode_entry *entry = &w->code->types[index];
    if (entry->encoded) return write_encoded(w, entry, depth + 1);
    hone_cursor c = cursor_of(entry->bytes); // text, with a byte of zero behind it
    for (; c.at < c.end && *c.at != '\0' && w->size < sizeof w->text; c.at++)
        w->text[w->size++] = *c.at;
    return true;
}

hone_view hone_bytecode_type(const hone_bytecode *code, uint64_t index, hone_arena *arena)
{
    type_writer w = {.code = code};
    if (!write_type(&w, index, 0)) {
        w.size = 0;
        write_text(&w, "?");
    }
    return (hone_view){hone_arena_text(arena, w.text, w.size), w.size};
}

// --- numbers

// The element type of a tensor's text.
static const hone_dtype_info *element_of(hone_view type)
{
    for (int id = 0; id < HONE_DTYPE_COUNT; id++) {
        const hone_dtype_info *info = hone_dtype_info_of((hone_dtype_id)id);
        size_t size = strlen(info->mlir_name);
        const char *end = type.data + type.size - 1; // the '>'
        bool last = type.size > size + 1 && memcmp(end - size, info->mlir_name, size) == 0;
        if (last && (end[-(ptrdiff_t)size - 1] == 'x' || end[-(ptrdiff_t)size - 1] == '<')) return info;
    }
    return NULL;
}

static size_t print_number(const hone_dtype_info *info, const char *bytes, char out[HONE_NUMBER_SIZE])
{
    char copy[8] = {0}; // aligned as a number is
    memcpy(copy, bytes, info->bits / 8u);
    double value = hone_element_load(info->id, copy, 0);
    if (!isfinite(value)) return 0;
    bool whole = info->dtype.code == HONE_CODE_INT || info->dtype.code == HONE_CODE_UINT;
    if (!whole) return strlen(hone_number_print(value, out));
    return fabs(value) < 9e15 ? (size_t)snprintf(out, HONE_NUMBER_SIZE, "%lld", (long long)value) : 0;
}

hone_view hone_bytecode_number(const hone_bytecode *code, uint64_t index, hone_arena *arena)
{
    hone_cursor c;
    uint64_t type, size;
    type_writer w = {.code = code};
    bool sound = hone_bytecode_attribute(code, index, &c) == KIND_ELEMENTS && hone_bytecode_varint(&c, &type) &&
                 hone_bytecode_varint(&c, &size) && size <= (uint64_t)(c.end - c.at) && write_type(&w, type, 0);
    const hone_dtype_info *info = sound ? element_of((hone_view){w.text, w.size}) : NULL;
    bool number = info != NULL && info->dtype.code != HONE_CODE_BOOL && info->dtype.code != HONE_CODE_COMPLEX;
    if (!number || info->bits < 8 || size != info->bits / 8u) return (hone_view){"", 0};
    char text[HONE_NUMBER_SIZE];
    size_t length = print_number(info, c.at, text);
    return (hone_view){length > 0 ? hone_arena_text(arena, text, length) : "", length};
}
