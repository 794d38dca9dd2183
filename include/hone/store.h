// Stores: decisions, measurements, failures, invocations and aliases that outlive the process.
//
// hone_store_open("sqlite:PATH" | "json:FOLDER" | "json:FILE.json" | "postgresql://USER@HOST/DATABASE?schema=NAME" |
// "memory:").
//
// A store may be shared by threads and, in a file, by processes. A visit sees records borrowed, for the time of
// its call, and under the store's lock: it keeps what it wants and returns; calling the same store from it is
// refused. A record that fails its checksum, or cannot be one, is set aside (HONE_RECORD_QUARANTINED), reported to the
// log, and counts as missing.
#ifndef HONE_STORE_H
#define HONE_STORE_H

#include "hone/allocator.h"
#include "hone/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_store hone_store;

// The key of every record. Keys are columns, never joined strings. Strings are borrowed.
typedef struct hone_store_key {
    const char *device;    // fingerprint
    const char *algorithm; // lower case
    const char *version;
    const char *key;  // call key
    const char *spec; // canonical text; compared where a record has one, since 64 bits can collide
} hone_store_key;

// A decision as it is stored: text, so that a store needs no registry. The reader validates kernel and config.
typedef struct hone_store_decision {
    hone_store_key key;
    const char *call; // call text
    const char *kernel;
    const char *platform;
    const char *config;   // JSON object
    const char *source;   // hone_source_name
    const char *revision; // of the kernel's code
    bool verified;
    hone_regime regime;
    double time_ns;
    const char *evidence;    // JSON object (formats.md)
    const char *environment; // JSON object: what may differ without making the decision invalid
} hone_store_decision;

// One (kernel, config) of a key, measured, independent of any list of candidates.
typedef struct hone_store_measurement {
    const char *kernel;
    const char *config; // JSON object
    const char *revision;
    hone_regime regime;
    double time_ns, low_ns, high_ns;
    uint32_t samples;
    double max_error;        // in units of the tolerance; negative: not verified
    hone_failure failure;    // not NONE: it was rejected, and the times mean nothing
    const char *reason;      // of a failure; may be NULL
    const char *environment; // JSON object: what it was measured with (docs/fingerprints.md); NULL if it is not known
    const char *measured;    // when, UTC, "2026-11-20T12:34:56Z"; NULL if it is not known
    // Times of single samples in the order they were taken, as many as were kept: a JSON list of numbers, "[99.5,101]".
    // NULL if none were. Not set for a failure.
    const char *samples_ns;
} hone_store_measurement;

typedef struct hone_store_invocation {
    hone_store_key key;
    const char *call; // call text, NULL when not known
    uint64_t count;
    double first, last;  // seconds since 1970, UTC
    const char *kernel;  // that answered last; may be NULL
    const char *decided; // source that answered last; may be NULL. hone_record_is_decided: whether it is decided now
} hone_store_invocation;

// Another system's config, kept as it came and never served: hone cannot check it, but can return it unchanged. So are
// the values of a program's own caches, each cache a scheme.
typedef struct hone_store_foreign {
    const char *scheme;    // "ejkernel", "tokamax"
    const char *operation; // as the foreign file names it: "flash_attention@v2"
    const char *device;    // the foreign fingerprint; may be NULL
    const char *foreign_key;
    const char *text;   // the config as it came, a JSON text
    const char *origin; // file that it came from; may be NULL
} hone_store_foreign;

// A record that was set aside: it is no longer served, and is kept for inspection.
typedef struct hone_store_quarantined {
    const char *kind;   // of record: "decision", "measurement", ... (docs/formats.md); a damaged line's file in "json:"
    const char *record; // JSON object of its columns, as far as they could be read; the line as it stands
    const char *reason;
    double found; // seconds since 1970, UTC; 0 if it is not known
} hone_store_quarantined;

// A kind of store. Texts are static.
typedef struct hone_store_kind {
    const char *scheme; // what its URLs begin with; the URL itself where is_scratch
    const char *form;   // how its URLs are written, with the scheme, for people
    bool is_default;    // of the store of a user who names none
    bool is_scratch;    // no other process sees it, and it is gone when it is closed
    bool in_file;       // the rest of a URL is the path of a file or folder
    bool reads_alone;   // it can be opened read_only (hone_store_options)
    bool has_queue;     // hone/queue.h
} hone_store_kind;

// Visits the kinds of this build until visit returns false.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status
hone_store_kinds(bool (*visit)(void *ctx, const hone_store_kind *kind), void *ctx, hone_error *err);

// What a URL says of its store.
typedef struct hone_store_place {
    char url[4096];
    char path[4096]; // of the file or folder that it is in; "": it is in none
    bool is_missing; // there is no such file or folder: opening the store would make it
} hone_store_place;

HONE_API HONE_MUST_CHECK hone_status
hone_store_get_place_sized(const char *url, hone_store_place *out, size_t size, hone_error *err);
// Looks at a URL without opening the store.
//   url  NULL selects that of a user who names no store
// Returns: HONE_OK, also when the store is missing; HONE_INVALID_ARGUMENT (no such URL); HONE_UNSUPPORTED (a kind that this build
//          lacks); HONE_NOT_FOUND (url is NULL, and there is no folder for it).
HONE_MUST_CHECK static inline hone_status hone_store_get_place(const char *url, hone_store_place *out, hone_error *err)
{
    return hone_store_get_place_sized(url, out, sizeof *out, err);
}

// Opens by URL. The path of "sqlite:" and "json:" is created with its folders. HONE_STORE_SYNC=full makes every put
// wait for the disk; normal, the default, may lose the last ones when the power fails, never the file ("json:" always
// waits).
// Threads: every function of a store may be called from any thread.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (no such URL); HONE_UNSUPPORTED (a kind that this build lacks);
//          HONE_IO; HONE_CORRUPT; HONE_INCOMPATIBLE (a newer schema).
HONE_API HONE_MUST_CHECK hone_status
hone_store_open(hone_allocator allocator, const char *url, hone_store **out, hone_error *err);

// Zero means default everywhere. First field: sizeof of the struct.
typedef struct hone_store_options {
    size_t struct_size;
    hone_allocator allocator; // the system's allocator if its reallocate is NULL
    // Called once for each problem that the store repaired or works around: damage and
    // where it went, a disk that is unsuitable for a store. Called under the store's lock, as a visit is. level 0 error,
    // 1 warning.
    void (*log)(void *ctx, int level, const char *message);
    void *log_ctx;
    // Nothing is written to the store or beside it, even where that is permitted: no record, no lock, no folder, no newer
    // schema, and a damaged file stays where it is. The file must exist, and be replaced only as a whole: it is read
    // without locks, unless another process is writing to it. For "sqlite:" and "postgresql:"; other kinds return
    // HONE_UNSUPPORTED.
    bool read_only;
} hone_store_options;

// The same with options; NULL selects all defaults. They are copied.
HONE_API HONE_MUST_CHECK hone_status
hone_store_open_with(const hone_store_options *options, const char *url, hone_store **out, hone_error *err);
HONE_API void hone_store_close(hone_store **store);
HONE_API const char *hone_store_url(const hone_store *store);

// Records -------------------------------------------------------------------------------------------------------------

typedef enum hone_record_kind {
    HONE_RECORD_DECISION = 0,
    HONE_RECORD_MEASUREMENT = 1, // failures, too
    HONE_RECORD_INVOCATION = 2,
    // Its key: version is the scheme, algorithm the operation, device the foreign fingerprint, key the foreign key; no spec.
    HONE_RECORD_FOREIGN = 3,
    HONE_RECORD_QUARANTINED = 4, // has no key: a filter is ignored
    HONE_RECORD_KIND_COUNT
} hone_record_kind;

// One record, shown by a store: of the pointers behind key, only that of its kind is not NULL.
typedef struct hone_store_record {
    hone_record_kind kind;
    const hone_store_key *key; // NULL if it has none
    const hone_store_decision *decision;
    const hone_store_measurement *measurement;
    const hone_store_invocation *invocation;
    const hone_store_foreign *foreign;
    const hone_store_quarantined *quarantined;
} hone_store_record;

// Visits the record of a key, once; what visit returns is ignored. Where a decision and the key both have a spec and these
// differ, the decision is another call's: HONE_NOT_FOUND.
//   kind    HONE_RECORD_DECISION or HONE_RECORD_FOREIGN; the others may be several under one key: hone_store_scan
//   key     with a foreign config device may be NULL, as the config's; else only spec may
//   regime  of a decision; ignored else
// Returns: HONE_OK (visited), HONE_NOT_FOUND, HONE_BUSY, HONE_IO, HONE_CORRUPT; HONE_INVALID_ARGUMENT (another kind, a key that lacks
// a text).
HONE_API HONE_MUST_CHECK hone_status hone_store_get(
    hone_store *store,
    hone_record_kind kind,
    const hone_store_key *key,
    hone_regime regime,
    bool (*visit)(void *ctx, const hone_store_record *record),
    void *ctx,
    hone_error *err);
// Visits the records of a kind until visit returns false: decisions in key order; measurements by key, regime, kernel and
// config, then the failures; invocations heaviest first; foreign configs by scheme, operation, device and key; what was set
// aside by kind and record.
//   filter  a NULL field matches all; NULL for all records
// Returns: HONE_OK, also if there is no such record; HONE_BUSY, HONE_IO, HONE_CORRUPT; HONE_INVALID_ARGUMENT (an unknown kind).
HONE_API HONE_MUST_CHECK hone_status hone_store_scan(
    hone_store *store,
    hone_record_kind kind,
    const hone_store_key *filter,
    bool (*visit)(void *ctx, const hone_store_record *record),
    void *ctx,
    hone_error *err);
// Removes the decisions of a key, warm and cold, with its measurements and failures. HONE_NOT_FOUND when there was
// nothing.
HONE_API HONE_MUST_CHECK hone_status hone_store_remove(hone_store *store, const hone_store_key *key, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status hone_store_put_foreign_sized(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, size_t size, hone_error *err);
// Replaces what is stored of the same scheme, operation, device and foreign key. All or none.
HONE_MUST_CHECK static inline hone_status hone_store_put_foreign(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    return hone_store_put_foreign_sized(store, foreigns, count, sizeof *foreigns, err);
}
typedef struct hone_store_health {
    uint64_t records;     // sound ones
    uint64_t set_aside;   // damaged ones that were found now
    uint64_t quarantined; // set aside now and before
} hone_store_health;
HONE_API HONE_MUST_CHECK hone_status
hone_store_verify_sized(hone_store *store, hone_store_health *out, size_t size, hone_error *err);
// Reads all that the store holds, and sets aside what is damaged.
// Returns: HONE_OK, also when there was damage;
//          HONE_CORRUPT: the file itself is damaged, and records may be missing. Where the store can be written, the
//          sound records are carried over into a new one (docs/store.md): verify that one;
//          HONE_BUSY, HONE_IO.
HONE_MUST_CHECK static inline hone_status hone_store_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    return hone_store_verify_sized(store, out, sizeof *out, err);
}

typedef struct hone_store_stat {
    uint64_t decisions, measurements, failures, invocations, aliases, foreigns, quarantined;
    uint64_t bytes;
    uint32_t schema;
} hone_store_stat;
HONE_API HONE_MUST_CHECK hone_status
hone_store_get_stat_sized(hone_store *store, hone_store_stat *out, size_t size, hone_error *err);
HONE_MUST_CHECK static inline hone_status hone_store_get_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    return hone_store_get_stat_sized(store, out, sizeof *out, err);
}

// A number that is another one soon after other processes, or other stores of this one, have changed what is stored; it may be
// another one without. Cheap enough to be asked every second.
// Returns: HONE_OK; HONE_UNSUPPORTED (no other process sees the store); HONE_UNAVAILABLE, HONE_IO.
HONE_API HONE_MUST_CHECK hone_status hone_store_changes(hone_store *store, uint64_t *out, hone_error *err);
// Why a runtime's store on a server answers from a copy here, or keeps here what is put, for people; "": it does not, as any other
// store. Returns out.
HONE_API const char *hone_store_away(hone_store *store, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
