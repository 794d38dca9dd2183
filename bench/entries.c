#include "entries.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_SAMPLED = 1 << 16 };

void bench_entry_make(bench_entry *out, uint32_t index)
{
    snprintf(out->key, sizeof out->key, "%016llx", (index + 1) * 0x9e3779b97f4a7c15ull);
    snprintf(
        out->spec, sizeof out->spec,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"eps\":1e-06,\"weight\":{\"dtype\":\"float32\","
        "\"shape\":[4096]},\"x\":{\"dtype\":\"float32\",\"shape\":[%u,4096]}},\"method\":null}",
        index + 1);
    snprintf(out->call, sizeof out->call, "rms_norm(f32[%u,4096], f32[4096])", index + 1);
}

hone_store_decision bench_entry_decision(const bench_entry *entry)
{
    return (hone_store_decision){
        .key = {"cpu|AuthenticAMD|zen4|avx2,avx512|32768|1048576|33554432|2", "rms_norm", "1", entry->key, entry->spec},
        .call = entry->call,
        .kernel = "avx512",
        .platform = "native",
        .config = "{\"unroll\":4,\"rows_per_task\":16,\"store\":\"cached\",\"threads\":2}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .regime = HONE_WARM,
        .time_ns = 123456.5,
        .evidence = "{\"time_ns\":123456.5,\"low_ns\":122000.0,\"high_ns\":125000.0,\"samples\":41,\"rounds\":9,"
                    "\"runner_up\":\"avx2\",\"ratio\":1.07,\"verified_against\":\"reference\",\"max_error\":0.03}",
        .environment = "{\"hone\":\"0.1.0\",\"kernel\":\"6.1.0\"}"};
}

static uint64_t step(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

int bench_walk_init(bench_walk *walk, uint32_t count)
{
    *walk = (bench_walk){
        .sample = count < MOST_SAMPLED ? count : MOST_SAMPLED, .count = count, .state = 88172645463325252ull};
    walk->entries = calloc(walk->sample, sizeof *walk->entries);
    if (walk->entries == NULL) return 1;
    for (uint32_t i = 0; i < walk->sample; i++)
        bench_entry_make(&walk->entries[i], walk->sample == count ? i : (uint32_t)(step(&walk->state) % count));
    return 0;
}

void bench_walk_deinit(bench_walk *walk)
{
    free(walk->entries);
    *walk = (bench_walk){0};
}

const bench_entry *bench_walk_next(bench_walk *walk)
{
    return &walk->entries[step(&walk->state) % walk->sample];
}
