// What hone declares of cuBLASLt in its own words is what its header says.
#include <cublasLt.h>

#include "same.h"

#include "kernels/rivals/cublaslt_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void numbers_are_those_of_the_header(void **state)
{
    (void)state;
    static const int pairs[][2] = {
        {CUBLASLT_SUCCESS, CUBLAS_STATUS_SUCCESS},
        {CUBLASLT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED},
        {CUBLASLT_COMPUTE_F32, CUBLAS_COMPUTE_32F},
        {CUBLASLT_COMPUTE_F64, CUBLAS_COMPUTE_64F},
        {CUBLASLT_F32, CUDA_R_32F},
        {CUBLASLT_F64, CUDA_R_64F},
        {CUBLASLT_F16, CUDA_R_16F},
        {CUBLASLT_BF16, CUDA_R_16BF},
        {CUBLASLT_F8_E4M3, CUDA_R_8F_E4M3},
        {CUBLASLT_SCALE_POINTER_A, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER},
        {CUBLASLT_SCALE_POINTER_B, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER},
#if CUBLAS_VER_MAJOR > 12
        {CUBLASLT_SCALE_MODE_A, CUBLASLT_MATMUL_DESC_A_SCALE_MODE},
        {CUBLASLT_SCALE_MODE_B, CUBLASLT_MATMUL_DESC_B_SCALE_MODE},
        {CUBLASLT_SCALE_OF_EACH, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F},
#endif
        {CUBLASLT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA},
        {CUBLASLT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB},
        {CUBLASLT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE},
        {CUBLASLT_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER},
        {CUBLASLT_WITH_BIAS, CUBLASLT_EPILOGUE_BIAS},
        {CUBLASLT_WITH_GELU_TANH, CUBLASLT_EPILOGUE_GELU},
        {CUBLASLT_WITH_GELU_TANH | CUBLASLT_WITH_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS},
        {CUBLASLT_PLAIN, CUBLAS_OP_N},
        {CUBLASLT_TRANSPOSED, CUBLAS_OP_T},
        {CUBLASLT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT},
        {CUBLASLT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET},
        {CUBLASLT_MAX_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES},
        {CUBLASLT_LEAST_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES},
        {CUBLASLT_LEAST_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(pairs[i][0], pairs[i][1]);
}

static void structs_have_the_fields_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(sizeof(cublaslt_algorithm), sizeof(cublasLtMatmulAlgo_t));
    assert_int_equal(sizeof(cublaslt_proposal), sizeof(cublasLtMatmulHeuristicResult_t));
    FIELD(cublaslt_proposal, algorithm, cublasLtMatmulHeuristicResult_t, algo);
    FIELD(cublaslt_proposal, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
    FIELD(cublaslt_proposal, status, cublasLtMatmulHeuristicResult_t, state);
    FIELD(cublaslt_proposal, waves, cublasLtMatmulHeuristicResult_t, wavesCount);
    FIELD(cublaslt_proposal, reserved, cublasLtMatmulHeuristicResult_t, reserved);
}

static void functions_take_what_the_header_says(void **state)
{
    (void)state;
    static cublaslt l;
    void *p = NULL;
    int n = 0;
    size_t z = 0;
    uint64_t rows = 0;
    int64_t leading = 0;
    (void)p, (void)n, (void)z, (void)rows, (void)leading;
    assert_int_equal(sizeof(l.version()), sizeof(cublasLtGetVersion()));
    SAME(l.create, cublasLtCreate, p);
    SAME(l.destroy, cublasLtDestroy, p);
    SAME(l.product_create, cublasLtMatmulDescCreate, p, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    SAME(l.product_set, cublasLtMatmulDescSetAttribute, p, CUBLASLT_MATMUL_DESC_TRANSA, p, z);
    SAME(l.product_destroy, cublasLtMatmulDescDestroy, p);
    SAME(l.layout_create, cublasLtMatrixLayoutCreate, p, CUDA_R_32F, rows, rows, leading);
    SAME(l.layout_set, cublasLtMatrixLayoutSetAttribute, p, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, p, z);
    SAME(l.layout_destroy, cublasLtMatrixLayoutDestroy, p);
    SAME(l.preference_create, cublasLtMatmulPreferenceCreate, p);
    SAME(l.preference_set, cublasLtMatmulPreferenceSetAttribute, p, CUBLASLT_MATMUL_PREF_SEARCH_MODE, p, z);
    SAME(l.preference_destroy, cublasLtMatmulPreferenceDestroy, p);
    SAME(l.propose, cublasLtMatmulAlgoGetHeuristic, p, p, p, p, p, p, p, n, p, p);
    SAME(l.multiply, cublasLtMatmul, p, p, p, p, p, p, p, p, p, p, p, p, p, p, z, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_header),
        cmocka_unit_test(structs_have_the_fields_of_the_header),
        cmocka_unit_test(functions_take_what_the_header_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
