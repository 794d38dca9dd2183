#include "interchange/exporter.h"

#include "base/error.h"
#include "base/json_text.h"
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
    const hone_export_options *options = w->options;
    for (size_t i = 0; i < options->device_count; i++)
        if (strcmp(options->devices[i], device) == 0) return true;
    return options->device_count == 0 && (options->device == NULL || strcmp(options->device, device) == 0);
}

void hone_exporter_leave_out(const hone_exporter *w, const hone_store_decision *decision, const char *reason)
{
    char what[200];
    if (w->options->line == NULL || w->options->file != NULL) return;
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

hone_status hone_export_options_read(
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
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is not a format", (int)out->format);
    return status;
}
