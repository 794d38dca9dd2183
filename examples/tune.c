// Tunes one call from C with a progress callback, and uses the result as an overlay.
#include <hone/hone.h>

#include <stdio.h>

static void show(void *ctx, const hone_progress *progress)
{
    unsigned *calls = ctx;
    if (++*calls % 20 == 0)
        fprintf(
            stderr, "%u of %u, best %.1f us with %s\n", progress->done, progress->total, progress->best_ns / 1e3,
            progress->best_kernel != NULL ? progress->best_kernel : "nothing yet");
}

int main(void)
{
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_overlay *overlay = NULL;
    hone_error err;
    unsigned calls = 0;
    hone_tune_options options = {
        .struct_size = sizeof options, .seconds = 3, .evaluations = 60, .progress = show, .progress_ctx = &calls};
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    if (status == HONE_OK) status = hone_tune_text(rt, "rms_norm(f32[64,1024], f32[1024])", &options, &result, &err);
    if (status == HONE_OK) status = hone_result_overlay(result, &overlay, &err);
    if (status == HONE_OK) {
        const hone_decision *decision = hone_result_decision(result, 0);
        printf(
            "%s\n  %s %s: %.2f us, verified against %s\n", hone_result_call(result, 0), decision->kernel,
            decision->config_json, decision->evidence.time_ns / 1e3, decision->evidence.verified_against);
    } else {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    }
    hone_overlay_release(&overlay);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
