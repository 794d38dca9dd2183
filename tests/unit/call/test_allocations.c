// Each allocation in turn fails: the answer is OUT_OF_MEMORY and nothing stays allocated.
#include "calls.h"
#include "failing_allocator.h"

#define MANY                                                                                                           \
    "f(x: T[..., n ~pow2] if b else [n, n + 1], i: i32[n] ~ permutation(n), *, b: bool = true, s: str = \"a\\n\", k: " \
    "i64? = none) -> "                                                                                                 \
    "(y: T[..., n], inout z: T[n]) where T in f32, f16 where n > 0"

// The whole way of a call. Writes text and spec for comparison with an undisturbed run.
static hone_status whole_way(hone_allocator allocator, hone_error *err)
{
    hone_signature *signature = NULL, *other = NULL;
    hone_call *call = NULL, *again = NULL, *bucket = NULL;
    hone_status status = hone_signature_parse(allocator, MANY, &signature, err);
    if (status == HONE_OK) status = hone_signature_parse(allocator, MANY, &other, err);
    bool short_of_memory = false;
    if (status == HONE_OK && !hone_signature_compare(signature, other, NULL, NULL, &short_of_memory))
        status = short_of_memory ? HONE_OUT_OF_MEMORY : HONE_INVALID_ARGUMENT;
    if (status == HONE_OK)
        status = hone_call_parse(allocator, signature, "f(f32[2,7], i32[7], s=\"\\u00e4\", k=3) @cuda:1", &call, err);
    if (status == HONE_OK)
        status =
            hone_call_from_spec(allocator, signature, hone_call_spec(call), strlen(hone_call_spec(call)), &again, err);
    if (status == HONE_OK) status = hone_call_bucket(call, true, &bucket, err);
    if (status == HONE_OK) {
        int32_t room[7];
        hone_tensor tensor = *hone_call_tensor(call, 1);
        tensor.data = room;
        status = hone_generate(call, 1, &tensor, 1, err);
    }
    if (status == HONE_OK) assert_string_equal(hone_call_key(call), hone_call_key(again));
    hone_call_release(&bucket);
    hone_call_release(&again);
    hone_call_release(&call);
    hone_signature_release(&other);
    hone_signature_release(&signature);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    failing_allocator counter;
    hone_status status = HONE_OUT_OF_MEMORY;
    int allowed = 0;
    for (; status != HONE_OK; allowed++) {
        hone_error err = {0};
        status = whole_way(failing_allocator_of(&counter, allowed), &err);
        if (status != HONE_OK && status != HONE_OUT_OF_MEMORY)
            fail_msg("after %d allocations: %s", allowed, err.message);
        assert_int_equal(atomic_load(&counter.live), 0);
        assert_true(allowed < 1000);
    }
    assert_true(allowed > 10);
}

static void a_zeroed_allocator_is_the_systems(void **state)
{
    (void)state;
    const hone_allocator zero = {0};
    hone_error err;
    hone_signature *signature = NULL;
    hone_call *call = NULL, *again = NULL;
    assert_int_equal(hone_signature_parse(zero, "f(x: f32[n]) -> y: f32[n]", &signature, &err), HONE_OK);
    assert_int_equal(hone_call_parse(zero, signature, "f(f32[4])", &call, &err), HONE_OK);
    const char *spec = hone_call_spec(call);
    assert_int_equal(hone_call_from_spec(zero, signature, spec, strlen(spec), &again, &err), HONE_OK);
    hone_call_release(&again);
    assert_int_equal(hone_call_bind(zero, signature, hone_call_values(call), 1, true, &again, &err), HONE_OK);
    assert_string_equal(hone_call_key(again), hone_call_key(call));
    hone_call_release(&again);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_allocator_is_the_systems), cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
