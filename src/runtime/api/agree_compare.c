// hone_agree_compare: the differences between the documents of ranks, and their reasons.
//
// For each call the ranks are compared with the choice that most ranks have; among equal counts, with that of the
// lowest rank. So if one rank differs, that rank is named.
#include "hone/agree.h"

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "agree.compare";

typedef struct rank {
    json_t *document; // NULL: the rank has none
    json_t *calls;    // from "ALGORITHM@vVERSION KEY" to its row
} rank;

typedef struct comparison {
    rank *ranks;
    size_t count;
    json_t *names; // of all calls of all ranks, in the order of the ranks
    hone_buffer words;
    bool (*visit)(void *ctx, const hone_disagreement *found);
    void *ctx;
    bool on;
} comparison;

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

// Reading --------------------------------------------------------------------------------------------------------------

static bool is_choice(const json_t *choice)
{
    return json_is_null(choice) ||
           (json_is_string(json_object_get(choice, "platform")) && json_is_string(json_object_get(choice, "kernel")) &&
            json_is_string(json_object_get(choice, "revision")) && json_is_object(json_object_get(choice, "config")));
}

static bool is_row(const json_t *row)
{
    return json_is_string(json_object_get(row, "algorithm")) && json_is_string(json_object_get(row, "version")) &&
           json_is_string(json_object_get(row, "key")) && json_is_string(json_object_get(row, "call")) &&
           is_choice(json_object_get(row, "choice"));
}

static hone_status read_rows(comparison *c, rank *r, size_t number, hone_error *err)
{
    const json_t *rows = json_object_get(r->document, "rows");
    size_t i;
    json_t *row;
    if (!json_is_array(rows)) return hone_fail(err, HONE_CORRUPT, where, "document %zu has no rows", number);
    r->calls = json_object();
    json_array_foreach(rows, i, row)
    {
        hone_buffer name;
        if (!is_row(row))
            return hone_fail(
                err, HONE_CORRUPT, where, "row %zu of document %zu is not a document of hone_agree", i, number);
        hone_buffer_init(&name, hone_allocator_system());
        hone_buffer_format(&name, "%s@v%s %s", text_of(row, "algorithm"), text_of(row, "version"), text_of(row, "key"));
        const bool ok = !name.failed && json_object_set_nocheck(r->calls, hone_buffer_string(&name), row) == 0 &&
                        json_object_set_nocheck(c->names, hone_buffer_string(&name), row) == 0;
        hone_buffer_deinit(&name);
        if (!ok) return hone_fail_memory(err, where);
    }
    return HONE_OK;
}

static hone_status read_document(comparison *c, const char *text, size_t number, hone_error *err)
{
    rank *r = &c->ranks[number];
    hone_error why;
    if (text == NULL) return HONE_OK;
    const hone_status status = hone_json_parse(text, strlen(text), &r->document, &why);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status != HONE_OK)
        return hone_fail(err, HONE_CORRUPT, where, "document %zu is not JSON: %s", number, why.message);
    const json_t *version = json_object_get(r->document, "hone_agree");
    if (!json_is_integer(version))
        return hone_fail(err, HONE_CORRUPT, where, "document %zu is not a document of hone_agree", number);
    if (json_integer_value(version) != 1)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "document %zu is of version %" JSON_INTEGER_FORMAT
            ", and this hone (%s) reads 1: run one hone on all ranks",
            number, json_integer_value(version), hone_version());
    return read_rows(c, r, number, err);
}

// Choices --------------------------------------------------------------------------------------------------------------

static const json_t *row_of(const comparison *c, size_t number, const char *name)
{
    return json_object_get(c->ranks[number].calls, name);
}

static bool tunes(const json_t *row)
{
    return json_is_true(json_object_get(row, "tunes"));
}

// The first field in which two rows differ, NULL if none does.
static const char *difference(const json_t *a, const json_t *b)
{
    static const char *const fields[] = {"platform", "backend", "kernel", "config", "revision"};
    if (a == NULL || b == NULL) return a == b ? NULL : "call";
    const json_t *of_a = json_object_get(a, "choice"), *of_b = json_object_get(b, "choice");
    if (json_is_null(of_a) || json_is_null(of_b))
        return json_is_null(of_a) && json_is_null(of_b) && tunes(a) == tunes(b) ? NULL : "answer";
    // Two kernels with one name on two platforms differ in the platform, so the platform is named first.
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!json_equal(json_object_get(of_a, fields[i]), json_object_get(of_b, fields[i])))
            return strcmp(fields[i], "backend") == 0 ? "platform" : fields[i];
    return NULL;
}

// The lowest of the ranks that have the most frequent choice.
static size_t measure_of(const comparison *c, const char *name)
{
    size_t best = SIZE_MAX, most = 0;
    for (size_t i = 0; i < c->count; i++) {
        size_t like = 0;
        if (c->ranks[i].document == NULL) continue;
        for (size_t j = 0; j < c->count; j++)
            like += c->ranks[j].document != NULL && difference(row_of(c, i, name), row_of(c, j, name)) == NULL;
        if (like > most) {
            most = like;
            best = i;
        }
    }
    return best;
}

// Words ----------------------------------------------------------------------------------------------------------------

static void add_choice(hone_buffer *out, const json_t *row)
{
    const json_t *choice = json_object_get(row, "choice");
    if (row == NULL) {
        hone_buffer_text(out, "does not have the call");
        return;
    }
    if (json_is_null(choice)) {
        hone_buffer_format(out, "has no answer (%s)", text_of(row, "why"));
        return;
    }
    char *config = json_dumps(json_object_get(choice, "config"), JSON_COMPACT);
    hone_buffer_format(
        out, "chooses %s/%s %s by %s", text_of(choice, "platform"), text_of(choice, "kernel"),
        config != NULL ? config : "", text_of(row, "link"));
    free(config);
}

// Names a difference between two ranks that may be the reason.
static void add_reason(hone_buffer *out, const char *what, const json_t *a, const json_t *b, const char *field)
{
    const json_t *of_a = json_object_get(a, field), *of_b = json_object_get(b, field);
    if (of_a == of_b || json_equal(of_a, of_b)) return;
    hone_buffer_format(
        out, "; %s: %s there, %s here", what, json_is_string(of_b) ? json_string_value(of_b) : "none",
        json_is_string(of_a) ? json_string_value(of_a) : "none");
}

static void add_words(const comparison *c, size_t number, size_t other, const char *name, const char *field)
{
    hone_buffer *out = (hone_buffer *)(uintptr_t)&c->words;
    const json_t *here = row_of(c, number, name), *there = row_of(c, other, name);
    const json_t *document = c->ranks[number].document, *measure = c->ranks[other].document;
    hone_buffer_clear(out);
    hone_buffer_format(out, "rank %zu ", number);
    add_choice(out, here);
    hone_buffer_format(out, ", rank %zu ", other);
    add_choice(out, there);
    if (strcmp(field, "revision") == 0)
        hone_buffer_format(
            out, "; the kernel's revision is %s there, %s here: run one build of it",
            text_of(json_object_get(there, "choice"), "revision"),
            text_of(json_object_get(here, "choice"), "revision"));
    if (here != NULL && there != NULL) add_reason(out, "device", here, there, "device");
    add_reason(out, "store", document, measure, "store");
    add_reason(out, "system store", document, measure, "system_store");
    add_reason(out, "lock file", document, measure, "lock");
    add_reason(out, "policy", document, measure, "policy");
    add_reason(out, "hone", document, measure, "hone");
}

static void tell(comparison *c, size_t number, size_t other, const char *name, const char *field)
{
    const json_t *row = json_object_get(c->names, name);
    const hone_disagreement found = {
        .rank = number,
        .other = other,
        .call = text_of(row, "call"),
        .algorithm = text_of(row, "algorithm"),
        .version = text_of(row, "version"),
        .key = text_of(row, "key"),
        .field = field,
        .words = hone_buffer_string(&c->words),
    };
    c->on = c->on && c->visit(c->ctx, &found);
}

static void compare_call(comparison *c, const char *name)
{
    const size_t measure = measure_of(c, name);
    bool same = true;
    for (size_t i = 0; i < c->count && c->on; i++) {
        const char *field = NULL;
        if (c->ranks[i].document != NULL) field = difference(row_of(c, i, name), row_of(c, measure, name));
        if (field == NULL) continue;
        same = false;
        add_words(c, i, measure, name, field);
        tell(c, i, measure, name, field);
    }
    if (!same || !tunes(row_of(c, measure, name))) return;
    hone_buffer_clear(&c->words);
    hone_buffer_text(&c->words, "nothing is stored for it, and the first run would tune, on each rank for itself");
    tell(c, measure, measure, name, "unsettled");
}

static hone_status compare(comparison *c, const char *const *documents, hone_error *err)
{
    hone_status status = c->ranks == NULL || c->names == NULL ? hone_fail_memory(err, where) : HONE_OK;
    for (size_t i = 0; i < c->count && status == HONE_OK; i++)
        status = read_document(c, documents[i], i, err);
    for (void *at = json_object_iter(c->names); at != NULL && c->on && status == HONE_OK;
         at = json_object_iter_next(c->names, at)) {
        compare_call(c, json_object_iter_key(at));
        if (c->words.failed) status = hone_fail_memory(err, where);
    }
    return status;
}

hone_status hone_agree_compare(
    const char *const *documents,
    size_t count,
    bool (*visit)(void *ctx, const hone_disagreement *found),
    void *ctx,
    hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    if (documents == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the documents and visit must not be NULL");
    comparison c = {
        .ranks = hone_alloc_array(&allocator, count + 1, sizeof c.ranks[0]),
        .count = count,
        .names = json_object(),
        .visit = visit,
        .ctx = ctx,
        .on = true};
    hone_buffer_init(&c.words, allocator);
    const hone_status status = compare(&c, documents, err);
    for (size_t i = 0; c.ranks != NULL && i < count; i++) {
        json_decref(c.ranks[i].document);
        json_decref(c.ranks[i].calls);
    }
    hone_free(&allocator, c.ranks);
    json_decref(c.names);
    hone_buffer_deinit(&c.words);
    return status;
}
