#include "platforms/launch.h"

#include "base/error.h"
#include "call/call.h"
#include "registry/origin.h"
#include "space/term.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char where[] = "platforms.launch";

// A plan's texts are read with the names of its space, call and device.
typedef struct reader {
    hone_term_scope scope;
    hone_space *space;
    hone_arena arena;
    hone_lexer lexer;
    const char *field; // "grid"
    bool has_local;    // local memory is an argument
    bool has_scratch;  // scratch memory is one: of a kernel that asks for some
} reader;

static hone_status open_reader(reader *r, const hone_allocator *allocator, const hone_plan *plan, hone_error *err)
{
    memset(r, 0, sizeof *r);
    r->arena.allocator = *allocator;
    r->has_local = plan->kernel->platform == HONE_OPENCL;
    hone_status status = hone_space_parse(*allocator, plan->kernel->space, &r->space, err);
    const hone_code *code = hone_code_of_plan(plan);
    r->has_scratch = code != NULL && code->scratch != NULL;
    r->scope = (hone_term_scope){.space = r->space, .config = plan->config, .call = plan->call, .device = plan->device};
    return status;
}

static void close_reader(reader *r)
{
    hone_arena_destroy(&r->arena);
    hone_space_release(&r->space);
}

static void start_field(reader *r, const char *field, const char *text, hone_error *err)
{
    r->field = field;
    hone_lexer_init(&r->lexer, hone_view_of(text), &r->arena, err);
}

static bool at_end(const reader *r)
{
    return r->lexer.token.kind == HONE_TOKEN_END;
}

static hone_status prefix_field(const reader *r, hone_status status, hone_error *err)
{
    return status == HONE_OK ? HONE_OK : hone_fail_prefix(err, status, "%s", r->field);
}

static hone_status fail_at(const reader *r, const char *expected, hone_error *err)
{
    return prefix_field(r, hone_lexer_fail(&r->lexer, err, where, expected), err);
}

static hone_status read_term(reader *r, hone_scalar *out, hone_error *err)
{
    return prefix_field(r, hone_term_read(&r->lexer, &r->scope, out, err), err);
}

// Behind an item: a comma and another one, or the end.
static hone_status pass_comma(reader *r, hone_error *err)
{
    if (at_end(r) || (hone_lexer_accept(&r->lexer, ",") && !at_end(r))) return HONE_OK;
    return fail_at(r, at_end(r) ? "something behind the ','" : "',' or the end", err);
}

// Grid and block ---------------------------------------------------------------------------------------------------

static hone_status read_count(reader *r, uint64_t least, uint64_t most, uint32_t *out, hone_error *err)
{
    hone_scalar value;
    hone_status status = read_term(r, &value, err);
    if (status != HONE_OK) return status;
    if (value.kind != HONE_SCALAR_INT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: an integer is asked for", r->field);
    if (value.as.i64 < (int64_t)least || value.as.i64 > (int64_t)most)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s is %" PRId64 ", and may be %" PRIu64 " to %" PRIu64, r->field,
            value.as.i64, least, most);
    *out = (uint32_t)value.as.i64;
    return HONE_OK;
}

// Up to three numbers; those left out are 1.
static hone_status read_extent(
    reader *r, const char *field, const char *text, const uint32_t most[3], uint32_t out[3], hone_error *err)
{
    hone_status status = HONE_OK;
    out[0] = out[1] = out[2] = 1;
    if (text == NULL) return HONE_OK;
    start_field(r, field, text, err);
    for (int axis = 0; status == HONE_OK && axis < 3 && (axis == 0 || !at_end(r)); axis++) {
        status = read_count(r, 1, most[axis], &out[axis], err);
        if (status == HONE_OK) status = pass_comma(r, err);
    }
    return status == HONE_OK && !at_end(r) ? fail_at(r, "at most three numbers", err) : status;
}

// Of every device that a driver of today knows; the device's own limits are asked when the code is loaded.
typedef struct limits {
    uint32_t grid[3], block[3], cluster[3], threads;
} limits;

static const limits of_cuda = {{INT32_MAX, 65535, 65535}, {1024, 1024, 64}, {16, 16, 16}, 1024};
static const limits of_opencl = {{INT32_MAX, INT32_MAX, INT32_MAX}, {65536, 65536, 65536}, {1, 1, 1}, 65536};

hone_status hone_launch_read(const hone_allocator *allocator, const hone_plan *plan, hone_launch *out, hone_error *err)
{
    const limits *most = plan->kernel->platform == HONE_OPENCL ? &of_opencl : &of_cuda;
    const hone_code *code = hone_code_of_plan(plan);
    reader r;
    memset(out, 0, sizeof *out);
    hone_status status = open_reader(&r, allocator, plan, err);
    if (status == HONE_OK) status = read_extent(&r, "grid", code->grid, most->grid, out->grid, err);
    if (status == HONE_OK) status = read_extent(&r, "block", code->block, most->block, out->block, err);
    if (status == HONE_OK) status = read_extent(&r, "cluster", code->cluster, most->cluster, out->cluster, err);
    if (status == HONE_OK && code->shared != NULL) {
        start_field(&r, "shared", code->shared, err);
        status = read_count(&r, 0, INT32_MAX, &out->shared_bytes, err);
        if (status == HONE_OK && !at_end(&r)) status = fail_at(&r, "the end", err);
    }
    if (status == HONE_OK && (uint64_t)out->block[0] * out->block[1] * out->block[2] > most->threads)
        status = hone_fail(
            err, HONE_UNSUPPORTED, where, "block is %u x %u x %u threads, and may have %u", (unsigned)out->block[0],
            (unsigned)out->block[1], (unsigned)out->block[2], (unsigned)most->threads);
    out->flags = code->flags;
    close_reader(&r);
    return status;
}

static hone_status read_scratch(reader *r, const char *text, size_t *out_bytes, hone_error *err)
{
    hone_scalar value;
    start_field(r, "scratch", text, err);
    hone_status status = read_term(r, &value, err);
    if (status == HONE_OK && !at_end(r)) status = fail_at(r, "the end", err);
    if (status != HONE_OK) return status;
    if (value.kind != HONE_SCALAR_INT || value.as.i64 < 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "scratch: a number of bytes is asked for");
    *out_bytes = (size_t)value.as.i64;
    return HONE_OK;
}

static hone_status find_scratch(const hone_argument *arguments, uint32_t count, uint32_t *out_index, hone_error *err)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (arguments[i].kind != HONE_ARGUMENT_SCRATCH) continue;
        if (out_index != NULL) *out_index = i;
        listed++;
    }
    if (listed == 1) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "scratch memory is asked for, and %u arguments are scratch: expected one",
        (unsigned)listed);
}

hone_status hone_launch_scratch(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_argument *arguments,
    uint32_t count,
    size_t *out_bytes,
    uint32_t *out_index,
    hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    reader r;
    *out_bytes = 0;
    if (code->scratch == NULL) return HONE_OK;
    hone_status status = open_reader(&r, allocator, plan, err);
    if (status == HONE_OK) status = read_scratch(&r, code->scratch, out_bytes, err);
    close_reader(&r);
    return status == HONE_OK ? find_scratch(arguments, count, out_index, err) : status;
}

// Arguments --------------------------------------------------------------------------------------------------------

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

static hone_status check_range(const reader *r, const hone_argument *argument, int64_t value, hone_error *err)
{
    static const struct {
        int64_t least, most;
    } ranges[] = {
        [HONE_ARGUMENT_I8] = {INT8_MIN, INT8_MAX},    [HONE_ARGUMENT_U8] = {0, UINT8_MAX},
        [HONE_ARGUMENT_I16] = {INT16_MIN, INT16_MAX}, [HONE_ARGUMENT_U16] = {0, UINT16_MAX},
        [HONE_ARGUMENT_I32] = {INT32_MIN, INT32_MAX}, [HONE_ARGUMENT_U32] = {0, UINT32_MAX},
        [HONE_ARGUMENT_I64] = {INT64_MIN, INT64_MAX}, [HONE_ARGUMENT_U64] = {0, INT64_MAX},
    };
    if (value >= ranges[argument->type].least && value <= ranges[argument->type].most) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s: %" PRId64 " does not fit %u bytes", r->field, value,
        (unsigned)argument->size);
}

static hone_status set_bits(const reader *r, hone_argument *argument, const hone_scalar *scalar, hone_error *err)
{
    bool is_float = scalar->kind == HONE_SCALAR_FLOAT;
    bool wants_float = argument->type == HONE_ARGUMENT_F32 || argument->type == HONE_ARGUMENT_F64;
    if (!is_float && scalar->kind != HONE_SCALAR_INT && scalar->kind != HONE_SCALAR_BOOL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: a number is asked for", r->field);
    if (is_float && !wants_float)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: an integer is asked for", r->field);
    hone_value value = is_float ? hone_of_float(scalar->as.f64) : hone_of_int(scalar->as.i64);
    argument->kind = HONE_ARGUMENT_BITS;
    argument->as.bits = hone_argument_bits(argument->type, &value);
    return is_float || wants_float ? HONE_OK : check_range(r, argument, scalar->as.i64, err);
}

// The call's scalar of role "ignore" that the expression consists of; -1: it is another expression.
static int ignored_scalar(const reader *r)
{
    hone_lexer ahead = r->lexer;
    if (ahead.token.kind != HONE_TOKEN_NAME || ahead.token.text.size >= HONE_NAME_SIZE) return -1;
    char name[HONE_NAME_SIZE] = {0};
    memcpy(name, ahead.token.text.data, ahead.token.text.size);
    hone_lexer_next(&ahead);
    if (!hone_lexer_is(&ahead, ")")) return -1;
    const hone_signature *signature = hone_call_signature(r->scope.call);
    int index = hone_signature_find(signature, name);
    bool ignored = index >= 0 && hone_signature_parameter(signature, (size_t)index)->role == HONE_ROLE_IGNORE;
    return ignored ? index : -1;
}

static hone_status read_scalar(reader *r, hone_argument *argument, hone_error *err)
{
    if (!hone_lexer_accept(&r->lexer, "(")) return fail_at(r, "'(' and an expression", err);
    int ignored = ignored_scalar(r);
    hone_scalar value;
    hone_status status = read_term(r, &value, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ")")) return fail_at(r, "')'", err);
    if (ignored < 0) return set_bits(r, argument, &value, err);
    argument->kind = HONE_ARGUMENT_SCALAR;
    argument->value = (uint32_t)ignored;
    return HONE_OK;
}

static hone_status read_local(reader *r, hone_argument *argument, hone_error *err)
{
    uint32_t bytes = 0;
    if (!hone_lexer_accept(&r->lexer, "(")) return fail_at(r, "'(' and a number of bytes", err);
    hone_status status = read_count(r, 1, INT32_MAX, &bytes, err);
    if (status != HONE_OK) return status;
    if (!hone_lexer_accept(&r->lexer, ")")) return fail_at(r, "')'", err);
    *argument =
        (hone_argument){.kind = HONE_ARGUMENT_LOCAL, .type = HONE_ARGUMENT_POINTER, .size = bytes, .as.bits = bytes};
    return HONE_OK;
}

static hone_status take_scratch(reader *r, hone_argument *argument, hone_error *err)
{
    if (!r->has_scratch)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: scratch memory is listed, and its size in 'scratch' is not said");
    *argument = (hone_argument){.kind = HONE_ARGUMENT_SCRATCH, .type = HONE_ARGUMENT_POINTER, .size = sizeof(void *)};
    return HONE_OK;
}

static hone_status read_argument(reader *r, hone_argument *argument, hone_error *err)
{
    char name[HONE_NAME_SIZE] = {0};
    hone_view text = r->lexer.token.text;
    if (r->lexer.token.kind != HONE_TOKEN_NAME || text.size >= sizeof name)
        return fail_at(r, "a tensor's name, or i32(...), i64(...), f32(...)", err);
    memcpy(name, text.data, text.size);
    hone_lexer_next(&r->lexer);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        argument->type = types[i].type;
        argument->size = types[i].size;
        return read_scalar(r, argument, err);
    }
    if (r->has_local && strcmp(name, "local") == 0) return read_local(r, argument, err);
    int index = hone_signature_find(hone_call_signature(r->scope.call), name);
    if (index < 0 && strcmp(name, "scratch") == 0) return take_scratch(r, argument, err);
    if (index < 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "arguments: '%s' is no tensor of the call, and no type", name);
    *argument = (hone_argument){
        .kind = HONE_ARGUMENT_TENSOR, .type = HONE_ARGUMENT_POINTER, .value = (uint32_t)index, .size = sizeof(void *)};
    // A tensor that was left out is a null pointer.
    const int32_t tag = hone_call_values(r->scope.call)[index].tag;
    if (tag == HONE_VALUE_NONE) argument->kind = HONE_ARGUMENT_BITS;
    if (tag == HONE_VALUE_NONE || tag == HONE_VALUE_TENSOR) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "arguments: '%s' is a scalar: write i32(%s), f32(%s)", name, name, name);
}

static hone_status check_tensor_multiple(const reader *r, uint32_t index, int64_t multiple, hone_error *err)
{
    const uint32_t align = hone_call_align(r->scope.call, index);
    const hone_parameter *parameter = hone_signature_parameter(hone_call_signature(r->scope.call), index);
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

static hone_status check_multiple(const reader *r, const hone_argument *argument, int64_t multiple, hone_error *err)
{
    if (argument->kind == HONE_ARGUMENT_TENSOR) return check_tensor_multiple(r, argument->value, multiple, err);
    const bool is_float = argument->type == HONE_ARGUMENT_F32 || argument->type == HONE_ARGUMENT_F64;
    if (argument->kind == HONE_ARGUMENT_SCALAR || is_float)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "arguments: ':%" PRId64 "' stands behind a tensor or a whole number that the call key has", multiple);
    if ((int64_t)argument->as.bits % multiple == 0) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "an argument is %" PRId64 ", the kernel was compiled for multiples of %" PRId64,
        (int64_t)argument->as.bits, multiple);
}

// Behind an argument: ":16", what the code takes for granted that it is a multiple of.
static hone_status pass_multiple(reader *r, const hone_argument *argument, hone_error *err)
{
    if (!hone_lexer_accept(&r->lexer, ":")) return HONE_OK;
    const bool is_whole = r->lexer.token.kind == HONE_TOKEN_INTEGER;
    const int64_t multiple = is_whole ? r->lexer.token.scalar.as.i64 : 0;
    if (multiple <= 0 || multiple > 4096) return fail_at(r, "a whole number from 1 to 4096 behind ':'", err);
    hone_lexer_next(&r->lexer);
    return check_multiple(r, argument, multiple, err);
}

hone_status hone_launch_arguments(
    const hone_allocator *allocator,
    const hone_plan *plan,
    hone_argument out[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err)
{
    reader r;
    *out_count = 0;
    hone_status status = open_reader(&r, allocator, plan, err);
    if (status == HONE_OK) start_field(&r, "arguments", hone_code_of_plan(plan)->arguments, err);
    while (status == HONE_OK && !at_end(&r)) {
        if (*out_count == HONE_MAX_ARGUMENTS) {
            status = hone_fail(err, HONE_UNSUPPORTED, where, "arguments: more than %d", HONE_MAX_ARGUMENTS);
            break;
        }
        hone_argument *argument = &out[(*out_count)++];
        memset(argument, 0, sizeof *argument);
        status = read_argument(&r, argument, err);
        if (status == HONE_OK) status = pass_multiple(&r, argument, err);
        if (status == HONE_OK) status = pass_comma(&r, err);
    }
    close_reader(&r);
    return status;
}

// Macros -----------------------------------------------------------------------------------------------------------

static void put_macro(void *ctx, hone_view name, const hone_scalar *value)
{
    hone_buffer *out = ctx;
    hone_buffer_text(out, "-D");
    hone_buffer_append(out, name.data, name.size);
    hone_buffer_char(out, '=');
    if (value->kind == HONE_SCALAR_TEXT)
        hone_buffer_append(out, value->as.text.data, value->as.text.size);
    else if (value->kind == HONE_SCALAR_FLOAT)
        hone_buffer_format(out, "%.17g", value->as.f64);
    else
        hone_buffer_format(out, "%" PRId64, value->kind == HONE_SCALAR_NONE ? 0 : value->as.i64);
    hone_buffer_char(out, '\0');
}

static hone_status read_pairs(
    reader *r,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const hone_scalar *value),
    void *ctx,
    hone_error *err)
{
    hone_status status = HONE_OK;
    start_field(r, field, text, err);
    while (status == HONE_OK && !at_end(r)) {
        hone_view name = r->lexer.token.text;
        hone_scalar value;
        if (r->lexer.token.kind != HONE_TOKEN_NAME) return fail_at(r, "a name", err);
        hone_lexer_next(&r->lexer);
        if (!hone_lexer_accept(&r->lexer, "=")) return fail_at(r, "'='", err);
        status = read_term(r, &value, err);
        if (status == HONE_OK) put(ctx, name, &value);
        if (status == HONE_OK) status = pass_comma(r, err);
    }
    return status;
}

hone_status hone_launch_pairs(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const hone_scalar *value),
    void *ctx,
    hone_error *err)
{
    reader r;
    hone_status status = open_reader(&r, allocator, plan, err);
    if (status == HONE_OK) status = read_pairs(&r, field, text, put, ctx, err);
    close_reader(&r);
    return status;
}

static void put_dtypes(const hone_call *call, hone_buffer *out)
{
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        const hone_dtype_info *info = tensor != NULL ? hone_dtype_find(tensor->dtype) : NULL;
        if (info == NULL) continue;
        hone_buffer_format(out, "-Dhone_%s_%s=1", hone_signature_parameter(signature, i)->name, info->name);
        hone_buffer_char(out, '\0');
    }
}

hone_status hone_launch_macros(
    const hone_allocator *allocator, const hone_plan *plan, hone_buffer *out, hone_error *err)
{
    reader r;
    hone_status status = open_reader(&r, allocator, plan, err);
    for (size_t i = 0; status == HONE_OK && i < hone_space_parameters(r.space); i++) {
        hone_scalar value = hone_term_parameter(r.space, plan->config, i);
        put_macro(out, hone_view_of(hone_space_parameter_name(r.space, i)), &value);
    }
    if (status == HONE_OK) put_dtypes(plan->call, out);
    const char *constants = hone_code_of_plan(plan)->constants;
    if (status == HONE_OK && constants != NULL) status = read_pairs(&r, "constants", constants, put_macro, out, err);
    close_reader(&r);
    return status == HONE_OK && out->failed ? hone_fail_memory(err, where) : status;
}
