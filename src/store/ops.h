// What a store implements. The public functions (hone/store.h) check arguments, take the store's lock and
// dispatch, once for all kinds; one conformance suite (tests/unit/store) runs against each of them.
//
// A new kind is a folder with such a table, and its name in FOLDERS of src/store/CMakeLists.txt
// (docs/write-a-store.md). Nobody outside of a kind's folder asks what a store is called: what is done with a store
// follows from the facts and functions here.
#ifndef HONE_STORE_OPS_H
#define HONE_STORE_OPS_H

#include "base/log.h"
#include "base/memory.h"
#include "hone/store.h"
#include "os/mutex.h"
#include "store/common/job.h"
#include "store/common/lease.h"
#include "store/common/merger.h"
#include "store/common/row.h"
#include "store/records.h"

#include <string.h>

// The schema of the records that this hone writes; SQLite files have one of their own (store/sqlite/connection.h). A
// store with a newer one is refused and left as it was.
enum { HONE_STORE_SCHEMA = 4 };

// The system_code of HONE_UNAVAILABLE where the server is there and refuses who asks: waiting does not help.
enum { HONE_STORE_REFUSED = 28000 };
// That of HONE_INCOMPATIBLE where a file is of something else, and not of a newer hone.
enum { HONE_STORE_FOREIGN = 28001 };

typedef bool hone_store_visit_decision(void *ctx, const hone_store_decision *decision);
typedef bool hone_store_visit_measured(void *ctx, const hone_store_measured *measured);
typedef bool hone_store_visit_invocation(void *ctx, const hone_store_invocation *invocation);
typedef bool hone_store_visit_alias(void *ctx, const hone_store_alias *alias);
typedef bool hone_store_visit_quarantined(void *ctx, const hone_store_quarantined *quarantined);
typedef bool hone_store_visit_foreign(void *ctx, const hone_store_foreign *foreign);

// Arguments arrive checked: no required text is NULL or empty, times are finite. Every function but open and lease runs
// under the store's lock, where the kind is not concurrent. What a function does and returns stands at its public name.
typedef struct hone_store_ops {
    size_t struct_size;
    const char *scheme; // "sqlite:", what its URLs begin with; what follows is the location
    const char *form;   // "sqlite:PATH", how its URLs are written, for people
    // The location is the path of a file or folder. What was damaged is moved aside beside it, as PATH.damaged-TIME, or
    // as such a name in the folder.
    bool in_file;
    // The location is on a server, which may be away: a copy beside it answers then (store/mirror.h).
    bool on_server;
    // With in_file, endings of files that belong to another one of the store; ends with NULL. NULL: there are none.
    const char *const *companions;
    // The functions may be called by several threads at once, and inside a visit: no lock is taken for them. Between
    // begin and end the other threads' calls are no part of the transaction. mend and rest see to it themselves that
    // nobody is in between.
    bool concurrent;
    // location is the URL after its scheme. *out has at least ops and allocator set; the rest of its base is
    // filled in by hone_store_open. log lives as long as the store.
    hone_status (*open)(
        const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err);
    // The same for a store that is never written (hone_store_options). NULL: this kind cannot.
    hone_status (*open_read_only)(
        const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err);
    void (*close)(hone_store *store);
    // With on_server: the server, database and the like that a location means here and now, whatever its options: two
    // that are alike have the same records. out: a text, empty where they cannot be told.
    void (*identify)(const hone_allocator *allocator, const char *location, char *out, size_t size);

    hone_status (*get)(
        hone_store *store,
        const hone_store_key *key,
        hone_regime regime,
        void (*visit)(void *ctx, const hone_store_decision *decision),
        void *ctx,
        hone_error *err);
    // count may be 1 (a plain put) and is never 0. With a merger, what hone_merger_resolve gives is put instead of
    // each.
    hone_status (*put_all)(
        hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err);
    hone_status (*remove)(hone_store *store, const hone_store_key *key, hone_error *err);
    // filter is never NULL.
    hone_status (*scan)(
        hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err);

    hone_status (*put_measurement)(
        hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err);
    // filter as in scan; measurements by key, spec, regime, kernel and config, then failures.
    hone_status (*measurements)(
        hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);

    hone_status (*add_invocations)(
        hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err);
    // Heaviest first; filter as in scan.
    hone_status (*invocations)(
        hone_store *store,
        const hone_store_key *filter,
        hone_store_visit_invocation *visit,
        void *ctx,
        hone_error *err);
    hone_status (*clear_invocations)(hone_store *store, const char *device, hone_error *err);

    hone_status (*put_alias)(hone_store *store, const hone_store_alias *alias, hone_error *err);
    hone_status (*get_alias)(
        hone_store *store,
        const char *scheme,
        const char *operation,
        const char *foreign_key,
        void (*visit)(void *ctx, const hone_store_alias *alias),
        void *ctx,
        hone_error *err);
    // scheme NULL: all.
    hone_status (*aliases)(
        hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err);

    // count is never 0.
    hone_status (*put_foreigns)(hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err);
    hone_status (*foreigns)(
        hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err);

    // Moves a decision to the quarantine. HONE_NOT_FOUND when it is not there.
    hone_status (*set_aside)(
        hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err);
    hone_status (*quarantine)(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err);
    hone_status (*clear_quarantine)(hone_store *store, hone_error *err);
    hone_status (*verify)(hone_store *store, hone_store_health *out, hone_error *err);

    hone_status (*stat)(hone_store *store, hone_store_stat *out, hone_error *err);

    // Between begin and end the functions above are one transaction, that end commits when status is HONE_OK and takes
    // back else. After one that failed no other is called. end returns status, or why nothing was committed.
    hone_status (*begin)(hone_store *store, hone_error *err);
    hone_status (*end)(hone_store *store, hone_status status, hone_error *err);

    // After HONE_CORRUPT, and outside of a transaction: makes of what is damaged a store that works. HONE_OK: try
    // again. NULL:
    // there is nothing that could be mended.
    hone_status (*mend)(hone_store *store, hone_error *err);
    // As scan, in the order that costs least: for who ends a scan early. NULL: as scan.
    hone_status (*scan_any)(
        hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err);
    // Before a fork: gives up what must not be in two processes, connections and locks. Never inside a transaction.
    // NULL: there is nothing of the kind.
    void (*rest)(hone_store *store);
    // Takes it again, before the next use on either side. NULL: the functions above do so themselves. HONE_OK; as open.
    hone_status (*wake)(hone_store *store, hone_error *err);
    // measurements, but only what failed.
    hone_status (*failures)(
        hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);
    // Takes away calls that nobody decided (decided "heuristic" or "transfer"): those that were last made before
    // `before`, in seconds since 1970, and of the others all but the `most` that were made last.
    hone_status (*expire_misses)(hone_store *store, int64_t before, size_t most, hone_error *err);
    // Takes the lease of a name (store/common/lease.h), which one process has at a time of all that share the store,
    // waiting as wait says; a process that dies gives it back. NULL: no other process sees the store. Without the
    // store's lock, so that a wait stops nobody.
    // Returns: as hone_lease_take.
    hone_status (*lease)(hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err);
    // How the store is written to, for people: "write-ahead log"; static. NULL, also as an answer: there is nothing to
    // tell.
    const char *(*journal)(hone_store *store);
    // A number that is another soon after other processes, or other stores of this one, have changed what is stored, and
    // may be so without; cheap, for it is asked every second. NULL: no other process sees the store.
    hone_status (*changes)(hone_store *store, uint64_t *out, hone_error *err);
    // The foreign config that stands where key does.
    hone_status (*get_foreign)(
        hone_store *store,
        const hone_store_foreign *key,
        void (*visit)(void *ctx, const hone_store_foreign *foreign),
        void *ctx,
        hone_error *err);
    // Takes away the foreign configs of a scheme.
    hone_status (*clear_foreigns)(hone_store *store, const char *scheme, hone_error *err);
    // The queue of calls that machines tune for each other. NULL: this kind has none.
    const hone_queue_ops *queue;
    // Whether the server follows another one, and takes nothing itself, as far as it has told; asks nobody. NULL: never.
    bool (*follows)(hone_store *store);
    // version 1 ends here; later functions are appended, and struct_size says whether a kind has them
} hone_store_ops;

// What every kind's own struct begins with.
struct hone_store {
    const hone_store_ops *ops;
    hone_allocator allocator;
    hone_log log;
    char *url;
    hone_mutex mutex; // a visit that calls its own store is refused, not deadlocked
    hone_fork_watch watch;
    bool rests;   // since a fork
    bool in_use;  // when this process was forked last: by a visit that goes on in another thread, or around the fork
    bool is_lost; // to this process, which was forked meanwhile
};

// The URL behind its scheme.
static inline const char *hone_store_location(const hone_store *store)
{
    return store->url + strlen(store->ops->scheme);
}

// Whether the calling thread may call the store's functions: it has the lock, or the kind needs none.
static inline bool hone_store_is_locked(hone_store *store)
{
    return store->ops->concurrent || hone_mutex_is_mine(&store->mutex);
}

// The store's lock, for who calls its ops; a concurrent kind has none. Inside a visit of the same store
// HONE_INVALID_ARGUMENT.
hone_status hone_store_lock(hone_store *store, const char *where, hone_error *err);
// Returns status. After HONE_CORRUPT the store is mended for the next call.
hone_status hone_store_unlock(hone_store *store, hone_status status);
// Whether what met damage is worth doing once more: the store was mended.
bool hone_store_is_mended(hone_store *store, hone_status status);

// What opening does once a kind has made its struct: the URL, the lock, what is done around a fork. After a failure the
// store is closed.
hone_status hone_store_finish_open(hone_store *store, const char *url, hone_error *err);

// Whether a URL can be one of a store. Returns: HONE_OK; HONE_INVALID_ARGUMENT; HONE_UNSUPPORTED (a kind that is not
// there yet).
hone_status hone_store_check_url(const char *url, hone_error *err);

// What is asked of a store by its URL, before it is open or without opening it (kinds.c) ------------------------------

// The kind of a URL; NULL: there is none.
const hone_store_ops *hone_store_ops_of(const char *url);
// The URL of the store of a user who names none, in the folder of his caches. False: it does not fit.
bool hone_store_default_url(const char *folder, char *out, size_t size);
// The URL of a store that no other process sees and that is gone when it is closed.
const char *hone_store_scratch_url(void);
// How the URLs of the kinds are written, "sqlite:PATH, json:FOLDER or json:FILE.json, ...": of all, or of those that
// can be read alone. Returns out.
const char *hone_store_forms(bool read_only, char *out, size_t size);
// The same of those that have a queue.
const char *hone_store_queue_forms(char *out, size_t size);
// Whether foreign configs of a scheme are a store's own notes: what of its queue is paused, what a copy of it has sent.
bool hone_store_is_note(const char *scheme);
// How the URLs begin of files that hone makes for itself.
const char *hone_store_default_scheme(void);
// The file or folder of a store. False: it is in none.
bool hone_store_file(const char *url, char *out, size_t size);
// Whether a store that is a file or folder is not there. Opening it would make it.
bool hone_store_is_missing(const char *url);
// How many files of a store were moved aside because they were damaged, and the name of one of them.
size_t hone_store_count_aside(const char *url, char *out_one, size_t size);

// The lease of a name, for which a process waits as hone_store_ops says. *out: HONE_LEASE_NONE where no other process
// sees the store, which may be NULL.
hone_status hone_store_lease(hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err);
// hone_store_ops.journal of an open store; NULL: there is nothing to tell.
const char *hone_store_journal(hone_store *store);

// hone_store_scan of decisions in the order that costs the store least, for who needs none: ended early, it has not read
// the rest. No argument is checked.
hone_status hone_store_scan_any(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err);

// How many calls that nobody decided a store keeps where nobody asked for a record of them, and for how long.
enum { HONE_STORE_MISSES = 10000, HONE_STORE_MISS_DAYS = 90 };
// Takes the others away, the oldest first. now: seconds since 1970, UTC.
hone_status hone_store_expire_misses(hone_store *store, double now, hone_error *err);

// hone_store_scan of measurements, but only what failed. A NULL field of the filter matches all.
hone_status hone_store_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);

// Records of all kinds that are put together.
typedef struct hone_store_batch {
    const hone_store_key *removed; // first of all, with their decisions and all that was measured
    size_t removed_count;
    const hone_store_decision *decisions; // as hone_store_merge
    size_t decision_count;
    hone_merge_visit *on_outcome; // may be NULL
    void *ctx;
    const hone_store_measured *measured; // left out where what is stored rests on as many samples or more
    size_t measured_count;
    size_t *out_measured; // how many were put; may be NULL
    const hone_store_alias *aliases;
    size_t alias_count;
    const hone_store_foreign *foreigns;
    size_t foreign_count;
} hone_store_batch;

// Whether a store would take a record: HONE_OK, or HONE_INVALID_ARGUMENT with the field. For who puts what others
// wrote.
hone_status hone_store_check_decision(const hone_store_decision *decision, hone_error *err);
hone_status hone_store_check_measured(const hone_store_measured *measured, hone_error *err);
hone_status hone_store_check_invocation(const hone_store_invocation *invocation, hone_error *err);
hone_status hone_store_check_alias(const hone_store_alias *alias, hone_error *err);
hone_status hone_store_check_foreign(const hone_store_foreign *foreign, hone_error *err);
// Puts a batch in one transaction. Returns: as hone_store_merge; on failure the store is as it was.
hone_status hone_store_put_batch(hone_store *store, const hone_store_batch *batch, hone_error *err);

// Reads and writes that nobody else writes between. They call store->ops and hone_store_put_within; the public
// functions would wait for the lock that work runs under, and are refused.
typedef hone_status hone_store_work(hone_store *store, void *ctx, hone_error *err);
// Commits what work did when it returns HONE_OK, and takes it back else. Returns what work returned, or why nothing was
// committed.
hone_status hone_store_transact(hone_store *store, hone_store_work *work, void *ctx, hone_error *err);
// A batch as a part of such work, whose decisions take the place of what is stored under their keys.
hone_status hone_store_put_within(hone_store *store, const hone_store_batch *batch, hone_error *err);

// Sets a decision aside that no kernel can run: of a config that its kernel does not have, or of another call.
hone_status hone_store_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err);

#endif
