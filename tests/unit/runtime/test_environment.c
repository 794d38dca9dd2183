// The HONE_* variables and the options of a runtime: what they do, and what is refused by name.
#include "fixture.h"
#include "temporary_folder.h"

#include <stdio.h>

static const char *const variables[] = {"HONE_POLICY", "HONE_RECORD", "HONE_LOG",       "HONE_LOCK",     "HONE_FORCE",
                                        "HONE_DENY",   "HONE_STORE",  "HONE_PLATFORMS", "XDG_CACHE_HOME"};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

// A runtime that reads the environment, where one variable says value.
static fixture *open_with(const char *variable, const char *value)
{
    setenv("HONE_STORE", "none", 1);
    setenv(variable, value, 1);
    return open_fixture((wish){.environment = true});
}

static hone_policy policy_of(fixture *f)
{
    example e;
    make_example(&e, 4, 4);
    put_in_cache(f, 8, 8, "plain");
    bool guesses = hone_run(f->op, e.args, 3, NULL, &f->err) == HONE_OK;
    make_example(&e, 8, 8);
    bool remembers = hone_run(f->op, e.args, 3, NULL, &f->err) == HONE_OK;
    return guesses ? HONE_POLICY_HEURISTIC : remembers ? HONE_POLICY_FAIL : HONE_POLICY_FROZEN;
}

static void the_policy_is_heuristic_unless_the_environment_says_another(void **state)
{
    static const struct {
        const char *value;
        hone_policy policy;
    } rows[] = {
        {"", HONE_POLICY_HEURISTIC},
        {"heuristic", HONE_POLICY_HEURISTIC},
        {"fail", HONE_POLICY_FAIL},
        {"frozen", HONE_POLICY_FROZEN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture *f = open_with("HONE_POLICY", rows[i].value);
        assert_int_equal(policy_of(f), rows[i].policy);
        close_fixture(f);
    }
}

static void options_win_over_the_environment(void **state)
{
    (void)state;
    setenv("HONE_POLICY", "fail", 1);
    setenv("HONE_STORE", "memory:", 1);
    fixture *f = open_fixture((wish){.environment = true, .policy = HONE_POLICY_HEURISTIC, .store = "none"});
    assert_int_equal(policy_of(f), HONE_POLICY_HEURISTIC);
    close_fixture(f);
}

static void the_environment_is_not_read_where_that_was_asked_for(void **state)
{
    (void)state;
    setenv("HONE_POLICY", "nonsense", 1);
    setenv("HONE_FORCE", "scale=plain", 1);
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_DEFAULT});
    assert_int_equal(policy_of(f), HONE_POLICY_HEURISTIC);
    assert_true(f->probes[FAST].runs > 0);
    close_fixture(f);
}

static void a_value_that_is_none_is_refused_with_its_name_what_came_and_what_was_expected(void **state)
{
    static const struct {
        const char *name, *value, *says;
        hone_status status;
    } wrong[] = {
        {"HONE_POLICY", "fastest", "tune, heuristic", HONE_INVALID_ARGUMENT},
        {"HONE_POLICY", "default", "tune, heuristic", HONE_INVALID_ARGUMENT},
        {"HONE_POLICY", "Tune", "tune, heuristic", HONE_INVALID_ARGUMENT},
        {"HONE_RECORD", "yes", "0 or 1", HONE_INVALID_ARGUMENT},
        {"HONE_RECORD", "10", "0 or 1", HONE_INVALID_ARGUMENT},
        {"HONE_LOG", "loud", "error, warning", HONE_INVALID_ARGUMENT},
        {"HONE_FORCE", "fast", "ALGORITHM=KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_FORCE", "*=fast", "ALGORITHM=KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_FORCE", "scale=", "ALGORITHM=KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_FORCE", "=fast", "ALGORITHM=KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_FORCE", "scale=fast,,", "ALGORITHM=KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_DENY", ",", "ALGORITHM=KERNEL or KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_DENY", "scale=", "ALGORITHM=KERNEL or KERNEL", HONE_INVALID_ARGUMENT},
        {"HONE_PLATFORMS", "cuda", "native", HONE_INVALID_ARGUMENT},
        {"HONE_PLATFORMS", "native,vulkan", "hone devices", HONE_INVALID_ARGUMENT},
        {"HONE_PLATFORMS", "native,", "hone devices", HONE_OK},
        {"HONE_PLATFORMS", "auto", "hone devices", HONE_INVALID_ARGUMENT},
        {"HONE_PLATFORMS", "Native", "hone devices", HONE_INVALID_ARGUMENT},
        {"HONE_LOCK", "/nowhere/hone.lock", "No such file", HONE_NOT_FOUND},
        {"HONE_LOCK", "/dev/null", "not a regular file", HONE_IO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        clear_environment(NULL);
        setenv("HONE_STORE", "none", 1);
        setenv(wrong[i].name, wrong[i].value, 1);
        fixture f = {.rt = NULL};
        wish wanted = {.environment = true};
        assert_int_equal(open_bare(&wanted, &f.rt, &f.err), wrong[i].status);
        if (wrong[i].status != HONE_OK) {
            assert_null(f.rt);
            assert_says(&f, wrong[i].name);
            assert_says(&f, wrong[i].value);
            assert_says(&f, wrong[i].says);
        }
        hone_runtime_close(&f.rt);
    }
}

static void a_name_too_long_for_an_algorithm_is_refused_and_cut_in_no_message(void **state)
{
    (void)state;
    char value[3000];
    memset(value, 'a', sizeof value - 1);
    value[100] = '=';
    value[sizeof value - 1] = '\0';
    static const char *const names[] = {"HONE_FORCE", "HONE_DENY", "HONE_PLATFORMS", "HONE_POLICY", "HONE_LOG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        clear_environment(NULL);
        setenv(names[i], value, 1);
        fixture f = {.rt = NULL};
        wish wanted = {.environment = true, .store = "none"};
        assert_int_equal(open_bare(&wanted, &f.rt, &f.err), HONE_INVALID_ARGUMENT);
        assert_says(&f, names[i]);
        assert_null(f.rt);
    }
}

static void an_unknown_option_is_refused(void **state)
{
    (void)state;
    fixture f = {.rt = NULL};
    hone_runtime_options good = {.struct_size = sizeof good, .store = "none"}, options;
#define REFUSED(field, value, word)                                                                                    \
    options = good;                                                                                                    \
    options.field = value;                                                                                             \
    assert_int_equal(hone_runtime_open(&options, &f.rt, &f.err), HONE_INVALID_ARGUMENT);                               \
    assert_null(f.rt);                                                                                                 \
    assert_says(&f, word)
    REFUSED(policy, (hone_policy)50, "policy is 50");
    REFUSED(policy, (hone_policy)-1, "policy is -1");
    REFUSED(flags, 1u << 20, "flags");
    REFUSED(threads, -1, "threads is -1");
    REFUSED(log_level, 9, "log_level is 9");
    REFUSED(log_level, -1, "log_level is -1");
    REFUSED(struct_size, 3, "struct_size of the hone_runtime_options is 3");
#undef REFUSED
    assert_int_equal(hone_runtime_open(&good, NULL, &f.err), HONE_INVALID_ARGUMENT);
    hone_runtime_close(NULL);
    hone_runtime_close(&f.rt);
}

// Built with an older or a newer header than the library.
static void options_of_another_version_are_read_as_far_as_they_are_known(void **state)
{
    (void)state;
    fixture f = {.rt = NULL};
    struct {
        hone_runtime_options known;
        uint64_t later;
    } options = {.known = {.struct_size = sizeof options, .store = "none"}, .later = 0};
    assert_int_equal(hone_runtime_open(&options.known, &f.rt, &f.err), HONE_OK);
    hone_runtime_close(&f.rt);
    options.later = 1;
    assert_int_equal(hone_runtime_open(&options.known, &f.rt, &f.err), HONE_INCOMPATIBLE);
    assert_says(&f, "use the newer library");
    options.known.struct_size = offsetof(hone_runtime_options, policy);
    options.known.policy = (hone_policy)50; // not read
    assert_int_equal(hone_runtime_open(&options.known, &f.rt, &f.err), HONE_OK);
    hone_runtime_close(&f.rt);
}

static void a_forced_kernel_answers_every_call_of_its_algorithm(void **state)
{
    (void)state;
    fixture *f = open_with("HONE_FORCE", "other=fast,SCALE=plain");
    put_in_cache(f, 4, 4, "fast");
    hone_decision decision = decide_scale(f, 4, 4);
    assert_string_equal(decision.kernel, "plain");
    assert_int_equal(decision.source, HONE_SOURCE_OVERRIDE);
    run_example(f, 4, 4);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 2);
    // A context's override stands nearer.
    hone_context *context = overriding(f, "reference", NULL);
    hone_context_enter(context);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "reference");
    hone_context_enter(NULL);
    hone_context_release(&context);
    close_fixture(f);
}

static void the_later_of_two_rules_for_an_algorithm_applies(void **state)
{
    (void)state;
    fixture *f = open_with("HONE_FORCE", "scale=plain,scale=reference");
    assert_string_equal(decide_scale(f, 4, 4).kernel, "reference");
    close_fixture(f);
}

static void a_forced_kernel_that_is_not_there_is_an_error_that_names_the_variable(void **state)
{
    (void)state;
    fixture *f = open_with("HONE_FORCE", "scale=quick");
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "HONE_FORCE");
    assert_says(f, "quick");
    close_fixture(f);
}

static void a_denied_kernel_answers_no_link_and_no_override(void **state)
{
    static const char *const values[] = {"fast", "scale=fast", "*=fast", "other=x,Scale=fast"};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        clear_environment(NULL);
        fixture *f = open_with("HONE_DENY", values[i]);
        put_in_cache(f, 4, 4, "fast");
        assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
        hone_context *context = overriding(f, "fast", NULL);
        hone_context_enter(context);
        example e;
        make_example(&e, 4, 4);
        assert_int_not_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
        assert_says(f, "HONE_DENY");
        hone_context_enter(NULL);
        hone_context_release(&context);
        close_fixture(f);
    }
}

static void a_rule_for_another_algorithm_denies_nothing(void **state)
{
    (void)state;
    fixture *f = open_with("HONE_DENY", "other=fast,fas,scale=plain");
    assert_string_equal(decide_scale(f, 4, 4).kernel, "fast");
    close_fixture(f);
}

static void when_all_kernels_are_denied_the_caller_hears_it(void **state)
{
    (void)state;
    fixture *f = open_with("HONE_DENY", "fast,plain,reference");
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    assert_says(f, "HONE_DENY");
    close_fixture(f);
}

static void platforms_that_are_not_named_say_so(void **state)
{
    (void)state;
    fixture *f = open_with("HONE_PLATFORMS", "native,triton");
    const char *reason = NULL;
    assert_true(hone_runtime_platform(f->rt, HONE_NATIVE, &reason));
    assert_null(reason);
    assert_false(hone_runtime_platform(f->rt, HONE_OPENCL, &reason));
    assert_non_null(strstr(reason, "HONE_PLATFORMS"));
    assert_false(hone_runtime_platform(f->rt, HONE_TRITON, &reason));
    assert_null(strstr(reason, "HONE_PLATFORMS"));
    assert_false(hone_runtime_platform(f->rt, (hone_platform)77, &reason));
    assert_non_null(reason);
    assert_false(hone_runtime_platform(f->rt, HONE_CUDA, NULL));
    close_fixture(f);
}

static void without_a_variable_every_platform_is_there_or_says_what_it_needs(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    for (int platform = HONE_NATIVE; platform < HONE_PLATFORM_COUNT; platform++) {
        const char *reason = NULL;
        bool here = hone_runtime_platform(f->rt, (hone_platform)platform, &reason);
        assert_true(here == (reason == NULL));
        assert_true(here == (platform == HONE_NATIVE || platform == HONE_TILELANG)); // whose kernels are C
        assert_true(here || strlen(reason) > 10);
    }
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(f->rt, &count);
    assert_int_equal(count, 1);
    assert_int_equal(devices[0]->platform, HONE_NATIVE);
    assert_int_equal(devices[0]->backend, HONE_CPU);
    assert_true(devices[0]->threads >= 1);
    close_fixture(f);
}

typedef struct listener {
    int messages;
    int loudest; // smallest level
    char last[2000];
} listener;

static void listen(void *ctx, int level, const char *message)
{
    listener *l = ctx;
    l->messages++;
    l->loudest = level < l->loudest ? level : l->loudest;
    snprintf(l->last, sizeof l->last, "%s", message);
}

static void a_store_that_cannot_be_opened_is_said_once_and_the_calls_go_on(void **state)
{
    static const char *const urls[] = {
        "sqlite:/proc/no/such/folder/store.db", "postgresql://127.0.0.1:1/base", "nonsense",
        "json:/proc/no/such/folder"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        listener heard = {.loudest = 9};
        fixture *f =
            open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = urls[i], .log = listen, .log_ctx = &heard});
        assert_int_equal(heard.messages, 0); // opened at the first miss
        run_example(f, 4, 4);
        assert_int_equal(heard.messages, 1);
        assert_int_equal(heard.loudest, 1);
        run_example(f, 4, 5);
        run_example(f, 5, 5);
        assert_int_equal(heard.messages, 1);
        close_fixture(f);
    }
}

static void log_levels_are_those_asked_for(void **state)
{
    (void)state;
    listener heard = {.loudest = 9};
    setenv("HONE_LOG", "error", 1);
    fixture *f = open_fixture((wish){.environment = true, .store = "nonsense", .log = listen, .log_ctx = &heard});
    run_example(f, 4, 4);
    assert_int_equal(heard.messages, 0);
    close_fixture(f);
    // The option stands nearer than the variable.
    f = open_fixture(
        (wish){.environment = true, .store = "nonsense", .log = listen, .log_ctx = &heard, .log_level = 1});
    run_example(f, 4, 4);
    assert_int_equal(heard.messages, 1);
    close_fixture(f);
}

static void the_store_lies_in_the_cache_folder_when_nothing_else_is_said(void **state)
{
    (void)state;
    temporary_folder folder;
    assert_int_equal(temporary_folder_make(&folder), 0);
    setenv("XDG_CACHE_HOME", folder.path, 1);
    fixture *f = open_fixture((wish){.environment = true});
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    run_example(f, 4, 4);
    hone_context_enter(NULL);
    hone_context_release(&context);
    close_fixture(f);
    char path[TEMPORARY_PATH_SIZE];
    snprintf(path, sizeof path, "%s/hone/store.db", folder.path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fclose(file);
    temporary_folder_remove(&folder);
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, clear_environment, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(the_policy_is_heuristic_unless_the_environment_says_another),
        ALONE(options_win_over_the_environment),
        ALONE(the_environment_is_not_read_where_that_was_asked_for),
        ALONE(a_value_that_is_none_is_refused_with_its_name_what_came_and_what_was_expected),
        ALONE(a_name_too_long_for_an_algorithm_is_refused_and_cut_in_no_message),
        ALONE(an_unknown_option_is_refused),
        ALONE(options_of_another_version_are_read_as_far_as_they_are_known),
        ALONE(a_forced_kernel_answers_every_call_of_its_algorithm),
        ALONE(the_later_of_two_rules_for_an_algorithm_applies),
        ALONE(a_forced_kernel_that_is_not_there_is_an_error_that_names_the_variable),
        ALONE(a_denied_kernel_answers_no_link_and_no_override),
        ALONE(a_rule_for_another_algorithm_denies_nothing),
        ALONE(when_all_kernels_are_denied_the_caller_hears_it),
        ALONE(platforms_that_are_not_named_say_so),
        ALONE(without_a_variable_every_platform_is_there_or_says_what_it_needs),
        ALONE(a_store_that_cannot_be_opened_is_said_once_and_the_calls_go_on),
        ALONE(log_levels_are_those_asked_for),
        ALONE(the_store_lies_in_the_cache_folder_when_nothing_else_is_said),
    };
    return cmocka_run_group_tests_name("runtime_environment", tests, NULL, NULL);
}
