// Checks of external influences on times. None of them is required: contests run anyway, and record the influence.
#include "runtime/doctor/doctor.h"

#include "base/number.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

static hone_os_conditions conditions(void)
{
    hone_os_conditions now;
    hone_os_conditions_read("", &now);
    return now;
}

static const double much_stolen = 0.02; // as a share of the time: from here on it shows in measured times

// Measures external influences while one processor is busy: the counters since the start of the machine may describe
// last month. Measured once, for all checks.
static hone_os_disturbance watch(hone_doctor_round *round)
{
    const uint64_t watched_ns = 250000000;
    if (round->watched) return round->seen;
    const hone_os_conditions before = conditions();
    for (uint64_t start = hone_os_now_ns(); hone_os_now_ns() - start < watched_ns;) {
    }
    const hone_os_conditions after = conditions();
    round->watched = true;
    return round->seen = hone_os_disturbance_between(&before, &after);
}

static hone_os_disturbance since_the_start(void)
{
    const hone_os_conditions start = {.ticks = 0}, now = conditions();
    return hone_os_disturbance_between(&start, &now);
}

static const char *switch_word(hone_os_switch is)
{
    return is == HONE_OS_ON ? "on" : is == HONE_OS_OFF ? "off" : "not visible here";
}

void hone_doctor_governor(hone_doctor_round *round, hone_doctor_check *out)
{
    (void)round;
    const hone_os_conditions now = conditions();
    out->ok = strcmp(now.governor, "powersave") != 0;
    snprintf(
        out->detail, sizeof out->detail, "%s, turbo %s, hardware threads %s",
        now.governor[0] == '\0' ? "not visible here" : now.governor, switch_word(now.turbo), switch_word(now.smt));
    out->advice = out->ok ? NULL : "cpupower frequency-set -g performance while tuning";
}

void hone_doctor_frequency(hone_doctor_round *round, hone_doctor_check *out)
{
    (void)round;
    const hone_os_conditions now = conditions();
    out->ok = true;
    if (now.most_khz == 0) {
        snprintf(out->detail, sizeof out->detail, "not visible here");
        return;
    }
    snprintf(
        out->detail, sizeof out->detail, "%.0f to %.0f MHz, of %.0f", (double)now.least_khz / 1e3,
        (double)now.most_khz / 1e3, (double)now.processor_khz / 1e3);
    if (now.processor_khz > now.most_khz)
        out->advice = "the limit is below what the processor can: choices are made at that clock";
}

void hone_doctor_pinning(hone_doctor_round *round, hone_doctor_check *out)
{
    (void)round;
    const hone_os_conditions now = conditions();
    out->ok = true;
    snprintf(out->detail, sizeof out->detail, "%d of %d processors may be used", (int)now.allowed, (int)now.online);
    if (now.online > now.allowed)
        out->advice = "the fingerprint counts these alone: tune with as many as the program will have";
}

void hone_doctor_throttling(hone_doctor_round *round, hone_doctor_check *out)
{
    const hone_os_disturbance all = since_the_start(), now = watch(round);
    out->ok = true;
    if (all.throttled < 0 || now.throttled < 0) {
        snprintf(out->detail, sizeof out->detail, "not visible here");
        return;
    }
    snprintf(
        out->detail, sizeof out->detail, "heat or power slowed a core %lld times just now, %lld times since the start",
        (long long)now.throttled, (long long)all.throttled);
    if (now.throttled > 0)
        out->advice = "let the machine cool before tuning: contests interleave, and write down how often it was";
}

// From half a processor of other work on, measured times change.
void hone_doctor_load(hone_doctor_round *round, hone_doctor_check *out)
{
    const hone_os_disturbance all = since_the_start(), now = watch(round);
    const double load = conditions().load, busy = 0.5;
    out->ok = true;
    size_t used = 0;
    if (load < 0)
        used = (size_t)snprintf(out->detail, sizeof out->detail, "not visible here");
    else
        used = (size_t)hone_print(out->detail, sizeof out->detail, "%.2f in the last minute", load);
    if (all.stolen >= 0 && now.stolen >= 0)
        hone_print(
            out->detail + used, sizeof out->detail - used,
            ", the host took %.1f %% of the time just now, %.2f %% since the start", 100 * now.stolen,
            100 * all.stolen);
    if (load > busy) out->advice = "stop other work while tuning: it costs time, and close calls";
    if (now.stolen > much_stolen)
        out->advice = "the host gives this machine's processors to others: tune when it is quieter, or elsewhere";
}

// Contests ------------------------------------------------------------------------------------------------------------

typedef struct disturbed {
    size_t decisions, count, undecided;
    char first[200];      // call of the first that was disturbed
    char first_open[200]; // and of the first that is undecided
} disturbed;

static void keep_call(const hone_store_decision *row, char out[200])
{
    snprintf(out, 200, "%s", row->call != NULL ? row->call : row->key.key);
}

static bool count_disturbed(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    disturbed *found = ctx;
    hone_evidence evidence;
    found->decisions++;
    if (!hone_evidence_of(row->evidence, &evidence)) return true;
    if (evidence.undecided[0] != '\0' && found->undecided++ == 0) keep_call(row, found->first_open);
    if ((evidence.throttled > 0 || evidence.stolen > much_stolen) && found->count++ == 0) keep_call(row, found->first);
    return true;
}

// Counts the stored choices whose measurements were disturbed.
void hone_doctor_contests(hone_doctor_round *round, hone_doctor_check *out)
{
    disturbed found = {.decisions = 0};
    const hone_store_key all = {.algorithm = NULL};
    hone_store *store = hone_runtime_store(round->rt);
    hone_error err;
    out->ok = true;
    if (store == NULL || hone_store_scan(store, HONE_RECORD_DECISION, &all, count_disturbed, &found, &err) != HONE_OK) {
        snprintf(out->detail, sizeof out->detail, "no store that can be read");
        return;
    }
    size_t used = (size_t)snprintf(
        out->detail, sizeof out->detail,
        "%zu of %zu stored choices were measured while a core was slowed or the host took more than %.0f %% of the "
        "time",
        found.count, found.decisions, 100 * much_stolen);
    if (found.count > 0) {
        used += (size_t)snprintf(
            out->detail + used, sizeof out->detail - used, ": %s%s", found.first, found.count > 1 ? ", ..." : "");
        out->advice = "hone tune --audit looks whether they are right";
    }
    if (found.undecided == 0) return;
    snprintf(
        out->detail + used, sizeof out->detail - used, "; %zu left open which is the fastest: %s%s", found.undecided,
        found.first_open, found.undecided > 1 ? ", ..." : "");
    if (out->advice == NULL)
        out->advice =
            "hone explain CALL says why; hone tune --recorded takes recorded ones up again, with more seconds";
}
