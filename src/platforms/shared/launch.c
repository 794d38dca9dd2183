#include "platforms/shared/launch_reader.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "call/call.h"
#include "pack/pack.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char where[] = "platforms.launch";

hone_status hone_launch_open(
    hone_launch_reader *r, const hone_allocator *allocator, const hone_plan *plan, hone_error *err)
{
    memset(r, 0, sizeof *r);
    r->arena.allocator = *allocator;
    hone_status status = hone_space_parse(*allocator, plan->kernel->space, &r->space, err);
    const hone_code *code = hone_code_of_plan(plan);
    r->has_scratch = code != NULL && code->scratch != NULL;
    r->scope = (hone_term_scope){
        .space = r->space,
        .config = plan->config,
        .call = plan->call,
        .device = plan->device,
        .signature = hone_call_signature(plan->call)};
    return status;
}

void hone_launch_open_names(
    hone_launch_reader *r,
    const hone_allocator *allocator,
    const hone_pack_kernel *kernel,
    const hone_code *code,
    const hone_signature *signature)
{
    memset(r, 0, sizeof *r);
    r->arena.allocator = *allocator;
    r->has_scratch = code->scratch != NULL;
    r->scope = (hone_term_scope){.space = kernel->space, .signature = signature};
}

void hone_launch_close(hone_launch_reader *r)
{
    hone_arena_destroy(&r->arena);
    hone_space_release(&r->space);
}

void hone_launch_start(hone_launch_reader *r, const char *field, const char *text, hone_error *err)
{
    r->field = field;
    hone_lexer_init(&r->lexer, hone_view_of(text), &r->arena, err);
}

bool hone_launch_at_end(const hone_launch_reader *r)
{
    return r->lexer.token.kind == HONE_TOKEN_END;
}

static hone_status prefix_field(const hone_launch_reader *r, hone_status status, hone_error *err)
{
    return status == HONE_OK ? HONE_OK : hone_fail_prefix(err, status, "%s", r->field);
}

hone_status hone_launch_expected(const hone_launch_reader *r, const char *expected, hone_error *err)
{
    return prefix_field(r, hone_lexer_fail(&r->lexer, err, where, expected), err);
}

hone_status hone_launch_term(hone_launch_reader *r, hone_scalar *out, hone_error *err)
{
    return prefix_field(r, hone_term_read(&r->lexer, &r->scope, out, err), err);
}

hone_status hone_launch_comma(hone_launch_reader *r, hone_error *err)
{
    if (hone_launch_at_end(r) || (hone_lexer_accept(&r->lexer, ",") && !hone_launch_at_end(r))) return HONE_OK;
    return hone_launch_expected(r, hone_launch_at_end(r) ? "something behind the ','" : "',' or the end", err);
}

// Grid and block ------------------------------------------------------------------------------------------------------

hone_status hone_launch_count(hone_launch_reader *r, uint64_t least, uint64_t most, uint32_t *out, hone_error *err)
{
    hone_scalar value;
    hone_status status = hone_launch_term(r, &value, err);
    if (status != HONE_OK) return status;
    if (value.kind != HONE_SCALAR_INT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s: expected an integer", r->field);
    if (value.as.i64 < (int64_t)least || value.as.i64 > (int64_t)most)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "%s is %" PRId64 ", and may be %" PRIu64 " to %" PRIu64, r->field,
            value.as.i64, least, most);
    *out = (uint32_t)value.as.i64;
    return HONE_OK;
}

hone_status hone_launch_extent(
    hone_launch_reader *r,
    const char *field,
    const char *text,
    const uint32_t most[3],
    uint32_t out[3],
    hone_error *err)
{
    hone_status status = HONE_OK;
    out[0] = out[1] = out[2] = 1;
    if (text == NULL) return HONE_OK;
    hone_launch_start(r, field, text, err);
    for (int axis = 0; status == HONE_OK && axis < 3 && (axis == 0 || !hone_launch_at_end(r)); axis++) {
        status = hone_launch_count(r, 1, most[axis], &out[axis], err);
        if (status == HONE_OK) status = hone_launch_comma(r, err);
    }
    return status == HONE_OK && !hone_launch_at_end(r) ? hone_launch_expected(r, "at most three numbers", err) : status;
}

hone_status hone_launch_shared(hone_launch_reader *r, const char *text, uint32_t *out_bytes, hone_error *err)
{
    if (text == NULL) return HONE_OK;
    hone_launch_start(r, "shared", text, err);
    hone_status status = hone_launch_count(r, 0, INT32_MAX, out_bytes, err);
    return status == HONE_OK && !hone_launch_at_end(r) ? hone_launch_expected(r, "the end", err) : status;
}

static hone_status check_block(
    const hone_launch_rules *rules, const char *field, const uint32_t block[3], hone_error *err)
{
    if ((uint64_t)block[0] * block[1] * block[2] <= rules->threads) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s is %u x %u x %u threads, and may have %u", field, (unsigned)block[0],
        (unsigned)block[1], (unsigned)block[2], (unsigned)rules->threads);
}

static hone_status read_finish(
    hone_launch_reader *r, const hone_code *code, const hone_launch_rules *rules, hone_launch *out, hone_error *err)
{
    if (code->finish == NULL) return HONE_OK;
    hone_status status = hone_launch_extent(r, "finish_grid", code->finish_grid, rules->grid, out->finish_grid, err);
    if (status == HONE_OK)
        status = hone_launch_extent(r, "finish_block", code->finish_block, rules->block, out->finish_block, err);
    return status == HONE_OK ? check_block(rules, "finish_block", out->finish_block, err) : status;
}

hone_status hone_launch_read(
    const hone_allocator *allocator,
    const hone_plan *plan,
    const hone_launch_rules *rules,
    hone_launch *out,
    hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    hone_launch_reader r;
    hone_assert(rules != NULL && code != NULL);
    memset(out, 0, sizeof *out);
    hone_status status = hone_launch_open(&r, allocator, plan, err);
    if (status == HONE_OK) status = hone_launch_extent(&r, "grid", code->grid, rules->grid, out->grid, err);
    if (status == HONE_OK) status = hone_launch_extent(&r, "block", code->block, rules->block, out->block, err);
    if (status == HONE_OK) status = hone_launch_extent(&r, "cluster", code->cluster, rules->cluster, out->cluster, err);
    if (status == HONE_OK) status = hone_launch_shared(&r, code->shared, &out->shared_bytes, err);
    if (status == HONE_OK) status = check_block(rules, "block", out->block, err);
    if (status == HONE_OK) status = read_finish(&r, code, rules, out, err);
    out->flags = code->flags;
    hone_launch_close(&r);
    return status;
}

static hone_status read_scratch(hone_launch_reader *r, const char *text, size_t *out_bytes, hone_error *err)
{
    hone_scalar value;
    hone_launch_start(r, "scratch", text, err);
    hone_status status = hone_launch_term(r, &value, err);
    if (status == HONE_OK && !hone_launch_at_end(r)) status = hone_launch_expected(r, "the end", err);
    if (status != HONE_OK) return status;
    if (value.kind != HONE_SCALAR_INT || value.as.i64 < 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "scratch: expected a number of bytes");
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
        err, HONE_INVALID_ARGUMENT, where, "scratch memory is requested, but %u arguments are scratch, expected one",
        (unsigned)listed);
}

hone_status hone_launch_scratch_of(
    hone_launch_reader *r,
    const char *text,
    const hone_argument *arguments,
    uint32_t count,
    size_t *out_bytes,
    uint32_t *out_index,
    hone_error *err)
{
    hone_status status = read_scratch(r, text, out_bytes, err);
    return status == HONE_OK ? find_scratch(arguments, count, out_index, err) : status;
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
    hone_launch_reader r;
    *out_bytes = 0;
    if (code->scratch == NULL) return HONE_OK;
    hone_status status = hone_launch_open(&r, allocator, plan, err);
    if (status == HONE_OK)
        status = hone_launch_scratch_of(&r, code->scratch, arguments, count, out_bytes, out_index, err);
    hone_launch_close(&r);
    return status;
}

// Neither struct has padding, and arguments are zeroed before they are filled.
uint64_t hone_launch_digest(uint64_t code, const hone_launch *launch, const hone_argument *arguments, uint32_t count)
{
    _Static_assert(sizeof(hone_launch) == 17 * sizeof(uint32_t), "no padding");
    _Static_assert(sizeof(hone_argument) == 4 * sizeof(uint32_t) + sizeof(uint64_t), "no padding");
    hone_assert(count <= HONE_MAX_ARGUMENTS);
    const uint64_t launched = hone_hash64_add(code, launch, sizeof *launch);
    return hone_hash64_add(launched, arguments, count * sizeof *arguments);
}

// Sources -------------------------------------------------------------------------------------------------------------

hone_status hone_launch_source(const hone_plan *plan, hone_buffer *out, hone_error *err)
{
    const hone_code *code = hone_code_of_plan(plan);
    const hone_pack_kernel *pack = plan->kernel->code->pack;
    hone_assert(code != NULL); // hone_platform_prepare has refused configs without code
    if (pack != NULL) return hone_pack_read_file(hone_pack_variant_of(pack, plan->config)->file, out, err);
    hone_assert(code->source != NULL);
    hone_buffer_text(out, code->source);
    return out->failed ? hone_fail_memory(err, where) : HONE_OK;
}

// Macros --------------------------------------------------------------------------------------------------------------

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

hone_status hone_launch_read_pairs(
    hone_launch_reader *r,
    const char *field,
    const char *text,
    void (*put)(void *ctx, hone_view name, const hone_scalar *value),
    void *ctx,
    hone_error *err)
{
    hone_status status = HONE_OK;
    hone_launch_start(r, field, text, err);
    while (status == HONE_OK && !hone_launch_at_end(r)) {
        hone_view name = r->lexer.token.text;
        hone_scalar value;
        if (r->lexer.token.kind != HONE_TOKEN_NAME) return hone_launch_expected(r, "a name", err);
        hone_lexer_next(&r->lexer);
        if (!hone_lexer_accept(&r->lexer, "=")) return hone_launch_expected(r, "'='", err);
        status = hone_launch_term(r, &value, err);
        if (status == HONE_OK) put(ctx, name, &value);
        if (status == HONE_OK) status = hone_launch_comma(r, err);
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
    hone_launch_reader r;
    hone_status status = hone_launch_open(&r, allocator, plan, err);
    if (status == HONE_OK) status = hone_launch_read_pairs(&r, field, text, put, ctx, err);
    hone_launch_close(&r);
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
    hone_launch_reader r;
    hone_status status = hone_launch_open(&r, allocator, plan, err);
    for (size_t i = 0; status == HONE_OK && i < hone_space_parameters(r.space); i++) {
        hone_scalar value = hone_term_parameter(r.space, plan->config, i);
        put_macro(out, hone_view_of(hone_space_parameter_name(r.space, i)), &value);
    }
    if (status == HONE_OK) put_dtypes(plan->call, out);
    const char *constants = hone_code_of_plan(plan)->constants;
    if (status == HONE_OK && constants != NULL)
        status = hone_launch_read_pairs(&r, "constants", constants, put_macro, out, err);
    hone_launch_close(&r);
    return status == HONE_OK && out->failed ? hone_fail_memory(err, where) : status;
}
