// Values and frames between processes, whole, cut short and hostile.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tune/isolate/worker.h"
#include "tune/wire/frame.h"
#include "tune/wire/message.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void values_come_out_as_they_went_in(void **state)
{
    (void)state;
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_wire_put_u8(&out, 7);
    hone_wire_put_text(&out, "text");
    hone_wire_put_text(&out, NULL);
    hone_wire_put_text(&out, "");
    hone_wire_put_f64(&out, -0.5);
    hone_wire_put_i64(&out, INT64_MIN);
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_wire_reader reader = {out.data, out.size, 0, &arena, false, false};
    assert_int_equal(hone_wire_get_u8(&reader), 7);
    assert_string_equal(hone_wire_get_text(&reader), "text");
    assert_null(hone_wire_get_text(&reader));
    assert_string_equal(hone_wire_get_text(&reader), "");
    assert_true(hone_wire_get_f64(&reader) == -0.5);
    assert_true(hone_wire_get_i64(&reader) == INT64_MIN);
    assert_false(reader.failed);
    assert_int_equal(hone_wire_get_u32(&reader), 0);
    assert_true(reader.failed);
    hone_arena_destroy(&arena);
    hone_buffer_deinit(&out);
}

static void messages_cut_anywhere_fail_without_harm(void **state)
{
    (void)state;
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_rounds_answer *rounds_answer = test_calloc(1, sizeof *rounds_answer);
    rounds_answer->count = 3;
    rounds_answer->rounds = 5;
    rounds_answer->marks[2][4] = 1;
    rounds_answer->waited[1][0] = 0.5;
    strcpy(rounds_answer->reason, "none");
    hone_message_put_rounds(&out, rounds_answer);
    for (size_t size = 0; size <= out.size; size++) {
        hone_arena arena = {.allocator = hone_allocator_system()};
        hone_wire_reader reader = {out.data, size, 0, &arena, false, false};
        hone_rounds_answer *read = test_calloc(1, sizeof *read);
        hone_message_get_rounds(&reader, read);
        assert_int_equal(reader.failed, size < out.size);
        if (!reader.failed) {
            assert_int_equal(read->marks[2][4], 1);
            assert_true(read->waited[1][0] == 0.5);
        }
        test_free(read);
        hone_arena_destroy(&arena);
    }
    test_free(rounds_answer);
    hone_buffer_deinit(&out);
}

// Each flag of the two answers, alone.
static void answers_arrive_with_the_flags_that_they_were_sent_with(void **state)
{
    (void)state;
    for (unsigned flag = 0; flag < 6; flag++) {
        hone_buffer out;
        hone_buffer_init(&out, hone_allocator_system());
        hone_rounds_answer *sent = test_calloc(1, sizeof *sent), *come = test_calloc(1, sizeof *come);
        const hone_trial trial = {
            .failure = HONE_FAILURE_CRASH,
            .time_ns = 2,
            .low_ns = 1,
            .high_ns = 3,
            .digest = 7,
            .dropped = flag == 0,
            .retired = flag == 1,
            .refused = flag == 2,
            .spoiled = flag == 3,
            .same = flag == 4,
            .spent = {5, 6, 8},
            .reason = "why"};
        hone_trial read;
        sent->retired = flag == 0;
        sent->spoiled = flag == 1;
        sent->failed = 2;
        sent->spent.verify_ns = 9;
        hone_message_put_trial(&out, &trial);
        hone_message_put_rounds(&out, sent);
        hone_arena arena = {.allocator = hone_allocator_system()};
        hone_wire_reader reader = {out.data, out.size, 0, &arena, false, false};
        hone_message_get_trial(&reader, &read);
        hone_message_get_rounds(&reader, come);
        assert_false(reader.failed);
        assert_int_equal(read.failure, HONE_FAILURE_CRASH);
        assert_true(read.time_ns == 2 && read.low_ns == 1 && read.high_ns == 3 && read.spent.prepare_ns == 5);
        assert_int_equal(read.digest, 7);
        assert_true(read.spent.verify_ns == 6 && read.spent.run_ns == 8);
        assert_true(come->spent.verify_ns == 9);
        assert_int_equal(read.dropped, flag == 0);
        assert_int_equal(read.retired, flag == 1);
        assert_int_equal(read.refused, flag == 2);
        assert_int_equal(read.spoiled, flag == 3);
        assert_int_equal(read.same, flag == 4);
        assert_string_equal(read.reason, "why");
        assert_int_equal(come->retired, flag == 0);
        assert_int_equal(come->spoiled, flag == 1);
        assert_int_equal(come->failed, 2);
        hone_arena_destroy(&arena);
        test_free(sent);
        test_free(come);
        hone_buffer_deinit(&out);
    }
}

static hone_status run_nothing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static bool supports_all(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    (void)call;
    (void)why;
    return true;
}

static void a_kernel_is_content_when_its_code_is_all_of_it(void **state)
{
    (void)state;
    int thing = 0;
    const hone_code code = {HONE_CODE, .source = "text", .entry = "f", .arguments = "x"};
    hone_kernel kernel = {HONE_KERNEL, .algorithm = "fa", .name = "a", .platform = HONE_OPENCL, .code = &code};
    assert_true(hone_message_is_content(&kernel));
    kernel.user = &thing;
    assert_false(hone_message_is_content(&kernel));
    kernel.user = NULL;
    kernel.supports = supports_all;
    assert_false(hone_message_is_content(&kernel));
    kernel.supports = NULL;
    kernel.run = run_nothing;
    assert_false(hone_message_is_content(&kernel));
    kernel.run = NULL;
    kernel.code = NULL;
    assert_false(hone_message_is_content(&kernel));
}

static void assert_code_arrives(const hone_code *code)
{
    const hone_algorithm_entry algorithm = {.name = "fa", .version = "1"};
    const hone_kernel_ref ref = {
        .kernel = {HONE_KERNEL, .algorithm = "fa", .name = "a", .revision = "3", .platform = HONE_OPENCL, .code = code},
        .algorithm = &algorithm};
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_message_put_kernel(&out, &ref, true);
    hone_wire_put_u8(&out, 77);
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_wire_reader reader = {out.data, out.size, 0, &arena, false, false};
    hone_kernel come;
    assert_int_equal(hone_message_get_kernel(&reader, &(hone_kernel_reader){.strict = true}, &come, NULL), HONE_OK);
    assert_int_equal(hone_wire_get_u8(&reader), 77); // all of it was read, and no more
    assert_string_equal(come.name, "a");
    assert_string_equal(come.revision, "3");
    assert_int_equal(come.platform, HONE_OPENCL);
    assert_int_equal(come.code != NULL, code != NULL);
    if (code != NULL) {
        assert_int_equal(come.code->binary_size, code->binary_size);
        assert_int_equal(come.code->binary != NULL, code->binary != NULL);
        if (code->binary != NULL) assert_memory_equal(come.code->binary, code->binary, code->binary_size);
        assert_int_equal(come.code->align, code->align);
        assert_int_equal(come.code->flags, code->flags);
        assert_int_equal(come.code->source != NULL, code->source != NULL);
        assert_string_equal(come.code->entry, code->entry);
    }
    hone_arena_destroy(&arena);
    hone_buffer_deinit(&out);
}

static void code_arrives_as_text_or_as_bytes_and_a_kernel_may_have_none(void **state)
{
    (void)state;
    assert_code_arrives(NULL);
    assert_code_arrives(&(hone_code){HONE_CODE, .source = "text", .entry = "f", .arguments = "x", .align = 16});
    assert_code_arrives(&(hone_code){HONE_CODE, .binary = "b", .binary_size = 1, .entry = "f", .arguments = "x"});
    assert_code_arrives(&(hone_code){HONE_CODE, .binary = "a\0b", .binary_size = 3, .entry = "f", .arguments = "x"});
}

static void counts_out_of_range_are_refused(void **state)
{
    (void)state;
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_wire_put_u32(&out, 1000000); // values of a call
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_wire_reader reader = {out.data, out.size, 0, &arena, false, false};
    hone_wire_value *values;
    uint32_t count;
    hone_message_get_call(&reader, &values, &count);
    assert_true(reader.failed);
    assert_int_equal(count, 0);
    hone_arena_destroy(&arena);
    hone_buffer_deinit(&out);
}

// The other end: answers, but says first something that is neither answer nor note.
static void *answer_late(void *ctx)
{
    const int fd = *(const int *)ctx;
    uint8_t kind;
    uint64_t token = 0;
    hone_buffer message;
    hone_buffer_init(&message, hone_allocator_system());
    if (hone_frame_read(fd, &kind, &token, &message, 0, NULL) == HONE_OK) {
        hone_buffer_clear(&message);
        (void)!hone_frame_write(fd, HONE_MESSAGE_PING, token, &message, 0);
        (void)!hone_frame_write(fd, HONE_MESSAGE_ANSWER, token, &message, 0);
    }
    hone_buffer_deinit(&message);
    return NULL;
}

static void a_worker_that_says_neither_answer_nor_note_is_lost(void **state)
{
    (void)state;
    int ends[2];
    pthread_t other;
    hone_buffer message, answer;
    hone_buffer_init(&message, hone_allocator_system());
    hone_buffer_init(&answer, hone_allocator_system());
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(pthread_create(&other, NULL, answer_late, &ends[1]), 0);
    const hone_worker_question question = {
        HONE_MESSAGE_PING, &message, {UINT64_C(60000000000), UINT64_C(60000000000), 0}};
    assert_int_equal(hone_worker_ask(ends[0], &question, NULL, NULL, NULL, &answer), HONE_OUTCOME_LOST);
    pthread_join(other, NULL);
    close(ends[0]);
    close(ends[1]);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
}

// The other end: notes without end, until nobody listens.
static void *note_on(void *ctx)
{
    const int fd = *(const int *)ctx;
    uint8_t kind;
    uint64_t token = 0;
    hone_buffer message;
    hone_buffer_init(&message, hone_allocator_system());
    hone_status status = hone_frame_read(fd, &kind, &token, &message, 0, NULL);
    hone_buffer_clear(&message);
    while (status == HONE_OK) {
        status = hone_frame_write(fd, HONE_MESSAGE_NOTE, token, &message, 0);
        hone_os_sleep_ns(5000000);
    }
    hone_buffer_deinit(&message);
    return NULL;
}

static void phases_without_end_come_to_one_where_all_of_them_have_a_limit(void **state)
{
    (void)state;
    int ends[2];
    pthread_t other;
    hone_buffer message, answer;
    hone_buffer_init(&message, hone_allocator_system());
    hone_buffer_init(&answer, hone_allocator_system());
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(pthread_create(&other, NULL, note_on, &ends[1]), 0);
    const uint64_t minute = UINT64_C(60000000000);
    const hone_worker_question question = {HONE_MESSAGE_PING, &message, {minute, minute, UINT64_C(100000000)}};
    assert_int_equal(hone_worker_ask(ends[0], &question, NULL, NULL, NULL, &answer), HONE_OUTCOME_TIMEOUT);
    close(ends[0]);
    pthread_join(other, NULL);
    close(ends[1]);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void frames_travel_and_waiting_ends(void **state)
{
    (void)state;
    int fds[2];
    uint8_t kind;
    uint64_t token = 7;
    hone_buffer out, in;
    hone_buffer_init(&out, hone_allocator_system());
    hone_buffer_init(&in, hone_allocator_system());
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    hone_buffer_text(&out, "payload");
    assert_int_equal(hone_frame_write(fds[0], 9, 7, &out, 0), HONE_OK);
    assert_int_equal(hone_frame_read(fds[1], &kind, &token, &in, 0, NULL), HONE_OK);
    assert_int_equal(kind, 9);
    assert_string_equal(hone_buffer_string(&in), "payload");
    assert_int_equal(hone_frame_read(fds[1], &kind, &token, &in, hone_os_now_ns() + 1000000, NULL), HONE_BUSY);
    assert_int_equal(hone_frame_read(fds[1], &kind, &token, &in, 0, &(hone_stop){always, NULL}), HONE_CANCELLED);
    const char hostile[17] = {1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f};
    assert_int_equal(write(fds[0], hostile, sizeof hostile), 17);
    assert_int_equal(hone_frame_read(fds[1], &kind, &token, &in, 0, NULL), HONE_IO);
    close(fds[0]);
    assert_int_equal(hone_frame_read(fds[1], &kind, &token, &in, 0, NULL), HONE_IO);
    close(fds[1]);
    hone_buffer_deinit(&out);
    hone_buffer_deinit(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_out_as_they_went_in),
        cmocka_unit_test(messages_cut_anywhere_fail_without_harm),
        cmocka_unit_test(answers_arrive_with_the_flags_that_they_were_sent_with),
        cmocka_unit_test(a_kernel_is_content_when_its_code_is_all_of_it),
        cmocka_unit_test(code_arrives_as_text_or_as_bytes_and_a_kernel_may_have_none),
        cmocka_unit_test(counts_out_of_range_are_refused),
        cmocka_unit_test(a_worker_that_says_neither_answer_nor_note_is_lost),
        cmocka_unit_test(phases_without_end_come_to_one_where_all_of_them_have_a_limit),
        cmocka_unit_test(frames_travel_and_waiting_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
