// How far a view of memory reaches, and whether two views meet.
#include "calls.h"

static char memory[4096];

static hone_tensor view(hone_dtype_id dtype, int32_t ndim, int64_t *shape, int64_t *strides, size_t offset)
{
    hone_tensor tensor = hone_tensor_of(memory, dtype, ndim, shape);
    tensor.strides = strides;
    tensor.byte_offset = offset;
    return tensor;
}

static void a_dense_tensor_spans_its_elements(void **state)
{
    (void)state;
    int64_t shape[] = {3, 4}, bytes, below;
    const hone_tensor tensor = view(HONE_F32, 2, shape, NULL, 0);
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_OK);
    assert_int_equal(bytes, 48);
    assert_int_equal(below, 0);
    assert_int_equal(hone_tensor_elements(&tensor), 12);
    assert_true(hone_tensor_is_row_major(&tensor));
}

static void negative_strides_reach_below_the_first_element(void **state)
{
    (void)state;
    int64_t shape[] = {3, 4}, strides[] = {-8, 2}, bytes, below;
    const hone_tensor tensor = view(HONE_F16, 2, shape, strides, 100);
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_OK);
    assert_int_equal(below, 32);
    assert_int_equal(bytes, 32 + 14);
    assert_false(hone_tensor_is_row_major(&tensor));
}

static void half_bytes_round_up(void **state)
{
    (void)state;
    int64_t shape[] = {5}, bytes, below;
    const hone_tensor tensor = view(HONE_I4, 1, shape, NULL, 0);
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_OK);
    assert_int_equal(bytes, 3);
}

static void an_empty_tensor_spans_nothing_even_when_its_dims_are_huge(void **state)
{
    (void)state;
    int64_t shape[] = {INT64_MAX, 0, INT64_MAX}, bytes = 1, below = 1;
    const hone_tensor tensor = view(HONE_F32, 3, shape, NULL, 0);
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(hone_tensor_elements(&tensor), 0);
}

static void a_shape_beyond_64_bits_is_refused(void **state)
{
    (void)state;
    int64_t shape[] = {INT64_C(1) << 40, INT64_C(1) << 40}, strides[] = {INT64_MAX, 1}, bytes, below;
    hone_tensor tensor = view(HONE_F32, 2, shape, NULL, 0);
    assert_int_equal(hone_tensor_elements(&tensor), -1);
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_INVALID_ARGUMENT);
    shape[1] = 2;
    tensor.strides = strides;
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_INVALID_ARGUMENT);
    shape[0] = INT64_C(1) << 62;
    shape[1] = 1;
    tensor.strides = NULL;
    assert_int_equal(hone_tensor_span(&tensor, &bytes, &below), HONE_INVALID_ARGUMENT);
}

// The last byte that 64 bits of bits can count, above the first element and below it, and one further.
static void a_span_may_reach_as_far_as_its_bits_can_be_counted(void **state)
{
    (void)state;
    static const struct {
        hone_dtype_id dtype;
        int64_t stride;
        hone_status status;
    } known[] = {
        {HONE_I8, (INT64_C(1) << 60) - 2, HONE_OK},  {HONE_I8, (INT64_C(1) << 60) - 1, HONE_INVALID_ARGUMENT},
        {HONE_I8, 1 - (INT64_C(1) << 60), HONE_OK},  {HONE_I8, -(INT64_C(1) << 60), HONE_INVALID_ARGUMENT},
        {HONE_F32, (INT64_C(1) << 58) - 2, HONE_OK}, {HONE_F32, (INT64_C(1) << 58) - 1, HONE_INVALID_ARGUMENT},
        {HONE_F32, 1 - (INT64_C(1) << 58), HONE_OK}, {HONE_F32, -(INT64_C(1) << 58), HONE_INVALID_ARGUMENT},
        {HONE_I4, (INT64_C(1) << 61) - 3, HONE_OK},  {HONE_I4, (INT64_C(1) << 61) - 2, HONE_INVALID_ARGUMENT},
        {HONE_I4, 2 - (INT64_C(1) << 61), HONE_OK},  {HONE_I4, 1 - (INT64_C(1) << 61), HONE_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int64_t shape[] = {2}, strides[] = {known[i].stride}, bytes = 0, below = 0;
        const hone_tensor tensor = view(known[i].dtype, 1, shape, strides, 0);
        if (hone_tensor_span(&tensor, &bytes, &below) != known[i].status)
            fail_msg("stride %lld of %s", (long long)known[i].stride, hone_dtype_info_of(known[i].dtype)->name);
        if (known[i].status != HONE_OK) continue;
        const int64_t bits = hone_dtype_info_of(known[i].dtype)->bits, reach = known[i].stride;
        const int64_t down = reach < 0 ? (-reach * bits + 7) / 8 : 0, up = ((reach > 0 ? reach + 1 : 1) * bits + 7) / 8;
        assert_int_equal(below, down);
        assert_int_equal(bytes, down + up);
    }
}

static void the_stride_of_a_dim_of_size_one_does_not_matter(void **state)
{
    (void)state;
    int64_t shape[] = {1, 4}, strides[] = {999, 1};
    const hone_tensor tensor = view(HONE_F32, 2, shape, strides, 0);
    assert_true(hone_tensor_is_row_major(&tensor));
}

static void alignment_is_the_largest_power_of_two_below_sixteen(void **state)
{
    (void)state;
    int64_t shape[] = {4};
    hone_tensor tensor = view(HONE_F32, 1, shape, NULL, 0);
    static const uint32_t wanted[] = {0, 1, 2, 1, 4, 1, 2, 1, 8};
    tensor.data = (void *)(uintptr_t)4096;
    for (uint64_t offset = 0; offset < 9; offset++) {
        tensor.byte_offset = offset;
        assert_int_equal(hone_tensor_align(&tensor), wanted[offset]);
    }
    tensor.byte_offset = 16;
    assert_int_equal(hone_tensor_align(&tensor), 0);
}

static void columns_of_one_matrix_do_not_overlap(void **state)
{
    (void)state;
    int64_t shape[] = {8, 4}, strides[] = {8, 1};
    hone_tensor left = view(HONE_F32, 2, shape, strides, 0), right = view(HONE_F32, 2, shape, strides, 16);
    assert_false(hone_tensors_overlap(&left, &right));
    right.byte_offset = 12;
    assert_true(hone_tensors_overlap(&left, &right));
    right.byte_offset = 15;
    assert_true(hone_tensors_overlap(&left, &right));
}

// Of elements of half a byte only the bytes are compared.
static void neighbours_do_not_overlap_on_either_side(void **state)
{
    (void)state;
    static const hone_dtype_id dtypes[] = {HONE_I4, HONE_I8, HONE_F32};
    for (size_t i = 0; i < 3; i++) {
        int64_t shape[] = {8}, bytes, below;
        hone_tensor a = view(dtypes[i], 1, shape, NULL, 64), b = a;
        assert_int_equal(hone_tensor_span(&a, &bytes, &below), HONE_OK);
        for (int64_t distance = -bytes - 1; distance <= bytes + 1; distance++) {
            b.byte_offset = (uint64_t)(64 + distance);
            assert_int_equal(hone_tensors_overlap(&a, &b), distance > -bytes && distance < bytes);
            assert_int_equal(hone_tensors_overlap(&b, &a), distance > -bytes && distance < bytes);
        }
    }
}

// Eight dims of a, eight of b: even strides that do not nest, and an odd distance that none of their sums makes up.
static void a_search_that_outgrows_its_budget_says_that_they_meet(void **state)
{
    (void)state;
    int64_t shape[8], strides[8], others[8];
    for (int i = 0; i < 8; i++) {
        shape[i] = 3;
        strides[i] = 1000 + 2 * i;
        others[i] = 1016 + 2 * i;
    }
    hone_tensor a = view(HONE_I8, 8, shape, strides, 0), b = view(HONE_I8, 8, shape, others, 1);
    assert_true(hone_tensors_overlap(&a, &b));
    a.ndim = b.ndim = 2; // few dims are searched to the end
    assert_false(hone_tensors_overlap(&a, &b));
}

static void mark(const hone_tensor *tensor, int32_t dim, int64_t at, unsigned char *bytes, unsigned char bit)
{
    int64_t strides[HONE_MAX_RANK];
    hone_tensor_strides(tensor, strides);
    const int64_t size = hone_dtype_find(tensor->dtype)->bits / 8;
    if (dim == tensor->ndim) {
        for (int64_t i = 0; i < size; i++)
            bytes[2048 + (int64_t)tensor->byte_offset + at * size + i] |= bit;
        return;
    }
    for (int64_t i = 0; i < tensor->shape[dim]; i++)
        mark(tensor, dim + 1, at + i * strides[dim], bytes, bit);
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static hone_tensor draw_view(uint32_t *seed, int64_t *shape, int64_t *strides)
{
    static const hone_dtype_id dtypes[] = {HONE_U8, HONE_F16, HONE_F32};
    const int32_t ndim = (int32_t)draw(seed, 4);
    for (int32_t i = 0; i < ndim; i++) {
        shape[i] = draw(seed, 5);
        strides[i] = (int64_t)draw(seed, 25) - 12;
    }
    return view(dtypes[draw(seed, 3)], ndim, shape, strides, draw(seed, 64));
}

// Every answer against one that marks bytes one by one.
static void overlap_agrees_with_counting_bytes(void **state)
{
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        int64_t shapes[2][4], strides[2][4];
        static unsigned char bytes[4096];
        memset(bytes, 0, sizeof bytes);
        const hone_tensor a = draw_view(&seed, shapes[0], strides[0]), b = draw_view(&seed, shapes[1], strides[1]);
        mark(&a, 0, 0, bytes, 1);
        mark(&b, 0, 0, bytes, 2);
        bool met = false;
        for (size_t i = 0; i < sizeof bytes; i++)
            met = met || bytes[i] == 3;
        assert_int_equal(hone_tensors_overlap(&a, &b), met);
    }
}

static void a_broadcast_tensor_does_not_keep_its_elements_apart(void **state)
{
    (void)state;
    int64_t shape[] = {4, 3}, broadcast[] = {0, 1}, padded[] = {5, 1}, transposed[] = {1, 4}, folded[] = {2, 1};
    const hone_tensor views[] = {
        view(HONE_F32, 2, shape, broadcast, 0), view(HONE_F32, 2, shape, folded, 0),
        view(HONE_F32, 2, shape, padded, 0), view(HONE_F32, 2, shape, transposed, 0),
        view(HONE_F32, 2, shape, NULL, 0)};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(hone_tensor_keeps_apart(&views[i]), i >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_tensor_spans_its_elements),
        cmocka_unit_test(negative_strides_reach_below_the_first_element),
        cmocka_unit_test(half_bytes_round_up),
        cmocka_unit_test(an_empty_tensor_spans_nothing_even_when_its_dims_are_huge),
        cmocka_unit_test(a_shape_beyond_64_bits_is_refused),
        cmocka_unit_test(a_span_may_reach_as_far_as_its_bits_can_be_counted),
        cmocka_unit_test(the_stride_of_a_dim_of_size_one_does_not_matter),
        cmocka_unit_test(alignment_is_the_largest_power_of_two_below_sixteen),
        cmocka_unit_test(columns_of_one_matrix_do_not_overlap),
        cmocka_unit_test(neighbours_do_not_overlap_on_either_side),
        cmocka_unit_test(a_search_that_outgrows_its_budget_says_that_they_meet),
        cmocka_unit_test(overlap_agrees_with_counting_bytes),
        cmocka_unit_test(a_broadcast_tensor_does_not_keep_its_elements_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
