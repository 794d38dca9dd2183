// Readers walk what they were handed while a writer registers and replaces. Run under ThreadSanitizer this is the
// proof; without it, a reader would see a torn list.
#include "fixture.h"
#include "platforms/platform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 200, READERS = 2 };

typedef struct race {
    fixture *f;
    atomic_bool done;
    atomic_int wrong;
} race;

static bool is_ordered(const hone_kernel_ref *const *refs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (refs[i - 1]->kernel.priority < refs[i]->kernel.priority) return false;
    return true;
}

static void *read_all_the_time(void *ctx)
{
    race *r = ctx;
    size_t seen = 0;
    while (!atomic_load(&r->done)) {
        hone_registry_reader reader = {0};
        hone_registry_enter(r->f->registry, &reader);
        const hone_algorithm_entry *entry = hone_registry_find(r->f->registry, "fa", NULL);
        size_t count = 0;
        const hone_kernel_ref *const *refs = hone_registry_list(entry, &count);
        hone_query query = {"fa", HONE_PLATFORM_AUTO, HONE_BACKEND_NONE};
        const hone_kernel_ref *best = NULL;
        hone_error err;
        if (hone_registry_query(r->f->registry, &query, &best, &err) != HONE_OK || best->kernel.name[0] != 'k')
            atomic_fetch_add(&r->wrong, 1);
        if (count < seen || !is_ordered(refs, count)) atomic_fetch_add(&r->wrong, 1);
        seen = count;
        hone_registry_leave(&reader);
    }
    return NULL;
}

static void readers_go_on_while_kernels_are_registered_and_replaced(void **state)
{
    race r = {.f = *state};
    must_add(r.f, "k", HONE_NATIVE, HONE_CPU, 0);
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_time, &r), 0);
    for (int i = 0; i < ROUNDS; i++) {
        char name[HONE_NAME_SIZE];
        char signature[64];
        snprintf(name, sizeof name, "k%d", i % 50);
        snprintf(signature, sizeof signature, "fa%d(x: f32[n]) -> y: f32[n]", i);
        hone_kernel kernel = a_kernel("fa", name, HONE_NATIVE, HONE_CPU, i % 7);
        assert_int_equal(hone_registry_add_kernels(r.f->registry, &kernel, 1, true, false, NULL), HONE_OK);
        assert_int_equal(add_algorithm(r.f, signature), HONE_OK);
    }
    atomic_store(&r.done, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(atomic_load(&r.wrong), 0);
    // Whoever was inside has been counted out again: what is replaced now goes at once.
    long long live[8];
    for (int i = 0; i < 8; i++) {
        const hone_kernel kernel = a_kernel("fa", "k", HONE_NATIVE, HONE_CPU, 0);
        assert_int_equal(hone_registry_add_kernels(r.f->registry, &kernel, 1, true, false, NULL), HONE_OK);
        live[i] = r.f->memory.live;
    }
    assert_int_equal(live[7], live[3]);
}

static void *register_a_block(void *ctx)
{
    fixture *f = ctx;
    static atomic_int next;
    int block = atomic_fetch_add(&next, 1);
    for (int i = 0; i < 50; i++) {
        char name[HONE_NAME_SIZE];
        snprintf(name, sizeof name, "b%d_%d", block, i);
        hone_kernel kernel = a_kernel("fa", name, HONE_NATIVE, HONE_CPU, i);
        if (hone_registry_add_kernels(f->registry, &kernel, 1, false, false, NULL) != HONE_OK) return ctx;
    }
    return NULL;
}

static void writers_lose_nothing_of_each_other(void **state)
{
    fixture *f = *state;
    pthread_t writers[2];
    // The counting allocator is not for several threads at once.
    hone_registry_destroy(&f->registry);
    hone_allocator allocator = hone_allocator_system();
    assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &f->registry, NULL), HONE_OK);
    must_add(f, "k", HONE_NATIVE, HONE_CPU, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, register_a_block, f), 0);
    for (int i = 0; i < 2; i++) {
        void *failed = NULL;
        pthread_join(writers[i], &failed);
        assert_null(failed);
    }
    size_t count = 0;
    const hone_kernel_ref *const *refs = hone_registry_list(hone_registry_find(f->registry, "fa", NULL), &count);
    assert_int_equal(count, 101);
    assert_true(is_ordered(refs, count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            readers_go_on_while_kernels_are_registered_and_replaced, open_cpu_registry, close_registry),
        cmocka_unit_test_setup_teardown(writers_lose_nothing_of_each_other, open_cpu_registry, close_registry),
    };
    return cmocka_run_group_tests_name("registry_threads", tests, NULL, NULL);
}
