// The words of the enums of devices and measurements, in tables at their numbers.
#include "registry/names.h"

#include "base/enum.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const char *const platform_names[HONE_PLATFORM_COUNT] = {
    [HONE_PLATFORM_NONE] = "none", [HONE_NATIVE] = "native", [HONE_OPENCL] = "opencl",     [HONE_CUDA] = "cuda",
    [HONE_TRITON] = "triton",      [HONE_CUTE] = "cute",     [HONE_TILELANG] = "tilelang", [HONE_XLA] = "xla",
    [HONE_PALLAS] = "pallas",      [HONE_NULL] = "null",
};

static const char *const backend_names[HONE_BACKEND_COUNT] = {
    [HONE_BACKEND_NONE] = "none", [HONE_GPU] = "gpu", [HONE_MPS] = "mps",
    [HONE_TPU] = "tpu",           [HONE_CPU] = "cpu", [HONE_ANY] = "any",
};

enum { REGIME_COUNT = HONE_COLD_STABLE + 1 };

static const char *const regime_names[REGIME_COUNT] = {
    [HONE_WARM] = "warm",
    [HONE_COLD] = "cold",
    [HONE_WARM_STABLE] = "warm-stable",
    [HONE_COLD_STABLE] = "cold-stable",
};

static const hone_enum platforms = {platform_names, HONE_NATIVE, HONE_PLATFORM_COUNT, "unknown platform"};
static const hone_enum backends = {backend_names, HONE_GPU, HONE_BACKEND_COUNT, "unknown backend"};
static const hone_enum regimes = {regime_names, HONE_WARM, REGIME_COUNT, "unknown regime"};

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
    {HONE_CPU_NEON, "neon"},
};

const char *hone_platform_name(hone_platform platform)
{
    if (platform == HONE_PLATFORM_AUTO) return "auto";
    return hone_enum_word(&platforms, (int)platform);
}

hone_platform hone_platform_home(hone_platform platform)
{
    if (platform == HONE_PALLAS) return HONE_XLA;
    return platform == HONE_TRITON || platform == HONE_CUTE ? HONE_CUDA : platform;
}

bool hone_platform_runs_on(hone_platform platform, hone_platform of_device)
{
    hone_platform home = hone_platform_home(platform);
    return home == HONE_XLA ? of_device == HONE_NATIVE || of_device == HONE_CUDA : home == of_device;
}

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

hone_status hone_platform_parse(const char *name, hone_platform *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "platform.parse", "out is NULL");
    if (name != NULL && strcmp(name, "auto") == 0) {
        *out = HONE_PLATFORM_AUTO;
        return HONE_OK;
    }
    int index = hone_enum_find(&platforms, name);
    if (index < 0) return hone_enum_refuse(&platforms, "platform.parse", name, err);
    *out = (hone_platform)index;
    return HONE_OK;
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
