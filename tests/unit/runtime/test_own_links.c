// Links of the chain that a context leaves out or that functions of the program stand for, and what is kept of contests.
#include "ground.h"

#include <pthread.h>

typedef struct own {
    const char *kernel, *config; // its answer; NULL: it has none
    hone_status status;          // of its answer
    atomic_int calls, releases;
    hone_link_question asked; // the last
    hone_source nested;       // who answers inside of it
    bool asks;                // the chain, itself
} own;

static hone_status answer(void *ctx, const hone_link_question *question, hone_link_answer *out, hone_error *why)
{
    own *o = ctx;
    if (atomic_fetch_add(&o->calls, 1) == 0) o->asked = *question;
    if (o->asks) {
        hone_decision decision;
        hone_status status = hone_decide_call(question->op, question->call, &decision, why);
        if (status != HONE_OK) return status;
        o->nested = decision.source;
        snprintf(out->kernel, sizeof out->kernel, "%s", strcmp(decision.kernel, "fast") == 0 ? "plain" : "fast");
        return HONE_OK;
    }
    if (o->status != HONE_OK || o->kernel == NULL) {
        snprintf(why->message, sizeof why->message, "my table has no row");
        return o->status != HONE_OK ? o->status : HONE_NOT_FOUND;
    }
    snprintf(out->kernel, sizeof out->kernel, "%s", o->kernel);
    if (o->config != NULL) snprintf(out->config, sizeof out->config, "%s", o->config);
    return HONE_OK;
}

static void release(void *ctx)
{
    own *o = ctx;
    atomic_fetch_add(&o->releases, 1);
}

static hone_link link_of(hone_source source, own *o)
{
    return (hone_link){.source = source, .find = answer, .ctx = o, .name = "my_table", .release = release};
}

static hone_context *chain(fixture *f, hone_context *parent, const hone_link *links, size_t count)
{
    hone_context *context = NULL;
    if (hone_context_derive_chain(f->rt, parent, links, count, HONE_KEEP_DEFAULT, &context, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    return context;
}

static hone_context *with_own(fixture *f, hone_context *parent, hone_source source, own *o)
{
    const hone_link link = link_of(source, o);
    return chain(f, parent, &link, 1);
}

static void leave(hone_context **context)
{
    hone_context_enter(NULL);
    hone_context_release(context);
}

static void explain(fixture *f, hone_format format, saying *out)
{
    hone_call *call = describe_scale(f, 4, 4);
    out->size = 0;
    if (hone_explain(f->op, call, format, collect_saying, out, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_call_release(&call);
}

static void a_link_that_is_left_out_is_not_asked_and_says_so(void **state)
{
    fixture *f = *state;
    saying said;
    put_in_cache(f, 4, 4, "plain");
    const hone_link without[] = {{.source = HONE_SOURCE_MEMORY}, {.source = HONE_SOURCE_TRANSFER}};
    hone_context *context = chain(f, NULL, without, 2);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_MEMORY);
    hone_context_enter(context);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_HEURISTIC);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "fast");
    explain(f, HONE_TEXT, &said);
    assert_non_null(strstr(said.data, "memory     none           the context leaves it out"));
    run_example(f, 4, 4);
    hone_context_enter(NULL);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 1);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    leave(&context);
}

static void a_function_stands_for_a_link_and_is_asked_once_for_each_call(void **state)
{
    fixture *f = *state;
    own o = {.kernel = "fast", .config = "unroll=2 layout=col"};
    hone_context *context = with_own(f, NULL, HONE_SOURCE_MEMORY, &o);
    hone_context_enter(context);
    for (int i = 0; i < 5; i++)
        run_example(f, 4, 4);
    assert_int_equal(o.calls, 1);
    assert_int_equal(f->probes[FAST].config, 2);
    hone_decision decision = decide_scale(f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_MEMORY);
    assert_false(decision.verified);
    assert_ptr_equal(o.asked.op, f->op);
    assert_non_null(o.asked.device);
    assert_int_equal(o.asked.source, HONE_SOURCE_MEMORY);
    assert_int_equal(o.asked.policy, HONE_POLICY_HEURISTIC);
    assert_false(o.asked.explains);
    leave(&context);
    assert_int_equal(o.releases, 1);
}

static void explain_names_the_function_and_what_it_said(void **state)
{
    fixture *f = *state;
    saying said;
    own o = {.kernel = "plain"};
    hone_context *context = with_own(f, NULL, HONE_SOURCE_STORE, &o);
    hone_context_enter(context);
    explain(f, HONE_TEXT, &said);
    assert_true(o.asked.explains);
    assert_non_null(strstr(said.data, "answered by store (the program's my_table): native/plain"));
    assert_non_null(strstr(said.data, "store      plain           (the program's my_table)"));
    explain(f, HONE_JSON, &said);
    assert_non_null(strstr(said.data, "{\"link\":\"store\",\"answer\":\"plain\",\"why\":null,\"own\":\"my_table\"}"));
    o.kernel = NULL;
    explain(f, HONE_TEXT, &said);
    assert_non_null(strstr(said.data, "store      none           my table has no row (the program's my_table)"));
    leave(&context);
}

static void a_function_that_has_no_answer_passes_and_one_that_fails_ends_the_chain(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    own o = {.kernel = NULL};
    hone_context *context = with_own(f, NULL, HONE_SOURCE_OVERLAY, &o);
    hone_context_enter(context);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_HEURISTIC);
    o.status = HONE_IO;
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_IO);
    assert_says(f, "scale(f32[4,4]): the program's my_table, in place of the link overlay: my table has no row");
    leave(&context);
}

static void an_answer_that_is_not_there_is_refused_and_one_that_cannot_run_is_passed_by(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    own o = {.kernel = "nobody"};
    hone_context *context = with_own(f, NULL, HONE_SOURCE_MEMORY, &o);
    hone_context_enter(context);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "it names kernel 'nobody', which scale does not have");
    o.kernel = "fast";
    o.config = "unroll=3 layout=row";
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "unroll");
    // What fails when it is made ready is put aside, and the function's second answer is passed by.
    o.kernel = "plain";
    o.config = NULL;
    f->probes[PLAIN].prepare_status = HONE_KERNEL_FAILED;
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    assert_int_equal(f->probes[FAST].runs, 1);
    leave(&context);
}

static void a_function_may_ask_the_chain_that_it_has_changed(void **state)
{
    fixture *f = *state;
    own o = {.asks = true};
    put_in_cache(f, 4, 4, "plain");
    hone_context *context = with_own(f, NULL, HONE_SOURCE_MEMORY, &o);
    hone_context_enter(context);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "fast");
    assert_int_equal(o.nested, HONE_SOURCE_MEMORY);
    assert_ptr_equal(hone_context_current(), context);
    leave(&context);
}

static void the_newest_change_holds_and_what_is_named_later_stands_before_it(void **state)
{
    fixture *f = *state;
    own older = {.kernel = "plain"}, newer = {.kernel = "reference"};
    const hone_override forced = {.algorithm = "scale", .kernel = "fast"};
    hone_overlay *overlay = overlay_for(f, 4, 4, "fast");
    hone_context *named = derive(f, NULL, NULL, &forced, HONE_POLICY_DEFAULT);
    hone_context *first = with_own(f, named, HONE_SOURCE_OVERRIDE, &older);
    hone_context *second = with_own(f, first, HONE_SOURCE_OVERRIDE, &newer);
    hone_context *later = derive(f, second, NULL, &forced, HONE_POLICY_DEFAULT);
    hone_context_enter(first); // and not the override before it
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
    hone_context_enter(second);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "reference");
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_OVERRIDE);
    hone_context_enter(later);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "fast");
    hone_context *under = derive(f, NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    const hone_link without = {.source = HONE_SOURCE_OVERLAY};
    hone_context *none = chain(f, under, &without, 1), *again = derive(f, none, overlay, NULL, HONE_POLICY_DEFAULT);
    hone_context_enter(none);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_HEURISTIC);
    hone_context_enter(again);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_OVERLAY);
    hone_context_enter(NULL);
    hone_context *all[] = {named, first, second, later, under, none, again};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        hone_context_release(&all[i]);
    hone_overlay_release(&overlay);
    assert_int_equal(older.releases, 1);
    assert_int_equal(newer.releases, 1);
}

static void what_the_environment_forces_is_left_out_with_overrides(void **state)
{
    (void)state;
    assert_int_equal(setenv("HONE_FORCE", "scale=plain", 1), 0);
    fixture *f = open_fixture((wish){.environment = true, .store = "none"});
    assert_int_equal(unsetenv("HONE_FORCE"), 0);
    const hone_link without = {.source = HONE_SOURCE_OVERRIDE};
    hone_context *context = chain(f, NULL, &without, 1);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
    hone_context_enter(context);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "fast");
    leave(&context);
    close_fixture(f);
}

// No process can hold the functions of a program with threads: the contest finds nobody.
static void tuning_without_the_memory_link_ignores_answers_in_memory(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "plain");
    const hone_link without[] = {{.source = HONE_SOURCE_MEMORY}, {.source = HONE_SOURCE_STORE}};
    hone_context *left_out = chain(f, NULL, without, 2);
    hone_context *tunes = derive(f, left_out, NULL, NULL, HONE_POLICY_TUNE);
    hone_context_enter(tunes);
    const hone_decision decision = decide_scale(f, 4, 4);
    assert_true(decision.source == HONE_SOURCE_AUTOTUNE || decision.source == HONE_SOURCE_HEURISTIC);
    assert_true(decision.source == HONE_SOURCE_HEURISTIC || decision.verified); // and not what the cache was told
    leave(&tunes);
    hone_context_release(&left_out);
}

static void policies_ask_functions_as_the_links_that_they_stand_for(void **state)
{
    fixture *f = *state;
    own o = {.kernel = "plain"};
    hone_context *tuner = with_own(f, NULL, HONE_SOURCE_AUTOTUNE, &o);
    hone_context *tunes = derive(f, tuner, NULL, NULL, HONE_POLICY_TUNE);
    hone_context *frozen = derive(f, tuner, NULL, NULL, HONE_POLICY_FROZEN);
    example e;
    make_example(&e, 4, 4);
    hone_context_enter(tuner);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "fast");
    hone_context_enter(frozen);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    assert_int_equal(o.calls, 0);
    hone_context_enter(tunes);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_AUTOTUNE);
    leave(&tunes);
    hone_context_release(&frozen);
    hone_context_release(&tuner);
}

static void wrong_changes_are_refused_and_nothing_is_released(void **state)
{
    fixture *f = *state;
    own o = {.kernel = "plain"};
    hone_context *context = NULL;
    hone_link links[] = {link_of(HONE_SOURCE_MEMORY, &o), link_of(HONE_SOURCE_MEMORY, &o)};
    assert_int_equal(
        hone_context_derive_chain(f->rt, NULL, links, 2, HONE_KEEP_DEFAULT, &context, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "the link memory is changed twice");
    links[0].source = HONE_SOURCE_NONE;
    assert_int_equal(
        hone_context_derive_chain(f->rt, NULL, links, 1, HONE_KEEP_DEFAULT, &context, &f->err), HONE_INVALID_ARGUMENT);
    links[1].name = NULL;
    assert_int_equal(
        hone_context_derive_chain(f->rt, NULL, links + 1, 1, HONE_KEEP_DEFAULT, &context, &f->err),
        HONE_INVALID_ARGUMENT);
    assert_says(f, "has no name");
    assert_int_equal(
        hone_context_derive_chain(f->rt, NULL, NULL, 0, (hone_keeping)7, &context, &f->err), HONE_INVALID_ARGUMENT);
    assert_null(context);
    assert_int_equal(o.releases, 0);
}

static void the_digest_tells_changes_of_the_chain_apart(void **state)
{
    fixture *f = *state;
    own o = {.kernel = "plain"};
    const hone_link without = {.source = HONE_SOURCE_STORE}, other = {.source = HONE_SOURCE_MEMORY};
    hone_context *all[] = {
        chain(f, NULL, &without, 1), chain(f, NULL, &other, 1), with_own(f, NULL, HONE_SOURCE_STORE, &o),
        chain(f, NULL, &without, 1), chain(f, NULL, NULL, 0)};
    assert_true(hone_context_digest(all[0]) == hone_context_digest(all[3]));
    assert_true(hone_context_digest(all[4]) == 0);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++)
            assert_true(hone_context_digest(all[i]) != hone_context_digest(all[j]));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        hone_context_release(&all[i]);
}

// Verifying ------------------------------------------------------------------------------------------------------------

static hone_status run_wrong(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_status status = scale_reference(plan, args, execution);
    *scale_at(args[1].as.tensor, 0, 0) += 1;
    return status;
}

static void a_wrong_kernel_that_a_function_names_does_not_answer(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .verifies = true});
    hone_kernel wrong = f->kernels[PLAIN];
    wrong.name = "wrong";
    wrong.prepare = NULL;
    wrong.release = NULL;
    wrong.run = run_wrong;
    assert_int_equal(hone_register_kernels(f->rt, &wrong, 1, &f->err), HONE_OK);
    own o = {.kernel = "wrong"};
    hone_context *context = with_own(f, NULL, HONE_SOURCE_MEMORY, &o);
    hone_context_enter(context);
    run_example(f, 4, 4);
    assert_true(o.calls > 0);
    assert_string_not_equal(decide_scale(f, 4, 4).kernel, "wrong");
    leave(&context);
    // As an override it is what somebody asked for.
    context = with_own(f, NULL, HONE_SOURCE_OVERRIDE, &o);
    hone_context_enter(context);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "wrong");
    leave(&context);
    close_fixture(f);
}

// Threads -------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, CALLS = 50 };

typedef struct caller {
    fixture *f;
    hone_context *context;
    int failures;
} caller;

static void *call_often(void *ctx)
{
    caller *c = ctx;
    hone_error err;
    hone_context_enter(c->context);
    for (int64_t i = 0; i < CALLS; i++) {
        example e;
        make_example(&e, 1 + i % 15, 4);
        if (hone_run(c->f->op, e.args, 3, NULL, &err) != HONE_OK) c->failures++;
    }
    hone_context_enter(NULL);
    return NULL;
}

static void threads_may_ask_one_function_at_once(void **state)
{
    fixture *f = *state;
    own o = {.kernel = "plain"};
    hone_context *context = with_own(f, NULL, HONE_SOURCE_MEMORY, &o);
    caller callers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){f, context, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].failures, 0);
    }
    assert_int_equal(f->probes[PLAIN].runs, THREADS * CALLS);
    assert_true(o.calls >= 15 && o.calls < THREADS * CALLS);
    leave(&context);
}

// Stores --------------------------------------------------------------------------------------------------------------

static hone_store_stat stat_of(ground *g)
{
    hone_store *store = NULL;
    hone_store_stat stat;
    hone_error err;
    assert_int_equal(hone_store_open((hone_allocator){0}, g->url, &store, &err), HONE_OK);
    assert_int_equal(hone_store_get_stat(store, &stat, &err), HONE_OK);
    hone_store_close(&store);
    return stat;
}

static void what_is_tuned_under_a_context_that_keeps_in_memory_is_not_stored(void **state)
{
    ground *g = *state;
    hone_context *memory = NULL, *inner, *stored = NULL;
    assert_int_equal(
        hone_context_derive_chain(g->f->rt, NULL, NULL, 0, HONE_KEEP_IN_MEMORY, &memory, &g->f->err), HONE_OK);
    inner = derive(g->f, memory, NULL, NULL, HONE_POLICY_HEURISTIC);
    assert_int_equal(
        hone_context_derive_chain(g->f->rt, inner, NULL, 0, HONE_KEEP_STORED, &stored, &g->f->err), HONE_OK);
    hone_context_enter(inner);
    tune_scale(g->f, 4);
    assert_int_equal(decide_scale(g->f, 4, 4).source, HONE_SOURCE_MEMORY);
    assert_true(decide_scale(g->f, 4, 4).verified);
    hone_context_enter(NULL);
    assert_int_equal(decide_scale(g->f, 4, 4).source, HONE_SOURCE_MEMORY); // of the whole process
    hone_store_stat stat = stat_of(g);
    assert_true(stat.decisions == 0 && stat.measurements == 0);
    hone_context_enter(stored);
    tune_scale(g->f, 5);
    hone_context_enter(NULL);
    assert_true(stat_of(g).decisions == 1);
    hone_context_release(&stored);
    hone_context_release(&inner);
    hone_context_release(&memory);
}

static const hone_plan *bind_in(fixture *f, hone_context *context, example *e)
{
    const hone_plan *plan = NULL;
    make_example(e, 4, 4);
    hone_context_enter(context);
    if (hone_bind(f->op, e->args, 3, &plan, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_context_enter(NULL);
    return plan;
}

static void what_others_store_outdates_plans_but_not_those_whose_context_does_not_ask_stores(void **state)
{
    ground *g = *state;
    example examples[4];
    saying said;
    own before = {.kernel = "plain"}, behind = {.kernel = "plain"};
    const hone_link without = {.source = HONE_SOURCE_STORE};
    hone_context *contexts[] = {
        NULL, chain(g->f, NULL, &without, 1), with_own(g->f, NULL, HONE_SOURCE_MEMORY, &before),
        with_own(g->f, NULL, HONE_SOURCE_HEURISTIC, &behind)};
    const hone_plan *plans[4];
    for (int i = 0; i < 4; i++)
        plans[i] = bind_in(g->f, contexts[i], &examples[i]);
    fixture *other = open_fixture((wish){.store = g->url});
    tune_scale(other, 4);
    close_fixture(other);
    explain(g->f, HONE_TEXT, &said); // looks at the store
    static const bool is_current[] = {false, true, true, false};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hone_plan_is_current(plans[i]), is_current[i]);
        hone_plan_release(&plans[i]);
        hone_context_release(&contexts[i]);
    }
}

static hone_status run_pure(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return scale_reference(plan, args, execution);
}

// A zygote isolates functions of this program, where they have no data that it never saw. It is forked while there is one thread: not where a sanitizer has its own.
static void the_policy_tune_stores_nothing_of_a_context_that_keeps_in_memory(void **state)
{
    ground *g = *state;
    hone_runtime *trial = NULL;
    const wish wanted = {.policy = HONE_POLICY_TUNE, .flags = HONE_RUNTIME_ZYGOTE, .store = g->url};
    if (open_bare(&wanted, &trial, NULL) != HONE_OK) skip();
    hone_runtime_close(&trial);
    fixture *f = open_fixture(wanted);
    const hone_kernel pure = {HONE_KERNEL,         .algorithm = "scale", .name = "pure", .platform = HONE_NATIVE,
                              .backend = HONE_CPU, .run = run_pure};
    assert_int_equal(hone_register_kernels(f->rt, &pure, 1, &f->err), HONE_OK);
    hone_context *memory = NULL;
    assert_int_equal(hone_context_derive_chain(f->rt, NULL, NULL, 0, HONE_KEEP_IN_MEMORY, &memory, &f->err), HONE_OK);
    hone_context_enter(memory);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_AUTOTUNE);
    hone_store_stat stat = stat_of(g);
    assert_true(stat.decisions == 0 && stat.measurements == 0);
    leave(&memory);
    close_fixture(f);
}

static void a_runtime_may_keep_all_that_it_tunes_in_memory(void **state)
{
    ground *g = *state;
    fixture *f = open_fixture((wish){.store = g->url, .flags = HONE_RUNTIME_KEEP_IN_MEMORY});
    tune_scale(f, 4);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_MEMORY);
    close_fixture(f);
    assert_true(stat_of(g).decisions == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_link_that_is_left_out_is_not_asked_and_says_so),
        TEST(a_function_stands_for_a_link_and_is_asked_once_for_each_call),
        TEST(explain_names_the_function_and_what_it_said),
        TEST(a_function_that_has_no_answer_passes_and_one_that_fails_ends_the_chain),
        TEST(an_answer_that_is_not_there_is_refused_and_one_that_cannot_run_is_passed_by),
        TEST(a_function_may_ask_the_chain_that_it_has_changed),
        TEST(the_newest_change_holds_and_what_is_named_later_stands_before_it),
        cmocka_unit_test(what_the_environment_forces_is_left_out_with_overrides),
        TEST(tuning_without_the_memory_link_ignores_answers_in_memory),
        TEST(policies_ask_functions_as_the_links_that_they_stand_for),
        TEST(wrong_changes_are_refused_and_nothing_is_released),
        TEST(the_digest_tells_changes_of_the_chain_apart),
        cmocka_unit_test(a_wrong_kernel_that_a_function_names_does_not_answer),
        TEST(threads_may_ask_one_function_at_once),
        cmocka_unit_test_setup_teardown(
            what_is_tuned_under_a_context_that_keeps_in_memory_is_not_stored, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            what_others_store_outdates_plans_but_not_those_whose_context_does_not_ask_stores, open_ground,
            close_ground),
        cmocka_unit_test_setup_teardown(
            the_policy_tune_stores_nothing_of_a_context_that_keeps_in_memory, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_runtime_may_keep_all_that_it_tunes_in_memory, open_ground, close_ground),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
