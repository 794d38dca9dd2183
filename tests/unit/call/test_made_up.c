// A call with smaller dims, for which a kernel is verified in a large one's place.
#include "call/made_up.h"
#include "calls.h"

static bool takes_all(void *ctx, const hone_call *call)
{
    (void)ctx;
    (void)call;
    return true;
}

// A kernel of blocks of 64 columns.
static bool takes_blocks(void *ctx, const hone_call *call)
{
    int64_t n = 0;
    (void)ctx;
    return hone_call_dim(call, "n", &n) == HONE_OK && n % 64 == 0;
}

static bool takes_none(void *ctx, const hone_call *call)
{
    (void)ctx;
    (void)call;
    return false;
}

typedef bool taker(void *ctx, const hone_call *call);

static void assert_smaller(
    const char *source, const char *large, int64_t most_bytes, taker *takes, const char *expected)
{
    hone_signature *signature = signature_of(source);
    hone_call *call = NULL, *smaller = NULL;
    hone_error err;
    if (hone_call_parse(hone_allocator_system(), signature, large, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hone_made_up_smaller(hone_allocator_system(), call, most_bytes, takes, NULL, &smaller), HONE_OK);
    if (expected == NULL)
        assert_null(smaller);
    else {
        assert_non_null(smaller);
        assert_string_equal(hone_call_text(smaller), expected);
    }
    hone_call_release(&smaller);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

#define NORM "norm(x: T[..., d], weight: T[d], *, eps: f64 = 1e-5) -> y: T[..., d] where T in f32, bf16"
#define ATTENTION                                                                                                      \
    "attention(q: f32[b, n, h, d], k: f32[b, n, g, d], bias: f32[n]?) -> y: f32[b, n, h, d] where h % g == 0"

static void the_largest_dim_is_halved_until_all_is_small(void **state)
{
    (void)state;
    assert_smaller(
        NORM, "norm(bf16[16384,1024], bf16[1024], eps=0.5)", 1 << 20, takes_all,
        "norm(bf16[256,512], bf16[512], eps=0.5)");
    assert_smaller(NORM, "norm(f32[2,4,6,5,256], f32[256])", 1 << 12, takes_all, NULL); // "..." stands for too many
    assert_smaller(NORM, "norm(f32[7,300], f32[300])", 1 << 12, takes_all, "norm(f32[7,38], f32[38])");
}

static void what_a_kernel_or_the_signature_needs_stays(void **state)
{
    (void)state;
    assert_smaller(
        MATMUL, "matmul(f32[512,512], f32[512,512])", 1 << 16, takes_blocks, "matmul(f32[64,64], f32[64,64])");
    assert_smaller(MATMUL, "matmul(f32[512,512], f32[512,512])", 1 << 16, takes_none, NULL);
    assert_smaller(
        ATTENTION, "attention(f32[1,8,12,8], f32[1,8,4,8], none)", 1 << 11, takes_all,
        "attention(f32[1,4,12,4], f32[1,4,4,4])");
}

static void alignment_and_what_is_left_out_stay(void **state)
{
    (void)state;
    assert_smaller(
        ATTENTION, "attention(f32[1,64,4,8]{align=8}, f32[1,64,4,8], f32[64])", 1 << 12, takes_all,
        "attention(f32[1,8,4,8]{align=8}, f32[1,8,4,8], f32[8])");
}

// A kernel of 64 columns at least.
static bool takes_wide(void *ctx, const hone_call *call)
{
    int64_t n = 0;
    (void)ctx;
    return hone_call_dim(call, "n", &n) == HONE_OK && n >= 64;
}

static void assert_double(
    const char *small, const char *other_text, int64_t most_bytes, taker *takes, const char *expected)
{
    hone_signature *signature = signature_of(MATMUL);
    hone_call *call = NULL, *other = NULL, *larger = NULL;
    hone_error err;
    if (hone_call_parse(hone_allocator_system(), signature, small, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    if (other_text != NULL && hone_call_parse(hone_allocator_system(), signature, other_text, &other, &err) != HONE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(
        hone_made_up_double(hone_allocator_system(), call, other, most_bytes, takes, NULL, &larger), HONE_OK);
    if (expected == NULL)
        assert_null(larger);
    else {
        assert_non_null(larger);
        assert_string_equal(hone_call_text(larger), expected);
    }
    hone_call_release(&larger);
    hone_call_release(&other);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void every_dim_is_doubled_that_may_be(void **state)
{
    (void)state;
    assert_double("matmul(f32[16,8], f32[8,64])", NULL, 1 << 20, takes_wide, "matmul(f32[32,16], f32[16,128])");
    assert_double("matmul(f32[1,8], f32[8,64])", NULL, 1 << 20, takes_wide, "matmul(f32[1,16], f32[16,128])");
    assert_double("matmul(f32[16,8], f32[8,32])", NULL, 1 << 20, takes_none, NULL);
}

static void dims_are_doubled_that_another_call_has(void **state)
{
    (void)state;
    assert_double(
        "matmul(f32[16,8], f32[8,64])", "matmul(f32[8,4], f32[4,64])", 1 << 20, takes_wide,
        "matmul(f32[16,8], f32[8,128])");
    assert_double("matmul(f32[16,8], f32[8,64])", "matmul(f32[8,4], f32[4,32])", 1 << 20, takes_wide, NULL);
}

static void a_dim_that_would_take_too_much_stays(void **state)
{
    (void)state;
    // 32 rows take 1,024 + 2,048 + 8,192 bytes; 16 columns more of a would take 2,048 + 4,096 + 8,192.
    assert_double("matmul(f32[16,8], f32[8,64])", NULL, 12000, takes_all, "matmul(f32[32,8], f32[8,64])");
    assert_double("matmul(f32[16,8], f32[8,64])", NULL, 1000, takes_all, NULL);
}

static void assert_siblings(const char *source, const char *text, taker *takes, const char *const expected[])
{
    hone_signature *signature = signature_of(source);
    hone_call *call = NULL;
    hone_error err;
    if (hone_call_parse(hone_allocator_system(), signature, text, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    for (uint32_t i = 0;; i++) {
        hone_call *sibling = NULL;
        assert_int_equal(hone_made_up_sibling(hone_allocator_system(), call, i, takes, NULL, &sibling), HONE_OK);
        if (expected[i] == NULL) {
            assert_null(sibling);
            break;
        }
        assert_non_null(sibling);
        assert_string_equal(hone_call_text(sibling), expected[i]);
        hone_call_release(&sibling);
    }
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void siblings_have_the_same_sizes_and_another_switch_or_dtype(void **state)
{
    (void)state;
    static const char matmul[] =
        "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> "
        "c: T[m, n] where T in f32, bf16";
    assert_siblings(
        matmul, "matmul(f32[8,16], f32[16,128])", takes_all,
        (const char *const[]){
            "matmul(f32[8,16], f32[128,16], transpose_b=true)",
            "matmul(f32[8,16]{strides=32,1}, f32[16,128]{strides=144,1})", "matmul(bf16[8,16], bf16[16,128])", NULL});
    assert_siblings(
        matmul, "matmul(bf16[8,16], bf16[128,16], transpose_b=true)", takes_all,
        (const char *const[]){
            "matmul(bf16[8,16], bf16[16,128])",
            "matmul(bf16[8,16]{strides=32,1}, bf16[128,16]{strides=32,1}, transpose_b=true)",
            "matmul(f32[8,16], f32[128,16], transpose_b=true)", NULL});
    assert_siblings(matmul, "matmul(f32[8,16], f32[16,128])", takes_none, (const char *const[]){NULL});
    assert_siblings(
        "attend(q: f32[n, d], *, window: i64? = none, causal: bool = false) -> y: f32[n, d]", "attend(f32[4,8])",
        takes_all,
        (const char *const[]){
            "attend(f32[4,8], window=3)", "attend(f32[4,8], causal=true)", "attend(f32[4,8]{strides=24,1})", NULL});
    // An optional tensor is there or not, where its dims are known, and so are optional numbers; nobody knows another text.
    static const char blend[] = "blend(x: f32[n], bias: f32[n]? = none, table: f32[m]? = none, *, cap: f64? = none, "
                                "activation: str? = none) -> y: f32[n]";
    assert_siblings(
        blend, "blend(f32[4])", takes_all,
        (const char *const[]){"blend(f32[4], cap=0.75)", "blend(f32[4], f32[4])", NULL});
    assert_siblings(
        blend, "blend(f32[4], f32[4], f32[9], cap=3.0, activation=\"relu\")", takes_all,
        (const char *const[]){
            "blend(f32[4], f32[4], f32[9], activation=\"relu\")", "blend(f32[4], f32[4], f32[9], cap=3.0)",
            "blend(f32[4], table=f32[9], cap=3.0, activation=\"relu\")",
            "blend(f32[4], f32[4], cap=3.0, activation=\"relu\")", NULL});
}

static void assert_rearranged(
    const char *source, const char *text, int64_t most_bytes, taker *takes, const char *const expected[])
{
    hone_signature *signature = signature_of(source);
    hone_call *call = NULL;
    hone_error err;
    if (hone_call_parse(hone_allocator_system(), signature, text, &call, &err) != HONE_OK) fail_msg("%s", err.message);
    for (uint32_t i = 0;; i++) {
        hone_call *other = NULL;
        const hone_status status =
            hone_made_up_rearranged(hone_allocator_system(), call, i, most_bytes, takes, NULL, &other);
        assert_int_equal(status, HONE_OK);
        if (expected[i] == NULL) {
            assert_null(other);
            break;
        }
        assert_non_null(other);
        assert_string_equal(hone_call_text(other), expected[i]);
        hone_call_release(&other);
    }
    hone_call_release(&call);
    hone_signature_release(&signature);
}

static void rearranged_calls_have_two_dims_of_the_same_product(void **state)
{
    (void)state;
    static const char norm[] = "norm(x: f32[..., dim], weight: f32[dim]) -> y: f32[..., dim]";
    static const char product[] = "product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n]";
    const char *const of_norm[] = {
        "norm(f32[64,16], f32[16])", "norm(f32[8,128], f32[128])", "norm(f32[32,32], f32[32])", NULL};
    assert_rearranged(norm, "norm(f32[16,64], f32[64])", INT64_MAX, takes_all, of_norm);
    assert_rearranged(norm, "norm(f32[16,64], f32[64])", 0, takes_all, (const char *const[]){NULL});
    assert_rearranged(norm, "norm(f32[16,64], f32[64])", INT64_MAX, takes_none, (const char *const[]){NULL});
    // Two equal dims are not swapped, and an odd one is not halved.
    assert_rearranged(
        norm, "norm(f32[8,8], f32[8])", INT64_MAX, takes_all,
        (const char *const[]){"norm(f32[4,16], f32[16])", "norm(f32[16,4], f32[4])", NULL});
    assert_rearranged(
        norm, "norm(f32[3,5], f32[5])", INT64_MAX, takes_all, (const char *const[]){"norm(f32[5,3], f32[3])", NULL});
    assert_rearranged(
        product, "product(f32[1,3], f32[3,5])", INT64_MAX, takes_all,
        (const char *const[]){
            "product(f32[3,1], f32[1,5])", "product(f32[5,3], f32[3,1])", "product(f32[1,5], f32[5,3])", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_dim_is_halved_until_all_is_small),
        cmocka_unit_test(what_a_kernel_or_the_signature_needs_stays),
        cmocka_unit_test(alignment_and_what_is_left_out_stay),
        cmocka_unit_test(siblings_have_the_same_sizes_and_another_switch_or_dtype),
        cmocka_unit_test(rearranged_calls_have_two_dims_of_the_same_product),
        cmocka_unit_test(every_dim_is_doubled_that_may_be),
        cmocka_unit_test(dims_are_doubled_that_another_call_has),
        cmocka_unit_test(a_dim_that_would_take_too_much_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
