// Checks of files: the store, its repaired damage, its file system, and the lock file.
#include "runtime/doctor/doctor.h"

#include "base/number.h"
#include "lock/lock.h"
#include "os/os.h"
#include "store/ops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static void add(hone_doctor_check *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(hone_doctor_check *out, const char *format, ...)
{
    va_list list;
    size_t used = strlen(out->detail);
    va_start(list, format);
    hone_print_list(out->detail + used, sizeof out->detail - used, format, list);
    va_end(list);
}

// The store -----------------------------------------------------------------------------------------------------------

// The store reports what it repaired when it was opened and read.
typedef struct heard {
    char text[500];
} heard;

static void hear(void *ctx, int level, const char *message)
{
    heard *all = ctx;
    if (level > 1 || all->text[0] != '\0') return;
    snprintf(all->text, sizeof all->text, "%s", message);
}

static void read_store(hone_store *store, hone_doctor_check *out)
{
    hone_store_health health;
    hone_store_stat stat;
    hone_error err;
    hone_status status = hone_store_verify(store, &health, &err);
    // Pages are damaged: the sound data were copied into a new file, as the log reports.
    if (status == HONE_CORRUPT) status = hone_store_verify(store, &health, &err);
    if (status != HONE_OK || hone_store_get_stat(store, &stat, &err) != HONE_OK) {
        add(out, "%.500s", err.message);
        out->advice = "hone store export what can still be read, and move the file away: hone makes a new one";
        return;
    }
    const char *journal = hone_store_journal(store);
    add(out, "%.300s: %" PRIu64 " decision%s, all %" PRIu64 " records read and sound, schema %u%s%s",
        hone_store_url(store), stat.decisions, stat.decisions == 1 ? "" : "s", health.records, stat.schema,
        journal == NULL ? "" : ", ", journal == NULL ? "" : journal);
    out->ok = health.set_aside == 0;
    if (!out->ok) add(out, "; %" PRIu64 " damaged ones were set aside now", health.set_aside);
}

void hone_doctor_store(hone_doctor_round *round, hone_doctor_check *out)
{
    static const char tune_again[] = "what was damaged is served no more: tune those calls again, and look at the disk";
    const char *url = round->rt->store.url;
    heard log = {""};
    hone_error err;
    hone_store *store = NULL;
    const hone_store_options options = {.struct_size = sizeof options, .log = hear, .log_ctx = &log};
    if (url == NULL) {
        *out = (hone_doctor_check){true, "there is none", NULL};
        return;
    }
    if (hone_store_open_with(&options, url, &store, &err) != HONE_OK) {
        add(out, "%.900s", err.message);
        out->advice = "hone goes on without it: mend that, or name another store with HONE_STORE or --store";
        return;
    }
    read_store(store, out);
    if (log.text[0] != '\0') {
        out->ok = false;
        add(out, "; %s", log.text);
    }
    if (!out->ok && out->advice == NULL) out->advice = tune_again;
    hone_store_close(&store);
}

void hone_doctor_system_store(hone_doctor_round *round, hone_doctor_check *out)
{
    const char *url = round->rt->system_store.url;
    const hone_store_options options = {.struct_size = sizeof options, .read_only = true};
    hone_store *store = NULL;
    hone_store_stat stat;
    hone_error err;
    if (url == NULL) {
        *out = (hone_doctor_check){true, "there is none (HONE_SYSTEM_STORE)", NULL};
        return;
    }
    out->ok = hone_store_open_with(&options, url, &store, &err) == HONE_OK &&
              hone_store_get_stat(store, &stat, &err) == HONE_OK;
    if (out->ok)
        add(out, "%.300s: %" PRIu64 " decision%s, schema %u, never written", url, stat.decisions,
            stat.decisions == 1 ? "" : "s", stat.schema);
    else
        add(out, "%.900s", err.message);
    out->advice = out->ok ? NULL : "hone goes on without it: name another with HONE_SYSTEM_STORE, or unset it";
    hone_store_close(&store);
}

// Earlier damage
// -------------------------------------------------------------------------------------------------------

static uint64_t count_quarantined(const char *url)
{
    hone_store *store = NULL;
    hone_store_stat stat;
    bool known = hone_store_open(hone_allocator_system(), url, &store, NULL) == HONE_OK &&
                 hone_store_get_stat(store, &stat, NULL) == HONE_OK;
    hone_store_close(&store);
    return known ? stat.quarantined : 0;
}

void hone_doctor_damage(hone_doctor_round *round, hone_doctor_check *out)
{
    const char *url = round->rt->store.url;
    char first[256] = "";
    const uint64_t records = url != NULL ? count_quarantined(url) : 0;
    const size_t files = url != NULL ? hone_store_count_aside(url, first, sizeof first) : 0;
    out->ok = true;
    if (records == 0 && files == 0) {
        add(out, "nothing was set or moved aside");
        return;
    }
    add(out, "%" PRIu64 " records set aside, %zu files moved aside%s%s", records, files, files == 0 ? "" : ", one is ",
        first);
    out->advice =
        "none of it is read any more: look into it (hone store verify), tune those calls again, delete the files";
}

// The disk ------------------------------------------------------------------------------------------------------------

void hone_doctor_file_system(hone_doctor_round *round, hone_doctor_check *out)
{
    enum { LEAST_MEGABYTES = 64 };
    char path[PATH_SIZE], folder[PATH_SIZE];
    double bytes = 0;
    const char *url = round->rt->store.url;
    if (url == NULL || !hone_store_file(url, path, sizeof path)) {
        *out = (hone_doctor_check){true, "the store is in no file", NULL};
        return;
    }
    if (!hone_os_folder_of(path, folder, sizeof folder) || !hone_os_free_bytes(folder, &bytes)) {
        add(out, "%.300s is not there", folder);
        out->advice = "hone makes it when there is something to store, if it may";
        out->ok = true;
        return;
    }
    bool network = hone_os_is_network_file(path);
    const double megabytes = bytes / 1e6;
    add(out, "%.300s: %.0f MB free%s", folder, megabytes, network ? ", over a network" : "");
    out->ok = megabytes >= LEAST_MEGABYTES;
    if (network) out->advice = "each put waits for the network: put the store on a local disk, set HONE_STORE";
    if (!out->ok) out->advice = "free space, or put the store on another disk: set HONE_STORE";
}

// The lock file -------------------------------------------------------------------------------------------------------

// Why the registry of this command cannot follow a line. Algorithms that only a program registers are left to the
// program.
static bool is_followed(hone_runtime *rt, const hone_lock_line *line, hone_error *why)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, line->algorithm, line->version);
    hone_platform platform;
    hone_config config;
    if (algorithm == NULL) return true;
    if (hone_platform_parse(line->platform, &platform, why) != HONE_OK) return false;
    const hone_kernel_ref *kernel = hone_kernel_by_name(algorithm, line->kernel, platform);
    if (kernel == NULL) {
        snprintf(why->message, sizeof why->message, "kernel %s/%s is not registered", line->platform, line->kernel);
        return false;
    }
    // There may be one kernel with this name for each backend.
    for (; kernel != NULL; kernel = hone_kernel_after(algorithm, kernel, platform)) {
        const char *now = kernel->kernel.revision;
        if (line->revision != NULL && strcmp(line->revision, now) != 0)
            snprintf(
                why->message, sizeof why->message,
                "kernel %s/%s was revision %.70s when it was locked, and is %.70s now", line->platform, line->kernel,
                line->revision, now);
        else if (hone_config_from_json(kernel->space, line->config, strlen(line->config), &config, why) == HONE_OK)
            return true;
    }
    return false;
}

static bool is_here(hone_runtime *rt, const char *device)
{
    size_t count;
    const hone_device_info *const *devices = hone_runtime_devices(rt, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(devices[i]->fingerprint, device) == 0) return true;
    return false;
}

static void look_at_lines(hone_runtime *rt, const hone_lock *lock, hone_doctor_check *out)
{
    size_t here = 0, lost = 0;
    uint32_t first = 0;
    hone_error why = {.message = ""}, reason = {.message = ""};
    for (size_t i = 0; i < hone_lock_size(lock); i++) {
        const hone_lock_line *line = hone_lock_at(lock, i);
        if (!is_here(rt, line->device)) continue;
        here++;
        if (is_followed(rt, line, &reason)) continue;
        if (lost++ > 0) continue;
        first = line->number;
        why = reason;
    }
    add(out, "%zu choice%s, %zu for this machine", hone_lock_size(lock), hone_lock_size(lock) == 1 ? "" : "s", here);
    out->ok = lost == 0;
    if (here == 0)
        out->advice = "under the policy frozen nothing answers here: hone tune, then hone lock --device here";
    if (lost == 0) return;
    add(out, ", %zu of which cannot be followed, the first in line %u: %.300s", lost, first, why.message);
    out->advice = "tune those calls again and write them anew: hone lock --device here";
}

void hone_doctor_lock(hone_doctor_round *round, hone_doctor_check *out)
{
    const char *path = round->lock_file;
    hone_lock *lock = NULL;
    hone_error err;
    if (path == NULL) {
        *out = (hone_doctor_check){true, "none is named (HONE_LOCK)", NULL};
        return;
    }
    if (hone_lock_read(hone_allocator_system(), path, 0, &lock, &err) != HONE_OK) {
        add(out, "%.900s", err.message);
        out->advice = "programs with this HONE_LOCK do not start: mend the file (hone lock), or unset HONE_LOCK";
        return;
    }
    add(out, "%.300s: ", path);
    look_at_lines(round->rt, lock, out);
    hone_lock_release(&lock);
}
