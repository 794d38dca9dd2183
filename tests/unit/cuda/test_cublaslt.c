// cuBLASLt as a kernel of matmul, on a fake one: what it is asked, and what happens where it is not there.
#include "fake.h"
#include "lender.h"

enum { M = 3, N = 4, K = 5 };

typedef struct multiplying {
    fake fake;
    hone_runtime *rt;
    const hone_op *op;
    float a[M * K], b[K * N], c[M * N];
    int64_t a_shape[2], b_shape[2], c_shape[2];
    hone_tensor tensors[3];
    hone_value args[4];
    const hone_plan *plan;
    hone_error err;
} multiplying;

static void set_tensor(multiplying *t, int index, void *data, int64_t *shape)
{
    t->tensors[index] = hone_tensor_of(data, HONE_F32, 2, shape);
    t->tensors[index].device = (hone_device){HONE_DEVICE_CUDA, 0}; // whose memory is the host's here
    t->args[index] = hone_of_tensor(&t->tensors[index]);
}

static void set_product(multiplying *t, bool transposed)
{
    t->a_shape[0] = M;
    t->a_shape[1] = K;
    t->b_shape[0] = transposed ? N : K;
    t->b_shape[1] = transposed ? K : N;
    t->c_shape[0] = M;
    t->c_shape[1] = N;
    for (int i = 0; i < M * K; i++)
        t->a[i] = (float)(i + 1);
    for (int i = 0; i < K * N; i++)
        t->b[i] = (float)(i % 7);
    set_tensor(t, 0, t->a, t->a_shape);
    set_tensor(t, 1, t->b, t->b_shape);
    set_tensor(t, 2, t->c, t->c_shape);
    t->args[3] = hone_of_bool(transposed);
}

static int setup(void **state)
{
    multiplying *t = calloc(1, sizeof *t);
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    fake_choose(&t->fake, "fake_cuda.so");
    assert_int_equal(hone_runtime_open(&options, &t->rt, &t->err), HONE_OK);
    t->op = hone_op_find(t->rt, "matmul", &t->err);
    assert_non_null(t->op);
    set_product(t, false);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    multiplying *t = *state;
    hone_plan_release(&t->plan);
    hone_runtime_close(&t->rt);
    fake_forget(&t->fake);
    free(t);
    return 0;
}

// config: NULL for the default.
static hone_status bind(multiplying *t, const char *config)
{
    const hone_override chosen = {.algorithm = "matmul", .kernel = "cublaslt", .config = config};
    hone_context *context = NULL;
    hone_plan_release(&t->plan);
    assert_int_equal(hone_context_derive(t->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &t->err), HONE_OK);
    hone_context_enter(context);
    hone_status status = hone_bind(t->op, t->args, 4, &t->plan, &t->err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    return status;
}

static void assert_multiplied(multiplying *t, bool transposed)
{
    memset(t->c, 0, sizeof t->c);
    assert_int_equal(t->plan->run(t->plan, t->args, NULL), HONE_OK);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int l = 0; l < K; l++)
                sum += t->a[i * K + l] * t->b[transposed ? j * K + l : l * N + j];
            assert_true(t->c[i * N + j] == sum);
        }
}

static void row_major_products_come_out_right(void **state)
{
    multiplying *t = *state;
    assert_int_equal(bind(t, NULL), HONE_OK);
    assert_multiplied(t, false);
    assert_non_null(strstr(fake_read(&t->fake), "multiply algorithm 1 workspace 0"));
}

static void a_transposed_matrix_too(void **state)
{
    multiplying *t = *state;
    set_product(t, true);
    assert_int_equal(bind(t, NULL), HONE_OK);
    assert_multiplied(t, true);
}

// Two products, the second of which lies behind a gap; b is one for both.
static void a_batch_is_one_call_of_the_library(void **state)
{
    enum { GAP = 7 };
    multiplying *t = *state;
    float a[2 * M * K + GAP], c[2 * M * N];
    int64_t a_shape[3] = {2, M, K}, b_shape[3] = {2, K, N}, c_shape[3] = {2, M, N}, a_strides[3] = {M * K + GAP, K, 1},
            b_strides[3] = {0, N, 1};
    for (int i = 0; i < 2 * M * K + GAP; i++)
        a[i] = (float)(i % 11);
    t->tensors[0] = hone_tensor_of(a, HONE_F32, 3, a_shape);
    t->tensors[1] = hone_tensor_of(t->b, HONE_F32, 3, b_shape);
    t->tensors[2] = hone_tensor_of(c, HONE_F32, 3, c_shape);
    t->tensors[0].strides = a_strides;
    t->tensors[1].strides = b_strides;
    for (int i = 0; i < 3; i++)
        t->tensors[i].device = (hone_device){HONE_DEVICE_CUDA, 0};
    assert_int_equal(bind(t, NULL), HONE_OK);
    assert_int_equal(t->plan->run(t->plan, t->args, NULL), HONE_OK);
    assert_int_equal(fake_count(&t->fake, "multiply"), 1);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                float sum = 0;
                for (int l = 0; l < K; l++)
                    sum += a[p * a_strides[0] + i * K + l] * t->b[l * N + j];
                assert_true(c[(p * M + i) * N + j] == sum);
            }
}

static void its_algorithms_are_the_space(void **state)
{
    multiplying *t = *state;
    assert_int_equal(bind(t, "algorithm=2 workspace_mib=32"), HONE_OK);
    assert_multiplied(t, false);
    assert_non_null(strstr(fake_read(&t->fake), "multiply algorithm 3 workspace 1024"));
    // Another stream must not write into the same workspace meanwhile.
    hone_execution elsewhere = {.struct_size = sizeof elsewhere, .stream = &elsewhere};
    assert_int_equal(t->plan->run(t->plan, t->args, &elsewhere), HONE_OK);
    assert_int_equal(fake_count(&t->fake, "allocate 1024"), 1);
    lender host = {.empty = false};
    hone_execution lent = lender_execution(&host, &elsewhere);
    assert_int_equal(t->plan->run(t->plan, t->args, &lent), HONE_OK);
    assert_int_equal(host.asked, 1);
    assert_int_equal(host.out, 0);
    assert_int_equal(fake_count(&t->fake, "allocate 1024"), 1);
}

static void what_it_does_not_propose_is_refused(void **state)
{
    multiplying *t = *state;
    assert_int_not_equal(bind(t, "algorithm=2 workspace_mib=0"), HONE_OK);
    if (strstr(t->err.message, "proposes 2 algorithms") == NULL) fail_msg("%s", t->err.message);
}

static void where_it_is_missing_it_says_what_brings_it(void **state)
{
    multiplying *t = *state;
    setenv("HONE_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
    assert_int_not_equal(bind(t, NULL), HONE_OK);
    if (strstr(t->err.message, "nvidia-cublas") == NULL) fail_msg("%s", t->err.message);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(row_major_products_come_out_right),   test(a_transposed_matrix_too),
        test(a_batch_is_one_call_of_the_library),  test(its_algorithms_are_the_space),
        test(what_it_does_not_propose_is_refused), test(where_it_is_missing_it_says_what_brings_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
