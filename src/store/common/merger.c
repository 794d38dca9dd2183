// Merging decisions as they are stored: evidence is read for the rule, and the loser written into the winner's.
#include "store/common/merger.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "store/common/row.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "store.merge";

// Losers that a decision keeps.
enum { ALSO_LIMIT = 4 };

hone_status hone_merger_init(hone_merger *merger, const hone_allocator *allocator, size_t count, hone_error *err)
{
    *merger = (hone_merger){.count = count};
    merger->reasons = hone_alloc_array(allocator, count, sizeof *merger->reasons);
    if (merger->reasons == NULL) return hone_fail_memory(err, where);
    hone_buffer_init(&merger->evidence, *allocator);
    return HONE_OK;
}

void hone_merger_deinit(hone_merger *merger)
{
    hone_free(&merger->evidence.allocator, merger->reasons);
    hone_buffer_deinit(&merger->evidence);
}

// Reading evidence ----------------------------------------------------------------------------------------------------

// Evidence that is missing or is no object reads as an empty one: the decision then claims what its columns say.
static hone_status read_evidence(const hone_store_decision *decision, json_t **out, hone_error *err)
{
    const char *text = decision->evidence == NULL ? "" : decision->evidence;
    hone_status status = hone_json_parse(text, strlen(text), out, NULL);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status == HONE_OK && json_is_object(*out)) return HONE_OK;
    json_decref(*out);
    *out = json_object();
    return *out == NULL ? hone_fail_memory(err, where) : HONE_OK;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static uint32_t count_of(const json_t *object, const char *name)
{
    json_int_t count = json_integer_value(json_object_get(object, name));
    return count < 0 ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

static hone_claim claim_of(const hone_store_decision *decision, const json_t *evidence)
{
    return (hone_claim){
        .kernel = decision->kernel,
        .platform = decision->platform,
        .config = decision->config,
        .revision = or_empty(decision->revision),
        .verified = decision->verified,
        .samples = count_of(evidence, "samples"),
        .time_ns = decision->time_ns,
        .low_ns = number_of(evidence, "low_ns"),
        .high_ns = number_of(evidence, "high_ns"),
        .started = text_of(evidence, "started"),
        .runner_up = text_of(evidence, "runner_up"),
        .ratio_low = number_of(evidence, "ratio_low"),
    };
}

// Keeping the loser ---------------------------------------------------------------------------------------------------

static bool same_text(const json_t *a, const json_t *b, const char *name)
{
    return strcmp(text_of(a, name), text_of(b, name)) == 0;
}

static bool same_choice(const json_t *a, const json_t *b)
{
    return same_text(a, b, "kernel") && same_text(a, b, "platform") && same_text(a, b, "revision") &&
           json_equal(json_object_get(a, "config"), json_object_get(b, "config"));
}

static bool has_choice(const json_t *list, const json_t *choice)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (same_choice(json_array_get(list, i), choice)) return true;
    return false;
}

static bool set_text(json_t *object, const char *name, const char *text)
{
    // A text that is no UTF-8 is left out: JSON cannot hold it.
    if (text == NULL || text[0] == '\0') return true;
    json_t *value = json_string(text);
    return value == NULL || json_object_set_new(object, name, value) == 0;
}

static json_t *config_of(const char *text)
{
    json_t *config = NULL;
    return hone_json_parse(text, strlen(text), &config, NULL) == HONE_OK ? config : json_string(text);
}

static bool set_numbers(json_t *object, const json_t *evidence)
{
    static const char *const names[] = {"low_ns", "high_ns", "samples", "started", "verified_against"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(evidence, names[i]);
        if (value != NULL && json_object_set(object, names[i], value) != 0) return false;
    }
    return true;
}

// What is kept of a decision that lost: its choice and what it rested on.
static json_t *summary_of(const hone_store_decision *decision, const json_t *evidence)
{
    json_t *summary = json_object(), *config = config_of(decision->config);
    bool ok = summary != NULL && set_text(summary, "kernel", decision->kernel) &&
              set_text(summary, "platform", decision->platform) && set_text(summary, "revision", decision->revision) &&
              set_text(summary, "source", decision->source) &&
              (config == NULL || json_object_set(summary, "config", config) == 0) &&
              json_object_set_new(summary, "time_ns", json_real(decision->time_ns)) == 0 &&
              set_numbers(summary, evidence);
    json_decref(config);
    if (ok) return summary;
    json_decref(summary);
    return NULL;
}

// Adds to a list of losers what is not the winner's choice nor there already, as far as there is room.
static bool add_loser(json_t *list, const json_t *winner, json_t *loser)
{
    if (json_array_size(list) >= ALSO_LIMIT || !json_is_object(loser)) return true;
    if (same_choice(winner, loser) || has_choice(list, loser)) return true;
    return json_array_append(list, loser) == 0;
}

static bool add_losers(json_t *list, const json_t *winner, const json_t *losers)
{
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(losers); i++)
        ok = add_loser(list, winner, json_array_get(losers, i));
    return ok;
}

// The loser first, then what the two had kept. A new reference.
static json_t *list_losers(
    const json_t *winner, json_t *loser, const json_t *winner_evidence, const json_t *loser_evidence)
{
    json_t *list = json_array();
    if (list != NULL && add_loser(list, winner, loser) &&
        add_losers(list, winner, json_object_get(winner_evidence, "also")) &&
        add_losers(list, winner, json_object_get(loser_evidence, "also")))
        return list;
    json_decref(list);
    return NULL;
}

static bool write_evidence(hone_buffer *out, const json_t *evidence)
{
    char *text = json_dumps(evidence, JSON_COMPACT | JSON_ENSURE_ASCII);
    hone_buffer_clear(out);
    if (text != NULL) hone_buffer_text(out, text);
    bool ok = text != NULL && !out->failed;
    free(text);
    return ok;
}

// A decision and its evidence, read.
typedef struct side {
    const hone_store_decision *decision;
    json_t *evidence;
} side;

// The winner with both lists of losers. *out_changed: its list is another than before.
static bool keep_losers(hone_merger *merger, const side *winner, const side *loser, bool *out_changed)
{
    json_t *chosen = summary_of(winner->decision, winner->evidence);
    json_t *lost = summary_of(loser->decision, loser->evidence);
    json_t *list = chosen != NULL && lost != NULL ? list_losers(chosen, lost, winner->evidence, loser->evidence) : NULL;
    json_t *before = json_object_get(winner->evidence, "also");
    bool ok = list != NULL;
    *out_changed = ok && json_array_size(list) > 0 && (before == NULL || !json_equal(before, list));
    merger->winner = *winner->decision;
    if (*out_changed) {
        ok =
            json_object_set(winner->evidence, "also", list) == 0 && write_evidence(&merger->evidence, winner->evidence);
        merger->winner.evidence = hone_buffer_string(&merger->evidence);
    }
    json_decref(list);
    json_decref(lost);
    json_decref(chosen);
    return ok;
}

// Resolving -----------------------------------------------------------------------------------------------------------

static hone_status resolve(
    hone_merger *merger,
    const side *stored,
    const side *coming,
    hone_merge_reason *reason,
    const hone_store_decision **out,
    hone_error *err)
{
    const hone_claim old = claim_of(stored->decision, stored->evidence);
    const hone_claim new = claim_of(coming->decision, coming->evidence);
    bool changed = false;
    *reason = hone_merge_rule(&old, &new);
    const bool taken = hone_merge_reason_outcome(*reason) == HONE_MERGE_TAKEN;
    if (!keep_losers(merger, taken ? coming : stored, taken ? stored : coming, &changed))
        return hone_fail_memory(err, where);
    if (taken || changed) *out = &merger->winner;
    return HONE_OK;
}

hone_status hone_merger_resolve(
    hone_merger *merger,
    size_t index,
    const hone_store_decision *stored,
    const hone_store_decision *coming,
    const hone_store_decision **out,
    hone_error *err)
{
    hone_assert(index < merger->count);
    hone_merge_reason *reason = &merger->reasons[index];
    *out = NULL;
    if (stored == NULL) {
        *reason = HONE_MERGE_NOTHING_STORED;
        *out = coming;
        return HONE_OK;
    }
    if (!hone_spec_agrees(stored->key.spec, coming->key.spec)) {
        *reason = HONE_MERGE_OTHER_CALL;
        return HONE_OK;
    }
    side old = {.decision = stored}, new = {.decision = coming};
    hone_status status = read_evidence(stored, &old.evidence, err);
    if (status == HONE_OK) status = read_evidence(coming, &new.evidence, err);
    if (status == HONE_OK) status = resolve(merger, &old, &new, reason, out, err);
    json_decref(old.evidence);
    json_decref(new.evidence);
    return status;
}
