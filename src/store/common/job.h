// A call that waits to be tuned by whichever machine has its device. What a kind of store that has a queue does with
// jobs stands here too; who claims them and what becomes of them is src/queue.
#ifndef HONE_STORE_COMMON_JOB_H
#define HONE_STORE_COMMON_JOB_H

#include "hone/queue.h"

typedef struct hone_job {
    hone_store_key key; // device: a fingerprint, or the beginning of one up to a comma or bar: its class
    const char *call;   // call text; NULL: from key.spec
    hone_job_state state;
    double priority;    // larger ones first
    uint32_t round;     // how often its contest was left open; later rounds come after all earlier ones
    double weight;      // nanoseconds that all its calls take together, as far as known: heavier ones first
    uint64_t count;     // of calls
    double seconds;     // for the next contest; 0: as the worker says
    uint32_t tries;     // contests of this round that were begun, but for those that were given back
    const char *holder; // "user@host process 12"; NULL: nobody has had it
    const char *reason; // of what went wrong last; may be NULL
    uint64_t lock;      // the name of its lease, below 2^63
    uint64_t boot;      // start of the server under which it was claimed; 0: of a kind without one
} hone_job;

typedef bool hone_store_visit_job(void *ctx, const hone_job *job);

// What becomes of a job: out->state and the rest replace what is stored; *out_removed: it goes. `stored` NULL: there is
// none. HONE_OK without either: it stays.
typedef struct hone_job_change {
    hone_status (*make)(void *ctx, const hone_job *stored, struct hone_job_change *change, hone_error *err);
    void *ctx;
    const hone_job *put; // NULL: nothing
    bool removes;
    // What the caller has read. A kind may take it for what is stored, as long as it changes nothing where that is no
    // more so, and asks again. NULL: nothing.
    const hone_job *seen;
} hone_job_change;

// The functions of a kind that has a queue, under the store's lock as those of store/ops.h.
typedef struct hone_queue_ops {
    // Puts those that do not stand there yet, in one transaction.
    hone_status (*add)(hone_store *store, const hone_job *jobs, size_t count, size_t *out_added, hone_error *err);
    // Nobody else changes the job meanwhile.
    hone_status (*change)(hone_store *store, const hone_store_key *key, hone_job_change *change, hone_error *err);
    // Visits at most `limit` jobs of a device text (NULL: all) and state in the order in which they are claimed: by
    // priority, round, weight. orphans: of those that are held, which a holder that lives has may be left out.
    hone_status (*visit)(
        hone_store *store,
        const char *device,
        hone_job_state state,
        bool orphans,
        size_t limit,
        hone_store_visit_job *visit,
        void *ctx,
        hone_error *err);
    hone_status (*clear)(hone_store *store, const char *device, uint64_t *out_removed, hone_error *err); // NULL: all
    // How many there are of each state. device NULL: of all.
    hone_status (*count)(hone_store *store, const char *device, uint64_t out[3], hone_error *err);
    // The same as visits of those that wait, for several device texts at once, each its first `limit`; with orphans of
    // those that are held, too. NULL: they are visited one after the other.
    hone_status (*look)(
        hone_store *store,
        const char *const *devices,
        size_t count,
        bool orphans,
        size_t limit,
        hone_store_visit_job *visit,
        void *ctx,
        hone_error *err);
} hone_queue_ops;

#endif
