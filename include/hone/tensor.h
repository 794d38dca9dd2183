// Tensors, element types and devices, laid out as DLPack lays them out.
//
// A hone_tensor has the layout of DLPack's DLTensor (48 bytes), so arrays of numpy, torch and JAX
// can be passed as they are. It is a view: it owns neither data, shape nor strides.
// Source of the layout and of the numbers: dlpack.h, DLPack 1.1.
#ifndef HONE_TENSOR_H
#define HONE_TENSOR_H

#include "hone/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// DLPack's device types, those that hone knows by name.
typedef enum hone_device_type {
    HONE_DEVICE_CPU = 1,
    HONE_DEVICE_CUDA = 2,
    HONE_DEVICE_CUDA_HOST = 3,
    HONE_DEVICE_OPENCL = 4,
    HONE_DEVICE_METAL = 8,
    HONE_DEVICE_ROCM = 10,
    HONE_DEVICE_TPU = 12 // DLPack's "extension device"
} hone_device_type;

typedef struct hone_device {
    int32_t type; // hone_device_type
    int32_t id;
} hone_device;

// DLPack's type codes.
typedef enum hone_dtype_code {
    HONE_CODE_INT = 0,
    HONE_CODE_UINT = 1,
    HONE_CODE_FLOAT = 2,
    HONE_CODE_BFLOAT = 4,
    HONE_CODE_COMPLEX = 5,
    HONE_CODE_BOOL = 6,
    HONE_CODE_FLOAT8_E4M3FN = 10,
    HONE_CODE_FLOAT8_E5M2 = 12
} hone_dtype_code;

typedef struct hone_dtype {
    uint8_t code; // hone_dtype_code
    uint8_t bits; // of one lane
    uint16_t lanes;
} hone_dtype;

// The element types that hone knows. i4 and u4 are packed two in a byte, low half first.
typedef enum hone_dtype_id {
    HONE_BOOL,
    HONE_I4,
    HONE_I8,
    HONE_I16,
    HONE_I32,
    HONE_I64,
    HONE_U4,
    HONE_U8,
    HONE_U16,
    HONE_U32,
    HONE_U64,
    HONE_F8_E4M3FN,
    HONE_F8_E5M2,
    HONE_F16,
    HONE_BF16,
    HONE_F32,
    HONE_F64,
    HONE_C64,
    HONE_C128,
    HONE_DTYPE_COUNT
} hone_dtype_id;

// The names and numbers of one element type in other systems. -1 or NULL if that system does not have it.
typedef struct hone_dtype_info {
    hone_dtype_id id;
    hone_dtype dtype;       // DLPack
    const char *name;       // hone, in signatures and call text: "bf16"
    const char *numpy_name; // numpy and ml_dtypes, in call keys: "bfloat16"
    const char *xla_name;   // StableHLO and HLO text: "bf16", "pred"
    const char *mlir_name;  // MLIR: "bf16", "i1", "ui8", "f8E4M3FN"
    int16_t pjrt;           // PJRT_Buffer_Type
    int16_t xla;            // xla PrimitiveType, also XLA FFI
    const char *triton;     // Triton pointer element: "bf16", "fp32"
    const char *cuda;       // CUDA C type: "__nv_bfloat16"
    uint8_t bits;           // of one element
} hone_dtype_info;

// The row whose DLPack triple equals dtype; NULL when hone does not know it. Static memory.
HONE_API const hone_dtype_info *hone_dtype_find(hone_dtype dtype);
// The DLPack triple of an id.
HONE_API hone_dtype hone_dtype_of(hone_dtype_id id);

// A view of memory. Element [i0, i1, ...] lies at
// (char *)data + byte_offset + (i0 * strides[0] + i1 * strides[1] + ...) * bits / 8.
typedef struct hone_tensor {
    void *data; // NULL only when there is no data: in a description, or when some dim is 0
    hone_device device;
    int32_t ndim; // 0 to HONE_MAX_RANK
    hone_dtype dtype;
    int64_t *shape;   // [ndim], none negative; NULL only when ndim is 0
    int64_t *strides; // [ndim], in elements; NULL means row-major
    uint64_t byte_offset;
} hone_tensor;

enum { HONE_MAX_RANK = 8 };

// A row-major CPU tensor over data. shape is borrowed for as long as the tensor is used.
static inline hone_tensor hone_tensor_of(void *data, hone_dtype_id dtype, int32_t ndim, int64_t *shape)
{
    hone_tensor tensor;
    tensor.data = data;
    tensor.device.type = HONE_DEVICE_CPU;
    tensor.device.id = 0;
    tensor.ndim = ndim;
    tensor.dtype = hone_dtype_of(dtype);
    tensor.shape = shape;
    tensor.strides = NULL;
    tensor.byte_offset = 0;
    return tensor;
}

// The address of element [0, 0, ...].
static inline void *hone_tensor_data(const hone_tensor *tensor)
{
    return (char *)tensor->data + tensor->byte_offset;
}

// Elements, the product of the dims; -1 on overflow or a negative dim.
HONE_API int64_t hone_tensor_elements(const hone_tensor *tensor);
// True when the strides are those of a dense row-major tensor (dims of size 1 may have any stride).
HONE_API bool hone_tensor_is_row_major(const hone_tensor *tensor);
#ifdef __cplusplus
}
#endif
#endif
