// The registry's public functions and hone_kernel_run.
#include "fixture.h"

#include "hone/offline.h"

#include <stdio.h>

static const hone_kernel_ref *get(fixture *f, const char *name)
{
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    const hone_kernel_ref *found = NULL;
    assert_int_equal(hone_registry_kernels(f->rt, "scale", &kernels, &count, &f->err), HONE_OK);
    for (size_t i = 0; i < count; i++)
        if (strcmp(hone_kernel_of(kernels[i])->name, name) == 0) found = kernels[i];
    hone_kernels_release(&kernels);
    assert_null(kernels);
    assert_non_null(found);
    return found;
}

static void algorithms_are_listed_once_each_in_lower_case_and_sorted(void **state)
{
    fixture *f = *state;
    static const char *const signatures[] = {
        "Zeta(x: f32[n]) -> y: f32[n]", "alpha(x: f32[n]) -> y: f32[n]", "alpha@v2(x: f32[n, n]) -> y: f32[n]"};
    for (size_t i = 0; i < 3; i++) {
        hone_algorithm algorithm;
        hone_algorithm_init(&algorithm);
        algorithm.signature = signatures[i];
        assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    }
    char **names = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_algorithms(f->rt, &names, &count, &f->err), HONE_OK);
    assert_int_equal(count, 3);
    assert_string_equal(names[0], "alpha");
    assert_string_equal(names[1], "scale");
    assert_string_equal(names[2], "zeta");
    hone_names_release(&names);
    assert_null(names);
}

static void programs_say_which_operations_of_others_their_algorithms_are(void **state)
{
    fixture *f = *state;
    static const char rows[] = "[{\"library\":\"tokamax\",\"operation\":\"Scaled\",\"values\":{\"mode\":[\"fast\"]},"
                               "\"takes\":[{\"algorithm\":\"scale\",\"arguments\":{\"input\":\"x\"}}]}]";
    static const char text[] =
        "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  %0 = stablehlo.abs %a : tensor<8xf32> "
        "loc(\"jit(f)/tokamax:m.Scaled({\\22input\\22:\\22f32[8]\\22,\\22mode\\22:\\22fast\\22})/abs\")\n"
        "  return %0 : tensor<8xf32>\n}\n";
    for (int known = 0; known < 2; known++) {
        hone_program *program = NULL;
        assert_int_equal(hone_program_read(f->rt, "p", text, strlen(text), &program, &f->err), HONE_OK);
        const hone_operation *operation = hone_program_operation(program, 0);
        assert_int_equal(operation->call != NULL, known);
        if (known) assert_string_equal(operation->call, "scale(f32[1,8])");
        hone_program_release(&program);
        assert_int_equal(hone_register_foreign(f->rt, rows, strlen(rows), &f->err), HONE_OK);
    }
    assert_int_equal(hone_register_foreign(f->rt, "[{}]", 4, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "row 0 of foreign operations: library"));
    assert_int_equal(hone_register_foreign(f->rt, NULL, 0, &f->err), HONE_INVALID_ARGUMENT);
}

// Memory with a watched edge behind each block.
enum { EDGE = 64 };

static void *reallocate_watched(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    if (ptr != NULL)
        for (size_t i = 0; i < EDGE; i++)
            if (((unsigned char *)ptr)[old_size + i] != 0xA5) atomic_fetch_add((atomic_int *)ctx, 1);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    unsigned char *block = realloc(ptr, new_size + EDGE);
    if (block != NULL) memset(block + new_size, 0xA5, EDGE);
    return block;
}

static void many_names_fit_into_the_memory_that_was_asked_for(void **state)
{
    enum { COUNT = 40 };
    static atomic_int crossed;
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .allocator = {&crossed, reallocate_watched}});
    for (int i = 0; i < COUNT; i++) {
        char signature[64];
        hone_algorithm algorithm;
        hone_algorithm_init(&algorithm);
        snprintf(signature, sizeof signature, "copy_%02d(x: f32[n]) -> y: f32[n]", i);
        algorithm.signature = signature;
        assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_OK);
    }
    char **names = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_algorithms(f->rt, &names, &count, &f->err), HONE_OK);
    assert_int_equal(count, COUNT + 1);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "copy_%02d", i);
        assert_string_equal(names[i], name);
    }
    assert_string_equal(names[COUNT], "scale");
    hone_names_release(&names);
    close_fixture(f);
    assert_int_equal(atomic_load(&crossed), 0);
}

static void kernels_are_listed_by_falling_priority_and_an_unknown_algorithm_has_none(void **state)
{
    fixture *f = *state;
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_kernels(f->rt, "SCALE", &kernels, &count, &f->err), HONE_OK);
    assert_int_equal(count, 3);
    assert_string_equal(hone_kernel_of(kernels[0])->name, "fast");
    assert_string_equal(hone_kernel_of(kernels[2])->name, "reference");
    hone_kernels_release(&kernels);
    assert_int_equal(hone_registry_kernels(f->rt, "shrink", &kernels, &count, &f->err), HONE_OK);
    assert_int_equal(count, 0);
    hone_kernels_release(&kernels);
}

static void a_query_gets_the_kernel_of_highest_priority_or_a_bounded_no(void **state)
{
    fixture *f = *state;
    const hone_kernel_ref *kernel = NULL;
    assert_int_equal(hone_registry_get(f->rt, &(hone_query){.algorithm = "scale"}, &kernel, &f->err), HONE_OK);
    assert_string_equal(hone_kernel_of(kernel)->name, "fast");
    assert_int_equal(
        hone_registry_get(f->rt, &(hone_query){"scale", HONE_PLATFORM_AUTO, HONE_BACKEND_NONE}, &kernel, &f->err),
        HONE_OK);
    // For ever was the fault once: platform xla without a match asked itself again.
    assert_int_equal(
        hone_registry_get(f->rt, &(hone_query){"scale", HONE_XLA, HONE_BACKEND_NONE}, &kernel, &f->err),
        HONE_NOT_FOUND);
    assert_says(f, "fast");
    assert_says(f, "xla");
    assert_int_equal(
        hone_registry_get(f->rt, &(hone_query){"scale", HONE_NATIVE, HONE_GPU}, &kernel, &f->err), HONE_NOT_FOUND);
    assert_int_equal(hone_registry_get(f->rt, &(hone_query){.algorithm = "no"}, &kernel, &f->err), HONE_NOT_FOUND);
    assert_int_equal(hone_registry_get(f->rt, NULL, &kernel, &f->err), HONE_INVALID_ARGUMENT);
}

static void a_kernel_that_was_got_runs_and_no_other(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    put_in_cache(f, 4, 4, "fast");
    const hone_kernel_ref *plain = get(f, "plain");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hone_kernel_run(plain, e.args, 2, NULL, &f->err), HONE_OK);
        assert_scaled(&e, 2);
    }
    assert_int_equal(f->probes[PLAIN].runs, 3);
    assert_int_equal(f->probes[PLAIN].prepares, f->probes[PLAIN].releases); // nothing is left behind
    assert_int_equal(f->probes[FAST].runs, 0);
    assert_null(hone_context_current());
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 1);
    assert_int_equal(f->probes[FAST].config, 4);
}

static void its_own_context_is_what_a_thread_has_again_after_running_a_kernel(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    hone_context *context = derive(f, NULL, NULL, NULL, HONE_POLICY_FROZEN);
    hone_context_enter(context);
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_OK);
    assert_ptr_equal(hone_context_current(), context);
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 1, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_ptr_equal(hone_context_current(), context);
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static void a_kernel_is_run_with_its_default_config(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    put_in_cache(f, 4, 4, "fast");
    assert_int_equal(hone_kernel_run(get(f, "fast"), e.args, 3, NULL, &f->err), HONE_OK);
    assert_int_equal(f->probes[FAST].config, 1);
}

// A kernel knows more of its failure than a status says; the words reach whoever called it, in whichever way.
static void a_kernels_error_message_reaches_the_caller(void **state)
{
    fixture *f = *state;
    example e;
    const hone_plan *plan = NULL;
    make_example(&e, 4, 4);
    for (int i = 0; i < KERNELS; i++) {
        f->probes[i].status = HONE_KERNEL_FAILED;
        f->probes[i].words = i == PLAIN ? "the moon is in the wrong house" : NULL;
    }
    assert_int_equal(hone_bind(f->op, e.args, 3, &plan, &f->err), HONE_OK);
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_KERNEL_FAILED);
    assert_says(f, "kernel plain of scale(f32[4,4]) failed: the moon is in the wrong house");
    assert_int_equal(hone_kernel_run(get(f, "fast"), e.args, 3, NULL, &f->err), HONE_KERNEL_FAILED);
    assert_says(f, "kernel fast of scale(f32[4,4]) failed: run answered");
    f->probes[PLAIN].words = NULL;
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_KERNEL_FAILED);
    assert_says(f, "failed: run answered");                        // it says nothing now
    f->probes[REFERENCE].words = "the moon is in the wrong house"; // the last that is asked
    assert_int_not_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    assert_says(f, "the moon is in the wrong house");
    f->probes[FAST].words = "no luck";
    hone_status status = plan->run(plan, e.args, NULL);
    assert_int_equal(hone_plan_failed(plan, status, &f->err), HONE_KERNEL_FAILED);
    assert_says(f, "kernel fast of scale(f32[4,4]) failed: no luck");
    assert_int_equal(hone_plan_failed(plan, HONE_OK, &f->err), HONE_OK);
    hone_plan_release(&plan);
}

// The caller asked for the kernel itself: neither a context nor a variable named it.
static void an_error_names_no_context_or_override_that_was_not_given(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    f->probes[PLAIN].prepare_status = HONE_UNSUPPORTED;
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_UNSUPPORTED);
    assert_null(strstr(f->err.message, "context"));
    assert_says(f, "the probe says no");
    e.tensors[0].device = e.tensors[1].device = (hone_device){HONE_DEVICE_CUDA, 0};
    assert_int_not_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_OK);
    assert_null(strstr(f->err.message, "override"));
}

static void a_call_of_a_kernel_is_checked_like_any(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_kernel_run(NULL, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 1, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "y");
    e.tensors[1].data = e.x;
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_kernel_run(get(f, "plain"), NULL, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(f->probes[PLAIN].runs, 0);
}

static void a_parameter_that_the_kernel_does_not_have_is_refused_before_it_runs(void **state)
{
    fixture *f = *state;
    probe simple = {0};
    hone_kernel kernel = f->kernels[PLAIN];
    kernel.name = "simple";
    kernel.signature = "scale(x: T[rows, cols]) -> y: T[rows, cols] where T in f32";
    kernel.user = &simple;
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    example e;
    make_example(&e, 4, 4);
    e.args[2] = hone_of_float(3);
    assert_int_equal(hone_kernel_run(get(f, "simple"), e.args, 3, NULL, &f->err), HONE_UNSUPPORTED);
    assert_says(f, "factor");
    assert_says(f, "simple");
    assert_int_equal(simple.runs, 0);
    assert_int_equal(hone_kernel_run(get(f, "simple"), e.args, 2, NULL, &f->err), HONE_OK);
    assert_int_equal(simple.runs, 1);
}

static void a_kernels_failure_names_the_algorithm_the_kernel_the_call_and_the_cause(void **state)
{
    static const struct {
        hone_status status, answer;
        const char *cause;
    } rows[] = {
        {HONE_KERNEL_FAILED, HONE_KERNEL_FAILED, "kernel failed"},
        {HONE_UNSUPPORTED, HONE_KERNEL_FAILED, "unsupported"},
    };
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store(&f->probes[PLAIN].status, rows[i].status);
        assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), rows[i].answer);
        assert_says(f, "plain");
        assert_says(f, "scale(f32[4,4])");
        assert_says(f, rows[i].cause);
    }
    // It is not put aside for others by that.
    atomic_store(&f->probes[PLAIN].status, HONE_OK);
    assert_int_equal(hone_kernel_run(get(f, "plain"), e.args, 3, NULL, &f->err), HONE_OK);
}

static void a_refused_registration_leaves_nothing_behind(void **state)
{
    fixture *f = *state;
    hone_kernel kernels[2] = {f->kernels[PLAIN], f->kernels[PLAIN]};
    kernels[0].name = "new";
    kernels[1].name = "bad";
    kernels[1].space = "block: 1 |";
    assert_int_equal(hone_register_kernels(f->rt, kernels, 2, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "bad");
    const hone_kernel_ref **all = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_kernels(f->rt, "scale", &all, &count, &f->err), HONE_OK);
    assert_int_equal(count, KERNELS);
    hone_kernels_release(&all);
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "half(x: f32[n) -> y: f32[n]";
    assert_int_equal(hone_register_algorithm(f->rt, &algorithm, &f->err), HONE_INVALID_ARGUMENT);
    assert_null(hone_op_find(f->rt, "half", &f->err));
}

static bool count_line(void *ctx, const char *line)
{
    (void)line;
    ++*(int *)ctx;
    return true;
}

static void signatures_are_compared_with_a_report(void **state)
{
    fixture *f = *state;
    bool ok = false;
    int lines = 0;
    assert_int_equal(hone_validate_signatures(f->rt, NULL, true, count_line, &lines, &ok, &f->err), HONE_OK);
    assert_true(ok);
    assert_int_equal(lines, KERNELS);
    hone_kernel odd = f->kernels[PLAIN];
    odd.name = "odd";
    odd.signature = "scale(x: T[rows, cols], *, factor: f64 = 3) -> y: T[rows, cols] where T in f32, f64";
    lines = 0;
    if (hone_register_kernels(f->rt, &odd, 1, &f->err) == HONE_OK) {
        assert_int_equal(hone_validate_signatures(f->rt, "scale", false, count_line, &lines, &ok, &f->err), HONE_OK);
        assert_false(ok);
        assert_int_equal(lines, KERNELS);
    }
    assert_int_equal(hone_validate_signatures(f->rt, "no", false, NULL, NULL, &ok, &f->err), HONE_NOT_FOUND);
}

static void without_a_runtime_everything_is_refused(void **state)
{
    fixture *f = *state;
    char **names = NULL;
    const hone_kernel_ref **kernels = NULL;
    const hone_kernel_ref *kernel = NULL;
    size_t count = 0;
    bool ok;
    assert_int_equal(hone_register_algorithm(NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_register_kernels(NULL, f->kernels, 1, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_replace_kernels(NULL, f->kernels, 1, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_get(NULL, NULL, &kernel, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_algorithms(NULL, &names, &count, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_algorithms(f->rt, NULL, &count, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_kernels(NULL, "scale", &kernels, &count, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_kernels(f->rt, NULL, &kernels, &count, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_validate_signatures(NULL, NULL, false, NULL, NULL, &ok, &f->err), HONE_INVALID_ARGUMENT);
    const hone_op *op = f->op;
    assert_int_equal(hone_op_get(NULL, "scale", &op, &f->err), HONE_INVALID_ARGUMENT);
    assert_null(hone_op_find(f->rt, NULL, &f->err));
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(algorithms_are_listed_once_each_in_lower_case_and_sorted),
        WITH_RUNTIME(programs_say_which_operations_of_others_their_algorithms_are),
        cmocka_unit_test(many_names_fit_into_the_memory_that_was_asked_for),
        WITH_RUNTIME(kernels_are_listed_by_falling_priority_and_an_unknown_algorithm_has_none),
        WITH_RUNTIME(a_query_gets_the_kernel_of_highest_priority_or_a_bounded_no),
        WITH_RUNTIME(a_kernel_that_was_got_runs_and_no_other),
        WITH_RUNTIME(its_own_context_is_what_a_thread_has_again_after_running_a_kernel),
        WITH_RUNTIME(a_kernel_is_run_with_its_default_config),
        WITH_RUNTIME(a_kernels_error_message_reaches_the_caller),
        WITH_RUNTIME(an_error_names_no_context_or_override_that_was_not_given),
        WITH_RUNTIME(a_call_of_a_kernel_is_checked_like_any),
        WITH_RUNTIME(a_parameter_that_the_kernel_does_not_have_is_refused_before_it_runs),
        WITH_RUNTIME(a_kernels_failure_names_the_algorithm_the_kernel_the_call_and_the_cause),
        WITH_RUNTIME(a_refused_registration_leaves_nothing_behind),
        WITH_RUNTIME(signatures_are_compared_with_a_report),
        WITH_RUNTIME(without_a_runtime_everything_is_refused),
    };
    return cmocka_run_group_tests_name("runtime_registry_api", tests, NULL, NULL);
}
