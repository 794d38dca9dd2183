// Places of the results that are overwritten before a sample and checked right after it. A timed run that left one of
// them as it was did not do its work, or does it later. The places change from sample to sample, so that a kernel
// cannot write only those.
#ifndef HONE_TUNE_WORKER_SPOTS_H
#define HONE_TUNE_WORKER_SPOTS_H

#include "tune/worker/buffers.h"

enum { HONE_MOST_SPOTS = 4, HONE_MOST_SPOT_BYTES = 16 };

// One element of a result.
typedef struct hone_spot {
    uint32_t value; // index of the parameter
    int64_t index;  // of the element, in row-major order
    int64_t offset; // bytes from its first element
    uint32_t size;
    unsigned char poison[HONE_MOST_SPOT_BYTES]; // its contents until a run writes it
} hone_spot;

typedef struct hone_spots {
    size_t set;
    uint32_t count;
    hone_spot spots[HONE_MOST_SPOTS];
} hone_spots;

// Chooses at most `most` places in a set's results and overwrites them, on a device too. A run must have written the
// results before: floating-point numbers are overwritten with NaN, others with another value than they hold. Results
// whose elements share bytes have no spots.
hone_status hone_spots_set(
    hone_spots *spots, const hone_buffers *buffers, size_t set, uint32_t most, uint64_t *random, hone_error *err);
// The two steps of hone_spots_set.
hone_status hone_spots_choose(
    hone_spots *spots, const hone_buffers *buffers, size_t set, uint32_t most, uint64_t *random, hone_error *err);
hone_status hone_spots_overwrite(const hone_spots *spots, const hone_buffers *buffers, hone_error *err);
// Overwrites only the first spot, if there is one, on the host: quick enough between two runs of a batch.
void hone_spots_overwrite_one(const hone_spots *spots, const hone_buffers *buffers);
// Counts the spots that still hold what they were overwritten with. *out_first: index of the first of these, if any.
hone_status hone_spots_left(
    const hone_spots *spots, const hone_buffers *buffers, uint32_t *out_left, uint32_t *out_first, hone_error *err);

#endif
