// A program of somebody else: C++17, which has no designated initialisers, so the init functions serve it.
#include <hone/hone.h>

#include <cstdio>

static hone_status half(const hone_plan *, const hone_value *args, const hone_execution *)
{
    const float *x = static_cast<const float *>(hone_tensor_data(args[0].as.tensor));
    float *y = static_cast<float *>(hone_tensor_data(args[1].as.tensor));
    for (int64_t i = 0; i < args[0].as.tensor->shape[0]; i++)
        y[i] = x[i] / 2;
    return HONE_OK;
}

int main()
{
    hone_runtime_options options = {};
    options.struct_size = sizeof options;
    options.store = "none";
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "half(x: f32[n]) -> y: f32[n]";
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    kernel.algorithm = "half";
    kernel.name = "cpp";
    kernel.platform = HONE_NATIVE;
    kernel.backend = HONE_CPU;
    kernel.run = half;
    hone_runtime *rt = nullptr;
    hone_error err;
    if (hone_runtime_open(&options, &rt, &err) != HONE_OK || hone_register_algorithm(rt, &algorithm, &err) != HONE_OK ||
        hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK)
        return std::fprintf(stderr, "%s\n", err.message), 1;
    float x[2] = {2, 4}, y[2] = {0, 0};
    int64_t shape[] = {2};
    hone_tensor tx = hone_tensor_of(x, HONE_F32, 1, shape), ty = hone_tensor_of(y, HONE_F32, 1, shape);
    hone_value args[] = {hone_of_tensor(&tx), hone_of_tensor(&ty)};
    if (hone_run(hone_op_find(rt, "half", &err), args, 2, nullptr, &err) != HONE_OK)
        return std::fprintf(stderr, "%s\n", err.message), 1;
    hone_runtime_close(&rt);
    return y[1] == 2 ? 0 : 1;
}
