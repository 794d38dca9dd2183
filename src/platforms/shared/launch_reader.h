// Reads the texts of a kernel's code; shared by launch.c and arguments.c only.
#ifndef HONE_PLATFORMS_SHARED_LAUNCH_READER_H
#define HONE_PLATFORMS_SHARED_LAUNCH_READER_H

#include "platforms/shared/launch.h"

#include "registry/origin.h"
#include "space/term.h"

// Texts are read with the names of a space and of a plan's call and device. Without a call they are read with the names
// of a signature, and every expression has the value 1.
typedef struct hone_launch_reader {
    hone_term_scope scope; // without a call: signature alone
    hone_space *space;     // its own; NULL: the one of scope is borrowed
    hone_arena arena;
    hone_lexer lexer;
    const char *field;    // "grid"
    bool has_local;       // local memory is an argument; set after opening
    bool has_maps;        // tensor maps are; likewise
    bool has_scratch;     // scratch memory is an argument: for a kernel that asks for some
    bool has_values;      // texts, lists and the like are arguments; set after opening
    hone_buffer *objects; // receives texts and lists; NULL: they are dropped
} hone_launch_reader;

hone_status hone_launch_open(
    hone_launch_reader *r, const hone_allocator *allocator, const hone_plan *plan, hone_error *err);
// For texts that are read without a call.
void hone_launch_open_names(
    hone_launch_reader *r,
    const hone_allocator *allocator,
    const hone_pack_kernel *kernel,
    const hone_code *code,
    const hone_signature *signature);
void hone_launch_close(hone_launch_reader *r);
void hone_launch_start(hone_launch_reader *r, const char *field, const char *text, hone_error *err);
bool hone_launch_at_end(const hone_launch_reader *r);
// Fails with what was given and what was expected, after the field's name.
hone_status hone_launch_expected(const hone_launch_reader *r, const char *expected, hone_error *err);
hone_status hone_launch_term(hone_launch_reader *r, struct hone_scalar *out, hone_error *err);
// Reads a whole number in that range.
hone_status hone_launch_count(hone_launch_reader *r, uint64_t least, uint64_t most, uint32_t *out, hone_error *err);
// After an item: reads a comma, which must be followed by another item, or the end.
hone_status hone_launch_comma(hone_launch_reader *r, hone_error *err);
// Reads up to three numbers; omitted ones are 1.
hone_status hone_launch_extent(
    hone_launch_reader *r,
    const char *field,
    const char *text,
    const uint32_t most[3],
    uint32_t out[3],
    hone_error *err);
hone_status hone_launch_shared(hone_launch_reader *r, const char *text, uint32_t *out_bytes, hone_error *err);
// The number of bytes, and the index of the argument that points to them.
hone_status hone_launch_scratch_of(
    hone_launch_reader *r,
    const char *text,
    const hone_argument *arguments,
    uint32_t count,
    size_t *out_bytes,
    uint32_t *out_index,
    hone_error *err);
// Reads "NAME = EXPRESSION, ..." and passes each pair to put.
hone_status hone_launch_read_pairs(
    hone_launch_reader *r,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const struct hone_scalar *value),
    void *ctx,
    hone_error *err);
// arguments.c: reads the whole list.
hone_status hone_launch_list(
    hone_launch_reader *r,
    const char *text,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err);

#endif
