#include "kernels/matmul/matmul.h"

#include "base/error.h"
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"

#include <math.h>
#include <string.h>

static const char where[] = "matmul";

const char hone_matmul_plain_signature[] =
    "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "
    "where T in f32, f16, bf16";

// The least multiply-adds per thread for which using another thread pays: about 5 us.
static const double worth_a_thread = 1 << 18;

// Whether the rows of the next index of the axis follow those of this one.
static bool goes_on(const hone_tensor *tensor, int32_t axis, const hone_matrix *matrix, int64_t *out_stride)
{
    const int64_t stride = hone_axis_stride(tensor, axis);
    *out_stride = matrix->rows == 1 ? stride : matrix->row_stride;
    return matrix->columns > 0 && stride >= matrix->columns && stride == matrix->rows * *out_stride;
}

// A batch of products with a single b is one product of more rows, if the rows of a, c and the residual continue from
// product to product: b is then read and packed only once. Axes of size 1 are ignored.
static void join_rows(hone_matmul *product)
{
    const hone_tensor *a = product->batched[MATMUL_A], *b = product->batched[MATMUL_B], *c = product->batched[MATMUL_C],
                      *residual = product->batched[MATMUL_RESIDUAL];
    for (; product->leading > 0; product->leading--) {
        const int32_t axis = product->leading - 1;
        const int64_t size = c->shape[axis], m = product->m;
        if (size == 1) continue;
        const hone_matrix of_a = {NULL, m, product->k, product->a_stride, 1},
                          of_c = {NULL, m, product->n, product->c_stride, 1},
                          added = {NULL, m, product->n, product->residual_stride, 1};
        int64_t a_stride, c_stride, residual_stride = 0;
        if (size == 0 || m == 0 || hone_axis_stride(b, axis) != 0 || !goes_on(a, axis, &of_a, &a_stride) ||
            !goes_on(c, axis, &of_c, &c_stride) ||
            (residual != NULL && !goes_on(residual, axis, &added, &residual_stride)))
            return;
        product->m *= size;
        product->a_stride = a_stride;
        product->c_stride = c_stride;
        product->residual_stride = residual_stride;
    }
}

static void take_batch(hone_matmul *product, const hone_tensor *const tensors[MATMUL_VALUES])
{
    memcpy(product->batched, tensors, sizeof product->batched);
    product->leading = tensors[MATMUL_C]->ndim - 2;
    join_rows(product);
    product->batch = 1;
    for (int32_t axis = 0; axis < product->leading; axis++)
        product->batch *= tensors[MATMUL_C]->shape[axis];
}

hone_matmul hone_matmul_of_matrices(const hone_tensor *a, const hone_tensor *b, const hone_tensor *c)
{
    const hone_matrix left = hone_matrix_of(a), right = hone_matrix_of(b), result = hone_matrix_of(c);
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
        .dtype = hone_float_id(c->dtype),
        .operands = hone_float_id(c->dtype),
    };
}

// tensors  in the order of the signature's values; NULL for an omitted argument
// scalars  the values of the call
static hone_matmul product_of(const hone_tensor *const tensors[MATMUL_VALUES], const hone_value *scalars)
{
    const hone_tensor *bias = tensors[MATMUL_BIAS], *residual = tensors[MATMUL_RESIDUAL];
    hone_matmul product = hone_matmul_of_matrices(tensors[MATMUL_A], tensors[MATMUL_B], tensors[MATMUL_C]);
    product.transpose_b = scalars[MATMUL_TRANSPOSE_B].as.i64 != 0;
    product.has_bias = bias != NULL;
    product.has_residual = residual != NULL;
    product.activation = hone_matmul_activation_of(&scalars[MATMUL_ACTIVATION]);
    if (bias != NULL) product.bias = hone_tensor_data(bias);
    if (residual != NULL) {
        const hone_matrix added = hone_matrix_of(residual);
        product.residual = added.data;
        product.residual_stride = added.row_stride;
    }
    if (tensors[MATMUL_C]->ndim > 2) take_batch(&product, tensors);
    return product;
}

hone_matmul hone_matmul_of(const hone_plan *plan, const hone_value *args)
{
    // Scalars are read from the plan's call, since a run's arguments may omit a default.
    const hone_tensor *tensors[MATMUL_VALUES];
    for (size_t i = 0; i < MATMUL_VALUES; i++)
        tensors[i] = args[i].tag == HONE_VALUE_TENSOR ? args[i].as.tensor : NULL;
    return product_of(tensors, hone_call_values(plan->call));
}

hone_matmul hone_matmul_of_call(const hone_call *call)
{
    const hone_tensor *tensors[MATMUL_VALUES];
    for (size_t i = 0; i < MATMUL_VALUES; i++)
        tensors[i] = hone_call_tensor(call, i);
    return product_of(tensors, hone_call_values(call));
}

bool hone_matmul_transposes(const hone_plan *plan)
{
    return hone_call_values(plan->call)[MATMUL_TRANSPOSE_B].as.i64 != 0;
}

// Bytes from the first matrix of a batch's array to that of product `index`.
static int64_t offset_of(const hone_matmul *product, size_t value, int64_t index)
{
    return hone_matrix_offset(product->batched[value], product->leading, index) * hone_element_size(product->dtype);
}

hone_matmul hone_matmul_at(const hone_matmul *product, int64_t index)
{
    hone_matmul one = *product;
    one.leading = 0;
    if (product->leading == 0) return one;
    one.a = (const char *)product->a + offset_of(product, MATMUL_A, index);
    one.b = (const char *)product->b + offset_of(product, MATMUL_B, index);
    one.c = (char *)product->c + offset_of(product, MATMUL_C, index);
    if (product->has_residual)
        one.residual = (const char *)product->residual + offset_of(product, MATMUL_RESIDUAL, index);
    return one;
}

void hone_matmul_leading_axes(const hone_matmul *product, size_t value, int64_t *out_sizes, int64_t *out_strides)
{
    const hone_tensor *tensor = product->batched[value];
    for (int32_t axis = 0; axis < product->leading; axis++) {
        const int64_t stride = hone_axis_stride(tensor, axis);
        out_sizes[axis] = stride == 0 ? 1 : tensor->shape[axis];
        out_strides[axis] = stride == 0 ? 1 : stride;
    }
}

bool hone_matmul_is_strided(const hone_matmul *product, size_t value, int64_t *out_stride)
{
    const hone_tensor *tensor = product->batched[value];
    int64_t next = 0; // the expected stride of the current axis
    bool known = false;
    *out_stride = 0;
    for (int32_t axis = product->leading - 1; axis >= 0; axis--) {
        const int64_t stride = hone_axis_stride(tensor, axis), size = tensor->shape[axis];
        if (size == 1) continue;
        if (known && stride != next) return false;
        if (!known) *out_stride = stride;
        known = true;
        next = stride * size;
    }
    return true;
}

// The product with k = 0: sums of 0, with the epilogue.
static void clear_one(const hone_matmul *product)
{
    for (int64_t i = 0; i < product->m; i++)
        for (int64_t j = 0; j < product->n; j++) {
            double sum = 0; // times scales that are NaN or infinite gives NaN
            if (product->is_scaled)
                sum *= (double)product->a_scale[i * product->a_scale_stride] *
                       (double)product->b_scale[j * product->b_scale_stride];
            if (product->has_bias) sum += hone_element_get_double(product->bias, product->dtype, j);
            sum = hone_matmul_activate(product->activation, sum);
            if (product->has_residual)
                sum += hone_element_get_double(product->residual, product->dtype, i * product->residual_stride + j);
            hone_element_put_double(product->c, product->dtype, i * product->c_stride + j, sum);
        }
}

bool hone_matmul_is_done(const hone_matmul *product)
{
    if (hone_matmul_has_terms(product)) return false;
    for (int64_t i = 0; i < hone_matmul_batch(product); i++) {
        const hone_matmul one = hone_matmul_at(product, i);
        clear_one(&one);
    }
    return true;
}

// The epilogue --------------------------------------------------------------------------------------------------------

hone_matmul_activation hone_matmul_activation_of(const hone_value *value)
{
    static const char *const names[MATMUL_ACTIVATIONS] = {
        [MATMUL_NONE] = "",
        [MATMUL_RELU] = "relu",
        [MATMUL_GELU_TANH] = "gelu_tanh",
        [MATMUL_GELU_ERF] = "gelu_erf",
        [MATMUL_SILU] = "silu"};
    if (value->tag != HONE_VALUE_STRING) return MATMUL_NONE;
    int i = MATMUL_NONE + 1;
    while (i < MATMUL_ACTIVATIONS && strcmp(names[i], value->as.string) != 0)
        i++;
    return (hone_matmul_activation)i;
}

// NaN stays NaN.
double hone_matmul_activate(hone_matmul_activation activation, double x)
{
    switch (activation) {
    case MATMUL_RELU:
        return x < 0 ? 0 : x;
    case MATMUL_GELU_TANH: // x (1 + tanh u) / 2 = x / (1 + e^-2u)
        return x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
    case MATMUL_GELU_ERF:
        return 0.5 * x * erfc(-x * 0.7071067811865476);
    case MATMUL_SILU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

void hone_matmul_finish_f64(const hone_matmul *product, void *sums, int64_t row, int64_t column, int64_t count)
{
    double *sum = sums;
    const double *bias = product->bias, *residual = product->residual;
    for (int64_t j = 0; j < count; j++) {
        if (product->has_bias) sum[j] += bias[column + j];
        sum[j] = hone_matmul_activate(product->activation, sum[j]);
        if (product->has_residual) sum[j] += residual[row * product->residual_stride + column + j];
    }
}

// What a kernel asks of a call ----------------------------------------------------------------------------------------

bool hone_matmul_knows_activation(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_value *value = &hone_call_values(call)[MATMUL_ACTIVATION];
    (void)kernel;
    if (hone_matmul_activation_of(value) != MATMUL_ACTIVATIONS) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, where,
        "activation is '%.60s', expected relu, gelu_tanh, gelu_erf or silu, or none of them", value->as.string);
    return false;
}

static bool bias_is_dense(const hone_call *call, hone_error *why)
{
    const hone_tensor *bias = hone_call_tensor(call, MATMUL_BIAS);
    if (bias == NULL || bias->shape[0] <= 1 || hone_axis_stride(bias, 0) == 1) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, where, "bias has stride %lld; this kernel reads elements that lie side by side",
        (long long)hone_axis_stride(bias, 0));
    return false;
}

static bool rows_are_dense(const hone_call *call, hone_error *why)
{
    static const char *const names[MATMUL_VALUES] = {
        [MATMUL_A] = "a", [MATMUL_B] = "b", [MATMUL_C] = "c", [MATMUL_RESIDUAL] = "residual"};
    for (size_t i = MATMUL_A; i < MATMUL_VALUES; i++) {
        const hone_tensor *tensor = names[i] != NULL ? hone_call_tensor(call, i) : NULL;
        if (tensor == NULL) continue;
        hone_matrix matrix = hone_matrix_of(tensor);
        if (hone_matrix_has_dense_rows(&matrix)) continue;
        hone_fail(
            why, HONE_UNSUPPORTED, where,
            "%s has strides [%lld, %lld]; this kernel reads rows whose elements lie side by side, one after another",
            names[i], (long long)matrix.row_stride, (long long)matrix.column_stride);
        return false;
    }
    return true;
}

bool hone_matmul_is_plain(const hone_call *call, hone_error *why)
{
    return rows_are_dense(call, why) && bias_is_dense(call, why) && hone_matmul_knows_activation(NULL, call, why);
}

const hone_matmul_form hone_matmul_form_plain = {hone_matmul_of, hone_matmul_of_call, hone_matmul_is_plain};

int64_t hone_matmul_threads(const hone_matmul *product, const hone_device_info *device)
{
    double work = (double)hone_matmul_batch(product) * (double)product->m * (double)product->n * (double)product->k;
    int64_t threads = 1, limit = device != NULL ? device->threads : 1;
    while (threads < 64 && threads * 2 <= limit && work / (double)(threads * 2) >= worth_a_thread)
        threads *= 2;
    return threads;
}
