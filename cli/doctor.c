// hone doctor: one row a check, each with what to do about it.
#include "cli.h"

#include "os/os.h"
#include "tune/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

typedef struct check {
    bool ok;
    char detail[400];
    const char *advice; // NULL: none needed
} check;

static void check_store(hone_cli *cli, check *out)
{
    hone_store *store = NULL;
    hone_error err;
    if (cli_open_store(cli, &store) != 0) {
        *out = (check){false, "it cannot be opened", "see the message above; HONE_STORE or --store names another"};
        return;
    }
    hone_store_stat stat;
    out->ok = hone_store_get_stat(store, &stat, &err) == HONE_OK;
    if (out->ok)
        snprintf(
            out->detail, sizeof out->detail, "%s: %llu decisions, %llu damaged records set aside, schema %u",
            hone_store_url(store), (unsigned long long)stat.decisions, (unsigned long long)stat.quarantined,
            stat.schema);
    else
        snprintf(out->detail, sizeof out->detail, "%.390s", err.message);
    out->advice = out->ok ? NULL : "move the file away; hone makes a new one";
    hone_store_close(&store);
}

static void check_system_store(hone_cli *cli, check *out)
{
    (void)cli;
    const char *url = getenv("HONE_SYSTEM_STORE");
    const hone_store_options options = {.struct_size = sizeof options, .read_only = true};
    hone_store *store = NULL;
    hone_store_stat stat;
    hone_error err;
    if (url == NULL || url[0] == '\0' || strcmp(url, "none") == 0) {
        *out = (check){true, "there is none (HONE_SYSTEM_STORE)", NULL};
        return;
    }
    out->ok = hone_store_open_with(&options, url, &store, &err) == HONE_OK &&
              hone_store_get_stat(store, &stat, &err) == HONE_OK;
    if (out->ok)
        snprintf(
            out->detail, sizeof out->detail, "%.300s: %llu decisions, schema %u, never written", url,
            (unsigned long long)stat.decisions, stat.schema);
    else
        snprintf(out->detail, sizeof out->detail, "%.390s", err.message);
    out->advice = out->ok ? NULL : "hone goes on without it: name another with HONE_SYSTEM_STORE, or unset it";
    hone_store_close(&store);
}

// The folder of the store's file; false for a store that is in none.
static bool store_folder(const hone_cli *cli, char *out, size_t size)
{
    char url[4096];
    if (cli_store_url(cli, url, sizeof url) != 0 || strncmp(url, "sqlite:", 7) != 0) return false;
    snprintf(out, size, "%s", url + 7);
    char *slash = strrchr(out, '/');
    snprintf(slash == NULL ? out : slash, 2, slash == NULL ? "." : slash == out ? "/" : "");
    return true;
}

// SQLite's write-ahead log needs memory that processes share, which no network gives.
static const char *network_of(const struct statfs *fs)
{
    static const struct {
        unsigned long type;
        const char *name;
    } networks[] = {
        {0x6969, "NFS"}, {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"}, {0x01021997, "9p"}, {0x5346414f, "AFS"}};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if ((uint32_t)fs->f_type == networks[i].type) return networks[i].name;
    return NULL;
}

static void check_file_system(hone_cli *cli, check *out)
{
    enum { LEAST_MEGABYTES = 64 };
    char folder[4096];
    struct statfs fs;
    if (!store_folder(cli, folder, sizeof folder) || statfs(folder, &fs) != 0) {
        *out = (check){true, "the store is in no file", NULL};
        return;
    }
    const char *network = network_of(&fs);
    double megabytes = (double)fs.f_bavail * (double)fs.f_bsize / 1e6;
    snprintf(
        out->detail, sizeof out->detail, "%.300s: %.0f MB free%s%s", folder, megabytes, network == NULL ? "" : ", ",
        network == NULL ? "" : network);
    out->ok = network == NULL && megabytes >= LEAST_MEGABYTES;
    if (network != NULL) out->advice = "put the store on a local disk: set HONE_STORE";
    if (megabytes < LEAST_MEGABYTES) out->advice = "free space, or put the store on another disk: set HONE_STORE";
}

// How far a fixed piece of work scatters: what measurements on this machine can be worth.
static void check_clock(hone_cli *cli, check *out)
{
    (void)cli;
    double low = INFINITY, sum = 0;
    enum { ROUNDS = 200 };
    volatile uint64_t sink = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = hone_os_now_ns();
        for (uint64_t i = 0; i < 20000; i++)
            sink = sink * 3 + i;
        double time = (double)(hone_os_now_ns() - start);
        low = time < low ? time : low;
        sum += time;
    }
    double noise = sum / ROUNDS / low - 1;
    out->ok = noise < 0.25;
    snprintf(
        out->detail, sizeof out->detail, "a loop of %.0f us takes %.1f %% more than its best on average, load %.2f",
        low / 1e3, 100 * noise, hone_os_load());
    out->advice = out->ok ? NULL : "stop other work while tuning; hone interleaves, but a busy machine costs time";
}

static void check_governor(hone_cli *cli, check *out)
{
    (void)cli;
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    hone_status status = hone_os_read_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", 64, &text, NULL);
    bool powersave = status == HONE_OK && strncmp(hone_buffer_string(&text), "powersave", 9) == 0;
    snprintf(
        out->detail, sizeof out->detail, "%.40s", status == HONE_OK ? hone_buffer_string(&text) : "not visible here");
    out->detail[strcspn(out->detail, "\n")] = '\0';
    out->ok = !powersave;
    out->advice = powersave ? "cpupower frequency-set -g performance while tuning" : NULL;
    hone_buffer_deinit(&text);
}

static void check_worker(hone_cli *cli, check *out)
{
    (void)cli;
    hone_allocator allocator = hone_allocator_system();
    hone_worker_pool *pool = NULL;
    char path[4096];
    hone_error err;
    out->ok = hone_worker_pool_create(&allocator, NULL, &pool, &err) == HONE_OK &&
              hone_worker_pool_program(pool, path, sizeof path, &err) == HONE_OK;
    snprintf(out->detail, sizeof out->detail, "%.390s", out->ok ? path : err.message);
    out->advice = out->ok ? NULL : "install it beside the library (libexec/hone), or set HONE_WORKER to its path";
    hone_worker_pool_destroy(&pool);
}

static void check_platforms(hone_cli *cli, check *out)
{
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    out->ok = count > 0;
    snprintf(
        out->detail, sizeof out->detail, "%zu device%s, the first is %.200s", count, count == 1 ? "" : "s",
        count > 0 ? devices[0]->fingerprint : "-");
    out->advice = out->ok ? NULL : "HONE_PLATFORMS leaves none";
}

static void check_libraries(hone_cli *cli, check *out)
{
    static const struct {
        const char *names[3];
    } libraries[] = {
        {{"libopenblas.so.0", "libopenblas.so", NULL}},
        {{"libdnnl.so.2", "libdnnl.so.3", NULL}},
    };
    // Kept open: a library that has started threads cannot be closed.
    static hone_library *kept[sizeof libraries / sizeof libraries[0]];
    (void)cli;
    hone_allocator allocator = hone_allocator_system();
    out->ok = true;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        bool here = hone_library_open(&allocator, libraries[i].names, &kept[i], NULL) == HONE_OK;
        size_t used = strlen(out->detail);
        snprintf(
            out->detail + used, sizeof out->detail - used, "%s%s %s", i == 0 ? "" : ", ", libraries[i].names[0],
            here ? "found" : "missing");
        if (!here) out->advice = "rivals that are installed compete too: libopenblas-dev libdnnl-dev (Debian)";
    }
}

static const struct {
    const char *name;
    void (*run)(hone_cli *cli, check *out);
} checks[] = {
    {"store", check_store},
    {"system store", check_system_store},
    {"file system", check_file_system},
    {"worker", check_worker},
    {"clock", check_clock},
    {"governor", check_governor},
    {"platforms", check_platforms},
    {"libraries", check_libraries},
};

int cli_doctor(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    bool all = true;
    json_t *rows = json_array();
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        check result = {.ok = false};
        checks[i].run(cli, &result);
        all = all && result.ok;
        json_array_append_new(
            rows, json_pack(
                      "{s:s, s:b, s:s, s:s?}", "name", checks[i].name, "ok", result.ok, "detail", result.detail,
                      "advice", result.advice));
        if (cli->options.json) continue;
        printf("%-12s %-6s %s\n", checks[i].name, result.ok ? "ok" : "FAILED", result.detail);
        if (result.advice != NULL) printf("%-12s        %s\n", "", result.advice);
    }
    if (cli->options.json) cli_print_json(json_pack("{s:O}", "checks", rows));
    json_decref(rows);
    return all ? EXIT_DONE : EXIT_NO;
}
