// All that an import has read goes into a store in one transaction, with aliases for the foreign keys whose calls are
// known.
#include "interchange/importer.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "hone/describe.h"
#include "hone/signature.h"

#include <string.h>

static const char where[] = "interchange.import";

// Aliases -------------------------------------------------------------------------------------------------------------

typedef struct recorded {
    hone_importer *importer;
    const char *spec; // the importer's; NULL: not recorded
} recorded;

static bool take_recorded(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    recorded *r = ctx;
    if (invocation->key.spec != NULL) r->spec = hone_importer_copy(r->importer, invocation->key.spec);
    return r->spec == NULL;
}

static hone_status add_alias(
    hone_importer *importer,
    const hone_store_foreign *foreign,
    const char *spec,
    const hone_algorithm_entry *algorithm,
    size_t *out_count)
{
    const hone_allocator *a = &importer->texts.arena.allocator;
    const hone_view operation = {foreign->operation, strcspn(foreign->operation, "@")};
    hone_call *call = NULL;
    hone_status status =
        hone_registry_foreign_call(importer->registry, a, foreign->scheme, operation, spec, &algorithm, &call, NULL);
    if (status == HONE_NOT_FOUND && algorithm != NULL)
        status = hone_call_from_spec(*a, algorithm->signature, spec, strlen(spec), &call, NULL);
    if (status != HONE_OK) return status == HONE_OUT_OF_MEMORY ? status : HONE_OK;
    const hone_store_alias alias = {
        .scheme = foreign->scheme,
        .operation = foreign->operation,
        .foreign_key = foreign->foreign_key,
        .foreign_spec = spec,
        .key =
            {.algorithm = algorithm->name,
             .version = algorithm->version,
             .key = hone_importer_copy(importer, hone_call_key(call)),
             .spec = hone_importer_copy(importer, hone_call_spec(call))},
    };
    hone_call_release(&call);
    hone_importer_take_alias(importer, &alias);
    ++*out_count;
    return HONE_OK;
}

// A foreign key is a hash: which call it names is known where that call was recorded.
static hone_status bind_foreign(
    hone_importer *importer, hone_store *store, const hone_store_foreign *foreign, size_t *out_count, hone_error *err)
{
    hone_store_key filter = {.key = foreign->foreign_key};
    recorded found = {.importer = importer};
    if (importer->registry == NULL || !hone_is_key(foreign->foreign_key)) return HONE_OK;
    hone_importer_name_algorithm(importer, foreign->operation, &filter);
    // hone's versions are its own: an operation without a row is the newest algorithm of its name.
    const hone_algorithm_entry *algorithm = hone_registry_find(importer->registry, filter.algorithm, NULL);
    hone_status status = hone_store_scan(store, HONE_RECORD_INVOCATION, &filter, take_recorded, &found, err);
    if (status != HONE_OK && status != HONE_CORRUPT) return status;
    if (found.spec == NULL) return HONE_OK;
    status = add_alias(importer, foreign, found.spec, algorithm, out_count);
    return status == HONE_OUT_OF_MEMORY ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status bind_all(hone_importer *importer, hone_store *store, size_t *out_count, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < importer->foreign_count; i++)
        status = bind_foreign(importer, store, &importer->foreigns[i], out_count, err);
    return status == HONE_OK && importer->texts.failed ? hone_fail_memory(err, where) : status;
}

// Committing ----------------------------------------------------------------------------------------------------------

typedef struct telling {
    hone_importer *importer;
    size_t at; // the next entry
} telling;

static void note_outcome(void *ctx, size_t index, hone_merge_outcome outcome, const char *reason)
{
    static const hone_import_outcome outcomes[] = {
        [HONE_MERGE_TAKEN] = HONE_IMPORT_TAKEN,
        [HONE_MERGE_KEPT] = HONE_IMPORT_KEPT,
        [HONE_MERGE_EQUAL] = HONE_IMPORT_EQUAL,
    };
    (void)index;
    telling *tell = ctx;
    while (!tell->importer->entries[tell->at].is_decision)
        tell->at++;
    hone_assert(tell->at < tell->importer->entry_count);
    hone_import_line *line = &tell->importer->entries[tell->at++].line;
    line->outcome = outcomes[outcome];
    line->reason = reason;
}

static void report(const hone_importer *importer, hone_import_report *out)
{
    for (size_t i = 0; i < importer->entry_count; i++) {
        const hone_import_line *line = &importer->entries[i].line;
        out->outcomes[line->outcome]++;
        if (importer->options.line != NULL) importer->options.line(importer->options.ctx, line);
    }
}

static hone_status importer_commit_known(
    hone_importer *importer, hone_store *store, hone_import_report *out, hone_error *err)
{
    hone_import_report counts = {0};
    if (importer == NULL || store == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer and the store must not be NULL");
    if (importer->is_committed)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer was committed: create another");
    counts.aliases = importer->alias_count;
    hone_status status = bind_all(importer, store, &counts.aliases, err);
    telling tell = {importer, 0};
    const hone_store_batch batch = {
        .decisions = importer->decisions,
        .decision_count = importer->decision_count,
        .on_outcome = note_outcome,
        .ctx = &tell,
        .measured = importer->measured,
        .measured_count = importer->measured_count,
        .out_measured = &counts.measurements,
        .aliases = importer->aliases,
        .alias_count = importer->alias_count,
        .foreigns = importer->foreigns,
        .foreign_count = importer->foreign_count,
    };
    if (status == HONE_OK) status = hone_store_put_batch(store, &batch, err);
    if (status != HONE_OK) return status;
    importer->is_committed = true;
    report(importer, &counts);
    if (out != NULL) *out = counts;
    return HONE_OK;
}

hone_status hone_importer_commit_sized(
    hone_importer *importer, hone_store *store, hone_import_report *out, size_t size, hone_error *err)
{
    hone_import_report known;
    hone_status status = importer_commit_known(importer, store, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}
