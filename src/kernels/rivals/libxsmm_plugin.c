#include "kernels/rivals/libxsmm_plugin.h"

#include <immintrin.h>
#include <libxsmm.h>

__attribute__((visibility("default"))) hone_libxsmm_dispatch_function hone_libxsmm_dispatch, hone_libxsmm_dispatch_f64;
__attribute__((visibility("default"), target("avx"))) hone_libxsmm_run_function hone_libxsmm_run;

hone_libxsmm_kernel *hone_libxsmm_dispatch(int m, int n, int k, int a_stride, int b_stride, int c_stride)
{
    const float alpha = 1, beta = 0;
    return (hone_libxsmm_kernel *)libxsmm_smmdispatch(
        m, n, k, &a_stride, &b_stride, &c_stride, &alpha, &beta, NULL, NULL);
}

hone_libxsmm_kernel *hone_libxsmm_dispatch_f64(int m, int n, int k, int a_stride, int b_stride, int c_stride)
{
    const double alpha = 1, beta = 0;
    return (hone_libxsmm_kernel *)libxsmm_dmmdispatch(
        m, n, k, &a_stride, &b_stride, &c_stride, &alpha, &beta, NULL, NULL);
}

void hone_libxsmm_run(hone_libxsmm_kernel *kernel, const void *a, const void *b, void *c)
{
    kernel(a, b, c);
    _mm256_zeroupper();
}
