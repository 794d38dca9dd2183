// Declarations that the kernels of matmul share: their arguments, and the checks of a call.
#ifndef HONE_KERNELS_MATMUL_MATMUL_H
#define HONE_KERNELS_MATMUL_MATMUL_H

#include "base/assert.h"

#include "hone/kernel.h"

// The order of values.
enum {
    MATMUL_A,
    MATMUL_B,
    MATMUL_C,
    MATMUL_TRANSPOSE_B,
    MATMUL_BIAS,
    MATMUL_ACTIVATION,
    MATMUL_RESIDUAL,
    MATMUL_VALUES
};

typedef enum hone_matmul_activation {
    MATMUL_NONE,
    MATMUL_RELU,
    MATMUL_GELU_TANH,
    MATMUL_GELU_ERF,
    MATMUL_SILU,
    MATMUL_ACTIVATIONS
} hone_matmul_activation;

// One product c = activation(a b + bias) + residual whose rows are dense. Strides are in elements, between consecutive
// rows of the stored array. For a batch this is the first product, and hone_matmul_at gives the others.
typedef struct hone_matmul {
    const void *a, *b;
    void *c;
    int64_t m, n, k;
    int64_t a_stride, b_stride, c_stride;
    bool transpose_b;       // b is [n, k]
    hone_dtype_id dtype;    // of c, the bias and the residual
    hone_dtype_id operands; // of a and b: the dtype, or that of the integers
    // The epilogue: applied to a sum before it is rounded to the dtype. The pointers of a call are not valid, so flags
    // say which arrays there are.
    bool has_bias, has_residual;
    hone_matmul_activation activation;
    const void *bias;     // n elements
    const void *residual; // m rows
    int64_t residual_stride;
    // For integers: a sum is first multiplied by the f32 scales of its row and of its column. A stride of 0 means one
    // scale for all.
    bool is_scaled;
    const float *a_scale, *b_scale;
    int64_t a_scale_stride, b_scale_stride;
    // The batch: the first `leading` axes of a, b, c and the residual, which are borrowed; 0: a single product.
    int32_t leading;
    int64_t batch; // products, if leading is not 0
    const hone_tensor *batched[MATMUL_VALUES];
} hone_matmul;

// Applies the epilogue to `count` sums of c's row from `column` on, in place: an instruction set's for floats, or the
// one for doubles, which calls the C library.
typedef void hone_matmul_finish(const hone_matmul *product, void *sums, int64_t row, int64_t column, int64_t count);
hone_matmul_finish hone_matmul_finish_portable, hone_matmul_finish_avx2, hone_matmul_finish_avx512,
    hone_matmul_finish_f64;

// How a call of an algorithm is converted to a product: matmul's, and other algorithms whose kernels share these loops.
typedef struct hone_matmul_form {
    hone_matmul (*of)(const hone_plan *plan, const hone_value *args);
    hone_matmul (*of_call)(const hone_call *call);
    // The requirements of all blocked and decoding kernels; if a call fails them, why gives the reason.
    bool (*is_plain)(const hone_call *call, hone_error *why);
} hone_matmul_form;

extern const hone_matmul_form hone_matmul_form_plain;

// The product of three matrices, the first along leading axes: their data, sizes and strides. The caller sets the rest.
hone_matmul hone_matmul_of_matrices(const hone_tensor *a, const hone_tensor *b, const hone_tensor *c);
// The product of a run's arguments.
hone_matmul hone_matmul_of(const hone_plan *plan, const hone_value *args);
// The product that a call describes; its pointers are not valid.
hone_matmul hone_matmul_of_call(const hone_call *call);
// Whether b is [n, k]: read from the plan's call, since a run's arguments may omit a default.
bool hone_matmul_transposes(const hone_plan *plan);

// The number of products.
static inline int64_t hone_matmul_batch(const hone_matmul *product)
{
    return product->leading == 0 ? 1 : product->batch;
}

// Whether the sums have terms: no size is 0.
static inline bool hone_matmul_has_terms(const hone_matmul *product)
{
    return product->m != 0 && product->n != 0 && product->k != 0 && hone_matmul_batch(product) != 0;
}

// The start of piece `index` of `count` nearly equal pieces: sizes differ by at most one.
static inline int64_t hone_matmul_piece(int64_t total, int64_t index, int64_t count)
{
    hone_assert(count > 0 && index >= 0 && index <= count);
    const int64_t rest = total % count;
    return total / count * index + (index < rest ? index : rest);
}

// Product `index` of a batch, as a single product. Only this function knows where it lies.
hone_matmul hone_matmul_at(const hone_matmul *product, int64_t index);
// The sizes and strides of its leading axes, in the form that libraries expect: an axis of stride 0 has size 1.
void hone_matmul_leading_axes(const hone_matmul *product, size_t value, int64_t *out_sizes, int64_t *out_strides);
// Whether the matrices of a batch's array are equally spaced, *out_stride elements apart: libraries call this a strided
// batch.
bool hone_matmul_is_strided(const hone_matmul *product, size_t value, int64_t *out_stride);
// Whether nothing has to be computed; if k is 0 the results have been written.
bool hone_matmul_is_done(const hone_matmul *product);

static inline bool hone_matmul_has_epilogue(const hone_matmul *product)
{
    return product->has_bias || product->has_residual || product->is_scaled || product->activation != MATMUL_NONE;
}

// MATMUL_ACTIVATIONS: there is none of that name.
hone_matmul_activation hone_matmul_activation_of(const hone_value *value);
double hone_matmul_activate(hone_matmul_activation activation, double x);

// There is an activation of the call's name; else why says which there are.
bool hone_matmul_knows_activation(const hone_kernel *kernel, const hone_call *call, hone_error *why);
// The rows of all matrices and the bias are dense, and the activation is known; else why says what is not.
bool hone_matmul_is_plain(const hone_call *call, hone_error *why);
// The largest power of two of threads that a batch of this size is worth, at most the device's and 64.
int64_t hone_matmul_threads(const hone_matmul *product, const hone_device_info *device);

// Of kernels that multiply and do nothing after it.
extern const char hone_matmul_plain_signature[];

hone_status hone_matmul_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

#endif
