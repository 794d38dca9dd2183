// Asks the sandbox, and interprets an answer that does not come.
#include "tune/contest/trial.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/number.h"
#include "platforms/platform.h"
#include "registry/failure_kinds.h"
#include "registry/names.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "tune.trial";

// The limit for a slow reference. One that is not a function of an interpreter prepares nothing that could hang.
static const double open_seconds = 120;
// By how much a contest may exceed its time, so that a candidate that is running can finish.
static const double grace_seconds = 1;

// The limit for measuring the peaks, which takes a twentieth of a second.
static const double peaks_seconds = 10;

static uint64_t limit_ns(double seconds)
{
    return seconds > 0 ? (uint64_t)(seconds * 1e9) : 1;
}

static void describe_loss(const hone_outcome *outcome, char *out, size_t size)
{
    if (outcome->signal != 0)
        snprintf(out, size, "its process died of signal %d (%s)", outcome->signal, strsignal(outcome->signal));
    else
        snprintf(out, size, "it ended its process with exit code %d", outcome->exit_code);
}

// What the end of the worker shows about its candidate.
static hone_failure failure_of_loss(const hone_outcome *outcome, char *out, size_t size)
{
    const bool unaligned = outcome->signal == 0 && outcome->exit_code == HONE_EXIT_UNALIGNED;
    const bool racy = outcome->signal == 0 && outcome->exit_code == HONE_EXIT_RACY;
    const bool large = outcome->signal == 0 && outcome->exit_code == HONE_EXIT_STACK;
    if (unaligned)
        snprintf(out, size, "it crashes on arrays that are aligned no better than the call allows");
    else if (racy)
        snprintf(out, size, "right alone; in two threads at once it crashes");
    else if (large)
        snprintf(
            out, size, "it crashes in a thread with a stack of %d KiB, the least that is promised",
            HONE_LEAST_STACK >> 10);
    else
        describe_loss(outcome, out, size);
    return unaligned ? HONE_FAILURE_UNALIGNED : racy ? HONE_FAILURE_RACY : HONE_FAILURE_CRASH;
}

// What a missing answer shows about the only candidate that was asked for. False: nothing.
static bool tell_loss(const hone_outcome *outcome, double seconds, hone_failure *out_failure, char *out, size_t size)
{
    const bool is_late = outcome->kind == HONE_OUTCOME_TIMEOUT;
    if (is_late)
        hone_print(out, size, "no answer within %.3g s", seconds);
    else if (outcome->kind != HONE_OUTCOME_LOST)
        return false;
    *out_failure = is_late ? HONE_FAILURE_TIMEOUT : failure_of_loss(outcome, out, size);
    return true;
}

// Returns the error of the contest for a question that was not answered.
static hone_status fail_outcome(const hone_outcome *outcome, const char *what, double seconds, hone_error *err)
{
    char loss[128];
    switch (outcome->kind) {
    case HONE_OUTCOME_CANCELLED:
        return hone_fail(err, HONE_CANCELLED, where, "cancelled");
    case HONE_OUTCOME_MEMORY:
        return hone_fail_memory(err, where);
    case HONE_OUTCOME_TIMEOUT:
        return hone_fail(err, HONE_KERNEL_FAILED, where, "%s took longer than %.3g s", what, seconds);
    default:
        describe_loss(outcome, loss, sizeof loss);
        return hone_fail(err, HONE_KERNEL_FAILED, where, "%s: %s", what, loss);
    }
}

static hone_wire_reader reader_of(const hone_buffer *answer, hone_arena *arena)
{
    return (hone_wire_reader){answer->data, answer->size, 0, arena, false, false};
}

// Opening -------------------------------------------------------------------------------------------------------------

static const hone_tolerance *tolerance_of(const hone_question *question)
{
    const hone_tolerance *given = &question->options.tolerance;
    bool is_given = given->absolute != 0 || given->relative != 0 || given->scale != 0;
    return is_given ? given : &question->algorithm->algorithm.tolerance;
}

// Adds the kernel with whose results those of every other candidate must agree bit for bit.
static void put_standard(hone_trials *trials)
{
    const hone_contestant *standard = hone_field_default(trials->field);
    if (!hone_regime_is_stable(trials->question->options.regime) || standard == NULL) return;
    hone_message_put_kernel(&trials->message, standard->ref, trials->sandbox.by_value);
    hone_message_put_config(&trials->message, &standard->default_config);
}

static void put_open(hone_trials *trials)
{
    hone_buffer *message = &trials->message;
    hone_buffer_clear(message);
    hone_message_put_device(message, trials->question->environment->device);
    hone_message_put_algorithm(message, trials->question->algorithm, trials->sandbox.by_value);
    hone_message_put_call(message, trials->question->call);
    hone_wire_put_text(message, hone_call_key(trials->question->call));
    hone_wire_put_u8(message, (uint8_t)trials->question->options.regime);
    hone_wire_put_u64(message, trials->question->options.seed);
    hone_wire_put(message, tolerance_of(trials->question), sizeof(hone_tolerance));
    put_standard(trials);
}

static hone_status read_opened(hone_trials *trials, hone_error *err)
{
    hone_arena arena = {.allocator = trials->question->environment->allocator};
    hone_wire_reader reader = reader_of(&trials->answer, &arena);
    hone_message_get_opened(&reader, &trials->opened);
    hone_arena_destroy(&arena);
    hone_status status = hone_wire_check(&reader, err);
    if (status != HONE_OK || trials->opened.status == HONE_OK) return status;
    return hone_fail(err, trials->opened.status, where, "%s", trials->opened.message);
}

// Sends trials->message.
static hone_outcome ask(hone_trials *trials, uint8_t kind, const hone_limits *limits)
{
    const hone_worker_question query = {kind, &trials->message, *limits};
    return hone_sandbox_ask(&trials->sandbox, &query, trials->question->options.cancel, &trials->answer);
}

static hone_outcome ask_open(hone_trials *trials, const hone_limits *limits)
{
    put_open(trials);
    return ask(trials, HONE_MESSAGE_OPEN, limits);
}

// A function of an interpreter may never return. It gets the time to import its packages, and that of a few contests.
static double seconds_of_reference(const hone_trials *trials)
{
    const double least = 30, contests = 4;
    if (trials->open_seconds > 0) return trials->open_seconds;
    if (!hone_reference_is_interpreted(trials->question->algorithm)) return open_seconds;
    return fmin(open_seconds, fmax(least, contests * trials->question->options.seconds));
}

static hone_status open_call(hone_trials *trials, hone_error *err)
{
    const double seconds = seconds_of_reference(trials);
    const hone_limits limits = {limit_ns(seconds), limit_ns(seconds), 0};
    hone_status status = hone_sandbox_start(&trials->sandbox, err);
    if (status != HONE_OK) return status;
    hone_outcome outcome = ask_open(trials, &limits);
    // The system may have ended the process, which does not show that the reference fails: a second process decides.
    if (outcome.kind == HONE_OUTCOME_LOST) {
        status = hone_sandbox_start(&trials->sandbox, err);
        if (status != HONE_OK) return status;
        outcome = ask_open(trials, &limits);
    }
    if (outcome.kind != HONE_OUTCOME_ANSWERED) return fail_outcome(&outcome, "the reference", seconds, err);
    status = read_opened(trials, err);
    trials->was_opened[trials->sandbox.interpreted] = status == HONE_OK;
    return status;
}

// The floor -----------------------------------------------------------------------------------------------------------

// Measures the peaks in a process in which no candidate has run: before the first candidate, and again when a candidate
// is below the floor. The peaks of the machine are the highest ever seen. If the worker is lost meanwhile, there are no
// peaks.
//   bytes  of the call
static hone_status measure_peaks(hone_trials *trials, double bytes, hone_error *err)
{
    const hone_limits limits = {limit_ns(peaks_seconds), limit_ns(peaks_seconds), 0};
    const uint64_t start = hone_trials_now(trials);
    hone_buffer_clear(&trials->message);
    hone_wire_put_f64(&trials->message, bytes);
    const hone_outcome outcome = ask(trials, HONE_MESSAGE_PEAKS, &limits);
    trials->spent.prepare_ns += (double)(hone_trials_now(trials) - start);
    if (outcome.kind == HONE_OUTCOME_CANCELLED || outcome.kind == HONE_OUTCOME_MEMORY)
        return fail_outcome(&outcome, "the processor's peaks", peaks_seconds, err);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) return HONE_OK;
    hone_peaks now;
    hone_arena arena = {.allocator = trials->question->environment->allocator};
    hone_wire_reader reader = reader_of(&trials->answer, &arena);
    hone_message_get_peaks(&reader, &now);
    hone_arena_destroy(&arena);
    hone_peaks_add(&trials->peaks, &now);
    hone_workers_keep_peaks(trials->question->environment->workers, &trials->peaks);
    return HONE_OK;
}

static hone_status find_floor(hone_trials *trials, bool again, hone_error *err)
{
    const hone_tune_environment *environment = trials->question->environment;
    const double bytes = hone_floor_cost(&trials->question->algorithm->algorithm, trials->question->call).bytes;
    hone_status status = HONE_OK;
    if (!hone_floor_is_measured_on(environment->device))
        trials->peaks = hone_peaks_of_gpu(environment->device);
    else if (again || !hone_workers_peaks(environment->workers, &trials->peaks) || trials->peaks.reach < bytes)
        status = measure_peaks(trials, bytes, err);
    if (status != HONE_OK) return status;
    trials->floor = hone_floor_of(
        &trials->question->algorithm->algorithm, trials->question->call, environment->device, &trials->peaks);
    trials->has_floor = true;
    return HONE_OK;
}

// A candidate below the floor is rejected only if the peaks, measured again, confirm the floor.
static hone_status is_impossible(hone_trials *trials, double time_ns, bool *out, hone_error *err)
{
    enum { MOST_LOOKS = 3 };
    hone_status status = HONE_OK;
    if (hone_floor_is_broken(&trials->floor, time_ns) && trials->floor.is_measured && trials->looks < MOST_LOOKS) {
        trials->looks++;
        hone_sandbox_drop(&trials->sandbox);
        status = hone_trials_open(trials, err);
        if (status == HONE_OK) status = find_floor(trials, true, err);
    }
    *out = hone_floor_is_broken(&trials->floor, time_ns);
    return status;
}

static hone_status doubt(hone_trials *trials, hone_trial *trial, hone_error *err)
{
    bool impossible = false;
    if (trial->failure != HONE_FAILURE_NONE || trial->refused || trial->same) return HONE_OK;
    hone_status status = is_impossible(trials, trial->low_ns, &impossible, err);
    if (status != HONE_OK || !impossible) return status;
    trial->failure = HONE_FAILURE_IMPOSSIBLE;
    hone_floor_say_broken(&trials->floor, trial->low_ns, trial->reason, sizeof trial->reason);
    return HONE_OK;
}

// Checks each finalist of a block against the floor; the first one that is below it fails.
static hone_status doubt_rounds(hone_trials *trials, hone_rounds_answer *answer, hone_error *err)
{
    for (uint32_t i = 0; i < answer->count && answer->rounds > 0 && answer->failure == HONE_FAILURE_NONE; i++) {
        double times[HONE_MAX_ROUNDS];
        bool impossible = false;
        memcpy(times, answer->samples[i], answer->rounds * sizeof times[0]);
        const double low_ns = hone_median(times, answer->rounds).low;
        hone_status status = is_impossible(trials, low_ns, &impossible, err);
        if (status != HONE_OK) return status;
        if (!impossible) continue;
        answer->failure = HONE_FAILURE_IMPOSSIBLE;
        answer->failed = i;
        hone_floor_say_broken(&trials->floor, low_ns, answer->reason, sizeof answer->reason);
    }
    if (answer->failure != HONE_FAILURE_NONE) answer->count = answer->rounds = 0;
    return HONE_OK;
}

hone_status hone_trials_doubt(hone_trials *trials, const hone_trial *trial, bool *out, hone_error *err)
{
    *out = false;
    if (trials->measurer != &hone_machine_measurer || trial->failure != HONE_FAILURE_NONE) return HONE_OK;
    hone_status status = trials->has_floor ? HONE_OK : hone_trials_open(trials, err);
    return status == HONE_OK ? is_impossible(trials, trial->low_ns, out, err) : status;
}

hone_status hone_trials_open(hone_trials *trials, hone_error *err)
{
    bool *was_opened = &trials->was_opened[trials->sandbox.interpreted];
    if (*was_opened && hone_sandbox_is_warm(&trials->sandbox)) return HONE_OK;
    *was_opened = false;
    const uint64_t start = hone_trials_now(trials);
    hone_status status = open_call(trials, err);
    trials->spent.prepare_ns += (double)(hone_trials_now(trials) - start);
    if (status != HONE_OK || trials->has_floor) return status;
    status = find_floor(trials, false, err);
    // A worker that was lost meanwhile is started once more, without a floor.
    return status == HONE_OK ? hone_trials_open(trials, err) : status;
}

// Trying --------------------------------------------------------------------------------------------------------------

// How many threads are ready per processor, as an average over the last minute: everything takes as many times as long.
// At least 1.
static double crowding(void)
{
    hone_os_cpu cpu;
    const double load = hone_os_load();
    if (load <= 1) return 1;
    hone_os_cpu_read(&cpu);
    return load > cpu.threads ? load / cpu.threads : 1;
}

// The share of the contest's seconds for the samples of one candidate beyond two. Candidates that may win get more
// samples in the finals.
static const double samples_share = 0.05;

// The limit of a run in seconds. A run compiles nothing, so it need not take ten seconds when the best takes a
// millisecond. While compilers kept six threads ready for each processor, verifying a right kernel took longer than the
// second that it had.
static double run_seconds(double limit, double best_ns)
{
    double enough = (1 + 1e-9 * 1000 * best_ns) * crowding();
    return best_ns > 0 && enough < limit ? enough : limit;
}

static const double compile_seconds = 60;
// The seconds that the first candidate may take to be ready in a contest that is shorter, or over.
static const double least_ready_seconds = 10;

static double candidate_seconds(const hone_question *question, const hone_kernel_ref *kernel, double best_ns)
{
    double limit = question->options.candidate_seconds;
    // On a machine that is busy with other work a compiler takes many times its usual second.
    if (kernel->kernel.code != NULL && !question->candidate_seconds_given) limit = compile_seconds;
    return kernel->kernel.prepare != NULL || kernel->kernel.code != NULL ? limit : run_seconds(limit, best_ns);
}

static double seconds_left(const hone_trials *trials)
{
    uint64_t now = hone_trials_now(trials);
    return now < trials->end_ns ? (double)(trials->end_ns - now) * 1e-9 : 0;
}

// The seconds that the contest still has for one candidate.
static double time_for(const hone_trials *trials, const hone_try *what)
{
    double left = seconds_left(trials) + grace_seconds;
    return what->first_seconds > 0 && what->first_seconds < left ? what->first_seconds : left;
}

static hone_status read_trial(hone_trials *trials, hone_trial *out, hone_error *err)
{
    hone_arena arena = {.allocator = trials->question->environment->allocator};
    hone_wire_reader reader = reader_of(&trials->answer, &arena);
    hone_message_get_trial(&reader, out);
    hone_arena_destroy(&arena);
    return hone_wire_check(&reader, err);
}

// One attempt ---------------------------------------------------------------------------------------------------------

// Appended after a candidate: which other scalars it is verified with.
static void put_scalars(hone_trials *trials, const hone_kernel_ref *kernel, const hone_config *config)
{
    hone_wire_put_u8(&trials->message, hone_other_scalars_for(&trials->others, trials->question, kernel, config));
}

static void put_try(hone_trials *trials, const hone_try *what, const hone_stopping *stopping)
{
    hone_buffer_clear(&trials->message);
    hone_message_put_kernel(&trials->message, what->kernel, trials->sandbox.by_value);
    hone_message_put_config(&trials->message, what->config);
    put_scalars(trials, what->kernel, what->config);
    hone_message_put_stopping(&trials->message, stopping);
    hone_wire_put_u8(&trials->message, (uint8_t)what->sort);
    hone_wire_put_f64(&trials->message, trials->proofs_ns);
    hone_wire_put_f64(&trials->message, what->looks_seconds * 1e9);
    hone_wire_put_f64(&trials->message, what->repeats_seconds * 1e9);
    hone_wire_put_u8(&trials->message, what->kernel->builtin);
    hone_message_put_digests(&trials->message, what->digests, what->digest_count);
}

// A kernel that was wrong may have written into memory that is not checked, which would make the next candidate wrong.
// So the process is dropped: a kernel is rejected only by a process in which no other was wrong. Kernels of the library
// write only into their own arrays, which the library's tests verify.
static bool leaves_doubt(const hone_kernel_ref *kernel, hone_failure failure)
{
    return !kernel->builtin && hone_failure_kind_of(failure)->is_wrong;
}

static hone_status take_answer(hone_trials *trials, const hone_try *what, hone_trial *out, hone_error *err)
{
    hone_status status = read_trial(trials, out, err);
    if (status != HONE_OK) return status;
    trials->sandbox.now.served++;
    if (out->spoiled || out->retired || leaves_doubt(what->kernel, out->failure)) hone_sandbox_drop(&trials->sandbox);
    return HONE_OK;
}

enum { PHASES_OF_PYTHON = 3 }; // phases that may each take a candidate's whole limit

// Compilers of functions of Python compile during a run: torch.compile does so in the first run of each shape, layout
// and alignment. So each phase of such a function may take the whole limit.
static hone_limits limits_of(const hone_trials *trials, const hone_kernel_ref *kernel, double limit, double best_ns)
{
    const double least = 2, part = 0.5;
    const uint64_t all_ns = limit_ns(limit);
    if (hone_kernel_is_interpreted(kernel)) return (hone_limits){all_ns, all_ns, PHASES_OF_PYTHON * all_ns};
    // Before any candidate has passed: a candidate that hangs leaves half of the remaining time to the others, and on a
    // busy machine none of it.
    const double left = seconds_left(trials), half = fmax(least, fmin(part * left * crowding(), left)),
                 next = best_ns > 0 ? run_seconds(limit, best_ns) : fmin(limit, half);
    return (hone_limits){all_ns, limit_ns(next), 0};
}

static bool is_timed(const hone_try *what)
{
    return what->sort == HONE_TRY_RACES || what->sort == HONE_TRY_AGAIN;
}

static hone_status ask_once(
    hone_trials *trials, const hone_try *what, const hone_stopping *by, hone_trial *out, bool *out_cut, hone_error *err)
{
    double limit = by->limit_ns * 1e-9, left = time_for(trials, what);
    bool clamped = left < limit && what->may_be_cut;
    if (clamped) limit = left;
    // Before any candidate has passed, one that takes long to be ready may be the only one that works.
    if (!clamped && is_timed(what)) limit = fmin(limit, fmax(left, least_ready_seconds));
    // The sampling ends before the process is ended.
    const double race_ns = is_timed(what) ? limit * 1e9 / 2 : 1;
    const hone_stopping stopping = {
        .best_ns = by->best_ns,
        .noise = by->noise,
        .limit_ns = race_ns,
        .samples_ns = samples_share * 1e9 * trials->question->options.seconds,
        .is_shared = by->is_shared,
        .is_patient = by->is_patient};
    const hone_limits limits = limits_of(trials, what->kernel, limit, by->best_ns);
    const uint64_t start = hone_trials_now(trials);
    put_try(trials, what, &stopping);
    hone_outcome outcome = ask(trials, HONE_MESSAGE_TRY, &limits);
    if (outcome.kind == HONE_OUTCOME_ANSWERED) return take_answer(trials, what, out, err);
    // If the first limit is not over, a run of the candidate itself took too long.
    const bool is_over = hone_trials_now(trials) - start >= limits.first_ns;
    *out_cut = clamped && is_over && outcome.kind == HONE_OUTCOME_TIMEOUT;
    const double waited = is_over ? limit : (double)limits.next_ns * 1e-9;
    if (tell_loss(&outcome, waited, &out->failure, out->reason, sizeof out->reason)) return HONE_OK;
    return fail_outcome(&outcome, what->kernel->kernel.name, waited, err);
}

// Whether an earlier candidate in the same process may have caused the failure. A wrong answer is checked again in a
// new process only if that is opened quickly, and a missing answer only if the limit was short.
static bool may_be_anothers(const hone_opened *opened, const hone_trial *trial, double limit_seconds)
{
    const double quick_ns = 50e6, soon_seconds = 1;
    switch (hone_failure_kind_of(trial->failure)->retry) {
    case HONE_RETRY_ALWAYS:
        return true;
    case HONE_RETRY_AFTER_SHORT_LIMIT:
        return limit_seconds <= soon_seconds;
    case HONE_RETRY_IF_QUICK:
        return opened->reference_ns > 0 && opened->reference_ns < quick_ns;
    case HONE_RETRY_NEVER:
        break;
    }
    return false;
}

static hone_status attempt_here(
    hone_trials *trials, const hone_try *what, const hone_stopping *by, hone_trial *out, bool *out_cut, hone_error *err)
{
    hone_status status = HONE_OK;
    bool again = true;
    hone_sandbox_turn(&trials->sandbox, hone_kernel_is_interpreted(what->kernel));
    while (status == HONE_OK && again) {
        memset(out, 0, sizeof *out);
        status = hone_trials_open(trials, err);
        if (status != HONE_OK) return status;
        bool alone = trials->sandbox.now.served == 0 || trials->sandbox.kind == HONE_SANDBOX_HERE;
        status = ask_once(trials, what, by, out, out_cut, err);
        if (status == HONE_OK && !*out_cut) status = doubt(trials, out, err);
        again = !alone && !what->stays && may_be_anothers(&trials->opened, out, by->limit_ns * 1e-9);
        if (again) hone_sandbox_drop(&trials->sandbox);
    }
    return status;
}

// Preparing ahead -----------------------------------------------------------------------------------------------------

static hone_status prepare_here(
    hone_trials *trials,
    const hone_kernel_ref *kernel,
    const hone_config *configs,
    uint32_t count,
    bool *out_answered,
    hone_error *err)
{
    hone_sandbox_turn(&trials->sandbox, hone_kernel_is_interpreted(kernel));
    hone_status status = hone_trials_open(trials, err);
    if (status != HONE_OK) return status;
    hone_buffer *message = &trials->message;
    hone_buffer_clear(message);
    hone_message_put_kernel(message, kernel, trials->sandbox.by_value);
    hone_wire_put_u32(message, count);
    for (uint32_t i = 0; i < count; i++)
        hone_message_put_config(message, &configs[i]);
    double seconds = candidate_seconds(trials->question, kernel, 0), left = seconds_left(trials) + grace_seconds;
    uint64_t limit = limit_ns(left < seconds ? left : seconds);
    const uint64_t start = hone_trials_now(trials);
    hone_outcome outcome = ask(trials, HONE_MESSAGE_PREPARE, &(hone_limits){limit, limit, 0});
    trials->spent.prepare_ns += (double)(hone_trials_now(trials) - start);
    *out_answered = outcome.kind == HONE_OUTCOME_ANSWERED;
    if (outcome.kind == HONE_OUTCOME_CANCELLED || outcome.kind == HONE_OUTCOME_MEMORY)
        return fail_outcome(&outcome, "preparing", seconds, err);
    return HONE_OK;
}

// Confirming ----------------------------------------------------------------------------------------------------------

// The longest that one phase of the finals can take without hanging. The first phase prepares all finalists, perhaps in
// a new process, which takes as long as preparing took when each was tried.
static hone_limits limits_of_block(const hone_trials *trials, const hone_block *block)
{
    const double runs = 200, references = 20, others = 3, prepared = 3, late_share = 0.3;
    double run = 0, prepare = 0;
    bool interpreted = false;
    for (uint32_t i = 0; i < block->count; i++) {
        run += block->finalists[i]->trial.time_ns * 1e-9;
        prepare += block->finalists[i]->trial.spent.prepare_ns * 1e-9;
        interpreted = interpreted || hone_kernel_is_interpreted(block->kernels[i]);
    }
    const double all =
        2 * block->seconds + trials->question->options.candidate_seconds + 10 * run + prepared * prepare * crowding();
    // All finalists have run before. A finalist that waits for itself in two threads, for example, is waited for no
    // longer than its checks can take, and on a busy machine as long as the contest lasts.
    const double looks = others + runs * run + references * 1e-9 * trials->opened.reference_ns,
                 left = fmax(seconds_left(trials), late_share * trials->question->options.seconds),
                 busy = fmax(looks, fmin(looks * crowding(), left)),
                 next = busy + (block->rounds > 1 ? 2 * block->seconds : 0);
    return (hone_limits){limit_ns(all), limit_ns(interpreted ? all : fmin(all, next)), 0};
}

static hone_status read_rounds(hone_trials *trials, hone_rounds_answer *out, hone_error *err)
{
    hone_arena arena = {.allocator = trials->question->environment->allocator};
    hone_wire_reader reader = reader_of(&trials->answer, &arena);
    hone_message_get_rounds(&reader, out);
    hone_arena_destroy(&arena);
    return hone_wire_check(&reader, err);
}

static void put_block(hone_trials *trials, const hone_block *block)
{
    hone_buffer *message = &trials->message;
    hone_buffer_clear(message);
    hone_wire_put_u32(message, block->count);
    for (uint32_t i = 0; i < block->count; i++) {
        hone_message_put_kernel(message, block->kernels[i], trials->sandbox.by_value);
        hone_message_put_config(message, &block->finalists[i]->config);
        put_scalars(trials, block->kernels[i], &block->finalists[i]->config);
        hone_wire_put_u8(message, block->kernels[i]->builtin);
        hone_wire_put_u32(message, block->retakes[i]);
    }
    hone_wire_put_u32(message, block->rounds);
    hone_wire_put_u64(message, block->seed);
    hone_wire_put_f64(message, block->seconds);
    hone_wire_put_u8(message, block->verifies);
    hone_wire_put_f64(message, block->looks_seconds * 1e9);
    hone_wire_put_f64(message, block->repeats_seconds * 1e9);
    hone_wire_put_f64(message, block->burst_ns);
}

static hone_status run_rounds_here(
    hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err)
{
    bool interpreted = false;
    for (uint32_t i = 0; i < block->count; i++)
        interpreted = interpreted || hone_kernel_is_interpreted(block->kernels[i]);
    hone_sandbox_turn(&trials->sandbox, interpreted);
    hone_status status = hone_trials_open(trials, err);
    if (status != HONE_OK) return status;
    put_block(trials, block);
    const hone_limits limits = limits_of_block(trials, block);
    const uint64_t start = hone_trials_now(trials);
    hone_outcome outcome = ask(trials, HONE_MESSAGE_ROUNDS, &limits);
    const bool is_first = hone_trials_now(trials) - start < limits.next_ns;
    const double limit = 1e-9 * (double)(is_first ? limits.first_ns : limits.next_ns);
    if (block->count == 1 && tell_loss(&outcome, limit, &out->failure, out->reason, sizeof out->reason)) return HONE_OK;
    if (outcome.kind != HONE_OUTCOME_ANSWERED) return fail_outcome(&outcome, "a finalist", limit, err);
    status = read_rounds(trials, out, err);
    if (status != HONE_OK) return status;
    trials->sandbox.now.served++;
    bool is_doubtful = out->spoiled || out->retired;
    for (uint32_t i = 0; i < block->count; i++)
        is_doubtful = is_doubtful || leaves_doubt(block->kernels[i], out->failure);
    if (is_doubtful) hone_sandbox_drop(&trials->sandbox);
    return doubt_rounds(trials, out, err);
}

// The measurer --------------------------------------------------------------------------------------------------------

static uint64_t now_here(const hone_trials *trials)
{
    (void)trials;
    return hone_os_now_ns();
}

static void pause_here(hone_trials *trials, uint64_t ns)
{
    (void)trials;
    hone_os_sleep_ns(ns);
}

const hone_measurer hone_machine_measurer = {attempt_here, run_rounds_here, prepare_here, now_here, pause_here};

// The trials ----------------------------------------------------------------------------------------------------------

bool hone_kernel_is_interpreted(const hone_kernel_ref *kernel)
{
    return hone_platform_facts_of(kernel->kernel.platform)->is_interpreted;
}

bool hone_reference_is_interpreted(const hone_algorithm_entry *algorithm)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(algorithm, &count);
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->kernel.is_reference && hone_kernel_is_interpreted(kernels[i])) return true;
    return false;
}

void hone_trials_init(hone_trials *trials, const hone_question *question, const hone_field *field)
{
    *trials =
        (hone_trials){.question = question, .field = field, .measurer = &hone_machine_measurer, .proofs_ns = INFINITY};
    hone_buffer_init(&trials->message, question->environment->allocator);
    hone_buffer_init(&trials->answer, question->environment->allocator);
}

void hone_trials_deinit(hone_trials *trials)
{
    if (trials->has_sandbox) hone_sandbox_deinit(&trials->sandbox);
    hone_other_scalars_deinit(&trials->others);
    hone_buffer_deinit(&trials->message);
    hone_buffer_deinit(&trials->answer);
}

uint64_t hone_trials_now(const hone_trials *trials)
{
    return trials->measurer->now_ns(trials);
}

double hone_trials_elapsed_seconds(const hone_trials *trials)
{
    return (double)(hone_trials_now(trials) - trials->started_ns) * 1e-9;
}

uint64_t hone_trials_until(const hone_trials *trials, double share)
{
    const double least_share = 0.1, seconds_ns = 1e9 * fmin(trials->question->options.seconds, 3e7);
    const uint64_t now = hone_trials_now(trials), wanted = now + (uint64_t)(share * seconds_ns),
                   most = trials->started_ns + (uint64_t)seconds_ns, least = now + (uint64_t)(least_share * seconds_ns);
    if (now >= most || wanted <= most) return wanted;
    return most > least ? most : least;
}

void hone_trials_pause(hone_trials *trials, uint64_t ns)
{
    trials->measurer->pause(trials, ns);
}

static void add_spent(hone_spent *all, const hone_spent *one)
{
    all->prepare_ns += one->prepare_ns;
    all->verify_ns += one->verify_ns;
    all->run_ns += one->run_ns;
}

double hone_trials_disturbed(const hone_trials *trials)
{
    return trials->taken > 0 ? (double)trials->disturbed / (double)trials->taken : 0;
}

bool hone_trials_are_disturbed(const hone_trials *trials)
{
    const double busy_share = 0.1;
    return hone_trials_disturbed(trials) > busy_share;
}

static void count_sample(hone_trials *trials, unsigned marks)
{
    trials->taken++;
    trials->disturbed += marks != 0;
    trials->marks |= marks;
}

static void count_rounds(hone_trials *trials, const hone_rounds_answer *answer)
{
    for (uint32_t i = 0; i < answer->count; i++)
        for (uint32_t r = 0; r < answer->rounds; r++)
            count_sample(trials, answer->marks[i][r]);
}

void hone_trials_fill_spent(const hone_trials *trials, hone_evidence *evidence)
{
    const hone_spent *spent = &trials->spent;
    evidence->seconds = hone_trials_elapsed_seconds(trials);
    evidence->prepare_seconds = spent->prepare_ns * 1e-9;
    evidence->verify_seconds = spent->verify_ns * 1e-9;
    evidence->run_seconds = spent->run_ns * 1e-9;
    double known = evidence->prepare_seconds + evidence->verify_seconds + evidence->run_seconds;
    evidence->wait_seconds = evidence->seconds > known ? evidence->seconds - known : 0;
}

hone_status hone_trials_try(hone_trials *trials, const hone_try *what, hone_trial *out, bool *out_cut, hone_error *err)
{
    hone_assert(what->kernel != NULL && what->config != NULL && what->best_ns >= 0);
    double limit = candidate_seconds(trials->question, what->kernel, what->best_ns);
    const hone_stopping stopping = {
        .best_ns = what->best_ns,
        .noise = hone_noise_level(&trials->noise),
        .limit_ns = limit * 1e9,
        .is_shared = what->is_shared,
        .is_patient = what->is_patient};
    memset(out, 0, sizeof *out);
    *out_cut = false;
    hone_status status = trials->measurer->attempt(trials, what, &stopping, out, out_cut, err);
    if (status == HONE_OK && !*out_cut && !out->same) hone_noise_add(&trials->noise, out);
    add_spent(&trials->spent, &out->spent);
    trials->proofs_ns = fmax(trials->proofs_ns - out->proof_ns, 0);
    for (uint32_t i = 0; i < out->taken; i++)
        count_sample(trials, out->kept_marks[i]);
    return status;
}

hone_status hone_trials_run_rounds(
    hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err)
{
    hone_assert(block->count > 0 && block->count <= HONE_MAX_TOGETHER && block->rounds <= HONE_MAX_ROUNDS);
    memset(out, 0, sizeof *out);
    hone_status status = trials->measurer->run_rounds(trials, block, out, err);
    count_rounds(trials, out);
    add_spent(&trials->spent, &out->spent);
    return status;
}

hone_status hone_trials_confirm(
    hone_trials *trials,
    const hone_kernel_ref *kernel,
    hone_candidate *candidate,
    hone_confirming *how,
    hone_error *err)
{
    hone_rounds_answer answer;
    hone_trial *trial = &candidate->trial;
    const hone_block block = {
        .kernels = {kernel},
        .finalists = {candidate},
        .count = 1,
        .rounds = 1,
        .verifies = true,
        .seconds = how->seconds,
        .looks_seconds = how->looks_seconds,
        .repeats_seconds = how->repeats_seconds};
    hone_status status = hone_trials_run_rounds(trials, &block, &answer, err);
    if (status != HONE_OK) return status;
    how->left_out = answer.left_out;
    how->is_brief = answer.is_brief;
    trial->failure = answer.failure;
    trial->witnessed = answer.witnessed;
    if (answer.failure != HONE_FAILURE_NONE)
        hone_words_copy(trial->reason, sizeof trial->reason, answer.reason);
    else if (answer.max_error[0] > trial->max_error)
        trial->max_error = answer.max_error[0];
    return HONE_OK;
}
