// hone_run: what it takes, what it refuses, and which calls share a plan.
#include "fixture.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static hone_status run(fixture *f, const hone_value *args, size_t count)
{
    return hone_run(f->op, args, count, NULL, &f->err);
}

static void the_first_call_and_a_hit_give_the_same_result_by_one_plan(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 3; i++)
        run_example(f, 3, 5);
    assert_int_equal(f->probes[FAST].runs, 3);
    assert_int_equal(f->probes[FAST].prepares, 1);
}

static void another_shape_gets_another_plan(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        run_example(f, 3, 5);
        run_example(f, 5, 3);
    }
    assert_int_equal(f->probes[FAST].prepares, 2);
}

static void arguments_left_out_none_and_integers_for_floats_reach_the_kernel_as_floats(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 2, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(f, e.args, 2), HONE_OK);
        assert_scaled(&e, 2);
        e.args[2] = hone_of_none();
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        assert_scaled(&e, 2);
        e.args[2] = hone_of_int(5);
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        assert_scaled(&e, 5);
        e.args[2] = hone_of_float(3);
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        assert_scaled(&e, 3);
    }
    assert_int_equal(f->probes[FAST].wrong, 0);
    assert_int_equal(f->probes[FAST].runs, 8);
}

static void strided_and_misaligned_tensors_get_plans_of_their_own(void **state)
{
    fixture *f = *state;
    example e;
    _Alignas(64) float memory[256];
    int64_t strides[2] = {1, 4}; // column-major
    make_example(&e, 4, 4);
    for (int i = 0; i < 2; i++) {
        e.tensors[0] = hone_tensor_of(memory, HONE_F32, 2, e.shape);
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        e.tensors[0].strides = strides;
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        e.tensors[0] = hone_tensor_of(memory + 1, HONE_F32, 2, e.shape);
        assert_int_equal(run(f, e.args, 3), HONE_OK);
    }
    assert_int_equal(f->probes[FAST].prepares, 3);
    assert_int_equal(f->probes[FAST].runs, 6);
}

static void strides_that_say_row_major_share_the_plan_of_none(void **state)
{
    fixture *f = *state;
    example e;
    int64_t strides[2] = {4, 1};
    make_example(&e, 4, 4);
    assert_int_equal(run(f, e.args, 3), HONE_OK);
    e.tensors[0].strides = strides;
    assert_int_equal(run(f, e.args, 3), HONE_OK);
    assert_int_equal(f->probes[FAST].prepares, 1);
}

// softmax of so many rows of 64.
static bool runs_if_short(const hone_op *op, float *x, float *y, int64_t rows)
{
    int64_t shape[] = {rows, 64};
    const hone_tensor tensors[] = {hone_tensor_of(x, HONE_F32, 2, shape), hone_tensor_of(y, HONE_F32, 2, shape)};
    const hone_value args[] = {hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1])};
    hone_error err;
    assert_false(hone_run_if_short(op, args, 2)); // nothing is ready
    assert_int_equal(hone_run(op, args, 2, NULL, &err), HONE_OK);
    memset(y, 0, sizeof *y * 64);
    const bool ran = hone_run_if_short(op, args, 2);
    const hone_plan *plan = NULL;
    assert_int_equal(hone_bind(op, args, 2, &plan, &err), HONE_OK);
    assert_true(hone_plan_is_short(plan) == ran);
    hone_plan_release(&plan);
    assert_false(hone_plan_is_short(plan));
    assert_true(y[0] == (ran ? 1.0f / 64 : 0));
    return ran;
}

static void a_short_run_is_a_hit_of_the_librarys_own_kernel_with_little_to_do(void **state)
{
    fixture *f = *state;
    example e;
    const int64_t most = 4096;
    float *x = calloc((size_t)most * 64, sizeof *x), *y = calloc((size_t)most * 64, sizeof *y);
    const hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    hone_runtime *rt = NULL;
    assert_int_equal(hone_runtime_open(&options, &rt, &f->err), HONE_OK);
    const hone_op *softmax = hone_op_find(rt, "softmax", &f->err);
    assert_non_null(softmax);
    assert_true(runs_if_short(softmax, x, y, 4));
    assert_false(runs_if_short(softmax, x, y, most));
    make_example(&e, 4, 4); // the kernel is the program's, which may call it back
    assert_int_equal(run(f, e.args, 3), HONE_OK);
    assert_false(hone_run_if_short(f->op, e.args, 3));
    assert_false(hone_run_if_short(NULL, e.args, 3));
    assert_false(hone_run_if_short(f->op, NULL, 3));
    assert_false(hone_run_if_short(f->op, e.args, 30));
    assert_int_equal(f->probes[FAST].runs, 1);
    hone_runtime_close(&rt);
    free(x);
    free(y);
}

static void a_strided_tensor_is_read_by_its_strides(void **state)
{
    fixture *f = *state;
    example e;
    int64_t strides[2] = {1, 2};
    make_example(&e, 2, 2);
    e.tensors[0].strides = strides;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        const float expected[] = {0, 4, 2, 6};
        assert_memory_equal(e.y, expected, sizeof expected);
    }
}

static void a_result_over_its_parameter_is_refused_also_after_hits(void **state)
{
    fixture *f = *state;
    example e, overlapping;
    make_example(&e, 4, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(run(f, e.args, 3), HONE_OK);
    make_example(&overlapping, 4, 4);
    const ptrdiff_t offsets[] = {0, 4, 60}; // floats; aligned like the call that was hit
    for (size_t i = 0; i < 3; i++) {
        overlapping.tensors[1].data = overlapping.x + offsets[i] / 4;
        overlapping.tensors[0].data = overlapping.x;
        assert_int_equal(run(f, overlapping.args, 3), HONE_INVALID_ARGUMENT);
        assert_says(f, "y");
    }
    assert_int_equal(f->probes[FAST].runs, 3);
    assert_int_equal(run(f, e.args, 3), HONE_OK);
}

static void a_tensor_without_a_shape_is_refused_before_and_after_hits(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < 3; i++) {
        e.tensors[0].shape = NULL;
        assert_int_equal(run(f, e.args, 3), HONE_INVALID_ARGUMENT);
        assert_says(f, "x has no shape");
        e.tensors[0].shape = e.shape;
        assert_int_equal(run(f, e.args, 3), HONE_OK);
        assert_int_equal(run(f, e.args, 3), HONE_OK);
    }
}

static void a_result_just_behind_its_parameter_is_fine(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    e.tensors[1].data = e.x + 16;
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(f, e.args, 3), HONE_OK);
    e.tensors[0].data = e.x + 32;
    assert_int_equal(run(f, e.args, 3), HONE_OK);
    assert_int_equal(f->probes[FAST].prepares, 1);
}

static hone_status add_one(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    for (int64_t i = 0; i < x->shape[0]; i++)
        ((float *)hone_tensor_data(y))[i] = ((const float *)hone_tensor_data(x))[i] + 1;
    return HONE_OK;
}

static const hone_op *register_one(fixture *f, const char *signature, const char *name, hone_run_function *function)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = signature;
    hone_kernel kernel = {HONE_KERNEL,         .algorithm = name, .name = "only", .platform = HONE_NATIVE,
                          .backend = HONE_CPU, .run = function};
    if (hone_register_algorithm(f->rt, &algorithm, &f->err) != HONE_OK ||
        hone_register_kernels(f->rt, &kernel, 1, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    return hone_op_find(f->rt, name, &f->err);
}

static void an_inout_result_may_be_its_parameter_exactly_and_nothing_near_it(void **state)
{
    fixture *f = *state;
    const hone_op *op = register_one(f, "step(x: f32[n]) -> inout y: f32[n]", "step", add_one);
    _Alignas(64) float memory[64] = {0};
    int64_t shape[] = {16};
    hone_tensor x = hone_tensor_of(memory, HONE_F32, 1, shape), y = x;
    hone_value args[] = {hone_of_tensor(&x), hone_of_tensor(&y)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(hone_run(op, args, 2, NULL, &f->err), HONE_OK);
    assert_true(memory[0] == 3 && memory[15] == 3 && memory[16] == 0);
    y.data = memory + 4;
    assert_int_equal(hone_run(op, args, 2, NULL, &f->err), HONE_INVALID_ARGUMENT);
    y.data = memory + 16;
    assert_int_equal(hone_run(op, args, 2, NULL, &f->err), HONE_OK);
}

static hone_status add_one_by_strides(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    const int64_t from = x->strides != NULL ? x->strides[0] : 1, to = y->strides != NULL ? y->strides[0] : 1;
    for (int64_t i = 0; i < x->shape[0]; i++)
        ((float *)hone_tensor_data(y))[i * to] = ((const float *)hone_tensor_data(x))[i * from] + 1;
    return HONE_OK;
}

// Each call is made three times: the first makes the plan, and the others hit it.
static void an_inout_result_of_another_layout_is_apart_from_its_parameter_or_refused(void **state)
{
    static int64_t shape[] = {16}, two[] = {2}, three[] = {3};
    static const struct {
        int64_t *x, *y;
        bool may_equal;
    } rows[] = {{NULL, NULL, true}, {NULL, two, false}, {two, NULL, false}, {two, two, true}, {two, three, false}};
    fixture *f = *state;
    const hone_op *op = register_one(f, "step(x: f32[n]) -> inout y: f32[n]", "step", add_one_by_strides);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _Alignas(64) float memory[64] = {0}, apart[64] = {0};
        hone_tensor x = hone_tensor_of(memory, HONE_F32, 1, shape), y = hone_tensor_of(apart, HONE_F32, 1, shape);
        x.strides = rows[i].x;
        y.strides = rows[i].y;
        hone_value args[] = {hone_of_tensor(&x), hone_of_tensor(&y)};
        for (int run_number = 0; run_number < 3; run_number++)
            assert_int_equal(hone_run(op, args, 2, NULL, &f->err), HONE_OK);
        const int64_t step = rows[i].y != NULL ? rows[i].y[0] : 1;
        assert_true(apart[0] == 1 && apart[15 * step] == 1);
        if (step > 1) assert_true(apart[1] == 0);
        y.data = memory;
        for (int run_number = 0; run_number < 3; run_number++)
            assert_int_equal(hone_run(op, args, 2, NULL, &f->err), rows[i].may_equal ? HONE_OK : HONE_INVALID_ARGUMENT);
        assert_true(memory[0] == (rows[i].may_equal ? 3.0F : 0.0F));
    }
}

static hone_status add_number(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    if (args[0].tag != HONE_VALUE_FLOAT) return HONE_INVALID_ARGUMENT;
    *(float *)hone_tensor_data(args[2].as.tensor) =
        (float)(args[0].as.f64 + (double)*(const float *)hone_tensor_data(args[1].as.tensor));
    return HONE_OK;
}

static void *run_nothing_first(void *ctx)
{
    fixture *f = ctx;
    hone_error err;
    example e;
    make_example(&e, 4, 4);
    // The thread's first call is checked by other code than those that follow.
    assert_int_equal(hone_run(f->op, NULL, 3, NULL, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "scale: the arguments are NULL"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_run(NULL, e.args, 3, NULL, &err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "the operation is NULL"));
        assert_int_equal(hone_run(NULL, NULL, 0, NULL, NULL), HONE_INVALID_ARGUMENT);
        assert_int_equal(hone_run(f->op, NULL, 3, NULL, &err), HONE_INVALID_ARGUMENT);
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &err), HONE_OK);
    }
    return NULL;
}

static void a_call_of_no_operation_is_refused_first_and_later(void **state)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_nothing_first, *state), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_number_that_stands_first_reaches_the_kernel_as_a_float_too(void **state)
{
    fixture *f = *state;
    const hone_op *op = register_one(f, "shift(by: f64, x: f32[n]) -> y: f32[n]", "shift", add_number);
    int64_t shape[] = {1};
    float from[16] = {1}, to[16] = {0};
    hone_tensor x = hone_tensor_of(from, HONE_F32, 1, shape), y = hone_tensor_of(to, HONE_F32, 1, shape);
    for (int i = 0; i < 4; i++) {
        const hone_value args[] = {
            i % 2 == 0 ? hone_of_int(4) : hone_of_float(4), hone_of_tensor(&x), hone_of_tensor(&y)};
        to[0] = 0;
        if (hone_run(op, args, 3, NULL, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
        assert_true(to[0] == 5);
    }
}

static double last_ignored;
static int64_t last_bucketed;

static hone_status note_scalars(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    last_bucketed = args[2].as.i64;
    last_ignored = args[3].tag == HONE_VALUE_FLOAT ? args[3].as.f64 : -1;
    return HONE_OK;
}

static void ignored_and_bucketed_scalars_reach_the_kernel_as_given_on_every_hit(void **state)
{
    fixture *f = *state;
    const hone_op *op = register_one(
        f, "roles(x: f32[n], *, length: i64 = 1 #bucket, seed: f64 = 0.5 #ignore) -> y: f32[n]", "roles", note_scalars);
    example e;
    make_example(&e, 1, 8);
    e.tensors[0].ndim = e.tensors[1].ndim = 1;
    e.shape[0] = 8;
    hone_value args[] = {e.args[0], e.args[1], hone_of_int(1), hone_of_float(1)};
    for (int64_t i = 1; i < 40; i++) {
        args[2] = hone_of_int(i % 7);
        args[3] = i % 3 == 0 ? hone_of_int(i) : hone_of_float((double)i);
        assert_int_equal(hone_run(op, args, 4, NULL, &f->err), HONE_OK);
        assert_int_equal(last_bucketed, i % 7);
        assert_true(last_ignored == (double)i);
    }
    assert_int_equal(hone_run(op, args, 2, NULL, &f->err), HONE_OK);
    assert_true(last_ignored == 0.5 && last_bucketed == 1);
    args[3] = hone_of_none();
    assert_int_equal(hone_run(op, args, 4, NULL, &f->err), HONE_OK);
    assert_true(last_ignored == 0.5);
}

static char last_text[64];

static hone_status note_text(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    snprintf(last_text, sizeof last_text, "%s", args[2].tag == HONE_VALUE_STRING ? args[2].as.string : "no string");
    return HONE_OK;
}

static void strings_are_compared_by_their_bytes_and_ignored_ones_are_still_filled_in(void **state)
{
    fixture *f = *state;
    const hone_op *ops[] = {
        register_one(f, "mode(x: f32[n], *, how: str = \"usual\") -> y: f32[n]", "mode", note_text),
        register_one(f, "note(x: f32[n], *, how: str = \"usual\" #ignore) -> y: f32[n]", "note", note_text),
    };
    example e;
    make_example(&e, 8, 1);
    e.tensors[0].ndim = e.tensors[1].ndim = 1;
    char text[16];
    for (int i = 0; i < 20; i++) {
        hone_value args[] = {e.args[0], e.args[1], hone_of_string(text)};
        snprintf(text, sizeof text, "text%d", i % 5);
        assert_int_equal(hone_run(ops[i % 2], args, 3, NULL, &f->err), HONE_OK);
        assert_string_equal(last_text, text);
        args[2] = hone_of_none();
        assert_int_equal(hone_run(ops[i % 2], args, 3, NULL, &f->err), HONE_OK);
        assert_string_equal(last_text, "usual");
    }
}

static void an_empty_tensor_is_run_without_data(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 0, 4);
    e.tensors[0].data = e.tensors[1].data = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(run(f, e.args, 3), HONE_OK);
    assert_int_equal(f->probes[FAST].runs, 2);
}

typedef struct wrong_call {
    const char *says[2];
    void (*spoil)(example *e);
    size_t count;
} wrong_call;

static void spoil_dtype(example *e)
{
    e->tensors[0].dtype = hone_dtype_of(HONE_I32);
}

static int64_t other_shape[] = {4, 5};

static void spoil_shape(example *e)
{
    e->tensors[1].shape = other_shape;
}

static void spoil_rank(example *e)
{
    e->tensors[0].ndim = 1;
}

static void spoil_huge_rank(example *e)
{
    e->tensors[0].ndim = 100;
}

static void spoil_negative_rank(example *e)
{
    e->tensors[0].ndim = -1;
}

static void spoil_kind(example *e)
{
    e->args[0] = hone_of_int(3);
}

static void spoil_tag(example *e)
{
    e->args[2].tag = 77;
}

static void spoil_pointer(example *e)
{
    e->args[0].as.tensor = NULL;
}

static void spoil_factor(example *e)
{
    e->args[2] = hone_of_string("two");
}

static void spoil_data(example *e)
{
    e->tensors[0].data = NULL;
}

static void spoil_result(example *e)
{
    e->args[1] = hone_of_none();
}

static void spoil_nothing(example *e)
{
    (void)e;
}

static void spoil_device(example *e)
{
    e->tensors[0].device = e->tensors[1].device = (hone_device){HONE_DEVICE_CUDA, 3};
}

static void a_wrong_call_says_what_came_and_what_was_expected_before_and_after_a_right_one(void **state)
{
    static const wrong_call calls[] = {
        {{"x", "i32"}, spoil_dtype, 3},
        {{"y[1] is 5", "4"}, spoil_shape, 3},
        {{"x is a tensor f32[4]", "T[rows, cols]"}, spoil_rank, 3},
        {{"x", "100"}, spoil_huge_rank, 3},
        {{"x", "-1"}, spoil_negative_rank, 3},
        {{"x is 3 (an integer)", "T[rows, cols]"}, spoil_kind, 3},
        {{"factor", "77"}, spoil_tag, 3},
        {{"x", "NULL"}, spoil_pointer, 3},
        {{"factor", "string"}, spoil_factor, 3},
        {{"x", "data"}, spoil_data, 3},
        {{"result y is missing", "T[rows, cols]"}, spoil_result, 3},
        {{"4", "3"}, spoil_nothing, 4},
        {{"y", "missing"}, spoil_nothing, 1},
        {{"x", "missing"}, spoil_nothing, 0},
    };
    fixture *f = *state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            example e;
            make_example(&e, 4, 4);
            hone_value args[4] = {0};
            calls[i].spoil(&e);
            memcpy(args, e.args, sizeof e.args);
            memset(&f->err, 0, sizeof f->err);
            assert_int_equal(run(f, args, calls[i].count), HONE_INVALID_ARGUMENT);
            assert_int_equal(f->err.status, HONE_INVALID_ARGUMENT);
            assert_says(f, "scale");
            assert_says(f, calls[i].says[0]);
            assert_says(f, calls[i].says[1]);
        }
        run_example(f, 4, 4);
    }
}

static void tensors_of_a_device_that_is_not_here_are_refused_by_its_number(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    spoil_device(&e);
    assert_int_equal(run(f, e.args, 3), HONE_UNAVAILABLE);
    assert_says(f, "id 3");
}

static void a_small_cache_of_plans_still_answers_ten_thousand_calls_right(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .plan_cache_bytes = 64 * 1024});
    example e;
    make_example(&e, 2, 2);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            e.args[2] = hone_of_float(i);
            if (run(f, e.args, 3) != HONE_OK) fail_msg("%s", f->err.message);
            assert_true(e.y[3] == 3.0f * (float)i);
        }
    }
    // What was evicted was given back: only what fits into the cap is still prepared.
    int held = f->probes[FAST].prepares - f->probes[FAST].releases;
    if (held < 1 || held > 64) fail_msg("%d plans are held", held);
    assert_int_equal(f->probes[FAST].runs, 10000);
    close_fixture(f);
}

static void many_live_calls_each_keep_their_plan(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 2, 2);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) {
            e.args[2] = hone_of_float(i);
            assert_int_equal(run(f, e.args, 3), HONE_OK);
            assert_true(e.y[3] == 3.0f * (float)i);
        }
    }
    assert_int_equal(f->probes[FAST].prepares, 2000);
}

static void a_call_with_more_facts_than_a_plan_compares_still_runs(void **state)
{
    fixture *f = *state;
    static char text[4000];
    const hone_op *op =
        register_one(f, "long_text(x: f32[n], *, how: str = \"\") -> y: f32[n]", "long_text", note_text);
    example e;
    make_example(&e, 8, 1);
    e.tensors[0].ndim = e.tensors[1].ndim = 1;
    memset(text, 'a', sizeof text - 1);
    hone_value args[] = {e.args[0], e.args[1], hone_of_string(text)};
    for (int i = 0; i < 3; i++) {
        text[0] = (char)('a' + i);
        assert_int_equal(hone_run(op, args, 3, NULL, &f->err), HONE_OK);
        assert_int_equal(last_text[0], 'a' + i);
    }
}

static void an_algorithm_is_found_in_any_case_and_an_unknown_one_lists_those_there_are(void **state)
{
    fixture *f = *state;
    assert_ptr_equal(hone_op_find(f->rt, "SCALE", &f->err), f->op);
    assert_ptr_equal(hone_op_find(f->rt, "scale@v1", &f->err), f->op);
    assert_null(hone_op_find(f->rt, "scale@v2", &f->err));
    assert_int_equal(f->err.status, HONE_NOT_FOUND);
    assert_null(hone_op_find(f->rt, "shrink", &f->err));
    assert_says(f, "shrink");
    assert_says(f, "scale");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_call_of_no_operation_is_refused_first_and_later, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            the_first_call_and_a_hit_give_the_same_result_by_one_plan, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(another_shape_gets_another_plan, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_short_run_is_a_hit_of_the_librarys_own_kernel_with_little_to_do, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            arguments_left_out_none_and_integers_for_floats_reach_the_kernel_as_floats, setup_runtime,
            teardown_runtime),
        cmocka_unit_test_setup_teardown(
            strided_and_misaligned_tensors_get_plans_of_their_own, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            strides_that_say_row_major_share_the_plan_of_none, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(a_strided_tensor_is_read_by_its_strides, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_result_over_its_parameter_is_refused_also_after_hits, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_tensor_without_a_shape_is_refused_before_and_after_hits, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(a_result_just_behind_its_parameter_is_fine, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            an_inout_result_may_be_its_parameter_exactly_and_nothing_near_it, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            an_inout_result_of_another_layout_is_apart_from_its_parameter_or_refused, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_number_that_stands_first_reaches_the_kernel_as_a_float_too, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            ignored_and_bucketed_scalars_reach_the_kernel_as_given_on_every_hit, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            strings_are_compared_by_their_bytes_and_ignored_ones_are_still_filled_in, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(an_empty_tensor_is_run_without_data, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_wrong_call_says_what_came_and_what_was_expected_before_and_after_a_right_one, setup_runtime,
            teardown_runtime),
        cmocka_unit_test_setup_teardown(
            tensors_of_a_device_that_is_not_here_are_refused_by_its_number, setup_runtime, teardown_runtime),
        cmocka_unit_test(a_small_cache_of_plans_still_answers_ten_thousand_calls_right),
        cmocka_unit_test_setup_teardown(many_live_calls_each_keep_their_plan, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            a_call_with_more_facts_than_a_plan_compares_still_runs, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            an_algorithm_is_found_in_any_case_and_an_unknown_one_lists_those_there_are, setup_runtime,
            teardown_runtime),
    };
    return cmocka_run_group_tests_name("runtime_run", tests, NULL, NULL);
}
