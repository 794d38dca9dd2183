// Records that the store's tests put and compare.
#ifndef HONE_TESTS_STORE_RECORDS_H
#define HONE_TESTS_STORE_RECORDS_H

#include "hone/store.h"
#include "store/records.h"

static inline hone_store_key sample_key(void)
{
    return (hone_store_key){
        .device = "cpu|amd|zen4|avx512",
        .algorithm = "rms_norm",
        .version = "1",
        .key = "0123456789abcdef",
        .spec = "{\"args_spec\":[]}",
    };
}

static inline hone_store_decision sample_decision(void)
{
    return (hone_store_decision){
        .key = sample_key(),
        .call = "rms_norm(f32[1024,4096], f32[4096])",
        .kernel = "avx512",
        .platform = "native",
        .config = "{\"rows_per_task\":4}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .regime = HONE_WARM,
        .time_ns = 1310.5,
        .evidence = "{\"samples\":30}",
        .environment = "{\"os\":\"linux\"}",
    };
}

static inline hone_store_measurement sample_measurement(void)
{
    return (hone_store_measurement){
        .kernel = "avx512",
        .config = "{\"rows_per_task\":4}",
        .revision = "1",
        .regime = HONE_WARM,
        .time_ns = 100,
        .low_ns = 99,
        .high_ns = 101.5,
        .samples = 30,
        .max_error = 0.25,
    };
}

static inline hone_store_invocation sample_invocation(void)
{
    return (hone_store_invocation){
        .key = sample_key(),
        .call = "rms_norm(f32[1024,4096], f32[4096])",
        .count = 3,
        .first = 1000,
        .last = 2000,
        .kernel = "avx512",
        .decided = "heuristic",
    };
}

static inline hone_store_alias sample_alias(void)
{
    return (hone_store_alias){
        .scheme = "ejkernel",
        .operation = "rms_norm@v1",
        .foreign_key = "fedcba9876543210",
        .foreign_spec = "{\"x\":1}",
        .key = sample_key(),
    };
}

static inline hone_store_foreign sample_foreign(void)
{
    return (hone_store_foreign){
        .scheme = "tokamax",
        .operation = "attention",
        .device = "TPU v5",
        .foreign_key = "abc",
        .text = "{\"block_q\":128}",
        .origin = "v5.json",
    };
}

#endif
