// What an import has read so far: records on their way into a store, and a line for each entry.
#ifndef HONE_INTERCHANGE_IMPORTER_H
#define HONE_INTERCHANGE_IMPORTER_H

#include "base/texts.h"
#include "hone/interchange.h"
#include "registry/registry.h"
#include "store/ops.h"

// One line of the report. What becomes of a decision is known when it is merged.
typedef struct hone_import_entry {
    hone_import_line line;
    bool is_decision; // outcome and reason come from the store
} hone_import_entry;

struct hone_importer {
    hone_texts texts; // of all that was read
    hone_registry *registry;
    hone_import_options options;
    hone_codec codec;
    const char *origin; // of records that are copied from a store
    hone_store_decision *decisions;
    size_t decision_count, decision_capacity;
    hone_store_measured *measured;
    size_t measured_count, measured_capacity;
    hone_store_alias *aliases;
    size_t alias_count, alias_capacity;
    hone_store_foreign *foreigns;
    size_t foreign_count, foreign_capacity;
    hone_import_entry *entries;
    size_t entry_count, entry_capacity;
    bool is_trusting; // records come from a store, which had them checked
    bool is_committed;
};

// registry may be NULL. Freed by hone_importer_release.
hone_status hone_importer_new(
    hone_allocator allocator,
    hone_registry *registry,
    const hone_import_options *options,
    hone_importer **out,
    hone_error *err);

// Each entry goes one of these ways. Texts are the importer's.
void hone_importer_refuse(hone_importer *importer, const char *origin, const char *what, const char *reason);
// Checks a decision and takes it, or refuses it with the reason.
void hone_importer_take(hone_importer *importer, const char *origin, const hone_store_decision *decision);
// Copies of a record whose texts are somebody else's.
hone_store_decision hone_importer_copy_decision(hone_importer *importer, const hone_store_decision *decision);
hone_store_key hone_importer_copy_key(hone_importer *importer, const hone_store_key *key);
const char *hone_importer_copy(hone_importer *importer, const char *text); // NULL stays NULL
// "flash_attention@v2" is algorithm flash_attention at version 2.
void hone_importer_name_algorithm(hone_importer *importer, const char *operation, hone_store_key *out);
// Hands an entry to the loader, where there is one, and keeps it as it came where it says nothing.
void hone_importer_keep(hone_importer *importer, const hone_store_foreign *foreign, const char *reason);
void hone_importer_take_measured(hone_importer *importer, const hone_store_measured *measured);
void hone_importer_take_alias(hone_importer *importer, const hone_store_alias *alias);

// The formats. Each reads a document that was checked; entries that are wrong are refused one by one.
// Returns: HONE_OK; HONE_CORRUPT, HONE_INCOMPATIBLE: nothing was added.
hone_status hone_read_bundle(hone_importer *importer, const char *origin, hone_view document, hone_error *err);
hone_status hone_read_ejkernel(hone_importer *importer, const char *origin, hone_view document, hone_error *err);
hone_status hone_read_tokamax(hone_importer *importer, const char *origin, hone_view document, hone_error *err);

#endif
