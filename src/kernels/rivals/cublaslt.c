// A product of row-major matrices is a product of column-major matrices in reverse order: c' = b' a'.
#include "kernels/rivals/cublaslt.h"

#include "base/error.h"
#include "base/hash.h"
#include "call/call.h"
#include "kernels/common/half.h"
#include "kernels/matmul/matmul.h"
#include "kernels/rivals/cublaslt_library.h"
#include "os/mutex.h"
#include "platforms/cuda/borrowed.h"

#include "hone/describe.h"

#include <stdatomic.h>
#include <string.h>

static const char where[] = "rivals.cublaslt";

enum { ALGORITHM, WORKSPACE_MIB, PROPOSALS = 16 };

const char hone_cublaslt_signature[] =
    "matmul(a: T[..., m, k], b: T[..., n, k] if transpose_b else [..., k, n], *, transpose_b: bool = false, "
    "bias: T[n]? = none #given, activation: str? = none #given, residual: T[..., m, n]? = none #given) -> "
    "c: T[..., m, n] where T in f32, f16, bf16, f64";

// The index of its proposal, beginning with the one that it expects to be the fastest; and how much memory it may use
// for partial sums.
const char hone_cublaslt_space[] = "algorithm: 0..15\n"
                                   "workspace_mib: 0 | 32 default 32\n";

typedef struct state {
    hone_allocator allocator;
    cublaslt library;
    cuda_driver driver;
    cuda_context *context;
    cublaslt_handle *handle;
    cublaslt_product *product;
    cublaslt_layout *a, *b, *c, *residual; // residual: c without a residual
    bool is_f64;
    hone_mutex describing; // guards the addresses of bias and scales, which are part of the product's description
    cublaslt_preference *preference;
    cublaslt_proposal proposal;
    cuda_address workspace;
    // The stream that uses the workspace: runs on one stream are ordered; runs on other streams borrow memory.
    atomic_uintptr_t owner; // 0: none yet
} state;

// Its gelu is the tanh form, and its relu converts NaN to 0, while hone's keeps NaN. A residual is its C, which it adds
// before the activation.
static bool has_epilogue(const hone_matmul *product, hone_error *why)
{
    const hone_matmul_activation activation = product->activation;
    if (product->dtype == HONE_F64 && (product->has_bias || activation != MATMUL_NONE)) {
        hone_fail(why, HONE_UNSUPPORTED, where, "cuBLASLt has no bias and no activation behind a product of f64");
        return false;
    }
    if (activation == MATMUL_RELU) {
        hone_fail(why, HONE_UNSUPPORTED, where, "cuBLASLt's relu makes 0 of NaN; expected none or gelu_tanh, got relu");
        return false;
    }
    if (activation != MATMUL_NONE && activation != MATMUL_GELU_TANH) {
        hone_fail(
            why, HONE_UNSUPPORTED, where, "cuBLASLt has no activation %s; expected none or gelu_tanh",
            activation == MATMUL_SILU ? "silu" : "gelu_erf");
        return false;
    }
    if (activation == MATMUL_NONE || !product->has_residual) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, where, "cuBLASLt adds a residual before the activation: expected one of them, got both");
    return false;
}

static bool has_strided_batch(const hone_matmul *product, hone_error *why)
{
    static const struct {
        size_t value;
        const char *name;
    } arrays[] = {{MATMUL_A, "a"}, {MATMUL_B, "b"}, {MATMUL_C, "c"}, {MATMUL_RESIDUAL, "the residual"}};
    if (product->leading == 0) return true;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        int64_t stride = 0;
        if (product->batched[arrays[i].value] == NULL) continue;
        if (hone_matmul_is_strided(product, arrays[i].value, &stride) && stride >= 0) continue;
        hone_fail(
            why, HONE_UNSUPPORTED, where,
            "the leading axes of %s cannot be merged into one; cuBLASLt needs matrices at equal distances",
            arrays[i].name);
        return false;
    }
    if (product->batch <= INT32_MAX) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, where, "cuBLASLt takes batches of up to %d products, this one has %lld", INT32_MAX,
        (long long)product->batch);
    return false;
}

bool hone_cublaslt_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    const hone_matmul product = hone_matmul_of_call(call);
    if (!hone_matmul_is_plain(call, why)) return false;
    if (!has_epilogue(&product, why)) return false;
    if (!has_strided_batch(&product, why)) return false;
    if (hone_matmul_has_terms(&product)) return hone_cublaslt_is_here(why);
    hone_fail(why, HONE_UNSUPPORTED, where, "cuBLASLt multiplies matrices that have elements");
    return false;
}

static hone_status check(int result, const char *what, hone_error *err)
{
    if (result == CUBLASLT_SUCCESS) return HONE_OK;
    hone_status status = result == CUBLASLT_NOT_SUPPORTED ? HONE_UNSUPPORTED : HONE_KERNEL_FAILED;
    hone_fail(err, status, where, "%s answers status %d", what, result);
    if (err != NULL) err->system_code = result;
    return status;
}

static int type_of(hone_dtype_id dtype)
{
    if (dtype == HONE_F64) return CUBLASLT_F64;
    if (dtype == HONE_F8_E4M3FN) return CUBLASLT_F8_E4M3;
    return dtype == HONE_F32 ? CUBLASLT_F32 : dtype == HONE_F16 ? CUBLASLT_F16 : CUBLASLT_BF16;
}

// A leading dimension that is also accepted for a matrix of one row, whose stride is arbitrary.
static int64_t leading(int64_t stride, int64_t columns)
{
    return stride > columns ? stride : columns;
}

// The least alignment of all arrays, and of the later matrices of a batch.
static uint32_t least_alignment(const hone_call *call, const hone_matmul *product)
{
    uint32_t least = HONE_ORDINARY_ALIGN;
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        uint32_t own = hone_call_align(call, i);
        if (own != 0 && own < least) least = own;
    }
    for (size_t i = 0; i < MATMUL_VALUES && product->leading != 0; i++) {
        int64_t stride = 0;
        if (i == MATMUL_BIAS || product->batched[i] == NULL) continue;
        (void)hone_matmul_is_strided(product, i, &stride);
        while (least > 1 && stride * hone_element_size(product->dtype) % least != 0)
            least /= 2;
    }
    return least;
}

// Describes one matrix, or those of a batch.
static int describe_matrix(
    state *s,
    const hone_matmul *product,
    size_t value,
    uint64_t rows,
    uint64_t columns,
    int64_t distance,
    cublaslt_layout **out)
{
    const int32_t count = (int32_t)hone_matmul_batch(product);
    const bool is_operand = value == MATMUL_A || value == MATMUL_B;
    int64_t stride = 0;
    int result = s->library.layout_create(
        out, type_of(is_operand ? product->operands : product->dtype), rows, columns, distance);
    if (result != 0 || product->leading == 0) return result;
    (void)hone_matmul_is_strided(product, value, &stride);
    result = s->library.layout_set(*out, CUBLASLT_BATCH_COUNT, &count, sizeof count);
    return result == 0 ? s->library.layout_set(*out, CUBLASLT_BATCH_STRIDE, &stride, sizeof stride) : result;
}

// Sets nothing if there is no epilogue. The proposals for a product with a bias may depend on the bias's address, which
// is not known yet: an invented address with the least alignment stands in for it.
static int describe_epilogue(state *s, const hone_matmul *product, uint32_t alignment)
{
    const uintptr_t some_bias = 4096 + alignment;
    static const int32_t activations[MATMUL_ACTIVATIONS] = {[MATMUL_GELU_TANH] = CUBLASLT_WITH_GELU_TANH};
    const int32_t epilogue = activations[product->activation] | (product->has_bias ? CUBLASLT_WITH_BIAS : 0);
    if (epilogue == 0) return CUBLASLT_SUCCESS;
    int result = s->library.product_set(s->product, CUBLASLT_EPILOGUE, &epilogue, sizeof epilogue);
    if (result != CUBLASLT_SUCCESS || !product->has_bias) return result;
    return s->library.product_set(s->product, CUBLASLT_BIAS_POINTER, &some_bias, sizeof some_bias);
}

bool hone_cublaslt_has_scales_of_each(const hone_matmul *product)
{
    return (product->m == 1 || product->a_scale_stride == 1) && (product->n == 1 || product->b_scale_stride == 1);
}

// cuBLASLt's first matrix is hone's b.
static int set_scales(state *s, const float *a_scale, const float *b_scale)
{
    int result = s->library.product_set(s->product, CUBLASLT_SCALE_POINTER_A, &b_scale, sizeof b_scale);
    if (result != CUBLASLT_SUCCESS) return result;
    return s->library.product_set(s->product, CUBLASLT_SCALE_POINTER_B, &a_scale, sizeof a_scale);
}

// One scale for each matrix is its default. A library that does not know the other mode does not support such a
// product.
static int describe_scales(state *s, const hone_matmul *product, uint32_t alignment)
{
    const int32_t mode = CUBLASLT_SCALE_OF_EACH;
    const float *some_scale = (const float *)(uintptr_t)(4096 + alignment);
    if (!product->is_scaled) return CUBLASLT_SUCCESS;
    for (int i = CUBLASLT_SCALE_MODE_A; hone_cublaslt_has_scales_of_each(product) && i <= CUBLASLT_SCALE_MODE_B; i++)
        if (s->library.product_set(s->product, i, &mode, sizeof mode) != CUBLASLT_SUCCESS)
            return CUBLASLT_NOT_SUPPORTED;
    return set_scales(s, some_scale, some_scale);
}

// cuBLASLt's first matrix is hone's b, its second a. A bias runs along its rows, which are hone's columns.
static int describe(state *s, const hone_matmul *product, uint32_t alignment)
{
    const int32_t form = product->transpose_b ? CUBLASLT_TRANSPOSED : CUBLASLT_PLAIN;
    const uint64_t m = (uint64_t)product->m, n = (uint64_t)product->n, k = (uint64_t)product->k;
    int result = s->is_f64 ? s->library.product_create(&s->product, CUBLASLT_COMPUTE_F64, CUBLASLT_F64)
                           : s->library.product_create(&s->product, CUBLASLT_COMPUTE_F32, CUBLASLT_F32);
    if (result == 0) result = s->library.product_set(s->product, CUBLASLT_TRANSPOSE_A, &form, sizeof form);
    if (result == 0)
        result = describe_matrix(
            s, product, MATMUL_B, product->transpose_b ? k : n, product->transpose_b ? n : k,
            leading(product->b_stride, product->transpose_b ? product->k : product->n), &s->b);
    if (result == 0)
        result = describe_matrix(s, product, MATMUL_A, k, m, leading(product->a_stride, product->k), &s->a);
    if (result == 0)
        result = describe_matrix(s, product, MATMUL_C, n, m, leading(product->c_stride, product->n), &s->c);
    if (result == 0 && product->has_residual)
        result = describe_matrix(
            s, product, MATMUL_RESIDUAL, n, m, leading(product->residual_stride, product->n), &s->residual);
    if (result == 0 && !product->has_residual) s->residual = s->c;
    if (result == 0) result = describe_scales(s, product, alignment);
    return result == 0 ? describe_epilogue(s, product, alignment) : result;
}

static int prefer(state *s, const hone_plan *plan, uint32_t alignment)
{
    const size_t most = (size_t)plan->config[WORKSPACE_MIB] << 20;
    int result = s->library.preference_create(&s->preference);
    if (result == 0) result = s->library.preference_set(s->preference, CUBLASLT_MAX_WORKSPACE, &most, sizeof most);
    for (int i = CUBLASLT_LEAST_ALIGNMENT_A; result == 0 && i <= CUBLASLT_LEAST_ALIGNMENT_D; i++)
        result = s->library.preference_set(s->preference, i, &alignment, sizeof alignment);
    return result;
}

static hone_status choose(state *s, const hone_plan *plan, hone_error *err)
{
    cublaslt_proposal proposals[PROPOSALS];
    int count = 0;
    const int64_t wanted = plan->config[ALGORITHM];
    hone_status status = check(
        s->library.propose(
            s->handle, s->product, s->b, s->a, s->residual, s->c, s->preference, PROPOSALS, proposals, &count),
        "cublasLtMatmulAlgoGetHeuristic", err);
    if (status != HONE_OK) return status;
    if (wanted >= count || proposals[wanted].status != CUBLASLT_SUCCESS)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "cuBLASLt %zu proposes %d algorithms for this product, not %lld",
            s->library.version(), count, (long long)wanted + 1);
    s->proposal = proposals[wanted];
    return HONE_OK;
}

static hone_status take_workspace(state *s, hone_error *err)
{
    if (s->proposal.workspace_bytes == 0) return HONE_OK;
    cuda_result result = s->driver.memory_allocate(&s->workspace, s->proposal.workspace_bytes);
    if (result == CUDA_SUCCESS) return HONE_OK;
    s->workspace = 0;
    return hone_fail(
        err, result == CUDA_OUT_OF_MEMORY ? HONE_OUT_OF_MEMORY : HONE_KERNEL_FAILED, where,
        "the GPU has no %zu bytes for the workspace (%d)", s->proposal.workspace_bytes, result);
}

static const hone_matmul_form *form_of(const hone_plan *plan)
{
    return plan->kernel->user;
}

static hone_status make_ready(state *s, const hone_plan *plan, hone_error *err)
{
    const hone_matmul product = form_of(plan)->of_call(plan->call);
    const uint32_t alignment = least_alignment(plan->call, &product);
    hone_status status = hone_cuda_driver_open(&s->allocator, &s->driver, err);
    if (status == HONE_OK) status = hone_cublaslt_open(&s->allocator, &s->library, err);
    if (status != HONE_OK) return status;
    (void)s->driver.context_get_current(&s->context);
    s->is_f64 = product.dtype == HONE_F64;
    status = check(s->library.create(&s->handle), "cublasLtCreate", err);
    if (status == HONE_OK) status = check(describe(s, &product, alignment), "describing the product", err);
    if (status == HONE_OK) status = check(prefer(s, plan, alignment), "cublasLtMatmulPreferenceSetAttribute", err);
    if (status == HONE_OK) status = choose(s, plan, err);
    return status == HONE_OK ? take_workspace(s, err) : status;
}

// Makes the state's context current on this thread; false if that fails.
static bool enter(const state *s, cuda_context **out_before)
{
    *out_before = NULL;
    (void)s->driver.context_get_current(out_before);
    return *out_before == s->context || s->driver.context_set_current(s->context) == CUDA_SUCCESS;
}

static void leave(const state *s, cuda_context *before)
{
    if (before != s->context) (void)s->driver.context_set_current(before);
}

static void destroy(state *s)
{
    cuda_context *before = NULL;
    bool entered = s->driver.library != NULL && s->context != NULL && enter(s, &before);
    if (s->workspace != 0 && entered) (void)s->driver.memory_free(s->workspace);
    if (s->preference != NULL) (void)s->library.preference_destroy(s->preference);
    cublaslt_layout *const layouts[] = {s->a, s->b, s->c, s->residual != s->c ? s->residual : NULL};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i] != NULL) (void)s->library.layout_destroy(layouts[i]);
    if (s->product != NULL) (void)s->library.product_destroy(s->product);
    if (s->handle != NULL) (void)s->library.destroy(s->handle);
    if (entered) leave(s, before);
    hone_cublaslt_close(&s->allocator, &s->library);
    hone_cuda_driver_close(&s->allocator, &s->driver);
    hone_mutex_deinit(&s->describing);
    hone_allocator allocator = s->allocator;
    hone_free(&allocator, s);
}

hone_status hone_cublaslt_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    state *s = hone_alloc(&allocator, sizeof *s);
    *out_scratch_bytes = 0;
    if (s == NULL) return hone_fail_memory(err, where);
    s->allocator = allocator;
    hone_mutex_init(&s->describing);
    hone_status status = make_ready(s, plan, err);
    if (status == HONE_OK)
        *out_state = s;
    else
        destroy(s);
    return status;
}

void hone_cublaslt_release(const hone_kernel *kernel, void *given)
{
    (void)kernel;
    if (given != NULL) destroy(given);
}

// Configs with the same proposal have the same digest.
uint64_t hone_cublaslt_digest(const hone_plan *plan)
{
    const state *s = plan->state;
    return hone_hash64((const char *)&s->proposal.algorithm, sizeof s->proposal.algorithm);
}

static bool owns_workspace(state *s, const void *stream)
{
    uintptr_t owner = 0;
    const uintptr_t own = (uintptr_t)stream + 1; // the default stream is NULL
    return atomic_compare_exchange_strong(&s->owner, &owner, own) || owner == own;
}

static int multiply_described(const state *s, const hone_matmul *product, cuda_address workspace, void *stream)
{
    static const float one = 1, zero = 0;
    static const double one_f64 = 1, zero_f64 = 0;
    const void *alpha = s->is_f64 ? (const void *)&one_f64 : &one;
    const void *beta = s->is_f64 ? (const void *)&zero_f64 : &zero;
    const void *added = product->has_residual ? product->residual : product->c;
    return s->library.multiply(
        s->handle, s->product, alpha, product->b, s->b, product->a, s->a, product->has_residual ? alpha : beta, added,
        s->residual, product->c, s->c, &s->proposal.algorithm, (void *)(uintptr_t)workspace,
        s->proposal.workspace_bytes, stream);
}

// cuBLASLt reads a description only while its product is queued.
static int multiply(state *s, const hone_matmul *product, cuda_address workspace, void *stream)
{
    int result = CUBLASLT_SUCCESS;
    if (!product->has_bias && !product->is_scaled) return multiply_described(s, product, workspace, stream);
    hone_mutex_lock(&s->describing);
    if (product->has_bias)
        result = s->library.product_set(s->product, CUBLASLT_BIAS_POINTER, &product->bias, sizeof product->bias);
    if (product->is_scaled && result == CUBLASLT_SUCCESS) result = set_scales(s, product->a_scale, product->b_scale);
    if (result == CUBLASLT_SUCCESS) result = multiply_described(s, product, workspace, stream);
    hone_mutex_unlock(&s->describing);
    return result;
}

static int multiply_elsewhere(state *s, const hone_matmul *product, const hone_execution *execution, void *stream)
{
    hone_cuda_borrowed workspace;
    if (hone_cuda_borrow(&s->driver, execution, s->proposal.workspace_bytes, &workspace) != CUDA_SUCCESS)
        return CUBLASLT_NOT_SUPPORTED;
    int result = multiply(s, product, workspace.address, stream);
    (void)hone_cuda_return(&s->driver, execution, &workspace);
    return result;
}

hone_status hone_cublaslt_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    state *s = plan->state;
    cuda_context *before = NULL;
    void *stream = execution != NULL ? execution->stream : NULL;
    const hone_matmul product = form_of(plan)->of(plan, args);
    if (!enter(s, &before)) return HONE_KERNEL_FAILED;
    int result = s->workspace == 0 || owns_workspace(s, stream) ? multiply(s, &product, s->workspace, stream)
                                                                : multiply_elsewhere(s, &product, execution, stream);
    leave(s, before);
    if (result == CUBLASLT_SUCCESS) return HONE_OK;
    return result == CUBLASLT_NOT_SUPPORTED ? HONE_UNSUPPORTED : HONE_KERNEL_FAILED;
}
