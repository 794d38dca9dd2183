// Other libraries' products as kernels of matmul. Apart from the other kernels, since a leak checker cannot look
// through the threads that these libraries start.
#include "harness.h"
#include "kernels/rivals/core.h"
#include "kernels/rivals/rivals.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool rival(const hone_kernel *kernel)
{
    return kernel->release != NULL;
}

static void every_library_multiplies_f32(void **state)
{
    run_shapes(*state, rival, HONE_F32, false);
    run_shapes(*state, rival, HONE_F32, true);
}

static void every_library_multiplies_bf16(void **state)
{
    run_shapes(*state, rival, HONE_BF16, false);
    run_shapes(*state, rival, HONE_BF16, true);
}

static void every_library_multiplies_f64(void **state)
{
    run_shapes(*state, rival, HONE_F64, false);
    run_shapes(*state, rival, HONE_F64, true);
    run_batches(*state, rival, HONE_F64, false);
}

static void every_library_multiplies_batches(void **state)
{
    for (int transpose_b = 0; transpose_b < 2; transpose_b++) {
        run_batches(*state, rival, HONE_F32, transpose_b == 1);
        run_batches(*state, rival, HONE_BF16, transpose_b == 1);
    }
}

static void every_library_leaves_what_it_cannot_to_others(void **state)
{
    run_shapes(*state, rival, HONE_F16, false);
    run_kernels(*state, rival, (product_case){3, 5, 0, HONE_F32, false, 0});
    run_kernels(*state, rival, (product_case){0, 5, 3, HONE_F32, true, 0});
}

static void a_library_that_says_it_can_does(void **state)
{
    static const char *const names[] = {"openblas", "numpy_openblas", "scipy_openblas", "onednn", "onednn3", "libxsmm"};
    const test_machine *machine = *state;
    test_product product;
    product_init(&product, machine->signature, (product_case){33, 64, 48, HONE_F32, false, 3});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const hone_kernel *kernel = hone_matmul_table.kernels;
        while (strcmp(kernel->name, names[i]) != 0)
            kernel++;
        const char *reason = reason_against(machine, kernel, product.call);
        if (reason != NULL)
            print_message("%s: %s\n", names[i], reason);
        else if (run_kernel(machine, kernel, &product, i) == 0)
            fail_msg("%s supports the product and cannot prepare it", names[i]);
    }
    product_deinit(&product);
}

typedef struct counted {
    const hone_rival *rival;
    void *product;
    int32_t threads;
} counted;

static void *run_often(void *argument)
{
    enum { RUNS = 1000 };
    static const float a[64], b[64];
    const counted *own = argument;
    float c[64];
    for (int i = 0; i < RUNS; i++)
        if (own->rival->run(own->product, &(hone_matmul){.a = a, .b = b, .c = c}, own->threads) != HONE_OK)
            return argument;
    return NULL;
}

// Two threads run with counts that are not the library's own, which is as it was when both are done.
static void run_with_counts(const hone_rival *rival, const hone_matmul *product)
{
    enum { THREADS = 2 };
    counted runs[THREADS] = {{rival, NULL, 1}, {rival, NULL, 3}};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(rival->create(rival, product, runs[i].threads, &runs[i].product, NULL), HONE_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &runs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
        rival->destroy(runs[i].product);
    }
}

// Rounds, since which run meets which is chance.
static void keep_count(const hone_rival *rival)
{
    enum { ROUNDS = 20, OWN = 2 };
    const hone_allocator allocator = hone_allocator_system();
    const hone_matmul product = {
        .m = 8, .n = 8, .k = 8, .a_stride = 8, .b_stride = 8, .c_stride = 8, .dtype = HONE_F32, .operands = HONE_F32};
    hone_library *library = NULL;
    int (*get)(void);
    void (*set)(int);
    assert_int_equal(hone_openblas_open(rival->build, &allocator, &library, NULL), HONE_OK);
    assert_true(hone_openblas_function(rival->build, library, "openblas_get_num_threads", &get));
    assert_true(hone_openblas_function(rival->build, library, "openblas_set_num_threads", &set));
    set(OWN);
    for (int i = 0; i < ROUNDS; i++) {
        run_with_counts(rival, &product);
        assert_int_equal(get(), OWN);
    }
    hone_library_close(&allocator, &library);
}

static void a_library_that_python_uses_too_keeps_its_count_of_threads(void **state)
{
    static const hone_rival *const rivals[] = {&hone_rival_numpy_openblas, &hone_rival_scipy_openblas};
    size_t count = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++) {
        hone_error why;
        if (!hone_openblas_is_here(rivals[i]->build, &why)) {
            print_message("%s: %s\n", rivals[i]->name, why.message);
            continue;
        }
        keep_count(rivals[i]);
        count++;
    }
    if (count == 0) skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_library_multiplies_f32),
        cmocka_unit_test(every_library_multiplies_bf16),
        cmocka_unit_test(every_library_multiplies_f64),
        cmocka_unit_test(every_library_multiplies_batches),
        cmocka_unit_test(every_library_leaves_what_it_cannot_to_others),
        cmocka_unit_test(a_library_that_says_it_can_does),
        cmocka_unit_test(a_library_that_python_uses_too_keeps_its_count_of_threads),
    };
    return cmocka_run_group_tests(tests, machine_set_up, machine_tear_down);
}
