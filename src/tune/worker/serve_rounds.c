// The worker's side of ROUNDS: measures finalists, interleaved.
#include "tune/worker/session.h"

#include "base/error.h"

#include <math.h>

// Up to so many runs are compared before and after the rounds, for about finals_verified_ns.
enum { FINALS_VERIFIED = 64 };
static const double finals_verified_ns = 10e6;
// On a device, where each run takes a copy and a wait: for all finalists together. Each gets at least
// finals_verified_ns.
static const double device_verified_ns = 200e6;

static const char where[] = "tune.worker";

typedef struct finals {
    hone_session *session;
    hone_rounds asked;
    bool verifies;               // all checks, before and after the rounds
    double looks_ns, repeats_ns; // time until hone_runner_has_time and hone_runner_repeats return false; 0: for ever
    double burst_ns;             // hone_runner.burst_ns
    hone_kernel kernels[HONE_MAX_TOGETHER];
    hone_config configs[HONE_MAX_TOGETHER];
    uint8_t changes[HONE_MAX_TOGETHER]; // of scalars to verify with, a bit for each
    bool is_known[HONE_MAX_TOGETHER];   // a kernel of the library, which its tests check
    hone_runner runners[HONE_MAX_TOGETHER];
} finals;

static hone_status read_finals(finals *f, hone_wire_reader *reader, hone_error *err)
{
    f->asked.count = hone_wire_get_u32(reader);
    if (f->asked.count > HONE_MAX_TOGETHER) return hone_fail(err, HONE_IO, where, "too many finalists");
    for (uint32_t i = 0; i < f->asked.count; i++) {
        hone_status status = hone_message_get_kernel(reader, &f->session->how, &f->kernels[i], err);
        if (status != HONE_OK) return status;
        hone_message_get_config(reader, &f->configs[i]);
        f->changes[i] = hone_session_read_changes(reader);
        f->is_known[i] = hone_wire_get_u8(reader) != 0;
        f->asked.retakes[i] = hone_wire_get_u32(reader);
    }
    f->asked.rounds = hone_wire_get_u32(reader);
    f->asked.seed = hone_wire_get_u64(reader);
    f->asked.limit_ns = hone_wire_get_f64(reader) * 1e9;
    f->verifies = hone_wire_get_u8(reader) != 0;
    f->looks_ns = hone_wire_get_f64(reader);
    f->repeats_ns = hone_wire_get_f64(reader);
    f->burst_ns = hone_wire_get_f64(reader);
    hone_status status = hone_wire_check(reader, err);
    return status != HONE_OK || f->session->open ? status : hone_fail(err, HONE_IO, where, "no call is open");
}

// Whether there is one finalist, the winner, and it is not a kernel of the library: then leaks in one run of thousands
// are searched, too.
static bool is_winner_of_others(const finals *f)
{
    return f->verifies && f->asked.count == 1 && !f->is_known[0];
}

static double most_verified_ns(const finals *f, bool after)
{
    if (hone_site_is_host(&f->session->site) || after) return finals_verified_ns;
    return fmax(device_verified_ns / f->asked.count, finals_verified_ns);
}

// Detects a kernel that returns results it has kept, in about ten runs. Kernels of the library do not keep results, so
// this check comes second for them, and only when there is time.
static hone_failure probe(hone_runner *runner, hone_error *err)
{
    const double probes_ns = 12 * runner->look_ns;
    if (runner->is_known && runner->looks_until_ns > 0 &&
        hone_os_now_ns() + (uint64_t)probes_ns > runner->looks_until_ns) {
        runner->left_out = true;
        return HONE_FAILURE_NONE;
    }
    const hone_failure failure = hone_runner_probe(runner, err);
    return failure == HONE_FAILURE_NONE ? hone_runner_probe_renewed(runner, HONE_FOR_LEADERS, err) : failure;
}

// Other values and a probe would give the same after the rounds as before them, so these checks are made before.
static hone_failure verify_one(const finals *f, hone_runner *runner, bool after, double *out_max_error, hone_error *err)
{
    const double often_ns = most_verified_ns(f, after);
    if (!f->verifies) return hone_runner_verify(runner, out_max_error, err);
    hone_failure failure = after || runner->is_known ? HONE_FAILURE_NONE : probe(runner, err);
    if (failure == HONE_FAILURE_NONE)
        failure = hone_runner_verify_often(runner, FINALS_VERIFIED, often_ns, out_max_error, err);
    if (failure == HONE_FAILURE_NONE && !after && runner->is_known) failure = probe(runner, err);
    if (after || failure != HONE_FAILURE_NONE) return failure;
    return hone_runner_verify_variants(runner, HONE_FOR_WINNERS, out_max_error, err);
}

// Verifies every finalist; out->failed is the index of the one that failed.
static hone_failure verify_all(finals *f, bool after, hone_rounds_answer *out, hone_error *err)
{
    const uint64_t start = hone_os_now_ns();
    hone_failure failure = HONE_FAILURE_NONE;
    for (uint32_t i = 0; i < f->asked.count && failure == HONE_FAILURE_NONE; i++) {
        double error = 0;
        out->failed = i;
        const uint64_t arguments = hone_arguments_digest(&f->runners[i]);
        failure = verify_one(f, &f->runners[i], after, &error, err);
        failure = hone_runner_check_arguments(&f->runners[i], arguments, failure, err);
        if (failure == HONE_FAILURE_NONE) failure = hone_side_effects_compare(&f->session->effects, err);
        if (error > out->max_error[i]) out->max_error[i] = error;
    }
    out->spent.verify_ns += (double)(hone_os_now_ns() - start);
    return failure;
}

// Checks that no finalist wrote where none may write. Which one did is unknown, unless there is only one.
static hone_failure check_all(finals *f, hone_rounds_answer *out, hone_error *err)
{
    out->failed = f->asked.count > 1 ? f->asked.count : 0;
    return f->asked.count > 0 ? hone_runner_check(&f->runners[0], err) : HONE_FAILURE_NONE;
}

// Verifies winners with other scalars, in places that the call allows, and in two threads.
static hone_failure verify_strictly(finals *f, hone_rounds_answer *out, hone_error *err)
{
    const uint64_t start = hone_os_now_ns();
    hone_failure failure = HONE_FAILURE_NONE;
    for (uint32_t i = 0; f->verifies && i < f->asked.count && failure == HONE_FAILURE_NONE; i++) {
        double error = 0;
        out->failed = i;
        if (!hone_runner_must_look(&f->runners[i])) continue;
        const uint64_t arguments = hone_arguments_digest(&f->runners[i]);
        failure = hone_runner_verify_scalars(&f->runners[i], f->changes[i], &error, err);
        if (failure == HONE_FAILURE_NONE)
            failure = hone_runner_verify_places(&f->runners[i], HONE_FOR_WINNERS, &error, err);
        failure = hone_runner_check_arguments(&f->runners[i], arguments, failure, err);
        hone_session_pass_phase(f->session);
        if (error > out->max_error[i]) out->max_error[i] = error;
    }
    out->spent.verify_ns += (double)(hone_os_now_ns() - start);
    return failure;
}

// Kernels of the library do not keep results: of them only the winner gets pairs.
static hone_failure prepare_all(finals *f, hone_spent *spent, uint32_t *out_failed, hone_error *err)
{
    const uint64_t start = hone_os_now_ns();
    hone_failure failure = HONE_FAILURE_NONE;
    for (uint32_t i = 0; i < f->asked.count && failure == HONE_FAILURE_NONE; i++) {
        *out_failed = i;
        failure = hone_runner_init(&f->runners[i], f->session, &f->kernels[i], &f->configs[i], err);
        if (failure != HONE_FAILURE_NONE) break;
        f->runners[i].is_known = f->is_known[i];
        hone_runner_recall(&f->runners[i]);
        if (!f->is_known[i] || f->asked.count == 1) hone_runner_take_pairs(&f->runners[i], f->asked.count == 1);
        hone_side_effects_prepared(&f->session->effects);
        hone_session_pass_phase(f->session);
    }
    spent->prepare_ns += (double)(hone_os_now_ns() - start);
    return failure;
}

static hone_failure warm_all(finals *f, uint32_t *out_failed, hone_error *err)
{
    for (uint32_t i = 0; i < f->asked.count; i++) {
        double warm_ns;
        *out_failed = i;
        if (f->runners[i].verify_ns > hone_warmed_ns) continue;
        const uint64_t arguments = hone_arguments_digest(&f->runners[i]);
        hone_failure failure = hone_runner_warm(&f->runners[i], &warm_ns, err);
        if (failure == HONE_FAILURE_NONE && f->verifies) failure = hone_runner_begin_duel(&f->runners[i], warm_ns, err);
        failure = hone_runner_check_arguments(&f->runners[i], arguments, failure, err);
        if (failure != HONE_FAILURE_NONE) return failure;
    }
    return HONE_FAILURE_NONE;
}

// Takes further samples, up to MOST_SAMPLES, until pairs allow a verdict: for finalists that get all checks, or that
// were suspicious in all of their rounds. Other work on the machine may make more samples necessary.
static hone_failure judge_pairs(finals *f, uint32_t *out_failed, hone_error *err)
{
    enum { MOST_SAMPLES = 24, SUSPICIOUS = 3 };
    hone_failure failure = HONE_FAILURE_NONE;
    for (uint32_t i = 0; i < f->asked.count && failure == HONE_FAILURE_NONE; i++) {
        hone_runner *runner = &f->runners[i];
        *out_failed = i;
        const uint64_t arguments = hone_arguments_digest(runner);
        const bool asks_on = f->verifies || runner->pairs.guilty >= SUSPICIOUS;
        for (int n = 0; asks_on && n < MOST_SAMPLES && failure == HONE_FAILURE_NONE &&
                        hone_runner_wants_pair(runner, runner->verify_ns);
             n++) {
            hone_sample unused;
            failure = hone_runner_sample_in_round(runner, 0, &unused, err);
        }
        failure = hone_runner_check_arguments(runner, arguments, failure, err);
        if (failure == HONE_FAILURE_NONE) failure = hone_runner_judge_pairs(runner, err);
    }
    return failure;
}

static hone_failure pursue_leak(finals *f, hone_error *err)
{
    const uint64_t arguments = hone_arguments_digest(&f->runners[0]);
    hone_failure failure = hone_pursue_slow_leak(&f->runners[0], err);
    if (failure == HONE_FAILURE_NONE) failure = hone_session_check_advice(f->session, err);
    return hone_runner_check_arguments(&f->runners[0], arguments, failure, err);
}

// The round of a single winner is for its pairs, and runs longer than longest_ns get none. The results of its samples
// were compared in the rounds before.
static bool is_sampled(const finals *f)
{
    const double longest_ns = 5e6;
    return f->looks_ns <= 0 || f->asked.count != 1 || !f->is_known[0] || f->runners[0].verify_ns <= longest_ns;
}

static hone_failure sample_all(finals *f, hone_rounds_answer *out, hone_error *err)
{
    hone_runner *runners[HONE_MAX_TOGETHER];
    for (uint32_t i = 0; i < f->asked.count; i++)
        runners[i] = &f->runners[i];
    hone_failure failure = warm_all(f, &out->failed, err);
    hone_session_pass_phase(f->session);
    if (failure == HONE_FAILURE_NONE) failure = hone_measure_rounds(runners, &f->asked, out, err);
    if (failure == HONE_FAILURE_NONE) failure = judge_pairs(f, &out->failed, err);
    hone_session_pass_phase(f->session);
    if (failure == HONE_FAILURE_NONE && is_winner_of_others(f)) failure = pursue_leak(f, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    return f->verifies ? verify_all(f, true, out, err) : check_all(f, out, err);
}

// If all checks are requested, finalists are verified before and after the rounds, because a kernel that is right in
// its first run may be wrong in its thousandth. Otherwise one run of each is compared before the rounds, and after them
// only writes outside of the results are checked.
static hone_failure run_finals(finals *f, hone_rounds_answer *out, hone_error *err)
{
    const uint64_t begin_ns = hone_os_now_ns();
    hone_side_effects_begin(&f->session->effects);
    hone_failure failure = prepare_all(f, &out->spent, &out->failed, err);
    for (uint32_t i = 0; i < f->asked.count; i++) {
        f->runners[i].looks_until_ns = f->looks_ns > 0 ? begin_ns + (uint64_t)f->looks_ns : 0;
        f->runners[i].burst_ns = f->burst_ns;
        f->runners[i].repeats_until_ns = f->repeats_ns > 0 ? begin_ns + (uint64_t)f->repeats_ns : 0;
    }
    if (failure == HONE_FAILURE_NONE) failure = verify_all(f, false, out, err);
    hone_side_effects_begun(&f->session->effects);
    f->session->effects.lingers = is_winner_of_others(f);
    if (failure == HONE_FAILURE_NONE) failure = verify_strictly(f, out, err);
    if (failure == HONE_FAILURE_NONE && is_sampled(f))
        failure = sample_all(f, out, err);
    else if (failure == HONE_FAILURE_NONE)
        failure = check_all(f, out, err);
    for (uint32_t i = 0; i < f->asked.count; i++) {
        out->spent.run_ns += f->runners[i].run_ns + f->runners[i].verified_ns;
        out->spent.verify_ns -= f->runners[i].verified_ns;
        out->left_out = out->left_out || f->runners[i].left_out;
        out->is_brief = out->is_brief || f->runners[i].is_brief;
        hone_runner_deinit(&f->runners[i]);
    }
    // With several finalists, what is left behind at the end cannot be attributed to one of them. It is reported only
    // if it makes all times doubtful (HIDDEN); then each finalist is checked alone.
    hone_error why = {0};
    hone_failure left = hone_session_look_after(f->session, failure, &why);
    const bool is_told = f->asked.count == 1 || left == HONE_FAILURE_HIDDEN;
    if (failure != HONE_FAILURE_NONE || left == HONE_FAILURE_NONE || !is_told) return failure;
    out->failed = f->asked.count > 1 ? f->asked.count : 0;
    *err = why;
    return left;
}

hone_status hone_session_answer_rounds(hone_session *session, hone_wire_reader *reader, hone_buffer *answer)
{
    hone_error err = {0};
    finals *f = hone_alloc(&session->allocator, sizeof *f);
    hone_rounds_answer *rounds_answer = hone_alloc(&session->allocator, sizeof *rounds_answer);
    hone_status status = f != NULL && rounds_answer != NULL ? HONE_OK : HONE_OUT_OF_MEMORY;
    if (status == HONE_OK) {
        f->session = session;
        if (read_finals(f, reader, &err) != HONE_OK)
            rounds_answer->failure = HONE_FAILURE_PREPARE;
        else
            rounds_answer->failure = run_finals(f, rounds_answer, &err);
        rounds_answer->spoiled = session->spoiled;
        rounds_answer->witnessed = session->reference.witness.agrees;
        if (rounds_answer->failure != HONE_FAILURE_NONE) {
            rounds_answer->count = rounds_answer->rounds = 0;
            hone_words_copy(rounds_answer->reason, sizeof rounds_answer->reason, err.message);
        }
        rounds_answer->retired = hone_site_is_lost(&session->site);
        hone_message_put_rounds(answer, rounds_answer);
    }
    hone_free(&session->allocator, rounds_answer);
    hone_free(&session->allocator, f);
    return status;
}
