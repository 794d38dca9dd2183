#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "platforms/platform.h"
#include "registry/names.h"
#include "tune/worker/confine.h"

#include <math.h>
#include <string.h>

// After a candidate was timed, up to so many further runs are compared, for about race_verified_ns. With runs longer
// than hone_long_verified_ns none are, if samples were compared.
enum { RACE_VERIFIED = 8 };
static const double race_verified_ns = 1e6;
// Duration of the checks for a leader, in verified runs: on some ten kinds of values, in three places, and two times
// nine runs of probes.
enum { LOOKS_AT_LEADER = 30 };
// Duration of making those values: so many verified runs and as many runs of the reference.
enum { LOOKS_OF_VALUES = 12 };

static const double most_proof_ns = 1e15;

enum { CACHE_GUESS = 32 << 20, FLOOD_LIMIT = 256 << 20 };

static const char where[] = "tune.worker";

void hone_session_init(hone_session *session, hone_allocator allocator, const hone_kernel_reader *how, hone_pool *pool)
{
    memset(session, 0, sizeof *session);
    session->allocator = allocator;
    session->arena.allocator = allocator;
    hone_variants_init(&session->variants, allocator);
    session->how = *how;
    session->packs =
        (hone_pack_shelf){.allocator = allocator, .platforms = hone_platform_facts_of, .gpu = hone_platform_packs.gpu};
    session->how.packs = &session->packs;
    session->given_pool = pool;
}

static void close_call(hone_session *session)
{
    if (session->open) {
        hone_session_forget_scalars(session);
        memset(session->led, 0, sizeof session->led);
        memset(session->unadvised, 0, sizeof session->unadvised);
        hone_variants_deinit(&session->variants);
        session->has_leaders_variants = session->has_all_variants = false;
        hone_reference_deinit(&session->reference);
        hone_buffers_deinit(&session->buffers);
    }
    session->open = false;
    hone_call_release(&session->call);
    hone_call_release(&session->blind);
    hone_signature_release(&session->signature);
    hone_free(&session->allocator, session->flood);
    session->flood = NULL;
    session->floods = false;
    hone_arena_destroy(&session->arena);
}

void hone_session_deinit(hone_session *session)
{
    close_call(session);
    hone_call_release(&session->neighbour);
    hone_site_close(&session->site);
    hone_pool_destroy(&session->own_pool);
    hone_pack_shelf_empty(&session->packs);
}

// Whether the session runs in the host process, whose threads and handlers are not its own.
static bool is_shared(const hone_session *session)
{
    return session->given_pool != NULL || session->note == NULL;
}

// Open ----------------------------------------------------------------------------------------------------------------

// For a device of another kind, the processors work too: they compute references, inputs and comparisons.
static int32_t threads_beside(const hone_device_info *device)
{
    enum { MOST = 32 }; // more would wait for memory
    if (device->backend == HONE_CPU) return device->threads > 0 ? device->threads : 1;
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    return cpu.threads < MOST ? cpu.threads : MOST;
}

static hone_status take_pool(hone_session *session, hone_error *err)
{
    const int32_t threads = threads_beside(&session->device);
    if (session->given_pool != NULL) return HONE_OK;
    if (session->own_pool != NULL && hone_pool_threads(session->own_pool) == threads) return HONE_OK;
    hone_pool_destroy(&session->own_pool);
    return hone_pool_create(&session->allocator, threads, &session->own_pool, err);
}

// All sets together must not fit the last-level cache. If HONE_MAX_SETS of them do, a flood is used as well.
static hone_status make_cold(hone_session *session, hone_error *err)
{
    if (session->regime != HONE_COLD) return HONE_OK;
    bool is_host = hone_site_is_host(&session->site);
    const hone_device_info *device = &session->device;
    int64_t last_cache = is_host || device->l3_bytes > 0 ? device->l3_bytes : device->l2_bytes;
    size_t cache = last_cache > 0 ? (size_t)last_cache : CACHE_GUESS;
    if (cache > FLOOD_LIMIT / 2) cache = FLOOD_LIMIT / 2;
    hone_status status = hone_buffers_rotate(&session->buffers, session->values, 2 * cache, err);
    if (status != HONE_OK || hone_buffers_bytes(&session->buffers) * session->buffers.set_count > cache) return status;
    if (!is_host) {
        session->floods = true;
        return hone_site_make_flood(&session->site, 2 * cache, err);
    }
    session->flood = hone_alloc(&session->allocator, 2 * cache);
    if (session->flood == NULL) return hone_fail_memory(err, where);
    session->flood_size = 2 * cache;
    memset(session->flood, 1, session->flood_size);
    return HONE_OK;
}

static hone_status bind_call(hone_session *session, hone_call **out, hone_error *err)
{
    const hone_value *values = session->buffers.sets[0].values;
    return hone_call_bind(session->allocator, session->signature, values, session->count, false, out, err);
}

static hone_status make_call(hone_session *session, const char *key, hone_error *err)
{
    hone_status status = bind_call(session, &session->call, err);
    if (status == HONE_OK) status = bind_call(session, &session->blind, err);
    if (status != HONE_OK) return status;
    hone_call_forget_data(session->blind);
    if (key != NULL && strcmp(hone_call_key(session->call), key) != 0)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the worker reads the call as %s with key %s, the library has key %s",
            hone_call_text(session->call), hone_call_key(session->call), key);
    return hone_buffers_fill(&session->buffers, session->call, session->seed, err);
}

// For the library's own algorithms their tests check this. A module would be compiled again for a part.
static bool parts_are_checked(const hone_session *session)
{
    const double most_ns = 20e6;
    const bool compiles =
        session->stand_in.struct_size != 0 && hone_platform_facts_of(session->stand_in.platform)->is_module;
    return session->algorithm.independent != NULL && !session->knows_algorithm && !compiles &&
           session->reference.time_ns > 0 && session->reference.time_ns < most_ns;
}

static hone_status make_data(hone_session *session, const char *key, hone_error *err)
{
    hone_status status = make_call(session, key, err);
    if (status == HONE_OK) status = make_cold(session, err);
    if (status != HONE_OK) return status;
    const hone_reference_means means = hone_session_reference_means(session);
    hone_reference_use use = hone_reference_ordinary;
    use.is_timed = true;
    status =
        hone_reference_compute(&session->reference, &means, session->call, &session->buffers, &use, session->seed, err);
    if (status != HONE_OK || !parts_are_checked(session)) return status;
    return hone_reference_check_parting(&session->reference, &session->buffers, &session->tolerance, err);
}

// Other values --------------------------------------------------------------------------------------------------------

// Keeps the default's results on the values that are loaded. They must be the same in two runs.
static hone_status keep_standard(hone_session *session, hone_runner *runner, hone_error *err)
{
    hone_failure failure = hone_runner_run(runner, err);
    if (failure != HONE_FAILURE_NONE) return HONE_KERNEL_FAILED;
    hone_status status = hone_variants_keep_bits(&session->variants, &session->buffers, err);
    if (status != HONE_OK) return status;
    failure = hone_runner_run(runner, err);
    if (failure != HONE_FAILURE_NONE) return HONE_KERNEL_FAILED;
    status = hone_variants_compare_bits(&session->variants, &session->buffers, err);
    return status == HONE_OK
               ? status
               : hone_fail_prefix(
                     err, HONE_KERNEL_FAILED, "%s gives other bits in each run: no result can be bit-equal",
                     session->standard.name);
}

static hone_status keep_standards(hone_session *session, hone_error *err)
{
    hone_runner runner;
    hone_failure failure = hone_runner_init(&runner, session, &session->standard, &session->standard_config, err);
    hone_status status = failure == HONE_FAILURE_NONE ? HONE_OK : HONE_KERNEL_FAILED;
    for (int kind = 0; kind < HONE_VARIANT_COUNT && status == HONE_OK; kind++) {
        status = hone_variants_load(&session->variants, (hone_variant_kind)kind, &session->buffers, err);
        if (status == HONE_OK) status = keep_standard(session, &runner, err);
    }
    hone_runner_deinit(&runner);
    if (status != HONE_OK)
        hone_fail_prefix(err, status, "results must have the bits of the default's, %s", session->standard.name);
    return status;
}

static hone_status make_variants(hone_session *session, hone_error *err)
{
    session->variants.shares = hone_session_is_quick(session);
    if (!session->stable && !session->variants.shares) return HONE_OK;
    const hone_verify_depth depth = session->stable ? HONE_FOR_LEADERS : HONE_FOR_ALL;
    hone_status status = hone_session_make_variants(session, depth, HONE_VARIANT_COUNT - 1, err);
    if (status == HONE_OK && session->stable) status = keep_standards(session, err);
    if (status != HONE_OK) return status;
    return hone_variants_load(&session->variants, HONE_VARIANT_ORIGINAL, &session->buffers, err);
}

static hone_status open_site(hone_session *session, hone_error *err)
{
    const hone_device_info *open = session->site.device, *wanted = &session->device;
    bool same = open != NULL && open->platform == wanted->platform && open->device.id == wanted->device.id;
    if (same && !hone_site_is_lost(&session->site)) return HONE_OK;
    hone_site_close(&session->site);
    return hone_site_open(&session->site, &session->allocator, wanted, err);
}

// Checks a kernel the first time that it is tried, before advice that it left could be attributed to another one. A
// check takes a part of a millisecond.
static hone_failure check_advice_once(hone_session *session, const hone_kernel *kernel, hone_error *err)
{
    const uint64_t identity = hone_kernel_identity(kernel);
    for (uint32_t i = 0; i < HONE_KNOWN_WITH_OTHERS; i++)
        if (session->unadvised[i] == identity) return HONE_FAILURE_NONE;
    const hone_failure failure = hone_session_check_advice(session, err);
    if (failure == HONE_FAILURE_NONE) session->unadvised[session->next_unadvised++ % HONE_KNOWN_WITH_OTHERS] = identity;
    return failure;
}

static hone_status open_call(hone_session *session, const char *key, hone_error *err)
{
    if (session->algorithm.reference == NULL && session->stand_in.struct_size == 0)
        return hone_fail(err, HONE_NOT_FOUND, where, "the algorithm has no reference: nothing can be verified");
    hone_status status = take_pool(session, err);
    if (status == HONE_OK) status = open_site(session, err);
    if (status == HONE_OK)
        status = hone_signature_parse(session->allocator, session->algorithm.signature, &session->signature, err);
    if (status == HONE_OK)
        status = hone_buffers_create(
            &session->buffers, session->allocator, session->signature, &session->algorithm, &session->site,
            session->values, session->count, err);
    if (status != HONE_OK) return status;
    hone_buffers_work_with(&session->buffers, hone_session_pool(session), !is_shared(session));
    status = make_data(session, key, err);
    if (status != HONE_OK) {
        hone_buffers_deinit(&session->buffers);
        return status;
    }
    session->open = true;
    session->advice = hone_session_read_advice(session);
    status = make_variants(session, err);
    if (status != HONE_OK) close_call(session);
    return status;
}

static void fill_opened(const hone_session *session, const hone_error *err, hone_opened *out)
{
    out->status = err->status;
    hone_words_copy(out->message, sizeof out->message, err->status == HONE_OK ? "" : err->message);
    if (!session->open) return;
    out->reference_ns = session->reference.time_ns;
    hone_reference_describe(&session->reference, out->how, sizeof out->how);
    out->whole = session->reference.parting.count;
    out->parts = session->reference.part_count > 0 ? session->reference.part_count : out->whole;
}

static void handle_open(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_error err = {0};
    hone_opened opened = {0};
    hone_message_get_device(reader, &session->device);
    hone_status status = hone_message_get_algorithm(
        reader, &session->how, &session->algorithm, &session->knows_algorithm, &session->stand_in, &err);
    hone_message_get_call(reader, &session->values, &session->count);
    const char *key = hone_wire_get_text(reader);
    uint8_t regime = hone_wire_get_u8(reader);
    session->regime = hone_regime_with((hone_regime)regime, false);
    session->stable = hone_regime_is_stable((hone_regime)regime);
    session->seed = hone_wire_get_u64(reader);
    session->random = hone_os_random_seed();
    hone_wire_get(reader, &session->tolerance, sizeof session->tolerance);
    if (session->stable) {
        hone_status read = hone_message_get_kernel(reader, &session->how, &session->standard, &err);
        hone_message_get_config(reader, &session->standard_config);
        if (status == HONE_OK) status = read;
    }
    if (status == HONE_OK) status = hone_wire_check(reader, &err);
    if (status == HONE_OK) status = open_call(session, key, &err);
    hone_side_effects_init(&session->effects, is_shared(session), session->site.instance != NULL);
    err.status = status;
    fill_opened(session, &err, &opened);
    hone_message_put_opened(answer, &opened);
}

// Try -----------------------------------------------------------------------------------------------------------------

static double since(uint64_t start)
{
    return (double)(hone_os_now_ns() - start);
}

// The request of one TRY.
typedef struct try_request {
    hone_kernel kernel;
    hone_config config;
    uint8_t changes; // of scalars to verify it with, a bit for each
    hone_stopping stopping;
    hone_try_sort sort;
    double proof_ns;             // longest time for the checks for a leader, if it leads
    bool is_known;               // a kernel of the library
    double looks_ns, repeats_ns; // time until hone_runner_has_time and hone_runner_repeats return false; 0: for ever
    const uint64_t *known;       // digests of this kernel's code that were measured
    uint32_t known_count;
} try_request;

static hone_failure verify_first(hone_runner *runner, double *max_error, hone_error *err)
{
    hone_failure failure = hone_runner_verify(runner, max_error, err);
    return failure == HONE_FAILURE_NONE ? hone_runner_verify_in_place(runner, max_error, err) : failure;
}

// Checks that take long nearly always have the same result for all configs of a kernel, so one config is checked. The
// config that wins is checked in the finals. Of the library's own kernels, whose configs the library's tests verify, a
// further leader gets no checks for leaders at all (wants_proof): on other values alone they took a tenth of a contest
// of 4 s.
static bool has_led(const hone_runner *runner)
{
    const uint64_t identity = hone_kernel_identity(&runner->kernel);
    for (uint32_t i = 0; i < HONE_KNOWN_WITH_OTHERS; i++)
        if (runner->session->led[i] == identity) return true;
    return false;
}

static bool wants_proof(const hone_runner *runner)
{
    return !(runner->is_known && has_led(runner));
}

static void note_leader(hone_runner *runner)
{
    hone_session *session = runner->session;
    session->led[session->next_led++ % HONE_KNOWN_WITH_OTHERS] = hone_kernel_identity(&runner->kernel);
}

// Verifies a candidate that may win again: a kernel that is right in its first run may be wrong in its thousandth, or
// on other values. The current leader may be the final winner.
static hone_failure verify_last(
    hone_runner *runner, hone_verify_depth depth, uint8_t changes, double *max_error, hone_error *err)
{
    const bool leads = depth > HONE_FOR_ALL;
    hone_failure failure = leads && hone_runner_must_look(runner) ? hone_runner_probe(runner, err) : HONE_FAILURE_NONE;
    // A sample of a long run was a run whose results were compared, too.
    if (failure == HONE_FAILURE_NONE && !(runner->verify_ns > hone_long_verified_ns && runner->judged_ns > 0))
        failure = hone_runner_verify_often(runner, RACE_VERIFIED, race_verified_ns, max_error, err);
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_verify_variants(runner, depth, max_error, err);
    if (failure != HONE_FAILURE_NONE || !leads || has_led(runner) || !hone_runner_must_look(runner)) return failure;
    failure = hone_runner_probe_renewed(runner, depth, err);
    if (failure == HONE_FAILURE_NONE && hone_runner_must_look(runner))
        failure = hone_runner_verify_scalars(runner, changes, max_error, err);
    if (failure == HONE_FAILURE_NONE && hone_runner_must_look(runner))
        failure = hone_runner_verify_places(runner, depth, max_error, err);
    if (failure == HONE_FAILURE_NONE && !runner->left_out) note_leader(runner);
    return failure;
}

// In stages: first all results of its first run, then its times, and the other checks only if these do not show that it
// is slower than the best. A candidate that is resumed with such a time wins only through the finals, which make all
// checks.
static hone_failure measure(hone_runner *runner, const try_request *q, hone_trial *out, hone_error *err)
{
    const hone_stopping *stopping = &q->stopping;
    uint64_t start = hone_os_now_ns();
    hone_failure failure = verify_first(runner, &out->max_error, err);
    hone_side_effects_begun(&runner->session->effects);
    hone_pool_rest(runner->session->own_pool); // its threads would spin beside the first runs that are timed
    out->spent.verify_ns = since(start);
    out->look_ns = runner->look_ns;
    if (failure != HONE_FAILURE_NONE) return failure;
    hone_session_pass_phase(runner->session);
    hone_runner_recall(runner);
    const bool learnt = runner->learns != NULL;
    failure = hone_measure_candidate(runner, stopping, out, err);
    hone_session_pass_phase(runner->session);
    runner->race_ns = out->time_ns;
    if (failure == HONE_FAILURE_NONE) failure = hone_pursue_leak(runner, stopping, out->time_ns, err);
    start = hone_os_now_ns();
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_check(runner, err);
    const bool leads = q->sort != HONE_TRY_AGAIN && (stopping->best_ns == 0 || out->time_ns < stopping->best_ns);
    // The finals make all checks: a slow run is not repeated here more often than the contest has time for.
    const hone_session *session = runner->session;
    const double looks = has_led(runner) ? LOOKS_AT_LEADER / 2 : LOOKS_AT_LEADER,
                 values_ns = LOOKS_OF_VALUES * (out->look_ns + session->reference.time_ns),
                 proof_ns = looks * out->look_ns + (session->has_leaders_variants ? 0 : values_ns);
    const bool proves = leads && wants_proof(runner);
    out->unproven = proves && q->sort == HONE_TRY_RACES && proof_ns > q->proof_ns;
    const hone_verify_depth depth = q->sort == HONE_TRY_VERIFIES ? HONE_FOR_WINNERS
                                    : proves && !out->unproven   ? HONE_FOR_LEADERS
                                                                 : HONE_FOR_ALL;
    // On a busy machine a check may take a hundred times as long as the last one.
    if (runner->is_known && depth == HONE_FOR_LEADERS)
        runner->looks_until_ns = start + (uint64_t)fmin(q->proof_ns, most_proof_ns);
    if (failure == HONE_FAILURE_NONE && !out->dropped)
        failure = verify_last(runner, depth, q->changes, &out->max_error, err);
    const double took_ns = since(start);
    out->spent.verify_ns += took_ns;
    if (depth == HONE_FOR_LEADERS) out->proof_ns = took_ns;
    if (depth > HONE_FOR_ALL) out->unproven = runner->left_out;
    // Its samples so far have the time of numbers whose branches were learned.
    return failure == HONE_FAILURE_NONE && runner->learns != NULL && !learnt
               ? hone_measure_candidate(runner, stopping, out, err)
               : failure;
}

static bool is_known(const try_request *q, uint64_t digest)
{
    for (uint32_t i = 0; i < q->known_count; i++)
        if (digest != 0 && q->known[i] == digest) return true;
    return false;
}

static hone_failure verify_first_runs(hone_runner *runner, double after_ns, hone_trial *out, hone_error *err)
{
    const uint64_t start = hone_os_now_ns();
    hone_failure failure = hone_runner_verify_first(runner, after_ns, &out->time_ns, &out->max_error, err);
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_verify_beside(runner, &out->max_error, err);
    if (failure == HONE_FAILURE_NONE && after_ns == 0) failure = hone_runner_verify_preparing(runner, err);
    // Small calls may take another path than the contest's call. The process in which a run is stopped need not check
    // placements again.
    if (failure == HONE_FAILURE_NONE && after_ns == 0)
        failure = hone_runner_verify_placed(runner, HONE_FOR_WINNERS, true, &out->max_error, err);
    hone_session_keep_neighbour(runner->session);
    out->spent.verify_ns = since(start);
    return failure;
}

static hone_failure try_candidate(hone_session *session, const try_request *q, hone_trial *out, hone_error *err)
{
    hone_runner runner;
    hone_side_effects_begin(&session->effects);
    const hone_platform_facts *facts = hone_platform_facts_of(q->kernel.platform);
    session->effects.is_known = q->is_known;
    session->effects.interpreted = facts->is_interpreted || facts->is_module; // XLA's threads free memory at any time
    uint64_t start = hone_os_now_ns();
    hone_failure failure = hone_runner_init(&runner, session, &q->kernel, &q->config, err);
    out->spent.prepare_ns = since(start);
    hone_side_effects_prepared(&session->effects);
    hone_session_pass_phase(session);
    const uint64_t arguments = hone_arguments_digest(&runner);
    runner.is_known = q->is_known;
    runner.looks_until_ns = q->looks_ns > 0 ? start + (uint64_t)q->looks_ns : 0;
    runner.repeats_until_ns = q->repeats_ns > 0 ? start + (uint64_t)q->repeats_ns : 0;
    if (failure == HONE_FAILURE_NONE) out->digest = hone_runner_digest(&runner);
    out->same = is_known(q, out->digest);
    if (failure == HONE_FAILURE_NONE && q->sort == HONE_TRY_FIRST_RUNS)
        failure = verify_first_runs(&runner, q->stopping.best_ns, out, err);
    else if (failure == HONE_FAILURE_NONE && !out->same)
        failure = measure(&runner, q, out, err);
    failure = hone_runner_check_arguments(&runner, arguments, failure, err);
    if (failure == HONE_FAILURE_NONE && !out->same) failure = check_advice_once(session, &q->kernel, err);
    // Every run counts as the candidate's run time, whatever it is for; the time to verify is the rest.
    out->spent.verify_ns -= runner.verified_ns;
    out->spent.run_ns = runner.run_ns + runner.verified_ns;
    hone_runner_deinit(&runner);
    return hone_session_look_after(session, failure, err);
}

static hone_status read_try(hone_session *session, hone_wire_reader *reader, try_request *out, hone_error *err)
{
    hone_status status = hone_message_get_kernel(reader, &session->how, &out->kernel, err);
    hone_message_get_config(reader, &out->config);
    out->changes = hone_session_read_changes(reader);
    hone_message_get_stopping(reader, &out->stopping);
    const uint8_t sort = hone_wire_get_u8(reader);
    if (sort >= HONE_TRY_SORTS) reader->failed = true;
    out->sort = (hone_try_sort)sort;
    out->proof_ns = hone_wire_get_f64(reader);
    out->looks_ns = hone_wire_get_f64(reader);
    out->repeats_ns = hone_wire_get_f64(reader);
    out->is_known = hone_wire_get_u8(reader) != 0;
    hone_message_get_digests(reader, &out->known, &out->known_count);
    if (status == HONE_OK) status = hone_wire_check(reader, err);
    return status != HONE_OK || session->open ? status : hone_fail(err, HONE_IO, where, "no call is open");
}

static void handle_try(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_error err = {0};
    hone_trial trial = {0};
    try_request q;
    trial.refused = read_try(session, reader, &q, &err) != HONE_OK;
    if (trial.refused)
        trial.failure = HONE_FAILURE_PREPARE;
    else
        trial.failure = try_candidate(session, &q, &trial, &err);
    // If something is not installed here, the kernel is refused and not failed: it may work once that is installed.
    if (trial.failure == HONE_FAILURE_UNSUPPORTED || trial.failure == HONE_FAILURE_PREPARE)
        trial.refused = trial.refused || err.status == HONE_UNAVAILABLE;
    trial.spoiled = session->spoiled;
    if (trial.failure != HONE_FAILURE_NONE) {
        hone_words_copy(trial.reason, sizeof trial.reason, err.message);
        hone_worker_explain_refusal(trial.reason, sizeof trial.reason);
    }
    trial.retired = hone_site_is_lost(&session->site);
    hone_message_put_trial(answer, &trial);
}

hone_status hone_session_handle(hone_session *session, uint8_t kind, const hone_buffer *message, hone_buffer *answer)
{
    hone_assert(!message->failed && !answer->failed);
    if (kind == HONE_MESSAGE_OPEN) close_call(session);
    hone_arena arena = {.allocator = session->allocator}; // of this message; OPEN's lives as long as its call
    hone_wire_reader reader = {message->data, message->size, 0, kind == HONE_MESSAGE_OPEN ? &session->arena : &arena,
                               false,         false};
    hone_status status = HONE_OK;
    if (kind == HONE_MESSAGE_OPEN)
        handle_open(session, &reader, answer);
    else if (kind == HONE_MESSAGE_TRY)
        handle_try(session, &reader, answer);
    else if (kind == HONE_MESSAGE_PREPARE)
        hone_session_answer_prepare(session, &reader, answer);
    else if (kind == HONE_MESSAGE_ROUNDS)
        status = hone_session_answer_rounds(session, &reader, answer);
    else if (kind == HONE_MESSAGE_PEAKS)
        hone_session_answer_peaks(session, &reader, answer);
    else if (kind == HONE_MESSAGE_PING)
        hone_wire_put_text(answer, hone_version());
    else
        status = HONE_IO;
    hone_arena_destroy(&arena);
    return status == HONE_OK && answer->failed ? HONE_OUT_OF_MEMORY : status;
}
