// Functions of a library for tvm-ffi, tests/fakes/fake_ffi.c, called through plans: what reaches them, what of them is
// refused in which words, and that what they are lent is hone's again when they have returned.
#include "base/hash.h"
#include "hone/hone.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { N = 32 };

typedef struct calling {
    temporary_folder folder;
    hone_runtime *rt;
    const hone_op *op;
    int64_t shape[1];
    _Alignas(64) float x[N], y[N];
    hone_tensor tensors[2];
    hone_value args[3]; // x, bias, y
    const hone_plan *plan;
    hone_error err;
} calling;

static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static void copy_library(const char *folder, char *sha256)
{
    static char bytes[1 << 20];
    char path[512];
    FILE *from = fopen(HONE_TEST_FAKES "/fake_ffi.so", "rb");
    assert_non_null(from);
    const size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    snprintf(path, sizeof path, "%s/fake.so", folder);
    remove(path); // one that is loaded stays mapped
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    fclose(to);
    hone_hash_sha256(bytes, size, sha256);
}

static void write_pack(const char *folder, const char *entry, const char *fields)
{
    char path[512], sha256[HONE_SHA256_HEX_SIZE];
    copy_library(folder, sha256);
    snprintf(path, sizeof path, "%s/pack.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(
        file,
        "{\"hone_pack\": 1, \"name\": \"fake\", \"kernels\": [{\"algorithm\": \"scale\", \"name\": \"fake\", "
        "\"platform\": "
        "\"ffi\", \"backend\": \"cpu\", \"file\": \"fake.so\", \"sha256\": \"%s\", \"entry\": \"%s\", %s}]}",
        sha256, entry, fields);
    fclose(file);
}

static int setup(void **state)
{
    calling *c = calloc(1, sizeof *c);
    assert_non_null(c);
    setenv("HONE_TVM_FFI", HONE_TEST_FAKES "/fake_tvm_ffi.so", 1);
    assert_int_equal(temporary_folder_make(&c->folder), 0);
    c->shape[0] = N;
    for (int i = 0; i < N; i++)
        c->x[i] = (float)i;
    c->tensors[0] = hone_tensor_of(c->x, HONE_F32, 1, c->shape);
    c->tensors[1] = hone_tensor_of(c->y, HONE_F32, 1, c->shape);
    c->args[0] = hone_of_tensor(&c->tensors[0]);
    c->args[1] = hone_of_none();
    c->args[2] = hone_of_tensor(&c->tensors[1]);
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

// Binds the function of a pack that has it alone.
static hone_status bind(calling *c, const char *entry, const char *fields)
{
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = "scale(x: f32[n], bias: f32[n]? = none) -> y: f32[n]",
        .reference = reference};
    const hone_override chosen = {.algorithm = "scale", .kernel = "fake", .platform = HONE_FFI};
    hone_context *context = NULL;
    hone_plan_release(&c->plan);
    hone_runtime_close(&c->rt);
    write_pack(c->folder.path, entry, fields);
    assert_int_equal(hone_runtime_open(&options, &c->rt, &c->err), HONE_OK);
    if (hone_register_algorithm(c->rt, &algorithm, &c->err) != HONE_OK) fail_msg("%s", c->err.message);
    if (hone_pack_load(c->rt, c->folder.path, &c->err) != HONE_OK) fail_msg("%s", c->err.message);
    c->op = hone_op_find(c->rt, "scale", &c->err);
    hone_status status = hone_context_derive(c->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &c->err);
    if (status != HONE_OK) return status;
    hone_context_enter(context);
    status = hone_bind(c->op, c->args, 3, &c->plan, &c->err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    return status;
}

static void must_bind(calling *c, const char *entry, const char *fields)
{
    if (bind(c, entry, fields) != HONE_OK) fail_msg("%s", c->err.message);
}

static void assert_tripled(const calling *c)
{
    for (int i = 0; i < N; i++)
        assert_true(c->y[i] == 3 * c->x[i]);
}

// Runs the call once, and expects it to fail with the words.
static void assert_fails(calling *c, const char *entry, const char *words)
{
    must_bind(c, entry, "\"arguments\": \"x, y\"");
    const hone_override chosen = {.algorithm = "scale", .kernel = "fake", .platform = HONE_FFI};
    hone_context *context = NULL;
    assert_int_equal(hone_context_derive(c->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &context, &c->err), HONE_OK);
    hone_context_enter(context);
    const hone_status status = hone_run(c->op, c->args, 3, NULL, &c->err);
    hone_context_enter(NULL);
    hone_context_release(&context);
    assert_int_not_equal(status, HONE_OK);
    if (strstr(c->err.message, words) == NULL) fail_msg("'%s' is not said: %s", words, c->err.message);
}

// The fake sets one when it is loaded, as the real one does: this test loads it.
static void the_handler_of_faults_stays_the_programs(void **state)
{
    struct sigaction before, after;
    assert_int_equal(sigaction(SIGSEGV, NULL, &before), 0);
    must_bind(*state, "right", "\"arguments\": \"x, y\"");
    assert_int_equal(sigaction(SIGSEGV, NULL, &after), 0);
    assert_ptr_equal(before.sa_handler, after.sa_handler);
}

static void a_function_gets_tensors_and_writes_its_result(void **state)
{
    calling *c = *state;
    must_bind(c, "right", "\"arguments\": \"x, y\"");
    assert_int_equal(c->plan->run(c->plan, c->args, NULL), HONE_OK);
    assert_tripled(c);
}

static void none_bools_texts_lists_and_scratch_are_passed_as_such(void **state)
{
    calling *c = *state;
    _Alignas(64) char scratch[4 * N];
    const hone_execution execution = {.struct_size = sizeof execution, .scratch = scratch, .scratch_bytes = 4 * N};
    must_bind(
        c, "values",
        "\"arguments\": \"x, bias, bool(n > 2), text('fast'), [3, n], scratch, y\", \"scratch\": \"4 * n\"");
    assert_int_equal(c->plan->scratch_bytes, 4 * N);
    if (c->plan->run(c->plan, c->args, &execution) != HONE_OK) fail_msg("the function got other values");
    assert_tripled(c);
    must_bind(
        c, "values", "\"arguments\": \"x, none, bool(1), text('fast'), [3, n], scratch, y\", \"scratch\": \"4 * n\"");
    assert_int_equal(c->plan->run(c->plan, c->args, &execution), HONE_OK);
}

static void after_a_hundred_thousand_calls_the_counts_are_as_they_were(void **state)
{
    calling *c = *state;
    must_bind(c, "counting", "\"arguments\": \"x, y\"");
    assert_int_equal(c->plan->run(c->plan, c->args, NULL), HONE_OK);
    const float first = c->y[2];
    for (int i = 0; i < 100000; i++)
        assert_int_equal(c->plan->run(c->plan, c->args, NULL), HONE_OK);
    assert_true(c->y[0] == 1 && c->y[1] == 1);
    assert_true(c->y[2] == first + 100000);
    assert_true(c->y[3] == 1); // the same objects each time
}

static void a_reference_that_is_kept_or_given_up_is_noticed(void **state)
{
    assert_fails(*state, "keeping", "keeps 1 references to argument 0");
    assert_fails(*state, "giving", "gives up references to argument 1");
}

static void a_failed_function_is_reported_with_its_own_message(void **state)
{
    assert_fails(
        *state, "failing",
        "ValueError: the fake has no heart for it (File \"fake.c\", line 7, in fail; from File \"fake.c\", line 1, in "
        "main)");
    assert_fails(*state, "silent", "failed without a word");
    assert_fails(*state, "wordless", "failed without a word");
    assert_fails(*state, "shouting", "ValueError: red  [31m and the next line");
}

static void an_unexpected_return_value_is_refused(void **state)
{
    assert_fails(*state, "answering", "returns an integer, expected nothing");
    assert_fails(*state, "speaking", "returns a text, expected nothing");
}

static void a_result_that_should_be_returned_and_is_not_is_refused(void **state)
{
    calling *c = *state;
    must_bind(c, "silent", "\"arguments\": \"x -> y\"");
    assert_int_equal(c->plan->run(c->plan, c->args, NULL), HONE_KERNEL_FAILED);
    must_bind(c, "answering", "\"arguments\": \"x, x -> y\"");
    assert_int_equal(c->plan->run(c->plan, c->args, NULL), HONE_KERNEL_FAILED);
}

static void assert_refused(calling *c, const char *entry, const char *fields, const char *words)
{
    assert_int_not_equal(bind(c, entry, fields), HONE_OK);
    if (strstr(c->err.message, words) == NULL) fail_msg("'%s' is not said: %s", words, c->err.message);
}

static void what_no_call_fits_is_refused_with_words(void **state)
{
    calling *c = *state;
    assert_refused(c, "absent", "\"arguments\": \"x, y\"", "no function __tvm_ffi_absent");
    assert_refused(c, "right", "\"arguments\": \"x\"", "the result 'y' is not listed");
    assert_refused(c, "right", "\"arguments\": \"y -> x\"", "only results, which the code returns, may follow '->'");
    assert_refused(c, "right", "\"arguments\": \"x, y, text(3)\"", "expected a string");
    assert_refused(c, "right", "\"arguments\": \"x, y, [1.5]\"", "lists hold integers");
    assert_refused(c, "right", "\"arguments\": \"x, y, [1 2]\"", "',' or ']'");
    assert_refused(c, "right", "\"arguments\": \"x, y\", \"grid\": \"1\"", "grid: a kernel of ffi has none");
    assert_refused(c, "right", "\"arguments\": \"x, y\", \"facts\": {\"a\": 1}", "facts: platform ffi has none");
}

static void a_missing_or_older_tvm_ffi_is_reported(void **state)
{
    calling *c = *state;
    setenv("HONE_TVM_FFI", "/nowhere/libtvm_ffi.so", 1);
    assert_refused(c, "right", "\"arguments\": \"x, y\"", "PyPI's apache-tvm-ffi");
    setenv("HONE_TVM_FFI", HONE_TEST_FAKES "/fake_tvm_ffi_old.so", 1);
    assert_refused(c, "right", "\"arguments\": \"x, y\"", "hone knows version 0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_handler_of_faults_stays_the_programs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_function_gets_tensors_and_writes_its_result, setup, teardown),
        cmocka_unit_test_setup_teardown(none_bools_texts_lists_and_scratch_are_passed_as_such, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_hundred_thousand_calls_the_counts_are_as_they_were, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reference_that_is_kept_or_given_up_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_function_is_reported_with_its_own_message, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unexpected_return_value_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_result_that_should_be_returned_and_is_not_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_call_fits_is_refused_with_words, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_or_older_tvm_ffi_is_reported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
