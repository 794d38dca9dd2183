// The functions that libhone_ffi.so exports: hone_run, hone_bind, hone_decide, hone_tune, hone_explain.
#include "tvm_ffi/plans.h"
#include "tvm_ffi/tables.h"

#include <string.h>

#define EXPORTED(name)                                                                                                 \
    __attribute__((visibility("default"))) int __tvm_ffi_##name(                                                       \
        void *self, const hone_value *arguments, int32_t count, hone_value *result);                                   \
    int __tvm_ffi_##name(void *self, const hone_value *arguments, int32_t count, hone_value *result)

// A call that is looked at and not made: an algorithm's name and its values, or a call's text alone.
typedef struct described {
    const hone_op *op;
    hone_call *call;
} described;

static int begin(hone_value *result)
{
    *result = hone_of_none();
    return hone_tvm_ffi_host() != NULL ? 0 : -1;
}

static int describe_text(const char *text, described *out)
{
    char name[HONE_NAME_SIZE], version[16], whole[sizeof name + sizeof version];
    hone_error err;
    hone_status status = hone_call_text_name(text, name, sizeof name, version, sizeof version, &err);
    if (status != HONE_OK) return hone_tvm_ffi_raise(&err);
    strcpy(whole, name);
    strcat(whole, version);
    if (hone_tvm_ffi_find(whole, &out->op) != 0) return -1;
    status = hone_call_parse(hone_allocator_system(), hone_op_signature(out->op), text, &out->call, &err);
    return status == HONE_OK ? 0 : hone_tvm_ffi_raise(&err);
}

static int describe(const char *function, const hone_value *arguments, int32_t count, described *out)
{
    char room[8];
    hone_tvm_ffi_call call;
    const char *text = count == 1 ? hone_tvm_ffi_text(&arguments[0], room) : NULL;
    *out = (described){.op = NULL};
    if (text != NULL && strchr(text, '(') != NULL) return describe_text(text, out);
    if (hone_tvm_ffi_read(function, arguments, count, &call) != 0) return -1;
    out->op = call.op;
    return hone_tvm_ffi_describe(&call, &out->call);
}

EXPORTED(hone_run)
{
    hone_tvm_ffi_call call;
    hone_error err;
    (void)self;
    if (begin(result) != 0 || hone_tvm_ffi_read("hone_run", arguments, count, &call) != 0) return -1;
    if (hone_tvm_ffi_make_results(&call) != 0) return -1;
    if (hone_run(call.op, call.values, call.count, call.executes, &err) == HONE_OK)
        return hone_tvm_ffi_return_results(&call, result);
    hone_tvm_ffi_drop_results(&call);
    return hone_tvm_ffi_raise(&err);
}

EXPORTED(hone_bind)
{
    hone_tvm_ffi_call call;
    (void)self;
    if (begin(result) != 0 || hone_tvm_ffi_read("hone_bind", arguments, count, &call) != 0) return -1;
    return hone_tvm_ffi_make_plan(&call, result);
}

EXPORTED(hone_decide)
{
    described d;
    hone_decision decision;
    hone_error err;
    (void)self;
    if (begin(result) != 0 || describe("hone_decide", arguments, count, &d) != 0) return -1;
    const int failed = hone_decide_call(d.op, d.call, &decision, &err) != HONE_OK
                           ? hone_tvm_ffi_raise(&err)
                           : hone_tvm_ffi_return_decision(d.call, &decision, result);
    hone_call_release(&d.call);
    return failed;
}

EXPORTED(hone_explain)
{
    described d;
    (void)self;
    if (begin(result) != 0 || describe("hone_explain", arguments, count, &d) != 0) return -1;
    const int failed = hone_tvm_ffi_return_explanation(d.op, d.call, result);
    hone_call_release(&d.call);
    return failed;
}

static int tune(const described *d, double seconds, hone_value *result)
{
    const hone_tune_options options = {.struct_size = sizeof options, .seconds = seconds};
    hone_result *tuned = NULL;
    char *text = NULL;
    hone_error err;
    hone_status status = hone_tune(d->op, d->call, &options, &tuned, &err);
    if (status == HONE_OK) status = hone_result_json(tuned, &text, &err);
    hone_result_release(&tuned);
    if (status != HONE_OK) return hone_tvm_ffi_raise(&err);
    const int failed = hone_tvm_ffi_return_text(text, strlen(text), result);
    hone_text_release(&text);
    return failed;
}

EXPORTED(hone_tune)
{
    described d;
    (void)self;
    if (begin(result) != 0) return -1;
    const int32_t tag = count > 0 ? arguments[0].tag : HONE_VALUE_STRING;
    if (tag != HONE_VALUE_NONE && tag != HONE_VALUE_INT && tag != HONE_VALUE_FLOAT)
        return hone_tvm_ffi_raise_words(
            "TypeError", "hone_tune takes the seconds, or None for 30, then a call as hone_decide does");
    const double seconds = tag == HONE_VALUE_FLOAT ? arguments[0].as.f64
                           : tag == HONE_VALUE_INT ? (double)arguments[0].as.i64
                                                   : 0;
    if (!(seconds >= 0))
        return hone_tvm_ffi_raise_words("ValueError", "hone_tune: %g seconds, expected 0 or more", seconds);
    if (describe("hone_tune", arguments + 1, count - 1, &d) != 0) return -1;
    const int failed = tune(&d, seconds, result);
    hone_call_release(&d.call);
    return failed;
}
