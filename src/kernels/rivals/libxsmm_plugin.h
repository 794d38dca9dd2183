// The interface of the plugin around libxsmm. Debian has libxsmm only as a static library: in a separate shared object
// it is not part of hone, and is loaded only by a plan that uses it.
#ifndef HONE_KERNELS_RIVALS_LIBXSMM_PLUGIN_H
#define HONE_KERNELS_RIVALS_LIBXSMM_PLUGIN_H

#define HONE_LIBXSMM_FILE         "libhone_libxsmm.so"
#define HONE_LIBXSMM_DISPATCH     "hone_libxsmm_dispatch"
#define HONE_LIBXSMM_DISPATCH_F64 "hone_libxsmm_dispatch_f64"
#define HONE_LIBXSMM_RUN          "hone_libxsmm_run"

// c = a b for column-major a [m, k], b [k, n], c [m, n], libxsmm's own order, of floats or doubles.
typedef void hone_libxsmm_kernel(const void *a, const void *b, void *c);
// A kernel for these sizes and leading dimensions; NULL if libxsmm makes none. It is never freed.
typedef hone_libxsmm_kernel *hone_libxsmm_dispatch_function(
    int m, int n, int k, int a_stride, int b_stride, int c_stride);
// Calls it. libxsmm's code leaves the upper halves of the registers dirty, and SSE code that follows then takes six
// times as long (measured on Zen 4), so they are cleared here. Needs AVX.
typedef void hone_libxsmm_run_function(hone_libxsmm_kernel *kernel, const void *a, const void *b, void *c);

#endif
