// Single flight and measuring alone, by threads that wait for each other and never for a clock.
#include "config/flight.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 8 };

typedef struct ground {
    hone_flights flights;
    atomic_int mine, landed, cancelled, up, runs;
    volatile int cancel;
} ground;

static int setup(void **state)
{
    static ground g;
    memset(&g, 0, sizeof g);
    hone_flights_init(&g.flights);
    *state = &g;
    return 0;
}

static int teardown(void **state)
{
    ground *g = *state;
    assert_null(g->flights.first);
    hone_flights_deinit(&g->flights);
    return 0;
}

static hone_flight_outcome begin(ground *g, hone_flight *flight, const char *key, const volatile int *cancel)
{
    return hone_flight_begin(&g->flights, flight, &(hone_store_key){"cpu|test", "scale", "1", key, NULL}, cancel);
}

static void await(atomic_int *value, int wanted)
{
    while (atomic_load(value) < wanted)
        hone_os_sleep_ns(100000);
}

static void *fly_once(void *arg)
{
    ground *g = arg;
    hone_flight flight;
    atomic_fetch_add(&g->up, 1);
    hone_flight_outcome outcome = begin(g, &flight, "a", NULL);
    if (outcome == HONE_FLIGHT_MINE) {
        atomic_fetch_add(&g->mine, 1);
        hone_flight_end(&g->flights, &flight);
    } else {
        atomic_fetch_add(&g->landed, outcome == HONE_FLIGHT_LANDED);
    }
    return NULL;
}

static void start(pthread_t *threads, size_t count, void *(*body)(void *), void *arg)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, arg), 0);
}

static void join(pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

// The first flies before the others start, so that all of them find it up, or landed and gone.
static void one_thread_at_a_time_computes_the_same_answer(void **state)
{
    ground *g = *state;
    pthread_t threads[THREADS];
    hone_flight flight;
    assert_int_equal(begin(g, &flight, "a", NULL), HONE_FLIGHT_MINE);
    start(threads, THREADS, fly_once, g);
    await(&g->up, THREADS);
    assert_int_equal(atomic_load(&g->mine), 0);
    assert_int_equal(atomic_load(&g->landed), 0);
    hone_flight_end(&g->flights, &flight);
    join(threads, THREADS);
    assert_int_equal(atomic_load(&g->mine) + atomic_load(&g->landed), THREADS);
}

static void other_keys_fly_beside_each_other(void **state)
{
    ground *g = *state;
    hone_flight a, b, c;
    assert_int_equal(begin(g, &a, "a", NULL), HONE_FLIGHT_MINE);
    assert_int_equal(begin(g, &b, "b", NULL), HONE_FLIGHT_MINE);
    const hone_store_key elsewhere = {"gpu|test", "scale", "1", "a", NULL};
    assert_int_equal(hone_flight_begin(&g->flights, &c, &elsewhere, NULL), HONE_FLIGHT_MINE);
    // Landed in another order than they began.
    hone_flight_end(&g->flights, &b);
    hone_flight_end(&g->flights, &a);
    hone_flight_end(&g->flights, &c);
    assert_int_equal(begin(g, &a, "a", NULL), HONE_FLIGHT_MINE);
    hone_flight_end(&g->flights, &a);
}

static void *wait_until_cancelled(void *arg)
{
    ground *g = arg;
    hone_flight flight;
    atomic_fetch_add(&g->up, 1);
    hone_flight_outcome outcome = begin(g, &flight, "a", &g->cancel);
    if (outcome == HONE_FLIGHT_MINE) hone_flight_end(&g->flights, &flight);
    atomic_store(&g->cancelled, outcome == HONE_FLIGHT_CANCELLED);
    return NULL;
}

static void a_waiting_thread_can_be_cancelled(void **state)
{
    ground *g = *state;
    pthread_t thread;
    hone_flight flight;
    assert_int_equal(begin(g, &flight, "a", NULL), HONE_FLIGHT_MINE);
    g->cancel = 1;
    start(&thread, 1, wait_until_cancelled, g);
    join(&thread, 1);
    assert_int_equal(atomic_load(&g->cancelled), 1);
    hone_flight_end(&g->flights, &flight);
}

static void an_unset_cancel_flag_does_not_end_a_wait(void **state)
{
    ground *g = *state;
    pthread_t thread;
    hone_flight flight;
    atomic_store(&g->cancelled, 2);
    assert_int_equal(begin(g, &flight, "a", NULL), HONE_FLIGHT_MINE);
    start(&thread, 1, wait_until_cancelled, g);
    await(&g->up, 1);
    hone_flight_end(&g->flights, &flight);
    join(&thread, 1);
    // It found the flight up and saw it land, or came after that and flew; it was not cancelled.
    assert_int_equal(atomic_load(&g->cancelled), 0);
}

static void *measure_some(void *arg)
{
    ground *g = arg;
    for (int i = 0; i < 50; i++) {
        assert_true(hone_measuring_begin(&g->flights, NULL));
        assert_int_equal(atomic_fetch_add(&g->up, 1), 0);
        g->runs = g->runs + 1; // two at once would lose one
        assert_int_equal(atomic_fetch_sub(&g->up, 1), 1);
        hone_measuring_end(&g->flights);
    }
    return NULL;
}

static void one_at_a_time_measures(void **state)
{
    ground *g = *state;
    pthread_t threads[4];
    start(threads, 4, measure_some, g);
    join(threads, 4);
    assert_int_equal(atomic_load(&g->runs), 4 * 50);
}

static void *ask_to_measure(void *arg)
{
    ground *g = arg;
    bool taken = hone_measuring_begin(&g->flights, &g->cancel);
    atomic_store(&g->cancelled, !taken);
    if (taken) hone_measuring_end(&g->flights);
    return NULL;
}

static void a_thread_that_waits_to_measure_can_be_cancelled(void **state)
{
    ground *g = *state;
    pthread_t thread;
    assert_true(hone_measuring_begin(&g->flights, NULL));
    g->cancel = 1;
    start(&thread, 1, ask_to_measure, g);
    join(&thread, 1);
    assert_int_equal(atomic_load(&g->cancelled), 1);
    hone_measuring_end(&g->flights);
}

static void a_thread_may_nest_its_measurements(void **state)
{
    ground *g = *state;
    assert_true(hone_measuring_begin(&g->flights, NULL));
    assert_true(hone_measuring_begin(&g->flights, NULL));
    hone_measuring_end(&g->flights);
    hone_measuring_end(&g->flights);
    pthread_t thread;
    start(&thread, 1, ask_to_measure, g);
    join(&thread, 1);
    assert_int_equal(atomic_load(&g->cancelled), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_thread_at_a_time_computes_the_same_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(other_keys_fly_beside_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiting_thread_can_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unset_cancel_flag_does_not_end_a_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_a_time_measures, setup, teardown),
        cmocka_unit_test_setup_teardown(a_thread_that_waits_to_measure_can_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(a_thread_may_nest_its_measurements, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
