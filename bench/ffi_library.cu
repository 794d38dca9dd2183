// The same on a GPU, by one launch of CUDA's runtime on the stream of tvm-ffi's environment: for nvcc.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

namespace ffi = tvm::ffi;

extern "C" __global__ void product(const float *x, const float *y, float *z, int n, float scale)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] * y[i] * scale;
}

static void multiply(ffi::TensorView x, ffi::TensorView y, ffi::TensorView z, double scale)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(z.device().device_type, z.device().device_id));
    product<<<(static_cast<unsigned>(z.numel()) + 255) / 256, 256, 0, stream>>>(
        static_cast<const float *>(x.data_ptr()), static_cast<const float *>(y.data_ptr()),
        static_cast<float *>(z.data_ptr()), static_cast<int>(z.numel()), static_cast<float>(scale));
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) TVM_FFI_THROW(RuntimeError) << cudaGetErrorString(status);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(multiply, multiply);

// The same with a result that the environment's allocator makes, and one that is kept behind the call.
static ffi::Tensor multiply_new(ffi::TensorView x, ffi::TensorView y, double scale)
{
    ffi::Tensor z = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
    multiply(x, y, z, scale);
    return z;
}

static ffi::Tensor multiply_kept(ffi::TensorView x, ffi::TensorView y, double scale)
{
    static ffi::Optional<ffi::Tensor> kept;
    kept = multiply_new(x, y, scale);
    return kept.value();
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(multiply_new, multiply_new);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(multiply_kept, multiply_kept);
