// Scalars: as they are written in signatures and call text, as they fit a parameter, and as messages show them.
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "call/signature.h"

#include <math.h>
#include <string.h>

static const char where[] = "literal";

static bool special_float(hone_view name, double *out)
{
    const bool infinite = hone_view_is(name, "inf") || hone_view_is(name, "Infinity");
    *out = infinite ? (double)INFINITY : (double)NAN;
    return infinite || hone_view_is(name, "nan") || hone_view_is(name, "NaN");
}

// "-inf" and the one integer whose digits alone do not fit 64 bits: the lexer knows neither.
static bool negative_special(hone_lexer *lexer, hone_value *out)
{
    static const char lowest[] = "9223372036854775808";
    const hone_view rest = {lexer->source.data + lexer->position, lexer->source.size - lexer->position};
    if (!hone_lexer_is(lexer, "-")) return false;
    if (rest.size >= sizeof lowest - 1 && memcmp(rest.data, lowest, sizeof lowest - 1) == 0 &&
        (rest.size == sizeof lowest - 1 || strchr("0123456789.eE_", rest.data[sizeof lowest - 1]) == NULL)) {
        *out = hone_of_int(INT64_MIN);
        lexer->position += sizeof lowest - 1;
        hone_lexer_next(lexer);
        return true;
    }
    hone_lexer ahead = *lexer;
    double value;
    ahead.err = NULL;
    hone_lexer_next(&ahead);
    if (ahead.token.kind != HONE_TOKEN_NAME || !special_float(ahead.token.text, &value)) return false;
    *out = hone_of_float(-value);
    hone_lexer_next(lexer);
    hone_lexer_next(lexer);
    return true;
}

static hone_status text_value(hone_lexer *lexer, hone_view text, hone_value *out, hone_error *err)
{
    if (memchr(text.data, '\0', text.size) != NULL || !hone_text_is_utf8(text.data, text.size))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a string has a NUL or is not UTF-8");
    const char *copy = hone_arena_text(lexer->arena, text.data, text.size);
    if (copy == NULL) return hone_fail_memory(err, where);
    *out = hone_of_string(copy);
    return HONE_OK;
}

hone_status hone_literal_parse(hone_lexer *lexer, hone_value *out, hone_error *err)
{
    double special;
    hone_scalar scalar;
    if (negative_special(lexer, out)) return HONE_OK;
    if (lexer->token.kind == HONE_TOKEN_NAME && special_float(lexer->token.text, &special)) {
        *out = hone_of_float(special);
        hone_lexer_next(lexer);
        return HONE_OK;
    }
    if (!hone_lexer_literal(lexer, &scalar))
        return hone_lexer_fail(lexer, err, where, "a number, a string, true, false or none");
    switch (scalar.kind) {
    case HONE_SCALAR_NONE:
        *out = hone_of_none();
        return HONE_OK;
    case HONE_SCALAR_BOOL:
        *out = hone_of_bool(scalar.as.i64 != 0);
        return HONE_OK;
    case HONE_SCALAR_INT:
        *out = hone_of_int(scalar.as.i64);
        return HONE_OK;
    case HONE_SCALAR_FLOAT:
        *out = hone_of_float(scalar.as.f64);
        return HONE_OK;
    default:
        return text_value(lexer, scalar.as.text, out, err);
    }
}

bool hone_value_coerce(const hone_parameter *p, const hone_value *given, hone_value *out)
{
    static const int32_t tags[] = {
        [HONE_KIND_TENSOR] = HONE_VALUE_TENSOR, [HONE_KIND_BOOL] = HONE_VALUE_BOOL,
        [HONE_KIND_INT] = HONE_VALUE_INT,       [HONE_KIND_FLOAT] = HONE_VALUE_FLOAT,
        [HONE_KIND_STRING] = HONE_VALUE_STRING,
    };
    const bool widens = p->kind == HONE_KIND_FLOAT && given->tag == HONE_VALUE_INT &&
                        given->as.i64 >= -(INT64_C(1) << 53) && given->as.i64 <= INT64_C(1) << 53;
    if (given->tag == HONE_VALUE_NONE && p->nullable)
        *out = hone_of_none();
    else if (widens)
        *out = hone_of_float((double)given->as.i64);
    else if (given->tag != tags[p->kind])
        return false;
    else
        *out = *given;
    if (out->tag == HONE_VALUE_BOOL) out->as.i64 = out->as.i64 != 0;
    return true;
}

bool hone_values_equal(const hone_value *a, const hone_value *b)
{
    if (a->tag != b->tag) return false;
    switch (a->tag) {
    case HONE_VALUE_NONE:
        return true;
    case HONE_VALUE_STRING:
        return strcmp(a->as.string, b->as.string) == 0;
    default: // floats by their bits: NaN is itself, and 0.0 and -0.0 are two values, as in the call key
        return a->as.i64 == b->as.i64;
    }
}

// No larger than it was, so that no rounding grows with it, and far from it. What is next to nothing is there beside
// ordinary numbers, as an epsilon is, and shows when it is one of them. Both lie
// between the numbers of bf16 and of f16, so that who keeps a scalar in so few bits is wrong.
double hone_other_float(double value)
{
    const double next_to_nothing = 1e-3, ordinary = 0.4796, share = 0.6184;
    return fabs(value) < next_to_nothing ? ordinary : share * value;
}

static void append_float(hone_buffer *out, double value)
{
    char text[HONE_NUMBER_SIZE];
    if (isnan(value))
        hone_buffer_text(out, "nan");
    else if (isinf(value))
        hone_buffer_text(out, value < 0 ? "-inf" : "inf");
    else
        hone_buffer_text(out, hone_number_print(value, text));
}

void hone_append_literal(hone_buffer *out, const hone_value *value)
{
    switch (value->tag) {
    case HONE_VALUE_NONE:
        hone_buffer_text(out, "none");
        return;
    case HONE_VALUE_BOOL:
        hone_buffer_text(out, value->as.i64 != 0 ? "true" : "false");
        return;
    case HONE_VALUE_INT:
        hone_buffer_integer(out, value->as.i64);
        return;
    case HONE_VALUE_FLOAT:
        append_float(out, value->as.f64);
        return;
    case HONE_VALUE_STRING:
        hone_json_string(out, value->as.string, strlen(value->as.string));
        return;
    default:
        hone_buffer_text(out, "?");
        return;
    }
}

static void append_shape(hone_buffer *out, const hone_tensor *tensor)
{
    const hone_dtype_info *dtype = hone_dtype_find(tensor->dtype);
    int32_t rank = tensor->ndim < HONE_MAX_RANK ? tensor->ndim : HONE_MAX_RANK;
    hone_buffer_text(out, dtype != NULL ? dtype->name : "?");
    hone_buffer_text(out, "[");
    if (tensor->shape != NULL && rank > 0) hone_buffer_integers(out, tensor->shape, (size_t)rank);
    hone_buffer_text(out, "]");
}

void hone_append_given(hone_buffer *out, const hone_value *value)
{
    static const char *const kinds[] = {
        [HONE_VALUE_INT] = "an integer",    [HONE_VALUE_BOOL] = "a bool",   [HONE_VALUE_FLOAT] = "a float",
        [HONE_VALUE_POINTER] = "a pointer", [HONE_VALUE_DTYPE] = "a dtype", [HONE_VALUE_DEVICE] = "a device",
        [HONE_VALUE_STRING] = "a string",
    };
    switch (value->tag) {
    case HONE_VALUE_NONE:
        hone_buffer_text(out, "none");
        return;
    case HONE_VALUE_TENSOR:
        hone_buffer_text(out, "a tensor ");
        if (value->as.tensor != NULL) append_shape(out, value->as.tensor);
        return;
    case HONE_VALUE_POINTER:
    case HONE_VALUE_DTYPE:
    case HONE_VALUE_DEVICE:
        hone_buffer_text(out, kinds[value->tag]);
        return;
    case HONE_VALUE_INT:
    case HONE_VALUE_BOOL:
    case HONE_VALUE_FLOAT:
    case HONE_VALUE_STRING:
        if (value->tag == HONE_VALUE_STRING && value->as.string == NULL) {
            hone_buffer_text(out, "a string that is NULL");
            return;
        }
        hone_append_literal(out, value);
        hone_buffer_format(out, " (%s)", kinds[value->tag]);
        return;
    default:
        hone_buffer_format(out, "a value of unknown tag %d", value->tag);
        return;
    }
}
