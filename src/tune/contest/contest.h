// One contest from the inside: who competes, what was measured, what may still be spent.
#ifndef HONE_TUNE_CONTEST_CONTEST_H
#define HONE_TUNE_CONTEST_CONTEST_H

#include "os/conditions.h"
#include "search/search.h"
#include "space/space.h"
#include "tune/isolate/seat.h"
#include "tune/rule/stopping.h"
#include "tune/tuner.h"

// One (kernel, config) that was tried, now or in an earlier contest.
typedef struct hone_candidate {
    uint32_t kernel; // index of its contestant
    hone_config config;
    bool is_default;
    hone_trial trial;
    double raced_ns;   // its time in the race; 0: it fell out
    double at_seconds; // when that was known, since the contest began
    bool resumed;      // from the store
    double rank_ns;    // least time with the machine's drift taken out: what candidates are compared by
    bool out;          // it fell out, then or later
    bool heated;       // measured a second time, before the finals
    bool confirmed;    // its time is that of the finals
} hone_candidate;

// One kernel.
typedef struct hone_contestant {
    const hone_kernel_ref *ref;
    hone_bound_space *space; // NULL: it does not compete
    hone_config default_config;
    bool has_default;
    const hone_config *configs; // only these, borrowed; NULL: the space, or the kernel's own list
    size_t config_count;
    const hone_search_prior *priors; // known from elsewhere; borrowed until the search begins
    size_t prior_count;
    hone_search *search;                // NULL: there is nothing but the default
    bool exhausted;                     // the search has come to its end
    double prepare_ns;                  // the longest that preparing a config took
    bool prepares_alone;                // preparing several at once went wrong
    hone_config ahead[HONE_MOST_AHEAD]; // proposed and prepared before their turns
    uint32_t ahead_count, ahead_next;
    uint32_t tried, passed;
    uint32_t measured;    // of the tried, by this contest
    double measuring_ns;  // that took, preparing counted in
    uint32_t lost_in_row; // crashes and time-outs since the last that answered
    bool put_aside;
    double best_ns;    // rank_ns; 0: none
    char *environment; // what its measurements are made with; NULL: not asked yet
} hone_contestant;

// What the store answered with when the contest began: only who is certainly faster takes its place.
typedef struct hone_incumbent {
    bool is_there;
    uint32_t kernel;
    hone_config config;
} hone_incumbent;

// How a contest measures, and what its clock says: on this machine (trial.c), or out of a recorded file (simulate/recorded_measurer.c).
// All else of a contest is the same.
typedef struct hone_measurer hone_measurer;

typedef struct hone_contest_state {
    const hone_measurer *measurer;
    void *measurer_ctx;
    const hone_tune_environment *environment;
    const hone_algorithm_entry *algorithm;
    const hone_call *call;     // NULL: a recorded space is looked through
    const char *title;         // the call's text, or the recorded space's name
    hone_tune_options options; // defaults filled in
    bool patience_given;
    bool candidate_seconds_given;
    hone_contest *out;
    hone_store_key key;
    hone_seat seat;
    bool seated;
    hone_opened opened;
    bool was_opened;
    hone_buffer message, answer;
    hone_contestant *contestants; // one a row of out->kernels
    size_t count;
    hone_candidate *candidates; // in the order they were tried
    size_t candidate_count, candidate_capacity;
    struct hone_resumed *resumed; // from the store
    size_t resumed_count, resumed_capacity;
    hone_incumbent incumbent;
    hone_search_prior *priors; // of all contestants
    bool exhaustive;           // every config of every contestant is within the evaluations
    uint32_t total;            // candidates planned
    uint32_t turn;             // of the searches
    uint32_t measured;         // candidates, by this contest
    double measuring_ns;       // that took
    int64_t best;              // index of a candidate; -1: none
    const hone_candidate *winner;
    bool heated; // the second heat was run: who was not in it is no finalist
    uint32_t since_gain;
    double gain_ns; // best time at the last gain
    double drift;   // how much slower the machine is now than at the beginning
    uint32_t since_drift;
    int64_t reference;   // the candidate that shows the drift; -1: none yet
    double reference_ns; // its least time with the drift taken out
    hone_noise noise;    // of samples, so far
    uint64_t started_ns, race_until_ns, end_ns;
    double first_seconds;      // that a kernel's first config may take to be ready; 0: as long as the contest lasts
    hone_os_conditions before; // as it began
    bool store_warned;
    bool any_environment; // measurements of another environment are read too
} hone_contest_state;

// A measurement of an earlier contest.
typedef struct hone_resumed {
    uint32_t kernel;
    hone_config config;
    hone_trial trial;
    bool entered;
} hone_resumed;

bool hone_contest_cancelled(const hone_contest_state *state);

// candidates.c: who competes, and with which configs.
hone_status hone_contest_collect(hone_contest_state *state, hone_error *err);
// Gives each kernel the configs that near calls in the stores are known by (priors.c).
hone_status hone_contest_find_priors(hone_contest_state *state, hone_error *err);
// Begins the searches, once it is known who competes and what was measured before.
hone_status hone_contest_fill(hone_contest_state *state, hone_error *err);
// Tells a kernel's search what a config took.
void hone_contest_tell(
    const hone_contestant *contestant, const hone_config *config, double time_ns, hone_failure failure);
// Takes a kernel out of the contest.
void hone_contest_exclude(hone_contest_state *state, size_t kernel, const char *reason);

// resume.c
hone_status hone_contest_load(hone_contest_state *state, hone_error *err);
// options.keep_existing: fills the decision from the store when a verified one of a kernel that can run stands there.
// False: there is none, and the contest takes place.
bool hone_contest_keep(hone_contest_state *state);
// Fills state->incumbent from the store.
void hone_contest_find_incumbent(hone_contest_state *state);
const hone_resumed *hone_contest_find_resumed(
    const hone_contest_state *state, uint32_t kernel, const hone_config *config);
// Writes one measurement at once. Failing to is a warning, not an end.
void hone_contest_store(hone_contest_state *state, const hone_candidate *candidate);

struct hone_measurer {
    hone_status (*attempt)(
        hone_contest_state *state,
        const hone_kernel_ref *kernel,
        const hone_config *config,
        const hone_racing *racing, // limit_ns: of the candidate, what the contest has left is not looked at
        hone_trial *out,
        bool *out_cut,
        hone_error *err);
    hone_status (*confirm)(
        hone_contest_state *state,
        const hone_candidate *const *finalists,
        uint32_t count,
        uint32_t rounds,
        uint64_t seed,
        double seconds,
        hone_confirmation *out,
        hone_error *err);
    // Prepares what stands in contestant->ahead, at once; how each fares shows when it is tried. NULL: there is nothing to
    // prepare. *out_answered false: the worker was lost, or took too long. HONE_CANCELLED, HONE_OUT_OF_MEMORY.
    hone_status (*prepare)(
        hone_contest_state *state, const hone_contestant *contestant, bool *out_answered, hone_error *err);
    uint64_t (*now_ns)(const hone_contest_state *state);
    void (*pause)(hone_contest_state *state, uint64_t ns);
};

// trial.c: asking the measurer; and the one that asks this machine's seats.
extern const hone_measurer hone_machine_measurer;
uint64_t hone_contest_now(const hone_contest_state *state);
void hone_contest_pause(hone_contest_state *state, uint64_t ns);
// Starts the seat and opens the call when that is not so already.
hone_status hone_contest_open(hone_contest_state *state, hone_error *err);
// Tries one candidate. HONE_OK also when it fell out: the trial says so. best_ns 0: measured in full.
// *out_cut: the contest's own end cut it short, which says nothing of the candidate.
hone_status hone_contest_try(
    hone_contest_state *state,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    double best_ns,
    hone_trial *out,
    bool *out_cut,
    hone_error *err);
// One block of rounds between finalists. HONE_KERNEL_FAILED: the worker was lost, nobody knows by whom.
hone_status hone_contest_ask_confirm(
    hone_contest_state *state,
    const hone_candidate *const *finalists,
    uint32_t count,
    uint32_t rounds,
    uint64_t seed,
    double seconds,
    hone_confirmation *out,
    hone_error *err);

// budget.c: what may still be spent.
bool hone_contest_evaluations_left(const hone_contest_state *state);
bool hone_contest_time_left(const hone_contest_state *state);
bool hone_contest_goes_on(const hone_contest_state *state);
// The next one to try after the defaults, of the kernel where a step is worth most. HONE_NOT_FOUND: there is none.
hone_status hone_contest_next(
    hone_contest_state *state, uint32_t *out_kernel, hone_config *out_config, hone_error *err);
// How long the default of the index-th kernel may take to be ready: what others before it left of theirs is added.
double hone_contest_first_seconds(const hone_contest_state *state, size_t index);
// What the next step is expected to take off the best time, relative.
double hone_contest_expected_gain(const hone_contest_state *state);

// prepare_ahead.c: the next config of one kernel, those after it prepared where that is worth it. As hone_search_next, and
// HONE_CANCELLED.
hone_status hone_contest_next_config(
    hone_contest_state *state, hone_contestant *contestant, hone_config *out, hone_error *err);

// race.c: tries candidates until the budget is spent. HONE_CANCELLED with what was found so far.
hone_status hone_contest_race(hone_contest_state *state, hone_error *err);
// What the chain would take without tuning: the default of the first kernel in the registry's order that can run.
hone_candidate *hone_contest_standard(const hone_contest_state *state);

// second_heat.c: the first in rank are measured anew, when runs are short and there is time.
hone_status hone_contest_heat(hone_contest_state *state, hone_error *err);
// A candidate falls out after it was measured.
void hone_contest_reject(
    hone_contest_state *state, hone_candidate *candidate, hone_failure failure, const char *reason);
// Whether a candidate was chosen already.
typedef bool hone_candidate_taken(const void *ctx, const hone_candidate *candidate);
// The best that is still in and is not taken; other: of a kernel of which none is. NULL: there is none.
hone_candidate *hone_contest_next_best(
    const hone_contest_state *state, hone_candidate_taken *taken, const void *ctx, bool other);
// Index of the best candidate that is still in; -1: none.
int64_t hone_contest_find_best(const hone_contest_state *state);

// What the finals found.
typedef struct hone_finals {
    uint32_t count; // finalists
    hone_candidate *finalists[HONE_MAX_FINALISTS];
    uint32_t rounds;
    double samples[HONE_MAX_FINALISTS][HONE_MAX_ROUNDS];
    uint32_t winner; // index of a finalist
} hone_finals;

// history.c: keeps what was tried, in its order, with the finals (NULL: there were none), in state->out.
hone_status hone_contest_keep_trail(hone_contest_state *state, const hone_finals *finals, hone_error *err);

// finals.c: HONE_NOT_FOUND when nobody is left.
hone_status hone_contest_confirm(hone_contest_state *state, hone_finals *out, hone_error *err);

// contest.c: a contest's state, to be filled and used by hand. call NULL: out->decision has no key.
hone_status hone_contest_create(
    const hone_tune_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_call *call,
    const hone_tune_options *options,
    hone_contest *out,
    hone_contest_state **out_state,
    hone_error *err);
void hone_contest_destroy(hone_contest_state **state);
// From the race to the decision, by contestants that are there; its time begins.
hone_status hone_contest_compete(hone_contest_state *state, hone_error *err);
// Who can run the call, and the machine's turn; then `measures` does the rest. hone_contest_run is one that
// races; an audit is another.
typedef hone_status hone_contest_measure(hone_contest_state *state, void *ctx, hone_error *err);
hone_status hone_contest_run_as(
    const hone_tune_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_call *call,
    const hone_tune_options *options,
    hone_contest_measure *measures,
    void *ctx,
    hone_contest *out,
    hone_error *err);
// decision.c: what it came to.
void hone_contest_fill_rows(const hone_contest_state *state);
// The finals' samples are better than the race's: they take their place.
void hone_contest_adopt_finals(hone_finals *finals);
void hone_contest_fill_counts(const hone_contest_state *state, hone_evidence *evidence);
void hone_contest_fill_runner_up(const hone_contest_state *state, const hone_finals *finals, hone_evidence *evidence);
// Makes a candidate the contest's decision.
void hone_contest_choose(hone_contest_state *state, const hone_candidate *winner);
// choose_seat.c
bool hone_contest_anybody(const hone_contest_state *state);
// Where candidates run. HONE_OK also when nobody is left to compete.
hone_status hone_contest_take_seat(hone_contest_state *state, hone_error *err);
// Everything of a decision but its evidence.
void hone_contest_fill_decision(
    const hone_contest_state *state, const hone_kernel_ref *ref, const hone_config *config, hone_decision *out);

#endif
