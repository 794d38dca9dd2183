// Isolates functions of the host program. A process with threads cannot be forked safely (a lock that some thread held
// stays locked for ever), so a small process is forked early, while there is one thread: the zygote (the name is
// Android's for the same thing). It only forks children of itself, passes them the tuner's questions and passes their
// answers back. A child's address space is the host's as of the fork, so kernels are sent as addresses, which are
// checked to lie in the same library as in the host.
//
// The conversation, one question at a time, under the host's mutex:
//
//     host                       zygote                        child
//      | ASK limits, question ->  | question, with a token  ->  |
//      |                          |                 <- NOTE ... |  a phase has passed, the limit starts again
//      |               <- NOTE    |                             |
//      |                          |               <- ANSWER     |
//      |             <- ANSWER    |                             |  the child waits for the next question
//      | DROP                 ->  | ends the child              |  while a child works, LOST or ANSWER follows
//      |               <- LOST    |                             |  the child died, or exceeded its limit and was ended
//
// The zygote applies the time limits, not the host, because only it can wait for the child. The host waits longer than
// all of them, and treats a zygote that does not answer by then as gone. The zygote ends when its end of the socket is
// closed.
#include "os/mutex.h"
#include "tune/isolate/sandbox.h"
#include "tune/worker/confine.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

static const char where[] = "tune.zygote";

// Frames between host and zygote: a question is sent with its limits, and its outcome comes back.
enum { FRAME_ASK = 65, FRAME_DROP, FRAME_LOST };

// The host waits longer than the zygote does, because the zygote decides the outcome. Ending a child with all that it
// started may take up to 30 s (hone_process_kill), and takes seconds on a busy machine.
static const uint64_t grace_ns = 60000000000u;

struct hone_zygote {
    hone_allocator allocator;
    hone_process process;
    hone_mutex turn;  // held by one contest at a time, from its first question to its last
    hone_mutex mutex; // one question at a time
    bool gone;
    unsigned generation; // of the process that started it: a fork of that process cannot use the zygote
};

// In the zygote -------------------------------------------------------------------------------------------------------

typedef struct nursery {
    int fd; // to the host
    hone_process child;
    hone_buffer question, message, answer, nothing;
} nursery;

static int child_body(void *ctx, int fd)
{
    (void)ctx;
    return hone_worker_forked(fd, true);
}

static void end_child(nursery *n, int *out_signal, int *out_exit)
{
    *out_signal = *out_exit = 0;
    if (n->child.pid > 0) hone_process_kill(&n->child, out_signal, out_exit);
    n->child = (hone_process){.pid = -1, .fd = -1};
}

// While a child works the host can send only one thing: stop. Any byte means stop, and so does the end of the host.
static bool host_calls(void *ctx)
{
    nursery *n = ctx;
    uint8_t kind;
    hone_status status = hone_fd_read(n->fd, &kind, 1, hone_os_now_ns());
    if (status == HONE_BUSY) return false;
    uint64_t rest[2]; // of the frame: token and size
    if (status == HONE_OK) (void)!hone_fd_read(n->fd, rest, sizeof rest, hone_os_now_ns() + grace_ns);
    return true;
}

static void pass_note(void *ctx)
{
    nursery *n = ctx;
    (void)!hone_frame_write(n->fd, HONE_MESSAGE_NOTE, 0, &n->nothing, 0);
}

static hone_status report_lost(nursery *n, hone_outcome_kind kind)
{
    int signal_number, exit_code;
    end_child(n, &signal_number, &exit_code);
    hone_buffer_clear(&n->answer);
    hone_wire_put_u32(&n->answer, (uint32_t)kind);
    hone_wire_put_u32(&n->answer, (uint32_t)signal_number);
    hone_wire_put_u32(&n->answer, (uint32_t)exit_code);
    return hone_frame_write(n->fd, FRAME_LOST, 0, &n->answer, 0);
}

static hone_status pass_question(nursery *n)
{
    hone_wire_reader reader = {n->question.data, n->question.size, 0, NULL, false, false};
    hone_worker_question query = {.message = &n->message};
    hone_wire_get(&reader, &query.limits, sizeof query.limits);
    query.kind = hone_wire_get_u8(&reader);
    if (reader.failed) return HONE_IO;
    hone_buffer_clear(&n->message);
    hone_wire_put(&n->message, reader.data + reader.position, reader.size - reader.position);
    if (n->child.pid <= 0 && hone_process_fork(child_body, NULL, &n->child, NULL) != HONE_OK)
        return report_lost(n, HONE_OUTCOME_LOST);
    hone_stop stop = {host_calls, n};
    hone_outcome_kind outcome = hone_worker_ask(n->child.fd, &query, &stop, pass_note, n, &n->answer);
    if (outcome == HONE_OUTCOME_ANSWERED) return hone_frame_write(n->fd, HONE_MESSAGE_ANSWER, 0, &n->answer, 0);
    return report_lost(n, outcome);
}

static hone_status serve_host(nursery *n)
{
    uint8_t kind;
    uint64_t token = 0;
    int signal_number, exit_code;
    hone_status status = hone_frame_read(n->fd, &kind, &token, &n->question, 0, NULL);
    if (status != HONE_OK) return status;
    if (kind == FRAME_ASK) return pass_question(n);
    if (kind != FRAME_DROP) return HONE_IO;
    end_child(n, &signal_number, &exit_code);
    return HONE_OK;
}

static int zygote_body(void *ctx, int fd)
{
    (void)ctx;
    hone_zygote_confine(fd);
    hone_allocator allocator = hone_allocator_system();
    nursery n = {.fd = fd, .child = {.pid = -1, .fd = -1}};
    hone_buffer_init(&n.question, allocator);
    hone_buffer_init(&n.message, allocator);
    hone_buffer_init(&n.answer, allocator);
    hone_buffer_init(&n.nothing, allocator);
    while (serve_host(&n) == HONE_OK)
        ;
    int signal_number, exit_code;
    end_child(&n, &signal_number, &exit_code);
    return 0;
}

// In the host ---------------------------------------------------------------------------------------------------------

hone_status hone_zygote_start(const hone_allocator *allocator, hone_zygote **out, hone_error *err)
{
    *out = NULL;
    int threads = hone_os_thread_count();
    if (threads != 1)
        return hone_fail(
            err, HONE_UNSUPPORTED, where,
            "this process has %d threads and cannot be forked: open the runtime with HONE_RUNTIME_ZYGOTE before the "
            "first "
            "thread starts",
            threads);
    hone_zygote *zygote = hone_alloc(allocator, sizeof *zygote);
    if (zygote == NULL) return hone_fail_memory(err, where);
    zygote->allocator = *allocator;
    zygote->generation = hone_fork_generation();
    hone_status status = hone_process_fork(zygote_body, NULL, &zygote->process, err);
    if (status != HONE_OK) {
        hone_free(allocator, zygote);
        return status;
    }
    hone_mutex_init_long(&zygote->turn);
    hone_mutex_init_long(&zygote->mutex);
    *out = zygote;
    return HONE_OK;
}

static void end_zygote(hone_zygote *zygote)
{
    int signal_number, exit_code;
    if (zygote->process.pid > 0) hone_process_kill(&zygote->process, &signal_number, &exit_code);
    zygote->process = (hone_process){.pid = -1, .fd = -1};
    zygote->gone = true;
}

void hone_zygote_stop(hone_zygote **zygote)
{
    hone_zygote *gone = *zygote;
    if (gone == NULL) return;
    *zygote = NULL;
    end_zygote(gone);
    hone_mutex_deinit(&gone->mutex);
    hone_mutex_deinit(&gone->turn);
    hone_free(&gone->allocator, gone);
}

bool hone_zygote_take_turn(hone_zygote *zygote)
{
    if (hone_mutex_is_mine(&zygote->turn)) return false;
    hone_mutex_lock(&zygote->turn);
    return true;
}

void hone_zygote_end_turn(hone_zygote *zygote)
{
    hone_mutex_unlock(&zygote->turn);
}

bool hone_zygote_alive(hone_zygote *zygote)
{
    hone_mutex_lock(&zygote->mutex);
    bool alive = !zygote->gone && zygote->generation == hone_fork_generation();
    hone_mutex_unlock(&zygote->mutex);
    return alive;
}

static hone_status send_empty(hone_zygote *zygote, uint8_t kind)
{
    hone_buffer nothing;
    hone_buffer_init(&nothing, zygote->allocator);
    return hone_frame_write(zygote->process.fd, kind, 0, &nothing, hone_os_now_ns() + grace_ns);
}

static bool cancelled(void *ctx)
{
    const volatile int *const *cancel = ctx;
    return *cancel != NULL && **cancel;
}

static hone_outcome read_lost(const hone_buffer *answer)
{
    hone_wire_reader reader = {answer->data, answer->size, 0, NULL, false, false};
    hone_outcome outcome;
    outcome.kind = (hone_outcome_kind)hone_wire_get_u32(&reader);
    outcome.signal = (int)hone_wire_get_u32(&reader);
    outcome.exit_code = (int)hone_wire_get_u32(&reader);
    return outcome;
}

// Ends a conversation that was cancelled: reads the zygote's outcome, or its answer if that was sent at the same time
// as the cancellation.
static void await_verdict(hone_zygote *zygote, hone_buffer *answer)
{
    uint8_t kind = HONE_MESSAGE_NOTE;
    uint64_t token = 0;
    hone_assert(hone_mutex_is_mine(&zygote->mutex));
    hone_status status = send_empty(zygote, FRAME_DROP);
    while (status == HONE_OK && kind == HONE_MESSAGE_NOTE)
        status = hone_frame_read(zygote->process.fd, &kind, &token, answer, hone_os_now_ns() + grace_ns, NULL);
    if (status != HONE_OK) end_zygote(zygote);
}

static hone_outcome await_answer(
    hone_zygote *zygote, const hone_limits *limits, const volatile int *cancel, hone_buffer *answer)
{
    hone_assert(hone_mutex_is_mine(&zygote->mutex));
    const uint64_t limit_ns = limits->first_ns > limits->next_ns ? limits->first_ns : limits->next_ns;
    hone_stop stop = {cancelled, (void *)&cancel};
    for (;;) {
        uint8_t kind;
        uint64_t token = 0;
        hone_status status =
            hone_frame_read(zygote->process.fd, &kind, &token, answer, hone_os_now_ns() + limit_ns + grace_ns, &stop);
        if (status == HONE_CANCELLED) {
            await_verdict(zygote, answer);
            return (hone_outcome){HONE_OUTCOME_CANCELLED, 0, 0};
        }
        if (status == HONE_OK && kind == HONE_MESSAGE_ANSWER) return (hone_outcome){HONE_OUTCOME_ANSWERED, 0, 0};
        if (status == HONE_OK && kind == FRAME_LOST) return read_lost(answer);
        if (status == HONE_OK && kind == HONE_MESSAGE_NOTE) continue;
        end_zygote(zygote);
        return (hone_outcome){HONE_OUTCOME_LOST, 0, 0};
    }
}

hone_outcome hone_zygote_ask(
    hone_zygote *zygote, const hone_worker_question *query, const volatile int *cancel, hone_buffer *answer)
{
    hone_buffer question;
    hone_buffer_init(&question, zygote->allocator);
    hone_wire_put(&question, &query->limits, sizeof query->limits);
    hone_wire_put_u8(&question, query->kind);
    hone_wire_put(&question, query->message->data, query->message->size);
    hone_outcome outcome = {question.failed ? HONE_OUTCOME_MEMORY : HONE_OUTCOME_LOST, 0, 0};
    hone_mutex_lock(&zygote->mutex);
    if (!question.failed && !zygote->gone && zygote->generation == hone_fork_generation() &&
        hone_frame_write(zygote->process.fd, FRAME_ASK, 0, &question, hone_os_now_ns() + grace_ns) == HONE_OK)
        outcome = await_answer(zygote, &query->limits, cancel, answer);
    hone_mutex_unlock(&zygote->mutex);
    hone_buffer_deinit(&question);
    return outcome;
}

void hone_zygote_drop(hone_zygote *zygote)
{
    hone_mutex_lock(&zygote->mutex);
    if (!zygote->gone && send_empty(zygote, FRAME_DROP) != HONE_OK) end_zygote(zygote);
    hone_mutex_unlock(&zygote->mutex);
}
