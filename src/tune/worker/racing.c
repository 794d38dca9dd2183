// Runs a candidate that was right alone beside another run of its own: in two threads at once, and on a device on two
// streams. This detects state that two runs share and that each should have for itself (a static buffer, a counter).
//
// Each run has arrays and scratch memory of its own, with other numbers than the other run: what one run leaves in
// shared state is wrong for the other. Results are compared with what the same run left alone.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "os/hold.h"
#include "os/walls.h"
#include "platforms/interpreter.h"
#include "platforms/platform.h"
#include "tune/worker/verify.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { OTHER_SEED = 77 };

static const char where[] = "tune.racing";
static const size_t most_bytes = 64u << 20;
static const double most_run_ns = 500e6;

// Results of a run alone ----------------------------------------------------------------------------------------------

static bool keep_results(const hone_runner *runner, const hone_buffers *buffers, char *expected[HONE_MAX_VALUES])
{
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *fenced = &buffers->sets[0].fenced[i];
        if (!hone_buffers_is_result(buffers, i) || fenced->block == NULL) continue;
        expected[i] = hone_alloc_unset(&runner->session->allocator, fenced->span);
        if (expected[i] == NULL) return false;
        memcpy(expected[i], fenced->low, fenced->span);
    }
    return true;
}

static void let_go(const hone_runner *runner, char *expected[HONE_MAX_VALUES])
{
    for (size_t i = 0; i < HONE_MAX_VALUES; i++)
        hone_free(&runner->session->allocator, expected[i]);
}

static bool is_one_as_alone(
    const hone_runner *runner, const hone_buffers *buffers, size_t index, char *expected, hone_error *err)
{
    const hone_session *session = runner->session;
    const hone_fenced *fenced = &buffers->sets[0].fenced[index];
    if (memcmp(fenced->low, expected, fenced->span) == 0) return true;
    hone_tensor alone = fenced->tensor;
    alone.data = expected + ((char *)fenced->tensor.data - fenced->low);
    // Both runs may be off by the tolerance, in opposite directions.
    hone_reference *reference = hone_session_reference(runner->session);
    hone_reference_use use;
    (void)hone_variant_use(session->variants.loaded, NULL, &use);
    hone_yardstick yardstick =
        hone_verify_yardstick(&session->tolerance, fenced->tensor.dtype, reference->largest[index]);
    yardstick.base *= 2 * use.slack;
    yardstick.relative *= 2 * use.slack;
    double error;
    const char *name = hone_signature_parameter(session->signature, index)->name;
    return hone_verify_compare(NULL, name, &fenced->tensor, &alone, &yardstick, &error, err) == HONE_OK;
}

static bool is_as_alone(
    const hone_runner *runner, const hone_buffers *buffers, char *const expected[HONE_MAX_VALUES], hone_error *err)
{
    for (size_t i = 0; i < buffers->count; i++)
        if (expected[i] != NULL && !is_one_as_alone(runner, buffers, i, expected[i], err)) return false;
    return true;
}

// False: there is no memory, or no way to check.
static bool make_others(const hone_runner *runner, hone_buffers *out)
{
    const hone_session *session = runner->session;
    const bool is_host = hone_site_is_host(&session->site);
    if ((is_host && !session->buffers.guards) || hone_buffers_bytes(&session->buffers) > most_bytes ||
        hone_buffers_create(
            out, session->allocator, session->signature, &session->algorithm, &session->site, session->values,
            session->count, NULL) != HONE_OK)
        return false;
    hone_buffers_work_with(out, session->buffers.pool, false);
    hone_status status = hone_buffers_fill(out, session->call, session->seed + OTHER_SEED, NULL);
    if (status == HONE_OK && session->variants.loaded == HONE_VARIANT_UNEVEN)
        status = hone_buffers_make_uneven(out, session->seed + OTHER_SEED, NULL);
    if (status == HONE_OK) return true;
    hone_buffers_deinit(out);
    return false;
}

// Two threads ---------------------------------------------------------------------------------------------------------

// By chance two runs overlap or do not: on a busy machine one thread may run while the other waits. So first one thread
// is stopped in the middle of its run while the other one does a whole run; then the other way round, again and again.
// A scheduler may do the same at any time. After that both run freely.
typedef struct meeting {
    atomic_int arrived;         // arrivals at gates, of both threads
    atomic_bool inside;         // the thread that will be stopped is in its run
    atomic_bool over;           // no thread is stopped any more in this round
    int holds;                  // number of stops that were within a run
    uint64_t spent_ns;          // since begin_ns
    int threads[2];             // ids of the racers' threads
    uint64_t begin_ns, most_ns; // start; longest time for which a thread is stopped
    double run_ns;
    bool prepares; // the threads prepare plans, and do not run them
    uint64_t random;
} meeting;

// A thread with arrays of its own, whose numbers differ from those of the other thread: shared state shows in its
// results.
typedef struct racer {
    hone_runner *runner;
    hone_plan own;         // a plan that is prepared again and again; run NULL: the racer runs the runner's plan
    bool is_other;         // the own plan is for another call, and is not run
    hone_buffers *buffers; // its first set
    hone_execution execution;
    char *scratch;
    char *expected[HONE_MAX_VALUES]; // the results of a run alone
    meeting *meeting;
    int number;
    hone_failure failure;
    hone_error err;
} racer;

enum { LEAST_RUNS = 2, LEAST_HOLDS = 12, LEAST_LONG_HOLDS = 2, MOST_HOLDS = 32, MOST_PREPARED = 96 };
static const uint64_t hold_ns = 10000000, race_ns = 20000000; // the ends of the two phases, since begin_ns
static const uint64_t prepare_ns = 40000000;                  // end of the stops if plans are prepared
static const uint64_t patient_ns = 400000000;                 // end of the first phase if threads wait for a processor
// Longer runs overlap in the second phase, too, and need fewer stops.
static const double long_run_ns = 200e3;

static void poison_results(const hone_buffers *buffers)
{
    for (size_t i = 0; i < buffers->count; i++)
        if (hone_buffers_is_result(buffers, i))
            memset(buffers->sets[0].fenced[i].low, HONE_POISON_BYTE, buffers->sets[0].fenced[i].span);
}

static hone_status run_plan(racer *r)
{
    const hone_plan *plan = r->own.run != NULL ? &r->own : &r->runner->plan;
    return plan->run(plan, r->buffers->sets[0].values, r->execution.struct_size != 0 ? &r->execution : NULL);
}

static hone_status run_racer(racer *r)
{
    poison_results(r->buffers);
    return run_plan(r);
}

static void release_own(racer *r)
{
    hone_platform_release(r->runner->instance, &r->runner->kernel, r->own.state);
    r->own.state = NULL;
}

static hone_status prepare_own(racer *r)
{
    hone_error unheard = {.message = ""};
    release_own(r);
    return hone_platform_prepare(r->runner->instance, &r->own, &r->own.state, &r->own.scratch_bytes, &unheard);
}

// What one thread does while the other one is stopped in the same.
static hone_status act(racer *r)
{
    return r->own.run != NULL ? prepare_own(r) : run_racer(r);
}

static void judge_racer(racer *r, hone_status status)
{
    if (r->own.run != NULL && status == HONE_OK && !r->is_other) status = run_racer(r);
    if (status != HONE_OK) {
        hone_fail(&r->err, status, where, "answers '%s'", hone_status_name(status));
        r->failure = HONE_FAILURE_RACY;
    }
    if (r->failure == HONE_FAILURE_NONE && !r->is_other && !is_as_alone(r->runner, r->buffers, r->expected, &r->err))
        r->failure = HONE_FAILURE_RACY;
}

// Waits until both threads have arrived.
static void meet(meeting *m, int *gate)
{
    atomic_fetch_add(&m->arrived, 1);
    *gate += 2;
    while (atomic_load(&m->arrived) < *gate)
        hone_os_yield();
}

// Runs until it was stopped in the middle of a run, whose results count.
static void run_held(racer *r)
{
    meeting *m = r->meeting;
    hone_status status;
    do {
        poison_results(r->buffers);
        atomic_store(&m->inside, true);
        status = r->own.run != NULL ? prepare_own(r) : run_plan(r);
        atomic_store(&m->inside, false);
    } while (status == HONE_OK && !atomic_load(&m->over));
    judge_racer(r, status);
}

// Stops a thread at a random place of its run. False: it was between two runs.
static bool hold_inside(meeting *m, int thread)
{
    const uint64_t most_wait_ns = 1000000, patience_ns = 30000000, begin_ns = hone_os_now_ns();
    while (!atomic_load(&m->inside) && hone_os_now_ns() - begin_ns < patience_ns)
        hone_os_yield();
    const uint64_t wait_ns = hone_random_next(&m->random) % ((uint64_t)m->run_ns + 1);
    const uint64_t until = hone_os_now_ns() + (wait_ns < most_wait_ns ? wait_ns : most_wait_ns);
    while (hone_os_now_ns() < until)
        hone_os_yield();
    if (!hone_os_hold(thread, patience_ns, m->most_ns)) return false;
    if (atomic_load(&m->inside)) return true;
    hone_os_hold_release();
    return false;
}

// Stops the other thread, does a whole run meanwhile and often some more: this also detects buffers that are used
// alternately.
static void run_holding(racer *r)
{
    enum { TRIES = 16, MOST_MORE = 8 };
    const double most_more_ns = 100e3; // runs longer than this are not repeated
    meeting *m = r->meeting;
    bool holds = false;
    for (int i = 0; i < TRIES && !holds && m->threads[1 - r->number] != 0; i++)
        holds = hold_inside(m, m->threads[1 - r->number]);
    hone_status status = act(r);
    int more = m->run_ns > most_more_ns ? 0 : (int)(hone_random_next(&m->random) % (MOST_MORE + 1));
    for (; holds && more > 0 && status == HONE_OK; more--)
        status = act(r);
    atomic_store(&m->over, true);
    if (holds) hone_os_hold_release();
    m->holds += holds;
    judge_racer(r, status);
}

// Both threads decide alike: what they decide by is written before a gate and read after it.
static bool is_held_again(const meeting *m, int round)
{
    if (m->prepares) return round < MOST_PREPARED && m->spent_ns < prepare_ns;
    const int least = m->run_ns > long_run_ns ? LEAST_LONG_HOLDS : LEAST_HOLDS;
    return round < least || (round < MOST_HOLDS && m->spent_ns < (m->holds < least ? patient_ns : hold_ns));
}

static void race_held(racer *r)
{
    meeting *m = r->meeting;
    int gate = 0;
    meet(m, &gate); // also until the threads' ids are known
    for (int round = 0; is_held_again(m, round); round++) {
        if (r->number == 0) atomic_store(&m->over, false);
        meet(m, &gate);
        if (round % 2 == r->number)
            run_held(r);
        else
            run_holding(r);
        if (r->number == 0) m->spent_ns = hone_os_now_ns() - m->begin_ns;
        meet(m, &gate);
    }
}

static void race_freely(racer *r)
{
    for (int runs = 0; r->failure == HONE_FAILURE_NONE; runs++) {
        if (runs >= LEAST_RUNS && hone_os_now_ns() - r->meeting->begin_ns > race_ns) break;
        judge_racer(r, run_racer(r));
    }
}

static void *race(void *ctx)
{
    racer *r = ctx;
    hone_os_holdable self;
    r->meeting->threads[r->number] = hone_os_hold_join(&self);
    race_held(r);
    if (r->own.run == NULL) race_freely(r);
    hone_os_hold_leave(&self);
    return NULL;
}

// In a thread that ends soon: once a thread is kept from blocking signals, it is kept so for good.
static void *race_in_thread(void *ctx)
{
    (void)hone_os_hold_insist();
    return race(ctx);
}

static bool make_idle_racer(racer *r, int number, hone_runner *runner, hone_buffers *buffers, meeting *m)
{
    const size_t bytes = runner->plan.scratch_bytes;
    *r = (racer){.runner = runner, .buffers = buffers, .meeting = m, .number = number, .execution = runner->execution};
    if (bytes > 0) {
        r->scratch = hone_alloc(&runner->session->allocator, bytes + HONE_SCRATCH_ALIGN);
        if (r->scratch == NULL) return false;
        r->execution.scratch = r->scratch + (HONE_SCRATCH_ALIGN - (uintptr_t)r->scratch % HONE_SCRATCH_ALIGN);
    }
    return true;
}

// Raises *out_ns to the time that prepare took, if the racer prepares.
static bool make_racer(
    racer *r, int number, hone_runner *runner, hone_buffers *buffers, meeting *m, bool prepares, double *out_ns)
{
    if (!make_idle_racer(r, number, runner, buffers, m)) return false;
    if (prepares) {
        const uint64_t start = hone_os_now_ns();
        r->is_other = number > 0;
        r->own = runner->plan;
        r->own.state = NULL;
        if (r->is_other) r->own.call = runner->session->neighbour;
        if (prepare_own(r) != HONE_OK) return false;
        *out_ns = fmax(*out_ns, (double)(hone_os_now_ns() - start));
        if (r->is_other || r->own.scratch_bytes != runner->plan.scratch_bytes) return r->is_other;
    }
    return run_racer(r) == HONE_OK && keep_results(runner, buffers, r->expected);
}

static void free_racer(racer *r)
{
    const hone_allocator *allocator = &r->runner->session->allocator;
    release_own(r);
    hone_free(allocator, r->scratch);
    let_go(r->runner, r->expected);
}

static hone_failure race_threads(hone_runner *runner, hone_buffers *others, bool prepares, hone_error *err)
{
    const double most_prepare_ns = 10e6; // a kernel that takes longer probably compiles
    racer racers[2] = {{.runner = runner}, {.runner = runner}};
    const double most_hold_ns = 50e6, least_hold_ns = 1e6;
    meeting m = {.run_ns = prepares ? 0 : runner->verify_ns, .prepares = prepares, .random = hone_os_random_seed()};
    pthread_t threads[2];
    bool made = make_racer(&racers[0], 0, runner, &runner->session->buffers, &m, prepares, &m.run_ns);
    made = made && (!prepares || m.run_ns < most_prepare_ns);
    made = made && make_racer(&racers[1], 1, runner, others, &m, prepares, &m.run_ns) && hone_os_hold_begin();
    m.most_ns = (uint64_t)fmin(fmax(4 * m.run_ns, prepares ? most_hold_ns : least_hold_ns), most_hold_ns);
    m.begin_ns = hone_os_now_ns();
    hone_os_exit_on_fault(HONE_EXIT_RACY);
    (void)hone_interpreter_watch(HONE_INTERPRETER_RACES, NULL, 0);
    if (made && pthread_create(&threads[1], NULL, race_in_thread, &racers[1]) == 0) {
        const bool is_one = pthread_create(&threads[0], NULL, race_in_thread, &racers[0]) != 0;
        if (is_one) race(&racers[0]);
        if (!is_one) pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
    (void)hone_interpreter_watch(HONE_INTERPRETER_RACED, NULL, 0);
    hone_os_exit_on_fault(0);
    if (made) hone_os_hold_end();
    const racer *failed = racers[0].failure != HONE_FAILURE_NONE ? &racers[0] : &racers[1];
    const hone_failure failure = failed->failure;
    if (failure != HONE_FAILURE_NONE)
        hone_fail(
            err, HONE_KERNEL_FAILED, where, "right alone; %s two threads at once %s", prepares ? "prepared by" : "in",
            failed->err.message);
    free_racer(&racers[0]);
    free_racer(&racers[1]);
    return failure;
}

// First runs ----------------------------------------------------------------------------------------------------------

// A library may do something once for all of its calls, such as filling a table in the first call, and two threads may
// do that at once. In one process both threads begin at the same moment; in the next process one of them is stopped
// within its run.
typedef struct first_runs {
    racer racers[2];
    meeting meeting;
    hone_reference reference; // for the second racer's arrays
    double hold_ns;           // time after which the second thread is stopped in its run; 0: it is not stopped
    bool was_held;
    hone_status statuses[2];
    double times_ns[2]; // of processor time: a thread that waits for a processor gets no further in its run
} first_runs;

static void run_timed(first_runs *f, int number)
{
    const uint64_t start = hone_os_own_ns();
    f->statuses[number] = run_plan(&f->racers[number]);
    f->times_ns[number] = (double)(hone_os_own_ns() - start);
}

static void run_first(first_runs *f)
{
    const uint64_t patience_ns = 100000000;
    int gate = 0;
    meet(&f->meeting, &gate);
    if (f->hold_ns > 0) {
        meet(&f->meeting, &gate); // until the alarm is set
        f->was_held = hone_os_alarm_await(patience_ns);
    }
    run_timed(f, 0);
    hone_os_hold_release();
}

static void *run_second(void *ctx)
{
    const uint64_t most_ns = 20000000;
    first_runs *f = ctx;
    hone_os_holdable self;
    hone_os_alarm alarm = {NULL, false};
    int gate = 0;
    (void)hone_os_hold_insist();
    const bool can = hone_os_hold_join(&self) != 0 && f->hold_ns > 0;
    meet(&f->meeting, &gate);
    if (can) (void)!hone_os_alarm_set(&alarm, (uint64_t)f->hold_ns, most_ns);
    if (f->hold_ns > 0) atomic_fetch_add(&f->meeting.arrived, 1); // without waiting
    run_timed(f, 1);
    if (can) hone_os_alarm_end(&alarm);
    hone_os_hold_leave(&self);
    return NULL;
}

// A run that returns an error is skipped: it is judged when it runs alone.
static bool are_right(first_runs *f, hone_error *err)
{
    hone_session *session = f->racers[0].runner->session;
    hone_reference *references[] = {&session->reference, &f->reference};
    bool right = true;
    double unused = 0;
    for (int i = 0; i < 2 && right; i++) {
        const hone_buffers *buffers = f->racers[i].buffers;
        if (f->statuses[i] != HONE_OK) continue;
        right = hone_buffers_check(buffers, 0, err) == HONE_OK &&
                hone_reference_check(references[i], buffers, 0, &session->tolerance, NULL, &unused, err) == HONE_OK;
    }
    return right;
}

static hone_failure race_first(first_runs *f, hone_error *err)
{
    hone_error why = {.message = ""};
    pthread_t second;
    if (!hone_os_hold_begin()) return HONE_FAILURE_NONE;
    hone_os_exit_on_fault(HONE_EXIT_RACY);
    const bool made = pthread_create(&second, NULL, run_second, f) == 0;
    if (made) {
        run_first(f);
        pthread_join(second, NULL);
    }
    hone_os_exit_on_fault(0);
    hone_os_hold_end();
    if (!made || are_right(f, &why)) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "right alone; in two threads whose first runs meet %s", why.message);
    return HONE_FAILURE_RACY;
}

static bool begin_first_runs(first_runs *f, hone_runner *runner, hone_buffers *others, double after_ns)
{
    hone_session *session = runner->session;
    hone_reference_means means = hone_session_reference_means(session);
    means.pool = others->pool;
    *f = (first_runs){.racers = {{.runner = runner}, {.runner = runner}}, .hold_ns = after_ns};
    if (!make_idle_racer(&f->racers[0], 0, runner, &session->buffers, &f->meeting) ||
        !make_idle_racer(&f->racers[1], 1, runner, others, &f->meeting))
        return false;
    poison_results(&session->buffers);
    return hone_reference_compute(
               &f->reference, &means, session->call, others, &hone_reference_ordinary, session->seed, NULL) == HONE_OK;
}

static hone_failure race_first_runs(hone_runner *runner, double after_ns, double *out_ns, hone_error *err)
{
    hone_buffers others;
    first_runs f;
    hone_failure failure = HONE_FAILURE_NONE;
    if (!hone_site_is_host(&runner->session->site) || !make_others(runner, &others)) return HONE_FAILURE_NONE;
    if (begin_first_runs(&f, runner, &others, after_ns)) failure = race_first(&f, err);
    // The longer run did what is done once. If a thread was stopped, its time would include the stop.
    *out_ns = after_ns > 0 ? f.was_held : fmax(f.times_ns[0], f.times_ns[1]);
    hone_reference_deinit(&f.reference);
    free_racer(&f.racers[0]);
    free_racer(&f.racers[1]);
    hone_buffers_deinit(&others);
    return failure;
}

hone_failure hone_runner_verify_first(
    hone_runner *runner, double after_ns, double *out_ns, double *out_max_error, hone_error *err)
{
    hone_error why = {0};
    const hone_failure racy = race_first_runs(runner, after_ns, out_ns, &why);
    // A candidate that is wrong alone, too, is not reported as racy.
    const hone_failure alone = hone_runner_verify(runner, out_max_error, err);
    if (alone != HONE_FAILURE_NONE) return alone;
    // On a device, runs of a large call fill it and follow each other, while those of a small call overlap.
    if (!hone_site_is_host(&runner->session->site)) return hone_runner_verify_racing(runner, err);
    if (racy != HONE_FAILURE_NONE) *err = why;
    return racy;
}

// Two streams ---------------------------------------------------------------------------------------------------------

// Starts runs on both streams, a few at a time, so that the device has both to do, and then compares what the last run
// of each has left. The number of runs, their order and the gaps between them are random: a kernel that is wrong in
// every eighth run may otherwise be wrong only in runs that are not compared, and an overlap of a few us between a
// write and a read would be missed always or hit always. Short runs end before the host has started the next one, so in
// every other round both streams are held until all runs are queued.
enum { LEAST_ROUNDS = 8, MOST_ROUNDS = 40, MOST_STARTED = 6 };
static const uint64_t lanes_ns = 100000000, longest_gap_ns = 20000, held_ns = 100000;

typedef struct lane {
    hone_runner *runner;
    hone_buffers *buffers; // its first set
    hone_execution execution;
    hone_guarded_scratch scratch;
    char *expected[HONE_MAX_VALUES]; // the results of a run alone
} lane;

static hone_status start_run(const lane *l)
{
    const hone_plan *plan = &l->runner->plan;
    return plan->run(plan, l->buffers->sets[0].values, &l->execution);
}

static hone_status wait_for(const lane *l, hone_error *err)
{
    const hone_site *site = &l->runner->session->site;
    return site->ops->synchronize(site->instance, site->device, l->execution.stream, err);
}

static hone_status run_alone(const lane *l, hone_error *err)
{
    hone_status status = hone_buffers_poison(l->buffers, 0, err);
    if (status == HONE_OK) status = start_run(l);
    const hone_status waited = wait_for(l, err);
    if (status == HONE_OK) status = waited;
    return status == HONE_OK ? hone_buffers_fetch(l->buffers, 0, err) : status;
}

static bool make_lane(lane *l, hone_runner *runner, hone_buffers *buffers, void *stream)
{
    const hone_session *session = runner->session;
    *l = (lane){.runner = runner, .buffers = buffers, .execution = runner->execution};
    l->execution.struct_size = sizeof l->execution;
    l->execution.stream = stream;
    return hone_guarded_scratch_init(
               &l->scratch, &session->allocator, &session->site, runner->plan.scratch_bytes, &l->execution, NULL) ==
               HONE_OK &&
           run_alone(l, NULL) == HONE_OK && keep_results(runner, buffers, l->expected);
}

static void free_lane(lane *l)
{
    if (l->runner == NULL) return;
    hone_guarded_scratch_deinit(&l->scratch);
    let_go(l->runner, l->expected);
}

static bool is_right(const lane *l, hone_error *err)
{
    return hone_buffers_fetch(l->buffers, 0, err) == HONE_OK && is_as_alone(l->runner, l->buffers, l->expected, err);
}

// Waits for a random time below that of a run.
static void leave_gap(const lane *l, uint64_t *random)
{
    const double run_ns = fmin(l->runner->verify_ns, (double)longest_gap_ns);
    const uint64_t end_ns = hone_os_now_ns() + hone_random_next(random) % ((uint64_t)run_ns + 1);
    while (hone_os_now_ns() < end_ns)
        ;
}

static hone_status hold_streams(const lane *l, hone_error *err)
{
    const hone_site *site = &l->runner->session->site;
    if (site->ops->hold_streams == NULL) return HONE_OK;
    return site->ops->hold_streams(site->instance, site->device, held_ns, err);
}

static bool run_round(lane lanes[2], bool is_held, hone_error *err)
{
    hone_status status = HONE_OK;
    uint64_t *random = &lanes[0].runner->session->random;
    const int runs = 2 + (int)(hone_random_next(random) % (2 * MOST_STARTED - 1));
    for (int i = 0; i < 2 && status == HONE_OK; i++)
        status = hone_buffers_poison(lanes[i].buffers, 0, err);
    if (status == HONE_OK && is_held) status = hold_streams(&lanes[0], err);
    for (int run = 0; run < runs && status == HONE_OK; run++) {
        const lane *next = &lanes[run < 2 ? (uint64_t)run : hone_random_next(random) >> 63]; // at least one each
        if (!is_held) leave_gap(next, random);
        status = start_run(next);
    }
    // No results are read while a stream still writes, and both streams are waited for in any case.
    for (int i = 0; i < 2; i++) {
        const hone_status waited = wait_for(&lanes[i], err);
        if (status == HONE_OK) status = waited;
    }
    return status == HONE_OK && is_right(&lanes[0], err) && is_right(&lanes[1], err);
}

static hone_failure race_lanes(hone_runner *runner, hone_buffers *others, void *stream, hone_error *err)
{
    lane lanes[2] = {{.runner = NULL}};
    hone_error why = {.message = ""};
    const uint64_t begin_ns = hone_os_now_ns();
    bool right = true;
    const bool made = make_lane(&lanes[0], runner, &runner->session->buffers, runner->session->site.stream) &&
                      make_lane(&lanes[1], runner, others, stream);
    for (int round = 0; round < MOST_ROUNDS && made && right; round++) {
        if (round >= LEAST_ROUNDS && hone_os_now_ns() - begin_ns > lanes_ns) break;
        right = run_round(lanes, round % 2 != 0, &why);
    }
    free_lane(&lanes[0]);
    free_lane(&lanes[1]);
    if (right) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "right alone; on two streams at once %s", why.message);
    return HONE_FAILURE_RACY;
}

static hone_failure race_streams(hone_runner *runner, hone_buffers *others, hone_error *err)
{
    const hone_site *site = &runner->session->site;
    void *stream = NULL;
    if (site->ops->create_stream == NULL || site->ops->synchronize == NULL ||
        hone_site_waits_for(site, runner->kernel.platform) ||
        site->ops->create_stream(site->instance, site->device, &stream, NULL) != HONE_OK)
        return HONE_FAILURE_NONE;
    const hone_failure failure = race_lanes(runner, others, stream, err);
    site->ops->destroy_stream(site->instance, site->device, stream);
    return failure;
}

// Without memory for the arrays, or a second stream, it returns NONE.
hone_failure hone_runner_verify_racing(hone_runner *runner, hone_error *err)
{
    const hone_session *session = runner->session;
    hone_buffers others;
    if (runner->verify_ns > most_run_ns || !make_others(runner, &others)) return HONE_FAILURE_NONE;
    const hone_failure failure = hone_site_is_host(&session->site) ? race_threads(runner, &others, false, err)
                                                                   : race_streams(runner, &others, err);
    hone_buffers_deinit(&others);
    return failure;
}

hone_failure hone_runner_verify_preparing(hone_runner *runner, hone_error *err)
{
    const hone_kernel *kernel = &runner->kernel;
    const hone_platform_facts *facts = hone_platform_facts_of(kernel->platform);
    const hone_call *call = runner->session->neighbour;
    hone_error unheard = {.message = ""};
    hone_buffers others;
    // Interpreters and compilers prepare one plan at a time. Once per process is enough: what plans share, they share
    // for all calls.
    if (call == NULL || runner->session->prepared_by_two || !hone_site_is_host(&runner->session->site) ||
        facts->is_interpreted || facts->is_module ||
        (kernel->supports != NULL && !kernel->supports(kernel, call, &unheard)) || !make_others(runner, &others))
        return HONE_FAILURE_NONE;
    runner->session->prepared_by_two = true;
    const hone_failure failure = race_threads(runner, &others, true, err);
    hone_buffers_deinit(&others);
    return failure;
}
