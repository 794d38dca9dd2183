// The one place where hone's enums get their words. Tables in the order of the enums; readers walk the same tables.
#include "registry/names.h"

#include "base/error.h"
#include "hone/policy.h"

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

static const char *const source_names[HONE_SOURCE_COUNT] = {
    [HONE_SOURCE_NONE] = "none",         [HONE_SOURCE_OVERRIDE] = "override", [HONE_SOURCE_OVERLAY] = "overlay",
    [HONE_SOURCE_LOCK] = "lock",         [HONE_SOURCE_MEMORY] = "memory",     [HONE_SOURCE_STORE] = "store",
    [HONE_SOURCE_TRANSFER] = "transfer", [HONE_SOURCE_AUTOTUNE] = "autotune", [HONE_SOURCE_HEURISTIC] = "heuristic",
};

static const char *const failure_names[HONE_FAILURE_COUNT] = {
    [HONE_FAILURE_NONE] = "none",       [HONE_FAILURE_UNSUPPORTED] = "unsupported",
    [HONE_FAILURE_PREPARE] = "prepare", [HONE_FAILURE_RUN] = "run",
    [HONE_FAILURE_WRONG] = "wrong",     [HONE_FAILURE_BOUNDS] = "bounds",
    [HONE_FAILURE_CRASH] = "crash",     [HONE_FAILURE_TIMEOUT] = "timeout",
    [HONE_FAILURE_TRACES] = "traces",   [HONE_FAILURE_UNSTABLE] = "unstable",
};

enum { REGIME_COUNT = HONE_COLD_STABLE + 1 };

static const char *const regime_names[REGIME_COUNT] = {
    [HONE_WARM] = "warm",
    [HONE_COLD] = "cold",
    [HONE_WARM_STABLE] = "warm-stable",
    [HONE_COLD_STABLE] = "cold-stable",
};

enum { POLICY_COUNT = HONE_POLICY_FROZEN + 1 };

static const char *const policy_names[POLICY_COUNT] = {
    [HONE_POLICY_DEFAULT] = "default", [HONE_POLICY_TUNE] = "tune",     [HONE_POLICY_HEURISTIC] = "heuristic",
    [HONE_POLICY_FAIL] = "fail",       [HONE_POLICY_FROZEN] = "frozen",
};

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

// The number is unsigned so that a negative one, from a damaged record, is out of range too.
static const char *name_of(const char *const *names, unsigned count, unsigned number, const char *unknown)
{
    return number < count ? names[number] : unknown;
}

// The index of name in names[first .. count), or -1.
static int find(const char *const *names, int first, int count, const char *name)
{
    for (int i = first; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

// "native, opencl, ..." into out.
static void list(const char *const *names, int first, int count, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = first; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > first ? ", " : "", names[i]);
}

static hone_status unknown_name(
    const char *const *names, int first, int count, const char *where, const char *name, hone_error *err)
{
    char known[256];
    list(names, first, count, known, sizeof known);
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "'%s' is none of: %s (exact, lower case)", name == NULL ? "" : name, known);
}

const char *hone_platform_name(hone_platform platform)
{
    if (platform == HONE_PLATFORM_AUTO) return "auto";
    return name_of(platform_names, HONE_PLATFORM_COUNT, (unsigned)platform, "unknown platform");
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
    return name_of(backend_names, HONE_BACKEND_COUNT, (unsigned)backend, "unknown backend");
}

const char *hone_source_name(hone_source source)
{
    return name_of(source_names, HONE_SOURCE_COUNT, (unsigned)source, "unknown source");
}

const char *hone_failure_name(hone_failure failure)
{
    return name_of(failure_names, HONE_FAILURE_COUNT, (unsigned)failure, "unknown failure");
}

const char *hone_regime_name(hone_regime regime)
{
    return name_of(regime_names, REGIME_COUNT, (unsigned)regime, "unknown regime");
}

bool hone_source_by_name(const char *name, hone_source *out)
{
    int index = find(source_names, HONE_SOURCE_NONE + 1, HONE_SOURCE_COUNT, name);
    if (index >= 0) *out = (hone_source)index;
    return index >= 0;
}

bool hone_failure_by_name(const char *name, hone_failure *out)
{
    int index = find(failure_names, HONE_FAILURE_NONE, HONE_FAILURE_COUNT, name);
    if (index >= 0) *out = (hone_failure)index;
    return index >= 0;
}

bool hone_regime_by_name(const char *name, hone_regime *out)
{
    int index = find(regime_names, HONE_WARM, REGIME_COUNT, name);
    if (index >= 0) *out = (hone_regime)index;
    return index >= 0;
}

const char *hone_policy_name(hone_policy policy)
{
    return name_of(policy_names, POLICY_COUNT, (unsigned)policy, "unknown policy");
}

hone_status hone_platform_parse(const char *name, hone_platform *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "platform.parse", "out is NULL");
    if (name != NULL && strcmp(name, "auto") == 0) {
        *out = HONE_PLATFORM_AUTO;
        return HONE_OK;
    }
    int index = name == NULL ? -1 : find(platform_names, HONE_NATIVE, HONE_PLATFORM_COUNT, name);
    if (index < 0) return unknown_name(platform_names, HONE_NATIVE, HONE_PLATFORM_COUNT, "platform.parse", name, err);
    *out = (hone_platform)index;
    return HONE_OK;
}

hone_status hone_backend_parse(const char *name, hone_backend *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "backend.parse", "out is NULL");
    int index = name == NULL ? -1 : find(backend_names, HONE_GPU, HONE_BACKEND_COUNT, name);
    if (index < 0) return unknown_name(backend_names, HONE_GPU, HONE_BACKEND_COUNT, "backend.parse", name, err);
    *out = (hone_backend)index;
    return HONE_OK;
}

hone_status hone_policy_parse(const char *name, hone_policy *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "policy.parse", "out is NULL");
    int index = name == NULL ? -1 : find(policy_names, HONE_POLICY_DEFAULT, POLICY_COUNT, name);
    if (index < 0) return unknown_name(policy_names, HONE_POLICY_DEFAULT, POLICY_COUNT, "policy.parse", name, err);
    *out = (hone_policy)index;
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
