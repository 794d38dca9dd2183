// The files of ejkernel and tokamax, written: one object of "key": value, as Python's json.dump lays it out.
#include "interchange/mapping.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "store/records.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "interchange.export";

static void put_string(hone_buffer *out, const char *text)
{
    hone_json_string(out, text, strlen(text));
}

static bool is_in_file(const hone_exporter *w, const char *file)
{
    return w->options->file == NULL || strcmp(w->options->file, file) == 0;
}

static void put_pair(hone_exporter *w, const char *key, const char *value)
{
    if (w->count++ > 0) hone_buffer_text(&w->text, ", ");
    put_string(&w->text, key);
    hone_buffer_text(&w->text, ": ");
    hone_buffer_text(&w->text, value);
}

static void put_entry(hone_exporter *w, const hone_store_foreign *entry)
{
    char file[HONE_EXPORT_FILE_SIZE];
    hone_name_foreign_file(entry, file);
    if (!is_in_file(w, file)) return;
    hone_buffer_clear(&w->scratch);
    if (w->options->format == HONE_EXCHANGE_EJKERNEL)
        hone_buffer_format(&w->scratch, "%s|%s|", entry->device != NULL ? entry->device : "", entry->operation);
    hone_buffer_text(&w->scratch, entry->foreign_key);
    put_pair(w, hone_buffer_string(&w->scratch), entry->text);
}

static bool put_as_it_came(void *ctx, const hone_store_foreign *foreign)
{
    put_entry(ctx, foreign);
    return !hone_exporter_is_failed(ctx);
}

// What the dumper gives must be JSON, or the whole file were none.
static hone_status dump(hone_exporter *w, const hone_store_decision *decision, hone_store_foreign *entry)
{
    const hone_codec *codec = w->options->codec;
    hone_view value;
    hone_status status = codec->dump(codec->ctx, decision, entry, w->err);
    if (status != HONE_OK) return status;
    if (entry->text == NULL || entry->foreign_key == NULL || entry->operation == NULL)
        return hone_fail(w->err, HONE_INVALID_ARGUMENT, where, "the dumper left text, operation or key NULL");
    status = hone_json_text_check(hone_view_of(entry->text), HONE_JSON_PYTHON, &value, w->err);
    return status == HONE_OK ? HONE_OK : hone_fail_prefix(w->err, status, "the dumper's text");
}

static bool dump_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    hone_exporter *w = ctx;
    char operation[200];
    if (!hone_exporter_wants(w, decision->key.device)) return true;
    if (!hone_is_object(decision->config)) {
        hone_exporter_leave_out(w, decision, "its config is not a JSON object");
        return true;
    }
    snprintf(operation, sizeof operation, "%.120s@v%.60s", decision->key.algorithm, decision->key.version);
    hone_store_foreign entry = {
        .scheme = "ejkernel",
        .operation = operation,
        .device = decision->key.device,
        .foreign_key = decision->key.key,
    };
    hone_status status = dump(w, decision, &entry);
    if (status == HONE_OK)
        put_entry(w, &entry);
    else if (status == HONE_NOT_FOUND)
        hone_exporter_leave_out(w, decision, "the dumper left it out");
    else
        w->status = status;
    return !hone_exporter_is_failed(w);
}

typedef struct merging {
    hone_exporter *exporter;
    hone_mapping mapping;
} merging;

// What was imported comes out as it came, unless hone knows better blocks.
static bool put_unless_mapped(void *ctx, const hone_store_foreign *foreign)
{
    merging *m = ctx;
    hone_mapped *mapped = hone_mapping_find(&m->mapping, foreign);
    if (mapped != NULL && mapped->has_words) return true;
    if (mapped != NULL) mapped->is_told = true;
    put_entry(m->exporter, foreign);
    return !hone_exporter_is_failed(m->exporter);
}

static hone_status put_mapped(hone_exporter *w, hone_error *err)
{
    merging m = {.exporter = w};
    hone_status status = hone_map_ejkernel(w, &m.mapping, err);
    if (status == HONE_OK) status = hone_store_foreigns(w->store, "ejkernel", put_unless_mapped, &m, err);
    for (size_t i = 0; i < m.mapping.count && status == HONE_OK; i++)
        if (!m.mapping.items[i].is_told) put_entry(w, &m.mapping.items[i].entry);
    hone_mapping_deinit(&m.mapping);
    return status;
}

hone_status hone_write_pairs(hone_exporter *w, hone_error *err)
{
    const hone_exchange format = w->options->format;
    const bool maps = format == HONE_EXCHANGE_EJKERNEL && w->options->codec->dump == NULL;
    hone_buffer_char(&w->text, '{');
    hone_status status =
        maps ? put_mapped(w, err) : hone_store_foreigns(w->store, hone_exchange_name(format), put_as_it_came, w, err);
    if (status == HONE_OK && format == HONE_EXCHANGE_EJKERNEL && !maps)
        status = hone_store_scan(w->store, HONE_RECORD_DECISION, NULL, dump_decision, w, err);
    hone_buffer_char(&w->text, '}');
    return status;
}
