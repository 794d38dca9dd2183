// oneDNN (2.x), loaded at run time: its functions, an engine, and the number of its threads.
#ifndef HONE_KERNELS_RIVALS_ONEDNN_H
#define HONE_KERNELS_RIVALS_ONEDNN_H

#include "hone/tensor.h"
#include "os/os.h"

#include <oneapi/dnnl/dnnl.h>

typedef struct hone_onednn {
    hone_library *library, *openmp;
    int (*get_threads)(void); // OpenMP's, of the calling thread; NULL: this oneDNN does not use OpenMP
    void (*set_threads)(int);
    dnnl_engine_t engine;
    // The functions that hone uses, by their own names.
    __typeof__(dnnl_engine_create) *engine_create;
    __typeof__(dnnl_engine_destroy) *engine_destroy;
    __typeof__(dnnl_stream_create) *stream_create;
    __typeof__(dnnl_stream_wait) *stream_wait;
    __typeof__(dnnl_stream_destroy) *stream_destroy;
    __typeof__(dnnl_memory_desc_init_by_strides) *memory_desc_init_by_strides;
    __typeof__(dnnl_memory_desc_get_size) *memory_desc_get_size;
    __typeof__(dnnl_memory_create) *memory_create;
    __typeof__(dnnl_memory_set_data_handle) *memory_set_data_handle;
    __typeof__(dnnl_memory_destroy) *memory_destroy;
    __typeof__(dnnl_matmul_desc_init) *matmul_desc_init;
    __typeof__(dnnl_softmax_v2_forward_desc_init) *softmax_v2_forward_desc_init;
    __typeof__(dnnl_layer_normalization_forward_desc_init) *layer_normalization_forward_desc_init;
    __typeof__(dnnl_primitive_attr_create) *primitive_attr_create;
    __typeof__(dnnl_primitive_attr_set_scratchpad_mode) *primitive_attr_set_scratchpad_mode;
    __typeof__(dnnl_primitive_attr_destroy) *primitive_attr_destroy;
    __typeof__(dnnl_primitive_desc_create) *primitive_desc_create;
    __typeof__(dnnl_primitive_desc_query_md) *primitive_desc_query_md;
    __typeof__(dnnl_primitive_desc_destroy) *primitive_desc_destroy;
    __typeof__(dnnl_primitive_create) *primitive_create;
    __typeof__(dnnl_primitive_execute) *primitive_execute;
    __typeof__(dnnl_primitive_destroy) *primitive_destroy;
} hone_onednn;

// Whether the library is installed. Loads nothing.
bool hone_onednn_is_here(hone_error *why);
// Returns: HONE_OK; HONE_UNAVAILABLE.
hone_status hone_onednn_open(hone_onednn *out, hone_error *err);
void hone_onednn_close(hone_onednn *onednn);

// Describes a tensor of f32 or bf16, by its strides. Returns false if oneDNN refuses them.
bool hone_onednn_describe(const hone_onednn *onednn, dnnl_memory_desc_t *out, const hone_tensor *tensor);

// A primitive with a set of memory objects for each simultaneous run, so that runs share nothing.
enum { HONE_ONEDNN_OPERANDS = 4 };
typedef struct hone_onednn_primitive hone_onednn_primitive;

// Makes a primitive of an operation descriptor (dnnl_matmul_desc_t and the like) over operands.
//   operands, arguments  count (at most 4) memory descriptors and their DNNL_ARG_*
//   *out                 owns onednn from then on, also after a failure
hone_status hone_onednn_primitive_create(
    hone_onednn *onednn,
    const void *operation,
    const dnnl_memory_desc_t *operands,
    const int *arguments,
    int count,
    int32_t threads,
    hone_onednn_primitive **out,
    hone_error *err);
// Runs it with count addresses. threads: the maximum; 0: as many as it was made for.
// Returns: HONE_OK; HONE_OUT_OF_MEMORY; HONE_KERNEL_FAILED.
hone_status hone_onednn_primitive_run(hone_onednn_primitive *primitive, void *const *data, int32_t threads);
void hone_onednn_primitive_destroy(hone_onednn_primitive *primitive); // accepts NULL

#endif
