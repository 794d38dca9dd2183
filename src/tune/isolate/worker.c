#include "tune/isolate/worker.h"

#include "base/assert.h"
#include "platforms/platform.h"
#include "tune/rule/statistics.h"
#include "tune/tuner.h"
#include "tune/worker/confine.h"

#include <stdatomic.h>

static bool asked(uint8_t kind)
{
    return kind > 0 && kind < HONE_MESSAGE_COUNT;
}

typedef struct conversation {
    int fd;
    uint64_t token; // of the question that is being answered
    hone_buffer empty;
} conversation;

static void send_note(void *ctx)
{
    conversation *with = ctx;
    // If the tuner is gone, the next read fails.
    (void)!hone_frame_write(with->fd, HONE_MESSAGE_NOTE, with->token, &with->empty, 0);
}

static hone_status answer_one(conversation *with, hone_session *session, hone_buffer *message, hone_buffer *answer)
{
    uint8_t kind;
    with->token = 0;
    hone_status status = hone_frame_read(with->fd, &kind, &with->token, message, 0, NULL);
    if (status != HONE_OK) return status;
    if (!asked(kind)) return HONE_IO;
    hone_buffer_clear(answer);
    status = hone_session_handle(session, kind, message, answer);
    return status == HONE_OK ? hone_frame_write(with->fd, HONE_MESSAGE_ANSWER, with->token, answer, 0) : status;
}

int hone_worker_serve(int fd, hone_session *session)
{
    hone_buffer message, answer;
    conversation with = {.fd = fd};
    hone_buffer_init(&with.empty, session->allocator);
    hone_buffer_init(&message, session->allocator);
    hone_buffer_init(&answer, session->allocator);
    session->note = send_note;
    session->note_ctx = &with;
    hone_status status;
    do
        status = answer_one(&with, session, &message, &answer);
    while (status == HONE_OK);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
    return status == HONE_IO ? 0 : 1;
}

// How long idle threads of libraries spin before they sleep: they occupy a processor while the next candidate is
// measured. By default those of OpenBLAS spin for 2^28 ticks of the processor's clock, 128 ms at 2.1 GHz, those of
// LLVM's and Intel's OpenMP for 200 ms, and those of GNU's for 300,000 iterations of a loop, some 5 ms. Runs of a
// sample follow each other sooner, and so do the barriers within one run. A caller spins as long while it waits for a
// thread that has no processor yet, and uses up the time that the scheduler owes it (docs/decisions/busy-machines.md).
static const struct patience {
    const char *variable, *value;
    const char *unless; // if the user has set this, threads wait as it says; NULL: there is no such variable
} patience[] = {
    {"OPENBLAS_THREAD_TIMEOUT", "22", NULL},        // as a power of two of ticks: 2 ms
    {"GOMP_SPINCOUNT", "20000", "OMP_WAIT_POLICY"}, // an iteration takes 3 to 47 ns
    {"KMP_BLOCKTIME", "1", "OMP_WAIT_POLICY"},      // ms
};
enum { PATIENCE = sizeof patience / sizeof patience[0] };

static bool is_to_be_told(const struct patience *of)
{
    return of->unless == NULL || hone_os_variable(of->unless) == NULL;
}

void hone_worker_hand_on(void)
{
    for (int i = 0; i < PATIENCE; i++)
        if (is_to_be_told(&patience[i]))
            (void)hone_process_hand_on(patience[i].variable, patience[i].value); // on failure contests take longer
}

static void offer_patience(void)
{
    for (int i = 0; i < PATIENCE; i++)
        if (is_to_be_told(&patience[i])) hone_os_offer_variable(patience[i].variable, patience[i].value);
}

int hone_worker_main(int fd, hone_status (*setup)(hone_registry *registry, hone_error *err))
{
    hone_worker_confine(fd);
    hone_allocator allocator = hone_allocator_system();
    hone_registry *registry = NULL;
    hone_error err;
    if (hone_registry_create(&allocator, hone_platform_facts_of, NULL, &registry, &err) != HONE_OK) return 2;
    int code = 2;
    if (setup(registry, &err) == HONE_OK) {
        hone_session session;
        hone_session_init(&session, allocator, &(hone_kernel_reader){.registry = registry}, NULL);
        code = hone_worker_serve(fd, &session);
        hone_session_deinit(&session);
    }
    hone_registry_destroy(&registry);
    return code;
}

int hone_worker_forked(int fd, bool strict)
{
    hone_worker_confine(fd);
    offer_patience();
    hone_session session;
    hone_session_init(&session, hone_allocator_system(), &(hone_kernel_reader){.strict = strict}, NULL);
    int code = hone_worker_serve(fd, &session);
    hone_session_deinit(&session);
    return code;
}

static hone_outcome_kind outcome_of(hone_status status)
{
    switch (status) {
    case HONE_BUSY:
        return HONE_OUTCOME_TIMEOUT;
    case HONE_CANCELLED:
        return HONE_OUTCOME_CANCELLED;
    case HONE_OUT_OF_MEMORY:
        return HONE_OUTCOME_MEMORY;
    default:
        return HONE_OUTCOME_LOST;
    }
}

// Makes the token of a question; never 0, which means any token. The token is not a secret: it distinguishes the answer
// from bytes that an earlier question, or a candidate that writes to every descriptor, has left in the socket.
static uint64_t make_token(void)
{
    static atomic_uint_fast64_t asked_so_far;
    uint64_t seed = hone_os_now_ns() ^ ((uint64_t)hone_os_process_id() << 40) ^ atomic_fetch_add(&asked_so_far, 1);
    return hone_random_next(&seed) | 1;
}

hone_outcome_kind hone_worker_ask(
    int fd,
    const hone_worker_question *query,
    const hone_stop *stop,
    void (*noted)(void *ctx),
    void *ctx,
    hone_buffer *answer)
{
    hone_assert(fd >= 0);
    const uint64_t most_ns = query->limits.all_ns > 0 ? query->limits.all_ns : UINT64_MAX, start = hone_os_now_ns();
    uint64_t token = make_token(), limit_ns = query->limits.first_ns;
    hone_status status = hone_frame_write(fd, query->kind, token, query->message, hone_os_now_ns() + limit_ns);
    while (status == HONE_OK) {
        uint8_t came;
        const uint64_t took_ns = hone_os_now_ns() - start, left_ns = took_ns < most_ns ? most_ns - took_ns : 0;
        if (limit_ns > left_ns) limit_ns = left_ns;
        status = hone_frame_read(fd, &came, &token, answer, hone_os_now_ns() + limit_ns, stop);
        limit_ns = query->limits.next_ns;
        if (status == HONE_OK && came == HONE_MESSAGE_ANSWER) return HONE_OUTCOME_ANSWERED;
        if (status == HONE_OK && came != HONE_MESSAGE_NOTE) status = HONE_IO;
        if (status == HONE_OK && noted != NULL) noted(ctx);
    }
    return outcome_of(status);
}
