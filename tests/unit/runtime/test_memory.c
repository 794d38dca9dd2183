// Every public call of a runtime with memory that runs out: at each allocation once, and from each allocation on. Each
// answers with words or does without, nothing leaks, and what was there before still works.
#include "failing_allocator.h"
#include "fixture.h"

// One session with the public API. Its allocations are counted from the moment `left` is set.
typedef struct session {
    fixture f;
    failing_allocator memory;
    hone_allocator allocator;
    bool once;   // one allocation fails; else all from there on
    bool failed; // one failed
} session;

static void *reallocate(void *ctx, void *block, size_t old_size, size_t size)
{
    session *s = ctx;
    void *got = failing_reallocate(&s->memory, block, old_size, size);
    if (got == NULL && size > 0) {
        s->failed = true;
        if (s->once) atomic_store(&s->memory.left, -1);
    }
    return got;
}

// HONE_OK, or that there was no memory. A message always has words.
static bool answered(session *s, hone_status status)
{
    if (status != HONE_OK && (status != HONE_OUT_OF_MEMORY || s->f.err.message[0] == '\0'))
        fail_msg("%s: %s", hone_status_name(status), s->f.err.message);
    return status == HONE_OK;
}

static void ignore_text(void *ctx, const char *text, size_t size)
{
    (void)ctx;
    (void)text;
    (void)size;
}

static bool pass_invocation(void *ctx, const hone_store_invocation *invocation)
{
    (void)ctx;
    (void)invocation;
    return true;
}

// What follows another step that had no memory finds less than it put in.
static void answered_or_missing(session *s, hone_status status)
{
    if (status != HONE_NOT_FOUND) (void)answered(s, status);
}

static void call_it(session *s)
{
    fixture *f = &s->f;
    example e;
    const hone_plan *plan = NULL;
    hone_decision decision;
    make_example(&e, 3, 5);
    for (int i = 0; i < 2; i++)
        if (answered(s, hone_run(f->op, e.args, 3, NULL, &f->err))) assert_scaled(&e, 2);
    if (answered(s, hone_bind(f->op, e.args, 3, &plan, &f->err))) {
        assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
        hone_plan_release(&plan);
    }
    (void)answered(s, hone_decide(f->op, e.args, 3, &decision, &f->err));
    // Left out: filled in by a wrapper.
    if (answered(s, hone_run(f->op, e.args, 2, NULL, &f->err))) assert_scaled(&e, 2);
}

static void explain_it(session *s, const hone_call *call)
{
    (void)answered(s, hone_explain(s->f.op, call, HONE_TEXT, ignore_text, NULL, &s->f.err));
    (void)answered(s, hone_explain(s->f.op, call, HONE_JSON, ignore_text, NULL, &s->f.err));
}

static void enter_contexts(session *s, const hone_entry *entry)
{
    fixture *f = &s->f;
    hone_overlay *overlay = NULL;
    hone_context *context = NULL;
    hone_override plain = {.algorithm = "scale", .kernel = "plain"};
    example e;
    make_example(&e, 2, 2);
    if (!answered(s, hone_overlay_create(f->rt, entry, 1, &overlay, &f->err))) return;
    if (answered(s, hone_context_derive(f->rt, NULL, overlay, &plain, HONE_POLICY_DEFAULT, &context, &f->err))) {
        hone_context *before = hone_context_enter(context);
        if (answered(s, hone_run(f->op, e.args, 3, NULL, &f->err))) assert_scaled(&e, 2);
        (void)hone_context_enter(before);
        hone_context_release(&context);
    }
    hone_overlay_release(&overlay);
}

static void keep_answers(session *s, const hone_entry *entry)
{
    fixture *f = &s->f;
    hone_decision decision;
    (void)answered(s, hone_cache_put(f->rt, entry, &f->err));
    answered_or_missing(s, hone_cache_get(f->rt, NULL, "scale", entry->key, &decision, &f->err));
    hone_cache_clear(f->rt);
}

static void record_it(session *s, const hone_call *call)
{
    fixture *f = &s->f;
    (void)answered(s, hone_record_invocation(f->rt, call, 3, &f->err));
    (void)answered(s, hone_record_scan(f->rt, NULL, pass_invocation, NULL, &f->err));
    (void)answered(s, hone_record_flush(f->rt, &f->err));
    (void)answered(s, hone_record_clear(f->rt, NULL, &f->err));
}

static void ask_the_registry(session *s)
{
    fixture *f = &s->f;
    const hone_query query = {.algorithm = "scale"};
    const hone_kernel_ref *kernel = NULL, **kernels = NULL;
    char **names = NULL;
    size_t count = 0;
    example e;
    make_example(&e, 2, 3);
    if (answered(s, hone_registry_get(f->rt, &query, &kernel, &f->err)) &&
        answered(s, hone_kernel_run(kernel, e.args, 3, NULL, &f->err)))
        assert_scaled(&e, 2);
    if (answered(s, hone_registry_algorithms(f->rt, &names, &count, &f->err))) hone_names_release(&names);
    if (answered(s, hone_registry_kernels(f->rt, "scale", &kernels, &count, &f->err))) hone_kernels_release(&kernels);
}

static void tune_it(session *s, const hone_call *call)
{
    fixture *f = &s->f;
    hone_result *result = NULL, *parsed = NULL;
    hone_overlay *overlay = NULL;
    char *text = NULL;
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .evaluations = 1,
        .seconds = 0.01,
        .kernel = "plain"};
    hone_status status = hone_tune(f->op, call, &options, &result, &f->err);
    // A candidate that had no memory has failed, and with it the contest.
    if (status == HONE_NOT_FOUND || !answered(s, status)) return;
    if (answered(s, hone_result_json(result, &text, &f->err))) {
        (void)answered(s, hone_result_parse(f->rt, text, strlen(text), &parsed, &f->err));
        hone_text_release(&text);
    }
    (void)answered(s, hone_result_overlay(result, &overlay, &f->err));
    hone_overlay_release(&overlay);
    hone_result_release(&parsed);
    hone_result_release(&result);
}

static void use_runtime(session *s, bool prepared)
{
    fixture *f = &s->f;
    if (!prepared && !answered(s, register_scale(f->rt, f->kernels, &f->err))) return;
    if (!prepared && !answered(s, hone_op_get(f->rt, "scale", &f->op, &f->err))) return;
    // What failed no later than here is swept here: what comes later is where a runtime stands.
    if (!prepared && !s->failed) return;
    char key[20];
    hone_call *call = describe_scale(f, 3, 5);
    hone_entry entry = entry_for(f, 3, 5, "fast", key);
    call_it(s);
    explain_it(s, call);
    enter_contexts(s, &entry);
    keep_answers(s, &entry);
    record_it(s, call);
    ask_the_registry(s);
    if (prepared && s->once) tune_it(s, call); // takes a tenth of a second, and is swept once
    hone_call_release(&call);
}

// From the opening on; prepared: only once a runtime stands, so that what comes later is reached by every failure.
static bool run_session(long long left, bool once, bool prepared)
{
    session *s = calloc(1, sizeof *s);
    assert_non_null(s);
    fixture *f = &s->f;
    s->allocator = failing_allocator_of(&s->memory, prepared ? -1 : left);
    s->allocator = (hone_allocator){s, reallocate};
    s->once = once;
    fill_scale_kernels(f->kernels, f->probes);
    wish wanted = {.policy = HONE_POLICY_HEURISTIC, .store = "memory:", .allocator = s->allocator};
    if (answered(s, open_bare(&wanted, &f->rt, &f->err))) {
        if (prepared) {
            assert_int_equal(register_scale(f->rt, f->kernels, &f->err), HONE_OK);
            assert_int_equal(hone_op_get(f->rt, "scale", &f->op, &f->err), HONE_OK);
            atomic_store(&s->memory.left, left);
        }
        use_runtime(s, prepared);
    }
    atomic_store(&s->memory.left, -1);
    if (f->rt != NULL && f->op != NULL) run_example(f, 4, 4);
    hone_runtime_close(&f->rt);
    assert_int_equal(s->memory.live, 0);
    bool failed = s->failed;
    free(s);
    return failed;
}

static void sweep(bool once, bool prepared)
{
    long long left = 0;
    while (run_session(left, once, prepared))
        left++;
    assert_true(left > 30); // else nothing was swept
}

static void each_allocation_of_a_program_may_fail_once(void **state)
{
    (void)state;
    sweep(true, false);
    sweep(true, true);
}

static void memory_may_run_out_at_any_point_and_stay_out(void **state)
{
    (void)state;
    sweep(false, false);
    sweep(false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_of_a_program_may_fail_once),
        cmocka_unit_test(memory_may_run_out_at_any_point_and_stay_out),
    };
    return cmocka_run_group_tests_name("runtime_memory", tests, NULL, NULL);
}
