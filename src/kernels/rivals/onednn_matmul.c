// oneDNN's matrix product.
#include "base/error.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/onednn.h"
#include "kernels/rivals/rivals.h"

#include <limits.h>

static const char where[] = "rivals.onednn";

static bool supports(const hone_rival *rival, const hone_matmul *product, hone_error *why)
{
    (void)rival;
    if (!hone_onednn_is_here(why)) return false;
    if (product->dtype == HONE_F32 || product->dtype == HONE_BF16)
        return hone_rival_can_count(product, "onednn", INT_MAX, why);
    hone_fail(why, HONE_UNSUPPORTED, where, "oneDNN 2.6 multiplies f32 and bf16 on a CPU");
    return false;
}

// rows x columns, with adjacent elements along the columns, or (transposed) along the rows.
static bool describe(
    const hone_onednn *onednn,
    const hone_matmul *product,
    size_t value,
    dnnl_memory_desc_t *out,
    int64_t rows,
    int64_t columns,
    int64_t stride,
    bool transposed)
{
    const int axes = product->leading;
    int64_t least = transposed ? rows : columns, step = stride > least ? stride : least;
    dnnl_dims_t sizes = {0}, strides = {0};
    hone_matmul_leading_axes(product, value, sizes, strides);
    sizes[axes] = rows;
    sizes[axes + 1] = columns;
    strides[axes] = transposed ? 1 : step;
    strides[axes + 1] = transposed ? step : 1;
    dnnl_data_type_t type = product->dtype == HONE_F32 ? dnnl_f32 : dnnl_bf16;
    return onednn->memory_desc_init_by_strides(out, axes + 2, sizes, type, strides) == dnnl_success;
}

static bool describe_product(const hone_onednn *onednn, const hone_matmul *product, dnnl_memory_desc_t *operands)
{
    int64_t m = product->m, n = product->n, k = product->k;
    return describe(onednn, product, MATMUL_A, &operands[0], m, k, product->a_stride, false) &&
           describe(onednn, product, MATMUL_B, &operands[1], k, n, product->b_stride, product->transpose_b) &&
           describe(onednn, product, MATMUL_C, &operands[2], m, n, product->c_stride, false);
}

static hone_status create(
    const hone_rival *rival, const hone_matmul *product, int32_t threads, void **out, hone_error *err)
{
    (void)rival;
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    hone_onednn onednn;
    dnnl_memory_desc_t operands[3];
    dnnl_matmul_desc_t operation;
    hone_onednn_primitive *primitive = NULL;
    hone_status status = hone_onednn_open(&onednn, err);
    if (status != HONE_OK) return status;
    if (!describe_product(&onednn, product, operands) ||
        onednn.matmul_desc_init(&operation, &operands[0], &operands[1], NULL, &operands[2]) != dnnl_success) {
        hone_onednn_close(&onednn);
        return hone_fail(err, HONE_UNSUPPORTED, where, "oneDNN refuses these sizes or strides");
    }
    status = hone_onednn_primitive_create(&onednn, &operation, operands, arguments, 3, threads, &primitive, err);
    if (status == HONE_OK) *out = primitive;
    return status;
}

static hone_status run(void *state, const hone_matmul *of, int32_t threads)
{
    void *const data[] = {(void *)of->a, (void *)of->b, of->c};
    return hone_onednn_primitive_run(state, data, threads);
}

static void destroy(void *state)
{
    hone_onednn_primitive_destroy(state);
}

const hone_rival hone_rival_onednn = {"onednn", supports, create, run, destroy, NULL, NULL, false, true};
