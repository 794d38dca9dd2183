// The invocation registry of one runtime: which descriptors were called, how often, when, and who answered.
// Never data: an entry holds texts and counts.
//
// Bounded: when the table is full it is spilled to the store, or without one, new descriptors are counted as
// dropped. Functions that take a store add its invocations to the table's; NULL: there is none. Any thread. The
// lock is never held while somebody's visit runs.
#ifndef HONE_RECORD_RECORD_H
#define HONE_RECORD_RECORD_H

#include "base/memory.h"
#include "hone/signature.h"
#include "hone/store.h"

typedef struct hone_recorder hone_recorder;
typedef bool hone_record_visit(void *ctx, const hone_store_invocation *invocation);

enum { HONE_RECORDER_LIMIT = 4096 };

// limit: descriptors held in memory; 0: HONE_RECORDER_LIMIT.
hone_status hone_recorder_create(const hone_allocator *allocator, size_t limit, hone_recorder **out, hone_error *err);
void hone_recorder_destroy(hone_recorder **recorder); // what was not flushed is forgotten
const hone_allocator *hone_recorder_allocator(const hone_recorder *recorder);
// Where a full table goes: store(ctx) is asked when one is needed, under the recorder's lock; it may answer NULL.
void hone_recorder_set_spill(hone_recorder *recorder, hone_store *(*store)(void *ctx), void *ctx);

// Counts `count` calls of a descriptor, now.
//   kernel, source  that answered; NULL: not known
// Returns: HONE_OK, also when it was dropped; HONE_OUT_OF_MEMORY; and why the spill failed (then it was dropped).
hone_status hone_recorder_add(
    hone_recorder *recorder,
    const char *device,
    const hone_call *call,
    uint64_t count,
    const char *kernel,
    const char *source,
    hone_error *err);
// The same of a call that nobody decided, and that nobody asked to be recorded: a store keeps a limited number of them
// for a limited time (HONE_STORE_MISSES, HONE_STORE_MISS_DAYS).
hone_status hone_recorder_add_miss(
    hone_recorder *recorder,
    const char *device,
    const hone_call *call,
    const char *kernel,
    const char *source,
    hone_error *err);
// The same by its texts, with times of its own.
hone_status hone_recorder_add_invocation(
    hone_recorder *recorder, const hone_store_invocation *invocation, hone_error *err);

// Descriptors in memory, and those that were dropped.
size_t hone_recorder_count(hone_recorder *recorder);
uint64_t hone_recorder_dropped(hone_recorder *recorder);

// Visits what is known of a device (NULL: of all), table and store added up, heaviest first, until visit returns
// false. When the store could not be read, what there is was visited and the store's status is returned.
hone_status hone_recorder_visit(
    hone_recorder *recorder,
    hone_store *store,
    const char *device,
    hone_record_visit *visit,
    void *ctx,
    hone_error *err);
// Visits every invocation, of any device, that stands under a label's words: algorithm in lower case; version NULL:
// any;
// key NULL: any. Imported ones among them: then spec is the other system's text.
hone_status hone_recorder_find(
    hone_recorder *recorder,
    hone_store *store,
    const char *algorithm,
    const char *version,
    const char *key,
    hone_record_visit *visit,
    void *ctx,
    hone_error *err);
// Forgets a device's (NULL: all), in the table and in the store.
hone_status hone_recorder_clear(hone_recorder *recorder, hone_store *store, const char *device, hone_error *err);
// Moves the table to the store; when that fails, the table stays as it was. HONE_OK without a store: nothing moves.
hone_status hone_recorder_flush(hone_recorder *recorder, hone_store *store, hone_error *err);

// Reads a record document: hone's own, or ejkernel's words (op, key, spec). Sound entries are taken also when others
// are not: then the answer is HONE_CORRUPT with the first one's fault, and *out_count (may be NULL) holds how many were
// taken.
// Returns: HONE_OK; HONE_CORRUPT; HONE_INCOMPATIBLE (a newer document); HONE_OUT_OF_MEMORY; why a spill failed.
hone_status hone_recorder_import(
    hone_recorder *recorder, const char *json, size_t size, size_t *out_count, hone_error *err);

#endif
