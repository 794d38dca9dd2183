// The internal structure of results.
#ifndef HONE_TUNE_RESULT_RESULT_H
#define HONE_TUNE_RESULT_RESULT_H

#include "base/buffer.h"
#include "base/memory.h"
#include "store/records.h"
#include "tune/tuner.h"

#include <stdatomic.h>

typedef struct hone_result_entry {
    hone_decision decision;
    char *call;     // call text; "" when not known
    char *spec;     // canonical text; "" when not known
    char *revision; // of the kernel; "" when not known
    char *kernels;  // JSON array of every kernel's best; "" when not known
    char *history;  // JSON object of what was tried (contest/history.c), "trail" in documents; "" when not known
    // If the call was on another device than the first one's: its fingerprint, and its environment as a JSON object;
    // else "".
    char *device, *environment;
} hone_result_entry;

// The texts of an entry in addition to its decision; NULL counts as "".
typedef struct hone_result_texts {
    const char *call, *spec, *revision, *kernels, *history, *device, *environment;
} hone_result_texts;

typedef struct hone_result_failure {
    char *call, *key, *reason;
} hone_result_failure;

// Another system's key of a call of the result. Texts belong to the result.
typedef struct hone_result_alias {
    hone_store_alias alias;
    char entry[20]; // key of the entry that answers the call: its own, or that of its bucket
} hone_result_alias;

struct hone_result {
    atomic_size_t references;
    hone_allocator allocator;
    void *owner;
    char *device;      // fingerprint, of all entries without one of their own
    char *environment; // JSON object
    hone_result_entry *entries;
    size_t count, capacity;
    hone_result_alias *aliases;
    size_t alias_count, alias_capacity;
    hone_result_failure *failures;
    size_t failure_count, failure_capacity;
    hone_status status; // of the last call that was tried and failed
};

// Makes an empty result. device and environment are copied.
hone_status hone_result_new(
    hone_allocator allocator,
    const char *device,
    const char *environment,
    void *owner,
    hone_result **out,
    hone_error *err);
// The fingerprint of an entry's device.
const char *hone_result_entry_device(const hone_result *result, const hone_result_entry *entry);
// Adds a copy. Replaces an entry of the same key if the new one is better by the store's rule.
hone_status hone_result_add(
    hone_result *result, const hone_decision *decision, const hone_result_texts *texts, hone_error *err);

// Adds a copy of another system's key of a call, and replaces an existing one. entry: key of the entry that answers it.
hone_status hone_result_add_alias(
    hone_result *result, const hone_store_alias *alias, const char *entry, hone_error *err);

// Sets the device of an entry to be added in its texts; a result without entries gets that device.
//   environment  an empty buffer that the texts may point into
hone_status hone_result_of_device(
    hone_result *result,
    const hone_device_info *device,
    hone_result_texts *texts,
    hone_buffer *environment,
    hone_error *err);

// Writes the result document. history: each entry has what was tried for it, under "trail", for reports.
void hone_result_document(const hone_result *result, bool history, hone_buffer *out);

// Notes the status of a call that failed; the exit code of the command is made from the last one. HONE_OK: none failed.
void hone_result_note_status(hone_result *result, hone_status status);

#endif
