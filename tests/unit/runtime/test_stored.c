// The stores of a runtime from outside: which there are, what is stored in them, and what of it can be served.
#include "../../support/temporary_folder.h"
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

static int setup_store(void **state)
{
    *state = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:"});
    return 0;
}

static void store_plain(fixture *f)
{
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    (void)decide_scale(f, 4, 5);
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static void a_runtime_shows_its_own_store_and_says_when_it_has_none(void **state)
{
    fixture *f = *state;
    hone_store *store = NULL;
    hone_error err;
    assert_int_equal(hone_store_of(f->rt, HONE_STORE_OF_USER, &store, &err), HONE_OK);
    assert_string_equal(hone_store_url(store), "memory:");
    assert_int_equal(hone_store_of(f->rt, HONE_STORE_OF_SYSTEM, &store, &err), HONE_NOT_FOUND);
    assert_null(store);
    assert_non_null(strstr(err.message, "HONE_SYSTEM_STORE"));
    assert_int_equal(hone_store_of(f->rt, (hone_store_role)7, &store, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_unstored(f->rt), 0);
}

static void a_store_that_cannot_be_opened_says_why(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "sqlite:/dev/null/store.db"});
    hone_store *store = NULL;
    assert_int_equal(hone_store_of(f->rt, HONE_STORE_OF_USER, &store, &f->err), HONE_IO);
    assert_null(store);
    close_fixture(f);
}

typedef struct looking {
    fixture *f;
    char key[20];
    size_t keys;
    hone_status read;
    char kernel[HONE_NAME_SIZE], why[200];
} looking;

static bool note_key(void *ctx, const hone_lookup_key *key)
{
    looking *l = ctx;
    assert_true(key->is_exact || l->keys > 0);
    if (l->keys++ == 0) snprintf(l->key, sizeof l->key, "%s", key->key);
    return true;
}

static bool read_row(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    looking *l = ctx;
    hone_decision decision;
    hone_error err = {.message = ""};
    assert_string_equal(row->key.key, l->key);
    l->read = hone_decision_read(l->f->rt, NULL, row, &decision, &err);
    if (l->read == HONE_OK) snprintf(l->kernel, sizeof l->kernel, "%s", decision.kernel);
    hone_store_decision other = *row;
    other.kernel = "gone";
    assert_int_equal(hone_decision_read(l->f->rt, NULL, &other, &decision, &err), HONE_INCOMPATIBLE);
    snprintf(l->why, sizeof l->why, "%.190s", err.message);
    other = *row;
    other.config = "nope";
    assert_int_equal(hone_decision_read(l->f->rt, NULL, &other, &decision, &err), HONE_CORRUPT);
    assert_int_equal(err.status, HONE_CORRUPT);
    other.config = NULL;
    assert_int_equal(hone_decision_read(l->f->rt, NULL, &other, &decision, &err), HONE_INVALID_ARGUMENT);
    return true;
}

static void a_stored_decision_stands_under_the_first_of_the_calls_keys_and_is_read_as_the_chain_does(void **state)
{
    fixture *f = *state;
    looking l = {.f = f, .read = HONE_CANCELLED};
    hone_store *store = NULL;
    hone_call *call = describe_scale(f, 4, 5);
    store_plain(f);
    assert_int_equal(hone_call_keys(call, note_key, &l, &f->err), HONE_OK);
    assert_string_equal(l.key, hone_call_key(call));
    assert_int_equal(hone_store_of(f->rt, HONE_STORE_OF_USER, &store, &f->err), HONE_OK);
    assert_int_equal(hone_store_scan(store, HONE_RECORD_DECISION, NULL, read_row, &l, &f->err), HONE_OK);
    assert_int_equal(l.read, HONE_OK);
    assert_string_equal(l.kernel, "plain");
    assert_non_null(strstr(l.why, "gone"));
    hone_call_release(&call);
}

static void a_url_tells_its_place_without_being_opened(void **state)
{
    (void)state;
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    hone_store_place place;
    hone_store *store = NULL;
    hone_error err;
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(url, sizeof url, "sqlite:%s/s.db", folder.path);
    assert_int_equal(hone_store_get_place(url, &place, &err), HONE_OK);
    assert_string_equal(place.url, url);
    assert_string_equal(place.path, url + strlen("sqlite:"));
    assert_true(place.is_missing);
    assert_int_not_equal(access(place.path, F_OK), 0);
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, &err), HONE_OK);
    hone_store_close(&store);
    assert_int_equal(hone_store_get_place(url, &place, &err), HONE_OK);
    assert_false(place.is_missing);
    assert_int_equal(hone_store_get_place("memory:", &place, &err), HONE_OK);
    assert_string_equal(place.path, "");
    assert_false(place.is_missing);
    assert_int_equal(hone_store_get_place("nowhere:x", &place, &err), HONE_INVALID_ARGUMENT);
    temporary_folder_remove(&folder);
}

static bool count_kind(void *ctx, const hone_store_kind *kind)
{
    size_t *counts = ctx;
    assert_int_equal(strncmp(kind->form, kind->scheme, strlen(kind->scheme)), 0);
    assert_false(kind->is_scratch && kind->in_file);
    counts[0] += kind->is_default;
    counts[1] += kind->is_scratch;
    return true;
}

static void one_kind_is_the_default_and_one_is_for_scratch(void **state)
{
    size_t counts[2] = {0, 0};
    (void)state;
    assert_int_equal(hone_store_kinds(count_kind, counts, NULL), HONE_OK);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 1);
}

// The queue ------------------------------------------------------------------------------------------------------------

static temporary_folder queue_folder;

static int setup_file(void **state)
{
    char url[TEMPORARY_PATH_SIZE];
    if (temporary_folder_make(&queue_folder) != 0) return -1;
    snprintf(url, sizeof url, "sqlite:%s/s.db", queue_folder.path);
    *state = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = url});
    return 0;
}

static int teardown_file(void **state)
{
    close_fixture(*state);
    temporary_folder_remove(&queue_folder);
    return 0;
}

typedef struct seen {
    size_t count;
    double priority, weight;
    uint64_t calls;
    hone_job_state state;
} seen;

static bool see(void *ctx, const hone_queued *queued)
{
    seen *s = ctx;
    assert_false(queued->is_dead);
    assert_null(queued->unfit);
    *s = (seen){s->count + 1, queued->priority, queued->weight, queued->count, queued->state};
    return true;
}

static void a_call_is_queued_once_and_raised_after_that(void **state)
{
    fixture *f = *state;
    hone_store *store = NULL;
    seen s = {0};
    bool added = false;
    hone_call *call = describe_scale(f, 4, 5);
    hone_queue_options options = {.struct_size = sizeof options, .count = 3, .priority = 1};
    assert_int_equal(hone_store_of(f->rt, HONE_STORE_OF_USER, &store, &f->err), HONE_OK);
    assert_int_equal(hone_queue_call(store, f->op, call, &options, &added, &f->err), HONE_OK);
    assert_true(added);
    options.priority = 9;
    assert_int_equal(hone_queue_call(store, f->op, call, &options, &added, &f->err), HONE_OK);
    assert_false(added);
    assert_int_equal(hone_queue_scan(store, true, see, &s, &f->err), HONE_OK);
    assert_int_equal(s.count, 1);
    assert_true(s.priority == 9 && s.calls == 3 && s.weight > 0 && s.state == HONE_JOB_WAITING);
    options.device = "two\nlines";
    assert_int_equal(hone_queue_call(store, f->op, call, &options, NULL, &f->err), HONE_INVALID_ARGUMENT);
    hone_call_release(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_runtime_shows_its_own_store_and_says_when_it_has_none, setup_store, teardown_runtime),
        cmocka_unit_test(a_store_that_cannot_be_opened_says_why),
        cmocka_unit_test_setup_teardown(
            a_stored_decision_stands_under_the_first_of_the_calls_keys_and_is_read_as_the_chain_does, setup_store,
            teardown_runtime),
        cmocka_unit_test(a_url_tells_its_place_without_being_opened),
        cmocka_unit_test(one_kind_is_the_default_and_one_is_for_scratch),
        cmocka_unit_test_setup_teardown(a_call_is_queued_once_and_raised_after_that, setup_file, teardown_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
