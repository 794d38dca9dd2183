// Enters a context with an overlay, here and in threads: a thread starts with none and enters what it was handed.
#include <hone/hone.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct job {
    hone_runtime *rt;
    hone_context *context;
    const hone_call *call;
    char answer[64];
} job;

static void *work(void *argument)
{
    job *job = argument;
    hone_error err;
    hone_decision decision = {0};
    hone_context *previous = hone_context_enter(job->context);
    if (hone_decide_call(hone_op_find(job->rt, "softmax", &err), job->call, &decision, &err) == HONE_OK)
        snprintf(job->answer, sizeof job->answer, "%.40s by %s", decision.kernel, hone_source_name(decision.source));
    hone_context_enter(previous);
    return NULL;
}

int main(void)
{
    hone_runtime *rt = NULL;
    hone_overlay *overlay = NULL;
    hone_context *context = NULL;
    hone_call *call = NULL;
    hone_error err;
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    const hone_op *softmax = status == HONE_OK ? hone_op_find(rt, "softmax", &err) : NULL;
    if (softmax == NULL) return fprintf(stderr, "%s\n", err.message), 1;
    status = hone_call_parse(hone_allocator_system(), hone_op_signature(softmax), "softmax(f32[32,1000])", &call, &err);
    hone_entry entry = {
        .algorithm = "softmax", .key = status == HONE_OK ? hone_call_key(call) : "", .kernel = "reference"};
    if (status == HONE_OK) status = hone_overlay_create(rt, &entry, 1, &overlay, &err);
    if (status == HONE_OK) status = hone_context_derive(rt, NULL, overlay, NULL, HONE_POLICY_DEFAULT, &context, &err);
    if (status != HONE_OK) return fprintf(stderr, "%s: %s\n", err.where, err.message), 1;
    pthread_t threads[2];
    // What is current where the work is handed out goes along with it, as a pool's queue would keep it.
    job jobs[2] = {{rt, NULL, call, ""}, {rt, NULL, call, ""}};
    hone_context *before = hone_context_enter(context);
    jobs[0].context = hone_context_current();
    hone_context_enter(before);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &jobs[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("inside the context: %s\noutside: %s\n", jobs[0].answer, jobs[1].answer);
    hone_context_release(&context);
    hone_overlay_release(&overlay);
    hone_call_release(&call);
    hone_runtime_close(&rt);
    return strstr(jobs[0].answer, "overlay") != NULL ? 0 : 1;
}
