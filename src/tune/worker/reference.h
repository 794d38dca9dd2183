// The right answer: the reference's results for one call, computed once and compared with every candidate's.
#ifndef HONE_TUNE_WORKER_REFERENCE_H
#define HONE_TUNE_WORKER_REFERENCE_H

#include "call/call.h"
#include "tune/worker/buffers.h"
#include "tune/worker/partition.h"

enum { HONE_MAX_PARTS = 256, HONE_KEPT_RIGHT = 4 };

// Bytes of a result that were compared and are right. Others with the same bits need no comparison.
typedef struct hone_right_result {
    uint64_t digest;
    double error; // 0 or more
    bool there;
} hone_right_result;

// By what a reference computes. Borrowed for as long as the reference is used.
typedef struct hone_reference_means {
    const hone_algorithm *algorithm;
    const hone_kernel *stand_in; // in place of the algorithm's function; NULL: it is the function
    const hone_device_info *device;
    hone_pool *pool;    // NULL: the calling thread alone
    bool is_concurrent; // the function is hone's own, so that threads may compute parts of a call at once
} hone_reference_means;

// What a reference is for.
typedef struct hone_reference_use {
    double seconds;        // about what its function may take: a call of more is computed in parts
    double slack;          // results may be off by so many times the tolerance
    const double *largest; // NULL: of its own results. Else [HONE_MAX_VALUES], and NaN is right where it gives NaN
    bool is_timed; // its time decides what else is compared, and so is that of a second run where the first is slow
} hone_reference_use;

// Of a call that is computed in parts and is no product: the whole results of a candidate that was right in all of them.
// Where another's differ, the part in which they do is computed, and says who is wrong.
typedef struct hone_witness {
    hone_fenced results[HONE_MAX_VALUES];
    char name[HONE_NAME_SIZE]; // of its kernel; "": there is none
    bool agrees;               // with the results of a kernel of another name, all along
    uint32_t judged;           // times that two differed
} hone_witness;

typedef struct hone_reference {
    hone_allocator allocator;
    hone_reference_means means;
    const hone_signature *signature;
    hone_fenced results[HONE_MAX_VALUES];                      // block NULL where a value is no result
    double largest[HONE_MAX_VALUES];                           // max |reference|
    hone_right_result right[HONE_MAX_VALUES][HONE_KEPT_RIGHT]; // the last ones
    uint32_t next_right[HONE_MAX_VALUES];
    hone_parting parting;
    uint64_t parts[HONE_MAX_PARTS]; // those that were computed
    uint32_t part_count;
    double time_ns; // of the whole, by one thread; 0: only parts were computed
    hone_reference_use use;
    const hone_call *call; // borrowed
    hone_witness witness;
    bool is_product; // computed in parts, and all of it is looked at as a product
    hone_product product;
} hone_reference;

// Computes the results of buffers' first set. A call of more operations than its seconds take is computed in
// parts, when its algorithm says how it falls apart. call is borrowed for as long as the reference is used.
hone_status hone_reference_compute(
    hone_reference *reference,
    const hone_reference_means *means,
    const hone_call *call,
    const hone_buffers *buffers,
    const hone_reference_use *use,
    uint64_t seed,
    hone_error *err);
// "whole", or what of the results is compared, and how.
void hone_reference_describe(const hone_reference *reference, char *out, size_t size);
extern const hone_reference_use hone_reference_ordinary;
// Whether a reference of so many seconds would be computed in parts, and each of them quickly.
bool hone_reference_has_quick_parts(const hone_algorithm *algorithm, const hone_call *call, double seconds);
void hone_reference_deinit(hone_reference *reference);
// Whether the first and the last part, computed alone, are those of the whole, as the algorithm says. HONE_OK also where the
// call does not fall apart; HONE_KERNEL_FAILED with the first element that is not.
hone_status hone_reference_check_parting(
    const hone_reference *reference, const hone_buffers *buffers, const hone_tolerance *tolerance, hone_error *err);
// Compares one set's results, by one tolerance all along, and where only parts were computed with those of a witness. The
// inputs are those that the reference was computed on.
//   who  the kernel that gave them; NULL: they are compared with no witness, and are none
// Returns: HONE_OK; HONE_KERNEL_FAILED with the first element that is wrong.
hone_status hone_reference_check(
    hone_reference *reference,
    const hone_buffers *buffers,
    size_t set,
    const hone_tolerance *tolerance,
    const char *who,
    double *out_max_error,
    hone_error *err);
// Why results are wrong: elements still hold what hone_buffers_poison left, or rows are zero that are not to be. False:
// all of them were written. Else err says which.
bool hone_reference_finds_unwritten(
    const hone_reference *reference, const hone_buffers *buffers, size_t set, hone_error *err);

#endif
