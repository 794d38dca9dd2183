// The environment of a measurement: the facts that it depends on, and what happens to a record when one of them has
// changed since. There is one table; docs/fingerprints.md shows the same, and a test compares the two.
#ifndef HONE_TUNE_RESULT_ENVIRONMENT_H
#define HONE_TUNE_RESULT_ENVIRONMENT_H

#include "base/buffer.h"
#include "hone/device.h"
#include "hone/kernel.h"

// What happens to a stored decision, measurement or failure when a fact differs.
typedef enum hone_standing {
    HONE_STANDS,      // it is served: the fact is only recorded
    HONE_CHECK_AGAIN, // a decision is served and noted for tuning; a measurement or failure is ignored
    HONE_STALE        // not served, or ignored
} hone_standing;

enum { HONE_FACT_SIZE = 256, HONE_DIFFERENCE_SIZE = 128 };

typedef struct hone_environment_fact {
    const char *name;
    const char *place; // where it is stored: the record's key, a column, or its environment
    hone_standing when_it_differs;
    // Reads its value today; false: it has none here. NULL: it is not part of the environment, and is compared
    // elsewhere.
    bool (*read)(const hone_device_info *device, const hone_kernel *kernel, char out[HONE_FACT_SIZE]);
} hone_environment_fact;

extern const hone_environment_fact hone_environment_facts[];
extern const size_t hone_environment_fact_count;
// "served", "served and checked again", "not served". Static.
const char *hone_standing_name(hone_standing standing);

// The environment as it is now, as a JSON object, which is stored with a decision. kernel may be NULL.
void hone_environment_json(const hone_device_info *device, const hone_kernel *kernel, hone_buffer *out);
// Only the facts whose change matters, which are stored with a measurement or failure.
void hone_environment_counted_json(const hone_device_info *device, const hone_kernel *kernel, hone_buffer *out);
// Adds the digest of the code that ran to such a text, as its last fact; 0: not known, and left out.
void hone_environment_add_code(hone_buffer *text, uint64_t digest);
uint64_t hone_environment_code(const char *stored); // stored may be NULL
// Whether a stored text has the same facts as one of hone_environment_counted_json, except the digest of the code.
bool hone_environment_is(const char *stored, const char *counted);
// Finds the first fact that matters and differs between a stored environment (NULL: not known) and now. A fact that one
// of the two does not have is not compared.
// Returns HONE_STANDS when there is none; else out describes it: "compiler was gcc 12, is gcc 13".
hone_standing hone_environment_compare(
    const char *stored, const hone_device_info *device, const hone_kernel *kernel, char out[HONE_DIFFERENCE_SIZE]);

#endif
