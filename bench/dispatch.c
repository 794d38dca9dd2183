// hone_run on a hot key against the same job done with libxsmm: the same facts of the same tensors packed into its
// longest key, libxsmm_xdispatch, the call. 3 tensors of rank 2, an empty kernel, keys in random order.
#include "bench.h"

#include <hone/hone.h>
#include <libxsmm.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 3, MAX_THREADS = 2 };

typedef struct one_call {
    int64_t shapes[TENSORS][2];
    hone_tensor tensors[TENSORS];
    hone_value args[TENSORS];
} one_call;

typedef int empty_function(const hone_value *args);

typedef struct field {
    const hone_op *op;
    one_call *calls;
    uint32_t *order; // a random walk over the calls
    uint32_t keys;
    int threads;
} field;

// libxsmm's side of the job: what the tensors say. Its descriptors hold 64 bytes, its own kind included; a key of 64
// overruns them (libxsmm 1.17 then finds nothing or crashes), so the facts are packed into 56.
typedef struct packed_key {
    struct {
        uint8_t code, bits, rank, align, device, id;
        uint16_t lanes;
    } head[TENSORS];
    int32_t dims[TENSORS][2];
    uint64_t operation;
} packed_key;
_Static_assert(sizeof(packed_key) == 56, "the key fits a libxsmm descriptor");

static int pack(const hone_value *args, packed_key *key)
{
    memset(key, 0, sizeof *key);
    key->operation = 1;
    for (int i = 0; i < TENSORS; i++) {
        const hone_tensor *tensor = args[i].as.tensor;
        uintptr_t address = (uintptr_t)tensor->data + tensor->byte_offset;
        if (args[i].tag != HONE_VALUE_TENSOR || tensor->ndim != 2 || tensor->strides != NULL) return 1;
        key->head[i].code = tensor->dtype.code;
        key->head[i].bits = tensor->dtype.bits;
        key->head[i].lanes = tensor->dtype.lanes;
        key->head[i].rank = (uint8_t)tensor->ndim;
        key->head[i].align = (uint8_t)(address & 15);
        key->head[i].device = (uint8_t)tensor->device.type;
        key->head[i].id = (uint8_t)tensor->device.id;
        key->dims[i][0] = (int32_t)tensor->shape[0];
        key->dims[i][1] = (int32_t)tensor->shape[1];
    }
    return 0;
}

static hone_status hone_empty(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    __asm__ volatile("" : : "r"(args) : "memory");
    return HONE_OK;
}

static int plain_empty(const hone_value *args)
{
    __asm__ volatile("" : : "r"(args) : "memory");
    return 0;
}

static void make_call(one_call *call, uint32_t index, float *data)
{
    int64_t m = 1 + index % 100, k = 1 + index / 100, n = 8;
    int64_t shapes[TENSORS][2] = {{m, k}, {k, n}, {m, n}};
    memcpy(call->shapes, shapes, sizeof shapes);
    for (int i = 0; i < TENSORS; i++) {
        call->tensors[i] = hone_tensor_of(data + 200000 * i, HONE_F32, 2, call->shapes[i]);
        call->args[i] = hone_of_tensor(&call->tensors[i]);
    }
}

typedef struct worker {
    field *field;
    uint64_t count;
    uint32_t start;
    int failed;
} worker;

static void *hone_loop(void *argument)
{
    worker *work = argument;
    field *walk = work->field;
    uint32_t at = work->start % walk->keys;
    for (uint64_t i = 0; i < work->count; i++) {
        work->failed |= hone_run(walk->op, walk->calls[walk->order[at]].args, TENSORS, NULL, NULL) != HONE_OK;
        at = at + 1 == walk->keys ? 0 : at + 1;
    }
    return NULL;
}

static void *libxsmm_loop(void *argument)
{
    worker *work = argument;
    field *walk = work->field;
    uint32_t at = work->start % walk->keys;
    for (uint64_t i = 0; i < work->count; i++) {
        packed_key key;
        const hone_value *args = walk->calls[walk->order[at]].args;
        if (pack(args, &key) != 0) work->failed = 1;
        empty_function **found = libxsmm_xdispatch(&key, sizeof key);
        work->failed |= found == NULL || (*found)(args) != 0;
        at = at + 1 == walk->keys ? 0 : at + 1;
    }
    return NULL;
}

static int run_threads(field *walk, void *(*loop)(void *), uint64_t count)
{
    worker work[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int failed = 0;
    for (int i = 0; i < walk->threads; i++) {
        work[i] = (worker){walk, count, (uint32_t)i * 7919, 0};
        if (i > 0) pthread_create(&threads[i], NULL, loop, &work[i]);
    }
    loop(&work[0]);
    for (int i = 0; i < walk->threads; i++) {
        if (i > 0) pthread_join(threads[i], NULL);
        failed |= work[i].failed;
    }
    return failed;
}

static int hone_side(void *ctx, uint64_t count)
{
    return run_threads(ctx, hone_loop, count);
}

static int libxsmm_side(void *ctx, uint64_t count)
{
    return run_threads(ctx, libxsmm_loop, count);
}

static hone_runtime *open_runtime(void)
{
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS};
    hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = "empty(a: T[m, k], b: T[k, n], *) -> c: T[m, n] where T in f32, bf16"};
    hone_kernel kernel = {HONE_KERNEL,         .algorithm = "empty", .name = "empty", .platform = HONE_NATIVE,
                          .backend = HONE_CPU, .run = hone_empty};
    hone_runtime *rt = NULL;
    hone_error err;
    if (hone_runtime_open(&options, &rt, &err) != HONE_OK || hone_register_algorithm(rt, &algorithm, &err) != HONE_OK ||
        hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK) {
        fprintf(stderr, "bench_dispatch: %s\n", err.message);
        exit(1);
    }
    return rt;
}

static void shuffle(uint32_t *order, uint32_t count)
{
    uint64_t state = 88172645463325252ull;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint32_t j = (uint32_t)(state % (i + 1)), held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
}

static int compare(hone_runtime *rt, one_call *calls, uint32_t keys, int threads)
{
    uint32_t *order = calloc(keys, sizeof *order);
    if (order == NULL) return 1;
    shuffle(order, keys);
    field walk = {hone_op_find(rt, "empty", NULL), calls, order, keys, threads};
    char name[64];
    bench_row row;
    snprintf(
        name, sizeof name, "hit/%u key%s/%d thread%s", keys, keys == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
    int failed = bench_compare((bench_side){hone_side, &walk}, (bench_side){libxsmm_side, &walk}, 200000, 0, 41, &row);
    if (failed)
        fprintf(stderr, "bench_dispatch: %s failed\n", name);
    else
        bench_print(name, "libxsmm xdispatch", &row, "at most 0.6");
    free(order);
    return failed;
}

int main(void)
{
    static const uint32_t counts[] = {1, 256, 10000};
    static float data[200000 * TENSORS];
    static one_call calls[10000];
    hone_runtime *rt = open_runtime();
    libxsmm_init();
    for (uint32_t i = 0; i < 10000; i++) {
        packed_key key;
        empty_function *function = plain_empty;
        make_call(&calls[i], i, data);
        if (pack(calls[i].args, &key) != 0 || libxsmm_xregister(&key, sizeof key, sizeof function, &function) == NULL)
            return 1;
    }
    int failed = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int threads = 1; threads <= MAX_THREADS; threads++)
            failed |= compare(rt, calls, counts[i], threads);
    hone_runtime_close(&rt);
    return failed;
}
