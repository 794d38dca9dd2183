// What hone adds to a launch of CUDA: a bound plan and hone_run against the driver's own cuLaunchKernel of the same
// function with the same arguments, in turn, on this machine's first GPU. Prints medians of rounds, in nanoseconds a
// launch.
#include "hone/hone.h"
#include "platforms/cuda/loaded.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, LAUNCHES = 400, ROWS = 64, DIM = 1024 };

typedef struct subject {
    const hone_op *op;
    const hone_plan *plan;
    const hone_cuda_loaded *loaded;
    hone_value args[4];
    void *raw[HONE_MAX_ARGUMENTS];
    uint64_t values[HONE_MAX_ARGUMENTS];
} subject;

static void check(hone_status status, const hone_error *err)
{
    if (status == HONE_OK) return;
    fprintf(stderr, "bench_cuda: %s\n", err->message);
    exit(1);
}

static void launch_raw(subject *s)
{
    const hone_launch *shape = &s->loaded->launch;
    (void)s->loaded->instance->driver.launch(
        s->loaded->function, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
        shape->block[2], shape->shared_bytes, NULL, s->raw, NULL);
}

static void launch_plan(subject *s)
{
    (void)s->plan->run(s->plan, s->args, NULL);
}

static void launch_hot(subject *s)
{
    hone_error err;
    check(hone_run(s->op, s->args, 4, NULL, &err), &err);
}

static double time_round(subject *s, void (*launch)(subject *))
{
    const cuda_driver *driver = &s->loaded->instance->driver;
    uint64_t start = hone_os_now_ns();
    for (int i = 0; i < LAUNCHES; i++)
        launch(s);
    double took = (double)(hone_os_now_ns() - start) / LAUNCHES;
    (void)driver->stream_synchronize(NULL);
    return took;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void *allocate(const cuda_driver *driver, size_t size)
{
    cuda_address address = 0;
    if (driver->memory_allocate(&address, size) != CUDA_SUCCESS) exit(1);
    return (void *)(uintptr_t)address;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*launch)(subject *);
    } ways[] = {{"cuLaunchKernel", launch_raw}, {"bound plan", launch_plan}, {"hone_run", launch_hot}};
    static double samples[3][ROUNDS];
    hone_runtime *rt = NULL;
    hone_error err = {.message = ""};
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    check(hone_runtime_open(&options, &rt, &err), &err);
    subject s = {.op = hone_op_find(rt, "rms_norm", &err)};
    int64_t matrix[] = {ROWS, DIM}, row[] = {DIM};
    hone_tensor x = hone_tensor_of((void *)4096, HONE_F32, 2, matrix), y = x;
    hone_tensor weight = hone_tensor_of((void *)4096, HONE_F32, 1, row);
    hone_tensor *tensors[] = {&x, &weight, &y};
    y.data = (void *)(uintptr_t)(4096 + 4 * ROWS * DIM);
    weight.data = (void *)(uintptr_t)(4096 + 8 * ROWS * DIM);
    for (int i = 0; i < 3; i++) {
        tensors[i]->device = (hone_device){HONE_DEVICE_CUDA, 0};
        s.args[i] = hone_of_tensor(tensors[i]);
    }
    s.args[3] = hone_of_float(1e-6);
    check(hone_bind(s.op, s.args, 4, &s.plan, &err), &err);
    s.loaded = s.plan->state;
    const cuda_driver *driver = &s.loaded->instance->driver;
    (void)driver->context_set_current(s.loaded->context);
    for (int i = 0; i < 3; i++)
        tensors[i]->data = allocate(driver, 4 * ROWS * DIM);
    for (uint32_t i = 0; i < s.loaded->count; i++) {
        const hone_argument *argument = &s.loaded->arguments[i];
        s.values[i] = argument->kind == HONE_ARGUMENT_TENSOR
                          ? (uint64_t)(uintptr_t)s.args[argument->value].as.tensor->data
                          : argument->as.bits;
        s.raw[i] = &s.values[i];
    }
    for (int round = -3; round < ROUNDS; round++)
        for (int way = 0; way < 3; way++) {
            double took = time_round(&s, ways[way].launch);
            if (round >= 0) samples[way][round] = took;
        }
    for (int way = 0; way < 3; way++) {
        qsort(samples[way], ROUNDS, sizeof samples[way][0], ascending);
        printf(
            "%-16s %8.1f ns a launch, %+7.1f ns over the driver's own\n", ways[way].name, samples[way][ROUNDS / 2],
            samples[way][ROUNDS / 2] - samples[0][ROUNDS / 2]);
    }
    hone_plan_release(&s.plan);
    hone_runtime_close(&rt);
    return 0;
}
