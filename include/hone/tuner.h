// Tuners of a program's own: which configs a contest tries, and which of them wins (docs/tune.md).
#ifndef HONE_TUNER_H
#define HONE_TUNER_H

#include "hone/space.h"
#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// A contest that a tuner of the caller's own drives. Valid while the tuner runs, in the thread that it runs in.
typedef struct hone_tuning hone_tuning;

// A kernel that competes.
typedef struct hone_tuning_kernel {
    const char *name;
    hone_platform platform;
    hone_backend backend;
    const hone_space *space;       // for hone_config_text and hone_config_json
    const hone_bound_space *bound; // to the call: the configs that may be tried
    hone_config default_config;
} hone_tuning_kernel;

// The outcome of trying a config.
typedef struct hone_tried {
    double time_ns, low_ns, high_ns; // of one run: the median with its 95 % interval; 0 if it was rejected
    hone_failure failure;            // not NONE: why it was rejected, and the details
    char reason[256];
} hone_tried;

// A tuner of the caller's own: it decides which configs are tried, and may decide which of them wins.
struct hone_tuner {
    size_t struct_size;
    const char *name; // for the evidence; NULL means "own"
    // Called once for each contest, in the thread that asked for it. Before it the default of the first kernel that is
    // right and what the store answers with are measured, and what the store has measured takes part. When it has returned HONE_OK, the
    // fastest of all that were tried wins, or the one given to hone_tuning_choose. Any other status ends the contest
    // without a decision and with err's message; what was measured is kept.
    hone_status (*run)(void *ctx, hone_tuning *tuning, hone_error *err);
    void *ctx;
};

// Borrowed, like everything that the tuner gets. There are *out_count kernels, and a pointer to each.
HONE_API const hone_call *hone_tuning_call(const hone_tuning *tuning);
HONE_API const hone_device_info *hone_tuning_device(const hone_tuning *tuning);
HONE_API const hone_tuning_kernel *const *hone_tuning_kernels(const hone_tuning *tuning, size_t *out_count);
// What is left of the contest's options: seconds for trying (the rest belongs to the finals), and evaluations. Both are 0
// once the contest was cancelled.
HONE_API double hone_tuning_seconds(const hone_tuning *tuning);
HONE_API uint32_t hone_tuning_evaluations(const hone_tuning *tuning);
// The config that hone's own search would try next of a kernel, by what was tried so far: never the same one twice.
// Returns: HONE_OK; HONE_NOT_FOUND (all were proposed); HONE_INVALID_ARGUMENT (there is no such kernel).
HONE_API HONE_MUST_CHECK hone_status
hone_tuning_propose(hone_tuning *tuning, size_t kernel, hone_config *out_config, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status hone_tuning_try_sized(
    hone_tuning *tuning, size_t kernel, const hone_config *config, hone_tried *out, size_t size, hone_error *err);
// Tries a config as hone does: prepared and run in a worker process, all its results verified, then timed. One that was
// tried before is not run again.
// Returns: HONE_OK, also when it was rejected; HONE_INVALID_ARGUMENT (no such kernel, or a config that its space refuses);
//          HONE_UNSUPPORTED (the kernel was disabled, since it crashes or hangs); HONE_CANCELLED (the contest was
//          cancelled, or its seconds or evaluations are spent: the tuner returns).
HONE_MUST_CHECK static inline hone_status hone_tuning_try(
    hone_tuning *tuning, size_t kernel, const hone_config *config, hone_tried *out, hone_error *err)
{
    return hone_tuning_try_sized(tuning, kernel, config, out, sizeof *out, err);
}
// Chooses the winner; the last call counts. It is measured beside the others in the finals, and verified there once
// more with other inputs, as every winner: when it is rejected there, the fastest of the others wins.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (it was not tried, or was rejected).
HONE_API HONE_MUST_CHECK hone_status
hone_tuning_choose(hone_tuning *tuning, size_t kernel, const hone_config *config, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
