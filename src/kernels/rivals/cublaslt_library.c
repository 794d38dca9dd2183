#include "kernels/rivals/cublaslt_library.h"

#include "base/error.h"
#include "kernels/rivals/cublaslt.h"
#include "os/functions.h"
#include "platforms/cuda/toolkit.h"

#include <stddef.h>
#include <string.h>

static const char where[] = "rivals.cublaslt", variable[] = "HONE_CUBLASLT";
static const char *const files[] = {HONE_CUBLASLT_SONAME, "libcublasLt.so.12", NULL};

static const hone_library_function functions[] = {
    {"cublasLtGetVersion", offsetof(cublaslt, version), false},
    {"cublasLtCreate", offsetof(cublaslt, create), false},
    {"cublasLtDestroy", offsetof(cublaslt, destroy), false},
    {"cublasLtMatmulDescCreate", offsetof(cublaslt, product_create), false},
    {"cublasLtMatmulDescSetAttribute", offsetof(cublaslt, product_set), false},
    {"cublasLtMatmulDescDestroy", offsetof(cublaslt, product_destroy), false},
    {"cublasLtMatrixLayoutCreate", offsetof(cublaslt, layout_create), false},
    {"cublasLtMatrixLayoutSetAttribute", offsetof(cublaslt, layout_set), false},
    {"cublasLtMatrixLayoutDestroy", offsetof(cublaslt, layout_destroy), false},
    {"cublasLtMatmulPreferenceCreate", offsetof(cublaslt, preference_create), false},
    {"cublasLtMatmulPreferenceSetAttribute", offsetof(cublaslt, preference_set), false},
    {"cublasLtMatmulPreferenceDestroy", offsetof(cublaslt, preference_destroy), false},
    {"cublasLtMatmulAlgoGetHeuristic", offsetof(cublaslt, propose), false},
    {"cublasLtMatmul", offsetof(cublaslt, multiply), false},
};

bool hone_cublaslt_find(const hone_kernel *kernel, char *path, size_t size)
{
    (void)kernel;
    return hone_cuda_find_library(variable, files, path, size);
}

bool hone_cublaslt_is_here(hone_error *why)
{
    char path[4096];
    if (hone_cublaslt_find(NULL, path, sizeof path)) return true;
    hone_fail(
        why, HONE_UNAVAILABLE, where,
        "cuBLASLt is not installed: install the CUDA toolkit or PyPI's nvidia-cublas, or name it in %s", variable);
    return false;
}

hone_status hone_cublaslt_open(const hone_allocator *allocator, cublaslt *out, hone_error *err)
{
    memset(out, 0, sizeof *out);
    hone_status status = hone_cuda_open_library(allocator, variable, files, &out->library, err);
    if (status != HONE_OK) return status;
    const char *missing = hone_library_functions(out->library, functions, sizeof functions / sizeof *functions, out);
    if (missing == NULL) return HONE_OK;
    hone_cublaslt_close(allocator, out);
    return hone_fail(err, HONE_UNAVAILABLE, where, "cuBLASLt has no %s: install that of CUDA 12 or 13", missing);
}

void hone_cublaslt_close(const hone_allocator *allocator, cublaslt *library)
{
    if (library->library != NULL) hone_library_close(allocator, &library->library);
}
