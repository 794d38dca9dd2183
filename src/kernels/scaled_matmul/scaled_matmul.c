#include "kernels/scaled_matmul/scaled_matmul.h"

#include "base/error.h"
#include "hone/describe.h"
#include "kernels/common/matrix.h"

hone_dtype_id hone_scaled_matmul_operands(const hone_tensor *a)
{
    const hone_dtype_info *info = hone_dtype_find(a->dtype);
    return info != NULL ? info->id : HONE_DTYPE_COUNT;
}

static hone_matmul product_of(const hone_tensor *const tensors[SCALED_MATMUL_VALUES], const hone_value *scalars)
{
    const hone_tensor *a_scale = tensors[SCALED_MATMUL_A_SCALE], *b_scale = tensors[SCALED_MATMUL_B_SCALE];
    hone_matmul product =
        hone_matmul_of_matrices(tensors[SCALED_MATMUL_A], tensors[SCALED_MATMUL_B], tensors[SCALED_MATMUL_C]);
    product.operands = hone_scaled_matmul_operands(tensors[SCALED_MATMUL_A]);
    product.transpose_b = scalars[SCALED_MATMUL_TRANSPOSE_B].as.i64 != 0;
    product.has_bias = product.is_scaled = true;
    product.bias = hone_tensor_data(tensors[SCALED_MATMUL_BIAS]);
    product.a_scale = hone_tensor_data(a_scale);
    product.b_scale = hone_tensor_data(b_scale);
    product.a_scale_stride = hone_axis_stride(a_scale, 0);
    product.b_scale_stride = hone_axis_stride(b_scale, 0);
    return product;
}

// Scalars are read from the plan's call, since a run's arguments may omit a default.
static hone_matmul product_of_args(const hone_plan *plan, const hone_value *args)
{
    const hone_tensor *tensors[SCALED_MATMUL_VALUES] = {0};
    for (size_t i = SCALED_MATMUL_A; i <= SCALED_MATMUL_C; i++)
        tensors[i] = args[i].as.tensor;
    return product_of(tensors, hone_call_values(plan->call));
}

static hone_matmul product_of_call(const hone_call *call)
{
    const hone_tensor *tensors[SCALED_MATMUL_VALUES] = {0};
    for (size_t i = SCALED_MATMUL_A; i <= SCALED_MATMUL_C; i++)
        tensors[i] = hone_call_tensor(call, i);
    return product_of(tensors, hone_call_values(call));
}

static bool refuse(const hone_call *call, size_t value, const char *asks, hone_error *why)
{
    const char *name = hone_signature_parameter(hone_call_signature(call), value)->name;
    hone_fail(why, HONE_UNSUPPORTED, "scaled_matmul", "%s: this kernel reads %s", name, asks);
    return false;
}

static bool is_dense_row(const hone_tensor *tensor)
{
    return tensor->shape[0] <= 1 || hone_axis_stride(tensor, 0) == 1;
}

bool hone_scaled_matmul_has_dense_rows(const hone_call *call, hone_error *why)
{
    static const size_t matrices[] = {SCALED_MATMUL_A, SCALED_MATMUL_B, SCALED_MATMUL_C};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const hone_matrix matrix = hone_matrix_of(hone_call_tensor(call, matrices[i]));
        if (!hone_matrix_has_dense_rows(&matrix))
            return refuse(call, matrices[i], "rows whose elements lie side by side, one after another", why);
    }
    const hone_tensor *scale = hone_call_tensor(call, SCALED_MATMUL_B_SCALE);
    if (!is_dense_row(scale) && hone_axis_stride(scale, 0) != 0)
        return refuse(call, SCALED_MATMUL_B_SCALE, "scales that lie side by side, or one for all (stride 0)", why);
    if (!is_dense_row(hone_call_tensor(call, SCALED_MATMUL_BIAS)))
        return refuse(call, SCALED_MATMUL_BIAS, "elements that lie side by side", why);
    return true;
}

static bool is_plain(const hone_call *call, hone_error *why)
{
    if (hone_scaled_matmul_operands(hone_call_tensor(call, SCALED_MATMUL_A)) != HONE_I8)
        return refuse(call, SCALED_MATMUL_A, "8 bit integers", why);
    if (!hone_scaled_matmul_has_dense_rows(call, why)) return false;
    const int64_t k = hone_matrix_of(hone_call_tensor(call, SCALED_MATMUL_A)).columns;
    if (k <= SCALED_MATMUL_MOST_K) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, "scaled_matmul",
        "k is %lld; this kernel sums in 32 bits, which hold at most %d products", (long long)k, SCALED_MATMUL_MOST_K);
    return false;
}

const hone_matmul_form hone_scaled_matmul_form = {product_of_args, product_of_call, is_plain};
