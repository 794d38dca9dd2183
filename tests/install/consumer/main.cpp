// A program of somebody else: C++17, which has no designated initialisers, so the init functions serve it.
#include <hone/hone.h>

#include <cstdio>
#include <cstring>

static hone_status half(const hone_plan *, const hone_value *args, const hone_execution *)
{
    const float *x = static_cast<const float *>(hone_tensor_data(args[0].as.tensor));
    float *y = static_cast<float *>(hone_tensor_data(args[1].as.tensor));
    for (int64_t i = 0; i < args[0].as.tensor->shape[0]; i++)
        y[i] = x[i] / 2;
    return HONE_OK;
}

static hone_status by_rows(void *, const void *rows, char *out, size_t size, hone_error *)
{
    std::snprintf(out, size, "rows%d", *static_cast<const int *>(rows));
    return HONE_OK;
}

// What the program finds out itself, under a key of its own making.
static bool keeps_values()
{
    hone_own_cache_options options = {};
    options.struct_size = sizeof options;
    options.make_key = by_rows;
    hone_own_cache *cache = nullptr;
    hone_error err;
    char key[HONE_OWN_KEY_SIZE], *json = nullptr;
    const int rows = 64;
    if (hone_own_cache_open(&options, &cache, &err) != HONE_OK) return false;
    bool kept = hone_own_cache_make_key(cache, &rows, key, sizeof key, &err) == HONE_OK;
    const hone_own_value value = {"cpu", "half@v1", key, "{\"threads\":2}"};
    kept = kept && hone_own_cache_put(cache, &value, &err) == HONE_OK &&
           hone_own_cache_get(cache, &value, &json, &err) == HONE_OK && std::strcmp(json, value.json) == 0;
    hone_text_release(&json);
    hone_own_cache_close(&cache);
    return kept;
}

static hone_status first_config(void *tries, hone_tuning *tuning, hone_error *err)
{
    size_t count = 0;
    hone_tried tried;
    const hone_tuning_kernel *const *kernels = hone_tuning_kernels(tuning, &count);
    ++*static_cast<int *>(tries);
    return hone_tuning_try(tuning, 0, &kernels[0]->default_config, &tried, err);
}

static hone_status always_cpp(void *, const hone_link_question *, hone_link_answer *answer, hone_error *)
{
    std::strcpy(answer->kernel, "cpp");
    return HONE_OK;
}

// A tuner and a link of the chain of the program's own.
static bool has_own_parts(hone_runtime *rt)
{
    int tries = 0;
    hone_error err;
    hone_tuner tuner = {sizeof(hone_tuner), "first", first_config, &tries};
    hone_tune_options options = {};
    options.struct_size = sizeof options;
    options.tuner = &tuner;
    options.isolation = HONE_ISOLATION_IN_PROCESS;
    hone_result *result = nullptr;
    if (hone_tune_text(rt, "half(f32[64])", &options, &result, &err) != HONE_OK)
        return std::fprintf(stderr, "%s\n", err.message), false;
    hone_result_release(&result);
    hone_link link = {};
    link.source = HONE_SOURCE_MEMORY;
    link.find = always_cpp;
    link.name = "always_cpp";
    hone_context *context = nullptr;
    if (hone_context_derive_chain(rt, nullptr, &link, 1, HONE_KEEP_IN_MEMORY, &context, &err) != HONE_OK) return false;
    hone_context_release(&context);
    return tries == 1;
}

int main()
{
    hone_runtime_options options = {};
    options.struct_size = sizeof options;
    options.store = "none";
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "half(x: f32[n]) -> y: f32[n]";
    algorithm.reference = half;
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
    const bool is_right = y[1] == 2 && keeps_values() && has_own_parts(rt);
    hone_runtime_close(&rt);
    return is_right ? 0 : 1;
}
