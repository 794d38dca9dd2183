// The peak performance of this machine's CPU. Measuring takes a fifth of a second, all processors, and up to 1 GiB of
// the memory that this process may use; so it is done once per boot, and kept in the user's cache folder.
#include "kernels/common/peak.h"
#include "base/error.h"
#include "base/json.h"
#include "base/structs.h"
#include "hone/measure.h"
#include "os/limits.h"
#include "os/plain_file.h"
#include "runtime/api/api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, FILE_LIMIT = 64 << 10 };

// What was kept -------------------------------------------------------------------------------------------------------

// $XDG_CACHE_HOME/hone/peak.json, else ~/.cache/hone/peak.json; false when there is neither.
static bool path_of(char *out, size_t size)
{
    const char *cache = hone_os_variable("XDG_CACHE_HOME"), *home = hone_os_variable("HOME");
    int length = 0;
    if (cache != NULL && cache[0] == '/')
        length = snprintf(out, size, "%s/hone/peak.json", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(out, size, "%s/.cache/hone/peak.json", home);
    return length > 0 && (size_t)length < size;
}

// The conditions under which a kept peak is valid: this boot of this machine, these processors, this version of hone.
// NULL if they cannot be determined.
static json_t *make_origin(const hone_device_info *cpu)
{
    char boot[HONE_OS_TEXT_SIZE];
    if (!hone_os_read_text("", "/proc/sys/kernel/random/boot_id", boot)) return NULL;
    boot[strcspn(boot, "\n")] = '\0';
    return json_pack(
        "{s:s, s:s, s:i, s:s, s:i}", "boot", boot, "device", cpu->fingerprint, "threads", (int)cpu->threads, "hone",
        hone_version(), "revision", (int)HONE_PEAK_REVISION);
}

static bool is_speed(double value)
{
    return isfinite(value) && value > 0;
}

static bool read_kept(const json_t *origin, hone_peak *out)
{
    char path[PATH_SIZE];
    hone_buffer text;
    if (!path_of(path, sizeof path)) return false;
    hone_buffer_init(&text, hone_allocator_system());
    bool here = hone_os_read_plain_file(path, FILE_LIMIT, &text, NULL) == HONE_OK;
    json_t *root = here ? json_loadb(text.data, text.size, 0, NULL) : NULL;
    hone_buffer_deinit(&text);
    *out = (hone_peak){
        .operations = json_number_value(json_object_get(root, "operations")),
        .of_bf16 = json_number_value(json_object_get(root, "of_bf16")),
        .bytes = json_number_value(json_object_get(root, "bytes"))};
    here = json_equal(json_object_get(root, "of"), origin) && is_speed(out->operations) && is_speed(out->of_bf16) &&
           is_speed(out->bytes);
    json_decref(root);
    return here;
}

// A peak without the memory's bandwidth is not kept: the next command may have more memory available.
static void keep(json_t *origin, const hone_peak *best)
{
    char path[PATH_SIZE], folder[PATH_SIZE];
    if (best->bytes <= 0 || !path_of(path, sizeof path) || !hone_os_folder_of(path, folder, sizeof folder)) return;
    json_t *root = json_pack(
        "{s:O, s:f, s:f, s:f}", "of", origin, "operations", best->operations, "of_bf16", best->of_bf16, "bytes",
        best->bytes);
    char *text = json_dumps(root, JSON_INDENT(1));
    if (text != NULL && hone_os_make_folders(folder, NULL) == HONE_OK)
        (void)hone_os_replace_file(path, text, strlen(text), NULL);
    free(text);
    json_decref(root);
}

// Measuring -----------------------------------------------------------------------------------------------------------

static void say_what_lacks(char *lacks, size_t size, int64_t cache_bytes, int64_t left, const char *by)
{
    if (cache_bytes > 0)
        snprintf(
            lacks, size,
            "the speed of memory was not measured: %s leaves %.0f MB, and reading more than its caches hold (%.0f MB) "
            "takes four times those",
            by, (double)left / 1e6, (double)cache_bytes / 1e6);
    else
        snprintf(
            lacks, size, "the speed of memory was not measured: %s leaves %.0f MB, too little", by, (double)left / 1e6);
}

// Values that could not be measured are 0, and `lacks` says why.
static hone_peak measure(hone_runtime *rt)
{
    hone_pool *pool = hone_runtime_pool(rt);
    hone_peak now = {.operations = 0};
    const char *by;
    hone_error err = {.message = ""};
    const int64_t left = hone_os_memory_left("", &by);
    const size_t memory = hone_peak_memory(rt->cpu->l3_bytes, left);
    const hone_status status = hone_peak_measure(
        &rt->allocator, rt->cpu->features, rt->cpu->threads, memory, pool != NULL ? hone_pool_run : NULL, pool, &now,
        &err);
    now.lacks[0] = '\0';
    if (memory == 0) say_what_lacks(now.lacks, sizeof now.lacks, rt->cpu->l3_bytes, left, by);
    if (status != HONE_OK) {
        now = (hone_peak){.operations = 0};
        snprintf(now.lacks, sizeof now.lacks, "it was not measured: %.200s", err.message);
    }
    now.is_new = true;
    return now;
}

static void keep_greater(double *one, double other)
{
    if (other > *one) *one = other;
}

hone_status hone_peak_read_sized(hone_runtime *rt, bool anew, hone_peak *out, size_t size, hone_error *err)
{
    if (rt == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "peak.read", "the runtime and out must not be NULL");
    const hone_status status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    json_t *origin = make_origin(rt->cpu);
    hone_peak kept, best;
    const bool is_kept = origin != NULL && read_kept(origin, &kept);
    if (is_kept && !anew)
        best = kept;
    else {
        best = measure(rt);
        if (is_kept) {
            keep_greater(&best.operations, kept.operations);
            keep_greater(&best.of_bf16, kept.of_bf16);
            keep_greater(&best.bytes, kept.bytes);
        }
        if (origin != NULL) keep(origin, &best);
    }
    json_decref(origin);
    hone_struct_give(out, size, &best, sizeof best);
    return HONE_OK;
}
