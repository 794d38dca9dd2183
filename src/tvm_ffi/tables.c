#include "tvm_ffi/tables.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A text that grows. data NULL and failed: there was no memory.
typedef struct growing {
    char *data;
    size_t size, capacity;
    bool failed;
} growing;

static void append(void *ctx, const char *text, size_t size)
{
    growing *g = ctx;
    if (g->size + size + 1 > g->capacity) {
        const size_t capacity = 2 * (g->size + size + 1);
        char *more = g->failed ? NULL : realloc(g->data, capacity);
        g->failed = more == NULL;
        if (g->failed) return;
        g->data = more;
        g->capacity = capacity;
    }
    memcpy(g->data + g->size, text, size);
    g->size += size;
}

static void append_text(growing *g, const char *text)
{
    append(g, text, strlen(text));
}

// A text of JSON.
static void append_quoted(growing *g, const char *text)
{
    append_text(g, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        char escaped[8];
        const bool is_plain = (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\';
        const int size = snprintf(escaped, sizeof escaped, is_plain ? "%c" : "\\u%04x", (unsigned char)*at);
        append(g, escaped, (size_t)size);
    }
    append_text(g, "\"");
}

static void append_field(growing *g, const char *name, const char *value)
{
    append_text(g, name);
    append_quoted(g, value);
}

int hone_tvm_ffi_return_text(const char *text, size_t size, hone_value *result)
{
    const tvm_ffi_bytes bytes = {text, size};
    return hone_tvm_ffi_host()->make_text(&bytes, result);
}

static int return_grown(growing *g, hone_value *result)
{
    const int failed = g->failed ? hone_tvm_ffi_raise_words("MemoryError", "no memory for a text")
                                 : hone_tvm_ffi_return_text(g->data, g->size, result);
    free(g->data);
    return failed;
}

int hone_tvm_ffi_return_decision(const hone_call *call, const hone_decision *decision, hone_value *result)
{
    growing g = {.data = NULL};
    char time[64];
    append_field(&g, "{\"call\": ", hone_call_text(call));
    append_field(&g, ", \"kernel\": ", decision->kernel);
    append_field(&g, ", \"platform\": ", hone_platform_name(decision->platform));
    append_field(&g, ", \"backend\": ", hone_backend_name(decision->backend));
    append_text(&g, ", \"config\": ");
    append_text(&g, decision->config_json[0] != '\0' ? decision->config_json : "{}");
    append_field(&g, ", \"source\": ", hone_source_name(decision->source));
    append_text(&g, decision->verified ? ", \"verified\": true" : ", \"verified\": false");
    // The locale of the host is not JSON's.
    const long long tenths = llround(10 * decision->evidence.time_ns);
    snprintf(time, sizeof time, ", \"time_ns\": %lld.%lld}", tenths / 10, tenths % 10);
    append_text(&g, decision->evidence.time_ns > 0 ? time : ", \"time_ns\": null}");
    return return_grown(&g, result);
}

int hone_tvm_ffi_return_explanation(const hone_op *op, const hone_call *call, hone_value *result)
{
    growing g = {.data = NULL};
    hone_error err;
    const hone_status status = hone_explain(op, call, HONE_TEXT, append, &g, &err);
    if (status == HONE_OK) return return_grown(&g, result);
    free(g.data);
    return hone_tvm_ffi_raise(&err);
}
