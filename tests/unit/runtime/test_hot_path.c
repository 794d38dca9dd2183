// What a hit may not do: allocate, lock, call the system. malloc and the locks are this program's own and count
// (watch.c); a child that may make no system call but exit lives through its hits. Not built with sanitizers: they
// bring their own malloc.
#include "fixture.h"
#include "watch.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Calls of every kind: other shapes, layouts, alignments, scalars; with all arguments and with few.
enum { CALLS = 9 };

typedef struct calls {
    example examples[CALLS];
    int64_t strides[2];
    size_t counts[CALLS];
} calls;

static void make_calls(calls *c)
{
    for (int i = 0; i < CALLS; i++) {
        make_example(&c->examples[i], 4, 4 + i % 4);
        c->counts[i] = 3;
    }
    c->strides[0] = 1;
    c->strides[1] = 4;
    c->examples[4].tensors[0].strides = c->strides;
    c->examples[5].tensors[0].data = &c->examples[5].x[1];
    c->examples[6].args[2] = hone_of_int(3);
    c->examples[7].args[2] = hone_of_none();
    c->counts[8] = 2;
}

static hone_status run_all(fixture *f, calls *c, int rounds)
{
    hone_status worst = HONE_OK;
    for (int i = 0; i < rounds * CALLS; i++) {
        // In pairs, so that both a thread's last plan and the table answer.
        int which = i / 2 % CALLS;
        hone_status status = hone_run(f->op, c->examples[which].args, c->counts[which], NULL, NULL);
        if (status != HONE_OK) worst = status;
    }
    return worst;
}

static void the_counters_of_this_program_count(void **state)
{
    (void)state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    watch_begin();
    void *volatile block = malloc(10);
    free(block);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    const watched seen = watch_end();
    assert_int_equal(seen.allocations, 2);
    assert_int_equal(seen.locks, 1);
}

static void assert_nothing_on_a_hit(fixture *f)
{
    calls *c = calloc(1, sizeof *c);
    make_calls(c);
    assert_int_equal(run_all(f, c, 2), HONE_OK); // the first calls
    watch_begin();
    hone_status status = run_all(f, c, 200);
    const watched seen = watch_end();
    assert_int_equal(status, HONE_OK);
    assert_int_equal(seen.allocations, 0);
    assert_int_equal(seen.locks, 0);
    assert_int_equal(f->probes[FAST].wrong, 0);
    free(c);
}

static void a_hit_allocates_nothing_and_locks_nothing(void **state)
{
    assert_nothing_on_a_hit(*state);
}

static void a_recorded_hit_allocates_nothing_and_locks_nothing(void **state)
{
    fixture *f = *state;
    hone_record_enable(f->rt, true);
    assert_nothing_on_a_hit(f);
}

static void a_hit_under_a_context_allocates_nothing_and_locks_nothing(void **state)
{
    fixture *f = *state;
    hone_context *context = overriding(f, "fast", NULL);
    hone_context_enter(context);
    assert_nothing_on_a_hit(f);
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static hone_status ask_for_scratch(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)err;
    *out_scratch_bytes = 100000;
    return HONE_OK;
}

static hone_status run_in_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)args;
    memset(execution->scratch, 1, plan->scratch_bytes);
    return HONE_OK;
}

static void a_hit_that_needs_scratch_memory_allocates_nothing_and_locks_nothing(void **state)
{
    fixture *f = *state;
    const hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "scale", .name = "working",          .platform = HONE_NATIVE,
        .backend = HONE_CPU, .priority = 99,       .prepare = ask_for_scratch, .run = run_in_scratch,
    };
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    assert_nothing_on_a_hit(f);
}

// Only read, write and exit are allowed from here on, and this uses only the last; another call kills the child.
static void run_in_silence(fixture *f, calls *c)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 2);
    hone_status status = run_all(f, c, 200);
    syscall(SYS_exit, status == HONE_OK ? 0 : 1);
}

static void a_hit_makes_no_system_call(void **state)
{
    fixture *f = *state;
    calls *c = calloc(1, sizeof *c);
    make_calls(c);
    assert_int_equal(run_all(f, c, 2), HONE_OK);
    pid_t child = fork();
    if (child == 0) run_in_silence(f, c);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(c);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) skip(); // no seccomp here
    if (WIFSIGNALED(status)) fail_msg("a hit made a system call: signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_bound_plan_makes_no_system_call(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = NULL;
    assert_int_equal(hone_bind(f->op, e.args, 2, &plan, &f->err), HONE_OK);
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 2);
        hone_status worst = HONE_OK;
        for (int i = 0; i < 1000; i++)
            if (plan->run(plan, e.args, NULL) != HONE_OK) worst = HONE_KERNEL_FAILED;
        syscall(SYS_exit, worst == HONE_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    hone_plan_release(&plan);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counters_of_this_program_count),
        WITH_RUNTIME(a_hit_allocates_nothing_and_locks_nothing),
        WITH_RUNTIME(a_recorded_hit_allocates_nothing_and_locks_nothing),
        WITH_RUNTIME(a_hit_under_a_context_allocates_nothing_and_locks_nothing),
        WITH_RUNTIME(a_hit_that_needs_scratch_memory_allocates_nothing_and_locks_nothing),
        WITH_RUNTIME(a_hit_makes_no_system_call),
        WITH_RUNTIME(a_bound_plan_makes_no_system_call),
    };
    return cmocka_run_group_tests_name("runtime_hot_path", tests, NULL, NULL);
}
