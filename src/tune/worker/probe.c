// Does a candidate do its work in every run, or only when it sees that something has changed?
//
// Timed runs are mostly the same call again and again. A kernel that keeps its results, by the pointers or by a digest
// of its inputs, or that checks whether they are there already, is fast then and slow in a program. So batches of runs
// are timed in two ways, alternately. In one, elements of the inputs and spots of the results are changed between the
// runs. In the other, the same places are written with what they hold. Both write as much to the same memory, so that
// an honest kernel takes equally long. The least times of each are compared, since a disturbance makes a batch longer.
// Libraries whose threads meet at a barrier have fast and slow batches whatever the inputs are: so a candidate is
// rejected only if nearly every pair of batches agrees, too.
//
// A kernel that takes other branches on other numbers, as a sort does, is as slow after a change as one that keeps
// results: the processor has learned the branches of numbers that come again and again. Changes of the last bits of
// numbers tell the two apart: they lead to other results and, nearly always, through the same branches. A kernel that
// depends on learned branches is timed on other numbers in each run (renewal.c).
//
// The clock is read twice around each batch, by the C library's function and, inside of that, by the system's own call:
// the inner span cannot be longer, unless the function was replaced.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <string.h>

enum {
    MOST_RUNS = 64, // per batch
    MOST_INPUTS = 8,
    SPOTS = 4,
    ROW = MOST_INPUTS + SPOTS, // changes before one run
    INNOCENT_PAIRS = 3,
    PATIENT_PAIRS = 12, // after which disturbed ones count, too
    MOST_PAIRS = 32
};

static const double suspect = 1.5; // ratio of the times
// The same on a busy machine, which may preempt a thread in any batch.
static const double suspect_disturbed = 4;
static const double least_gain_ns = 150; // per run: a smaller gain is not worth a trick
static const double device_gain_ns = 5e3;
// For runs longer than long_ns one innocent pair suffices: a contest of seconds has few of them, and on a busy machine
// such a run is hardly ever undisturbed. After patient_ns disturbed pairs count, too.
static const double long_ns = 2e6, patient_ns = 10e6;

static const char where[] = "tune.probe";

typedef struct change {
    const hone_fenced *fenced;
    int64_t offset;
    uint32_t size;
    bool is_spot;
    unsigned char before[HONE_MOST_SPOT_BYTES], after[HONE_MOST_SPOT_BYTES];
} change;

typedef enum probe_mode { CHANGE_NOTHING, CHANGE_INPUTS, CHANGE_ALL, MODE_COUNT } probe_mode;

typedef struct probe {
    probe_mode mode;
    uint32_t runs, per_run;
    uint32_t settling; // untimed runs before a batch
    hone_spots last;   // spots of the last run
    bool clock_lies;
    bool rests;   // before each batch
    bool is_near; // only the last bits of inputs change
    double least_ns[MODE_COUNT], total_ns[MODE_COUNT];
    uint32_t taken[MODE_COUNT]; // number of batches
    change changes[MOST_RUNS][ROW];
} probe;

// Changes -------------------------------------------------------------------------------------------------------------

static bool is_changed(const hone_buffers *buffers, size_t index)
{
    const hone_tensor *tensor = &buffers->sets[0].fenced[index].tensor;
    const bool is_real = tensor->dtype.code == HONE_CODE_FLOAT || tensor->dtype.code == HONE_CODE_BFLOAT;
    return hone_buffers_is_input(buffers, index) && is_real && tensor->dtype.bits % 8 == 0 &&
           hone_tensor_elements(tensor) > 1;
}

static int64_t random_offset(const hone_tensor *tensor, uint64_t *random)
{
    return hone_tensor_offset(tensor, (int64_t)(hone_random_next(random) % (uint64_t)hone_tensor_elements(tensor)));
}

// Changes the last bits of a number that is neither 0, subnormal, infinite nor NaN.
static void change_last_bits(change *c, uint64_t *random)
{
    uint64_t low = 0, exponent = 0, number = 0;
    memcpy(c->after, c->before, c->size);
    if (!hone_low_bits(c->fenced->tensor.dtype, &low, &exponent)) return;
    memcpy(&number, c->before, c->size);
    if ((number & exponent) == 0 || (number & exponent) == exponent) return;
    number ^= (hone_random_next(random) % low + 1) & low;
    memcpy(c->after, &number, c->size);
}

// Gives an element the value of another element of its tensor, so that the new value is as likely as the old one.
static hone_status change_input(
    change *out,
    const probe *p,
    const hone_buffers *buffers,
    const hone_fenced *fenced,
    uint64_t *random,
    hone_error *err)
{
    *out = (change){.fenced = fenced, .size = fenced->tensor.dtype.bits / 8};
    const int64_t from = random_offset(&fenced->tensor, random);
    out->offset = random_offset(&fenced->tensor, random);
    hone_status status = hone_buffers_read(buffers, fenced, out->offset, out->before, out->size, err);
    if (status == HONE_OK && p->is_near) change_last_bits(out, random);
    return status == HONE_OK && !p->is_near ? hone_buffers_read(buffers, fenced, from, out->after, out->size, err)
                                            : status;
}

static hone_status change_spots(
    change *row, const hone_buffers *buffers, hone_spots *spots, uint64_t *random, hone_error *err)
{
    hone_status status = hone_spots_choose(spots, buffers, 0, SPOTS, random, err);
    for (uint32_t i = 0; i < spots->count && status == HONE_OK; i++) {
        const hone_spot *spot = &spots->spots[i];
        row[i] = (change){
            .fenced = &buffers->sets[0].fenced[spot->value],
            .offset = spot->offset,
            .size = spot->size,
            .is_spot = true,
        };
        memcpy(row[i].after, spot->poison, spot->size);
        status = hone_buffers_read(buffers, row[i].fenced, row[i].offset, row[i].before, row[i].size, err);
    }
    return status;
}

static hone_status plan_changes(hone_runner *runner, probe *p, hone_error *err)
{
    hone_session *session = runner->session;
    const hone_buffers *buffers = &session->buffers;
    hone_status status = HONE_OK;
    for (uint32_t r = 0; r < p->runs && status == HONE_OK; r++) {
        p->per_run = 0;
        for (size_t i = 0; i < buffers->count && p->per_run < MOST_INPUTS && status == HONE_OK; i++)
            if (is_changed(buffers, i))
                status = change_input(
                    &p->changes[r][p->per_run++], p, buffers, &buffers->sets[0].fenced[i], &session->random, err);
        if (status == HONE_OK)
            status = change_spots(&p->changes[r][p->per_run], buffers, &p->last, &session->random, err);
        p->per_run += p->last.count;
    }
    return status;
}

static hone_status apply(const hone_runner *runner, const probe *p, uint32_t run, hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t i = 0; i < p->per_run && status == HONE_OK; i++) {
        const change *c = &p->changes[run][i];
        const bool is_made = p->mode == CHANGE_ALL || (p->mode == CHANGE_INPUTS && !c->is_spot);
        const unsigned char *bytes = is_made ? c->after : c->before;
        status = hone_buffers_write(&runner->session->buffers, c->fenced, c->offset, bytes, c->size, err);
    }
    return status;
}

// Backwards: where a place was changed twice, its first contents must stay.
static hone_status undo(const hone_runner *runner, const probe *p, hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t r = p->runs; r-- > 0;)
        for (uint32_t i = p->per_run; i-- > 0 && status == HONE_OK;) {
            const change *c = &p->changes[r][i];
            if (!c->is_spot)
                status = hone_buffers_write(&runner->session->buffers, c->fenced, c->offset, c->before, c->size, err);
        }
    return status;
}

// Times ---------------------------------------------------------------------------------------------------------------

// Times a batch on the host, including its changes.
static hone_failure time_on_host(hone_runner *runner, probe *p, double *out_ns, hone_error *err)
{
    hone_status status = HONE_OK;
    const uint64_t start = hone_os_now_ns(), true_start = hone_os_true_now_ns();
    for (uint32_t r = 0; r < p->runs; r++) {
        (void)apply(runner, p, r, NULL);
        hone_status one = hone_runner_run_on(runner, 0);
        if (one != HONE_OK) status = one;
    }
    const uint64_t true_end = hone_os_true_now_ns(), end = hone_os_now_ns();
    *out_ns = (double)(end - start) / p->runs;
    if (true_end - true_start > end - start) p->clock_lies = true;
    return status == HONE_OK ? HONE_FAILURE_NONE : hone_runner_fail(runner, status, err);
}

// One batch of the probe, as hone_runs.
static hone_failure run_changed(hone_runner *runner, double *out_ns, hone_error *err)
{
    probe *p = runner->probe;
    hone_session *session = runner->session;
    hone_assert(p != NULL && p->runs >= 1);
    if (hone_site_is_host(&session->site)) return time_on_host(runner, p, out_ns, err);
    session->next_set = 0;
    if (apply(runner, p, 0, err) != HONE_OK) return HONE_FAILURE_RUN;
    return hone_runner_time(runner, out_ns, err);
}

static hone_failure run_mode(hone_runner *runner, probe_mode mode, hone_sample *out, hone_error *err)
{
    probe *p = runner->probe;
    p->mode = mode;
    // The last run before a batch has the inputs that the batch begins with. Otherwise the first run of a batch would
    // be on other inputs for every candidate, and a batch may have only one run.
    for (uint32_t i = 0; i < p->settling; i++)
        if (hone_runner_run_on(runner, 0) != HONE_OK) return HONE_FAILURE_RUN;
    if (hone_site_wait(&runner->session->site, err) != HONE_OK) return HONE_FAILURE_RUN;
    // Makes new changes for each batch: a candidate may keep for the next batch what it has computed in this one.
    if (plan_changes(runner, p, err) != HONE_OK) return HONE_FAILURE_RUN;
    if (p->rests) hone_runner_rest(runner);
    hone_failure failure = hone_runner_sample_of(runner, run_changed, out, err);
    if (failure == HONE_FAILURE_NONE && mode == CHANGE_ALL) failure = hone_runner_check_spots(runner, &p->last, err);
    hone_error *told = failure == HONE_FAILURE_NONE ? err : NULL;
    if (undo(runner, p, told) != HONE_OK && failure == HONE_FAILURE_NONE) failure = HONE_FAILURE_RUN;
    if (failure != HONE_FAILURE_NONE) return failure;
    runner->run_ns += out->time_ns * runner->batch;
    p->least_ns[mode] = fmin(p->least_ns[mode], hone_sample_corrected(out));
    p->total_ns[mode] += hone_sample_corrected(out);
    p->taken[mode]++;
    return failure;
}

static bool is_suspect(const hone_runner *runner, double changed_ns, double same_ns, bool disturbed)
{
    const double gain_ns = runner->session->site.instance != NULL ? device_gain_ns : least_gain_ns;
    const double least = disturbed ? suspect_disturbed : suspect;
    return changed_ns > least * same_ns && changed_ns - same_ns > gain_ns;
}

// Times a batch without changes and one with all of them, in random order: the later one finds the machine in another
// state. If the pair is suspicious, also times a batch with changes of the inputs alone.
static hone_failure run_pair(hone_runner *runner, bool *out_suspect, bool *out_disturbed, hone_error *err)
{
    const probe_mode first = hone_random_next(&runner->session->random) % 2 == 0 ? CHANGE_NOTHING : CHANGE_ALL;
    hone_sample samples[MODE_COUNT];
    hone_failure failure = run_mode(runner, first, &samples[first], err);
    const probe_mode second = first == CHANGE_NOTHING ? CHANGE_ALL : CHANGE_NOTHING;
    if (failure == HONE_FAILURE_NONE) failure = run_mode(runner, second, &samples[second], err);
    if (failure != HONE_FAILURE_NONE) return failure;
    const hone_sample *same = &samples[CHANGE_NOTHING], *changed = &samples[CHANGE_ALL];
    *out_disturbed = same->marks != 0 || changed->marks != 0;
    *out_suspect = is_suspect(runner, hone_sample_corrected(changed), hone_sample_corrected(same), *out_disturbed);
    return *out_suspect ? run_mode(runner, CHANGE_INPUTS, &samples[CHANGE_INPUTS], err) : HONE_FAILURE_NONE;
}

static hone_failure compare(hone_runner *runner, bool *out_replays, hone_error *err)
{
    hone_failure failure = HONE_FAILURE_NONE;
    const double *least_ns = runner->probe->least_ns;
    const uint64_t start = hone_os_now_ns();
    uint32_t innocent = 0, guilty = 0, enough_innocent = INNOCENT_PAIRS, enough_guilty = MOST_PAIRS;
    bool beside_others = false; // a pair that counted was disturbed
    for (uint32_t pair = 0; pair < MOST_PAIRS && innocent < enough_innocent && guilty < enough_guilty; pair++) {
        bool suspects = false, disturbed;
        failure = run_pair(runner, &suspects, &disturbed, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        // Uses the least time: on a busy machine a single run does not show how long runs are.
        const bool is_long = least_ns[CHANGE_ALL] > long_ns;
        enough_innocent = is_long ? 1 : INNOCENT_PAIRS;
        runner->probe->rests = hone_site_is_host(&runner->session->site) && (runner->probe->rests || disturbed);
        if (disturbed && pair < PATIENT_PAIRS && (double)(hone_os_now_ns() - start) < patient_ns) continue;
        innocent += !suspects;
        guilty += suspects;
        beside_others = beside_others || disturbed;
        enough_guilty = hone_stopping_guilty_pairs(least_ns[CHANGE_ALL]);
    }
    *out_replays =
        guilty >= enough_guilty && is_suspect(runner, least_ns[CHANGE_ALL], least_ns[CHANGE_NOTHING], beside_others);
    return HONE_FAILURE_NONE;
}

static void forget_times(probe *p)
{
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        p->least_ns[mode] = INFINITY;
        p->total_ns[mode] = 0;
        p->taken[mode] = 0;
    }
}

// Not on a device, where a single run takes longer than one of a batch for every candidate.
static bool takes_longer_than_its_samples(const hone_runner *runner)
{
    const double changed_ns = runner->probe->least_ns[CHANGE_ALL];
    return hone_site_is_host(&runner->session->site) && runner->race_ns > 0 &&
           is_suspect(runner, changed_ns, runner->race_ns, false);
}

// The verdict ---------------------------------------------------------------------------------------------------------

// Whether it is slow only after changes of more than the last bits of inputs: then it depends on learned branches.
static hone_failure compare_near(hone_runner *runner, bool *out_learns, hone_error *err)
{
    uint64_t low, exponent;
    bool replays = true, has_bits = true;
    const hone_buffers *buffers = &runner->session->buffers;
    for (size_t i = 0; i < buffers->count; i++)
        if (is_changed(buffers, i))
            has_bits = has_bits && hone_low_bits(buffers->sets[0].fenced[i].tensor.dtype, &low, &exponent);
    *out_learns = false;
    if (!has_bits || !hone_site_is_host(&runner->session->site)) return HONE_FAILURE_NONE;
    runner->probe->is_near = true;
    forget_times(runner->probe);
    hone_failure failure = compare(runner, &replays, err);
    runner->probe->is_near = false;
    *out_learns = failure == HONE_FAILURE_NONE && !replays;
    return failure;
}

static void note_learner(hone_runner *runner)
{
    hone_session *session = runner->session;
    if (runner->learns == NULL)
        session->learnt[session->next_learnt++ % HONE_KNOWN_WITH_OTHERS] = hone_kernel_identity(&runner->kernel);
    runner->learns = hone_runner_time_renewed;
}

void hone_runner_recall(hone_runner *runner)
{
    const uint64_t identity = hone_kernel_identity(&runner->kernel);
    for (uint32_t i = 0; i < HONE_KNOWN_WITH_OTHERS; i++)
        if (runner->session->learnt[i] == identity) runner->learns = hone_runner_time_renewed;
}

static hone_failure judge(hone_runner *runner, hone_error *err)
{
    probe *p = runner->probe;
    const double *least_ns = p->least_ns;
    bool replays = false;
    hone_failure failure = compare(runner, &replays, err);
    if (failure == HONE_FAILURE_NONE && !replays && takes_longer_than_its_samples(runner)) {
        p->settling = hone_runner_settling(least_ns[CHANGE_ALL]);
        forget_times(p);
        failure = compare(runner, &replays, err);
    }
    if (failure != HONE_FAILURE_NONE) return failure;
    if (p->clock_lies) {
        hone_fail(err, HONE_KERNEL_FAILED, where, "its process's clock goes slower than the system's");
        return HONE_FAILURE_HIDDEN;
    }
    if (!replays) return HONE_FAILURE_NONE;
    // A candidate that checks some of the elements sees a change now and then: the mean shows that.
    hone_assert(p->taken[CHANGE_INPUTS] > 0);
    const double by_inputs_ns = p->total_ns[CHANGE_INPUTS] / p->taken[CHANGE_INPUTS];
    const double same_ns = least_ns[CHANGE_NOTHING], all_ns = least_ns[CHANGE_ALL];
    const bool by_inputs = is_suspect(runner, by_inputs_ns, same_ns, false);
    bool learns = false;
    if (by_inputs) failure = compare_near(runner, &learns, err);
    if (learns) note_learner(runner);
    if (failure != HONE_FAILURE_NONE || learns) return failure;
    hone_fail(
        err, HONE_KERNEL_FAILED, where,
        "takes %.4g ns where nothing has changed since its last run, and %.4g ns where %s", same_ns,
        by_inputs ? by_inputs_ns : all_ns, by_inputs ? "inputs have" : "its results were overwritten");
    return by_inputs ? HONE_FAILURE_REPLAYED : HONE_FAILURE_STALE;
}

hone_failure hone_runner_probe(hone_runner *runner, hone_error *err)
{
    hone_session *session = runner->session;
    const uint32_t batch = runner->batch;
    probe *p = hone_alloc(&session->allocator, sizeof *p);
    if (p == NULL) {
        hone_fail_memory(err, where);
        return HONE_FAILURE_RUN;
    }
    hone_failure failure = HONE_FAILURE_RUN;
    p->runs = !hone_site_is_host(&session->site) ? 1 : batch < MOST_RUNS ? batch : MOST_RUNS;
    p->settling = 1;
    forget_times(p);
    runner->probe = p;
    runner->batch = p->runs;
    if (hone_buffers_open_inputs(&session->buffers, is_changed, err) == HONE_OK) {
        failure = judge(runner, err);
        hone_buffers_close_inputs(&session->buffers, is_changed);
    }
    runner->probe = NULL;
    runner->batch = batch;
    hone_free(&session->allocator, p);
    return failure;
}
