// What the handler may not do on a hit: allocate and lock. The library's calls of malloc and of locks are this
// program's.
#include "fake_xla.h"
#include "watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS = 4, DIM = 64, HITS = 1000 };

static _Alignas(64) float x[ROWS][DIM], w[DIM], y[ROWS][DIM];
static int64_t matrix[] = {ROWS, DIM}, vector[] = {DIM};

static int set_up(void **state)
{
    (void)state;
    hone_runtime *rt = NULL;
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    if (hone_runtime_open(&options, &rt, NULL) != HONE_OK) return -1;
    hone_xla_use(rt);
    return 0;
}

static void norm_frame(fake_xla_frame *out, const float *eps)
{
    fake_xla_init(out);
    fake_xla_argument(out, XLA_FFI_F32, x, 2, matrix);
    fake_xla_argument(out, XLA_FFI_F32, w, 1, vector);
    fake_xla_result(out, XLA_FFI_F32, y, 2, matrix);
    fake_xla_scalar(out, "eps", XLA_FFI_F32, eps);
    fake_xla_string(out, "hone_algorithm", "rms_norm");
}

// Two sites in turns, each of which is seen and decided at its first call.
static void a_hit_allocates_nothing_and_locks_nothing(void **state)
{
    (void)state;
    static const float eps[] = {0.25F, 0.5F};
    fake_xla_frame frames[2];
    for (int i = 0; i < 2; i++) {
        norm_frame(&frames[i], &eps[i]);
        watch_begin();
        assert_null(hone_xla_call_cpu(&frames[i].frame));
        const watched first = watch_end();
        assert_true(first.allocations > 0 && first.locks > 0);
    }
    int failures = 0;
    watch_begin();
    for (int i = 0; i < HITS; i++)
        failures += hone_xla_call_cpu(&frames[i % 2].frame) != NULL;
    const watched hits = watch_end();
    assert_int_equal(failures, 0);
    assert_int_equal(hits.allocations, 0);
    assert_int_equal(hits.locks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hit_allocates_nothing_and_locks_nothing)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
