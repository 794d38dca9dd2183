// Hands hone the host's own thread pool: kernels split their work over it and start no threads of their own.
#include <hone/hone.h>

#include <pthread.h>
#include <stdio.h>

// A pool as small as can be: two threads a call. A real host has a better one.
typedef struct share {
    int64_t first, count;
    void (*body)(void *ctx, int64_t index);
    void *ctx;
} share;

static void *run_share(void *argument)
{
    share *share = argument;
    for (int64_t i = share->first; i < share->count; i += 2)
        share->body(share->ctx, i);
    return NULL;
}

static void run_on_two(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    share shares[2] = {{0, count, body, ctx}, {1, count, body, ctx}};
    pthread_t other;
    ++*(int *)pool;
    pthread_create(&other, NULL, run_share, &shares[1]);
    run_share(&shares[0]);
    pthread_join(other, NULL);
}

int main(void)
{
    static float a[256][256], b[256][256], c[256][256];
    for (int i = 0; i < 256; i++)
        a[i][i] = b[i][i] = 2;
    int64_t shape[] = {256, 256};
    hone_tensor ta = hone_tensor_of(a, HONE_F32, 2, shape), tb = hone_tensor_of(b, HONE_F32, 2, shape);
    hone_tensor tc = hone_tensor_of(c, HONE_F32, 2, shape);
    hone_value args[] = {hone_of_tensor(&ta), hone_of_tensor(&tb), hone_of_tensor(&tc)};
    hone_runtime *rt = NULL;
    hone_error err;
    int used = 0;
    hone_execution execution = {
        .struct_size = sizeof execution, .threads = 2, .parallel_for = run_on_two, .pool = &used};
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    const hone_op *matmul = status == HONE_OK ? hone_op_find(rt, "matmul", &err) : NULL;
    status = matmul == NULL ? err.status : hone_run(matmul, args, 3, &execution, &err);
    if (status == HONE_OK)
        printf("c[7][7] = %.0f, the host's pool was used %d times\n", (double)c[7][7], used);
    else
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
