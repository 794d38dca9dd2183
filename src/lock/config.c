// Configs in a lock file: short enough to review, and as exact as the JSON that they stand for.
#include "lock/lock.h"

#include "base/error.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "lock.config";

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// A string that stands without quotes. Those that would read back as something else have quotes.
static bool is_word(const char *text, size_t size)
{
    static const char *const taken[] = {"true", "false", "null", "none"};
    if (size == 0 || !is_letter(text[0])) return false;
    for (size_t i = 0; i < size; i++)
        if (!is_letter(text[i]) && !(text[i] >= '0' && text[i] <= '9') && strchr(".+-", text[i]) == NULL) return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strlen(taken[i]) == size && memcmp(taken[i], text, size) == 0) return false;
    return true;
}

// A JSON string in which no space and no '#' ends a field.
static void put_quoted(hone_buffer *out, const char *text, size_t size)
{
    hone_buffer json;
    hone_buffer_init(&json, out->allocator);
    hone_json_string(&json, text, size);
    for (size_t i = 0; i < json.size; i++) {
        if (json.data[i] == ' ' || json.data[i] == '#')
            hone_buffer_format(out, "\\u%04x", (unsigned)json.data[i]);
        else
            hone_buffer_char(out, json.data[i]);
    }
    out->failed = out->failed || json.failed;
    hone_buffer_deinit(&json);
}

static void put_number(hone_buffer *out, const json_t *value)
{
    if (json_is_integer(value))
        hone_buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        hone_json_number(out, json_real_value(value));
    else
        hone_buffer_text(out, json_is_true(value) ? "true" : "false");
}

static void put_value(hone_buffer *out, const json_t *value, bool text)
{
    const char *string = json_string_value(value);
    size_t size = json_string_length(value);
    if (string == NULL)
        put_number(out, value);
    else if (text && is_word(string, size))
        hone_buffer_append(out, string, size);
    else if (text)
        put_quoted(out, string, size);
    else
        hone_json_string(out, string, size);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The names of a config that was checked, sorted.
static size_t sorted_names(const json_t *config, const char *names[HONE_MAX_PARAMETERS])
{
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)config, name, value) if (count < HONE_MAX_PARAMETERS) names[count++] =
        name;
    qsort(names, count, sizeof *names, compare_names);
    return count;
}

void hone_lock_config_text(const json_t *config, hone_buffer *out)
{
    const char *names[HONE_MAX_PARAMETERS];
    size_t count = sorted_names(config, names);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(out, ' ');
        hone_lock_escape(out, names[i], strlen(names[i]), "=");
        hone_buffer_char(out, '=');
        put_value(out, json_object_get(config, names[i]), true);
    }
}

void hone_lock_config_json(const json_t *config, hone_buffer *out)
{
    const char *names[HONE_MAX_PARAMETERS];
    size_t count = sorted_names(config, names);
    hone_buffer_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(out, ',');
        hone_json_string(out, names[i], strlen(names[i]));
        hone_buffer_char(out, ':');
        put_value(out, json_object_get(config, names[i]), false);
    }
    hone_buffer_char(out, '}');
}

hone_status hone_lock_config_check(const json_t *config, const char *place, hone_error *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(config)) return hone_fail(err, HONE_INVALID_ARGUMENT, place, "the config is not a JSON object");
    if (json_object_size(config) > HONE_MAX_PARAMETERS)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, place, "the config has %zu parameters, expected at most %d",
            json_object_size(config), (int)HONE_MAX_PARAMETERS);
    json_object_foreach((json_t *)(uintptr_t)config, name, value)
    {
        if (name[0] == '\0')
            return hone_fail(err, HONE_INVALID_ARGUMENT, place, "a parameter of the config has no name");
        if (!json_is_number(value) && !json_is_boolean(value) && !json_is_string(value))
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, place, "the config's %.60s is not a number, string or boolean", name);
    }
    return HONE_OK;
}

// NULL: no value, or no memory.
static json_t *read_value(const char *text, size_t size)
{
    int64_t integer;
    double real;
    json_t *value = NULL;
    if (hone_integer_parse(text, size, &integer)) return json_integer(integer);
    if (size > 0 && !is_letter(text[0]) && hone_number_parse(text, size, &real)) return json_real(real);
    if (size == 4 && memcmp(text, "true", 4) == 0) return json_true();
    if (size == 5 && memcmp(text, "false", 5) == 0) return json_false();
    if (is_word(text, size)) return json_stringn(text, size);
    if (size > 1 && text[0] == '"') (void)!hone_json_parse(text, size, &value, NULL);
    return value;
}

static hone_status add_value(json_t *config, const char *name, const char *text, size_t size, hone_error *err)
{
    int shown = size > 60 ? 60 : (int)size;
    if (json_object_get(config, name) != NULL)
        return hone_fail(err, HONE_CORRUPT, where, "the parameter '%.60s' is there twice", name);
    if (json_object_size(config) == HONE_MAX_PARAMETERS)
        return hone_fail(err, HONE_CORRUPT, where, "more than %d parameters", (int)HONE_MAX_PARAMETERS);
    json_t *value = read_value(text, size);
    if (value == NULL)
        return hone_fail(
            err, HONE_CORRUPT, where,
            "the value of '%.60s' is '%.*s', expected a number, true, false, a word, or a JSON string", name, shown,
            text);
    return json_object_set_new(config, name, value) == 0
               ? HONE_OK
               : hone_fail(err, HONE_CORRUPT, where, "'%.60s' is not the name of a parameter: it is not UTF-8", name);
}

hone_status hone_lock_config_read(json_t *config, hone_buffer *scratch, const char *token, size_t size, hone_error *err)
{
    const char *equals = memchr(token, '=', size);
    hone_buffer_clear(scratch);
    if (equals == NULL || equals == token || !hone_lock_unescape(scratch, token, (size_t)(equals - token)))
        return hone_fail(
            err, HONE_CORRUPT, where, "'%.*s', expected PARAMETER=VALUE", size > 60 ? 60 : (int)size, token);
    if (scratch->failed) return hone_fail_memory(err, where);
    return add_value(config, hone_buffer_string(scratch), equals + 1, size - (size_t)(equals + 1 - token), err);
}
