// Exporting: what a store holds as one document of one of the formats.
#include "interchange/exporter.h"

#include "base/error.h"
#include "base/memory.h"

static const char where[] = "interchange.export";

hone_status hone_export_with(
    hone_registry *registry,
    const char *here,
    hone_store *store,
    const hone_export_options *options,
    char **out_text,
    size_t *out_size,
    hone_error *err)
{
    hone_export_options known;
    hone_codec codec;
    if (store == NULL || out_text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and out_text must not be NULL");
    *out_text = NULL;
    hone_status status = hone_export_options_read(options, &known, &codec, err);
    if (status != HONE_OK) return status;
    // The text is freed without a store at hand, hence the system's allocator.
    hone_exporter w = {.options = &known, .store = store, .registry = registry, .here = here, .err = err};
    hone_buffer_init(&w.text, hone_allocator_system());
    hone_buffer_init(&w.scratch, w.text.allocator);
    bool is_bundle = known.format == HONE_EXCHANGE_ANY || known.format == HONE_EXCHANGE_HONE;
    status = is_bundle ? hone_write_bundle(&w, err) : hone_write_pairs(&w, err);
    if (w.status != HONE_OK) status = w.status;
    if (status == HONE_OK && known.there != NULL && known.format == HONE_EXCHANGE_EJKERNEL)
        status = hone_keep_theirs(known.there, known.there_size, &w.text, err);
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
