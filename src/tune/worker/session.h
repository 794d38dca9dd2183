// The worker's side: one open call with its data and reference, and candidates that are tried on it.
//
// The same code works in a spawned worker, in a fork, and, by the caller's consent, in the host itself.
#ifndef HONE_TUNE_WORKER_SESSION_H
#define HONE_TUNE_WORKER_SESSION_H

#include "tune/rule/stopping.h"
#include "tune/worker/arguments.h"
#include "tune/worker/scratch.h"
#include "tune/worker/side_effects.h"
#include "tune/worker/spots.h"
#include "tune/worker/variants.h"

enum { HONE_KNOWN_WITH_OTHERS = 64 };

// The open call with other scalars, on the same inputs.
typedef struct hone_changed_call {
    bool made;                          // or found impossible
    hone_call *call;                    // NULL: nothing is verified with it
    hone_value values[HONE_MAX_VALUES]; // as in hone_buffer_set
    hone_reference reference;
} hone_changed_call;

typedef struct hone_session {
    hone_allocator allocator;
    hone_kernel_reader how;
    hone_pack_shelf packs;
    hone_pool *given_pool; // of the host; NULL: the session makes its own
    hone_pool *own_pool;
    // The open call.
    bool open;
    hone_arena arena;
    hone_device_info device;
    hone_site site; // stays open from call to call on one device
    hone_algorithm algorithm;
    bool knows_algorithm; // it is one of hone's own
    hone_kernel stand_in; // for the algorithm's reference; struct_size 0: there is none
    hone_signature *signature;
    hone_wire_value *values;
    uint32_t count;
    hone_call *call;
    hone_call *blind;     // the same without data: what plans get, so that nobody works ahead in prepare
    hone_call *neighbour; // that first runs were asked for before this one, by the same kernel; NULL: none were
    bool prepared_by_two; // first runs were asked for, and their kernel prepared in two threads at once
    hone_buffers buffers;
    uint32_t advice; // of the system on the first set (hone_os_advice), before a candidate has run
    uint64_t unadvised[HONE_KNOWN_WITH_OTHERS]; // kernels that were seen to give none
    uint32_t next_unadvised;
    hone_reference reference;
    hone_tolerance tolerance;
    hone_regime regime;
    uint64_t seed;
    uint64_t random; // of what is changed between timed runs
    size_t next_set; // that a run takes
    char *flood; // of the host; cold, when all sets together fit the last-level cache: read through before each sample
    size_t flood_size;
    bool floods;      // the same, in the memory of the site
    int restless;     // threads of this process that go on for good: nobody waits for so many any more
    double disturbed; // share of the latest samples that were disturbed
    hone_variants variants;
    bool has_leaders_variants; // those that leaders are looked at by: made for the first one that there is time for
    bool has_all_variants;     // also those that are for winners alone, as far as they are asked for
    hone_changed_call changed[HONE_SCALAR_CHANGES];
    hone_changed_call *using;                           // whose scalars runs get; NULL: the call's own
    uint64_t known_with_others[HONE_KNOWN_WITH_OTHERS]; // candidates that are right with other scalars, 0: nobody
    uint32_t next_known;
    uint64_t led[HONE_KNOWN_WITH_OTHERS]; // kernels of which a config has led and was right in all places; 0: none
    uint32_t next_led;
    uint64_t learnt[HONE_KNOWN_WITH_OTHERS]; // kernels whose time depends on the numbers (probe.c); 0: none
    uint32_t next_learnt;
    hone_side_effects effects;
    hone_arguments arguments; // of the run that is verified
    bool stable;              // results must have the bits of those of `standard`
    bool spoiled;             // a candidate has left something in this process: no other is to be tried in it
    hone_kernel standard;
    hone_config standard_config;
    // Says that a phase has passed; may be NULL.
    void (*note)(void *ctx);
    void *note_ctx;
} hone_session;

// The pool that works for the session.
static inline hone_pool *hone_session_pool(const hone_session *session)
{
    return session->given_pool != NULL ? session->given_pool : session->own_pool;
}

void hone_session_init(hone_session *session, hone_allocator allocator, const hone_kernel_reader *how, hone_pool *pool);
void hone_session_deinit(hone_session *session);
// Answers one message; appends the answer. HONE_IO for what is no message.
hone_status hone_session_handle(hone_session *session, uint8_t kind, const hone_buffer *message, hone_buffer *answer);

// serve_prepare.c: answers PREPARE with how many configs could be prepared.
void hone_session_answer_prepare(hone_session *session, hone_wire_reader *reader, hone_buffer *answer);

// peaks.c: answers PEAKS, which says how many bytes are to come out of the levels that are measured.
void hone_session_answer_peaks(hone_session *session, hone_wire_reader *reader, hone_buffer *answer);
// What a thread reads to measure each level of memory; 0: the level is not measured.
//   caches       outer caches that there are; 0: not known
//   memory_left  that may be taken for it
void hone_peaks_choose_spans(
    const hone_os_cpu *cpu, int caches, size_t threads, int64_t memory_left, size_t out_spans[HONE_LEVELS]);
// Fills out->operations from the rate of f32.
void hone_peaks_fill_operations(double of_32, bool has_matrix_unit, hone_peaks *out);

// serve_rounds.c: answers ROUNDS.
hone_status hone_session_answer_rounds(hone_session *session, hone_wire_reader *reader, hone_buffer *answer);

// Tells the tuner that a phase has passed.
static inline void hone_session_pass_phase(const hone_session *session)
{
    if (session->note != NULL) session->note(session->note_ctx);
}
// measure.c: what the system was told of the memory of the arguments of the open call (hone_os_advice), in a process of the session's
// own on the host, else 0; and whether there is more of it than before any candidate ran: TRACES. Some half a millisecond.
uint32_t hone_session_read_advice(const hone_session *session);
hone_failure hone_session_check_advice(hone_session *session, hone_error *err);
// measure.c: what candidates that are done have left in this process. An earlier failure is the one to tell.
hone_failure hone_session_look_after(hone_session *session, hone_failure failure, hone_error *err);

// other_values.c: by what references of the session's call compute.
hone_reference_means hone_session_reference_means(const hone_session *session);

// other_values.c: whether further values are worth further references, which are quick.
bool hone_session_is_quick(const hone_session *session);
// Makes the variants that candidates of this depth are verified on, up to this kind, as far as they are not there. The original is
// loaded afterwards.
hone_status hone_session_make_variants(
    hone_session *session, hone_verify_depth depth, hone_variant_kind last, hone_error *err);
// Makes those that are for winners alone, once, in the time that the runner has. The original is loaded afterwards.
hone_status hone_runner_make_all_variants(hone_runner *runner, hone_error *err);
// scalars.c: what was made of the open call is let go of.
void hone_session_forget_scalars(hone_session *session);
uint8_t hone_session_read_changes(hone_wire_reader *reader);

// runner.c: of the values that are loaded; NULL: there is none, only bits are compared.
hone_reference *hone_session_reference(hone_session *session);

// What says how long one run took: hone_runner_sample, hone_runner_warm.
typedef hone_failure hone_runs(hone_runner *runner, double *out_ns, hone_error *err);

// What is written before the runs of a batch, one number each, in turn: some of its bits are turned over.
enum { HONE_WRITES = 64 };
typedef struct hone_writes {
    void *at[HONE_WRITES];
    uint64_t mask[HONE_WRITES];
    uint32_t size; // of each number: 2, 4 or 8 bytes
} hone_writes;

static inline void hone_write_before(const hone_writes *writes, uint32_t run)
{
    uint64_t number = 0;
    void *at = writes->at[run % HONE_WRITES];
    const uint64_t mask = writes->mask[run % HONE_WRITES];
    if (writes->size == sizeof(uint32_t)) {
        uint32_t single;
        memcpy(&single, at, sizeof single);
        single ^= (uint32_t)mask;
        memcpy(at, &single, sizeof single);
        return;
    }
    memcpy(&number, at, writes->size == sizeof number ? sizeof number : sizeof(uint16_t));
    number ^= mask;
    memcpy(at, &number, writes->size == sizeof number ? sizeof number : sizeof(uint16_t));
}

// Pairs of batches that were taken with the samples of one candidate (pairs.c).
typedef struct hone_pairs {
    bool are_taken;
    bool
        are_open; // the inputs, for the two batches of a pair: of 17 MB that takes as long as a run of half a millisecond
    bool are_last;              // the latest runs of the candidate are of one
    double longest_ns;          // run that has any
    uint32_t innocent, guilty;  // that nothing disturbed
    double changed_ns, same_ns; // the least of each
    uint64_t before[HONE_WRITES];
    uint64_t sink[HONE_WRITES]; // what is written before the runs of samples
} hone_pairs;

// One candidate, prepared.
struct hone_runner {
    hone_session *session;
    hone_kernel kernel;
    hone_config config;
    hone_plan plan;
    bool prepared;
    hone_platform_instance *instance; // that it is prepared with; NULL: none
    hone_guarded_scratch scratch;
    hone_execution execution;
    uint32_t batch;          // runs a sample
    int32_t workers;         // of hone's pool that its last sample had work for
    const char *meddled;     // what of its arguments its latest verified run changed; NULL: nothing
    int meddled_index;       // of the value that is of; -1: of none
    const char *lost;        // a register that its latest verified run did not keep for its caller; NULL: none
    double verify_ns;        // what the last verified run took
    double look_ns;          // the same with its results overwritten before it, and compared after it
    bool is_known;           // one of the library's own, which its tests have looked at
    uint64_t looks_until_ns; // from then on what a smaller call shows as well is left to that; 0: there is no such time
    bool left_out;           // something was
    uint64_t
        repeats_until_ns; // from then on looks that differ little from those before them are left out; 0: there is no such time
    bool is_brief;            // some were
    double verified_ns;       // what all of them took
    double run_ns;            // what all samples took, those to warm up counted in
    double judged_ns;         // what looking at what samples left took
    uint32_t retaken, mended; // disturbed samples that were taken again, and those of them that no longer were
    struct probe *probe;      // what its runs change, while hone_runner_probe looks; else NULL
    struct renewal *renewal;  // the same of hone_runner_probe_renewed
    hone_runs *learns;        // times a batch of who learns (probe.c), each run on other numbers; NULL: others
    double burst_ns;          // runs of a sample in a round, at least three of them; 0: three
    double rested_at_ns;      // run_ns when it last rested before a sample
    bool is_rested;           // and no sample since was disturbed
    double race_ns;           // a run, as its samples have it; 0: there are none
    bool spoils_within;       // spots are overwritten within batches of runs, whose time nobody takes
    const hone_spots *spoils; // those of the batch that runs, overwritten before this run of it; else NULL
    uint32_t spoiled_run;
    hone_writes writes;
    hone_pairs pairs;
    struct watched *watched; // the waits are read right before and after the runs that are timed; else NULL
};

// pairs.c: whether its samples come from runs that do their work. From now on samples in rounds have pairs beside them, of
// longer runs where it is alone in its block.
void hone_runner_take_pairs(hone_runner *runner, bool alone);
// Whether a sample of so long a run is to have one: nobody knows yet whether it is guilty.
bool hone_runner_wants_pair(const hone_runner *runner, double run_ns);
// Until end_pair the runs of samples change a number of the inputs each, or write it as it is. The inputs stay open until
// close_pair, which comes after the second batch.
hone_failure hone_runner_begin_pair(hone_runner *runner, bool changes, hone_error *err);
void hone_runner_end_pair(hone_runner *runner);
void hone_runner_close_pair(hone_runner *runner);
void hone_runner_note_pair(hone_runner *runner, const hone_sample *changed, const hone_sample *same);
// HONE_FAILURE_REPLAYED where it is faster as long as nothing changes.
hone_failure hone_runner_judge_pairs(const hone_runner *runner, hone_error *err);
// The runs of samples write beside the inputs.
void hone_runner_write_elsewhere(hone_runner *runner);

// A run this long that was verified needs no other one to be warm.
static const double hone_warmed_ns = 20e6;
// Looks this short are never too many, but for the library's own: beside a dozen busy threads sixty of them took two seconds.
static const double hone_short_look_ns = 1e6;

// Whether there is time for another look that a smaller call can have in its place.
static inline bool hone_runner_has_time(hone_runner *runner)
{
    const bool is_short = runner->look_ns < hone_short_look_ns && !runner->is_known,
               has_time = runner->looks_until_ns == 0 || is_short || hone_os_now_ns() < runner->looks_until_ns;
    runner->left_out = runner->left_out || !has_time;
    return has_time;
}

// Of what is looked at in any case, whatever the time: of the library's own less is, since its tests have looked.
static inline bool hone_runner_must_look(hone_runner *runner)
{
    return !runner->is_known || hone_runner_has_time(runner);
}

// The same of looks that differ little from those before them: at arrays each of which is placed unlike the others where all
// were placed badly together, and in all places again on rows unlike each other. Runs of 60 ms took most of a contest of 3 s for these.
static inline bool hone_runner_repeats(hone_runner *runner)
{
    const bool repeats = runner->repeats_until_ns == 0 || runner->look_ns < hone_short_look_ns ||
                         hone_os_now_ns() < runner->repeats_until_ns;
    runner->is_brief = runner->is_brief || !repeats;
    return repeats && hone_runner_has_time(runner);
}

// How a run failed that came back with this.
hone_failure hone_failure_of(hone_status status);
// One run on one of the sets of buffers; not waited for on a device.
hone_status hone_runner_run_on(const hone_runner *runner, size_t set);
// Says in err what a run came back with.
hone_failure hone_runner_fail(const hone_runner *runner, hone_status status, hone_error *err);
// Prepares. Returns HONE_FAILURE_NONE, or how it failed with words in err. runner_deinit is called in any case.
hone_failure hone_runner_init(
    hone_runner *runner, hone_session *session, const hone_kernel *kernel, const hone_config *config, hone_error *err);
void hone_runner_deinit(hone_runner *runner);
// Of the code that runs; 0: not known.
uint64_t hone_runner_digest(const hone_runner *runner);
// Runs once on poisoned results and compares everything.
hone_failure hone_runner_verify(hone_runner *runner, double *out_max_error, hone_error *err);
// The same on the call's other values, where there are any, as many as `depth` says.
hone_failure hone_runner_verify_variants(
    hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err);
// The same again and again: what is wrong now and then shows. At least once, at most `most` times, for about budget_ns.
hone_failure hone_runner_verify_often(
    hone_runner *runner, uint32_t most, double budget_ns, double *out_max_error, hone_error *err);
// Runs on the values that are loaded, and only looks whether it could.
hone_failure hone_runner_run(hone_runner *runner, hone_error *err);
// The same with each inout result in the memory of a parameter, where the call allows that.
hone_failure hone_runner_verify_in_place(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: on arrays that are aligned no better than the call says, between pages that nobody may touch: what is wrong
// only there is UNALIGNED, what reads around an array BOUNDS. In a process of the session's own; elsewhere nothing is
// said.
//   depth     of who is to win: also on arrays that are aligned unlike each other
//   is_whole  then also on arrays some of which, or all, are aligned to 32 bytes and not to 64
hone_failure hone_runner_verify_placed(
    hone_runner *runner, hone_verify_depth depth, bool is_whole, double *out_max_error, hone_error *err);
// scalars.c: prepared once more, for the call with other scalars, once for each candidate. A kernel that refuses the
// changed call is not blamed.
//   changes  a bit for each hone_scalar_change, each of which is one more call
hone_failure hone_runner_verify_scalars(hone_runner *runner, uint8_t changes, double *out_max_error, hone_error *err);
// racing.c: in two threads at once, for some milliseconds; on a device on two streams: RACY.
hone_failure hone_runner_verify_racing(hone_runner *runner, hone_error *err);
// racing.c: a candidate that has not run in this process yet, whose first runs are in two threads at once: RACY. Then as
// hone_runner_verify, also where there are no threads of the session's own.
//   after_ns  where one of the two stands still in its run; 0: both begin at the same moment
//   out_ns    what the longer one took of its processor; where one was to stand still, 0 if its run was over before
hone_failure hone_runner_verify_first(
    hone_runner *runner, double after_ns, double *out_ns, double *out_max_error, hone_error *err);
// racing.c: a plan is the same where another thread prepares one for the session's neighbour meanwhile: RACY. On the host, of who
// prepares in 10 ms.
hone_failure hone_runner_verify_preparing(hone_runner *runner, hone_error *err);
// neighbour.c: while another plan of its kernel is there, for the session's neighbour, and when that is released.
hone_failure hone_runner_verify_beside(hone_runner *runner, double *out_max_error, hone_error *err);
// The open call is the next one's neighbour.
void hone_session_keep_neighbour(hone_session *session);
// strict.c: in a thread with a stack of HONE_LEAST_STACK bytes, which ends the process with HONE_EXIT_STACK where it is too
// small. In a process of the session's own, on the host; elsewhere nothing is said.
hone_failure hone_runner_verify_stack(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: lent a parallel_for that begins with the last index; on the host, where the session has a pool.
hone_failure hone_runner_verify_order(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: prepared and run without a pool, in a process of the session's own: a plan's parallel_for may be NULL.
hone_failure hone_runner_verify_alone(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: in all of these places, of which the small stack and two threads at once are for winners; on the ordinary inputs and
// on uneven ones, where these were made.
hone_failure hone_runner_verify_places(
    hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err);
// runner.c: HONE_FAILURE_BOUNDS where the latest verified run changed its arguments; they are as they were again. _TRACES where it
// changed a register that it has to keep.
hone_failure hone_runner_check_meddling(const hone_runner *runner, hone_error *err);
// The same of all runs since hone_arguments_digest gave `before`, which are not verified one by one: they explain any other
// failure. What they changed stays, and so nobody is tried in the process any more.
hone_failure hone_runner_check_arguments(
    const hone_runner *runner, uint64_t before, hone_failure failure, hone_error *err);
// One run that is waited for, and what a run on the first set has left: everything in its place, and right.
hone_status hone_runner_run_values(hone_runner *runner, const hone_value *values, hone_error *err);
hone_failure hone_runner_judge(
    hone_runner *runner, hone_status status, const hone_error *why, double *out_max_error, hone_error *err);
// Warms up and chooses the batch. *out_ns is what the last warm run took.
hone_failure hone_runner_warm(hone_runner *runner, double *out_ns, hone_error *err);
// Before the rounds of a duel, on the host: batches of some 100 us, and scratch that goes from page to page. run_ns: what
// hone_runner_warm gave.
hone_failure hone_runner_begin_duel(hone_runner *runner, double run_ns, hone_error *err);
// The same, with what disturbed it.
hone_failure hone_runner_warm_marked(hone_runner *runner, hone_sample *out, hone_error *err);
// A batch of runs by the clock: nanoseconds a run.
hone_failure hone_runner_time(hone_runner *runner, double *out_ns, hone_error *err);
// The same, and that the last run of the batch left no spot of its results as it was. Spots are overwritten before the
// batch, or before a run within it (spoils_within).
hone_failure hone_runner_sample(hone_runner *runner, double *out_ns, hone_error *err);
// Right after a run: HONE_FAILURE_STALE where a spot is as it was, HONE_FAILURE_HIDDEN where that is written late.
hone_failure hone_runner_check_spots(const hone_runner *runner, const hone_spots *spots, hone_error *err);
// One sample by other runs than hone_runner_sample's, with what disturbed it.
hone_failure hone_runner_sample_of(hone_runner *runner, hone_runs *runs, hone_sample *out, hone_error *err);
// Sleeps for a millisecond, after which a busy machine leaves the next few to the caller, and has the pool's threads awake
// that the last sample had work for.
void hone_runner_rest(const hone_runner *runner);
// Waits until the threads of this process that are left of another candidate have come to rest. Returns the ns it slept.
uint64_t hone_session_settle(hone_session *session);
// A sample right after others of this candidate, which is warm. Says what disturbed it; one that was is taken again up
// to `retakes` times, as one in a round, and the least disturbed one stands.
hone_failure hone_runner_sample_in_race(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err);
// The same after other candidates ran: their threads have come to rest, and this one is made warm again; in a duel its
// scratch is elsewhere.
hone_failure hone_runner_sample_in_round(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err);
// Compares what the latest sample has left with the reference, on the host, for a small share of what samples take: who computes less
// where it is timed is WRONG. Right after a sample.
hone_failure hone_runner_judge_sample(hone_runner *runner, hone_error *err);
// Nothing was written that must not be, in any of the sets.
hone_failure hone_runner_check(hone_runner *runner, hone_error *err);

// probe.c: whether its runs do their work when something has changed since the last one. Returns HONE_FAILURE_REPLAYED,
// _STALE or _HIDDEN where they do not; results are left poisoned, inputs as they were. Sets runner->learns, and notes its kernel.
hone_failure hone_runner_probe(hone_runner *runner, hone_error *err);
// Sets runner->learns where another config of its kernel did.
void hone_runner_recall(hone_runner *runner);
// runner.c: of all its configs, never 0.
uint64_t hone_kernel_identity(const hone_kernel *kernel);
// renewal.c: the same where all inputs and results are new, on the host. Of what may win with arrays of 64 to 256 MB it is
// a part of each that is new.
hone_failure hone_runner_probe_renewed(hone_runner *runner, hone_verify_depth depth, hone_error *err);
// Of who learns: hone_runner_time, each run on the same numbers in other places.
hone_failure hone_runner_time_renewed(hone_runner *runner, double *out_ns, hone_error *err);
// How many runs without a change come before one that is timed, where somebody may keep what comes again and again.
uint32_t hone_runner_settling(double run_ns);

// Measures a verified candidate by the rule.
hone_failure hone_measure_candidate(
    hone_runner *runner, const hone_stopping *stopping, hone_trial *out, hone_error *err);
// After a race in which the candidate held more and more: runs it on until it is certain whether that ends.
//   run_ns  what a run takes
hone_failure hone_pursue_leak(hone_runner *runner, const hone_stopping *stopping, double run_ns, hone_error *err);
// Of who is warm and may win: runs it for a tenth of a second and for 4,000 runs, or .2 s, and as long as what it holds grows eight times
// as often, for a leak that is in some runs of thousands alone. Not of runs of more than a millisecond.
hone_failure hone_pursue_slow_leak(hone_runner *runner, hone_error *err);
// Measures finalists against each other, round by round in random order.
hone_failure hone_measure_rounds(
    hone_runner *const *runners, const hone_rounds *asked, hone_rounds_answer *out, hone_error *err);

#endif
