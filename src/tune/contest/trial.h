// Asks a measurer to try candidates: one at a time, finalists in rounds, or to prepare several at once.
#ifndef HONE_TUNE_CONTEST_TRIAL_H
#define HONE_TUNE_CONTEST_TRIAL_H

#include "tune/contest/field.h"
#include "tune/contest/floor.h"
#include "tune/contest/other_scalars.h"
#include "tune/contest/standings.h"
#include "tune/isolate/sandbox.h"
#include "tune/rule/stopping.h"

// How a contest measures, and where its clock is from: this machine (trial.c), or a recorded file
// (lab/simulate/recorded_measurer.c). All else of a contest is the same.
typedef struct hone_measurer hone_measurer;

typedef struct hone_trials {
    const hone_question *question;
    const hone_field *field; // under a stable regime all others must have the bits of its default
    const hone_measurer *measurer;
    void *measurer_ctx;
    hone_sandbox sandbox;
    bool has_sandbox;
    hone_other_scalars others;
    hone_opened opened;
    bool was_opened[2];  // whether the call was opened, in the process without an interpreter and in the one with it
    hone_peaks peaks;    // the highest that were seen
    hone_floor floor;    // of the call, as this machine's measurer has found it
    bool has_floor;      // it was computed
    uint32_t looks;      // how often the peaks were measured again because a candidate was below the floor
    double open_seconds; // limit for the reference; 0: a long one
    double proofs_ns;    // left for the checks of leaders before the finals; INFINITY: no limit
    hone_buffer message, answer;
    hone_noise noise;          // of samples, so far
    uint64_t taken, disturbed; // samples, and those of them that other work on the machine disturbed
    unsigned marks;            // what disturbed them
    hone_spent spent;          // since the contest began; prepare_ns includes opening
    uint64_t started_ns, race_until_ns, end_ns;
} hone_trials;

// One candidate to be tried.
typedef struct hone_try {
    const hone_kernel_ref *kernel;
    const hone_config *config;
    double best_ns;                        // of the candidates that have passed; 0: it is measured in full
    bool is_shared;                        // hone_stopping's, of the best candidate
    bool is_patient;                       // hone_stopping's
    double first_seconds;                  // limit until it is ready; 0: as long as the contest lasts
    bool may_be_cut;                       // another has passed: the contest's end may cut this one short
    hone_try_sort sort;                    // VERIFIES, FIRST_RUNS: no time is measured
    double looks_seconds, repeats_seconds; // as a block's
    bool stays;              // in a process in which others were tried: a failure is not checked in a new one
    const uint64_t *digests; // of the kernel's binaries that need not be measured again
    uint32_t digest_count;
} hone_try;

// Finalists that are measured in rounds.
typedef struct hone_block {
    const hone_kernel_ref *kernels[HONE_MAX_TOGETHER];
    const hone_candidate *finalists[HONE_MAX_TOGETHER];
    uint32_t count, rounds;
    uint64_t seed;
    double seconds;                      // no further round begins after these
    uint32_t retakes[HONE_MAX_TOGETHER]; // how often a disturbed sample of each may be taken again
    bool verifies;                       // all checks before and after the rounds; false: one run before them
    double burst_ns;        // duration of the runs of each sample, at least three where they are short; 0: three runs
    double looks_seconds;   // of seconds; after them, checks that a smaller call allows too are left out; 0: none is
    double repeats_seconds; // after them, checks that differ little from earlier ones are left out; 0: none is
} hone_block;

struct hone_measurer {
    // stopping->limit_ns is the candidate's own limit; the measurer itself applies the time that the contest has left.
    hone_status (*attempt)(
        hone_trials *trials,
        const hone_try *what,
        const hone_stopping *stopping,
        hone_trial *out,
        bool *out_cut,
        hone_error *err);
    hone_status (*run_rounds)(hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err);
    // Prepares configs of one kernel at once; the result of each shows when it is tried. NULL: there is nothing to
    // prepare. *out_answered false: the worker was lost, or took too long. HONE_CANCELLED, HONE_OUT_OF_MEMORY.
    hone_status (*prepare)(
        hone_trials *trials,
        const hone_kernel_ref *kernel,
        const hone_config *configs,
        uint32_t count,
        bool *out_answered,
        hone_error *err);
    uint64_t (*now_ns)(const hone_trials *trials);
    void (*pause)(hone_trials *trials, uint64_t ns);
};

// Asks this machine's sandboxes.
extern const hone_measurer hone_machine_measurer;

void hone_trials_init(hone_trials *trials, const hone_question *question, const hone_field *field);
void hone_trials_deinit(hone_trials *trials);
uint64_t hone_trials_now(const hone_trials *trials);
// The seconds since the contest began.
double hone_trials_elapsed_seconds(const hone_trials *trials);
void hone_trials_pause(hone_trials *trials, uint64_t ns);
// The end of a share of the contest's seconds that begins now. It lies within the contest's seconds, or within a tenth
// of them from now, so that the finals end before 1.3 times its seconds. If the seconds are over already, the contest
// is late in any case, and the whole share is granted.
uint64_t hone_trials_until(const hone_trials *trials, double share);
// The share of samples that other work on the machine disturbed.
double hone_trials_disturbed(const hone_trials *trials);
// Whether other work disturbed more than a tenth of the samples.
bool hone_trials_are_disturbed(const hone_trials *trials);
// How the contest's seconds were spent so far.
void hone_trials_fill_spent(const hone_trials *trials, hone_evidence *evidence);
// Whether the kernel is a function of an interpreter, and so needs a worker that lends one.
bool hone_kernel_is_interpreted(const hone_kernel_ref *kernel);
// Whether an algorithm's reference is a function of an interpreter.
bool hone_reference_is_interpreted(const hone_algorithm_entry *algorithm);
// Starts the sandbox and opens the call, unless that is done already.
hone_status hone_trials_open(hone_trials *trials, hone_error *err);
// Whether a time that was measured earlier is below the floor. Opens the call.
hone_status hone_trials_doubt(hone_trials *trials, const hone_trial *trial, bool *out, hone_error *err);
// Tries one candidate. HONE_OK also when it was rejected; the trial has the failure. *out_cut: the contest's own end
// cut it short, which says nothing about the candidate.
hone_status hone_trials_try(hone_trials *trials, const hone_try *what, hone_trial *out, bool *out_cut, hone_error *err);
// Runs all checks of a winner on one candidate, alone; rounds are for times. The reason of a rejection is in
// candidate->trial.
typedef struct hone_confirming {
    double seconds, looks_seconds, repeats_seconds; // as a block's
    bool left_out;                                  // set if checks were left to a smaller call
    bool is_brief;                                  // set if similar checks were left out
} hone_confirming;
hone_status hone_trials_confirm(
    hone_trials *trials,
    const hone_kernel_ref *kernel,
    hone_candidate *candidate,
    hone_confirming *how,
    hone_error *err);
// Runs one block of rounds between finalists. HONE_KERNEL_FAILED: the worker was lost, and it is not known by which
// finalist.
hone_status hone_trials_run_rounds(
    hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err);

#endif
