// Does a candidate take as long when all of its inputs have changed as when none has? If not, it keeps results.
//
// The probe changes few elements between runs. A kernel that keeps a copy of each row then computes few rows, and one
// that checks which of its results were overwritten writes few. So single runs are timed alternately after all inputs
// of floats and all results were renewed, each number changed in its last bits, and after the same memory was written
// with what it held. An honest kernel takes equally long, and finds the caches in the same state. The inputs are closed
// while it runs, as they are when it is timed. Which of the two comes first is drawn at random, and after a disturbed
// pair the caller rests before each run: a thread that has just written megabytes has used up its slice of a busy
// processor, and the same one of the two was preempted again and again. A kernel that keeps what has come several times
// takes the time of new contents also for the second run of a pair: if that is more than the time of its samples, runs
// without a change come before each timed run.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <string.h>

enum { INNOCENT = 2, PATIENT = 12, MOST = 32, INNOCENT_DISTURBED = 3 };

// Ratio of the times from which a pair is suspicious: a kernel that keeps a fifth of what it computes takes 1.25 times
// as long on new contents.
static const double suspect = 1.25, suspect_disturbed = 4;
static const double least_gain_ns = 150;
// For runs longer than long_ns one innocent pair suffices, and after most_ns disturbed pairs count: a pass over large
// arrays takes long, and is seldom without other work beside it.
static const double long_ns = 200e3, most_ns = 20e6;
// A candidate that takes longer than in its samples, with changes and without, keeps what has come again and again.
// Then runs without a change come first: as many as take settling_ns, within these limits.
enum { MOST_SETTLING = 16, LEAST_SETTLING = 4 };
static const double settling_ns = 50e6;
// How many bytes of all arrays together are renewed, and up to how many bytes of arrays a part of each is renewed.
static const size_t most_renewed = 64u << 20, most_bytes = 256u << 20;

static const char where[] = "tune.renewal";

// What a run finds: everything as the last run left it, other inputs, or also overwritten results.
typedef enum renewal_mode { SAME, NEW_INPUTS, NEW_ALL, MODES } renewal_mode;

typedef struct renewal {
    hone_runner *runner;
    renewal_mode mode;
    bool rests;                   // before each run
    uint32_t settling;            // untimed runs before each timed one
    char *low[HONE_MAX_VALUES];   // the renewed part of each array
    size_t size[HONE_MAX_VALUES]; // its bytes
    char *saved[HONE_MAX_VALUES];
} renewal;

// Writing -------------------------------------------------------------------------------------------------------------

// Written so that a compiler can vectorise it. In SAME mode low is 0, and everything else is the same.
#define RENEW(type)                                                                                                    \
    static void renew_##type(type *data, size_t count, type low, type exponent, uint32_t seed)                         \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint32_t hash = ((uint32_t)i ^ seed) * UINT32_C(2654435761);                                               \
            hash = (hash ^ hash >> 15) * UINT32_C(0x85ebca6b);                                                         \
            const type bits = data[i], scale = bits & exponent;                                                        \
            const bool is_ordinary = scale != 0 && scale != exponent;                                                  \
            data[i] = (type)(bits ^ (is_ordinary ? (type)(hash >> 16) & low : 0));                                     \
        }                                                                                                              \
    }
RENEW(uint16_t)
RENEW(uint32_t)
RENEW(uint64_t)

static bool is_renewed(const hone_buffers *buffers, size_t index)
{
    uint64_t low, exponent;
    const hone_tensor *tensor = &buffers->sets[0].fenced[index].tensor;
    return hone_buffers_is_input(buffers, index) && hone_low_bits(tensor->dtype, &low, &exponent) &&
           hone_tensor_is_row_major(tensor);
}

static void renew_input(hone_dtype dtype, void *data, size_t size, bool changes, uint32_t seed)
{
    uint64_t low = 0, exponent = 0;
    const uint32_t bits = dtype.bits;
    const size_t count = size / (bits / 8);
    (void)hone_low_bits(dtype, &low, &exponent);
    if (!changes) low = 0;
    if (bits == 16) renew_uint16_t(data, count, (uint16_t)low, (uint16_t)exponent, seed);
    if (bits == 32) renew_uint32_t(data, count, (uint32_t)low, (uint32_t)exponent, seed);
    if (bits == 64) renew_uint64_t(data, count, low, exponent, seed);
}

static void overwrite_result(char *low, size_t size, bool changes)
{
    const unsigned char keep = changes ? 0 : 0xff, poison = changes ? HONE_POISON_BYTE : 0;
    for (size_t i = 0; i < size; i++)
        low[i] = (char)(((unsigned char)low[i] & keep) | poison);
}

// Chooses what is renewed: all of each array, or the same share of each at a random place.
static void choose_parts(renewal *r)
{
    const size_t grain = 16;
    hone_session *session = r->runner->session;
    const size_t bytes = hone_buffers_bytes(&session->buffers);
    const double share = (double)most_renewed / (double)bytes;
    for (size_t i = 0; i < session->buffers.count; i++) {
        const hone_fenced *fenced = &session->buffers.sets[0].fenced[i];
        r->low[i] = fenced->low;
        r->size[i] = fenced->span;
        if (bytes <= most_renewed || fenced->span < most_renewed / grain) continue;
        r->size[i] = (size_t)(share * (double)fenced->span) / grain * grain;
        r->low[i] += hone_random_next(&session->random) % ((fenced->span - r->size[i]) / grain + 1) * grain;
    }
}

static hone_status renew(const renewal *r, hone_error *err)
{
    hone_session *session = r->runner->session;
    hone_status status = HONE_OK;
    for (size_t i = 0; i < session->buffers.count && status == HONE_OK; i++) {
        hone_fenced *fenced = &session->buffers.sets[0].fenced[i];
        if (hone_buffers_is_result(&session->buffers, i)) overwrite_result(r->low[i], r->size[i], r->mode == NEW_ALL);
        if (!is_renewed(&session->buffers, i)) continue;
        status = hone_buffers_open_input(fenced, err);
        if (status != HONE_OK) break;
        const uint32_t seed = (uint32_t)hone_random_next(&session->random);
        renew_input(fenced->tensor.dtype, r->low[i], r->size[i], r->mode != SAME, seed);
        hone_buffers_close_input(&session->buffers, fenced);
    }
    return status;
}

// Times ---------------------------------------------------------------------------------------------------------------

static hone_failure time_run(hone_runner *runner, double *out_ns, hone_error *err)
{
    const uint64_t start = hone_os_now_ns();
    const hone_status status = hone_runner_run_on(runner, 0);
    *out_ns = (double)(hone_os_now_ns() - start);
    runner->run_ns += *out_ns;
    return status == HONE_OK ? HONE_FAILURE_NONE : hone_runner_fail(runner, status, err);
}

static hone_failure take(renewal *r, renewal_mode mode, hone_sample *out, hone_error *err)
{
    r->mode = mode;
    for (uint32_t i = 0; i < r->settling; i++)
        if (hone_runner_run_on(r->runner, 0) != HONE_OK) return HONE_FAILURE_RUN;
    if (renew(r, err) != HONE_OK) return HONE_FAILURE_RUN;
    if (r->rests) hone_runner_rest(r->runner);
    return hone_runner_sample_of(r->runner, time_run, out, err);
}

static hone_failure take_pair(renewal *r, renewal_mode mode, hone_sample *fresh, hone_sample *same, hone_error *err)
{
    const bool is_fresh_first = hone_random_next(&r->runner->session->random) % 2 == 0;
    hone_failure failure = take(r, is_fresh_first ? mode : SAME, is_fresh_first ? fresh : same, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    return take(r, is_fresh_first ? SAME : mode, is_fresh_first ? same : fresh, err);
}

static bool is_suspect(double new_ns, double same_ns, bool disturbed)
{
    return new_ns > (disturbed ? suspect_disturbed : suspect) * same_ns && new_ns - same_ns > least_gain_ns;
}

// The result of several pairs of runs, each with one run on new contents and one on unchanged contents.
typedef struct tally {
    double new_ns, same_ns; // the least times of each
    int innocent, guilty;
    bool disturbed; // a pair that counted was disturbed
} tally;

static hone_failure count_pairs(renewal *r, renewal_mode mode, tally *t, bool *out_guilty, hone_error *err)
{
    const uint64_t begin_ns = hone_os_now_ns();
    int innocent = INNOCENT, guilty = MOST;
    *t = (tally){.new_ns = INFINITY, .same_ns = INFINITY};
    r->rests = false;
    hone_status status = hone_runner_run_on(r->runner, 0); // so that SAME repeats a run on these inputs
    if (status != HONE_OK) return hone_runner_fail(r->runner, status, err);
    for (int pair = 0; pair < MOST && t->innocent < innocent && t->guilty < guilty; pair++) {
        hone_sample fresh, same;
        hone_failure failure = take_pair(r, mode, &fresh, &same, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        const bool disturbed = fresh.marks != 0 || same.marks != 0;
        const double fresh_ns = hone_sample_corrected(&fresh), same_ns = hone_sample_corrected(&same);
        t->new_ns = fmin(t->new_ns, fresh_ns);
        t->same_ns = fmin(t->same_ns, same_ns);
        const bool is_long = t->new_ns > long_ns;
        if (is_long) innocent = 1;
        r->rests = r->rests || disturbed;
        const bool is_late = (double)(hone_os_now_ns() - begin_ns) > most_ns;
        if (disturbed && pair < PATIENT && !is_late) continue;
        const bool suspects = is_suspect(fresh_ns, same_ns, disturbed);
        // A run that returns a kept result takes as long as one that computes when it is preempted. So a disturbed pair
        // proves nothing while the least times speak against the candidate, and several are needed where its samples do.
        if (disturbed && !suspects && is_suspect(t->new_ns, t->same_ns, true)) continue;
        if (disturbed && r->settling > 0) innocent = INNOCENT_DISTURBED;
        t->innocent += !suspects;
        t->guilty += suspects;
        t->disturbed = t->disturbed || disturbed;
        guilty = (int)hone_stopping_guilty_pairs(t->new_ns);
    }
    *out_guilty = t->guilty >= guilty && is_suspect(t->new_ns, t->same_ns, t->disturbed);
    return HONE_FAILURE_NONE;
}

static hone_failure judge(renewal *r, hone_error *err)
{
    tally all, inputs;
    bool is_guilty = false, unused;
    const double race_ns = r->runner->race_ns;
    hone_failure failure = count_pairs(r, NEW_ALL, &all, &is_guilty, err);
    if (failure == HONE_FAILURE_NONE && !is_guilty && race_ns > 0 && is_suspect(all.new_ns, race_ns, false)) {
        r->settling = hone_runner_settling(all.new_ns);
        failure = count_pairs(r, NEW_ALL, &all, &is_guilty, err);
    }
    if (failure != HONE_FAILURE_NONE || !is_guilty) return failure;
    failure = count_pairs(r, NEW_INPUTS, &inputs, &unused, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    const bool by_inputs = is_suspect(inputs.new_ns, all.same_ns, inputs.disturbed);
    hone_fail(
        err, HONE_KERNEL_FAILED, where, "takes %.4g ns where all is as its last run left it, and %.4g ns where %s",
        all.same_ns, by_inputs ? inputs.new_ns : all.new_ns,
        by_inputs ? "all inputs are new" : "its results were overwritten");
    return by_inputs ? HONE_FAILURE_REPLAYED : HONE_FAILURE_STALE;
}

uint32_t hone_runner_settling(double run_ns)
{
    const double runs = run_ns > 0 ? settling_ns / run_ns : MOST_SETTLING;
    return runs > MOST_SETTLING ? MOST_SETTLING : runs < LEAST_SETTLING ? LEAST_SETTLING : (uint32_t)runs;
}

// Saving --------------------------------------------------------------------------------------------------------------

static bool save_inputs(renewal *r)
{
    const hone_session *session = r->runner->session;
    for (size_t i = 0; i < session->buffers.count; i++) {
        if (!is_renewed(&session->buffers, i)) continue;
        r->saved[i] = hone_alloc_unset(&session->allocator, r->size[i]);
        if (r->saved[i] == NULL) return false;
        memcpy(r->saved[i], r->low[i], r->size[i]);
    }
    return true;
}

static hone_status put_inputs_back(renewal *r, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_session *session = r->runner->session;
    for (size_t i = 0; i < session->buffers.count && status == HONE_OK; i++) {
        hone_fenced *fenced = &session->buffers.sets[0].fenced[i];
        if (r->saved[i] == NULL) continue;
        status = hone_buffers_open_input(fenced, err);
        if (status != HONE_OK) break;
        memcpy(r->low[i], r->saved[i], r->size[i]);
        hone_buffers_close_input(&session->buffers, fenced);
    }
    return status;
}

// Without memory for a copy of the inputs there is no verdict.
hone_failure hone_runner_probe_renewed(hone_runner *runner, hone_verify_depth depth, hone_error *err)
{
    const hone_session *session = runner->session;
    const uint32_t batch = runner->batch;
    renewal r = {.runner = runner};
    hone_failure failure = HONE_FAILURE_NONE;
    const size_t most = depth == HONE_FOR_WINNERS ? most_bytes : most_renewed;
    if (!hone_site_is_host(&session->site) || hone_buffers_bytes(&session->buffers) > most) return HONE_FAILURE_NONE;
    runner->renewal = &r;
    runner->batch = 1;
    choose_parts(&r);
    if (save_inputs(&r)) {
        failure = judge(&r, err);
        hone_error *told = failure == HONE_FAILURE_NONE ? err : NULL;
        if (put_inputs_back(&r, told) != HONE_OK && failure == HONE_FAILURE_NONE) failure = HONE_FAILURE_RUN;
    }
    for (size_t i = 0; i < HONE_MAX_VALUES; i++)
        hone_free(&session->allocator, r.saved[i]);
    runner->renewal = NULL;
    runner->batch = batch;
    return failure;
}

// Samples with learned branches ---------------------------------------------------------------------------------------

// Rotates the numbers of each input: what was learned of their order is of no use then, nor is what was kept of any
// row.
static hone_status move_numbers(const renewal *r, hone_error *err)
{
    hone_session *session = r->runner->session;
    hone_status status = HONE_OK;
    for (size_t i = 0; i < session->buffers.count && status == HONE_OK; i++) {
        hone_fenced *fenced = &session->buffers.sets[0].fenced[i];
        const size_t width = fenced->tensor.dtype.bits / 8;
        if (r->saved[i] == NULL) continue;
        const size_t by = hone_random_next(&session->random) % (r->size[i] / width) * width;
        status = hone_buffers_open_input(fenced, err);
        if (status != HONE_OK) break;
        memcpy(r->low[i], r->saved[i] + by, r->size[i] - by);
        memcpy(r->low[i] + r->size[i] - by, r->saved[i], by);
        hone_buffers_close_input(&session->buffers, fenced);
    }
    return status;
}

static hone_failure time_moved(renewal *r, double *out_ns, hone_error *err)
{
    hone_runner *runner = r->runner;
    hone_failure failure = HONE_FAILURE_NONE;
    uint64_t spent_ns = 0;
    for (uint32_t i = 0; i < runner->batch && failure == HONE_FAILURE_NONE; i++) {
        if (move_numbers(r, err) != HONE_OK) return HONE_FAILURE_RUN;
        const uint64_t start = hone_os_now_ns();
        const hone_status status = hone_runner_run_on(runner, 0);
        spent_ns += hone_os_now_ns() - start;
        if (status != HONE_OK) failure = hone_runner_fail(runner, status, err);
    }
    *out_ns = (double)spent_ns / runner->batch;
    return failure;
}

hone_failure hone_runner_time_renewed(hone_runner *runner, double *out_ns, hone_error *err)
{
    const hone_session *session = runner->session;
    renewal r = {.runner = runner};
    hone_failure failure = HONE_FAILURE_RUN;
    hone_assert(runner->batch >= 1 && session->buffers.set_count == 1 && hone_site_is_host(&session->site));
    choose_parts(&r);
    if (save_inputs(&r)) {
        failure = time_moved(&r, out_ns, err);
        hone_error *told = failure == HONE_FAILURE_NONE ? err : NULL;
        if (put_inputs_back(&r, told) != HONE_OK && failure == HONE_FAILURE_NONE) failure = HONE_FAILURE_RUN;
    } else {
        hone_fail_memory(err, where);
    }
    for (size_t i = 0; i < HONE_MAX_VALUES; i++)
        hone_free(&session->allocator, r.saved[i]);
    return failure;
}
