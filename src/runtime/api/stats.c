// hone_stats: the rows of the tally, with what the threads have counted for them.
#include "runtime/api/stats.h"

#include "base/error.h"

#include <string.h>

static const char where[] = "stats";

static hone_stats_row row_of(const hone_tally *tally, const hone_tally_row *row)
{
    hone_stats_row out = {
        .source = row->source,
        .kernel = row->kernel,
        .platform = row->platform,
        .config = row->config != NULL ? row->config : "",
        .hits = hone_tally_hits(tally, row),
        .misses = row->misses,
        .decided_seconds = (double)row->decided_ns * 1e-9,
    };
    if (row->call == NULL) return out;
    const hone_algorithm_entry *algorithm = row->op->algorithm;
    out.key = (hone_store_key){
        row->device->fingerprint, algorithm->name, algorithm->version, hone_call_key(row->call),
        hone_call_spec(row->call)};
    out.call = hone_call_text(row->call);
    return out;
}

hone_status hone_stats_collect(hone_runtime *rt, hone_stats_rows *out, hone_error *err)
{
    hone_tally *tally = &rt->tally;
    memset(out, 0, sizeof *out);
    out->allocator = rt->allocator;
    hone_mutex_lock(&tally->mutex);
    bool ok = hone_grow(&rt->allocator, &out->rows, &out->capacity, tally->count + 1, sizeof out->rows[0]);
    for (const hone_tally_row *row = tally->first; ok && row != NULL; row = row->next)
        out->rows[out->count++] = row_of(tally, row);
    hone_mutex_unlock(&tally->mutex);
    return ok ? HONE_OK : hone_fail_memory(err, where);
}

hone_status hone_stats(
    hone_runtime *rt, bool (*visit)(void *ctx, const hone_stats_row *row), void *ctx, hone_error *err)
{
    hone_stats_rows all;
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and visit must not be NULL");
    hone_status status = hone_stats_collect(rt, &all, err);
    for (size_t i = 0; status == HONE_OK && i < all.count; i++)
        if (!visit(ctx, &all.rows[i])) break;
    hone_free(&rt->allocator, all.rows);
    return status;
}
