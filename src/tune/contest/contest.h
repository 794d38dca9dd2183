// One contest from the inside: its stations in order, and what each hands on.
//
//     call -> candidates -> trials -> race -> remeasuring -> finals -> decision
//
// Each part of the state has one writer: the station whose header declares it. A station that needs several parts takes
// the state; the functions below it take the parts that they read and make.
//
// Words of src/tune:
//     contest      all kernels that can run one call compete, and one decision comes out
//     contestant   a kernel in a contest, with its search
//     candidate    a config of a kernel
//     trial        a candidate prepared, verified and sampled once; what came of it
//     measurer     who answers trials: this machine, or a recorded space
//     race         candidates are tried one after the other
//     remeasuring  the first in rank are tried once more
//     rounds       several candidates are sampled in random order, again and again
//     finals       the best few, in rounds
//     stopping     the rule that says when a candidate has enough samples (rule/stopping.h)
//     sandbox      the process that candidates run in: spawned, forked, the zygote's child, or this one
//     zygote       a process that was forked while there was one thread, and forks sandboxes
//     site         where a sandbox's data lies: the host's memory, or a device's
//     session      the worker's side: one open call, and candidates tried on it
//     permit       the right to tune a call, and to measure on a device (config/permit.h)
#ifndef HONE_TUNE_CONTEST_CONTEST_H
#define HONE_TUNE_CONTEST_CONTEST_H

#include "os/conditions.h"
#include "tune/contest/budget.h"
#include "tune/contest/known.h"

// How much slower the machine is now than at the beginning. The race writes it.
typedef struct hone_drift {
    double factor;
    uint32_t since;      // candidates since the last look
    int64_t reference;   // the candidate that shows the drift; -1: none yet
    double reference_ns; // its least time with the drift taken out
} hone_drift;

typedef struct hone_contest_state {
    hone_question question;   // contest.c, before anything else
    hone_field field;         // field.c
    hone_known known;         // known.c
    hone_trials trials;       // trial.c
    hone_standings standings; // race.c, remeasure.c, finals.c
    hone_spending spending;   // race.c
    hone_drift drift;         // race.c
    hone_contest *out;        // decision.c, history.c
    const hone_candidate *winner;
    hone_os_conditions before; // as it began
} hone_contest_state;

// A contest's state, to be filled and used by hand. request->call NULL: out->decision has no key.
hone_status hone_contest_create(
    const hone_contest_request *request, hone_contest *out, hone_contest_state **out_state, hone_error *err);
void hone_contest_destroy(hone_contest_state **state);
// Who can run the call, and the permit on the machine; then `measures` does the rest. hone_contest_run is one that
// races; an audit is another.
typedef hone_status hone_contest_measure(hone_contest_state *state, void *ctx, hone_error *err);
hone_status hone_contest_run_as(
    const hone_contest_request *request, hone_contest_measure *measures, void *ctx, hone_contest *out, hone_error *err);
// From the race to the decision, by contestants that are there; its time begins.
hone_status hone_contest_compete(hone_contest_state *state, hone_error *err);

// choose_sandbox.c: where candidates run. HONE_OK also when nobody is left to compete.
hone_status hone_contest_choose_sandbox(
    hone_trials *trials, hone_field *field, const hone_question *question, hone_error *err);

// race.c: tries candidates until the budget is spent. HONE_CANCELLED with what was found so far.
hone_status hone_contest_race(hone_contest_state *state, hone_error *err);
hone_budget hone_contest_budget(const hone_contest_state *state);
// A candidate is rejected after it was measured.
void hone_contest_reject(
    hone_contest_state *state, hone_candidate *candidate, hone_failure failure, const char *reason);
// prepare_ahead.c: the next config of one kernel, those after it prepared where that is worth it. As hone_search_next,
// and HONE_CANCELLED.
hone_status hone_contest_next_config(
    hone_trials *trials, hone_contestant *contestant, size_t evaluations_left, hone_config *out, hone_error *err);
// remeasure.c: the first in rank are measured anew, when runs are short and there is time.
hone_status hone_contest_remeasure(hone_contest_state *state, hone_error *err);

// What the finals found.
typedef struct hone_finals {
    uint32_t count; // finalists
    hone_candidate *finalists[HONE_MAX_FINALISTS];
    uint32_t rounds;
    double samples[HONE_MAX_FINALISTS][HONE_MAX_ROUNDS];
    uint32_t winner; // index of a finalist
} hone_finals;

// finals.c: HONE_NOT_FOUND when nobody is left.
hone_status hone_contest_run_finals(hone_contest_state *state, hone_finals *out, hone_error *err);

// decision.c: what it came to.
void hone_contest_fill_rows(const hone_contest_state *state);
// The finals' samples are better than the race's: they take their place.
void hone_contest_adopt_finals(hone_finals *finals);
void hone_contest_fill_counts(const hone_standings *standings, hone_evidence *evidence);
void hone_contest_fill_runner_up(
    const hone_question *question, const hone_field *field, const hone_finals *finals, hone_evidence *evidence);
// Makes a candidate the contest's decision.
void hone_contest_choose(hone_contest_state *state, const hone_candidate *winner);

// history.c: keeps what was tried, in its order, with the finals (NULL: there were none), in state->out.
hone_status hone_contest_keep_history(hone_contest_state *state, const hone_finals *finals, hone_error *err);

#endif
