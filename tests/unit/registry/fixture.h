// A registry on the stack of a test, with the words that its stories are told in.
#ifndef HONE_TESTS_REGISTRY_FIXTURE_H
#define HONE_TESTS_REGISTRY_FIXTURE_H

#include "failing_allocator.h"
#include "hone/hone.h"
#include "platforms/platform.h"
#include "registry/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    failing_allocator memory;
    hone_registry *registry;
    hone_error err;
} fixture;

static inline hone_status run_nothing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static inline int open_cpu_registry(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    hone_allocator allocator = failing_allocator_of(&f->memory, -1);
    *state = f;
    return hone_registry_create(&allocator, hone_platform_facts_of, NULL, &f->registry, &f->err) == HONE_OK ? 0 : -1;
}

static inline int close_registry(void **state)
{
    fixture *f = *state;
    hone_registry_destroy(&f->registry);
    long long live = f->memory.live;
    free(f);
    return live == 0 ? 0 : -1;
}

static inline hone_status add_algorithm(fixture *f, const char *signature)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = signature;
    algorithm.reference = run_nothing;
    return hone_registry_add_algorithm(f->registry, &algorithm, false, &f->err);
}

static inline hone_kernel a_kernel(
    const char *algorithm, const char *name, hone_platform platform, hone_backend backend, int64_t priority)
{
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    kernel.algorithm = algorithm;
    kernel.name = name;
    kernel.platform = platform;
    kernel.backend = backend;
    kernel.priority = priority;
    kernel.run = run_nothing;
    return kernel;
}

static inline hone_status add_kernel(fixture *f, hone_kernel kernel)
{
    return hone_registry_add_kernels(f->registry, &kernel, 1, false, false, &f->err);
}

static inline void must_add(
    fixture *f, const char *name, hone_platform platform, hone_backend backend, int64_t priority)
{
    if (hone_registry_find(f->registry, "fa", NULL) == NULL)
        assert_int_equal(add_algorithm(f, "fa(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(add_kernel(f, a_kernel("fa", name, platform, backend, priority)), HONE_OK);
}

// The names of an algorithm's kernels in order, "a b c".
static inline const char *kernel_names(fixture *f, const char *algorithm, char out[256])
{
    size_t count = 0;
    const hone_algorithm_entry *entry = hone_registry_find(f->registry, algorithm, NULL);
    const hone_kernel_ref *const *refs = entry == NULL ? NULL : hone_registry_list(entry, &count);
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strcat(out, i > 0 ? " " : "");
        strcat(out, hone_kernel_of(refs[i])->name);
    }
    return out;
}

static inline const hone_kernel_ref *only_kernel(fixture *f, const char *algorithm)
{
    size_t count = 0;
    const hone_kernel_ref *const *refs = hone_registry_list(hone_registry_find(f->registry, algorithm, NULL), &count);
    assert_true(count > 0);
    return refs[0];
}

#define assert_says(f, word) assert_non_null(strstr((f)->err.message, (word)))

#endif
