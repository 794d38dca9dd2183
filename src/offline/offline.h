// Offline tuning below the runtime, which hands in what it needs. hone_program_read and hone_offline of the public
// header are thin wrappers in src/runtime; the rest of hone/offline.h is here.
#ifndef HONE_OFFLINE_OFFLINE_H
#define HONE_OFFLINE_OFFLINE_H

#include "base/buffer.h"
#include "hone/offline.h"
#include "registry/registry.h"
#include "store/records.h"

// Borrowed for the time of a call.
typedef struct hone_offline_environment {
    hone_allocator allocator;
    hone_registry *registry;
    void *ctx;           // first argument of the functions
    int64_t cache_bytes; // that the caches of the CPU hold together; 0: not known, nothing is measured cold
    // Appends the canonical text of a recorded invocation ("flash_attention", "2", key). False: there is none. May be
    // NULL.
    bool (*recorded)(void *ctx, const char *algorithm, const char *version, const char *key, hone_buffer *out_spec);
    // Tunes one call that is made so often, cold or warm, stores it and adds it to the result. A call that is decided already is only
    // added. HONE_CANCELLED ends the batch, HONE_OUT_OF_MEMORY too; any other failure is given to `failed`.
    hone_status (*tune)(void *ctx, const hone_call *call, int64_t count, hone_regime regime, hone_error *err);
    // Takes a call that was not tuned into the result: its text or NULL, its key (hone's, else the label's, else the
    // whole label), why.
    hone_status (*failed)(void *ctx, const char *call, const char *key, const char *reason, hone_error *err);
    // Remembers another system's key of a call that was tuned. May be NULL.
    hone_status (*alias)(void *ctx, const hone_store_alias *alias, const hone_call *call, hone_error *err);
} hone_offline_environment;

// hone_program_read of the public header.
hone_status hone_offline_read(
    const hone_offline_environment *environment,
    const char *name,
    const char *text,
    size_t size,
    hone_program **out,
    hone_error *err);
// hone_offline of the public header, without the result, which is the environment's.
hone_status hone_offline_tune(
    const hone_offline_environment *environment, const hone_program *program, bool unproved, hone_error *err);

#endif
