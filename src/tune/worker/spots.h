// Places of the results that are overwritten before a sample and looked at right after it. A run that was timed and
// left one of them as it was did not do its work, or does it later. Which places they are changes from sample to
// sample, so that nobody can write those alone.
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
    unsigned char poison[HONE_MOST_SPOT_BYTES]; // what it holds until a run writes it
} hone_spot;

typedef struct hone_spots {
    size_t set;
    uint32_t count;
    hone_spot spots[HONE_MOST_SPOTS];
} hone_spots;

// Chooses at most `most` places in a set's results and overwrites them, on a device too. The results were written by a run before:
// what is no floating-point number is overwritten with another one than it holds, floating-point numbers with NaN.
// Results whose elements share bytes have no spots.
hone_status hone_spots_set(
    hone_spots *spots, const hone_buffers *buffers, size_t set, uint32_t most, uint64_t *random, hone_error *err);
// The two steps of it.
hone_status hone_spots_choose(
    hone_spots *spots, const hone_buffers *buffers, size_t set, uint32_t most, uint64_t *random, hone_error *err);
hone_status hone_spots_overwrite(const hone_spots *spots, const hone_buffers *buffers, hone_error *err);
// The first of them alone, on the host, where there is one: quick, between two runs of a batch.
void hone_spots_overwrite_one(const hone_spots *spots, const hone_buffers *buffers);
// How many still hold what they were overwritten with. *out_first, where there is one: the index of the first.
hone_status hone_spots_left(
    const hone_spots *spots, const hone_buffers *buffers, uint32_t *out_left, uint32_t *out_first, hone_error *err);

#endif
