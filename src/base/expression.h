// The expression language of signatures, spaces and packs: one compiler, one evaluator.
//
// Grammar: C's precedence with `and`, `or`, `not` (also && || !; `not` binds as Python's, `!` as C's),
// comparisons on one level and chained as in Python, + - * / // %, min max ceildiv abs log2 sqrt, x.shape[i], x.ndim,
// numbers, strings, true false none. Integers are 64 bit and checked; overflow and division by zero are errors of the
// expression unless `and` or `or` was decided by its left side.
#ifndef HONE_BASE_EXPRESSION_H
#define HONE_BASE_EXPRESSION_H

#include "base/lexer.h"

// Resolves names while compiling: gives a slot number, or false for an unknown name. `x.shape[i]`, `x.ndim` and
// `device.l1_bytes` are asked for as name = "x.shape" with index i (>= 0), "x.ndim" and "device.l1_bytes" with index
// -1. name is a view of the source.
typedef struct hone_expression_names {
    bool (*resolve)(void *ctx, hone_view name, int64_t index, uint32_t *out_slot);
    void *ctx;
} hone_expression_names;

typedef struct hone_expression hone_expression; // lives in the arena it was compiled into; immutable; any thread

// Python's expressions (Kernel Tuner's T1 files): '/' is true division, and there are `a ** b`, `x in [1, 2]`,
// `x not in (1, 2)` and `a if x else b`.
enum { HONE_EXPRESSION_PYTHON = 1 };
enum { HONE_EXPRESSION_DEPTH = 64, HONE_EXPRESSION_STEPS = 4096, HONE_EXPRESSION_REGISTERS = 256 };

// Compiles the expression that starts at the lexer's current token and stops at the first token that cannot
// belong to it. Depth and length are bounded by the constants above. Errors name the offset and what was expected.
//   names  NULL: every name is unknown
hone_status hone_expression_compile(
    hone_lexer *lexer,
    const hone_expression_names *names,
    unsigned flags,
    const hone_expression **out,
    hone_error *err);
// Evaluates with one scalar a slot. Allocates nothing.
// Returns: HONE_OK, HONE_INVALID_ARGUMENT (overflow, division by zero, a type that does not fit) with words.
hone_status hone_expression_evaluate(
    const hone_expression *expression, const hone_scalar *slots, hone_scalar *out, hone_error *err);
// Calls visit for every slot that the expression reads (a slot may be visited more than once).
void hone_expression_slots(const hone_expression *expression, void (*visit)(void *ctx, uint32_t slot), void *ctx);
// The source text, in the arena; NUL-terminated.
hone_view hone_expression_source(const hone_expression *expression);

// The compiled form, for those who evaluate one expression very often and keep parts of it: steps in order, each from
// registers to a register; the result is in register 0. There are no jumps: errors are values (see hone_scalar_apply).
typedef struct hone_expression_step {
    hone_operation operation;
    uint16_t to, a, b;   // registers, < HONE_EXPRESSION_REGISTERS; b is a where the operation takes one operand
    uint32_t slot;       // SLOT
    hone_scalar literal; // LITERAL
} hone_expression_step;

const hone_expression_step *hone_expression_steps(const hone_expression *expression, size_t *out_count);

#endif
