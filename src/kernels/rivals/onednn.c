#include "kernels/rivals/onednn.h"

#include "base/error.h"
#include "base/memory.h"
#include "kernels/common/matrix.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/rivals.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static const char soname[] = HONE_ONEDNN_SONAME, package[] = "libdnnl2", where[] = "rivals.onednn";

enum { SLOTS = 4 }; // simultaneous runs that allocate nothing

// The functions of hone_onednn and their offsets in it.
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define FUNCTION(name)                                                                                                 \
    {                                                                                                                  \
        "dnnl_" #name, offsetof(hone_onednn, name)                                                                     \
    }
    FUNCTION(engine_create),           FUNCTION(engine_destroy),
    FUNCTION(stream_create),           FUNCTION(stream_wait),
    FUNCTION(stream_destroy),          FUNCTION(memory_desc_init_by_strides),
    FUNCTION(memory_desc_get_size),    FUNCTION(memory_create),
    FUNCTION(memory_set_data_handle),  FUNCTION(memory_destroy),
    FUNCTION(matmul_desc_init),        FUNCTION(softmax_v2_forward_desc_init),
    FUNCTION(primitive_attr_create),   FUNCTION(primitive_attr_set_scratchpad_mode),
    FUNCTION(primitive_attr_destroy),  FUNCTION(primitive_desc_create),
    FUNCTION(primitive_desc_query_md), FUNCTION(primitive_desc_destroy),
    FUNCTION(primitive_create),        FUNCTION(primitive_execute),
    FUNCTION(primitive_destroy),       FUNCTION(layer_normalization_forward_desc_init),
#undef FUNCTION
};

// The objects of one run: a stream, memory objects for the operands and one for the primitive's scratchpad.
typedef struct slot {
    atomic_bool taken;
    dnnl_stream_t stream;
    dnnl_memory_t memory[HONE_ONEDNN_OPERANDS + 1];
} slot;

struct hone_onednn_primitive {
    hone_onednn onednn;
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t descriptors[HONE_ONEDNN_OPERANDS + 1]; // the last is the scratchpad's
    int arguments[HONE_ONEDNN_OPERANDS + 1];
    int count; // operands
    int32_t threads;
    slot slots[SLOTS];
};

// Loading -------------------------------------------------------------------------------------------------------------

bool hone_onednn_is_here(hone_error *why)
{
    return hone_rival_is_here(soname, package, why);
}

static hone_status find_functions(hone_onednn *onednn, hone_error *err)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!hone_rival_function(onednn->library, functions[i].name, (char *)onednn + functions[i].offset))
            return hone_fail(
                err, HONE_UNAVAILABLE, where, "%s has no %s: hone speaks oneDNN 2.6", soname, functions[i].name);
    }
    return HONE_OK;
}

// oneDNN uses the threads of OpenMP, which it has loaded.
static void find_openmp(hone_onednn *onednn)
{
    static const char *const names[] = {"libgomp.so.1", NULL};
    hone_allocator allocator = hone_allocator_system();
    if (hone_library_open(&allocator, names, &onednn->openmp, NULL) != HONE_OK) return;
    hone_rival_function(onednn->openmp, "omp_get_max_threads", &onednn->get_threads);
    hone_rival_function(onednn->openmp, "omp_set_num_threads", &onednn->set_threads);
}

hone_status hone_onednn_open(hone_onednn *out, hone_error *err)
{
    const char *const names[] = {soname, NULL};
    hone_allocator allocator = hone_allocator_system();
    hone_onednn onednn = {0};
    hone_status status = hone_library_open(&allocator, names, &onednn.library, err);
    if (status == HONE_OK) status = find_functions(&onednn, err);
    if (status == HONE_OK && onednn.engine_create(&onednn.engine, dnnl_cpu, 0) != dnnl_success)
        status = hone_fail(err, HONE_UNAVAILABLE, where, "oneDNN finds no CPU engine");
    if (status != HONE_OK) {
        hone_library_close(&allocator, &onednn.library);
        return status;
    }
    find_openmp(&onednn);
    *out = onednn;
    return HONE_OK;
}

void hone_onednn_close(hone_onednn *onednn)
{
    hone_allocator allocator = hone_allocator_system();
    if (onednn->engine != NULL) onednn->engine_destroy(onednn->engine);
    if (onednn->library != NULL) hone_library_close(&allocator, &onednn->library);
    if (onednn->openmp != NULL) hone_library_close(&allocator, &onednn->openmp);
    *onednn = (hone_onednn){0};
}

bool hone_onednn_describe(const hone_onednn *onednn, dnnl_memory_desc_t *out, const hone_tensor *tensor)
{
    static_assert(HONE_MAX_RANK <= DNNL_MAX_NDIMS, "oneDNN has as many axes as a tensor");
    dnnl_dims_t sizes = {0}, strides = {0};
    for (int32_t i = 0; i < tensor->ndim; i++) {
        sizes[i] = tensor->shape[i];
        strides[i] = hone_axis_stride(tensor, i);
    }
    dnnl_data_type_t type = hone_float_id(tensor->dtype) == HONE_F32 ? dnnl_f32 : dnnl_bf16;
    return onednn->memory_desc_init_by_strides(out, tensor->ndim, sizes, type, strides) == dnnl_success;
}

// Sets the number of the calling thread's OpenMP threads; returns the previous number, 0 if there is no OpenMP.
static int swap_threads(const hone_onednn *onednn, int threads)
{
    if (onednn->get_threads == NULL || onednn->set_threads == NULL || threads <= 0) return 0;
    int before = onednn->get_threads();
    if (before != threads) onednn->set_threads(threads);
    return before;
}

// Slots ---------------------------------------------------------------------------------------------------------------

static void slot_deinit(const hone_onednn *onednn, slot *own)
{
    for (int i = 0; i <= HONE_ONEDNN_OPERANDS; i++)
        if (own->memory[i] != NULL) onednn->memory_destroy(own->memory[i]);
    if (own->stream != NULL) onednn->stream_destroy(own->stream);
    own->stream = NULL;
    memset(own->memory, 0, sizeof own->memory);
}

static bool slot_init(const hone_onednn_primitive *primitive, slot *own)
{
    const hone_onednn *onednn = &primitive->onednn;
    bool made = onednn->stream_create(&own->stream, onednn->engine, dnnl_stream_default_flags) == dnnl_success;
    for (int i = 0; made && i <= primitive->count; i++) {
        void *handle = i < primitive->count ? DNNL_MEMORY_NONE : DNNL_MEMORY_ALLOCATE;
        made =
            onednn->memory_create(&own->memory[i], &primitive->descriptors[i], onednn->engine, handle) == dnnl_success;
    }
    if (!made) slot_deinit(onednn, own);
    return made;
}

// Takes a slot that no other run uses; NULL if all are taken.
static slot *take_slot(hone_onednn_primitive *primitive)
{
    for (int i = 0; i < SLOTS; i++)
        if (!atomic_exchange_explicit(&primitive->slots[i].taken, true, memory_order_acquire))
            return &primitive->slots[i];
    return NULL;
}

static void give_slot(slot *own)
{
    atomic_store_explicit(&own->taken, false, memory_order_release);
}

static hone_status execute(const hone_onednn_primitive *primitive, const slot *own, void *const *data)
{
    const hone_onednn *onednn = &primitive->onednn;
    dnnl_exec_arg_t arguments[HONE_ONEDNN_OPERANDS + 1];
    for (int i = 0; i <= primitive->count; i++) {
        arguments[i] = (dnnl_exec_arg_t){primitive->arguments[i], own->memory[i]};
        if (i < primitive->count && onednn->memory_set_data_handle(own->memory[i], data[i]) != dnnl_success)
            return HONE_KERNEL_FAILED;
    }
    dnnl_status_t status =
        onednn->primitive_execute(primitive->primitive, own->stream, primitive->count + 1, arguments);
    if (status == dnnl_success) status = onednn->stream_wait(own->stream);
    return status == dnnl_success ? HONE_OK : status == dnnl_out_of_memory ? HONE_OUT_OF_MEMORY : HONE_KERNEL_FAILED;
}

// Primitives ----------------------------------------------------------------------------------------------------------

static hone_status make_primitive(hone_onednn_primitive *own, const void *operation, hone_error *err)
{
    const hone_onednn *onednn = &own->onednn;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = onednn->primitive_attr_create(&attributes);
    if (status == dnnl_success)
        status = onednn->primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = onednn->primitive_desc_create(&description, operation, attributes, onednn->engine, NULL);
    if (status == dnnl_success) {
        own->descriptors[own->count] = *onednn->primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
        own->arguments[own->count] = DNNL_ARG_SCRATCHPAD;
        status = onednn->primitive_create(&own->primitive, description);
    }
    if (description != NULL) onednn->primitive_desc_destroy(description);
    if (attributes != NULL) onednn->primitive_attr_destroy(attributes);
    if (status == dnnl_success) return HONE_OK;
    if (status == dnnl_out_of_memory) return hone_fail_memory(err, where);
    return hone_fail(err, HONE_UNSUPPORTED, where, "oneDNN has no primitive for this (status %d)", (int)status);
}

hone_status hone_onednn_primitive_create(
    hone_onednn *onednn,
    const void *operation,
    const dnnl_memory_desc_t *operands,
    const int *arguments,
    int count,
    int32_t threads,
    hone_onednn_primitive **out,
    hone_error *err)
{
    hone_allocator allocator = hone_allocator_system();
    hone_onednn_primitive *own = hone_alloc(&allocator, sizeof *own);
    if (own == NULL) {
        hone_onednn_close(onednn);
        return hone_fail_memory(err, where);
    }
    own->onednn = *onednn;
    own->count = count;
    own->threads = threads;
    memcpy(own->descriptors, operands, (size_t)count * sizeof *operands);
    memcpy(own->arguments, arguments, (size_t)count * sizeof *arguments);
    int before = swap_threads(&own->onednn, threads); // the primitive is generated for the present number of threads
    hone_status status = make_primitive(own, operation, err);
    swap_threads(&own->onednn, before);
    for (int i = 0; status == HONE_OK && i < SLOTS; i++)
        if (!slot_init(own, &own->slots[i])) status = hone_fail_memory(err, where);
    if (status == HONE_OK)
        *out = own;
    else
        hone_onednn_primitive_destroy(own);
    return status;
}

static hone_status run_in_new_slot(const hone_onednn_primitive *primitive, void *const *data)
{
    slot own = {0};
    if (!slot_init(primitive, &own)) return HONE_OUT_OF_MEMORY;
    hone_status status = execute(primitive, &own, data);
    slot_deinit(&primitive->onednn, &own);
    return status;
}

hone_status hone_onednn_primitive_run(hone_onednn_primitive *primitive, void *const *data, int32_t threads)
{
    int wanted = threads > 0 && threads < primitive->threads ? threads : primitive->threads;
    int before = swap_threads(&primitive->onednn, wanted);
    slot *own = take_slot(primitive);
    hone_status status = own != NULL ? execute(primitive, own, data) : run_in_new_slot(primitive, data);
    if (own != NULL) give_slot(own);
    if (before != wanted) swap_threads(&primitive->onednn, before);
    return status;
}

void hone_onednn_primitive_destroy(hone_onednn_primitive *primitive)
{
    if (primitive == NULL) return;
    hone_allocator allocator = hone_allocator_system();
    for (int i = 0; i < SLOTS; i++)
        slot_deinit(&primitive->onednn, &primitive->slots[i]);
    if (primitive->primitive != NULL) primitive->onednn.primitive_destroy(primitive->primitive);
    hone_onednn_close(&primitive->onednn);
    hone_free(&allocator, primitive);
}

void hone_onednn_release(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    hone_onednn_primitive_destroy(state);
}
