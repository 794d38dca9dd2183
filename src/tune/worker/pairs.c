// Does a candidate do its work in the very runs that are timed?
//
// The probe and the renewal make runs of their own. A kernel that keeps its results may tell these from its samples, by
// the depth of the stack or by the time since it last returned. So within the samples of a round, through the same
// functions, two more batches are taken. In one of them a number of the inputs gets other last bits before each run; in
// the other the same numbers are written unchanged. All batches write before each run, ordinary samples to other
// memory, so that the time between two runs shows nothing. The least times of an honest kernel are equal in both. A
// kernel that keeps results has to compute them in the first.
//
// Only last bits are changed: other numbers may lead through other branches, whose order a processor learns (probe.c).
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

enum {
    INNOCENT = 2, // undisturbed innocent pairs after which no more are taken
    GUILTY =
        12,    // and guilty ones, if INNOCENT are not reached: a run of 50 us may take 48 or 66 us by the cache's state
    TRIES = 16 // to find a number whose last bits can change
};

// A candidate that keeps a fifth of what it computes is found by the renewal (renewal.c): one number touches few of its
// rows.
static const double suspect = 1.25, least_gain_ns = 8;
// The longest runs that get pairs: beside longer ones a pair takes most of a round's time. A winner, which is sampled
// alone, has time for longer ones.
static const double longest_ns = 1e6, longest_alone_ns = 5e6;
static const char where[] = "tune.pairs";

// Without the system's guard, closing an input takes a pass over all of it.
static bool is_changed(const hone_buffers *buffers, size_t index)
{
    uint64_t low, exponent;
    const hone_fenced *fenced = &buffers->sets[0].fenced[index];
    return hone_buffers_is_input(buffers, index) && fenced->checksum == 0 && fenced->span > 0 &&
           hone_tensor_elements(&fenced->tensor) > 0 && hone_low_bits(fenced->tensor.dtype, &low, &exponent);
}

static uint32_t count_changed(const hone_buffers *buffers)
{
    uint32_t count = 0;
    for (size_t i = 0; i < buffers->count; i++)
        count += is_changed(buffers, i);
    return count;
}

void hone_runner_take_pairs(hone_runner *runner, bool alone)
{
    runner->pairs.are_taken = true;
    runner->pairs.longest_ns = alone ? longest_alone_ns : longest_ns;
}

bool hone_runner_wants_pair(const hone_runner *runner, double run_ns)
{
    const hone_session *session = runner->session;
    const hone_pairs *pairs = &runner->pairs;
    return pairs->are_taken && pairs->innocent < INNOCENT && pairs->guilty < GUILTY && run_ns <= pairs->longest_ns &&
           runner->learns == NULL && session->site.instance == NULL && session->buffers.set_count == 1 &&
           count_changed(&session->buffers) > 0;
}

void hone_runner_write_elsewhere(hone_runner *runner)
{
    runner->writes = (hone_writes){.size = sizeof runner->pairs.sink[0]};
    for (uint32_t i = 0; i < HONE_WRITES; i++)
        runner->writes.at[i] = &runner->pairs.sink[i];
}

// Draws one of the inputs, each with the same probability.
static const hone_fenced *draw_input(const hone_buffers *buffers, uint32_t count, uint64_t *random)
{
    uint32_t left = hone_random_below(random, count);
    for (size_t i = 0; i < buffers->count; i++)
        if (is_changed(buffers, i) && left-- == 0) return &buffers->sets[0].fenced[i];
    hone_assert(false);
    return NULL;
}

// Draws a number that is neither 0, subnormal, infinite nor NaN, and which of its last bits change. False: none was
// found.
static bool draw_number(const hone_fenced *fenced, uint64_t *random, void **out_at, uint64_t *out_mask)
{
    uint64_t low = 0, exponent = 0;
    const hone_tensor *tensor = &fenced->tensor;
    const size_t size = tensor->dtype.bits / 8;
    const uint64_t elements = (uint64_t)hone_tensor_elements(tensor);
    (void)hone_low_bits(tensor->dtype, &low, &exponent);
    for (int i = 0; i < TRIES; i++) {
        const int64_t offset = hone_tensor_offset(tensor, (int64_t)(hone_random_next(random) % elements));
        char *at = (char *)tensor->data + offset;
        uint64_t number = 0;
        memcpy(&number, at, size);
        if ((number & exponent) == 0 || (number & exponent) == exponent) continue;
        *out_at = at;
        *out_mask = hone_random_next(random) % low + 1;
        return true;
    }
    return false;
}

// All numbers of a batch have the same width, so that every run writes in the same way.
static bool plan_writes(hone_runner *runner)
{
    hone_session *session = runner->session;
    const hone_buffers *buffers = &session->buffers;
    const uint32_t count = count_changed(buffers);
    hone_writes *writes = &runner->writes;
    const hone_fenced *first = draw_input(buffers, count, &session->random);
    writes->size = first->tensor.dtype.bits / 8;
    for (uint32_t i = 0; i < HONE_WRITES; i++) {
        const hone_fenced *fenced = draw_input(buffers, count, &session->random);
        if (fenced->tensor.dtype.bits != first->tensor.dtype.bits) fenced = first;
        if (!draw_number(fenced, &session->random, &writes->at[i], &writes->mask[i])) return false;
        memcpy(&runner->pairs.before[i], writes->at[i], writes->size);
    }
    return true;
}

static void stop(hone_runner *runner)
{
    hone_runner_write_elsewhere(runner);
    runner->pairs.are_taken = false;
}

hone_failure hone_runner_begin_pair(hone_runner *runner, bool changes, hone_error *err)
{
    if (!runner->pairs.are_taken) return HONE_FAILURE_NONE; // the pair's first batch found no number
    if (!plan_writes(runner)) {
        stop(runner); // rows of zeros, for example
        return HONE_FAILURE_NONE;
    }
    for (uint32_t i = 0; i < HONE_WRITES && !changes; i++)
        runner->writes.mask[i] = 0;
    if (runner->pairs.are_open) return HONE_FAILURE_NONE;
    runner->pairs.are_open = hone_buffers_open_inputs(&runner->session->buffers, is_changed, err) == HONE_OK;
    if (runner->pairs.are_open) return HONE_FAILURE_NONE;
    stop(runner); // closed inputs must not be written
    return HONE_FAILURE_RUN;
}

void hone_runner_end_pair(hone_runner *runner)
{
    if (!runner->pairs.are_taken) return;
    for (uint32_t i = 0; i < HONE_WRITES; i++)
        memcpy(runner->writes.at[i], &runner->pairs.before[i], runner->writes.size);
    hone_runner_write_elsewhere(runner);
    runner->pairs.are_last = true;
}

void hone_runner_close_pair(hone_runner *runner)
{
    if (runner->pairs.are_open) hone_buffers_close_inputs(&runner->session->buffers, is_changed);
    runner->pairs.are_open = false;
}

static bool is_suspect(double changed_ns, double same_ns)
{
    return changed_ns > suspect * same_ns && changed_ns - same_ns > least_gain_ns;
}

void hone_runner_note_pair(hone_runner *runner, const hone_sample *changed, const hone_sample *same)
{
    hone_pairs *pairs = &runner->pairs;
    if (!pairs->are_taken || changed->marks != 0 || same->marks != 0) return;
    const bool is_first = pairs->guilty + pairs->innocent == 0, suspects = is_suspect(changed->time_ns, same->time_ns);
    pairs->guilty += suspects;
    pairs->innocent += !suspects;
    pairs->changed_ns = is_first ? changed->time_ns : fmin(pairs->changed_ns, changed->time_ns);
    pairs->same_ns = is_first ? same->time_ns : fmin(pairs->same_ns, same->time_ns);
}

hone_failure hone_runner_judge_pairs(const hone_runner *runner, hone_error *err)
{
    const hone_pairs *pairs = &runner->pairs;
    if (pairs->guilty < GUILTY || !is_suspect(pairs->changed_ns, pairs->same_ns)) return HONE_FAILURE_NONE;
    hone_fail(
        err, HONE_KERNEL_FAILED, where,
        "takes %.4g ns where nothing has changed since its last run, and %.4g ns where the last bits of one number "
        "have",
        pairs->same_ns, pairs->changed_ns);
    return HONE_FAILURE_REPLAYED;
}
