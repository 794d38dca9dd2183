// The worker's side of PREPARE: candidates prepared all at once and let go of again, so that what was compiled lies in the
// cache when their turn comes and nothing is compiled beside what is timed.
#include "tune/session.h"

#include "base/error.h"

static const char where[] = "tune.worker";

typedef struct item {
    hone_kernel kernel;
    hone_config config;
    bool openable;  // its platform's instance is there
    double took_ns; // 0: it could not be prepared
} item;

typedef struct batch {
    hone_session *session;
    uint32_t count;
    item items[HONE_MOST_AHEAD];
} batch;

static void prepare_one(void *ctx, int64_t index)
{
    batch *b = ctx;
    item *one = &b->items[index];
    hone_runner runner;
    if (!one->openable) return;
    uint64_t start = hone_os_now_ns();
    if (hone_runner_init(&runner, b->session, &one->kernel, &one->config, NULL) == HONE_FAILURE_NONE)
        one->took_ns = (double)(hone_os_now_ns() - start);
    hone_runner_deinit(&runner);
}

static hone_status read_batch(hone_session *session, hone_wire_reader *reader, batch *out, hone_error *err)
{
    out->session = session;
    out->count = hone_wire_get_u32(reader);
    if (out->count > HONE_MOST_AHEAD) return hone_fail(err, HONE_IO, where, "too many candidates at once");
    hone_status status = HONE_OK;
    for (uint32_t i = 0; i < out->count && status == HONE_OK; i++) {
        status = hone_message_get_kernel(reader, &session->how, &out->items[i].kernel, err);
        hone_message_get_config(reader, &out->items[i].config);
    }
    if (status == HONE_OK) status = hone_wire_check(reader, err);
    return status != HONE_OK || session->open ? status : hone_fail(err, HONE_IO, where, "no call is open");
}

// Platforms are opened here, not by several threads at once.
static void open_platforms(batch *b)
{
    hone_platform_instance *instance;
    for (uint32_t i = 0; i < b->count; i++)
        b->items[i].openable =
            hone_site_instance_for(&b->session->site, b->items[i].kernel.platform, &instance, NULL) == HONE_OK;
}

static hone_status run_batch(batch *b)
{
    hone_pool *pool = NULL;
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    open_platforms(b);
    hone_status status = hone_pool_create(&b->session->allocator, cpu.threads, &pool, NULL);
    if (status == HONE_OK) hone_pool_run(pool, b->count, prepare_one, b);
    hone_pool_destroy(&pool);
    return status;
}

void hone_session_prepare(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    batch *b = hone_alloc(&session->allocator, sizeof *b);
    hone_status status = b ? read_batch(session, reader, b, NULL) : HONE_OUT_OF_MEMORY;
    if (status == HONE_OK) status = run_batch(b);
    for (uint32_t i = 0; status == HONE_OK && i < b->count; i++)
        hone_wire_put_f64(answer, b->items[i].took_ns);
    hone_free(&session->allocator, b);
    // Compilers keep memory and threads of their own, which are no candidate's.
    hone_watch_init(&session->watch, session->watch.shared);
}
