// hone.lock: choices that are pinned, one line each, made for review (docs/freeze-choices.md).
//
//   hone.lock 2 sha256:9f86d081884c7d65...
//   rms_norm@v1 180f3da29f455ea8 cpu|... native/avx512@1 rows_per_task=4 unroll=2  # rms_norm(f32[1024,4096], f32[4096])
//
// A runtime whose options or HONE_LOCK name a lock file asks it after overrides and overlays; under HONE_POLICY_FROZEN
// an override answers, else the lock file, else nothing. `hone lock` writes one from a store.
#ifndef HONE_LOCK_H
#define HONE_LOCK_H

#include "hone/allocator.h"
#include "hone/store.h"

#ifdef __cplusplus
extern "C" {
#endif

// A set of lines, sorted by algorithm, version, key and device, with at most one line for each.
// Threads: reading from any thread; changing it alone.
typedef struct hone_lock hone_lock;

// One choice: for this call on this device, this kernel with this config.
typedef struct hone_lock_line {
    const char *algorithm; // lower case
    const char *version;
    const char *key;      // call key
    const char *device;   // fingerprint
    const char *platform; // "native"
    const char *kernel;   // kernel name
    const char *config;   // JSON object of numbers, strings and booleans; NULL and "": {}
    const char *call;     // call text; NULL when not known: then the key alone is compared
    const char
        *config_text; // the config as the file has it, "rows_per_task=4 unroll=2"; hone_lock_put does not read it
    uint32_t number;  // of the line in its file, from 1; 0 if it was not read from one
    // Of the kernel's code, as hone_store_decision has it: a kernel of the name with another one is not followed. NULL
    // when not known, as in a file of format 1: then the name alone is compared.
    const char *revision;
} hone_lock_line;

// No lines. *out is the caller's (hone_lock_release).
HONE_API HONE_MUST_CHECK hone_status hone_lock_create(hone_allocator allocator, hone_lock **out, hone_error *err);
HONE_API void hone_lock_release(hone_lock **lock); // sets it to NULL; NULL is fine

enum {
    HONE_LOCK_UNSEALED = 1 << 0 // the hash is not compared: to write a file anew after an edit by hand
};
// Reads a file of at most 32 MiB. flags: HONE_LOCK_* or 0.
// Returns: HONE_OK; HONE_NOT_FOUND (no such file); HONE_CORRUPT with the line, what it has and what was expected, also
// when the hash does not match; HONE_INCOMPATIBLE (a newer format); HONE_INVALID_ARGUMENT (too large); HONE_IO.
HONE_API HONE_MUST_CHECK hone_status
hone_lock_read(hone_allocator allocator, const char *path, unsigned flags, hone_lock **out, hone_error *err);
// Replaces the file in one step: readers see the old lines or the new. HONE_IO.
HONE_API HONE_MUST_CHECK hone_status hone_lock_write(const hone_lock *lock, const char *path, hone_error *err);

HONE_API HONE_MUST_CHECK hone_status
hone_lock_put_sized(hone_lock *lock, const hone_lock_line *line, size_t size, hone_error *err);
// Adds a line, or replaces the one of equal algorithm, version, key and device. All is copied.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (a field that is missing or invalid, by name); HONE_OUT_OF_MEMORY.
HONE_MUST_CHECK static inline hone_status hone_lock_put(hone_lock *lock, const hone_lock_line *line, hone_error *err)
{
    return hone_lock_put_sized(lock, line, sizeof *line, err);
}
// Adds a store's decisions, warm before cold. A NULL field of the filter matches all; filter may
// be NULL. accept (NULL for all) may leave decisions out; it is called under the store's lock and must not call the store.
// Returns: as hone_store_scan; HONE_INVALID_ARGUMENT with the key of a decision that no line can hold (its config is
// not an object of numbers, strings and booleans), before which some may have been added; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_lock_put_store(
    hone_lock *lock,
    hone_store *store,
    const hone_store_key *filter,
    bool (*accept)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err);

HONE_API size_t hone_lock_size(const hone_lock *lock);
// The line at index < hone_lock_size, in order. Borrowed until the lock changes.
HONE_API const hone_lock_line *hone_lock_at(const hone_lock *lock, size_t index);
// The line of a call on a device; NULL when there is none. Borrowed until the lock changes.
HONE_API const hone_lock_line *hone_lock_find(
    const hone_lock *lock, const char *algorithm, const char *version, const char *key, const char *device);
// A line of a lock as its file has it, with its newline, by its config_text, not its config. At most size bytes with a NUL;
// returns the bytes that the whole takes without it; 0 when there is no memory, or config_text is NULL.
HONE_API size_t hone_lock_line_text(const hone_lock_line *line, char *out, size_t size);
// A difference between two locks: a line that only one has (the other is NULL), or two that choose differently.
typedef struct hone_lock_change {
    const hone_lock_line *before, *after;
} hone_lock_change;

// Visits, in order, what differs, until visit returns false. Call text is not compared.
//   before, after  NULL stands for one without lines
// Returns: HONE_OK, also when they differ; HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status hone_lock_compare(
    const hone_lock *before,
    const hone_lock *after,
    bool (*visit)(void *ctx, const hone_lock_change *change),
    void *ctx,
    hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
