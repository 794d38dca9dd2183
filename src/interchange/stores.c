// Merging one store into another, comparing two, and taking away what can never be served again. What is visited is
// copied first: no two stores are locked at once, so that two processes may merge in both directions.
#include "interchange/importer.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/structs.h"
#include "hone/describe.h"
#include "interchange/stores.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "interchange.merge";
static const char diff_where[] = "interchange.diff";

// Copying -------------------------------------------------------------------------------------------------------------

static bool copy_decision(hone_importer *importer, const hone_store_decision *decision)
{
    const hone_store_decision copy = hone_importer_copy_decision(importer, decision);
    hone_importer_take(importer, importer->origin, &copy);
    return !importer->texts.failed;
}

static hone_store_measurement copy_measurement(hone_importer *importer, const hone_store_measurement *measurement)
{
    hone_store_measurement copy = *measurement;
    const char **const texts[] = {
        &copy.kernel, &copy.config, &copy.revision, &copy.reason, &copy.environment, &copy.measured, &copy.samples_ns,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = hone_importer_copy(importer, *texts[i]);
    return copy;
}

static bool copy_measured(hone_importer *importer, const hone_store_key *key, const hone_store_measurement *measurement)
{
    const hone_store_measured copy = {hone_importer_copy_key(importer, key), copy_measurement(importer, measurement)};
    hone_importer_take_measured(importer, &copy);
    return !importer->texts.failed;
}

static bool copy_record(void *ctx, const hone_store_record *record)
{
    return record->kind == HONE_RECORD_DECISION ? copy_decision(ctx, record->decision)
                                                : copy_measured(ctx, record->key, record->measurement);
}

static bool copy_alias(void *ctx, const hone_store_alias *alias)
{
    hone_importer *importer = ctx;
    const hone_store_alias copy = {
        .scheme = hone_importer_copy(importer, alias->scheme),
        .operation = hone_importer_copy(importer, alias->operation),
        .foreign_key = hone_importer_copy(importer, alias->foreign_key),
        .foreign_spec = hone_importer_copy(importer, alias->foreign_spec),
        .key = hone_importer_copy_key(importer, &alias->key),
    };
    hone_importer_take_alias(importer, &copy);
    return !importer->texts.failed;
}

static bool copy_foreign(void *ctx, const hone_store_foreign *foreign)
{
    hone_importer *importer = ctx;
    if (hone_store_is_note(foreign->scheme)) return true;
    const hone_store_foreign copy = {
        .scheme = hone_importer_copy(importer, foreign->scheme),
        .operation = hone_importer_copy(importer, foreign->operation),
        .device = hone_importer_copy(importer, foreign->device),
        .foreign_key = hone_importer_copy(importer, foreign->foreign_key),
        .text = hone_importer_copy(importer, foreign->text),
        .origin = hone_importer_copy(importer, foreign->origin),
    };
    hone_importer_keep(importer, &copy, "kept as it came");
    return !importer->texts.failed;
}

// What a store holds, without the counts of its calls.
static hone_status copy_store(hone_importer *importer, hone_store *from, hone_error *err)
{
    importer->origin = hone_importer_copy(importer, hone_store_url(from));
    hone_status status = hone_store_scan(from, HONE_RECORD_DECISION, NULL, copy_record, importer, err);
    if (status == HONE_OK) status = hone_store_scan(from, HONE_RECORD_MEASUREMENT, NULL, copy_record, importer, err);
    if (status == HONE_OK) status = hone_store_aliases(from, NULL, copy_alias, importer, err);
    if (status == HONE_OK) status = hone_store_foreigns(from, NULL, copy_foreign, importer, err);
    return status == HONE_OK && importer->texts.failed ? hone_fail_memory(err, where) : status;
}

static hone_status store_merge_from_known(
    hone_store *to, hone_store *from, const hone_import_options *options, hone_import_report *out, hone_error *err)
{
    if (to == NULL || from == NULL || to == from)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "two stores are needed, and none may be NULL");
    hone_importer *importer = NULL;
    hone_status status = hone_importer_new(to->allocator, NULL, options, &importer, err);
    if (status != HONE_OK) return status;
    importer->codec.load = NULL;
    importer->is_trusting = true;
    status = copy_store(importer, from, err);
    if (status == HONE_OK) status = hone_importer_commit(importer, to, out, err);
    hone_importer_release(&importer);
    return status;
}

hone_status hone_store_merge_from_sized(
    hone_store *to,
    hone_store *from,
    const hone_import_options *options,
    hone_import_report *out,
    size_t size,
    hone_error *err)
{
    hone_import_report known;
    hone_status status = store_merge_from_known(to, from, options, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}

// Comparing -----------------------------------------------------------------------------------------------------------

typedef bool visit_pair(void *ctx, const hone_store_pair *pair);

static int compare_keys(const hone_store_key *a, const hone_store_key *b)
{
    const char *const texts[][2] = {
        {a->device, b->device},
        {a->algorithm, b->algorithm},
        {a->version, b->version},
        {a->key, b->key},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int order = strcmp(texts[i][0], texts[i][1]);
        if (order != 0) return order;
    }
    return 0;
}

static int compare_places(const hone_store_decision *a, const hone_store_decision *b)
{
    int order = compare_keys(&a->key, &b->key);
    return order != 0 ? order : (int)a->regime - (int)b->regime;
}

static bool same_choice(const hone_store_decision *a, const hone_store_decision *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->platform, b->platform) == 0 &&
           strcmp(a->config, b->config) == 0;
}

// The decisions of both as their stores visit them, by key and regime, walked side by side: each is looked at once.
static void compare_all(const hone_importer *a, const hone_importer *b, visit_pair *visit, void *ctx)
{
    bool more = true;
    for (size_t i = 0, j = 0; more && (i < a->decision_count || j < b->decision_count);) {
        const hone_store_decision *left = i < a->decision_count ? &a->decisions[i] : NULL;
        const hone_store_decision *right = j < b->decision_count ? &b->decisions[j] : NULL;
        int order = left == NULL ? 1 : right == NULL ? -1 : compare_places(left, right);
        i += order <= 0;
        j += order >= 0;
        if (order < 0)
            more = visit(ctx, &(hone_store_pair){HONE_ONLY_LEFT, left, NULL});
        else if (order > 0)
            more = visit(ctx, &(hone_store_pair){HONE_ONLY_RIGHT, NULL, right});
        else if (!same_choice(left, right))
            more = visit(ctx, &(hone_store_pair){HONE_OTHER_CHOICE, left, right});
        else if (left->time_ns < right->time_ns || left->time_ns > right->time_ns)
            more = visit(ctx, &(hone_store_pair){HONE_OTHER_TIMES, left, right});
    }
}

static hone_status read_decisions(hone_store *store, hone_importer **out, hone_error *err)
{
    hone_status status = hone_importer_new(store->allocator, NULL, NULL, out, err);
    if (status != HONE_OK) return status;
    (*out)->is_trusting = true;
    status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, copy_record, *out, err);
    return status == HONE_OK && (*out)->texts.failed ? hone_fail_memory(err, where) : status;
}

hone_status hone_store_diff(hone_store *left, hone_store *right, visit_pair *visit, void *ctx, hone_error *err)
{
    if (left == NULL || right == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, diff_where, "both stores and visit must not be NULL");
    hone_importer *a = NULL, *b = NULL;
    hone_status status = read_decisions(left, &a, err);
    if (status == HONE_OK) status = read_decisions(right, &b, err);
    if (status == HONE_OK) compare_all(a, b, visit, ctx);
    hone_importer_release(&a);
    hone_importer_release(&b);
    return status;
}

// Pruning -------------------------------------------------------------------------------------------------------------

// Whether a kernel here can serve what was found with (kernel, platform, config, revision). platform NULL: of any.
static bool is_current(
    const hone_algorithm_entry *algorithm,
    const char *kernel_name,
    const char *platform_name,
    const char *config_text,
    const char *revision)
{
    hone_platform platform = HONE_PLATFORM_NONE;
    hone_config config;
    if (platform_name != NULL && hone_platform_parse(platform_name, &platform, NULL) != HONE_OK) return false;
    hone_registry_reader reader;
    bool found = false;
    hone_registry_enter(algorithm->registry, &reader);
    const hone_kernel_ref *kernel = hone_kernel_by_name(algorithm, kernel_name, platform);
    // One for each backend may have the name.
    for (; kernel != NULL && !found; kernel = hone_kernel_after(algorithm, kernel, platform)) {
        if (revision != NULL && strcmp(revision, kernel->kernel.revision) != 0) continue;
        found = kernel->kernel.is_reference ||
                hone_config_from_json(kernel->space, config_text, strlen(config_text), &config, NULL) == HONE_OK;
    }
    hone_registry_leave(&reader);
    return found;
}

// What of a store goes. Once without a lock, to find the keys that have something that goes; then, where there are any,
// again in the transaction that replaces them, since other processes put meanwhile.
typedef struct pruning {
    hone_importer *kept; // memory, and what stays under the keys
    hone_registry *registry;
    hone_store_key *keys; // with something that goes
    size_t key_count, key_capacity;
    hone_prune_report report;
} pruning;

static const char prune_where[] = "interchange.prune";

static bool decision_stays(const pruning *p, const hone_store_decision *d)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(p->registry, d->key.algorithm, d->key.version);
    return algorithm == NULL || is_current(algorithm, d->kernel, d->platform, d->config, d->revision);
}

static bool measured_stays(const pruning *p, const hone_store_key *key, const hone_store_measurement *m)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(p->registry, key->algorithm, key->version);
    return algorithm == NULL || is_current(algorithm, m->kernel, NULL, m->config, m->revision);
}

static bool note_key(pruning *p, const hone_store_key *key)
{
    if (p->key_count > 0 && compare_keys(&p->keys[p->key_count - 1], key) == 0) return true;
    if (!hone_grow(&p->kept->texts.arena.allocator, &p->keys, &p->key_capacity, p->key_count + 1, sizeof *p->keys)) {
        p->kept->texts.failed = true;
        return false;
    }
    p->keys[p->key_count] = hone_importer_copy_key(p->kept, key);
    p->keys[p->key_count++].spec = NULL; // every call of the key
    return !p->kept->texts.failed;
}

static bool find_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    pruning *p = ctx;
    if (decision_stays(p, decision)) return true;
    p->report.decisions++;
    return note_key(p, &decision->key);
}

static bool find_measurement(void *ctx, const hone_store_record *record)
{
    const hone_store_key *key = record->key;
    const hone_store_measurement *measurement = record->measurement;
    pruning *p = ctx;
    if (measured_stays(p, key, measurement)) return true;
    p->report.measurements++;
    return note_key(p, key);
}

static int by_key(const void *a, const void *b)
{
    return compare_keys(a, b);
}

static void sort_keys(pruning *p)
{
    size_t count = 0;
    if (p->key_count == 0) return;
    qsort(p->keys, p->key_count, sizeof *p->keys, by_key);
    for (size_t i = 0; i < p->key_count; i++)
        if (count == 0 || compare_keys(&p->keys[count - 1], &p->keys[i]) != 0) p->keys[count++] = p->keys[i];
    p->key_count = count;
}

static bool is_touched(const pruning *p, const hone_store_key *key)
{
    return bsearch(key, p->keys, p->key_count, sizeof *p->keys, by_key) != NULL;
}

static bool keep_decision(void *ctx, const hone_store_decision *decision)
{
    pruning *p = ctx;
    if (!is_touched(p, &decision->key)) return true;
    if (decision_stays(p, decision)) return copy_decision(p->kept, decision);
    p->report.decisions++;
    return true;
}

static bool keep_measured(void *ctx, const hone_store_measured *measured)
{
    pruning *p = ctx;
    if (!is_touched(p, &measured->key)) return true;
    if (measured_stays(p, &measured->key, &measured->measurement))
        return copy_measured(p->kept, &measured->key, &measured->measurement);
    p->report.measurements++;
    return true;
}

// Whole keys are removed, and what stays of them is put again.
static hone_status replace_keys(hone_store *store, void *ctx, hone_error *err)
{
    pruning *p = ctx;
    const hone_store_key all = {0};
    hone_assert(hone_store_is_locked(store));
    p->report = (hone_prune_report){0};
    hone_status status = store->ops->scan(store, &all, keep_decision, p, err);
    if (status == HONE_OK) status = store->ops->measurements(store, &all, keep_measured, p, err);
    if (status != HONE_OK) return status;
    if (p->kept->texts.failed) return hone_fail_memory(err, prune_where);
    const hone_store_batch batch = {
        .removed = p->keys,
        .removed_count = p->key_count,
        .decisions = p->kept->decisions,
        .decision_count = p->kept->decision_count,
        .measured = p->kept->measured,
        .measured_count = p->kept->measured_count,
    };
    return hone_store_put_within(store, &batch, err);
}

static hone_status prune(pruning *p, hone_store *store, bool dry_run, hone_error *err)
{
    hone_status status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, find_decision, p, err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, NULL, find_measurement, p, err);
    if (status != HONE_OK) return status;
    if (p->kept->texts.failed) return hone_fail_memory(err, prune_where);
    if (dry_run || p->key_count == 0) return HONE_OK;
    sort_keys(p);
    return hone_store_transact(store, replace_keys, p, err);
}

hone_status hone_prune_store(
    hone_registry *registry, hone_store *store, bool dry_run, hone_prune_report *out, hone_error *err)
{
    pruning p = {.registry = registry};
    hone_status status = hone_importer_new(store->allocator, NULL, NULL, &p.kept, err);
    if (status != HONE_OK) return status;
    p.kept->is_trusting = true;
    status = prune(&p, store, dry_run, err);
    if (status == HONE_OK && out != NULL) *out = p.report;
    hone_free(&store->allocator, p.keys);
    hone_importer_release(&p.kept);
    return status;
}
