// Bound plans: one indirect call, held by their owner, longer than the runtime if need be.
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

static const hone_plan *bind_scale(fixture *f, const example *e, size_t count)
{
    const hone_plan *plan = NULL;
    if (hone_bind(f->op, e->args, count, &plan, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return plan;
}

static void a_bound_plan_runs_its_kernel(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = bind_scale(f, &e, 3);
    assert_int_equal(f->probes[FAST].prepares, 1);
    assert_int_equal(f->probes[FAST].runs, 0);
    for (int i = 1; i <= 3; i++) {
        make_example(&e, 4, 4);
        assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
        assert_scaled(&e, 2);
    }
    assert_int_equal(f->probes[FAST].runs, 3);
    assert_string_equal(plan->kernel->name, "fast");
    assert_string_equal(hone_call_text(plan->call), "scale(f32[4,4])");
    assert_int_equal(plan->device->backend, HONE_CPU);
    assert_int_equal(plan->config[0], 1);
    hone_plan_release(&plan);
    assert_null(plan);
    hone_plan_release(&plan);
    hone_plan_release(NULL);
}

static void a_plan_bound_with_fewer_arguments_fills_the_rest_in(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *few = bind_scale(f, &e, 2);
    assert_int_equal(few->run(few, e.args, NULL), HONE_OK);
    assert_scaled(&e, 2);
    hone_plan_release(&few);
    e.args[2] = hone_of_int(7);
    const hone_plan *whole = bind_scale(f, &e, 3);
    assert_int_equal(whole->run(whole, e.args, NULL), HONE_OK);
    assert_scaled(&e, 7);
    hone_plan_release(&whole);
    assert_int_equal(f->probes[FAST].wrong, 0);
}

static void binding_again_and_running_share_no_owner(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *first = bind_scale(f, &e, 3), *second = bind_scale(f, &e, 3);
    run_example(f, 4, 4);
    hone_plan_release(&first);
    assert_int_equal(second->run(second, e.args, NULL), HONE_OK);
    hone_plan_release(&second);
    run_example(f, 4, 4);
}

static void a_bound_plan_stays_what_it_is_when_better_answers_come(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = bind_scale(f, &e, 3);
    put_in_cache(f, 4, 4, "plain");
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    assert_int_equal(f->probes[FAST].runs, 1);
    assert_int_equal(f->probes[FAST].releases, 0);
    hone_plan_release(&plan);
    hone_cache_clear(f->rt);
    assert_int_equal(f->probes[FAST].releases, 1);
}

static void a_bound_plan_outlives_the_runtime(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = bind_scale(f, &e, 2);
    run_example(f, 4, 5);
    hone_runtime_close(&f->rt);
    assert_int_equal(f->probes[FAST].releases, 1); // the other plan's
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    assert_scaled(&e, 2);
    hone_plan_release(&plan);
    assert_int_equal(f->probes[FAST].releases, 2);
    close_fixture(f);
}

static void two_bound_plans_outlive_the_runtime_and_each_other(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:"});
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plans[2] = {bind_scale(f, &e, 3), bind_scale(f, &e, 2)};
    hone_runtime_close(&f->rt);
    hone_plan_release(&plans[0]);
    assert_int_equal(plans[1]->run(plans[1], e.args, NULL), HONE_OK);
    hone_plan_release(&plans[1]);
    close_fixture(f);
}

static void bind_refuses_what_run_refuses(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = (const hone_plan *)(const void *)f;
    assert_int_equal(hone_bind(f->op, e.args, 1, &plan, &f->err), HONE_INVALID_ARGUMENT);
    assert_null(plan);
    assert_says(f, "y");
    assert_int_equal(hone_bind(NULL, e.args, 3, &plan, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_bind(f->op, NULL, 3, &plan, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_bind(f->op, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    e.tensors[1].data = e.x;
    assert_int_equal(hone_bind(f->op, e.args, 3, &plan, &f->err), HONE_INVALID_ARGUMENT);
}

// A kernel made of another: it binds in prepare and gives back in release.
static hone_status prepare_nested(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_scratch_bytes;
    fixture *f = plan->kernel->user;
    float memory[2][16];
    int64_t shape[] = {4, 4};
    hone_tensor x = hone_tensor_of(memory[0], HONE_F32, 2, shape), y = hone_tensor_of(memory[1], HONE_F32, 2, shape);
    hone_value args[] = {hone_of_tensor(&x), hone_of_tensor(&y)};
    const hone_plan *inner = NULL;
    hone_status status = hone_bind(f->op, args, 2, &inner, err);
    *out_state = (void *)(uintptr_t)inner;
    return status;
}

static void release_nested(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    const hone_plan *inner = state;
    hone_plan_release(&inner);
}

static hone_status run_nested(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_plan *inner = plan->state;
    return inner->run(inner, args, execution);
}

static void a_kernel_may_bind_others_and_all_are_given_back(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    hone_algorithm outer;
    hone_algorithm_init(&outer);
    outer.signature = "outer(x: f32[4, 4]) -> y: f32[4, 4]";
    hone_kernel kernel = {
        HONE_KERNEL, .algorithm = "outer",      .name = "composed",        .platform = HONE_NATIVE, .backend = HONE_CPU,
        .user = f,   .prepare = prepare_nested, .release = release_nested, .run = run_nested,
    };
    assert_int_equal(hone_register_algorithm(f->rt, &outer, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    const hone_op *op = hone_op_find(f->rt, "outer", &f->err);
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < 3; i++) {
        if (hone_run(op, e.args, 2, NULL, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
        assert_scaled(&e, 2);
    }
    const hone_plan *plan = NULL;
    assert_int_equal(hone_bind(op, e.args, 2, &plan, &f->err), HONE_OK);
    hone_runtime_close(&f->rt);
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    hone_plan_release(&plan);
    close_fixture(f);
}

static atomic_int bodies;

static void count_body(void *ctx, int64_t index)
{
    (void)ctx;
    (void)index;
    atomic_fetch_add(&bodies, 1);
}

static void own_pool(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    atomic_fetch_add((atomic_int *)pool, 1);
    for (int64_t i = 0; i < count; i++)
        body(ctx, i);
}

static hone_status run_parallel(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)args;
    hone_plan_parallel_for(plan, execution, 4, 10, count_body, NULL);
    return HONE_OK;
}

static void a_kernel_works_in_hones_pool_or_in_the_hosts(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "scale", .name = "wide",      .platform = HONE_NATIVE,
        .backend = HONE_CPU, .priority = 99,       .run = run_parallel,
    };
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = bind_scale(f, &e, 3);
    atomic_int uses = 0;
    hone_execution execution = {.struct_size = sizeof execution, .parallel_for = own_pool, .pool = &uses};
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    assert_int_equal(bodies, 10);
    assert_int_equal(uses, 0);
    assert_int_equal(plan->run(plan, e.args, &execution), HONE_OK);
    assert_int_equal(bodies, 20);
    assert_int_equal(uses, 1);
    assert_int_equal(hone_run(f->op, e.args, 3, &execution, &f->err), HONE_OK);
    assert_int_equal(bodies, 30);
    hone_plan_release(&plan);
}

static void *run_bound(void *ctx)
{
    const hone_plan *plan = ctx;
    example e;
    for (int i = 0; i < 500; i++) {
        make_example(&e, 4, 4);
        if (plan->run(plan, e.args, NULL) != HONE_OK || e.y[15] != 30) return ctx;
    }
    return NULL;
}

static void one_bound_plan_serves_many_threads(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = bind_scale(f, &e, 3);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_bound, (void *)(uintptr_t)plan), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(f->probes[FAST].runs, 2000);
    hone_plan_release(&plan);
}

// Scratch memory ------------------------------------------------------------------------------------------------------

enum { SCRATCH_FLOATS = 250 }; // no whole cache lines

static hone_status ask_for_scratch(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_state;
    (void)err;
    *out_scratch_bytes =
        plan->kernel->user != NULL ? *(const size_t *)plan->kernel->user : SCRATCH_FLOATS * sizeof(float);
    return HONE_OK;
}

// As docs/write-a-kernel.md has it: the result is made in scratch memory, and other threads have time to do the same.
static hone_status run_in_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    float *scratch = execution->scratch;
    if (execution->scratch_bytes < plan->scratch_bytes || (uintptr_t)scratch % 64 != 0) return HONE_INVALID_ARGUMENT;
    int64_t count = x->shape[0] * x->shape[1];
    for (int64_t i = 0; i < SCRATCH_FLOATS; i++)
        scratch[i] = i < count ? *scale_at(x, i / x->shape[1], i % x->shape[1]) * (float)args[2].as.f64 : -1;
    sched_yield();
    for (int64_t i = 0; i < count; i++)
        *scale_at(y, i / x->shape[1], i % x->shape[1]) = scratch[i];
    return HONE_OK;
}

static void register_working(fixture *f, hone_run_function *run, void *user)
{
    const hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "scale", .name = "working", .platform = HONE_NATIVE,
        .backend = HONE_CPU, .user = user,         .priority = 99,    .prepare = ask_for_scratch,
        .run = run,
    };
    if (hone_register_kernels(f->rt, &kernel, 1, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
}

static void a_kernel_finds_the_scratch_memory_that_it_asked_for(void **state)
{
    fixture *f = *state;
    register_working(f, run_in_scratch, NULL);
    run_example(f, 4, 4); // the first call
    run_example(f, 4, 4); // a hit
    run_example(f, 4, 4); // and one more, of the thread's last plan
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plans[] = {bind_scale(f, &e, 3), bind_scale(f, &e, 2)};
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(plans[i]->kernel->name, "working");
        assert_int_equal(plans[i]->scratch_bytes, SCRATCH_FLOATS * sizeof(float));
        make_example(&e, 4, 4);
        assert_int_equal(plans[i]->run(plans[i], e.args, NULL), HONE_OK);
        assert_scaled(&e, 2);
        hone_plan_release(&plans[i]);
    }
}

static const void *seen_scratch;
static int32_t seen_threads;

static hone_status note_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    seen_scratch = execution->scratch;
    seen_threads = execution->threads;
    return run_in_scratch(plan, args, execution);
}

static void a_callers_own_scratch_memory_is_taken_where_it_suffices(void **state)
{
    fixture *f = *state;
    register_working(f, note_scratch, NULL);
    _Alignas(64) float own[SCRATCH_FLOATS + 16];
    const size_t size = SCRATCH_FLOATS * sizeof own[0];
    const hone_execution brought[] = {
        {sizeof brought[0], .scratch = own, .scratch_bytes = size, .threads = 3},
        {sizeof brought[0], .scratch = own, .scratch_bytes = size - 1, .threads = 3},
        {sizeof brought[0], .scratch = own + 1, .scratch_bytes = size, .threads = 3},
        {offsetof(hone_execution, parallel_for), .threads = 3}, // of older headers
    };
    example e;
    for (size_t i = 0; i < sizeof brought / sizeof *brought; i++) {
        make_example(&e, 4, 4);
        if (hone_run(f->op, e.args, 3, &brought[i], &f->err) != HONE_OK) fail_msg("%s", f->err.message);
        assert_scaled(&e, 2);
        assert_true(i == 0 ? seen_scratch == own : seen_scratch != own && seen_scratch != own + 1);
        assert_int_equal(seen_threads, 3);
    }
}

static fixture *inner_fixture;

// Its scratch memory is in use while the same kernel runs for another call.
static hone_status run_both(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    fixture *f = inner_fixture;
    const hone_tensor *x = args[0].as.tensor;
    if (x->shape[0] == 1) return run_in_scratch(plan, args, execution);
    float *scratch = execution->scratch;
    for (int i = 0; i < SCRATCH_FLOATS; i++)
        scratch[i] = (float)i;
    example e;
    make_example(&e, 1, 4);
    if (hone_run(f->op, e.args, 3, NULL, NULL) != HONE_OK || e.y[3] != 6) return HONE_INVALID_ARGUMENT;
    for (int i = 0; i < SCRATCH_FLOATS; i++)
        if (scratch[i] != (float)i) return HONE_INVALID_ARGUMENT;
    return run_in_scratch(plan, args, execution);
}

static void a_run_inside_a_run_has_scratch_memory_of_its_own(void **state)
{
    fixture *f = inner_fixture = *state;
    register_working(f, run_both, NULL);
    for (int i = 0; i < 3; i++)
        run_example(f, 4, 4);
}

static void threads_that_run_one_plan_share_no_scratch_memory(void **state)
{
    fixture *f = *state;
    register_working(f, run_in_scratch, NULL);
    example e;
    make_example(&e, 4, 4);
    const hone_plan *plan = bind_scale(f, &e, 3);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_bound, (void *)(uintptr_t)plan), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    hone_plan_release(&plan);
}

static void scratch_memory_that_is_not_to_be_had_is_a_status(void **state)
{
    static size_t sizes[] = {SIZE_MAX, SIZE_MAX / 4};
    fixture *f = *state;
    size_t size = 0;
    register_working(f, run_in_scratch, &size);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        example e;
        const hone_plan *plan = NULL;
        size = sizes[i];
        make_example(&e, 4, 4);
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OUT_OF_MEMORY);
        assert_says(f, "working");
        assert_says(f, "scratch");
        assert_int_equal(hone_bind(f->op, e.args, 3, &plan, &f->err), HONE_OUT_OF_MEMORY);
        assert_null(plan);
    }
    size = SCRATCH_FLOATS * sizeof(float);
    run_example(f, 4, 4);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(a_bound_plan_runs_its_kernel),
        WITH_RUNTIME(a_plan_bound_with_fewer_arguments_fills_the_rest_in),
        WITH_RUNTIME(binding_again_and_running_share_no_owner),
        WITH_RUNTIME(a_bound_plan_stays_what_it_is_when_better_answers_come),
        cmocka_unit_test(a_bound_plan_outlives_the_runtime),
        cmocka_unit_test(two_bound_plans_outlive_the_runtime_and_each_other),
        WITH_RUNTIME(bind_refuses_what_run_refuses),
        cmocka_unit_test(a_kernel_may_bind_others_and_all_are_given_back),
        WITH_RUNTIME(a_kernel_works_in_hones_pool_or_in_the_hosts),
        WITH_RUNTIME(one_bound_plan_serves_many_threads),
        WITH_RUNTIME(a_kernel_finds_the_scratch_memory_that_it_asked_for),
        WITH_RUNTIME(a_callers_own_scratch_memory_is_taken_where_it_suffices),
        WITH_RUNTIME(a_run_inside_a_run_has_scratch_memory_of_its_own),
        WITH_RUNTIME(threads_that_run_one_plan_share_no_scratch_memory),
        WITH_RUNTIME(scratch_memory_that_is_not_to_be_had_is_a_status),
    };
    return cmocka_run_group_tests_name("runtime_plans", tests, NULL, NULL);
}
