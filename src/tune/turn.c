#include "tune/turn.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static const double default_wait_seconds = 600;
static const double stranger_wait_seconds = 3; // anybody may hold a lock of a shared folder, for as long as he likes
static const char where[] = "tune";

// What a wait is told with.
typedef struct telling {
    const hone_turn *turn;
    const char *what; // the other process does
} telling;

static void tell(void *ctx, int pid)
{
    const telling *t = ctx;
    const hone_tune_options *options = t->turn->options;
    char who[40] = "another process", words[128];
    if (pid > 0) snprintf(who, sizeof who, "process %d", pid);
    snprintf(words, sizeof words, "%s, which %s", who, t->what);
    hone_log_write(t->turn->environment->log, HONE_LOG_INFO, "%s: waits for %s", hone_call_text(t->turn->call), words);
    const hone_progress progress = {.call = hone_call_text(t->turn->call), .remaining_seconds = -1, .waiting = words};
    if (options->progress != NULL) options->progress(options->progress_ctx, &progress);
}

static hone_wait wait_of(const telling *t)
{
    const hone_tune_options *options = t->turn->options;
    return (hone_wait){
        .cancel = options->cancel,
        .seconds = options->wait_seconds > 0 ? options->wait_seconds : default_wait_seconds,
        .say = tell,
        .ctx = (void *)(uintptr_t)t,
    };
}

// Tuning a call -------------------------------------------------------------------------------------------------------

// "PATH.leases" beside the store's file; false for a store that no other process sees.
static bool lease_path(const hone_turn *turn, char out[PATH_SIZE], unsigned *out_mode)
{
    static const char *const files[] = {"sqlite:", "json:"};
    const char *url = turn->options->no_store ? "" : hone_store_url(turn->environment->store);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t scheme = strlen(files[i]);
        if (strncmp(url, files[i], scheme) != 0) continue;
        int size = snprintf(out, PATH_SIZE, "%s.leases", url + scheme);
        // Whoever may write the store may hold its leases.
        *out_mode = hone_os_file_mode(url + scheme, 0) & 0666;
        return size > 0 && size < PATH_SIZE;
    }
    return false;
}

static hone_status take_key(hone_turn *turn, const hone_algorithm_entry *algorithm, hone_error *err)
{
    char path[PATH_SIZE];
    unsigned mode;
    hone_error why = {.message = ""};
    if (!lease_path(turn, path, &mode)) return HONE_OK;
    const telling t = {turn, "tunes the same call"};
    const hone_wait wait = wait_of(&t);
    const char *const parts[] = {
        turn->device->fingerprint, algorithm->name, algorithm->version, hone_call_key(turn->call)};
    hone_status status =
        hone_lease_take(path, mode, hone_lease_name(parts, sizeof parts / sizeof parts[0]), &wait, &turn->key, &why);
    if (status == HONE_OK) return HONE_OK;
    if (status == HONE_IO) {
        // A lease saves work; a store that cannot have one is still a store.
        hone_log_write(turn->environment->log, HONE_LOG_INFO, "other processes may tune the same: %s", why.message);
        return HONE_OK;
    }
    return hone_fail(err, status, where, "%s: %s", hone_call_text(turn->call), why.message);
}

// Turns of this thread, one inside the other: a progress callback may tune. Those inside wait for nobody.
static _Thread_local unsigned depth;

hone_status hone_turn_begin(
    hone_turn *turn,
    const hone_turn_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    bool *out_landed,
    hone_error *err)
{
    *turn = (hone_turn){
        .environment = environment,
        .device = device,
        .call = call,
        .options = options,
        .begun = true,
        .key = HONE_LEASE_NONE,
        .lane = HONE_LEASE_NONE};
    *out_landed = false;
    if (depth++ > 0) return HONE_OK;
    hone_boarding boarding = hone_flight_begin(
        environment->flights, &turn->flight, device->fingerprint, algorithm->name, algorithm->version,
        hone_call_key(call), options->cancel);
    *out_landed = boarding == HONE_FLIGHT_LANDED;
    turn->flying = boarding == HONE_FLIGHT_MINE;
    if (boarding == HONE_FLIGHT_CANCELLED)
        return hone_fail(err, HONE_CANCELLED, where, "cancelled while another thread tuned the same");
    return turn->flying ? take_key(turn, algorithm, err) : HONE_OK;
}

void hone_turn_end(hone_turn *turn)
{
    if (!turn->begun) return;
    depth--;
    hone_lease_leave(&turn->key);
    if (turn->flying) hone_flight_end(turn->environment->flights, &turn->flight);
    turn->begun = turn->flying = false;
}

// Measuring on a device -----------------------------------------------------------------------------------------------

// By what it is and its number, not by its fingerprint: that also says how many threads a process may use, and two with
// different shares still take the same machine from under each other.
static bool lane_path(const hone_turn *turn, const char *folder, char out[PATH_SIZE])
{
    int size = snprintf(
        out, PATH_SIZE, "%s/hone-%s-%d.lock", folder, hone_backend_name(turn->device->backend),
        (int)turn->device->device.id);
    return size > 0 && size < PATH_SIZE;
}

// A folder that several users write is one in which they take turns; in any other the lock is this user's alone.
static unsigned lane_mode(const char *folder)
{
    enum { OTHERS_WRITE = 0022, OWN = 0600, AS_UMASK = 0 };
    return (hone_os_file_mode(folder, 0) & OTHERS_WRITE) != 0 ? AS_UMASK : OWN;
}

static hone_status take_lane_in(hone_turn *turn, const char *folder, hone_error *err)
{
    char path[PATH_SIZE];
    const telling t = {turn, "measures on this device"};
    hone_wait wait = wait_of(&t);
    wait.stranger_seconds = stranger_wait_seconds;
    if (!lane_path(turn, folder, path)) return hone_fail(err, HONE_IO, where, "the path of its folder is too long");
    return hone_lease_take(path, lane_mode(folder), 0, &wait, &turn->lane, err);
}

static hone_status take_lane(hone_turn *turn, hone_error *err)
{
    char own[PATH_SIZE];
    const char *folder = turn->environment->device_locks;
    hone_error why = {.message = ""};
    if (depth > 1 || (folder != NULL && strcmp(folder, "none") == 0)) return HONE_OK;
    hone_status status = folder != NULL ? HONE_OK : hone_os_runtime_folder(own, sizeof own, &why);
    if (status == HONE_OK) status = take_lane_in(turn, folder != NULL ? folder : own, &why);
    if (status == HONE_OK) return HONE_OK;
    if (status == HONE_IO) {
        hone_log_write(
            turn->environment->log, HONE_LOG_WARNING, "other processes may measure at the same time: %s", why.message);
        return HONE_OK;
    }
    return hone_fail(err, status, where, "%s: %s", hone_call_text(turn->call), why.message);
}

hone_status hone_turn_begin_measuring(void *turn_pointer, hone_error *err)
{
    hone_turn *turn = turn_pointer;
    turn->on_runway = hone_runway_take(turn->environment->flights, turn->options->cancel);
    if (!turn->on_runway) return hone_fail(err, HONE_CANCELLED, where, "cancelled while another call was being tuned");
    hone_status status = take_lane(turn, err);
    if (status != HONE_OK) hone_turn_end_measuring(turn);
    return status;
}

void hone_turn_end_measuring(void *turn_pointer)
{
    hone_turn *turn = turn_pointer;
    hone_lease_leave(&turn->lane);
    if (turn->on_runway) hone_runway_leave(turn->environment->flights);
    turn->on_runway = false;
}

hone_status hone_turn_begin_device(
    hone_turn *turn,
    const hone_turn_environment *environment,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    hone_error *err)
{
    *turn = (hone_turn){
        .environment = environment,
        .device = device,
        .call = call,
        .options = options,
        .key = HONE_LEASE_NONE,
        .lane = HONE_LEASE_NONE,
    };
    return hone_turn_begin_measuring(turn, err);
}
