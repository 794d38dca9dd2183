#include "kernels/rivals/core.h"

#include "base/error.h"
#include "hone/device.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char coretype[] = "OPENBLAS_CORETYPE";

hone_isa_level hone_isa_of_features(uint64_t features)
{
    static const struct {
        uint64_t needs;
        hone_isa_level level;
    } levels[] = {
        {HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ, HONE_ISA_AVX512},
        {HONE_CPU_AVX2 | HONE_CPU_FMA, HONE_ISA_AVX2},
        {HONE_CPU_AVX, HONE_ISA_AVX},
        {0, HONE_ISA_SSE},
    };
    if ((features & HONE_CPU_NEON) != 0) return HONE_ISA_UNKNOWN;
    size_t i = 0;
    while ((features & levels[i].needs) != levels[i].needs)
        i++;
    return levels[i].level;
}

const char *hone_isa_name(hone_isa_level level)
{
    static const char *const names[] = {"SSE", "AVX", "AVX2", "AVX-512"};
    return level < 0 ? "unknown instructions" : names[level];
}

// For f32, OpenBLAS's later cores (Cooperlake, SapphireRapids) have the same kernels as SkylakeX. An OpenBLAS that is
// older than AMD's processors with AVX-512 takes them for Zen or Haswell.
const char *hone_openblas_core(const char *vendor, uint64_t features)
{
    const bool intel = strcmp(vendor, "GenuineIntel") == 0, amd = strcmp(vendor, "AuthenticAMD") == 0;
    const hone_isa_level level = hone_isa_of_features(features);
    if (!intel && !amd) return NULL;
    if (level == HONE_ISA_AVX512) return "SkylakeX";
    if (level == HONE_ISA_AVX2) return intel ? "Haswell" : "Zen";
    return NULL;
}

hone_isa_level hone_isa_of_core(const char *core)
{
    static const struct {
        const char *core;
        hone_isa_level level;
    } cores[] = {
        {"SkylakeX", HONE_ISA_AVX512}, {"Cooperlake", HONE_ISA_AVX512}, {"SapphireRapids", HONE_ISA_AVX512},
        {"Haswell", HONE_ISA_AVX2},    {"Zen", HONE_ISA_AVX2},          {"Excavator", HONE_ISA_AVX2},
        {"Sandybridge", HONE_ISA_AVX}, {"Bulldozer", HONE_ISA_AVX},     {"Piledriver", HONE_ISA_AVX},
        {"Steamroller", HONE_ISA_AVX}, {"Prescott", HONE_ISA_SSE},      {"Core2", HONE_ISA_SSE},
        {"Penryn", HONE_ISA_SSE},      {"Dunnington", HONE_ISA_SSE},    {"Nehalem", HONE_ISA_SSE},
        {"Katmai", HONE_ISA_SSE},      {"Coppermine", HONE_ISA_SSE},    {"Northwood", HONE_ISA_SSE},
        {"Banias", HONE_ISA_SSE},      {"Atom", HONE_ISA_SSE},          {"Athlon", HONE_ISA_SSE},
        {"Opteron", HONE_ISA_SSE},     {"Opteron_SSE3", HONE_ISA_SSE},  {"Barcelona", HONE_ISA_SSE},
        {"Bobcat", HONE_ISA_SSE},      {"Nano", HONE_ISA_SSE},
    };
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++)
        if (strcmp(cores[i].core, core) == 0) return cores[i].level;
    return HONE_ISA_UNKNOWN;
}

// dnnl_cpu_isa_t of oneDNN 2.x: each step sets one more bit; from 0x27 on it has AVX-512 (0xf and 0x1f are Xeon Phi's).
hone_isa_level hone_isa_of_onednn(int isa, const char **out_name)
{
    static const struct {
        int isa;
        const char *name;
        hone_isa_level level;
    } steps[] = {
        {0x1, "SSE41", HONE_ISA_SSE},
        {0x3, "AVX", HONE_ISA_AVX},
        {0x7, "AVX2", HONE_ISA_AVX2},
        {0x407, "AVX2_VNNI", HONE_ISA_AVX2},
        {0x27, "AVX512_CORE", HONE_ISA_AVX512},
        {0x67, "AVX512_CORE_VNNI", HONE_ISA_AVX512},
        {0xe7, "AVX512_CORE_BF16", HONE_ISA_AVX512},
        {0x3e7, "AVX512_CORE_AMX", HONE_ISA_AVX512},
        {0xfef, "AVX512_CORE_AMX", HONE_ISA_AVX512}, // the value that 3.2 returns
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].isa != isa) continue;
        *out_name = steps[i].name;
        return steps[i].level;
    }
    *out_name = "unknown";
    return HONE_ISA_UNKNOWN;
}

static const hone_packaged_library of_numpy = {"HONE_NUMPY_OPENBLAS", "numpy", "numpy.libs", "libscipy_openblas64_-"},
                                   of_scipy = {"HONE_SCIPY_OPENBLAS", "scipy", "scipy.libs", "libscipy_openblas-"};

const hone_openblas hone_openblas_builds[HONE_OPENBLAS_BUILDS] = {
    [HONE_OPENBLAS_OF_SYSTEM] = {"openblas", "", "", INT32_MAX, NULL},
    [HONE_OPENBLAS_OF_NUMPY] = {"numpy_openblas", "scipy_", "64_", INT64_MAX, &of_numpy},
    [HONE_OPENBLAS_OF_SCIPY] = {"scipy_openblas", "scipy_", "", INT32_MAX, &of_scipy},
};

bool hone_openblas_is_here(const hone_openblas *build, hone_error *why)
{
    char path[4096];
    return build->packaged != NULL ? hone_rival_find_packaged(build->packaged, path, sizeof path, why)
                                   : hone_rival_is_here(HONE_OPENBLAS_SONAME, HONE_OPENBLAS_PACKAGE, why);
}

static hone_status open_packaged(
    const hone_packaged_library *packaged, const hone_allocator *allocator, hone_library **out, hone_error *err)
{
    char path[4096];
    const char *const names[] = {path, NULL};
    if (!hone_rival_find_packaged(packaged, path, sizeof path, err)) return HONE_UNAVAILABLE;
    return hone_library_open(allocator, names, out, err);
}

hone_status hone_openblas_open(
    const hone_openblas *build, const hone_allocator *allocator, hone_library **out, hone_error *err)
{
    static const char *const names[] = {HONE_OPENBLAS_SONAME, NULL};
    if (build->packaged != NULL) return open_packaged(build->packaged, allocator, out, err);
    const char *named = getenv(coretype);
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    const char *core = named != NULL && named[0] != '\0' ? NULL : hone_openblas_core(cpu.vendor, cpu.features);
    return hone_library_open_under(allocator, names, coretype, core, out, err);
}

bool hone_openblas_function(const hone_openblas *build, hone_library *library, const char *name, void *out_function)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s%s%s", build->prefix, name, build->suffix);
    return hone_rival_function(library, whole, out_function);
}

// What they are -------------------------------------------------------------------------------------------------------

static bool read_openblas(const hone_openblas *build, hone_rival_facts *out)
{
    const hone_allocator allocator = hone_allocator_system();
    hone_library *library = NULL; // never closed, since it has started threads
    char *(*config)(void), *(*core)(void);
    int (*threads)(void);
    if (hone_openblas_open(build, &allocator, &library, NULL) != HONE_OK) return false;
    *out = (hone_rival_facts){.name = build->name, .version = "?", .core = "?", .level = HONE_ISA_UNKNOWN};
    if (hone_openblas_function(build, library, "openblas_get_config", &config))
        (void)sscanf(config(), "OpenBLAS %31s", out->version);
    if (hone_openblas_function(build, library, "openblas_get_corename", &core))
        snprintf(out->core, sizeof out->core, "%s", core());
    if (hone_openblas_function(build, library, "openblas_get_num_threads", &threads)) out->threads = threads();
    out->level = hone_isa_of_core(out->core);
    return true;
}

// The beginning of dnnl_version_t.
typedef struct onednn_version {
    int major, minor, patch;
} onednn_version;

// For both versions: the functions called are the same. file: a soname or a path.
static bool read_onednn(const char *name, const char *file, hone_rival_facts *out)
{
    static const char *const openmp_names[] = {"libgomp.so.1", NULL};
    const char *const names[] = {file, NULL};
    const hone_allocator allocator = hone_allocator_system();
    hone_library *library = NULL, *openmp = NULL;
    const onednn_version *(*version)(void);
    int (*isa)(void), (*threads)(void);
    const char *core = "?";
    if (hone_library_open(&allocator, names, &library, NULL) != HONE_OK) return false;
    *out = (hone_rival_facts){.name = name, .version = "?", .threads = 1, .level = HONE_ISA_UNKNOWN};
    if (hone_rival_function(library, "dnnl_version", &version))
        snprintf(out->version, sizeof out->version, "%d.%d.%d", version()->major, version()->minor, version()->patch);
    if (hone_rival_function(library, "dnnl_get_effective_cpu_isa", &isa)) out->level = hone_isa_of_onednn(isa(), &core);
    snprintf(out->core, sizeof out->core, "%s", core);
    if (hone_library_open(&allocator, openmp_names, &openmp, NULL) == HONE_OK &&
        hone_rival_function(openmp, "omp_get_max_threads", &threads))
        out->threads = threads();
    return true;
}

size_t hone_rival_facts_read(hone_rival_facts out[HONE_RIVAL_FACTS])
{
    size_t count = 0;
    for (size_t i = 0; i < HONE_OPENBLAS_BUILDS; i++)
        count += read_openblas(&hone_openblas_builds[i], &out[count]);
    count += read_onednn("onednn", HONE_ONEDNN_SONAME, &out[count]);
    char path[4096];
    if (hone_rival_onednn3.find(&hone_rival_onednn3, path, sizeof path))
        count += read_onednn("onednn3", path, &out[count]);
    return count;
}

bool hone_rival_facts_tell(const hone_rival_facts *facts, hone_isa_level machine, char *out, size_t size)
{
    const bool is_below = facts->level != HONE_ISA_UNKNOWN && facts->level < machine;
    size_t used = (size_t)snprintf(
        out, size, "%s %s, core %s, %d thread%s", facts->name, facts->version, facts->core, (int)facts->threads,
        facts->threads == 1 ? "" : "s");
    if (is_below && used < size)
        snprintf(
            out + used, size - used, " (it runs %s, and this machine has %s)", hone_isa_name(facts->level),
            hone_isa_name(machine));
    return is_below;
}
