// Decisions that are merged, records of all kinds that are put together, and work that nobody else writes between.
#include "store/check.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/structs.h"

#include <string.h>

static const char merge_where[] = "store.merge";
static const char transact_where[] = "store.transact";

static void tell_outcomes(const hone_merge_reason *reasons, size_t count, hone_merge_visit *on_outcome, void *ctx)
{
    for (size_t i = 0; i < count; i++)
        on_outcome(ctx, i, hone_merge_reason_outcome(reasons[i]), hone_merge_reason_text(reasons[i]));
}

hone_status hone_store_merge(
    hone_store *store,
    const hone_store_decision *decisions,
    size_t count,
    hone_merge_visit *on_outcome,
    void *ctx,
    hone_error *err)
{
    hone_merger merger;
    hone_status status = hone_check_decisions(store, decisions, count, merge_where, err);
    if (status != HONE_OK || count == 0) return status;
    status = hone_merger_init(&merger, &store->allocator, count, err);
    if (status != HONE_OK) return status;
    status = hone_store_lock(store, merge_where, err);
    if (status == HONE_OK)
        status = hone_store_unlock(store, store->ops->put_all(store, decisions, count, &merger, err));
    if (status == HONE_OK && on_outcome != NULL) tell_outcomes(merger.reasons, count, on_outcome, ctx);
    hone_merger_deinit(&merger);
    return status;
}

typedef struct rival {
    const char *spec;
    const hone_store_measurement *coming;
    bool stays; // what is stored says as much
} rival;

// Which of two measurements of one kernel, config, call and regime stays: one that went well before a failure, of two
// that went well the one of more samples, of two failures the later one, where both say when. So a batch can be put
// twice, and two stores merged both ways come to hold the same.
static bool is_rival(void *ctx, const hone_store_measured *measured)
{
    rival *r = ctx;
    const hone_store_measurement *stored = &measured->measurement, *coming = r->coming;
    // The walk also gives what may be another call's.
    bool same_spec = (r->spec == NULL) == (measured->key.spec == NULL) && hone_spec_agrees(r->spec, measured->key.spec);
    if (!same_spec || stored->regime != coming->regime || strcmp(stored->kernel, coming->kernel) != 0 ||
        strcmp(stored->config, coming->config) != 0)
        return true;
    // A measurement stays before a failure, and a failure before one that is not known to be later.
    bool is_later =
        coming->measured != NULL && stored->measured != NULL && strcmp(coming->measured, stored->measured) > 0;
    if (coming->failure != HONE_FAILURE_NONE)
        r->stays = stored->failure == HONE_FAILURE_NONE || !is_later;
    else if (stored->failure == HONE_FAILURE_NONE)
        r->stays = stored->samples >= coming->samples;
    return !r->stays;
}

static hone_status put_measured_batch(hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    hone_status status = HONE_OK;
    size_t put = 0;
    for (size_t i = 0; status == HONE_OK && i < batch->measured_count; i++) {
        const hone_store_measured *coming = &batch->measured[i];
        rival r = {coming->key.spec, &coming->measurement, false};
        status = store->ops->measurements(store, &coming->key, is_rival, &r, err);
        if (status != HONE_OK || r.stays) continue;
        status = store->ops->put_measurement(store, &coming->key, &coming->measurement, err);
        put++;
    }
    if (batch->out_measured != NULL) *batch->out_measured = put;
    return status;
}

// merger NULL: decisions take the place of what is stored.
static hone_status put_parts(hone_store *store, const hone_store_batch *batch, hone_merger *merger, hone_error *err)
{
    const hone_store_ops *ops = store->ops;
    hone_status status = HONE_OK;
    hone_assert(hone_store_is_locked(store));
    for (size_t i = 0; status == HONE_OK && i < batch->removed_count; i++) {
        status = ops->remove(store, &batch->removed[i], err);
        if (status == HONE_NOT_FOUND) status = HONE_OK;
    }
    if (status == HONE_OK && batch->decision_count > 0)
        status = ops->put_all(store, batch->decisions, batch->decision_count, merger, err);
    if (status == HONE_OK) status = put_measured_batch(store, batch, err);
    for (size_t i = 0; status == HONE_OK && i < batch->alias_count; i++)
        status = ops->put_alias(store, &batch->aliases[i], err);
    if (status == HONE_OK && batch->foreign_count > 0)
        status = ops->put_foreigns(store, batch->foreigns, batch->foreign_count, err);
    return status;
}

hone_status hone_store_transact(hone_store *store, hone_store_work *work, void *ctx, hone_error *err)
{
    hone_status status = hone_store_lock(store, transact_where, err);
    if (status != HONE_OK) return status;
    status = store->ops->begin(store, err);
    if (status == HONE_OK) status = store->ops->end(store, work(store, ctx, err), err);
    return hone_store_unlock(store, status);
}

hone_status hone_store_put_within(hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    hone_status status = hone_check_batch(store, batch, err);
    return status == HONE_OK ? put_parts(store, batch, NULL, err) : status;
}

typedef struct merged_batch {
    const hone_store_batch *batch;
    hone_merger merger;
} merged_batch;

static hone_status put_merged(hone_store *store, void *ctx, hone_error *err)
{
    merged_batch *work = ctx;
    return put_parts(store, work->batch, &work->merger, err);
}

hone_status hone_store_put_batch(hone_store *store, const hone_store_batch *batch, hone_error *err)
{
    merged_batch work = {.batch = batch};
    hone_status status = hone_check_batch(store, batch, err);
    if (status == HONE_OK) status = hone_merger_init(&work.merger, &store->allocator, batch->decision_count, err);
    if (status != HONE_OK) return status;
    status = hone_store_transact(store, put_merged, &work, err);
    if (status == HONE_OK && batch->on_outcome != NULL)
        tell_outcomes(work.merger.reasons, batch->decision_count, batch->on_outcome, batch->ctx);
    hone_merger_deinit(&work.merger);
    return status;
}
