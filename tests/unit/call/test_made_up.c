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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_dim_is_halved_until_all_is_small),
        cmocka_unit_test(what_a_kernel_or_the_signature_needs_stays),
        cmocka_unit_test(alignment_and_what_is_left_out_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
