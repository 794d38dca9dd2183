#include "tune/worker/reference.h"

#include "base/assert.h"
#include "base/error.h"
#include "call/call.h"
#include "platforms/platform.h"
#include "tune/rule/statistics.h"
#include "tune/worker/bulk.h"
#include "tune/worker/product.h"
#include "tune/worker/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Operations per second of a plain reference. A call of more than its seconds is computed in parts. Beyond the first
// parts, further ones are computed for this share of the seconds.
static const double operations_a_second = 1e9, parts_share = 0.75;
// The same share for a product, all of which is checked beside its parts.
static const double product_parts_share = 0.125;
// Largest tolerance that slack may lead to, as a share of the largest result.
static const double most_slack = 0.25;
const hone_reference_use hone_reference_ordinary = {.seconds = 2, .slack = 1};
// A first run that takes longer than quick_first_ns may have imported packages, or compiled: a second run is timed,
// too. One that takes longer than slow_first_ns is not repeated.
static const double quick_first_ns = 5e6, slow_first_ns = 2e9;
enum { LEAST_PARTS = 2, SCRATCH_ALIGN = 64, MOST_JUDGED = 8, MOST_AT_ONCE = 64 };
// With fewer operations, sharing the work among threads is not worth the calls.
static const double least_shared_operations = 1e6;
// Results of up to so many bytes are kept as a witness.
static const size_t most_witness_bytes = (size_t)1 << 30;

static const char where[] = "tune.reference";

static bool is_whole(const hone_reference *reference)
{
    return reference->part_count == 0;
}

static hone_status make_results(hone_reference *reference, const hone_buffers *buffers, hone_error *err)
{
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *like = &buffers->sets[0].fenced[i];
        if (like->block == NULL || !hone_signature_parameter(reference->signature, i)->is_result) continue;
        hone_status status = hone_fenced_like(&reference->allocator, like, &reference->results[i], err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static hone_cost cost_of(const hone_algorithm *algorithm, const hone_call *call)
{
    hone_cost cost = {0, 0};
    if (algorithm->model != NULL) algorithm->model(call, &cost);
    return cost;
}

bool hone_reference_has_quick_parts(const hone_algorithm *algorithm, const hone_call *call, double seconds)
{
    const hone_cost cost = cost_of(algorithm, call);
    hone_parting parting;
    hone_parting_find(algorithm->independent, call, &parting);
    return parting.count > 1 && cost.operations > seconds * operations_a_second &&
           LEAST_PARTS * cost.operations / (double)parting.count <= LEAST_PARTS * seconds * operations_a_second;
}

// Chooses the first and the last part, then random ones: time may end the list early, and then those in front must
// suffice. A part may be drawn twice, which costs little where there are many.
static void choose_parts(hone_reference *reference, const hone_call *call, uint64_t seed)
{
    const hone_cost cost = cost_of(reference->means.algorithm, call);
    const double whole_operations = reference->use.seconds * operations_a_second;
    hone_parting *parting = &reference->parting;
    hone_parting_find(
        cost.operations > whole_operations ? reference->means.algorithm->independent : NULL, call, parting);
    reference->part_count = 0;
    if (parting->count < 2) return;
    double fit = whole_operations / (cost.operations / (double)parting->count);
    uint64_t count = fit < LEAST_PARTS ? LEAST_PARTS : fit > HONE_MAX_PARTS ? HONE_MAX_PARTS : (uint64_t)fit;
    if (count > parting->count) count = parting->count;
    reference->parts[1] = parting->count - 1;
    for (uint64_t i = LEAST_PARTS; i < count; i++)
        reference->parts[i] = hone_random_next(&seed) % parting->count;
    reference->part_count = (uint32_t)count;
}

// Prepares and runs: a kernel that stands in for the reference's function needs its preparation.
static hone_status run_prepared(
    hone_platform_instance *instance, hone_plan *plan, const hone_value *values, double *out_ns, hone_error *err)
{
    hone_status status = hone_platform_prepare(instance, plan, &plan->state, &plan->scratch_bytes, err);
    if (status != HONE_OK) return status;
    hone_allocator allocator = hone_allocator_system();
    hone_execution execution = {.struct_size = sizeof execution, .scratch_bytes = plan->scratch_bytes};
    char *block = plan->scratch_bytes > 0 ? hone_alloc(&allocator, plan->scratch_bytes + SCRATCH_ALIGN) : NULL;
    if (block != NULL) execution.scratch = block + (SCRATCH_ALIGN - (uintptr_t)block % SCRATCH_ALIGN);
    uint64_t start = hone_os_now_ns();
    if (plan->scratch_bytes > 0 && block == NULL)
        status = hone_fail_memory(err, where);
    else
        status = plan->run(plan, values, &execution);
    *out_ns = (double)(hone_os_now_ns() - start);
    hone_free(&allocator, block);
    hone_platform_release(instance, plan->kernel, plan->state);
    return status;
}

// A module needs its platform's instance, which opens its plugin. It is opened for this run only.
static hone_status run_plan(hone_plan *plan, const hone_value *values, double *out_ns, hone_error *err)
{
    static const hone_log silent = {0};
    const hone_platform home = hone_platform_home(plan->kernel->platform);
    const hone_platform_ops *ops =
        hone_platform_facts_of(plan->kernel->platform)->is_module ? hone_platform_ops_of(home) : NULL;
    hone_allocator allocator = hone_allocator_system();
    hone_platform_instance *instance = NULL;
    hone_status status = ops != NULL ? ops->open(&allocator, &silent, &instance, err) : HONE_OK;
    if (status == HONE_OK) status = run_prepared(instance, plan, values, out_ns, err);
    if (instance != NULL) ops->close(&instance);
    return status;
}

// pool: threads that the function may share its work among; NULL: the calling thread works alone.
static hone_status run_call(
    const hone_reference *reference,
    hone_pool *pool,
    const hone_call *call,
    const hone_value *values,
    double *out_ns,
    hone_error *err)
{
    static const int64_t no_config[HONE_MAX_PARAMETERS];
    hone_error why = {.message = ""};
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    kernel.name = "reference";
    kernel.algorithm = hone_signature_name(reference->signature);
    kernel.platform = hone_platform_host();
    kernel.backend = HONE_ANY;
    kernel.is_reference = true;
    kernel.run = reference->means.algorithm->reference;
    if (reference->means.stand_in != NULL) kernel = *reference->means.stand_in;
    hone_plan plan = {
        .say = hone_platform_say,
        .run = hone_platform_run_of(&kernel),
        .config = no_config,
        .kernel = &kernel,
        .call = call,
        .device = reference->means.device,
        .parallel_for = pool != NULL ? hone_pool_run : NULL,
        .pool = pool,
    };
    hone_status status = run_plan(&plan, values, out_ns, &why);
    if (status == HONE_OK) return HONE_OK;
    return hone_fail(
        err, HONE_KERNEL_FAILED, where, "the reference of %s answers '%s' for %s%s%s", kernel.algorithm,
        hone_status_name(status), hone_call_text(call), why.message[0] ? ": " : "", why.message);
}

// The values of one part: views of the inputs and of the reference's own results.
typedef struct part_values {
    hone_value values[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
} part_values;

static void fill_part(
    const hone_reference *reference,
    const hone_parting *parting,
    const hone_buffers *buffers,
    const uint64_t *part,
    part_values *out)
{
    for (uint32_t i = 0; i < buffers->count; i++) {
        const hone_fenced *fenced =
            reference->results[i].block != NULL ? &reference->results[i] : &buffers->sets[0].fenced[i];
        out->values[i] = buffers->sets[0].values[i];
        if (fenced->block == NULL) continue;
        out->tensors[i] = fenced->tensor;
        if (part != NULL)
            hone_part_view(parting, *part, i, &fenced->tensor, out->shapes[i], out->strides[i], &out->tensors[i]);
        out->values[i] = hone_of_tensor(&out->tensors[i]);
    }
}

static hone_status compute_part(
    const hone_reference *reference,
    hone_pool *pool,
    const hone_parting *parting,
    const hone_call *whole,
    const hone_buffers *buffers,
    uint64_t part,
    double *out_ns,
    hone_error *err)
{
    part_values *values = hone_alloc(&reference->allocator, sizeof *values);
    if (values == NULL) return hone_fail_memory(err, where);
    fill_part(reference, parting, buffers, &part, values);
    hone_call *call = NULL;
    hone_signature *signature = hone_signature_retain((hone_signature *)hone_call_signature(whole));
    hone_status status =
        hone_call_bind(reference->allocator, signature, values->values, buffers->count, false, &call, err);
    if (status != HONE_OK)
        status = hone_fail_prefix(
            err, status, "a part of the call, cut along '%s', is no call", reference->means.algorithm->independent);
    else
        status = run_call(reference, pool, call, values->values, out_ns, err);
    hone_call_release(&call);
    hone_signature_release(&signature);
    hone_free(&reference->allocator, values);
    return status;
}

// Several parts that are computed at once, each by one thread.
typedef struct parts_job {
    const hone_reference *reference;
    const hone_parting *parting;
    const hone_call *whole;
    const hone_buffers *buffers;
    const uint64_t *parts;
    double times_ns[MOST_AT_ONCE];
    hone_status status[MOST_AT_ONCE];
    hone_error errors[MOST_AT_ONCE];
} parts_job;

static void compute_one(void *ctx, int64_t index)
{
    parts_job *job = ctx;
    job->status[index] = compute_part(
        job->reference, NULL, job->parting, job->whole, job->buffers, job->parts[index], &job->times_ns[index],
        &job->errors[index]);
}

// *out_ns: the time of all of them together.
static hone_status compute_at_once(
    const hone_reference *reference,
    const hone_parting *parting,
    const hone_call *call,
    const hone_buffers *buffers,
    const uint64_t *parts,
    uint32_t count,
    double *out_ns,
    hone_error *err)
{
    hone_assert(count <= MOST_AT_ONCE);
    parts_job *job = hone_alloc(&reference->allocator, sizeof *job);
    if (job == NULL) return hone_fail_memory(err, where);
    hone_status status = HONE_OK;
    *out_ns = 0;
    *job = (parts_job){.reference = reference, .parting = parting, .whole = call, .buffers = buffers, .parts = parts};
    hone_pool_run(reference->means.pool, count, compute_one, job);
    for (uint32_t i = 0; i < count && status == HONE_OK; i++) {
        *out_ns += job->times_ns[i];
        status = job->status[i];
        if (status != HONE_OK && err != NULL) *err = job->errors[i];
    }
    hone_free(&reference->allocator, job);
    return status;
}

static uint32_t threads_of(const hone_reference *reference)
{
    const bool is_concurrent = reference->means.is_concurrent && reference->means.stand_in == NULL;
    return is_concurrent && reference->means.pool != NULL ? (uint32_t)hone_pool_threads(reference->means.pool) : 1;
}

// Cuts a call into some pieces for each thread, if that is worth their calls.
static bool cut_for_threads(const hone_reference *reference, const hone_call *call, hone_parting *out)
{
    const uint32_t threads = threads_of(reference), pieces = threads * 4;
    if (threads < 2 || cost_of(reference->means.algorithm, call).operations < least_shared_operations) return false;
    hone_parting_find(reference->means.algorithm->independent, call, out);
    hone_parting_coarsen(out, pieces < MOST_AT_ONCE ? pieces : MOST_AT_ONCE);
    return out->count > 1;
}

// Whether to time a second run. For functions of hone and of the program the first run takes as long as the others.
static bool is_timed_again(const hone_reference *reference)
{
    return reference->use.is_timed && reference->means.stand_in != NULL && reference->time_ns > quick_first_ns &&
           reference->time_ns < slow_first_ns;
}

static hone_status compute_whole(
    hone_reference *reference, const hone_call *call, const hone_buffers *buffers, hone_error *err)
{
    hone_parting parting;
    if (cut_for_threads(reference, call, &parting)) {
        uint64_t all[MOST_AT_ONCE];
        for (uint32_t i = 0; i < parting.count; i++)
            all[i] = i;
        return compute_at_once(
            reference, &parting, call, buffers, all, (uint32_t)parting.count, &reference->time_ns, err);
    }
    part_values *values = hone_alloc(&reference->allocator, sizeof *values);
    if (values == NULL) return hone_fail_memory(err, where);
    fill_part(reference, NULL, buffers, NULL, values);
    hone_status status = run_call(reference, reference->means.pool, call, values->values, &reference->time_ns, err);
    if (status == HONE_OK && is_timed_again(reference)) {
        double again_ns = 0;
        status = run_call(reference, reference->means.pool, call, values->values, &again_ns, err);
        reference->time_ns = fmin(reference->time_ns, again_ns);
    }
    hone_free(&reference->allocator, values);
    return status;
}

static hone_status compute(
    hone_reference *reference, const hone_call *call, const hone_buffers *buffers, hone_error *err)
{
    if (is_whole(reference)) return compute_whole(reference, call, buffers, err);
    const double share = reference->is_product ? product_parts_share : parts_share;
    const uint64_t until = hone_os_now_ns() + (uint64_t)(share * reference->use.seconds * 1e9);
    const uint32_t threads = threads_of(reference), most = threads < MOST_AT_ONCE ? threads : MOST_AT_ONCE;
    uint32_t done = 0;
    hone_status status = HONE_OK;
    while (status == HONE_OK && done < reference->part_count && (done < LEAST_PARTS || hone_os_now_ns() < until)) {
        const uint32_t left = reference->part_count - done, count = left < most ? left : most;
        double unused_ns = 0;
        if (count > 1)
            status = compute_at_once(
                reference, &reference->parting, call, buffers, reference->parts + done, count, &unused_ns, err);
        else
            status = compute_part(
                reference, reference->means.pool, &reference->parting, call, buffers, reference->parts[done],
                &unused_ns, err);
        done += count;
    }
    reference->part_count = done;
    return status;
}

// A tensor or, if the call was computed in parts, one part of it.
typedef struct view {
    hone_tensor tensor;
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
} view;

static const hone_tensor *view_of(
    const hone_reference *reference, uint32_t value, uint32_t part, const hone_tensor *whole, view *out)
{
    if (is_whole(reference)) return whole;
    hone_part_view(&reference->parting, reference->parts[part], value, whole, out->shape, out->strides, &out->tensor);
    return &out->tensor;
}

static uint32_t views(const hone_reference *reference)
{
    return is_whole(reference) ? 1 : reference->part_count;
}

static hone_status find_largest(hone_reference *reference, uint32_t value, hone_error *err)
{
    const hone_parameter *parameter = hone_signature_parameter(reference->signature, value);
    for (uint32_t part = 0; part < views(reference); part++) {
        view of;
        double largest = 0;
        int64_t index = 0;
        const hone_tensor *tensor = view_of(reference, value, part, &reference->results[value].tensor, &of);
        if (!hone_verify_largest(tensor, &largest, &index)) {
            char at[128];
            hone_verify_format_index(tensor, index, at, sizeof at);
            return hone_fail(
                err, HONE_KERNEL_FAILED, where,
                "the reference gives NaN at %s%s on made-up inputs: nothing can be verified; give the algorithm's "
                "inputs "
                "generators or a make_input that fit",
                parameter->name, at);
        }
        if (largest > reference->largest[value]) reference->largest[value] = largest;
    }
    return HONE_OK;
}

static hone_status measure_results(hone_reference *reference, hone_error *err)
{
    const double *given = reference->use.largest;
    for (uint32_t i = 0; i < HONE_MAX_VALUES; i++) {
        if (reference->results[i].block == NULL) continue;
        if (given != NULL) reference->largest[i] = given[i];
        hone_status status = given != NULL ? HONE_OK : find_largest(reference, i, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

hone_status hone_reference_compute(
    hone_reference *reference,
    const hone_reference_means *means,
    const hone_call *call,
    const hone_buffers *buffers,
    const hone_reference_use *use,
    uint64_t seed,
    hone_error *err)
{
    memset(reference, 0, sizeof *reference);
    reference->use = *use;
    reference->allocator = buffers->allocator;
    reference->means = *means;
    reference->signature = buffers->signature;
    reference->call = call;
    choose_parts(reference, call, seed);
    // Beside an infinity every row would be suspicious.
    reference->is_product = !is_whole(reference) && use->largest == NULL && means->algorithm->product != NULL &&
                            means->algorithm->product(call, &reference->product);
    hone_status status = make_results(reference, buffers, err);
    if (status == HONE_OK) status = compute(reference, call, buffers, err);
    if (status == HONE_OK) {
        status = hone_buffers_check(buffers, 0, err);
        if (status != HONE_OK) hone_fail_prefix(err, status, "the reference");
    }
    if (status == HONE_OK) status = measure_results(reference, err);
    if (status != HONE_OK) hone_reference_deinit(reference);
    return status;
}

void hone_reference_deinit(hone_reference *reference)
{
    for (uint32_t i = 0; i < HONE_MAX_VALUES; i++) {
        if (reference->results[i].block != NULL) hone_fenced_deinit(&reference->allocator, &reference->results[i]);
        if (reference->witness.results[i].block != NULL)
            hone_fenced_deinit(&reference->allocator, &reference->witness.results[i]);
    }
    reference->witness = (hone_witness){.judged = 0};
}

// Searches for NaN in what was not computed, which also finds results that were never written.
static hone_status check_rest(
    const hone_reference *reference, const char *name, const hone_tensor *tensor, hone_error *err)
{
    double largest;
    int64_t index = 0;
    if (is_whole(reference) || reference->use.largest != NULL || hone_verify_largest(tensor, &largest, &index))
        return HONE_OK;
    char at[128];
    hone_verify_format_index(tensor, index, at, sizeof at);
    return hone_fail(err, HONE_KERNEL_FAILED, where, "%s%s is NaN", name, at);
}

void hone_reference_describe(const hone_reference *reference, char *out, size_t size)
{
    const unsigned long long whole = reference->parting.count;
    if (is_whole(reference))
        snprintf(out, size, "whole");
    else
        snprintf(
            out, size, "%s%u of %llu parts", reference->is_product ? "Freivalds' check + " : "", reference->part_count,
            whole);
}

static hone_status check_product(
    const hone_reference *reference,
    const hone_buffer_set *set,
    uint32_t value,
    const hone_yardstick *yardstick,
    double *max_error,
    hone_error *err)
{
    const hone_product *which = &reference->product;
    if (!reference->is_product || which->out != value) return HONE_OK;
    return hone_product_check(
        reference->means.pool, hone_signature_parameter(reference->signature, value)->name, which,
        &set->fenced[which->a].tensor, &set->fenced[which->b].tensor, &set->fenced[value].tensor, yardstick, max_error,
        err);
}

static hone_yardstick yardstick_of(
    const hone_reference *reference, uint32_t value, const hone_tolerance *tolerance, double times)
{
    const hone_dtype dtype = reference->results[value].tensor.dtype;
    hone_yardstick yardstick = hone_verify_yardstick(tolerance, dtype, reference->largest[value]);
    const double largest = reference->largest[value], ordinary = yardstick.base + yardstick.relative * largest;
    double slack = reference->use.slack;
    // For narrow numbers many times the tolerance would accept zeros in place of the largest.
    if (ordinary * slack > most_slack * largest && ordinary > 0) slack = fmax(1, most_slack * largest / ordinary);
    yardstick.takes_nan = reference->use.largest != NULL;
    // The largest is that of ordinary inputs. Special ones may give larger results, as a gradient does beside a row of
    // zeros: an error within the rounding of a narrow result is right.
    if (yardstick.takes_nan) yardstick.relative = fmax(yardstick.relative, hone_verify_eps(dtype));
    yardstick.base *= times * slack;
    yardstick.relative *= times * slack;
    return yardstick;
}

static hone_status check_result(
    const hone_reference *reference,
    const hone_buffer_set *set,
    uint32_t value,
    const hone_tolerance *tolerance,
    double *max_error,
    hone_error *err)
{
    const char *name = hone_signature_parameter(reference->signature, value)->name;
    const hone_tensor *came = &set->fenced[value].tensor, *right = &reference->results[value].tensor;
    const hone_yardstick yardstick = yardstick_of(reference, value, tolerance, 1);
    hone_status status = check_rest(reference, name, came, err);
    for (uint32_t part = 0; status == HONE_OK && part < views(reference); part++) {
        view a, b;
        double error = 0;
        const hone_tensor *came_part = view_of(reference, value, part, came, &a);
        const hone_tensor *right_part = view_of(reference, value, part, right, &b);
        status = hone_verify_compare(reference->means.pool, name, came_part, right_part, &yardstick, &error, err);
        if (error > *max_error) *max_error = error;
        if (status != HONE_OK && !is_whole(reference))
            hone_fail_prefix(
                err, status, "part %llu of %llu", (unsigned long long)reference->parts[part],
                (unsigned long long)reference->parting.count);
    }
    return status == HONE_OK ? check_product(reference, set, value, &yardstick, max_error, err) : status;
}

static const hone_right_result *find_right(const hone_reference *reference, uint32_t value, uint64_t digest)
{
    for (int i = 0; i < HONE_KEPT_RIGHT; i++) {
        const hone_right_result *right = &reference->right[value][i];
        if (right->there && right->digest == digest) return right;
    }
    return NULL;
}

// A digest of all bytes takes half the time of a comparison, and is enough if the same bytes were right before.
static hone_status check_bytes(
    hone_reference *reference,
    const hone_buffer_set *set,
    uint32_t value,
    const hone_tolerance *tolerance,
    bool *is_known,
    double *max_error,
    hone_error *err)
{
    const hone_fenced *came = &set->fenced[value];
    const uint64_t digest = hone_bulk_hash(reference->means.pool, came->low, came->span);
    const hone_right_result *known = find_right(reference, value, digest);
    double error = known != NULL ? known->error : 0;
    hone_status status = HONE_OK;
    *is_known = *is_known && known != NULL;
    if (known == NULL) status = check_result(reference, set, value, tolerance, &error, err);
    if (error > *max_error) *max_error = error;
    if (known != NULL || status != HONE_OK) return status;
    reference->right[value][reference->next_right[value]++ % HONE_KEPT_RIGHT] =
        (hone_right_result){digest, error, true};
    return HONE_OK;
}

// What an algorithm says of itself -----------------------------------------------------------------------------------

static hone_status compute_apart(hone_reference *apart, const hone_buffers *buffers)
{
    hone_status status = make_results(apart, buffers, NULL);
    for (uint32_t i = 0; i < apart->part_count && status == HONE_OK; i++) {
        double unused_ns = 0;
        status = compute_part(apart, NULL, &apart->parting, apart->call, buffers, apart->parts[i], &unused_ns, NULL);
    }
    return status;
}

hone_status hone_reference_check_parting(
    const hone_reference *reference, const hone_buffers *buffers, const hone_tolerance *tolerance, hone_error *err)
{
    const char *independent = reference->means.algorithm->independent;
    hone_reference *apart = hone_alloc(&reference->allocator, sizeof *apart);
    if (apart == NULL) return hone_fail_memory(err, where);
    memset(apart, 0, sizeof *apart);
    apart->allocator = reference->allocator;
    apart->means = reference->means;
    apart->signature = reference->signature;
    apart->call = reference->call;
    apart->use = reference->use;
    memcpy(apart->largest, reference->largest, sizeof apart->largest);
    hone_parting_find(independent, apart->call, &apart->parting);
    hone_status status = HONE_OK;
    if (is_whole(reference) && apart->parting.count > 1) {
        apart->parts[1] = apart->parting.count - 1;
        apart->part_count = LEAST_PARTS;
        const hone_buffer_set whole = {.fenced = (hone_fenced *)(uintptr_t)reference->results};
        // A part that is not a valid call, or that the reference refuses, cannot be compared.
        const bool is_known = compute_apart(apart, buffers) == HONE_OK;
        for (uint32_t i = 0; is_known && status == HONE_OK && i < buffers->count; i++) {
            double unused = 0;
            if (apart->results[i].block != NULL) status = check_result(apart, &whole, i, tolerance, &unused, err);
        }
        if (status != HONE_OK)
            hone_fail_prefix(
                err, status,
                "independent = '%s' is not true of the algorithm: its reference gives other results for the whole call "
                "than for a part of it alone",
                independent);
    }
    hone_reference_deinit(apart);
    hone_free(&reference->allocator, apart);
    return status;
}

// A second kernel -----------------------------------------------------------------------------------------------------

static bool has_witness(const hone_reference *reference)
{
    return reference->witness.name[0] != '\0';
}

// Whether a whole result may be right in the parts that were computed and wrong in others, and there is memory to keep
// one.
static bool needs_witness(const hone_reference *reference, const hone_buffers *buffers)
{
    size_t bytes = 0;
    if (is_whole(reference) || reference->is_product || reference->use.largest != NULL) return false;
    for (uint32_t i = 0; i < buffers->count; i++)
        if (reference->results[i].block != NULL) bytes += reference->results[i].span;
    return bytes <= most_witness_bytes && reference->witness.judged < MOST_JUDGED;
}

// Keeps results as the witness. Without memory for them there is no witness.
static void keep_witness(hone_reference *reference, const hone_buffer_set *set, size_t count, const char *who)
{
    hone_witness *witness = &reference->witness;
    witness->name[0] = '\0';
    witness->agrees = false;
    for (uint32_t i = 0; i < count; i++) {
        const hone_fenced *came = &set->fenced[i];
        hone_fenced *kept = &witness->results[i];
        if (reference->results[i].block == NULL) continue;
        if (kept->block == NULL && hone_fenced_like(&reference->allocator, came, kept, NULL) != HONE_OK) return;
        hone_assert(kept->span == came->span);
        memcpy(kept->low, came->low, came->span);
    }
    snprintf(witness->name, sizeof witness->name, "%s", who);
}

// Finds the first place where results differ from the witness's by more than two right ones may. False: there is none.
static bool find_dispute(
    const hone_reference *reference,
    const hone_buffer_set *set,
    size_t count,
    const hone_tolerance *tolerance,
    uint32_t *out_value,
    uint64_t *out_part)
{
    for (uint32_t i = 0; i < count; i++) {
        if (reference->results[i].block == NULL) continue;
        const hone_tensor *came = &set->fenced[i].tensor;
        const hone_yardstick yardstick = yardstick_of(reference, i, tolerance, 2);
        const int64_t at =
            hone_verify_find_wrong(reference->means.pool, came, &reference->witness.results[i].tensor, &yardstick);
        if (at < 0) continue;
        *out_value = i;
        *out_part = hone_part_of(&reference->parting, i, came, at);
        return true;
    }
    return false;
}

// Computes one more part, which every candidate is compared with from now on. False: the reference gives no result for
// it, and nothing has changed.
static bool add_part(hone_reference *reference, const hone_buffers *buffers, uint64_t part)
{
    const uint32_t count = reference->part_count, at = count < HONE_MAX_PARTS ? count : HONE_MAX_PARTS - 1;
    const uint64_t before = reference->parts[at];
    double unused_ns = 0;
    if (compute_part(
            reference, reference->means.pool, &reference->parting, reference->call, buffers, part, &unused_ns, NULL) !=
        HONE_OK)
        return false;
    reference->parts[at] = part;
    reference->part_count = at + 1;
    memset(reference->right, 0, sizeof reference->right);
    if (measure_results(reference, NULL) == HONE_OK) return true;
    reference->parts[at] = before;
    reference->part_count = count;
    return false;
}

// For results that are right in all computed parts. If they differ from the witness's, the part where they differ is
// computed and checked. If they are right there, the witness is wrong, and they replace it.
static hone_status hear_witness(
    hone_reference *reference,
    const hone_buffers *buffers,
    const hone_buffer_set *set,
    const hone_tolerance *tolerance,
    const char *who,
    double *out_max_error,
    hone_error *err)
{
    uint32_t value;
    uint64_t part;
    double error = 0;
    hone_witness *witness = &reference->witness;
    if (!needs_witness(reference, buffers)) return HONE_OK;
    if (has_witness(reference) && !find_dispute(reference, set, buffers->count, tolerance, &value, &part)) {
        witness->agrees = witness->agrees || strcmp(witness->name, who) != 0;
        return HONE_OK;
    }
    if (has_witness(reference)) {
        witness->judged++;
        if (!add_part(reference, buffers, part)) return HONE_OK;
        hone_status status = check_result(reference, set, value, tolerance, &error, err);
        if (error > *out_max_error) *out_max_error = error;
        if (status != HONE_OK) return status;
    }
    keep_witness(reference, set, buffers->count, who);
    return HONE_OK;
}

hone_status hone_reference_check(
    hone_reference *reference,
    const hone_buffers *buffers,
    size_t set,
    const hone_tolerance *tolerance,
    const char *who,
    double *out_max_error,
    hone_error *err)
{
    const hone_buffer_set *of = &buffers->sets[set];
    *out_max_error = 0;
    bool is_known = true;
    for (uint32_t i = 0; i < buffers->count; i++) {
        if (reference->results[i].block == NULL) continue;
        hone_status status = check_bytes(reference, of, i, tolerance, &is_known, out_max_error, err);
        if (status != HONE_OK) return status;
    }
    if (is_known || who == NULL) return HONE_OK;
    return hear_witness(reference, buffers, of, tolerance, who, out_max_error, err);
}

// Never written -------------------------------------------------------------------------------------------------------

// Rows of `bytes` each, contiguous, whose bytes are all the same: their number, and the index of the first one.
typedef struct plain_rows {
    int64_t count, first;
} plain_rows;

static bool is_plain(const char *row, size_t bytes, char byte)
{
    return bytes > 0 && row[0] == byte && memcmp(row, row + 1, bytes - 1) == 0;
}

// right: correct results, in which rows of this byte are allowed; NULL: none are.
static plain_rows find_plain(const char *data, const char *right, int64_t rows, size_t bytes, char byte)
{
    plain_rows found = {0, -1};
    for (int64_t row = 0; row < rows; row++) {
        const size_t skip = (size_t)row * bytes;
        if (!is_plain(data + skip, bytes, byte) || (right != NULL && is_plain(right + skip, bytes, byte))) continue;
        if (found.first < 0) found.first = row;
        found.count++;
    }
    return found;
}

static bool say_unwritten(
    const char *name,
    const hone_tensor *tensor,
    int64_t index,
    const plain_rows *found,
    const char *what,
    hone_error *err)
{
    char at[128];
    if (found->first < 0) return false;
    hone_verify_format_index(tensor, index, at, sizeof at);
    (void)!hone_fail(err, HONE_KERNEL_FAILED, where, "%s%s %s, one of %lld", name, at, what, (long long)found->count);
    return true;
}

static bool is_unwritten(const hone_reference *reference, uint32_t value, const hone_tensor *came, hone_error *err)
{
    enum { POISON = (char)HONE_POISON_BYTE };
    const char *name = hone_signature_parameter(reference->signature, value)->name, *data = hone_tensor_data(came);
    const hone_tensor *right = &reference->results[value].tensor;
    const bool is_integer = came->dtype.code <= HONE_CODE_UINT || came->dtype.code == HONE_CODE_BOOL;
    const int64_t elements = hone_tensor_elements(came), length = came->ndim > 0 ? came->shape[came->ndim - 1] : 1;
    const size_t element = came->dtype.bits / 8;
    if (is_integer || !hone_tensor_is_row_major(came) || elements == 0 || element == 0) return false;
    const plain_rows poison = find_plain(data, NULL, elements, element, (char)POISON);
    if (say_unwritten(name, came, poison.first, &poison, "was never written", err)) return true;
    const char *known = is_whole(reference) ? hone_tensor_data(right) : NULL;
    const plain_rows zeros = find_plain(data, known, elements / length, (size_t)length * element, 0);
    // A result that is zero everywhere was written that way.
    if (length < 2 || zeros.count == elements / length) return false;
    return say_unwritten(name, came, zeros.first * length, &zeros, "begins a row that was left at zero", err);
}

bool hone_reference_finds_unwritten(
    const hone_reference *reference, const hone_buffers *buffers, size_t set, hone_error *err)
{
    for (uint32_t i = 0; i < buffers->count; i++)
        if (reference->results[i].block != NULL &&
            is_unwritten(reference, i, &buffers->sets[set].fenced[i].tensor, err))
            return true;
    return false;
}
