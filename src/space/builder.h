// What the readers of spaces share: adding parameters, values and constraints to a space under construction.
// The first failure is kept in status, and everything after it does nothing.
#ifndef HONE_SPACE_BUILDER_H
#define HONE_SPACE_BUILDER_H

#include "space/space.h"

typedef struct hone_space_builder {
    hone_space *space;
    hone_space_parameter *parameter; // being built
    size_t value_capacity, name_capacity, constraint_capacity;
    hone_space_value *values; // of the parameter being built
    hone_space_name *names;
    const hone_expression **constraints;
    unsigned flags;          // of hone_expression_compile
    bool parameters_only;    // constraints may read nothing else
    bool wrong_limit;        // the unknown name was a device's
    const hone_lexer *lexer; // where the reader stands, for messages; NULL when there is no such place
    hone_status status;
    hone_error *err;
    const char *where;
} hone_space_builder;

// A space with nothing in it. *builder is then to be ended by hone_space_builder_end.
hone_status hone_space_builder_begin(
    hone_space_builder *builder, hone_allocator allocator, const char *where, hone_error *err);
// Gives the space, or its failure.
hone_status hone_space_builder_end(hone_space_builder *builder, hone_space **out);

bool hone_space_builder_failed(const hone_space_builder *builder);
// Fails with words.
void hone_space_builder_fail(hone_space_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hone_space_builder_out_of_memory(hone_space_builder *builder);

// begin_parameter, add_value or add_range, end_parameter. The name is copied.
void hone_space_begin_parameter(hone_space_builder *builder, hone_view name);
void hone_space_add_value(hone_space_builder *builder, hone_scalar value);
// by: what is added, or with multiply what is multiplied by, from a value to the next.
void hone_space_add_range(hone_space_builder *builder, int64_t first, int64_t last, bool multiply, int64_t by);
// by_default may be NULL.
void hone_space_end_parameter(hone_space_builder *builder, const hone_scalar *by_default);
// Compiles the expression at the lexer's current token.
void hone_space_add_constraint(hone_space_builder *builder, hone_lexer *lexer);

#endif
