// A tuner of the program's own: it tries what hone would try first of each kernel, and takes what uses the least threads.
#include <hone/hone.h>

#include <stdio.h>
#include <string.h>

enum { EACH = 3 };

// "threads=2" of a config's text; 1 where the kernel has no such parameter.
static int threads_of(const hone_tuning_kernel *kernel, const hone_config *config)
{
    char text[512];
    int threads = 1;
    hone_config_text(kernel->space, config, text, sizeof text);
    const char *at = strstr(text, "threads=");
    if (at != NULL) (void)sscanf(at, "threads=%d", &threads);
    return threads;
}

static hone_status tune(void *ctx, hone_tuning *tuning, hone_error *err)
{
    int *tries = ctx, least = 1 << 30;
    size_t count;
    const hone_tuning_kernel *const *kernels = hone_tuning_kernels(tuning, &count);
    for (size_t i = 0; i < count; i++) {
        for (int n = 0; n < EACH; n++) {
            hone_config config;
            hone_tried tried;
            hone_status status = hone_tuning_propose(tuning, i, &config, err);
            if (status == HONE_NOT_FOUND) break; // that was all of them
            if (status == HONE_OK) status = hone_tuning_try(tuning, i, &config, &tried, err);
            if (status != HONE_OK) return status; // HONE_CANCELLED: the budget is spent
            ++*tries;
            if (tried.failure != HONE_FAILURE_NONE || threads_of(kernels[i], &config) >= least) continue;
            least = threads_of(kernels[i], &config);
            if (hone_tuning_choose(tuning, i, &config, err) != HONE_OK) return err->status;
        }
    }
    return HONE_OK;
}

int main(void)
{
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_error err;
    int tries = 0;
    const hone_tuner tuner = {.struct_size = sizeof tuner, .name = "least_threads", .run = tune, .ctx = &tries};
    const hone_tune_options options = {.struct_size = sizeof options, .seconds = 3, .tuner = &tuner};
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    if (status == HONE_OK) status = hone_tune_text(rt, "rms_norm(f32[64,1024], f32[1024])", &options, &result, &err);
    const hone_decision *decision = status == HONE_OK ? hone_result_decision(result, 0) : NULL;
    if (decision != NULL)
        printf("%d tries: %s %s, by %s\n", tries, decision->kernel, decision->config_json, decision->evidence.tuner);
    else
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
