#include "fixture.h"
#include "platforms/platform.h"

#include <pthread.h>

static const hone_algorithm gemm = {
    .struct_size = sizeof gemm, .signature = "Gemm@v2(x: f32[n]) -> y: f32[n]", .reference = run_nothing};
static const hone_kernel gemm_kernels[] = {
    {HONE_KERNEL, .algorithm = "gemm@v2", .name = "a", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .run = run_nothing},
    {HONE_KERNEL, .algorithm = "gemm@v2", .name = "b", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .space = "block: 1 | 2", .priority = 5, .run = run_nothing},
};

static const hone_algorithm wrong = {.struct_size = sizeof wrong, .signature = "wrong(x: f32[n"};
static const hone_algorithm stranger = {
    .struct_size = sizeof stranger, .signature = "stranger(x: f32[n]) -> y: f32[n]"};
static const hone_kernel strangers[] = {
    {HONE_KERNEL, .algorithm = "nobody", .name = "a", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .run = run_nothing}};

static hone_status defer_gemm(fixture *f)
{
    return hone_registry_defer(f->registry, &gemm, gemm_kernels, 2, &f->err);
}

static void a_deferred_algorithm_is_registered_when_its_name_is_asked_for(void **state)
{
    fixture *f = *state;
    char names[256];
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_int_equal(add_algorithm(f, "fa(x: f32[n]) -> y: f32[n]"), HONE_OK);
    f->memory.left = 0; // another name is found without registering it
    assert_non_null(hone_registry_find(f->registry, "fa", NULL));
    f->memory.left = -1;
    const hone_algorithm_entry *entry = hone_registry_find(f->registry, "GEMM", NULL);
    assert_non_null(entry);
    assert_true(entry->builtin);
    assert_string_equal(entry->version, "2");
    assert_string_equal(kernel_names(f, "gemm", names), "b a");
    f->memory.left = 0; // and now it is there
    assert_ptr_equal(hone_registry_find(f->registry, "gemm", "2"), entry);
}

static void an_algorithm_that_memory_does_not_suffice_for_is_not_deferred(void **state)
{
    fixture *f = *state;
    f->memory.left = 0;
    assert_int_equal(defer_gemm(f), HONE_OUT_OF_MEMORY);
    f->memory.left = -1;
    assert_null(hone_registry_find(f->registry, "gemm", NULL));
}

static void a_list_of_all_has_the_deferred_ones(void **state)
{
    fixture *f = *state;
    size_t count = 0;
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_string_equal(hone_registry_all(f->registry, &count)[0]->name, "gemm");
    assert_int_equal(count, 1);
}

static void an_unknown_name_is_answered_with_the_deferred_ones_too(void **state)
{
    fixture *f = *state;
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_int_equal(hone_registry_fail_unknown(f->registry, "nope", &f->err), HONE_NOT_FOUND);
    assert_says(f, "there are: gemm@v2");
}

static void ones_own_kernels_stand_behind_the_deferred_ones_and_may_replace_them(void **state)
{
    fixture *f = *state;
    char names[256];
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_int_equal(add_kernel(f, a_kernel("gemm", "mine", HONE_NATIVE, HONE_CPU, 0)), HONE_OK);
    assert_string_equal(kernel_names(f, "gemm", names), "b a mine");
    hone_kernel b = a_kernel("gemm", "b", HONE_NATIVE, HONE_CPU, -1);
    assert_int_equal(add_kernel(f, b), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_add_kernels(f->registry, &b, 1, true, false, &f->err), HONE_OK);
    assert_string_equal(kernel_names(f, "gemm", names), "a mine b");
}

static void an_algorithm_of_ones_own_meets_the_deferred_one_of_its_name(void **state)
{
    fixture *f = *state;
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_int_equal(add_algorithm(f, "gemm@v2(x: f32[n], z: f32[n]) -> y: f32[n]"), HONE_INVALID_ARGUMENT);
    assert_int_equal(add_algorithm(f, "gemm@v1(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_string_equal(hone_registry_find(f->registry, "gemm", NULL)->version, "2");
}

static void what_is_wrong_with_a_deferred_algorithm_is_said_for_its_name(void **state)
{
    fixture *f = *state;
    size_t count = 0;
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_int_equal(hone_registry_defer(f->registry, &wrong, NULL, 0, &f->err), HONE_OK);
    assert_null(hone_registry_find(f->registry, "wrong", NULL));
    assert_int_equal(hone_registry_fail_unknown(f->registry, "wrong", &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_load(f->registry, &f->err), HONE_INVALID_ARGUMENT);
    hone_registry_all(f->registry, &count); // and nobody else suffers
    assert_int_equal(count, 1);
}

static void deferred_kernels_of_an_unknown_algorithm_are_refused(void **state)
{
    fixture *f = *state;
    assert_int_equal(defer_gemm(f), HONE_OK);
    assert_int_equal(hone_registry_defer(f->registry, &stranger, strangers, 1, &f->err), HONE_OK);
    assert_int_equal(hone_registry_load(f->registry, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "'nobody'");
    assert_says(f, "gemm");
}

static void a_signature_without_a_name_is_refused_at_once(void **state)
{
    fixture *f = *state;
    hone_algorithm nameless = {.struct_size = sizeof nameless, .signature = "(x: f32[n])"};
    assert_int_equal(hone_registry_defer(f->registry, &nameless, NULL, 0, &f->err), HONE_INVALID_ARGUMENT);
    nameless.signature = NULL;
    assert_int_equal(hone_registry_defer(f->registry, &nameless, NULL, 0, &f->err), HONE_INVALID_ARGUMENT);
}

static void short_of_memory_once_a_deferred_algorithm_is_there_the_next_time(void **state)
{
    fixture *f = *state;
    char names[256];
    assert_int_equal(defer_gemm(f), HONE_OK);
    const hone_algorithm_entry *entry = NULL;
    long long left = 0;
    for (; entry == NULL; left++) {
        f->memory.left = left;
        entry = hone_registry_find(f->registry, "gemm", NULL);
        hone_status status = entry == NULL ? hone_registry_fail_unknown(f->registry, "gemm", &f->err) : HONE_OK;
        assert_int_equal(status, entry == NULL ? HONE_OUT_OF_MEMORY : HONE_OK);
        assert_true(left < 1000);
    }
    assert_true(left > 5);
    f->memory.left = -1;
    assert_string_equal(kernel_names(f, "gemm", names), "b a");
}

static void *find_gemm(void *ctx)
{
    return (void *)hone_registry_find(ctx, "gemm", NULL);
}

static void two_threads_that_ask_first_find_the_same(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        hone_registry_destroy(&f->registry);
        hone_allocator allocator = hone_allocator_system();
        assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &f->registry, NULL), HONE_OK);
        assert_int_equal(defer_gemm(f), HONE_OK);
        pthread_t threads[2];
        void *found[2] = {NULL, NULL};
        for (int t = 0; t < 2; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, find_gemm, f->registry), 0);
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], &found[t]);
        assert_non_null(found[0]);
        assert_ptr_equal(found[0], found[1]);
        assert_non_null(hone_kernel_by_name(found[0], "b", HONE_NATIVE));
    }
}

#define defer_test(f) cmocka_unit_test_setup_teardown(f, open_cpu_registry, close_registry)

int main(void)
{
    const struct CMUnitTest tests[] = {
        defer_test(a_deferred_algorithm_is_registered_when_its_name_is_asked_for),
        defer_test(an_algorithm_that_memory_does_not_suffice_for_is_not_deferred),
        defer_test(a_list_of_all_has_the_deferred_ones),
        defer_test(an_unknown_name_is_answered_with_the_deferred_ones_too),
        defer_test(ones_own_kernels_stand_behind_the_deferred_ones_and_may_replace_them),
        defer_test(an_algorithm_of_ones_own_meets_the_deferred_one_of_its_name),
        defer_test(what_is_wrong_with_a_deferred_algorithm_is_said_for_its_name),
        defer_test(deferred_kernels_of_an_unknown_algorithm_are_refused),
        defer_test(a_signature_without_a_name_is_refused_at_once),
        defer_test(short_of_memory_once_a_deferred_algorithm_is_there_the_next_time),
        defer_test(two_threads_that_ask_first_find_the_same),
    };
    return cmocka_run_group_tests_name("registry_defer", tests, NULL, NULL);
}
