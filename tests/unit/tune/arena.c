#include "arena.h"
#include "hone/describe.h"
#include "platforms/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hone_device_info cpu = {
    .struct_size = sizeof cpu,
    .platform = HONE_NATIVE,
    .backend = HONE_CPU,
    .device = {HONE_DEVICE_CPU, 0},
    .name = "test CPU",
    .fingerprint = "cpu|test",
    .threads = 2,
    .l1_bytes = 32768,
    .l3_bytes = 1 << 20,
};

static void say(void *ctx, int level, const char *message)
{
    (void)ctx;
    print_message("log %d: %s\n", level, message);
}

static int setup(void **state, hone_status (*fill)(hone_registry *registry, hone_error *err))
{
    hone_allocator allocator = hone_allocator_system();
    ground *g = calloc(1, sizeof *g);
    *state = g;
    if (hone_registry_create(&allocator, hone_platform_facts_of, NULL, &g->registry, &g->err) != HONE_OK) return -1;
    if (fill(g->registry, &g->err) != HONE_OK) {
        print_message("%s\n", g->err.message);
        return -1;
    }
    g->log = (hone_log){say, NULL, HONE_LOG_WARNING};
    g->environment =
        (hone_tune_environment){.allocator = allocator, .log = &g->log, .registry = g->registry, .device = &cpu};
    g->options =
        (hone_tune_options){.struct_size = sizeof g->options, .seconds = 300, .candidate_seconds = 60, .seed = 1};
    return hone_workers_create(&allocator, HONE_TEST_WORKER, &g->environment.workers, &g->err) == HONE_OK ? 0 : -1;
}

void skip_where_nothing_can_fork(void)
{
    if (hone_os_thread_count() != 1) skip();
}

int ground_setup(void **state)
{
    return setup(state, subjects_register);
}

int ground_setup_hosts(void **state)
{
    return setup(state, subjects_register_hosts);
}

int ground_teardown(void **state)
{
    ground *g = *state;
    hone_contest_deinit(&g->contest);
    hone_workers_destroy(&g->environment.workers);
    hone_zygote_stop(&g->environment.zygote);
    hone_pool_destroy(&g->environment.pool);
    hone_store_close(&g->environment.store);
    hone_registry_destroy(&g->registry);
    free(g);
    return 0;
}

hone_status ground_tune_text(ground *g, const char *call_text)
{
    char name[HONE_NAME_SIZE];
    hone_call *call = NULL;
    assert_int_equal(hone_call_text_name(call_text, name, sizeof name, NULL, 0, &g->err), HONE_OK);
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, name, NULL);
    assert_non_null(algorithm);
    hone_status status = hone_call_parse(g->environment.allocator, algorithm->signature, call_text, &call, &g->err);
    if (status != HONE_OK) print_message("%s\n", g->err.message);
    assert_int_equal(status, HONE_OK);
    hone_contest_deinit(&g->contest);
    status =
        hone_contest_run(&(hone_contest_request){&g->environment, algorithm, call, &g->options}, &g->contest, &g->err);
    hone_call_release(&call);
    return status;
}

hone_status ground_tune(ground *g, const char *subject)
{
    char text[128];
    snprintf(text, sizeof text, "scale_%s(f32[1000])", subject);
    return ground_tune_text(g, text);
}

const hone_contest_kernel *ground_row(const ground *g, const char *kernel)
{
    for (size_t i = 0; i < g->contest.count; i++)
        if (strcmp(g->contest.kernels[i].kernel->kernel.name, kernel) == 0) return &g->contest.kernels[i];
    fail_msg("no kernel %s in the contest", kernel);
    return NULL;
}

void assert_winner(const ground *g, const char *kernel)
{
    const hone_decision *decision = &g->contest.decision;
    assert_string_equal(decision->kernel, kernel);
    assert_true(decision->verified);
    assert_int_equal(decision->source, HONE_SOURCE_AUTOTUNE);
    assert_true(decision->evidence.time_ns > 0);
    assert_true(decision->evidence.low_ns <= decision->evidence.time_ns);
    assert_true(decision->evidence.high_ns >= decision->evidence.time_ns);
}

void assert_rejected(const ground *g, const char *kernel, hone_failure failure)
{
    const hone_contest_kernel *row = ground_row(g, kernel);
    for (int kind = 0; kind < HONE_FAILURE_COUNT; kind++) {
        if ((hone_failure)kind == failure)
            assert_true(row->rejected[kind] > 0);
        else
            assert_int_equal(row->rejected[kind], 0);
    }
    assert_int_equal(g->contest.decision.evidence.rejected[failure], row->rejected[failure]);
    assert_true(row->reason[0] != '\0');
    assert_true(row->time_ns == 0);
}
