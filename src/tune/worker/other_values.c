// Values for the open call other than its ordinary ones: which are made, when, and with which references; and what
// references are computed with.
#include "tune/worker/session.h"

#include "os/limits.h"

hone_reference_means hone_session_reference_means(const hone_session *session)
{
    return (hone_reference_means){
        .algorithm = &session->algorithm,
        .stand_in = session->stand_in.struct_size != 0 ? &session->stand_in : NULL,
        .device = &session->device,
        .pool = hone_session_pool(session),
        .is_concurrent = session->knows_algorithm,
    };
}

bool hone_session_is_quick(const hone_session *session)
{
    const double most_ns = 100e6;
    const size_t most_bytes = 64u << 20;
    hone_reference_use use;
    (void)hone_variant_use(HONE_VARIANT_OTHER, NULL, &use);
    if (hone_buffers_bytes(&session->buffers) >= most_bytes) return false;
    return (session->reference.time_ns > 0 && session->reference.time_ns < most_ns) ||
           hone_reference_has_quick_parts(&session->algorithm, session->call, use.seconds);
}

// Whether results stay well below the end of their dtype's range: there a result is infinite by one rounding, and
// finite by another.
static bool stays_in_range(const hone_reference *reference)
{
    const double most_of_half = 0x1p14;
    for (int i = 0; i < HONE_MAX_VALUES; i++) {
        const hone_dtype dtype = reference->results[i].tensor.dtype;
        const bool is_narrow = dtype.code != HONE_CODE_BFLOAT && dtype.bits <= 16;
        if (reference->results[i].block != NULL && is_narrow && reference->largest[i] > most_of_half) return false;
    }
    return true;
}

// If the reference gives NaN, for large numbers for example, the variant has no reference.
static void add_reference(hone_session *session, hone_variant_kind kind)
{
    hone_variant *variant = &session->variants.variants[kind];
    const hone_reference_means means = hone_session_reference_means(session);
    hone_reference_use use;
    if (!hone_variant_use(kind, session->reference.largest, &use)) return;
    hone_status status = hone_reference_compute(
        &variant->reference, &means, session->call, &session->buffers, &use, session->seed + (uint64_t)kind, NULL);
    variant->has_reference = status == HONE_OK && stays_in_range(&variant->reference);
    if (status == HONE_OK && !variant->has_reference) hone_reference_deinit(&variant->reference);
    if (!session->stable) variant->there = variant->has_reference;
}

// A kernel that checks one element in ten sees one of the few that differ in one call of ten, so there are several such
// variants. The fewer elements there are, the more of them a kernel can check in no time, and the quicker is a
// reference. Few rows hold few kinds of special values: further variants have the other kinds.
static bool is_asked_again(const hone_session *session, hone_variant_kind kind)
{
    const double most_ns = 5e6;
    return !hone_variant_is_further(kind) || (session->reference.time_ns > 0 && session->reference.time_ns < most_ns);
}

static hone_status make_variant(hone_session *session, hone_variant_kind kind, bool has_reference, hone_error *err)
{
    if (session->variants.variants[kind].there) return HONE_OK;
    if (!hone_variant_is_asked(kind, session->stable, &session->buffers)) return HONE_OK;
    if (!is_asked_again(session, kind)) return HONE_OK;
    hone_status status =
        hone_variants_make(&session->variants, kind, &session->buffers, session->call, session->seed, err);
    if (status == HONE_OK && has_reference) add_reference(session, kind);
    return status;
}

hone_status hone_session_make_variants(
    hone_session *session, hone_verify_depth depth, hone_variant_kind last, hone_error *err)
{
    const bool is_quick = hone_session_is_quick(session);
    hone_status status = HONE_OK;
    for (int kind = 0; kind <= (int)last && status == HONE_OK; kind++)
        if (hone_variant_is_for((hone_variant_kind)kind, depth))
            status = make_variant(session, (hone_variant_kind)kind, is_quick, err);
    if (depth == HONE_FOR_LEADERS && last == HONE_VARIANT_COUNT - 1) session->has_leaders_variants = true;
    hone_error *told = status == HONE_OK ? err : NULL;
    const hone_status back = hone_variants_load(&session->variants, HONE_VARIANT_ORIGINAL, &session->buffers, told);
    return status == HONE_OK ? back : status;
}

// Whether there is memory for a copy of the inputs for each of the three kinds, and for their own pages, which count
// once more when they are written. With less memory, only inputs of ordinary numbers are verified.
static bool has_room(size_t bytes)
{
    const char *unused_by;
    const uint64_t left = (uint64_t)hone_os_memory_left("", &unused_by);
    return left / 4 >= bytes;
}

// For a call that is not quick only large and tiny inputs are made, if time and memory allow them.
static bool is_worth_it(const hone_session *session, hone_variant_kind kind)
{
    const size_t most_bytes = 256u << 20;
    const double most_ns = 250e6;
    const bool is_magnitude = kind == HONE_VARIANT_ORIGINAL || kind == HONE_VARIANT_LARGE || kind == HONE_VARIANT_TINY;
    hone_reference_use use;
    (void)hone_variant_use(HONE_VARIANT_OTHER, NULL, &use);
    if (hone_session_is_quick(session)) return true;
    if (!is_magnitude || session->stable || session->buffers.varied < 0) return false;
    const size_t bytes = hone_buffers_bytes(&session->buffers);
    if (bytes > most_bytes || !has_room(bytes)) return false;
    return (session->reference.time_ns > 0 && session->reference.time_ns < most_ns) ||
           hone_reference_has_quick_parts(&session->algorithm, session->call, use.seconds);
}

hone_status hone_runner_make_all_variants(hone_runner *runner, hone_error *err)
{
    hone_session *session = runner->session;
    hone_status status = HONE_OK;
    bool has_time = true;
    if (session->has_all_variants) return HONE_OK;
    for (int kind = 0; kind < HONE_VARIANT_COUNT && status == HONE_OK && has_time; kind++) {
        if (!is_worth_it(session, (hone_variant_kind)kind)) continue;
        // What is made later would not be used: a smaller call's variants are verified instead.
        has_time = (kind <= HONE_VARIANT_OTHER && !runner->is_known) || hone_runner_has_time(runner);
        if (has_time) status = make_variant(session, (hone_variant_kind)kind, true, err);
    }
    session->has_all_variants = has_time;
    hone_error *told = status == HONE_OK ? err : NULL;
    const hone_status back = hone_variants_load(&session->variants, HONE_VARIANT_ORIGINAL, &session->buffers, told);
    return status == HONE_OK ? back : status;
}
