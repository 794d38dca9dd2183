// Whether the machine left a piece of work alone.
#include "os/os.h"
#include "os/waits.h"
#include "os/x86/pause.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const hone_os_waits_reading quiet = {
    .delays_ns = {5000, 70000}, .count = 2, .preemptions = 7, .delay_known = true, .processor = 1};

static unsigned marks_of(hone_os_waits_reading after, double elapsed_ns)
{
    double waited_ns;
    return hone_os_waits_between(&quiet, &after, elapsed_ns, &waited_ns);
}

static void what_waits_less_than_a_hundredth_is_not_disturbed(void **state)
{
    (void)state;
    hone_os_waits_reading after = quiet;
    after.delays_ns[0] += 9900;
    after.delays_ns[1] += 9900;
    after.preemptions++;
    assert_int_equal(marks_of(after, 1e6), 0);
    after.delays_ns[1] += 200;
    assert_int_equal(marks_of(after, 1e6), HONE_OS_WAITED);
}

static void the_longest_wait_of_a_thread_is_reported_and_never_negative(void **state)
{
    (void)state;
    double waited_ns;
    hone_os_waits_reading after = quiet;
    after.delays_ns[0] += 300;
    after.delays_ns[1] += 200;
    hone_os_waits_between(&quiet, &after, 100, &waited_ns);
    assert_true(waited_ns == 300);
    after.delays_ns[0] = after.delays_ns[1] = 1000; // threads have ended
    assert_int_equal(hone_os_waits_between(&quiet, &after, 100, &waited_ns), 0);
    assert_true(waited_ns == 0);
}

static void a_thread_that_still_waits_disturbs(void **state)
{
    (void)state;
    hone_os_waits_reading after = quiet;
    after.waiting = 1;
    assert_int_equal(marks_of(after, 1e6), HONE_OS_WAITED);
}

// It ran 200 of 1000 ns; what it waited before is not counted yet.
static void what_a_thread_still_waits_is_what_it_did_not_run(void **state)
{
    (void)state;
    double waited_ns;
    hone_os_waits_reading after = quiet;
    after.waiting = 1;
    after.waits[1] = true;
    after.ran_ns[1] = 200;
    hone_os_waits_between(&quiet, &after, 1000, &waited_ns);
    assert_true(waited_ns == 800);
    after.ran_ns[1] = 2000;
    hone_os_waits_between(&quiet, &after, 1000, &waited_ns);
    assert_true(waited_ns == 0);
    after.ran_ns[1] = 200;
    after.delays_ns[1] += 900;
    hone_os_waits_between(&quiet, &after, 1000, &waited_ns);
    assert_true(waited_ns == 900);
}

static void preemptions_count_where_waits_are_not_known(void **state)
{
    (void)state;
    hone_os_waits_reading before = quiet, after = quiet;
    double waited_ns;
    before.delay_known = after.delay_known = false;
    assert_int_equal(hone_os_waits_between(&before, &after, 1e6, &waited_ns), 0);
    after.preemptions++;
    assert_int_equal(hone_os_waits_between(&before, &after, 1e6, &waited_ns), HONE_OS_PREEMPTED);
}

static void another_processor_is_a_migration(void **state)
{
    (void)state;
    hone_os_waits_reading after = quiet;
    after.processor = 0;
    assert_int_equal(marks_of(after, 1e6), HONE_OS_MIGRATED);
}

static atomic_bool stop;

static void *spin(void *ctx)
{
    while (!atomic_load(&stop))
        hone_os_pause();
    return ctx;
}

static void work_for(uint64_t ns)
{
    uint64_t end = hone_os_now_ns() + ns;
    while (hone_os_now_ns() < end)
        hone_os_pause();
}

// Two threads on one processor: while the calling one works 50 ms long, one of them always waits.
static void threads_that_share_a_processor_wait_for_it(void **state)
{
    (void)state;
    hone_os_waits waits;
    hone_os_waits_reading before, after;
    cpu_set_t all, one;
    pthread_t other;
    double waited_ns;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) skip();
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&other, NULL, spin, NULL), 0);
    hone_os_waits_begin(&waits);
    hone_os_waits_read(&waits, &before);
    work_for(50000000);
    hone_os_waits_read_own(&waits, &after);
    hone_os_waits_read_others(&waits, &after);
    unsigned marks = hone_os_waits_between(&before, &after, 50e6, &waited_ns);
    int count = waits.count;
    (void)hone_os_waits_end(&waits);
    atomic_store(&stop, true);
    pthread_join(other, NULL);
    sched_setaffinity(0, sizeof all, &all);
    if (!before.delay_known && before.preemptions == after.preemptions) skip(); // the system says nothing
    assert_true((marks & (HONE_OS_WAITED | HONE_OS_PREEMPTED)) != 0);
    if (!before.delay_known) return;
    assert_true(count >= 2); // ThreadSanitizer has a thread of its own
    assert_int_equal(after.waiting, 1);
    assert_true(waited_ns > 0);
}

static void nothing(void *ctx, int64_t index)
{
    (void)ctx;
    (void)index;
    hone_os_sleep_ns(100000);
}

static void a_sleeping_thread_does_not_wait(void **state)
{
    (void)state;
    hone_pool *pool = NULL;
    hone_error err;
    const hone_allocator allocator = hone_allocator_system();
    hone_os_waits waits;
    hone_os_waits_reading after;
    assert_int_equal(hone_pool_create(&allocator, 3, &pool, &err), HONE_OK);
    hone_pool_run(pool, 30, nothing, NULL);
    for (int looks = 0; looks < 10000 && hone_os_others_run() > 0; looks++)
        hone_os_sleep_ns(100000);
    hone_os_waits_begin(&waits);
    hone_os_waits_read_own(&waits, &after);
    hone_os_waits_read_others(&waits, &after);
    assert_int_equal(after.waiting, 0);
    (void)hone_os_waits_end(&waits);
    assert_int_equal(waits.count, 0);
    hone_pool_destroy(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_less_than_a_hundredth_is_not_disturbed),
        cmocka_unit_test(the_longest_wait_of_a_thread_is_reported_and_never_negative),
        cmocka_unit_test(a_thread_that_still_waits_disturbs),
        cmocka_unit_test(what_a_thread_still_waits_is_what_it_did_not_run),
        cmocka_unit_test(preemptions_count_where_waits_are_not_known),
        cmocka_unit_test(another_processor_is_a_migration),
        cmocka_unit_test(threads_that_share_a_processor_wait_for_it),
        cmocka_unit_test(a_sleeping_thread_does_not_wait),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
