// Which kernels are guessed with, and until when: what a pack brings, and what was found wrong.
#include "fixture.h"

#include "registry/origin.h"
#include "registry/registry.h"
#include "runtime/links/trust.h"
#include "runtime/state/operation.h"

#include <stdio.h>

#define TWICE "twice(x: f32[n]) -> y: f32[n]"

static const hone_pack_kernel of_pack = {.pack = "p", .folder = "/p"};
static const hone_code code_of_pack = {HONE_CODE, .entry = "f", .arguments = "x", .pack = &of_pack};

// A kernel of an algorithm of one array whose reference is the kernel "plain", as a pack would bring it.
static hone_kernel kernel_of(const char *name, hone_backend backend, int32_t priority, bool is_reference)
{
    static probe ignored;
    return (hone_kernel){
        HONE_KERNEL,
        .algorithm = "twice",
        .name = name,
        .platform = HONE_NATIVE,
        .backend = backend,
        .priority = priority,
        .is_reference = is_reference,
        .user = &ignored,
        .run = scale_run,
    };
}

static void register_twice(fixture *f, bool has_function, const hone_kernel *kernels, size_t count)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = TWICE;
    if (has_function)
        algorithm.reference = scale_reference;
    else
        algorithm.reference_kernel = "plain";
    if (hone_register_algorithm(f->rt, &algorithm, &f->err) != HONE_OK ||
        hone_register_kernels(f->rt, kernels, count, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
}

// What is said of the registered kernel of that name and backend, had a pack brought it.
static hone_status trusts(fixture *f, const char *name, hone_backend backend)
{
    const hone_op *op = hone_op_find(f->rt, "twice", &f->err);
    size_t count = 0;
    hone_call *call = NULL;
    assert_non_null(op);
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(op), "twice(f32[4])", &call, &f->err), HONE_OK);
    const hone_kernel_ref *const *kernels = hone_registry_list(op->algorithm, &count), *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(kernels[i]->kernel.name, name) == 0 && kernels[i]->kernel.backend == backend) found = kernels[i];
    assert_non_null(found);
    hone_kernel_ref brought = *found;
    brought.kernel.code = &code_of_pack;
    hone_request request;
    assert_int_equal(hone_request_init(&request, op, call, NULL, &f->err), HONE_OK);
    request.explaining = true; // nothing runs
    f->err.message[0] = '\0';
    const hone_config config = {0};
    hone_status status = hone_request_trusts(&request, &brought, &config, &f->err);
    hone_request_deinit(&request);
    hone_call_release(&call);
    return status;
}

static void a_pack_is_taken_at_its_word_for_the_reference_of_its_own_algorithm_alone(void **state)
{
    fixture *f = *state;
    const hone_kernel kernels[] = {
        kernel_of("plain", HONE_CPU, 30, true), kernel_of("quick", HONE_CPU, 20, false),
        kernel_of("other", HONE_CPU, 10, true)};
    register_twice(f, false, kernels, 3);
    assert_int_equal(trusts(f, "plain", HONE_CPU), HONE_OK);
    assert_int_equal(trusts(f, "quick", HONE_CPU), HONE_NOT_FOUND);
    assert_says(f, "quick of pack p was never verified for this call");
    assert_says(f, "hone tune --pack '/p' 'twice(f32[4])'");
    assert_int_equal(trusts(f, "other", HONE_CPU), HONE_NOT_FOUND); // it says so of itself, and the algorithm does not
}

static void the_first_kernel_with_the_references_name_is_the_reference(void **state)
{
    fixture *f = *state;
    // Whichever stands first in the list.
    for (int32_t priority = 10; priority <= 30; priority += 20) {
        const wish wanted = {.policy = HONE_POLICY_HEURISTIC, .verifies = true};
        fixture *g = priority == 10 ? f : open_fixture(wanted);
        const hone_kernel kernels[] = {
            kernel_of("plain", HONE_CPU, 20, true), kernel_of("plain", HONE_GPU, priority, true)};
        register_twice(g, false, kernels, 2);
        assert_int_equal(trusts(g, "plain", HONE_CPU), HONE_OK);
        assert_int_equal(trusts(g, "plain", HONE_GPU), HONE_NOT_FOUND);
        if (g != f) close_fixture(g);
    }
}

static void no_pack_kernel_is_the_reference_if_a_function_is(void **state)
{
    fixture *f = *state;
    const hone_kernel plain = kernel_of("plain", HONE_CPU, 20, true);
    register_twice(f, true, &plain, 1);
    assert_int_equal(trusts(f, "plain", HONE_CPU), HONE_NOT_FOUND);
}

static const hone_kernel_ref *find(fixture *f, const char *name)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(f->op->algorithm, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(kernels[i]->kernel.name, name) == 0) return kernels[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

static hone_status was_right(fixture *f, const char *name, const char *config)
{
    return hone_kernel_was_right(f->rt, find(f, name), config, &f->err);
}

static void what_a_contest_found_wrong_is_wrong_with_that_config_and_no_guess(void **state)
{
    fixture *f = *state;
    assert_int_equal(was_right(f, "fast", NULL), HONE_OK);
    hone_runtime_found_wrong(f->rt, find(f, "fast"), "{\"a\":1}", "scale(f32[4,4])", HONE_FAILURE_CRASH, "it died");
    assert_int_equal(was_right(f, "fast", NULL), HONE_OK); // it gave no wrong answer
    hone_runtime_found_wrong(f->rt, find(f, "fast"), "{\"a\":1}", "scale(f32[4,4])", HONE_FAILURE_WRONG, "y is 3");
    hone_runtime_found_wrong(f->rt, find(f, "fast"), "{\"a\":2}", "scale(f32[8,4])", HONE_FAILURE_BOUNDS, "");
    assert_int_equal(was_right(f, "fast", NULL), HONE_KERNEL_FAILED);
    assert_int_equal(was_right(f, "fast", "{\"a\":1}"), HONE_KERNEL_FAILED);
    assert_says(f, "fast {\"a\":1} was found wrong for scale(f32[4,4]) (wrong: y is 3)");
    assert_int_equal(was_right(f, "fast", "{\"a\":2}"), HONE_KERNEL_FAILED);
    assert_says(f, "scale(f32[8,4]) (bounds: no reason is known)");
    assert_int_equal(was_right(f, "fast", "{\"a\":3}"), HONE_OK);
    assert_int_equal(was_right(f, "plain", NULL), HONE_OK);
    // The reference says what is right.
    hone_runtime_found_wrong(f->rt, find(f, "reference"), "{}", "scale(f32[4,4])", HONE_FAILURE_WRONG, "y is 3");
    assert_int_equal(was_right(f, "reference", NULL), HONE_OK);
    // It is forgotten with its kernel, or with all.
    hone_runtime_forget_wrongs(f->rt, false);
    assert_int_equal(was_right(f, "fast", NULL), HONE_KERNEL_FAILED);
    hone_runtime_forget_wrongs(f->rt, true);
    assert_int_equal(was_right(f, "fast", NULL), HONE_OK);
}

static int setup_verifying(void **state)
{
    *state = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .verifies = true});
    return 0;
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_verifying, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(a_pack_is_taken_at_its_word_for_the_reference_of_its_own_algorithm_alone),
        WITH_RUNTIME(the_first_kernel_with_the_references_name_is_the_reference),
        WITH_RUNTIME(no_pack_kernel_is_the_reference_if_a_function_is),
        WITH_RUNTIME(what_a_contest_found_wrong_is_wrong_with_that_config_and_no_guess),
    };
    return cmocka_run_group_tests_name("runtime_trust", tests, NULL, NULL);
}
