// Reads result documents (docs/formats.md): those that hone tune writes, and bundles, which hold all that a store does.
// An error in an entry is returned as a message; the caller decides whether it makes the document invalid.
#ifndef HONE_TUNE_RESULT_BUNDLE_H
#define HONE_TUNE_RESULT_BUNDLE_H

#include "base/texts.h"
#include "registry/registry.h"
#include "store/ops.h"

typedef struct hone_bundle {
    hone_texts *texts; // the texts that were read; texts->failed after a lack of memory
    hone_view document;
    const char *device;      // of the document, for entries without one; NULL: there is none
    const char *environment; // as device; a JSON object
} hone_bundle;

// Begins reading a document that was checked (HONE_JSON_STRICT). Returns: HONE_OK; HONE_CORRUPT (not a result document;
// the message names the field); HONE_INCOMPATIBLE (of a newer hone).
hone_status hone_bundle_open(hone_texts *texts, hone_view document, hone_bundle *out, hone_error *err);

// A member that is a text; NULL when it is missing or something else.
const char *hone_bundle_text(const hone_bundle *bundle, hone_view object, const char *name);

// Read entries of the lists "entries", "measurements", "aliases" and "foreign". Each returns NULL, or an error message.
// Texts of *out belong to the bundle. A store may still refuse what was read (store/ops.h).
const char *hone_bundle_decision(
    const hone_bundle *bundle, hone_view entry, hone_store_decision *out, hone_evidence *out_evidence);
const char *hone_bundle_measured(const hone_bundle *bundle, hone_view entry, hone_store_measured *out);
const char *hone_bundle_alias(const hone_bundle *bundle, hone_view entry, hone_store_alias *out);
const char *hone_bundle_foreign(const hone_bundle *bundle, hone_view entry, hone_store_foreign *out);
// Checks a decision before a store takes it: its texts, that spec and call have its key, and that the kernel, if it is
// registered, has its config. registry NULL: nothing is registered.
hone_status hone_bundle_check_decision(hone_registry *registry, const hone_store_decision *decision, hone_error *why);
// Checks an alias: its scheme must be known, its specs must hash to its keys, and its operation must be one that the
// target's algorithm can be, as far as that is known here.
hone_status hone_bundle_check_alias(hone_registry *registry, const hone_store_alias *alias, hone_error *why);
// Appends an entry of "aliases". entry: the key of the entry that answers it, if that is another one; else NULL.
void hone_bundle_put_alias(const hone_store_alias *alias, const char *entry, hone_buffer *out);

#endif
