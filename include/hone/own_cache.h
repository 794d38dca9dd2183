// Caches of a program's own: values as JSON that it keeps for a device, an operation and the key of a call. In memory, or
// in a store, where other processes find them. hone's decisions about its own kernels may be in the same stores; the two
// are kept apart.
//
//   hone_own_cache *cache = NULL;
//   hone_own_cache_options options = {.struct_size = sizeof options, .name = "my_kernels", .url = "sqlite:team.db"};
//   hone_own_cache_open(&options, &cache, &err);
//   hone_own_cache_put(cache, &(hone_own_value){"gpu:0", "matmul@v1", "key123", "{\"rows\":128}"}, &err);
//
// Devices, operations and keys are any texts in UTF-8, including the empty one; a value is any JSON text, also with
// Python's NaN and Infinity, and is returned byte for byte. hone.PersistentCache of Python reads and writes the same.
// Threads: every function may be called from any thread, but for close.
#ifndef HONE_OWN_CACHE_H
#define HONE_OWN_CACHE_H

#include "hone/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_own_cache hone_own_cache;

// A value with its key; strings are borrowed for a call.
typedef struct hone_own_value {
    const char *device;
    const char *operation;
    const char *key;
    const char *json; // ignored where only the key matters
} hone_own_value;

enum { HONE_OWN_KEY_SIZE = 256 };

// Zero means default. First field: sizeof of the struct.
typedef struct hone_own_cache_options {
    size_t struct_size;
    hone_allocator allocator; // the system's allocator if its reallocate is NULL
    const char *name;         // caches of different names are separate; required with a store
    const char *url;          // of a store, opened now and closed with the cache
    hone_store *store;        // in place of url: borrowed until the cache is closed. Neither: the values are in memory
    bool no_overlays;         // overlays that are entered do not shadow its values
    // Makes a key of a call from `what`, the argument of hone_own_cache_make_key: writes at most size bytes with a NUL.
    // Called by any thread, several at once. For NULL see there.
    hone_status (*make_key)(void *ctx, const void *what, char *out, size_t size, hone_error *err);
    void *make_key_ctx;
} hone_own_cache_options;

//   options  NULL selects all defaults, a cache in memory; copied
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (a store without a name; url and store; an invalid name); as hone_store_open.
HONE_API HONE_MUST_CHECK hone_status
hone_own_cache_open(const hone_own_cache_options *options, hone_own_cache **out, hone_error *err);
// No thread may be inside a call. Sets *cache to NULL.
HONE_API void hone_own_cache_close(hone_own_cache **cache);

// The value of a key: that of the newest overlay which is entered and has it, else the cache's.
//   out_json  the caller's: hone_text_release (hone/tune.h)
// Returns: HONE_OK; HONE_NOT_FOUND; HONE_INVALID_ARGUMENT (a text is NULL or invalid UTF-8); as hone_store_get.
HONE_API HONE_MUST_CHECK hone_status
hone_own_cache_get(hone_own_cache *cache, const hone_own_value *key, char **out_json, hone_error *err);
// Stores a value, replacing an earlier one; all threads and processes see it at once.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (also: json is not JSON), and nothing is changed; HONE_BUSY, HONE_IO.
HONE_API HONE_MUST_CHECK hone_status
hone_own_cache_put(hone_own_cache *cache, const hone_own_value *value, hone_error *err);
// Visits its keys until visit returns false: in memory the oldest first, in a store by operation, device and key. They are
// borrowed for the visit, which runs under the cache's lock and may not call it; json is NULL: hone_own_cache_get has it.
HONE_API HONE_MUST_CHECK hone_status hone_own_cache_keys(
    hone_own_cache *cache, bool (*visit)(void *ctx, const hone_own_value *value), void *ctx, hone_error *err);
// Removes all values that were put, for every process that shares the store. Values imported from ejkernel's file stay.
// Returns: HONE_OK; HONE_BUSY, HONE_IO.
HONE_API HONE_MUST_CHECK hone_status hone_own_cache_clear(hone_own_cache *cache, hone_error *err);
// The key of a call from what the program knows of it, by the cache's generator. Without one `what` is a JSON text with a NUL, and the
// key the first 16 hex digits of SHA-256 over it as Python's json.dumps(sort_keys=True, separators=(",", ":")) writes it.
//   size  of out; HONE_OWN_KEY_SIZE is enough for hone's
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (not JSON, or out is too small); what the generator returns, with its message.
HONE_API HONE_MUST_CHECK hone_status
hone_own_cache_make_key(const hone_own_cache *cache, const void *what, char *out, size_t size, hone_error *err);

// Values that go before those of all caches, for a stretch of code: immutable, counted, nested. A thread starts with none;
// a pool or a coroutine enters what its caller captured.
typedef struct hone_own_overlay hone_own_overlay;

// One like parent (NULL for none) with more values, which are asked first. Values are copied.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (as hone_own_cache_put); HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_own_overlay_derive(
    hone_allocator allocator,
    hone_own_overlay *parent,
    const hone_own_value *values,
    size_t count,
    hone_own_overlay **out,
    hone_error *err);
HONE_API void hone_own_overlay_release(hone_own_overlay **overlay);
// Makes an overlay (NULL for none) the calling thread's, and returns what was current before. Both are borrowed: the caller
// keeps a reference for as long as one is current anywhere.
HONE_API hone_own_overlay *hone_own_overlay_enter(hone_own_overlay *overlay);

#ifdef __cplusplus
}
#endif
#endif
