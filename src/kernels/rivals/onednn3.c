// oneDNN 3's matrix product. Version 3 shares no interface with version 2 (onednn.c): memory descriptors are objects,
// and operations have no descriptors. The functions that are called are declared here, so no headers are needed: the
// library of Debian 13 or of a package of PyPI is enough. Numbers and types are those of its dnnl_types.h.
#include "base/error.h"
#include "base/memory.h"
#include "kernels/rivals/loading.h"
#include "kernels/rivals/rivals.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static const char where[] = "rivals.onednn3";

enum { SUCCESS = 0, OUT_OF_MEMORY = 1 };
enum {
    CPU = 1,
    STREAM_DEFAULT = 1,
    SCRATCHPAD_OF_USER = 1,
    QUERY_SCRATCHPAD = 136,
    BF16 = 2,
    F32 = 3,
    S32 = 4,
    S8 = 5
};
enum { SRC = 1, DST = 17, WEIGHTS = 33, BIAS = 41, SCRATCHPAD = 80 };
enum { GELU_TANH = 0x2b, SWISH = 0x2c, GELU_ERF = 0x31, BINARY_ADD = 0x1fff0 };
enum { MOST_AXES = 12, SLOTS = 4 }; // SLOTS: simultaneous runs that allocate nothing
// The first three always exist.
enum { OF_A, OF_B, OF_C, OF_BIAS, OF_RESIDUAL, OPERANDS, OF_SCRATCHPAD = OPERANDS, MEMORIES };

typedef struct argument {
    int arg;
    void *memory;
} argument;

typedef struct onednn3 {
    hone_library *library, *openmp;
    int (*get_threads)(void); // OpenMP's, of the calling thread; NULL: this oneDNN does not use OpenMP
    void (*set_threads)(int);
    void *engine;
    int (*engine_create)(void **out, int kind, size_t index);
    int (*engine_destroy)(void *engine);
    int (*stream_create)(void **out, void *engine, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*memory_desc_create_with_strides)(void **out, int axes, const int64_t *dims, int type, const int64_t *strides);
    int (*memory_desc_destroy)(void *description);
    int (*memory_create)(void **out, const void *description, void *engine, void *data);
    int (*memory_set_data_handle)(void *memory, void *data);
    int (*memory_destroy)(void *memory);
    int (*primitive_attr_create)(void **out);
    int (*primitive_attr_set_scratchpad_mode)(void *attributes, int mode);
    int (*primitive_attr_set_post_ops)(void *attributes, const void *operations);
    int (*primitive_attr_destroy)(void *attributes);
    int (*post_ops_create)(void **out);
    int (*post_ops_append_eltwise)(void *operations, int kind, float alpha, float beta);
    int (*post_ops_append_binary)(void *operations, int kind, const void *description);
    int (*post_ops_destroy)(void *operations);
    int (*matmul_primitive_desc_create)(
        void **out,
        void *engine,
        const void *src,
        const void *weights,
        const void *bias,
        const void *dst,
        const void *attributes);
    const void *(*primitive_desc_query_md)(const void *description, int what, int index);
    int (*primitive_desc_destroy)(void *description);
    int (*primitive_create)(void **out, const void *description);
    int (*primitive_execute)(const void *primitive, void *stream, int count, const argument *arguments);
    int (*primitive_destroy)(void *primitive);
} onednn3;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define FUNCTION(name)                                                                                                 \
    {                                                                                                                  \
        "dnnl_" #name, offsetof(onednn3, name)                                                                         \
    }
    FUNCTION(engine_create),           FUNCTION(engine_destroy),
    FUNCTION(stream_create),           FUNCTION(stream_wait),
    FUNCTION(stream_destroy),          FUNCTION(memory_desc_create_with_strides),
    FUNCTION(memory_desc_destroy),     FUNCTION(memory_create),
    FUNCTION(memory_set_data_handle),  FUNCTION(memory_destroy),
    FUNCTION(primitive_attr_create),   FUNCTION(primitive_attr_set_scratchpad_mode),
    FUNCTION(primitive_attr_destroy),  FUNCTION(matmul_primitive_desc_create),
    FUNCTION(primitive_desc_query_md), FUNCTION(primitive_desc_destroy),
    FUNCTION(primitive_create),        FUNCTION(primitive_execute),
    FUNCTION(primitive_destroy),       FUNCTION(primitive_attr_set_post_ops),
    FUNCTION(post_ops_create),         FUNCTION(post_ops_append_eltwise),
    FUNCTION(post_ops_append_binary),  FUNCTION(post_ops_destroy),
#undef FUNCTION
};

// The objects of one run: memory objects for the operands, and one for the primitive's scratchpad.
typedef struct slot {
    atomic_bool taken;
    void *stream;
    void *memory[MEMORIES];
} slot;

typedef struct product {
    onednn3 onednn;
    void *operands[OPERANDS]; // descriptions; NULL for an absent operand
    int residual_at;          // the index of its addition among the post-operations
    void *description;        // of the primitive, which owns the scratchpad's description
    void *primitive;
    int32_t threads;
    slot slots[SLOTS];
} product;

// Loading -------------------------------------------------------------------------------------------------------------

// pip installs it into the environment's lib, two folders above the packages.
static const hone_packaged_library of_pypi = {"HONE_ONEDNN3", "onednn-cpu-gomp", "../..", HONE_ONEDNN3_SONAME};

static bool find_file(char *path, size_t size, hone_error *why)
{
    const char *named = hone_os_variable(of_pypi.variable);
    if ((named == NULL || named[0] == '\0') && hone_library_find(HONE_ONEDNN3_SONAME, path, size)) return true;
    if (hone_rival_find_packaged(&of_pypi, path, size, why)) return true;
    if (named != NULL && named[0] != '\0') return false; // the message is about the file that the variable names
    hone_fail(
        why, HONE_UNAVAILABLE, where,
        "%s is not installed: install libdnnl3 (Debian 13) or PyPI's onednn-cpu-gomp, or name the file in HONE_ONEDNN3",
        HONE_ONEDNN3_SONAME);
    return false;
}

static bool find(const hone_rival *rival, char *path, size_t size)
{
    (void)rival;
    return find_file(path, size, NULL);
}

static hone_status find_functions(onednn3 *onednn, const char *path, hone_error *err)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!hone_rival_function(onednn->library, functions[i].name, (char *)onednn + functions[i].offset))
            return hone_fail(
                err, HONE_UNAVAILABLE, where, "%s has no %s: oneDNN 3 is expected", path, functions[i].name);
    return HONE_OK;
}

static void find_openmp(onednn3 *onednn)
{
    static const char *const names[] = {"libgomp.so.1", NULL};
    hone_allocator allocator = hone_allocator_system();
    if (hone_library_open(&allocator, names, &onednn->openmp, NULL) != HONE_OK) return;
    hone_rival_function(onednn->openmp, "omp_get_max_threads", &onednn->get_threads);
    hone_rival_function(onednn->openmp, "omp_set_num_threads", &onednn->set_threads);
}

static hone_status open_library(onednn3 *out, hone_error *err)
{
    char path[4096];
    const char *const names[] = {path, NULL};
    hone_allocator allocator = hone_allocator_system();
    if (!find_file(path, sizeof path, err)) return HONE_UNAVAILABLE;
    hone_status status = hone_library_open(&allocator, names, &out->library, err);
    if (status == HONE_OK) status = find_functions(out, path, err);
    if (status == HONE_OK && out->engine_create(&out->engine, CPU, 0) != SUCCESS)
        status = hone_fail(err, HONE_UNAVAILABLE, where, "oneDNN finds no CPU engine");
    if (status == HONE_OK) find_openmp(out);
    return status;
}

// Sets the number of the calling thread's OpenMP threads; returns the previous number, 0 if there is no OpenMP.
static int swap_threads(const onednn3 *onednn, int threads)
{
    if (onednn->get_threads == NULL || onednn->set_threads == NULL || threads <= 0) return 0;
    int before = onednn->get_threads();
    if (before != threads) onednn->set_threads(threads);
    return before;
}

// Slots ---------------------------------------------------------------------------------------------------------------

static void slot_deinit(const onednn3 *onednn, slot *own)
{
    for (int i = 0; i < MEMORIES; i++)
        if (own->memory[i] != NULL) onednn->memory_destroy(own->memory[i]);
    if (own->stream != NULL) onednn->stream_destroy(own->stream);
    own->stream = NULL;
    memset(own->memory, 0, sizeof own->memory);
}

static bool slot_init(const product *p, slot *own)
{
    const onednn3 *onednn = &p->onednn;
    void *const none = NULL, *const allocate = (void *)UINTPTR_MAX; // DNNL_MEMORY_NONE, DNNL_MEMORY_ALLOCATE
    bool made = onednn->stream_create(&own->stream, onednn->engine, STREAM_DEFAULT) == SUCCESS;
    for (int i = 0; made && i < MEMORIES; i++) {
        if (i < OPERANDS && p->operands[i] == NULL) continue;
        const void *description =
            i < OPERANDS ? p->operands[i] : onednn->primitive_desc_query_md(p->description, QUERY_SCRATCHPAD, 0);
        made = onednn->memory_create(&own->memory[i], description, onednn->engine, i < OPERANDS ? none : allocate) ==
               SUCCESS;
    }
    if (!made) slot_deinit(onednn, own);
    return made;
}

// Takes a slot that no other run uses; NULL if all are taken.
static slot *take_slot(product *p)
{
    for (int i = 0; i < SLOTS; i++)
        if (!atomic_exchange_explicit(&p->slots[i].taken, true, memory_order_acquire)) return &p->slots[i];
    return NULL;
}

static hone_status status_of(int status)
{
    return status == SUCCESS ? HONE_OK : status == OUT_OF_MEMORY ? HONE_OUT_OF_MEMORY : HONE_KERNEL_FAILED;
}

// Arguments of post-operations are numbered from a base that later releases have doubled
// (DNNL_ARG_ATTR_MULTIPLE_POST_OP_BASE). The residual is passed under both numbers: there are at most two
// post-operations and one of them has an argument, so no operation looks for the other release's number.
enum { base = 16384, later_base = 32768, SRC_1 = 2 };

static int residual_argument(const product *p, int first)
{
    return first * (p->residual_at + 1) | SRC_1;
}

static hone_status execute(const product *p, const slot *own, void *const *data)
{
    const int arguments_of[MEMORIES] = {SRC, WEIGHTS, DST, BIAS, residual_argument(p, base), SCRATCHPAD};
    const onednn3 *onednn = &p->onednn;
    argument arguments[MEMORIES + 1];
    int count = 0;
    for (int i = 0; i < MEMORIES; i++) {
        if (own->memory[i] == NULL) continue;
        arguments[count++] = (argument){arguments_of[i], own->memory[i]};
        if (i < OPERANDS && onednn->memory_set_data_handle(own->memory[i], data[i]) != SUCCESS)
            return HONE_KERNEL_FAILED;
    }
    if (own->memory[OF_RESIDUAL] != NULL)
        arguments[count++] = (argument){residual_argument(p, later_base), own->memory[OF_RESIDUAL]};
    int status = onednn->primitive_execute(p->primitive, own->stream, count, arguments);
    if (status == SUCCESS) status = onednn->stream_wait(own->stream);
    return status_of(status);
}

static hone_status run_in_new_slot(const product *p, void *const *data)
{
    slot own = {0};
    if (!slot_init(p, &own)) return HONE_OUT_OF_MEMORY;
    hone_status status = execute(p, &own, data);
    slot_deinit(&p->onednn, &own);
    return status;
}

// The product ---------------------------------------------------------------------------------------------------------

static void destroy(void *state)
{
    product *p = state;
    hone_allocator allocator = hone_allocator_system();
    if (p == NULL) return;
    onednn3 *onednn = &p->onednn;
    for (int i = 0; i < SLOTS; i++)
        slot_deinit(onednn, &p->slots[i]);
    if (p->primitive != NULL) onednn->primitive_destroy(p->primitive);
    if (p->description != NULL) onednn->primitive_desc_destroy(p->description);
    for (int i = 0; i < OPERANDS; i++)
        if (p->operands[i] != NULL) onednn->memory_desc_destroy(p->operands[i]);
    if (onednn->engine != NULL) onednn->engine_destroy(onednn->engine);
    if (onednn->library != NULL) hone_library_close(&allocator, &onednn->library);
    if (onednn->openmp != NULL) hone_library_close(&allocator, &onednn->openmp);
    hone_free(&allocator, p);
}

static int type_of(hone_dtype_id dtype)
{
    return dtype == HONE_F32 ? F32 : dtype == HONE_I8 ? S8 : dtype == HONE_I32 ? S32 : BF16;
}

// rows x columns, with adjacent elements along the columns, or (transposed) along the rows. A batch shares one bias.
static bool describe(
    product *p, const hone_matmul *of, int operand, int64_t rows, int64_t columns, int64_t stride, bool transposed)
{
    static const size_t values[OPERANDS] = {MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_BIAS, MATMUL_RESIDUAL};
    const int axes = of->leading;
    int64_t least = transposed ? rows : columns, step = stride > least ? stride : least;
    int64_t sizes[MOST_AXES] = {0}, strides[MOST_AXES] = {0};
    if (operand != OF_BIAS) hone_matmul_leading_axes(of, values[operand], sizes, strides);
    for (int i = 0; i < axes && operand == OF_BIAS; i++) {
        sizes[i] = 1;
        strides[i] = columns;
    }
    sizes[axes] = rows;
    sizes[axes + 1] = columns;
    strides[axes] = transposed ? 1 : step;
    strides[axes + 1] = transposed ? step : 1;
    const hone_dtype_id dtype = operand == OF_A || operand == OF_B ? of->operands : of->dtype;
    return p->onednn.memory_desc_create_with_strides(&p->operands[operand], axes + 2, sizes, type_of(dtype), strides) ==
           SUCCESS;
}

static bool describe_operands(product *p, const hone_matmul *of)
{
    return describe(p, of, OF_A, of->m, of->k, of->a_stride, false) &&
           describe(p, of, OF_B, of->k, of->n, of->b_stride, of->transpose_b) &&
           describe(p, of, OF_C, of->m, of->n, of->c_stride, false) &&
           (!of->has_bias || describe(p, of, OF_BIAS, 1, of->n, of->n, false)) &&
           (!of->has_residual || describe(p, of, OF_RESIDUAL, of->m, of->n, of->residual_stride, false));
}

// The activation, then the residual; a bias is part of the product.
static int add_operations(product *p, const hone_matmul *of, void *attributes)
{
    static const int kinds[MATMUL_ACTIVATIONS] = {
        [MATMUL_GELU_TANH] = GELU_TANH, [MATMUL_GELU_ERF] = GELU_ERF, [MATMUL_SILU] = SWISH};
    const onednn3 *onednn = &p->onednn;
    const bool activates = of->activation != MATMUL_NONE;
    void *operations = NULL;
    if (!activates && !of->has_residual) return SUCCESS;
    p->residual_at = activates;
    int status = onednn->post_ops_create(&operations);
    if (status == SUCCESS && activates) // for swish, alpha is the inner factor
        status = onednn->post_ops_append_eltwise(
            operations, kinds[of->activation], of->activation == MATMUL_SILU ? 1.0f : 0.0f, 0.0f);
    if (status == SUCCESS && of->has_residual)
        status = onednn->post_ops_append_binary(operations, BINARY_ADD, p->operands[OF_RESIDUAL]);
    if (status == SUCCESS) status = onednn->primitive_attr_set_post_ops(attributes, operations);
    if (operations != NULL) onednn->post_ops_destroy(operations);
    return status;
}

static hone_status make_primitive(product *p, const hone_matmul *of, hone_error *err)
{
    const onednn3 *onednn = &p->onednn;
    void *attributes = NULL;
    int status = onednn->primitive_attr_create(&attributes);
    if (status == SUCCESS) status = onednn->primitive_attr_set_scratchpad_mode(attributes, SCRATCHPAD_OF_USER);
    if (status == SUCCESS) status = add_operations(p, of, attributes);
    if (status == SUCCESS)
        status = onednn->matmul_primitive_desc_create(
            &p->description, onednn->engine, p->operands[OF_A], p->operands[OF_B], p->operands[OF_BIAS],
            p->operands[OF_C], attributes);
    if (status == SUCCESS) status = onednn->primitive_create(&p->primitive, p->description);
    if (attributes != NULL) onednn->primitive_attr_destroy(attributes);
    if (status == SUCCESS) return HONE_OK;
    if (status == OUT_OF_MEMORY) return hone_fail_memory(err, where);
    return hone_fail(err, HONE_UNSUPPORTED, where, "oneDNN has no primitive for this (status %d)", status);
}

static bool supports(const hone_rival *rival, const hone_matmul *of, hone_error *why)
{
    char path[4096];
    (void)rival;
    if (!find_file(path, sizeof path, why)) return false;
    if (of->activation == MATMUL_RELU) {
        hone_fail(why, HONE_UNSUPPORTED, where, "oneDNN's relu makes 0 of NaN, and that of matmul leaves it");
        return false;
    }
    if (of->dtype == HONE_F32 || of->dtype == HONE_BF16 || of->dtype == HONE_I32)
        return hone_rival_can_count(of, "onednn3", INT_MAX, why);
    hone_fail(why, HONE_UNSUPPORTED, where, "onednn3 multiplies f32, bf16 and integers of 8 bits here");
    return false;
}

static hone_status create(const hone_rival *rival, const hone_matmul *of, int32_t threads, void **out, hone_error *err)
{
    (void)rival;
    hone_allocator allocator = hone_allocator_system();
    product *p = hone_alloc(&allocator, sizeof *p);
    if (p == NULL) return hone_fail_memory(err, where);
    p->threads = threads;
    hone_status status = open_library(&p->onednn, err);
    if (status == HONE_OK && !describe_operands(p, of))
        status = hone_fail(err, HONE_UNSUPPORTED, where, "oneDNN refuses these sizes or strides");
    if (status == HONE_OK) {
        int before = swap_threads(&p->onednn, threads); // the primitive is generated for the present number of threads
        status = make_primitive(p, of, err);
        swap_threads(&p->onednn, before);
    }
    for (int i = 0; status == HONE_OK && i < SLOTS; i++)
        if (!slot_init(p, &p->slots[i])) status = hone_fail_memory(err, where);
    if (status == HONE_OK)
        *out = p;
    else
        destroy(p);
    return status;
}

static hone_status run(void *state, const hone_matmul *of, int32_t threads)
{
    product *p = state;
    void *const data[OPERANDS] = {
        (void *)(uintptr_t)of->a, (void *)(uintptr_t)of->b, of->c, (void *)(uintptr_t)of->bias,
        (void *)(uintptr_t)of->residual};
    int wanted = threads > 0 && threads < p->threads ? threads : p->threads;
    int before = swap_threads(&p->onednn, wanted);
    slot *own = take_slot(p);
    hone_status status = own != NULL ? execute(p, own, data) : run_in_new_slot(p, data);
    if (own != NULL) atomic_store_explicit(&own->taken, false, memory_order_release);
    if (before != wanted) swap_threads(&p->onednn, before);
    return status;
}

const hone_rival hone_rival_onednn3 = {"onednn3", supports, create, run, destroy, NULL, find, true, true};
