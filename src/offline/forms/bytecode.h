// MLIR bytecode, taken apart: https://mlir.llvm.org/docs/BytecodeFormat/. What a program's operations refer to by
// number: strings, names of operations, attributes, types, properties.
#ifndef HONE_OFFLINE_FORMS_BYTECODE_H
#define HONE_OFFLINE_FORMS_BYTECODE_H

#include "offline/cursor.h"
#include "offline/graph.h"

enum { HONE_BYTECODE_NEWEST = 6 }; // versions from 0 up to it are read

typedef enum hone_bytecode_section {
    SECTION_STRINGS,
    SECTION_DIALECTS,
    SECTION_ENTRIES, // attributes, then types
    SECTION_OFFSETS, // of the entries
    SECTION_IR,
    SECTION_RESOURCES,
    SECTION_RESOURCE_OFFSETS,
    SECTION_DIALECT_VERSIONS,
    SECTION_PROPERTIES,
    SECTION_COUNT
} hone_bytecode_section;

typedef enum hone_bytecode_dialect {
    DIALECT_OTHER,
    DIALECT_BUILTIN,
    DIALECT_FUNC,
    DIALECT_STABLEHLO,
    DIALECT_VHLO // StableHLO's operations, each with a version: what portable artifacts are written in
} hone_bytecode_dialect;

// An attribute or a type.
typedef struct hone_bytecode_entry {
    hone_view bytes;
    hone_bytecode_dialect dialect;
    bool encoded; // as its dialect does; else it is text
} hone_bytecode_entry;

// What an attribute is, whichever dialect has encoded it.
typedef enum hone_bytecode_kind {
    KIND_OTHER,
    KIND_STRING,
    KIND_SYMBOL,
    KIND_DICTIONARY,
    KIND_ELEMENTS,
    KIND_DIRECTION,
    KIND_CALL_SITE,
    KIND_FUSED,
    KIND_NAME
} hone_bytecode_kind;

typedef struct hone_bytecode {
    hone_allocator allocator;
    uint64_t version;
    hone_view producer;
    hone_view sections[SECTION_COUNT];
    hone_view *strings, *names, *properties; // names: of operations, without their dialect's
    hone_bytecode_dialect *dialects, *name_dialects;
    hone_bytecode_entry *attributes, *types;
    size_t string_count, dialect_count, name_count, attribute_count, type_count, property_count;
    bool cut;    // it ends before its sections do
    bool failed; // an allocation did
} hone_bytecode;

// A number: its first byte says by its lowest bits how many bytes follow. False at the cursor's end.
bool hone_bytecode_varint(hone_cursor *c, uint64_t *out);
// A number with a flag in its lowest bit.
bool hone_bytecode_flagged(hone_cursor *c, uint64_t *out, bool *out_flag);
// A section: its number below `SECTION_COUNT`, and what it holds. out_clipped: its end is not there.
bool hone_bytecode_find_section(hone_cursor *c, uint64_t *out_number, hone_view *out, bool *out_clipped);

// Version and producer alone. False: no bytecode.
bool hone_bytecode_head(hone_view bytes, uint64_t *out_version, hone_view *out_producer);
// Takes bytes apart that outlive *out. What is damaged is left out. Free with close.
void hone_bytecode_open(const hone_allocator *allocator, hone_view bytes, hone_bytecode *out);
void hone_bytecode_close(hone_bytecode *code);

// What an attribute is; the cursor stands behind its code, at what it holds.
hone_bytecode_kind hone_bytecode_attribute(const hone_bytecode *code, uint64_t index, hone_cursor *out);
// The text of a string attribute, or of a reference to a symbol; empty for other attributes.
hone_view hone_bytecode_text(const hone_bytecode *code, uint64_t index);
// The attribute of a dictionary by its name; HONE_GRAPH_NONE: not there.
uint64_t hone_bytecode_member(const hone_bytecode *code, uint64_t dictionary, const char *name);
// The number that all elements of an attribute are, as text; empty: they differ, or are no numbers.
hone_view hone_bytecode_number(const hone_bytecode *code, uint64_t index, hone_arena *arena);
// How a comparison compares: "LT"; empty: the attribute is no direction.
hone_view hone_bytecode_direction(const hone_bytecode *code, uint64_t index);
// A type as MLIR prints it: "tensor<2x3xf32>"; "?" when it cannot be read. data NULL: no memory.
hone_view hone_bytecode_type(const hone_bytecode *code, uint64_t index, hone_arena *arena);
// The attribute that the properties of an operation have in a place, which `layout` describes: 'R' for one that is
// there, 'O' for one that may be. HONE_GRAPH_NONE: not there.
uint64_t hone_bytecode_property(const hone_bytecode *code, uint64_t properties, const char *layout);

// The path of a location: its first name with a label, else its first name; empty: it has none.
hone_view hone_bytecode_path(const hone_bytecode *code, const hone_graph *graph, uint64_t location);
// Remembers the names with labels that no operation stands under any more.
void hone_bytecode_keep_loose(const hone_bytecode *code, hone_graph *graph);

#endif
