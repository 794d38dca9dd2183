#include "kernels/matmul/matmul.h"

#include "base/error.h"
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"

// Multiply-adds that a thread should have before handing work to it pays: some 5 us.
static const double worth_a_thread = 1 << 18;

static hone_matmul product_of(const hone_tensor *a, const hone_tensor *b, const hone_tensor *c, bool transpose_b)
{
    hone_matrix left = hone_matrix_of(a), right = hone_matrix_of(b), result = hone_matrix_of(c);
    return (hone_matmul){
        .a = left.data,
        .b = right.data,
        .c = result.data,
        .m = result.rows,
        .n = result.columns,
        .k = left.columns,
        .a_stride = left.row_stride,
        .b_stride = right.row_stride,
        .c_stride = result.row_stride,
        .transpose_b = transpose_b,
        .dtype = hone_float_id(c->dtype),
    };
}

hone_matmul hone_matmul_of(const hone_plan *plan, const hone_value *args)
{
    return product_of(
        args[MATMUL_A].as.tensor, args[MATMUL_B].as.tensor, args[MATMUL_C].as.tensor, hone_matmul_transposes(plan));
}

hone_matmul hone_matmul_of_call(const hone_call *call)
{
    bool transpose_b = hone_call_values(call)[MATMUL_TRANSPOSE_B].as.i64 != 0;
    return product_of(
        hone_call_tensor(call, MATMUL_A), hone_call_tensor(call, MATMUL_B), hone_call_tensor(call, MATMUL_C),
        transpose_b);
}

bool hone_matmul_transposes(const hone_plan *plan)
{
    return hone_call_values(plan->call)[MATMUL_TRANSPOSE_B].as.i64 != 0;
}

void hone_matmul_clear(const hone_matmul *product)
{
    int64_t size = hone_element_size(product->dtype);
    for (int64_t i = 0; i < product->m; i++)
        memset((char *)product->c + i * product->c_stride * size, 0, (size_t)(product->n * size));
}

bool hone_matmul_rows_are_dense(const hone_call *call, hone_error *why)
{
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = MATMUL_A; i <= MATMUL_C; i++) {
        hone_matrix matrix = hone_matrix_of(hone_call_tensor(call, i));
        bool dense = matrix.columns <= 1 || matrix.column_stride == 1;
        if (dense && (matrix.rows <= 1 || matrix.row_stride >= matrix.columns)) continue;
        hone_fail(
            why, HONE_UNSUPPORTED, "matmul",
            "%s has strides [%lld, %lld]; this kernel reads rows whose elements lie side by side, one after another",
            names[i], (long long)matrix.row_stride, (long long)matrix.column_stride);
        return false;
    }
    return true;
}

int64_t hone_matmul_threads(const hone_matmul *product, const hone_device_info *device)
{
    double work = (double)product->m * (double)product->n * (double)product->k;
    int64_t threads = 1, limit = device != NULL ? device->threads : 1;
    while (threads < 64 && threads * 2 <= limit && work / (double)(threads * 2) >= worth_a_thread)
        threads *= 2;
    return threads;
}
