// What hone adds to a run on OpenCL and on XLA: rms_norm of one row through a bound plan beside the driver's own calls
// for the same kernel, arguments and memory.
//
//   bench_launch [PLUGIN]   on the first device of OpenCL, and on XLA's plugin for the CPU where one is named or found
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>

int launch_fail(const hone_error *err)
{
    fprintf(stderr, "bench_launch: %s\n", err->message);
    return 1;
}

hone_status launch_bind(
    launch_subject *s, hone_platform platform, hone_device device, void *const memory[TENSORS], hone_error *err)
{
    const hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    const hone_override chosen = {
        .algorithm = "rms_norm", .kernel = hone_platform_name(platform), .platform = platform};
    hone_context *context = NULL;
    hone_status status = hone_runtime_open(&options, &s->rt, err);
    if (status != HONE_OK) return status;
    s->matrix[0] = 1;
    s->matrix[1] = s->row[0] = DIM;
    for (int i = 0; i < TENSORS; i++) {
        s->tensors[i] = hone_tensor_of(memory[i], HONE_F32, i == 1 ? 1 : 2, i == 1 ? s->row : s->matrix);
        s->tensors[i].device = device;
        s->args[i] = hone_of_tensor(&s->tensors[i]);
    }
    s->args[TENSORS] = hone_of_float(1e-6);
    s->execution = (hone_execution){.struct_size = sizeof s->execution};
    const hone_op *op = hone_op_find(s->rt, "rms_norm", err);
    if (op == NULL) return err->status;
    status = hone_context_derive(s->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, err);
    if (status != HONE_OK) return status;
    hone_context_enter(context);
    status = hone_bind(op, s->args, ARGUMENTS, &s->plan, err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    return status;
}

void launch_close(launch_subject *s)
{
    hone_plan_release(&s->plan);
    hone_runtime_close(&s->rt);
}

int launch_run(void *ctx, uint64_t count)
{
    const launch_subject *s = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= s->plan->run(s->plan, s->args, &s->execution) != HONE_OK;
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 2) return fprintf(stderr, "usage: bench_launch [PLUGIN]\n"), 2;
    if (argc == 2) setenv("HONE_PJRT_PLUGIN", argv[1], 1);
    int failed = launch_opencl();
    return failed | launch_xla();
}
