// How calls fall apart, and that a reference computed in parts is the reference computed whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tune/worker/partition.h"

#include <string.h>

typedef struct bound {
    hone_signature *signature;
    hone_call *call;
} bound;

static bound bind(const char *signature, const char *text)
{
    bound b = {NULL, NULL};
    hone_error err;
    assert_int_equal(hone_signature_parse(hone_allocator_system(), signature, &b.signature, &err), HONE_OK);
    hone_status status = hone_call_parse(hone_allocator_system(), b.signature, text, &b.call, &err);
    if (status != HONE_OK) print_message("%s\n", err.message);
    assert_int_equal(status, HONE_OK);
    return b;
}

static void release(bound *b)
{
    hone_call_release(&b->call);
    hone_signature_release(&b->signature);
}

static const char matmul[] = "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) "
                             "-> c: T[m, n] where T in f32";
static const char attention[] =
    "attention(query: T[batch, q, heads, dim], key: T[batch, kv, kv_heads, dim]) -> out: T[batch, q, "
    "heads, dim] where heads % kv_heads == 0";

static hone_parting parting_of(const char *signature, const char *text, const char *independent)
{
    hone_parting parting;
    bound b = bind(signature, text);
    hone_parting_find(independent, b.call, &parting);
    release(&b);
    return parting;
}

static void rows_of_a_product_are_cut(void **state)
{
    (void)state;
    hone_parting parting = parting_of(matmul, "matmul(f32[6,4], f32[4,5])", "m");
    assert_int_equal(parting.count, 6);
    assert_int_equal(parting.group[0].axes, 2); // a and c
}

static void heads_are_cut_with_the_key_heads_they_share(void **state)
{
    (void)state;
    hone_parting parting = parting_of(attention, "attention(f32[2,7,8,4], f32[2,9,2,4])", "batch heads:kv_heads");
    assert_int_equal(parting.groups, 2);
    assert_int_equal(parting.count, 4);
    for (uint32_t i = 0; i < parting.group[1].axes; i++)
        assert_int_equal(parting.group[1].axis[i].size, parting.group[1].axis[i].value == 1 ? 1 : 4);
}

static void neighbouring_parts_are_put_together_until_there_are_few(void **state)
{
    (void)state;
    hone_parting parting = parting_of(matmul, "matmul(f32[12,4], f32[4,5])", "m");
    hone_parting_coarsen(&parting, 8);
    assert_int_equal(parting.count, 6); // the largest divisor of 12
    assert_int_equal(parting.group[0].axis[0].size, 2);
    parting = parting_of(matmul, "matmul(f32[7,4], f32[4,5])", "m");
    hone_parting_coarsen(&parting, 6);
    assert_int_equal(parting.count, 1);
    parting = parting_of(attention, "attention(f32[4,7,8,4], f32[4,9,2,4])", "batch heads:kv_heads");
    hone_parting_coarsen(&parting, 5);
    assert_int_equal(parting.count, 4);
    assert_int_equal(parting.group[1].count, 1);
}

static void leading_dims_are_cut_along_the_largest(void **state)
{
    (void)state;
    hone_parting parting =
        parting_of("norm(x: f32[..., d], w: f32[d]) -> y: f32[..., d]", "norm(f32[2,5,3], f32[3])", "...");
    assert_int_equal(parting.count, 5);
    assert_int_equal(parting.group[0].axis[0].axis, 1);
}

static const char batched[] = "matmul(a: T[..., m, k], b: T[..., n, k] if transpose_b else [..., k, n], *, "
                              "transpose_b: bool = false) -> c: T[..., m, n] where T in f32";

// Also where a shape has two forms, if "..." stands in both; one that has none is as it was.
static void a_batch_is_cut_along_its_largest_axis_and_its_rows(void **state)
{
    (void)state;
    hone_parting parting = parting_of(batched, "matmul(f32[2,5,6,4], f32[2,5,4,3])", "... m");
    assert_int_equal(parting.groups, 2);
    assert_int_equal(parting.count, 5 * 6);
    assert_int_equal(parting.group[0].axes, 3);
    parting = parting_of(batched, "matmul(f32[2,5,6,4], f32[2,5,3,4], transpose_b=true)", "... m");
    assert_int_equal(parting.count, 5 * 6);
    assert_int_equal(parting_of(batched, "matmul(f32[6,4], f32[4,5])", "... m").count, 6);
    assert_int_equal(
        parting_of("half(x: f32[..., n] if a else [n], *, a: bool = true) -> y: f32[..., n]", "half(f32[4,3])", "...")
            .count,
        1);
}

static void what_cannot_be_cut_stays_whole(void **state)
{
    (void)state;
    assert_int_equal(parting_of(matmul, "matmul(f32[6,4], f32[4,5])", NULL).count, 1);
    assert_int_equal(parting_of(matmul, "matmul(f32[6,4], f32[4,5])", "k").count, 1);       // no axis of the result
    assert_int_equal(parting_of(matmul, "matmul(f32[6,4], f32[4,5])", "n").count, 1);       // in one of two shapes
    assert_int_equal(parting_of(matmul, "matmul(f32[6,4], f32[4,5])", "nothing").count, 1); // no such dim
    assert_int_equal(parting_of("twice(x: f32[n]) -> y: f32[2 * n]", "twice(f32[4])", "n").count, 1);
    assert_int_equal(parting_of("square(x: f32[n, n]) -> y: f32[n]", "square(f32[4,4])", "n").count, 1);
}

static void views_of_all_parts_cover_each_element_once_and_each_is_of_its_part(void **state)
{
    (void)state;
    hone_parting parting = parting_of(attention, "attention(f32[2,3,4,2], f32[2,9,2,2])", "batch heads:kv_heads");
    int64_t shape[4] = {2, 3, 4, 2}, dims[HONE_MAX_RANK], strides[HONE_MAX_RANK];
    float data[48] = {0};
    hone_tensor whole = hone_tensor_of(data, HONE_F32, 4, shape), view;
    for (uint64_t part = 0; part < parting.count; part++) {
        hone_part_view(&parting, part, 0, &whole, dims, strides, &view);
        for (int64_t b = 0; b < dims[0]; b++)
            for (int64_t q = 0; q < dims[1]; q++)
                for (int64_t h = 0; h < dims[2]; h++)
                    for (int64_t d = 0; d < dims[3]; d++) {
                        float *at =
                            (float *)view.data + b * strides[0] + q * strides[1] + h * strides[2] + d * strides[3];
                        *at += 1;
                        assert_true(hone_part_of(&parting, 0, &whole, at - data) == part);
                    }
    }
    for (size_t i = 0; i < 48; i++)
        assert_true(data[i] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_product_are_cut),
        cmocka_unit_test(neighbouring_parts_are_put_together_until_there_are_few),
        cmocka_unit_test(heads_are_cut_with_the_key_heads_they_share),
        cmocka_unit_test(leading_dims_are_cut_along_the_largest),
        cmocka_unit_test(a_batch_is_cut_along_its_largest_axis_and_its_rows),
        cmocka_unit_test(what_cannot_be_cut_stays_whole),
        cmocka_unit_test(views_of_all_parts_cover_each_element_once_and_each_is_of_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
