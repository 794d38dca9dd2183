// libxsmm's generated product for small matrices, from the plugin beside hone.
#include "base/error.h"
#include "base/memory.h"
#include "kernels/rivals/libxsmm_plugin.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/rivals.h"
#include "os/os.h"

#include <limits.h>

static const char where[] = "rivals.libxsmm";

// For larger products libxsmm itself calls a BLAS, since it does not block for the caches.
static const double most_terms = 512.0 * 512 * 512;

typedef struct libxsmm_product {
    hone_library *library;
    hone_libxsmm_kernel *kernel;
    hone_libxsmm_run_function *run;
} libxsmm_product;

static bool fits(const hone_matmul *product, hone_error *why)
{
    double terms = (double)product->m * (double)product->n * (double)product->k;
    const bool knows = product->dtype == HONE_F32 || product->dtype == HONE_F64;
    if (knows && !product->transpose_b && terms <= most_terms)
        return hone_rival_can_count(product, "libxsmm", INT_MAX, why);
    hone_fail(
        why, HONE_UNSUPPORTED, where, "libxsmm multiplies f32 and f64 with b in [k, n] up to 512 x 512 x 512 here");
    return false;
}

static bool supports(const hone_rival *rival, const hone_matmul *product, hone_error *why)
{
    (void)rival;
    char path[4096];
    if (hone_rival_is_beside(HONE_LIBXSMM_FILE, path, sizeof path)) return fits(product, why);
    hone_fail(
        why, HONE_UNAVAILABLE, where, "%s is not beside hone: install libxsmm-dev (Debian) and build again",
        HONE_LIBXSMM_FILE);
    return false;
}

static void destroy(void *state)
{
    libxsmm_product *own = state;
    hone_allocator allocator = hone_allocator_system();
    if (own != NULL && own->library != NULL) hone_library_close(&allocator, &own->library);
    hone_free(&allocator, own);
}

static int leading(int64_t stride, int64_t columns)
{
    return (int)(stride > columns ? stride : columns);
}

// Row-major c = a b is column-major c' = b' a'.
static hone_status find(libxsmm_product *own, const hone_matmul *product, hone_error *err)
{
    char path[4096];
    if (!hone_rival_is_beside(HONE_LIBXSMM_FILE, path, sizeof path))
        return hone_fail(err, HONE_UNAVAILABLE, where, "%s is not beside hone any more", HONE_LIBXSMM_FILE);
    const char *const names[] = {path, NULL};
    hone_allocator allocator = hone_allocator_system();
    hone_status status = hone_library_open(&allocator, names, &own->library, err);
    if (status != HONE_OK) return status;
    hone_libxsmm_dispatch_function *dispatch = NULL;
    const char *name = product->dtype == HONE_F64 ? HONE_LIBXSMM_DISPATCH_F64 : HONE_LIBXSMM_DISPATCH;
    if (!hone_rival_function(own->library, name, &dispatch) ||
        !hone_rival_function(own->library, HONE_LIBXSMM_RUN, &own->run))
        return hone_fail(err, HONE_UNAVAILABLE, where, "%s is not hone's", path);
    own->kernel = dispatch(
        (int)product->n, (int)product->m, (int)product->k, leading(product->b_stride, product->n),
        leading(product->a_stride, product->k), leading(product->c_stride, product->n));
    return own->kernel != NULL ? HONE_OK
                               : hone_fail(err, HONE_UNSUPPORTED, where, "libxsmm makes no kernel for these sizes");
}

static hone_status create(
    const hone_rival *rival, const hone_matmul *product, int32_t threads, void **out, hone_error *err)
{
    (void)rival, (void)threads;
    hone_allocator allocator = hone_allocator_system();
    libxsmm_product *own = hone_alloc(&allocator, sizeof *own);
    if (own == NULL) return hone_fail_memory(err, where);
    hone_status status = find(own, product, err);
    if (status == HONE_OK)
        *out = own;
    else
        destroy(own);
    return status;
}

static hone_status run(void *state, const hone_matmul *of, int32_t threads)
{
    const libxsmm_product *own = state;
    (void)threads;
    own->run(own->kernel, of->b, of->a, of->c);
    return HONE_OK;
}

static bool find_file(const hone_rival *rival, char *path, size_t size)
{
    (void)rival;
    return hone_rival_is_beside(HONE_LIBXSMM_FILE, path, size);
}

const hone_rival hone_rival_libxsmm = {"libxsmm", supports, create, run, destroy, NULL, find_file, false, false};
