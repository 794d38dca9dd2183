#include "tune/worker.h"

#include "tune/tuner.h"

static bool asked(uint8_t kind)
{
    return kind > 0 && kind < HONE_MESSAGE_COUNT;
}

typedef struct conversation {
    int fd;
    hone_buffer empty;
} conversation;

static void send_note(void *ctx)
{
    conversation *with = ctx;
    // A tuner that is gone shows at the next read.
    (void)!hone_frame_write(with->fd, HONE_MESSAGE_NOTE, &with->empty, 0);
}

static hone_status answer_one(int fd, hone_session *session, hone_buffer *message, hone_buffer *answer)
{
    uint8_t kind;
    hone_status status = hone_frame_read(fd, &kind, message, 0, NULL);
    if (status != HONE_OK) return status;
    if (!asked(kind)) return HONE_IO;
    hone_buffer_clear(answer);
    status = hone_session_handle(session, kind, message, answer);
    return status == HONE_OK ? hone_frame_write(fd, HONE_MESSAGE_ANSWER, answer, 0) : status;
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
        status = answer_one(fd, session, &message, &answer);
    while (status == HONE_OK);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
    return status == HONE_IO ? 0 : 1;
}

int hone_worker_main(int fd, hone_status (*setup)(hone_registry *registry, hone_error *err))
{
    hone_worker_seclude(fd);
    hone_allocator allocator = hone_allocator_system();
    hone_registry *registry = NULL;
    hone_error err;
    if (hone_registry_create(&allocator, 1u << HONE_CPU, HONE_CPU, NULL, &registry, &err) != HONE_OK) return 2;
    int code = 2;
    if (setup(registry, &err) == HONE_OK) {
        hone_session session;
        hone_session_init(&session, allocator, &(hone_kernel_reader){registry, false}, NULL);
        code = hone_worker_serve(fd, &session);
        hone_session_deinit(&session);
    }
    hone_registry_destroy(&registry);
    return code;
}

int hone_worker_forked(int fd, bool strict)
{
    hone_worker_seclude(fd);
    hone_session session;
    hone_session_init(&session, hone_allocator_system(), &(hone_kernel_reader){NULL, strict}, NULL);
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

hone_outcome_kind hone_worker_ask(
    int fd,
    uint8_t kind,
    const hone_buffer *message,
    uint64_t limit_ns,
    const hone_stop *stop,
    void (*noted)(void *ctx),
    void *ctx,
    hone_buffer *answer)
{
    hone_status status = hone_frame_write(fd, kind, message, hone_os_now_ns() + limit_ns);
    while (status == HONE_OK) {
        uint8_t came;
        status = hone_frame_read(fd, &came, answer, hone_os_now_ns() + limit_ns, stop);
        if (status == HONE_OK && came == HONE_MESSAGE_ANSWER) return HONE_OUTCOME_ANSWERED;
        if (status == HONE_OK && came != HONE_MESSAGE_NOTE) status = HONE_IO;
        if (status == HONE_OK && noted) noted(ctx);
    }
    return outcome_of(status);
}
