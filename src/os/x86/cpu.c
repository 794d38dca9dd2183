// The CPU as cpu_features sees it, with what the system lets this process use of it.
#include "hone/device.h"
#include "os/limits.h"
#include "os/tiles.h"

#include <cpu_features/cpuinfo_x86.h>
#include <cpuid.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t feature_bits(const X86Features *f)
{
    const struct {
        int there;
        uint64_t bit;
    } table[] = {
        {f->sse4_2, HONE_CPU_SSE4_2},
        {f->avx, HONE_CPU_AVX},
        {f->avx2, HONE_CPU_AVX2},
        {f->fma3, HONE_CPU_FMA},
        {f->f16c, HONE_CPU_F16C},
        {f->avx512f, HONE_CPU_AVX512F},
        {f->avx512bw, HONE_CPU_AVX512BW},
        {f->avx512vl, HONE_CPU_AVX512VL},
        {f->avx512dq, HONE_CPU_AVX512DQ},
        {f->avx512_bf16, HONE_CPU_AVX512_BF16},
        {f->avx512vnni, HONE_CPU_AVX512_VNNI},
    };
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].there) bits |= table[i].bit;
    return bits;
}

// Source: Linux's Documentation/arch/x86/xstate.rst. A system that does not save the tiles of its processes, for
// example an older Linux, does not know this request and returns an error.
static uint64_t lent_states(void)
{
    enum { GET_STATES = 0x1021 };
    uint64_t states = 0;
    return syscall(SYS_arch_prctl, GET_STATES, &states) == 0 ? states : 0;
}

bool hone_os_lend_tiles(void)
{
    enum { ASK_FOR_STATE = 0x1023, TILES = 18 };
    static atomic_bool lent;
    if (atomic_load_explicit(&lent, memory_order_relaxed)) return true;
    if (syscall(SYS_arch_prctl, ASK_FOR_STATE, TILES) != 0) return false;
    atomic_store_explicit(&lent, true, memory_order_relaxed);
    return true;
}

uint64_t hone_os_matrix_features(bool has_tiles, bool has_bf16, bool has_int8, uint64_t states)
{
    const uint64_t tiles = 1 << 17 | 1 << 18; // the configuration of the tiles, and their data
    if (!has_tiles || (states & tiles) != tiles) return 0;
    return (has_bf16 ? HONE_CPU_AMX_BF16 : 0) | (has_int8 ? HONE_CPU_AMX_INT8 : 0);
}

// Microarchitectures newer than the cpu_features that Debian 12 has. Source: AMD's processor programming references.
typedef struct newer {
    int family, first_model, last_model;
    const char *name;
} newer;

static const newer newer_amd[] = {
    {0x19, 0x10, 0x1f, "zen4"},
    {0x19, 0x60, 0x7f, "zen4"},
    {0x19, 0xa0, 0xaf, "zen4"},
    {0x1a, 0x00, 0x7f, "zen5"},
};

static const char *newer_name(const X86Info *info)
{
    if (strcmp(info->vendor, CPU_FEATURES_VENDOR_AUTHENTIC_AMD) != 0) return NULL;
    for (size_t i = 0; i < sizeof newer_amd / sizeof newer_amd[0]; i++) {
        const newer *row = &newer_amd[i];
        if (info->family == row->family && info->model >= row->first_model && info->model <= row->last_model)
            return row->name;
    }
    return NULL;
}

// "AMD_ZEN4" becomes "zen4", "INTEL_SKL" "skl"; one that cpu_features does not know "family25-model97".
static void name_microarchitecture(const X86Info *info, char *out, size_t size)
{
    X86Microarchitecture architecture = GetX86Microarchitecture(info);
    const char *known = architecture == X86_UNKNOWN ? newer_name(info) : NULL;
    if (architecture == X86_UNKNOWN) {
        if (known != NULL)
            snprintf(out, size, "%s", known);
        else
            snprintf(out, size, "family%d-model%d", info->family, info->model);
        return;
    }
    const char *name = GetX86MicroarchitectureName(architecture);
    const char *bare = strchr(name, '_');
    snprintf(out, size, "%s", bare != NULL ? bare + 1 : name);
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
}

static void read_cpuid_caches(hone_os_cpu *out)
{
    int64_t *const places[] = {&out->l1_bytes, &out->l2_bytes, &out->l3_bytes};
    CacheInfo caches = GetX86CacheInfo();
    for (int i = 0; i < caches.size; i++) {
        const CacheLevelInfo *cache = &caches.levels[i];
        bool data = cache->cache_type == CPU_FEATURE_CACHE_DATA || cache->cache_type == CPU_FEATURE_CACHE_UNIFIED;
        if (data && cache->level >= 1 && cache->level <= 3) *places[cache->level - 1] = cache->cache_size;
    }
}

// Reads the size of the third-level cache with one cpuid, 0 if it reports none. Under a hypervisor a cpuid costs
// microseconds, and the files of /sys cost ten times that. Source: Intel's manual, volume 2A, leaf 04H; AMD's, volume
// 3, function 8000_001Dh. Both:
//
//     eax  | ...           | level 7..5    | type 4..0          |
//     ebx  | ways-1 31..22 | parts-1 21..12 | bytes a line-1 11..0 |
//     ecx  | sets-1                                               |      size = ways * parts * bytes a line * sets
static int64_t outer_cache(const X86Info *info)
{
    enum { UNIFIED = 3, THIRD = 3 };
    bool amd = strcmp(info->vendor, CPU_FEATURES_VENDOR_AUTHENTIC_AMD) == 0 && info->family >= 0x17;
    bool intel = strcmp(info->vendor, CPU_FEATURES_VENDOR_GENUINE_INTEL) == 0 && info->family >= 6;
    if (!amd && !intel) return 0;
    uint32_t a, b, c, d;
    __cpuid_count(amd ? 0x8000001d : 4, 3, a, b, c, d);
    (void)d;
    if ((a & 31) != UNIFIED || (a >> 5 & 7) != THIRD) return 0;
    return (int64_t)((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((int64_t)c + 1);
}

// Brand strings are padded with spaces on both sides.
static void copy_trimmed(char *out, size_t size, const char *text)
{
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    snprintf(out, size, "%.*s", (int)length, text);
}

bool hone_os_has_matrix_unit(void)
{
    const X86Info info = GetX86Info();
    return info.features.amx_tile && (info.features.amx_bf16 || info.features.amx_int8);
}

void hone_os_cpu_read(hone_os_cpu *out)
{
    memset(out, 0, sizeof *out);
    X86Info info = GetX86Info();
    copy_trimmed(out->vendor, sizeof out->vendor, info.vendor);
    copy_trimmed(out->brand, sizeof out->brand, info.brand_string);
    name_microarchitecture(&info, out->microarchitecture, sizeof out->microarchitecture);
    const X86Features *f = &info.features;
    // cpu_features has checked that the system saves the tiles' registers (XCR0).
    out->features = feature_bits(f) |
                    hone_os_matrix_features(f->amx_tile, f->amx_bf16, f->amx_int8, f->amx_tile ? lent_states() : 0);
    hone_os_cache_sizes_from_libc(out);
    out->l3_bytes = outer_cache(&info);
    hone_os_cache_sizes("", out);
    // This takes many cpuids, so it is the last resort.
    if (out->l1_bytes == 0 || out->l2_bytes == 0) read_cpuid_caches(out);
    int32_t quota = hone_os_cgroup_threads("");
    out->threads = hone_os_affinity_threads();
    if (quota > 0 && quota < out->threads) out->threads = quota;
    out->memory_bytes = hone_os_memory_bytes();
}
