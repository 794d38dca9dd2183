// cuBLASLt as a kernel of matmul and scaled_matmul, on a fake one: what it is asked, and what happens where it is not there.
#include "fake.h"
#include "lender.h"

enum { M = 3, N = 4, K = 5 };

typedef struct multiplying {
    fake fake;
    hone_runtime *rt;
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
static hone_status bind_call(
    multiplying *t, const char *algorithm, const hone_value *args, size_t count, const char *config)
{
    const hone_override chosen = {.algorithm = algorithm, .kernel = "cublaslt", .config = config};
    const hone_op *op = hone_op_find(t->rt, algorithm, &t->err);
    hone_context *context = NULL;
    hone_plan_release(&t->plan);
    assert_int_equal(hone_context_derive(t->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &t->err), HONE_OK);
    hone_context_enter(context);
    hone_status status = hone_bind(op, args, count, &t->plan, &t->err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    return status;
}

static hone_status bind(multiplying *t, const char *config)
{
    return bind_call(t, "matmul", t->args, 4, config);
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

static void an_algorithm_that_is_not_proposed_is_refused(void **state)
{
    multiplying *t = *state;
    assert_int_not_equal(bind(t, "algorithm=2 workspace_mib=0"), HONE_OK);
    if (strstr(t->err.message, "proposes 2 algorithms") == NULL) fail_msg("%s", t->err.message);
}

static void a_missing_library_is_reported_with_its_package(void **state)
{
    multiplying *t = *state;
    setenv("HONE_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
    assert_int_not_equal(bind(t, NULL), HONE_OK);
    if (strstr(t->err.message, "nvidia-cublas") == NULL) fail_msg("%s", t->err.message);
}

enum { ROWS = 3, COLUMNS = 16, TERMS = 32, SCALED_ARGS = 7 };

// 8 bit floats: a value from 0 to 15 eighths with a sign, which has 4 bits, is exact.
typedef struct scaling {
    _Alignas(16) uint8_t a[ROWS * TERMS];
    _Alignas(16) uint8_t b[COLUMNS * TERMS];
    _Alignas(16) float a_scale[ROWS];
    _Alignas(16) float b_scale[COLUMNS];
    _Alignas(16) uint16_t bias[COLUMNS];
    _Alignas(16) uint16_t c[ROWS * COLUMNS];
    int64_t shapes[SCALED_ARGS - 1][2], strides[2][1];
    hone_tensor tensors[SCALED_ARGS - 1];
    hone_value args[SCALED_ARGS];
} scaling;

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float byte_value(uint8_t bits)
{
    const float size = (float)(8 + (bits & 7)) * (float)(1 << (bits >> 3 & 15)) / 1024;
    return (bits & 0x80) != 0 ? -size : size;
}

static void set_scaled(scaling *s)
{
    const struct {
        void *data;
        hone_dtype_id dtype;
        int32_t rank;
        int64_t shape[2];
    } arrays[] = {
        {s->a, HONE_F8_E4M3FN, 2, {ROWS, TERMS}}, {s->b, HONE_F8_E4M3FN, 2, {COLUMNS, TERMS}},
        {s->a_scale, HONE_F32, 1, {ROWS}},        {s->b_scale, HONE_F32, 1, {COLUMNS}},
        {s->bias, HONE_BF16, 1, {COLUMNS}},       {s->c, HONE_BF16, 2, {ROWS, COLUMNS}},
    };
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ROWS * TERMS; i++)
        s->a[i] = (uint8_t)(0x30 + i % 16 + (i % 3 == 0 ? 0x80 : 0));
    for (int i = 0; i < COLUMNS * TERMS; i++)
        s->b[i] = (uint8_t)(0x30 + i % 13 + (i % 5 == 0 ? 0x80 : 0));
    for (int i = 0; i < ROWS; i++)
        s->a_scale[i] = 1.0f / (float)(1 << i);
    for (int i = 0; i < COLUMNS; i++) {
        s->b_scale[i] = (float)(1 + i);
        s->bias[i] = narrow((float)(i - 8));
    }
    for (int i = 0; i < SCALED_ARGS - 1; i++) {
        memcpy(s->shapes[i], arrays[i].shape, sizeof s->shapes[i]);
        s->tensors[i] = hone_tensor_of(arrays[i].data, arrays[i].dtype, arrays[i].rank, s->shapes[i]);
        s->tensors[i].device = (hone_device){HONE_DEVICE_CUDA, 0};
        s->args[i] = hone_of_tensor(&s->tensors[i]);
    }
    s->args[SCALED_ARGS - 1] = hone_of_bool(true);
}

static void assert_scaled(multiplying *t, scaling *s)
{
    const int64_t by_row = s->tensors[2].strides != NULL ? 0 : 1, by_column = s->tensors[3].strides != NULL ? 0 : 1;
    assert_int_equal(bind_call(t, "scaled_matmul", s->args, SCALED_ARGS, NULL), HONE_OK);
    assert_int_equal(t->plan->run(t->plan, s->args, NULL), HONE_OK);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            float sum = 0;
            for (int l = 0; l < TERMS; l++)
                sum += byte_value(s->a[i * TERMS + l]) * byte_value(s->b[j * TERMS + l]);
            assert_int_equal(
                s->c[i * COLUMNS + j],
                narrow(sum * s->a_scale[i * by_row] * s->b_scale[j * by_column] + (float)(j - 8)));
        }
}

static void bytes_have_a_scale_for_each_row_and_column(void **state)
{
    scaling s;
    set_scaled(&s);
    assert_scaled(*state, &s);
}

static void bytes_have_one_scale_for_each_matrix(void **state)
{
    scaling s;
    set_scaled(&s);
    s.tensors[2].strides = s.strides[0];
    s.tensors[3].strides = s.strides[1];
    s.a_scale[0] = 0.5f;
    s.b_scale[0] = 3;
    assert_scaled(*state, &s);
}

static void refuses(multiplying *t, scaling *s, const char *words)
{
    assert_int_not_equal(bind_call(t, "scaled_matmul", s->args, SCALED_ARGS, NULL), HONE_OK);
    if (strstr(t->err.message, words) == NULL) fail_msg("%s", t->err.message);
}

static void other_products_of_bytes_are_refused(void **state)
{
    scaling s;
    set_scaled(&s);
    s.tensors[2].strides = s.strides[0];
    refuses(*state, &s, "or one scale for all of a and one for b");
    set_scaled(&s);
    s.shapes[0][1] = s.shapes[1][1] = TERMS - 8;
    refuses(*state, &s, "multiples of 16");
    set_scaled(&s);
    s.shapes[1][0] = TERMS;
    s.shapes[1][1] = COLUMNS;
    s.args[SCALED_ARGS - 1] = hone_of_bool(false);
    refuses(*state, &s, "transpose_b=true");
    set_scaled(&s);
    s.shapes[0][0] = ROWS - 1;
    s.shapes[2][0] = ROWS - 1;
    s.shapes[5][0] = ROWS - 1;
    s.tensors[5].byte_offset = 2;
    refuses(*state, &s, "multiples of 16 bytes");
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(row_major_products_come_out_right),
        test(a_transposed_matrix_too),
        test(a_batch_is_one_call_of_the_library),
        test(its_algorithms_are_the_space),
        test(an_algorithm_that_is_not_proposed_is_refused),
        test(a_missing_library_is_reported_with_its_package),
        test(bytes_have_a_scale_for_each_row_and_column),
        test(bytes_have_one_scale_for_each_matrix),
        test(other_products_of_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
