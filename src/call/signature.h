// The parts of a signature, as parsed. Everything lives in the signature's arena.
#ifndef HONE_CALL_SIGNATURE_H
#define HONE_CALL_SIGNATURE_H

#include "base/expression.h"
#include "call/call.h"

#include <stdatomic.h>

enum { HONE_MAX_SLOTS = 128, HONE_MAX_VARIABLES = 16, HONE_MAX_CLAUSES = 32, HONE_MAX_GENERATOR_ARGS = 4 };

// A number that expressions read: a dim, a scalar parameter, or a fact about a tensor.
typedef enum hone_call_slot_kind { SLOT_DIM, SLOT_SCALAR, SLOT_SHAPE, SLOT_NDIM } hone_call_slot_kind;

typedef struct hone_call_slot {
    hone_view name; // in the signature's copy of its source: "m", "transpose_b", "x.shape"
    hone_call_slot_kind kind;
    uint32_t parameter; // of SCALAR, SHAPE, NDIM
    int64_t axis;       // of SHAPE, may be negative as in Python
    bool bound;         // DIM: stands alone in some parameter's shape
    bool pow2;          // DIM: marked "~pow2" somewhere
} hone_call_slot;

typedef struct hone_dim {
    const hone_expression *expression; // NULL: the bare name of `slot`
    uint32_t slot;
    bool pow2; // marked "~pow2" here
    hone_view text;
} hone_dim;

// "[..., m, k] if condition else otherwise"
typedef struct hone_shape_pattern {
    bool ellipsis; // leading "..."
    uint32_t count;
    const hone_dim *dims;
    const hone_expression *condition; // NULL: always
    const struct hone_shape_pattern *otherwise;
} hone_shape_pattern;

typedef struct hone_generator_call {
    uint32_t kind; // row of the table in generate.c
    uint32_t count;
    const hone_expression *args[HONE_MAX_GENERATOR_ARGS];
} hone_generator_call;

typedef struct hone_call_parameter {
    hone_parameter shown;
    const hone_dtype_info *dtype; // NULL: the type variable
    uint32_t variable;
    const hone_shape_pattern *shape;      // NULL: a scalar
    const hone_generator_call *generator; // NULL: by dtype
    const hone_expression *standard;      // the default, where dims say it; NULL: shown.default_value
} hone_call_parameter;

typedef struct hone_type_variable {
    hone_view name;
    uint32_t allowed; // bit i: hone_dtype_id i; 0: every dtype
    bool bound;       // some parameter has it
} hone_type_variable;

struct hone_signature {
    atomic_uint references;
    hone_arena arena;
    const char *source; // a copy of the text, to which all views point
    const char *name, *version, *text;
    hone_call_parameter *parameters; // in the order of values in C
    size_t count;
    uint16_t *sorted; // indices by name, code points
    hone_call_slot *slots;
    size_t slot_count;
    hone_type_variable *variables;
    size_t variable_count;
    const hone_expression **clauses;
    size_t clause_count;
    bool has_buckets;
};

// Whether the shape of some tensor depends on the scalar at index.
bool hone_signature_shapes_read(const hone_signature *signature, size_t index);
// The slot of a bare name or a scalar; -1 when the signature has none.
int hone_signature_slot(const hone_signature *signature, hone_view name);
// Writes the normalised text of the signature into it and of each type into its parameter.
hone_status hone_signature_write_text(hone_signature *signature, hone_error *err);
// Gives a dim of an expression or shape another name; rename NULL keeps them.
typedef struct hone_dim_names {
    void (*append)(void *ctx, hone_buffer *out, hone_view name);
    void *ctx;
    bool without_leading; // "..." is left out
} hone_dim_names;
// Appends "[m, k] if transpose_b else [k, m]" with one spacing for all: "a+b" and "a  + b" are one text.
//   arena  for the lexer's strings
void hone_append_shape(hone_buffer *out, const hone_shape_pattern *s, const hone_dim_names *names, hone_arena *arena);
// Appends an expression with the same spacing.
void hone_append_expression(
    hone_buffer *out, const hone_expression *expression, const hone_dim_names *names, hone_arena *arena);
// Appends a scalar as signatures and call text write it: 1e-06, true, none, "mean", inf.
void hone_append_literal(hone_buffer *out, const hone_value *value);
// Reads a literal at the lexer's token: integer, float, string, true, false, none, or a name, which is a string.
// Strings live in the lexer's arena. HONE_INVALID_ARGUMENT when there is none.
hone_status hone_literal_parse(hone_lexer *lexer, hone_value *out, hone_error *err);
// Fits a given scalar into the parameter's kind (an integer for f64 becomes a float). False: it does not fit.
bool hone_value_coerce(const hone_parameter *parameter, const hone_value *given, hone_value *out);
// "true (a bool)", "a tensor f32[2,3]": what came, for messages.
void hone_append_given(hone_buffer *out, const hone_value *value);
// A float that is not this one, for a kernel that takes it for the only one.
double hone_other_float(double value);
bool hone_values_equal(const hone_value *a, const hone_value *b);
// Reads "@v1" behind an algorithm's name, when it is there: *out is the version or empty. The lexer's token is what
// follows.
bool hone_version_parse(hone_lexer *lexer, hone_view *out);
// The row of a generator's name and how many arguments it takes; -1: none of that name.
int hone_generator_find(hone_view name, uint32_t *out_args);
const char *hone_generator_name(uint32_t kind);
extern const char hone_generator_list[]; // for messages: "uniform(lo, hi), normal(mean, sd), ..."

#endif
