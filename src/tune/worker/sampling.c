// How long a candidate's runs take: samples by the host's or the device's clock, warm or after a flood of the caches.
//
// A sample is a batch of runs between two readings of the clock, divided by their number. The batch is long enough that
// the cost and the resolution of the clock do not count. Before each batch places of the results are overwritten, and
// right after it they are checked (spots.h): a result that was not written by then was not part of the timed work. In
// batches that only warm up, places are overwritten between two runs, so that a kernel that skips a run right after
// another one is not rescued by the first run of each batch. Before the first sample the candidate runs until it is
// warm: for a minimum time, and on while each run is faster than the one before. Cold runs rotate through sets of
// buffers that exceed the last-level cache, or a block of that size is read between samples. On a device, the regime
// graph times replays of a graph that holds the batch, and the regime eager times each run by itself, with its start
// and the wait for its end.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "os/waits.h"
#include "tune/worker/verify.h"

#include <math.h>
#include <stdlib.h>

enum {
    MAX_BATCH = 1 << 20,
    FUTILE_RETAKES = 4,
    SPOTS = 4,         // per sample on the host
    GRAPH_RUNS = 4,    // at least, per sample: the gaps between runs in a graph are part of the time
    GRAPH_REPLAYS = 1, // before a graph is timed: the first one uploads it to the device
    DEVICE_SPOTS = 1   // each takes two copies of about 10 us
};

static const char where[] = "tune.sample";
// How long a write may come after the run has returned and still count as late instead of missing, and the pause
// between two checks for it.
static const uint64_t late_ns = 100 * 1000 * 1000, late_look_ns = 500 * 1000;

// A sample shorter than this consists of several runs: the clock itself takes some 20 ns.
static const double sample_ns = 20e3;
// The same in a duel. The first run of a batch takes some us longer than the others, after places were overwritten. All
// samples of a block have that share alike, and of two equal candidates one may have batches of two runs and the other
// of three.
static const double duel_sample_ns = 100e3;
// Events of a device add some 2 us to the runs between them.
static const double device_sample_ns = 200e3;
// Every candidate is warmed up at least this long: the first runs after a pause take 1.5 times as long.
static const double warm_ns = 300e3;
// The warm-up goes on, up to most_warm_ns, while a run takes less than still_gains times the one before it: megabytes
// come into the last-level cache run by run.
static const double still_gains = 0.95, most_warm_ns = 20e6;
// Warm-up after another candidate's sample: the data has left the inner caches, and the pool's threads sleep.
static const double warm_again_ns = 200e3;
// Chosen by measurement on Linux 6.18 (EEVDF) with four busy processes on each processor: after such a rest 90 to
// 100 % of samples of up to 3 ms were undisturbed, without it 22 to 76 %.
static const uint64_t rest_ns = 1000000;
// Run time between two rests: below the 3 ms for which a thread that slept keeps its processor.
static const double owed_ns = 2e6;
// How long to wait for the pool's threads: a little more than two slices of the scheduler. With samples of 20 us on two
// threads, beside 17 busy processes on two processors, 11 to 20 of 100 were undisturbed without the wait, 57 to 70 with
// 5 to 20 ms.
static const uint64_t gather_ns = 8 * 1000 * 1000;
static const double busy_share = 0.2; // share of disturbed samples above which the machine counts as busy
// On a device, above this share of disturbed samples none is taken again: a neighbour disturbs the next one as well.
static const double shared_share = 0.9;
// Longer samples are not taken again: on a machine that others use they never have a processor to themselves. Beside
// four busy processes no sample above 6 to 12 ms had.
static const double most_retaken_ns = 25e6;

// What the threads of this process waited for during the runs of one sample.
struct watched {
    const hone_os_waits *waits;
    hone_os_waits_reading before, after;
    bool has_own; // `after` has the caller's waits; the others' are read after the check of spots, which is urgent
};

// Reads a block larger than the last-level cache, so that none of the data stays in it.
static void flood(const hone_session *session)
{
    const volatile char *bytes = session->flood;
    for (size_t i = 0; i < session->flood_size; i += 64)
        (void)bytes[i];
}

static hone_status run_next(void *ctx)
{
    hone_runner *runner = ctx;
    hone_session *session = runner->session;
    size_t set = session->next_set;
    session->next_set = set + 1 < session->buffers.set_count ? set + 1 : 0;
    return hone_runner_run_on(runner, set);
}

// Times a batch by the device's own clock.
static hone_failure sample_on_device(hone_runner *runner, double *out_ns, hone_error *err)
{
    const hone_session *session = runner->session;
    const hone_site *site = &session->site;
    bool elsewhere = false;
    const hone_timed_runs runs = {
        .device = site->device,
        .stream = site->stream,
        .count = runner->batch,
        .run = run_next,
        .ctx = runner,
        .flood = session->floods ? site->flood : NULL,
        .flood_bytes = site->flood_bytes,
        .replays = session->regime == HONE_GRAPH ? GRAPH_REPLAYS : 0,
        .out_elsewhere = &elsewhere,
    };
    hone_status status = site->ops->time(site->instance, &runs, out_ns, err);
    *out_ns /= runner->batch;
    if (status == HONE_OK && elsewhere && hone_buffers_bytes(&session->buffers) > 0) {
        hone_fail(
            err, HONE_KERNEL_FAILED, where,
            "starts nothing on the stream that it is given, and yet there are results: it works elsewhere");
        return HONE_FAILURE_HIDDEN;
    }
    return status == HONE_OK ? HONE_FAILURE_NONE : hone_failure_of(status);
}

// Times each run by the host's clock: starts it and waits for its end before the next one.
static hone_failure time_eager(hone_runner *runner, double *out_ns, hone_error *err)
{
    const hone_session *session = runner->session;
    uint64_t spent_ns = 0;
    for (uint32_t i = 0; i < runner->batch; i++) {
        const uint64_t start = hone_os_now_ns();
        hone_status status = run_next(runner);
        if (status != HONE_OK) return hone_runner_fail(runner, status, err);
        status = hone_site_wait(&session->site, err);
        spent_ns += hone_os_now_ns() - start;
        if (status != HONE_OK) return HONE_FAILURE_RUN;
    }
    *out_ns = (double)spent_ns / runner->batch;
    return HONE_FAILURE_NONE;
}

static hone_failure fail_beside(hone_error *err)
{
    hone_fail(
        err, HONE_UNSUPPORTED, where,
        "runs beside the stream that it is given and waits for its own end, so that no graph can hold it");
    return HONE_FAILURE_UNSUPPORTED;
}

hone_failure hone_runner_time(hone_runner *runner, double *out_ns, hone_error *err)
{
    hone_session *session = runner->session;
    hone_status status = HONE_OK;
    hone_assert(runner->batch >= 1 && session->buffers.set_count > 0);
    bool visits = hone_site_waits_for(&session->site, runner->kernel.platform);
    if (session->regime == HONE_EAGER) return time_eager(runner, out_ns, err);
    if (session->regime == HONE_GRAPH && visits) return fail_beside(err);
    if (session->site.instance != NULL && session->site.ops->time != NULL && !visits)
        return sample_on_device(runner, out_ns, err);
    if (runner->learns != NULL && session->buffers.set_count == 1) return runner->learns(runner, out_ns, err);
    if (session->flood != NULL) flood(session);
    if (session->floods) status = hone_site_overwrite(&session->site, err);
    if (status != HONE_OK) return HONE_FAILURE_RUN;
    size_t set = session->next_set, sets = session->buffers.set_count;
    if (runner->watched != NULL) hone_os_waits_read(runner->watched->waits, &runner->watched->before);
    uint64_t start = hone_os_now_ns();
    for (uint32_t i = 0; i < runner->batch; i++) {
        if (runner->spoils != NULL && i == runner->spoiled_run)
            hone_spots_overwrite_one(runner->spoils, &session->buffers);
        hone_write_before(&runner->writes, i);
        hone_status one = hone_runner_run_on(runner, set);
        if (one != HONE_OK) status = one;
        if (++set >= sets) set = 0;
    }
    *out_ns = (double)(hone_os_now_ns() - start) / runner->batch;
    if (runner->watched != NULL) {
        hone_os_waits_read_own(runner->watched->waits, &runner->watched->after);
        runner->watched->has_own = true;
    }
    session->next_set = set;
    return status == HONE_OK ? HONE_FAILURE_NONE : hone_runner_fail(runner, status, err);
}

static hone_failure fail_spot(const hone_runner *runner, const hone_spot *spot, bool came_late, hone_error *err)
{
    const hone_buffers *buffers = &runner->session->buffers;
    char at[128];
    hone_verify_format_index(&buffers->sets[0].fenced[spot->value].tensor, spot->index, at, sizeof at);
    const char *name = hone_signature_parameter(buffers->signature, spot->value)->name;
    if (came_late)
        hone_fail(err, HONE_KERNEL_FAILED, where, "%s%s was written after the run had returned", name, at);
    else
        hone_fail(err, HONE_KERNEL_FAILED, where, "a run that was timed left %s%s as it was", name, at);
    return came_late ? HONE_FAILURE_HIDDEN : HONE_FAILURE_STALE;
}

hone_failure hone_runner_check_spots(const hone_runner *runner, const hone_spots *spots, hone_error *err)
{
    const hone_buffers *buffers = &runner->session->buffers;
    uint32_t left, first = 0, unused;
    if (hone_spots_left(spots, buffers, &left, &first, err) != HONE_OK) return HONE_FAILURE_RUN;
    if (left == 0) return HONE_FAILURE_NONE;
    const hone_spot spot = spots->spots[first];
    for (uint64_t waited = 0; left > 0 && waited < late_ns; waited += late_look_ns) {
        hone_os_sleep_ns(late_look_ns);
        if (hone_spots_left(spots, buffers, &left, &unused, err) != HONE_OK) return HONE_FAILURE_RUN;
    }
    return fail_spot(runner, &spot, left == 0, err);
}

// The set that the last run of the next sample uses.
static size_t last_set(const hone_runner *runner)
{
    const hone_session *session = runner->session;
    return (session->next_set + runner->batch - 1) % session->buffers.set_count;
}

// With a flood, a sample must not reuse data that it has brought into the cache itself.
static uint32_t largest_batch(const hone_session *session)
{
    return session->flood != NULL || session->floods ? (uint32_t)session->buffers.set_count : MAX_BATCH;
}

// Adds up to a quarter to the batch, at random: the last run of a batch is checked, and a kernel must not know
// beforehand which run that is.
static uint32_t vary(hone_session *session, uint32_t batch)
{
    const uint32_t most = largest_batch(session), more = hone_random_below(&session->random, batch / 4 + 1);
    return session->site.instance != NULL || batch + more > most ? batch : batch + more;
}

static hone_status prepare_spots(hone_runner *runner, hone_spots *out, hone_error *err)
{
    hone_session *session = runner->session;
    const bool is_host = session->site.instance == NULL,
               within = is_host && runner->spoils_within && runner->batch >= 2;
    // Within a batch a single spot: the writes must not take the 50 ns after which a kernel that skips early runs works
    // again.
    const uint32_t most = !is_host ? DEVICE_SPOTS : within ? 1 : SPOTS;
    hone_status status = hone_spots_choose(out, &session->buffers, last_set(runner), most, &session->random, err);
    if (status != HONE_OK) return status;
    if (!within) return hone_spots_overwrite(out, &session->buffers, err);
    runner->spoils = out;
    runner->spoiled_run = 1 + hone_random_below(&session->random, runner->batch - 1);
    return HONE_OK;
}

static hone_failure sample_batch(hone_runner *runner, double *out_ns, hone_error *err)
{
    hone_spots spots;
    if (prepare_spots(runner, &spots, err) != HONE_OK) return HONE_FAILURE_RUN;
    (void)hone_pool_take_asked(runner->session->own_pool);
    hone_failure failure = hone_runner_time(runner, out_ns, err);
    runner->workers = hone_pool_take_asked(runner->session->own_pool);
    runner->spoils = NULL;
    runner->pairs.are_last = false; // hone_runner_end_pair sets it for a pair
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_check_spots(runner, &spots, err);
    if (failure == HONE_FAILURE_NONE) runner->run_ns += *out_ns * runner->batch;
    return failure;
}

hone_failure hone_runner_sample(hone_runner *runner, double *out_ns, hone_error *err)
{
    const uint32_t batch = runner->batch;
    runner->batch = vary(runner->session, batch);
    hone_failure failure = sample_batch(runner, out_ns, err);
    runner->batch = batch;
    return failure;
}

static double sample_of(const hone_session *session)
{
    return session->site.instance != NULL ? device_sample_ns : sample_ns;
}

static uint32_t batch_for(const hone_session *session, double run_ns)
{
    double least = sample_of(session), wanted = run_ns > 0 ? least / run_ns + 1 : MAX_BATCH;
    if (run_ns >= least) wanted = 1;
    if (session->regime == HONE_GRAPH && wanted < GRAPH_RUNS) wanted = GRAPH_RUNS;
    uint32_t most = largest_batch(session);
    return wanted > most ? most : (uint32_t)wanted;
}

// A library may let its threads spin after its work: OpenMP some 5 ms, Intel's 200 ms, an OpenBLAS that was loaded
// before its worker began 128 ms. They would take a processor from the next candidate, or stand in its queue all the
// while, and a sample that nothing disturbed would be marked. hone's own threads are sent to sleep, so the first check
// comes soon. A thread that still runs after 300 ms of pauses is taken to spin for ever, and is not waited for again.
// So is one that runs after four times as long on a busy machine, where pauses end 5 ms late: there .3 s of pauses took
// 2.5 s.
// Returns how long it slept, in ns: on a busy machine many times what it requested.
uint64_t hone_session_settle(hone_session *session)
{
    enum { FIRST_LOOK_NS = 20 * 1000, MOST_LOOK_NS = 500 * 1000, MOST_NS = 300 * 1000 * 1000, MOST_LATE = 4 };
    uint64_t look_ns = FIRST_LOOK_NS, spent_ns = 0, slept_ns = 0;
    if (session->own_pool != NULL) hone_pool_rest(session->own_pool);
    for (int running; (running = hone_os_others_run()) > session->restless;) {
        if (spent_ns > MOST_NS || slept_ns > MOST_LATE * (uint64_t)MOST_NS) session->restless = running;
        const uint64_t start = hone_os_now_ns();
        hone_os_sleep_ns(look_ns);
        slept_ns += hone_os_now_ns() - start;
        spent_ns += look_ns;
        look_ns = look_ns * 2 < MOST_LOOK_NS ? look_ns * 2 : MOST_LOOK_NS;
    }
    return slept_ns;
}

// Takes two readings of what the threads of this process waited for, around the runs. waits NULL: takes none. Runs that
// are timed one by one do not read the waits themselves: then the readings are around all of the sample, and what its
// preparation waited counts, too.
static hone_failure run_marked(
    hone_runner *runner, hone_runs *runs, const hone_os_waits *waits, hone_sample *out, hone_error *err)
{
    struct watched watched = {.waits = waits};
    *out = (hone_sample){0};
    if (waits == NULL) return runs(runner, &out->time_ns, err);
    hone_os_waits_read(waits, &watched.before);
    runner->watched = &watched;
    hone_failure failure = runs(runner, &out->time_ns, err);
    runner->watched = NULL;
    if (failure != HONE_FAILURE_NONE) return failure;
    if (!watched.has_own) hone_os_waits_read_own(waits, &watched.after);
    hone_os_waits_read_others(waits, &watched.after);
    double spent_ns = out->time_ns * runner->batch, waited_ns;
    out->marks = hone_os_waits_between(&watched.before, &watched.after, spent_ns, &waited_ns);
    out->waited = spent_ns > 0 ? waited_ns / spent_ns : 0;
    return HONE_FAILURE_NONE;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const hone_sample *)a)->time_ns, y = ((const hone_sample *)b)->time_ns;
    return (x > y) - (x < y);
}

// The median of the undisturbed samples. If there are none: the median of all, with its own marks.
static hone_sample middle_of(hone_sample *samples, uint32_t count)
{
    uint32_t alone = 0;
    for (uint32_t i = 0; i < count; i++)
        if (samples[i].marks == 0) samples[alone++] = samples[i];
    const uint32_t counted = alone > 0 ? alone : count;
    qsort(samples, counted, sizeof samples[0], by_time);
    return samples[counted / 2];
}

// For short runs, the median of a burst of samples: a disturbance makes a sample longer. Before a burst other threads
// go to sleep and the pool's are woken, which takes some milliseconds on a busy machine, so a burst may take as long.
// It ends before the time that the scheduler owes for a rest is used up. At a random position in the burst are the two
// batches of a pair (pairs.c), through the same calls.
static hone_failure sample_warm(
    hone_runner *runner, hone_runs *runs, const hone_os_waits *waits, hone_sample *out, hone_error *err)
{
    enum { LEAST = 3, MOST_SHORT = 15, MOST = 64, OF_PAIR = 2 };
    hone_sample samples[MOST], pair[OF_PAIR];
    double spent = 0, unused_ns;
    hone_failure failure = run_marked(runner, runs, waits, out, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    const double each_ns = fmax(out->time_ns * runner->batch, 1000);
    const bool is_short = out->time_ns <= hone_short_run_ns || LEAST * each_ns <= runner->burst_ns,
               has_pair = hone_runner_wants_pair(runner, out->time_ns);
    if (!is_short && !has_pair) return failure;
    runner->spoils_within = true;
    while (is_short && failure == HONE_FAILURE_NONE && spent < warm_again_ns) {
        failure = runs(runner, &unused_ns, err);
        spent += fmax(unused_ns * runner->batch, 1000); // ends also when the clock stands still
    }
    runner->spoils_within = false;
    // The waits are read around each sample, which takes some 20 us.
    const double most = each_ns < duel_sample_ns ? MOST_SHORT : MOST;
    const uint32_t fit = (uint32_t)fmin(fmax(runner->burst_ns / each_ns, LEAST), most), wanted = is_short ? fit : 0;
    const uint32_t at = has_pair ? hone_random_below(&runner->session->random, wanted + 1) : wanted + 1;
    const uint32_t changed = hone_random_below(&runner->session->random, OF_PAIR);
    for (uint32_t i = 0; i <= wanted && failure == HONE_FAILURE_NONE; i++) {
        for (uint32_t half = 0; i == at && half < OF_PAIR && failure == HONE_FAILURE_NONE; half++) {
            failure = hone_runner_begin_pair(runner, half == changed, err);
            if (failure == HONE_FAILURE_NONE) failure = run_marked(runner, runs, waits, &pair[half], err);
            hone_runner_end_pair(runner);
        }
        hone_runner_close_pair(runner);
        if (i < wanted && failure == HONE_FAILURE_NONE) failure = run_marked(runner, runs, waits, &samples[i], err);
    }
    if (failure != HONE_FAILURE_NONE) return failure;
    if (has_pair) hone_runner_note_pair(runner, &pair[changed], &pair[1 - changed]);
    if (is_short) *out = middle_of(samples, wanted);
    return HONE_FAILURE_NONE;
}

// run_marked, or a function that calls it.
typedef hone_failure watched_runs(
    hone_runner *runner, hone_runs *runs, const hone_os_waits *waits, hone_sample *out, hone_error *err);

// Steal time of the host is counted in ticks of 10 ms, so it is read around everything that belongs to the sample.
static hone_failure watch_host(
    hone_runner *runner, watched_runs *watched, hone_runs *runs, hone_sample *out, hone_error *err)
{
    hone_os_waits waits;
    hone_os_waits_begin(&waits);
    hone_failure failure = watched(runner, runs, &waits, out, err);
    unsigned stolen = hone_os_waits_end(&waits);
    if (failure == HONE_FAILURE_NONE) out->marks |= stolen;
    return failure;
}

// A device's clock does not see what the host's threads wait for: its platform reports what disturbed its times. The
// time of an eager run contains both.
static hone_failure watch(
    hone_runner *runner, watched_runs *watched, hone_runs *runs, hone_sample *out, hone_error *err)
{
    const hone_session *session = runner->session;
    const hone_site *site = &session->site;
    if (site->instance == NULL) return watch_host(runner, watched, runs, out, err);
    hone_site_forget_marks(site);
    hone_failure failure = session->regime == HONE_EAGER ? watch_host(runner, watched, runs, out, err)
                                                         : watched(runner, runs, NULL, out, err);
    if (failure == HONE_FAILURE_NONE) out->marks |= hone_site_marks(site);
    return failure;
}

// Whether the machine has other work: then a rest before a sample pays off.
static bool is_busy(const hone_session *session)
{
    return session->disturbed > busy_share;
}

static void note_disturbance(hone_session *session, const hone_sample *sample)
{
    const double weight = 1.0 / 8;
    session->disturbed += weight * ((sample->marks != 0) - session->disturbed);
    if (session->site.instance == NULL) hone_pool_note_crowd(session->own_pool, is_busy(session));
}

// Takes a sample while the candidate is warm and its threads are awake.
static hone_failure sample_now(hone_runner *runner, hone_sample *out, hone_error *err)
{
    hone_failure failure = watch(runner, run_marked, hone_runner_sample, out, err);
    if (failure == HONE_FAILURE_NONE) note_disturbance(runner->session, out);
    return failure;
}

static void gather(const hone_runner *runner)
{
    if (runner->workers > 0) (void)hone_pool_gather(runner->session->own_pool, runner->workers, gather_ns);
}

void hone_runner_rest(const hone_runner *runner)
{
    hone_os_sleep_ns(rest_ns);
    gather(runner);
}

// Takes a sample after the threads of the process have gone to sleep and, if `rests`, the caller has slept. A thread
// that has just used its share of a processor is the first to lose it. One that slept is owed some time, and keeps its
// processor for the next milliseconds. Then the pool's threads are woken before the sample begins: on a busy machine
// they come milliseconds late, and the caller would do their part.
static hone_failure sample_settled(hone_runner *runner, bool rests, hone_sample *out, hone_error *err)
{
    const uint64_t slept_ns = hone_session_settle(runner->session);
    if (rests && slept_ns < rest_ns) hone_os_sleep_ns(rest_ns - slept_ns);
    gather(runner);
    hone_failure failure = watch(runner, sample_warm, hone_runner_sample, out, err);
    if (failure == HONE_FAILURE_NONE) note_disturbance(runner->session, out);
    return failure;
}

// Takes a sample while the threads that a library has in this process are kept off the caller's processor.
static hone_failure sample_apart(hone_runner *runner, hone_sample *out, hone_error *err)
{
    const hone_session *session = runner->session;
    hone_os_kept_off kept = {.count = 0};
    if (session->given_pool == NULL) hone_os_keep_off_begin(session->own_pool, &kept);
    hone_failure failure = sample_settled(runner, true, out, err);
    hone_os_keep_off_end(&kept);
    return failure;
}

static bool is_less_disturbed(const hone_sample *a, const hone_sample *b)
{
    if ((a->marks == 0) != (b->marks == 0)) return a->marks == 0;
    return a->waited < b->waited;
}

// When every sample is disturbed, as with long runs, samples are not taken again.
static bool is_futile(const hone_runner *runner)
{
    const hone_session *session = runner->session;
    if (session->site.instance != NULL && session->disturbed > shared_share) return true;
    return runner->retaken >= FUTILE_RETAKES && runner->mended == 0;
}

static hone_failure take_again(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err)
{
    hone_failure failure = HONE_FAILURE_NONE;
    for (uint32_t i = 0; i < retakes && failure == HONE_FAILURE_NONE && out->marks != 0; i++) {
        hone_sample again;
        if (is_futile(runner) || out->time_ns * runner->batch > most_retaken_ns) break;
        failure = sample_apart(runner, &again, err);
        if (failure != HONE_FAILURE_NONE) break;
        runner->retaken++;
        runner->mended += again.marks == 0;
        if (is_less_disturbed(&again, out)) *out = again;
    }
    return failure;
}

// Whether the time that the scheduler owes for the last rest is not used up, and no sample since was disturbed.
static bool is_rested(const hone_runner *runner)
{
    return runner->is_rested && runner->run_ns - runner->rested_at_ns < owed_ns;
}

hone_failure hone_runner_sample_in_race(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err)
{
    const bool rests = is_busy(runner->session) && !is_futile(runner) && !is_rested(runner);
    if (rests) runner->rested_at_ns = runner->run_ns;
    hone_failure failure = rests ? sample_settled(runner, true, out, err) : sample_now(runner, out, err);
    runner->is_rested = (rests || runner->is_rested) && failure == HONE_FAILURE_NONE && out->marks == 0;
    return failure == HONE_FAILURE_NONE ? take_again(runner, retakes, out, err) : failure;
}

hone_failure hone_runner_sample_in_round(hone_runner *runner, uint32_t retakes, hone_sample *out, hone_error *err)
{
    hone_failure failure = hone_guarded_scratch_move(&runner->scratch, &runner->execution, err);
    if (failure == HONE_FAILURE_NONE) failure = sample_settled(runner, is_busy(runner->session), out, err);
    return failure == HONE_FAILURE_NONE ? take_again(runner, retakes, out, err) : failure;
}

// Finds results without memory: the system would make their zeros only when the caller reads them.
static hone_failure find_absent(const hone_runner *runner, size_t set, hone_error *err)
{
    const hone_buffers *buffers = &runner->session->buffers;
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *fenced = &buffers->sets[set].fenced[i];
        if (!hone_buffers_is_result(buffers, i) || hone_os_has_memory(fenced->low, fenced->span)) continue;
        hone_fail(
            err, HONE_KERNEL_FAILED, where, "gives pages of %s back to the system: who reads them next does the work",
            hone_signature_parameter(buffers->signature, i)->name);
        return HONE_FAILURE_HIDDEN;
    }
    return HONE_FAILURE_NONE;
}

// Spots show that a run wrote a result, and not what. A kernel that sees that its results were not overwritten, as they
// are before a verified run, may add up fewer terms. So results of samples are compared, too. Runs of a pair, and those
// of a candidate that learns branches, are on other numbers and have no reference.
hone_failure hone_runner_judge_sample(hone_runner *runner, hone_error *err)
{
    const double most_share = 1.0 / 64;
    hone_session *session = runner->session;
    hone_reference *reference = hone_session_reference(session);
    if (reference == NULL || !hone_site_is_host(&session->site) || runner->learns != NULL || runner->pairs.are_last ||
        runner->judged_ns > most_share * runner->run_ns)
        return HONE_FAILURE_NONE;
    const size_t sets = session->buffers.set_count, set = (session->next_set + sets - 1) % sets;
    const uint64_t start = hone_os_now_ns();
    double unused;
    if (find_absent(runner, set, err) != HONE_FAILURE_NONE) return HONE_FAILURE_HIDDEN;
    const hone_status status =
        hone_reference_check(reference, &session->buffers, set, &session->tolerance, runner->kernel.name, &unused, err);
    runner->judged_ns += (double)(hone_os_now_ns() - start);
    if (status == HONE_OK) return HONE_FAILURE_NONE;
    // A candidate that wrote into an input has other results, too, and the next candidate would be blamed for that
    // input.
    hone_error why = {.message = ""};
    const hone_failure wrote = hone_runner_check(runner, &why);
    if (wrote != HONE_FAILURE_NONE && err != NULL) *err = why;
    if (wrote != HONE_FAILURE_NONE) return wrote;
    hone_fail_prefix(err, HONE_KERNEL_FAILED, "after runs that were timed");
    return HONE_FAILURE_WRONG;
}

// An interpreter takes longer to start a run on a device than the run takes: a single run would show the host's time,
// while two are captured into a graph.
static uint32_t first_batch(const hone_runner *runner)
{
    const hone_session *session = runner->session;
    const bool is_slow_to_start =
        session->site.instance != NULL && hone_platform_facts_of(runner->kernel.platform)->is_interpreted;
    return is_slow_to_start && largest_batch(session) >= 2 ? 2 : 1;
}

static hone_failure warm_up(hone_runner *runner, double *out_ns, hone_error *err)
{
    double spent = 0, before_ns = INFINITY;
    (void)hone_session_settle(runner->session);
    runner->batch = first_batch(runner);
    for (;;) {
        double run_ns;
        hone_failure failure = hone_runner_sample(runner, &run_ns, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        *out_ns = run_ns;
        // At least 1 us per round is counted, so that the loop ends also when the clock stands still.
        double took = run_ns * runner->batch;
        spent += took > 1000 ? took : 1000;
        uint32_t batch = batch_for(runner->session, run_ns);
        bool enough = runner->batch >= batch || took >= sample_of(runner->session),
             gains = run_ns < still_gains * before_ns;
        if (enough && spent >= warm_ns && (!gains || spent >= most_warm_ns)) return HONE_FAILURE_NONE;
        before_ns = run_ns;
        // The batch grows step by step, because the first run after a pause says little.
        if (batch > runner->batch * 16) batch = runner->batch * 16;
        if (batch > runner->batch) runner->batch = batch;
    }
}

hone_failure hone_runner_warm(hone_runner *runner, double *out_ns, hone_error *err)
{
    runner->spoils_within = true;
    const hone_failure failure = warm_up(runner, out_ns, err);
    runner->spoils_within = false;
    return failure;
}

hone_failure hone_runner_begin_duel(hone_runner *runner, double run_ns, hone_error *err)
{
    const hone_session *session = runner->session;
    if (session->site.instance != NULL) return HONE_FAILURE_NONE;
    if (hone_guarded_scratch_roam(&runner->scratch, &runner->execution, err) != HONE_OK) return HONE_FAILURE_RUN;
    const double most = largest_batch(session), wanted = run_ns > 0 ? fmin(ceil(duel_sample_ns / run_ns), most) : 1;
    if (wanted > runner->batch) runner->batch = (uint32_t)wanted;
    return HONE_FAILURE_NONE;
}

// Where runs are timed one by one, the waiting may have been in any of them. All of it is attributed to the last one,
// which is then not believed to be slow.
static hone_failure warm_marked(
    hone_runner *runner, hone_runs *runs, const hone_os_waits *waits, hone_sample *out, hone_error *err)
{
    hone_failure failure = run_marked(runner, runs, waits, out, err);
    out->waited = fmin(out->waited, 1);
    return failure;
}

hone_failure hone_runner_warm_marked(hone_runner *runner, hone_sample *out, hone_error *err)
{
    return watch(runner, warm_marked, hone_runner_warm, out, err);
}

hone_failure hone_runner_sample_of(hone_runner *runner, hone_runs *runs, hone_sample *out, hone_error *err)
{
    return watch(runner, run_marked, runs, out, err);
}
