// The platforms that run code, each with kernels of one algorithm, scale(x: f32[n]) -> y: f32[n], y = factor * x: one
// that is right, one with parameters, and one for each way of going wrong. One more is of shift(x: f32[n], alpha: f64) ->
// y: f32[n], y = used * x + alpha, used being a parameter. They come as a pack, which every platform takes.
#ifndef HONE_TESTS_CONFORMANCE_ROWS_H
#define HONE_TESTS_CONFORMANCE_ROWS_H

#include "hone/hone.h"

typedef enum sample {
    RIGHT,
    CONFIGURED,
    SHIFTED,
    WRONG,
    OVERRUN,
    FAILING,
    HANGING,
    BROKEN,
    MISLISTED,
    SAMPLE_COUNT
} sample;

typedef struct variant {
    const char *text;      // of its file; NULL: the platform has no such kernel
    const char *entry;     // NULL: the file's own function
    const char *arguments; // NULL: the row's
    const char *fields;    // NULL: the row's
    const char *refused;   // words that binding it fails with; NULL: it is bound
    const char *loses;     // words that it loses a contest with
} variant;

typedef struct row {
    const char *name; // as the test is called
    hone_platform platform;
    int32_t device; // type
    const char *place, *backend, *extension;
    const char *arguments, *fields; // of pack.json; fields: JSON with a comma before each
    float factor;
    size_t devices;             // 0: the host's
    const char *environment[6]; // "NAME=VALUE"; a value "fakes/..." lies in tests/fakes, "packages/..." in build-python
    const char *never_competes; // why
    variant variants[SAMPLE_COUNT];
} row;

extern const char *const row_samples[SAMPLE_COUNT]; // what the kernel of each is called
const char *row_algorithm(sample k);

const row *row_find(const char *name);
// Sets the row's environment, its caches below the folder: once, for drivers look at it once.
void row_choose(const row *r, const char *folder);
// Writes the pack with the samples that the mask has, 1 << sample, into the folder.
void row_write_pack(const row *r, unsigned samples, const char *folder);

#endif
