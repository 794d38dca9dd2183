// The handler of hone_call, called as XLA calls it.
#include "fake_xla.h"
#include "temporary_folder.h"
#include "xla_ffi/memory.h"
#include "xla_ffi/threads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 4, DIM = 64 };

static hone_runtime *rt;
static _Alignas(64) float x[ROWS][DIM], w[DIM], y[ROWS][DIM];
static int64_t matrix[] = {ROWS, DIM}, vector[] = {DIM};

// A frame of rms_norm. eps stays the caller's.
static void norm_frame(fake_xla_frame *out, const float *eps)
{
    fake_xla_init(out);
    fake_xla_argument(out, XLA_FFI_F32, x, 2, matrix);
    fake_xla_argument(out, XLA_FFI_F32, w, 1, vector);
    fake_xla_result(out, XLA_FFI_F32, y, 2, matrix);
    if (eps != NULL) fake_xla_scalar(out, "eps", XLA_FFI_F32, eps);
    fake_xla_string(out, "hone_algorithm", "rms_norm");
}

static int set_up(void **state)
{
    (void)state;
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    for (int i = 0; i < DIM; i++) {
        w[i] = 1;
        for (int row = 0; row < ROWS; row++)
            x[row][i] = (float)(row + 1);
    }
    if (hone_runtime_open(&options, &rt, NULL) != HONE_OK) return -1;
    hone_xla_use(rt);
    return 0;
}

// The runtime stays open: sites are for ever.
static int tear_down(void **state)
{
    (void)state;
    fake_xla_join();
    return 0;
}

static void a_call_runs_and_reads_its_attributes(void **state)
{
    (void)state;
    fake_xla_frame frame;
    for (float eps = 0; eps < 4; eps += 1) {
        norm_frame(&frame, &eps);
        assert_null(hone_xla_call_cpu(&frame.frame));
        for (int row = 0; row < ROWS; row++) {
            float value = (float)(row + 1);
            assert_float_equal(y[row][5], value / sqrtf(value * value + eps), 1e-5f);
        }
    }
}

static void another_call_at_the_same_address_is_another_call(void **state)
{
    (void)state;
    fake_xla_frame frame;
    float eps = 8;
    norm_frame(&frame, &eps);
    assert_null(hone_xla_call_cpu(&frame.frame));
    assert_float_equal(y[0][0], 1.0f / 3, 1e-5f);
    eps = 3; // the same memory says something else
    assert_null(hone_xla_call_cpu(&frame.frame));
    assert_float_equal(y[0][0], 1.0f / 2, 1e-5f);
}

static void the_metadata_are_answered(void **state)
{
    (void)state;
    xla_ffi_metadata metadata = {.struct_size = sizeof metadata, .traits = 7};
    xla_ffi_metadata_extension extension = {{sizeof extension, XLA_FFI_EXTENSION_METADATA, NULL}, &metadata};
    xla_ffi_frame frame = {.struct_size = sizeof frame, .extension = &extension.extension};
    xla_ffi_handler *const handlers[] = {hone_xla_call_cpu, hone_xla_call_cuda};
    for (int i = 0; i < 2; i++) {
        metadata.api_version.minor = -1;
        assert_null(handlers[i](&frame));
        assert_int_equal(metadata.api_version.major, 0);
        assert_int_equal(metadata.api_version.minor, 1);
        assert_int_equal(metadata.traits, 0);
    }
}

static void to_instantiate_looks_at_attributes_alone(void **state)
{
    (void)state;
    fake_xla_frame frame;
    fake_xla_init(&frame);
    frame.frame.stage = XLA_FFI_INSTANTIATE;
    fake_xla_string(&frame, "hone_algorithm", "rms_norm");
    assert_null(hone_xla_call_cpu(&frame.frame));
    fake_xla_string(&frame, "hone_version", "9");
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_int_equal(fake_xla_code, XLA_FFI_NOT_FOUND);
}

static void wrong_frames_say_what_is_asked(void **state)
{
    (void)state;
    fake_xla_frame frame;
    norm_frame(&frame, NULL);
    frame.frame.arguments.size = 1;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_int_equal(fake_xla_code, XLA_FFI_INVALID_ARGUMENT);
    assert_non_null(strstr(fake_xla_message, "expected 2 arrays, got 1: rms_norm(x: T[..., dim]"));
    norm_frame(&frame, NULL);
    frame.buffers[1].dtype = 99;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "weight is an array of XLA's type 99"));
    norm_frame(&frame, NULL);
    frame.buffers[0].rank = -1;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    norm_frame(&frame, NULL);
    frame.attribute_types[0] = XLA_FFI_ARRAY;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "hone_algorithm is neither a string nor a scalar"));
    norm_frame(&frame, NULL);
    frame.frame.attributes.size = 65; // not one of them is looked at
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "65 attributes"));
}

enum { STACK = 3 };

static float stack[STACK][ROWS][DIM];

// A frame of rms_norm whose x is one of a stack.
static void stack_frame(fake_xla_frame *out, const int64_t *sliced, int64_t *dims, int32_t *index)
{
    fake_xla_init(out);
    fake_xla_argument(out, XLA_FFI_F32, stack, 3, dims);
    fake_xla_argument(out, XLA_FFI_F32, w, 1, vector);
    fake_xla_argument(out, XLA_FFI_S32, index, 0, NULL);
    fake_xla_result(out, XLA_FFI_F32, y, 2, matrix);
    fake_xla_scalar(out, "hone_sliced", XLA_FFI_S64, sliced);
    fake_xla_string(out, "hone_algorithm", "rms_norm");
}

static void one_of_a_stack_is_read_where_it_lies(void **state)
{
    (void)state;
    const int32_t asked[] = {0, 1, 2, -7, 9, INT32_MIN, INT32_MAX}, read[] = {0, 1, 2, 0, 2, 0, 2};
    int64_t dims[] = {STACK, ROWS, DIM}, sliced = 1;
    for (int i = 0; i < STACK; i++)
        for (int row = 0; row < ROWS; row++)
            for (int k = 0; k < DIM; k++)
                stack[i][row][k] = k == 0 ? (float)(i * 10 + row + 1) : 1; // each row's norm is its own
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int32_t index = asked[i];
        fake_xla_frame frame;
        stack_frame(&frame, &sliced, dims, &index);
        assert_null(hone_xla_call_cpu(&frame.frame));
        for (int row = 0; row < ROWS; row++) {
            float first = (float)(read[i] * 10 + row + 1);
            assert_float_equal(y[row][0], first / sqrtf((first * first + DIM - 1) / DIM), 1e-4f);
        }
    }
}

static void wrong_stacks_say_what_is_asked(void **state)
{
    (void)state;
    int64_t dims[] = {STACK, ROWS, DIM}, none[] = {0, ROWS, DIM}, sliced = 1, scalar = 2, more = 4;
    int32_t index = 0;
    fake_xla_frame frame;
    stack_frame(&frame, &sliced, none, &index);
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "x is asked for as one of a stack"));
    stack_frame(&frame, &scalar, dims, &index);
    frame.buffers[1].rank = 0;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "weight is asked for as one of a stack"));
    stack_frame(&frame, &more, dims, &index);
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "hone_sliced is 0x4, and rms_norm gets 2 arrays here"));
    stack_frame(&frame, &sliced, dims, &index);
    frame.buffers[2].dtype = XLA_FFI_S64;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "the number of a slice is an s32 of rank 0"));
    stack_frame(&frame, &sliced, dims, &index);
    frame.frame.arguments.size = 2;
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_non_null(strstr(fake_xla_message, "expected 3 arrays, got 2"));
    stack_frame(&frame, &sliced, dims, &index);
    assert_non_null(hone_xla_call_cuda(&frame.frame));
    assert_int_equal(fake_xla_code, XLA_FFI_UNIMPLEMENTED);
}

static void a_context_is_found_by_its_digest_and_never_tunes(void **state)
{
    (void)state;
    hone_override reference = {.algorithm = "rms_norm", .kernel = "nobody"};
    hone_context *context = NULL, *tuning = NULL;
    assert_int_not_equal(hone_context_derive(rt, NULL, NULL, &reference, HONE_POLICY_DEFAULT, &context, NULL), HONE_OK);
    assert_int_equal(hone_context_derive(rt, NULL, NULL, NULL, HONE_POLICY_FAIL, &context, NULL), HONE_OK);
    assert_int_equal(hone_context_derive(rt, NULL, NULL, NULL, HONE_POLICY_TUNE, &tuning, NULL), HONE_OK);
    assert_int_equal(hone_xla_add_context(context, NULL), HONE_OK);
    assert_int_equal(hone_xla_add_context(tuning, NULL), HONE_OK);
    int64_t digest = (int64_t)hone_context_digest(context);
    fake_xla_frame frame;
    norm_frame(&frame, NULL);
    fake_xla_scalar(&frame, "hone_context", XLA_FFI_S64, &digest);
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_int_equal(fake_xla_code, XLA_FFI_NOT_FOUND);
    digest = (int64_t)hone_context_digest(tuning);
    assert_null(hone_xla_call_cpu(&frame.frame)); // the heuristic: a contest would take seconds and need a worker
    digest = 1000000;
    assert_null(hone_xla_call_cpu(&frame.frame));
    hone_context_release(&context);
    hone_context_release(&tuning);
}

// XLA keeps programs for longer than a runtime may be the one that calls are made with.
static void a_context_of_an_earlier_runtime_is_still_found(void **state)
{
    (void)state;
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    hone_override choice = {.algorithm = "softmax", .kernel = "reference"};
    hone_runtime *other = NULL;
    hone_context *failing = NULL;
    assert_int_equal(hone_context_derive(rt, NULL, NULL, &choice, HONE_POLICY_FAIL, &failing, NULL), HONE_OK);
    assert_int_equal(hone_xla_add_context(failing, NULL), HONE_OK);
    assert_int_equal(hone_runtime_open(&options, &other, NULL), HONE_OK);
    hone_xla_use(other);
    int64_t digest = (int64_t)hone_context_digest(failing);
    fake_xla_frame frame;
    norm_frame(&frame, NULL);
    fake_xla_scalar(&frame, "hone_context", XLA_FFI_S64, &digest);
    assert_non_null(hone_xla_call_cpu(&frame.frame));
    assert_int_equal(fake_xla_code, XLA_FFI_NOT_FOUND);
    hone_xla_use(rt);
    hone_context_release(&failing);
}

// 256: what is lent now; then none is left; then XLA is too old to lend any.
static void memory_is_xlas_while_it_lends_some(void **state)
{
    (void)state;
    fake_xla_frame frame;
    fake_xla_init(&frame);
    void *memory = hone_xla_take(&frame.frame, 256);
    assert_non_null(memory);
    assert_int_equal(fake_xla_lent, 256);
    hone_xla_give_back(&frame.frame, memory, 256);
    assert_int_equal(fake_xla_lent, 0);
    assert_null(hone_xla_take(&frame.frame, (size_t)1 << 40));
    xla_ffi_api old = *frame.frame.api;
    old.struct_size = offsetof(xla_ffi_api, memory_free);
    frame.frame.api = &old;
    assert_null(hone_xla_take(&frame.frame, 256));
}

static void what_was_prepared_is_what_runs(void **state)
{
    (void)state;
    hone_call *call = NULL;
    const hone_op *op = hone_op_find(rt, "rms_norm", NULL);
    assert_int_equal(
        hone_call_parse((hone_allocator){0}, hone_op_signature(op), "rms_norm(f32[4,64], f32[64])", &call, NULL),
        HONE_OK);
    assert_int_equal(hone_xla_prepare(op, call, NULL, NULL), HONE_OK);
    hone_call_release(&call);
    fake_xla_frame frame;
    norm_frame(&frame, NULL);
    assert_null(hone_xla_call_cpu(&frame.frame));
}

typedef struct counted {
    atomic_int each[100];
} counted;

static void count(void *ctx, int64_t index)
{
    atomic_fetch_add(&((counted *)ctx)->each[index], 1);
}

// Threads, none, an error in place of their number, and a pool that refuses its tasks.
static void every_index_is_run_once_whatever_xla_lends(void **state)
{
    (void)state;
    const int64_t lends[] = {3, 1, 0, -4};
    fake_xla_frame frame;
    fake_xla_init(&frame);
    hone_xla_pool pool = {frame.frame.api, NULL};
    for (int i = 0; i < 4; i++)
        for (int round = 0; round < 20; round++) {
            counted all = {0};
            fake_xla_threads = lends[i];
            hone_xla_parallel_for(&pool, 100, count, &all);
            for (int k = 0; k < 100; k++)
                assert_int_equal(all.each[k], 1);
            fake_xla_join();
        }
}

// A program that knows XLA alone: the runtime is opened by the first call, and never closed.
static int call_alone(void)
{
    fake_xla_frame frame;
    int failed = 0;
    norm_frame(&frame, NULL);
    for (int i = 0; i < 100; i++)
        failed += hone_xla_call_cpu(&frame.frame) != NULL;
    fake_xla_join();
    return failed;
}

static bool add_count(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    *(uint64_t *)ctx += invocation->count;
    return true;
}

static void what_such_a_program_recorded_is_there_when_it_has_ended(void **state)
{
    (void)state;
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    hone_store *store = NULL;
    uint64_t count = 0;
    int end = -1;
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder.path);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv("HONE_STORE", url, 1);
        setenv("HONE_RECORD", "1", 1);
        execl("/proc/self/exe", "test_xla_ffi", "alone", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, NULL), HONE_OK);
    assert_int_equal(hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, add_count, &count, NULL), HONE_OK);
    assert_int_equal(count, 100);
    hone_store_close(&store);
    temporary_folder_remove(&folder);
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "alone") == 0) return call_alone();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_runs_and_reads_its_attributes),
        cmocka_unit_test(another_call_at_the_same_address_is_another_call),
        cmocka_unit_test(the_metadata_are_answered),
        cmocka_unit_test(to_instantiate_looks_at_attributes_alone),
        cmocka_unit_test(wrong_frames_say_what_is_asked),
        cmocka_unit_test(one_of_a_stack_is_read_where_it_lies),
        cmocka_unit_test(wrong_stacks_say_what_is_asked),
        cmocka_unit_test(a_context_is_found_by_its_digest_and_never_tunes),
        cmocka_unit_test(a_context_of_an_earlier_runtime_is_still_found),
        cmocka_unit_test(memory_is_xlas_while_it_lends_some),
        cmocka_unit_test(what_was_prepared_is_what_runs),
        cmocka_unit_test(what_such_a_program_recorded_is_there_when_it_has_ended),
        cmocka_unit_test(every_index_is_run_once_whatever_xla_lends),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
