// From bytes to tables. Counts come from the file and are believed only as far as bytes are there for them.
//
//     "ML\xefR" | version | producer, 0 | section | section | ...
//     section: number, bit 7 when it is aligned | size | [alignment, bytes of 0xcb] | size bytes
//
// The sections stand in any order, and one refers to others by number: strings, then dialects with the names of their
// operations, then where attributes and types stand among their bytes. So all are found first, and read in the order in
// which they need each other; the operations (bytecode.c) come last. A file that is cut keeps the tables that were
// whole.
#include "offline/forms/bytecode.h"

#include "base/assert.h"

// 1 to 9 bytes, the lowest first; how many zeros end the first one, so many bytes follow it:
//
//     xxxxxxx1                          7 bits
//     xxxxxx10 yyyyyyyy                14 bits, yyyyyyyyxxxxxx
//     ...
//     10000000 and 7 bytes             56 bits
//     00000000 and 8 bytes             64 bits
bool hone_bytecode_varint(hone_cursor *c, uint64_t *out)
{
    hone_assert(c->at <= c->end);
    if (c->at == c->end) return false;
    unsigned char head = (unsigned char)*c->at;
    size_t size = head == 0 ? 9 : (size_t)__builtin_ctz(head) + 1;
    if ((size_t)(c->end - c->at) < size) return false;
    uint64_t value = 0;
    size_t first = head == 0 ? 1 : 0; // a head of zero only announces eight bytes
    for (size_t i = first; i < size && i - first < 8; i++)
        value |= (uint64_t)(unsigned char)c->at[i] << (8 * (i - first));
    *out = head == 0 ? value : value >> size;
    c->at += size;
    return true;
}

bool hone_bytecode_flagged(hone_cursor *c, uint64_t *out, bool *out_flag)
{
    uint64_t value;
    if (!hone_bytecode_varint(c, &value)) return false;
    *out = value >> 1;
    *out_flag = value & 1;
    return true;
}

static bool take_byte(hone_cursor *c, unsigned char *out)
{
    if (c->at == c->end) return false;
    *out = (unsigned char)*c->at++;
    return true;
}

// A count of things that take a byte each at least.
static bool take_count(hone_cursor *c, uint64_t *out)
{
    return hone_bytecode_varint(c, out) && *out <= (uint64_t)(c->end - c->at);
}

static bool take_text(hone_cursor *c, hone_view *out)
{
    const char *start = c->at, *end = c->at < c->end ? memchr(start, '\0', (size_t)(c->end - start)) : NULL;
    if (end == NULL) return false;
    *out = view_between(start, end);
    c->at = end + 1;
    return true;
}

bool hone_bytecode_find_section(hone_cursor *c, uint64_t *out_number, hone_view *out, bool *out_clipped)
{
    enum { ALIGNED = 0x80, PADDING = 0xcb };
    unsigned char number;
    uint64_t size, alignment;
    if (!take_byte(c, &number) || !hone_bytecode_varint(c, &size)) return false;
    if (number & ALIGNED) {
        if (!hone_bytecode_varint(c, &alignment)) return false;
        while (c->at < c->end && (unsigned char)*c->at == PADDING)
            c->at++;
    }
    size_t left = (size_t)(c->end - c->at);
    *out_number = number & ~(unsigned)ALIGNED;
    *out_clipped = size > left;
    *out = (hone_view){c->at, *out_clipped ? left : (size_t)size};
    c->at += out->size;
    return *out_number < SECTION_COUNT;
}

// The array for so many things; NULL also for none.
static void *make(hone_bytecode *code, uint64_t count, size_t size)
{
    void *array = count > 0 ? hone_alloc_array(&code->allocator, (size_t)count, size) : NULL;
    code->failed |= count > 0 && array == NULL;
    return array;
}

// Sizes stand before the strings, that of the last string first; each string ends with a byte of zero.
static bool read_strings(hone_bytecode *code)
{
    hone_cursor c = cursor_of(code->sections[SECTION_STRINGS]);
    uint64_t count, size;
    if (!take_count(&c, &count)) return false;
    code->strings = make(code, count, sizeof *code->strings);
    if (count > 0 && code->strings == NULL) return false;
    code->string_count = (size_t)count;
    const char *end = c.end;
    for (size_t i = (size_t)count; i-- > 0;) {
        if (!hone_bytecode_varint(&c, &size) || size == 0 || c.at > end || size > (uint64_t)(end - c.at)) return false;
        end -= size;
        code->strings[i] = (hone_view){end, (size_t)size - 1};
    }
    return end == c.at;
}

static hone_view string_at(const hone_bytecode *code, uint64_t index)
{
    return index < code->string_count ? code->strings[index] : (hone_view){0};
}

static hone_bytecode_dialect dialect_of(hone_view name)
{
    static const struct {
        const char *name;
        hone_bytecode_dialect dialect;
    } known[] = {
        {"builtin", DIALECT_BUILTIN}, {"func", DIALECT_FUNC}, {"stablehlo", DIALECT_STABLEHLO}, {"vhlo", DIALECT_VHLO}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hone_view_is(name, known[i].name)) return known[i].dialect;
    return DIALECT_OTHER;
}

static bool read_dialect(hone_bytecode *code, hone_cursor *c, hone_bytecode_dialect *out)
{
    uint64_t name, number;
    bool versioned = false, clipped;
    hone_view ignored;
    bool sound = code->version == 0 ? hone_bytecode_varint(c, &name) : hone_bytecode_flagged(c, &name, &versioned);
    if (!sound || (versioned && !hone_bytecode_find_section(c, &number, &ignored, &clipped))) return false;
    *out = dialect_of(string_at(code, name));
    return true;
}

static bool read_name(hone_bytecode *code, hone_cursor *c, hone_bytecode_dialect dialect)
{
    uint64_t name;
    bool registered;
    bool sound = code->version < 5 ? hone_bytecode_varint(c, &name) : hone_bytecode_flagged(c, &name, &registered);
    if (!sound) return false;
    code->name_dialects[code->name_count] = dialect;
    code->names[code->name_count++] = string_at(code, name);
    return true;
}

// Names of operations stand in groups of a dialect, up to the section's end.
static bool read_dialects(hone_bytecode *code)
{
    hone_cursor c = cursor_of(code->sections[SECTION_DIALECTS]);
    uint64_t count, ignored, dialect;
    if (!take_count(&c, &count)) return false;
    code->dialects = make(code, count, sizeof *code->dialects);
    for (; code->dialects != NULL && code->dialect_count < count; code->dialect_count++)
        if (!read_dialect(code, &c, &code->dialects[code->dialect_count])) return false;
    if (code->version >= 4 && !hone_bytecode_varint(&c, &ignored)) return false; // how many names there are
    code->names = make(code, (uint64_t)(c.end - c.at), sizeof *code->names);
    code->name_dialects = make(code, (uint64_t)(c.end - c.at), sizeof *code->name_dialects);
    while (code->names != NULL && code->name_dialects != NULL && c.at < c.end) {
        if (!hone_bytecode_varint(&c, &dialect) || dialect >= code->dialect_count || !take_count(&c, &count))
            return false;
        for (; count > 0; count--)
            if (!read_name(code, &c, code->dialects[dialect])) return false;
    }
    return true;
}

// Where entries stand, in groups of a dialect; *entries moves over them.
static bool read_entries(
    hone_bytecode *code, hone_cursor *c, hone_cursor *entries, hone_bytecode_entry *out, size_t total)
{
    uint64_t dialect, count, size;
    for (size_t done = 0; out != NULL && done < total;) {
        if (!hone_bytecode_varint(c, &dialect) || dialect >= code->dialect_count || !take_count(c, &count) ||
            count > total - done)
            return false;
        for (; count > 0; count--, done++) {
            hone_bytecode_entry *entry = &out[done];
            entry->dialect = code->dialects[dialect];
            if (!hone_bytecode_flagged(c, &size, &entry->encoded) || size > (uint64_t)(entries->end - entries->at))
                return false;
            entry->bytes = (hone_view){entries->at, (size_t)size};
            entries->at += size;
        }
    }
    return true;
}

static bool read_attributes_and_types(hone_bytecode *code)
{
    hone_cursor c = cursor_of(code->sections[SECTION_OFFSETS]), entries = cursor_of(code->sections[SECTION_ENTRIES]);
    uint64_t attributes, types;
    if (!hone_bytecode_varint(&c, &attributes) || !hone_bytecode_varint(&c, &types)) return false;
    uint64_t left = (uint64_t)(c.end - c.at);
    if (attributes > left || types > left) return false;
    code->attributes = make(code, attributes, sizeof *code->attributes);
    code->types = make(code, types, sizeof *code->types);
    code->attribute_count = code->attributes != NULL ? (size_t)attributes : 0;
    code->type_count = code->types != NULL ? (size_t)types : 0;
    return read_entries(code, &c, &entries, code->attributes, code->attribute_count) &&
           read_entries(code, &c, &entries, code->types, code->type_count);
}

static bool read_properties(hone_bytecode *code)
{
    hone_cursor c = cursor_of(code->sections[SECTION_PROPERTIES]);
    uint64_t count, size;
    if (c.at == c.end) return true;
    if (!take_count(&c, &count)) return false;
    code->properties = make(code, count, sizeof *code->properties);
    for (; code->properties != NULL && code->property_count < count; code->property_count++) {
        if (!hone_bytecode_varint(&c, &size) || size > (uint64_t)(c.end - c.at)) return false;
        code->properties[code->property_count] = (hone_view){c.at, (size_t)size};
        c.at += size;
    }
    return true;
}

static bool read_sections(hone_bytecode *code, hone_cursor c)
{
    uint64_t number;
    bool clipped = false;
    hone_view section;
    while (c.at < c.end && !clipped) {
        if (!hone_bytecode_find_section(&c, &number, &section, &clipped)) return false;
        code->sections[number] = section;
    }
    return !clipped;
}

static bool take_head(hone_cursor *c, uint64_t *out_version, hone_view *out_producer)
{
    return accept(c, "ML\xefR") && hone_bytecode_varint(c, out_version) && take_text(c, out_producer);
}

bool hone_bytecode_head(hone_view bytes, uint64_t *out_version, hone_view *out_producer)
{
    hone_cursor c = cursor_of(bytes);
    return take_head(&c, out_version, out_producer);
}

void hone_bytecode_open(const hone_allocator *allocator, hone_view bytes, hone_bytecode *out)
{
    *out = (hone_bytecode){.allocator = *allocator};
    hone_cursor c = cursor_of(bytes);
    bool sound = take_head(&c, &out->version, &out->producer) && read_sections(out, c);
    out->cut =
        !sound || !read_strings(out) || !read_dialects(out) || !read_attributes_and_types(out) || !read_properties(out);
}

void hone_bytecode_close(hone_bytecode *code)
{
    void *const arrays[] = {code->strings,       code->names,      code->properties, code->dialects,
                            code->name_dialects, code->attributes, code->types};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        hone_free(&code->allocator, arrays[i]);
}
