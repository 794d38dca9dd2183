// What this machine can do at best, for the column "peak". Measuring takes a fifth of a second, all processors and up
// to 1 GiB within what this process may take; so it is done once a boot, and kept in the user's cache folder.
#include "cli.h"

#include "kernels/common/peak.h"
#include "os/limits.h"
#include "os/plain_file.h"
#include "runtime/api/api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, FILE_LIMIT = 64 << 10 };

static hone_peak peak;
static char lacks[240];

static double *one_of(hone_peak *all, cli_peak_kind kind)
{
    return kind == CLI_PEAK_F32 ? &all->operations : kind == CLI_PEAK_BF16 ? &all->of_bf16 : &all->bytes;
}

const char *cli_peak_lacks(cli_peak_kind kind)
{
    return *one_of(&peak, kind) > 0 ? "" : lacks;
}

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

// What a peak holds for: this boot of this machine, with these processors, as this hone measures. NULL: nobody can
// tell.
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
        json_number_value(json_object_get(root, "operations")), json_number_value(json_object_get(root, "of_bf16")),
        json_number_value(json_object_get(root, "bytes"))};
    here = json_equal(json_object_get(root, "of"), origin) && is_speed(out->operations) && is_speed(out->of_bf16) &&
           is_speed(out->bytes);
    json_decref(root);
    return here;
}

// A peak without memory is not kept: the next command may have more.
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

static void say_what_lacks(int64_t cache_bytes, int64_t left, const char *by)
{
    if (cache_bytes > 0)
        snprintf(
            lacks, sizeof lacks,
            "the speed of memory was not measured: %s leaves %.0f MB, and reading more than its caches hold (%.0f MB) "
            "takes four times those",
            by, (double)left / 1e6, (double)cache_bytes / 1e6);
    else
        snprintf(
            lacks, sizeof lacks, "the speed of memory was not measured: %s leaves %.0f MB, too little", by,
            (double)left / 1e6);
}

static hone_peak measure(hone_cli *cli)
{
    const hone_device_info *cpu = cli->rt->cpu;
    hone_pool *pool = hone_runtime_pool(cli->rt);
    const hone_allocator allocator = hone_allocator_system();
    hone_peak now = {0};
    const char *by;
    hone_error err = {.message = ""};
    const int64_t left = hone_os_memory_left("", &by);
    const size_t memory = hone_peak_memory(cpu->l3_bytes, left);
    lacks[0] = '\0';
    if (memory == 0) say_what_lacks(cpu->l3_bytes, left, by);
    hone_status status = hone_peak_measure(
        &allocator, cpu->features, cpu->threads, memory, pool != NULL ? hone_pool_run : NULL, pool, &now, &err);
    if (status != HONE_OK) {
        snprintf(lacks, sizeof lacks, "it was not measured: %.200s", err.message);
        now = (hone_peak){0};
    }
    return now;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static hone_peak greatest(hone_peak a, hone_peak b)
{
    return (hone_peak){greater(a.operations, b.operations), greater(a.of_bf16, b.of_bf16), greater(a.bytes, b.bytes)};
}

// One that was kept may have been measured on a busier machine than this is now. What was reached all the same, by
// instructions that no loop here has, is the most that is known; it is not kept.
double cli_peak(hone_cli *cli, cli_peak_kind kind, double seen)
{
    static bool is_known, is_fresh;
    json_t *origin = is_fresh ? NULL : make_origin(cli->rt->cpu);
    if (!is_known) is_known = origin != NULL && read_kept(origin, &peak);
    if (!is_fresh && (!is_known || *one_of(&peak, kind) < seen)) {
        const hone_peak kept = is_known ? peak : (hone_peak){0}, now = measure(cli);
        peak = greatest(kept, now);
        if (origin != NULL) keep(origin, &peak);
        is_known = is_fresh = true;
    }
    json_decref(origin);
    double *one = one_of(&peak, kind);
    if (*one > 0 && *one < seen) *one = seen;
    return *one;
}
