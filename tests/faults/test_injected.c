// A thousand candidates that crash, hang, lie, write where they must not, and change or leave something in their
// process, beside an honest one that is slower than all of them. It wins every contest, and nothing is left behind.
#include "misdeeds.h"

#include "hone/describe.h"
#include "platforms/platform.h"
#include "tune/rule/statistics.h"
#include "tune/tuner.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { EVALUATIONS = 128, INJECTED = 1000, MOST_CONTESTS = 24, FEW = 150 };

static const hone_device_info cpu = {
    .struct_size = sizeof cpu,
    .platform = HONE_NATIVE,
    .backend = HONE_CPU,
    .device = {HONE_DEVICE_CPU, 0},
    .name = "test CPU",
    .fingerprint = "cpu|test",
    .threads = 2,
};

static char marker[64]; // of this run, in the environment of all that it starts

// Contests ------------------------------------------------------------------------------------------------------------

typedef struct campaign {
    hone_workers *workers;
    hone_zygote *zygote;
    bool builtin; // in spawned workers; else functions of this program, in the zygote's children
    uint64_t seed;
    uint32_t injected, won;
    uint32_t rejected[HONE_FAILURE_COUNT];
} campaign;

static hone_registry *make_registry(campaign *c)
{
    hone_allocator allocator = hone_allocator_system();
    hone_registry *registry = NULL;
    hone_error err = {0};
    uint32_t list[MISDEED_LIMIT], count = (uint32_t)misdeed_count();
    hone_random_order(&c->seed, count, list);
    for (uint32_t i = 0; i < count; i++)
        list[i] = 8 * list[i] + hone_random_below(&c->seed, 8);
    assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &registry, &err), HONE_OK);
    assert_int_equal(misdeeds_register(registry, list, count, c->builtin, &err), HONE_OK);
    return registry;
}

static void count_rows(campaign *c, const hone_contest *contest)
{
    for (size_t i = 0; i < contest->count; i++) {
        const hone_contest_kernel *row = &contest->kernels[i];
        if (strcmp(row->kernel->kernel.name, "honest") == 0) continue;
        c->injected += row->tried;
        for (int kind = 0; kind < HONE_FAILURE_COUNT; kind++)
            c->rejected[kind] += row->rejected[kind];
    }
}

// On a machine with much else to do the honest one too may overstep its limit; then nobody wins.
static bool was_too_late(const hone_contest *contest)
{
    for (size_t i = 0; i < contest->count; i++) {
        const hone_contest_kernel *row = &contest->kernels[i];
        if (strcmp(row->kernel->kernel.name, "honest") != 0) continue;
        print_message("  the honest one: %s\n", row->reason);
        return row->rejected[HONE_FAILURE_TIMEOUT] > 0;
    }
    return false;
}

static void run_contest(campaign *c)
{
    hone_registry *registry = make_registry(c);
    const hone_tune_environment environment = {
        .allocator = hone_allocator_system(),
        .registry = registry,
        .device = &cpu,
        .workers = c->workers,
        .zygote = c->zygote};
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = 60,
        .candidate_seconds = 0.2,
        .evaluations = EVALUATIONS,
        .patience = EVALUATIONS,
        .seed = hone_random_next(&c->seed) >> 1};
    const hone_algorithm_entry *algorithm = hone_registry_find(registry, "injected", NULL);
    hone_call *call = NULL;
    hone_error err = {0};
    hone_contest contest;
    assert_int_equal(
        hone_call_parse(environment.allocator, algorithm->signature, "injected(f32[1000])", &call, &err), HONE_OK);
    hone_status status =
        hone_contest_run(&(hone_contest_request){&environment, algorithm, call, &options}, &contest, &err);
    if (status == HONE_OK) {
        assert_string_equal(contest.decision.kernel, "honest");
        assert_true(contest.decision.verified);
        assert_true(contest.decision.evidence.isolated);
        c->won++;
    } else {
        print_message("  nobody won: %s\n", err.message);
        assert_true(was_too_late(&contest));
        assert_string_equal(contest.decision.kernel, "");
    }
    count_rows(c, &contest);
    hone_contest_deinit(&contest);
    hone_call_release(&call);
    hone_registry_destroy(&registry);
}

// What is left behind -------------------------------------------------------------------------------------------------

static bool bears_marker(const char *process)
{
    char path[64], environment[65536];
    snprintf(path, sizeof path, "/proc/%.20s/environ", process);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    size_t size = fread(environment, 1, sizeof environment, file);
    fclose(file);
    for (size_t at = 0; at < size; at += strlen(environment + at) + 1) {
        environment[sizeof environment - 1] = '\0';
        if (strcmp(environment + at, marker) == 0) return true;
    }
    return false;
}

static uint32_t count_marked(void)
{
    uint32_t count = 0;
    DIR *processes = opendir("/proc");
    assert_non_null(processes);
    const struct dirent *entry;
    while ((entry = readdir(processes)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && bears_marker(entry->d_name)) count++;
    closedir(processes);
    return count;
}

static void run_campaign(campaign *c, uint32_t injected)
{
    hone_os_state before, after;
    hone_os_holdings held, holds;
    hone_error err = {0};
    hone_allocator allocator = hone_allocator_system();
    hone_os_state_read(&before);
    hone_os_holdings_read(&held);
    if (c->builtin)
        assert_int_equal(hone_workers_create(&allocator, HONE_TEST_WORKER, &c->workers, &err), HONE_OK);
    else
        assert_int_equal(hone_zygote_start(&allocator, &c->zygote, &err), HONE_OK);
    for (uint32_t i = 0; i < MOST_CONTESTS && c->injected < injected; i++)
        run_contest(c);
    hone_workers_destroy(&c->workers);
    hone_zygote_stop(&c->zygote);
    print_message("  %u injected:", c->injected);
    for (int kind = 0; kind < HONE_FAILURE_COUNT; kind++)
        if (c->rejected[kind] > 0) print_message(" %s %u", hone_failure_name((hone_failure)kind), c->rejected[kind]);
    print_message("\n");
    assert_true(c->injected >= injected);
    assert_true(c->won > 0);
    for (int tries = 0; count_marked() > 0 && tries < 500; tries++)
        hone_os_sleep_ns(10000000); // a keeper that is no child of ours takes its own time
    assert_int_equal(count_marked(), 0);
    hone_os_state_read(&after);
    hone_os_holdings_read(&holds);
    assert_null(hone_os_state_changed(&before, &after, false));
    assert_int_equal(holds.amounts[HONE_HELD_DESCRIPTORS], held.amounts[HONE_HELD_DESCRIPTORS]);
    assert_int_equal(holds.amounts[HONE_HELD_THREADS], held.amounts[HONE_HELD_THREADS]);
    assert_true(holds.amounts[HONE_HELD_RESIDENT] < held.amounts[HONE_HELD_RESIDENT] + (32u << 20));
}

static void none_of_a_thousand_injected_candidates_wins_and_nothing_is_left(void **state)
{
    (void)state;
    campaign c = {.builtin = true, .seed = 20261122};
    run_campaign(&c, INJECTED);
    for (int kind = HONE_FAILURE_WRONG; kind <= HONE_FAILURE_TRACES; kind++)
        assert_true(c.rejected[kind] > 0);
}

static void functions_of_the_host_do_no_better_in_the_zygotes_children(void **state)
{
    (void)state;
    if (hone_os_thread_count() != 1) skip(); // ThreadSanitizer's own
    campaign c = {.builtin = false, .seed = 7};
    run_campaign(&c, FEW);
}

int main(void)
{
    snprintf(marker, sizeof marker, "HONE_INJECTED_RUN=%d", (int)getpid());
    putenv(marker);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_the_host_do_no_better_in_the_zygotes_children),
        cmocka_unit_test(none_of_a_thousand_injected_candidates_wins_and_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
