// The reference's results for one call, computed once and compared with every candidate's.
#ifndef HONE_TUNE_WORKER_REFERENCE_H
#define HONE_TUNE_WORKER_REFERENCE_H

#include "call/call.h"
#include "tune/worker/buffers.h"
#include "tune/worker/partition.h"

enum { HONE_MAX_PARTS = 256, HONE_KEPT_RIGHT = 4 };

// The digest of a result that was compared and is right. Results with the same bytes need no comparison.
typedef struct hone_right_result {
    uint64_t digest;
    double error; // 0 or more
    bool there;
} hone_right_result;

// What a reference is computed with. Borrowed for as long as the reference is used.
typedef struct hone_reference_means {
    const hone_algorithm *algorithm;
    const hone_kernel *stand_in; // used in place of the algorithm's function; NULL: the function is used
    const hone_device_info *device;
    hone_pool *pool;    // NULL: the calling thread alone
    bool is_concurrent; // the function is hone's own: threads may compute parts of a call at once
} hone_reference_means;

// How a reference is used.
typedef struct hone_reference_use {
    double seconds;        // about how long its function may take: a longer call is computed in parts
    double slack;          // factor of the tolerance
    const double *largest; // max |reference|, and NaN is right where the reference is NaN; NULL: the reference's own
    bool is_timed;         // its time decides which checks are made; if the first run is slow a second one is timed
} hone_reference_use;

// For a call that is computed in parts and is no product: the whole results of a candidate that was right in all parts.
// If another candidate's results differ, the part in which they differ is computed, which decides who is wrong.
typedef struct hone_witness {
    hone_fenced results[HONE_MAX_VALUES];
    char name[HONE_NAME_SIZE]; // of the kernel that gave them; "": there is no witness
    bool agrees;               // a kernel of another name gave the same results in all of the call
    uint32_t judged;           // number of differences that were decided
} hone_witness;

typedef struct hone_reference {
    hone_allocator allocator;
    hone_reference_means means;
    const hone_signature *signature;
    hone_fenced results[HONE_MAX_VALUES];                      // block NULL: the value is no result
    double largest[HONE_MAX_VALUES];                           // max |reference|
    hone_right_result right[HONE_MAX_VALUES][HONE_KEPT_RIGHT]; // the latest ones
    uint32_t next_right[HONE_MAX_VALUES];
    hone_parting parting;
    uint64_t parts[HONE_MAX_PARTS]; // that were computed
    uint32_t part_count;
    double time_ns; // of the whole call, by one thread; 0: only parts were computed
    hone_reference_use use;
    const hone_call *call; // borrowed
    hone_witness witness;
    bool is_product; // computed in parts, and all of it is checked as a product
    hone_product product;
} hone_reference;

// Computes the results of buffers' first set. A call of more operations than its seconds allow is computed in parts, if
// its algorithm says how it can be cut. call is borrowed for as long as the reference is used.
hone_status hone_reference_compute(
    hone_reference *reference,
    const hone_reference_means *means,
    const hone_call *call,
    const hone_buffers *buffers,
    const hone_reference_use *use,
    uint64_t seed,
    hone_error *err);
// Describes what of the results is compared, and how: "whole", or the number of parts.
void hone_reference_describe(const hone_reference *reference, char *out, size_t size);
extern const hone_reference_use hone_reference_ordinary;
// Whether a reference with so many seconds would be computed in parts, and each of them quickly.
bool hone_reference_has_quick_parts(const hone_algorithm *algorithm, const hone_call *call, double seconds);
void hone_reference_deinit(hone_reference *reference);
// Checks what the algorithm says of its parts: the first and the last part, computed alone, must equal those of the
// whole. HONE_OK also if the call cannot be cut; HONE_KERNEL_FAILED with the first element that differs.
hone_status hone_reference_check_parting(
    const hone_reference *reference, const hone_buffers *buffers, const hone_tolerance *tolerance, hone_error *err);
// Compares one set's results by the same tolerance throughout and, if only parts were computed, with those of a
// witness. The inputs must be those that the reference was computed on.
//   who  name of the kernel that gave them; NULL: they are not compared with a witness, and do not become one
// Returns: HONE_OK; HONE_KERNEL_FAILED with the first element that is wrong.
hone_status hone_reference_check(
    hone_reference *reference,
    const hone_buffers *buffers,
    size_t set,
    const hone_tolerance *tolerance,
    const char *who,
    double *out_max_error,
    hone_error *err);
// Explains wrong results: elements still hold what hone_buffers_poison left, or rows are zero that must not be. True:
// err says which. False: all results were written.
bool hone_reference_finds_unwritten(
    const hone_reference *reference, const hone_buffers *buffers, size_t set, hone_error *err);

#endif
