#include "kernels/rivals/cublaslt_library.h"

#include "base/error.h"
#include "kernels/rivals/cublaslt.h"
#include "platforms/cuda/toolkit.h"

#include <stddef.h>
#include <string.h>

static const char where[] = "rivals.cublaslt", variable[] = "HONE_CUBLASLT";
static const char *const files[] = {HONE_CUBLASLT_SONAME, "libcublasLt.so.12", NULL};

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"cublasLtGetVersion", offsetof(cublaslt, version)},
    {"cublasLtCreate", offsetof(cublaslt, create)},
    {"cublasLtDestroy", offsetof(cublaslt, destroy)},
    {"cublasLtMatmulDescCreate", offsetof(cublaslt, product_create)},
    {"cublasLtMatmulDescSetAttribute", offsetof(cublaslt, product_set)},
    {"cublasLtMatmulDescDestroy", offsetof(cublaslt, product_destroy)},
    {"cublasLtMatrixLayoutCreate", offsetof(cublaslt, layout_create)},
    {"cublasLtMatrixLayoutDestroy", offsetof(cublaslt, layout_destroy)},
    {"cublasLtMatmulPreferenceCreate", offsetof(cublaslt, preference_create)},
    {"cublasLtMatmulPreferenceSetAttribute", offsetof(cublaslt, preference_set)},
    {"cublasLtMatmulPreferenceDestroy", offsetof(cublaslt, preference_destroy)},
    {"cublasLtMatmulAlgoGetHeuristic", offsetof(cublaslt, propose)},
    {"cublasLtMatmul", offsetof(cublaslt, multiply)},
};

bool hone_cublaslt_is_here(hone_error *why)
{
    if (hone_cuda_has_library(variable, files)) return true;
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
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *function = hone_library_symbol(out->library, symbols[i].name);
        memcpy((char *)out + symbols[i].offset, &function, sizeof function);
        if (function != NULL) continue;
        hone_cublaslt_close(allocator, out);
        return hone_fail(
            err, HONE_UNAVAILABLE, where, "cuBLASLt has no %s: install that of CUDA 12 or 13", symbols[i].name);
    }
    return HONE_OK;
}

void hone_cublaslt_close(const hone_allocator *allocator, cublaslt *library)
{
    if (library->library != NULL) hone_library_close(allocator, &library->library);
}
