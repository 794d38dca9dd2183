// Every line of StableHLO has the shapes of one call. So a source has ${...} in their places.
#include "platforms/xla/instance.h"

#include "base/error.h"
#include "hone/describe.h"
#include "space/term.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "xla.text";

enum { LONGEST = 256 };

static const hone_tensor *tensor_named(const hone_call *call, const char *name, size_t size)
{
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const char *known = hone_signature_parameter(signature, i)->name;
        if (strlen(known) == size && memcmp(known, name, size) == 0) return hone_call_tensor(call, i);
    }
    return NULL;
}

// Replaces ${x.type} and ${x.element}. False if the text is neither.
static bool put_type(const hone_call *call, const char *text, hone_buffer *out)
{
    const char *dot = strchr(text, '.');
    if (dot == NULL || (strcmp(dot, ".type") != 0 && strcmp(dot, ".element") != 0)) return false;
    const hone_tensor *tensor = tensor_named(call, text, (size_t)(dot - text));
    const hone_dtype_info *info = tensor != NULL ? hone_dtype_find(tensor->dtype) : NULL;
    if (info == NULL) return false;
    for (int32_t i = 0; dot[1] == 't' && i < tensor->ndim; i++)
        hone_buffer_format(out, "%" PRId64 "x", tensor->shape[i]);
    hone_buffer_text(out, info->mlir_name);
    return true;
}

static hone_status put_scalar(const hone_scalar *value, const char *text, hone_buffer *out, hone_error *err)
{
    if (value->kind == HONE_SCALAR_TEXT)
        hone_buffer_append(out, value->as.text.data, value->as.text.size);
    else if (value->kind == HONE_SCALAR_BOOL)
        hone_buffer_text(out, value->as.i64 != 0 ? "true" : "false");
    else if (value->kind == HONE_SCALAR_FLOAT && isfinite(value->as.f64))
        hone_buffer_format(out, "%.17e", value->as.f64); // floating-point numbers of MLIR have a point
    else if (value->kind == HONE_SCALAR_INT)
        hone_buffer_format(out, "%" PRId64, value->as.i64);
    else
        return hone_fail(err, HONE_UNSUPPORTED, where, "${%s} is nothing that StableHLO could be given", text);
    return HONE_OK;
}

static hone_status put_expression(
    const hone_allocator *allocator,
    const hone_term_scope *scope,
    const char *begin,
    size_t size,
    hone_buffer *out,
    hone_error *err)
{
    char text[LONGEST];
    hone_scalar value;
    if (size >= sizeof text)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "${%.20s...} is longer than %d bytes", begin, (int)LONGEST);
    memcpy(text, begin, size);
    text[size] = '\0';
    if (put_type(scope->call, text, out)) return HONE_OK;
    hone_status status = hone_term_of(*allocator, text, scope, &value, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "${%s}", text);
    return put_scalar(&value, text, out, err);
}

static hone_status expand(
    const hone_allocator *allocator,
    const hone_term_scope *scope,
    const char *source,
    hone_buffer *out,
    hone_error *err)
{
    hone_status status = HONE_OK;
    for (const char *at = source; status == HONE_OK;) {
        const char *begin = strstr(at, "${");
        if (begin == NULL) {
            hone_buffer_text(out, at);
            break;
        }
        const char *end = strchr(begin, '}');
        if (end == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "'%.40s' has no '}' behind it", begin);
        hone_buffer_append(out, at, (size_t)(begin - at));
        status = put_expression(allocator, scope, begin + 2, (size_t)(end - begin - 2), out, err);
        at = end + 1;
    }
    return status == HONE_OK && out->failed ? hone_fail_memory(err, where) : status;
}

hone_status hone_xla_expand(
    const hone_allocator *allocator, const hone_plan *plan, const char *source, hone_buffer *out, hone_error *err)
{
    hone_space *space = NULL;
    hone_status status = hone_space_parse(*allocator, plan->kernel->space, &space, err);
    const hone_term_scope scope = {.space = space, .config = plan->config, .call = plan->call, .device = plan->device};
    if (status == HONE_OK) status = expand(allocator, &scope, source, out, err);
    hone_space_release(&space);
    return status;
}
