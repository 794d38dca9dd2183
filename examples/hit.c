// Runs a call given as text: who answers (with HONE_STORE, what was tuned is found again), and what a hit costs.
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static hone_status do_nothing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return (void)plan, (void)args, (void)execution, HONE_OK;
}
int main(int argc, char **argv)
{
    const char *text = argc > 1 ? argv[1] : "rms_norm(f32[4,256], f32[256])";
    char name[HONE_NAME_SIZE];
    hone_runtime *rt = NULL;
    hone_call *call = NULL;
    hone_context *context = NULL;
    hone_decision decision;
    hone_value values[16];
    hone_tensor tensors[16] = {{0}};
    hone_error err;
    hone_status status = hone_call_text_name(text, name, sizeof name, NULL, 0, &err);
    if (status == HONE_OK) status = hone_runtime_open(NULL, &rt, &err);
    const hone_op *op = status == HONE_OK ? hone_op_find(rt, name, &err) : NULL;
    if (op == NULL) return fprintf(stderr, "%s\n", err.message), 1;
    status = hone_call_parse(hone_allocator_system(), hone_op_signature(op), text, &call, &err);
    size_t count = status == HONE_OK ? hone_signature_count(hone_op_signature(op)) : 0;
    for (size_t i = 0; i < count; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i); // a description: shape and dtype, no data
        values[i] = hone_call_values(call)[i];
        if (tensor == NULL) continue;
        tensors[i] = *tensor;
        tensors[i].data = calloc((size_t)hone_tensor_elements(tensor) + 1, 16);
        values[i] = hone_of_tensor(&tensors[i]);
    }
    if (status == HONE_OK) status = hone_decide(op, values, count, &decision, &err);
    if (status == HONE_OK)
        printf("%s %s, answered by %s; ", decision.kernel, decision.config_json, hone_source_name(decision.source));
    // A kernel that does nothing, in place of the chosen one, leaves the time that is hone's own.
    hone_kernel empty = {HONE_KERNEL,         .algorithm = name, .name = "empty", .platform = HONE_NATIVE,
                         .backend = HONE_CPU, .run = do_nothing};
    hone_override forced = {.algorithm = name, .kernel = "empty"};
    if (status == HONE_OK) status = hone_register_kernels(rt, &empty, 1, &err);
    if (status == HONE_OK) status = hone_context_derive(rt, NULL, NULL, &forced, HONE_POLICY_DEFAULT, &context, &err);
    hone_context_enter(context);
    if (status == HONE_OK) status = hone_run(op, values, count, NULL, &err);
    clock_t start = clock();
    for (int i = 0; i < 200000 && status == HONE_OK; i++)
        status = hone_run(op, values, count, NULL, &err);
    double hit_ns = (double)(clock() - start) / CLOCKS_PER_SEC * 1e9 / 200000;
    status == HONE_OK ? printf("a hit costs %.0f ns\n", hit_ns) : fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_context_enter(NULL);
    hone_context_release(&context);
    for (size_t i = 0; i < count; i++)
        free(tensors[i].data);
    hone_call_release(&call);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
