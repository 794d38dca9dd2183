// A pack of what Triton 3.9 has compiled, data/pack.json, on the fake driver: what reaches it, and what is refused
// before.
#include "../cuda/fake.h"
#include "../cuda/lender.h"

#define PACK HONE_TEST_DATA "/unit/triton/data"

enum { N = 32 };

typedef struct launching {
    fake fake;
    hone_runtime *rt;
    const hone_op *op;
    int64_t shape[1];
    _Alignas(64) float x[N + 4], y[N], o[N];
    hone_tensor tensors[3];
    hone_value args[3];
    const hone_plan *plan;
    hone_error err;
} launching;

static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static void set_tensors(launching *l, int64_t n, float *x)
{
    float *const data[] = {x, l->y, l->o};
    l->shape[0] = n;
    for (int i = 0; i < 3; i++) {
        l->tensors[i] = hone_tensor_of(data[i], HONE_F32, 1, l->shape);
        l->tensors[i].device = (hone_device){HONE_DEVICE_CUDA, 0}; // whose memory is the host's here
        l->args[i] = hone_of_tensor(&l->tensors[i]);
    }
}

static int setup(void **state)
{
    launching *l = calloc(1, sizeof *l);
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = "vadd(x: f32[n], y: f32[n]) -> o: f32[n]",
        .reference = reference};
    fake_choose(&l->fake, "fake_cuda.so");
    assert_int_equal(hone_runtime_open(&options, &l->rt, &l->err), HONE_OK);
    assert_int_equal(hone_register_algorithm(l->rt, &algorithm, &l->err), HONE_OK);
    if (hone_pack_load(l->rt, PACK, &l->err) != HONE_OK) fail_msg("%s", l->err.message);
    l->op = hone_op_find(l->rt, "vadd", &l->err);
    for (int i = 0; i < N; i++) {
        l->x[i] = (float)i;
        l->y[i] = 100;
    }
    set_tensors(l, N, l->x);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    launching *l = *state;
    hone_plan_release(&l->plan);
    hone_runtime_close(&l->rt);
    fake_forget(&l->fake);
    free(l);
    return 0;
}

static hone_status bind(launching *l, const char *kernel)
{
    const hone_override chosen = {.algorithm = "vadd", .kernel = kernel};
    hone_context *context = NULL;
    hone_plan_release(&l->plan);
    hone_status status = hone_context_derive(l->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &l->err);
    if (status != HONE_OK) return status;
    hone_context_enter(context);
    status = hone_bind(l->op, l->args, 3, &l->plan, &l->err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    return status;
}

static void assert_refused(launching *l, const char *kernel, const char *words)
{
    assert_int_not_equal(bind(l, kernel), HONE_OK);
    if (strstr(l->err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, l->err.message);
}

static void put_bytes(char *out, const void *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sprintf(out + 2 * i, "%02x", ((const unsigned char *)value)[i]);
}

static void a_launch_is_tritons_byte_for_byte(void **state)
{
    launching *l = *state;
    char addresses[3][17], wanted[256];
    if (bind(l, "added") != HONE_OK) fail_msg("%s", l->err.message);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    const void *const data[] = {l->x, l->y, l->o};
    for (int i = 0; i < 3; i++)
        put_bytes(addresses[i], &data[i], sizeof data[i]);
    snprintf(
        wanted, sizeof wanted,
        "launch vadd grid 1,1,1 block 64,1,1 shared 0 arguments %s %s %s 20000000 0000000000000000 0000000000000000\n",
        addresses[0], addresses[1], addresses[2]);
    if (strstr(fake_read(&l->fake), wanted) == NULL) fail_msg("'%s' is not in: %s", wanted, l->fake.text);
    for (int i = 0; i < N; i++)
        assert_true(l->o[i] == (float)(100 + i));
}

static void scratch_comes_from_the_stream_and_programs_are_clusters(void **state)
{
    launching *l = *state;
    if (bind(l, "scratched") != HONE_OK) fail_msg("%s", l->err.message);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    const char *log = fake_read(&l->fake);
    assert_non_null(strstr(log, "allocate 256\n")); // of two blocks
    assert_non_null(strstr(log, "grid 2,1,1 block 64,1,1 shared 0 cluster 2,1,1 attribute 6=1 arguments"));
}

// The host's memory is taken where it lends some that is aligned as the driver's, and given back behind the launch.
static void scratch_is_the_hosts_where_it_lends_some(void **state)
{
    launching *l = *state;
    lender host = {.empty = false};
    hone_execution execution = lender_execution(&host, NULL), older = execution;
    char address[17], wanted[64];
    const void *memory = host.memory;
    if (bind(l, "scratched") != HONE_OK) fail_msg("%s", l->err.message);
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    assert_int_equal(host.asked, 1);
    assert_int_equal(host.out, 0);
    put_bytes(address, &memory, sizeof memory);
    snprintf(wanted, sizeof wanted, " %s 0000000000000000\n", address);
    if (strstr(fake_read(&l->fake), wanted) == NULL) fail_msg("'%s' is not in: %s", wanted, l->fake.text);
    assert_int_equal(fake_count(&l->fake, "allocate 256"), 0);
    host.empty = true;
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    host.empty = false;
    host.askew = true;
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    assert_int_equal(host.asked, 3);
    older.struct_size = offsetof(hone_execution, take);
    assert_int_equal(l->plan->run(l->plan, l->args, &older), HONE_OK);
    assert_int_equal(host.asked, 3);
    assert_int_equal(host.out, 0);
    assert_int_equal(fake_count(&l->fake, "allocate 256"), 3);
}

// As Triton 3.9's launcher passes a descriptor: the map, its size, its stride.
static void a_descriptor_is_a_map_with_its_size_and_stride(void **state)
{
    launching *l = *state;
    char address[17], wanted[400];
    const void *x = l->x;
    if (bind(l, "described") != HONE_OK) fail_msg("%s", l->err.message);
    (void)l->plan->run(l->plan, l->args, NULL); // the fake computes nothing of that name
    uint64_t swapped = __builtin_bswap64((uint64_t)(uintptr_t)x);
    snprintf(address, sizeof address, "%016llx", (unsigned long long)swapped);
    snprintf(
        wanted, sizeof wanted,
        "launch vadd_described grid 2,1,1 block 32,1,1 shared 72 arguments %s%0240d 20000000 %s ", address, 0,
        "0100000000000000");
    if (strstr(fake_read(&l->fake), wanted) == NULL) fail_msg("'%s' is not in: %s", wanted, l->fake.text);
    assert_non_null(strstr(l->fake.text, "map type 7 rank 1 size 32 box 16 rows 1 of 0 box 1 swizzle 0 promotion 3\n"));
    assert_refused(
        l, "other_box", "a map with another box or swizzle than the binary's descriptor 0: 1 dims, the last of 16");
}

static void assumptions_of_compiled_code_are_checked(void **state)
{
    launching *l = *state;
    set_tensors(l, 17, l->x);
    assert_refused(l, "added", "compiled for multiples of 16");
    set_tensors(l, N, l->x + 1);
    assert_refused(l, "added", "x is aligned to 4 bytes");
}

typedef struct wanted {
    const char *kernel, *words;
    int found;
} wanted;

static bool look_for(void *ctx, const hone_pack_entry *entry)
{
    wanted *w = ctx;
    if (strcmp(entry->kernel, w->kernel) != 0) return true;
    if (entry->reason == NULL || strstr(entry->reason, w->words) == NULL)
        fail_msg("'%s' is not in: %s", w->words, entry->reason != NULL ? entry->reason : "no reason");
    w->found++;
    return true;
}

static void a_list_or_metadata_that_do_not_fit_the_binary_are_refused_with_the_reason(void **state)
{
    launching *l = *state;
    wanted all[] = {
        {"few", "the binary takes 6 parameters, and 5 are listed", 0},
        {"undescribed", "the binary takes 1 tensor descriptors from the host, and 0 are listed", 0},
        {"other_chip", "the binary is for sm_90, its metadata says sm_80", 0},
        {"other_name", "no function vsub; it has vadd", 0},
        {"no_facts", "'name'", 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(hone_pack_list(l->rt, look_for, &all[i], &l->err), HONE_OK);
        assert_int_equal(all[i].found, 1);
    }
}

static void another_chip_is_reported(void **state)
{
    launching *l = *state;
    // The driver is opened at the first call, and asked then.
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    assert_refused(l, "added", "is for sm_90a, Fake GPU is sm_80");
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_launch_is_tritons_byte_for_byte),
        test(scratch_comes_from_the_stream_and_programs_are_clusters),
        test(scratch_is_the_hosts_where_it_lends_some),
        test(a_descriptor_is_a_map_with_its_size_and_stride),
        test(assumptions_of_compiled_code_are_checked),
        test(a_list_or_metadata_that_do_not_fit_the_binary_are_refused_with_the_reason),
        test(another_chip_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
