// An environment for offline tuning: algorithms in ejkernel's words with one kernel each, recorded invocations, and
// what was asked of the runtime.
#ifndef HONE_TESTS_OFFLINE_FIXTURE_H
#define HONE_TESTS_OFFLINE_FIXTURE_H

#include "base/json.h"
#include "base/memory.h"
#include "offline/offline.h"
#include "platforms/platform.h"
#include "store/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    hone_allocator allocator;
    hone_registry *registry;
    json_t *recorded; // a record document, or NULL
    char log[8192];   // what the runtime was asked for, a line each
    const char *fail; // calls whose text holds this fail to tune
    hone_status fail_status;
    hone_offline_environment environment;
} fixture;

static const char *const fixture_signatures[] = {
    ("flash_attention(query: T[b, n, h, d], key: T[b, m, hk, d], value: T[b, m, hk, d], *, softmax_scale: f64? = none, "
     "causal: bool = false, sliding_window: i64? = none, "
     "logits_soft_cap: f64? = none) -> out: T[b, n, h, d] where T in f32, f16, bf16"),
    ("scaled_dot_product_attention(query: T[b, n, h, d], key: T[b, m, hk, d], value: T[b, m, hk, d], *, "
     "softmax_scale: f64? = none, causal: bool = false, sliding_window: i64? = none) -> out: T[b, n, h, d] where T in "
     "f32, f16, bf16"),
    ("attention(query: T[b, n, h, d], key: T[b, m, hk, d], value: T[b, m, hk, d], *, softmax_scale: f64? = none, "
     "causal: bool = false, sliding_window: i64? = none, logits_soft_cap: f64? = none) -> out: T[b, n, h, d] where T "
     "in "
     "f32, f16, bf16"),
    ("dot_product_attention(query: T[b, n, h, d], key: T[b, m, hk, d], value: T[b, m, hk, e], bias: B[bb, bh, bq, "
     "bk]?, "
     "mask: M[mb, mh, mq, mk]?, *, causal: bool = false, softmax_scale: f64? = none, window_left: i64? = none, "
     "window_right: i64? = none, logits_soft_cap: f64? = none) -> out: T[b, n, h, e]"),
    "mean_pooling(x: T[b, n, c], *, chunk_size: i64 = 32) -> y: T[b, c] where T in f32, f16, bf16",
    "rwkv4(w: T[c], u: T[c], k: T[b, n, c], v: T[b, n, c]) -> y: T[b, n, c] where T in f32, f16, bf16",
    ("matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] where T in "
     "f32, f16, bf16"),
};

static hone_status fixture_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static bool fixture_recorded(
    void *ctx, const char *algorithm, const char *version, const char *key, hone_buffer *out_spec)
{
    const fixture *f = ctx;
    char operation[128];
    snprintf(operation, sizeof operation, "%s@v%s", algorithm, version);
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(f->recorded, "invocations"), i, entry)
    {
        bool same = strcmp(json_string_value(json_object_get(entry, "op")), operation) == 0 &&
                    strcmp(json_string_value(json_object_get(entry, "key")), key) == 0;
        if (!same) continue;
        hone_buffer_text(out_spec, json_string_value(json_object_get(entry, "spec")));
        return true;
    }
    return false;
}

static void fixture_log(fixture *f, const char *format, ...)
{
    size_t used = strlen(f->log);
    va_list list;
    va_start(list, format);
    vsnprintf(f->log + used, sizeof f->log - used, format, list);
    va_end(list);
}

static hone_status fixture_tune(void *ctx, const hone_call *call, int64_t count, hone_regime regime, hone_error *err)
{
    fixture *f = ctx;
    (void)count;
    fixture_log(f, "tune %s%s\n", hone_call_text(call), regime == HONE_COLD ? " cold" : "");
    if (f->fail == NULL || strstr(hone_call_text(call), f->fail) == NULL) return HONE_OK;
    snprintf(err->message, sizeof err->message, "nobody won");
    err->status = f->fail_status;
    return f->fail_status;
}

static hone_status fixture_failed(void *ctx, const char *call, const char *key, const char *reason, hone_error *err)
{
    (void)err;
    fixture_log(ctx, "failed %s %s: %s\n", call != NULL ? call : "-", key != NULL ? key : "-", reason);
    return HONE_OK;
}

static hone_status fixture_alias(void *ctx, const hone_store_alias *alias, const hone_call *call, hone_error *err)
{
    (void)call;
    (void)err;
    fixture_log(
        ctx, "alias %s %s %s %s -> %s@v%s %s\n", alias->scheme, alias->operation, alias->foreign_key,
        alias->foreign_spec != NULL ? "with its text" : "alone", alias->key.algorithm, alias->key.version,
        alias->key.key);
    return HONE_OK;
}

static inline void fixture_open(fixture *f)
{
    *f = (fixture){.allocator = hone_allocator_system(), .fail_status = HONE_NOT_FOUND};
    hone_error err = {0};
    assert_int_equal(hone_registry_create(&f->allocator, hone_platform_facts_of, NULL, &f->registry, &err), HONE_OK);
    for (size_t i = 0; i < sizeof fixture_signatures / sizeof fixture_signatures[0]; i++) {
        hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = fixture_signatures[i]};
        assert_int_equal(hone_registry_add_algorithm(f->registry, &algorithm, true, &err), HONE_OK);
        char name[64] = "";
        memcpy(name, algorithm.signature, strcspn(algorithm.signature, "("));
        hone_kernel kernel = {HONE_KERNEL,         .algorithm = name, .name = "only", .platform = HONE_NATIVE,
                              .backend = HONE_CPU, .run = fixture_run};
        assert_int_equal(hone_registry_add_kernels(f->registry, &kernel, 1, false, true, &err), HONE_OK);
    }
    f->environment = (hone_offline_environment){
        .allocator = f->allocator,
        .registry = f->registry,
        .ctx = f,
        .recorded = fixture_recorded,
        .tune = fixture_tune,
        .failed = fixture_failed,
        .alias = fixture_alias,
    };
}

static inline void fixture_close(fixture *f)
{
    json_decref(f->recorded);
    hone_registry_destroy(&f->registry);
}

// Reads a program that must be readable.
static inline hone_program *fixture_read_bytes(fixture *f, const void *bytes, size_t size)
{
    hone_error err = {0};
    hone_program *program = NULL;
    hone_status status = hone_offline_read(&f->environment, "test", bytes, size, &program, &err);
    if (status != HONE_OK) fail_msg("%s: %s", hone_status_name(status), err.message);
    return program;
}

static inline hone_program *fixture_read(fixture *f, const char *text)
{
    return fixture_read_bytes(f, text, strlen(text));
}

// A program of each dialect: a call of mean_pooling by its label, and in StableHLO one by its arguments too.
static const char fixture_mlir[] =
    "module @m {\n"
    "  func.func public @main(%arg0: tensor<2x64x24xf32> loc(\"x\")) -> tensor<2x64x24xf32> {\n"
    "    %c = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "    %0 = call @f(%arg0) : (tensor<2x64x24xf32>) -> tensor<2x64x24xf32> loc(#loc2)\n"
    "    %1 = stablehlo.sine %0 : tensor<2x64x24xf32> "
    "loc(\"ejkernel_ops:{\\22args\\22:[],\\22cfg\\22:0,\\22kwargs\\22:{\\22x\\22:{"
    "\\22dtype\\22:\\22float32\\22,\\22shape\\22:[2,64,24]}},\\22op_id\\22:\\22mean_pooling@v0\\22}/x\")\n"
    "    return %1 : tensor<2x64x24xf32>\n"
    "  }\n"
    "  func.func private @f(%arg0: tensor<2x64x24xf32>) -> tensor<2x64x24xf32> {\n"
    "    return %arg0 : tensor<2x64x24xf32>\n"
    "  }\n"
    "}\n"
    "#loc1 = loc(\"x\")\n"
    "#loc2 = loc(\"ejkernel_ops#mean_pooling@v0:b2fadcdadf800aa8/jit(f)\"(#loc1))\n";

static const char fixture_hlo[] =
    "HloModule m, is_scheduled=true\nc {\n  p = f32[2,64,24]{2,1,0} parameter(0)\n"
    "  ROOT s = f32[2,64,24]{2,1,0} sine(p), metadata={op_name=\"jit(f)/ejkernel_ops#mean_pooling\"}\n}\n"
    "ENTRY main {\n  a = f32[2,64,24]{2,1,0} parameter(0)\n"
    "  ROOT b = f32[2,64,24]{2,1,0} fusion(a), kind=kLoop, calls=c\n}\n";

#endif
