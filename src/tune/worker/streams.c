// A candidate of a device that was right alone, on two streams at once: what two runs share that should be each one's
// own (a buffer in the device's memory, a counter) shows where they work at the same time.
//
// Each stream has arrays and scratch memory of its own, with other numbers. Runs are started on both in turn, a few at
// a time, so that the device has both to do; then what the last of each left is compared with what it left alone. How
// many is drawn: who is wrong in every eighth run is not always so in one that nobody looks at.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "tune/worker/verify.h"

#include <string.h>

enum { LEAST_ROUNDS = 8, MOST_ROUNDS = 40, MOST_RUNS = 6, OTHER_SEED = 77 };

static const char where[] = "tune.streams";
static const size_t most_bytes = 64u << 20;
static const double most_run_ns = 500e6;
static const uint64_t race_ns = 100000000;

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

static bool keep_expected(lane *l)
{
    const hone_allocator *allocator = &l->runner->session->allocator;
    if (run_alone(l, NULL) != HONE_OK) return false;
    for (size_t i = 0; i < l->buffers->count; i++) {
        const hone_fenced *fenced = &l->buffers->sets[0].fenced[i];
        if (!hone_buffers_is_result(l->buffers, i) || fenced->block == NULL) continue;
        l->expected[i] = hone_alloc(allocator, fenced->span);
        if (l->expected[i] == NULL) return false;
        memcpy(l->expected[i], fenced->low, fenced->span);
    }
    return true;
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
           keep_expected(l);
}

static void free_lane(lane *l)
{
    if (l->runner == NULL) return;
    hone_guarded_scratch_deinit(&l->scratch);
    for (size_t i = 0; i < HONE_MAX_VALUES; i++)
        hone_free(&l->runner->session->allocator, l->expected[i]);
}

static hone_status compare_one(const lane *l, size_t index, hone_error *err)
{
    const hone_session *session = l->runner->session;
    const hone_fenced *fenced = &l->buffers->sets[0].fenced[index];
    if (memcmp(fenced->low, l->expected[index], fenced->span) == 0) return HONE_OK;
    hone_tensor expected = fenced->tensor;
    expected.data = l->expected[index] + ((char *)fenced->tensor.data - fenced->low);
    // Both runs may be off by the tolerance, to either side.
    hone_yardstick yardstick =
        hone_verify_yardstick(&session->tolerance, fenced->tensor.dtype, session->reference.largest[index]);
    yardstick.base *= 2;
    yardstick.relative *= 2;
    double error;
    const char *name = hone_signature_parameter(session->signature, index)->name;
    return hone_verify_compare(NULL, name, &fenced->tensor, &expected, &yardstick, &error, err);
}

static bool is_right(const lane *l, hone_error *err)
{
    if (hone_buffers_fetch(l->buffers, 0, err) != HONE_OK) return false;
    for (size_t i = 0; i < l->buffers->count; i++)
        if (l->expected[i] != NULL && compare_one(l, i, err) != HONE_OK) return false;
    return true;
}

static bool run_round(lane lanes[2], hone_error *err)
{
    hone_status status = HONE_OK;
    const int runs = 2 + (int)(hone_random_next(&lanes[0].runner->session->random) % (2 * MOST_RUNS - 1));
    for (int i = 0; i < 2 && status == HONE_OK; i++)
        status = hone_buffers_poison(lanes[i].buffers, 0, err);
    for (int run = 0; run < runs && status == HONE_OK; run++)
        status = start_run(&lanes[run % 2]);
    // Nobody reads what a stream still writes, and both are waited for in any case.
    for (int i = 0; i < 2; i++) {
        const hone_status waited = wait_for(&lanes[i], err);
        if (status == HONE_OK) status = waited;
    }
    return status == HONE_OK && is_right(&lanes[0], err) && is_right(&lanes[1], err);
}

static hone_failure race(hone_runner *runner, hone_buffers *others, void *stream, hone_error *err)
{
    lane lanes[2] = {{.runner = NULL}};
    hone_error why = {.message = ""};
    const uint64_t begin_ns = hone_os_now_ns();
    bool right = true;
    const bool made = make_lane(&lanes[0], runner, &runner->session->buffers, runner->session->site.stream) &&
                      make_lane(&lanes[1], runner, others, stream);
    for (int round = 0; round < MOST_ROUNDS && made && right; round++) {
        if (round >= LEAST_ROUNDS && hone_os_now_ns() - begin_ns > race_ns) break;
        right = run_round(lanes, &why);
    }
    free_lane(&lanes[0]);
    free_lane(&lanes[1]);
    if (right) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "right alone; on two streams at once %s", why.message);
    return HONE_FAILURE_RACY;
}

// Without room, or a second stream, nothing is said.
hone_failure hone_runner_verify_streams(hone_runner *runner, hone_error *err)
{
    hone_session *session = runner->session;
    const hone_site *site = &session->site;
    hone_buffers others;
    void *stream = NULL;
    hone_assert(!hone_site_is_host(site));
    if (site->ops->create_stream == NULL || site->ops->synchronize == NULL ||
        hone_site_is_visited_by(site, runner->kernel.platform) || runner->verify_ns > most_run_ns ||
        hone_buffers_bytes(&session->buffers) > most_bytes)
        return HONE_FAILURE_NONE;
    if (site->ops->create_stream(site->instance, site->device, &stream, NULL) != HONE_OK) return HONE_FAILURE_NONE;
    hone_failure failure = HONE_FAILURE_NONE;
    if (hone_buffers_create(
            &others, session->allocator, session->signature, &session->algorithm, site, session->values, session->count,
            NULL) == HONE_OK) {
        if (hone_buffers_fill(&others, session->call, session->seed + OTHER_SEED, NULL) == HONE_OK)
            failure = race(runner, &others, stream, err);
        hone_buffers_deinit(&others);
    }
    site->ops->destroy_stream(site->instance, site->device, stream);
    return failure;
}
