// A runtime with one algorithm, `scale`, and three kernels of the test's own, which count what is done with them.
#ifndef HONE_TESTS_RUNTIME_FIXTURE_H
#define HONE_TESTS_RUNTIME_FIXTURE_H

#include "hone/hone.h"
#include "runtime/api/inner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SCALE "scale(x: T[rows, cols], *, factor: f64 = 2) -> y: T[rows, cols] where T in f32, f64"

enum { FAST, PLAIN, REFERENCE, KERNELS };

// What a kernel of the test saw, and what it answers. Its `user` points here.
typedef struct probe {
    atomic_int runs, prepares, releases;
    atomic_int status;           // of run
    atomic_int prepare_status;   // of prepare
    const char *words;           // that it fails with; NULL: none
    atomic_int wrong;            // runs whose arguments were not what a kernel may expect
    atomic_int_least64_t config; // first value of the last plan's config
} probe;

typedef struct fixture {
    hone_runtime *rt;
    const hone_op *op;
    probe probes[KERNELS];
    hone_kernel kernels[KERNELS];
    hone_error err;
} fixture;

static inline float *scale_at(const hone_tensor *tensor, int64_t row, int64_t col)
{
    const int64_t rows = tensor->strides == NULL ? tensor->shape[1] : tensor->strides[0];
    const int64_t cols = tensor->strides == NULL ? 1 : tensor->strides[1];
    return (float *)hone_tensor_data(tensor) + row * rows + col * cols;
}

static inline hone_status scale_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    probe *self = (probe *)plan->kernel->user;
    atomic_fetch_add(&self->runs, 1);
    if (args[0].tag != HONE_VALUE_TENSOR || args[1].tag != HONE_VALUE_TENSOR || args[2].tag != HONE_VALUE_FLOAT) {
        atomic_fetch_add(&self->wrong, 1);
        return HONE_INVALID_ARGUMENT;
    }
    hone_status status = (hone_status)atomic_load(&self->status);
    if (status != HONE_OK && self->words != NULL) return hone_plan_fail(plan, status, self->words);
    if (status != HONE_OK || args[0].as.tensor->dtype.bits != 32) return status;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++)
            *scale_at(y, i, j) = (float)(*scale_at(x, i, j) * args[2].as.f64);
    return HONE_OK;
}

static inline hone_status scale_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_scratch_bytes;
    probe *self = (probe *)plan->kernel->user;
    atomic_fetch_add(&self->prepares, 1);
    hone_status status = (hone_status)atomic_load(&self->prepare_status);
    if (status != HONE_OK) {
        strcpy(err->message, "the probe says no");
        return status;
    }
    atomic_store(&self->config, plan->config[0]);
    *out_state = self;
    return HONE_OK;
}

static inline void scale_release(const hone_kernel *kernel, void *state)
{
    probe *self = (probe *)kernel->user;
    atomic_fetch_add(&self->releases, 1);
    if (state != self) atomic_fetch_add(&self->wrong, 1);
}

static inline hone_status scale_reference(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++)
            *scale_at(y, i, j) = (float)(*scale_at(x, i, j) * args[2].as.f64);
    return HONE_OK;
}

static inline hone_status register_scale(hone_runtime *rt, const hone_kernel *kernels, hone_error *err)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = SCALE;
    algorithm.reference = scale_reference;
    hone_status status = hone_register_algorithm(rt, &algorithm, err);
    return status == HONE_OK ? hone_register_kernels(rt, kernels, KERNELS, err) : status;
}

static inline void fill_scale_kernels(hone_kernel kernels[KERNELS], probe probes[KERNELS])
{
    static const char *const names[KERNELS] = {"fast", "plain", "reference"};
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = (hone_kernel){
            HONE_KERNEL,
            .algorithm = "scale",
            .name = names[i],
            .platform = HONE_NATIVE,
            .backend = HONE_CPU,
            .priority = 20 - 10 * i,
            .space = i == FAST ? "unroll: 1 | 2 | 4\nlayout: row | col" : NULL,
            .is_reference = i == REFERENCE,
            .user = &probes[i],
            .prepare = scale_prepare,
            .release = scale_release,
            .run = scale_run,
        };
    }
}

// What a test may ask of its runtime; zero is the usual.
typedef struct wish {
    const char *store; // NULL: none
    const char *lock;
    hone_policy policy;
    size_t plan_cache_bytes;
    unsigned flags;
    bool verifies;    // its kernels before they answer: most tests count what is done with these
    bool environment; // reads HONE_*
    hone_allocator allocator;
    void (*log)(void *ctx, int level, const char *message);
    void *log_ctx;
    int log_level;
} wish;

static inline hone_status open_bare(const wish *wanted, hone_runtime **out, hone_error *err)
{
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .allocator = wanted->allocator,
        .store = wanted->environment && wanted->store == NULL ? NULL
                 : wanted->store == NULL                      ? "none"
                                                              : wanted->store,
        .lock_file = wanted->lock,
        .policy = wanted->policy,
        .flags = wanted->flags | HONE_RUNTIME_NO_BUILTINS | (wanted->verifies ? 0u : HONE_RUNTIME_UNVERIFIED) |
                 (wanted->environment ? 0u : HONE_RUNTIME_NO_ENVIRONMENT),
        .plan_cache_bytes = wanted->plan_cache_bytes,
        .threads = 1,
        .log = wanted->log,
        .log_ctx = wanted->log_ctx,
        .log_level = wanted->log_level,
    };
    return hone_runtime_open(&options, out, err);
}

static inline fixture *open_fixture(wish wanted)
{
    fixture *f = (fixture *)calloc(1, sizeof *f);
    assert_non_null(f);
    fill_scale_kernels(f->kernels, f->probes);
    if (open_bare(&wanted, &f->rt, &f->err) != HONE_OK || register_scale(f->rt, f->kernels, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    f->op = hone_op_find(f->rt, "scale", &f->err);
    assert_non_null(f->op);
    return f;
}

static inline void close_fixture(fixture *f)
{
    hone_runtime_close(&f->rt);
    assert_null(f->rt);
    int prepares = 0, releases = 0, wrong = 0;
    for (int i = 0; i < KERNELS; i++) {
        prepares += f->probes[i].prepare_status == HONE_OK ? f->probes[i].prepares : f->probes[i].releases;
        releases += f->probes[i].releases;
        wrong += f->probes[i].wrong;
    }
    assert_int_equal(prepares, releases);
    assert_int_equal(wrong, 0);
    free(f);
}

// The usual runtime: no store, policy heuristic, no environment.
static inline int setup_runtime(void **state)
{
    *state = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    return 0;
}

static inline int teardown_runtime(void **state)
{
    close_fixture((fixture *)*state);
    return 0;
}

// One call of scale with memory of its own.
typedef struct example {
    int64_t shape[2];
    float x[256], y[256];
    hone_tensor tensors[2];
    hone_value args[3];
} example;

// rows * cols <= 256.
static inline void make_example(example *e, int64_t rows, int64_t cols)
{
    e->shape[0] = rows;
    e->shape[1] = cols;
    for (int i = 0; i < 256; i++) {
        e->x[i] = (float)i;
        e->y[i] = -1;
    }
    e->tensors[0] = hone_tensor_of(e->x, HONE_F32, 2, e->shape);
    e->tensors[1] = hone_tensor_of(e->y, HONE_F32, 2, e->shape);
    e->args[0] = hone_of_tensor(&e->tensors[0]);
    e->args[1] = hone_of_tensor(&e->tensors[1]);
    e->args[2] = hone_of_float(2);
}

static inline void assert_scaled(const example *e, float factor)
{
    for (int64_t i = 0; i < e->shape[0] * e->shape[1]; i++)
        assert_true(e->y[i] == (float)i * factor);
}

// Runs scale on rows x cols and checks the result.
static inline void run_example(fixture *f, int64_t rows, int64_t cols)
{
    example e;
    make_example(&e, rows, cols);
    if (hone_run(f->op, e.args, 3, NULL, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_scaled(&e, 2);
}

static inline hone_call *describe_scale(fixture *f, int64_t rows, int64_t cols)
{
    example e;
    make_example(&e, rows, cols);
    hone_call *call = NULL;
    if (hone_call_bind(hone_allocator_system(), hone_op_signature(f->op), e.args, 3, true, &call, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    return call;
}

// Tunes scale on rows x 4 in this process, in a second at most.
static inline void tune_scale(fixture *f, int64_t rows)
{
    hone_result *result = NULL;
    hone_call *call = describe_scale(f, rows, 4);
    const hone_tune_options options = {
        .struct_size = sizeof options, .seconds = 1, .evaluations = 3, .isolation = HONE_ISOLATION_IN_PROCESS};
    if (hone_tune(f->op, call, &options, &result, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_result_release(&result);
    hone_call_release(&call);
}

static inline hone_decision decide_scale(fixture *f, int64_t rows, int64_t cols)
{
    example e;
    make_example(&e, rows, cols);
    hone_decision decision;
    if (hone_decide(f->op, e.args, 3, &decision, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return decision;
}

// What hone_explain says, piece by piece.
typedef struct saying {
    char data[20000];
    size_t size;
} saying;

static inline void collect_saying(void *ctx, const char *piece, size_t size)
{
    saying *all = (saying *)ctx;
    assert_true(all->size + size < sizeof all->data);
    memcpy(all->data + all->size, piece, size);
    all->size += size;
    all->data[all->size] = '\0';
}

// An entry that answers scale on rows x cols by a kernel. Its key is the call's, kept in key.
static inline hone_entry entry_for(fixture *f, int64_t rows, int64_t cols, const char *kernel, char key[20])
{
    hone_call *call = describe_scale(f, rows, cols);
    strcpy(key, hone_call_key(call));
    hone_call_release(&call);
    return (hone_entry){
        .algorithm = "scale",
        .key = key,
        .kernel = kernel,
        .config = strcmp(kernel, "fast") == 0 ? "unroll=4 layout=col" : NULL,
    };
}

static inline void put_in_cache(fixture *f, int64_t rows, int64_t cols, const char *kernel)
{
    char key[20];
    hone_entry entry = entry_for(f, rows, cols, kernel, key);
    if (hone_cache_put(f->rt, &entry, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
}

static inline hone_overlay *overlay_for(fixture *f, int64_t rows, int64_t cols, const char *kernel)
{
    char key[20];
    hone_entry entry = entry_for(f, rows, cols, kernel, key);
    hone_overlay *overlay = NULL;
    if (hone_overlay_create(f->rt, &entry, 1, &overlay, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return overlay;
}

static inline hone_context *derive(
    fixture *f, hone_context *parent, hone_overlay *overlay, const hone_override *override_, hone_policy policy)
{
    hone_context *context = NULL;
    if (hone_context_derive(f->rt, parent, overlay, override_, policy, &context, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    return context;
}

// A context whose only override is a kernel of scale.
static inline hone_context *overriding(fixture *f, const char *kernel, const char *config)
{
    return derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = kernel, .config = config}, HONE_POLICY_DEFAULT);
}

#define assert_says(f, word)                                                                                           \
    do {                                                                                                               \
        if (strstr((f)->err.message, (word)) == NULL) fail_msg("'%s' not in: %s", (word), (f)->err.message);           \
    } while (0)

#endif
