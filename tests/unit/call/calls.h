// What the tests of calls share: signatures and calls from text, and their failures as words.
#ifndef HONE_TESTS_CALLS_H
#define HONE_TESTS_CALLS_H

#include "call/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MATMUL                                                                                                         \
    "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "           \
    "where T in f32, f16, bf16"
#define RMS_NORM                                                                                                       \
    "rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6) -> y: T[..., dim] where T in f32, f16, bf16"
#define FLASH                                                                                                          \
    "flash_attention(query: T[batch, q_len, heads, dim], key: T[batch, kv_len ~pow2, kv_heads, dim], value: T[batch, " \
    "kv_len, kv_heads, dim], *, causal: bool = false, softmax_scale: f64? = none, sliding_window: i64? = none, "       \
    "logits_soft_cap: f64? = none) -> out: T[batch, q_len, heads, dim] where heads % kv_heads == 0"

static inline hone_signature *signature_of(const char *text)
{
    hone_signature *signature = NULL;
    hone_error err = {0};
    if (hone_signature_parse(hone_allocator_system(), text, &signature, &err) != HONE_OK) fail_msg("%s", err.message);
    return signature;
}

static inline hone_call *call_of(hone_signature *signature, const char *text)
{
    hone_call *call = NULL;
    hone_error err = {0};
    if (hone_call_parse(hone_allocator_system(), signature, text, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    return call;
}

// The words with which call text is refused.
static inline const char *refusal(hone_signature *signature, const char *text, hone_error *err)
{
    hone_call *call = NULL;
    assert_int_equal(hone_call_parse(hone_allocator_system(), signature, text, &call, err), HONE_INVALID_ARGUMENT);
    assert_null(call);
    return err->message;
}

static inline void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("'%s' does not contain '%s'", text, part);
}

#endif
