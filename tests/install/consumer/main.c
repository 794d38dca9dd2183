// A program of somebody else: C11.
#include <hone/hone.h>

#include <stdio.h>
#include <string.h>

static hone_status twice(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    const float *x = hone_tensor_data(args[0].as.tensor);
    float *y = hone_tensor_data(args[1].as.tensor);
    for (int64_t i = 0; i < args[0].as.tensor->shape[0]; i++)
        y[i] = 2 * x[i];
    return HONE_OK;
}

int main(void)
{
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = "twice(x: f32[n]) -> y: f32[n]"};
    hone_kernel kernel = {HONE_KERNEL,         .algorithm = "twice", .name = "c", .platform = HONE_NATIVE,
                          .backend = HONE_CPU, .run = twice};
    hone_runtime *rt = NULL;
    hone_error err;
    if (hone_runtime_open(&options, &rt, &err) != HONE_OK || hone_register_algorithm(rt, &algorithm, &err) != HONE_OK ||
        hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK)
        return fprintf(stderr, "%s\n", err.message), 1;
    float x[3] = {1, 2, 3}, y[3] = {0, 0, 0};
    int64_t shape[] = {3};
    hone_tensor tx = hone_tensor_of(x, HONE_F32, 1, shape), ty = hone_tensor_of(y, HONE_F32, 1, shape);
    hone_value args[] = {hone_of_tensor(&tx), hone_of_tensor(&ty)};
    if (hone_run(hone_op_find(rt, "twice", &err), args, 2, NULL, &err) != HONE_OK)
        return fprintf(stderr, "%s\n", err.message), 1;
    hone_runtime_close(&rt);
    return y[2] == 6 ? 0 : 1;
}
