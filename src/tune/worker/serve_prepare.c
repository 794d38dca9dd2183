// The worker's side of PREPARE: prepares configs of one kernel all at once and releases them again, so that compiled
// code is in the cache when they are tried, and nothing is compiled beside timed runs.
#include "tune/worker/session.h"

#include "base/error.h"

static const char where[] = "tune.worker";

typedef struct batch {
    hone_session *session;
    hone_kernel kernel;
    uint32_t count;
    hone_config configs[HONE_MOST_PREPARED];
    bool prepared[HONE_MOST_PREPARED];
} batch;

static void prepare_one(void *ctx, int64_t index)
{
    batch *b = ctx;
    hone_runner runner;
    b->prepared[index] =
        hone_runner_init(&runner, b->session, &b->kernel, &b->configs[index], NULL) == HONE_FAILURE_NONE;
    hone_runner_deinit(&runner);
}

static hone_status read_batch(hone_session *session, hone_wire_reader *reader, batch *out, hone_error *err)
{
    out->session = session;
    hone_status status = hone_message_get_kernel(reader, &session->how, &out->kernel, err);
    out->count = hone_wire_get_u32(reader);
    if (out->count > HONE_MOST_PREPARED) return hone_fail(err, HONE_IO, where, "too many configs at once");
    for (uint32_t i = 0; i < out->count; i++)
        hone_message_get_config(reader, &out->configs[i]);
    if (status == HONE_OK) status = hone_wire_check(reader, err);
    return status != HONE_OK || session->open ? status : hone_fail(err, HONE_IO, where, "no call is open");
}

static hone_status run_batch(batch *b)
{
    hone_pool *pool = NULL;
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    hone_platform_instance *instance; // opened here, and not by several threads at once
    hone_status status = hone_site_instance_for(&b->session->site, b->kernel.platform, &instance, NULL);
    if (status != HONE_OK) return status;
    status = hone_pool_create(&b->session->allocator, cpu.threads, &pool, NULL);
    if (status == HONE_OK) hone_pool_run(pool, b->count, prepare_one, b);
    hone_pool_destroy(&pool);
    return status;
}

void hone_session_answer_prepare(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    batch b = {0};
    uint32_t prepared = 0;
    if (read_batch(session, reader, &b, NULL) == HONE_OK && run_batch(&b) == HONE_OK)
        for (uint32_t i = 0; i < b.count; i++)
            prepared += b.prepared[i];
    // Compilers keep memory and threads of their own, which are not attributed to a candidate.
    hone_side_effects_init(&session->effects, session->effects.shared, session->effects.driven);
    hone_wire_put_u32(answer, prepared);
}
