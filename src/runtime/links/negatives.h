// The failed configs of a call, from the stores: explain shows them, and the heuristic skips them. Also the
// measurements of its kernels.
#ifndef HONE_RUNTIME_LINKS_NEGATIVES_H
#define HONE_RUNTIME_LINKS_NEGATIVES_H

#include "runtime/links/links.h"

// One config that failed.
typedef struct hone_negative {
    char kernel[HONE_NAME_SIZE];
    char config[256];
    hone_failure failure;
    char reason[128];
    char measured[24], until[24]; // UTC; "" when it is not known
    bool stands;                  // it prevents the config from being tried
    char why_not[128];            // the reason if it does not
} hone_negative;

// The fastest config of a kernel that was measured at its current revision.
typedef struct hone_measured {
    char kernel[HONE_NAME_SIZE];
    hone_regime regime;
    double time_ns;
    uint32_t configs;
} hone_measured;

typedef struct hone_negatives {
    hone_allocator allocator;
    hone_negative *rows;
    size_t count, capacity;
    hone_measured *measured; // one for each kernel and regime
    size_t measured_count, measured_capacity;
} hone_negatives;

// Adds the failures and the measurements of a call's key from both stores, for all registered kernels. *out begins as
// zero with its allocator. HONE_OK also if a store fails; HONE_OUT_OF_MEMORY.
hone_status hone_negatives_of_call(const hone_request *request, hone_negatives *out, hone_error *err);
void hone_negatives_deinit(hone_negatives *negatives);

// Whether this exact config of a kernel is known to be wrong or harmful for the call, as found in a separate process:
// it is not tried in this one. HONE_OK if nothing is known. HONE_KERNEL_FAILED with a description.
hone_status hone_negatives_check(
    const hone_negatives *negatives, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why);
// NULL if no measurement of the kernel is stored.
const hone_measured *hone_negatives_measured(const hone_negatives *negatives, const char *kernel, hone_regime regime);
bool hone_negatives_any(const hone_negatives *negatives, const char *kernel);

// One line for people about a kernel, if any of its configs failed.
void hone_negatives_text(const hone_negatives *negatives, const char *kernel, hone_buffer *out);
// A JSON array of a kernel's failures.
void hone_negatives_json(const hone_negatives *negatives, const char *kernel, hone_buffer *out);

#endif
