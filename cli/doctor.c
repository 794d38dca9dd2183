// hone doctor: one row a check, each with what to do about it.
#include "doctor.h"

#include "os/os.h"
#include "runtime/state/runtime.h"
#include "tune/isolate/sandbox.h"
#include "tune/worker/confine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How far a fixed piece of work scatters: what measurements on this machine can be worth.
static void check_clock(hone_cli *cli, cli_check *out)
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

static void check_worker(hone_cli *cli, cli_check *out)
{
    (void)cli;
    hone_allocator allocator = hone_allocator_system();
    hone_workers *pool = NULL;
    char path[4096];
    hone_error err;
    hone_process worker;
    out->ok = hone_workers_create(&allocator, NULL, &pool, &err) == HONE_OK &&
              hone_workers_program(pool, path, sizeof path, &err) == HONE_OK &&
              hone_workers_take(pool, false, &worker, &err) == HONE_OK;
    if (out->ok) hone_workers_give(pool, false, &worker);
    char confined[200];
    hone_worker_tell_confinement(confined, sizeof confined);
    if (out->ok)
        snprintf(out->detail, sizeof out->detail, "%.390s, which %s", path, confined);
    else
        snprintf(out->detail, sizeof out->detail, "%.390s", err.message);
    out->advice = !out->ok ? "install it beside the library (libexec/hone), or set HONE_WORKER to its path"
                  : hone_worker_is_confined() ? NULL
                                              : "tune kernels of authors whom you trust: SECURITY.md";
    hone_workers_destroy(&pool);
}

static void check_disturbance(hone_cli *cli, const hone_device_info *device, cli_check *out)
{
    hone_error why = {.message = ""};
    const size_t used = strlen(out->detail);
    if (hone_runtime_sees_disturbance(cli->rt, device, &why) == HONE_OK) return;
    snprintf(
        out->detail + used, sizeof out->detail - used, "; on %s:%d nobody sees what disturbs samples: %.200s",
        hone_platform_name(device->platform), (int)device->device.id, why.message);
    out->advice = "have contests on such a device alone: what others do there is in their times and not told";
}

static void check_platforms(hone_cli *cli, cli_check *out)
{
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    out->ok = count > 0;
    snprintf(
        out->detail, sizeof out->detail, "%zu device%s, the first is %.200s", count, count == 1 ? "" : "s",
        count > 0 ? devices[0]->fingerprint : "-");
    out->advice = out->ok ? NULL : "HONE_PLATFORMS leaves none";
    for (size_t i = 0; i < count; i++)
        check_disturbance(cli, devices[i], out);
}

// What somebody set is his decision: it is told, and no fault.
static bool limits_libraries(void)
{
    static const char *const names[] = {"OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]) != NULL && getenv(names[i])[0] != '\0') return true;
    return false;
}

static void check_libraries(hone_cli *cli, cli_check *out)
{
    const char *text = cli_libraries(cli), *line;
    size_t size, used = 0, count = 0;
    bool is_below;
    bool all_fit = true;
    for (; (line = cli_library_line(&text, &size, &is_below)) != NULL; count++) {
        snprintf(out->detail + used, sizeof out->detail - used, "%s%.*s", count == 0 ? "" : "; ", (int)size, line);
        used = strlen(out->detail);
        all_fit = all_fit && !is_below;
    }
    if (count == 0) snprintf(out->detail, sizeof out->detail, "none is installed, or no hone-worker can be asked");
    out->ok = all_fit || limits_libraries();
    if (!all_fit)
        out->advice = out->ok
                          ? "nothing is compared with a library that runs below the machine: unset OPENBLAS_CORETYPE, "
                            "ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA"
                          : "nothing is compared with a library that runs below the machine: install a newer one";
    else if (count < 2)
        out->advice = "rivals that are installed compete too: libopenblas-dev libdnnl-dev (Debian)";
}

static void check_unverified(hone_cli *cli, cli_check *out)
{
    const bool allows = cli->rt->allows_unverified;
    out->ok = true; // who sets it wants it so
    snprintf(
        out->detail, sizeof out->detail, "%s",
        allows ? "HONE_UNVERIFIED=allow: kernels of packs and of programs answer as they are"
               : "kernels of packs and of programs are verified before they answer");
    out->advice = allows ? "unset HONE_UNVERIFIED, unless their results are checked elsewhere" : NULL;
}

static const struct {
    const char *name;
    void (*run)(hone_cli *cli, cli_check *out);
} checks[] = {
    {"store", cli_check_store},
    {"system store", cli_check_system_store},
    {"damage", cli_check_damage},
    {"file system", cli_check_file_system},
    {"lock file", cli_check_lock},
    {"worker", check_worker},
    {"clock", check_clock},
    {"governor", cli_check_governor},
    {"frequency", cli_check_frequency},
    {"pinning", cli_check_pinning},
    {"throttling", cli_check_throttling},
    {"load", cli_check_load},
    {"contests", cli_check_contests},
    {"platforms", check_platforms},
    {"libraries", check_libraries},
    {"unverified", check_unverified},
};

int cli_doctor(hone_cli *cli)
{
    int status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    bool all = true;
    json_t *rows = json_array();
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        cli_check result = {.ok = false};
        checks[i].run(cli, &result);
        all = all && result.ok;
        json_array_append_new(
            rows, json_pack(
                      "{s:s, s:b, s:s, s:s?}", "name", checks[i].name, "ok", result.ok, "detail", result.detail,
                      "advice", result.advice));
        if (cli->options.json) continue;
        cli_say("%-12s %-6s %s\n", checks[i].name, result.ok ? "ok" : "FAILED", result.detail);
        if (result.advice != NULL) cli_say("%-12s        %s\n", "", result.advice);
    }
    if (cli->options.json) cli_print_json(json_pack("{s:O}", "checks", rows));
    json_decref(rows);
    return all ? EXIT_DONE : EXIT_NO;
}
