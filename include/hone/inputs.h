// Generated arguments of a call, as contests generate them: to run and check calls without data.
#ifndef HONE_INPUTS_H
#define HONE_INPUTS_H

#include "hone/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

// Arguments and results of one call, in memory of their own on the device that the call names. Of one thread at a time.
typedef struct hone_inputs hone_inputs;

// Makes them: arrays by the algorithm's make_input, else by the generators of its signature; results are zero.
//   seed  the same seed gives the same data on every machine
//   *out  the caller's (hone_inputs_release), before the runtime is closed; NULL after a failure
// Returns: HONE_OK; HONE_UNAVAILABLE (no platform here has the device); HONE_UNSUPPORTED (the memory here does not hold them);
//          HONE_INVALID_ARGUMENT (a generator that does not fit; the call is of another operation); HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_inputs_make(const hone_op *op, const hone_call *call, uint64_t seed, hone_inputs **out, hone_error *err);
HONE_API void hone_inputs_release(hone_inputs **inputs); // sets it to NULL; NULL is fine
// What hone_run, hone_bind and plan->run take. Borrowed until hone_inputs_release. Neither argument may be NULL.
HONE_API const hone_value *hone_inputs_values(const hone_inputs *inputs, size_t *out_count);

// How results compare with the reference's.
typedef struct hone_verified {
    bool has_reference; // false: the algorithm has none, and nothing was compared
    bool is_right;      // false also where has_reference is
    double max_error;   // the largest error over what is allowed: more than 1 is wrong
    char wrong[400];    // the last result that is wrong, with its first wrong element; ""
} hone_verified;

HONE_API HONE_MUST_CHECK hone_status
hone_inputs_verify_sized(const hone_inputs *inputs, hone_verified *out, size_t size, hone_error *err);
// Runs the algorithm's reference on the CPU, on the arguments as they were made (what the caller wrote into them since is not
// seen), and compares what stands in the results with what it gives, under the algorithm's tolerance. Waits for the default stream of the device.
// Returns: HONE_OK, also when they differ; HONE_KERNEL_FAILED (the reference failed, or what ran on the stream);
//          as hone_inputs_make.
HONE_MUST_CHECK static inline hone_status hone_inputs_verify(
    const hone_inputs *inputs, hone_verified *out, hone_error *err)
{
    return hone_inputs_verify_sized(inputs, out, sizeof *out, err);
}

// Whether what an algorithm says of itself (hone_algorithm.independent) is true of a call, whose tensors need no data: its reference
// computes made-up inputs whole, and the first and the last part of them alone, on the CPU. Contests ask the same.
// Returns: HONE_OK, also for hone's own algorithms, whose tests ask it; HONE_KERNEL_FAILED with the first element that differs;
// HONE_UNSUPPORTED when it cannot be told: no reference, or one that fails, no parts, or more than 64 MB; as hone_inputs_make.
HONE_API HONE_MUST_CHECK hone_status
hone_inputs_check_parts(const hone_op *op, const hone_call *call, uint64_t seed, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
