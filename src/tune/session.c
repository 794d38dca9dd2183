#include "tune/session.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

enum { CACHE_GUESS = 32 << 20, FLOOD_LIMIT = 256 << 20 };

static const char where[] = "tune.worker";

void hone_session_init(hone_session *session, hone_allocator allocator, const hone_kernel_reader *how, hone_pool *pool)
{
    memset(session, 0, sizeof *session);
    session->allocator = allocator;
    session->arena.allocator = allocator;
    session->how = *how;
    session->given_pool = pool;
}

static void close_call(hone_session *session)
{
    if (session->open) {
        hone_reference_deinit(&session->reference);
        hone_buffers_deinit(&session->buffers);
    }
    session->open = false;
    hone_call_release(&session->call);
    hone_signature_release(&session->signature);
    hone_free(&session->allocator, session->flood);
    session->flood = NULL;
    hone_arena_destroy(&session->arena);
}

void hone_session_deinit(hone_session *session)
{
    close_call(session);
    hone_pool_destroy(&session->own_pool);
}

// Open -----------------------------------------------------------------------------------------------------------

static hone_status take_pool(hone_session *session, hone_error *err)
{
    int32_t threads = session->device.threads;
    if (session->given_pool) return HONE_OK;
    if (session->own_pool && hone_pool_threads(session->own_pool) == threads) return HONE_OK;
    hone_pool_destroy(&session->own_pool);
    return hone_pool_create(&session->allocator, threads > 0 ? threads : 1, &session->own_pool, err);
}

// All sets together must not fit the last-level cache. Where 64 of them do, a flood does the rest.
static hone_status make_cold(hone_session *session, hone_error *err)
{
    if (session->regime != HONE_COLD) return HONE_OK;
    size_t cache = session->device.l3_bytes > 0 ? (size_t)session->device.l3_bytes : CACHE_GUESS;
    if (cache > FLOOD_LIMIT / 2) cache = FLOOD_LIMIT / 2;
    hone_status status = hone_buffers_rotate(&session->buffers, session->values, 2 * cache, err);
    if (status != HONE_OK || hone_buffers_bytes(&session->buffers) * session->buffers.set_count > cache) return status;
    session->flood = hone_alloc(&session->allocator, 2 * cache);
    if (!session->flood) return hone_fail_memory(err, where);
    session->flood_size = 2 * cache;
    memset(session->flood, 1, session->flood_size);
    return HONE_OK;
}

static hone_status make_call(hone_session *session, const char *key, hone_error *err)
{
    hone_status status = hone_call_bind(
        session->allocator, session->signature, session->buffers.sets[0].values, session->count, false, &session->call,
        err);
    if (status != HONE_OK) return status;
    if (key && strcmp(hone_call_key(session->call), key) != 0)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "the worker reads the call as %s with key %s, the library has key %s",
            hone_call_text(session->call), hone_call_key(session->call), key);
    return hone_buffers_fill(&session->buffers, session->call, session->seed, err);
}

static hone_status make_data(hone_session *session, const char *key, hone_error *err)
{
    hone_status status = make_call(session, key, err);
    if (status == HONE_OK) status = make_cold(session, err);
    if (status != HONE_OK) return status;
    return hone_reference_compute(
        &session->reference, &session->algorithm, session->call, &session->buffers, &session->device,
        session->given_pool ? session->given_pool : session->own_pool, session->seed, err);
}

static hone_status open_call(hone_session *session, const char *key, hone_error *err)
{
    if (!session->algorithm.reference)
        return hone_fail(err, HONE_NOT_FOUND, where, "the algorithm has no reference: nothing can be verified");
    hone_status status = take_pool(session, err);
    if (status == HONE_OK)
        status = hone_signature_parse(session->allocator, session->algorithm.signature, &session->signature, err);
    if (status == HONE_OK)
        status = hone_buffers_create(
            &session->buffers, session->allocator, session->signature, &session->algorithm, session->values,
            session->count, err);
    if (status != HONE_OK) return status;
    status = make_data(session, key, err);
    if (status != HONE_OK)
        hone_buffers_deinit(&session->buffers);
    else
        session->open = true;
    return status;
}

static void fill_opened(const hone_session *session, const hone_error *err, hone_opened *out)
{
    out->status = err->status;
    hone_words_copy(out->message, sizeof out->message, err->status == HONE_OK ? "" : err->message);
    if (!session->open) return;
    out->reference_ns = session->reference.time_ns;
    out->whole = session->reference.parting.count;
    out->parts = session->reference.part_count > 0 ? session->reference.part_count : out->whole;
}

static void handle_open(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_error err = {0};
    hone_opened opened = {0};
    hone_message_get_device(reader, &session->device);
    hone_status status = hone_message_get_algorithm(reader, &session->how, &session->algorithm, &err);
    hone_message_get_call(reader, &session->values, &session->count);
    const char *key = hone_wire_get_text(reader);
    session->regime = hone_wire_get_u8(reader) == HONE_COLD ? HONE_COLD : HONE_WARM;
    session->seed = hone_wire_get_u64(reader);
    hone_wire_get(reader, &session->tolerance, sizeof session->tolerance);
    if (status == HONE_OK) status = hone_wire_check(reader, &err);
    if (status == HONE_OK) status = open_call(session, key, &err);
    err.status = status;
    fill_opened(session, &err, &opened);
    hone_message_put_opened(answer, &opened);
}

// Try ------------------------------------------------------------------------------------------------------------

static void pass_phase(const hone_session *session)
{
    if (session->note) session->note(session->note_ctx);
}

static hone_failure try_candidate(
    hone_session *session,
    const hone_kernel *kernel,
    const hone_config *config,
    const hone_racing *racing,
    hone_trial *out,
    hone_error *err)
{
    hone_runner runner;
    hone_failure failure = hone_runner_init(&runner, session, kernel, config, err);
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_verify(&runner, &out->max_error, err);
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_verify_in_place(&runner, &out->max_error, err);
    if (failure == HONE_FAILURE_NONE) {
        pass_phase(session);
        failure = hone_race(&runner, racing, out, err);
    }
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_check(&runner, err);
    hone_runner_deinit(&runner);
    return failure;
}

static void handle_try(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_error err = {0};
    hone_trial trial = {0};
    hone_kernel kernel;
    hone_config config;
    hone_status status = hone_message_get_kernel(reader, &session->how, &kernel, &err);
    hone_message_get_config(reader, &config);
    hone_racing racing;
    hone_message_get_racing(reader, &racing);
    if (status == HONE_OK) status = hone_wire_check(reader, &err);
    if (status == HONE_OK && !session->open) status = hone_fail(&err, HONE_IO, where, "no call is open");
    trial.refused = status != HONE_OK;
    if (trial.refused)
        trial.failure = HONE_FAILURE_PREPARE;
    else
        trial.failure = try_candidate(session, &kernel, &config, &racing, &trial, &err);
    if (trial.failure != HONE_FAILURE_NONE) hone_words_copy(trial.reason, sizeof trial.reason, err.message);
    hone_message_put_trial(answer, &trial);
}

// Confirm --------------------------------------------------------------------------------------------------------

typedef struct finals {
    hone_session *session;
    uint32_t count;
    hone_kernel kernels[HONE_MAX_FINALISTS];
    hone_config configs[HONE_MAX_FINALISTS];
    hone_runner runners[HONE_MAX_FINALISTS];
    uint32_t rounds;
    uint64_t seed;
    double limit_seconds;
} finals;

static hone_status read_finals(finals *f, hone_wire_reader *reader, hone_error *err)
{
    f->count = hone_wire_get_u32(reader);
    if (f->count > HONE_MAX_FINALISTS) return hone_fail(err, HONE_IO, where, "too many finalists");
    for (uint32_t i = 0; i < f->count; i++) {
        hone_status status = hone_message_get_kernel(reader, &f->session->how, &f->kernels[i], err);
        if (status != HONE_OK) return status;
        hone_message_get_config(reader, &f->configs[i]);
    }
    f->rounds = hone_wire_get_u32(reader);
    f->seed = hone_wire_get_u64(reader);
    f->limit_seconds = hone_wire_get_f64(reader);
    hone_status status = hone_wire_check(reader, err);
    return status != HONE_OK || f->session->open ? status : hone_fail(err, HONE_IO, where, "no call is open");
}

// Every finalist in turn; *out_failed is the one that failed.
static hone_failure verify_all(finals *f, double *max_error, uint32_t *out_failed, hone_error *err)
{
    for (uint32_t i = 0; i < f->count; i++) {
        double error = 0;
        *out_failed = i;
        hone_failure failure = hone_runner_verify(&f->runners[i], &error, err);
        if (error > max_error[i]) max_error[i] = error;
        if (failure != HONE_FAILURE_NONE) return failure;
    }
    return HONE_FAILURE_NONE;
}

static hone_failure prepare_all(finals *f, uint32_t *out_failed, hone_error *err)
{
    for (uint32_t i = 0; i < f->count; i++) {
        *out_failed = i;
        hone_failure failure = hone_runner_init(&f->runners[i], f->session, &f->kernels[i], &f->configs[i], err);
        if (failure != HONE_FAILURE_NONE) return failure;
        pass_phase(f->session);
    }
    return HONE_FAILURE_NONE;
}

static hone_failure warm_all(finals *f, uint32_t *out_failed, hone_error *err)
{
    for (uint32_t i = 0; i < f->count; i++) {
        double warm_ns;
        *out_failed = i;
        if (f->runners[i].verify_ns > hone_long_run_ns) continue;
        hone_failure failure = hone_runner_warm(&f->runners[i], &warm_ns, err);
        if (failure != HONE_FAILURE_NONE) return failure;
    }
    return HONE_FAILURE_NONE;
}

// Verified before and after: what was right in its first run may be wrong in its thousandth.
static hone_failure run_finals(finals *f, hone_confirmation *out, hone_error *err)
{
    hone_runner *runners[HONE_MAX_FINALISTS];
    for (uint32_t i = 0; i < f->count; i++)
        runners[i] = &f->runners[i];
    hone_failure failure = prepare_all(f, &out->failed, err);
    if (failure == HONE_FAILURE_NONE) failure = verify_all(f, out->max_error, &out->failed, err);
    if (failure == HONE_FAILURE_NONE) failure = warm_all(f, &out->failed, err);
    pass_phase(f->session);
    if (failure == HONE_FAILURE_NONE)
        failure = hone_interleave(runners, f->count, f->rounds, f->seed, f->limit_seconds, out, err);
    pass_phase(f->session);
    if (failure == HONE_FAILURE_NONE) failure = verify_all(f, out->max_error, &out->failed, err);
    for (uint32_t i = 0; i < f->count; i++)
        hone_runner_deinit(&f->runners[i]);
    return failure;
}

static hone_status handle_confirm(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_error err = {0};
    finals *f = hone_alloc(&session->allocator, sizeof *f);
    hone_confirmation *confirmation = hone_alloc(&session->allocator, sizeof *confirmation);
    hone_status status = f && confirmation ? HONE_OK : HONE_OUT_OF_MEMORY;
    if (status == HONE_OK) {
        f->session = session;
        if (read_finals(f, reader, &err) != HONE_OK)
            confirmation->failure = HONE_FAILURE_PREPARE;
        else
            confirmation->failure = run_finals(f, confirmation, &err);
        if (confirmation->failure != HONE_FAILURE_NONE) {
            confirmation->count = confirmation->rounds = 0;
            hone_words_copy(confirmation->reason, sizeof confirmation->reason, err.message);
        }
        hone_message_put_confirmation(answer, confirmation);
    }
    hone_free(&session->allocator, confirmation);
    hone_free(&session->allocator, f);
    return status;
}

hone_status hone_session_handle(hone_session *session, uint8_t kind, const hone_buffer *message, hone_buffer *answer)
{
    if (kind == HONE_MESSAGE_OPEN) close_call(session);
    hone_arena arena = {.allocator = session->allocator}; // of this message; OPEN's lives as long as its call
    hone_wire_reader reader = {message->data, message->size, 0, kind == HONE_MESSAGE_OPEN ? &session->arena : &arena,
                               false,         false};
    hone_status status = HONE_OK;
    if (kind == HONE_MESSAGE_OPEN)
        handle_open(session, &reader, answer);
    else if (kind == HONE_MESSAGE_TRY)
        handle_try(session, &reader, answer);
    else if (kind == HONE_MESSAGE_CONFIRM)
        status = handle_confirm(session, &reader, answer);
    else if (kind == HONE_MESSAGE_PING)
        hone_wire_put_text(answer, hone_version());
    else
        status = HONE_IO;
    hone_arena_destroy(&arena);
    return status == HONE_OK && answer->failed ? HONE_OUT_OF_MEMORY : status;
}
