// What every platform owes, told once and run for each: conformance_platforms NAME
#include "failing_allocator.h"
#include "hone/hone.h"
#include "platforms/null/null.h"
#include "platforms/platform.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// The platform under test. Set once by main.
static const hone_platform_ops *ops;

typedef struct opened {
    failing_allocator memory;
    hone_platform_instance *instance;
    const hone_device_info *devices;
    size_t count;
} opened;

static hone_status open_with(failing_allocator *memory, long long left, hone_platform_instance **out, hone_error *err)
{
    hone_allocator allocator = failing_allocator_of(memory, left);
    hone_log log = {0};
    return ops->open(&allocator, &log, out, err);
}

static int open_platform(void **state)
{
    opened *o = calloc(1, sizeof *o);
    hone_error err = {0};
    *state = o;
    if (open_with(&o->memory, -1, &o->instance, &err) != HONE_OK) return -1;
    o->devices = ops->devices(o->instance, &o->count);
    return 0;
}

static int close_platform(void **state)
{
    opened *o = *state;
    ops->close(&o->instance);
    long long live = o->memory.live;
    free(o);
    return live == 0 ? 0 : -1;
}

// Devices -------------------------------------------------------------------------------------------------------------

static void the_table_of_ops_is_whole(void **state)
{
    (void)state;
    assert_int_equal(ops->struct_size, sizeof *ops);
    assert_string_equal(ops->facts.name, hone_platform_name(ops->facts.platform));
    assert_non_null(ops->open);
    assert_non_null(ops->close);
    assert_non_null(ops->devices);
    assert_true((ops->allocate == NULL) == (ops->deallocate == NULL));
    assert_true((ops->copy == NULL) == (ops->fill == NULL));
    if (ops != &hone_null_platform) return;
    // The skeleton has an example of each.
    assert_non_null(ops->prepare);
    assert_non_null(ops->release);
    assert_non_null(ops->allocate);
    assert_non_null(ops->copy);
    assert_non_null(ops->synchronize);
    assert_non_null(ops->create_stream);
    assert_non_null(ops->is_capturing);
    assert_non_null(ops->time);
    assert_non_null(ops->disturbed);
    assert_non_null(ops->is_lost);
    assert_non_null(ops->run);
    assert_non_null(ops->visits);
    assert_non_null(ops->describe);
    assert_non_null(ops->check);
    assert_non_null(ops->last_failure);
    assert_non_null(ops->fits);
    assert_non_null(ops->digest);
    assert_non_null(ops->try_file);
}

static void an_open_platform_has_devices_that_are_filled_in(void **state)
{
    opened *o = *state;
    assert_true(o->count > 0);
    for (size_t i = 0; i < o->count; i++) {
        const hone_device_info *device = &o->devices[i];
        assert_int_equal(device->struct_size, sizeof *device);
        assert_int_equal(device->platform, ops->facts.platform);
        assert_true(device->backend == HONE_CPU || device->backend == HONE_GPU || device->backend == HONE_TPU);
        assert_true(device->device.type > 0);
        assert_non_null(device->name);
        assert_true(strlen(device->name) > 0);
        assert_true(device->threads >= 1);
    }
}

static void a_fingerprint_is_one_word_of_two_parts(void **state)
{
    opened *o = *state;
    for (size_t i = 0; i < o->count; i++) {
        const char *fingerprint = o->devices[i].fingerprint;
        assert_non_null(fingerprint);
        const char *bar = strchr(fingerprint, '|');
        assert_non_null(bar);
        assert_true(bar > fingerprint && bar[1] != '\0');
        assert_null(strchr(bar + 1, '|'));
        for (const char *c = fingerprint; *c != '\0'; c++)
            assert_true((unsigned char)*c > ' ' && *c != 0x7f);
    }
}

static void opening_again_gives_the_same_fingerprints(void **state)
{
    opened *o = *state;
    failing_allocator memory;
    hone_platform_instance *second = NULL;
    size_t count = 0;
    assert_int_equal(open_with(&memory, -1, &second, NULL), HONE_OK);
    const hone_device_info *devices = ops->devices(second, &count);
    assert_int_equal(count, o->count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(devices[i].fingerprint, o->devices[i].fingerprint);
    ops->close(&second);
    assert_int_equal(memory.live, 0);
}

static void the_devices_stay_where_they_are(void **state)
{
    opened *o = *state;
    size_t count = 0;
    assert_ptr_equal(ops->devices(o->instance, &count), o->devices);
    assert_int_equal(count, o->count);
}

static void closing_nothing_is_fine_and_closing_sets_to_null(void **state)
{
    (void)state;
    failing_allocator memory;
    hone_platform_instance *instance = NULL;
    ops->close(&instance);
    assert_int_equal(open_with(&memory, -1, &instance, NULL), HONE_OK);
    ops->close(&instance);
    assert_null(instance);
    assert_int_equal(memory.live, 0);
}

static void every_allocation_of_opening_may_fail(void **state)
{
    (void)state;
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK; left++) {
        failing_allocator memory;
        hone_platform_instance *instance = NULL;
        hone_error err = {0};
        status = open_with(&memory, left, &instance, &err);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_true(status == HONE_OK || instance == NULL);
        ops->close(&instance);
        assert_int_equal(memory.live, 0);
        assert_true(left < 1000);
    }
}

// Running -------------------------------------------------------------------------------------------------------------

enum { ELEMENTS = 64 };

static hone_status triple(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const float *x = hone_tensor_data(args[0].as.tensor);
    float *y = hone_tensor_data(args[1].as.tensor);
    for (int i = 0; i < ELEMENTS; i++)
        y[i] = x[i] * (float)plan->config[0];
    return HONE_OK;
}

static hone_status fail_always(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_KERNEL_FAILED;
}

typedef struct counts {
    int prepared, released;
} counts;

static hone_status prepare_counted(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)err;
    counts *seen = plan->kernel->user;
    seen->prepared++;
    *out_state = seen;
    *out_scratch_bytes = 128;
    return HONE_OK;
}

static void release_counted(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    ((counts *)state)->released++;
}

static hone_status prepare_refused(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)out_scratch_bytes;
    strcpy(err->message, "no");
    return HONE_UNAVAILABLE;
}

static hone_kernel kernel_of(hone_run_function *run, counts *seen)
{
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    kernel.algorithm = "triple";
    kernel.name = "plain";
    kernel.platform = ops->facts.platform;
    kernel.backend = HONE_ANY;
    kernel.run = run;
    if (seen != NULL) {
        kernel.user = seen;
        kernel.prepare = prepare_counted;
        kernel.release = release_counted;
    }
    return kernel;
}

static const int64_t by_three[] = {3};

static hone_plan plan_of(const hone_kernel *kernel, const hone_device_info *device)
{
    return (hone_plan){.run = kernel->run, .config = by_three, .kernel = kernel, .device = device};
}

// What the runtime does: the platform's prepare in place of the kernel's, where it has one.
static hone_status prepare(hone_platform_instance *instance, hone_plan *plan, hone_error *err)
{
    if (ops->prepare != NULL) return ops->prepare(instance, plan, &plan->state, &plan->scratch_bytes, err);
    if (plan->kernel->prepare != NULL) return plan->kernel->prepare(plan, &plan->state, &plan->scratch_bytes, err);
    return HONE_OK;
}

static void release(hone_platform_instance *instance, hone_plan *plan)
{
    if (ops->release != NULL)
        ops->release(instance, plan->kernel, plan->state);
    else if (plan->kernel->release != NULL)
        plan->kernel->release(plan->kernel, plan->state);
}

// The arguments of one call, in the host's memory: the platforms of this suite read it.
typedef struct arguments {
    float in[ELEMENTS], out[ELEMENTS];
    int64_t shape[1];
    hone_tensor tensors[2];
    hone_value values[2];
} arguments;

static void fill(arguments *a, const hone_device_info *device)
{
    a->shape[0] = ELEMENTS;
    for (int i = 0; i < ELEMENTS; i++) {
        a->in[i] = (float)i;
        a->out[i] = -1.0f;
    }
    a->tensors[0] = hone_tensor_of(a->in, HONE_F32, 1, a->shape);
    a->tensors[1] = hone_tensor_of(a->out, HONE_F32, 1, a->shape);
    for (int i = 0; i < 2; i++) {
        a->tensors[i].device = device->device;
        a->values[i] = hone_of_tensor(&a->tensors[i]);
    }
}

static bool is_tripled(const arguments *a)
{
    for (int i = 0; i < ELEMENTS; i++)
        if (a->out[i] != 3.0f * (float)i) return false;
    return true;
}

static hone_status run(opened *o, const hone_plan *plan, arguments *a)
{
    fill(a, plan->device);
    hone_execution execution = {.struct_size = sizeof execution};
    hone_status status = plan->run(plan, a->values, &execution);
    if (status == HONE_OK && ops->synchronize != NULL) status = ops->synchronize(o->instance, plan->device, NULL, NULL);
    return status;
}

static void a_kernel_runs_on_every_device(void **state)
{
    opened *o = *state;
    hone_kernel kernel = kernel_of(triple, NULL);
    for (size_t i = 0; i < o->count; i++) {
        arguments a;
        hone_plan plan = plan_of(&kernel, &o->devices[i]);
        assert_int_equal(prepare(o->instance, &plan, NULL), HONE_OK);
        assert_int_equal(run(o, &plan, &a), HONE_OK);
        assert_true(is_tripled(&a));
        release(o->instance, &plan);
    }
}

static void a_kernels_own_prepare_and_release_are_called_once_a_plan(void **state)
{
    opened *o = *state;
    counts seen = {0, 0};
    hone_kernel kernel = kernel_of(triple, &seen);
    hone_plan plan = plan_of(&kernel, &o->devices[0]);
    assert_int_equal(prepare(o->instance, &plan, NULL), HONE_OK);
    assert_int_equal(seen.prepared, 1);
    assert_ptr_equal(plan.state, &seen);
    assert_int_equal(plan.scratch_bytes, 128);
    release(o->instance, &plan);
    assert_int_equal(seen.released, 1);
}

static void a_prepare_that_fails_is_passed_on_with_its_words(void **state)
{
    opened *o = *state;
    hone_kernel kernel = kernel_of(triple, NULL);
    kernel.prepare = prepare_refused;
    hone_plan plan = plan_of(&kernel, &o->devices[0]);
    hone_error err = {0};
    assert_int_equal(prepare(o->instance, &plan, &err), HONE_UNAVAILABLE);
    assert_string_equal(err.message, "no");
    assert_null(plan.state);
}

static void a_kernel_that_fails_says_so_and_the_platform_goes_on(void **state)
{
    opened *o = *state;
    arguments a;
    hone_kernel failing = kernel_of(fail_always, NULL);
    hone_kernel working = kernel_of(triple, NULL);
    hone_plan bad = plan_of(&failing, &o->devices[0]);
    hone_plan good = plan_of(&working, &o->devices[0]);
    assert_int_equal(prepare(o->instance, &bad, NULL), HONE_OK);
    assert_int_equal(prepare(o->instance, &good, NULL), HONE_OK);
    assert_int_equal(run(o, &bad, &a), HONE_KERNEL_FAILED);
    assert_int_equal(run(o, &good, &a), HONE_OK);
    assert_true(is_tripled(&a));
    release(o->instance, &bad);
    release(o->instance, &good);
}

typedef struct racer {
    opened *o;
    int wrong;
} racer;

static void *run_many_times(void *ctx)
{
    racer *r = ctx;
    hone_kernel kernel = kernel_of(triple, NULL);
    for (int i = 0; i < 200; i++) {
        arguments a;
        size_t count = 0;
        hone_plan plan = plan_of(&kernel, ops->devices(r->o->instance, &count));
        if (prepare(r->o->instance, &plan, NULL) != HONE_OK || run(r->o, &plan, &a) != HONE_OK || !is_tripled(&a))
            r->wrong++;
        release(r->o->instance, &plan);
    }
    return NULL;
}

static void two_threads_prepare_and_run_at_the_same_time(void **state)
{
    racer racers[2] = {{*state, 0}, {*state, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many_times, &racers[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].wrong, 0);
    }
}

// Memory --------------------------------------------------------------------------------------------------------------

static void memory_is_aligned_writable_and_given_back(void **state)
{
    opened *o = *state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000};
    if (ops->allocate == NULL) return; // the host's memory serves, and there is nothing to hold it to
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *memory = NULL;
        assert_int_equal(ops->allocate(o->instance, &o->devices[0], sizes[i], &memory, NULL), HONE_OK);
        assert_non_null(memory);
        if (ops->view_align == 0) assert_int_equal((uintptr_t)memory % 64, 0);
        if (o->devices[0].device.type == HONE_DEVICE_CPU) memset(memory, 0xab, sizes[i]);
        ops->deallocate(o->instance, &o->devices[0], memory, sizes[i]);
    }
    ops->deallocate(o->instance, &o->devices[0], NULL, 0);
}

static void memory_that_cannot_be_had_is_refused_with_words(void **state)
{
    opened *o = *state;
    if (ops->allocate == NULL) return; // the host's memory serves, and there is nothing to hold it to
    void *memory = NULL;
    hone_error err = {0};
    assert_int_not_equal(ops->allocate(o->instance, &o->devices[0], SIZE_MAX, &memory, &err), HONE_OK);
    assert_null(memory);
    assert_true(strlen(err.message) > 0);
    if (o->devices[0].device.type != HONE_DEVICE_CPU) return; // a driver's memory: the rest is of the host's
    hone_device_info other = o->devices[0];
    assert_int_equal(ops->allocate(o->instance, &other, 64, &memory, &err), HONE_INVALID_ARGUMENT);
    assert_null(memory);
    o->memory.left = 0;
    assert_int_equal(ops->allocate(o->instance, &o->devices[0], 64, &memory, &err), HONE_OUT_OF_MEMORY);
    o->memory.left = -1;
}

static void bytes_go_where_they_are_sent_and_nowhere_else(void **state)
{
    enum { SIZE = 10000, FROM = 4096, COUNT = 77 };
    opened *o = *state;
    static unsigned char sent[COUNT], back[SIZE];
    void *memory = NULL, *other = NULL;
    if (ops->copy == NULL || ops->allocate == NULL) return; // the host's memory serves
    const hone_device_info *device = &o->devices[0];
    for (int i = 0; i < COUNT; i++)
        sent[i] = (unsigned char)(i + 1);
    assert_int_equal(ops->allocate(o->instance, device, SIZE, &memory, NULL), HONE_OK);
    assert_int_equal(ops->allocate(o->instance, device, SIZE, &other, NULL), HONE_OK);
    const hone_place whole = {memory, 0}, inside = {memory, FROM}, copy = {other, 0};
    const hone_place from = {sent, 0}, to = {back, 0};
    assert_int_equal(ops->fill(o->instance, device, whole, 0xd7, SIZE, NULL), HONE_OK);
    assert_int_equal(ops->copy(o->instance, device, HONE_COPY_IN, inside, from, COUNT, NULL), HONE_OK);
    assert_int_equal(ops->copy(o->instance, device, HONE_COPY_WITHIN, copy, whole, SIZE, NULL), HONE_OK);
    assert_int_equal(ops->copy(o->instance, device, HONE_COPY_OUT, to, copy, SIZE, NULL), HONE_OK);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(back[i], i < FROM || i >= FROM + COUNT ? 0xd7 : sent[i - FROM]);
    assert_int_equal(ops->copy(o->instance, device, HONE_COPY_IN, whole, from, 0, NULL), HONE_OK);
    ops->deallocate(o->instance, device, memory, SIZE);
    ops->deallocate(o->instance, device, other, SIZE);
}

// Streams and time ----------------------------------------------------------------------------------------------------

static void a_stream_is_made_waited_for_and_given_back_and_nothing_is_captured(void **state)
{
    opened *o = *state;
    const hone_device_info *device = &o->devices[0];
    void *stream = NULL;
    assert_true((ops->create_stream == NULL) == (ops->destroy_stream == NULL));
    if (ops->create_stream != NULL) {
        assert_int_equal(ops->create_stream(o->instance, device, &stream, NULL), HONE_OK);
        assert_non_null(stream);
    }
    if (ops->synchronize != NULL) assert_int_equal(ops->synchronize(o->instance, device, stream, NULL), HONE_OK);
    if (ops->is_capturing != NULL) assert_false(ops->is_capturing(o->instance, device, stream));
    if (ops->destroy_stream != NULL) ops->destroy_stream(o->instance, device, stream);
}

typedef struct timed {
    opened *o;
    hone_plan *plan;
    arguments a;
    uint32_t runs, most; // fails when it is started more often
} timed;

static hone_status run_once(void *ctx)
{
    timed *t = ctx;
    hone_execution execution = {.struct_size = sizeof execution};
    if (++t->runs > t->most) return HONE_KERNEL_FAILED;
    return t->plan->run(t->plan, t->a.values, &execution);
}

static void time_is_that_of_all_runs_and_of_none_that_failed(void **state)
{
    opened *o = *state;
    double ns = -1;
    if (ops->time == NULL || o->devices[0].device.type != HONE_DEVICE_CPU) return; // a driver times its own launches
    hone_kernel kernel = kernel_of(triple, NULL);
    hone_plan plan = plan_of(&kernel, &o->devices[0]);
    timed t = {.o = o, .plan = &plan, .most = 3};
    fill(&t.a, plan.device);
    assert_int_equal(prepare(o->instance, &plan, NULL), HONE_OK);
    hone_timed_runs runs = {.device = plan.device, .count = 3, .run = run_once, .ctx = &t};
    assert_int_equal(ops->time(o->instance, &runs, &ns, NULL), HONE_OK);
    assert_true(ns >= 0);
    assert_int_equal(t.runs, 3);
    assert_true(is_tripled(&t.a));
    assert_int_not_equal(ops->time(o->instance, &runs, &ns, NULL), HONE_OK);
    release(o->instance, &plan);
}

static void what_disturbs_a_device_is_told_in_bits_of_devices_alone_or_why_it_is_not_known(void **state)
{
    opened *o = *state;
    hone_error err = {.message = ""};
    unsigned marks = 0;
    if (ops->disturbed == NULL) return;
    hone_status began = ops->disturbed(o->instance, &o->devices[0], NULL, &err);
    hone_status status = ops->disturbed(o->instance, &o->devices[0], &marks, &err);
    assert_int_equal(status, began);
    assert_int_equal(marks & ~(unsigned)HONE_DEVICE_ANY, 0);
    if (status == HONE_OK) return;
    assert_int_equal(status, HONE_UNAVAILABLE);
    assert_true(strlen(err.message) > 0);
}

// Words ---------------------------------------------------------------------------------------------------------------

static void a_platform_that_works_is_not_lost_and_has_no_failure_to_tell(void **state)
{
    opened *o = *state;
    hone_error err = {.message = ""};
    if (ops->is_lost != NULL) assert_false(ops->is_lost(o->instance));
    if (ops->last_failure != NULL) assert_false(ops->last_failure(o->instance, &err));
}

static void it_describes_itself_open_or_not(void **state)
{
    opened *o = *state;
    hone_buffer words;
    hone_buffer_init(&words, hone_allocator_system());
    if (ops->describe == NULL) return;
    ops->describe(o->instance, &words);
    ops->describe(NULL, &words);
    assert_false(words.failed);
    hone_buffer_deinit(&words);
}

static void it_visits_the_hosts_that_it_names_and_no_other_hardware(void **state)
{
    opened *o = *state;
    hone_device_info other = o->devices[0];
    hone_error err = {.message = ""};
    assert_true((ops->visits == NULL) == (ops->facts.hosts[0] == HONE_PLATFORM_NONE));
    if (ops->visits == NULL) return;
    assert_int_equal(ops->visits(o->instance, &o->devices[0], &err), HONE_OK);
    other.backend = HONE_TPU;
    assert_int_equal(ops->visits(o->instance, &other, &err), HONE_UNAVAILABLE);
    assert_true(strlen(err.message) > 0);
}

static void a_file_that_is_not_there_is_tried_and_refused_with_words(void **state)
{
    (void)state;
    const hone_pack_file gone = {.name = "gone.so", .path = "/nowhere/gone.so"};
    hone_error err = {.message = ""};
    if (ops->try_file == NULL) return;
    assert_int_not_equal(ops->try_file(&gone, "entry", &err), HONE_OK);
    assert_non_null(strstr(err.message, "gone.so"));
}

#define platform_test(f) cmocka_unit_test_setup_teardown(f, open_platform, close_platform)

static const hone_platform_ops *find(const char *name)
{
    hone_platform platform = HONE_PLATFORM_NONE;
    if (hone_platform_parse(name, &platform, NULL) != HONE_OK) return NULL;
    const hone_platform_ops *found = hone_platform_ops_of(platform);
    return found != NULL && found->open != NULL ? found : NULL;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_ops_is_whole),
        platform_test(an_open_platform_has_devices_that_are_filled_in),
        platform_test(a_fingerprint_is_one_word_of_two_parts),
        platform_test(opening_again_gives_the_same_fingerprints),
        platform_test(the_devices_stay_where_they_are),
        cmocka_unit_test(closing_nothing_is_fine_and_closing_sets_to_null),
        cmocka_unit_test(every_allocation_of_opening_may_fail),
        platform_test(a_kernel_runs_on_every_device),
        platform_test(a_kernels_own_prepare_and_release_are_called_once_a_plan),
        platform_test(a_prepare_that_fails_is_passed_on_with_its_words),
        platform_test(a_kernel_that_fails_says_so_and_the_platform_goes_on),
        platform_test(two_threads_prepare_and_run_at_the_same_time),
        platform_test(memory_is_aligned_writable_and_given_back),
        platform_test(memory_that_cannot_be_had_is_refused_with_words),
        platform_test(bytes_go_where_they_are_sent_and_nowhere_else),
        platform_test(a_stream_is_made_waited_for_and_given_back_and_nothing_is_captured),
        platform_test(time_is_that_of_all_runs_and_of_none_that_failed),
        platform_test(what_disturbs_a_device_is_told_in_bits_of_devices_alone_or_why_it_is_not_known),
        platform_test(a_platform_that_works_is_not_lost_and_has_no_failure_to_tell),
        platform_test(it_describes_itself_open_or_not),
        cmocka_unit_test(a_file_that_is_not_there_is_tried_and_refused_with_words),
        platform_test(it_visits_the_hosts_that_it_names_and_no_other_hardware),
    };
    ops = argc == 2 ? find(argv[1]) : NULL;
    if (ops == NULL) {
        fprintf(stderr, "usage: conformance_platforms PLATFORM, one that can be opened\n");
        return 2;
    }
    return cmocka_run_group_tests_name(ops->facts.name, tests, NULL, NULL);
}
