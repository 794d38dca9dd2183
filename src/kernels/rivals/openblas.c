// The products of OpenBLAS's builds in single and double precision, and their matrix-vector product if there is one
// row.
#include "base/error.h"
#include "base/memory.h"
#include "kernels/rivals/core.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/rivals.h"
#include "os/mutex.h"
#include "os/os.h"

static const char where[] = "rivals.openblas";

// CBLAS's numbers.
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

// Products of float or double, with integers of 32 bits or of 64. The build's `most` determines which of them its
// functions accept.
#define GEMM(name, number, integer)                                                                                    \
    typedef void name(                                                                                                 \
        int, int, int, integer, integer, integer, number, const number *, integer, const number *, integer, number,    \
        number *, integer)
#define GEMV(name, number, integer)                                                                                    \
    typedef void name(                                                                                                 \
        int, int, integer, integer, number, const number *, integer, const number *, integer, number, number *,        \
        integer)
GEMM(sgemm_function, float, int);
GEMM(sgemm64_function, float, int64_t);
GEMM(dgemm_function, double, int);
GEMM(dgemm64_function, double, int64_t);
GEMV(sgemv_function, float, int);
GEMV(sgemv64_function, float, int64_t);
GEMV(dgemv_function, double, int);
GEMV(dgemv64_function, double, int64_t);

typedef struct openblas_product {
    const hone_openblas *build;
    hone_library *library;
    union {
        sgemm_function *narrow;
        sgemm64_function *wide;
        dgemm_function *narrow_f64;
        dgemm64_function *wide_f64;
    } gemm;
    union {
        sgemv_function *narrow;
        sgemv64_function *wide;
        dgemv_function *narrow_f64;
        dgemv64_function *wide_f64;
    } gemv;
    int (*get_threads)(void);
    void (*set_threads)(int);
    int64_t m, n, k, a_stride, b_stride, c_stride;
    bool transpose_b, is_f64;
    int threads;
} openblas_product;

static bool is_wide(const openblas_product *own)
{
    return own->build->most > INT32_MAX;
}

static bool supports(const hone_rival *rival, const hone_matmul *product, hone_error *why)
{
    const hone_openblas *build = rival->build;
    if (!hone_openblas_is_here(build, why)) return false;
    if (product->dtype == HONE_F32 || product->dtype == HONE_F64)
        return hone_rival_can_count(product, rival->name, build->most, why);
    hone_fail(why, HONE_UNSUPPORTED, where, "%s multiplies only f32 and f64 here", rival->name);
    return false;
}

static void destroy(void *state)
{
    openblas_product *own = state;
    hone_allocator allocator = hone_allocator_system();
    if (own != NULL) hone_library_close(&allocator, &own->library);
    hone_free(&allocator, own);
}

static hone_status find(openblas_product *own, hone_error *err)
{
    const hone_openblas *build = own->build;
    hone_allocator allocator = hone_allocator_system();
    hone_status status = hone_openblas_open(build, &allocator, &own->library, err);
    if (status != HONE_OK) return status;
    if (hone_openblas_function(build, own->library, own->is_f64 ? "cblas_dgemm" : "cblas_sgemm", &own->gemm) &&
        hone_openblas_function(build, own->library, own->is_f64 ? "cblas_dgemv" : "cblas_sgemv", &own->gemv) &&
        hone_openblas_function(build, own->library, "openblas_get_num_threads", &own->get_threads) &&
        hone_openblas_function(build, own->library, "openblas_set_num_threads", &own->set_threads))
        return HONE_OK;
    if (build->packaged == NULL)
        return hone_fail(
            err, HONE_UNAVAILABLE, where, "%s has no cblas interface: install %s (Debian)", HONE_OPENBLAS_SONAME,
            HONE_OPENBLAS_PACKAGE);
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "the library has no %scblas_sgemm%s: is it the %s*.so of PyPI's %s?",
        build->prefix, build->suffix, build->packaged->beginning, build->packaged->package);
}

// A leading dimension that BLAS also accepts for a matrix of one row, whose stride is arbitrary.
static int64_t leading(int64_t stride, int64_t columns)
{
    return stride > columns ? stride : columns;
}

static hone_status create(
    const hone_rival *rival, const hone_matmul *product, int32_t threads, void **out, hone_error *err)
{
    hone_allocator allocator = hone_allocator_system();
    openblas_product *own = hone_alloc(&allocator, sizeof *own);
    if (own == NULL) return hone_fail_memory(err, where);
    *own = (openblas_product){
        .build = rival->build,
        .m = product->m,
        .n = product->n,
        .k = product->k,
        .a_stride = leading(product->a_stride, product->k),
        .b_stride = leading(product->b_stride, product->transpose_b ? product->k : product->n),
        .c_stride = leading(product->c_stride, product->n),
        .transpose_b = product->transpose_b,
        .is_f64 = product->dtype == HONE_F64,
        .threads = threads,
    };
    hone_status status = find(own, err);
    if (status == HONE_OK)
        *out = own;
    else
        destroy(own);
    return status;
}

// Calls the function for the product's dtype and for the integers of this OpenBLAS.
#define CALL_BY_KIND(own, CALL)                                                                                        \
    if ((own)->is_f64 && is_wide(own))                                                                                 \
        CALL(wide_f64, int64_t);                                                                                       \
    else if ((own)->is_f64)                                                                                            \
        CALL(narrow_f64, int);                                                                                         \
    else if (is_wide(own))                                                                                             \
        CALL(wide, int64_t);                                                                                           \
    else                                                                                                               \
        CALL(narrow, int)

static void multiply_row(const openblas_product *own, const void *a, const void *b, void *c)
{
    const int form = own->transpose_b ? PLAIN : TRANSPOSED;
    const int64_t rows = own->transpose_b ? own->n : own->k, columns = own->transpose_b ? own->k : own->n;
#define MULTIPLY(function, integer)                                                                                    \
    own->gemv.function(ROW_MAJOR, form, (integer)rows, (integer)columns, 1, b, (integer)own->b_stride, a, 1, 0, c, 1)
    CALL_BY_KIND(own, MULTIPLY);
#undef MULTIPLY
}

static void multiply(const openblas_product *own, const void *a, const void *b, void *c)
{
    const int form = own->transpose_b ? TRANSPOSED : PLAIN;
#define MULTIPLY(function, integer)                                                                                    \
    own->gemm.function(                                                                                                \
        ROW_MAJOR, PLAIN, form, (integer)own->m, (integer)own->n, (integer)own->k, 1, a, (integer)own->a_stride, b,    \
        (integer)own->b_stride, 0, c, (integer)own->c_stride)
    CALL_BY_KIND(own, MULTIPLY);
#undef MULTIPLY
}

// The number of threads is global to the process: two products with different numbers may run with either, and both are
// correct. If Python uses the library too, its number is restored when the last of these runs has ended: otherwise
// numpy's products would continue with hone's.
typedef struct lent_threads {
    hone_mutex mutex;
    uint32_t runs; // that have changed the number
    int own;       // the number before the first of them
} lent_threads;

static lent_threads lent[HONE_OPENBLAS_BUILDS] = {
    [HONE_OPENBLAS_OF_NUMPY] = {.mutex = {.mutex = PTHREAD_MUTEX_INITIALIZER}},
    [HONE_OPENBLAS_OF_SCIPY] = {.mutex = {.mutex = PTHREAD_MUTEX_INITIALIZER}},
};

// NULL: nothing has to be restored.
static lent_threads *take_threads(const openblas_product *own, int wanted)
{
    if (own->get_threads() == wanted) return NULL;
    if (own->build->packaged == NULL) {
        own->set_threads(wanted);
        return NULL;
    }
    lent_threads *taken = &lent[own->build - hone_openblas_builds];
    hone_mutex_lock(&taken->mutex);
    if (taken->runs++ == 0) taken->own = own->get_threads();
    own->set_threads(wanted);
    hone_mutex_unlock(&taken->mutex);
    return taken;
}

static void give_threads(const openblas_product *own, lent_threads *taken)
{
    if (taken == NULL) return;
    hone_mutex_lock(&taken->mutex);
    if (--taken->runs == 0) own->set_threads(taken->own);
    hone_mutex_unlock(&taken->mutex);
}

static hone_status run(void *state, const hone_matmul *of, int32_t threads)
{
    const openblas_product *own = state;
    lent_threads *taken = take_threads(own, threads > 0 && threads < own->threads ? threads : own->threads);
    if (own->m == 1)
        multiply_row(own, of->a, of->b, of->c);
    else
        multiply(own, of->a, of->b, of->c);
    give_threads(own, taken);
    return HONE_OK;
}

static bool find_packaged(const hone_rival *rival, char *path, size_t size)
{
    const hone_openblas *build = rival->build;
    return hone_rival_find_packaged(build->packaged, path, size, NULL);
}

#define OPENBLAS(of) supports, create, run, destroy, &hone_openblas_builds[HONE_OPENBLAS_OF_##of]
const hone_rival hone_rival_openblas = {"openblas", OPENBLAS(SYSTEM), NULL, false, false};
const hone_rival hone_rival_numpy_openblas = {"numpy_openblas", OPENBLAS(NUMPY), find_packaged, false, false};
const hone_rival hone_rival_scipy_openblas = {"scipy_openblas", OPENBLAS(SCIPY), find_packaged, false, false};
