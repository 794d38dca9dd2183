// hone_explain: the chain link by link, every kernel, the evidence, and on a miss the nearest stored calls.
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "config/chain.h"
#include "registry/names.h"
#include "registry/origin.h"
#include "runtime/api/api.h"
#include "runtime/links/follow.h"
#include "runtime/links/nearest.h"
#include "runtime/links/negatives.h"
#include "runtime/links/trust.h"
#include "store/mirror.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "explain";

enum { LEAST_SAMPLES = 10 }; // of a ratio

typedef struct explanation {
    hone_request request;
    hone_link_report links[HONE_SOURCE_COUNT];
    size_t link_count;
    const hone_link_report *answer; // NULL if no link answered
    const hone_link_report *failed; // a link that ended the chain with an error
    const hone_kernel_ref *const *kernels;
    size_t kernel_count;
    bool out_of_memory; // while kernels were checked
    hone_neighbours nearest;
    hone_negatives negatives;
} explanation;

// An answer of a near call or of a heuristic is a miss too, like none.
static bool is_miss(const explanation *e)
{
    return e->answer == NULL || hone_source_is(e->answer->source, HONE_LINK_GUESSED);
}

// The first link that does not pass the call on: with an answer, or with an error, which ends the chain too.
static const hone_link_report *last_link(const explanation *e)
{
    for (size_t i = 0; i < e->link_count; i++)
        if (e->links[i].status != HONE_NOT_FOUND) return &e->links[i];
    return NULL;
}

// Searches where the answer could have been: the lock file under the policy frozen, else the store.
static hone_status find_nearest(explanation *e, hone_policy policy, hone_error *err)
{
    hone_runtime *rt = e->request.rt;
    const hone_algorithm_entry *algorithm = e->request.op->algorithm;
    const hone_store_key key = hone_request_key(&e->request, e->request.call);
    if (policy == HONE_POLICY_FROZEN) {
        hone_nearest_locked(rt->lock, rt->allocator, algorithm->signature, &key, &e->nearest);
        return HONE_OK;
    }
    hone_store *store = hone_runtime_store(rt);
    hone_status status = store == NULL ? HONE_OK : hone_nearest_find(store, &key, &e->nearest, err);
    if (status == HONE_OUT_OF_MEMORY) return status;
    if (status != HONE_OK) e->nearest.count = 0;
    return HONE_OK;
}

// Fails only for lack of memory, since an explanation would then be wrong. All other failures are part of the
// explanation.
static hone_status gather(explanation *e, hone_error *err)
{
    hone_policy policy = hone_request_policy(&e->request);
    e->link_count = hone_chain_explain(&hone_runtime_links, &e->request, e->request.context, policy, e->links);
    for (size_t i = 0; i < e->link_count; i++)
        if (e->links[i].status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    const hone_link_report *last = last_link(e);
    e->answer = last != NULL && last->status == HONE_OK ? last : NULL;
    e->failed = e->answer == NULL ? last : NULL;
    e->kernels = hone_registry_list(e->request.op->algorithm, &e->kernel_count);
    e->negatives.allocator = e->request.rt->allocator;
    hone_status status = hone_negatives_of_call(&e->request, &e->negatives, err);
    return status == HONE_OK && is_miss(e) ? find_nearest(e, policy, err) : status;
}

static const char *answer_word(const hone_link_report *link)
{
    if (!link->asked) return "not asked";
    return link->status == HONE_OK ? link->decision.kernel : link->status == HONE_NOT_FOUND ? "none" : "error";
}

static const char *eligibility(explanation *e, const hone_kernel_ref *kernel, hone_error *why)
{
    why->message[0] = '\0';
    hone_status status = hone_request_admits(&e->request, kernel, why);
    e->out_of_memory = e->out_of_memory || status == HONE_OUT_OF_MEMORY;
    return status == HONE_OK ? NULL : why->message;
}

enum { PLACE_SIZE = sizeof((hone_error *)0)->message };

static bool is_chosen(const explanation *e, const hone_kernel_ref *kernel)
{
    const hone_decision *decision = e->answer != NULL ? &e->answer->decision : NULL;
    return decision != NULL && strcmp(decision->kernel, kernel->kernel.name) == 0 &&
           decision->platform == kernel->kernel.platform && decision->backend == kernel->kernel.backend;
}

// The reason not to trust a kernel that could run the call; "" if there is none.
static const char *doubt(explanation *e, const hone_kernel_ref *kernel, bool chosen, hone_error *why)
{
    why->message[0] = '\0';
    hone_config config;
    const bool is_guess = !chosen && is_miss(e);
    hone_status status = HONE_OK;
    if (!is_guess) status = hone_kernel_was_right(e->request.rt, kernel, NULL, why);
    if (is_guess) status = hone_kernel_default_config(kernel, e->request.call, e->request.device, &config, why);
    if (is_guess && status == HONE_OK) status = hone_request_trusts(&e->request, kernel, &config, why);
    e->out_of_memory = e->out_of_memory || status == HONE_OUT_OF_MEMORY;
    return status == HONE_OK ? "" : why->message;
}

// The result of a kernel that its contest measured but did not choose.
static void place_beside(const explanation *e, const hone_kernel *kernel, char out[PLACE_SIZE])
{
    const hone_measured *measured =
        hone_negatives_measured(&e->negatives, kernel->name, e->answer->decision.evidence.regime);
    if (measured != NULL)
        hone_print(
            out, PLACE_SIZE, "could run it; measured: %.3f us, the fastest of %" PRIu32 " config%s",
            measured->time_ns / 1e3, measured->configs, measured->configs == 1 ? "" : "s");
    else if (hone_negatives_any(&e->negatives, kernel->name))
        snprintf(out, PLACE_SIZE, "could run it; what was tried of it failed");
    else
        snprintf(out, PLACE_SIZE, "could run it; no measurement of it is stored");
}

// Why an eligible kernel is, or is not, the answer.
static void place(explanation *e, const hone_kernel_ref *ref, hone_error *why, char out[PLACE_SIZE])
{
    const hone_kernel *kernel = &ref->kernel;
    const bool chosen = is_chosen(e, ref);
    const char *text = NULL, *against = doubt(e, ref, chosen, why);
    hone_source source = e->answer != NULL ? e->answer->source : HONE_SOURCE_HEURISTIC;
    if (against[0] != '\0') {
        if (chosen) (void)hone_fail_prefix(why, why->status, "chosen");
        text = why->message;
    } else if (e->answer == NULL)
        text = "could run it, but nothing answered";
    else if (chosen)
        text = "chosen";
    else if (kernel->is_reference)
        text = "the reference: runs when nothing else can";
    else if (source == HONE_SOURCE_HEURISTIC)
        text = hone_kernel_yields(ref, e->request.call, e->request.device)
                   ? "could run it; the heuristic expects another to be faster for this call"
                   : "could run it; the heuristic takes the first by priority";
    else if (source == HONE_SOURCE_TRANSFER)
        text = "could run it; near calls took the chosen one";
    else if (hone_source_is(source, HONE_LINK_NAMED))
        text = "could run it; the chosen one was asked for";
    if (text != NULL)
        snprintf(out, PLACE_SIZE, "%s", text);
    else
        place_beside(e, kernel, out);
}

// The folder of the pack that provided a kernel, NULL if none did.
static const char *pack_of(const hone_kernel_ref *kernel)
{
    const hone_code *code = kernel->kernel.code;
    return code != NULL && code->pack != NULL ? code->pack->folder : NULL;
}

// The name of the variant in its pack's folder, NULL if it has none.
static const char *variant_of(const hone_kernel_ref *kernel)
{
    const hone_code *code = kernel->kernel.code;
    return code != NULL && code->pack != NULL ? code->pack->chosen : NULL;
}

// Text ----------------------------------------------------------------------------------------------------------------

// Speedups of the choice, if there are as many samples as the table of hone tune requires.
static void text_ratios(const hone_decision *decision, hone_buffer *out)
{
    const hone_evidence *evidence = &decision->evidence;
    const char *second = strcmp(evidence->runner_up, decision->kernel) == 0 ? "its next config" : evidence->runner_up;
    if (second[0] != '\0' && evidence->rounds >= LEAST_SAMPLES)
        hone_buffer_format(
            out, "; %.2f times as fast as %s (95 %% %.2f to %.2f)", evidence->ratio, second, evidence->ratio_low,
            evidence->ratio_high);
    else if (second[0] != '\0')
        hone_buffer_format(out, "; too few samples to compare with %s", second);
    const bool default_has_few = evidence->default_samples > 0 && evidence->default_samples < LEAST_SAMPLES;
    if (evidence->default_time_ns > 0 && evidence->default_time_ns == evidence->time_ns)
        hone_buffer_text(out, "; it is the default");
    else if (evidence->default_time_ns > 0 && (evidence->samples < LEAST_SAMPLES || default_has_few))
        hone_buffer_text(out, "; too few samples to compare with the default");
    else if (evidence->default_time_ns > 0)
        hone_buffer_format(out, "; %.2f times as fast as the default", evidence->default_time_ns / evidence->time_ns);
}

// How a contest spent its time.
static void text_spent(const hone_evidence *evidence, hone_buffer *out)
{
    if (!(evidence->run_seconds > 0)) return;
    hone_buffer_format(
        out, "  of these preparing %.1f s, verifying %.1f s, runs %.1f s, waiting %.1f s\n", evidence->prepare_seconds,
        evidence->verify_seconds, evidence->run_seconds, evidence->wait_seconds);
}

static void text_evidence(const hone_decision *decision, hone_buffer *out)
{
    const hone_evidence *evidence = &decision->evidence;
    if (evidence->neighbours[0] != '\0') {
        hone_buffer_format(
            out, "  expected to be %.1f %% slower than the best (%s); hone tune checks it\n  from %s\n",
            100 * evidence->predicted_regret, hone_regime_name(evidence->regime), evidence->neighbours);
        return;
    }
    if (evidence->time_ns <= 0) {
        hone_buffer_format(out, "  not measured\n");
        return;
    }
    hone_buffer_format(
        out, "  %.3f us (95 %% %.3f to %.3f), %u samples, %s", evidence->time_ns / 1e3, evidence->low_ns / 1e3,
        evidence->high_ns / 1e3, evidence->samples, hone_regime_name(evidence->regime));
    text_ratios(decision, out);
    hone_buffer_char(out, '\n');
    if (evidence->floor[0] != '\0') hone_buffer_format(out, "  floor %s\n", evidence->floor);
    if (evidence->verified_against[0] != '\0')
        hone_buffer_format(
            out, "  verified against %s%s%s, error %.3g of what is allowed\n", evidence->verified_against,
            evidence->verified_by[0] != '\0' ? ": " : "", evidence->verified_by, evidence->max_error);
    hone_buffer_format(
        out, "  tuned %s%s%s by hone %s in %.1f s, %u measured%s\n", evidence->started,
        evidence->who[0] != '\0' ? " for " : "", evidence->who, evidence->hone_version, evidence->seconds,
        evidence->measured, evidence->isolated ? "" : ", not isolated");
    if (evidence->tuner[0] != '\0') hone_buffer_format(out, "  proposed by the program's tuner %s\n", evidence->tuner);
    text_spent(evidence, out);
    if (evidence->undecided[0] != '\0') hone_buffer_format(out, "  undecided: %s\n", evidence->undecided);
}

// After the name of a link: the program's function that replaces it.
#define WHOSE(own) (own) != NULL ? " (the program's " : "", (own) != NULL ? (own) : "", (own) != NULL ? ")" : ""

static void text_answer(const explanation *e, hone_buffer *out)
{
    if (e->failed != NULL) {
        hone_buffer_format(out, "%s: %s\n", hone_source_name(e->failed->source), e->failed->why.message);
        return;
    }
    if (e->answer == NULL) {
        hone_buffer_format(out, "no answer under the policy %s\n", hone_policy_name(hone_request_policy(&e->request)));
        return;
    }
    const hone_decision *decision = &e->answer->decision;
    hone_buffer_format(
        out, "answered by %s%s%s%s: %s/%s %s%s%s\n", hone_source_name(e->answer->source), WHOSE(e->answer->own),
        hone_platform_name(decision->platform), decision->kernel, decision->config_json,
        decision->verified ? "" : " (unverified)", decision->bucketed ? " (from its bucket)" : "");
    if (decision->system) hone_buffer_text(out, "  found in the system store\n");
    char away[500];
    if (hone_store_away(hone_runtime_store(e->request.rt), away, sizeof away)[0] != '\0')
        hone_buffer_format(out, "  %s\n", away);
    if (decision->changed[0] != '\0')
        hone_buffer_format(
            out, "  to be checked again: %s (hone tune --recorded measures it anew)\n", decision->changed);
    text_evidence(decision, out);
}

static void explain_text(explanation *e, hone_buffer *out)
{
    hone_buffer_format(
        out, "%s\nkey %s on %s\n", hone_call_text(e->request.call), hone_call_key(e->request.call),
        e->request.device->fingerprint);
    if (e->request.bucket != NULL)
        hone_buffer_format(out, "bucket %s, %s\n", hone_call_key(e->request.bucket), hone_call_text(e->request.bucket));
    text_answer(e, out);
    if (e->request.rt->allows_unverified)
        hone_buffer_text(out, "  HONE_UNVERIFIED=allow: what is not built in answers without being verified\n");
    hone_buffer_text(out, "chain\n");
    for (size_t i = 0; i < e->link_count; i++) {
        const bool is_answer = e->links[i].status == HONE_OK && e->links[i].own == NULL;
        hone_buffer_format(
            out, "  %-10s %-*s%s%s%s%s\n", hone_source_name(e->links[i].source), is_answer ? 0 : 15,
            answer_word(&e->links[i]), e->links[i].status == HONE_OK ? "" : e->links[i].why.message,
            WHOSE(e->links[i].own));
    }
    hone_buffer_text(out, "kernels\n");
    for (size_t i = 0; i < e->kernel_count; i++) {
        hone_error why;
        char placed[PLACE_SIZE];
        const char *reason = eligibility(e, e->kernels[i], &why);
        if (reason == NULL) place(e, e->kernels[i], &why, placed);
        hone_buffer_format(
            out, "  %-8s %-18s %-4s %s\n", hone_platform_name(e->kernels[i]->kernel.platform),
            e->kernels[i]->kernel.name, reason == NULL ? "yes" : "no", reason != NULL ? reason : placed);
        if (variant_of(e->kernels[i]) != NULL) hone_buffer_format(out, "           %s\n", variant_of(e->kernels[i]));
        hone_negatives_text(&e->negatives, e->kernels[i]->kernel.name, out);
    }
    if (e->nearest.count > 0)
        hone_buffer_format(out, "nearest %s calls\n", e->nearest.rows[0].line > 0 ? "locked" : "stored");
    for (size_t i = 0; i < e->nearest.count; i++) {
        hone_buffer_format(out, "  %s\n", e->nearest.rows[i].key);
        for (const char *line = e->nearest.rows[i].differs; *line != '\0';) {
            size_t size = strcspn(line, "\n");
            hone_buffer_format(out, "    %.*s\n", (int)size, line);
            line += size + (line[size] == '\n');
        }
    }
}

// JSON ----------------------------------------------------------------------------------------------------------------

static void json_chain(const explanation *e, hone_buffer *out)
{
    hone_buffer_text(out, ",\"chain\":[");
    for (size_t i = 0; i < e->link_count; i++) {
        hone_buffer_text(out, i == 0 ? "{" : ",{");
        hone_json_field(out, "link", hone_source_name(e->links[i].source));
        hone_buffer_char(out, ',');
        hone_json_field(out, "answer", answer_word(&e->links[i]));
        hone_buffer_char(out, ',');
        hone_json_field(out, "why", e->links[i].status == HONE_OK ? NULL : e->links[i].why.message);
        hone_buffer_char(out, ',');
        hone_json_field(out, "own", e->links[i].own);
        hone_buffer_char(out, '}');
    }
    hone_buffer_char(out, ']');
}

static void json_kernels(explanation *e, hone_buffer *out)
{
    hone_buffer_text(out, ",\"kernels\":[");
    for (size_t i = 0; i < e->kernel_count; i++) {
        hone_error why;
        char placed[PLACE_SIZE];
        const char *reason = eligibility(e, e->kernels[i], &why);
        if (reason == NULL) place(e, e->kernels[i], &why, placed);
        hone_buffer_text(out, i == 0 ? "{" : ",{");
        hone_json_field(out, "name", e->kernels[i]->kernel.name);
        hone_buffer_char(out, ',');
        hone_json_field(out, "platform", hone_platform_name(e->kernels[i]->kernel.platform));
        hone_buffer_format(out, ",\"eligible\":%s,", reason == NULL ? "true" : "false");
        hone_json_field(out, "why", reason != NULL ? reason : placed);
        hone_buffer_text(out, ",\"failures\":");
        hone_negatives_json(&e->negatives, e->kernels[i]->kernel.name, out);
        hone_buffer_char(out, ',');
        hone_json_field(out, "pack", pack_of(e->kernels[i]));
        hone_buffer_char(out, ',');
        hone_json_field(out, "variant", variant_of(e->kernels[i]));
        hone_buffer_char(out, '}');
    }
    hone_buffer_char(out, ']');
}

static void json_nearest(const explanation *e, hone_buffer *out)
{
    hone_buffer_text(out, ",\"nearest\":[");
    for (size_t i = 0; i < e->nearest.count; i++) {
        hone_buffer_text(out, i == 0 ? "{" : ",{");
        hone_json_field(out, "key", e->nearest.rows[i].key);
        hone_buffer_text(out, ",\"differs\":[");
        const char *line = e->nearest.rows[i].differs;
        for (bool first = true; *line != '\0'; first = false) {
            size_t size = strcspn(line, "\n");
            if (!first) hone_buffer_char(out, ',');
            hone_json_string(out, line, size);
            line += size + (line[size] == '\n');
        }
        hone_buffer_text(out, "]}");
    }
    hone_buffer_char(out, ']');
}

static void json_answer(const explanation *e, hone_buffer *out)
{
    const hone_decision *decision = e->answer == NULL ? NULL : &e->answer->decision;
    hone_json_field(out, "source", decision == NULL ? NULL : hone_source_name(e->answer->source));
    hone_buffer_char(out, ',');
    hone_json_field(out, "kernel", decision == NULL ? NULL : decision->kernel);
    hone_buffer_char(out, ',');
    hone_json_field(out, "platform", decision == NULL ? NULL : hone_platform_name(decision->platform));
    hone_buffer_format(
        out, ",\"config\":%s,\"verified\":%s,", decision == NULL ? "null" : decision->config_json,
        decision != NULL && decision->verified ? "true" : "false");
    hone_json_field(out, "changed", decision == NULL || decision->changed[0] == '\0' ? NULL : decision->changed);
    hone_buffer_format(out, ",\"system\":%s", decision != NULL && decision->system ? "true" : "false");
    hone_buffer_text(out, ",\"evidence\":");
    if (decision == NULL)
        hone_buffer_text(out, "null");
    else
        hone_evidence_json(&decision->evidence, out);
}

static void explain_json(explanation *e, hone_buffer *out)
{
    hone_buffer_char(out, '{');
    hone_json_field(out, "call", hone_call_text(e->request.call));
    hone_buffer_char(out, ',');
    hone_json_field(out, "key", hone_call_key(e->request.call));
    hone_buffer_char(out, ',');
    hone_json_field(out, "bucket", e->request.bucket == NULL ? NULL : hone_call_key(e->request.bucket));
    hone_buffer_char(out, ',');
    hone_json_field(out, "device", e->request.device->fingerprint);
    hone_buffer_char(out, ',');
    hone_json_field(out, "policy", hone_policy_name(hone_request_policy(&e->request)));
    hone_buffer_char(out, ',');
    hone_json_field(out, "unverified", e->request.rt->allows_unverified ? "allow" : "refuse");
    hone_buffer_char(out, ',');
    json_answer(e, out);
    json_chain(e, out);
    json_kernels(e, out);
    json_nearest(e, out);
    hone_buffer_text(out, "}\n");
}

hone_status hone_explain(
    const hone_op *op, const hone_call *call, hone_format format, hone_sink *sink, void *ctx, hone_error *err)
{
    if (op == NULL || call == NULL || sink == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation, the call and the sink must not be NULL");
    explanation *e = hone_alloc(&op->rt->allocator, sizeof *e);
    if (e == NULL) return hone_fail_memory(err, where);
    hone_buffer out;
    hone_buffer_init(&out, op->rt->allocator);
    hone_runtime_take_up(op->rt);
    hone_status status = hone_request_init(&e->request, op, call, hone_thread_self.context, err);
    if (status == HONE_OK) {
        e->request.explaining = true;
        status = gather(e, err);
    }
    if (status == HONE_OK && e->answer != NULL) hone_runtime_stand_by(&e->request, &e->answer->decision);
    if (status == HONE_OK) {
        (format == HONE_JSON ? explain_json : explain_text)(e, &out);
        if (out.failed || e->out_of_memory)
            status = hone_fail_memory(err, where);
        else
            sink(ctx, hone_buffer_string(&out), out.size);
    }
    hone_buffer_deinit(&out);
    hone_negatives_deinit(&e->negatives);
    hone_request_deinit(&e->request);
    hone_free(&op->rt->allocator, e);
    return status;
}
