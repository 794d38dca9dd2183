// A program's entry for a cache or an overlay, as a decision.
#ifndef HONE_RUNTIME_API_ENTRY_H
#define HONE_RUNTIME_API_ENTRY_H

#include "runtime/api/api.h"

// Splits "NAME", or "NAME@vVERSION"; version (may be NULL) wins. HONE_INVALID_ARGUMENT.
hone_status hone_entry_split_name(
    const char *algorithm, const char *version, char name[HONE_NAME_SIZE], char out_version[16], hone_error *err);
// Kernels of one name and platform differ in their backends: returns the first whose space has the config, else the
// first. NULL if there is none.
const hone_kernel_ref *hone_entry_kernel(
    const hone_algorithm_entry *algorithm, const char *name, hone_platform platform, const char *config);
// Reads a config from a JSON object or text; NULL and "" leave *out unchanged.
hone_status hone_entry_read_config(const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *err);
// Checks an entry against the registry and makes a decision of it. An entry without a config gets one when it answers a
// call: the space's default can depend on the call.
hone_status hone_entry_decision(
    hone_runtime *rt, const hone_entry *entry, hone_source source, hone_decision *out, hone_error *err);
// The measurements that an entry is based on.
typedef struct hone_entry_ground {
    const hone_decision *decision; // verified, and its evidence
    const char
        *revision; // of the kernel that was measured: nothing is known of one of another revision; "" is not known
} hone_entry_ground;

// hone_overlay_create with the ground of each entry. grounds may be NULL if it is not known.
hone_status hone_entry_overlay(
    hone_runtime *rt,
    const hone_entry *entries,
    const hone_entry_ground *grounds,
    size_t count,
    hone_overlay **out,
    hone_error *err);

#endif
