// Other libraries' matrix products, found at run time: nothing is linked, and nothing is loaded before a plan asks for
// it. They compete as kernels of matmul, and attention is composed from them.
#ifndef HONE_KERNELS_RIVALS_RIVALS_H
#define HONE_KERNELS_RIVALS_RIVALS_H

#include "kernels/matmul/matmul.h"

// The libraries' sonames.
#define HONE_OPENBLAS_SONAME "libopenblas.so.0"
#define HONE_ONEDNN_SONAME   "libdnnl.so.2"
#define HONE_ONEDNN3_SONAME  "libdnnl.so.3"
// The name of Debian's package.
#define HONE_OPENBLAS_PACKAGE "libopenblas0-pthread"

// One library. A product made by `create` is immutable; any number of threads may run it at the same time.
typedef struct hone_rival hone_rival;
struct hone_rival {
    const char *name;
    // Whether the library is installed and supports the product. If not, why gives the reason, and the package that
    // provides it. Loads nothing.
    bool (*supports)(const hone_rival *rival, const hone_matmul *product, hone_error *why);
    // Loads the library and prepares a product of these sizes, strides and dtype; its pointers are not valid. threads
    // is the most that it may use. Returns: HONE_OK, HONE_UNAVAILABLE, HONE_UNSUPPORTED, HONE_OUT_OF_MEMORY.
    hone_status (*create)(
        const hone_rival *rival, const hone_matmul *product, int32_t threads, void **out, hone_error *err);
    // c = a b, with the epilogue that the product was made with. of: the addresses of its arrays; if the library does
    // not support batches, of one product of the batch. threads: may be less than it was made for; 0 means as many as
    // that. Returns: HONE_OK, HONE_OUT_OF_MEMORY, HONE_KERNEL_FAILED.
    hone_status (*run)(void *product, const hone_matmul *of, int32_t threads);
    void (*destroy)(void *product); // accepts NULL
    const void *build;              // for OpenBLAS: its build (core.h)
    // Writes the path of its file, if no loader finds it by a soname; loads nothing. NULL: the loader finds it.
    bool (*find)(const hone_rival *rival, char *path, size_t size);
    bool finishes; // its products may have a bias, an activation and a residual
    bool batches;  // computes a batch in one call
};

extern const hone_rival hone_rival_openblas, hone_rival_numpy_openblas, hone_rival_scipy_openblas;
extern const hone_rival hone_rival_onednn, hone_rival_onednn3, hone_rival_libxsmm;

// Releases a plan's state that is a primitive of oneDNN: `release` of kernels that call it.
void hone_onednn_release(const hone_kernel *kernel, void *state);
// Reports that hone was built without oneDNN, and what to install. Returns: HONE_UNAVAILABLE. Exists only in a hone
// that was built without it.
hone_status hone_onednn_is_absent(hone_error *err);

#endif
