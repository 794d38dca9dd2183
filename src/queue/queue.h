// The queue of a store: calls that wait to be tuned by whichever machine has their device, heaviest first.
//
// A claim is two things: the lease of the job's name, which the operating system or the server takes back when the
// process dies, and its row, which says that it is held and by whom. A row that is held and whose lease is free was left
// by a worker that died: whoever finds it claims it anew. No clock is asked.
#ifndef HONE_QUEUE_QUEUE_H
#define HONE_QUEUE_QUEUE_H

#include "hone/queue.h"
#include "os/os.h"
#include "store/ops.h"

#include <stdatomic.h>

enum { HONE_QUEUE_RETRIES = 3, HONE_QUEUE_CLASSES = 24, HONE_QUEUE_WHO = 120 };

// A worker's side.
typedef struct hone_queue {
    hone_store *store;          // borrowed
    const char *const *devices; // fingerprints, borrowed
    size_t device_count;
    uint32_t retries;         // contests of a job that may be begun and not ended
    char who[HONE_QUEUE_WHO]; // "host process 12 #1f3a": told apart from all others
    uint64_t orphans_ns;      // when those of the dead were looked for last; 0: not yet
} hone_queue;

// A job that is held. Its texts are the claim's.
typedef struct hone_job_claim {
    hone_queue *queue;
    hone_job job;
    const char *device; // which of the queue's devices it fits
    hone_lease lease;
    hone_ticker *keeper;
    atomic_bool lost; // another worker has it: what this one finds is not the job's end any more
    char *texts;
} hone_job_claim;

typedef enum hone_job_end {
    HONE_JOB_DONE,      // it is decided, and goes
    HONE_JOB_OPEN,      // it is decided, and which is the fastest was left open: again, with `seconds`
    HONE_JOB_FAILED,    // and may go well the next time
    HONE_JOB_HOPELESS,  // nobody can: set aside with the reason
    HONE_JOB_GIVEN_BACK // nothing is known of it
} hone_job_end;

// HONE_UNSUPPORTED with what to do: stores of this kind have no queue.
hone_status hone_queue_init(
    hone_queue *queue, hone_store *store, const char *const *devices, size_t device_count, hone_error *err);
// The heaviest job that fits one of the devices, of the highest priority and the earliest round. One that was begun too
// often is set aside on the way.
// Returns: HONE_OK; HONE_NOT_FOUND (none waits); as the store's functions.
hone_status hone_queue_claim(hone_queue *queue, hone_job_claim *out, hone_error *err);
// Ends it, and gives the lease back. seconds of HONE_JOB_OPEN; reason of HONE_JOB_FAILED and HONE_JOB_HOPELESS.
// Returns: HONE_OK; HONE_BUSY (another had it meanwhile: nothing was changed, and the claim is over);
//          HONE_UNAVAILABLE, HONE_IO: the claim is still held, try again.
hone_status hone_job_claim_end(
    hone_job_claim *claim, hone_job_end how, double seconds, const char *reason, hone_error *err);
// Gives the lease back without a word to the row, as a death would. Nothing where the claim is over.
void hone_job_claim_drop(hone_job_claim *claim);

// Whether a queue takes a device text: 1 to 1,024 bytes of UTF-8 without control characters. HONE_INVALID_ARGUMENT.
hone_status hone_queue_check_device(const char *device, hone_error *err);
// Adds what is not queued yet. The jobs' locks, states and tries are filled in.
hone_status hone_queue_add(hone_store *store, hone_job *jobs, size_t count, size_t *out_added, hone_error *err);
// Gives a job another priority, and takes one that was set aside up again. HONE_NOT_FOUND.
hone_status hone_queue_raise(hone_store *store, const hone_store_key *key, double priority, hone_error *err);
// As hone_queue_ops; those of one state, or of all in the order held, waiting, set aside.
hone_status hone_queue_visit(
    hone_store *store, const char *device, hone_store_visit_job *visit, void *ctx, hone_error *err);
// The held ones whose worker died: their lease is free. Texts live as long as the visit.
hone_status hone_queue_visit_dead(hone_store *store, hone_store_visit_job *visit, void *ctx, hone_error *err);
hone_status hone_queue_is_paused(hone_store *store, const char *fingerprint, bool *out, hone_error *err);
// A job as the public header shows it, borrowing its texts; is_dead and unfit are not told.
void hone_job_show(const hone_job *job, hone_queued *out);
typedef struct hone_queue_stat {
    uint64_t waiting, held, aside;
} hone_queue_stat;
// device: a fingerprint, its classes included; NULL: all.
hone_status hone_queue_count(hone_store *store, const char *device, hone_queue_stat *out, hone_error *err);

#endif
