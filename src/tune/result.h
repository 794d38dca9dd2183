// Results from the inside.
#ifndef HONE_TUNE_RESULT_H
#define HONE_TUNE_RESULT_H

#include "base/buffer.h"
#include "base/memory.h"
#include "tune/tuner.h"

#include <stdatomic.h>

typedef struct hone_result_entry {
    hone_decision decision;
    char *call;     // call text; "" when not known
    char *spec;     // canonical text; "" when not known
    char *revision; // of the kernel; "" when not known
    char *kernels;  // JSON array of every kernel's best; "" when not known
    char *trail;    // JSON object of what was tried (trail.c); "" when not known
} hone_result_entry;

typedef struct hone_result_failure {
    char *call, *key, *reason;
} hone_result_failure;

struct hone_result {
    atomic_size_t references;
    hone_allocator allocator;
    void *owner;
    char *device;      // fingerprint
    char *environment; // JSON object
    hone_result_entry *entries;
    size_t count, capacity;
    hone_result_failure *failures;
    size_t failure_count, failure_capacity;
};

// An empty one. device and environment are copied.
hone_status hone_result_new(
    hone_allocator allocator,
    const char *device,
    const char *environment,
    void *owner,
    hone_result **out,
    hone_error *err);
// Adds a copy; NULL texts are "". An entry of equal key is replaced when the new one is better by the store's rule.
hone_status hone_result_add(
    hone_result *result,
    const hone_decision *decision,
    const char *call,
    const char *spec,
    const char *revision,
    const char *kernels,
    const char *trail,
    hone_error *err);

// The result document. trail: each entry also with what was tried for it, under "trail", as reports want it.
void hone_result_document(const hone_result *result, bool trail, hone_buffer *out);

#endif
