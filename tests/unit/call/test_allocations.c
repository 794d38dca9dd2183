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
        status = hone_generate(call, 1, &tensor, 1, 1, NULL, err);
    }
    if (status == HONE_OK) assert_string_equal(hone_call_key(call), hone_call_key(again));
    hone_call_release(&bucket);
    hone_call_release(&again);
    hone_call_release(&call);
    hone_signature_release(&other);
    hone_signature_release(&signature);
    return status;
}

// All allocations fail from some on, or one alone does.
static void go_in_short_memory(bool once)
{
    failing_allocator counter;
    hone_status status = HONE_OUT_OF_MEMORY;
    int allowed = 0;
    for (; status != HONE_OK; allowed++) {
        hone_error err = {0};
        const hone_allocator allocator = failing_allocator_of(&counter, allowed);
        counter.once = once;
        status = whole_way(allocator, &err);
        if (status != HONE_OK && status != HONE_OUT_OF_MEMORY)
            fail_msg("after %d allocations: %s", allowed, err.message);
        assert_int_equal(atomic_load(&counter.live), 0);
        assert_true(allowed < 1000);
    }
    assert_true(allowed > 10);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    go_in_short_memory(false);
}

static void any_one_allocation_may_fail(void **state)
{
    (void)state;
    go_in_short_memory(true);
}

// So many parameters, dims and clauses that each list takes memory of its own.
static void a_large_signature_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    enum { PARAMETERS = 60, CLAUSES = 30 };
    char text[4096] = "f(";
    for (int i = 0; i < PARAMETERS; i++)
        snprintf(text + strlen(text), 64, "%sx%d: T%d[n%d, m%d]", i > 0 ? ", " : "", i, i % 8, i, i);
    strcat(text, ") -> y: f32[n0]");
    for (int i = 0; i < CLAUSES; i++)
        snprintf(text + strlen(text), 64, " where n%d > m%d", i, i);
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long allowed = 0; status != HONE_OK; allowed++) {
        failing_allocator counter;
        const hone_allocator allocator = failing_allocator_of(&counter, allowed);
        counter.once = true;
        hone_signature *signature = NULL;
        hone_error err = {0};
        status = hone_signature_parse(allocator, text, &signature, &err);
        if (status != HONE_OK) assert_int_equal(status, HONE_OUT_OF_MEMORY);
        if (status == HONE_OK) assert_int_equal(hone_signature_count(signature), PARAMETERS + 1);
        if (status == HONE_OK) assert_string_equal(hone_signature_text(signature), text);
        hone_signature_release(&signature);
        assert_int_equal(counter.live, 0);
        assert_true(allowed < 1000);
    }
}

// A type so long that its words outgrow what was there, for either side of a comparison.
static void a_comparison_without_memory_for_its_words_says_so(void **state)
{
    (void)state;
    enum { TERMS = 300 };
    char dim[8 * TERMS] = "n", text[8 * TERMS + 64];
    for (int i = 0; i < TERMS; i++)
        strcat(dim, " + n");
    snprintf(text, sizeof text, "f(x: f32[n], w: f32[%s]) -> y: f32[n]", dim);
    const char *const texts[][2] = {{text, text}, {text, "f(x: f32[n], w: f32[n + 1]) -> y: f32[n]"}};
    for (int way = 0; way < 4; way++) {
        bool short_of_memory = true;
        for (long long allowed = 0; short_of_memory; allowed++) {
            failing_allocator counter;
            const hone_allocator allocator = failing_allocator_of(&counter, -1);
            hone_signature *first = NULL, *second = signature_of(texts[way / 2][1 - way % 2]);
            hone_error err = {0};
            assert_int_equal(hone_signature_parse(allocator, texts[way / 2][way % 2], &first, &err), HONE_OK);
            counter.once = true;
            counter.left = allowed;
            const bool same = hone_signature_compare(first, second, NULL, NULL, &short_of_memory);
            if (counter.left >= 0) assert_false(short_of_memory); // there was enough
            if (counter.left < 0) assert_true(short_of_memory);
            assert_int_equal(same, !short_of_memory && way / 2 == 0);
            hone_signature_release(&first);
            hone_signature_release(&second);
            assert_int_equal(counter.live, 0);
            assert_true(allowed < 1000);
        }
    }
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
        cmocka_unit_test(a_zeroed_allocator_is_the_systems), cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(any_one_allocation_may_fail), cmocka_unit_test(a_large_signature_is_read_whole_or_not_at_all),
        cmocka_unit_test(a_comparison_without_memory_for_its_words_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
