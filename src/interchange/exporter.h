// An export on its way: what of a store is written, and the document so far.
#ifndef HONE_INTERCHANGE_EXPORTER_H
#define HONE_INTERCHANGE_EXPORTER_H

#include "base/buffer.h"
#include "hone/interchange.h"
#include "registry/registry.h"

enum { HONE_EXPORT_FILE_SIZE = 400 };

// The parts of a document are written side by side, since a store is walked kind by kind.
typedef struct hone_exporter {
    const hone_export_options *options;
    hone_store *store;
    hone_registry *registry; // may be NULL
    const char *here;        // fingerprint of this CPU; NULL: not known
    hone_buffer text;
    size_t count;               // of the list or object that is being written
    char *device, *environment; // of the first decision; the document's
    bool one_environment;       // all decisions have it
    hone_buffer scratch;
    hone_status status; // of a dumper
    hone_error *err;
} hone_exporter;

// Of a format of exports: "hone", "ejkernel", ... Static.
const char *hone_exchange_name(hone_exchange format);
// Whether there is no use in going on.
bool hone_exporter_is_failed(const hone_exporter *w);
bool hone_exporter_wants(const hone_exporter *w, const char *device);
// Tells a decision that is not written, with the reason.
void hone_exporter_leave_out(const hone_exporter *w, const hone_store_decision *decision, const char *reason);
// Whether a text, which may be NULL, is a JSON object.
bool hone_is_object(const char *text);

// hone_export and hone_export_files of the public header, with what the runtime of the options knows.
hone_status hone_export_with(
    hone_registry *registry,
    const char *here,
    hone_store *store,
    const hone_export_options *options,
    char **out_text,
    size_t *out_size,
    hone_error *err);
hone_status hone_export_files_with(
    hone_registry *registry,
    const char *here,
    hone_store *store,
    const hone_export_options *options,
    bool (*visit)(void *ctx, const char *file),
    void *ctx,
    hone_error *err);
// Options of the caller's header as this one knows them.
hone_status hone_export_options_read(
    const hone_export_options *options, hone_export_options *out, hone_codec *codec, hone_error *err);

// The formats: each writes the whole document.
hone_status hone_write_bundle(hone_exporter *w, hone_error *err);
hone_status hone_write_pairs(hone_exporter *w, hone_error *err);

// Puts what a file of ejkernel's has, and the document has not, before what the document has. HONE_CORRUPT: it is no such file.
hone_status hone_keep_theirs(const char *there, size_t there_size, hone_buffer *document, hone_error *err);

// The name of the file that an operation's decisions go to, and a foreign entry: as it was imported, else its
// operation's. What could lead elsewhere is '_'.
void hone_name_operation_file(const char *operation, char out[HONE_EXPORT_FILE_SIZE]);
void hone_name_foreign_file(const hone_store_foreign *foreign, char out[HONE_EXPORT_FILE_SIZE]);

#endif
