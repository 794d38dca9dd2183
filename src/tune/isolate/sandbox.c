#include "tune/isolate/sandbox.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

static const char where[] = "tune.sandbox";
static const hone_process no_process = {.pid = -1, .fd = -1};

static bool cancelled(void *ctx)
{
    const volatile int *const *cancel = ctx;
    return *cancel != NULL && **cancel;
}

static int forked_body(void *ctx, int fd)
{
    (void)ctx;
    return hone_worker_forked(fd, false);
}

static hone_status init_session(hone_sandbox *sandbox, hone_error *err)
{
    const hone_allocator *allocator = &sandbox->environment->allocator;
    sandbox->session = hone_alloc(allocator, sizeof *sandbox->session);
    if (sandbox->session == NULL) return hone_fail_memory(err, where);
    hone_session_init(sandbox->session, *allocator, &(hone_kernel_reader){0}, sandbox->environment->pool);
    sandbox->now.warm = true;
    return HONE_OK;
}

hone_status hone_sandbox_init(
    hone_sandbox *sandbox, const hone_tune_environment *environment, hone_sandbox_kind kind, hone_error *err)
{
    memset(sandbox, 0, sizeof *sandbox);
    sandbox->kind = kind;
    sandbox->environment = environment;
    sandbox->now.process = sandbox->other.process = no_process;
    sandbox->by_value = kind != HONE_SANDBOX_SPAWN;
    if (kind == HONE_SANDBOX_ZYGOTE) {
        sandbox->has_turn = hone_zygote_take_turn(environment->zygote);
        if (!sandbox->has_turn)
            return hone_fail(
                err, HONE_UNAVAILABLE, where,
                "a contest of this thread has the isolating process: it comes to an end first");
    }
    return kind == HONE_SANDBOX_HERE ? init_session(sandbox, err) : HONE_OK;
}

static void lose(hone_sandbox *sandbox, int *out_signal, int *out_exit)
{
    sandbox->now.warm = false;
    if (sandbox->now.process.pid > 0) hone_process_kill(&sandbox->now.process, out_signal, out_exit);
    sandbox->now.process = no_process;
}

void hone_sandbox_drop(hone_sandbox *sandbox)
{
    int signal_number, exit_code;
    if (sandbox->kind == HONE_SANDBOX_HERE) return;
    if (sandbox->kind == HONE_SANDBOX_ZYGOTE && sandbox->now.warm) hone_zygote_drop(sandbox->environment->zygote);
    lose(sandbox, &signal_number, &exit_code);
}

void hone_sandbox_turn(hone_sandbox *sandbox, bool interpreted)
{
    if (!sandbox->splits || sandbox->interpreted == interpreted) return;
    const hone_sandbox_seat now = sandbox->now;
    sandbox->now = sandbox->other;
    sandbox->other = now;
    sandbox->interpreted = interpreted;
}

static void give_back(hone_sandbox *sandbox)
{
    if (sandbox->kind == HONE_SANDBOX_SPAWN && sandbox->now.warm) {
        hone_workers_give(sandbox->environment->workers, sandbox->interpreted, &sandbox->now.process);
        sandbox->now.process = no_process;
    }
    hone_sandbox_drop(sandbox);
}

void hone_sandbox_deinit(hone_sandbox *sandbox)
{
    give_back(sandbox);
    hone_sandbox_turn(sandbox, !sandbox->interpreted);
    give_back(sandbox);
    if (sandbox->has_turn) hone_zygote_end_turn(sandbox->environment->zygote);
    sandbox->has_turn = false;
    if (sandbox->session != NULL) {
        hone_session_deinit(sandbox->session);
        hone_free(&sandbox->environment->allocator, sandbox->session);
        sandbox->session = NULL;
    }
}

static hone_status start_fork(hone_sandbox *sandbox, hone_error *err)
{
    if (hone_os_thread_count() != 1)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "this process has threads by now and cannot fork: open the runtime with HONE_RUNTIME_ZYGOTE, or tune with "
            "HONE_ISOLATION_IN_PROCESS");
    return hone_process_fork(forked_body, NULL, &sandbox->now.process, err);
}

hone_status hone_sandbox_start(hone_sandbox *sandbox, hone_error *err)
{
    if (sandbox->now.warm) return HONE_OK;
    hone_status status = HONE_OK;
    if (sandbox->kind == HONE_SANDBOX_SPAWN)
        status = hone_workers_take(sandbox->environment->workers, sandbox->interpreted, &sandbox->now.process, err);
    else if (sandbox->kind == HONE_SANDBOX_FORK)
        status = start_fork(sandbox, err);
    else if (sandbox->kind == HONE_SANDBOX_ZYGOTE && !hone_zygote_alive(sandbox->environment->zygote))
        status = hone_fail(
            err, HONE_UNAVAILABLE, where,
            "the isolating process is gone, or the parent's of this one: open a new runtime with HONE_RUNTIME_ZYGOTE");
    sandbox->now.warm = status == HONE_OK;
    sandbox->now.served = 0;
    return status;
}

bool hone_sandbox_is_warm(hone_sandbox *sandbox)
{
    if (sandbox->now.warm && sandbox->now.process.pid > 0 && hone_fd_is_readable(sandbox->now.process.fd))
        hone_sandbox_drop(sandbox);
    return sandbox->now.warm;
}

static hone_outcome ask_here(hone_sandbox *sandbox, const hone_worker_question *query, hone_buffer *answer)
{
    hone_buffer_clear(answer);
    hone_status status = hone_session_handle(sandbox->session, query->kind, query->message, answer);
    return (hone_outcome){status == HONE_OK ? HONE_OUTCOME_ANSWERED : HONE_OUTCOME_MEMORY, 0, 0};
}

static hone_outcome ask_process(
    hone_sandbox *sandbox, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer)
{
    hone_stop stop = {cancelled, (void *)&cancel};
    hone_outcome outcome = {0};
    outcome.kind = hone_worker_ask(sandbox->now.process.fd, query, &stop, NULL, NULL, answer);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) lose(sandbox, &outcome.signal, &outcome.exit_code);
    return outcome;
}

hone_outcome hone_sandbox_ask(
    hone_sandbox *sandbox, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer)
{
    hone_assert(sandbox->now.warm); // hone_sandbox_start was called before
    if (query->message->failed) return (hone_outcome){HONE_OUTCOME_MEMORY, 0, 0};
    if (sandbox->kind == HONE_SANDBOX_HERE) return ask_here(sandbox, query, answer);
    if (sandbox->kind != HONE_SANDBOX_ZYGOTE) return ask_process(sandbox, query, cancel, answer);
    hone_outcome outcome = hone_zygote_ask(sandbox->environment->zygote, query, cancel, answer);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) sandbox->now.warm = false;
    return outcome;
}
