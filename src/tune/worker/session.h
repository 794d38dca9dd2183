// The worker's side of a contest: one open call with its data and reference, and the candidates that are tried on it.
//
// The same code runs in a spawned worker process, in a fork, and, when the caller agrees, in the host process itself.
#ifndef HONE_TUNE_WORKER_SESSION_H
#define HONE_TUNE_WORKER_SESSION_H

#include "tune/rule/stopping.h"
#include "tune/worker/arguments.h"
#include "tune/worker/scratch.h"
#include "tune/worker/side_effects.h"
#include "tune/worker/spots.h"
#include "tune/worker/variants.h"

enum { HONE_KNOWN_WITH_OTHERS = 64 };

// The open call with other scalars and the same inputs.
typedef struct hone_changed_call {
    bool made;                          // the call was made, or cannot be made
    hone_call *call;                    // NULL: no candidate is verified with it
    hone_value values[HONE_MAX_VALUES]; // as in hone_buffer_set
    hone_reference reference;
} hone_changed_call;

typedef struct hone_session {
    hone_allocator allocator;
    hone_kernel_reader how;
    hone_pack_shelf packs;
    hone_pool *given_pool; // the host's; NULL: the session creates its own
    hone_pool *own_pool;
    // The open call.
    bool open;
    hone_arena arena;
    hone_device_info device;
    hone_site site; // stays open between calls on one device
    hone_algorithm algorithm;
    bool knows_algorithm; // the algorithm is one of hone's own
    hone_kernel stand_in; // computes the reference in place of the algorithm's function; struct_size 0: there is none
    hone_signature *signature;
    hone_wire_value *values;
    uint32_t count;
    hone_call *call;
    hone_call *blind;     // the same without data: plans get it, so that prepare cannot compute results ahead
    hone_call *neighbour; // of the first runs that were requested before, of the same kernel; NULL: there were none
    bool prepared_by_two; // two threads have prepared the kernel of first runs at once (hone_runner_verify_preparing)
    hone_buffers buffers;
    uint32_t advice; // memory advice on the first set (hone_os_advice), before any candidate ran
    uint64_t unadvised[HONE_KNOWN_WITH_OTHERS]; // kernels that were checked and gave no advice; 0: empty
    uint32_t next_unadvised;
    hone_reference reference;
    hone_tolerance tolerance;
    hone_regime regime;
    uint64_t seed;
    uint64_t random; // state of the generator for changes between timed runs
    size_t next_set; // used by the next run
    char *flood;     // host memory that is read before each cold sample, if all sets together fit the last-level cache
    size_t flood_size;
    bool floods;      // the same, with the flood in the memory of the site
    int restless;     // this number of threads of this process is known to spin for ever: nothing waits for them
    double disturbed; // share of recent samples that were disturbed
    hone_variants variants;
    bool has_leaders_variants; // the variants for leaders were made, for the first leader with time for them
    bool has_all_variants;     // so were those for winners alone, as far as they are required
    hone_changed_call changed[HONE_SCALAR_CHANGES];
    hone_changed_call *using;                           // the call whose scalars runs get; NULL: the open call
    uint64_t known_with_others[HONE_KNOWN_WITH_OTHERS]; // candidates that were right with other scalars; 0: empty
    uint32_t next_known;
    uint64_t led[HONE_KNOWN_WITH_OTHERS]; // kernels with a config that passed every check for leaders; 0: empty
    uint32_t next_led;
    uint64_t learnt[HONE_KNOWN_WITH_OTHERS]; // kernels whose time depends on learned branches (probe.c); 0: empty
    uint32_t next_learnt;
    hone_side_effects effects;
    hone_arguments arguments; // copies, from before the run that is verified
    bool stable;              // results must equal those of `standard` bit for bit
    bool spoiled;             // a candidate has changed this process: no other may be tried in it
    hone_kernel standard;
    hone_config standard_config;
    // Reports that a phase has passed; may be NULL.
    void (*note)(void *ctx);
    void *note_ctx;
} hone_session;

// The pool whose threads work for the session.
static inline hone_pool *hone_session_pool(const hone_session *session)
{
    return session->given_pool != NULL ? session->given_pool : session->own_pool;
}

void hone_session_init(hone_session *session, hone_allocator allocator, const hone_kernel_reader *how, hone_pool *pool);
void hone_session_deinit(hone_session *session);
// Answers one message: appends the answer. HONE_IO: the kind of the message is unknown.
hone_status hone_session_handle(hone_session *session, uint8_t kind, const hone_buffer *message, hone_buffer *answer);

// serve_prepare.c: answers PREPARE with the number of configs that could be prepared.
void hone_session_answer_prepare(hone_session *session, hone_wire_reader *reader, hone_buffer *answer);

// peaks.c: answers PEAKS with the measured rates. The request holds the bytes of the call.
void hone_session_answer_peaks(hone_session *session, hone_wire_reader *reader, hone_buffer *answer);
// Chooses how many bytes a thread reads to measure each level of memory; 0: the level is not measured.
//   caches       number of outer caches; 0: unknown
//   memory_left  bytes that the measurement may take
void hone_peaks_choose_spans(
    const hone_os_cpu *cpu, int caches, size_t threads, int64_t memory_left, size_t out_spans[HONE_LEVELS]);
// Computes out->operations from the rate of f32.
void hone_peaks_fill_operations(double of_32, bool has_matrix_unit, hone_peaks *out);

// serve_rounds.c: answers ROUNDS.
hone_status hone_session_answer_rounds(hone_session *session, hone_wire_reader *reader, hone_buffer *answer);

// Reports to the tuner that a phase has passed.
static inline void hone_session_pass_phase(const hone_session *session)
{
    if (session->note != NULL) session->note(session->note_ctx);
}
// measure.c: hone_session_read_advice reads what advice the system was given on the memory of the open call's arguments
// (hone_os_advice); 0 unless the process is the session's own, on the host. hone_session_check_advice returns TRACES
// when there is more advice than before any candidate ran. Each takes about half a millisecond.
uint32_t hone_session_read_advice(const hone_session *session);
hone_failure hone_session_check_advice(hone_session *session, hone_error *err);
// measure.c: checks what finished candidates have left in this process. An earlier failure takes precedence.
hone_failure hone_session_look_after(hone_session *session, hone_failure failure, hone_error *err);

// other_values.c: what references of the session's call are computed with.
hone_reference_means hone_session_reference_means(const hone_session *session);

// other_values.c: whether references are quick enough to compute them for further values.
bool hone_session_is_quick(const hone_session *session);
// Makes the missing variants that candidates of this depth are verified on, up to the kind `last`. Afterwards the
// original is loaded.
hone_status hone_session_make_variants(
    hone_session *session, hone_verify_depth depth, hone_variant_kind last, hone_error *err);
// Makes the variants for winners, once, in the time that the runner has. Afterwards the original is loaded.
hone_status hone_runner_make_all_variants(hone_runner *runner, hone_error *err);
// scalars.c: releases what was made for the open call.
void hone_session_forget_scalars(hone_session *session);
uint8_t hone_session_read_changes(hone_wire_reader *reader);

// runner.c: the reference for the values that are loaded; NULL: there is none, and only bits are compared.
hone_reference *hone_session_reference(hone_session *session);

// Measures how long one run took, in ns: hone_runner_sample, hone_runner_warm.
typedef hone_failure hone_runs(hone_runner *runner, double *out_ns, hone_error *err);

// Writes before the runs of a batch: one number before each run, in turn, with some of its bits inverted.
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

// Pairs of batches that are timed among the samples of one candidate (pairs.c).
typedef struct hone_pairs {
    bool are_taken;
    bool
        are_open; // the inputs are writable for both batches of a pair: opening 17 MB takes the time of a run of 0.5 ms
    bool are_last;              // the latest runs of the candidate belong to a pair
    double longest_ns;          // of a run: longer ones get no pair
    uint32_t innocent, guilty;  // number of undisturbed pairs with this verdict
    double changed_ns, same_ns; // the least times of each kind of batch
    uint64_t before[HONE_WRITES];
    uint64_t sink[HONE_WRITES]; // target of the writes before runs of ordinary samples
} hone_pairs;

// One candidate, prepared.
struct hone_runner {
    hone_session *session;
    hone_kernel kernel;
    hone_config config;
    hone_plan plan;
    bool prepared;
    hone_platform_instance *instance; // that prepared it; NULL: none
    hone_guarded_scratch scratch;
    hone_execution execution;
    uint32_t batch;          // runs per sample
    int32_t workers;         // threads of hone's pool that its last sample gave work to
    const char *meddled;     // what its latest verified run changed among its arguments; NULL: nothing
    int meddled_index;       // index of the value concerned; -1: none
    const char *lost;        // a register that its latest verified run did not preserve; NULL: none
    double verify_ns;        // duration of the last verified run
    double look_ns;          // the same, with the time to overwrite its results before it and to compare them after it
    bool is_known;           // one of the library's own, which its tests have checked
    uint64_t looks_until_ns; // from then on checks that a smaller call can cover are left out; 0: never
    bool left_out;           // a check was left out
    uint64_t
        repeats_until_ns; // then checks that differ little from earlier ones are left out (hone_runner_repeats); 0: no
    bool is_brief;        // such a check was left out
    double verified_ns;   // duration of all verified runs
    double run_ns;        // duration of all samples, with those of the warm-up
    double judged_ns;     // time spent on checking what samples left
    uint32_t retaken, mended; // disturbed samples that were taken again, and retakes that were undisturbed
    struct probe *probe;      // the changes between its runs, within hone_runner_probe; else NULL
    struct renewal *renewal;  // the same for hone_runner_probe_renewed
    hone_runs *learns; // if its time depends on learned branches (probe.c): times runs on ever other numbers; else NULL
    double burst_ns;   // length of a burst of samples in a round, of at least three samples; 0: three samples
    double rested_at_ns;      // run_ns at its last rest before a sample
    bool is_rested;           // no sample since that rest was disturbed
    double race_ns;           // duration of a run, from its samples; 0: there are none
    bool spoils_within;       // spots are overwritten within batches, whose times are not used then
    const hone_spots *spoils; // spots of the current batch that are overwritten before run spoiled_run; else NULL
    uint32_t spoiled_run;
    hone_writes writes;
    hone_pairs pairs;
    struct watched *watched; // the waits, which are read right before and after the timed runs; else NULL
};

// pairs.c: begins to check that the runs of samples do their work: from now on samples in rounds have pairs beside
// them, for longer runs too if the candidate is alone in its block.
void hone_runner_take_pairs(hone_runner *runner, bool alone);
// Whether a sample with runs of this duration gets a pair: the verdict on the candidate is still open.
bool hone_runner_wants_pair(const hone_runner *runner, double run_ns);
// From begin_pair to end_pair each run of a sample changes one number of the inputs, or writes it unchanged. The inputs
// stay open until close_pair, which follows the second batch.
hone_failure hone_runner_begin_pair(hone_runner *runner, bool changes, hone_error *err);
void hone_runner_end_pair(hone_runner *runner);
void hone_runner_close_pair(hone_runner *runner);
void hone_runner_note_pair(hone_runner *runner, const hone_sample *changed, const hone_sample *same);
// HONE_FAILURE_REPLAYED if the candidate is faster as long as nothing changes.
hone_failure hone_runner_judge_pairs(const hone_runner *runner, hone_error *err);
// Makes the runs of samples write to the sink instead of the inputs.
void hone_runner_write_elsewhere(hone_runner *runner);

// A verified run of at least this duration warms the candidate up, too.
static const double hone_warmed_ns = 20e6;
// Of runs longer than this, samples whose results are compared replace further verified runs.
static const double hone_long_verified_ns = 5e6;
// Checks shorter than this are never left out, except for kernels of the library: beside a dozen busy threads sixty of
// them took two seconds.
static const double hone_short_look_ns = 1e6;

// Whether there is time for a further check that a smaller call can have instead. If not, notes that it was left out.
static inline bool hone_runner_has_time(hone_runner *runner)
{
    const bool is_short = runner->look_ns < hone_short_look_ns && !runner->is_known,
               has_time = runner->looks_until_ns == 0 || is_short || hone_os_now_ns() < runner->looks_until_ns;
    runner->left_out = runner->left_out || !has_time;
    return has_time;
}

// Whether to make a check that other kernels get whatever the time is. For kernels of the library it depends on the
// time, since their tests have made the check.
static inline bool hone_runner_must_look(hone_runner *runner)
{
    return !runner->is_known || hone_runner_has_time(runner);
}

// The same for checks that differ little from earlier ones: arrays with different placements, after all arrays were
// placed badly together, and all placements again on uneven rows. With runs of 60 ms these checks took most of a
// contest of 3 s.
static inline bool hone_runner_repeats(hone_runner *runner)
{
    const bool repeats = runner->repeats_until_ns == 0 || runner->look_ns < hone_short_look_ns ||
                         hone_os_now_ns() < runner->repeats_until_ns;
    runner->is_brief = runner->is_brief || !repeats;
    return repeats && hone_runner_has_time(runner);
}

// The failure for the status of a run.
hone_failure hone_failure_of(hone_status status);
// One run on one of the sets of buffers. On a device it does not wait for the end of the run.
hone_status hone_runner_run_on(const hone_runner *runner, size_t set);
// Describes the status of a run in err.
hone_failure hone_runner_fail(const hone_runner *runner, hone_status status, hone_error *err);
// Prepares the candidate. Returns HONE_FAILURE_NONE, or the failure with a message in err. hone_runner_deinit must be
// called in any case.
hone_failure hone_runner_init(
    hone_runner *runner, hone_session *session, const hone_kernel *kernel, const hone_config *config, hone_error *err);
void hone_runner_deinit(hone_runner *runner);
// Digest of the code that runs; 0: unknown.
uint64_t hone_runner_digest(const hone_runner *runner);
// Runs once on poisoned results and compares all of them.
hone_failure hone_runner_verify(hone_runner *runner, double *out_max_error, hone_error *err);
// The same on the call's other values, if there are any: as many as `depth` requires.
hone_failure hone_runner_verify_variants(
    hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err);
// Repeats hone_runner_verify, to find occasional errors: at least once, at most `most` times, for about budget_ns.
hone_failure hone_runner_verify_often(
    hone_runner *runner, uint32_t most, double budget_ns, double *out_max_error, hone_error *err);
// Runs on the values that are loaded. Checks the status of the run and what it wrote outside of its results, not the
// results.
hone_failure hone_runner_run(hone_runner *runner, hone_error *err);
// hone_runner_verify with each inout result in the memory of a parameter, if the call allows that.
hone_failure hone_runner_verify_in_place(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: verifies on arrays whose alignment is no better than the call says, between pages that must not be
// accessed. UNALIGNED: wrong only there. BOUNDS: reads around an array. Only in a process of the session's own;
// elsewhere it returns NONE.
//   depth     for winners also on arrays with different alignments
//   is_whole  for winners also on arrays of which some, or all, are aligned to 32 bytes and not to 64
hone_failure hone_runner_verify_placed(
    hone_runner *runner, hone_verify_depth depth, bool is_whole, double *out_max_error, hone_error *err);
// scalars.c: prepares and verifies once more for the call with other scalars, once per candidate. A kernel may refuse
// the changed call.
//   changes  a bit for each hone_scalar_change, each of which is one more call
hone_failure hone_runner_verify_scalars(hone_runner *runner, uint8_t changes, double *out_max_error, hone_error *err);
// racing.c: runs in two threads at once for some milliseconds, on a device on two streams. RACY: the results differ.
hone_failure hone_runner_verify_racing(hone_runner *runner, hone_error *err);
// racing.c: for a candidate that has not run in this process yet. Its first runs are in two threads at once. RACY: they
// are wrong. Then as hone_runner_verify, also if the session has no threads of its own.
//   after_ns  time after which one of the two is stopped within its run; 0: both begin at the same moment
//   out_ns    processor time of the longer run; with after_ns > 0: 1 if a run was stopped, 0 if it was over before
hone_failure hone_runner_verify_first(
    hone_runner *runner, double after_ns, double *out_ns, double *out_max_error, hone_error *err);
// racing.c: checks that a plan is right when another thread prepares one for the session's neighbour at the same time.
// RACY: it is not. On the host, for kernels that prepare in less than 10 ms.
hone_failure hone_runner_verify_preparing(hone_runner *runner, hone_error *err);
// neighbour.c: verifies while another plan of its kernel exists, for the session's neighbour, and after that is
// released.
hone_failure hone_runner_verify_beside(hone_runner *runner, double *out_max_error, hone_error *err);
// Makes the open call the neighbour of the next one.
void hone_session_keep_neighbour(hone_session *session);
// strict.c: verifies in a thread with a stack of HONE_LEAST_STACK bytes. If it is too small the process ends with
// HONE_EXIT_STACK. Only in a process of the session's own, on the host; elsewhere it returns NONE.
hone_failure hone_runner_verify_stack(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: verifies with a parallel_for that begins with the last index; on the host, if the session has a pool.
hone_failure hone_runner_verify_order(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: prepares and verifies without a pool, in a process of the session's own: a plan's parallel_for may be NULL.
hone_failure hone_runner_verify_alone(hone_runner *runner, double *out_max_error, hone_error *err);
// strict.c: hone_runner_verify_placed and, for winners, the other checks of strict.c and two threads at once; for
// winners also on uneven inputs, if these were made.
hone_failure hone_runner_verify_places(
    hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err);
// runner.c: HONE_FAILURE_BOUNDS if the latest verified run changed its arguments, which were restored.
// HONE_FAILURE_TRACES if it did not preserve a register.
hone_failure hone_runner_check_meddling(const hone_runner *runner, hone_error *err);
// The same for all runs since hone_arguments_digest returned `before`, which are not verified one by one. Changed
// arguments explain any other failure. They stay changed, so no further candidate is tried in the process.
hone_failure hone_runner_check_arguments(
    const hone_runner *runner, uint64_t before, hone_failure failure, hone_error *err);
// One run with the wait for its end; and the verdict on what a run on the first set has left: its bounds and its
// results.
hone_status hone_runner_run_values(hone_runner *runner, const hone_value *values, hone_error *err);
hone_failure hone_runner_judge(
    hone_runner *runner, hone_status status, const hone_error *why, double *out_max_error, hone_error *err);
// Warms the candidate up and chooses its batch. *out_ns is the duration of the last warm run.
hone_failure hone_runner_warm(hone_runner *runner, double *out_ns, hone_error *err);
// Before the rounds of a duel, on the host: makes batches of about 100 us, and scratch memory that moves from page to
// page. run_ns: from hone_runner_warm.
hone_failure hone_runner_begin_duel(hone_runner *runner, double run_ns, hone_error *err);
// hone_runner_warm, with what disturbed its last sample.
hone_failure hone_runner_warm_marked(hone_runner *runner, hone_sample *out, hone_error *err);
// Times a batch of runs, in ns per run.
hone_failure hone_runner_time(hone_runner *runner, double *out_ns, hone_error *err);
// The same, and checks that the last run of the batch wrote all spots of its results. Spots are overwritten before the
// batch, or before a run within it (spoils_within).
hone_failure hone_runner_sample(hone_runner *runner, double *out_ns, hone_error *err);
// Right after a run: HONE_FAILURE_STALE if a spot was not written, HONE_FAILURE_HIDDEN if it was written late.
hone_failure hone_runner_check_spots(const hone_runner *runner, const hone_spots *spots, hone_error *err);
// One sample that is timed by `runs` instead of hone_runner_sample, with what disturbed it.
hone_failure hone_runner_sample_of(hone_runner *runner, hone_runs *runs, hone_sample *out, hone_error *err);
// Sleeps for a millisecond, after which a busy machine leaves the next few to the caller, and wakes the pool's threads
// that the last sample gave work to.
void hone_runner_rest(const hone_runner *runner);
// Waits until the threads that other candidates left running in this process sleep. Returns how long it slept, in ns.
uint64_t hone_session_settle(hone_session *session);
// Takes a sample right after others of this candidate, which is warm, and reports what disturbed it. A disturbed sample
// is taken again up to `retakes` times, as in a round, and the least disturbed one is returned.
hone_failure hone_runner_sample_in_race(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err);
// The same after other candidates ran: waits until their threads sleep, warms this candidate up again, and in a duel
// moves its scratch memory.
hone_failure hone_runner_sample_in_round(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err);
// Compares what the latest sample has left with the reference, on the host, for a small share of the time of samples.
// WRONG: the candidate computes less in timed runs. To be called right after a sample.
hone_failure hone_runner_judge_sample(hone_runner *runner, hone_error *err);
// Checks all sets for writes where none are allowed.
hone_failure hone_runner_check(hone_runner *runner, hone_error *err);

// probe.c: checks that its runs do their work when something has changed since the last one. HONE_FAILURE_REPLAYED,
// _STALE or _HIDDEN: they do not. Results are left poisoned, inputs as they were. If the time depends on learned
// branches, sets runner->learns and notes the kernel.
hone_failure hone_runner_probe(hone_runner *runner, hone_error *err);
// Sets runner->learns if hone_runner_probe set it for another config of its kernel.
void hone_runner_recall(hone_runner *runner);
// runner.c: identifies a kernel, for all of its configs. Never 0.
uint64_t hone_kernel_identity(const hone_kernel *kernel);
// renewal.c: the same check with all inputs and results renewed, on the host. For winners whose arrays take 64 to 256
// MB a part of each array is renewed.
hone_failure hone_runner_probe_renewed(hone_runner *runner, hone_verify_depth depth, hone_error *err);
// For a candidate that learns branches: hone_runner_time with the same numbers in other places for each run.
hone_failure hone_runner_time_renewed(hone_runner *runner, double *out_ns, hone_error *err);
// How many runs without a change come before a timed one, if a candidate may keep what has come several times.
uint32_t hone_runner_settling(double run_ns);

// Measures a verified candidate by the rule.
hone_failure hone_measure_candidate(
    hone_runner *runner, const hone_stopping *stopping, hone_trial *out, hone_error *err);
// For a candidate that held more and more during its samples: runs it until it is certain whether that ends.
//   run_ns  duration of a run
hone_failure hone_pursue_leak(hone_runner *runner, const hone_stopping *stopping, double run_ns, hone_error *err);
// For a warm candidate that may win, with runs of at most 1 ms: runs it for .1 s and for 4,000 runs, or .2 s, and up to
// eight times as often as long as what it holds grows, to find a leak in one of thousands of runs.
hone_failure hone_pursue_slow_leak(hone_runner *runner, hone_error *err);
// Measures finalists against each other, round by round in random order.
hone_failure hone_measure_rounds(
    hone_runner *const *runners, const hone_rounds *asked, hone_rounds_answer *out, hone_error *err);

#endif
