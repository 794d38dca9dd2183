// cuBLASLt's product of 8-bit floats. It accepts two matrices of f8_e4m3fn, b transposed, and either a scale for each
// row of a and each column of b, or one for each matrix ("Narrow Precision Data Types Usage" in cuBLAS's
// documentation). A bias has 16 bits. A result of f16 that is too large becomes 65504, while hone's is infinity, so
// only results of bf16 are supported.
#include "kernels/rivals/cublaslt.h"

#include "base/error.h"
#include "call/call.h"
#include "kernels/rivals/cublaslt_library.h"
#include "kernels/scaled_matmul/scaled_matmul.h"

// Rows of a and b must be whole chunks of 16 bytes, and c must have a multiple of as many columns.
enum { CHUNK = 16 };

const char hone_scaled_cublaslt_signature[] =
    "scaled_matmul(a: Q[m, k], b: Q[n, k] if transpose_b else [k, n], a_scale: f32[m], b_scale: f32[n], bias: T[n], "
    "*, transpose_b: bool = false) -> c: T[m, n] where T in bf16 where Q in f8_e4m3fn";

static bool refuse(const char *expected, hone_error *why)
{
    hone_fail(why, HONE_UNSUPPORTED, "scaled_matmul", "cuBLASLt multiplies 8 bit floats with %s", expected);
    return false;
}

// Whether all arrays are aligned to HONE_ORDINARY_ALIGN bytes, which are a chunk: for others its heuristic returns
// CUBLAS_STATUS_INVALID_VALUE.
static bool is_aligned(const hone_call *call)
{
    for (size_t i = SCALED_MATMUL_A; i <= SCALED_MATMUL_C; i++)
        if (hone_call_align(call, i) != 0) return false;
    return true;
}

bool hone_scaled_cublaslt_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    _Static_assert((int)HONE_ORDINARY_ALIGN == (int)CHUNK, "an alignment that no key mentions is enough");
    const hone_matmul product = hone_scaled_matmul_form.of_call(call);
    const bool a_has_one = product.m == 1 || product.a_scale_stride == 0;
    const bool b_has_one = product.n == 1 || product.b_scale_stride == 0;
    if (!hone_scaled_matmul_has_dense_rows(call, why)) return false;
    if (!product.transpose_b) return refuse("transpose_b=true", why);
    if (!hone_matmul_has_terms(&product)) return refuse("m, n and k above 0", why);
    if (product.k % CHUNK != 0 || product.n % CHUNK != 0) return refuse("n and k that are multiples of 16", why);
    if (product.a_stride % CHUNK != 0 || product.b_stride % CHUNK != 0)
        return refuse("rows of a and b that begin at multiples of 16 bytes", why);
    if (!is_aligned(call)) return refuse("arrays that begin at multiples of 16 bytes", why);
    if (!hone_cublaslt_has_scales_of_each(&product) && !(a_has_one && b_has_one))
        return refuse(
            "a scale for each row and each column, side by side, or one scale for all of a and one for b", why);
    return hone_cublaslt_is_here(why);
}
