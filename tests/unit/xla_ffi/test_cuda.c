// The handler of hone_call for CUDA, called as XLA calls it, on the fake driver: XLA's stream, XLA's memory.
#include "../cuda/fake.h"
#include "fake_xla.h"

#define PACK HONE_TEST_DATA "/unit/triton/data"

enum { N = 32 };

typedef struct calling {
    fake fake;
    hone_runtime *rt;
    int64_t shape[1];
    _Alignas(64) float x[N], y[N], o[N]; // the fake driver's memory is the host's
    fake_xla_frame frame;
    int64_t digest;
} calling;

static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static int setup(void **state)
{
    calling *c = calloc(1, sizeof *c);
    hone_error err;
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = "vadd(x: f32[n], y: f32[n]) -> o: f32[n]",
        .reference = reference};
    fake_choose(&c->fake, "fake_cuda.so");
    assert_int_equal(hone_runtime_open(&options, &c->rt, &err), HONE_OK);
    assert_int_equal(hone_register_algorithm(c->rt, &algorithm, &err), HONE_OK);
    if (hone_pack_load(c->rt, PACK, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_xla_use(c->rt);
    c->shape[0] = N;
    for (int i = 0; i < N; i++) {
        c->x[i] = (float)i;
        c->y[i] = 100;
    }
    *state = c;
    return 0;
}

// The runtime stays open: sites are for ever.
static int teardown(void **state)
{
    calling *c = *state;
    fake_forget(&c->fake);
    return 0;
}

static void make_frame(calling *c, const char *kernel)
{
    const hone_override chosen = {.algorithm = "vadd", .kernel = kernel};
    hone_context *context = NULL;
    hone_error err;
    if (hone_context_derive(c->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &err) != HONE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(hone_xla_add_context(context, &err), HONE_OK);
    c->digest = (int64_t)hone_context_digest(context);
    hone_context_release(&context);
    fake_xla_init(&c->frame);
    fake_xla_argument(&c->frame, XLA_FFI_F32, c->x, 1, c->shape);
    fake_xla_argument(&c->frame, XLA_FFI_F32, c->y, 1, c->shape);
    fake_xla_result(&c->frame, XLA_FFI_F32, c->o, 1, c->shape);
    fake_xla_string(&c->frame, "hone_algorithm", "vadd");
    fake_xla_scalar(&c->frame, "hone_context", XLA_FFI_S64, &c->digest);
}

static void a_call_is_launched(void **state)
{
    calling *c = *state;
    make_frame(c, "added");
    if (hone_xla_call_cuda(&c->frame.frame) != NULL) fail_msg("%s", fake_xla_message);
    for (int i = 0; i < N; i++)
        assert_true(c->o[i] == (float)(100 + i));
    assert_int_equal(fake_xla_allocations, 0); // it needs none
}

static void scratch_is_xlas(void **state)
{
    calling *c = *state;
    make_frame(c, "scratched");
    for (int run = 1; run <= 3; run++) {
        if (hone_xla_call_cuda(&c->frame.frame) != NULL) fail_msg("%s", fake_xla_message);
        assert_int_equal(fake_xla_allocations, run);
        assert_int_equal(fake_xla_lent, 0); // given back behind the launch
    }
    assert_int_equal(fake_count(&c->fake, "allocate 256"), 0);
}

static void scratch_comes_from_the_stream_if_xla_lends_none(void **state)
{
    calling *c = *state;
    make_frame(c, "scratched");
    fake_xla_memory = 0;
    if (hone_xla_call_cuda(&c->frame.frame) != NULL) fail_msg("%s", fake_xla_message);
    assert_int_equal(fake_count(&c->fake, "allocate 256"), 1);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_call_is_launched),
        test(scratch_is_xlas),
        test(scratch_comes_from_the_stream_if_xla_lends_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
