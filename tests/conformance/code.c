// What every platform owes the kernels that it runs, told once and run for each: conformance_code NAME, one of rows.c.
// Kernels come as a pack: load, launch at odd shapes between guard bytes, wrong arguments, code that does not load, a
// contest against kernels that fail, write too far and hang, scalars and parameters, a number for equal code, unload,
// memory that runs out, two threads, two devices where there are two, error details.
#include "failing_allocator.h"
#include "platforms/platform.h"
#include "registry/names.h"
#include "rows.h"
#include "runtime/api/inner.h"
#include "runtime/state/runtime.h"
#include "temporary_folder.h"
#include "tune/result/result.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MARGIN = 4096, GUARD = 0xd7, MOST = 1024 };

// The platform under test. Set once by main.
static const row *the_row;

typedef struct ground {
    temporary_folder folder;
    failing_allocator memory; // the runtime's
    hone_runtime *rt;
    const hone_op *op;
    hone_context *context;
    // The platform of the device, opened a second time, for the caller's memory; NULL: the host's.
    const hone_platform_ops *ops;
    hone_platform_instance *instance;
    const hone_device_info *devices;
    size_t count;
    hone_error err;
} ground;

static bool on_host(void)
{
    return the_row->device == HONE_DEVICE_CPU;
}

// The runtime ---------------------------------------------------------------------------------------------------------

static void open_ground(ground *g, unsigned samples)
{
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .device_locks = "none", .flags = HONE_RUNTIME_NO_BUILTINS};
    static const hone_log silent = {0};
    memset(g, 0, sizeof *g);
    assert_int_equal(temporary_folder_make(&g->folder), 0);
    row_write_pack(the_row, samples, g->folder.path);
    options.allocator = failing_allocator_of(&g->memory, -1);
    assert_int_equal(hone_runtime_open(&options, &g->rt, &g->err), HONE_OK);
    if (hone_pack_load(g->rt, g->folder.path, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    g->op = hone_op_find(g->rt, "scale", &g->err);
    assert_non_null(g->op);
    if (on_host()) return;
    const hone_allocator system = hone_allocator_system();
    g->ops = hone_platform_ops_of(hone_platform_home(the_row->platform));
    if (g->ops->open(&system, &silent, &g->instance, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    g->devices = g->ops->devices(g->instance, &g->count);
}

// Every byte of the runtime was given back.
static void close_ground(ground *g)
{
    hone_context_release(&g->context);
    hone_runtime_close(&g->rt);
    if (g->instance != NULL) g->ops->close(&g->instance);
    temporary_folder_remove(&g->folder);
    assert_int_equal(g->memory.live, 0);
}

static bool lacks(sample k)
{
    if (the_row->variants[k].text != NULL) return false;
    print_message("not asked: there is no %s sample\n", row_samples[k]);
    return true;
}

// Binds the kernel of a sample, and no other. config: JSON; NULL: its default.
static hone_status bind_config(ground *g, sample k, const char *config, const hone_value *args, const hone_plan **out)
{
    const hone_override chosen = {
        .algorithm = row_algorithm(k), .kernel = row_samples[k], .platform = the_row->platform, .config = config};
    hone_context_release(&g->context);
    hone_status status = hone_context_derive(g->rt, NULL, NULL, &chosen, HONE_POLICY_DEFAULT, &g->context, &g->err);
    if (status != HONE_OK) return status;
    const hone_op *op = k == SHIFTED ? hone_op_find(g->rt, row_algorithm(k), &g->err) : g->op;
    assert_non_null(op);
    hone_context_enter(g->context);
    status = hone_bind(op, args, k == SHIFTED ? 3 : 2, out, &g->err);
    hone_context_enter(NULL);
    return status;
}

static hone_status bind(ground *g, sample k, const hone_value *args, const hone_plan **out)
{
    return bind_config(g, k, NULL, args, out);
}

// Arguments of a call -------------------------------------------------------------------------------------------------

// One tensor between guard bytes, wherever the device has its memory.
typedef struct block {
    void *memory;
    size_t size;
    hone_tensor tensor;
} block;

typedef struct call {
    int64_t shape[1];
    block x, y;
    hone_value args[2];
} call;

static void copy(ground *g, int device, hone_copy way, void *to, void *from, size_t size)
{
    if (on_host()) {
        memcpy(to, from, size);
        return;
    }
    hone_status status =
        g->ops->copy(g->instance, &g->devices[device], way, (hone_place){to, 0}, (hone_place){from, 0}, size, &g->err);
    if (status != HONE_OK) fail_msg("%s", g->err.message);
}

static void make_block(ground *g, int device, int64_t *shape, const float *values, block *out)
{
    static unsigned char host[2 * MARGIN + MOST * sizeof(float)];
    const size_t bytes = (size_t)shape[0] * sizeof(float);
    out->size = bytes + 2 * MARGIN;
    if (on_host())
        out->memory = aligned_alloc(64, (out->size + 63) / 64 * 64);
    else if (g->ops->allocate(g->instance, &g->devices[device], out->size, &out->memory, &g->err) != HONE_OK)
        fail_msg("%s", g->err.message);
    memset(host, GUARD, out->size);
    if (values != NULL) memcpy(host + MARGIN, values, bytes);
    copy(g, device, HONE_COPY_IN, out->memory, host, out->size);
    out->tensor = hone_tensor_of(out->memory, HONE_F32, 1, shape);
    out->tensor.byte_offset = MARGIN;
    out->tensor.device = (hone_device){the_row->device, device};
}

static void drop_block(ground *g, int device, block *b)
{
    if (on_host())
        free(b->memory);
    else
        g->ops->deallocate(g->instance, &g->devices[device], b->memory, b->size);
}

static void make_call(ground *g, int device, int64_t n, call *out)
{
    float values[MOST];
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)i + 0.5f;
    out->shape[0] = n;
    make_block(g, device, out->shape, values, &out->x);
    make_block(g, device, out->shape, NULL, &out->y);
    out->args[0] = hone_of_tensor(&out->x.tensor);
    out->args[1] = hone_of_tensor(&out->y.tensor);
}

static void drop_call(ground *g, int device, call *c)
{
    drop_block(g, device, &c->x);
    drop_block(g, device, &c->y);
}

static bool is_guard(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != GUARD) return false;
    return true;
}

// Whether y is factor * x + shift, and nothing beside it was written.
static bool is_line(ground *g, int device, const call *c, float factor, float shift)
{
    unsigned char back[2 * MARGIN + MOST * sizeof(float)];
    const size_t n = (size_t)c->shape[0], bytes = n * sizeof(float);
    copy(g, device, HONE_COPY_OUT, back, c->y.memory, c->y.size);
    if (!is_guard(back, MARGIN) || !is_guard(back + MARGIN + bytes, MARGIN)) return false;
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, back + MARGIN + i * sizeof value, sizeof value);
        if (value != factor * ((float)i + 0.5f) + shift) return false;
    }
    return true;
}

static bool is_scaled(ground *g, int device, const call *c)
{
    return is_line(g, device, c, the_row->factor, 0);
}

// Until it is done.
static hone_status run_args(ground *g, int device, const hone_plan *plan, const hone_value *args)
{
    hone_status status = plan->run(plan, args, NULL);
    if (status == HONE_OK && g->instance != NULL && g->ops->synchronize != NULL)
        status = g->ops->synchronize(g->instance, &g->devices[device], NULL, NULL);
    return status;
}

static bool run(ground *g, int device, const hone_plan *plan, const call *c)
{
    return run_args(g, device, plan, c->args) == HONE_OK && is_scaled(g, device, c);
}

static void run_right(ground *g, int device, int64_t n)
{
    call c;
    const hone_plan *plan = NULL;
    make_call(g, device, n, &c);
    if (bind(g, RIGHT, c.args, &plan) != HONE_OK) fail_msg("%s", g->err.message);
    if (!run(g, device, plan, &c)) fail_msg("n = %lld on device %d", (long long)n, device);
    hone_plan_release(&plan);
    drop_call(g, device, &c);
}

// Tests ---------------------------------------------------------------------------------------------------------------

static void a_kernel_is_loaded_and_launched_at_odd_shapes_between_guard_bytes(void **state)
{
    static const int64_t shapes[] = {1, 2, 3, 17, 63, 64, 65, 127, 129, 1000};
    ground g;
    (void)state;
    open_ground(&g, 1u << RIGHT);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        run_right(&g, 0, shapes[i]);
    close_ground(&g);
}

static void arguments_that_do_not_fit_the_algorithm_are_refused_with_words(void **state)
{
    ground g;
    call c, longer;
    const hone_plan *plan = NULL;
    (void)state;
    open_ground(&g, 1u << RIGHT);
    make_call(&g, 0, 65, &c);
    make_call(&g, 0, 66, &longer);
    hone_tensor whole = c.x.tensor, nothing = c.y.tensor;
    whole.dtype = hone_dtype_info_of(HONE_I32)->dtype;
    nothing.data = NULL;
    const hone_value wrong[][2] = {
        {c.args[0], longer.args[1]},
        {hone_of_tensor(&whole), c.args[1]},
        {hone_of_float(1), c.args[1]},
        {c.args[0], hone_of_tensor(&nothing)},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(bind(&g, RIGHT, wrong[i], &plan), HONE_OK);
        assert_true(strlen(g.err.message) > 10);
    }
    assert_int_equal(hone_bind(g.op, c.args, 1, &plan, &g.err), HONE_INVALID_ARGUMENT);
    drop_call(&g, 0, &c);
    drop_call(&g, 0, &longer);
    run_right(&g, 0, 65);
    close_ground(&g);
}

typedef struct refusal {
    const char *kernel;
    char words[1024];
} refusal;

static bool note_refusal(void *ctx, const hone_pack_entry *entry)
{
    refusal *r = ctx;
    if (strcmp(entry->kernel, r->kernel) == 0 && entry->reason != NULL)
        snprintf(r->words, sizeof r->words, "%s", entry->reason);
    return true;
}

// Arguments that the code does not take, and what is not code.
static void what_does_not_load_is_refused_with_words_and_the_next_runs(void **state)
{
    static const sample samples[] = {BROKEN, MISLISTED};
    ground g;
    call c;
    const hone_plan *plan = NULL;
    (void)state;
    open_ground(&g, 1u << RIGHT | 1u << BROKEN | 1u << MISLISTED);
    make_call(&g, 0, 65, &c);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const variant *v = &the_row->variants[samples[i]];
        if (lacks(samples[i])) continue;
        refusal found = {.kernel = row_samples[samples[i]]};
        if (bind(&g, samples[i], c.args, &plan) == HONE_OK) {
            // What the pack's check refuses never runs: another one answers.
            assert_string_not_equal(plan->kernel->name, row_samples[samples[i]]);
            hone_plan_release(&plan);
            assert_int_equal(hone_pack_list(g.rt, note_refusal, &found, &g.err), HONE_OK);
        } else {
            snprintf(found.words, sizeof found.words, "%s", g.err.message);
        }
        if (strstr(found.words, v->refused) == NULL) fail_msg("'%s' is not in: %s", v->refused, found.words);
    }
    drop_call(&g, 0, &c);
    run_right(&g, 0, 65);
    close_ground(&g);
}

// In a worker. Each candidate may wait long for a machine that is busy with something else.
static hone_status tune(ground *g, double seconds, double candidate_seconds, hone_result **out)
{
    char text[64];
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = seconds,
        .evaluations = 8,
        .candidate_seconds = candidate_seconds,
        .no_store = true,
        .platform = hone_platform_name(the_row->platform)};
    snprintf(text, sizeof text, "scale(f32[65]) @%s", the_row->place);
    return hone_tune_text(g->rt, text, &options, out, &g->err);
}

static void what_goes_wrong_loses_with_its_reason_and_harms_nobody(void **state)
{
    ground g;
    hone_result *result = NULL;
    (void)state;
    open_ground(&g, ~(1u << RIGHT | 1u << CONFIGURED | 1u << SHIFTED | 1u << HANGING));
    assert_int_not_equal(tune(&g, 100, 60, &result), HONE_OK);
    for (sample k = WRONG; k < SAMPLE_COUNT; k++) {
        const variant *v = &the_row->variants[k];
        const char *reason = the_row->never_competes != NULL ? the_row->never_competes : v->loses;
        if (k == HANGING || lacks(k)) continue;
        if (strstr(g.err.message, reason) == NULL) fail_msg("'%s' is not in: %s", reason, g.err.message);
    }
    hone_result_release(&result);
    close_ground(&g);
    open_ground(&g, 1u << RIGHT);
    run_right(&g, 0, 65);
    close_ground(&g);
}

static void what_is_right_wins(void **state)
{
    ground g;
    hone_result *result = NULL;
    char *json = NULL;
    (void)state;
    open_ground(&g, 1u << RIGHT | 1u << WRONG);
    const hone_status status = tune(&g, 3, 60, &result);
    if (the_row->never_competes != NULL) {
        assert_int_not_equal(status, HONE_OK);
        assert_non_null(strstr(g.err.message, the_row->never_competes));
    } else {
        if (status != HONE_OK) fail_msg("%s", g.err.message);
        assert_int_equal(hone_result_json(result, &json, &g.err), HONE_OK);
        if (strstr(json, "\"kernel\":\"right\",\"platform\":") == NULL) fail_msg("%s", json);
        hone_text_release(&json);
    }
    hone_result_release(&result);
    close_ground(&g);
}

static void what_hangs_is_ended(void **state)
{
    ground g;
    hone_result *result = NULL;
    (void)state;
    open_ground(&g, 1u << HANGING);
    assert_int_not_equal(tune(&g, 10, 1.5, &result), HONE_OK);
    if (strstr(g.err.message, "no answer within 1.5 s") == NULL) fail_msg("%s", g.err.message);
    hone_result_release(&result);
    close_ground(&g);
}

static uint64_t digest_of(ground *g, const hone_value *args, const char *config)
{
    const hone_plan *plan = NULL;
    if (bind_config(g, CONFIGURED, config, args, &plan) != HONE_OK) fail_msg("%s: %s", config, g->err.message);
    assert_string_equal(plan->kernel->name, row_samples[CONFIGURED]);
    const uint64_t digest = hone_platform_digest(plan);
    hone_plan_release(&plan);
    hone_cache_clear(g->rt);
    return digest;
}

// Compiled anew, and taken from the disk.
static void code_that_is_equal_is_known_by_one_number_and_other_code_by_another(void **state)
{
    ground g;
    call c;
    (void)state;
    const variant *v = &the_row->variants[CONFIGURED];
    open_ground(&g, 1u << CONFIGURED);
    make_call(&g, 0, 65, &c);
    const uint64_t first = digest_of(&g, c.args, "{\"spare\":0,\"used\":1,\"wide\":1}");
    const uint64_t spare = digest_of(&g, c.args, "{\"spare\":1,\"used\":1,\"wide\":1}");
    const uint64_t used = digest_of(&g, c.args, "{\"spare\":0,\"used\":2,\"wide\":1}");
    const uint64_t wide = digest_of(&g, c.args, "{\"spare\":0,\"used\":1,\"wide\":2}");
    assert_int_not_equal(first, 0);
    assert_int_equal(first, spare);
    assert_int_equal(first, digest_of(&g, c.args, "{\"spare\":0,\"used\":1,\"wide\":1}"));
    assert_int_not_equal(first, used);
    assert_int_equal(first == wide, strstr(v->fields, "* wide") == NULL);
    drop_call(&g, 0, &c);
    close_ground(&g);
}

static size_t count_of(const char *words, const char *text)
{
    size_t count = 0;
    for (; (text = strstr(text, words)) != NULL; text++)
        count++;
    return count;
}

// Progress names a kernel before each candidate, and none when all were tried. The finals would compare equal code for
// as long as the contest has time.
static void cancel_after_the_race(void *ctx, const hone_progress *progress)
{
    if (progress->kernel == NULL) *(volatile int *)ctx = 1;
}

// The document of a race between all eight configs. The result goes with it.
static void race_configs(ground *g, hone_result **result, hone_buffer *document)
{
    char text[64];
    volatile int cancel = 0;
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = 200,
        .candidate_seconds = 60,
        .no_store = true,
        .kernel = "configured",
        .progress = cancel_after_the_race,
        .progress_ctx = (void *)&cancel,
        .cancel = &cancel};
    snprintf(text, sizeof text, "scale(f32[65]) @%s", the_row->place);
    if (hone_tune_text(g->rt, text, &options, result, &g->err) != HONE_CANCELLED) fail_msg("%s", g->err.message);
    hone_result_document(*result, true, document);
}

// Once in three, for on a machine with much else to do a candidate may overstep its limit, and is not measured then.
static void configs_whose_code_and_launch_are_equal_are_measured_once(void **state)
{
    ground g;
    hone_result *result = NULL;
    hone_buffer document;
    bool right = false;
    (void)state;
    const variant *v = &the_row->variants[CONFIGURED];
    const size_t once = strstr(v->fields, "* wide") != NULL ? 4 : 2;
    open_ground(&g, 1u << CONFIGURED);
    for (int looks = 0; looks < 3 && !right; looks++) {
        hone_buffer_init(&document, hone_allocator_system());
        race_configs(&g, &result, &document);
        const char *json = hone_buffer_string(&document);
        right = count_of("\"raced_ns\":", json) == 8 && count_of("\"same\":true", json) == 8 - once;
        if (!right) print_message("%s\n", json);
        hone_buffer_deinit(&document);
        hone_result_release(&result);
    }
    assert_true(right);
    close_ground(&g);
}

// A kernel that ignored one of them would be measured as many, and be right for the values that tests happen to use.
static void scalars_of_the_call_and_parameters_of_the_space_reach_the_code(void **state)
{
    static const double alphas[] = {0.25, -3};
    ground g;
    call c;
    (void)state;
    open_ground(&g, 1u << SHIFTED);
    make_call(&g, 0, 65, &c);
    for (int i = 0; i < 4; i++) {
        const int used = 1 + i / 2;
        const hone_value args[] = {c.args[0], hone_of_float(alphas[i % 2]), c.args[1]};
        const hone_plan *plan = NULL;
        char config[64];
        snprintf(config, sizeof config, "{\"spare\":0,\"used\":%d,\"wide\":1}", used);
        if (bind_config(&g, SHIFTED, config, args, &plan) != HONE_OK) fail_msg("%s", g.err.message);
        assert_string_equal(plan->kernel->name, row_samples[SHIFTED]);
        assert_int_equal(run_args(&g, 0, plan, args), HONE_OK);
        if (!is_line(&g, 0, &c, (float)used, (float)alphas[i % 2]))
            fail_msg("y is not %d * x + %g", used, alphas[i % 2]);
        hone_plan_release(&plan);
    }
    drop_call(&g, 0, &c);
    close_ground(&g);
}

static void what_was_loaded_is_unloaded(void **state)
{
    ground g;
    (void)state;
    open_ground(&g, 1u << RIGHT);
    for (int i = 0; i < 5; i++) {
        run_right(&g, 0, 64 + i);
        hone_cache_clear(g.rt);
    }
    close_ground(&g);
}

// Binds while the allocation behind so many others fails. False: there are no more to fail.
static bool bind_without_memory(ground *g, long long before, const call *c)
{
    const hone_plan *plan = NULL;
    hone_cache_clear(g->rt);
    g->memory.once = true;
    atomic_store(&g->memory.left, before);
    const hone_status status = bind(g, RIGHT, c->args, &plan);
    const bool failed = atomic_exchange(&g->memory.left, -1) < 0;
    if (status != HONE_OK) {
        if (!failed || strlen(g->err.message) <= 10) fail_msg("without allocation %lld: %s", before, g->err.message);
        return true;
    }
    if (!run(g, 0, plan, c)) fail_msg("without allocation %lld: y is wrong", before);
    hone_plan_release(&plan);
    return failed;
}

static void memory_that_runs_out_while_a_kernel_is_loaded_leaves_nothing_behind(void **state)
{
    ground g;
    call c;
    long long before = 0;
    (void)state;
    open_ground(&g, 1u << RIGHT);
    run_right(&g, 0, 65);
    make_call(&g, 0, 65, &c);
    while (bind_without_memory(&g, before, &c))
        before++;
    assert_true(before > 0);
    drop_call(&g, 0, &c);
    run_right(&g, 0, 65);
    close_ground(&g);
}

typedef struct racer {
    ground *g;
    call c;
    int wrong;
} racer;

static void *run_often(void *ctx)
{
    racer *r = ctx;
    hone_context_enter(r->g->context);
    for (int i = 0; i < 50; i++) {
        const hone_plan *plan = NULL;
        if (hone_bind(r->g->op, r->c.args, 2, &plan, NULL) != HONE_OK || plan->run(plan, r->c.args, NULL) != HONE_OK)
            r->wrong++;
        hone_plan_release(&plan);
    }
    hone_context_enter(NULL);
    return NULL;
}

static void two_threads_bind_and_run_at_the_same_time(void **state)
{
    ground g;
    racer racers[2] = {{.g = &g}, {.g = &g}};
    pthread_t threads[2];
    const hone_plan *plan = NULL;
    (void)state;
    open_ground(&g, 1u << RIGHT);
    for (int i = 0; i < 2; i++)
        make_call(&g, 0, 65 + i, &racers[i].c);
    if (bind(&g, RIGHT, racers[0].c.args, &plan) != HONE_OK) fail_msg("%s", g.err.message);
    hone_plan_release(&plan);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &racers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(racers[i].wrong, 0);
        if (g.instance != NULL) assert_int_equal(g.ops->synchronize(g.instance, &g.devices[0], NULL, NULL), HONE_OK);
        assert_true(is_scaled(&g, 0, &racers[i].c));
        drop_call(&g, 0, &racers[i].c);
    }
    close_ground(&g);
}

static void two_devices_are_two(void **state)
{
    ground g;
    call first, second;
    const hone_plan *plan = NULL;
    (void)state;
    open_ground(&g, 1u << RIGHT);
    assert_int_equal(g.count, the_row->devices);
    run_right(&g, 0, 65);
    run_right(&g, 1, 65);
    make_call(&g, 0, 65, &first);
    make_call(&g, 1, 65, &second);
    const hone_value mixed[] = {first.args[0], second.args[1]};
    assert_int_not_equal(bind(&g, RIGHT, mixed, &plan), HONE_OK);
    assert_true(strlen(g.err.message) > 10);
    drop_call(&g, 0, &first);
    drop_call(&g, 1, &second);
    close_ground(&g);
}

// Words that stayed would be those of the next failure, too.
static void the_words_of_a_run_that_failed_are_told_once(void **state)
{
    ground g;
    call c;
    hone_error err = {.message = ""}, again;
    const hone_plan *plan = NULL;
    const hone_platform home = hone_platform_home(the_row->platform);
    const hone_platform_ops *ops = hone_platform_ops_of(home);
    (void)state;
    open_ground(&g, 1u << FAILING);
    make_call(&g, 0, 65, &c);
    if (bind(&g, FAILING, c.args, &plan) != HONE_OK) fail_msg("%s", g.err.message);
    assert_int_not_equal(plan->run(plan, c.args, NULL), HONE_OK);
    assert_true(ops->last_failure(g.rt->instances[home], &err));
    if (strstr(err.message, the_row->variants[FAILING].loses) == NULL) fail_msg("%s", err.message);
    assert_false(ops->last_failure(g.rt->instances[home], &again));
    hone_plan_release(&plan);
    drop_call(&g, 0, &c);
    close_ground(&g);
}

static temporary_folder caches;

static int make_caches(void **state)
{
    (void)state;
    if (temporary_folder_make(&caches) != 0) return -1;
    row_choose(the_row, caches.path);
    return 0;
}

static int remove_caches(void **state)
{
    (void)state;
    temporary_folder_remove(&caches);
    return 0;
}

// Whether a test is asked of the row: what a row cannot have is left out, with a line that says so, and is no skipped test.
static bool hangs(void)
{
    return !lacks(HANGING); // what never competes is never waited for
}

static bool configures(void)
{
    return !lacks(CONFIGURED); // held to by its platform's other rows
}

static bool shifts(void)
{
    return !lacks(SHIFTED);
}

static bool has_devices(void)
{
    if (the_row->devices == 0) print_message("not asked: of the host there is one\n");
    return the_row->devices > 0;
}

static bool keeps_words(void)
{
    if (lacks(FAILING)) return false;
    const bool keeps = hone_platform_ops_of(hone_platform_home(the_row->platform))->last_failure != NULL && on_host();
    if (!keeps) print_message("not asked: the failure ends the process, or synchronize says it\n");
    return keeps;
}

static const struct {
    struct CMUnitTest test;
    bool (*asked)(void); // NULL: of every row
} all_tests[] = {
    {cmocka_unit_test(a_kernel_is_loaded_and_launched_at_odd_shapes_between_guard_bytes), NULL},
    {cmocka_unit_test(arguments_that_do_not_fit_the_algorithm_are_refused_with_words), NULL},
    {cmocka_unit_test(what_does_not_load_is_refused_with_words_and_the_next_runs), NULL},
    {cmocka_unit_test(what_goes_wrong_loses_with_its_reason_and_harms_nobody), NULL},
    {cmocka_unit_test(what_is_right_wins), NULL},
    {cmocka_unit_test(what_hangs_is_ended), hangs},
    {cmocka_unit_test(code_that_is_equal_is_known_by_one_number_and_other_code_by_another), configures},
    {cmocka_unit_test(configs_whose_code_and_launch_are_equal_are_measured_once), configures},
    {cmocka_unit_test(scalars_of_the_call_and_parameters_of_the_space_reach_the_code), shifts},
    {cmocka_unit_test(what_was_loaded_is_unloaded), NULL},
    {cmocka_unit_test(memory_that_runs_out_while_a_kernel_is_loaded_leaves_nothing_behind), NULL},
    {cmocka_unit_test(two_threads_bind_and_run_at_the_same_time), NULL},
    {cmocka_unit_test(two_devices_are_two), has_devices},
    {cmocka_unit_test(the_words_of_a_run_that_failed_are_told_once), keeps_words},
};

int main(int argc, char **argv)
{
    struct CMUnitTest tests[sizeof all_tests / sizeof *all_tests];
    size_t count = 0;
    the_row = argc == 2 ? row_find(argv[1]) : NULL;
    if (the_row == NULL) {
        fprintf(stderr, "usage: conformance_code NAME, one of rows.c\n");
        return 2;
    }
    setenv("HONE_WORKER", HONE_TEST_WORKER, 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (all_tests[i].asked == NULL || all_tests[i].asked()) tests[count++] = all_tests[i].test;
    }
    return _cmocka_run_group_tests(the_row->name, tests, count, make_caches, remove_caches);
}
