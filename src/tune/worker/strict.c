// A candidate that was right on memory that suits it, in places that its call allows: on arrays that are aligned no
// better than the call's key says, with a wall right behind them and then right before them, and in two threads at once.
//
// A wall's fault is noted and goes on (os/walls.h), and what was touched is told by the array's name. Any other fault
// ends the process with an exit code that says which of these it died of.
#include "tune/worker/session.h"

#include "base/error.h"
#include "base/random.h"
#include "os/walls.h"
#include "tune/worker/verify.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SLACK_BYTE = 0xd7, POISON_BYTE = 0xff };

static const char where[] = "tune.strict";
static const size_t most_bytes = 256u << 20;

// Where in its room an array lies.
// BADLY: as near to its end as the alignment allows, and no better aligned than that. TIGHTLY: nearer, where a better
// alignment comes of it.
typedef enum placing { BADLY, TIGHTLY, AT_START } placing;

typedef struct strict_arrays {
    hone_os_walled walled[HONE_MAX_VALUES];
    char *low[HONE_MAX_VALUES]; // of the span
    hone_tensor tensors[HONE_MAX_VALUES];
    hone_value values[HONE_MAX_VALUES];
    hone_os_guard guards[HONE_MAX_VALUES]; // of inputs
} strict_arrays;

// What a call says of an array's alignment, and not more.
static uint32_t least_align(const hone_session *session, size_t index)
{
    const uint32_t align = hone_call_align(session->call, index);
    return align > 0 ? align : HONE_ORDINARY_ALIGN;
}

static char *place_span(const hone_fenced *fenced, const hone_os_walled *walled, placing where_to, uint32_t align)
{
    const uintptr_t below = (uintptr_t)((char *)fenced->tensor.data - fenced->low);
    if (where_to == AT_START) return walled->room;
    uintptr_t first = ((uintptr_t)walled->room + walled->size - fenced->span + below) & ~(uintptr_t)(align - 1);
    if (where_to == BADLY && first % (2 * (uintptr_t)align) == 0) first -= align;
    return (char *)(first - below);
}

static void open_arrays(strict_arrays *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)hone_os_guard_open(&arrays->guards[i]);
}

static void free_arrays(strict_arrays *arrays, size_t count)
{
    open_arrays(arrays, count);
    for (size_t i = 0; i < count; i++)
        hone_os_walled_destroy(&arrays->walled[i]);
}

static bool make_room(const hone_session *session, strict_arrays *arrays)
{
    const hone_buffers *buffers = &session->buffers;
    memset(arrays, 0, sizeof *arrays);
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *fenced = &buffers->sets[0].fenced[i];
        const size_t size = fenced->span + 4 * (size_t)least_align(session, i);
        if (fenced->block == NULL || hone_os_walled_create(&arrays->walled[i], size)) continue;
        free_arrays(arrays, buffers->count);
        return false;
    }
    return true;
}

static void place_array(const hone_session *session, strict_arrays *arrays, size_t index, placing where_to)
{
    const hone_fenced *fenced = &session->buffers.sets[0].fenced[index];
    const uint32_t align = least_align(session, index);
    hone_os_walled *walled = &arrays->walled[index];
    char *low = arrays->low[index] = place_span(fenced, walled, where_to, align);
    const bool is_input = hone_buffers_is_input(&session->buffers, index);
    memset(walled->room, SLACK_BYTE, (size_t)(low - walled->room));
    memset(low + fenced->span, SLACK_BYTE, (size_t)(walled->room + walled->size - (low + fenced->span)));
    if (is_input)
        memcpy(low, fenced->low, fenced->span);
    else
        memset(low, POISON_BYTE, fenced->span);
    arrays->tensors[index] = fenced->tensor;
    arrays->tensors[index].data = low + ((char *)fenced->tensor.data - fenced->low);
    arrays->values[index] = hone_of_tensor(&arrays->tensors[index]);
    if (is_input) (void)hone_os_guard_close(&arrays->guards[index], walled->room, walled->size);
}

static void place_arrays(const hone_session *session, strict_arrays *arrays, placing where_to)
{
    const hone_buffers *buffers = &session->buffers;
    open_arrays(arrays, buffers->count);
    for (size_t i = 0; i < buffers->count; i++) {
        arrays->values[i] = buffers->sets[0].values[i];
        if (arrays->walled[i].block != NULL) place_array(session, arrays, i, where_to);
    }
}

static bool is_slack(const char *from, const char *to)
{
    for (; from < to; from++)
        if ((unsigned char)*from != SLACK_BYTE) return false;
    return true;
}

// What a run did around one array, in words; NULL: nothing.
static const char *fault_of(const strict_arrays *arrays, size_t index, size_t span)
{
    const hone_os_walled *walled = &arrays->walled[index];
    if (hone_os_guard_was_written(&walled->behind)) return "read or wrote past the end of";
    if (hone_os_guard_was_written(&walled->before)) return "read or wrote before the start of";
    if (hone_os_guard_was_written(&arrays->guards[index])) return "wrote into";
    if (!is_slack(walled->room, arrays->low[index])) return "wrote before the start of";
    if (!is_slack(arrays->low[index] + span, walled->room + walled->size)) return "wrote past the end of";
    return NULL;
}

static hone_failure check_arrays(const hone_session *session, const strict_arrays *arrays, hone_error *err)
{
    const hone_buffers *buffers = &session->buffers;
    for (size_t i = 0; i < buffers->count; i++) {
        if (arrays->walled[i].block == NULL) continue;
        const char *fault = fault_of(arrays, i, buffers->sets[0].fenced[i].span);
        if (fault == NULL) continue;
        hone_fail(
            err, HONE_KERNEL_FAILED, where, "%s %s", fault, hone_signature_parameter(buffers->signature, i)->name);
        return HONE_FAILURE_BOUNDS;
    }
    return HONE_FAILURE_NONE;
}

// Where the checks look for results.
static void take_results(const hone_session *session, const strict_arrays *arrays)
{
    const hone_buffers *buffers = &session->buffers;
    for (size_t i = 0; i < buffers->count; i++)
        if (hone_buffers_is_result(buffers, i))
            memcpy(buffers->sets[0].fenced[i].low, arrays->low[i], buffers->sets[0].fenced[i].span);
}

static hone_failure run_placed(
    hone_runner *runner, const strict_arrays *arrays, placing where_to, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_error why = {.message = ""};
    if (hone_buffers_poison(&session->buffers, 0, err) != HONE_OK) return HONE_FAILURE_RUN;
    hone_os_exit_on_fault(where_to == BADLY ? HONE_EXIT_UNALIGNED : 0);
    hone_status status = hone_runner_run_values(runner, arrays->values, &why);
    hone_os_exit_on_fault(0);
    hone_failure failure = check_arrays(session, arrays, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    take_results(session, arrays);
    failure = hone_runner_judge(runner, status, &why, out_max_error, err);
    if (failure == HONE_FAILURE_NONE || where_to != BADLY) return failure;
    hone_fail_prefix(err, HONE_KERNEL_FAILED, "on arrays that are aligned no better than the call allows");
    return HONE_FAILURE_UNALIGNED;
}

static bool has_walls(const hone_session *session)
{
    return session->buffers.guards && hone_buffers_bytes(&session->buffers) <= most_bytes;
}

hone_failure hone_runner_verify_placed(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_failure failure = HONE_FAILURE_NONE;
    if (!has_walls(session)) return HONE_FAILURE_NONE;
    strict_arrays *arrays = hone_alloc(&session->allocator, sizeof *arrays);
    const bool has_room = arrays != NULL && make_room(session, arrays); // without room nothing is said
    for (placing at = BADLY; has_room && at <= AT_START && failure == HONE_FAILURE_NONE; at++) {
        double error = 0;
        place_arrays(session, arrays, at);
        failure = run_placed(runner, arrays, at, &error, err);
        if (error > *out_max_error) *out_max_error = error;
    }
    if (has_room) free_arrays(arrays, session->buffers.count);
    hone_free(&session->allocator, arrays);
    return failure;
}

// Two threads at once --------------------------------------------------------------------------------------------------

// By chance two runs overlap, or do not: on a busy machine one thread may well run while the other waits. So first one
// thread is stopped in the middle of its run, and stands still while the other one does a whole run; then the other way
// round, again and again. A scheduler may do the same at any time. After that both run as they like.
typedef struct meeting {
    atomic_int arrived;         // at its gates, by both threads
    atomic_bool inside;         // the one that is to be held is in its run
    atomic_bool over;           // nobody is held any more
    int holds;                  // that were within a run
    uint64_t spent_ns;          // since it began
    int threads[2];             // of the racers
    uint64_t begin_ns, most_ns; // when it began; what a thread stands still for at most
    double run_ns;
    uint64_t random;
} meeting;

// A thread with arrays of its own, of other numbers than the other thread's: what one leaves where both work shows.
typedef struct racer {
    hone_runner *runner;
    hone_buffers *buffers; // its first set
    hone_execution execution;
    char *scratch;
    char *expected[HONE_MAX_VALUES]; // the results of a run alone
    meeting *meeting;
    int number;
    hone_failure failure;
    hone_error err;
} racer;

enum { LEAST_RUNS = 2, LEAST_HOLDS = 12, LEAST_LONG_HOLDS = 2, MOST_HOLDS = 32, SCRATCH_ALIGN = 64 };
static const uint64_t hold_ns = 10000000, race_ns = 20000000; // when each of the two ends
static const uint64_t patient_ns = 400000000;                 // the first of them, where threads wait for a processor
// Long runs overlap also when they run as they like.
static const double most_run_ns = 500e6, long_run_ns = 200e3;
static const size_t most_race_bytes = 64u << 20;

static void poison_results(const hone_buffers *buffers)
{
    for (size_t i = 0; i < buffers->count; i++)
        if (hone_buffers_is_result(buffers, i))
            memset(buffers->sets[0].fenced[i].low, POISON_BYTE, buffers->sets[0].fenced[i].span);
}

static hone_status run_plan(racer *r)
{
    const hone_plan *plan = &r->runner->plan;
    return plan->run(plan, r->buffers->sets[0].values, r->execution.struct_size != 0 ? &r->execution : NULL);
}

static hone_status run_racer(racer *r)
{
    poison_results(r->buffers);
    return run_plan(r);
}

// Both runs may be off by the tolerance, to either side.
static hone_status compare_one(racer *r, size_t index)
{
    const hone_session *session = r->runner->session;
    const hone_fenced *fenced = &r->buffers->sets[0].fenced[index];
    if (memcmp(fenced->low, r->expected[index], fenced->span) == 0) return HONE_OK;
    hone_tensor expected = fenced->tensor;
    expected.data = r->expected[index] + ((char *)fenced->tensor.data - fenced->low);
    hone_yardstick yardstick =
        hone_verify_yardstick(&session->tolerance, fenced->tensor.dtype, session->reference.largest[index]);
    yardstick.base *= 2;
    yardstick.relative *= 2;
    double error;
    const char *name = hone_signature_parameter(session->signature, index)->name;
    return hone_verify_compare(NULL, name, &fenced->tensor, &expected, &yardstick, &error, &r->err);
}

static void judge_racer(racer *r, hone_status status)
{
    if (status != HONE_OK) {
        hone_fail(&r->err, status, where, "answers '%s'", hone_status_name(status));
        r->failure = HONE_FAILURE_RACY;
    }
    for (size_t i = 0; r->failure == HONE_FAILURE_NONE && i < r->buffers->count; i++)
        if (r->expected[i] != NULL && compare_one(r, i) != HONE_OK) r->failure = HONE_FAILURE_RACY;
}

// Nobody goes on before both are here.
static void meet(meeting *m, int *gate)
{
    atomic_fetch_add(&m->arrived, 1);
    *gate += 2;
    while (atomic_load(&m->arrived) < *gate)
        hone_os_yield();
}

// Runs until it was held in the middle of one, whose results count.
static void run_held(racer *r)
{
    meeting *m = r->meeting;
    hone_status status;
    do {
        poison_results(r->buffers);
        atomic_store(&m->inside, true);
        status = run_plan(r);
        atomic_store(&m->inside, false);
    } while (status == HONE_OK && !atomic_load(&m->over));
    judge_racer(r, status);
}

// At a place of its run that nobody knows. False: it was between two of them.
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

// A whole run while the other thread stands still.
static void run_holding(racer *r)
{
    enum { TRIES = 16 };
    meeting *m = r->meeting;
    bool holds = false;
    for (int i = 0; i < TRIES && !holds && m->threads[1 - r->number] != 0; i++)
        holds = hold_inside(m, m->threads[1 - r->number]);
    const hone_status status = run_racer(r);
    atomic_store(&m->over, true);
    if (holds) hone_os_hold_release();
    m->holds += holds;
    judge_racer(r, status);
}

// Both threads agree: what they decide by is written before a gate and read behind it.
static bool is_held_again(const meeting *m, int round)
{
    const int least = m->run_ns > long_run_ns ? LEAST_LONG_HOLDS : LEAST_HOLDS;
    return round < least || (round < MOST_HOLDS && m->spent_ns < (m->holds < least ? patient_ns : hold_ns));
}

static void race_held(racer *r)
{
    meeting *m = r->meeting;
    int gate = 0;
    meet(m, &gate); // also where the threads' numbers are known
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
    race_freely(r);
    hone_os_hold_leave(&self);
    return NULL;
}

static bool keep_expected(racer *r)
{
    const hone_allocator *allocator = &r->runner->session->allocator;
    if (run_racer(r) != HONE_OK) return false;
    for (size_t i = 0; i < r->buffers->count; i++) {
        const hone_fenced *fenced = &r->buffers->sets[0].fenced[i];
        if (!hone_buffers_is_result(r->buffers, i)) continue;
        r->expected[i] = hone_alloc(allocator, fenced->span);
        if (r->expected[i] == NULL) return false;
        memcpy(r->expected[i], fenced->low, fenced->span);
    }
    return true;
}

static bool make_racer(racer *r, int number, hone_runner *runner, hone_buffers *buffers, meeting *m)
{
    const size_t bytes = runner->plan.scratch_bytes;
    *r = (racer){.runner = runner, .buffers = buffers, .meeting = m, .number = number, .execution = runner->execution};
    if (bytes > 0) {
        r->scratch = hone_alloc(&runner->session->allocator, bytes + SCRATCH_ALIGN);
        if (r->scratch == NULL) return false;
        r->execution.scratch = r->scratch + (SCRATCH_ALIGN - (uintptr_t)r->scratch % SCRATCH_ALIGN);
    }
    return keep_expected(r);
}

static void free_racer(racer *r)
{
    const hone_allocator *allocator = &r->runner->session->allocator;
    hone_free(allocator, r->scratch);
    for (size_t i = 0; i < HONE_MAX_VALUES; i++)
        hone_free(allocator, r->expected[i]);
}

static hone_failure run_race(hone_runner *runner, hone_buffers *others, hone_error *err)
{
    racer racers[2] = {{.runner = runner}, {.runner = runner}};
    const double most_hold_ns = 50e6, least_hold_ns = 1e6;
    meeting m = {.run_ns = runner->verify_ns, .random = hone_os_random_seed()};
    m.most_ns = (uint64_t)fmin(fmax(4 * m.run_ns, least_hold_ns), most_hold_ns);
    pthread_t other;
    bool made = make_racer(&racers[0], 0, runner, &runner->session->buffers, &m);
    made = made && make_racer(&racers[1], 1, runner, others, &m) && hone_os_hold_begin();
    m.begin_ns = hone_os_now_ns();
    hone_os_exit_on_fault(HONE_EXIT_RACY);
    if (made && pthread_create(&other, NULL, race, &racers[1]) == 0) {
        race(&racers[0]);
        pthread_join(other, NULL);
    }
    hone_os_exit_on_fault(0);
    if (made) hone_os_hold_end();
    const racer *failed = racers[0].failure != HONE_FAILURE_NONE ? &racers[0] : &racers[1];
    const hone_failure failure = failed->failure;
    if (failure != HONE_FAILURE_NONE)
        hone_fail(err, HONE_KERNEL_FAILED, where, "right alone; in two threads at once %s", failed->err.message);
    free_racer(&racers[0]);
    free_racer(&racers[1]);
    return failure;
}

hone_failure hone_runner_verify_racing(hone_runner *runner, hone_error *err)
{
    hone_session *session = runner->session;
    hone_buffers others;
    const size_t bytes = hone_buffers_bytes(&session->buffers);
    if (!hone_site_is_host(&session->site)) return hone_runner_verify_streams(runner, err);
    if (!session->buffers.guards || bytes > most_race_bytes || runner->verify_ns > most_run_ns)
        return HONE_FAILURE_NONE;
    hone_status status = hone_buffers_create(
        &others, session->allocator, session->signature, &session->algorithm, &session->site, session->values,
        session->count, NULL);
    if (status != HONE_OK) return HONE_FAILURE_NONE; // without room nothing is said
    enum { OTHER_SEED = 77 };
    hone_buffers_work_with(&others, session->buffers.pool, false);
    status = hone_buffers_fill(&others, session->call, session->seed + OTHER_SEED, NULL);
    hone_failure failure = status == HONE_OK ? run_race(runner, &others, err) : HONE_FAILURE_NONE;
    hone_buffers_deinit(&others);
    return failure;
}
