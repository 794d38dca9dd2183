// The mutex that may be taken again, and who else asks for it meanwhile.
#include "os/mutex.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROUNDS = 300000 };

static hone_mutex mutex;
static atomic_bool is_over;
static atomic_int got_in;

static void *ask_again_and_again(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over))
        if (hone_mutex_try_lock(&mutex)) {
            atomic_fetch_add(&got_in, 1);
            hone_mutex_unlock(&mutex);
        }
    return NULL;
}

static void a_mutex_taken_again_is_held_until_its_holder_gave_it_back_as_often(void **state)
{
    (void)state;
    pthread_t asker;
    int lost = 0;
    hone_mutex_init(&mutex);
    hone_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&asker, NULL, ask_again_and_again, NULL), 0);
    for (int i = 0; i < ROUNDS && lost == 0; i++) {
        hone_mutex_lock(&mutex);
        hone_mutex_unlock(&mutex);
        lost += !hone_mutex_is_mine(&mutex);
    }
    assert_int_equal(lost, 0);
    assert_int_equal(atomic_load(&got_in), 0);
    hone_mutex_unlock(&mutex);
    assert_false(hone_mutex_is_mine(&mutex));
    atomic_store(&is_over, true);
    assert_int_equal(pthread_join(asker, NULL), 0);
    hone_mutex_deinit(&mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mutex_taken_again_is_held_until_its_holder_gave_it_back_as_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
