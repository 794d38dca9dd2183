// Functions on a runtime that only hone's own code and its tests call.
#ifndef HONE_RUNTIME_API_INNER_H
#define HONE_RUNTIME_API_INNER_H

#include "hone/select.h"

// The memory cache, keyed (fingerprint, algorithm@version, call key); get sees the overlays of the current context first.
//   device  NULL: the CPU's fingerprint
HONE_MUST_CHECK hone_status hone_cache_get(
    hone_runtime *rt, const char *device, const char *algorithm, const char *key, hone_decision *out, hone_error *err);
HONE_MUST_CHECK hone_status hone_cache_put(hone_runtime *rt, const hone_entry *entry, hone_error *err);
void hone_cache_clear(hone_runtime *rt);
size_t hone_cache_size(hone_runtime *rt);
// Calls visit for each key until it returns false; the order is that of insertion.
HONE_MUST_CHECK hone_status hone_cache_keys(
    hone_runtime *rt,
    bool (*visit)(void *ctx, const char *device, const char *algorithm_version, const char *key),
    void *ctx,
    hone_error *err);

// Descriptors that were not recorded because the table was full and there was no store.
uint64_t hone_record_dropped(hone_runtime *rt);

// Registers operations of other libraries that are calls of hone's algorithms: an array of rows as JSON
// (docs/foreign-operations.md), all or none, after those of packs. Later rows take precedence over earlier ones and
// over the built-in ones.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT, HONE_CORRUPT with the row and what is wrong; HONE_OUT_OF_MEMORY.
HONE_MUST_CHECK hone_status hone_register_foreign(hone_runtime *rt, const char *rows, size_t size, hone_error *err);

#endif
