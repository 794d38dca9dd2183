// Leases: what one process of this machine has at a time. Single flight goes beyond the process with them, and a device
// is timed by one process after the other.
//
// A lease is a locked byte of a file, so a crash gives it back and no clock is asked whether its holder is still alive.
// The file also says which process has it, for people: the lock is what counts.
#ifndef HONE_STORE_COMMON_LEASE_H
#define HONE_STORE_COMMON_LEASE_H

#include "base/memory.h"

// How to wait for a holder.
typedef struct hone_wait {
    const volatile int *cancel;      // not 0: stop waiting; may be NULL
    double seconds;                  // limit for one holder; the next one has as long again
    double stranger_seconds;         // for one that is not known to be a process of this user; 0: as any other
    void (*say)(void *ctx, int pid); // a wait for this process has begun (0: not known which); may be NULL
    void *ctx;
} hone_wait;

// What is held, by a file or by another kind of store.
typedef struct hone_lease {
    void (*leave)(struct hone_lease *lease); // NULL: nothing is held
    // Whether it is still held: where the session that held it was lost it is taken again. HONE_BUSY: another has it;
    // HONE_UNAVAILABLE: it cannot be told now. NULL: it is held until it is left.
    hone_status (*keep)(struct hone_lease *lease, hone_error *err);
    int fd; // of the file; -1: none
    uint64_t name;
    void *holder; // another kind's
    bool waited;  // somebody else had it first
} hone_lease;

// The name of a lease in its file, of what it is for.
uint64_t hone_lease_name(const char *const *parts, size_t count);
// Takes the lease of a name, waiting as wait says. Leases of one name are given in turns: whoever waits comes before
// the holder comes again. mode: of the file, when it is made.
// Returns: HONE_OK; HONE_CANCELLED; HONE_BUSY (one holder had it for longer than wait->seconds; the message has its
//          process); HONE_IO (there can be no lease here: no such folder, no permission, a file system without locks, or a
//          stranger had it for longer than wait->stranger_seconds).
hone_status hone_lease_take(
    const char *path, unsigned mode, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err);
// hone_lease_take in the file PATH.leases beside a store's file or folder. Whoever may write the store may hold its
// leases.
hone_status hone_lease_take_beside(
    const char *path, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err);
// Gives it back; nothing when it was not taken.
void hone_lease_leave(hone_lease *lease);

#define HONE_LEASE_NONE ((hone_lease){.fd = -1})

#endif
