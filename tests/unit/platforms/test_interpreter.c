// Functions of an interpreter as kernels: what a lent interpreter is asked for, and what a process without one says. The
// interpreter here is one of C, which knows three functions.
#include "base/hash.h"
#include "hone/hone.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { N = 8 };

static const char source[] = "def scale(x, by): ...\n";

// The interpreter -------------------------------------------------------------------------------------------------------

static struct {
    char entry[64], config[64], facts[64], source[64];
    int prepared, released;
} told;

static hone_status fake_prepare(const hone_script *script, void **out_state, hone_error *err)
{
    snprintf(told.entry, sizeof told.entry, "%s", script->entry);
    snprintf(told.config, sizeof told.config, "%s", script->config);
    snprintf(told.facts, sizeof told.facts, "%s", script->facts);
    snprintf(told.source, sizeof told.source, "%s", script->source);
    assert_string_equal(hone_call_text(script->call), "scale(f32[8])");
    if (strcmp(script->entry, "missing") == 0) {
        err->status = HONE_UNAVAILABLE;
        err->where = "fake";
        snprintf(err->message, sizeof err->message, "No module named 'numba'");
        return HONE_UNAVAILABLE;
    }
    told.prepared++;
    *out_state = strcmp(script->entry, "failing") == 0 ? &told.released : &told.prepared;
    return HONE_OK;
}

static void fake_release(void *state)
{
    assert_non_null(state);
    told.released++;
}

static hone_status fake_run(
    void *state, const hone_value *args, size_t count, const hone_execution *execution, char *words, size_t size)
{
    (void)execution;
    assert_int_equal(count, 3);
    if (state == &told.released) {
        snprintf(words, size, "KeyError: 'no such thing'");
        return HONE_KERNEL_FAILED;
    }
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    assert_int_equal(args[2].tag, HONE_VALUE_FLOAT); // as the call has it, though it was left out
    for (int i = 0; i < N; i++)
        ((float *)y->data)[i] = ((const float *)x->data)[i] * (float)args[2].as.f64;
    return HONE_OK;
}

static const hone_interpreter interpreter = {
    .struct_size = sizeof interpreter,
    .name = "a fake",
    .prepare = fake_prepare,
    .release = fake_release,
    .run = fake_run};

// One call --------------------------------------------------------------------------------------------------------------

typedef struct calling {
    temporary_folder folder;
    hone_runtime *rt;
    const hone_plan *plan;
    int64_t shape[1];
    _Alignas(64) float x[N], y[N];
    hone_tensor tensors[2];
    hone_value args[2];
    hone_error err;
} calling;

static int setup(void **state)
{
    calling *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(temporary_folder_make(&c->folder), 0);
    c->shape[0] = N;
    for (int i = 0; i < N; i++)
        c->x[i] = (float)i;
    c->tensors[0] = hone_tensor_of(c->x, HONE_F32, 1, c->shape);
    c->tensors[1] = hone_tensor_of(c->y, HONE_F32, 1, c->shape);
    c->args[0] = hone_of_tensor(&c->tensors[0]);
    c->args[1] = hone_of_tensor(&c->tensors[1]);
    memset(&told, 0, sizeof told);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    calling *c = *state;
    hone_plan_release(&c->plan);
    hone_runtime_close(&c->rt);
    temporary_folder_remove(&c->folder);
    free(c);
    return 0;
}

static void write_file(const calling *c, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", c->folder.path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// Opens a runtime with a pack: a reference of Python, and a kernel whose fields are given.
static void open_with(calling *c, const char *fields)
{
    const hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    char sha256[HONE_SHA256_HEX_SIZE], text[2048];
    hone_hash_sha256(source, strlen(source), sha256);
    write_file(c, "scale.py", source);
    snprintf(
        text, sizeof text,
        "{\"hone_pack\": 1, \"name\": \"fake\", \"algorithms\": [{\"signature\": \"scale(x: f32[n], *, by: f64 = 3.0) "
        "-> y: "
        "f32[n]\", \"reference\": \"reference\"}], \"kernels\": [{\"algorithm\": \"scale\", \"name\": \"reference\", "
        "\"platform\": \"python\", \"backend\": \"cpu\", \"file\": \"scale.py\", \"sha256\": \"%s\", \"entry\": "
        "\"scale\"}, "
        "{\"algorithm\": \"scale\", \"name\": \"mine\", \"platform\": \"python\", \"backend\": \"any\", \"priority\": "
        "5, %s, "
        "\"file\": \"scale.py\", \"sha256\": \"%s\"}]}",
        sha256, fields, sha256);
    write_file(c, "pack.json", text);
    assert_int_equal(hone_runtime_open(&options, &c->rt, &c->err), HONE_OK);
    if (hone_pack_load(c->rt, c->folder.path, &c->err) != HONE_OK) fail_msg("%s", c->err.message);
}

static hone_status bind(calling *c, const char *kernel)
{
    const hone_override chosen = {.algorithm = "scale", .kernel = kernel, .platform = HONE_PYTHON};
    hone_context *context = NULL;
    const hone_op *op = hone_op_find(c->rt, "scale", &c->err);
    assert_non_null(op);
    hone_status status = hone_context_derive(c->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &c->err);
    if (status != HONE_OK) return status;
    hone_context_enter(context);
    status = hone_bind(op, c->args, 2, &c->plan, &c->err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    return status;
}

static hone_status run_plan(calling *c)
{
    hone_status status = c->plan->run(c->plan, c->args, NULL);
    return status == HONE_OK ? status : hone_plan_failed(c->plan, status, &c->err);
}

// The first test: nobody has lent one yet.
static void a_process_without_an_interpreter_says_so(void **state)
{
    calling *c = *state;
    open_with(c, "\"entry\": \"scale\"");
    assert_int_not_equal(bind(c, "mine"), HONE_OK);
    if (strstr(c->err.message, "runs no Python") == NULL) fail_msg("%s", c->err.message);
}

static void a_half_interpreter_is_refused(void **state)
{
    calling *c = *state;
    const hone_interpreter half = {.struct_size = sizeof half, .run = fake_run};
    assert_int_equal(hone_interpreter_lend(NULL, &c->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_interpreter_lend(&half, &c->err), HONE_INVALID_ARGUMENT);
}

static void a_lent_one_gets_source_config_and_scalars(void **state)
{
    calling *c = *state;
    assert_int_equal(hone_interpreter_lend(&interpreter, &c->err), HONE_OK);
    open_with(
        c, "\"entry\": \"scale\", \"space\": [\"rows: 4..16 *2 default 8\", \"how: whole | parts\"], \"facts\": "
           "{\"a\": 1}");
    if (bind(c, "mine") != HONE_OK) fail_msg("%s", c->err.message);
    assert_string_equal(told.entry, "scale");
    assert_string_equal(told.source, source);
    assert_non_null(strstr(told.facts, "\"a\""));
    assert_non_null(strstr(told.config, "\"rows\":8"));
    assert_non_null(strstr(told.config, "\"how\":\"whole\""));
    assert_int_equal(run_plan(c), HONE_OK);
    for (int i = 0; i < N; i++)
        assert_true(c->y[i] == 3 * c->x[i]);
    hone_plan_release(&c->plan);
    hone_runtime_close(&c->rt);
    assert_int_equal(told.prepared, told.released);
}

static void its_words_reach_the_caller(void **state)
{
    calling *c = *state;
    assert_int_equal(hone_interpreter_lend(&interpreter, &c->err), HONE_OK);
    open_with(c, "\"entry\": \"missing\"");
    assert_int_not_equal(bind(c, "mine"), HONE_OK);
    if (strstr(c->err.message, "No module named 'numba'") == NULL) fail_msg("%s", c->err.message);
    hone_runtime_close(&c->rt);
    open_with(c, "\"entry\": \"failing\"");
    if (bind(c, "mine") != HONE_OK) fail_msg("%s", c->err.message);
    hone_status status = run_plan(c);
    if (status == HONE_OK || strstr(c->err.message, "KeyError: 'no such thing'") == NULL)
        fail_msg("%s", c->err.message);
}

static bool keep_reason(void *ctx, const hone_pack_entry *entry)
{
    if (entry->reason != NULL) snprintf(ctx, 512, "%s", entry->reason);
    return true;
}

static void fields_that_do_not_apply_to_a_function_are_refused(void **state)
{
    static const struct {
        const char *fields, *words;
    } rows[] = {
        {"\"entry\": \"scale\", \"arguments\": \"x, y\"", "arguments: a function of Python has none"},
        {"\"entry\": \"scale\", \"grid\": \"1\"", "grid: a function of Python has none"},
        {"\"description\": \"\"", "entry: is missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        calling *c = *state;
        char reason[512] = "";
        open_with(c, rows[i].fields);
        assert_int_equal(hone_pack_list(c->rt, keep_reason, reason, &c->err), HONE_OK);
        if (strstr(reason, rows[i].words) == NULL) fail_msg("%s", reason);
        hone_runtime_close(&c->rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_without_an_interpreter_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_half_interpreter_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lent_one_gets_source_config_and_scalars, setup, teardown),
        cmocka_unit_test_setup_teardown(its_words_reach_the_caller, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_that_do_not_apply_to_a_function_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
