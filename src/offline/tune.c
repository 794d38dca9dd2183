// Tuning what was found in a program, the heaviest operations first.
#include "base/error.h"
#include "hone/describe.h"
#include "offline/program.h"
#include "store/records.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "offline.tune";

static int64_t weight(const hone_matched *item)
{
    return item->shown.count < 0 ? 1 : item->shown.count;
}

// Heaviest first; equal ones in the order of the program, which is that of the array.
static int compare_weights(const void *a, const void *b)
{
    const hone_matched *x = *(const hone_matched *const *)a, *y = *(const hone_matched *const *)b;
    if (weight(x) != weight(y)) return weight(x) > weight(y) ? -1 : 1;
    return x < y ? -1 : x > y;
}

static const char *why_not(const hone_matched *item, bool unproved)
{
    if (!item->shown.tunable) return item->shown.reason;
    if (item->shown.matched == HONE_MATCH_OPERANDS && !unproved)
        return "it was matched by its operands alone, and only --unproved tunes such";
    return NULL;
}

static hone_status put_alias(const hone_offline_environment *environment, const hone_matched *item, hone_error *err)
{
    // Arguments that only look right may be another call's: what the label's key stands for is not known.
    bool sure = item->shown.matched != HONE_MATCH_OPERANDS && item->operation != NULL && item->shown.key != NULL;
    if (environment->alias == NULL || !sure) return HONE_OK;
    const hone_signature *signature = hone_call_signature(item->call);
    hone_store_alias alias = {
        .scheme = "ejkernel",
        .operation = item->operation,
        .foreign_key = item->shown.key,
        .foreign_spec = item->foreign_spec,
        .key =
            {
                .algorithm = hone_signature_name(signature),
                .version = hone_signature_version(signature),
                .key = item->shown.call_key,
                .spec = hone_call_spec(item->call),
            },
    };
    return environment->alias(environment->ctx, &alias, item->call, err);
}

static bool ends_batch(hone_status status)
{
    return status == HONE_CANCELLED || status == HONE_OUT_OF_MEMORY;
}

static hone_status report(
    const hone_offline_environment *environment, const hone_matched *item, const char *reason, hone_error *err)
{
    const hone_operation *shown = &item->shown;
    const char *key = shown->call_key != NULL ? shown->call_key : shown->key != NULL ? shown->key : shown->label;
    return environment->failed(environment->ctx, shown->call, key, reason, err);
}

// Two labels may stand for one call, which is tuned once and found by both.
static bool is_tuned(const hone_matched *const *items, size_t count, const hone_matched *item, bool unproved)
{
    for (size_t i = 0; i < count; i++)
        if (why_not(items[i], unproved) == NULL && strcmp(items[i]->shown.call, item->shown.call) == 0) return true;
    return false;
}

static hone_status tune_item(
    const hone_offline_environment *environment, const hone_matched *item, bool again, hone_error *err)
{
    hone_error why = {0};
    hone_status status =
        again ? HONE_OK : environment->tune(environment->ctx, item->call, item->shown.count, item->shown.regime, &why);
    if (status == HONE_OK) status = put_alias(environment, item, &why);
    if (status == HONE_OK) return HONE_OK;
    if (ends_batch(status)) {
        if (err != NULL) *err = why;
        return status;
    }
    return report(environment, item, why.message, err);
}

hone_status hone_offline_tune(
    const hone_offline_environment *environment, const hone_program *program, bool unproved, hone_error *err)
{
    const hone_allocator *a = &environment->allocator;
    const hone_matched **order = hone_alloc_array(a, program->count, sizeof *order);
    if (order == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < program->count; i++)
        order[i] = &program->items[i];
    qsort(order, program->count, sizeof *order, compare_weights);
    hone_status status = HONE_OK;
    for (size_t i = 0; i < program->count && status == HONE_OK; i++) {
        const char *reason = why_not(order[i], unproved);
        if (reason != NULL)
            status = report(environment, order[i], reason, err);
        else
            status = tune_item(environment, order[i], is_tuned(order, i, order[i], unproved), err);
    }
    hone_free(a, order);
    return status;
}
