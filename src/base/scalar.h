// Values of expressions, and the arithmetic on them: Python's, with integers of 64 bit that never wrap.
#ifndef HONE_BASE_SCALAR_H
#define HONE_BASE_SCALAR_H

#include "base/text.h"

#include <stdint.h>

typedef enum hone_scalar_kind {
    HONE_SCALAR_NONE,
    HONE_SCALAR_BOOL,
    HONE_SCALAR_INT,
    HONE_SCALAR_FLOAT,
    HONE_SCALAR_TEXT,
    HONE_SCALAR_ABSENT, // inside of `a if x else b`: x is false, so a is not taken
    HONE_SCALAR_ERROR   // what an operation gives that cannot be done; hone_scalar_problem has the words
} hone_scalar_kind;

// A value of an expression. TEXT is borrowed.
typedef struct hone_scalar {
    hone_scalar_kind kind;
    union {
        int64_t i64; // INT, BOOL; ERROR: a hone_scalar_error
        double f64;
        hone_view text;
    } as;
} hone_scalar;

typedef enum hone_scalar_error {
    HONE_SCALAR_OVERFLOW,
    HONE_SCALAR_DIVISION_BY_ZERO,
    HONE_SCALAR_WRONG_TYPE,
    HONE_SCALAR_LOG_OF_NOTHING,
    HONE_SCALAR_ROOT_OF_NEGATIVE,
} hone_scalar_error;

// What a step of an expression does. The first two load; the unary ones read only their first operand.
typedef enum hone_operation {
    HONE_OPERATION_LITERAL,
    HONE_OPERATION_SLOT,
    HONE_OPERATION_COPY,
    HONE_OPERATION_NOT,
    HONE_OPERATION_NEGATE,
    HONE_OPERATION_PLUS,
    HONE_OPERATION_ABS,
    HONE_OPERATION_LOG2, // of a power of two an integer, of anything else a float
    HONE_OPERATION_SQRT, // a float
    HONE_OPERATION_AND,  // a truth value; an error on the right counts only when the left side leaves it open
    HONE_OPERATION_OR,
    HONE_OPERATION_WHEN, // the right side where the left is true, else ABSENT: the first half of `a if x else b`
    HONE_OPERATION_ELSE, // the left side unless it is ABSENT, else the right
    HONE_OPERATION_EQUAL,
    HONE_OPERATION_NOT_EQUAL,
    HONE_OPERATION_LESS,
    HONE_OPERATION_LESS_EQUAL,
    HONE_OPERATION_GREATER,
    HONE_OPERATION_GREATER_EQUAL,
    HONE_OPERATION_ADD,
    HONE_OPERATION_SUBTRACT,
    HONE_OPERATION_MULTIPLY,
    HONE_OPERATION_DIVIDE,      // floor division of integers, else true division
    HONE_OPERATION_TRUE_DIVIDE, // Python's "/"
    HONE_OPERATION_FLOOR_DIVIDE,
    HONE_OPERATION_MODULO, // takes the divisor's sign
    HONE_OPERATION_POWER,
    HONE_OPERATION_MIN,
    HONE_OPERATION_MAX,
    HONE_OPERATION_CEILDIV, // of integers
    HONE_OPERATION_COUNT
} hone_operation;

// Does one operation (neither LITERAL nor SLOT). Operands that are errors make the result that error, so that a whole
// expression can be computed without a branch and looked at once, at the end. out may be one of the operands.
void hone_scalar_apply(hone_operation operation, const hone_scalar *a, const hone_scalar *b, hone_scalar *out);
// What an ERROR says: "division by zero". Static.
const char *hone_scalar_problem(const hone_scalar *error);

// Truth of a value, as Python's.
bool hone_scalar_truth(const hone_scalar *scalar);
// Equality as Python's: 1 == 1.0 == True, texts by bytes.
bool hone_scalar_equal(const hone_scalar *a, const hone_scalar *b);

static inline hone_scalar hone_scalar_int(int64_t value)
{
    hone_scalar scalar = {.kind = HONE_SCALAR_INT};
    scalar.as.i64 = value;
    return scalar;
}

static inline hone_scalar hone_scalar_bool(bool value)
{
    hone_scalar scalar = {.kind = HONE_SCALAR_BOOL};
    scalar.as.i64 = value ? 1 : 0;
    return scalar;
}

static inline hone_scalar hone_scalar_float(double value)
{
    hone_scalar scalar = {.kind = HONE_SCALAR_FLOAT};
    scalar.as.f64 = value;
    return scalar;
}

static inline hone_scalar hone_scalar_text(hone_view text)
{
    hone_scalar scalar = {.kind = HONE_SCALAR_TEXT};
    scalar.as.text = text;
    return scalar;
}

#endif
