// Call text: how people write a call, and how hone prints every call.
//   flash_attention(bf16[1,2048,32,128], bf16[1,2048,8,128], bf16[1,2048,8,128], causal=true) @cuda:0
#include "base/error.h"
#include "call/bound.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "call.parse";

// ---- printing

void hone_call_layout(const hone_tensor *tensor, int64_t out_strides[HONE_MAX_RANK])
{
    hone_tensor_strides(tensor, out_strides);
    // The stride of a dim of size 1 is never used: written as in a dense tensor, so that one layout has one text.
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1) continue;
        if (i == tensor->ndim - 1)
            out_strides[i] = 1;
        else if (__builtin_mul_overflow(out_strides[i + 1], tensor->shape[i + 1], &out_strides[i]))
            out_strides[i] = 0;
    }
}

static void append_tensor(hone_buffer *out, const hone_tensor *tensor, uint32_t align)
{
    int64_t strides[HONE_MAX_RANK];
    const bool dense = hone_tensor_is_row_major(tensor);
    hone_buffer_text(out, hone_dtype_find(tensor->dtype)->name);
    hone_buffer_text(out, "[");
    hone_buffer_integers(out, tensor->shape, (size_t)tensor->ndim);
    hone_buffer_text(out, "]");
    if (dense && align == 0) return;
    hone_buffer_text(out, "{");
    if (!dense) {
        hone_call_layout(tensor, strides);
        hone_buffer_text(out, "strides=");
        hone_buffer_integers(out, strides, (size_t)tensor->ndim);
    }
    if (align != 0) hone_buffer_format(out, "%salign=%u", dense ? "" : ";", align);
    hone_buffer_text(out, "}");
}

static void append_arguments(hone_buffer *out, const hone_call *call)
{
    bool named = false, first = true;
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_parameter *p = &call->signature->parameters[i].shown;
        const hone_value *value = &call->values[i];
        if (p->is_result) continue;
        if (hone_call_is_default(call, i)) {
            named = true;
            continue;
        }
        hone_buffer_text(out, first ? "" : ", ");
        first = false;
        if (named || p->keyword_only) {
            hone_buffer_text(out, p->name);
            hone_buffer_text(out, "=");
        }
        if (value->tag == HONE_VALUE_TENSOR)
            append_tensor(out, value->as.tensor, call->aligns[i]);
        else
            hone_append_literal(out, value);
    }
}

hone_status hone_call_write_text(hone_call *call, hone_error *err)
{
    hone_buffer out;
    hone_buffer_init(&out, call->arena.allocator);
    hone_buffer_text(&out, call->signature->name);
    if (strcmp(call->signature->version, "1") != 0) hone_buffer_format(&out, "@v%s", call->signature->version);
    hone_buffer_text(&out, "(");
    append_arguments(&out, call);
    hone_buffer_text(&out, ")");
    if (call->device.type != HONE_DEVICE_CPU || call->device.id != 0)
        hone_buffer_format(&out, " @%s:%d", hone_device_type_name(call->device.type), call->device.id);
    if (!out.failed) call->text = hone_arena_text(&call->arena, out.data, out.size);
    hone_buffer_deinit(&out);
    return call->text != NULL ? HONE_OK : hone_fail_memory(err, "call.bind");
}

// ---- reading

typedef struct reader {
    hone_lexer lexer;
    hone_arena arena;
    hone_signature *signature;
    hone_error *err;
    hone_value values[HONE_MAX_VALUES];
    bool given[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    uint32_t aligns[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
    hone_device device;
} reader;

static hone_status expected(reader *r, const char *what)
{
    return hone_lexer_fail(&r->lexer, r->err, where, what);
}

static hone_status expect(reader *r, const char *symbol, const char *what)
{
    return hone_lexer_accept(&r->lexer, symbol) ? HONE_OK : expected(r, what);
}

static hone_status read_integer(reader *r, int64_t *out)
{
    const bool negative = hone_lexer_accept(&r->lexer, "-");
    if (r->lexer.token.kind != HONE_TOKEN_INTEGER) return expected(r, "an integer");
    *out = negative ? -r->lexer.token.scalar.as.i64 : r->lexer.token.scalar.as.i64;
    hone_lexer_next(&r->lexer);
    return HONE_OK;
}

// Integers between commas, at most HONE_MAX_RANK.
static hone_status read_integers(reader *r, int64_t *values, int32_t *out_count)
{
    *out_count = 0;
    do {
        if (*out_count == HONE_MAX_RANK) return expected(r, "the end of the list (at most 8 dims)");
        hone_status status = read_integer(r, &values[*out_count]);
        if (status != HONE_OK) return status;
        ++*out_count;
    } while (hone_lexer_accept(&r->lexer, ","));
    return HONE_OK;
}

static hone_status read_align(reader *r, size_t i)
{
    int64_t align;
    hone_status status = read_integer(r, &align);
    if (status != HONE_OK) return status;
    if (align <= 0 || align > 1 << 30 || (align & (align - 1)) != 0)
        return expected(r, "an alignment that is a power of two before this");
    r->aligns[i] = align >= HONE_ORDINARY_ALIGN ? 0 : (uint32_t)align;
    return HONE_OK;
}

static hone_status read_layout(reader *r, size_t i)
{
    hone_status status;
    do {
        if (hone_lexer_accept(&r->lexer, "strides")) {
            int32_t count = 0;
            status = expect(r, "=", "'='");
            if (status == HONE_OK) status = read_integers(r, r->strides[i], &count);
            if (status == HONE_OK && count != r->tensors[i].ndim) status = expected(r, "one stride a dim before this");
            r->tensors[i].strides = r->strides[i];
        } else if (hone_lexer_accept(&r->lexer, "align")) {
            status = expect(r, "=", "'='");
            if (status == HONE_OK) status = read_align(r, i);
        } else {
            status = expected(r, "'strides=' or 'align='");
        }
    } while (status == HONE_OK && hone_lexer_accept(&r->lexer, ";"));
    return status == HONE_OK ? expect(r, "}", "';' or '}'") : status;
}

static hone_status read_array(reader *r, size_t i, const hone_dtype_info *dtype)
{
    hone_tensor *tensor = &r->tensors[i];
    hone_status status = HONE_OK;
    hone_lexer_next(&r->lexer); // the dtype
    hone_lexer_next(&r->lexer); // "["
    *tensor = (hone_tensor){.dtype = dtype->dtype, .shape = r->shapes[i]};
    if (!hone_lexer_is(&r->lexer, "]")) status = read_integers(r, r->shapes[i], &tensor->ndim);
    if (status == HONE_OK) status = expect(r, "]", "',' or ']'");
    if (status == HONE_OK && hone_lexer_accept(&r->lexer, "{")) status = read_layout(r, i);
    r->values[i] = hone_of_tensor(tensor);
    return status;
}

static bool at_array(const reader *r, const hone_dtype_info **out)
{
    char name[32];
    hone_lexer ahead = r->lexer;
    ahead.err = NULL;
    hone_lexer_next(&ahead);
    if (r->lexer.token.kind != HONE_TOKEN_NAME || !hone_lexer_is(&ahead, "[")) return false;
    *out = NULL;
    if (r->lexer.token.text.size < sizeof name) {
        memcpy(name, r->lexer.token.text.data, r->lexer.token.text.size);
        name[r->lexer.token.text.size] = '\0';
        *out = hone_dtype_by_name(name);
    }
    return true;
}

static hone_status read_value(reader *r, size_t i)
{
    const hone_dtype_info *dtype;
    r->given[i] = true;
    if (!at_array(r, &dtype)) return hone_literal_parse(&r->lexer, &r->values[i], r->err);
    return dtype != NULL ? read_array(r, i, dtype) : expected(r, "a dtype (f32, bf16, i64, ...)");
}

static int find_parameter(const reader *r, hone_view name)
{
    for (size_t i = 0; i < r->signature->count; i++)
        if (hone_view_is(name, r->signature->parameters[i].shown.name)) return (int)i;
    return -1;
}

static hone_status read_named(reader *r)
{
    const int i = find_parameter(r, r->lexer.token.text);
    if (i < 0) return expected(r, "the name of a parameter");
    if (r->signature->parameters[i].shown.is_result) return expected(r, "a parameter (results are not written)");
    if (r->given[i]) return expected(r, "another parameter (this one has its value)");
    hone_lexer_next(&r->lexer);
    hone_lexer_next(&r->lexer);
    return read_value(r, (size_t)i);
}

static bool at_named(const reader *r)
{
    hone_lexer ahead = r->lexer;
    ahead.err = NULL;
    hone_lexer_next(&ahead);
    return r->lexer.token.kind == HONE_TOKEN_NAME && hone_lexer_is(&ahead, "=");
}

static hone_status read_arguments(reader *r)
{
    size_t next = 0;
    bool named = false;
    hone_status status = expect(r, "(", "'('");
    for (bool first = true; status == HONE_OK && !hone_lexer_accept(&r->lexer, ")"); first = false) {
        if (!first) status = expect(r, ",", "',' or ')'");
        if (status != HONE_OK) break;
        named = named || at_named(r);
        const bool positional = next < r->signature->count && !r->signature->parameters[next].shown.is_result &&
                                !r->signature->parameters[next].shown.keyword_only;
        if (named)
            status = at_named(r) ? read_named(r) : expected(r, "'name=' (what follows a named value is named)");
        else
            status = positional ? read_value(r, next++)
                                : expected(r, "')' or 'name=' (all positional parameters have their values)");
    }
    return status;
}

static hone_status read_device(reader *r)
{
    r->device = (hone_device){HONE_DEVICE_CPU, 0};
    if (!hone_lexer_accept(&r->lexer, "@")) return HONE_OK;
    r->device.type = r->lexer.token.kind == HONE_TOKEN_NAME ? hone_device_type_by_name(r->lexer.token.text) : 0;
    if (r->device.type == 0) return expected(r, "a device: cpu, cuda:0, cuda_host, opencl, metal, rocm or tpu");
    hone_lexer_next(&r->lexer);
    if (!hone_lexer_accept(&r->lexer, ":")) return HONE_OK;
    int64_t id;
    hone_status status = read_integer(r, &id);
    if (status != HONE_OK) return status;
    if (id < 0 || id > INT32_MAX) return expected(r, "a device number from 0 on before this");
    r->device.id = (int32_t)id;
    return HONE_OK;
}

static hone_status check_name(reader *r, const char *what)
{
    const hone_view given = r->lexer.token.text;
    hone_buffer a, b;
    hone_buffer_init(&a, r->arena.allocator);
    hone_buffer_init(&b, r->arena.allocator);
    hone_text_lower(&a, given.data, given.size);
    hone_text_lower(&b, r->signature->name, strlen(r->signature->name));
    hone_status status = HONE_OK;
    if (a.failed || b.failed)
        status = hone_fail_memory(r->err, where);
    else if (strcmp(hone_buffer_string(&a), hone_buffer_string(&b)) != 0)
        status = expected(r, what);
    hone_buffer_deinit(&a);
    hone_buffer_deinit(&b);
    return status;
}

static hone_status read_name(reader *r)
{
    char what[160];
    hone_view version;
    snprintf(what, sizeof what, "the name '%.80s'", r->signature->name);
    if (r->lexer.token.kind != HONE_TOKEN_NAME) return expected(r, what);
    hone_status status = check_name(r, what);
    if (status != HONE_OK) return status;
    hone_lexer_next(&r->lexer);
    snprintf(what, sizeof what, "the version '@v%.80s' or none", r->signature->version);
    if (!hone_version_parse(&r->lexer, &version)) return expected(r, what);
    return version.size == 0 || hone_view_is(version, r->signature->version) ? HONE_OK : expected(r, what);
}

static hone_status read_all(reader *r)
{
    hone_status status = read_name(r);
    if (status == HONE_OK) status = read_arguments(r);
    if (status == HONE_OK) status = read_device(r);
    if (status == HONE_OK && r->lexer.token.kind != HONE_TOKEN_END)
        status = expected(r, "'@' and a device, or the end");
    for (size_t i = 0; i < r->signature->count; i++)
        r->tensors[i].device = r->device;
    return status;
}

static hone_status build(reader *r, hone_call **out)
{
    const hone_call_source source = {
        .values = r->values, .count = r->signature->count, .given = r->given, .aligns = r->aligns, .describe = true};
    return hone_call_build(r->arena.allocator, r->signature, &source, out, r->err);
}

hone_status hone_call_parse(
    hone_allocator allocator, hone_signature *signature, const char *text, hone_call **out, hone_error *err)
{
    if (signature == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the signature or out is NULL");
    }
    *out = NULL;
    allocator = hone_allocator_given(allocator);
    if (text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "no text, expected '%s(...)'", signature->name);
    reader *r = hone_alloc(&allocator, sizeof *r);
    if (r == NULL) return hone_fail_memory(err, where);
    r->arena.allocator = allocator;
    r->signature = signature;
    r->err = err;
    hone_lexer_init(&r->lexer, hone_view_of(text), &r->arena, NULL);
    hone_status status = read_all(r);
    if (status != HONE_OK)
        status = hone_fail_prefix(err, status, "call '%.200s'", text);
    else
        status = build(r, out);
    hone_arena_destroy(&r->arena);
    hone_free(&allocator, r);
    return status;
}

static bool copy_view(hone_view view, char *out, size_t size)
{
    if (view.size >= size) return false;
    memcpy(out, view.data, view.size);
    out[view.size] = '\0';
    return true;
}

static hone_status fail_long(const char *what, hone_view text, size_t size, hone_error *err)
{
    const size_t shown = text.size < 80 ? text.size : 80;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "the %s '%.*s%s' has %zu bytes, and may have %zu", what, (int)shown,
        text.data, shown < text.size ? "..." : "", text.size, size - 1);
}

hone_status hone_call_text_name(
    const char *text, char *out_name, size_t name_size, char *out_version, size_t version_size, hone_error *err)
{
    // Names have no escapes: the lexer's arena is only used for strings, of which the first three tokens are none.
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    hone_view version;
    hone_lexer_init(&lexer, hone_view_of(text), &arena, NULL);
    const hone_view name = lexer.token.text;
    hone_status status = HONE_OK;
    if (lexer.token.kind != HONE_TOKEN_NAME) {
        status = hone_lexer_fail(&lexer, err, where, "an algorithm's name");
    } else {
        hone_lexer_next(&lexer);
        if (!hone_version_parse(&lexer, &version))
            status = hone_lexer_fail(&lexer, err, where, "a version, '@v' and letters");
        else if (!copy_view(name, out_name, name_size))
            status = fail_long("name", name, name_size, err);
        else if (out_version != NULL && !copy_view(version, out_version, version_size))
            status = fail_long("version", version, version_size, err);
    }
    hone_arena_destroy(&arena);
    return status;
}
