// Verifies a candidate on the same inputs with other scalars: this detects a kernel that ignores a scale, or takes its
// default for the only value. Each call gets its own plan, because a kernel may compute in prepare what depends on its
// scalars.
#include "tune/worker/session.h"

#include "base/error.h"
#include "base/hash.h"
#include "call/signature.h"

#include <string.h>

static const char where[] = "tune.scalars";

uint8_t hone_session_read_changes(hone_wire_reader *reader)
{
    const uint8_t changes = hone_wire_get_u8(reader);
    if (changes >> HONE_SCALAR_CHANGES != 0) reader->failed = true;
    return reader->failed ? 0 : changes;
}

void hone_session_forget_scalars(hone_session *session)
{
    for (int change = 0; change < HONE_SCALAR_CHANGES; change++) {
        hone_changed_call *changed = &session->changed[change];
        if (changed->call != NULL) hone_reference_deinit(&changed->reference);
        hone_call_release(&changed->call);
        changed->made = false;
    }
    memset(session->known_with_others, 0, sizeof session->known_with_others);
}

// A kernel gets scalars from its call and from its arguments, so both are exchanged.
static void swap_values(hone_session *session, hone_changed_call *changed)
{
    hone_call *call = session->call;
    session->call = changed->call;
    changed->call = call;
    for (size_t i = 0; i < session->buffers.count; i++) {
        const hone_value value = changed->values[i];
        if (value.tag == HONE_VALUE_TENSOR) continue;
        changed->values[i] = session->buffers.sets[0].values[i];
        for (size_t set = 0; set < session->buffers.set_count; set++)
            session->buffers.sets[set].values[i] = value;
    }
}

static void use_others(hone_session *session, hone_changed_call *changed)
{
    swap_values(session, changed);
    session->using = changed;
}

static void use_own(hone_session *session)
{
    hone_changed_call *changed = session->using;
    session->using = NULL;
    swap_values(session, changed);
}

// Arguments that were omitted have their defaults in the call.
static hone_status bind_changed(hone_session *session, hone_scalar_change change, hone_changed_call *out)
{
    const hone_value *given = session->buffers.sets[0].values, *filled = hone_call_values(session->call);
    for (size_t i = 0; i < session->count; i++)
        out->values[i] = given[i].tag == HONE_VALUE_TENSOR ? given[i] : filled[i];
    if (!hone_change_scalars(session->signature, change, out->values)) return HONE_UNSUPPORTED;
    hone_status status =
        hone_call_bind(session->allocator, session->signature, out->values, session->count, false, &out->call, NULL);
    if (status == HONE_OK) hone_call_forget_data(out->call);
    return status;
}

// If the algorithm refuses such a call, or its reference gives NaN, nothing is verified with it.
static void make_changed(hone_session *session, hone_scalar_change change)
{
    hone_changed_call *changed = &session->changed[change];
    hone_reference_use use;
    changed->made = true;
    (void)hone_variant_use(HONE_VARIANT_OTHER, NULL, &use);
    if (!hone_session_is_quick(session) || bind_changed(session, change, changed) != HONE_OK) return;
    const hone_reference_means means = hone_session_reference_means(session);
    use_others(session, changed);
    hone_status status = hone_reference_compute(
        &changed->reference, &means, session->call, &session->buffers, &use, session->seed, NULL);
    use_own(session);
    if (status != HONE_OK) hone_call_release(&changed->call);
}

// "eps=0.4796, causal=true"
static void name_changed(const hone_session *session, const hone_changed_call *changed, char *out, size_t size)
{
    hone_buffer text;
    const hone_value *own = hone_call_values(session->call);
    hone_buffer_init(&text, session->allocator);
    for (size_t i = 0; i < session->count; i++) {
        if (changed->values[i].tag == HONE_VALUE_TENSOR || hone_values_equal(&own[i], &changed->values[i])) continue;
        hone_buffer_format(
            &text, "%s%s=", text.size > 0 ? ", " : "", hone_signature_parameter(session->signature, i)->name);
        hone_append_literal(&text, &changed->values[i]);
    }
    hone_words_copy(out, size, hone_buffer_string(&text));
    hone_buffer_deinit(&text);
}

static hone_failure run_changed(hone_runner *runner, hone_changed_call *changed, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_runner other;
    hone_error why = {0};
    use_others(session, changed);
    hone_failure failure = hone_runner_init(&other, session, &runner->kernel, &runner->config, &why);
    // A kernel that cannot be prepared for the changed call refuses it, which is allowed.
    if (failure != HONE_FAILURE_NONE)
        failure = HONE_FAILURE_NONE;
    else
        failure = hone_runner_verify(&other, out_max_error, &why);
    if (failure == HONE_FAILURE_UNSUPPORTED) failure = HONE_FAILURE_NONE;
    runner->verified_ns += other.verified_ns;
    hone_runner_deinit(&other);
    use_own(session);
    if (failure == HONE_FAILURE_NONE) return failure;
    char words[96];
    name_changed(session, changed, words, sizeof words);
    hone_fail(err, HONE_KERNEL_FAILED, where, "with %s: %s", words, why.message);
    return failure;
}

static uint64_t identity_of(const hone_runner *runner)
{
    const hone_kernel *kernel = &runner->kernel;
    const uint64_t parts[] = {
        hone_hash64(kernel->name, strlen(kernel->name)),
        (uint64_t)kernel->platform << 32 | (uint64_t)kernel->backend,
        hone_hash64(runner->config.values, runner->config.count * sizeof runner->config.values[0]),
    };
    return hone_hash64(parts, sizeof parts) | 1;
}

static bool is_known(const hone_session *session, uint64_t identity)
{
    for (uint32_t i = 0; i < HONE_KNOWN_WITH_OTHERS; i++)
        if (session->known_with_others[i] == identity) return true;
    return false;
}

// One plan is for all values of scalars that are not part of the key: this detects a kernel that fixes them in prepare
// or in its first run.
static hone_failure verify_ignored(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_changed_call *changed = &session->changed[HONE_CHANGE_IGNORED];
    hone_error why = {0};
    double error = 0;
    if (!changed->made) make_changed(session, HONE_CHANGE_IGNORED);
    if (changed->call == NULL) return HONE_FAILURE_NONE;
    use_others(session, changed);
    const hone_failure failure = hone_runner_verify(runner, &error, &why);
    use_own(session);
    if (error > *out_max_error) *out_max_error = error;
    if (failure == HONE_FAILURE_NONE || failure == HONE_FAILURE_UNSUPPORTED) return HONE_FAILURE_NONE;
    char words[96];
    name_changed(session, changed, words, sizeof words);
    hone_fail(
        err, HONE_KERNEL_FAILED, where, "with %s, by a plan that ran with another value before: %s", words,
        why.message);
    return failure;
}

static hone_failure verify_change(
    hone_runner *runner, hone_scalar_change change, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_changed_call *changed = &session->changed[change];
    if (!changed->made) make_changed(session, change);
    if (changed->call == NULL) return HONE_FAILURE_NONE;
    double error = 0;
    const hone_failure failure = run_changed(runner, changed, &error, err);
    if (error > *out_max_error) *out_max_error = error;
    return failure;
}

hone_failure hone_runner_verify_scalars(hone_runner *runner, uint8_t changes, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_failure failure = verify_ignored(runner, out_max_error, err);
    const uint64_t identity = identity_of(runner);
    if (failure != HONE_FAILURE_NONE || changes == 0 || is_known(session, identity)) return failure;
    for (int change = HONE_CHANGE_SCALARS; change < HONE_SCALAR_CHANGES && failure == HONE_FAILURE_NONE; change++)
        if ((changes >> change & 1) != 0)
            failure = verify_change(runner, (hone_scalar_change)change, out_max_error, err);
    if (failure == HONE_FAILURE_NONE)
        session->known_with_others[session->next_known++ % HONE_KNOWN_WITH_OTHERS] = identity;
    return failure;
}
