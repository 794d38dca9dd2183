// The chain alone, with links of the test's own: order, policies, what ends it, what it says when nothing answers.
#include "config/chain.h"
#include "hone/describe.h"
#include "hone/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// What each link answers, and in which order they were asked.
struct hone_request {
    hone_status answers[HONE_SOURCE_COUNT];
    hone_source asked[HONE_SOURCE_COUNT];
    size_t count;
};

static hone_status answer(const hone_request *request, hone_source source, hone_decision *out, hone_error *why)
{
    hone_request *r = (hone_request *)(uintptr_t)request;
    r->asked[r->count++] = source;
    snprintf(out->kernel, sizeof out->kernel, "%s", hone_source_name(source));
    snprintf(why->message, sizeof why->message, "the %s has none", hone_source_name(source));
    why->status = r->answers[source];
    return r->answers[source];
}

#define LINK(name, source)                                                                                             \
    static hone_status name(const hone_request *request, hone_decision *out, hone_error *why)                          \
    {                                                                                                                  \
        return answer(request, source, out, why);                                                                      \
    }
LINK(from_override, HONE_SOURCE_OVERRIDE)
LINK(from_overlay, HONE_SOURCE_OVERLAY)
LINK(from_lock, HONE_SOURCE_LOCK)
LINK(from_memory, HONE_SOURCE_MEMORY)
LINK(from_store, HONE_SOURCE_STORE)
LINK(from_transfer, HONE_SOURCE_TRANSFER)
LINK(from_autotune, HONE_SOURCE_AUTOTUNE)
LINK(from_heuristic, HONE_SOURCE_HEURISTIC)

static const hone_links links = {
    .find = {
        NULL, from_override, from_overlay, from_lock, from_memory, from_store, from_transfer, from_autotune,
        from_heuristic}};

static hone_request nobody_answers(void)
{
    hone_request request = {.count = 0};
    for (int i = 0; i < HONE_SOURCE_COUNT; i++)
        request.answers[i] = HONE_NOT_FOUND;
    return request;
}

static void assert_asked(const hone_request *request, const hone_source *sources, size_t count)
{
    assert_int_equal(request->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(request->asked[i], sources[i]);
}

static void each_policy_asks_its_links_in_order(void **state)
{
    (void)state;
    static const struct {
        hone_policy policy;
        size_t count;
        hone_source asked[HONE_SOURCE_COUNT];
    } cases[] = {
        {HONE_POLICY_TUNE,
         7,
         {HONE_SOURCE_OVERRIDE, HONE_SOURCE_OVERLAY, HONE_SOURCE_LOCK, HONE_SOURCE_MEMORY, HONE_SOURCE_STORE,
          HONE_SOURCE_AUTOTUNE, HONE_SOURCE_HEURISTIC}},
        {HONE_POLICY_HEURISTIC,
         7,
         {HONE_SOURCE_OVERRIDE, HONE_SOURCE_OVERLAY, HONE_SOURCE_LOCK, HONE_SOURCE_MEMORY, HONE_SOURCE_STORE,
          HONE_SOURCE_TRANSFER, HONE_SOURCE_HEURISTIC}},
        {HONE_POLICY_FAIL,
         5,
         {HONE_SOURCE_OVERRIDE, HONE_SOURCE_OVERLAY, HONE_SOURCE_LOCK, HONE_SOURCE_MEMORY, HONE_SOURCE_STORE}},
        {HONE_POLICY_FROZEN, 2, {HONE_SOURCE_OVERRIDE, HONE_SOURCE_LOCK}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_request request = nobody_answers();
        hone_decision decision;
        hone_error err;
        assert_int_equal(hone_chain_decide(&links, &request, NULL, cases[i].policy, &decision, &err), HONE_NOT_FOUND);
        assert_asked(&request, cases[i].asked, cases[i].count);
    }
}

static void the_first_answer_ends_the_chain_and_bears_its_source(void **state)
{
    (void)state;
    hone_request request = nobody_answers();
    hone_decision decision;
    hone_error err;
    request.answers[HONE_SOURCE_MEMORY] = request.answers[HONE_SOURCE_STORE] = HONE_OK;
    assert_int_equal(hone_chain_decide(&links, &request, NULL, HONE_POLICY_TUNE, &decision, &err), HONE_OK);
    assert_string_equal(decision.kernel, "memory");
    assert_int_equal(decision.source, HONE_SOURCE_MEMORY);
    assert_int_equal(request.count, 4);
}

static void an_error_ends_the_chain_with_its_words_and_writes_nothing(void **state)
{
    (void)state;
    hone_request request = nobody_answers();
    hone_decision decision = {.kernel = "untouched"};
    hone_error err;
    request.answers[HONE_SOURCE_OVERRIDE] = HONE_INVALID_ARGUMENT;
    request.answers[HONE_SOURCE_HEURISTIC] = HONE_OK;
    assert_int_equal(
        hone_chain_decide(&links, &request, NULL, HONE_POLICY_TUNE, &decision, &err), HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the override has none");
    assert_string_equal(decision.kernel, "untouched");
    assert_int_equal(request.count, 1);
    assert_int_equal(
        hone_chain_decide(&links, &request, NULL, HONE_POLICY_TUNE, &decision, NULL), HONE_INVALID_ARGUMENT);
}

static void a_chain_that_finds_nothing_says_what_each_link_said(void **state)
{
    (void)state;
    hone_request request = nobody_answers();
    hone_decision decision;
    hone_error err;
    assert_int_equal(hone_chain_decide(&links, &request, NULL, HONE_POLICY_FAIL, &decision, &err), HONE_NOT_FOUND);
    assert_non_null(strstr(err.message, "policy fail"));
    assert_non_null(strstr(err.message, "overlay: the overlay has none"));
    assert_non_null(strstr(err.message, "store: the store has none"));
    assert_null(strstr(err.message, "heuristic:"));
}

static void a_link_that_is_not_there_passes(void **state)
{
    (void)state;
    hone_links few = {.find = {[HONE_SOURCE_HEURISTIC] = from_heuristic}};
    hone_request request = nobody_answers();
    hone_decision decision;
    hone_error err;
    request.answers[HONE_SOURCE_HEURISTIC] = HONE_OK;
    assert_int_equal(hone_chain_decide(&few, &request, NULL, HONE_POLICY_HEURISTIC, &decision, &err), HONE_OK);
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
}

static void explain_asks_all_but_the_tuner_also_behind_an_answer(void **state)
{
    (void)state;
    hone_request request = nobody_answers();
    hone_link_report reports[HONE_SOURCE_COUNT];
    request.answers[HONE_SOURCE_OVERLAY] = HONE_OK;
    size_t count = hone_chain_explain(&links, &request, NULL, HONE_POLICY_TUNE, reports);
    assert_int_equal(count, 8);
    assert_int_equal(request.count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(reports[i].source, i + 1);
        bool asked = reports[i].source != HONE_SOURCE_AUTOTUNE && reports[i].source != HONE_SOURCE_TRANSFER;
        assert_int_equal(reports[i].asked, asked);
        assert_true(reports[i].why.message[0] != '\0');
    }
    assert_int_equal(reports[1].status, HONE_OK);
    assert_string_equal(reports[1].decision.kernel, "overlay");
}

static void a_source_that_is_not_asked_says_why(void **state)
{
    (void)state;
    const char *why = NULL;
    assert_true(hone_chain_asks(HONE_POLICY_FROZEN, HONE_SOURCE_LOCK, &why));
    assert_null(why);
    assert_false(hone_chain_asks(HONE_POLICY_FROZEN, HONE_SOURCE_STORE, &why));
    assert_string_equal(why, "the policy is frozen");
    assert_false(hone_chain_asks(HONE_POLICY_TUNE, HONE_SOURCE_NONE, NULL));
}

static void every_source_reads_back_from_its_name(void **state)
{
    (void)state;
    hone_source source = HONE_SOURCE_NONE;
    for (int i = HONE_SOURCE_NONE + 1; i < HONE_SOURCE_COUNT; i++)
        assert_true(hone_source_by_name(hone_source_name((hone_source)i), &source) && (int)source == i);
    assert_false(hone_source_by_name("none", &source) || hone_source_by_name("dream", &source));
    assert_int_equal(source, HONE_SOURCE_HEURISTIC);
    assert_string_equal(hone_source_name(HONE_SOURCE_NONE), "none");
    assert_string_equal(hone_source_name(HONE_SOURCE_OVERRIDE), "override");
    assert_string_equal(hone_source_name((hone_source)57), "unknown source");
    assert_string_equal(hone_source_name((hone_source)-1), "unknown source");
}

static void every_source_but_none_is_of_one_kind(void **state)
{
    (void)state;
    for (int i = HONE_SOURCE_NONE; i <= HONE_SOURCE_COUNT; i++) {
        const hone_source source = (hone_source)i;
        const int kinds = hone_source_is(source, HONE_LINK_NAMED) + hone_source_is(source, HONE_LINK_DECIDED) +
                          hone_source_is(source, HONE_LINK_GUESSED);
        assert_int_equal(kinds, i > HONE_SOURCE_NONE && i < HONE_SOURCE_COUNT);
    }
    assert_true(
        hone_source_is(HONE_SOURCE_LOCK, HONE_LINK_NAMED) && hone_source_is(HONE_SOURCE_STORE, HONE_LINK_DECIDED));
    assert_true(
        hone_source_is(HONE_SOURCE_TRANSFER, HONE_LINK_GUESSED) &&
        hone_source_is(HONE_SOURCE_HEURISTIC, HONE_LINK_GUESSED));
}

static void every_policy_reads_back_from_its_name(void **state)
{
    (void)state;
    for (int i = HONE_POLICY_DEFAULT; i <= HONE_POLICY_FROZEN; i++) {
        hone_policy policy = HONE_POLICY_DEFAULT;
        assert_int_equal(hone_policy_parse(hone_policy_name((hone_policy)i), &policy, NULL), HONE_OK);
        assert_int_equal(policy, i);
    }
    hone_policy policy = HONE_POLICY_FAIL;
    hone_error err = {0};
    assert_int_equal(hone_policy_parse("Tune", &policy, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(policy, HONE_POLICY_FAIL);
    assert_non_null(strstr(err.message, "'Tune' is not one of: default, tune, heuristic, fail, frozen"));
    assert_int_equal(hone_policy_parse(NULL, &policy, NULL), HONE_INVALID_ARGUMENT);
    assert_string_equal(hone_policy_name((hone_policy)57), "unknown policy");
    assert_string_equal(hone_policy_name((hone_policy)-1), "unknown policy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_policy_asks_its_links_in_order),
        cmocka_unit_test(the_first_answer_ends_the_chain_and_bears_its_source),
        cmocka_unit_test(an_error_ends_the_chain_with_its_words_and_writes_nothing),
        cmocka_unit_test(a_chain_that_finds_nothing_says_what_each_link_said),
        cmocka_unit_test(a_link_that_is_not_there_passes),
        cmocka_unit_test(explain_asks_all_but_the_tuner_also_behind_an_answer),
        cmocka_unit_test(a_source_that_is_not_asked_says_why),
        cmocka_unit_test(every_source_reads_back_from_its_name),
        cmocka_unit_test(every_source_but_none_is_of_one_kind),
        cmocka_unit_test(every_policy_reads_back_from_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
