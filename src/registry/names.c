// The words of the enums of devices and measurements, in tables at their numbers; platforms say their own.
#include "registry/names.h"

#include "base/enum.h"
#include "base/error.h"
#include "os/tiles.h"
#include "registry/tables.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "platform.parse";

static const char *const backend_names[HONE_BACKEND_COUNT] = {
    [HONE_BACKEND_NONE] = "none", [HONE_GPU] = "gpu", [HONE_MPS] = "mps",
    [HONE_TPU] = "tpu",           [HONE_CPU] = "cpu", [HONE_ANY] = "any",
};

static const char *const regime_names[HONE_REGIME_COUNT] = {
    [HONE_WARM] = "warm",
    [HONE_COLD] = "cold",
    [HONE_WARM_STABLE] = "warm-stable",
    [HONE_COLD_STABLE] = "cold-stable",
    [HONE_GRAPH] = "graph",
    [HONE_EAGER] = "eager",
    [HONE_GRAPH_STABLE] = "graph-stable",
    [HONE_EAGER_STABLE] = "eager-stable",
};

static const hone_enum backends = {backend_names, HONE_GPU, HONE_BACKEND_COUNT, "unknown backend"};
static const hone_enum regimes = {regime_names, HONE_WARM, HONE_REGIME_COUNT, "unknown regime"};

static const struct {
    uint64_t bit;
    const char *name;
} feature_names[] = {
    {HONE_CPU_SSE4_2, "sse4_2"},
    {HONE_CPU_AVX, "avx"},
    {HONE_CPU_AVX2, "avx2"},
    {HONE_CPU_FMA, "fma"},
    {HONE_CPU_F16C, "f16c"},
    {HONE_CPU_AVX512F, "avx512f"},
    {HONE_CPU_AVX512BW, "avx512bw"},
    {HONE_CPU_AVX512VL, "avx512vl"},
    {HONE_CPU_AVX512DQ, "avx512dq"},
    {HONE_CPU_AVX512_BF16, "avx512_bf16"},
    {HONE_CPU_AVX512_VNNI, "avx512_vnni"},
    {HONE_CPU_AMX_BF16, "amx_bf16"},
    {HONE_CPU_AMX_INT8, "amx_int8"},
    {HONE_CPU_NEON, "neon"},
};

const char *hone_backend_name(hone_backend backend)
{
    return hone_enum_word(&backends, (int)backend);
}

const char *hone_regime_name(hone_regime regime)
{
    return hone_enum_word(&regimes, (int)regime);
}

bool hone_regime_by_name(const char *name, hone_regime *out)
{
    int index = hone_enum_find(&regimes, name);
    if (index >= 0) *out = (hone_regime)index;
    return index >= 0;
}

hone_status hone_regime_parse(const char *name, hone_regime *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "regime.parse", "out is NULL");
    if (name != NULL && hone_regime_by_name(name, out)) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, "regime.parse", "'%s' is not one of: " HONE_REGIME_NAMES, name == NULL ? "" : name);
}

const char *hone_registry_platform_name(const hone_registry *registry, hone_platform platform)
{
    const hone_platform_facts *facts = registry->platforms(platform);
    return facts != NULL ? facts->name : "unknown platform";
}

static hone_status unknown_platform(hone_platform_find *facts_of, const char *name, hone_error *err)
{
    char known[256] = "";
    size_t used = 0;
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT && used < sizeof known; i++)
        used += (size_t)snprintf(
            known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", facts_of((hone_platform)i)->name);
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "'%s' is not one of: %s (exact, lower case)", name == NULL ? "" : name,
        known);
}

hone_status hone_platform_by_name(hone_platform_find *facts_of, const char *name, hone_platform *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    if (name == NULL) return unknown_platform(facts_of, name, err);
    if (strcmp(name, "auto") == 0) {
        *out = HONE_PLATFORM_AUTO;
        return HONE_OK;
    }
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT; i++) {
        if (strcmp(facts_of((hone_platform)i)->name, name) != 0) continue;
        *out = (hone_platform)i;
        return HONE_OK;
    }
    return unknown_platform(facts_of, name, err);
}

hone_status hone_backend_parse(const char *name, hone_backend *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "backend.parse", "out is NULL");
    int index = hone_enum_find(&backends, name);
    if (index < 0) return hone_enum_refuse(&backends, "backend.parse", name, err);
    *out = (hone_backend)index;
    return HONE_OK;
}

static const char *feature_name(unsigned bit)
{
    for (size_t i = 0; i < sizeof feature_names / sizeof feature_names[0]; i++)
        if (feature_names[i].bit == (uint64_t)1 << bit) return feature_names[i].name;
    return NULL;
}

size_t hone_cpu_features_text(uint64_t features, const char *separator, char *out, size_t size)
{
    size_t used = 0;
    if (size > 0) out[0] = '\0';
    for (unsigned bit = 0; bit < 64; bit++) {
        if ((features >> bit & 1) == 0) continue;
        char number[8];
        const char *name = feature_name(bit);
        if (name == NULL) {
            snprintf(number, sizeof number, "bit%u", bit);
            name = number;
        }
        char *end = used < size ? out + used : NULL;
        used += (size_t)snprintf(end, end == NULL ? 0 : size - used, "%s%s", used > 0 ? separator : "", name);
    }
    return used;
}
