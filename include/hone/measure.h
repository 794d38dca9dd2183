// Measuring without tuning: choices against each other, a turn on a device, what the machine can do at best, and the
// libraries of others that compete.
#ifndef HONE_MEASURE_H
#define HONE_MEASURE_H

#include "hone/lookup.h"
#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// One of the choices of a comparison: a kernel of the call's algorithm, and a config of its space.
typedef struct hone_choice {
    const hone_kernel_ref *kernel;
    hone_config config;
} hone_choice;

enum { HONE_MOST_COMPARED = 16 };

// A choice that was measured beside others. Only undisturbed samples count: no thread of the choice waited for a
// processor or was moved to another one, and the host of a virtual machine took no time. Where there are fewer than
// five of these, the five least disturbed count. Two choices are compared within rounds, so that ratio need not be the
// quotient of the two times.
typedef struct hone_compared {
    char kernel[HONE_NAME_SIZE];
    char config[1024];               // JSON object
    double time_ns, low_ns, high_ns; // of one run: the median with its 95 % interval
    double ratio, low, high;     // the median of its time over the fastest choice's in the same round, with the 95 %
                                 // interval; at least 1, and 1 of the fastest
    uint32_t samples, disturbed; // that were taken; of them those that were disturbed
} hone_compared;

HONE_API HONE_MUST_CHECK hone_status hone_compare_sized(
    const hone_op *op,
    const hone_call *call,
    const hone_choice *choices,
    size_t count,
    const hone_tune_options *options,
    hone_compared *out,
    size_t size,
    hone_error *err);
// Measures choices for a call against each other, and stores nothing: each is tried alone first, verified as in a
// contest, then they take turns until the time is over. out[i] is of choices[i].
//   choices  no two the same
//   count    2 to HONE_MOST_COMPARED
//   options  seconds (0: 3; verifying comes before), candidate_seconds (0: 60, until each has been prepared and verified), wait_seconds,
//            isolation, regime, tolerance, seed, progress, cancel; NULL selects all defaults
// Returns: HONE_OK; HONE_UNSUPPORTED (a choice cannot run the call); HONE_KERNEL_FAILED (one is wrong, crashes or hangs; the
//          message names it); HONE_INVALID_ARGUMENT (the space refuses a config; two choices are the same; a kernel is NULL; the call is of
//          another operation); as hone_tune.
HONE_MUST_CHECK static inline hone_status hone_compare(
    const hone_op *op,
    const hone_call *call,
    const hone_choice *choices,
    size_t count,
    const hone_tune_options *options,
    hone_compared *out,
    hone_error *err)
{
    return hone_compare_sized(op, call, choices, count, options, out, sizeof *out, err);
}

// A turn on a device: for programs that measure there, alternating with the contests of all processes of this machine.
typedef struct hone_turn hone_turn;

// Waits until no contest and no other turn measures on the device.
//   call     that is named in reports of progress; borrowed until the turn ends
//   options  wait_seconds, progress, cancel; NULL selects all defaults
//   wait     other processes are waited for at most wait_seconds; threads of this process without limit, until cancel is set
//   *out     the caller's (hone_turn_end); NULL after a failure
// Until it has ended the turn, the thread neither tunes, compares nor begins another turn on the device.
// Threads: the turn is ended by the thread that began it.
// Returns: HONE_OK; HONE_BUSY (another process took longer than wait_seconds); HONE_CANCELLED; HONE_IO; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_turn_begin(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    hone_turn **out,
    hone_error *err);
HONE_API void hone_turn_end(hone_turn **turn); // sets it to NULL; NULL is fine

// The most that a machine's CPU can do with all its threads. 0 if it was not measured.
typedef struct hone_peak {
    double operations; // of f32 a second, in fused multiply-adds on registers
    double of_bf16;    // of bf16 a second: in the products of pairs or of tiles that the CPU has; else operations
    double bytes;      // read a second, from memory that no cache holds
    bool is_new;       // measured by this call
    char lacks[240];   // why something was not measured; ""
} hone_peak;

HONE_API HONE_MUST_CHECK hone_status
hone_peak_read_sized(hone_runtime *rt, bool anew, hone_peak *out, size_t size, hone_error *err);
// What the CPU can do at best: as it was measured since the machine was started, and kept in the user's cache folder
// (peak.json of $XDG_CACHE_HOME/hone), else measured now. That takes a fifth of a second, all threads, and up to 1 GiB of
// what this process may take.
//   anew  measures also where there is one: it may have been measured on a busier machine. The greater of the two is kept
// Returns: HONE_OK, also when something could not be measured; HONE_OUT_OF_MEMORY; HONE_UNAVAILABLE (no CPU).
HONE_MUST_CHECK static inline hone_status hone_peak_read(hone_runtime *rt, bool anew, hone_peak *out, hone_error *err)
{
    return hone_peak_read_sized(rt, anew, out, sizeof *out, err);
}

// A library of others whose kernels compete here. Texts are borrowed for the visit.
typedef struct hone_rival {
    const char *text; // "openblas 0.3.21, core SkylakeX, 2 threads": its first word begins the names of its kernels
    bool is_below;    // it runs below the machine's instructions: comparing with it says nothing
} hone_rival;

// Visits them, as a worker finds them, until visit returns false: loading one starts threads, so that no other process asks. Takes a fraction of a
// second; at most 20 s.
// Returns: HONE_OK; HONE_UNAVAILABLE (there is no worker, or it cannot tell); HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_rivals(hone_runtime *rt, bool (*visit)(void *ctx, const hone_rival *rival), void *ctx, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
