// Scalars of role `any`: one decision for all of their values, and a plan of its own for each.
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>

#define BLEND                                                                                                          \
    "blend(x: f32[n, d], *, by: f64 = 1 / sqrt(d) #any, cap: f64? = none #any, steps: i64 = 3 #any) -> y: f32[n, d]"

enum { BAKED, PICKY, OTHERS, BLEND_KERNELS };

static double value_of(const hone_value *values, size_t i)
{
    return values[i].tag == HONE_VALUE_FLOAT ? values[i].as.f64 : 0;
}

// What a compiler would do: the scalars of the call become part of the code.
static hone_status bake(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_scratch_bytes;
    const hone_value *values = hone_call_values(plan->call);
    double *state = malloc(3 * sizeof *state);
    if (state == NULL) return hone_plan_fail(plan, HONE_OUT_OF_MEMORY, err->message);
    state[0] = value_of(values, 2);
    state[1] = value_of(values, 3);
    state[2] = (double)values[4].as.i64;
    *out_state = state;
    return HONE_OK;
}

static void free_state(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    free(state);
}

static void fill(const hone_value *args, double by, double cap, double steps)
{
    for (int64_t i = 0; i < args[1].as.tensor->shape[1]; i++)
        *scale_at(args[1].as.tensor, 0, i) = (float)(*scale_at(args[0].as.tensor, 0, i) * by + cap + steps);
}

static hone_status run_baked(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const double *state = plan->state;
    fill(args, state[0], state[1], state[2]);
    return HONE_OK;
}

static hone_status blend_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    fill(args, value_of(args, 2), value_of(args, 3), (double)args[4].as.i64);
    return HONE_OK;
}

static bool is_half(const hone_call *call)
{
    const double by = hone_call_values(call)[2].as.f64;
    return by >= 0.5 && by <= 0.5;
}

static bool takes_half(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    snprintf(why->message, sizeof why->message, "by is not 0.5");
    return is_half(call);
}

static bool takes_others(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    snprintf(why->message, sizeof why->message, "by is 0.5");
    return !is_half(call);
}

typedef struct blend {
    fixture *f;
    const hone_op *op;
} blend;

static blend open_blend(hone_policy policy, const char *lock, unsigned kernels)
{
    blend b = {.f = open_fixture((wish){.policy = policy, .lock = lock})};
    static const char *const names[] = {"baked", "picky", "others"};
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = BLEND;
    algorithm.reference = blend_reference;
    if (hone_register_algorithm(b.f->rt, &algorithm, &b.f->err) != HONE_OK) fail_msg("%s", b.f->err.message);
    for (int i = 0; i < BLEND_KERNELS; i++) {
        const hone_kernel kernel = {
            HONE_KERNEL,
            .algorithm = "blend",
            .name = names[i],
            .platform = HONE_NATIVE,
            .backend = HONE_CPU,
            .priority = 10 + i,
            .supports = i == PICKY    ? takes_half
                        : i == OTHERS ? takes_others
                                      : NULL,
            .prepare = bake,
            .release = free_state,
            .run = run_baked,
        };
        if ((kernels >> i & 1) == 0) continue;
        if (hone_register_kernels(b.f->rt, &kernel, 1, &b.f->err) != HONE_OK) fail_msg("%s", b.f->err.message);
    }
    b.op = hone_op_find(b.f->rt, "blend", &b.f->err);
    assert_non_null(b.op);
    return b;
}

static hone_call *parse(const blend *b, const char *text)
{
    hone_call *call = NULL;
    if (hone_call_parse(hone_allocator_system(), hone_op_signature(b->op), text, &call, &b->f->err) != HONE_OK)
        fail_msg("%s", b->f->err.message);
    return call;
}

static hone_decision decide(const blend *b, const char *text)
{
    hone_decision decision;
    hone_call *call = parse(b, text);
    if (hone_decide_call(b->op, call, &decision, &b->f->err) != HONE_OK) fail_msg("%s", b->f->err.message);
    hone_call_release(&call);
    return decision;
}

static void put(const blend *b, const char *text, const char *kernel)
{
    hone_call *call = parse(b, text);
    const hone_entry entry = {.algorithm = "blend", .key = hone_call_key(call), .kernel = kernel};
    if (hone_cache_put(b->f->rt, &entry, &b->f->err) != HONE_OK) fail_msg("%s", b->f->err.message);
    hone_call_release(&call);
}

static void check_answer(const blend *b, const char *text, const char *kernel, hone_source source)
{
    const hone_decision decision = decide(b, text);
    assert_string_equal(decision.kernel, kernel);
    assert_int_equal(decision.source, source);
}

// Runs with these scalars, NAN for none, on memory of its own.
typedef struct blend_call {
    int64_t shape[2];
    float x[4], y[4];
    hone_tensor tensors[2];
    hone_value args[5];
} blend_call;

static void make_call(blend_call *c, hone_value by, hone_value cap, int64_t steps)
{
    *c = (blend_call){.shape = {1, 4}, .x = {1, 2, 3, 4}};
    c->tensors[0] = hone_tensor_of(c->x, HONE_F32, 2, c->shape);
    c->tensors[1] = hone_tensor_of(c->y, HONE_F32, 2, c->shape);
    c->args[0] = hone_of_tensor(&c->tensors[0]);
    c->args[1] = hone_of_tensor(&c->tensors[1]);
    c->args[2] = by;
    c->args[3] = cap;
    c->args[4] = hone_of_int(steps);
}

static bool is_right(const blend_call *c, double by, double cap, double steps)
{
    for (int i = 0; i < 4; i++)
        if (c->y[i] < (float)(c->x[i] * by + cap + steps) || c->y[i] > (float)(c->x[i] * by + cap + steps))
            return false;
    return true;
}

static bool run_right(const blend *b, double by, double cap, int64_t steps)
{
    blend_call c;
    make_call(&c, hone_of_float(by), cap > 0 ? hone_of_float(cap) : hone_of_none(), steps);
    return hone_run(b->op, c.args, 5, NULL, NULL) == HONE_OK && is_right(&c, by, cap, (double)steps);
}

static void one_decision_serves_all_values_and_whether_one_is_given_counts(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED | 1u << OTHERS);
    put(&b, "blend(f32[1,9])", "baked");
    check_answer(&b, "blend(f32[1,9])", "baked", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,9], by=7, steps=-4)", "baked", HONE_SOURCE_MEMORY);
    assert_true(decide(&b, "blend(f32[1,9], by=7)").bucketed);
    check_answer(&b, "blend(f32[1,9], by=7, cap=3)", "others", HONE_SOURCE_HEURISTIC);
    put(&b, "blend(f32[1,9], cap=1)", "baked");
    check_answer(&b, "blend(f32[1,9], by=7, cap=3)", "baked", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,10], by=7)", "others", HONE_SOURCE_HEURISTIC);
    close_fixture(b.f);
}

static void what_was_decided_for_one_value_before_still_answers_that_value(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED | 1u << OTHERS);
    hone_call *call = parse(&b, "blend(f32[1,9], by=7)");
    put(&b, "blend(f32[1,9])", "others");
    put(&b, "blend(f32[1,9], by=7)", "baked");
    check_answer(&b, "blend(f32[1,9], by=7)", "baked", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,9], by=8)", "others", HONE_SOURCE_MEMORY);
    hone_call_release(&call);
    close_fixture(b.f);
}

static void a_kernel_that_does_not_take_a_value_is_not_served_to_it(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED | 1u << PICKY);
    put(&b, "blend(f32[1,4])", "picky");
    check_answer(&b, "blend(f32[1,4])", "picky", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,4], by=0.25)", "baked", HONE_SOURCE_HEURISTIC);
    for (int i = 0; i < 8; i++)
        assert_true(run_right(&b, i % 2 == 0 ? 0.5 : 0.25, 0, 3));
    close_fixture(b.f);
}

static void each_value_has_a_plan_of_its_own(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED);
    for (int i = 0; i < 60; i++)
        assert_true(run_right(&b, i % 5, i % 3, i % 4));
    close_fixture(b.f);
}

static void bound_plans_keep_the_values_that_they_were_bound_with(void **state)
{
    (void)state;
    enum { PLANS = 4 };
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED);
    blend_call calls[PLANS];
    const hone_plan *plans[PLANS];
    put(&b, "blend(f32[1,4])", "baked");
    for (int i = 0; i < PLANS; i++) {
        make_call(&calls[i], i == 0 ? hone_of_none() : hone_of_float(i), hone_of_none(), i);
        if (hone_bind(b.op, calls[i].args, 5, &plans[i], &b.f->err) != HONE_OK) fail_msg("%s", b.f->err.message);
    }
    for (int i = 0; i < 20; i++) {
        const hone_plan *plan = plans[i * 3 % PLANS];
        blend_call *c = &calls[i * 3 % PLANS];
        assert_int_equal(plan->run(plan, c->args, NULL), HONE_OK);
        assert_true(is_right(c, i * 3 % PLANS == 0 ? 0.5 : i * 3 % PLANS, 0, i * 3 % PLANS));
        assert_true(run_right(&b, 9, 0, i));
    }
    for (int i = 0; i < PLANS; i++)
        hone_plan_release(&plans[i]);
    close_fixture(b.f);
}

typedef struct runner {
    const blend *b;
    int seed, wrong;
} runner;

static void *run_many(void *ctx)
{
    runner *r = ctx;
    for (int i = 0; i < 3000; i++)
        r->wrong += !run_right(r->b, (i * 7 + r->seed) % 11, i % 2, (i + r->seed) % 3);
    return NULL;
}

static void threads_with_other_values_do_not_meet(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED);
    pthread_t threads[THREADS];
    runner runners[THREADS];
    put(&b, "blend(f32[1,4])", "baked");
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (runner){&b, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(runners[i].wrong, 0);
    }
    close_fixture(b.f);
}

static void plans_that_guessed_go_when_any_value_is_decided(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_HEURISTIC, NULL, 1u << BAKED | 1u << OTHERS);
    blend_call c;
    make_call(&c, hone_of_float(7), hone_of_none(), 3);
    const hone_plan *plan = NULL;
    assert_int_equal(hone_bind(b.op, c.args, 5, &plan, &b.f->err), HONE_OK);
    assert_string_equal(plan->kernel->name, "others");
    put(&b, "blend(f32[1,4])", "baked");
    assert_false(hone_plan_is_current(plan));
    hone_plan_release(&plan);
    close_fixture(b.f);
}

static const hone_tune_options quick = {
    .struct_size = sizeof quick, .seconds = 1, .evaluations = 2, .isolation = HONE_ISOLATION_IN_PROCESS};

static void tuning_serves_all_values_also_where_the_winner_takes_one_alone(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_FAIL, NULL, 1u << PICKY | 1u << OTHERS);
    hone_call *call = parse(&b, "blend(f32[1,4], by=7)");
    hone_result *result = NULL;
    if (hone_tune(b.op, call, &quick, &result, &b.f->err) != HONE_OK) fail_msg("%s", b.f->err.message);
    assert_int_equal(hone_result_size(result), 2);
    check_answer(&b, "blend(f32[1,4])", "picky", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,4], by=7)", "others", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,4], by=8, steps=1)", "others", HONE_SOURCE_MEMORY);
    hone_result_release(&result);
    hone_call_release(&call);
    close_fixture(b.f);
}

// Functions of this program are isolated where it has one thread: ThreadSanitizer has one of its own everywhere.
#ifndef __SANITIZE_THREAD__
static void the_policy_tune_tunes_once_for_all_values(void **state)
{
    (void)state;
    blend b = open_blend(HONE_POLICY_TUNE, NULL, 1u << PICKY | 1u << OTHERS);
    check_answer(&b, "blend(f32[1,4], by=7)", "others", HONE_SOURCE_AUTOTUNE);
    check_answer(&b, "blend(f32[1,4], by=8)", "others", HONE_SOURCE_MEMORY);
    check_answer(&b, "blend(f32[1,4])", "picky", HONE_SOURCE_MEMORY);
    assert_int_equal(hone_cache_size(b.f->rt), 2);
    close_fixture(b.f);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_decision_serves_all_values_and_whether_one_is_given_counts),
        cmocka_unit_test(what_was_decided_for_one_value_before_still_answers_that_value),
        cmocka_unit_test(a_kernel_that_does_not_take_a_value_is_not_served_to_it),
        cmocka_unit_test(each_value_has_a_plan_of_its_own),
        cmocka_unit_test(bound_plans_keep_the_values_that_they_were_bound_with),
        cmocka_unit_test(threads_with_other_values_do_not_meet),
        cmocka_unit_test(plans_that_guessed_go_when_any_value_is_decided),
        cmocka_unit_test(tuning_serves_all_values_also_where_the_winner_takes_one_alone),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(the_policy_tune_tunes_once_for_all_values),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
