// Records what a contest tried, in its order, as one JSON object. Reports draw it, and T4 results list it.
//
// {"seconds":S,"evaluations":[E...],"finals":{"winner":I,"finalists":[{"evaluation":I,"samples_ns":[...],"waited":[...],
// "marks":[...]}...]}}
// E is {"kernel","config","at" (seconds),"raced_ns" (its time in the race),"time_ns","low_ns","high_ns","samples"
// (final values: after the finals, for candidates that took part in them),"runs_ns" (the samples of the race; "waited"
// and "marks" if other work disturbed some of them: message.h),"max_error", or "failure" and "reason";
// "default","dropped", "resumed","same" (its code is that of an earlier config, whose times it has) when true}.
// Optional fields beside them: "roofline":{"operations","bytes" (of a run),"arithmetic" (operations per second at
// best), "levels":{"L1",...} (bytes per second)} and "before":{"kernel","config","time_ns"}, the store's answer when
// the contest began. A field whose value is not known is left out.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "base/json.h"

#include <string.h>

enum { CONFIG_SIZE = 1024 };

static const char where[] = "tune.history";

static void put_number(hone_buffer *out, const char *name, double value)
{
    hone_buffer_format(out, ",\"%s\":", name);
    hone_json_number(out, value);
}

static void put_numbers(hone_buffer *out, const char *name, const double *values, uint32_t count)
{
    hone_buffer_format(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(out, ',');
        hone_json_number(out, values[i]);
    }
    hone_buffer_char(out, ']');
}

static void put_marks(hone_buffer *out, const uint8_t *marks, uint32_t count)
{
    hone_buffer_text(out, ",\"marks\":[");
    for (uint32_t i = 0; i < count; i++)
        hone_buffer_format(out, "%s%u", i > 0 ? "," : "", marks[i]);
    hone_buffer_char(out, ']');
}

static void put_flag(hone_buffer *out, const char *name, bool value)
{
    if (value) hone_buffer_format(out, ",\"%s\":true", name);
}

static void put_times(hone_buffer *out, const hone_candidate *candidate)
{
    const hone_trial *trial = &candidate->trial;
    if (candidate->raced_ns > 0) put_number(out, "raced_ns", candidate->raced_ns);
    if (trial->time_ns <= 0) return;
    put_number(out, "time_ns", trial->time_ns);
    put_number(out, "low_ns", trial->low_ns);
    put_number(out, "high_ns", trial->high_ns);
    hone_buffer_format(out, ",\"samples\":%u", trial->samples);
    if (trial->kept == 0) return;
    put_numbers(out, "runs_ns", trial->kept_ns, trial->kept);
    if (trial->disturbed == 0) return;
    put_numbers(out, "waited", trial->kept_waited, trial->kept);
    put_marks(out, trial->kept_marks, trial->kept);
}

static void put_failure(hone_buffer *out, const hone_trial *trial)
{
    if (trial->failure == HONE_FAILURE_NONE) {
        put_number(out, "max_error", trial->max_error);
        return;
    }
    hone_buffer_char(out, ',');
    hone_json_field(out, "failure", hone_failure_name(trial->failure));
    hone_buffer_char(out, ',');
    hone_json_field(out, "reason", trial->reason);
}

static void put_evaluation(const hone_field *field, const hone_candidate *candidate, hone_buffer *out)
{
    char config[CONFIG_SIZE];
    const hone_kernel_ref *ref = field->contestants[candidate->kernel].ref;
    bool fits = hone_config_json(ref->space, &candidate->config, config, sizeof config) < sizeof config;
    hone_buffer_char(out, '{');
    hone_json_field(out, "kernel", ref->kernel.name);
    hone_buffer_format(out, ",\"config\":%s", fits ? config : "{}");
    put_number(out, "at", candidate->at_seconds);
    if (candidate->trial.spent.prepare_ns > 0) put_number(out, "prepare_ns", candidate->trial.spent.prepare_ns);
    put_times(out, candidate);
    put_failure(out, &candidate->trial);
    put_flag(out, "default", candidate->is_default);
    put_flag(out, "dropped", candidate->trial.dropped);
    put_flag(out, "resumed", candidate->resumed);
    put_flag(out, "same", candidate->trial.same);
    hone_buffer_char(out, '}');
}

static void put_finalist(hone_buffer *out, const hone_finalist *finalist)
{
    double times[HONE_MOST_FINAL_ROUNDS] = {0}, waited[HONE_MOST_FINAL_ROUNDS] = {0};
    uint8_t marks[HONE_MOST_FINAL_ROUNDS] = {0};
    bool disturbed = false;
    for (uint32_t r = 0; r < finalist->rounds; r++) {
        times[r] = finalist->samples[r].time_ns;
        waited[r] = finalist->samples[r].waited;
        marks[r] = (uint8_t)finalist->samples[r].marks;
        disturbed = disturbed || marks[r] != 0;
    }
    put_numbers(out, "samples_ns", times, finalist->rounds);
    if (!disturbed) return;
    put_numbers(out, "waited", waited, finalist->rounds);
    put_marks(out, marks, finalist->rounds);
}

static void put_finals(const hone_standings *standings, const hone_finals *finals, hone_buffer *out)
{
    hone_buffer_format(out, ",\"finals\":{\"winner\":%u,\"finalists\":[", finals->winner);
    for (uint32_t i = 0; i < finals->count; i++) {
        const hone_finalist *finalist = &finals->finalists[i];
        size_t index = (size_t)(finalist->candidate - standings->candidates);
        hone_buffer_format(out, "%s{\"evaluation\":%zu", i > 0 ? "," : "", index);
        put_finalist(out, finalist);
        hone_buffer_char(out, '}');
    }
    hone_buffer_text(out, "]}");
}

static void put_roofline(const hone_contest_state *state, hone_buffer *out)
{
    hone_roofline roofline;
    const hone_question *question = &state->question;
    if (question->call == NULL) return; // a recorded space, which is simulated
    if (!hone_roofline_of(&question->algorithm->algorithm, question->call, &state->trials.peaks, &roofline)) return;
    hone_buffer_text(out, ",\"roofline\":{\"operations\":");
    hone_json_number(out, roofline.cost.operations);
    put_number(out, "bytes", roofline.cost.bytes);
    put_number(out, "arithmetic", roofline.operations);
    hone_buffer_text(out, ",\"levels\":{");
    const char *between = "";
    for (int level = 0; level < HONE_LEVELS; level++) {
        if (!(roofline.bytes[level] > 0)) continue;
        hone_buffer_format(out, "%s\"%s\":", between, hone_level_name((hone_memory_level)level));
        hone_json_number(out, roofline.bytes[level]);
        between = ",";
    }
    hone_buffer_text(out, "}}");
}

static void put_before(const hone_contest_state *state, hone_buffer *out)
{
    char config[CONFIG_SIZE];
    const hone_incumbent *before = &state->known.incumbent;
    if (!before->is_there) return;
    const hone_kernel_ref *ref = state->field.contestants[before->kernel].ref;
    if (hone_config_json(ref->space, &before->config, config, sizeof config) >= sizeof config) return;
    hone_buffer_text(out, ",\"before\":{");
    hone_json_field(out, "kernel", ref->kernel.name);
    hone_buffer_format(out, ",\"config\":%s", config);
    put_number(out, "time_ns", before->time_ns);
    hone_buffer_char(out, '}');
}

hone_status hone_contest_keep_history(hone_contest_state *state, const hone_finals *finals, hone_error *err)
{
    hone_buffer out;
    hone_buffer_init(&out, state->question.environment->allocator);
    hone_buffer_text(&out, "{\"seconds\":");
    hone_json_number(&out, hone_trials_elapsed_seconds(&state->trials));
    hone_buffer_text(&out, ",\"evaluations\":[");
    for (size_t i = 0; i < state->standings.count; i++) {
        if (i > 0) hone_buffer_char(&out, ',');
        put_evaluation(&state->field, &state->standings.candidates[i], &out);
    }
    hone_buffer_char(&out, ']');
    if (finals != NULL) put_finals(&state->standings, finals, &out);
    put_roofline(state, &out);
    put_before(state, &out);
    hone_buffer_char(&out, '}');
    state->out->history = out.failed ? NULL : hone_buffer_take(&out);
    hone_buffer_deinit(&out);
    return state->out->history != NULL ? HONE_OK : hone_fail_memory(err, where);
}
