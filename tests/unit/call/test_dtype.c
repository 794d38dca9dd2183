// The table of element types, and the layouts that other systems rely on.
#include "calls.h"

#if defined(__has_include)
#    if __has_include(<dlpack/dlpack.h>)
#        include <dlpack/dlpack.h>
#        define HAVE_DLPACK 1
#    endif
#endif

static void every_dtype_is_found_by_each_of_its_names(void **state)
{
    (void)state;
    for (int id = 0; id < HONE_DTYPE_COUNT; id++) {
        const hone_dtype_info *info = hone_dtype_info_of((hone_dtype_id)id);
        assert_int_equal(info->id, id);
        assert_ptr_equal(hone_dtype_by_name(info->name), info);
        assert_ptr_equal(hone_dtype_by_name(info->numpy_name), info);
        assert_ptr_equal(hone_dtype_find(hone_dtype_of((hone_dtype_id)id)), info);
        assert_int_equal(info->bits, info->dtype.bits);
    }
}

static void no_two_dtypes_share_a_number(void **state)
{
    (void)state;
    for (int a = 0; a < HONE_DTYPE_COUNT; a++)
        for (int b = 0; b < a; b++) {
            const hone_dtype_info *x = hone_dtype_info_of((hone_dtype_id)a), *y = hone_dtype_info_of((hone_dtype_id)b);
            assert_int_not_equal(x->pjrt, y->pjrt);
            assert_int_not_equal(x->xla, y->xla);
            assert_string_not_equal(x->mlir_name, y->mlir_name);
            assert_string_not_equal(x->xla_name, y->xla_name);
        }
}

static void numbers_are_those_of_pjrt_and_xla(void **state)
{
    (void)state;
    static const struct {
        hone_dtype_id id;
        int pjrt, xla;
    } known[] = {
        {HONE_BOOL, 1, 1},      {HONE_I8, 2, 2},          {HONE_I32, 4, 4},    {HONE_U8, 6, 6},    {HONE_U64, 9, 9},
        {HONE_F16, 10, 10},     {HONE_F64, 12, 12},       {HONE_BF16, 13, 16}, {HONE_C64, 14, 15}, {HONE_C128, 15, 18},
        {HONE_F8_E5M2, 16, 19}, {HONE_F8_E4M3FN, 17, 20}, {HONE_I4, 21, 21},   {HONE_U4, 22, 22},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(hone_dtype_info_of(known[i].id)->pjrt, known[i].pjrt);
        assert_int_equal(hone_dtype_info_of(known[i].id)->xla, known[i].xla);
    }
}

static void an_unknown_dtype_is_not_found(void **state)
{
    (void)state;
    assert_null(hone_dtype_by_name("f33"));
    assert_null(hone_dtype_by_name(NULL));
    assert_null(hone_dtype_info_of(HONE_DTYPE_COUNT));
    assert_null(hone_dtype_find((hone_dtype){HONE_CODE_FLOAT, 32, 4}));
    assert_null(hone_dtype_find((hone_dtype){HONE_CODE_FLOAT, 31, 1}));
    assert_int_equal(hone_dtype_of(HONE_DTYPE_COUNT).bits, 0);
}

static void layouts_are_those_of_dlpack(void **state)
{
    (void)state;
    assert_int_equal(offsetof(hone_tensor, device), sizeof(void *));
    assert_int_equal(offsetof(hone_tensor, dtype), offsetof(hone_tensor, ndim) + 4);
#ifdef HAVE_DLPACK
    assert_int_equal(sizeof(hone_tensor), sizeof(DLTensor));
    assert_int_equal(sizeof(hone_dtype), sizeof(DLDataType));
    assert_int_equal(offsetof(hone_tensor, ndim), offsetof(DLTensor, ndim));
    assert_int_equal(offsetof(hone_tensor, dtype), offsetof(DLTensor, dtype));
    assert_int_equal(offsetof(hone_tensor, shape), offsetof(DLTensor, shape));
    assert_int_equal(offsetof(hone_tensor, strides), offsetof(DLTensor, strides));
    assert_int_equal(offsetof(hone_tensor, byte_offset), offsetof(DLTensor, byte_offset));
    assert_int_equal(HONE_DEVICE_CUDA, kDLCUDA);
    assert_int_equal(HONE_CODE_FLOAT, kDLFloat);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_found_by_each_of_its_names),
        cmocka_unit_test(no_two_dtypes_share_a_number),
        cmocka_unit_test(numbers_are_those_of_pjrt_and_xla),
        cmocka_unit_test(an_unknown_dtype_is_not_found),
        cmocka_unit_test(layouts_are_those_of_dlpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
