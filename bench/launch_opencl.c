// The driver's own launch of the same kernel on the same queue.
#include "launch.h"

#include "platforms/opencl/loaded.h"

static int finish(const launch_subject *s)
{
    const hone_opencl_loaded *loaded = s->plan->state;
    return loaded->instance->icd.finish(s->execution.stream) != OPENCL_SUCCESS;
}

static int run_opencl_plan(void *ctx, uint64_t count)
{
    return launch_run(ctx, count) | finish(ctx);
}

static int run_opencl_raw(void *ctx, uint64_t count)
{
    const launch_subject *s = ctx;
    const hone_opencl_loaded *loaded = s->plan->state;
    const opencl_icd *icd = &loaded->instance->icd;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < loaded->count; j++) {
            const hone_argument *argument = &loaded->arguments[j];
            if (argument->kind != HONE_ARGUMENT_TENSOR) continue;
            opencl_memory *memory = s->args[argument->value].as.tensor->data;
            failed |= icd->set_argument(loaded->first.kernel, j, sizeof memory, &memory) != OPENCL_SUCCESS;
        }
        failed |= icd->launch(
                      s->execution.stream, loaded->first.kernel, 3, NULL, loaded->global, loaded->local, 0, NULL,
                      NULL) != OPENCL_SUCCESS;
    }
    return failed | finish(s);
}

int launch_opencl(void)
{
    static launch_subject s;
    hone_error err = {.message = ""};
    bench_row row;
    // The call's key is of shapes: its buffers are made in the context that the plan brings.
    if (launch_bind(
            &s, HONE_OPENCL, (hone_device){HONE_DEVICE_OPENCL, 0},
            (void *[TENSORS]){(void *)4096, (void *)8192, (void *)12288}, &err) != HONE_OK)
        return launch_fail(&err);
    const hone_opencl_loaded *loaded = s.plan->state;
    opencl_result result = OPENCL_SUCCESS;
    for (int i = 0; i < TENSORS; i++)
        s.tensors[i].data = loaded->instance->icd.create_buffer(
            loaded->first.context, OPENCL_READ_WRITE, DIM * sizeof(float), NULL, &result);
    s.execution.stream = loaded->device->queue;
    int failed =
        bench_compare((bench_side){run_opencl_plan, &s}, (bench_side){run_opencl_raw, &s}, 0, 2e7, ROUNDS, &row);
    if (!failed) bench_print("launch/opencl", "clSetKernelArg and clEnqueueNDRangeKernel", &row, NULL);
    for (int i = 0; i < TENSORS; i++)
        (void)loaded->instance->icd.release_memory(s.tensors[i].data);
    launch_close(&s);
    return failed;
}
