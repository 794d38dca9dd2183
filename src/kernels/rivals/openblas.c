// OpenBLAS's single precision product, and its matrix-vector product where there is one row.
#include "base/error.h"
#include "base/memory.h"
#include "kernels/rivals/core.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/rivals.h"
#include "os/os.h"

static const char soname[] = HONE_OPENBLAS_SONAME, package[] = "libopenblas0-pthread", where[] = "rivals.openblas";

// CBLAS's numbers.
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

typedef void sgemm_function(
    int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void sgemv_function(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

typedef struct openblas_product {
    hone_library *library;
    sgemm_function *sgemm;
    sgemv_function *sgemv;
    int (*get_threads)(void);
    void (*set_threads)(int);
    int m, n, k, a_stride, b_stride, c_stride;
    bool transpose_b;
    int threads;
} openblas_product;

static bool supports(const hone_matmul *product, hone_error *why)
{
    if (!hone_rival_is_here(soname, package, why)) return false;
    if (product->dtype == HONE_F32) return hone_rival_can_count(product, "openblas", why);
    hone_fail(why, HONE_UNSUPPORTED, where, "openblas multiplies f32 here");
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
    hone_allocator allocator = hone_allocator_system();
    hone_status status = hone_openblas_open(&allocator, &own->library, err);
    if (status != HONE_OK) return status;
    if (hone_rival_function(own->library, "cblas_sgemm", &own->sgemm) &&
        hone_rival_function(own->library, "cblas_sgemv", &own->sgemv) &&
        hone_rival_function(own->library, "openblas_get_num_threads", &own->get_threads) &&
        hone_rival_function(own->library, "openblas_set_num_threads", &own->set_threads))
        return HONE_OK;
    return hone_fail(err, HONE_UNAVAILABLE, where, "%s has no cblas interface: install %s (Debian)", soname, package);
}

// A leading dimension that BLAS accepts, also for a matrix of one row, whose stride says nothing.
static int leading(int64_t stride, int64_t columns)
{
    return (int)(stride > columns ? stride : columns);
}

static hone_status create(const hone_matmul *product, int32_t threads, void **out, hone_error *err)
{
    hone_allocator allocator = hone_allocator_system();
    openblas_product *own = hone_alloc(&allocator, sizeof *own);
    if (own == NULL) return hone_fail_memory(err, where);
    *own = (openblas_product){
        .m = (int)product->m,
        .n = (int)product->n,
        .k = (int)product->k,
        .a_stride = leading(product->a_stride, product->k),
        .b_stride = leading(product->b_stride, product->transpose_b ? product->k : product->n),
        .c_stride = leading(product->c_stride, product->n),
        .transpose_b = product->transpose_b,
        .threads = threads,
    };
    hone_status status = find(own, err);
    if (status == HONE_OK)
        *out = own;
    else
        destroy(own);
    return status;
}

// The count of threads is the process's: two products with different ones may run with either, and are right with both.
static hone_status run(void *state, const void *a, const void *b, void *c, int32_t threads)
{
    const openblas_product *own = state;
    int wanted = threads > 0 && threads < own->threads ? threads : own->threads;
    if (own->get_threads() != wanted) own->set_threads(wanted);
    if (own->m == 1) {
        int rows = own->transpose_b ? own->n : own->k, columns = own->transpose_b ? own->k : own->n;
        own->sgemv(ROW_MAJOR, own->transpose_b ? PLAIN : TRANSPOSED, rows, columns, 1, b, own->b_stride, a, 1, 0, c, 1);
    } else {
        int form = own->transpose_b ? TRANSPOSED : PLAIN;
        own->sgemm(
            ROW_MAJOR, PLAIN, form, own->m, own->n, own->k, 1, a, own->a_stride, b, own->b_stride, 0, c, own->c_stride);
    }
    return HONE_OK;
}

const hone_rival hone_rival_openblas = {"openblas", supports, create, run, destroy};
