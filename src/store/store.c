// The public store: arguments are checked, the lock is taken, and the kind's own function does the work.
#include "store/check.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/structs.h"
#include "os/os.h"

#include <string.h>

static const char journal_where[] = "store.journal";
static const char changes_where[] = "store.changes";
static const char get_where[] = "store.get";
static const char put_where[] = "store.put";
static const char remove_where[] = "store.remove";
static const char scan_where[] = "store.scan";
static const char put_measurement_where[] = "store.put_measurement";
static const char failures_where[] = "store.failures";
static const char add_invocations_where[] = "store.add_invocations";
static const char expire_misses_where[] = "store.expire_misses";
static const char clear_invocations_where[] = "store.clear_invocations";
static const char put_alias_where[] = "store.put_alias";
static const char get_alias_where[] = "store.get_alias";
static const char aliases_where[] = "store.aliases";
static const char put_foreign_where[] = "store.put_foreign";
static const char foreigns_where[] = "store.foreigns";
static const char clear_foreigns_where[] = "store.clear_foreigns";
static const char set_aside_where[] = "store.set_aside";
static const char clear_quarantine_where[] = "store.clear_quarantine";
static const char verify_where[] = "store.verify";
static const char stat_where[] = "store.stat";

// What a NULL filter stands for.
static const hone_store_key all_keys = {0};

// The lock ------------------------------------------------------------------------------------------------------------

static hone_status wake(hone_store *store, const char *where, hone_error *err)
{
    if (store->is_lost)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "%s was in use while this process was forked, and is the parent's: open it again in a new process",
            store->url);
    hone_status status = store->rests && store->ops->wake != NULL ? store->ops->wake(store, err) : HONE_OK;
    if (status == HONE_OK) store->rests = false;
    return status;
}

hone_status hone_store_lock(hone_store *store, const char *where, hone_error *err)
{
    if (store->ops->concurrent) return HONE_OK;
    if (hone_mutex_is_mine(&store->mutex))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "called from inside a visit of the same store: keep what was visited and call after it");
    hone_mutex_lock(&store->mutex);
    hone_os_size_signal_hold();
    hone_status status = wake(store, where, err);
    if (status == HONE_OK) return HONE_OK;
    hone_os_size_signal_release();
    hone_mutex_unlock(&store->mutex);
    return status;
}

// A kind mends a whole store at once, so one more try is enough: what is damaged after it is damaged for good. Only
// whole operations are tried again. Inside of a transaction part of the work may be done, and its caller hears
// HONE_CORRUPT.
bool hone_store_is_mended(hone_store *store, hone_status status)
{
    hone_assert(hone_store_is_locked(store));
    return status == HONE_CORRUPT && store->ops->mend != NULL && store->ops->mend(store, NULL) == HONE_OK;
}

hone_status hone_store_unlock(hone_store *store, hone_status status)
{
    hone_assert(hone_store_is_locked(store));
    (void)hone_store_is_mended(store, status);
    if (store->ops->concurrent) return status;
    hone_os_size_signal_release();
    hone_mutex_unlock(&store->mutex);
    return status;
}

// Without the lock: whoever has the lease may be a thread of this process, which needs the store to finish.
hone_status hone_store_lease(hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    *out = HONE_LEASE_NONE;
    if (store == NULL || store->ops->lease == NULL) return HONE_OK;
    return store->ops->lease(store, name, wait, out, err);
}

hone_status hone_store_changes(hone_store *store, uint64_t *out, hone_error *err)
{
    if (store == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, changes_where, "the store or out is NULL");
    if (store->ops->changes == NULL)
        return hone_fail(err, HONE_UNSUPPORTED, changes_where, "%s is seen by no other process", store->url);
    hone_status status = hone_store_lock(store, changes_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->changes(store, out, err));
}

const char *hone_store_journal(hone_store *store)
{
    if (store->ops->journal == NULL || hone_store_lock(store, journal_where, NULL) != HONE_OK) return NULL;
    const char *journal = store->ops->journal(store);
    (void)hone_store_unlock(store, HONE_OK);
    return journal;
}

// Reading records -----------------------------------------------------------------------------------------------------

// Kinds of stores know the types of records apart; who reads a store gets them all in one.
typedef struct reading {
    bool (*visit)(void *ctx, const hone_store_record *record);
    void *ctx;
} reading;

static bool pass(const reading *r, const hone_store_record *record)
{
    return r->visit(r->ctx, record);
}

static bool see_decision(void *ctx, const hone_store_decision *decision)
{
    return pass(ctx, &(hone_store_record){HONE_RECORD_DECISION, &decision->key, .decision = decision});
}

static bool see_measured(void *ctx, const hone_store_measured *measured)
{
    return pass(
        ctx, &(hone_store_record){HONE_RECORD_MEASUREMENT, &measured->key, .measurement = &measured->measurement});
}

static bool see_invocation(void *ctx, const hone_store_invocation *invocation)
{
    return pass(ctx, &(hone_store_record){HONE_RECORD_INVOCATION, &invocation->key, .invocation = invocation});
}

static bool see_foreign(void *ctx, const hone_store_foreign *foreign)
{
    const hone_store_key key = hone_store_foreign_key(foreign);
    return pass(ctx, &(hone_store_record){HONE_RECORD_FOREIGN, &key, .foreign = foreign});
}

static bool see_quarantined(void *ctx, const hone_store_quarantined *quarantined)
{
    return pass(ctx, &(hone_store_record){HONE_RECORD_QUARANTINED, NULL, .quarantined = quarantined});
}

static void see_one_decision(void *ctx, const hone_store_decision *decision)
{
    (void)see_decision(ctx, decision);
}

static void see_one_foreign(void *ctx, const hone_store_foreign *foreign)
{
    (void)see_foreign(ctx, foreign);
}

static hone_status get_decision(
    hone_store *store, const hone_store_key *key, hone_regime regime, reading *r, hone_error *err)
{
    hone_status status = hone_check_key(key, get_where, err);
    if (status == HONE_OK) status = hone_check_regime(regime, get_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, get_where, err);
    if (status != HONE_OK) return status;
    status = store->ops->get(store, key, regime, see_one_decision, r, err);
    if (hone_store_is_mended(store, status)) status = store->ops->get(store, key, regime, see_one_decision, r, err);
    return hone_store_unlock(store, status);
}

static hone_status get_foreign(hone_store *store, const hone_store_key *key, reading *r, hone_error *err)
{
    if (key == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, get_where, "the key is NULL");
    const hone_check_field texts[] = {
        {"key.version, the scheme,", key->version, HONE_CHECK_NAME},
        {"key.algorithm, the operation,", key->algorithm, HONE_CHECK_TEXT},
        {"key.device", key->device, HONE_CHECK_TEXT_OR_NULL},
        {"key.key", key->key, HONE_CHECK_TEXT}};
    const hone_store_foreign wanted = {
        .scheme = key->version, .operation = key->algorithm, .device = key->device, .foreign_key = key->key};
    hone_status status = hone_check_texts(texts, sizeof texts / sizeof *texts, get_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, get_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->get_foreign(store, &wanted, see_one_foreign, r, err));
}

static hone_status fail_kind(hone_record_kind kind, const char *where, const char *expected, hone_error *err)
{
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the kind of record is %d; expected %s", (int)kind, expected);
}

hone_status hone_store_get(
    hone_store *store,
    hone_record_kind kind,
    const hone_store_key *key,
    hone_regime regime,
    bool (*visit)(void *ctx, const hone_store_record *record),
    void *ctx,
    hone_error *err)
{
    reading r = {visit, ctx};
    hone_status status = hone_check_handles(store, visit != NULL, get_where, err);
    if (status != HONE_OK) return status;
    if (kind == HONE_RECORD_DECISION) return get_decision(store, key, regime, &r, err);
    if (kind == HONE_RECORD_FOREIGN) return get_foreign(store, key, &r, err);
    return fail_kind(kind, get_where, "HONE_RECORD_DECISION or HONE_RECORD_FOREIGN: scan the others", err);
}

static bool fits(const char *wanted, const char *text)
{
    return wanted == NULL || (text != NULL && strcmp(wanted, text) == 0);
}

// Foreign configs that a filter names, without the notes that a store keeps among them.
typedef struct sieve {
    reading *reading;
    const hone_store_key *filter;
} sieve;

static bool see_fitting(void *ctx, const hone_store_foreign *foreign)
{
    const sieve *s = ctx;
    const hone_store_key *filter = s->filter;
    const bool is_wanted = !hone_store_is_note(foreign->scheme) && fits(filter->algorithm, foreign->operation) &&
                           fits(filter->device, foreign->device) && fits(filter->key, foreign->foreign_key);
    return !is_wanted || see_foreign(s->reading, foreign);
}

static hone_status scan_kind(
    hone_store *store, hone_record_kind kind, const hone_store_key *filter, reading *r, hone_error *err)
{
    const hone_store_ops *ops = store->ops;
    switch (kind) {
    case HONE_RECORD_DECISION:
        return ops->scan(store, filter, see_decision, r, err);
    case HONE_RECORD_MEASUREMENT:
        return ops->measurements(store, filter, see_measured, r, err);
    case HONE_RECORD_INVOCATION:
        return ops->invocations(store, filter, see_invocation, r, err);
    case HONE_RECORD_FOREIGN:
        return ops->foreigns(store, filter->version, see_fitting, &(sieve){r, filter}, err);
    case HONE_RECORD_QUARANTINED:
        return ops->quarantine(store, see_quarantined, r, err);
    case HONE_RECORD_KIND_COUNT:
        break;
    }
    return fail_kind(kind, scan_where, "a HONE_RECORD_... of hone/store.h", err);
}

hone_status hone_store_scan(
    hone_store *store,
    hone_record_kind kind,
    const hone_store_key *filter,
    bool (*visit)(void *ctx, const hone_store_record *record),
    void *ctx,
    hone_error *err)
{
    reading r = {visit, ctx};
    hone_status status = hone_check_handles(store, visit != NULL, scan_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, scan_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, scan_kind(store, kind, filter == NULL ? &all_keys : filter, &r, err));
}

hone_status hone_store_scan_any(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    hone_status status = hone_store_lock(store, scan_where, err);
    if (status != HONE_OK) return status;
    const hone_store_ops *ops = store->ops;
    return hone_store_unlock(
        store, (ops->scan_any == NULL ? ops->scan : ops->scan_any)(store, filter, visit, ctx, err));
}

// Decisions -----------------------------------------------------------------------------------------------------------

hone_status hone_store_put_all(hone_store *store, const hone_store_decision *decisions, size_t count, hone_error *err)
{
    hone_status status = hone_check_decisions(store, decisions, count, put_where, err);
    if (status != HONE_OK || count == 0) return status;
    status = hone_store_lock(store, put_where, err);
    if (status != HONE_OK) return status;
    status = store->ops->put_all(store, decisions, count, NULL, err);
    if (hone_store_is_mended(store, status)) status = store->ops->put_all(store, decisions, count, NULL, err);
    return hone_store_unlock(store, status);
}

hone_status hone_store_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, remove_where, err);
    if (status == HONE_OK) status = hone_check_key(key, remove_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, remove_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->remove(store, key, err));
}

// Measurements --------------------------------------------------------------------------------------------------------

hone_status hone_store_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, put_measurement_where, err);
    if (status == HONE_OK) status = hone_check_key(key, put_measurement_where, err);
    if (status == HONE_OK) status = hone_check_measurement(measurement, err);
    if (status == HONE_OK) status = hone_store_lock(store, put_measurement_where, err);
    if (status != HONE_OK) return status;
    status = store->ops->put_measurement(store, key, measurement, err);
    if (hone_store_is_mended(store, status)) status = store->ops->put_measurement(store, key, measurement, err);
    return hone_store_unlock(store, status);
}

hone_status hone_store_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    hone_status status = hone_store_lock(store, failures_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->failures(store, filter, visit, ctx, err));
}

// Invocations ---------------------------------------------------------------------------------------------------------

hone_status hone_store_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, add_invocations_where, err);
    if (status == HONE_OK && invocations == NULL && count > 0)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, add_invocations_where, "the invocations are NULL");
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = hone_check_invocation(&invocations[i], err);
    if (status != HONE_OK || count == 0) return status;
    status = hone_store_lock(store, add_invocations_where, err);
    if (status != HONE_OK) return status;
    status = store->ops->add_invocations(store, invocations, count, err);
    if (hone_store_is_mended(store, status)) status = store->ops->add_invocations(store, invocations, count, err);
    return hone_store_unlock(store, status);
}

hone_status hone_store_expire_misses(hone_store *store, double now, hone_error *err)
{
    const int64_t before = (int64_t)now - (int64_t)HONE_STORE_MISS_DAYS * 86400;
    hone_status status = hone_store_lock(store, expire_misses_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->expire_misses(store, before, HONE_STORE_MISSES, err));
}

hone_status hone_store_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, clear_invocations_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, clear_invocations_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->clear_invocations(store, device, err));
}

// Aliases -------------------------------------------------------------------------------------------------------------

hone_status hone_store_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, put_alias_where, err);
    if (status == HONE_OK) status = hone_check_alias(alias, err);
    if (status == HONE_OK) status = hone_store_lock(store, put_alias_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->put_alias(store, alias, err));
}

hone_status hone_store_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    const hone_check_field texts[] = {
        {"scheme", scheme, HONE_CHECK_NAME},
        {"operation", operation, HONE_CHECK_TEXT},
        {"foreign_key", foreign_key, HONE_CHECK_TEXT}};
    hone_status status = hone_check_handles(store, visit != NULL, get_alias_where, err);
    if (status == HONE_OK) status = hone_check_texts(texts, sizeof texts / sizeof *texts, get_alias_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, get_alias_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->get_alias(store, scheme, operation, foreign_key, visit, ctx, err));
}

hone_status hone_store_aliases(
    hone_store *store,
    const char *scheme,
    bool (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    hone_status status = hone_check_handles(store, visit != NULL, aliases_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, aliases_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->aliases(store, scheme, visit, ctx, err));
}

// Foreign configs -----------------------------------------------------------------------------------------------------

static hone_status store_put_foreign_known(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, put_foreign_where, err);
    if (status == HONE_OK && foreigns == NULL && count > 0)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, put_foreign_where, "the foreign configs are NULL");
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = hone_check_foreign(&foreigns[i], err);
    if (status == HONE_OK && count > 0) status = hone_store_lock(store, put_foreign_where, err);
    if (status != HONE_OK || count == 0) return status;
    return hone_store_unlock(store, store->ops->put_foreigns(store, foreigns, count, err));
}

hone_status hone_store_put_foreign_sized(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, size_t size, hone_error *err)
{
    hone_structs taken;
    hone_status status = hone_structs_take(
        &taken, foreigns, count, size, sizeof *foreigns, "hone_store_foreign", put_foreign_where, err);
    if (status == HONE_OK) status = store_put_foreign_known(store, taken.items, count, err);
    hone_structs_drop(&taken);
    return status;
}

hone_status hone_store_foreigns(
    hone_store *store,
    const char *scheme,
    bool (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    hone_status status = hone_check_handles(store, visit != NULL, foreigns_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, foreigns_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->foreigns(store, scheme, visit, ctx, err));
}

hone_status hone_store_clear_foreigns(hone_store *store, const char *scheme, hone_error *err)
{
    const hone_check_field text = {"scheme", scheme, HONE_CHECK_NAME};
    hone_status status = hone_check_handles(store, true, clear_foreigns_where, err);
    if (status == HONE_OK) status = hone_check_texts(&text, 1, clear_foreigns_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, clear_foreigns_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->clear_foreigns(store, scheme, err));
}

// Damage --------------------------------------------------------------------------------------------------------------

hone_status hone_store_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, set_aside_where, err);
    if (status == HONE_OK) status = hone_check_key(key, set_aside_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, set_aside_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->set_aside(store, key, regime, reason, err));
}

hone_status hone_store_clear_quarantine(hone_store *store, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, clear_quarantine_where, err);
    if (status == HONE_OK) status = hone_store_lock(store, clear_quarantine_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->clear_quarantine(store, err));
}

static hone_status store_verify_known(hone_store *store, hone_store_health *out, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, verify_where, err);
    if (status == HONE_OK && out == NULL) status = hone_fail(err, HONE_INVALID_ARGUMENT, verify_where, "out is NULL");
    if (status == HONE_OK) status = hone_store_lock(store, verify_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->verify(store, out, err));
}

hone_status hone_store_verify_sized(hone_store *store, hone_store_health *out, size_t size, hone_error *err)
{
    hone_store_health known;
    hone_status status = store_verify_known(store, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}

// Counts --------------------------------------------------------------------------------------------------------------

static bool count_note(void *ctx, const hone_store_foreign *foreign)
{
    *(uint64_t *)ctx += hone_store_is_note(foreign->scheme);
    return true;
}

// A store keeps its own notes, such as a pause of its queue, among the configs of other systems, and they are none.
static hone_status leave_out_notes(hone_store *store, hone_store_stat *out, hone_error *err)
{
    uint64_t notes = 0;
    if (out->foreigns == 0) return HONE_OK;
    const hone_status status = store->ops->foreigns(store, NULL, count_note, &notes, err);
    if (status == HONE_OK) out->foreigns -= notes < out->foreigns ? notes : out->foreigns;
    return status;
}

static hone_status count_locked(hone_store *store, hone_store_stat *out, hone_error *err)
{
    const hone_status status = store->ops->stat(store, out, err);
    return status == HONE_OK ? leave_out_notes(store, out, err) : status;
}

static hone_status store_get_stat_known(hone_store *store, hone_store_stat *out, hone_error *err)
{
    hone_status status = hone_check_handles(store, true, stat_where, err);
    if (status == HONE_OK && out == NULL) status = hone_fail(err, HONE_INVALID_ARGUMENT, stat_where, "out is NULL");
    if (status == HONE_OK) status = hone_store_lock(store, stat_where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, count_locked(store, out, err));
}

hone_status hone_store_get_stat_sized(hone_store *store, hone_store_stat *out, size_t size, hone_error *err)
{
    hone_store_stat known;
    hone_status status = store_get_stat_known(store, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}
