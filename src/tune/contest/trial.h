// Asking a measurer about candidates: one at a time, finalists in rounds, or to prepare several at once.
#ifndef HONE_TUNE_CONTEST_TRIAL_H
#define HONE_TUNE_CONTEST_TRIAL_H

#include "tune/contest/field.h"
#include "tune/contest/floor.h"
#include "tune/contest/other_scalars.h"
#include "tune/contest/standings.h"
#include "tune/isolate/sandbox.h"
#include "tune/rule/stopping.h"

// How a contest measures, and what its clock says: on this machine (trial.c), or out of a recorded file
// (lab/simulate/recorded_measurer.c). All else of a contest is the same.
typedef struct hone_measurer hone_measurer;

typedef struct hone_trials {
    const hone_question *question;
    const hone_field *field; // who stands first is whose bits the others must have, under a stable regime
    const hone_measurer *measurer;
    void *measurer_ctx;
    hone_sandbox sandbox;
    bool has_sandbox;
    hone_other_scalars others;
    hone_opened opened;
    bool was_opened[2];  // the call, in the process without an interpreter and in the one with it
    hone_peaks peaks;    // the most that was seen
    hone_floor floor;    // of the call, by this machine's measurer
    bool has_floor;      // it was looked for
    uint32_t looks;      // at the peaks, because somebody was below the floor
    double open_seconds; // that the reference may take; 0: long
    double proofs_ns;    // that looking at candidates as at leaders may still take before the finals; INFINITY: any
    hone_buffer message, answer;
    hone_noise noise;          // of samples, so far
    uint64_t taken, disturbed; // samples, and those that other work on the machine disturbed
    unsigned marks;            // by what
    hone_spent spent;          // since the contest began; prepare_ns with what opening took
    uint64_t started_ns, race_until_ns, end_ns;
} hone_trials;

// One candidate to be tried.
typedef struct hone_try {
    const hone_kernel_ref *kernel;
    const hone_config *config;
    double best_ns;                        // of those that have passed; 0: it is measured in full
    bool is_shared;                        // of that one: hone_stopping's
    bool is_patient;                       // hone_stopping's
    double first_seconds;                  // that it may take to be ready; 0: as long as the contest lasts
    bool may_be_cut;                       // another has passed: the contest's end may cut this one short
    hone_try_sort sort;                    // VERIFIES, FIRST_RUNS: its time is not asked
    double looks_seconds, repeats_seconds; // a block's
    bool stays;              // in a process that others were tried in: what failed is not asked for in a new one
    const uint64_t *digests; // of the kernel's binaries that need not be measured once more
    uint32_t digest_count;
} hone_try;

// Finalists that are measured in rounds.
typedef struct hone_block {
    const hone_kernel_ref *kernels[HONE_MAX_TOGETHER];
    const hone_candidate *finalists[HONE_MAX_TOGETHER];
    uint32_t count, rounds;
    uint64_t seed;
    double seconds;                      // it stops early after these
    uint32_t retakes[HONE_MAX_TOGETHER]; // how often a disturbed sample of each may be taken again
    bool verifies;          // everything is looked at before and after the rounds; false: one run before them
    double burst_ns;        // runs of each sample of a round, at least three where they are short; 0: three
    double looks_seconds;   // of it: what a smaller call shows as well is left out after these; 0: nothing is
    double repeats_seconds; // and after these what differs little from what was looked at; 0: nothing is
} hone_block;

struct hone_measurer {
    // stopping->limit_ns is the candidate's own limit; what the contest has left is looked at by the measurer.
    hone_status (*attempt)(
        hone_trials *trials,
        const hone_try *what,
        const hone_stopping *stopping,
        hone_trial *out,
        bool *out_cut,
        hone_error *err);
    hone_status (*run_rounds)(hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err);
    // Prepares configs of one kernel at once; how each fares shows when it is tried. NULL: there is nothing to prepare.
    // *out_answered false: the worker was lost, or took too long. HONE_CANCELLED, HONE_OUT_OF_MEMORY.
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
// Since the contest began.
double hone_trials_elapsed_seconds(const hone_trials *trials);
void hone_trials_pause(hone_trials *trials, uint64_t ns);
// When a share of the contest's seconds is over that begins now. Within the contest's seconds, or a tenth of them from now, so
// that the finals end before 1.3 times its seconds, unless the seconds are over already: then it is late in any case.
uint64_t hone_trials_until(const hone_trials *trials, double share);
// The share of samples that other work on the machine disturbed.
double hone_trials_disturbed(const hone_trials *trials);
// Where the contest's seconds went so far.
void hone_trials_fill_spent(const hone_trials *trials, hone_evidence *evidence);
// Whether the kernel is a function of an interpreter, and so needs a worker that lends one.
bool hone_kernel_is_interpreted(const hone_kernel_ref *kernel);
// Whether an algorithm's reference is.
bool hone_reference_is_interpreted(const hone_algorithm_entry *algorithm);
// Starts the sandbox and opens the call when that is not so already.
hone_status hone_trials_open(hone_trials *trials, hone_error *err);
// Whether a time that was measured earlier is below the floor. Opens the call.
hone_status hone_trials_doubt(hone_trials *trials, const hone_trial *trial, bool *out, hone_error *err);
// Tries one candidate. HONE_OK also when it was rejected: the trial says so.
// *out_cut: the contest's own end cut it short, which says nothing of the candidate.
hone_status hone_trials_try(hone_trials *trials, const hone_try *what, hone_trial *out, bool *out_cut, hone_error *err);
// Everything of one candidate is looked at, alone, as of who is to win: rounds are for times. Why it was rejected is in
// candidate->trial.
typedef struct hone_confirming {
    double seconds, looks_seconds, repeats_seconds; // a block's
    bool left_out;                                  // filled: something was left to a smaller call
    bool is_brief;                                  // filled: something was not repeated
} hone_confirming;
hone_status hone_trials_confirm(
    hone_trials *trials,
    const hone_kernel_ref *kernel,
    hone_candidate *candidate,
    hone_confirming *how,
    hone_error *err);
// One block of rounds between finalists. HONE_KERNEL_FAILED: the worker was lost, nobody knows by whom.
hone_status hone_trials_run_rounds(
    hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err);

#endif
