// What an import has read so far: checked, copied, and kept with a line for each entry.
#include "interchange/importer.h"

#include "base/error.h"
#include "base/structs.h"
#include "tune/result/bundle.h"

#include <string.h>

static const char where[] = "interchange.import";

// Opening and closing -------------------------------------------------------------------------------------------------

hone_status hone_importer_new(
    hone_allocator allocator,
    hone_registry *registry,
    const hone_import_options *options,
    hone_importer **out,
    hone_error *err)
{
    *out = NULL;
    hone_import_options known = {.struct_size = sizeof known};
    hone_codec codec = {.struct_size = sizeof codec};
    hone_status status =
        options == NULL
            ? HONE_OK
            : hone_struct_copy(&known, sizeof known, options, options->struct_size, "hone_import_options", where, err);
    if (status == HONE_OK && known.codec != NULL)
        status =
            hone_struct_copy(&codec, sizeof codec, known.codec, known.codec->struct_size, "hone_codec", where, err);
    if (status != HONE_OK) return status;
    hone_importer *importer = hone_alloc(&allocator, sizeof *importer);
    if (importer == NULL) return hone_fail_memory(err, where);
    importer->texts.arena.allocator = allocator;
    importer->registry = registry;
    importer->options = known;
    importer->codec = codec;
    *out = importer;
    return HONE_OK;
}

void hone_importer_release(hone_importer **importer)
{
    if (importer == NULL || *importer == NULL) return;
    hone_importer *gone = *importer;
    const hone_allocator allocator = gone->texts.arena.allocator;
    *importer = NULL;
    hone_free(&allocator, gone->decisions);
    hone_free(&allocator, gone->measured);
    hone_free(&allocator, gone->aliases);
    hone_free(&allocator, gone->foreigns);
    hone_free(&allocator, gone->entries);
    hone_arena_destroy(&gone->texts.arena);
    hone_free(&allocator, gone);
}

// Entries -------------------------------------------------------------------------------------------------------------

// Appends an element to one of the importer's arrays.
static void add(
    hone_importer *importer, void *array_pointer, size_t *count, size_t *capacity, const void *element, size_t size)
{
    char *elements;
    if (!hone_grow(&importer->texts.arena.allocator, array_pointer, capacity, *count + 1, size)) {
        importer->texts.failed = true;
        return;
    }
    memcpy(&elements, array_pointer, sizeof elements);
    memcpy(elements + *count * size, element, size);
    ++*count;
}

static void add_entry(
    hone_importer *importer,
    hone_import_outcome outcome,
    bool is_decision,
    const char *origin,
    const char *what,
    const char *reason)
{
    const hone_import_entry entry = {{outcome, origin, what, reason}, is_decision};
    add(importer, &importer->entries, &importer->entry_count, &importer->entry_capacity, &entry, sizeof entry);
}

void hone_importer_refuse(hone_importer *importer, const char *origin, const char *what, const char *reason)
{
    add_entry(importer, HONE_IMPORT_REFUSED, false, origin, what, reason);
}

void hone_importer_take_measured(hone_importer *importer, const hone_store_measured *measured)
{
    add(importer, &importer->measured, &importer->measured_count, &importer->measured_capacity, measured,
        sizeof *measured);
}

void hone_importer_take_alias(hone_importer *importer, const hone_store_alias *alias)
{
    add(importer, &importer->aliases, &importer->alias_count, &importer->alias_capacity, alias, sizeof *alias);
}

// Decisions -----------------------------------------------------------------------------------------------------------

static const char *name_of(hone_importer *importer, const hone_store_key *key)
{
    return hone_texts_format(
        &importer->texts, "%.64s@v%.20s %.20s", key->algorithm != NULL ? key->algorithm : "?",
        key->version != NULL ? key->version : "?", key->key != NULL ? key->key : "?");
}

void hone_importer_take(hone_importer *importer, const char *origin, const hone_store_decision *decision)
{
    hone_error why = {0};
    const char *what = name_of(importer, &decision->key);
    // What came out of a store is not asked whether a kernel has its config, only whether a store takes it.
    if ((importer->is_trusting ? hone_store_check_decision(decision, &why)
                               : hone_bundle_check_decision(importer->registry, decision, &why)) != HONE_OK) {
        hone_importer_refuse(importer, origin, what, hone_texts_keep(&importer->texts, hone_view_of(why.message)));
        return;
    }
    add(importer, &importer->decisions, &importer->decision_count, &importer->decision_capacity, decision,
        sizeof *decision);
    add_entry(importer, HONE_IMPORT_TAKEN, true, origin, what, "");
}

// Foreign entries -----------------------------------------------------------------------------------------------------

const char *hone_importer_copy(hone_importer *importer, const char *text)
{
    return text == NULL ? NULL : hone_texts_keep(&importer->texts, hone_view_of(text));
}

hone_store_key hone_importer_copy_key(hone_importer *importer, const hone_store_key *key)
{
    return (hone_store_key){
        .device = hone_importer_copy(importer, key->device),
        .algorithm = hone_importer_copy(importer, key->algorithm),
        .version = hone_importer_copy(importer, key->version),
        .key = hone_importer_copy(importer, key->key),
        .spec = hone_importer_copy(importer, key->spec),
    };
}

hone_store_decision hone_importer_copy_decision(hone_importer *importer, const hone_store_decision *decision)
{
    hone_store_decision copy = *decision;
    const char **const texts[] = {
        &copy.call,   &copy.kernel,   &copy.platform, &copy.config,
        &copy.source, &copy.revision, &copy.evidence, &copy.environment,
    };
    copy.key = hone_importer_copy_key(importer, &decision->key);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = hone_importer_copy(importer, *texts[i]);
    return copy;
}

void hone_importer_name_algorithm(hone_importer *importer, const char *operation, hone_store_key *out)
{
    const char *at = strstr(operation, "@v");
    hone_buffer name;
    hone_buffer_init(&name, importer->texts.arena.allocator);
    hone_text_lower(&name, operation, at != NULL ? (size_t)(at - operation) : strlen(operation));
    importer->texts.failed |= name.failed;
    out->algorithm = hone_texts_keep(&importer->texts, (hone_view){hone_buffer_string(&name), name.size});
    out->version = at != NULL ? at + 2 : "1";
    hone_buffer_deinit(&name);
}

// True: the loader took or refused it.
static bool load(hone_importer *importer, const hone_store_foreign *foreign, const char *what)
{
    const hone_codec *codec = &importer->codec;
    hone_error why = {0};
    if (codec->load == NULL) return false;
    hone_store_decision decision = {.key = {.device = foreign->device, .key = foreign->foreign_key}, .source = "store"};
    hone_importer_name_algorithm(importer, foreign->operation, &decision.key);
    hone_status status = codec->load(codec->ctx, foreign, &decision, &why);
    if (status == HONE_NOT_FOUND) return false;
    if (status != HONE_OK) {
        const char *reason = why.message[0] != '\0' ? why.message : "the loader refused it";
        hone_importer_refuse(importer, foreign->origin, what, hone_texts_keep(&importer->texts, hone_view_of(reason)));
        return true;
    }
    decision.verified = false;
    decision.source = "store";
    // The loader's texts die with its next call.
    const hone_store_decision kept = hone_importer_copy_decision(importer, &decision);
    hone_importer_take(importer, foreign->origin, &kept);
    return true;
}

void hone_importer_keep(hone_importer *importer, const hone_store_foreign *foreign, const char *reason)
{
    const char *what = hone_texts_format(&importer->texts, "%.80s %.80s", foreign->operation, foreign->foreign_key);
    if (load(importer, foreign, what)) return;
    hone_error why = {0};
    if (hone_store_check_foreign(foreign, &why) != HONE_OK) {
        hone_importer_refuse(
            importer, foreign->origin, what, hone_texts_keep(&importer->texts, hone_view_of(why.message)));
        return;
    }
    add(importer, &importer->foreigns, &importer->foreign_count, &importer->foreign_capacity, foreign, sizeof *foreign);
    add_entry(importer, HONE_IMPORT_FOREIGN, false, foreign->origin, what, reason);
}
