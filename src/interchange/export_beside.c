// ejkernel's file, written beside what it put there itself.
#include "interchange/exporter.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/texts.h"

static const char where[] = "interchange.export";

static void append_pair(hone_buffer *out, hone_view key, hone_view value)
{
    if (out->size > 1) hone_buffer_text(out, ", ");
    hone_buffer_append(out, key.data, key.size);
    hone_buffer_text(out, ": ");
    hone_buffer_append(out, value.data, value.size);
}

// The pairs of an object but those whose keys are in `but`, as they stand: numbers keep their digits.
static void append_pairs(hone_texts *texts, hone_view object, const json_t *but, hone_buffer *out)
{
    hone_view key, value;
    for (hone_json_walk walk = hone_json_walk_of(object); hone_json_walk_next(&walk, &key, &value);) {
        const char *name = but != NULL ? hone_texts_string(texts, key) : NULL;
        if (name == NULL || json_object_get(but, name) == NULL) append_pair(out, key, value);
    }
}

static void note_keys(hone_texts *texts, hone_view object, json_t *keys)
{
    hone_view key, value;
    for (hone_json_walk walk = hone_json_walk_of(object); hone_json_walk_next(&walk, &key, &value);) {
        const char *name = hone_texts_string(texts, key);
        if (name != NULL) (void)!json_object_set_new(keys, name, json_null());
    }
}

hone_status hone_keep_theirs(const char *there, size_t there_size, hone_buffer *document, hone_error *err)
{
    hone_view old, new;
    hone_buffer both;
    if (hone_json_text_check((hone_view){there, there_size}, HONE_JSON_PYTHON, &old, NULL) != HONE_OK ||
        !hone_json_is_object(old))
        return hone_fail(err, HONE_CORRUPT, where, "is not a cache of ejkernel (a JSON object), and is not changed");
    const hone_view written = {hone_buffer_string(document), document->size};
    const hone_status status = hone_json_text_check(written, HONE_JSON_PYTHON, &new, err);
    if (status != HONE_OK) return status;
    hone_texts texts = {.arena = {.allocator = document->allocator}};
    json_t *keys = json_object();
    hone_buffer_init(&both, document->allocator);
    note_keys(&texts, new, keys);
    hone_buffer_char(&both, '{');
    append_pairs(&texts, old, keys, &both);
    append_pairs(&texts, new, NULL, &both);
    hone_buffer_char(&both, '}');
    json_decref(keys);
    if (texts.failed) both.failed = true;
    hone_arena_destroy(&texts.arena);
    hone_buffer_deinit(document);
    *document = both;
    return HONE_OK;
}
