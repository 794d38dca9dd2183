// hone_plan_parallel_for: whose pool, and at most how many threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "hone/kernel.h"
#include "os/os.h"

#include <stdatomic.h>
#include <string.h>

typedef struct tally {
    atomic_int done[100];
    atomic_int now, most;
} tally;

static void count(void *ctx, int64_t index)
{
    tally *t = ctx;
    int now = atomic_fetch_add(&t->now, 1) + 1, most = atomic_load(&t->most);
    while (now > most && !atomic_compare_exchange_weak(&t->most, &most, now))
        ;
    atomic_fetch_add(&t->done[index], 1);
    hone_os_sleep_ns(100000);
    atomic_fetch_sub(&t->now, 1);
}

static void assert_each_once(const tally *t, int64_t upto)
{
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(atomic_load(&t->done[i]), i < upto ? 1 : 0);
}

static void each_index_runs_once_on_hones_pool(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_pool *pool = NULL;
    assert_int_equal(hone_pool_create(&allocator, 4, &pool, NULL), HONE_OK);
    hone_plan plan = {.parallel_for = hone_pool_run, .pool = pool};
    for (int32_t threads = 1; threads <= 5; threads++) {
        tally t;
        memset(&t, 0, sizeof t);
        hone_plan_parallel_for(&plan, NULL, threads, 40, count, &t);
        assert_each_once(&t, 40);
        assert_true(t.most <= threads);
    }
    hone_pool_destroy(&pool);
}

static void without_a_pool_the_caller_does_all(void **state)
{
    (void)state;
    hone_plan plan = {0};
    tally t;
    memset(&t, 0, sizeof t);
    hone_plan_parallel_for(&plan, NULL, 8, 10, count, &t);
    assert_each_once(&t, 10);
    assert_int_equal(t.most, 1);
}

typedef struct foreign {
    hone_pool *pool;
    int64_t asked; // count of the last call
} foreign;

static void foreign_for(void *pool, int64_t total, void (*body)(void *ctx, int64_t index), void *ctx)
{
    foreign *f = pool;
    f->asked = total;
    hone_pool_run(f->pool, total, body, ctx);
}

static void the_hosts_pool_takes_the_place_of_hones_and_keeps_the_limit(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    foreign f = {0};
    assert_int_equal(hone_pool_create(&allocator, 4, &f.pool, NULL), HONE_OK);
    hone_plan plan = {0};
    hone_execution execution = {.struct_size = sizeof execution, .threads = 2, .parallel_for = foreign_for, .pool = &f};
    tally t;
    memset(&t, 0, sizeof t);
    hone_plan_parallel_for(&plan, &execution, 4, 30, count, &t);
    assert_each_once(&t, 30);
    assert_int_equal(f.asked, 2);
    assert_true(t.most <= 2);
    memset(&t, 0, sizeof t);
    execution.threads = 1;
    f.asked = 0;
    hone_plan_parallel_for(&plan, &execution, 4, 30, count, &t);
    assert_each_once(&t, 30);
    assert_int_equal(f.asked, 0);
    hone_pool_destroy(&f.pool);
}

enum { WORKERS = 4 };

typedef struct own_room {
    tally tally;
    atomic_int busy[WORKERS];
    atomic_bool shared; // two bodies with one number
} own_room;

static void count_as(void *ctx, int64_t index, int32_t worker)
{
    own_room *room = ctx;
    assert_in_range(worker, 0, WORKERS - 1);
    if (atomic_fetch_add(&room->busy[worker], 1) != 0) atomic_store(&room->shared, true);
    count(&room->tally, index);
    atomic_fetch_sub(&room->busy[worker], 1);
}

static void no_two_bodies_run_as_one_worker(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    foreign f = {0};
    assert_int_equal(hone_pool_create(&allocator, 4, &f.pool, NULL), HONE_OK);
    const hone_plan hones = {.parallel_for = hone_pool_run, .pool = f.pool}, alone = {0};
    const hone_execution host = {.struct_size = sizeof host, .parallel_for = foreign_for, .pool = &f};
    const struct {
        const hone_plan *plan;
        const hone_execution *execution;
    } pools[] = {{&hones, NULL}, {&alone, &host}, {&alone, NULL}};
    const int64_t counts[] = {0, 1, 3, 60};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            own_room room;
            memset(&room, 0, sizeof room);
            hone_plan_parallel_workers(pools[i].plan, pools[i].execution, WORKERS, counts[n], count_as, &room);
            assert_each_once(&room.tally, counts[n]);
            assert_false(atomic_load(&room.shared));
        }
    hone_pool_destroy(&f.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_runs_once_on_hones_pool),
        cmocka_unit_test(without_a_pool_the_caller_does_all),
        cmocka_unit_test(the_hosts_pool_takes_the_place_of_hones_and_keeps_the_limit),
        cmocka_unit_test(no_two_bodies_run_as_one_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
