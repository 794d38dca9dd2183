// Verifies a candidate that was right on memory that suits it in other places that its call allows: on arrays that are
// aligned no better than the call's key says, with a wall right behind them and then right before them. Its scratch
// memory is placed in the same way.
//
// The candidate also runs in a thread with the smallest stack that is promised.
//
// An access to a wall is recorded and the run goes on (os/walls.h); the message names the array beside it. Any other
// fault ends the process with an exit code that says which of these checks it was.
#include "tune/worker/session.h"

#include "base/error.h"
#include "os/walls.h"

#include <string.h>

static const char where[] = "tune.strict";
static const size_t most_bytes = 256u << 20;

// Where an array lies in its room.
// BADLY: as near to the end as the alignment allows, and no better aligned than that. TIGHTLY: nearer, if a better
// alignment comes of it, and with explicit strides. AT_START: at the start, with a byte_offset. APART: some arrays have
// the alignment of `half`, the others lie at the start: this detects a kernel that checks the alignment of one array
// only.
typedef enum placing_sort { BADLY, TIGHTLY, AT_START, APART } placing_sort;

typedef struct placing {
    placing_sort sort;
    uint32_t half;   // bytes that an address is past a multiple of 64; 0: aligned as the call's key says, and no better
    uint32_t bit;    // APART: the bit of an array's number that selects the former
    bool is_flipped; // APART: selects those whose bit is 0
} placing;

enum { LINE = 64, HALF = 32 }; // bytes: the alignment for vectors of 64, and the one that suffices for those of 32
static const uint64_t other_offset = LINE;

typedef struct strict_arrays {
    hone_os_walled walled[HONE_MAX_VALUES];
    size_t count;                      // number of arrays that have room
    uint32_t numbers[HONE_MAX_VALUES]; // of these arrays, from 0 on
    char *low[HONE_MAX_VALUES];        // start of the span
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t strides[HONE_MAX_VALUES][HONE_MAX_RANK];
    hone_value values[HONE_MAX_VALUES];
    hone_os_guard guards[HONE_MAX_VALUES]; // of inputs
    hone_os_walled scratch;                // without room: the candidate has none
    char *scratch_low;
} strict_arrays;

// The alignment that a call promises for an array.
static uint32_t least_align(const hone_session *session, size_t index)
{
    const uint32_t align = hone_call_align(session->call, index);
    return align > 0 ? align : HONE_ORDINARY_ALIGN;
}

// The distance past a multiple of LINE. Of what the key allows, both odd multiples are used, depending on is_flipped.
static uint32_t residue_of(placing where_to, uint32_t align)
{
    if (where_to.half >= align) return where_to.half;
    return where_to.is_flipped ? 3 * align : align;
}

static char *place_span(const hone_fenced *fenced, const hone_os_walled *walled, placing where_to, uint32_t align)
{
    const uintptr_t below = (uintptr_t)((char *)fenced->tensor.data - fenced->low);
    if (where_to.sort == AT_START) return walled->room;
    const uintptr_t last = (uintptr_t)walled->room + walled->size - fenced->span + below;
    if (where_to.sort == APART || where_to.half > 0) {
        const uintptr_t past = residue_of(where_to, align) % LINE;
        return (char *)(last - (last - past) % LINE - below);
    }
    uintptr_t first = last & ~(uintptr_t)(align - 1);
    if (where_to.sort == BADLY && first % (2 * (uintptr_t)align) == 0) first -= align;
    return (char *)(first - below);
}

static void open_arrays(strict_arrays *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)hone_os_guard_open(&arrays->guards[i]);
}

static void free_arrays(strict_arrays *arrays, size_t count)
{
    open_arrays(arrays, count);
    for (size_t i = 0; i < count; i++)
        hone_os_walled_destroy(&arrays->walled[i]);
    hone_os_walled_destroy(&arrays->scratch);
}

static bool make_room(const hone_runner *runner, strict_arrays *arrays)
{
    const hone_session *session = runner->session;
    const hone_buffers *buffers = &session->buffers;
    const size_t asked = runner->scratch.block != NULL ? runner->scratch.size : 0;
    const size_t scratch = asked <= most_bytes ? asked : 0;
    memset(arrays, 0, sizeof *arrays);
    if (scratch > 0 && !hone_os_walled_create(&arrays->scratch, scratch + 2 * HONE_SCRATCH_ALIGN, false)) return false;
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *fenced = &buffers->sets[0].fenced[i];
        const size_t size = fenced->span + 2 * LINE;
        if (fenced->block == NULL) continue;
        arrays->numbers[i] = (uint32_t)arrays->count++;
        if (hone_os_walled_create(&arrays->walled[i], size, hone_buffers_is_result(buffers, i))) continue;
        free_arrays(arrays, buffers->count);
        return false;
    }
    return true;
}

// Describes the same array in the other way that a host may choose.
static void describe_otherwise(hone_tensor *tensor, int64_t strides[HONE_MAX_RANK], placing where_to)
{
    if (where_to.sort == AT_START) {
        tensor->data = (char *)tensor->data - other_offset;
        tensor->byte_offset += other_offset;
    }
    if (where_to.sort != TIGHTLY || tensor->strides != NULL) return;
    int64_t stride = 1;
    for (int32_t i = tensor->ndim; i-- > 0;) {
        strides[i] = stride;
        stride *= tensor->shape[i];
    }
    tensor->strides = strides;
}

static void place_array(const hone_session *session, strict_arrays *arrays, size_t index, placing all)
{
    const hone_fenced *fenced = &session->buffers.sets[0].fenced[index];
    const bool is_apart = (arrays->numbers[index] >> all.bit & 1) != all.is_flipped;
    const placing where_to = all.sort != APART || is_apart ? all : (placing){.sort = AT_START};
    const uint32_t align = least_align(session, index);
    hone_os_walled *walled = &arrays->walled[index];
    char *low = arrays->low[index] = place_span(fenced, walled, where_to, align);
    const bool is_input = hone_buffers_is_input(&session->buffers, index);
    memset(walled->room, HONE_GUARD_BYTE, (size_t)(low - walled->room));
    memset(low + fenced->span, HONE_GUARD_BYTE, (size_t)(walled->room + walled->size - (low + fenced->span)));
    if (is_input)
        memcpy(low, fenced->low, fenced->span);
    else
        memset(low, HONE_POISON_BYTE, fenced->span);
    arrays->tensors[index] = fenced->tensor;
    arrays->tensors[index].data = low + ((char *)fenced->tensor.data - fenced->low);
    describe_otherwise(&arrays->tensors[index], arrays->strides[index], all);
    arrays->values[index] = hone_of_tensor(&arrays->tensors[index]);
    if (is_input) (void)hone_os_guard_close(&arrays->guards[index], walled->room, walled->size);
}

// Aligned as it is promised, and no better.
static void place_scratch(strict_arrays *arrays, size_t size, placing where_to)
{
    hone_os_walled *walled = &arrays->scratch;
    const uintptr_t last = (uintptr_t)walled->room + walled->size - size;
    uintptr_t low = last & ~(uintptr_t)(HONE_SCRATCH_ALIGN - 1);
    if (where_to.sort == BADLY && low % (2 * HONE_SCRATCH_ALIGN) == 0) low -= HONE_SCRATCH_ALIGN;
    arrays->scratch_low = where_to.sort == AT_START ? walled->room : (char *)low;
    memset(walled->room, HONE_GUARD_BYTE, walled->size);
    memset(arrays->scratch_low, HONE_POISON_BYTE, size);
}

static void place_arrays(const hone_runner *runner, strict_arrays *arrays, placing where_to)
{
    const hone_session *session = runner->session;
    const hone_buffers *buffers = &session->buffers;
    open_arrays(arrays, buffers->count);
    if (arrays->scratch.block != NULL) place_scratch(arrays, runner->scratch.size, where_to);
    for (size_t i = 0; i < buffers->count; i++) {
        arrays->values[i] = buffers->sets[0].values[i];
        if (arrays->walled[i].block != NULL) place_array(session, arrays, i, where_to);
    }
}

static bool is_slack(const char *from, const char *to)
{
    for (; from < to; from++)
        if ((unsigned char)*from != HONE_GUARD_BYTE) return false;
    return true;
}

// What a run did around the span at `low`, for a message; NULL: nothing.
static const char *fault_around(const hone_os_walled *walled, const char *low, size_t span)
{
    if (hone_os_guard_was_written(&walled->behind)) return "read or wrote past the end of";
    if (hone_os_guard_was_written(&walled->before)) return "read or wrote before the start of";
    if (!is_slack(walled->room, low)) return "wrote before the start of";
    if (!is_slack(low + span, walled->room + walled->size)) return "wrote past the end of";
    return NULL;
}

static const char *fault_of(const strict_arrays *arrays, size_t index, size_t span)
{
    if (hone_os_guard_was_written(&arrays->guards[index])) return "wrote into";
    return fault_around(&arrays->walled[index], arrays->low[index], span);
}

static hone_failure check_scratch(const hone_runner *runner, const strict_arrays *arrays, hone_error *err)
{
    const size_t size = runner->scratch.size;
    if (arrays->scratch.block == NULL) return HONE_FAILURE_NONE;
    const char *fault = fault_around(&arrays->scratch, arrays->scratch_low, size);
    if (fault == NULL) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "%s its scratch of %zu bytes", fault, size);
    return HONE_FAILURE_BOUNDS;
}

static hone_failure check_arrays(const hone_runner *runner, const strict_arrays *arrays, hone_error *err)
{
    const hone_buffers *buffers = &runner->session->buffers;
    for (size_t i = 0; i < buffers->count; i++) {
        if (arrays->walled[i].block == NULL) continue;
        const char *fault = fault_of(arrays, i, buffers->sets[0].fenced[i].span);
        if (fault == NULL) continue;
        hone_fail(
            err, HONE_KERNEL_FAILED, where, "%s %s", fault, hone_signature_parameter(buffers->signature, i)->name);
        return HONE_FAILURE_BOUNDS;
    }
    return check_scratch(runner, arrays, err);
}

// Copies results to where they are checked. A host may have mapped the pages of its results elsewhere too, in a file or
// in another process: a kernel that puts pages of its own in their place has written nothing there.
static void take_results(const hone_session *session, const strict_arrays *arrays)
{
    const hone_buffers *buffers = &session->buffers;
    for (size_t i = 0; i < buffers->count; i++) {
        if (!hone_buffers_is_result(buffers, i)) continue;
        const hone_os_walled *walled = &arrays->walled[i];
        const char *low = walled->mirror != NULL ? walled->mirror + (arrays->low[i] - walled->room) : arrays->low[i];
        memcpy(buffers->sets[0].fenced[i].low, low, buffers->sets[0].fenced[i].span);
    }
}

static const char *words_of(placing where_to)
{
    switch (where_to.sort) {
    case TIGHTLY:
        return "on arrays whose strides are said";
    case AT_START:
        return "on arrays whose byte_offset is 64";
    case APART:
        return where_to.half > 0 ? "on arrays of which some are aligned to 32 bytes, and not to 64"
                                 : "on arrays of which some are aligned no better than the call allows";
    default:
        return where_to.half > 0 ? "on arrays that are aligned to 32 bytes, and not to 64"
                                 : "on arrays that are aligned no better than the call allows";
    }
}

static bool is_of_alignment(placing where_to)
{
    return where_to.sort == BADLY || where_to.sort == APART;
}

static hone_failure run_placed(
    hone_runner *runner, const strict_arrays *arrays, placing where_to, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_error why = {.message = ""};
    void *const scratch = runner->execution.scratch;
    const bool has_other_scratch = arrays->scratch.block != NULL;
    if (hone_buffers_poison(&session->buffers, 0, err) != HONE_OK) return HONE_FAILURE_RUN;
    if (has_other_scratch && hone_guarded_scratch_poison(&runner->scratch, NULL, err) != HONE_OK)
        return HONE_FAILURE_RUN;
    if (has_other_scratch) runner->execution.scratch = arrays->scratch_low;
    hone_os_exit_on_fault(is_of_alignment(where_to) ? HONE_EXIT_UNALIGNED : 0);
    hone_status status = hone_runner_run_values(runner, arrays->values, &why);
    hone_os_exit_on_fault(0);
    runner->execution.scratch = scratch;
    hone_failure failure = hone_runner_check_meddling(runner, err);
    if (failure == HONE_FAILURE_NONE) failure = check_arrays(runner, arrays, err);
    if (failure != HONE_FAILURE_NONE) {
        if (where_to.sort == AT_START) hone_fail_prefix(err, HONE_KERNEL_FAILED, "%s", words_of(where_to));
        return failure;
    }
    if (has_other_scratch && !hone_guarded_scratch_is_untouched(&runner->scratch)) {
        hone_fail(
            err, HONE_KERNEL_FAILED, where, "works in the scratch that an earlier run was given, and not in its own");
        return HONE_FAILURE_RACY;
    }
    take_results(session, arrays);
    failure = hone_runner_judge(runner, status, &why, out_max_error, err);
    if (failure == HONE_FAILURE_NONE) return failure;
    hone_fail_prefix(err, HONE_KERNEL_FAILED, "%s", words_of(where_to));
    return is_of_alignment(where_to) ? HONE_FAILURE_UNALIGNED : failure;
}

static bool has_walls(const hone_session *session)
{
    return session->buffers.guards && hone_buffers_bytes(&session->buffers) <= most_bytes;
}

// A kernel that is wrong now and then is wrong wherever the arrays lie.
static bool is_right_again(hone_runner *runner, strict_arrays *arrays, placing at)
{
    double unused = 0;
    place_arrays(runner, arrays, at);
    return run_placed(runner, arrays, at, &unused, NULL) == HONE_FAILURE_NONE;
}

// Number of bits that distinguish `count` arrays: two bits distinguish four. For any two arrays there is a placing in
// which the first one's address is better than the second one's, and one the other way round.
static uint32_t bits_of(size_t count)
{
    uint32_t bits = 0;
    while (((size_t)1 << bits) < count)
        bits++;
    return bits;
}

enum { FIRSTS = 3 };

// Number of placings. All candidates get the first ones, in which simple mistakes fail. Winners also get those of
// arrays with different alignments and, with is_whole, those that matter only to vectors of 64 bytes.
static uint32_t count_placings(const strict_arrays *arrays, hone_verify_depth depth, bool is_whole)
{
    const uint32_t apart = 2 * bits_of(arrays->count);
    if (depth < HONE_FOR_WINNERS) return FIRSTS;
    return FIRSTS + (is_whole ? 2 * apart + 1 : apart);
}

static placing placing_at(const strict_arrays *arrays, uint32_t number)
{
    static const placing first[FIRSTS] = {{.sort = BADLY}, {.sort = TIGHTLY}, {.sort = AT_START}};
    const uint32_t apart = 2 * bits_of(arrays->count);
    if (number < FIRSTS) return first[number];
    number -= FIRSTS;
    if (number == 2 * apart) return (placing){.sort = BADLY, .half = HALF};
    return (placing){
        .sort = APART, .half = number < apart ? 0 : HALF, .bit = number % apart / 2, .is_flipped = number % 2 != 0};
}

hone_failure hone_runner_verify_placed(
    hone_runner *runner, hone_verify_depth depth, bool is_whole, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_failure failure = HONE_FAILURE_NONE;
    if (!has_walls(session)) return HONE_FAILURE_NONE;
    strict_arrays *arrays = hone_alloc(&session->allocator, sizeof *arrays);
    const bool has_room = arrays != NULL && make_room(runner, arrays); // without memory it returns NONE
    const uint32_t count = has_room ? count_placings(arrays, depth, is_whole) : 0;
    for (uint32_t i = 0; failure == HONE_FAILURE_NONE && i < count; i++) {
        const placing at = placing_at(arrays, i);
        double error = 0;
        const bool goes_on = i == 0                            ? hone_runner_must_look(runner)
                             : at.sort == APART || at.half > 0 ? hone_runner_repeats(runner)
                                                               : hone_runner_has_time(runner);
        if (!goes_on) break;
        place_arrays(runner, arrays, at);
        failure = run_placed(runner, arrays, at, &error, err);
        if (failure == HONE_FAILURE_UNALIGNED && is_right_again(runner, arrays, at)) failure = HONE_FAILURE_WRONG;
        if (error > *out_max_error) *out_max_error = error;
    }
    if (has_room) free_arrays(arrays, session->buffers.count);
    hone_free(&session->allocator, arrays);
    return failure;
}

// A small stack -------------------------------------------------------------------------------------------------------

typedef struct small_run {
    hone_runner *runner;
    hone_status status;
    hone_error why;
} small_run;

static void run_once(void *ctx)
{
    small_run *r = ctx;
    r->status = hone_runner_run_values(r->runner, r->runner->session->buffers.sets[0].values, &r->why);
}

hone_failure hone_runner_verify_stack(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    small_run r = {.runner = runner};
    double error = 0;
    if (!session->buffers.guards || !hone_site_is_host(&session->site)) return HONE_FAILURE_NONE;
    if (hone_buffers_poison(&session->buffers, 0, err) != HONE_OK) return HONE_FAILURE_RUN;
    hone_os_exit_on_fault(HONE_EXIT_STACK);
    const bool ran = hone_os_run_on_stack(HONE_LEAST_STACK, run_once, &r);
    hone_os_exit_on_fault(0);
    if (!ran) return HONE_FAILURE_NONE; // no memory for the stack
    const hone_failure failure = hone_runner_judge(runner, r.status, &r.why, &error, err);
    if (error > *out_max_error) *out_max_error = error;
    if (failure != HONE_FAILURE_NONE)
        hone_fail_prefix(err, HONE_KERNEL_FAILED, "in another thread than the one that it was prepared in");
    return failure;
}

// A host's threads ----------------------------------------------------------------------------------------------------

// A number that rows are no multiple of, to detect a kernel that gives each thread as many rows and forgets the rest.
// It is also larger than the threads of this machine, and than a buffer for the threads of most machines.
static int32_t odd_threads(const hone_session *session)
{
    enum { LEAST = 67 };
    const int32_t own = session->device.threads;
    return own < LEAST ? LEAST : 2 * own + 1;
}

// hone_parallel_for allows this order, and hone's own pool never uses it.
static void run_backwards(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    (void)pool;
    while (count-- > 0)
        body(ctx, count);
}

hone_failure hone_runner_verify_order(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_error why = {.message = ""};
    double error = 0;
    if (runner->plan.parallel_for == NULL || !hone_site_is_host(&session->site)) return HONE_FAILURE_NONE;
    if (hone_buffers_poison(&session->buffers, 0, err) != HONE_OK) return HONE_FAILURE_RUN;
    const hone_execution own = runner->execution;
    runner->execution.struct_size = sizeof own;
    runner->execution.parallel_for = run_backwards;
    runner->execution.threads = odd_threads(session);
    const hone_status status = hone_runner_run_values(runner, session->buffers.sets[0].values, &why);
    runner->execution = own;
    const hone_failure failure = hone_runner_judge(runner, status, &why, &error, err);
    if (error > *out_max_error) *out_max_error = error;
    if (failure != HONE_FAILURE_NONE)
        hone_fail_prefix(
            err, HONE_KERNEL_FAILED, "where the host says %d threads, and its parallel_for begins with the last index",
            odd_threads(session));
    return failure;
}

// Verifies without a pool: a plan may come without threads. It is prepared so, too, because what a kernel prepares may
// be for threads. A kernel may refuse.
hone_failure hone_runner_verify_alone(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_pool *const given = session->given_pool, *const own = session->own_pool;
    hone_runner other;
    double error = 0;
    // In a process of the session's own: a kernel that calls the missing function ends the process.
    if (runner->plan.parallel_for == NULL || !session->buffers.guards || !hone_site_is_host(&session->site) ||
        hone_platform_facts_of(runner->kernel.platform)->is_interpreted)
        return HONE_FAILURE_NONE;
    session->given_pool = session->own_pool = NULL;
    hone_failure failure = hone_runner_init(&other, session, &runner->kernel, &runner->config, NULL);
    session->given_pool = given;
    session->own_pool = own;
    failure = failure == HONE_FAILURE_NONE ? hone_runner_verify(&other, &error, err) : HONE_FAILURE_NONE;
    if (failure == HONE_FAILURE_UNSUPPORTED) failure = HONE_FAILURE_NONE;
    runner->verified_ns += other.verified_ns;
    hone_runner_deinit(&other);
    if (error > *out_max_error) *out_max_error = error;
    if (failure != HONE_FAILURE_NONE) hone_fail_prefix(err, HONE_KERNEL_FAILED, "where the plan lends no threads");
    return failure;
}

// Everywhere ----------------------------------------------------------------------------------------------------------

static hone_failure verify_loaded(hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    const bool is_whole = depth == HONE_FOR_WINNERS && session->variants.loaded == HONE_VARIANT_ORIGINAL &&
                          hone_session_is_quick(session);
    hone_failure failure = hone_runner_verify_placed(runner, depth, is_whole, out_max_error, err);
    hone_session_pass_phase(session);
    if (depth != HONE_FOR_WINNERS || failure != HONE_FAILURE_NONE || !hone_runner_has_time(runner)) return failure;
    // Each of the two takes one thread's time, which is that of a phase on a machine with many threads.
    failure = hone_runner_verify_order(runner, out_max_error, err);
    hone_session_pass_phase(session);
    if (failure == HONE_FAILURE_NONE && hone_runner_has_time(runner))
        failure = hone_runner_verify_alone(runner, out_max_error, err);
    hone_session_pass_phase(session);
    if (failure == HONE_FAILURE_NONE && hone_runner_has_time(runner))
        failure = hone_runner_verify_stack(runner, out_max_error, err);
    if (failure == HONE_FAILURE_NONE && hone_runner_has_time(runner)) failure = hone_runner_verify_racing(runner, err);
    return failure;
}

// A kernel may have a separate path for unusual rows, with mistakes of its own.
static hone_failure verify_uneven(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    if (!session->variants.variants[HONE_VARIANT_UNEVEN].has_reference || !hone_runner_repeats(runner))
        return HONE_FAILURE_NONE;
    if (hone_variants_load(&session->variants, HONE_VARIANT_UNEVEN, &session->buffers, err) != HONE_OK)
        return HONE_FAILURE_RUN;
    const hone_failure failure = verify_loaded(runner, HONE_FOR_WINNERS, out_max_error, err);
    if (failure != HONE_FAILURE_NONE)
        hone_fail_prefix(err, HONE_KERNEL_FAILED, "on %s", hone_variant_words(HONE_VARIANT_UNEVEN));
    hone_error *told = failure == HONE_FAILURE_NONE ? err : NULL;
    const hone_status back = hone_variants_load(&session->variants, HONE_VARIANT_ORIGINAL, &session->buffers, told);
    return failure == HONE_FAILURE_NONE && back != HONE_OK ? HONE_FAILURE_RUN : failure;
}

hone_failure hone_runner_verify_places(
    hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err)
{
    const hone_failure failure = verify_loaded(runner, depth, out_max_error, err);
    if (failure != HONE_FAILURE_NONE || depth < HONE_FOR_WINNERS) return failure;
    return verify_uneven(runner, out_max_error, err);
}
