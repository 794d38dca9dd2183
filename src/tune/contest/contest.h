// The inside of a contest: its stages in order, and what each passes to the next.
//
//     call -> candidates -> trials -> race -> finals -> decision
//
// Each part of the state has one writer: the stage whose header declares it. A stage that needs several parts takes the
// state; the functions below it take the parts that they read and make.
//
// Words of src/tune:
//     contest      all kernels that can run one call compete, and the result is one decision
//     contestant   a kernel in a contest, with its search
//     candidate    a config of a kernel
//     trial        a candidate prepared, verified and sampled once, and its result
//     measurer     carries out trials: this machine, or a recorded space
//     race         candidates are tried one after the other
//     rounds       several candidates are sampled repeatedly, in random order
//     finals       the best few candidates, in rounds
//     disturbed    a sample during which a thread waited for a processor, was moved, or the host took time (os/waits.h);
//                  on a device one that its clock, heat, power or other processes slowed (platforms/platform.h)
//     stopping     the rule that decides when a candidate has enough samples (rule/stopping.h)
//     sandbox      the process that candidates run in: spawned, forked, the zygote's child, or this one
//     zygote       a process that was forked while there was one thread, and forks sandboxes
//     site         where a sandbox's data lies: the host's memory, or a device's
//     session      the worker's side: one open call, and candidates tried on it
//     permit       the right to tune a call, and to measure on a device (config/permit.h)
//     present choice   what answers the call without this contest: the store's choice, else the default
#ifndef HONE_TUNE_CONTEST_CONTEST_H
#define HONE_TUNE_CONTEST_CONTEST_H

#include "os/conditions.h"
#include "tune/contest/budget.h"
#include "tune/contest/known.h"
#include "tune/rule/statistics.h"

// How many times slower the machine is now than at the beginning. The race writes it.
typedef struct hone_drift {
    double factor;
    uint32_t since;      // candidates since the last measurement of the reference candidate
    int64_t reference;   // the candidate that shows the drift; -1: none yet
    double reference_ns; // its least time with the drift taken out
} hone_drift;

// The choice of the caller's own tuner.
typedef struct hone_tuner_choice {
    bool is_there;
    uint32_t kernel;
    hone_config config;
} hone_tuner_choice;

typedef struct hone_contest_state {
    hone_question question;   // contest.c, before anything else
    hone_field field;         // field.c
    hone_known known;         // known.c, same_code.c
    hone_trials trials;       // trial.c
    hone_standings standings; // race.c, finals.c
    hone_spending spending;   // race.c
    hone_drift drift;         // race.c
    hone_contest *out;        // decision.c, history.c
    const hone_candidate *winner;
    // The seconds for checks that differ little from each other in each of a winner's verifications; 0: no limit;
    // finals.c
    double repeats_seconds;
    bool verified_briefly;     // the winner, by fewer checks than a longer contest has time for; finals.c
    bool verified_smaller;     // the winner, on a smaller call; smaller.c
    hone_tuner_choice chosen;  // own_tuner.c
    hone_os_conditions before; // the conditions at the beginning
} hone_contest_state;

// Creates a contest's state, for callers that fill and use it themselves. request->call NULL: out->decision has no key.
hone_status hone_contest_create(
    const hone_contest_request *request, hone_contest *out, hone_contest_state **out_state, hone_error *err);
void hone_contest_destroy(hone_contest_state **state);
// Collects the kernels that can run the call, takes the permit on the machine, and calls `measures` for the rest.
// hone_contest_run passes one that races, and an audit another.
typedef hone_status hone_contest_measure(hone_contest_state *state, void *ctx, hone_error *err);
hone_status hone_contest_run_as(
    const hone_contest_request *request, hone_contest_measure *measures, void *ctx, hone_contest *out, hone_error *err);
// Runs a contest from the race to the decision, with the contestants in the state. Its time begins now.
hone_status hone_contest_compete(hone_contest_state *state, hone_error *err);

// choose_sandbox.c: chooses where candidates run. HONE_OK also when no kernel is left to compete.
hone_status hone_contest_choose_sandbox(
    hone_trials *trials, hone_field *field, const hone_question *question, hone_error *err);

// same_code.c: forgets measurements of code that has changed since. HONE_CANCELLED.
hone_status hone_contest_forget_other_code(hone_contest_state *state, hone_error *err);

// race.c: tries candidates until the budget is spent. HONE_CANCELLED keeps what was found so far.
hone_status hone_contest_race(hone_contest_state *state, hone_error *err);
hone_budget hone_contest_budget(const hone_contest_state *state);
// own_tuner.c: options.tuner chooses what is tried. HONE_CANCELLED as in the race; another failure is the tuner's.
//   tries  one config of one kernel: HONE_OK also when it was rejected, or was cut short by the contest's end
typedef hone_status hone_contest_try(
    hone_contest_state *state, uint32_t kernel, const hone_config *config, hone_error *err);
hone_status hone_contest_run_tuner(hone_contest_state *state, hone_contest_try *tries, hone_error *err);
// Rejects a candidate after it was measured.
void hone_contest_reject(
    hone_contest_state *state, hone_candidate *candidate, hone_failure failure, const char *reason);
// prepare_ahead.c: the next config of one kernel. Prepares those after it too where that saves time. Returns the
// statuses of hone_search_next, and HONE_CANCELLED.
hone_status hone_contest_next_config(
    hone_trials *trials, hone_contestant *contestant, size_t evaluations_left, hone_config *out, hone_error *err);

enum {
    HONE_MOST_FINAL_ROUNDS = 256,
    HONE_SURE_ROUNDS = 10, // after which any certain ratio counts
    HONE_SHOWN_ROUNDS = 20 // the most rounds made to get ten undisturbed samples
};

// A finalist with a sample of each round that it took part in, which are the first `rounds` of the finals.
typedef struct hone_finalist {
    hone_candidate *candidate;
    uint32_t rounds;
    bool keeps_place; // the store's choice, or the default: it is out only if it is certainly slower
    bool out;         // certainly slower, or crowded out: it takes part no longer
    bool crowded_out; // not certainly slower, but several were faster
    bool is_shown;    // tables compare the winner with it: it has enough rounds for that before it is out
    bool is_spared;   // it takes part no longer, without being called slower
    hone_sample samples[HONE_MOST_FINAL_ROUNDS];
} hone_finalist;

// The state and the result of the finals.
typedef struct hone_finals {
    uint32_t count; // finalists
    uint32_t
        least; // of them that stay however little time there is: the leader, what answers today, and a close one of another kernel
    hone_finalist finalists[HONE_MAX_TOGETHER];
    uint32_t blocks, rounds;
    uint32_t winner;  // index of a finalist
    bool shows;       // the rounds are for what is shown: disturbed samples of every finalist are taken again
    double disturbed; // share of the contest's samples before the finals began
    // The time of the last block's rounds, with all that belongs to them, over hone_finals_round_seconds; before the
    // first block the time of the race's samples over their expected time. At least 1.
    double pace;
} hone_finals;

// smaller.c: if a call is too large, or its reference too slow, for other inputs, the candidate is verified on a
// smaller call that it takes, in a process of its own: with other inputs, other scalars, other places and in two
// threads. The result is in its trial; if it cannot be verified there, the trial stays. HONE_OUT_OF_MEMORY,
// HONE_CANCELLED.
//   left_out  verifies any call on a smaller one, because checks of the call itself were left out
//   out_done  whether it was verified on a smaller call
hone_status hone_contest_verify_smaller(
    hone_contest_state *state, hone_candidate *candidate, bool left_out, bool *out_done, hone_error *err);
// Whether a smaller call can be verified: there are worker processes, and the call is not a small one itself.
bool hone_contest_has_smaller(const hone_contest_state *state);

// first_runs.c: a candidate that is not the library's own is verified on small calls of two shapes alternately, in
// processes in which it has not run, and its first runs there in two threads at once. The result is in its trial.
// HONE_OUT_OF_MEMORY, HONE_CANCELLED.
hone_status hone_contest_verify_first_runs(hone_contest_state *state, hone_candidate *candidate, hone_error *err);
// Verifies the call itself after each of other calls of its operation, in a process that runs nothing else.
hone_status hone_contest_verify_after(
    hone_contest_state *state, const hone_call *const *calls, size_t count, hone_candidate *candidate, hone_error *err);

// finals.c: runs the finals. HONE_NOT_FOUND when no candidate is left.
hone_status hone_contest_run_finals(hone_contest_state *state, hone_finals *out, hone_error *err);

// finalists.c: chooses the finalists, in the order in which they keep their places; out->count is 0 when none is left.
//   seconds  the time of the finals
void hone_finals_choose_finalists(
    const hone_field *field,
    const hone_standings *standings,
    const hone_incumbent *incumbent,
    double seconds,
    hone_finals *out);
// How many more rounds the fastest, the present choice and the fastest library need for a comparison that is shown: ten
// rounds, and as many undisturbed samples, unless that takes more than HONE_SHOWN_ROUNDS.
uint32_t hone_finals_missing_rounds(hone_finals *finals, const hone_field *field, uint32_t fastest);
uint32_t hone_finalist_missing_rounds(const hone_finalist *finalist);
// Spares all finalists but the fastest, the store's choice, the default and the fastest that calls a library, and as
// many of the other kernels' best as there is time for in so many rounds. False: there is no time even for these, and
// no finalist is spared.
bool hone_finals_spare(hone_finals *finals, const hone_field *field, uint32_t fastest, uint32_t rounds, double seconds);
// Duration of the runs of a sample in the finals, where runs are short: as long as the work around a sample takes.
static const double hone_burst_ns = 1.5e6;
// Makes a candidate a finalist that keeps its place.
void hone_finals_admit(hone_finals *finals, hone_candidate *candidate);
// Removes the last finalists until so many rounds fit into the seconds at the finals' pace; `least` of them stay.
void hone_finals_fit(hone_finals *finals, uint32_t rounds, double seconds);
// The pace of the finals before their first block.
double hone_finals_first_pace(
    const hone_finals *finals, const hone_standings *standings, const hone_spending *spending);
// Whether a finalist may win by its rank. A finalist that takes part only because it is its kernel's best is sampled as
// often, but its disturbed samples are not taken again: threads of libraries that wait for each other would take most
// of the finals' time on a busy machine.
bool hone_finals_contends(const hone_finals *finals, uint32_t index);
// The seconds that a round takes of the finalists that still take part.
double hone_finals_round_seconds(const hone_finals *finals);
// Whether the candidate is the store's present answer.
bool hone_incumbent_is(const hone_incumbent *incumbent, const hone_candidate *candidate);

// verdict.c: the ratio of the times of finalist b over those of finalist a.
hone_interval hone_finals_ratio(const hone_finals *finals, uint32_t a, uint32_t b, uint64_t seed);
// The times of a finalist that count, at most HONE_MOST_FINAL_ROUNDS + HONE_KEPT_SAMPLES. Returns how many.
uint32_t hone_finalist_times(const hone_finalist *finalist, double *out_times);
// The index of the fastest finalist that still takes part.
uint32_t hone_finals_fastest(const hone_finals *finals);
// Marks finalists that are certainly slower as out, and beyond the fastest few those that can hardly be faster. Returns
// whether all others that still take part are certainly slower than the fastest, or so near that it does not matter.
bool hone_finals_settle(hone_finals *finals, uint64_t seed);
// Whether the order depends on something that has changed since the race and has slowed some candidates but not others:
// a virtual machine whose processors share a core of the host at times, for example. Then samples of a short time agree
// with each other, and prove nothing.
bool hone_finals_are_unsteady(const hone_finals *finals);
// Whether what answers today is the fastest by every reading, of the rounds and of the race.
bool hone_finals_standing_leads(const hone_contest_state *state, const hone_finals *finals);
// The index of the finalist that wins. There was at least one round, or there is one finalist.
uint32_t hone_finals_choose_winner(const hone_contest_state *state, const hone_finals *finals);
// Why it is left open which finalist is the fastest, as hone_evidence.undecided; "" when it is not left open.
void hone_finals_say_undecided(const hone_contest_state *state, const hone_finals *finals, char *out, size_t size);

// decision.c: the result of the contest.
void hone_contest_fill_rows(const hone_contest_state *state);
// The finals' samples are better than the race's, so they replace them.
void hone_contest_adopt_finals(hone_finals *finals);
void hone_contest_fill_counts(const hone_standings *standings, hone_evidence *evidence);
void hone_contest_fill_runner_up(
    const hone_question *question, const hone_field *field, const hone_finals *finals, hone_evidence *evidence);
// Makes a candidate the contest's decision.
void hone_contest_choose(hone_contest_state *state, const hone_candidate *winner);

// history.c: keeps what was tried, in its order, with the finals (NULL if there were none), in state->out.
hone_status hone_contest_keep_history(hone_contest_state *state, const hone_finals *finals, hone_error *err);

#endif
