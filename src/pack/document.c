// Fields of pack.json, each checked and each refused by its name.
#include "pack/reading.h"

#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "pack.read";

hone_status hone_pack_fail(const hone_pack_reading *r, hone_status status, const char *field, const char *format, ...)
{
    char words[sizeof r->err->message / 2];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    const bool in_kernel = r->kernel != NULL;
    size_t within = strlen(r->within);
    if (within > 0 && field[0] == '\0') within--; // its dot
    return hone_fail(
        r->err, status, where, "pack %.80s: %s%.80s%s%.*s%.80s%s%s", r->pack->name, in_kernel ? "kernel " : "",
        in_kernel ? r->kernel : "", in_kernel ? ": " : "", (int)within, r->within, field,
        within > 0 || field[0] != '\0' ? ": " : "", words);
}

hone_status hone_pack_fail_memory(const hone_pack_reading *r)
{
    return hone_fail_memory(r->err, where);
}

const char *hone_pack_kind_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

void hone_pack_enter(hone_pack_reading *r, const char *array, size_t index)
{
    snprintf(r->within, sizeof r->within, "%s[%zu].", array, index);
}

void hone_pack_leave(hone_pack_reading *r)
{
    r->within[0] = '\0';
}

static bool is_among(const char *names, const char *name)
{
    const size_t size = strlen(name);
    for (const char *at = names; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, name, size) == 0) return true;
        at += word + (at[word] == ' ');
    }
    return false;
}

hone_status hone_pack_check_fields(const hone_pack_reading *r, const json_t *object, const char *names)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if (!is_among(names, name))
            return hone_pack_fail(
                r, HONE_INVALID_ARGUMENT, "", "there is no field '%.60s'; the fields are: %s", name, names);
    }
    return HONE_OK;
}

static const json_t *given(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    return value == NULL || json_is_null(value) ? NULL : value;
}

static hone_status fail_kind(const hone_pack_reading *r, const char *field, const json_t *value, const char *expected)
{
    return hone_pack_fail(r, HONE_INVALID_ARGUMENT, field, "is %s, expected %s", hone_pack_kind_name(value), expected);
}

static hone_status check_text(
    const hone_pack_reading *r, const char *field, const char *text, size_t size, size_t limit)
{
    if (size > limit)
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, field, "has %zu bytes, expected at most %zu", size, limit);
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte == 0x7f || (byte < ' ' && byte != '\n' && byte != '\t'))
            return hone_pack_fail(
                r, HONE_INVALID_ARGUMENT, field, "has the control character 0x%02x at byte %zu", byte, i);
    }
    return HONE_OK;
}

hone_status hone_pack_get_text(
    const hone_pack_reading *r, const json_t *object, const char *field, size_t limit, const char **out)
{
    const json_t *value = given(object, field);
    if (value == NULL) return HONE_OK;
    if (!json_is_string(value)) return fail_kind(r, field, value, "a text");
    const char *text = json_string_value(value);
    const size_t size = json_string_length(value);
    hone_status status = check_text(r, field, text, size, limit);
    if (status != HONE_OK) return status;
    const char *copy = hone_arena_text(&r->pack->arena, text, size);
    if (copy == NULL) return hone_pack_fail_memory(r);
    *out = copy;
    return HONE_OK;
}

enum { JOINED_LIMIT = 64 << 10, JOINED_ITEMS = 1024 };

static hone_status append_item(const hone_pack_reading *r, const char *field, const json_t *item, hone_buffer *out)
{
    if (json_is_string(item)) {
        hone_buffer_append(out, json_string_value(item), json_string_length(item));
        return HONE_OK;
    }
    if (!json_is_integer(item)) return fail_kind(r, field, item, "a text, a whole number, or an array of these");
    hone_buffer_format(out, "%" PRId64, (int64_t)json_integer_value(item));
    return HONE_OK;
}

static hone_status join(
    const hone_pack_reading *r, const char *field, const json_t *value, const char *between, hone_buffer *out)
{
    if (!json_is_array(value)) return append_item(r, field, value, out);
    hone_status status = HONE_OK;
    const size_t count = json_array_size(value);
    if (count == 0 || count > JOINED_ITEMS)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, field, "is an array of %zu, expected 1 to %d", count, JOINED_ITEMS);
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        if (i > 0) hone_buffer_text(out, between);
        status = append_item(r, field, json_array_get(value, i), out);
    }
    return status;
}

hone_status hone_pack_get_joined(
    const hone_pack_reading *r, const json_t *object, const char *field, const char *between, const char **out)
{
    const json_t *value = given(object, field);
    if (value == NULL) return HONE_OK;
    hone_buffer text;
    hone_buffer_init(&text, r->pack->allocator);
    hone_status status = join(r, field, value, between, &text);
    if (status == HONE_OK && text.failed) status = hone_pack_fail_memory(r);
    if (status == HONE_OK) status = check_text(r, field, hone_buffer_string(&text), text.size, JOINED_LIMIT);
    if (status == HONE_OK) {
        const char *copy = hone_arena_text(&r->pack->arena, hone_buffer_string(&text), text.size);
        if (copy != NULL)
            *out = copy;
        else
            status = hone_pack_fail_memory(r);
    }
    hone_buffer_deinit(&text);
    return status;
}

hone_status hone_pack_get_integer(
    const hone_pack_reading *r, const json_t *object, const char *field, int64_t least, int64_t most, int64_t *out)
{
    const json_t *value = given(object, field);
    if (value == NULL) return HONE_OK;
    if (!json_is_integer(value)) return fail_kind(r, field, value, "a whole number");
    const int64_t number = json_integer_value(value);
    if (number < least || number > most)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, field, "is %" PRId64 ", expected %" PRId64 " to %" PRId64, number, least, most);
    *out = number;
    return HONE_OK;
}

hone_status hone_pack_get_array(
    const hone_pack_reading *r, const json_t *object, const char *field, size_t most, const json_t **out)
{
    const json_t *value = given(object, field);
    if (value == NULL) return HONE_OK;
    if (!json_is_array(value)) return fail_kind(r, field, value, "an array");
    if (json_array_size(value) > most)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, field, "has %zu items, expected at most %zu", json_array_size(value), most);
    *out = value;
    return HONE_OK;
}

hone_status hone_pack_get_object(
    const hone_pack_reading *r, const json_t *object, const char *field, const json_t **out)
{
    const json_t *value = given(object, field);
    if (value == NULL) return HONE_OK;
    if (!json_is_object(value)) return fail_kind(r, field, value, "an object");
    *out = value;
    return HONE_OK;
}

const char *hone_pack_dump(hone_kernel_pack *pack, const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    const char *copy = text != NULL ? hone_arena_text(&pack->arena, text, strlen(text)) : NULL;
    free(text);
    return copy;
}
