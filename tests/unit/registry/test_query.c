#include "fixture.h"

static hone_status query(fixture *f, hone_platform platform, hone_backend backend, const hone_kernel_ref **out)
{
    hone_query asked = {"fa", platform, backend};
    *out = NULL;
    return hone_registry_query(f->registry, &asked, out, &f->err);
}

#define assert_answer(f, platform, backend, wanted)                                                                    \
    do {                                                                                                               \
        const hone_kernel_ref *ref_ = NULL;                                                                            \
        assert_int_equal(query((f), (platform), (backend), &ref_), HONE_OK);                                           \
        assert_string_equal(hone_kernel_of(ref_)->name, (wanted));                                                     \
    } while (0)

#define assert_not_found(f, platform, backend)                                                                         \
    do {                                                                                                               \
        const hone_kernel_ref *ref_ = NULL;                                                                            \
        assert_int_equal(query((f), (platform), (backend), &ref_), HONE_NOT_FOUND);                                    \
        assert_null(ref_);                                                                                             \
    } while (0)

static void the_highest_priority_answers_then_the_earliest(void **state)
{
    fixture *f = *state;
    must_add(f, "first", HONE_NATIVE, HONE_CPU, 1);
    must_add(f, "second", HONE_NATIVE, HONE_CPU, 1);
    must_add(f, "low", HONE_NATIVE, HONE_CPU, 0);
    assert_answer(f, HONE_NATIVE, HONE_CPU, "first");
    must_add(f, "high", HONE_NATIVE, HONE_CPU, 2);
    assert_answer(f, HONE_NATIVE, HONE_CPU, "high");
}

static void a_kernel_for_any_matches_every_backend_and_is_not_held_back(void **state)
{
    fixture *f = *state;
    must_add(f, "any", HONE_TRITON, HONE_ANY, 1);
    must_add(f, "gpu", HONE_TRITON, HONE_GPU, 0);
    for (int backend = HONE_BACKEND_NONE; backend < HONE_BACKEND_COUNT; backend++)
        assert_answer(f, HONE_TRITON, (hone_backend)backend, "any");
}

static void a_query_for_any_takes_only_any_kernels_then_the_default_backends(void **state)
{
    fixture *f = *state;
    must_add(f, "cpu", HONE_NATIVE, HONE_CPU, 9);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_ANY, "cpu");
    must_add(f, "any", HONE_XLA, HONE_ANY, 0);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_ANY, "any");
    assert_answer(f, HONE_NATIVE, HONE_ANY, "cpu");
}

static void the_any_fallback_names_what_was_asked_for(void **state)
{
    fixture *f = *state;
    must_add(f, "gpu", HONE_TRITON, HONE_GPU, 0);
    assert_not_found(f, HONE_TRITON, HONE_ANY);
    assert_says(f, "platform=triton, backend=any");
    assert_says(f, "gpu (triton/gpu)");
}

static void xla_that_matches_nothing_ends(void **state)
{
    fixture *f = *state;
    must_add(f, "x", HONE_XLA, HONE_GPU, 0);
    assert_not_found(f, HONE_XLA, HONE_CPU);
    assert_says(f, "algorithm=fa, platform=xla, backend=cpu");
    assert_not_found(f, HONE_XLA, HONE_ANY);
    assert_says(f, "platform=xla, backend=any");
}

static void xla_and_any_fall_back_to_the_default_backend(void **state)
{
    fixture *f = *state;
    must_add(f, "x", HONE_XLA, HONE_CPU, 0);
    assert_answer(f, HONE_XLA, HONE_ANY, "x");
    assert_answer(f, HONE_XLA, HONE_CPU, "x");
    must_add(f, "any", HONE_XLA, HONE_ANY, 0);
    assert_answer(f, HONE_XLA, HONE_ANY, "any"); // what was asked for comes first
}

static void an_unset_backend_keeps_to_the_hardware_that_is_here(void **state)
{
    fixture *f = *state;
    must_add(f, "tpu", HONE_PALLAS, HONE_TPU, 9);
    must_add(f, "cpu", HONE_NATIVE, HONE_CPU, 0);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE, "cpu");
    assert_not_found(f, HONE_PALLAS, HONE_BACKEND_NONE);
    assert_says(f, "hardware here: cpu");
    assert_answer(f, HONE_PALLAS, HONE_TPU, "tpu"); // named, and so taken at its word
}

static void instructions_that_are_missing_come_last_and_only_for_a_named_backend(void **state)
{
    fixture *f = *state;
    must_add(f, "other", HONE_CUDA, HONE_GPU, 0);
    hone_kernel wide = a_kernel("fa", "wide", HONE_NATIVE, HONE_CPU, 9);
    wide.needs = HONE_CPU_AVX512F;
    assert_int_equal(add_kernel(f, wide), HONE_OK);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE, "wide");
    hone_registry_set_hardware(f->registry, 1u << HONE_CPU, HONE_CPU, HONE_CPU_AVX2 | HONE_CPU_FMA);
    assert_not_found(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_CPU, "wide");
    must_add(f, "plain", HONE_NATIVE, HONE_CPU, 0);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE, "plain");
    assert_answer(f, HONE_PLATFORM_NONE, HONE_CPU, "plain");
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "plain");
}

static void auto_on_a_cpu_is_native_then_xla(void **state)
{
    fixture *f = *state;
    must_add(f, "cuda", HONE_CUDA, HONE_ANY, 99);
    assert_not_found(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE);
    assert_says(f, "platform=auto");
    must_add(f, "xla", HONE_XLA, HONE_ANY, 9);
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "xla");
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_GPU, "xla");
    must_add(f, "native", HONE_NATIVE, HONE_CPU, 0);
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "native");
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_ANY, "native");
}

static void auto_on_a_gpu_prefers_what_was_written_for_it(void **state)
{
    fixture *f = *state;
    hone_registry_destroy(&f->registry);
    hone_allocator allocator = failing_allocator_of(&f->memory, -1);
    uint32_t present = 1u << HONE_CPU | 1u << HONE_GPU;
    assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &f->registry, &f->err), HONE_OK);
    hone_registry_set_hardware(f->registry, present, HONE_GPU, UINT64_MAX);
    must_add(f, "native", HONE_NATIVE, HONE_CPU, 99);
    must_add(f, "xla", HONE_XLA, HONE_ANY, 99);
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "native");
    must_add(f, "pocl", HONE_OPENCL, HONE_CPU, 99); // OpenCL on the CPU stands behind native
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "native");
    must_add(f, "triton", HONE_TRITON, HONE_GPU, 0);
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "triton");
    must_add(f, "cuda", HONE_CUDA, HONE_ANY, 0);
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "cuda");
    must_add(f, "cute", HONE_CUTE, HONE_GPU, 0);
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "cute");
}

static void a_reference_answers_only_when_nothing_else_can(void **state)
{
    fixture *f = *state;
    must_add(f, "never", HONE_NATIVE, HONE_GPU, 5);
    hone_kernel reference = a_kernel("fa", "reference", HONE_NATIVE, HONE_ANY, 9);
    reference.is_reference = true;
    assert_int_equal(add_kernel(f, reference), HONE_OK);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE, "reference");
    must_add(f, "real", HONE_NATIVE, HONE_CPU, -1);
    assert_answer(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE, "real");
}

static void the_null_platform_answers_only_by_its_name(void **state)
{
    fixture *f = *state;
    must_add(f, "n", HONE_NULL, HONE_ANY, 9);
    assert_not_found(f, HONE_PLATFORM_NONE, HONE_BACKEND_NONE);
    assert_not_found(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE);
    assert_answer(f, HONE_NULL, HONE_BACKEND_NONE, "n");
}

static void a_wrong_query_is_refused(void **state)
{
    fixture *f = *state;
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    const hone_kernel_ref *ref = NULL;
    hone_query no_name = {NULL, HONE_NATIVE, HONE_CPU};
    assert_int_equal(hone_registry_query(f->registry, NULL, &ref, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_query(f->registry, &no_name, &ref, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(query(f, (hone_platform)55, HONE_CPU, &ref), HONE_INVALID_ARGUMENT);
    assert_int_equal(query(f, HONE_NATIVE, (hone_backend)-3, &ref), HONE_INVALID_ARGUMENT);
    hone_query unknown = {"fb", (hone_platform)55, HONE_CPU}; // the name is said first
    assert_int_equal(hone_registry_query(f->registry, &unknown, &ref, &f->err), HONE_NOT_FOUND);
    assert_says(f, "did you mean fa? There are: fa");
}

static void a_very_long_list_of_kernels_is_cut_and_says_so(void **state)
{
    fixture *f = *state;
    char name[HONE_NAME_SIZE];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "a_kernel_with_quite_a_long_name_%d", i);
        must_add(f, name, HONE_TRITON, HONE_GPU, 0);
    }
    assert_not_found(f, HONE_NATIVE, HONE_CPU);
    size_t size = strlen(f->err.message);
    assert_string_equal(f->err.message + size - 3, "...");
}

static void a_look_up_allocates_nothing(void **state)
{
    fixture *f = *state;
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    assert_int_equal(add_algorithm(f, "ÄLG(x: f32[n]) -> y: f32[n]"), HONE_OK);
    f->memory.left = 0;
    assert_answer(f, HONE_PLATFORM_AUTO, HONE_BACKEND_NONE, "a");
    assert_not_found(f, HONE_XLA, HONE_GPU);
    assert_non_null(hone_registry_find(f->registry, "älg", NULL));
}

#define query_test(f) cmocka_unit_test_setup_teardown(f, open_cpu_registry, close_registry)

int main(void)
{
    const struct CMUnitTest tests[] = {
        query_test(the_highest_priority_answers_then_the_earliest),
        query_test(a_kernel_for_any_matches_every_backend_and_is_not_held_back),
        query_test(a_query_for_any_takes_only_any_kernels_then_the_default_backends),
        query_test(the_any_fallback_names_what_was_asked_for),
        query_test(xla_that_matches_nothing_ends),
        query_test(xla_and_any_fall_back_to_the_default_backend),
        query_test(an_unset_backend_keeps_to_the_hardware_that_is_here),
        query_test(instructions_that_are_missing_come_last_and_only_for_a_named_backend),
        query_test(auto_on_a_cpu_is_native_then_xla),
        query_test(auto_on_a_gpu_prefers_what_was_written_for_it),
        query_test(a_reference_answers_only_when_nothing_else_can),
        query_test(the_null_platform_answers_only_by_its_name),
        query_test(a_wrong_query_is_refused),
        query_test(a_very_long_list_of_kernels_is_cut_and_says_so),
        query_test(a_look_up_allocates_nothing),
    };
    return cmocka_run_group_tests_name("registry_query", tests, NULL, NULL);
}
