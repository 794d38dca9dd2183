// How the texts of a kernel's code are read; shared by launch.c and arguments.c only.
#ifndef HONE_PLATFORMS_SHARED_LAUNCH_READER_H
#define HONE_PLATFORMS_SHARED_LAUNCH_READER_H

#include "platforms/shared/launch.h"

#include "registry/origin.h"
#include "space/term.h"

// Texts are read with the names of a space and of a plan's call and device; or, where there is no call yet, with those
// that calls of a signature have: every expression counts as 1 then.
typedef struct hone_launch_reader {
    hone_term_scope scope; // without a call: signature alone
    hone_space *space;     // its own; NULL: that of scope is borrowed
    hone_arena arena;
    hone_lexer lexer;
    const char *field;    // "grid"
    bool has_local;       // local memory is an argument; set behind the opening
    bool has_maps;        // tensor maps are; likewise
    bool has_scratch;     // scratch memory is one: of a kernel that asks for some
    bool has_values;      // texts, lists and the like are; set behind the opening
    hone_buffer *objects; // where texts and lists go; NULL: nowhere
} hone_launch_reader;

hone_status hone_launch_open(
    hone_launch_reader *r, const hone_allocator *allocator, const hone_plan *plan, hone_error *err);
// For texts that are read before there is a call.
void hone_launch_open_names(
    hone_launch_reader *r,
    const hone_allocator *allocator,
    const hone_pack_kernel *kernel,
    const hone_code *code,
    const hone_signature *signature);
void hone_launch_close(hone_launch_reader *r);
void hone_launch_start(hone_launch_reader *r, const char *field, const char *text, hone_error *err);
bool hone_launch_at_end(const hone_launch_reader *r);
// Fails with what came and what was expected, behind the field's name.
hone_status hone_launch_expected(const hone_launch_reader *r, const char *expected, hone_error *err);
hone_status hone_launch_term(hone_launch_reader *r, struct hone_scalar *out, hone_error *err);
// A whole number of that range.
hone_status hone_launch_count(hone_launch_reader *r, uint64_t least, uint64_t most, uint32_t *out, hone_error *err);
// Behind an item: a comma and another one, or the end.
hone_status hone_launch_comma(hone_launch_reader *r, hone_error *err);
// Up to three numbers; those left out are 1.
hone_status hone_launch_extent(
    hone_launch_reader *r,
    const char *field,
    const char *text,
    const uint32_t most[3],
    uint32_t out[3],
    hone_error *err);
hone_status hone_launch_shared(hone_launch_reader *r, const char *text, uint32_t *out_bytes, hone_error *err);
// The bytes, and which argument points there.
hone_status hone_launch_scratch_of(
    hone_launch_reader *r,
    const char *text,
    const hone_argument *arguments,
    uint32_t count,
    size_t *out_bytes,
    uint32_t *out_index,
    hone_error *err);
// "NAME = EXPRESSION, ...", each handed to put.
hone_status hone_launch_read_pairs(
    hone_launch_reader *r,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const struct hone_scalar *value),
    void *ctx,
    hone_error *err);
// arguments.c: the whole list.
hone_status hone_launch_list(
    hone_launch_reader *r,
    const char *text,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err);

#endif
