// Moving decisions between stores and programs: hone's own bundles, ejkernel's persistent caches, tokamax's cache
// files.
//
// A bundle is a result document (docs/formats.md). hone cannot check configs of another system, so they
// are kept as they came, never served, and returned unchanged; a loader and a dumper of the caller's can translate
// them.
#ifndef HONE_INTERCHANGE_H
#define HONE_INTERCHANGE_H

#include "hone/runtime.h"
#include "hone/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_exchange {
    HONE_EXCHANGE_ANY = 0,  // reading: detected from the text; writing: hone's
    HONE_EXCHANGE_HONE,     // result documents
    HONE_EXCHANGE_EJKERNEL, // "device|operation@vN|key": config
    HONE_EXCHANGE_TOKAMAX,  // arguments: {config: times}, both as JSON in strings
    HONE_EXCHANGE_COUNT
} hone_exchange;

// "hone", "ejkernel", "tokamax"; "any". Static.
// HONE_INVALID_ARGUMENT lists the known names.
HONE_API HONE_MUST_CHECK hone_status hone_exchange_parse(const char *name, hone_exchange *out, hone_error *err);

// Translates another system's configs. Texts that a function returns stay valid until it is called again.
typedef struct hone_codec {
    size_t struct_size;
    // Makes a decision of a foreign entry. decision comes with the entry's device, algorithm, version and key; the rest
    // is the loader's, above all kernel, platform and config, and all may be changed. It is checked against the
    // kernel's space like any other and stored as not verified.
    // Returns: HONE_OK; HONE_NOT_FOUND: hone has no use for it, and it is kept as it came; else the entry is refused with
    // err's message.
    hone_status (*load)(void *ctx, const hone_store_foreign *entry, hone_store_decision *decision, hone_error *err);
    // Writes a decision as an entry of another system. entry comes with scheme, operation, device and key; the text,
    // one JSON value, is the dumper's, and the rest may be changed.
    // Returns: HONE_OK; HONE_NOT_FOUND: the decision is left out; else the export fails with err's message.
    hone_status (*dump)(void *ctx, const hone_store_decision *decision, hone_store_foreign *entry, hone_error *err);
    void *ctx;
} hone_codec;

// The outcome of one entry of an import, a merge or an export.
typedef enum hone_import_outcome {
    HONE_IMPORT_TAKEN,   // stored now
    HONE_IMPORT_KEPT,    // the stored one is better, and stays
    HONE_IMPORT_EQUAL,   // was stored already
    HONE_IMPORT_FOREIGN, // another system's: kept as it came, never served
    HONE_IMPORT_REFUSED, // not stored
    HONE_IMPORT_COUNT
} hone_import_outcome;

enum { HONE_IMPORT_ROOM = 8 }; // size of an array with an element for each outcome, with room for later versions

// "taken", "kept", "equal", "foreign", "refused". Static.
HONE_API const char *hone_import_outcome_name(hone_import_outcome outcome);

typedef struct hone_import_line {
    hone_import_outcome outcome;
    const char *origin; // file
    const char *what;   // "rms_norm@v1 0123456789abcdef"
    const char *reason; // never NULL
} hone_import_line;

typedef struct hone_import_report {
    size_t outcomes[HONE_IMPORT_ROOM]; // by hone_import_outcome
    size_t aliases;                    // foreign keys that now lead to calls of hone
    size_t measurements;               // and failures
} hone_import_report;

typedef struct hone_import_options {
    size_t struct_size;
    const hone_codec *codec; // or NULL
    // Called for each entry, in order, once all is stored; borrowed texts.
    void (*line)(void *ctx, const hone_import_line *line);
    void *ctx;
} hone_import_options;

// Collects documents, and stores what they hold in one transaction.
typedef struct hone_importer hone_importer;

// rt may be NULL: then nothing is known about kernels, and configs of hone's are taken unchecked (they
// are checked when they are served).
// options may be NULL and are copied.
HONE_API HONE_MUST_CHECK hone_status
hone_importer_create(hone_runtime *rt, const hone_import_options *options, hone_importer **out, hone_error *err);
HONE_API void hone_importer_release(hone_importer **importer);
// Reads one document; single entries that are wrong are refused, each with its reason, when the import is committed.
//   origin  path of the file, for messages; tokamax's operation and device are its name and its folder's
//   text    at most 1 GiB; copied
// Returns: HONE_OK; HONE_CORRUPT (not a document of that format: nothing of it is taken); HONE_INCOMPATIBLE (of a newer
// hone);
//          HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_importer_add(
    hone_importer *importer, const char *origin, hone_exchange format, const char *text, size_t size, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status hone_importer_commit_sized(
    hone_importer *importer, hone_store *store, hone_import_report *out, size_t size, hone_error *err);
// Stores all that was added, in one transaction: decisions by the rule of docs/store.md. Once an importer.
// Returns: HONE_OK, also when entries were refused; HONE_BUSY, HONE_IO, HONE_CORRUPT: then the store is as it was.
HONE_MUST_CHECK static inline hone_status hone_importer_commit(
    hone_importer *importer, hone_store *store, hone_import_report *out, hone_error *err)
{
    return hone_importer_commit_sized(importer, store, out, sizeof *out, err);
}

typedef struct hone_export_options {
    size_t struct_size;
    hone_exchange format;
    // Its dumper writes decisions for ejkernel; NULL writes them under the names of ejkernel's kernels.
    const hone_codec *codec;
    const char *device; // only this fingerprint's decisions; NULL for all
    const char *file;   // only what belongs into this file of hone_export_files; NULL for all
    bool measurements;  // bundles: also everything that was measured, and that failed
    // Called for what is left out, with the reason; not where `file` is given, since hone_export_files calls it.
    void (*line)(void *ctx, const hone_import_line *line);
    void *ctx;
    // Knows ejkernel's operations (docs/foreign-operations.md), buckets, and which CPU is this one. NULL means that no decision is
    // translated for ejkernel.
    hone_runtime *rt;
    // ejkernel's name of the GPU, "NVIDIA H200|VERSION OF JAX'S PLATFORM"; NULL if it is not known.
    const char *foreign_device;
    // EJKERNEL: the text of the file that is there, an object of JSON: what ejkernel put into it since, or hone never read, stays
    // before what is written. HONE_CORRUPT: it is not such a file. NULL if nothing stays.
    const char *there;
    size_t there_size;
    // Only the decisions of these fingerprints, where they are several; NULL if `device` selects them.
    const char *const *devices;
    size_t device_count;
} hone_export_options;

// Writes what a store holds as one document: ANY and HONE: a bundle; EJKERNEL and TOKAMAX: that system's entries as
// they came, and, for ejkernel, the decisions of calls whose ejkernel key is known (aliases), as its executor looks for
// them. Where both are there, what says block sizes, warps or stages stands, else what came. options may be NULL.
//   out_text  free with hone_text_release
// Returns: HONE_OK; as hone_store_scan; what a dumper returned.
HONE_API HONE_MUST_CHECK hone_status
hone_export(hone_store *store, const hone_export_options *options, char **out_text, size_t *out_size, hone_error *err);

// Visits the names of the files that the store's entries make in a folder, sorted, each once: "hone.json" for a bundle;
// "flash-attn.json", as ejkernel looks for it, for ejkernel; "DEVICE/OPERATION.json" for tokamax. A name has no parts but
// these, and leads nowhere else. options->line gets a line for what is left out of all of them.
HONE_API HONE_MUST_CHECK hone_status hone_export_files(
    hone_store *store,
    const hone_export_options *options,
    bool (*visit)(void *ctx, const char *file),
    void *ctx,
    hone_error *err);

HONE_API HONE_MUST_CHECK hone_status hone_store_merge_from_sized(
    hone_store *to,
    hone_store *from,
    const hone_import_options *options,
    hone_import_report *out,
    size_t size,
    hone_error *err);
// Copies the records of `from` into `to`: decisions by the rule of docs/store.md, measurements and failures where they
// rest on more, aliases and foreign configs where there are none. Counts of calls are left out: they would be added
// twice. options may be NULL; its codec is not used.
HONE_MUST_CHECK static inline hone_status hone_store_merge_from(
    hone_store *to, hone_store *from, const hone_import_options *options, hone_import_report *out, hone_error *err)
{
    return hone_store_merge_from_sized(to, from, options, out, sizeof *out, err);
}

typedef enum hone_difference {
    HONE_ONLY_LEFT,
    HONE_ONLY_RIGHT,
    HONE_OTHER_CHOICE, // another kernel, platform or config
    HONE_OTHER_TIMES   // of the same choice
} hone_difference;

// The decisions of a key in two stores; NULL if that store has none. Shown by hone, borrowed for the visit.
typedef struct hone_store_pair {
    hone_difference difference;
    const hone_store_decision *left, *right;
} hone_store_pair;

// Visits the keys whose decisions differ, in key order, until visit returns false.
HONE_API HONE_MUST_CHECK hone_status hone_store_diff(
    hone_store *left,
    hone_store *right,
    bool (*visit)(void *ctx, const hone_store_pair *pair),
    void *ctx,
    hone_error *err);

// What prune removed, or would remove.
typedef struct hone_prune_report {
    size_t decisions;    // that no kernel here can serve: gone, changed, or with another space
    size_t measurements; // and failures, of kernels that changed or are gone
    size_t quarantined;  // records that were set aside
} hone_prune_report;

HONE_API HONE_MUST_CHECK hone_status hone_store_prune_sized(
    hone_runtime *rt, hone_store *store, bool dry_run, hone_prune_report *out, size_t size, hone_error *err);
// Removes what can never be served again, of algorithms that are registered here at the same version: others belong to
// other programs. With dry_run it only counts.
HONE_MUST_CHECK static inline hone_status hone_store_prune(
    hone_runtime *rt, hone_store *store, bool dry_run, hone_prune_report *out, hone_error *err)
{
    return hone_store_prune_sized(rt, store, dry_run, out, sizeof *out, err);
}

#ifdef __cplusplus
}
#endif
#endif
