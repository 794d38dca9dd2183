// One check after the other, each with what to do about it.
#include "runtime/doctor/doctor.h"

#include "base/error.h"
#include "base/number.h"
#include "hone/doctor.h"
#include "hone/measure.h"
#include "os/os.h"
#include "tune/isolate/sandbox.h"
#include "tune/worker/confine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Measures how much a fixed piece of work scatters, which bounds the precision of measurements on this machine.
static void check_clock(hone_doctor_round *round, hone_doctor_check *out)
{
    (void)round;
    double low = INFINITY, sum = 0;
    enum { ROUNDS = 200 };
    volatile uint64_t sink = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = hone_os_now_ns();
        for (uint64_t step = 0; step < 20000; step++)
            sink = sink * 3 + step;
        double time = (double)(hone_os_now_ns() - start);
        low = time < low ? time : low;
        sum += time;
    }
    double noise = sum / ROUNDS / low - 1;
    out->ok = noise < 0.25;
    hone_print(
        out->detail, sizeof out->detail, "a loop of %.0f us takes %.1f %% more than its best on average, load %.2f",
        low / 1e3, 100 * noise, hone_os_load());
    out->advice = out->ok ? NULL : "stop other work while tuning; hone interleaves, but a busy machine costs time";
}

static void check_worker(hone_doctor_round *round, hone_doctor_check *out)
{
    (void)round;
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

static void check_disturbance(hone_runtime *rt, const hone_device_info *device, hone_doctor_check *out)
{
    hone_error why = {.message = ""};
    const size_t used = strlen(out->detail);
    if (hone_runtime_sees_disturbance(rt, device, &why) == HONE_OK) return;
    snprintf(
        out->detail + used, sizeof out->detail - used, "; on %s:%d nobody sees what disturbs samples: %.200s",
        hone_platform_name(device->platform), (int)device->device.id, why.message);
    out->advice = "have contests on such a device alone: what others do there is in their times and not told";
}

static void check_platforms(hone_doctor_round *round, hone_doctor_check *out)
{
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(round->rt, &count);
    out->ok = count > 0;
    snprintf(
        out->detail, sizeof out->detail, "%zu device%s, the first is %.200s", count, count == 1 ? "" : "s",
        count > 0 ? devices[0]->fingerprint : "-");
    out->advice = out->ok ? NULL : "HONE_PLATFORMS leaves none";
    for (size_t i = 0; i < count; i++)
        check_disturbance(round->rt, devices[i], out);
}

// A variable that the user set is a choice of the user: doctor reports it, and does not count it as a fault.
static bool limits_libraries(void)
{
    static const char *const names[] = {"OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hone_os_variable(names[i]) != NULL && hone_os_variable(names[i])[0] != '\0') return true;
    return false;
}

typedef struct rivals {
    hone_doctor_check *out;
    size_t used, count;
    bool all_fit;
} rivals;

static bool note_rival(void *ctx, const hone_rival *rival)
{
    rivals *all = ctx;
    hone_doctor_check *out = all->out;
    snprintf(out->detail + all->used, sizeof out->detail - all->used, "%s%s", all->count == 0 ? "" : "; ", rival->text);
    all->used = strlen(out->detail);
    all->all_fit = all->all_fit && !rival->is_below;
    all->count++;
    return true;
}

static void check_libraries(hone_doctor_round *round, hone_doctor_check *out)
{
    rivals all = {.out = out, .all_fit = true};
    const hone_status status = hone_rivals(round->rt, note_rival, &all, NULL);
    if (status != HONE_OK || all.count == 0)
        snprintf(out->detail, sizeof out->detail, "none is installed, or no hone-worker can be asked");
    out->ok = all.all_fit || limits_libraries();
    if (!all.all_fit)
        out->advice = out->ok
                          ? "nothing is compared with a library that runs below the machine: unset OPENBLAS_CORETYPE, "
                            "ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA"
                          : "nothing is compared with a library that runs below the machine: install a newer one";
    else if (all.count < 2)
        out->advice = "rivals that are installed compete too: libopenblas-dev libdnnl-dev (Debian)";
}

static void check_unverified(hone_doctor_round *round, hone_doctor_check *out)
{
    const bool allows = round->rt->allows_unverified;
    out->ok = true; // the user set it on purpose
    snprintf(
        out->detail, sizeof out->detail, "%s",
        allows ? "HONE_UNVERIFIED=allow: kernels of packs and of programs answer as they are"
               : "kernels of packs and of programs are verified before they answer");
    out->advice = allows ? "unset HONE_UNVERIFIED, unless their results are checked elsewhere" : NULL;
}

static const struct {
    const char *name;
    void (*run)(hone_doctor_round *round, hone_doctor_check *out);
} checks[] = {
    {"store", hone_doctor_store},
    {"system store", hone_doctor_system_store},
    {"damage", hone_doctor_damage},
    {"file system", hone_doctor_file_system},
    {"lock file", hone_doctor_lock},
    {"worker", check_worker},
    {"clock", check_clock},
    {"governor", hone_doctor_governor},
    {"frequency", hone_doctor_frequency},
    {"pinning", hone_doctor_pinning},
    {"throttling", hone_doctor_throttling},
    {"load", hone_doctor_load},
    {"contests", hone_doctor_contests},
    {"platforms", check_platforms},
    {"libraries", check_libraries},
    {"unverified", check_unverified},
};

hone_status hone_doctor(
    hone_runtime *rt,
    const char *lock_file,
    bool (*visit)(void *ctx, const hone_checkup *checkup),
    void *ctx,
    hone_error *err)
{
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "doctor", "the runtime and visit must not be NULL");
    const bool is_named = lock_file != NULL && lock_file[0] != '\0' && strcmp(lock_file, "none") != 0;
    hone_doctor_round round = {.rt = rt, .lock_file = is_named ? lock_file : NULL};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        hone_doctor_check found = {.ok = false};
        checks[i].run(&round, &found);
        const hone_checkup checkup = {checks[i].name, found.ok, found.detail, found.advice};
        if (!visit(ctx, &checkup)) break;
    }
    return HONE_OK;
}
