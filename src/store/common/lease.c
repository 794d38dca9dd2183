#include "store/common/lease.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

// A lease file begins with lines of notes, one for each of so many names at a time; the bytes that are locked lie
// behind them and need not exist.
enum { NOTE_SIZE = 31, NOTES = 128, LOCKS_BEGIN = 4096, LOOK_NS = 5 * 1000 * 1000 };
_Static_assert(NOTE_SIZE *NOTES <= LOCKS_BEGIN, "notes and locks do not meet");

static const char where[] = "store.lease";

uint64_t hone_lease_name(const char *const *parts, size_t count)
{
    uint64_t name = count;
    for (size_t i = 0; i < count; i++)
        name = name * 0x9e3779b97f4a7c15u ^ hone_hash64(parts[i], strlen(parts[i]));
    return name;
}

// Two bytes a name. Whoever has the second is next: the holder of the first that wants it again stands behind him.
static uint64_t byte_of(uint64_t name)
{
    return LOCKS_BEGIN + 2 * (name >> 3);
}

static uint64_t next_byte_of(uint64_t name)
{
    return byte_of(name) + 1;
}

// Notes ---------------------------------------------------------------------------------------------------------------

typedef struct note {
    int pid;
    unsigned when; // tells one lease of a process from its next
} note;

static uint64_t note_offset(uint64_t name)
{
    return name % NOTES * NOTE_SIZE;
}

static void write_note(int fd, uint64_t name)
{
    char text[NOTE_SIZE + 1];
    unsigned when = (unsigned)(hone_os_now_ns() / 1000000) % 1000000000u;
    snprintf(text, sizeof text, "%08x %010d %09u \n", (unsigned)(name >> 32), hone_os_process_id(), when);
    (void)hone_os_lock_note(fd, note_offset(name), text, NOTE_SIZE);
}

static note read_note(int fd, uint64_t name)
{
    char text[NOTE_SIZE + 1] = "";
    unsigned of = 0;
    note found = {0};
    if (!hone_os_lock_read_note(fd, note_offset(name), text, NOTE_SIZE)) return found;
    if (sscanf(text, "%8x %10d %9u", &of, &found.pid, &found.when) != 3 || of != (unsigned)(name >> 32))
        return (note){0};
    return found;
}

// Waiting -------------------------------------------------------------------------------------------------------------

typedef struct waiting {
    const hone_wait *how;
    bool begun;
    note holder;
    uint64_t since_ns; // that the holder is waited for
} waiting;

static hone_status fail_busy(const waiting *w, hone_error *err)
{
    char who[40] = "another process";
    if (w->holder.pid > 0) snprintf(who, sizeof who, "process %d", w->holder.pid);
    return hone_fail(
        err, HONE_BUSY, where, "%s has had it for %.3g s: wait longer, or look why it takes so long", who,
        w->how->seconds);
}

static hone_status fail_stranger(const waiting *w, hone_error *err)
{
    return hone_fail(
        err, HONE_IO, where,
        "a process that is not known to be this user's has held the lock for %.3g s, and is not waited for",
        w->how->stranger_seconds);
}

// Only a lock that others can open may be held by others. The note is its holder's to write, or not.
static bool is_stranger(const waiting *w, int fd)
{
    return w->how->stranger_seconds > 0 && !hone_os_lock_is_private(fd) && !hone_os_is_own_process(w->holder.pid);
}

// One look at who it is that has it. HONE_OK: go on waiting.
static hone_status wait_once(waiting *w, int fd, uint64_t name, hone_error *err)
{
    if (w->how->cancel != NULL && *w->how->cancel != 0)
        return hone_fail(err, HONE_CANCELLED, where, "cancelled while another process was waited for");
    uint64_t now = hone_os_now_ns();
    note holder = read_note(fd, name);
    if (!w->begun || holder.pid != w->holder.pid || holder.when != w->holder.when) {
        bool is_other = !w->begun || holder.pid != w->holder.pid;
        w->begun = true;
        w->holder = holder;
        w->since_ns = now;
        if (is_other && w->how->say != NULL) w->how->say(w->how->ctx, holder.pid);
    }
    const double waited = (double)(now - w->since_ns) * 1e-9;
    if (waited > w->how->stranger_seconds && is_stranger(w, fd)) return fail_stranger(w, err);
    if (waited > w->how->seconds) return fail_busy(w, err);
    hone_os_sleep_ns(LOOK_NS);
    return HONE_OK;
}

static hone_status take_byte(waiting *w, int fd, uint64_t byte, uint64_t name, hone_error *err)
{
    for (;;) {
        hone_status status = hone_os_lock_try(fd, byte, err);
        if (status != HONE_BUSY) return status;
        status = wait_once(w, fd, name, err);
        if (status != HONE_OK) return status;
    }
}

static void leave_file(hone_lease *lease)
{
    hone_assert(lease->fd >= 0);
    hone_os_lock_leave(lease->fd, byte_of(lease->name));
    hone_os_lock_close(&lease->fd);
}

// First the byte of who is next, then the lease's own, then the first is given back. Whoever waits for the lease holds
// the byte of who is next; the holder that wants the lease again has to get that byte first, and so stands behind.
// Locks are tried and not waited for (docs/decisions/leases.md): a wait ends when it is cancelled, or when one holder
// has had it for too long. Two names whose hashes meet in one byte wait for each other, which costs time and nothing
// else.
hone_status hone_lease_take(
    const char *path, unsigned mode, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    hone_assert(path != NULL && wait != NULL);
    waiting w = {.how = wait};
    int fd = -1;
    *out = HONE_LEASE_NONE;
    hone_status status = hone_os_lock_open(path, mode, &fd, err);
    if (status != HONE_OK) return status;
    status = take_byte(&w, fd, next_byte_of(name), name, err);
    if (status == HONE_OK) status = take_byte(&w, fd, byte_of(name), name, err);
    if (status == HONE_OK) {
        write_note(fd, name);
        hone_os_lock_leave(fd, next_byte_of(name));
        *out = (hone_lease){.leave = leave_file, .fd = fd, .name = name, .waited = w.begun};
        return HONE_OK;
    }
    hone_os_lock_close(&fd);
    return status;
}

hone_status hone_lease_take_beside(
    const char *path, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    enum { PATH_SIZE = 4096, READ_AND_WRITE = 0666 };
    char leases[PATH_SIZE];
    const int size = snprintf(leases, sizeof leases, "%s.leases", path);
    *out = HONE_LEASE_NONE;
    if (size < 0 || size >= PATH_SIZE) return hone_fail(err, HONE_IO, where, "the path of %.60s... is too long", path);
    return hone_lease_take(leases, hone_os_file_mode(path, 0) & READ_AND_WRITE, name, wait, out, err);
}

void hone_lease_leave(hone_lease *lease)
{
    if (lease->leave != NULL) lease->leave(lease);
    lease->leave = NULL;
}
