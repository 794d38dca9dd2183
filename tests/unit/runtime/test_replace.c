// A kernel that was replaced is freed when no caller can use it any more, and not before.
#include "failing_allocator.h"
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>

// ThreadSanitizer makes each of them a hundred times as long.
#ifdef __SANITIZE_THREAD__
enum { MANY = 200 };
#else
enum { MANY = 1000 };
#endif

enum {
    FEW = 50,
    CALLERS = 4,
    // Less than one kernel a replacement would leave: its space and its plan alone are more than a kilobyte.
    SLACK = 256 * 1024,
};

typedef struct subject {
    fixture *f;
    failing_allocator memory;
    atomic_bool done;
    atomic_int wrong;
    char texts[2][4000]; // spaces to take turns
} subject;

// Large enough that a replacement which leaves it behind is seen.
static void write_space(char *out, size_t size, int first)
{
    size_t used = (size_t)snprintf(out, size, "unroll: %d", first);
    for (int i = 1; i < 500; i++)
        used += (size_t)snprintf(out + used, size - used, " | %d", first + i);
    assert_true(used < size);
}

static void ignore_message(void *ctx, int level, const char *message)
{
    (void)ctx;
    (void)level;
    (void)message;
}

static void open_subject(subject *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < 2; i++)
        write_space(s->texts[i], sizeof s->texts[i], 1 + i);
    s->f = open_fixture((wish){
        .policy = HONE_POLICY_HEURISTIC, .allocator = failing_allocator_of(&s->memory, -1), .log = ignore_message});
}

static hone_status replace(subject *s, int round)
{
    hone_kernel kernel = s->f->kernels[FAST];
    kernel.space = s->texts[round % 2];
    kernel.revision = round % 2 == 0 ? "even" : "odd";
    return hone_replace_kernels(s->f->rt, &kernel, 1, &s->f->err);
}

static void ignore_text(void *ctx, const char *text, size_t size)
{
    (void)ctx;
    (void)text;
    (void)size;
}

// One of each way in which a program gets at kernels.
static void use(subject *s, int round)
{
    fixture *f = s->f;
    char key[20];
    run_example(f, 3, 5);
    assert_string_equal(decide_scale(f, 3, 5).kernel, "fast");
    hone_call *call = describe_scale(f, 3, 5);
    assert_int_equal(hone_explain(f->op, call, HONE_TEXT, ignore_text, NULL, &f->err), HONE_OK);
    hone_call_release(&call);
    hone_entry entry = entry_for(f, 2, 2, "plain", key);
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_kernels(f->rt, "scale", &kernels, &count, &f->err), HONE_OK);
    assert_int_equal(count, KERNELS);
    assert_string_equal(hone_kernel_of(kernels[0])->space, s->texts[round % 2]);
    hone_kernels_release(&kernels);
    assert_null(kernels);
    bool ok = false;
    assert_int_equal(hone_validate_signatures(f->rt, "scale", true, NULL, NULL, &ok, &f->err), HONE_OK);
}

static long long live_after(subject *s, int from, int to, void (*each)(subject *s, int round))
{
    for (int round = from; round < to; round++) {
        if (replace(s, round) != HONE_OK) fail_msg("%s", s->f->err.message);
        each(s, round);
    }
    return atomic_load(&s->memory.live);
}

static void assert_level(long long before, long long after)
{
    if (after > before + SLACK) fail_msg("%d replacements: %lld bytes became %lld", MANY, before, after);
}

static void a_thousand_replacements_leave_no_memory_behind(void **state)
{
    (void)state;
    subject s;
    open_subject(&s);
    const long long before = live_after(&s, 0, FEW, use);
    assert_level(before, live_after(&s, FEW, FEW + MANY, use));
    close_fixture(s.f);
    assert_int_equal(atomic_load(&s.memory.live), 0);
}

// Put aside for its call, and known to be so.
static void fail_once(subject *s, int round)
{
    (void)round;
    atomic_store(&s->f->probes[FAST].status, HONE_KERNEL_FAILED);
    run_example(s->f, 4, 5);
    assert_string_equal(decide_scale(s->f, 4, 5).kernel, "plain");
    atomic_store(&s->f->probes[FAST].status, HONE_OK);
}

static void what_was_held_against_a_kernel_goes_with_it(void **state)
{
    (void)state;
    subject s;
    open_subject(&s);
    const long long before = live_after(&s, 0, FEW, fail_once);
    assert_level(before, live_after(&s, FEW, FEW + MANY, fail_once));
    close_fixture(s.f);
    assert_int_equal(atomic_load(&s.memory.live), 0);
}

static void *call_on(void *ctx)
{
    subject *s = ctx;
    for (int i = 0; !atomic_load(&s->done); i++) {
        example e;
        make_example(&e, 1 + i % 5, 7);
        bool right = hone_run(s->f->op, e.args, 3, NULL, NULL) == HONE_OK && e.y[6] == 12;
        hone_decision decision;
        if (i % 3 == 0) right = right && hone_decide(s->f->op, e.args, 3, &decision, NULL) == HONE_OK;
        const hone_kernel_ref **kernels = NULL;
        size_t count = 0;
        if (i % 7 == 0) {
            right = right && hone_registry_kernels(s->f->rt, "scale", &kernels, &count, NULL) == HONE_OK;
            right = right && strcmp(hone_kernel_of(kernels[0])->name, "fast") == 0;
            hone_kernels_release(&kernels);
        }
        if (!right) atomic_fetch_add(&s->wrong, 1);
    }
    return NULL;
}

static void nothing_more(subject *s, int round)
{
    (void)s;
    (void)round;
}

static void replacing_under_callers_leaves_no_memory_behind_and_a_bound_plan_goes_on(void **state)
{
    (void)state;
    subject s;
    open_subject(&s);
    pthread_t callers[CALLERS];
    example e;
    const hone_plan *plan = NULL;
    make_example(&e, 3, 5);
    assert_int_equal(replace(&s, 1), HONE_OK);
    assert_int_equal(hone_bind(s.f->op, e.args, 3, &plan, &s.f->err), HONE_OK);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_on, &s), 0);
    const long long before = live_after(&s, 0, FEW, nothing_more);
    (void)live_after(&s, FEW, FEW + MANY, nothing_more);
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    assert_scaled(&e, 2);
    assert_string_equal(plan->kernel->space, s.texts[1]);
    assert_string_equal(plan->kernel->revision, "odd");
    atomic_store(&s.done, true);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    // What a caller was about to use when it was last replaced goes with the next replacements.
    assert_level(before, live_after(&s, 0, 4, nothing_more));
    assert_int_equal(atomic_load(&s.wrong), 0);
    hone_plan_release(&plan);
    close_fixture(s.f);
    assert_int_equal(atomic_load(&s.memory.live), 0);
}

static void a_kernel_that_was_got_stays_and_those_of_a_list_stay_until_it_is_freed(void **state)
{
    (void)state;
    subject s;
    open_subject(&s);
    const hone_query query = {.algorithm = "scale"};
    const hone_kernel_ref *got = NULL, **kernels = NULL;
    size_t count = 0;
    assert_int_equal(replace(&s, 1), HONE_OK);
    assert_int_equal(hone_registry_get(s.f->rt, &query, &got, &s.f->err), HONE_OK);
    assert_int_equal(replace(&s, 0), HONE_OK);
    assert_int_equal(hone_registry_kernels(s.f->rt, "scale", &kernels, &count, &s.f->err), HONE_OK);
    (void)live_after(&s, 1, FEW, use);
    assert_string_equal(hone_kernel_of(got)->revision, "odd");
    assert_string_equal(hone_kernel_of(kernels[0])->revision, "even");
    example e;
    make_example(&e, 3, 5);
    assert_int_equal(hone_kernel_run(got, e.args, 3, NULL, &s.f->err), HONE_OK);
    assert_scaled(&e, 2);
    hone_kernels_release(&kernels);
    close_fixture(s.f);
    assert_int_equal(atomic_load(&s.memory.live), 0);
}

// A kernel may replace itself: what runs is there until it has ended.
static hone_status replace_self(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)args;
    (void)execution;
    subject *s = plan->kernel->user;
    const hone_kernel *self = plan->kernel;
    for (int round = 0; round < 3; round++)
        if (replace(s, round) != HONE_OK) return HONE_KERNEL_FAILED;
    return plan->kernel == self && strcmp(self->name, "fast") == 0 && strcmp(self->revision, "self") == 0
               ? HONE_OK
               : HONE_INVALID_ARGUMENT;
}

static void a_kernel_that_replaces_itself_runs_to_its_end(void **state)
{
    (void)state;
    subject s;
    example e;
    open_subject(&s);
    make_example(&e, 3, 5);
    for (int times = 0; times < 2; times++) { // the first call decides, and the second hits
        hone_kernel kernel = {
            HONE_KERNEL,    .algorithm = "scale", .name = "fast", .platform = HONE_NATIVE, .backend = HONE_CPU,
            .priority = 20, .revision = "self",   .user = &s,     .run = replace_self,
        };
        assert_int_equal(hone_replace_kernels(s.f->rt, &kernel, 1, &s.f->err), HONE_OK);
        const hone_plan *plan = NULL;
        if (times == 1) {
            assert_int_equal(hone_bind(s.f->op, e.args, 3, &plan, &s.f->err), HONE_OK);
            assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
            hone_plan_release(&plan);
        } else
            assert_int_equal(hone_run(s.f->op, e.args, 3, NULL, &s.f->err), HONE_OK);
        run_example(s.f, 3, 5);
    }
    close_fixture(s.f);
    assert_int_equal(atomic_load(&s.memory.live), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_replacements_leave_no_memory_behind),
        cmocka_unit_test(what_was_held_against_a_kernel_goes_with_it),
        cmocka_unit_test(replacing_under_callers_leaves_no_memory_behind_and_a_bound_plan_goes_on),
        cmocka_unit_test(a_kernel_that_was_got_stays_and_those_of_a_list_stay_until_it_is_freed),
        cmocka_unit_test(a_kernel_that_replaces_itself_runs_to_its_end),
    };
    return cmocka_run_group_tests_name("runtime_replace", tests, NULL, NULL);
}
