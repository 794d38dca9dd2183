// The results of an audit: its sums, and the audit document (docs/audit.md).
#include "base/error.h"
#include "base/json.h"
#include "base/structs.h"
#include "registry/names.h"
#include "runtime/api/audit.h"

#include <string.h>

// The median drift, found by counting: there are few choices, and this needs no memory.
static double median_drift(const hone_audit *audit)
{
    size_t measured = 0;
    for (size_t i = 0; i < audit->count; i++)
        measured += audit->items[i].audited.time_ns > 0;
    for (size_t i = 0; i < audit->count; i++) {
        const hone_audited *candidate = &audit->items[i].audited;
        size_t below = 0, equal = 0;
        if (candidate->time_ns <= 0) continue;
        for (size_t j = 0; j < audit->count; j++) {
            const hone_audited *other = &audit->items[j].audited;
            below += other->time_ns > 0 && other->drift < candidate->drift;
            equal += other->time_ns > 0 && other->drift == candidate->drift;
        }
        if (below <= (measured - 1) / 2 && (measured - 1) / 2 < below + equal) return candidate->drift;
    }
    return 0;
}

static void add(const hone_audited *audited, hone_audit_summary *sum)
{
    sum->choices++;
    sum->past += !audited->passed && !audited->no_call;
    sum->no_call += audited->no_call;
    sum->not_served += !audited->served;
    sum->changed += audited->changed[0] != '\0';
    sum->failed += audited->failure != HONE_FAILURE_NONE;
    sum->taken_back += audited->taken_back;
    if (audited->time_ns <= 0) return;
    sum->measured++;
    sum->flipped += audited->flipped;
    sum->mean_regret += audited->regret;
    if (audited->regret > sum->worst_regret) sum->worst_regret = audited->regret;
}

static void audit_sum_known(const hone_audit *audit, hone_audit_summary *out)
{
    *out = (hone_audit_summary){0};
    for (size_t i = 0; i < audit->count; i++)
        add(&audit->items[i].audited, out);
    if (out->measured == 0) return;
    out->flip_rate = (double)out->flipped / out->measured;
    out->mean_regret /= out->measured;
    out->median_drift = median_drift(audit);
}

void hone_audit_sum_sized(const hone_audit *audit, hone_audit_summary *out, size_t size)
{
    if (audit == NULL || out == NULL) return;
    hone_audit_summary known;
    audit_sum_known(audit, &known);
    hone_struct_give(out, size, &known, sizeof known);
}

// The document --------------------------------------------------------------------------------------------------------

static void put_number(hone_buffer *out, const char *name, double value)
{
    hone_buffer_format(out, ",\"%s\":", name);
    hone_json_number(out, value);
}

static void put_flag(hone_buffer *out, const char *name, bool value)
{
    hone_buffer_format(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static void put_text(hone_buffer *out, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0') return;
    hone_buffer_char(out, ',');
    hone_json_field(out, name, text);
}

static void put_measured(hone_buffer *out, const hone_audited *a)
{
    put_number(out, "time_ns", a->time_ns);
    put_number(out, "low_ns", a->low_ns);
    put_number(out, "high_ns", a->high_ns);
    if (a->default_ns > 0) put_number(out, "default_ns", a->default_ns);
    put_text(out, "best_kernel", a->best_kernel);
    hone_buffer_format(out, ",\"best_config\":%s", a->best_config[0] ? a->best_config : "{}");
    put_number(out, "best_ns", a->best_ns);
    put_number(out, "regret", a->regret);
    put_number(out, "regret_low", a->regret_low);
    put_number(out, "regret_high", a->regret_high);
    put_number(out, "drift", a->drift);
    hone_buffer_format(out, ",\"rivals\":%u,\"rounds\":%u", a->rivals, a->rounds);
    put_flag(out, "flipped", a->flipped);
}

static void put_taken_back(hone_buffer *out, const hone_audited *a)
{
    put_flag(out, "taken_back", a->taken_back);
    put_text(out, "pinned", a->pinned);
    if (a->next_kernel[0] == '\0') return;
    put_text(out, "next_kernel", a->next_kernel);
    hone_buffer_format(out, ",\"next_config\":%s", a->next_config[0] ? a->next_config : "{}");
    put_number(out, "next_ns", a->next_ns);
}

static void put_choice(hone_buffer *out, const hone_audited *a)
{
    hone_buffer_char(out, '{');
    hone_json_field(out, "algorithm", a->algorithm);
    put_text(out, "version", a->version);
    put_text(out, "key", a->key);
    put_text(out, "call", a->call);
    put_text(out, "regime", hone_regime_name(a->regime));
    put_text(out, "kernel", a->kernel);
    hone_buffer_format(out, ",\"config\":%s", a->config[0] ? a->config : "{}");
    put_number(out, "stored_ns", a->stored_ns);
    if (a->time_ns > 0) put_measured(out, a);
    put_text(out, "changed", a->changed);
    if (a->failure != HONE_FAILURE_NONE) put_text(out, "failure", hone_failure_name(a->failure));
    if (a->no_call) put_flag(out, "no_call", true);
    put_text(out, "reason", a->reason);
    if (a->failure != HONE_FAILURE_NONE) put_taken_back(out, a);
    put_flag(out, "served", a->served);
    put_flag(out, "passed", a->passed);
    hone_buffer_char(out, '}');
}

static void put_sum(hone_buffer *out, const hone_audit *audit)
{
    hone_audit_summary sum;
    hone_audit_sum(audit, &sum);
    hone_buffer_format(
        out,
        "\"summary\":{\"choices\":%u,\"measured\":%u,\"flipped\":%u,\"failed\":%u,\"changed\":%u,\"not_served\":%u,"
        "\"past\":%u,\"taken_back\":%u,\"no_call\":%u",
        sum.choices, sum.measured, sum.flipped, sum.failed, sum.changed, sum.not_served, sum.past, sum.taken_back,
        sum.no_call);
    put_number(out, "flip_rate", sum.flip_rate);
    put_number(out, "mean_regret", sum.mean_regret);
    put_number(out, "worst_regret", sum.worst_regret);
    put_number(out, "median_drift", sum.median_drift);
    hone_buffer_char(out, '}');
}

// The text is freed without an audit, hence the system's allocator.
hone_status hone_audit_json(const hone_audit *audit, char **out_text, hone_error *err)
{
    if (audit == NULL || out_text == NULL) {
        if (out_text != NULL) *out_text = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, "audit.json", "the audit or out_text is NULL");
    }
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_buffer_text(&out, "{\"hone_audit\":1");
    put_number(&out, "threshold", audit->threshold);
    hone_buffer_text(&out, ",\"choices\":[");
    for (size_t i = 0; i < audit->count; i++) {
        if (i > 0) hone_buffer_char(&out, ',');
        put_choice(&out, &audit->items[i].audited);
    }
    hone_buffer_text(&out, "],");
    put_sum(&out, audit);
    hone_buffer_text(&out, "}\n");
    *out_text = hone_buffer_take(&out);
    hone_buffer_deinit(&out);
    return *out_text != NULL ? HONE_OK : hone_fail_memory(err, "tune.audit");
}
