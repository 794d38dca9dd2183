// The list of arguments of a kernel's code: "x, y, i32(n), f32(eps)".
#include "platforms/shared/launch_reader.h"

#include "base/buffer.h"
#include "base/error.h"
#include "call/call.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "platforms.launch";

static const struct {
    const char *name;
    hone_argument_type type;
    uint32_t size;
} types[] = {
    {"i8", HONE_ARGUMENT_I8, 1},   {"u8", HONE_ARGUMENT_U8, 1},   {"i16", HONE_ARGUMENT_I16, 2},
    {"u16", HONE_ARGUMENT_U16, 2}, {"i32", HONE_ARGUMENT_I32, 4}, {"u32", HONE_ARGUMENT_U32, 4},
    {"i64", HONE_ARGUMENT_I64, 8}, {"u64", HONE_ARGUMENT_U64, 8}, {"f32", HONE_ARGUMENT_F32, 4},
    {"f64", HONE_ARGUMENT_F64, 8},
};

static const char expected_name[] = "a tensor's name, or i32(...), i64(...), f32(...)";

static double number_of(const hone_value *value)
{
    return value->tag == HONE_VALUE_FLOAT ? value->as.f64 : (double)value->as.i64;
}

uint64_t hone_argument_bits(hone_argument_type type, const hone_value *value)
{
    hone_argument bits = {.as = {0}};
    if (type == HONE_ARGUMENT_F32)
        bits.as.f32 = (float)number_of(value);
    else if (type == HONE_ARGUMENT_F64)
        bits.as.f64 = number_of(value);
    else
        bits.as.bits = (uint64_t)value->as.i64;
    return bits.as.bits;
}

static hone_status check_range(
    const hone_launch_reader *r, const hone_argument *argument, int64_t value, hone_error *err)
{
    static const struct {
        int64_t least, most;
    } ranges[] = {
        [HONE_ARGUMENT_I8] = {INT8_MIN, INT8_MAX},     [HONE_ARGUMENT_U8] = {0, UINT8_MAX},
        [HONE_ARGUMENT_I16] = {INT16_MIN, INT16_MAX},  [HONE_ARGUMENT_U16] = {0, UINT16_MAX},
        [HONE_ARGUMENT_I32] = {INT32_MIN, INT32_MAX},  [HONE_ARGUMENT_U32] = {0, UINT32_MAX},
        [HONE_ARGUMENT_I64] = {INT64_MIN, INT64_MAX},  [HONE_ARGUMENT_U64] = {0, INT64_MAX},
        [HONE_ARGUMENT_BOOL] = {INT64_MIN, INT64_MAX},
    };
    if (value >= ranges[argument->type].least && value <= ranges[argument->type].most) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s: %" PRId64 " does not fit %u bytes", r->field, value,
        (unsigned)argument->size);
}

static hone_status set_bits(
    const hone_launch_reader *r, hone_argument *argument, const hone_scalar *scalar, hone_error *err)
{
    bool is_float = scalar->kind == HONE_SCALAR_FLOAT;
    bool wants_float = argument->type == HONE_ARGUMENT_F32 || argument->type == HONE_ARGUMENT_F64;
    if (!is_float && scalar->kind != HONE_SCALAR_INT && scalar->kind != HONE_SCALAR_BOOL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: expected a number", r->field);
    if (is_float && !wants_float)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: expected an integer", r->field);
    hone_value value = is_float ? hone_of_float(scalar->as.f64) : hone_of_int(scalar->as.i64);
    argument->kind = HONE_ARGUMENT_BITS;
    argument->as.bits = hone_argument_bits(argument->type, &value);
    return is_float || wants_float ? HONE_OK : check_range(r, argument, scalar->as.i64, err);
}

// The parameter whose name comes next, directly followed by the sign; -1 if something else comes next.
static int parameter_before(const hone_launch_reader *r, const char *sign)
{
    hone_lexer ahead = r->lexer;
    char name[HONE_NAME_SIZE] = {0};
    if (ahead.token.kind != HONE_TOKEN_NAME || ahead.token.text.size >= sizeof name) return -1;
    memcpy(name, ahead.token.text.data, ahead.token.text.size);
    hone_lexer_next(&ahead);
    return hone_lexer_is(&ahead, sign) ? hone_signature_find(r->scope.signature, name) : -1;
}

// The call's scalar of role "ignore" if the expression consists of nothing else; -1 otherwise.
static int ignored_scalar(const hone_launch_reader *r)
{
    const int index = parameter_before(r, ")");
    const bool ignored =
        index >= 0 && hone_signature_parameter(r->scope.signature, (size_t)index)->role == HONE_ROLE_IGNORE;
    return ignored ? index : -1;
}

// Whether the call omits an optional scalar, as in "i64(window, -1)": the second expression is its value then.
static bool is_absent(const hone_launch_reader *r)
{
    const int index = r->scope.call != NULL ? parameter_before(r, ",") : -1;
    return index >= 0 && hone_call_values(r->scope.call)[index].tag == HONE_VALUE_NONE;
}

static hone_status read_scalar(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    if (!hone_lexer_accept(&r->lexer, "(")) return hone_launch_expected(r, "'(' and an expression", err);
    const int ignored = ignored_scalar(r);
    const bool absent = is_absent(r);
    hone_scalar value, unused;
    if (absent) {
        hone_lexer_next(&r->lexer);
        (void)hone_lexer_accept(&r->lexer, ",");
    }
    hone_status status = HONE_OK;
    if (ignored >= 0)
        hone_lexer_next(&r->lexer);
    else
        status = hone_launch_term(r, &value, err);
    if (status == HONE_OK && !absent && hone_lexer_accept(&r->lexer, ",")) status = hone_launch_term(r, &unused, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ")")) return hone_launch_expected(r, "')'", err);
    if (ignored < 0) return set_bits(r, argument, &value, err);
    argument->kind = HONE_ARGUMENT_SCALAR;
    argument->value = (uint32_t)ignored;
    return HONE_OK;
}

static hone_status read_local(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    uint32_t bytes = 0;
    if (!hone_lexer_accept(&r->lexer, "(")) return hone_launch_expected(r, "'(' and a number of bytes", err);
    hone_status status = hone_launch_count(r, 1, INT32_MAX, &bytes, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ")")) return hone_launch_expected(r, "')'", err);
    *argument =
        (hone_argument){.kind = HONE_ARGUMENT_LOCAL, .type = HONE_ARGUMENT_POINTER, .size = bytes, .as.bits = bytes};
    return HONE_OK;
}

static hone_status take_tensor(hone_launch_reader *r, const char *name, hone_argument *argument, hone_error *err);

// Reads "(NAME", the beginning of every item that is derived from a tensor.
static hone_status read_tensor_of(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    char name[HONE_NAME_SIZE] = {0};
    const bool begins = hone_lexer_accept(&r->lexer, "(");
    const hone_view text = r->lexer.token.text;
    if (!begins || r->lexer.token.kind != HONE_TOKEN_NAME || text.size >= sizeof name)
        return hone_launch_expected(r, "'(' and a tensor's name", err);
    memcpy(name, text.data, text.size);
    hone_lexer_next(&r->lexer);
    return take_tensor(r, name, argument, err);
}

static hone_status take_scratch(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    if (!r->has_scratch)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: scratch memory is listed, and its size in 'scratch' is not said");
    *argument = (hone_argument){.kind = HONE_ARGUMENT_SCRATCH, .type = HONE_ARGUMENT_POINTER, .size = sizeof(void *)};
    return HONE_OK;
}

// Values --------------------------------------------------------------------------------------------------------------

// Keeps the bytes of a text or a list, since the reader's arena is freed earlier; the next bytes are aligned to 8.
static hone_status keep_bytes(
    hone_launch_reader *r, hone_argument *argument, const void *bytes, size_t size, hone_error *err)
{
    static const char zeros[8] = {0};
    argument->size = (uint32_t)size;
    if (r->objects == NULL) return HONE_OK;
    argument->as.bits = r->objects->size;
    hone_buffer_append(r->objects, bytes, size);
    hone_buffer_append(r->objects, zeros, 8 - size % 8); // at least one byte: the NUL of a text
    return r->objects->failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status read_bool(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    argument->type = HONE_ARGUMENT_BOOL;
    argument->size = 1;
    hone_status status = read_scalar(r, argument, err);
    if (argument->kind == HONE_ARGUMENT_BITS) argument->as.bits = argument->as.bits != 0;
    return status;
}

static hone_status read_text(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    hone_scalar value;
    argument->kind = HONE_ARGUMENT_BITS;
    argument->type = HONE_ARGUMENT_TEXT;
    if (!hone_lexer_accept(&r->lexer, "(")) return hone_launch_expected(r, "'(' and an expression", err);
    hone_status status = hone_launch_term(r, &value, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ")")) return hone_launch_expected(r, "')'", err);
    if (r->scope.call == NULL) return HONE_OK;
    if (value.kind != HONE_SCALAR_TEXT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: expected a string", r->field);
    return keep_bytes(r, argument, value.as.text.data, value.as.text.size, err);
}

// Reads numbers separated by commas, up to the closing sign.
static hone_status read_numbers(
    hone_launch_reader *r, const char *closing, int64_t numbers[HONE_MAX_ARGUMENTS], size_t *count, hone_error *err)
{
    *count = 0;
    while (!hone_lexer_accept(&r->lexer, closing)) {
        hone_scalar value;
        if (*count > 0 && !hone_lexer_accept(&r->lexer, ","))
            return hone_launch_expected(r, closing[0] == ']' ? "',' or ']'" : "',' or ')'", err);
        hone_status status = hone_launch_term(r, &value, err);
        if (status != HONE_OK) return status;
        if (value.kind != HONE_SCALAR_INT)
            return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: lists hold integers", r->field);
        if (*count == HONE_MAX_ARGUMENTS)
            return hone_fail(err, HONE_UNSUPPORTED, where, "%s: a list of more than %d", r->field, HONE_MAX_ARGUMENTS);
        numbers[(*count)++] = value.as.i64;
    }
    return HONE_OK;
}

// Called after '['.
static hone_status read_integers(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    int64_t numbers[HONE_MAX_ARGUMENTS];
    size_t count;
    argument->kind = HONE_ARGUMENT_BITS;
    argument->type = HONE_ARGUMENT_INTEGERS;
    hone_status status = read_numbers(r, "]", numbers, &count, err);
    return status == HONE_OK ? keep_bytes(r, argument, numbers, count * sizeof *numbers, err) : status;
}

static hone_status check_view(
    const hone_launch_reader *r, uint32_t tensor, const int64_t *shape, size_t count, hone_error *err)
{
    const char *name = hone_signature_parameter(r->scope.signature, tensor)->name;
    int64_t elements = 1;
    if (count == 0 || count > HONE_MAX_RANK)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "arguments: view of %s: 1 to %d dims", name, (int)HONE_MAX_RANK);
    if (r->scope.call == NULL) return HONE_OK;
    const hone_tensor *given = hone_call_tensor(r->scope.call, tensor);
    bool fits = true;
    for (size_t i = 0; i < count; i++)
        fits = fits && shape[i] >= 0 && !__builtin_mul_overflow(elements, shape[i], &elements);
    if (fits && elements == hone_tensor_elements(given)) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "arguments: view of %s: its dims make %" PRId64 " elements, and it has %" PRId64,
        name, elements, hone_tensor_elements(given));
}

// view(x, rows, 2 * dim): the tensor x in another shape of as many elements.
static hone_status read_view(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    int64_t shape[HONE_MAX_ARGUMENTS];
    size_t count;
    hone_status status = read_tensor_of(r, argument, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ",")) return hone_launch_expected(r, "',' and dims", err);
    status = read_numbers(r, ")", shape, &count, err);
    // The tensor is omitted and has no shape
    if (status != HONE_OK || argument->kind != HONE_ARGUMENT_TENSOR) return status;
    status = check_view(r, argument->value, shape, count, err);
    argument->type = HONE_ARGUMENT_INTEGERS;
    return status == HONE_OK ? keep_bytes(r, argument, shape, count * sizeof *shape, err) : status;
}

// Reads an argument that is neither a tensor nor a number of a launch, such as a text or a list. False if it is another
// kind.
static bool read_value(hone_launch_reader *r, hone_argument *argument, hone_status *out, hone_error *err)
{
    if (!r->has_values) return false;
    *out = HONE_OK;
    if (hone_lexer_accept(&r->lexer, "["))
        *out = read_integers(r, argument, err);
    else if (r->lexer.token.kind != HONE_TOKEN_NAME)
        return false;
    else if (hone_lexer_accept(&r->lexer, "bool"))
        *out = read_bool(r, argument, err);
    else if (hone_lexer_accept(&r->lexer, "text"))
        *out = read_text(r, argument, err);
    else if (hone_lexer_accept(&r->lexer, "view"))
        *out = read_view(r, argument, err);
    else if (hone_lexer_accept(&r->lexer, "none"))
        *argument = (hone_argument){.kind = HONE_ARGUMENT_BITS, .type = HONE_ARGUMENT_POINTER};
    else
        return false;
    return true;
}

// Tensor maps ---------------------------------------------------------------------------------------------------------

static hone_status set_box(
    const hone_launch_reader *r, hone_argument *argument, const int64_t *numbers, size_t count, hone_error *err)
{
    const char *name = hone_signature_parameter(r->scope.signature, argument->value)->name;
    const int64_t swizzle = numbers[0];
    const size_t rank = count - 1;
    if (rank < 1 || rank > HONE_MAP_RANK)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "arguments: map of %s: its box has %zu dims, expected 1 to %d", name,
            rank, HONE_MAP_RANK);
    argument->as.map.rank = (uint8_t)rank;
    if (r->scope.call == NULL) return HONE_OK; // before there is a call every number is 1
    if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: map of %s: a swizzle of %" PRId64 " bytes, expected 0, 32, 64 or 128", name, swizzle);
    argument->as.map.swizzle = (uint8_t)swizzle;
    for (size_t i = 0; i < rank; i++) {
        if (numbers[i + 1] < 1 || numbers[i + 1] > UINT8_MAX + 1)
            return hone_fail(
                err, HONE_UNSUPPORTED, where,
                "arguments: map of %s: dim %zu of its box is %" PRId64 ", expected 1 to %d", name, i, numbers[i + 1],
                UINT8_MAX + 1);
        argument->as.map.last[i] = (uint8_t)(numbers[i + 1] - 1);
    }
    return HONE_OK;
}

// map(key, 128, 1, keys, 1, 64): the description with which NVIDIA's copy engine copies boxes of the tensor; a box has
// at most as many dims as the tensor.
static hone_status read_map(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    int64_t numbers[HONE_MAX_ARGUMENTS];
    size_t count;
    hone_status status = read_tensor_of(r, argument, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ",")) return hone_launch_expected(r, "',', a swizzle and a box", err);
    status = read_numbers(r, ")", numbers, &count, err);
    if (status != HONE_OK) return status;
    if (argument->kind != HONE_ARGUMENT_TENSOR)
        return hone_fail(err, HONE_UNSUPPORTED, where, "arguments: map of a tensor that was left out");
    if (count == 0) return hone_launch_expected(r, "a swizzle and a box", err);
    argument->kind = HONE_ARGUMENT_MAP;
    argument->size = HONE_MAP_BYTES;
    argument->as.bits = 0;
    return set_box(r, argument, numbers, count, err);
}

// Items ---------------------------------------------------------------------------------------------------------------

static hone_status take_tensor(hone_launch_reader *r, const char *name, hone_argument *argument, hone_error *err)
{
    const int index = hone_signature_find(r->scope.signature, name);
    if (index < 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "arguments: '%s' is not a tensor of the call, nor a type", name);
    *argument = (hone_argument){
        .kind = HONE_ARGUMENT_TENSOR, .type = HONE_ARGUMENT_POINTER, .value = (uint32_t)index, .size = sizeof(void *)};
    // An omitted tensor is a null pointer.
    if (r->scope.call != NULL && hone_call_values(r->scope.call)[index].tag == HONE_VALUE_NONE)
        argument->kind = HONE_ARGUMENT_BITS;
    if (hone_signature_parameter(r->scope.signature, (size_t)index)->kind == HONE_KIND_TENSOR) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "arguments: '%s' is a scalar: write i32(%s), f32(%s)", name, name, name);
}

static hone_status read_argument(hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    char name[HONE_NAME_SIZE] = {0};
    hone_view text = r->lexer.token.text;
    hone_status status = HONE_OK;
    if (read_value(r, argument, &status, err)) return status;
    if (r->lexer.token.kind != HONE_TOKEN_NAME || text.size >= sizeof name)
        return hone_launch_expected(r, expected_name, err);
    memcpy(name, text.data, text.size);
    hone_lexer_next(&r->lexer);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        argument->type = types[i].type;
        argument->size = types[i].size;
        return read_scalar(r, argument, err);
    }
    if (r->has_local && strcmp(name, "local") == 0) return read_local(r, argument, err);
    if (r->has_maps && strcmp(name, "map") == 0 && hone_lexer_is(&r->lexer, "(")) return read_map(r, argument, err);
    if (hone_signature_find(r->scope.signature, name) < 0 && strcmp(name, "scratch") == 0)
        return take_scratch(r, argument, err);
    return take_tensor(r, name, argument, err);
}

static hone_status check_tensor_multiple(const hone_launch_reader *r, uint32_t index, int64_t multiple, hone_error *err)
{
    const uint32_t align = r->scope.call != NULL ? hone_call_align(r->scope.call, index) : 0;
    const hone_parameter *parameter = hone_signature_parameter(r->scope.signature, index);
    if (multiple > HONE_ORDINARY_ALIGN)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: '%s:%" PRId64 "': no tensor is known to be aligned to more than "
            "%d bytes",
            parameter->name, multiple, HONE_ORDINARY_ALIGN);
    if (align == 0 || align % (uint32_t)multiple == 0) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s is aligned to %u bytes, the kernel was compiled for multiples of %" PRId64,
        parameter->name, (unsigned)align, multiple);
}

static hone_status check_multiple(
    const hone_launch_reader *r, const hone_argument *argument, int64_t multiple, hone_error *err)
{
    if (argument->kind == HONE_ARGUMENT_TENSOR) return check_tensor_multiple(r, argument->value, multiple, err);
    const bool is_float = argument->type == HONE_ARGUMENT_F32 || argument->type == HONE_ARGUMENT_F64;
    if (argument->kind == HONE_ARGUMENT_SCALAR || is_float)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: ':%" PRId64 "' goes after a tensor or a whole number that the call key has", multiple);
    if (r->scope.call == NULL || (int64_t)argument->as.bits % multiple == 0) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "an argument is %" PRId64 ", the kernel was compiled for multiples of %" PRId64,
        (int64_t)argument->as.bits, multiple);
}

// After an argument: ":16", of which the code assumes that the argument is a multiple.
static hone_status pass_multiple(hone_launch_reader *r, const hone_argument *argument, hone_error *err)
{
    if (!hone_lexer_accept(&r->lexer, ":")) return HONE_OK;
    const bool is_whole = r->lexer.token.kind == HONE_TOKEN_INTEGER;
    const int64_t multiple = is_whole ? r->lexer.token.scalar.as.i64 : 0;
    if (multiple <= 0 || multiple > 4096)
        return hone_launch_expected(r, "a whole number from 1 to 4096 behind ':'", err);
    hone_lexer_next(&r->lexer);
    return check_multiple(r, argument, multiple, err);
}

// After "->": a result that the code returns.
static hone_status take_returned(const hone_launch_reader *r, hone_argument *argument, hone_error *err)
{
    const bool is_named = argument->type == HONE_ARGUMENT_POINTER && argument->size == sizeof(void *) &&
                          argument->kind != HONE_ARGUMENT_SCRATCH;
    if (!is_named || !hone_signature_parameter(r->scope.signature, argument->value)->is_result)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s: only results, which the code returns, may follow '->'", r->field);
    if (argument->kind == HONE_ARGUMENT_BITS)
        return hone_fail(err, HONE_UNSUPPORTED, where, "%s: a result that was left out is named after '->'", r->field);
    argument->kind = HONE_ARGUMENT_RETURNED;
    return HONE_OK;
}

// Skips "->", after which the returned results are listed. False if it is not next.
static bool begins_returned(hone_launch_reader *r)
{
    return r->has_values && hone_lexer_accept(&r->lexer, "->");
}

static hone_status read_item(hone_launch_reader *r, bool is_returned, hone_argument *argument, hone_error *err)
{
    memset(argument, 0, sizeof *argument);
    hone_status status = read_argument(r, argument, err);
    if (status == HONE_OK) status = pass_multiple(r, argument, err);
    if (status == HONE_OK && is_returned) status = take_returned(r, argument, err);
    const bool goes_on = r->has_values && !is_returned && hone_lexer_is(&r->lexer, "->");
    return status == HONE_OK && !goes_on ? hone_launch_comma(r, err) : status;
}

hone_status hone_launch_list(
    hone_launch_reader *r,
    const char *text,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err)
{
    hone_status status = HONE_OK;
    bool is_returned = false;
    *out_count = 0;
    hone_launch_start(r, "arguments", text, err);
    while (status == HONE_OK && !hone_launch_at_end(r)) {
        if (!is_returned && begins_returned(r)) is_returned = true;
        if (*out_count == HONE_MAX_ARGUMENTS)
            return hone_fail(err, HONE_UNSUPPORTED, where, "arguments: more than %d", HONE_MAX_ARGUMENTS);
        status = read_item(r, is_returned, &out[(*out_count)++], err);
    }
    return status;
}

hone_status hone_launch_values(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_buffer *objects,
    hone_error *err)
{
    hone_launch_reader r;
    *out_count = 0;
    hone_status status = hone_launch_open(&r, allocator, plan, err);
    r.has_local = rules != NULL && rules->has_local;
    r.has_maps = rules != NULL && rules->has_maps;
    r.has_values = rules != NULL && rules->has_values;
    r.objects = objects;
    if (status == HONE_OK) status = hone_launch_list(&r, hone_code_of_plan(plan)->arguments, out, out_count, err);
    hone_launch_close(&r);
    return status;
}

hone_status hone_launch_arguments(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err)
{
    return hone_launch_values(allocator, plan, rules, out, out_count, NULL, err);
}
