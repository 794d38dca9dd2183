// Exporting: what a store holds as one document of one of the formats.
#include "interchange/exporter.h"

#include "base/error.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/structs.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "interchange.export";

bool hone_exporter_is_failed(const hone_exporter *w)
{
    return w->text.failed || w->scratch.failed || w->status != HONE_OK;
}

bool hone_exporter_wants(const hone_exporter *w, const char *device)
{
    return w->options->device == NULL || strcmp(w->options->device, device) == 0;
}

void hone_exporter_leave_out(const hone_exporter *w, const hone_store_decision *decision, const char *reason)
{
    char what[200];
    if (w->options->line == NULL) return;
    snprintf(
        what, sizeof what, "%.64s@v%.20s %.20s", decision->key.algorithm, decision->key.version, decision->key.key);
    const hone_import_line line = {HONE_IMPORT_REFUSED, hone_store_url(w->store), what, reason};
    w->options->line(w->options->ctx, &line);
}

bool hone_is_object(const char *text)
{
    hone_view value;
    return text != NULL && hone_json_text_check(hone_view_of(text), HONE_JSON_STRICT, &value, NULL) == HONE_OK &&
           hone_json_is_object(value);
}

// Options of the caller's header as this one knows them.
static hone_status read_options(
    const hone_export_options *options, hone_export_options *out, hone_codec *codec, hone_error *err)
{
    *out = (hone_export_options){.struct_size = sizeof *out};
    *codec = (hone_codec){.struct_size = sizeof *codec};
    if (options == NULL) return HONE_OK;
    hone_status status =
        hone_struct_copy(out, sizeof *out, options, options->struct_size, "hone_export_options", where, err);
    if (status == HONE_OK && out->codec != NULL)
        status = hone_struct_copy(codec, sizeof *codec, out->codec, out->codec->struct_size, "hone_codec", where, err);
    out->codec = codec;
    if (status == HONE_OK && ((int)out->format < 0 || out->format >= HONE_EXCHANGE_COUNT))
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is no format", (int)out->format);
    return status;
}

hone_status hone_export(
    hone_store *store, const hone_export_options *options, char **out_text, size_t *out_size, hone_error *err)
{
    hone_export_options known;
    hone_codec codec;
    if (store == NULL || out_text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and out_text must not be NULL");
    *out_text = NULL;
    hone_status status = read_options(options, &known, &codec, err);
    if (status != HONE_OK) return status;
    // The text is freed without a store at hand, hence the system's allocator.
    hone_exporter w = {.options = &known, .store = store, .err = err};
    hone_buffer_init(&w.text, hone_allocator_system());
    hone_buffer_init(&w.scratch, w.text.allocator);
    bool is_bundle = known.format == HONE_EXCHANGE_ANY || known.format == HONE_EXCHANGE_HONE;
    status = is_bundle ? hone_write_bundle(&w, err) : hone_write_pairs(&w, err);
    if (w.status != HONE_OK) status = w.status;
    if (status == HONE_OK && (w.text.failed || w.scratch.failed)) status = hone_fail_memory(err, where);
    if (status == HONE_OK) {
        if (out_size != NULL) *out_size = w.text.size;
        *out_text = hone_buffer_take(&w.text);
    }
    hone_free(&w.text.allocator, w.device);
    hone_free(&w.text.allocator, w.environment);
    hone_buffer_deinit(&w.text);
    hone_buffer_deinit(&w.scratch);
    return status;
}
