// Everything at once: threads that call, bind, decide and explain mixed calls while another registers kernels, puts
// answers in the cache, clears it and enters contexts. The results stay right; ThreadSanitizer has the last word.
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>

enum { CALLERS = 4, ROUNDS = 300, SHAPES = 12 };

typedef struct race {
    fixture *f;
    atomic_bool done;
    atomic_int wrong, next;
    probe extra;
} race;

static void check(race *r, bool right)
{
    if (!right) atomic_fetch_add(&r->wrong, 1);
}

static bool is_scaled(const example *e, float factor)
{
    for (int64_t i = 0; i < e->shape[0] * e->shape[1]; i++)
        if (e->y[i] != (float)i * factor) return false;
    return true;
}

static void forget(void *ctx, const char *text, size_t size)
{
    (void)ctx;
    (void)text;
    (void)size;
}

static void call_once(race *r, int number)
{
    fixture *f = r->f;
    example e;
    make_example(&e, 1 + number % 3, 1 + number % SHAPES);
    float factor = (float)(number % 4);
    e.args[2] = number % 8 < 4 ? hone_of_float(factor) : hone_of_int(number % 4);
    check(r, hone_run(f->op, e.args, 3, NULL, NULL) == HONE_OK && is_scaled(&e, factor));
    if (number % 5 == 0) {
        const hone_plan *plan = NULL;
        check(r, hone_bind(f->op, e.args, 3, &plan, NULL) == HONE_OK);
        check(r, plan != NULL && plan->run(plan, e.args, NULL) == HONE_OK);
        hone_plan_release(&plan);
    }
    hone_decision decision;
    if (number % 7 == 0) check(r, hone_decide(f->op, e.args, 3, &decision, NULL) == HONE_OK);
    if (number % 31 == 0) {
        hone_call *call = NULL;
        check(
            r,
            hone_call_bind(hone_allocator_system(), hone_op_signature(f->op), e.args, 3, true, &call, NULL) == HONE_OK);
        check(r, hone_explain(f->op, call, HONE_JSON, forget, NULL, NULL) == HONE_OK);
        hone_call_release(&call);
    }
}

static void *call_mixed(void *ctx)
{
    race *r = ctx;
    int start = atomic_fetch_add(&r->next, 1) * 1000;
    for (int i = 0; i < ROUNDS; i++) {
        hone_context *context = NULL;
        if (i % 50 == 0) {
            hone_override plain = {.algorithm = "scale", .kernel = "plain"};
            check(r, hone_context_derive(r->f->rt, NULL, NULL, &plain, HONE_POLICY_DEFAULT, &context, NULL) == HONE_OK);
        }
        if (i % 50 < 5) hone_context_enter(context);
        call_once(r, start + i);
        hone_context_enter(NULL);
        hone_context_release(&context);
    }
    return NULL;
}

static bool count_row(void *ctx, const hone_store_invocation *invocation)
{
    *(uint64_t *)ctx += invocation->count;
    return true;
}

static void *disturb(void *ctx)
{
    race *r = ctx;
    fixture *f = r->f;
    for (int i = 0; !atomic_load(&r->done); i++) {
        char name[HONE_NAME_SIZE];
        snprintf(name, sizeof name, "extra%d", i);
        hone_kernel kernel = f->kernels[PLAIN];
        kernel.user = &r->extra;
        kernel.name = i % 3 == 0 ? "extra" : name;
        kernel.priority = 20 + i % 10;
        if (i < 60) check(r, hone_replace_kernels(f->rt, &kernel, 1, NULL) == HONE_OK);
        char key[20];
        hone_entry entry = entry_for(f, 1 + i % 3, 1 + i % SHAPES, i % 2 == 0 ? "fast" : "plain", key);
        check(r, hone_cache_put(f->rt, &entry, NULL) == HONE_OK);
        hone_decision decision;
        hone_status got = hone_cache_get(f->rt, NULL, "scale", key, &decision, NULL);
        check(r, got == HONE_OK);
        hone_record_enable(f->rt, i % 4 == 0);
        uint64_t count = 0;
        if (i % 8 == 0) check(r, hone_record_scan(f->rt, NULL, count_row, &count, NULL) == HONE_OK);
        if (i % 16 == 0) hone_cache_clear(f->rt);
    }
    return NULL;
}

static void race_with(size_t plan_cache_bytes)
{
    race r = {
        .f = open_fixture(
            (wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:", .plan_cache_bytes = plan_cache_bytes})};
    pthread_t callers[CALLERS], disturber;
    assert_int_equal(pthread_create(&disturber, NULL, disturb, &r), 0);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_mixed, &r), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    atomic_store(&r.done, true);
    pthread_join(disturber, NULL);
    close_fixture(r.f);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(r.extra.prepares, r.extra.releases);
    assert_int_equal(r.extra.wrong, 0);
}

static void callers_stay_right_while_kernels_answers_and_contexts_come_and_go(void **state)
{
    (void)state;
    race_with(0);
}

static void callers_stay_right_while_their_plans_are_evicted_under_them(void **state)
{
    (void)state;
    race_with(16 * 1024);
}

// Threads that end leave their slots to others.
static void *call_a_little(void *ctx)
{
    race *r = ctx;
    for (int i = 0; i < 20; i++)
        call_once(r, i);
    return NULL;
}

static void many_short_threads_come_and_go(void **state)
{
    race r = {.f = *state};
    for (int i = 0; i < 100; i++) {
        pthread_t threads[2];
        for (int j = 0; j < 2; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, call_a_little, &r), 0);
        for (int j = 0; j < 2; j++)
            pthread_join(threads[j], NULL);
        if (i % 10 == 0) hone_cache_clear(r.f->rt);
    }
    assert_int_equal(r.wrong, 0);
}

static void *own_runtime(void *ctx)
{
    race *r = ctx;
    for (int i = 0; i < 5; i++) {
        race own = {.f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC})};
        for (int j = 0; j < 30; j++) {
            call_once(&own, j);
            call_once(r, j);
        }
        check(r, own.wrong == 0);
        close_fixture(own.f);
    }
    return NULL;
}

static void runtimes_of_several_threads_do_not_mix(void **state)
{
    race r = {.f = *state};
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, own_runtime, &r), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r.wrong, 0);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_stay_right_while_kernels_answers_and_contexts_come_and_go),
        cmocka_unit_test(callers_stay_right_while_their_plans_are_evicted_under_them),
        WITH_RUNTIME(many_short_threads_come_and_go),
        WITH_RUNTIME(runtimes_of_several_threads_do_not_mix),
    };
    return cmocka_run_group_tests_name("runtime_threads", tests, NULL, NULL);
}
