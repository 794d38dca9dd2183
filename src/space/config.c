// Configs as text and as JSON.
#include "space/space.h"

#include "base/error.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// What fits of a text of any length.
typedef struct sink {
    char *out;
    size_t size, needed;
} sink;

static void put(sink *to, const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length && to->needed + i + 1 < to->size; i++)
        to->out[to->needed + i] = text[i];
    to->needed += length;
}

static size_t finish(sink *to)
{
    if (to->size > 0) to->out[to->needed < to->size ? to->needed : to->size - 1] = '\0';
    return to->needed;
}

static void put_integer(sink *to, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    put(to, digits);
}

// A config that is not of this space keeps its numbers, so that a message can show it.
static void put_value(sink *to, const hone_space_parameter *parameter, int64_t number, bool json)
{
    bool known = !parameter->integers && number >= 0 && (uint64_t)number < parameter->count;
    if (!known)
        put_integer(to, number);
    else
        put(to, json ? parameter->values[number].json : parameter->values[number].word);
}

size_t hone_space_config_text(
    const hone_space *space, const hone_config *config, uint32_t which, char *out, size_t size)
{
    sink to = {out, size, 0};
    const char *between = "";
    for (size_t i = 0; i < space->parameter_count; i++) {
        if ((which >> i & 1) == 0) continue;
        put(&to, between);
        put(&to, space->parameters[i].name);
        put(&to, "=");
        put_value(&to, &space->parameters[i], config->values[i], false);
        between = " ";
    }
    return finish(&to);
}

size_t hone_config_text(const hone_space *space, const hone_config *config, char *out, size_t size)
{
    if (out == NULL) size = 0;
    if (size > 0) out[0] = '\0';
    if (space == NULL || config == NULL) return 0;
    uint32_t all = config->count < HONE_MAX_PARAMETERS ? (1u << config->count) - 1 : UINT32_MAX;
    return hone_space_config_text(space, config, all, out, size);
}

size_t hone_config_json(const hone_space *space, const hone_config *config, char *out, size_t size)
{
    sink to = {out, out != NULL ? size : 0, 0};
    put(&to, "{");
    for (size_t i = 0; space != NULL && config != NULL && i < config->count && i < space->parameter_count; i++) {
        put(&to, i == 0 ? "" : ",");
        put(&to, space->parameters[i].json_name);
        put(&to, ":");
        put_value(&to, &space->parameters[i], config->values[i], true);
    }
    put(&to, "}");
    return finish(&to);
}

// A config while it is read: which parameters it has already.
typedef struct reader {
    const hone_space *space;
    hone_config config;
    bool seen[HONE_MAX_PARAMETERS];
    const char *where;
    hone_error *err;
} reader;

static void list_names(const hone_space *space, char *out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "none");
    for (size_t i = 0; i < space->parameter_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", space->parameters[i].name);
}

static hone_status unknown_parameter(const reader *r, hone_view name)
{
    char names[400];
    list_names(r->space, names, sizeof names);
    int size = name.size > HONE_NAME_SIZE ? HONE_NAME_SIZE : (int)name.size;
    return hone_fail(
        r->err, HONE_INVALID_ARGUMENT, r->where, "no parameter '%.*s' in the space; its parameters are: %s", size,
        name.data, names);
}

static hone_status set(reader *r, hone_view name, const hone_scalar *value)
{
    int index = hone_space_find_parameter(r->space, name);
    if (index < 0) return unknown_parameter(r, name);
    const hone_space_parameter *parameter = &r->space->parameters[index];
    if (r->seen[index])
        return hone_fail(r->err, HONE_INVALID_ARGUMENT, r->where, "parameter '%s' is given twice", parameter->name);
    int64_t position = value == NULL ? -1 : hone_space_find_value(parameter, value);
    if (position < 0) {
        char given[80] = "what was given", values[400];
        if (value != NULL) hone_space_describe(value, given, sizeof given);
        hone_space_list_values(parameter, values, sizeof values);
        return hone_fail(
            r->err, HONE_INVALID_ARGUMENT, r->where, "parameter '%s': %s is not one of its values (%s)",
            parameter->name, given, values);
    }
    r->seen[index] = true;
    r->config.values[index] = hone_space_number(parameter, (size_t)position);
    return HONE_OK;
}

static hone_status complete(reader *r, hone_config *out)
{
    for (size_t i = 0; i < r->space->parameter_count; i++) {
        if (r->seen[i]) continue;
        char values[400];
        hone_space_list_values(&r->space->parameters[i], values, sizeof values);
        return hone_fail(
            r->err, HONE_INVALID_ARGUMENT, r->where, "parameter '%s' is missing; its values are: %s",
            r->space->parameters[i].name, values);
    }
    r->config.count = (uint32_t)r->space->parameter_count;
    *out = r->config;
    return HONE_OK;
}

static hone_status read_assignment(reader *r, hone_lexer *lexer)
{
    hone_scalar value;
    hone_view name = lexer->token.text;
    if (lexer->token.kind != HONE_TOKEN_NAME) return hone_lexer_fail(lexer, r->err, r->where, "a parameter's name");
    hone_lexer_next(lexer);
    if (!hone_lexer_accept(lexer, "=")) return hone_lexer_fail(lexer, r->err, r->where, "'=' and a value");
    if (!hone_lexer_literal(lexer, &value)) return hone_lexer_fail(lexer, r->err, r->where, "a value");
    return set(r, name, &value);
}

hone_status hone_config_from_text(const hone_space *space, const char *text, hone_config *out_config, hone_error *err)
{
    if (space == NULL || text == NULL || out_config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "config.from_text", "the space, the text or out_config is NULL");
    reader r = {.space = space, .where = "config.from_text", .err = err};
    hone_arena arena = {.allocator = space->allocator};
    hone_lexer lexer;
    hone_status status = HONE_OK;
    hone_lexer_init(&lexer, hone_view_of(text), &arena, NULL);
    while (status == HONE_OK && lexer.token.kind != HONE_TOKEN_END)
        status = read_assignment(&r, &lexer);
    if (status == HONE_OK) status = complete(&r, out_config);
    hone_arena_destroy(&arena);
    return status;
}

static const hone_scalar *scalar_of(const json_t *json, hone_scalar *out)
{
    if (json_is_integer(json))
        *out = hone_scalar_int(json_integer_value(json));
    else if (json_is_real(json))
        *out = hone_scalar_float(json_real_value(json));
    else if (json_is_boolean(json))
        *out = hone_scalar_bool(json_is_true(json));
    else if (json_is_string(json))
        *out = hone_scalar_text((hone_view){json_string_value(json), json_string_length(json)});
    else
        return NULL;
    return out;
}

static hone_status read_object(reader *r, json_t *document)
{
    const char *name;
    json_t *value;
    hone_scalar scalar;
    if (!json_is_object(document))
        return hone_fail(r->err, HONE_INVALID_ARGUMENT, r->where, "expected an object with a value for each parameter");
    json_object_foreach(document, name, value)
    {
        hone_status status = set(r, hone_view_of(name), scalar_of(value, &scalar));
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

hone_status hone_config_from_json(
    const hone_space *space, const char *json, size_t size, hone_config *out_config, hone_error *err)
{
    reader r = {.space = space, .where = "config.from_json", .err = err};
    json_t *document;
    hone_status status = hone_json_parse(json, size, &document, err);
    // A wrong document is a wrong argument here, not damaged storage.
    if (status == HONE_CORRUPT) status = HONE_INVALID_ARGUMENT;
    if (err != NULL && status != HONE_OK) err->status = status;
    if (status != HONE_OK) return status;
    status = read_object(&r, document);
    if (status == HONE_OK) status = complete(&r, out_config);
    json_decref(document);
    return status;
}

bool hone_config_equal(const hone_config *a, const hone_config *b)
{
    return a->count == b->count && memcmp(a->values, b->values, a->count * sizeof a->values[0]) == 0;
}
