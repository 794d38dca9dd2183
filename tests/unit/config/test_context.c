// Contexts alone: what is found in them, who is current where, who gives what back.
#include "config/context.h"
#include "failing_allocator.h"
#include "hone/describe.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static hone_overlay *overlay_of(hone_allocator allocator, const char *key, const char *kernel)
{
    hone_overlay *overlay = NULL;
    hone_error err;
    hone_decision decision = {.algorithm = "scale", .version = "1"};
    snprintf(decision.key, sizeof decision.key, "%s", key);
    snprintf(decision.kernel, sizeof decision.kernel, "%s", kernel);
    assert_int_equal(hone_overlay_new(allocator, &overlay, &err), HONE_OK);
    assert_int_equal(hone_decisions_put(&overlay->decisions, NULL, NULL, &decision, &err), HONE_OK);
    return overlay;
}

static hone_context *derive(
    hone_context *parent, hone_overlay *overlay, const hone_context_override *override_, hone_policy policy)
{
    hone_context *context = NULL;
    hone_error err;
    assert_int_equal(
        hone_context_new(hone_allocator_system(), parent, overlay, override_, policy, &context, &err), HONE_OK);
    return context;
}

static hone_context_override override_of(const char *version, const char *kernel, const char *config)
{
    hone_context_override made = {.algorithm = "scale", .config = (char *)(uintptr_t)config};
    snprintf(made.version, sizeof made.version, "%s", version);
    snprintf(made.kernel, sizeof made.kernel, "%s", kernel);
    return made;
}

static const char *found_in(const hone_context *context, const char *key)
{
    const hone_decision_row *row = hone_context_find(context, "cpu|a", "scale", "1", key, NULL);
    return row == NULL ? NULL : row->decision.kernel;
}

static void the_newest_overlay_answers_and_older_ones_shine_through(void **state)
{
    (void)state;
    hone_overlay *old = overlay_of(hone_allocator_system(), "a", "old");
    hone_overlay *other = overlay_of(hone_allocator_system(), "b", "other");
    hone_overlay *new = overlay_of(hone_allocator_system(), "a", "new");
    hone_context *first = derive(NULL, old, NULL, HONE_POLICY_DEFAULT);
    hone_context *second = derive(first, other, NULL, HONE_POLICY_DEFAULT);
    hone_context *third = derive(second, new, NULL, HONE_POLICY_DEFAULT);
    assert_string_equal(found_in(third, "a"), "new");
    assert_string_equal(found_in(third, "b"), "other");
    assert_string_equal(found_in(second, "a"), "old");
    assert_null(found_in(first, "b"));
    assert_null(found_in(NULL, "a"));
    hone_overlay_release(&old);
    hone_overlay_release(&other);
    hone_overlay_release(&new);
    // The last context holds all that it needs.
    hone_context_release(&first);
    hone_context_release(&second);
    assert_string_equal(found_in(third, "b"), "other");
    hone_context_release(&third);
    assert_null(third);
}

static void the_innermost_policy_that_says_something_holds(void **state)
{
    (void)state;
    hone_context *outer = derive(NULL, NULL, NULL, HONE_POLICY_FAIL);
    hone_context *inner = derive(outer, NULL, NULL, HONE_POLICY_DEFAULT);
    hone_context *silent = derive(NULL, NULL, NULL, HONE_POLICY_DEFAULT);
    assert_int_equal(hone_context_policy(inner, HONE_POLICY_TUNE), HONE_POLICY_FAIL);
    assert_int_equal(hone_context_policy(silent, HONE_POLICY_TUNE), HONE_POLICY_TUNE);
    assert_int_equal(hone_context_policy(NULL, HONE_POLICY_HEURISTIC), HONE_POLICY_HEURISTIC);
    hone_context_release(&outer);
    hone_context_release(&inner);
    hone_context_release(&silent);
}

static void an_override_of_a_version_is_for_that_one_alone(void **state)
{
    (void)state;
    const hone_context_override any = override_of("", "any", NULL), second = override_of("2", "second", "a=1");
    hone_context *outer = derive(NULL, NULL, &any, HONE_POLICY_DEFAULT);
    hone_context *inner = derive(outer, NULL, &second, HONE_POLICY_DEFAULT);
    assert_string_equal(hone_context_find_override(inner, "scale", "2")->kernel, "second");
    assert_string_equal(hone_context_find_override(inner, "scale", "1")->kernel, "any");
    assert_null(hone_context_find_override(inner, "other", "1"));
    // The config is the context's own copy.
    assert_string_equal(hone_context_find_override(inner, "scale", "2")->config, "a=1");
    assert_true(hone_context_find_override(inner, "scale", "2")->config != second.config);
    hone_context_release(&outer);
    hone_context_release(&inner);
}

static void numbers_are_never_used_twice(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        hone_context *context = derive(NULL, NULL, NULL, HONE_POLICY_DEFAULT);
        assert_true(hone_context_number(context) > last);
        last = hone_context_number(context);
        hone_context_release(&context);
    }
    assert_int_equal(hone_context_number(NULL), 0);
}

static void *look_for_a_context(void *out)
{
    *(hone_context **)out = hone_context_current();
    return NULL;
}

static uint64_t digest_of(hone_overlay *overlay, const hone_context_override *override_, hone_policy policy)
{
    hone_context *context = derive(NULL, overlay, override_, policy);
    uint64_t digest = hone_context_digest(context);
    hone_context_release(&context);
    return digest;
}

static void contexts_that_say_the_same_have_one_digest(void **state)
{
    (void)state;
    hone_decision decision = {.algorithm = "scale", .version = "1", .key = "b", .kernel = "other"};
    hone_error err;
    hone_overlay *ab = overlay_of(hone_allocator_system(), "a", "one");
    hone_overlay *ba = overlay_of(hone_allocator_system(), "b", "other");
    assert_int_equal(hone_decisions_put(&ab->decisions, NULL, NULL, &decision, &err), HONE_OK);
    snprintf(decision.key, sizeof decision.key, "a");
    snprintf(decision.kernel, sizeof decision.kernel, "one");
    decision.evidence.time_ns = 7; // how long it took changes no choice
    assert_int_equal(hone_decisions_put(&ba->decisions, NULL, NULL, &decision, &err), HONE_OK);
    const hone_context_override any = override_of("", "any", NULL), same = override_of("", "any", NULL);
    uint64_t digest = digest_of(ab, &any, HONE_POLICY_FAIL);
    assert_true(digest != 0);
    assert_true(digest == digest_of(ab, &same, HONE_POLICY_FAIL));
    assert_true(digest == digest_of(ba, &any, HONE_POLICY_FAIL));
    hone_overlay_release(&ab);
    hone_overlay_release(&ba);
}

static void contexts_that_say_something_else_have_another_digest(void **state)
{
    (void)state;
    hone_overlay *one = overlay_of(hone_allocator_system(), "a", "one"),
                 *two = overlay_of(hone_allocator_system(), "a", "two");
    const hone_context_override any = override_of("", "any", NULL), second = override_of("2", "any", NULL),
                                config = override_of("", "any", "a=1");
    hone_context *fail = derive(NULL, NULL, NULL, HONE_POLICY_FAIL),
                 *under = derive(fail, one, NULL, HONE_POLICY_DEFAULT);
    const uint64_t all[] = {
        0,
        digest_of(one, NULL, HONE_POLICY_DEFAULT),
        digest_of(two, NULL, HONE_POLICY_DEFAULT),
        digest_of(NULL, &any, HONE_POLICY_DEFAULT),
        digest_of(NULL, &second, HONE_POLICY_DEFAULT),
        digest_of(NULL, &config, HONE_POLICY_DEFAULT),
        digest_of(one, &any, HONE_POLICY_DEFAULT),
        digest_of(NULL, NULL, HONE_POLICY_FAIL),
        digest_of(NULL, NULL, HONE_POLICY_HEURISTIC),
        hone_context_digest(under),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(all[i] != all[j]);
    hone_overlay_release(&one);
    hone_overlay_release(&two);
    hone_context_release(&fail);
    hone_context_release(&under);
}

static void a_context_that_says_nothing_is_as_its_parent(void **state)
{
    (void)state;
    hone_overlay *empty = NULL;
    hone_error err;
    assert_int_equal(hone_overlay_new(hone_allocator_system(), &empty, &err), HONE_OK);
    hone_context *fail = derive(NULL, NULL, NULL, HONE_POLICY_FAIL),
                 *silent = derive(fail, empty, NULL, HONE_POLICY_DEFAULT);
    assert_true(digest_of(empty, NULL, HONE_POLICY_DEFAULT) == hone_context_digest(NULL));
    assert_true(hone_context_digest(silent) == hone_context_digest(fail));
    hone_overlay_release(&empty);
    hone_context_release(&fail);
    hone_context_release(&silent);
}

static void entering_is_of_the_thread_and_can_be_nested(void **state)
{
    (void)state;
    hone_context *a = derive(NULL, NULL, NULL, HONE_POLICY_FAIL), *b = derive(a, NULL, NULL, HONE_POLICY_TUNE);
    assert_null(hone_context_enter(a));
    assert_ptr_equal(hone_context_enter(a), a);
    assert_ptr_equal(hone_context_enter(b), a);
    assert_ptr_equal(hone_context_current(), b);
    assert_int_equal(hone_thread_self.context_number, hone_context_number(b));
    hone_context *elsewhere = a;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_for_a_context, &elsewhere), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(elsewhere);
    assert_ptr_equal(hone_context_enter(NULL), b);
    assert_int_equal(hone_thread_self.context_number, 0);
    hone_context_release(&a);
    hone_context_release(&b);
}

static void *retain_and_release(void *context_pointer)
{
    for (int i = 0; i < 1000; i++) {
        hone_context *context = hone_context_retain(context_pointer);
        hone_context *child = derive(context, NULL, NULL, HONE_POLICY_DEFAULT);
        hone_context_release(&context);
        if (found_in(child, "a") == NULL) return context_pointer;
        hone_context_release(&child);
    }
    return NULL;
}

static void threads_may_share_a_context(void **state)
{
    (void)state;
    hone_overlay *overlay = overlay_of(hone_allocator_system(), "a", "shared");
    hone_context *context = derive(NULL, overlay, NULL, HONE_POLICY_DEFAULT);
    hone_overlay_release(&overlay);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, retain_and_release, context), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(atomic_load(&context->references), 1);
    hone_context_release(&context);
}

static void no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    const hone_context_override wanted = override_of("", "kernel", "a=1 b=2");
    for (long long left = 0; left < 3; left++) {
        failing_allocator memory;
        hone_context *context = NULL;
        hone_error err;
        hone_allocator allocator = failing_allocator_of(&memory, left);
        hone_status status = hone_context_new(allocator, NULL, NULL, &wanted, HONE_POLICY_DEFAULT, &context, &err);
        assert_int_equal(status, left < 2 ? HONE_OUT_OF_MEMORY : HONE_OK);
        if (status == HONE_OK) hone_context_release(&context);
        assert_null(context);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
}

static hone_status has_no_answer(
    void *ctx, const hone_link_question *question, hone_link_answer *answer, hone_error *why)
{
    (void)ctx;
    (void)question;
    (void)answer;
    (void)why;
    return HONE_NOT_FOUND;
}

static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

static void no_memory_for_links_gives_none_of_them_back(void **state)
{
    (void)state;
    int released = 0;
    const hone_link links[] = {
        {.source = HONE_SOURCE_MEMORY},
        {.source = HONE_SOURCE_STORE,
         .find = has_no_answer,
         .ctx = &released,
         .name = "mine",
         .release = count_release}};
    for (long long left = 0; left < 4; left++) {
        failing_allocator memory;
        hone_context *context = NULL;
        hone_error err;
        hone_allocator allocator = failing_allocator_of(&memory, left);
        hone_status status = hone_context_new_chain(allocator, NULL, links, 2, HONE_KEEP_DEFAULT, &context, &err);
        assert_int_equal(status, left < 3 ? HONE_OUT_OF_MEMORY : HONE_OK);
        if (status == HONE_OK) hone_context_release(&context);
        assert_int_equal(released, left < 3 ? 0 : 1);
        assert_null(context);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_overlay_answers_and_older_ones_shine_through),
        cmocka_unit_test(the_innermost_policy_that_says_something_holds),
        cmocka_unit_test(an_override_of_a_version_is_for_that_one_alone),
        cmocka_unit_test(numbers_are_never_used_twice),
        cmocka_unit_test(contexts_that_say_the_same_have_one_digest),
        cmocka_unit_test(contexts_that_say_something_else_have_another_digest),
        cmocka_unit_test(a_context_that_says_nothing_is_as_its_parent),
        cmocka_unit_test(entering_is_of_the_thread_and_can_be_nested),
        cmocka_unit_test(threads_may_share_a_context),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
        cmocka_unit_test(no_memory_for_links_gives_none_of_them_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
