// What the handler of hone_call takes over the kernel, on a hit: rms_norm of no rows, called as XLA calls it, beside the bound
// plan of the same call. All take turns; each figure is the median of 15 rounds, and the fastest.
#include "../tests/unit/xla_ffi/fake_xla.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, CALLS = 200000 };

static fake_xla_frame frame;
static const hone_plan *plan;
static hone_value args[4];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void handle(void)
{
    if (hone_xla_call_cpu(&frame.frame) != NULL) abort();
}

static void run_plan(void)
{
    if (plan->run(plan, args, NULL) != HONE_OK) abort();
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_of(void (*body)(void))
{
    double start = now();
    for (int i = 0; i < CALLS; i++)
        body();
    return (now() - start) / CALLS;
}

int main(void)
{
    static float x[64], w[64];
    static int64_t none[] = {0, 64}, vector[] = {64}, context = 0;
    static const double eps = 1e-6;
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    hone_runtime *rt = NULL;
    hone_error err;
    if (hone_runtime_open(&options, &rt, &err) != HONE_OK) return fprintf(stderr, "%s\n", err.message), 1;
    hone_xla_use(rt);
    fake_xla_init(&frame);
    fake_xla_argument(&frame, XLA_FFI_F32, x, 2, none);
    fake_xla_argument(&frame, XLA_FFI_F32, w, 1, vector);
    fake_xla_result(&frame, XLA_FFI_F32, x, 2, none);
    fake_xla_scalar(&frame, "eps", XLA_FFI_F64, &eps);
    fake_xla_string(&frame, "hone_algorithm", "rms_norm");
    fake_xla_string(&frame, "hone_call", "rms_norm(f32[0,64], f32[64])");
    fake_xla_scalar(&frame, "hone_context", XLA_FFI_S64, &context);
    fake_xla_string(&frame, "hone_label", "hone#rms_norm.v1:c1a795cd6196357f");
    fake_xla_string(&frame, "hone_version", "1");
    static hone_tensor tensors[3];
    tensors[0] = hone_tensor_of(x, HONE_F32, 2, none);
    tensors[1] = hone_tensor_of(w, HONE_F32, 1, vector);
    tensors[2] = tensors[0];
    for (int i = 0; i < 3; i++)
        args[i] = hone_of_tensor(&tensors[i]);
    args[3] = hone_of_float(eps);
    if (hone_bind(hone_op_find(rt, "rms_norm", &err), args, 4, &plan, &err) != HONE_OK)
        return fprintf(stderr, "%s\n", err.message), 1;
    double handled[ROUNDS], bound[ROUNDS], over[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        handled[i] = time_of(handle);
        bound[i] = time_of(run_plan);
        over[i] = handled[i] - bound[i];
    }
    qsort(handled, ROUNDS, sizeof *handled, by_value);
    qsort(bound, ROUNDS, sizeof *bound, by_value);
    qsort(over, ROUNDS, sizeof *over, by_value);
    printf("                      median  fastest\n");
    printf("handler, 3 buffers   %4.0f ns  %4.0f ns\n", handled[ROUNDS / 2], handled[0]);
    printf("bound plan           %4.0f ns  %4.0f ns\n", bound[ROUNDS / 2], bound[0]);
    printf("the handler's own    %4.0f ns  %4.0f ns\n", over[ROUNDS / 2], over[0]);
    hone_plan_release(&plan);
    return 0;
}
