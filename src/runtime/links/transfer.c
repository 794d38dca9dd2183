// Answers from decisions for near calls: other shapes, other devices, other versions. This call itself was not
// measured, so the answer is a guess, is marked as one, and is checked when the call is tuned.
#include "runtime/links/links.h"

#include "base/error.h"
#include "base/number.h"
#include "registry/names.h"
#include "runtime/links/negatives.h"
#include "runtime/links/trust.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

enum {
    MOST_KERNELS = 32, // whose spaces stay bound during the search
    MOST_READ = 2000,  // decisions of an algorithm: this limits a miss to a few milliseconds
    NAMED = 3          // neighbours in the evidence
};

// A call that is twelve doublings away gives no useful information.
static const double most_distance = 12;

typedef struct known_kernel {
    const hone_kernel_ref *ref;
    hone_bound_space *space; // NULL: the kernel may not answer
} known_kernel;

typedef struct asker {
    const hone_request *request;
    known_kernel kernels[MOST_KERNELS];
    size_t count;
    hone_negatives negatives; // failures recorded for this exact call
    bool out_of_memory;
} asker;

static known_kernel *know(asker *a, const hone_kernel_ref *ref)
{
    hone_error why = {.message = ""};
    for (size_t i = 0; i < a->count; i++)
        if (a->kernels[i].ref == ref) return &a->kernels[i];
    if (a->count == MOST_KERNELS) return NULL;
    known_kernel *known = &a->kernels[a->count++];
    *known = (known_kernel){.ref = ref};
    hone_status status = hone_request_admits(a->request, ref, &why);
    if (status == HONE_OK) status = hone_kernel_was_right(a->request->rt, ref, NULL, &why);
    if (status == HONE_OK)
        status = hone_space_bind(ref->space, a->request->call, a->request->device, &known->space, &why);
    a->out_of_memory = a->out_of_memory || status == HONE_OUT_OF_MEMORY;
    return known;
}

static bool admits(void *ctx, const char *kernel, const char *config, const char *revision)
{
    asker *a = ctx;
    hone_config read;
    const hone_kernel_ref *ref =
        hone_kernel_for_device(a->request->op->algorithm, kernel, HONE_PLATFORM_NONE, a->request->device);
    if (ref == NULL || a->out_of_memory || (revision != NULL && strcmp(revision, ref->kernel.revision) != 0))
        return false;
    const known_kernel *known = know(a, ref);
    return known != NULL && known->space != NULL &&
           hone_config_from_json(ref->space, config, strlen(config), &read, NULL) == HONE_OK &&
           hone_bound_space_check(known->space, &read, NULL) == HONE_OK &&
           hone_negatives_check(&a->negatives, ref, &read, NULL) == HONE_OK;
}

static hone_transfer *transfer_of(hone_runtime *rt)
{
    hone_error err;
    hone_mutex_lock(&rt->mutex);
    if (rt->transfer == NULL) (void)!hone_transfer_create(&rt->allocator, MOST_READ, &rt->transfer, &err);
    hone_transfer *transfer = rt->transfer;
    hone_mutex_unlock(&rt->mutex);
    return transfer;
}

// Searches the decisions of one regime before those of the next, in the order of the store link, and never mixes two
// regimes.
static hone_status find(asker *a, hone_transfer_answer *out, hone_error *err)
{
    const hone_request *request = a->request;
    hone_runtime *rt = request->rt;
    const hone_call *call = request->bucket != NULL ? request->bucket : request->call;
    hone_transfer *transfer = transfer_of(rt);
    if (transfer == NULL) return hone_fail_memory(err, where);
    hone_regime regimes[HONE_REGIME_COUNT];
    const size_t count = hone_request_regimes(request, regimes);
    for (size_t i = 0; i < count; i++) {
        if (hone_regime_is_stable(regimes[i])) break;
        const hone_transfer_question question = {
            .key =
                {request->device->fingerprint, request->op->algorithm->name, request->op->algorithm->version,
                 hone_call_key(call), hone_call_spec(call)},
            .regime = regimes[i],
            .stamp = atomic_load(&rt->answers),
            .admits = admits,
            .admits_ctx = a,
        };
        hone_status status =
            hone_transfer_find(transfer, hone_runtime_store(rt), hone_runtime_system_store(rt), &question, out, err);
        if (status == HONE_OK && a->out_of_memory) {
            hone_transfer_answer_deinit(out);
            return hone_fail_memory(err, where);
        }
        const bool is_last = i + 1 == count || hone_regime_is_stable(regimes[i + 1]);
        if (status != HONE_OK || out->neighbour_count > 0 || is_last) return status;
        hone_transfer_answer_deinit(out);
    }
    return HONE_OK;
}

// "rms_norm(f32[64,4096], f32[4096]), 1.0 away; and 3 more"
static void name_neighbours(const hone_transfer_answer *answer, const char *device, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < answer->neighbour_count && i < NAMED && used < size; i++) {
        const hone_transfer_neighbour *row = &answer->neighbours[i];
        const char *call = row->call != NULL ? row->call : row->key;
        bool is_here = strcmp(row->device, device) == 0;
        char away[32];
        // Another call never shows as 0.0 away.
        hone_print(away, sizeof away, row->distance < 0.05 ? "%.2g" : "%.1f", row->distance);
        used += (size_t)snprintf(
            out + used, size - used, "%s%.100s%s, %s away", i > 0 ? "; " : "", call,
            is_here ? "" : " on another device", away);
    }
    if (answer->neighbour_count > NAMED && used < size)
        snprintf(out + used, size - used, "; and %zu more", answer->neighbour_count - NAMED);
}

static void fill(asker *a, const hone_transfer_answer *answer, hone_decision *out)
{
    const hone_request *request = a->request;
    const hone_transfer_proposal *first = &answer->proposals[0];
    const hone_kernel_ref *ref =
        hone_kernel_for_device(request->op->algorithm, first->kernel, HONE_PLATFORM_NONE, request->device);
    hone_config config = {0};
    (void)!hone_config_from_json(ref->space, first->config, strlen(first->config), &config, NULL); // it was read before
    hone_decision_fill(out, ref, &config, hone_call_key(request->call));
    out->verified = false;
    out->evidence.regime = answer->regime;
    out->evidence.predicted_regret = first->relative - 1;
    name_neighbours(answer, request->device->fingerprint, out->evidence.neighbours, sizeof out->evidence.neighbours);
}

static hone_status choose_first(asker *a, const hone_transfer_answer *answer, hone_decision *out, hone_error *why)
{
    if (answer->neighbour_count == 0)
        return hone_fail(why, HONE_NOT_FOUND, where, "no decision on a similar call could run this one");
    if (answer->neighbours[0].distance > most_distance)
        return hone_fail(
            why, HONE_NOT_FOUND, where, "the nearest call that is known, %.100s, is too far (%.0f, at most %.0f)",
            answer->neighbours[0].call != NULL ? answer->neighbours[0].call : answer->neighbours[0].key,
            answer->neighbours[0].distance, most_distance);
    fill(a, answer, out);
    return HONE_OK;
}

// A kernel that ignores the difference between two calls is also correct for the near one, so it is verified for this
// call.
static hone_status check(asker *a, const hone_decision *decision, hone_error *why)
{
    const hone_kernel_ref *ref =
        hone_kernel_for_device(a->request->op->algorithm, decision->kernel, HONE_PLATFORM_NONE, a->request->device);
    hone_status status = hone_request_trusts(a->request, ref, &decision->config, why);
    if (status == HONE_OK || status == HONE_OUT_OF_MEMORY) return status;
    hone_bound_space_release(&know(a, ref)->space); // it may not answer, so the next one is tried
    return HONE_NOT_FOUND;
}

static hone_status choose(asker *a, hone_decision *out, hone_error *why)
{
    hone_transfer_answer answer;
    for (size_t round = 0; round < MOST_KERNELS; round++) {
        hone_error reason = {.message = ""};
        hone_status status = find(a, &answer, why);
        if (status != HONE_OK) return status;
        status = choose_first(a, &answer, out, &reason);
        hone_transfer_answer_deinit(&answer);
        if (status != HONE_OK && round > 0) return HONE_NOT_FOUND; // why says what prevented the nearest from answering
        if (status == HONE_OK) status = check(a, out, &reason);
        if (status == HONE_OK) return HONE_OK;
        *why = reason;
        why->status = status;
        if (status == HONE_OUT_OF_MEMORY || a->count == 0) return status;
    }
    return HONE_NOT_FOUND;
}

hone_status hone_request_from_transfer(const hone_request *request, hone_decision *out, hone_error *why)
{
    hone_runtime *rt = request->rt;
    if (rt->stable)
        return hone_fail(
            why, HONE_NOT_FOUND, where,
            "the results of this call were not compared bit by bit, as stable decisions require");
    if (hone_runtime_store(rt) == NULL && hone_runtime_system_store(rt) == NULL)
        return hone_fail(why, HONE_NOT_FOUND, where, "%s", hone_runtime_store_reason(rt));
    asker a = {.request = request, .negatives = {.allocator = rt->allocator}};
    hone_status status = hone_negatives_of_call(request, &a.negatives, why);
    if (status == HONE_OK) status = choose(&a, out, why);
    // The store link has logged the warning.
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY) why->status = status = HONE_NOT_FOUND;
    for (size_t i = 0; i < a.count; i++)
        hone_bound_space_release(&a.kernels[i].space);
    hone_negatives_deinit(&a.negatives);
    return status;
}
