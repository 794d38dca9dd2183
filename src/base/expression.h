// The expression language of signatures, spaces and packs: one tokenizer, one compiler, one evaluator.
//
// Grammar: C's precedence with `and`, `or`, `not` (also && || !; `not` binds as Python's, `!` as C's),
// comparisons on one level and chained as in Python, + - * / // %, min max ceildiv abs log2, x.shape[i], x.ndim.
// Integers are 64 bit and checked; overflow and division by zero are errors of the expression.
#ifndef HONE_BASE_EXPRESSION_H
#define HONE_BASE_EXPRESSION_H

#include "base/memory.h"
#include "base/text.h"

typedef enum hone_scalar_kind { HONE_SCALAR_NONE, HONE_SCALAR_BOOL, HONE_SCALAR_INT, HONE_SCALAR_FLOAT, HONE_SCALAR_TEXT } hone_scalar_kind;

// A value of an expression. TEXT is borrowed.
typedef struct hone_scalar {
    hone_scalar_kind kind;
    union {
        int64_t i64; // INT, BOOL
        double f64;
        hone_view text;
    } as;
} hone_scalar;

// One token. Shared by every little language of hone.
typedef enum hone_token_kind {
    HONE_TOKEN_END,
    HONE_TOKEN_NAME,    // letters, digits, '_'; also with bytes >= 0x80
    HONE_TOKEN_INTEGER, // value in scalar
    HONE_TOKEN_FLOAT,
    HONE_TOKEN_STRING, // quotes removed, escapes resolved into the lexer's arena
    HONE_TOKEN_SYMBOL, // one of the operators and punctuation marks, the longest that fits; "..", "..." and "->" among them
    HONE_TOKEN_ERROR
} hone_token_kind;

typedef struct hone_token {
    hone_token_kind kind;
    hone_view text;     // the bytes in the source
    hone_scalar scalar; // INTEGER, FLOAT, STRING
    size_t offset;      // from the start of the source, bytes
} hone_token;

typedef struct hone_lexer {
    hone_view source;
    size_t position;
    hone_token token; // the current one
    hone_arena *arena;
    bool newline_ends; // newlines are tokens (SYMBOL "\n"): spaces, whose lines end statements
    hone_error *err;   // filled at the first HONE_TOKEN_ERROR
} hone_lexer;

// Starts at the first token. Comments run from '#' to the end of the line when `comments` was asked for.
void hone_lexer_init(hone_lexer *lexer, hone_view source, hone_arena *arena, hone_error *err);
void hone_lexer_next(hone_lexer *lexer);
bool hone_lexer_is(const hone_lexer *lexer, const char *symbol_or_name);
bool hone_lexer_accept(hone_lexer *lexer, const char *symbol_or_name); // true: it was there and is eaten

// Resolves names while compiling: gives a slot number, or false for an unknown name. `x.shape[i]`, `x.ndim` and `device.l1_bytes` are
// asked for as name = "x.shape" with index i, "x.ndim" and "device.l1_bytes" with index -1.
typedef struct hone_expression_names {
    bool (*resolve)(void *ctx, hone_view name, int64_t index, uint32_t *out_slot);
    void *ctx;
} hone_expression_names;

typedef struct hone_expression hone_expression; // lives in the arena it was compiled into; immutable; any thread

enum { HONE_EXPRESSION_PYTHON_DIVISION = 1 }; // '/' is Python's true division (Kernel Tuner's T1 files)

// Compiles the expression that starts at the lexer's current token and stops at the first token that cannot
// belong to it. Depth is bounded by 64, length by 4096 nodes. Errors name the offset and what was expected.
hone_status hone_expression_compile(hone_lexer *lexer, const hone_expression_names *names, unsigned flags, const hone_expression **out, hone_error *err);
// Evaluates with one scalar a slot. Allocates nothing.
// Returns: HONE_OK, HONE_INVALID_ARGUMENT (overflow, division by zero, a type that does not fit) with words.
hone_status hone_expression_evaluate(const hone_expression *expression, const hone_scalar *slots, hone_scalar *out, hone_error *err);
// Truth of a value, as Python's.
bool hone_scalar_truth(const hone_scalar *scalar);
// Equality as Python's: 1 == 1.0 == True, texts by bytes.
bool hone_scalar_equal(const hone_scalar *a, const hone_scalar *b);
// Calls visit for every slot that the expression reads (a slot may be visited more than once).
void hone_expression_slots(const hone_expression *expression, void (*visit)(void *ctx, uint32_t slot), void *ctx);
// The source text, in the arena.
hone_view hone_expression_source(const hone_expression *expression);

#endif
