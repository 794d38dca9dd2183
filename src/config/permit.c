#include "config/permit.h"

#include "base/error.h"
#include "os/os.h"
#include "registry/names.h"
#include "store/ops.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static const double default_wait_seconds = 600;
static const double stranger_wait_seconds = 3; // anybody may hold a lock of a shared folder, for as long as he likes
static const char where[] = "tune";            // errors of hone_tune name this place

// How the progress function reports a wait.
typedef struct telling {
    const hone_permit *permit;
    const char *what; // the other process does
} telling;

static void tell(void *ctx, int pid)
{
    const telling *t = ctx;
    const hone_tune_options *options = t->permit->options;
    char who[40] = "another process", words[128];
    if (pid > 0) snprintf(who, sizeof who, "process %d", pid);
    snprintf(words, sizeof words, "%s, which %s", who, t->what);
    hone_log_write(
        t->permit->environment->log, HONE_LOG_INFO, "%s: waits for %s", hone_call_text(t->permit->call), words);
    const hone_progress progress = {.call = hone_call_text(t->permit->call), .remaining_seconds = -1, .waiting = words};
    if (options->progress != NULL) options->progress(options->progress_ctx, &progress);
}

static hone_wait wait_of(const telling *t)
{
    const hone_tune_options *options = t->permit->options;
    return (hone_wait){
        .cancel = options->cancel,
        .seconds = options->wait_seconds > 0 ? options->wait_seconds : default_wait_seconds,
        .say = tell,
        .ctx = (void *)(uintptr_t)t,
    };
}

// Tuning a call -------------------------------------------------------------------------------------------------------

static hone_status take_key(hone_permit *permit, const hone_algorithm_entry *algorithm, hone_error *err)
{
    hone_store *store = permit->options->no_store ? NULL : permit->environment->store;
    hone_error why = {.message = ""};
    const telling t = {permit, "tunes the same call"};
    const hone_wait wait = wait_of(&t);
    const char *const parts[] = {
        permit->device->fingerprint, algorithm->name, algorithm->version, hone_call_key(permit->call)};
    const uint64_t name = hone_lease_name(parts, sizeof parts / sizeof parts[0]);
    hone_status status = hone_store_lease(store, name, &wait, &permit->key, &why);
    if (status == HONE_OK) return HONE_OK;
    if (status == HONE_IO) {
        // A lease saves work; a store that cannot have one is still a store.
        hone_log_write(permit->environment->log, HONE_LOG_INFO, "other processes may tune the same: %s", why.message);
        return HONE_OK;
    }
    return hone_fail(err, status, where, "%s: %s", hone_call_text(permit->call), why.message);
}

// Permits of this thread, one inside the other: a progress callback may tune. Those inside wait for nobody.
static _Thread_local unsigned depth;

hone_status hone_permit_begin(
    hone_permit *permit,
    const hone_permit_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    bool *out_landed,
    hone_error *err)
{
    *permit = (hone_permit){
        .environment = environment,
        .device = device,
        .call = call,
        .options = options,
        .begun = true,
        .key = HONE_LEASE_NONE,
        .device_lock = HONE_LEASE_NONE};
    *out_landed = false;
    if (depth++ > 0) return HONE_OK;
    hone_flight_outcome outcome = hone_flight_begin(
        environment->flights, &permit->flight,
        &(hone_store_key){device->fingerprint, algorithm->name, algorithm->version, hone_call_key(call), NULL},
        options->cancel);
    *out_landed = outcome == HONE_FLIGHT_LANDED;
    permit->flying = outcome == HONE_FLIGHT_MINE;
    if (outcome == HONE_FLIGHT_CANCELLED)
        return hone_fail(err, HONE_CANCELLED, where, "cancelled while another thread tuned the same");
    return permit->flying ? take_key(permit, algorithm, err) : HONE_OK;
}

void hone_permit_end(hone_permit *permit)
{
    if (!permit->begun) return;
    depth--;
    hone_lease_leave(&permit->key);
    if (permit->flying) hone_flight_end(permit->environment->flights, &permit->flight);
    permit->begun = permit->flying = false;
}

// Measuring on a device -----------------------------------------------------------------------------------------------

// By what it is and its number, not by its fingerprint: that also says how many threads a process may use, and two with
// different shares still take the same machine from under each other.
static bool device_lock_path(const hone_permit *permit, const char *folder, char out[PATH_SIZE])
{
    int size = snprintf(
        out, PATH_SIZE, "%s/hone-%s-%d.lock", folder, hone_backend_name(permit->device->backend),
        (int)permit->device->device.id);
    return size > 0 && size < PATH_SIZE;
}

// A folder that several users write is one in which they wait for each other; in any other the lock is this user's
// alone.
static unsigned device_lock_mode(const char *folder)
{
    enum { OTHERS_WRITE = 0022, OWN = 0600, AS_UMASK = 0 };
    return (hone_os_file_mode(folder, 0) & OTHERS_WRITE) != 0 ? AS_UMASK : OWN;
}

static hone_status lock_device_in(hone_permit *permit, const char *folder, hone_error *err)
{
    char path[PATH_SIZE];
    const telling t = {permit, "measures on this device"};
    hone_wait wait = wait_of(&t);
    wait.stranger_seconds = stranger_wait_seconds;
    if (!device_lock_path(permit, folder, path))
        return hone_fail(err, HONE_IO, where, "the path of its folder is too long");
    return hone_lease_take(path, device_lock_mode(folder), 0, &wait, &permit->device_lock, err);
}

static hone_status lock_device(hone_permit *permit, hone_error *err)
{
    char own[PATH_SIZE];
    const char *folder = permit->environment->device_locks;
    hone_error why = {.message = ""};
    if (depth > 1 || (folder != NULL && strcmp(folder, "none") == 0)) return HONE_OK;
    hone_status status = folder != NULL ? HONE_OK : hone_os_runtime_folder(own, sizeof own, &why);
    if (status == HONE_OK) status = lock_device_in(permit, folder != NULL ? folder : own, &why);
    if (status == HONE_OK) return HONE_OK;
    if (status == HONE_IO) {
        hone_log_write(
            permit->environment->log, HONE_LOG_WARNING, "other processes may measure at the same time: %s",
            why.message);
        return HONE_OK;
    }
    return hone_fail(err, status, where, "%s: %s", hone_call_text(permit->call), why.message);
}

hone_status hone_permit_begin_measuring(void *permit_pointer, hone_error *err)
{
    hone_permit *permit = permit_pointer;
    permit->is_measuring = hone_measuring_begin(permit->environment->flights, permit->options->cancel);
    if (!permit->is_measuring) return hone_fail(err, HONE_CANCELLED, where, "cancelled before it began to measure");
    hone_status status = lock_device(permit, err);
    if (status != HONE_OK) hone_permit_end_measuring(permit);
    return status;
}

void hone_permit_end_measuring(void *permit_pointer)
{
    hone_permit *permit = permit_pointer;
    hone_lease_leave(&permit->device_lock);
    if (permit->is_measuring) hone_measuring_end(permit->environment->flights);
    permit->is_measuring = false;
}

hone_status hone_permit_begin_device(
    hone_permit *permit,
    const hone_permit_environment *environment,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    hone_error *err)
{
    *permit = (hone_permit){
        .environment = environment,
        .device = device,
        .call = call,
        .options = options,
        .key = HONE_LEASE_NONE,
        .device_lock = HONE_LEASE_NONE,
    };
    return hone_permit_begin_measuring(permit, err);
}
