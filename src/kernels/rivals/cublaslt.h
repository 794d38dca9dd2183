// cuBLASLt's matrix product as a kernel of matmul, and of algorithms that are products: the algorithms that it proposes
// are the space. The library is opened when a plan is prepared.
#ifndef HONE_KERNELS_RIVALS_CUBLASLT_H
#define HONE_KERNELS_RIVALS_CUBLASLT_H

#include "kernels/matmul/matmul.h"

// The library's soname.
#define HONE_CUBLASLT_SONAME "libcublasLt.so.13"

extern const char hone_cublaslt_space[], hone_cublaslt_signature[];

// Whether there is a scale for each row and for each column, stored contiguously; otherwise cuBLASLt accepts one for
// each matrix.
bool hone_cublaslt_has_scales_of_each(const hone_matmul *product);
// Whether it supports the call of matmul.
bool hone_cublaslt_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
// The kernel's user is the hone_matmul_form of its algorithm.
bool hone_cublaslt_find(const hone_kernel *kernel, char *path, size_t size);
hone_status hone_cublaslt_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
void hone_cublaslt_release(const hone_kernel *kernel, void *state);
hone_status hone_cublaslt_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);
uint64_t hone_cublaslt_digest(const hone_plan *plan);

#endif
