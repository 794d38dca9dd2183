// The thread pool: every body once, from any number of callers, also from within.
#include "base/memory.h"
#include "failing_allocator.h"
#include "os/os.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 1000 };

typedef struct tally {
    _Atomic int seen[COUNT];
    _Atomic int inside, most;
    hone_pool *pool;
} tally;

static hone_pool *make_pool(int32_t threads)
{
    hone_allocator allocator = hone_allocator_system();
    hone_error err = {0};
    hone_pool *pool = NULL;
    assert_int_equal(hone_pool_create(&allocator, threads, &pool, &err), HONE_OK);
    return pool;
}

static void mark(void *ctx, int64_t index)
{
    tally *t = ctx;
    int inside = atomic_fetch_add(&t->inside, 1) + 1, most = atomic_load(&t->most);
    while (inside > most && !atomic_compare_exchange_weak(&t->most, &most, inside))
        continue;
    atomic_fetch_add(&t->seen[index], 1);
    atomic_fetch_sub(&t->inside, 1);
}

static void assert_all_seen(const tally *t, int64_t count, int times)
{
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(atomic_load(&t->seen[i]), times);
}

static void every_body_runs_once(void **state)
{
    (void)state;
    static const int32_t sizes[] = {1, 2, 3, 8};
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, COUNT};
    for (size_t s = 0; s < 4; s++) {
        hone_pool *pool = make_pool(sizes[s]);
        assert_int_equal(hone_pool_threads(pool), sizes[s]);
        for (size_t c = 0; c < 7; c++) {
            tally t = {.pool = pool};
            hone_pool_run(pool, counts[c], mark, &t);
            assert_all_seen(&t, counts[c], 1);
        }
        hone_pool_destroy(&pool);
        assert_null(pool);
    }
}

static void jobs_follow_each_other_quickly_and_after_sleeps(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(4);
    tally t = {.pool = pool};
    for (int i = 0; i < 2000; i++) {
        hone_pool_run(pool, 5, mark, &t);
        if (i % 100 == 0) hone_os_sleep_ns(200000); // long enough for the workers to go to sleep
    }
    assert_all_seen(&t, 5, 2000);
    hone_pool_destroy(&pool);
}

static void compare_processors(void *ctx, int64_t index)
{
    const cpu_set_t *allowed = ctx;
    cpu_set_t mine;
    (void)index;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof mine, &mine), 0);
    assert_true(CPU_EQUAL(&mine, allowed));
}

// Who wakes a worker keeps it off its own processor; at work it may use them all again.
static void woken_workers_may_use_the_processors_that_they_could_before(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(3);
    cpu_set_t allowed;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed), 0);
    for (int i = 0; i < 30; i++) {
        hone_pool_run_limited(pool, 2 + i % 2, 50, compare_processors, &allowed);
        hone_os_sleep_ns(2000000); // long enough for the workers to go to sleep
    }
    hone_pool_destroy(&pool);
}

static void a_limit_is_kept(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(8);
    for (int32_t limit = 1; limit <= 3; limit++) {
        tally t = {.pool = pool};
        for (int i = 0; i < 50; i++)
            hone_pool_run_limited(pool, limit, 100, mark, &t);
        assert_all_seen(&t, 100, 50);
        assert_true(atomic_load(&t.most) <= limit);
    }
    hone_pool_destroy(&pool);
}

enum { MEETING = 4 };
typedef struct meeting {
    int expected;
    _Atomic int inside;
    _Atomic int who[MEETING];
} meeting;

// Returns when all are there, so that each thread has one index.
static void meet(void *ctx, int64_t index)
{
    meeting *all = ctx;
    atomic_store(&all->who[index], (int)gettid());
    atomic_fetch_add(&all->inside, 1);
    while (atomic_load(&all->inside) < all->expected)
        sched_yield();
}

// What a processor has in its cache from the last job, it works on in the next.
static void a_thread_begins_with_the_same_indices_in_each_job(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(MEETING);
    meeting first = {.expected = MEETING};
    hone_pool_run(pool, MEETING, meet, &first);
    assert_int_equal(atomic_load(&first.who[0]), (int)gettid());
    for (int i = 0; i < 200; i++) {
        meeting later = {.expected = MEETING};
        hone_pool_run(pool, MEETING, meet, &later);
        for (int k = 0; k < MEETING; k++)
            assert_int_equal(atomic_load(&later.who[k]), atomic_load(&first.who[k]));
    }
    hone_pool_destroy(&pool);
}

static void nest(void *ctx, int64_t index)
{
    tally *t = ctx;
    (void)index;
    hone_pool_run(t->pool, 10, mark, t);
}

static void a_body_may_call_back_in(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(3);
    tally t = {.pool = pool};
    for (int i = 0; i < 100; i++)
        hone_pool_run(pool, 6, nest, &t);
    assert_all_seen(&t, 10, 600);
    hone_pool_destroy(&pool);
}

static void *call_many(void *ctx)
{
    tally *t = ctx;
    for (int i = 0; i < 300; i++)
        hone_pool_run(t->pool, 20, mark, t);
    return NULL;
}

static void several_threads_may_call_at_once(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(3);
    tally t = {.pool = pool};
    pthread_t callers[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_many, &t), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(callers[i], NULL);
    assert_all_seen(&t, 20, 1200);
    hone_pool_destroy(&pool);
}

static void add_one(void *ctx, int64_t index)
{
    int *numbers = ctx;
    numbers[index]++;
}

static void writes_of_pool_bodies_are_visible_after_the_run(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(4);
    int numbers[256] = {0};
    for (int i = 0; i < 500; i++)
        hone_pool_run(pool, 256, add_one, numbers);
    for (int i = 0; i < 256; i++)
        assert_int_equal(numbers[i], 500);
    hone_pool_destroy(&pool);
}

static void a_pool_that_never_ran_has_no_threads(void **state)
{
    (void)state;
    int before = hone_os_thread_count();
    hone_pool *pool = make_pool(6);
    assert_int_equal(hone_os_thread_count(), before);
    hone_pool_destroy(&pool);
    hone_pool_destroy(&pool);
    hone_allocator allocator = hone_allocator_system();
    hone_error err = {0};
    assert_int_equal(hone_pool_create(&allocator, 0, &pool, &err), HONE_INVALID_ARGUMENT);
}

static void a_pool_or_a_library_without_memory_leaves_nothing(void **state)
{
    (void)state;
    const char *const names[] = {"libm.so.6", NULL};
    for (long long left = 0; left < 2; left++) {
        failing_allocator failing;
        hone_allocator allocator = failing_allocator_of(&failing, left);
        hone_error err = {0};
        hone_pool *pool = NULL;
        hone_library *library = NULL;
        assert_int_equal(hone_pool_create(&allocator, 2, &pool, &err), HONE_OUT_OF_MEMORY);
        assert_null(pool);
        atomic_store(&failing.left, 0);
        assert_int_equal(hone_library_open(&allocator, names, &library, &err), HONE_OUT_OF_MEMORY);
        assert_null(library);
        assert_int_equal(atomic_load(&failing.live), 0);
    }
}

static void *spin(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        continue;
    return NULL;
}

// With deadlines far off: a thread needs time to start, and one that was told to end to be gone.
static bool others_come_to(bool run)
{
    for (int i = 0; i < 10000; i++) {
        if ((hone_os_others_run() > 0) == run) return true;
        hone_os_sleep_ns(1000000);
    }
    return false;
}

static void a_thread_that_spins_is_seen_and_one_that_sleeps_is_not(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_pool *pool = NULL;
    atomic_bool stop = false;
    pthread_t thread;
    assert_int_equal(hone_pool_create(&allocator, 2, &pool, NULL), HONE_OK); // sleeps when it has nothing to do
    assert_true(others_come_to(false));
    assert_int_equal(pthread_create(&thread, NULL, spin, &stop), 0);
    assert_true(others_come_to(true));
    const uint64_t before = hone_os_others_ns();
    while (hone_os_others_ns() < before + 2000000) // fails by the test's time limit
        hone_os_sleep_ns(1000000);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(others_come_to(false));
    const uint64_t after = hone_os_others_ns(), until = hone_os_now_ns() + 2000000;
    while (hone_os_now_ns() < until) // one's own time is no other thread's
        continue;
    assert_true(hone_os_others_ns() < after + 2000000);
    hone_pool_destroy(&pool);
}

// A worker that was told to rest between two looks is woken for the next job, and rest is nobody's concern who has none.
static void a_pool_that_rests_works_on(void **state)
{
    (void)state;
    hone_pool_rest(NULL);
    hone_pool *pool = make_pool(4), *fresh = make_pool(2);
    tally t = {.pool = pool};
    hone_pool_rest(fresh);
    for (int i = 1; i <= 300; i++) {
        hone_pool_run(pool, 64, mark, &t);
        hone_pool_rest(pool);
        assert_all_seen(&t, 64, i);
    }
    hone_pool_destroy(&fresh);
    hone_pool_destroy(&pool);
}

static void gather_within(void *ctx, int64_t index)
{
    (void)index;
    assert_false(hone_pool_gather(ctx, 1, 0));
}

// Each worker comes once, as none leaves before all are there; and the jobs that follow are as others.
static void workers_gather_awake_or_asleep(void **state)
{
    (void)state;
    const uint64_t minute = 60000000000;
    assert_false(hone_pool_gather(NULL, 1, minute));
    hone_pool *pool = make_pool(4);
    assert_true(hone_pool_gather(pool, 3, minute)); // nobody has begun yet
    tally t = {.pool = pool};
    for (int i = 1; i <= 200; i++) {
        hone_pool_run(pool, 64, mark, &t);
        if (i % 2 == 0) hone_pool_rest(pool);
        assert_true(hone_pool_gather(pool, 1 + i % 5, minute)); // more than there are: all
        if (i % 3 == 0) (void)hone_pool_gather(pool, 3, 0);     // nobody waits for them
        assert_all_seen(&t, 64, i);
    }
    hone_pool_run(pool, 2, gather_within, pool);
    hone_pool_destroy(&pool);
}

static void the_number_of_requested_workers_is_reported_once(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(4);
    tally t = {.pool = pool};
    assert_int_equal(hone_pool_take_asked(NULL), 0);
    hone_pool_run_limited(pool, 1, 64, mark, &t);
    assert_int_equal(hone_pool_take_asked(pool), 0);
    hone_pool_run_limited(pool, 3, 64, mark, &t);
    hone_pool_run_limited(pool, 2, 64, mark, &t);
    (void)hone_pool_gather(pool, 3, 0);
    assert_int_equal(hone_pool_take_asked(pool), 2);
    assert_int_equal(hone_pool_take_asked(pool), 0);
    hone_pool_destroy(&pool);
}

typedef struct lent {
    pthread_t caller;
    bool puts_back;
    _Atomic int inside;
} lent;

static void round_upward(void *ctx, int64_t index)
{
    (void)index;
    lent *l = ctx;
    atomic_fetch_add(&l->inside, 1);
    while (atomic_load(&l->inside) < 2)
        sched_yield();
    if (pthread_equal(pthread_self(), l->caller)) return;
    fesetround(FE_UPWARD);
    if (l->puts_back) fesetround(FE_TONEAREST);
}

static void a_worker_left_in_another_mode_is_reported(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(2);
    for (int puts_back = 1; puts_back >= 0; puts_back--) {
        lent l = {.caller = pthread_self(), .puts_back = puts_back};
        assert_false(hone_pool_changed_worker(pool));
        hone_pool_run(pool, 2, round_upward, &l);
    }
    assert_true(hone_pool_changed_worker(pool));
    hone_pool_destroy(&pool);
}

static void lower_priority(void *ctx, int64_t index)
{
    (void)index;
    lent *l = ctx;
    atomic_fetch_add(&l->inside, 1);
    while (atomic_load(&l->inside) < 2)
        sched_yield();
    const struct sched_param none = {0};
    if (!pthread_equal(pthread_self(), l->caller)) assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &none), 0);
}

static void a_worker_with_lowered_priority_is_reported_when_the_pool_rests(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(2);
    lent l = {.caller = pthread_self(), .puts_back = true};
    hone_pool_run(pool, 2, round_upward, &l);
    hone_pool_rest(pool);
    assert_false(hone_pool_changed_worker(pool));
    l.inside = 0;
    hone_pool_run(pool, 2, lower_priority, &l);
    for (int i = 0; i < 10000 && !hone_pool_changed_worker(pool); i++) { // on a busy machine it waits for a processor
        hone_pool_rest(pool);
        hone_os_sleep_ns(1000000);
    }
    assert_true(hone_pool_changed_worker(pool));
    hone_pool_destroy(&pool);
}

typedef struct guarded {
    volatile char *block;
    _Atomic int inside;
} guarded;

// Two threads at once, one of which is no caller's.
static void write_page(void *ctx, int64_t index)
{
    guarded *g = ctx;
    atomic_fetch_add(&g->inside, 1);
    while (atomic_load(&g->inside) < 2)
        sched_yield();
    g->block[index * 4096] = 2;
}

static void a_workers_write_to_guarded_memory_is_noted_too(void **state)
{
    (void)state;
    hone_os_guard guards[2] = {{NULL, 0, 0}};
    guarded g = {.block = aligned_alloc(4096, 2 * 4096)};
    hone_pool *pool = make_pool(2);
    assert_true(g.block != NULL && hone_os_guard_begin());
    for (int i = 0; i < 2; i++)
        assert_true(hone_os_guard_close(&guards[i], (char *)g.block + i * 4096, 4096));
    hone_pool_run(pool, 2, write_page, &g);
    for (int i = 0; i < 2; i++)
        assert_true(hone_os_guard_was_written(&guards[i]) && hone_os_guard_open(&guards[i]));
    hone_pool_destroy(&pool);
    free((void *)g.block);
}

// A thread that a library would have.
typedef struct resident {
    pthread_t thread;
    atomic_int number;
    atomic_bool stop;
    bool is_bound;
} resident;

static void *reside(void *ctx)
{
    resident *r = ctx;
    if (r->is_bound) {
        cpu_set_t one;
        assert_int_equal(sched_getaffinity(0, sizeof one, &one), 0);
        for (size_t cpu = 0, kept = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &one) && kept++ > 0) CPU_CLR(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    }
    atomic_store(&r->number, (int)gettid());
    while (!atomic_load(&r->stop))
        hone_os_sleep_ns(100000);
    return NULL;
}

static int processors_of(int thread)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(thread, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

static bool is_kept(const hone_os_kept_off *kept, const resident *one)
{
    for (int i = 0; i < kept->count; i++)
        if (kept->threads[i] == atomic_load(&one->number)) return true;
    return false;
}

static void threads_of_libraries_keep_off_the_callers_processor_and_come_back(void **state)
{
    (void)state;
    resident residents[2] = {{.is_bound = false}, {.is_bound = true}};
    const int all = processors_of(0);
    if (all < 2) return; // nobody can keep off
    hone_pool *pool = make_pool(2);
    meeting both = {.expected = 2}; // the worker has woken: one that is still asleep is kept off already
    hone_pool_run(pool, 2, meet, &both);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&residents[i].thread, NULL, reside, &residents[i]), 0);
        while (atomic_load(&residents[i].number) == 0)
            hone_os_sleep_ns(10000);
    }
    hone_os_kept_off kept;
    hone_os_keep_off_begin(pool, &kept);
    // Neither the pool's worker nor one that is bound; a sanitizer has a thread of its own.
    const int strangers = kept.count - 1;
    assert_true(is_kept(&kept, &residents[0]));
    assert_false(is_kept(&kept, &residents[1]));
    assert_int_equal(processors_of(atomic_load(&residents[0].number)), all - 1);
    hone_os_keep_off_end(&kept);
    assert_int_equal(processors_of(atomic_load(&residents[0].number)), all);
    assert_int_equal(processors_of(atomic_load(&residents[1].number)), 1);
    hone_os_keep_off_begin(NULL, &kept);
    assert_int_equal(kept.count, strangers + 2);
    hone_os_keep_off_end(&kept);
    for (int i = 0; i < 2; i++) {
        atomic_store(&residents[i].stop, true);
        pthread_join(residents[i].thread, NULL);
    }
    hone_pool_destroy(&pool);
}

typedef struct callers {
    pthread_t caller;
    _Atomic int here, elsewhere;
} callers;

static void note_caller(void *ctx, int64_t index)
{
    callers *c = ctx;
    (void)index;
    atomic_fetch_add(pthread_equal(pthread_self(), c->caller) ? &c->here : &c->elsewhere, 1);
    sched_yield();
}

static void a_crowded_pool_leaves_passes_to_the_caller_and_no_other_job(void **state)
{
    (void)state;
    hone_pool *pool = make_pool(4);
    callers c = {.caller = pthread_self()};
    hone_pool_note_crowd(pool, true);
    hone_pool_share(pool, COUNT, note_caller, &c);
    assert_int_equal(atomic_load(&c.here), COUNT);
    assert_int_equal(atomic_load(&c.elsewhere), 0);
    for (int i = 0; i < 1000 && atomic_load(&c.elsewhere) == 0; i++)
        hone_pool_run(pool, COUNT, note_caller, &c);
    assert_true(atomic_load(&c.elsewhere) > 0);
    hone_pool_note_crowd(pool, false);
    atomic_store(&c.elsewhere, 0);
    for (int i = 0; i < 1000 && atomic_load(&c.elsewhere) == 0; i++)
        hone_pool_share(pool, COUNT, note_caller, &c);
    assert_true(atomic_load(&c.elsewhere) > 0);
    hone_pool_note_crowd(NULL, true); // nothing
    hone_pool_destroy(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_body_runs_once),
        cmocka_unit_test(jobs_follow_each_other_quickly_and_after_sleeps),
        cmocka_unit_test(woken_workers_may_use_the_processors_that_they_could_before),
        cmocka_unit_test(a_limit_is_kept),
        cmocka_unit_test(a_crowded_pool_leaves_passes_to_the_caller_and_no_other_job),
        cmocka_unit_test(a_thread_begins_with_the_same_indices_in_each_job),
        cmocka_unit_test(a_body_may_call_back_in),
        cmocka_unit_test(a_pool_that_rests_works_on),
        cmocka_unit_test(workers_gather_awake_or_asleep),
        cmocka_unit_test(the_number_of_requested_workers_is_reported_once),
        cmocka_unit_test(a_worker_left_in_another_mode_is_reported),
        cmocka_unit_test(a_worker_with_lowered_priority_is_reported_when_the_pool_rests),
        cmocka_unit_test(a_workers_write_to_guarded_memory_is_noted_too),
        cmocka_unit_test(several_threads_may_call_at_once),
        cmocka_unit_test(writes_of_pool_bodies_are_visible_after_the_run),
        cmocka_unit_test(a_pool_that_never_ran_has_no_threads),
        cmocka_unit_test(a_thread_that_spins_is_seen_and_one_that_sleeps_is_not),
        cmocka_unit_test(threads_of_libraries_keep_off_the_callers_processor_and_come_back),
        cmocka_unit_test(a_pool_or_a_library_without_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
