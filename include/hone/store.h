// Stores: decisions, measurements, failures, invocations and aliases that outlive the process.
//
// hone_store_open("sqlite:PATH" | "memory:"). "json:" and "postgresql:" are not there yet and are refused.
//
// A store may be shared by threads and, in a file, by processes. A visit sees records borrowed, for the time of
// its call, and under the store's lock: it keeps what it wants and returns; calling the same store from it is
// refused. A record that fails its checksum is HONE_CORRUPT to a get; walks pass it over, visit the others, and
// answer HONE_CORRUPT in the end, with the first one's key.
#ifndef HONE_STORE_H
#define HONE_STORE_H

#include "hone/allocator.h"
#include "hone/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_store hone_store;

// What every record stands under. Keys are columns, never joined strings. Strings are borrowed.
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
    const char *environment; // JSON object: what may differ without making the decision worthless
} hone_store_decision;

// One (kernel, config) of a key, measured, independent of any list of candidates.
typedef struct hone_store_measurement {
    const char *kernel;
    const char *config; // JSON object
    const char *revision;
    hone_regime regime;
    double time_ns, low_ns, high_ns;
    uint32_t samples;
    double max_error;     // in units of the tolerance; negative: not verified
    hone_failure failure; // not NONE: it fell out, times mean nothing
    const char *reason;   // of a failure; may be NULL
} hone_store_measurement;

typedef struct hone_store_invocation {
    hone_store_key key;
    const char *call; // call text, NULL when not known
    uint64_t count;
    double first, last;  // seconds since 1970, UTC
    const char *kernel;  // that answered last; may be NULL
    const char *decided; // source that answered last; may be NULL
} hone_store_invocation;

// Another system's key for a call, pointing at hone's.
typedef struct hone_store_alias {
    const char *scheme;    // "ejkernel"
    const char *operation; // "flash_attention@v2"
    const char *foreign_key;
    const char *foreign_spec; // canonical text there; may be NULL
    hone_store_key key;       // hone's; device may be NULL
} hone_store_alias;

// Opens by URL. path of "sqlite:" is created with its folders. HONE_STORE_SYNC=full makes every put wait for the
// disk; normal, the default, may lose the last ones when the power fails, never the file.
// Threads: every function of a store may be called from any thread.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (no such URL); HONE_UNSUPPORTED (a kind that is not there yet);
//          HONE_IO; HONE_CORRUPT; HONE_INCOMPATIBLE (a newer schema).
HONE_API HONE_MUST_CHECK hone_status
hone_store_open(hone_allocator allocator, const char *url, hone_store **out, hone_error *err);
HONE_API void hone_store_close(hone_store **store);
HONE_API const char *hone_store_url(const hone_store *store);

// Looks one decision up. One whose spec is there and differs from the key's, where that is there, is another call's:
// HONE_NOT_FOUND.
// Returns: HONE_OK (visited), HONE_NOT_FOUND, HONE_BUSY, HONE_IO, HONE_CORRUPT.
HONE_API HONE_MUST_CHECK hone_status hone_store_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err);
// Replaces the decision of the same device, algorithm, version, key and regime, whatever it rests on: who puts
// knows better. Which of two decisions is the better one is hone_result_merge's question.
HONE_API HONE_MUST_CHECK hone_status
hone_store_put(hone_store *store, const hone_store_decision *decision, hone_error *err);
// All or none, in one transaction.
HONE_API HONE_MUST_CHECK hone_status
hone_store_put_all(hone_store *store, const hone_store_decision *decisions, size_t count, hone_error *err);
// Removes the decisions of a key, warm and cold, with its measurements and failures. HONE_NOT_FOUND when there was
// nothing.
HONE_API HONE_MUST_CHECK hone_status hone_store_remove(hone_store *store, const hone_store_key *key, hone_error *err);
// Visits decisions in key order until visit returns false. A NULL field of the filter matches all; filter may be NULL.
HONE_API HONE_MUST_CHECK hone_status hone_store_scan(
    hone_store *store,
    const hone_store_key *filter,
    bool (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err);

// Replaces what was measured, or failed, with the same kernel, config and regime before.
HONE_API HONE_MUST_CHECK hone_status hone_store_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err);
// Visits what was measured under a key by regime, kernel and config; then what failed.
HONE_API HONE_MUST_CHECK hone_status hone_store_measurements(
    hone_store *store,
    const hone_store_key *key,
    bool (*visit)(void *ctx, const hone_store_measurement *measurement),
    void *ctx,
    hone_error *err);

// Adds to what is stored: counts add up, first is the earliest, last the latest. All or none.
HONE_API HONE_MUST_CHECK hone_status
hone_store_add_invocations(hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err);
// Heaviest first. device NULL: all.
HONE_API HONE_MUST_CHECK hone_status hone_store_invocations(
    hone_store *store,
    const char *device,
    bool (*visit)(void *ctx, const hone_store_invocation *invocation),
    void *ctx,
    hone_error *err);
HONE_API HONE_MUST_CHECK hone_status
hone_store_clear_invocations(hone_store *store, const char *device, hone_error *err);

HONE_API HONE_MUST_CHECK hone_status
hone_store_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err);
// Visits the alias of a foreign key. HONE_NOT_FOUND when there is none.
HONE_API HONE_MUST_CHECK hone_status hone_store_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err);

typedef struct hone_store_stat {
    uint64_t decisions, measurements, failures, invocations, aliases;
    uint64_t bytes;
    uint32_t schema;
} hone_store_stat;
HONE_API HONE_MUST_CHECK hone_status hone_store_get_stat(hone_store *store, hone_store_stat *out, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
