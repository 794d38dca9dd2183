// The one reader of result documents (docs/formats.md): of those that hone tune writes, and of bundles, which hold all
// that a store does. What is wrong with an entry is told in words; whether that spoils the document is for who reads it
// to say.
#ifndef HONE_TUNE_RESULT_BUNDLE_H
#define HONE_TUNE_RESULT_BUNDLE_H

#include "base/texts.h"
#include "registry/registry.h"
#include "store/ops.h"

typedef struct hone_bundle {
    hone_texts *texts; // what was read lives there, and there it shows that there was no memory
    hone_view document;
    const char *device;      // of the document, for entries that name none; NULL: none
    const char *environment; // the same, a JSON object
} hone_bundle;

// Begins with a document that was checked (HONE_JSON_STRICT).
// Returns: HONE_OK; HONE_CORRUPT (no result document, with the field); HONE_INCOMPATIBLE (of a newer hone).
hone_status hone_bundle_open(hone_texts *texts, hone_view document, hone_bundle *out, hone_error *err);

// A member that is a text; NULL when it is missing or something else.
const char *hone_bundle_text(const hone_bundle *bundle, hone_view object, const char *name);

// Entries of the lists "entries", "measurements", "aliases" and "foreign". Each returns NULL, or what is wrong. Texts
// of *out are the bundle's. A store may still refuse what was read (store/ops.h).
const char *hone_bundle_decision(
    const hone_bundle *bundle, hone_view entry, hone_store_decision *out, hone_evidence *out_evidence);
const char *hone_bundle_measured(const hone_bundle *bundle, hone_view entry, hone_store_measured *out);
const char *hone_bundle_alias(const hone_bundle *bundle, hone_view entry, hone_store_alias *out);
const char *hone_bundle_foreign(const hone_bundle *bundle, hone_view entry, hone_store_foreign *out);
// What is checked of a decision before a store takes it: its texts, that spec and call have its key, and that the kernel,
// where it is registered, has its config. registry NULL: nothing is registered.
hone_status hone_bundle_check_decision(hone_registry *registry, const hone_store_decision *decision, hone_error *why);
// The same of an alias: a scheme that is known, keys that their specs hash to, and a target of an algorithm that the
// operation can be, as far as it is known here.
hone_status hone_bundle_check_alias(hone_registry *registry, const hone_store_alias *alias, hone_error *why);
// Appends an entry of "aliases". entry: the key of the entry that answers it, where that is another one; else NULL.
void hone_bundle_put_alias(const hone_store_alias *alias, const char *entry, hone_buffer *out);

#endif
