// hone's own declarations of the part of cuBLASLt that a product needs.
#ifndef HONE_KERNELS_RIVALS_CUBLASLT_LIBRARY_H
#define HONE_KERNELS_RIVALS_CUBLASLT_LIBRARY_H

#include "base/memory.h"
#include "os/os.h"

enum {
    CUBLASLT_SUCCESS = 0,
    CUBLASLT_NOT_SUPPORTED = 15,
    CUBLASLT_COMPUTE_F32 = 68, // exactly: no TF32
    CUBLASLT_COMPUTE_F64 = 70,
    CUBLASLT_F32 = 0, // cudaDataType
    CUBLASLT_F64 = 1,
    CUBLASLT_F16 = 2,
    CUBLASLT_BF16 = 14,
    CUBLASLT_F8_E4M3 = 28,
    CUBLASLT_TRANSPOSE_A = 3, // attributes of a product
    CUBLASLT_TRANSPOSE_B = 4,
    CUBLASLT_EPILOGUE = 7,
    CUBLASLT_BIAS_POINTER = 8,
    CUBLASLT_SCALE_POINTER_A = 17,
    CUBLASLT_SCALE_POINTER_B = 18,
    CUBLASLT_SCALE_MODE_A = 31,
    CUBLASLT_SCALE_MODE_B = 32,
    CUBLASLT_WITH_BIAS = 4, // values of an epilogue; one with a bias and more is the sum of both
    CUBLASLT_WITH_GELU_TANH = 32,
    CUBLASLT_SCALE_OF_EACH = 3, // a mode: a scale for each row of A, or column of B; from CUDA 12.9 on
    CUBLASLT_PLAIN = 0,         // forms of a matrix
    CUBLASLT_TRANSPOSED = 1,
    CUBLASLT_BATCH_COUNT = 5, // attributes of a layout: int32_t, and int64_t in elements
    CUBLASLT_BATCH_STRIDE = 6,
    CUBLASLT_MAX_WORKSPACE = 1, // attributes of a preference
    CUBLASLT_LEAST_ALIGNMENT_A = 5,
    CUBLASLT_LEAST_ALIGNMENT_D = 8
};

typedef struct cublaslt_handle cublaslt_handle;
typedef struct cublaslt_product cublaslt_product;
typedef struct cublaslt_layout cublaslt_layout;
typedef struct cublaslt_preference cublaslt_preference;

typedef struct cublaslt_algorithm {
    uint64_t data[8];
} cublaslt_algorithm;

typedef struct cublaslt_proposal {
    cublaslt_algorithm algorithm;
    size_t workspace_bytes;
    int32_t status;
    float waves;
    int32_t reserved[4];
} cublaslt_proposal;

_Static_assert(sizeof(cublaslt_proposal) == 96, "as cublasLtMatmulHeuristicResult_t in cublasLt.h");

typedef struct cublaslt {
    hone_library *library;
    size_t (*version)(void);
    int (*create)(cublaslt_handle **handle);
    int (*destroy)(cublaslt_handle *handle);
    int (*product_create)(cublaslt_product **product, int compute, int scale_type);
    int (*product_set)(cublaslt_product *product, int attribute, const void *value, size_t size);
    int (*product_destroy)(cublaslt_product *product);
    int (*layout_create)(cublaslt_layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
    int (*layout_set)(cublaslt_layout *layout, int attribute, const void *value, size_t size);
    int (*layout_destroy)(cublaslt_layout *layout);
    int (*preference_create)(cublaslt_preference **preference);
    int (*preference_set)(cublaslt_preference *preference, int attribute, const void *value, size_t size);
    int (*preference_destroy)(cublaslt_preference *preference);
    int (*propose)(
        cublaslt_handle *handle,
        cublaslt_product *product,
        cublaslt_layout *a,
        cublaslt_layout *b,
        cublaslt_layout *c,
        cublaslt_layout *d,
        cublaslt_preference *preference,
        int asked,
        cublaslt_proposal *proposals,
        int *count);
    int (*multiply)(
        cublaslt_handle *handle,
        cublaslt_product *product,
        const void *alpha,
        const void *a,
        cublaslt_layout *a_layout,
        const void *b,
        cublaslt_layout *b_layout,
        const void *beta,
        const void *c,
        cublaslt_layout *c_layout,
        void *d,
        cublaslt_layout *d_layout,
        const cublaslt_algorithm *algorithm,
        void *workspace,
        size_t workspace_bytes,
        void *stream);
} cublaslt;

// HONE_UNAVAILABLE with what is missing and the package that provides it.
hone_status hone_cublaslt_open(const hone_allocator *allocator, cublaslt *out, hone_error *err);
void hone_cublaslt_close(const hone_allocator *allocator, cublaslt *library);
// Whether the library can be opened; if not, why says so. Opens nothing.
bool hone_cublaslt_is_here(hone_error *why);

#endif
