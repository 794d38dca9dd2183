// JSON rows that come from outside: record documents of any origin, into a recorder and on into a store.
#include "record/record.h"

#include <stdint.h>
#include <stdlib.h>

// What is taken must be sound: a text under every part of its key.
static bool check(void *ctx, const hone_store_invocation *invocation)
{
    (void)ctx;
    const hone_store_key *key = &invocation->key;
    if (key->device[0] == '\0' || key->algorithm[0] == '\0' || key->version[0] == '\0' || key->key[0] == '\0') abort();
    if (invocation->count == 0 || invocation->last < invocation->first) abort();
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_allocator allocator = hone_allocator_system();
    hone_recorder *recorder = NULL;
    hone_store *store = NULL;
    hone_error err;
    size_t count = 0;
    if (hone_recorder_create(&allocator, 64, &recorder, &err) != HONE_OK) return 0;
    if (hone_store_open(allocator, "memory:", &store, &err) == HONE_OK) {
        (void)!hone_recorder_import(recorder, (const char *)data, size, &count, &err);
        if (hone_recorder_flush(recorder, store, &err) != HONE_OK) abort();
        if (hone_recorder_visit(recorder, store, NULL, check, NULL, &err) != HONE_OK) abort();
    }
    hone_store_close(&store);
    hone_recorder_destroy(&recorder);
    return 0;
}
