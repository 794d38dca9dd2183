// Ranks that must choose alike: two runtimes stand for two processes, each with a store of its own.
#include "fixture.h"

#include <stdio.h>

typedef struct said {
    size_t count, rank, other;
    char call[100], field[20], words[1500], fields[200];
} said;

static bool take(void *ctx, const hone_disagreement *found)
{
    said *s = ctx;
    if (s->count++ == 0) {
        s->rank = found->rank;
        s->other = found->other;
        snprintf(s->call, sizeof s->call, "%s", found->call);
        snprintf(s->field, sizeof s->field, "%s", found->field);
        snprintf(s->words, sizeof s->words, "%s", found->words);
    }
    strncat(strncat(s->fields, found->field, 20), " ", 2);
    return true;
}

enum { RANKS = 3, CALLS = 2 };
static const char *const calls[CALLS] = {"scale(f32[4,4])", "scale(f32[8,8])"};

typedef struct job {
    fixture *ranks[RANKS];
    saying documents[RANKS];
    char digests[RANKS][HONE_DIGEST_SIZE];
} job;

static int open_job(void **state)
{
    job *j = calloc(1, sizeof *j);
    assert_non_null(j);
    for (int i = 0; i < RANKS; i++)
        j->ranks[i] = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:"});
    *state = j;
    return 0;
}

static int close_job(void **state)
{
    job *j = *state;
    for (int i = 0; i < RANKS; i++)
        close_fixture(j->ranks[i]);
    free(j);
    return 0;
}

static void ask(job *j, int rank, const char *const *texts, size_t count)
{
    fixture *f = j->ranks[rank];
    j->documents[rank].size = 0;
    if (hone_agree(f->rt, texts, count, collect_saying, &j->documents[rank], j->digests[rank], &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
}

static said compare(job *j)
{
    const char *documents[RANKS];
    said s = {.count = 0};
    hone_error err;
    for (int i = 0; i < RANKS; i++)
        documents[i] = j->documents[i].size > 0 ? j->documents[i].data : NULL;
    if (hone_agree_compare(documents, RANKS, take, &s, &err) != HONE_OK) fail_msg("%s", err.message);
    return s;
}

static void ranks_with_the_same_choices_have_one_digest(void **state)
{
    job *j = *state;
    static const char *const other_order[] = {"scale(f32[8,8])", "scale(f32[4,4])", "scale(f32[8,8])"};
    ask(j, 0, calls, CALLS);
    ask(j, 1, other_order, 3);
    ask(j, 2, calls, CALLS);
    assert_string_equal(j->digests[0], j->digests[1]);
    assert_int_equal(compare(j).count, 0);
    ask(j, 1, calls, 1);
    assert_string_not_equal(j->digests[0], j->digests[1]);
}

static void a_differing_choice_is_named_with_call_rank_and_reason(void **state)
{
    job *j = *state;
    put_in_cache(j->ranks[1], 8, 8, "plain");
    for (int i = 0; i < RANKS; i++)
        ask(j, i, calls, CALLS);
    const said s = compare(j);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.rank, 1);
    assert_int_equal(s.other, 0);
    assert_string_equal(s.call, "scale(f32[8,8])");
    assert_string_equal(s.field, "kernel");
    assert_non_null(strstr(s.words, "rank 1 chooses native/plain"));
    assert_non_null(strstr(s.words, "by memory, rank 0 chooses native/fast"));
    assert_non_null(strstr(s.words, "by heuristic"));
    assert_string_not_equal(j->digests[0], j->digests[1]);
}

// The odd one is named also where it is the first.
static void the_choice_of_most_ranks_is_the_measure(void **state)
{
    job *j = *state;
    put_in_cache(j->ranks[0], 8, 8, "plain");
    for (int i = 0; i < RANKS; i++)
        ask(j, i, calls, CALLS);
    const said s = compare(j);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.rank, 0);
    assert_int_equal(s.other, 1);
}

static void configs_policies_and_missing_calls_differ_too(void **state)
{
    job *j = *state;
    char key[20];
    hone_entry entry = entry_for(j->ranks[2], 4, 4, "fast", key);
    assert_int_equal(hone_cache_put(j->ranks[2]->rt, &entry, &j->ranks[2]->err), HONE_OK);
    ask(j, 0, calls, CALLS);
    ask(j, 1, calls, 1);
    ask(j, 2, calls, CALLS);
    const said s = compare(j);
    assert_int_equal(s.count, 2);
    assert_non_null(strstr(s.fields, "config "));
    assert_non_null(strstr(s.fields, "call "));
}

static void a_rank_without_an_answer_differs_from_one_that_would_tune(void **state)
{
    job *j = *state;
    fixture *fails = open_fixture((wish){.policy = HONE_POLICY_FAIL, .store = "memory:"});
    fixture *tunes = open_fixture((wish){.policy = HONE_POLICY_TUNE, .store = "memory:"});
    fixture *kept[] = {j->ranks[1], j->ranks[2]};
    j->ranks[1] = fails;
    j->ranks[2] = tunes;
    for (int i = 0; i < RANKS; i++)
        ask(j, i, calls, 1);
    const said s = compare(j);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.field, "answer");
    assert_non_null(strstr(s.words, "has no answer"));
    assert_non_null(strstr(s.words, "policy: heuristic there, fail here"));
    assert_int_equal(tunes->probes[FAST].prepares, 0); // it only asked
    // All would tune: nobody knows what comes of it.
    j->documents[0] = j->documents[1] = j->documents[2];
    const said settled = compare(j);
    assert_int_equal(settled.count, 1);
    assert_string_equal(settled.field, "unsettled");
    j->ranks[1] = kept[0];
    j->ranks[2] = kept[1];
    close_fixture(fails);
    close_fixture(tunes);
}

static void without_calls_those_are_meant_that_were_made(void **state)
{
    job *j = *state;
    for (int i = 0; i < RANKS; i++) {
        run_example(j->ranks[i], 4, 4);
        if (i == 2) run_example(j->ranks[i], 5, 5);
        ask(j, i, NULL, 0);
    }
    const said s = compare(j);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.rank, 2);
    assert_string_equal(s.call, "scale(f32[5,5])");
    assert_string_equal(s.field, "call");
}

static void a_rank_without_a_document_is_left_out(void **state)
{
    job *j = *state;
    ask(j, 0, calls, CALLS);
    ask(j, 2, calls, CALLS);
    assert_int_equal(compare(j).count, 0);
}

static void texts_that_are_no_documents_or_calls_are_refused(void **state)
{
    job *j = *state;
    fixture *f = j->ranks[0];
    static const char *const bad[] = {"",     "{", "[]", "{\"hone_agree\":1}", "{\"hone_agree\":1,\"rows\":[{}]}",
                                      "null", "7"};
    static const char *const newer = "{\"hone_agree\":2,\"rows\":[]}", *const none = "scale(f32[4";
    said s = {.count = 0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hone_agree_compare(&bad[i], 1, take, &s, &f->err), HONE_CORRUPT);
    assert_non_null(strstr(f->err.message, "document 0"));
    assert_int_equal(hone_agree_compare(&newer, 1, take, &s, &f->err), HONE_INCOMPATIBLE);
    assert_int_equal(hone_agree_compare(NULL, 1, take, &s, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_agree_compare(&newer, 1, NULL, &s, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_agree(f->rt, &none, 1, NULL, NULL, j->digests[0], &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_agree(f->rt, calls, 1, NULL, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_agree(NULL, calls, 1, NULL, NULL, j->digests[0], &f->err), HONE_INVALID_ARGUMENT);
}

#define IN_JOB(test) cmocka_unit_test_setup_teardown(test, open_job, close_job)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_JOB(ranks_with_the_same_choices_have_one_digest),
        IN_JOB(a_differing_choice_is_named_with_call_rank_and_reason),
        IN_JOB(the_choice_of_most_ranks_is_the_measure),
        IN_JOB(configs_policies_and_missing_calls_differ_too),
        IN_JOB(a_rank_without_an_answer_differs_from_one_that_would_tune),
        IN_JOB(without_calls_those_are_meant_that_were_made),
        IN_JOB(a_rank_without_a_document_is_left_out),
        IN_JOB(texts_that_are_no_documents_or_calls_are_refused),
    };
    return cmocka_run_group_tests_name("runtime_agree", tests, NULL, NULL);
}
