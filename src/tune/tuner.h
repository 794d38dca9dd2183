// The tuner: one call, all kernels that can run it, one contest. It is a layer below the runtime, which passes what it
// needs.
#ifndef HONE_TUNE_TUNER_H
#define HONE_TUNE_TUNER_H

#include "base/log.h"
#include "hone/audit.h"
#include "hone/measure.h"
#include "hone/store.h"
#include "hone/tuner.h"
#include "os/os.h"
#include "registry/registry.h"
#include "tune/rule/statistics.h"

typedef struct hone_workers hone_workers; // long-lived workers, kept between contests
typedef struct hone_zygote hone_zygote;

// The objects that a contest borrows.
typedef struct hone_contest_request hone_contest_request;
typedef struct hone_verification hone_verification;
typedef hone_status hone_verify_function(
    const hone_contest_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    hone_verification *out,
    hone_error *err);

typedef struct hone_tune_environment {
    hone_allocator allocator;
    const hone_log *log;
    hone_registry *registry;
    const hone_device_info *device;
    hone_pool *pool;          // for runs in this process
    hone_store *store;        // NULL: nothing is stored
    hone_store *system_store; // its records are read, and nothing is written to it; NULL: there is none
    bool says_who;            // the evidence names user and host
    hone_workers *workers;
    hone_zygote *zygote; // NULL: there is none
    // Whether the host's rules let a kernel compete: HONE_OK, or another status with the reason. NULL: all may.
    hone_status (*admits)(void *ctx, const hone_kernel_ref *kernel, const hone_device_info *device, hone_error *why);
    void *admits_ctx;
    // Called for each config of a kernel that failed, as it happens. config: JSON object. May be NULL.
    void (*failed)(
        void *ctx,
        const hone_kernel_ref *kernel,
        const char *config,
        const char *call,
        hone_failure failure,
        const char *reason);
    void *failed_ctx;
    // begin_measuring waits until nothing else measures on the device, and end_measuring lets the next one begin. They
    // are called around all runs of a contest. NULL: nothing else measures.
    hone_status (*begin_measuring)(void *ctx, hone_error *err);
    void (*end_measuring)(void *ctx);
    void *measuring_ctx;
    // Verifies a contest's winner on a smaller call: hone_verification_run, which also checks first runs if this is not
    // NULL. NULL: the winner is not verified on one.
    hone_verify_function *verifies;
} hone_tune_environment;

// The seconds of a contest where options.seconds is 0.
enum { HONE_TUNE_SECONDS = 30 };

// Whether the options let a kernel compete: HONE_OK, or HONE_UNSUPPORTED with a message that names the kernels they ask
// for.
hone_status hone_tune_asks_for(
    const hone_tune_options *options, const char *kernel, hone_platform platform, hone_error *err);

// The best of a kernel, for tables and documents.
typedef struct hone_contest_kernel {
    const hone_kernel_ref *kernel;
    hone_config best;                // meaningless when time_ns is 0
    double time_ns, low_ns, high_ns; // 0: no config of it was verified
    uint32_t samples;                // number of samples that the time is the median of
    double max_error;
    double default_time_ns; // time of its default config; 0: not measured
    uint32_t default_samples;
    uint32_t tried;
    uint32_t rejected[HONE_FAILURE_COUNT];
    bool elsewhere;   // it is for other devices or calls, or needs a library that is not installed
    char reason[256]; // of the last rejection, or why it was not eligible
} hone_contest_kernel;

typedef struct hone_contest {
    hone_decision decision;       // verified, source autotune; kernel "" if no kernel won
    hone_contest_kernel *kernels; // in the registry's order, also those that were not eligible
    size_t count;
    char *history;        // JSON object: what was tried, in its order, and the finals (contest/history.c); NULL: none
    double expected_gain; // of one more step, relative to the best time; 0: nothing is left to try
    hone_allocator allocator;
} hone_contest;

// A contest's prediction for another contest of the same call.
typedef struct hone_outlook {
    double time_ns;       // of the best; 0: there is none
    double expected_gain; // by how much the next step is expected to improve it, relative; 0: nothing is left to try
} hone_outlook;

// The parameters of a contest; all of it is borrowed.
struct hone_contest_request {
    const hone_tune_environment *environment;
    const hone_algorithm_entry *algorithm;
    const hone_call *call; // NULL: a recorded space is searched
    const hone_tune_options *options;
};

// Runs one contest. Two contests at once disturb each other's times, so the caller must have the permit. Returns the
// statuses of hone_tune. The caller deinitialises *out also after HONE_CANCELLED and HONE_NOT_FOUND.
hone_status hone_contest_run(const hone_contest_request *request, hone_contest *out, hone_error *err);
void hone_contest_deinit(hone_contest *contest);
// Runs a winner's checks on a stored choice, and measures it again in rounds, together with its runners-up by the
// stored times, with the best or the default of other kernels, and with the default. Writes what is measured now into
// *out; the rest of *out is filled by the caller, who also must have the permit on the device. For a choice that is
// rejected, returns HONE_OK with out->failure and out->reason.
//   before    calls for which the same kernel was checked earlier, maybe in the same process
//   out_next  if the choice is to be taken back: the fastest by what is stored that passes the same checks; kernel "":
//             there is none
// Returns the statuses of hone_tune.
hone_status hone_audit_run(
    const hone_contest_request *request,
    const hone_call *const *before,
    size_t before_count,
    const hone_decision *stored,
    double threshold,
    hone_audited *out,
    hone_decision *out_next,
    hone_error *err);
// Whether a choice that was rejected with this failure is taken back. One that could not be run may lack only a
// package.
bool hone_audit_takes_back(hone_failure failure);
// Whether a choice is wrong by its regret, the share by which it is slower than the best: the regret must be larger
// than a tie, and certain.
bool hone_audit_is_flipped(const hone_interval *regret);
// Measures choices for a call against each other, and stores nothing. Each is first tried alone and verified as in a
// contest, then they run alternately until the time is over. out[i] is of choices[i].
//   count  2 to HONE_MOST_COMPARED
// Returns: HONE_OK; HONE_UNSUPPORTED (a choice cannot run the call); HONE_KERNEL_FAILED (a choice is wrong, crashes or
// hangs; the message names it); HONE_INVALID_ARGUMENT (the space refuses a config); statuses of hone_tune.
hone_status hone_comparison_run(
    const hone_contest_request *request, const hone_choice *choices, size_t count, hone_compared *out, hone_error *err);
// The result of verifying one config of a kernel.
struct hone_verification {
    hone_failure failure; // NONE: it was right
    char reason[256];
    bool is_brief; // of a kernel of the library: the seconds were over before all checks were made
};

// Verifies one config of a kernel for a call as a contest does, in a process of its own, without measuring a time. This
// takes a few milliseconds for a small call. The result goes to the store and to environment->failed.
//   request->options  isolation, seed; seconds limits the reference, and then the kernel
// Returns: HONE_OK (*out has the result); otherwise nothing is known of the kernel: HONE_NOT_FOUND (no reference);
//          HONE_UNSUPPORTED (it cannot run the call, or no process can isolate it); HONE_UNAVAILABLE (there is no
//          worker); HONE_KERNEL_FAILED (the reference failed, or took too long); HONE_OUT_OF_MEMORY.
hone_status hone_verification_run(
    const hone_contest_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    hone_verification *out,
    hone_error *err);
// Whether a contest can run this kernel only in a process that has the functions of this program: it cannot be sent to
// a spawned worker.
bool hone_kernel_is_hosts(const hone_algorithm_entry *algorithm, const hone_kernel_ref *kernel);
// Whether a stored measurement shows that the kernel was right, with today's revision and environment.
bool hone_measurement_verifies(
    const hone_store_measurement *measurement, const hone_kernel *kernel, const hone_device_info *device);

// Whether made-up data for a call fits into the device's memory. HONE_UNSUPPORTED with how much it takes.
hone_status hone_call_fits(const hone_call *call, const hone_device_info *device, hone_error *err);

// Workers are started when they are needed. program NULL: HONE_WORKER, else hone-worker in the folder of the library,
// in its libexec/hone, or in the folder of the running program.
hone_status hone_workers_create(
    const hone_allocator *allocator, const char *program, hone_workers **out, hone_error *err);
void hone_workers_destroy(hone_workers **workers);
// Writes the path of the program that workers run. HONE_UNAVAILABLE with what to do.
hone_status hone_workers_program(const hone_workers *workers, char *out, size_t size, hone_error *err);
// Checks that the program that HONE_WORKER or the creator of the workers names is a worker: starts and ends one, unless
// an earlier call has done so. HONE_OK: it is one, none is named, or an earlier call has reported it. HONE_UNAVAILABLE
// with what it is.
hone_status hone_workers_try_named(hone_workers *workers, hone_error *err);
// The main function of a worker process: reads jobs from fd until it closes. setup registers the built-in kernels.
int hone_worker_main(int fd, hone_status (*setup)(hone_registry *registry, hone_error *err));
// Forks the zygote. HONE_UNSUPPORTED if this process has more than one thread.
hone_status hone_zygote_start(const hone_allocator *allocator, hone_zygote **out, hone_error *err);
void hone_zygote_stop(hone_zygote **zygote);

// Results (hone_result of the public header) are made from contests.
//   owner  opaque to the tuner; hone_result_owner returns it
hone_status hone_result_create(
    hone_allocator allocator, const hone_device_info *device, void *owner, hone_result **out, hone_error *err);
// device: the one that the contest was on.
hone_status hone_result_add_contest(
    hone_result *result,
    const hone_device_info *device,
    const hone_call *call,
    const hone_contest *contest,
    hone_error *err);
hone_status hone_result_add_failure(
    hone_result *result, const char *call, const char *key, const char *reason, hone_error *err);
void *hone_result_owner(const hone_result *result);
// hone_result_parse with the caller's allocator. registry: its entries are checked by it; may be NULL.
hone_status hone_result_read(
    hone_allocator allocator,
    hone_registry *registry,
    void *owner,
    const char *json,
    size_t size,
    hone_result **out,
    hone_error *err);
// Evidence as a JSON object and back. Unknown fields are dropped, missing ones are zero.
void hone_evidence_json(const hone_evidence *evidence, hone_buffer *out);
hone_status hone_evidence_parse(const char *json, size_t size, hone_evidence *out, hone_error *err);
// Reads the evidence of a record's text. False: there is none (NULL), or it cannot be read; *out is all zero then.
bool hone_evidence_of(const char *json, hone_evidence *out);

#endif
