#include "tune/isolate/seat.h"

#include "base/error.h"

#include <string.h>

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

static hone_status init_session(hone_seat *seat, hone_error *err)
{
    const hone_allocator *allocator = &seat->environment->allocator;
    seat->session = hone_alloc(allocator, sizeof *seat->session);
    if (seat->session == NULL) return hone_fail_memory(err, "tune.seat");
    hone_session_init(seat->session, *allocator, &(hone_kernel_reader){0}, seat->environment->pool);
    seat->warm = true;
    return HONE_OK;
}

hone_status hone_seat_init(
    hone_seat *seat, const hone_tune_environment *environment, hone_seat_kind kind, hone_error *err)
{
    memset(seat, 0, sizeof *seat);
    seat->kind = kind;
    seat->environment = environment;
    seat->process = no_process;
    seat->by_value = kind != HONE_SEAT_SPAWN;
    return kind == HONE_SEAT_HERE ? init_session(seat, err) : HONE_OK;
}

static void lose(hone_seat *seat, int *out_signal, int *out_exit)
{
    seat->warm = false;
    if (seat->process.pid > 0) hone_process_kill(&seat->process, out_signal, out_exit);
    seat->process = no_process;
}

void hone_seat_drop(hone_seat *seat)
{
    int signal_number, exit_code;
    if (seat->kind == HONE_SEAT_HERE) return;
    if (seat->kind == HONE_SEAT_ZYGOTE && seat->warm) hone_zygote_drop(seat->environment->zygote);
    lose(seat, &signal_number, &exit_code);
}

void hone_seat_deinit(hone_seat *seat)
{
    if (seat->kind == HONE_SEAT_SPAWN && seat->warm) {
        hone_worker_pool_give(seat->environment->workers, &seat->process);
        seat->process = no_process;
    }
    hone_seat_drop(seat);
    if (seat->session != NULL) {
        hone_session_deinit(seat->session);
        hone_free(&seat->environment->allocator, seat->session);
        seat->session = NULL;
    }
}

static hone_status start_fork(hone_seat *seat, hone_error *err)
{
    if (hone_os_thread_count() != 1)
        return hone_fail(
            err, HONE_UNAVAILABLE, "tune.seat",
            "this process has threads by now and cannot fork: open the runtime with HONE_RUNTIME_ZYGOTE, or tune with "
            "HONE_ISOLATION_IN_PROCESS");
    return hone_process_fork(forked_body, NULL, &seat->process, err);
}

hone_status hone_seat_start(hone_seat *seat, hone_error *err)
{
    if (seat->warm) return HONE_OK;
    hone_status status = HONE_OK;
    if (seat->kind == HONE_SEAT_SPAWN)
        status = hone_worker_pool_take(seat->environment->workers, &seat->process, err);
    else if (seat->kind == HONE_SEAT_FORK)
        status = start_fork(seat, err);
    else if (seat->kind == HONE_SEAT_ZYGOTE && !hone_zygote_alive(seat->environment->zygote))
        status = hone_fail(
            err, HONE_UNAVAILABLE, "tune.seat",
            "the isolating process is gone, or the parent's of this one: open a new runtime with HONE_RUNTIME_ZYGOTE");
    seat->warm = status == HONE_OK;
    seat->served = 0;
    return status;
}

bool hone_seat_is_warm(hone_seat *seat)
{
    if (seat->warm && seat->process.pid > 0 && hone_fd_is_readable(seat->process.fd)) hone_seat_drop(seat);
    return seat->warm;
}

static hone_outcome ask_here(hone_seat *seat, uint8_t kind, const hone_buffer *message, hone_buffer *answer)
{
    hone_buffer_clear(answer);
    hone_status status = hone_session_handle(seat->session, kind, message, answer);
    return (hone_outcome){status == HONE_OK ? HONE_OUTCOME_ANSWERED : HONE_OUTCOME_MEMORY, 0, 0};
}

static hone_outcome ask_process(
    hone_seat *seat,
    uint8_t kind,
    const hone_buffer *message,
    const hone_limits *limits,
    const volatile int *cancel,
    hone_buffer *answer)
{
    hone_stop stop = {cancelled, (void *)&cancel};
    hone_outcome outcome = {0};
    outcome.kind = hone_worker_ask(seat->process.fd, kind, message, limits, &stop, NULL, NULL, answer);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) lose(seat, &outcome.signal, &outcome.exit_code);
    return outcome;
}

hone_outcome hone_seat_ask(
    hone_seat *seat,
    uint8_t kind,
    const hone_buffer *message,
    const hone_limits *limits,
    const volatile int *cancel,
    hone_buffer *answer)
{
    if (message->failed) return (hone_outcome){HONE_OUTCOME_MEMORY, 0, 0};
    if (seat->kind == HONE_SEAT_HERE) return ask_here(seat, kind, message, answer);
    if (seat->kind != HONE_SEAT_ZYGOTE) return ask_process(seat, kind, message, limits, cancel, answer);
    hone_outcome outcome = hone_zygote_ask(seat->environment->zygote, kind, message, limits, cancel, answer);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) seat->warm = false;
    return outcome;
}
