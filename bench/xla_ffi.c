// What the handler of hone_call takes over the kernel, on a hit, called as XLA calls it, beside the bound plan of the
// same call. Both take turns; each figure is the median of the rounds, and the fastest.
//
//   bench_xla_ffi        on the CPU: rms_norm of no rows, so that the call is all there is
//   bench_xla_ffi cuda   on the first GPU: launches of rms_norm, XLA's stream being the default one
#include "../tests/unit/xla_ffi/fake_xla.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 41, DIM = 64 };

typedef struct subject {
    xla_ffi_handler *handler;
    hone_device device;
    int64_t matrix[2], vector[1];
    int rounds, calls;
    void (*settle)(void); // between rounds; NULL: nothing is left to wait for
    void *data[3];
} subject;

static fake_xla_frame frame;
static const hone_plan *plan;
static hone_value args[4];
static const subject *under_test;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void fail(const char *message)
{
    fprintf(stderr, "bench_xla_ffi: %s\n", message);
    exit(1);
}

static void handle(void)
{
    if (under_test->handler(&frame.frame) != NULL) fail(fake_xla_message);
}

static void run_plan(void)
{
    if (plan->run(plan, args, NULL) != HONE_OK) fail("the plan failed");
}

// --- the GPU

static struct {
    int (*retain)(void **context, int device);
    int (*enter)(void *context);
    int (*allocate)(unsigned long long *address, size_t size);
    int (*synchronize)(void *stream);
} driver;

static void find_driver(void)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"cuDevicePrimaryCtxRetain", &driver.retain},
        {"cuCtxSetCurrent", &driver.enter},
        {"cuMemAlloc_v2", &driver.allocate},
        {"cuStreamSynchronize", &driver.synchronize},
    };
    const char *path = getenv("HONE_CUDA_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    if (library == NULL) fail(dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (symbol == NULL) fail(dlerror());
        memcpy(functions[i].function, &symbol, sizeof symbol);
    }
}

static void synchronize(void)
{
    if (driver.synchronize(NULL) != 0) fail("the GPU failed");
}

// hone has opened the driver by now: the plan is bound to made-up addresses, and gets these.
static void use_gpu_memory(subject *s)
{
    void *context = NULL;
    find_driver();
    if (driver.retain(&context, 0) != 0 || driver.enter(context) != 0) fail("the GPU cannot be used");
    for (int i = 0; i < 3; i++) {
        unsigned long long address = 0;
        if (driver.allocate(&address, sizeof(float) * DIM) != 0) fail("the GPU has no memory left");
        s->data[i] = (void *)(uintptr_t)address;
    }
}

// --- the call, both ways

static void bind(subject *s, hone_runtime *rt)
{
    static hone_tensor tensors[3];
    hone_error err;
    const hone_op *op = hone_op_find(rt, "rms_norm", &err);
    if (op == NULL) fail(err.message);
    for (int i = 0; i < 3; i++) {
        int rank = i == 1 ? 1 : 2;
        void *made_up = (void *)(uintptr_t)((uint64_t)(i + 1) << 40);
        tensors[i] = hone_tensor_of(made_up, HONE_F32, rank, i == 1 ? s->vector : s->matrix);
        tensors[i].device = s->device;
        args[i] = hone_of_tensor(&tensors[i]);
    }
    args[3] = hone_of_float(1e-6);
    if (hone_bind(op, args, 4, &plan, &err) != HONE_OK) fail(err.message);
    if (s->device.type == HONE_DEVICE_CUDA) use_gpu_memory(s);
    for (int i = 0; i < 3; i++)
        tensors[i].data = s->data[i];
}

static void make_frame(subject *s)
{
    static int64_t context = 0;
    static const double eps = 1e-6;
    fake_xla_init(&frame);
    fake_xla_argument(&frame, XLA_FFI_F32, s->data[0], 2, s->matrix);
    fake_xla_argument(&frame, XLA_FFI_F32, s->data[1], 1, s->vector);
    fake_xla_result(&frame, XLA_FFI_F32, s->data[2], 2, s->matrix);
    fake_xla_scalar(&frame, "eps", XLA_FFI_F64, &eps);
    fake_xla_string(&frame, "hone_algorithm", "rms_norm");
    fake_xla_string(&frame, "hone_call", "rms_norm(f32[0,64], f32[64])");
    fake_xla_scalar(&frame, "hone_context", XLA_FFI_S64, &context);
    fake_xla_string(&frame, "hone_label", "hone#rms_norm.v1:c1a795cd6196357f");
    fake_xla_string(&frame, "hone_version", "1");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_of(const subject *s, void (*body)(void))
{
    double start = now();
    for (int i = 0; i < s->calls; i++)
        body();
    double took = (now() - start) / s->calls;
    if (s->settle != NULL) s->settle();
    return took;
}

static void report(const char *name, double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, by_value);
    printf("%-20s %5.0f ns %5.0f ns\n", name, times[count / 2], times[0]);
}

static void measure(const subject *s)
{
    static double handled[MOST_ROUNDS], bound[MOST_ROUNDS], over[MOST_ROUNDS];
    for (int round = -1; round < s->rounds; round++) {
        double with = time_of(s, handle), without = time_of(s, run_plan);
        if (round < 0) continue;
        handled[round] = with;
        bound[round] = without;
        over[round] = with - without;
    }
    printf("                       median  fastest\n");
    report("handler, 3 buffers", handled, s->rounds);
    report("bound plan", bound, s->rounds);
    report("the handler's own", over, s->rounds);
}

int main(int argc, char **argv)
{
    static float x[DIM], w[DIM];
    static subject cpu = {hone_xla_call_cpu, {HONE_DEVICE_CPU, 0}, {0, DIM}, {DIM}, 15, 200000, NULL, {x, w, x}};
    static subject gpu = {
        hone_xla_call_cuda, {HONE_DEVICE_CUDA, 0}, {1, DIM}, {DIM}, MOST_ROUNDS, 400, synchronize, {0}};
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    hone_runtime *rt = NULL;
    hone_error err;
    bool on_gpu = argc == 2 && strcmp(argv[1], "cuda") == 0;
    subject *s = on_gpu ? &gpu : &cpu;
    if (argc > 1 && !on_gpu) return fprintf(stderr, "usage: bench_xla_ffi [cuda]\n"), 2;
    if (hone_runtime_open(&options, &rt, &err) != HONE_OK) fail(err.message);
    hone_xla_use(rt);
    bind(s, rt);
    make_frame(s);
    under_test = s;
    measure(s);
    hone_plan_release(&plan);
    return 0;
}
