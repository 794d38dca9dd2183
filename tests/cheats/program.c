// A user's program: registers two functions of cpu.c, and has hone tune a call, in children of the zygote.
// cheats_program CALL CHEAT HONEST; prints what hone tune --json prints.
#define PROGRAM // and no library of a pack
#include "cpu.c"

#define SIGNATURE "blend(x: f32[rows, dim], bias: f32[dim]?, *, scale: f64 = 2.0) -> y: f32[rows, dim]"

static hone_status run_blend(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const job j = job_of(plan, args, execution);
    blend(&j);
    return HONE_OK;
}

#define ROW(name, prepare) {#name, run_##name, prepare},
static const struct {
    const char *name;
    hone_run_function *run;
    hone_status (*prepare)(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
} rows[] = {EACH};

static hone_status add_kernel(hone_runtime *rt, const char *call, const char *name, hone_error *err)
{
    char algorithm[64] = "";
    memcpy(algorithm, call, strcspn(call, "("));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        const hone_kernel kernel = {
            HONE_KERNEL,
            .algorithm = algorithm,
            .name = name,
            .platform = HONE_NATIVE,
            .backend = HONE_CPU,
            .priority = 99,
            .prepare = rows[i].prepare,
            .release = release_state,
            .run = rows[i].run};
        return hone_register_kernels(rt, &kernel, 1, err);
    }
    return HONE_NOT_FOUND;
}

int main(int count, char **arguments)
{
    const hone_runtime_options how = {.struct_size = sizeof how, .flags = HONE_RUNTIME_ZYGOTE};
    const hone_tune_options options = {.struct_size = sizeof options, .seconds = 20, .evaluations = 4};
    const hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = SIGNATURE, .reference = run_blend};
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_error err = {0};
    char *text = NULL;
    if (count != 4) return 2;
    hone_status status = hone_runtime_open(&how, &rt, &err);
    if (status == HONE_OK) status = hone_register_algorithm(rt, &algorithm, &err);
    for (int i = 2; i < 4 && status == HONE_OK; i++)
        status = add_kernel(rt, arguments[1], arguments[i], &err);
    if (status == HONE_OK) status = hone_tune_text(rt, arguments[1], &options, &result, &err);
    if (status == HONE_OK) status = hone_result_json(result, &text, &err);
    if (status == HONE_OK) puts(text);
    if (status != HONE_OK) fprintf(stderr, "program: %s\n", err.message);
    hone_text_release(&text);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
