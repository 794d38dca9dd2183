// The space of a kernel that lists its configs and writes no space: each parameter has the values that occur.
#include "pack/reading.h"

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

typedef struct parameter {
    const char *name;
    const json_t *values[HONE_PACK_VARIANTS]; // each once
    size_t count;
} parameter;

static hone_status check_value(const hone_pack_reading *r, const char *name, const json_t *value)
{
    if (json_is_integer(value) || json_is_real(value) || json_is_boolean(value) || json_is_string(value))
        return HONE_OK;
    return hone_pack_fail(
        r, HONE_INVALID_ARGUMENT, "config", "%.60s is %s, expected a number, a text, true or false", name,
        hone_pack_kind_name(value));
}

// Values of every variant's parameter of that name.
static hone_status collect(hone_pack_reading *r, const json_t *variants, parameter *out)
{
    size_t i;
    const json_t *variant;
    out->count = 0;
    json_array_foreach(variants, i, variant)
    {
        hone_pack_enter(r, "variants", i);
        const json_t *config = json_object_get(variant, "config");
        const json_t *value = json_is_object(config) ? json_object_get(config, out->name) : NULL;
        if (value == NULL)
            return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "config", "has no %.60s, which another has", out->name);
        hone_status status = check_value(r, out->name, value);
        if (status != HONE_OK) return status;
        size_t at = 0;
        while (at < out->count && !json_equal(out->values[at], value))
            at++;
        if (at == out->count) out->values[out->count++] = value;
    }
    hone_pack_leave(r);
    return HONE_OK;
}

static void put_value(const json_t *value, hone_buffer *out)
{
    char number[HONE_NUMBER_SIZE];
    if (json_is_integer(value))
        hone_buffer_format(out, "%" PRId64, (int64_t)json_integer_value(value));
    else if (json_is_real(value))
        hone_buffer_text(out, hone_number_print(json_real_value(value), number));
    else if (json_is_boolean(value))
        hone_buffer_text(out, json_is_true(value) ? "true" : "false");
    else
        hone_json_string(out, json_string_value(value), json_string_length(value));
}

static hone_status put_parameters(hone_pack_reading *r, const json_t *variants, parameter *one, hone_buffer *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *name;
    json_t *unused;
    json_t *first = json_object_get(json_array_get(variants, 0), "config");
    if (!json_is_object(first)) {
        hone_pack_enter(r, "variants", 0);
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "config", "is missing, expected an object");
    }
    json_object_foreach(first, name, unused)
    {
        if (name[0] == '\0' || strspn(name, letters) != strlen(name) || (name[0] >= '0' && name[0] <= '9'))
            return hone_pack_fail(
                r, HONE_INVALID_ARGUMENT, "config", "'%.60s' is no name for a parameter: letters, digits and _", name);
        one->name = name;
        hone_status status = collect(r, variants, one);
        if (status != HONE_OK) return status;
        hone_buffer_text(out, name);
        for (size_t i = 0; i < one->count; i++) {
            hone_buffer_text(out, i == 0 ? ": " : " | ");
            put_value(one->values[i], out);
        }
        hone_buffer_char(out, '\n');
    }
    return HONE_OK;
}

hone_status hone_pack_space_of(const hone_pack_reading *r, const json_t *variants, const char **out)
{
    hone_pack_reading own = *r;
    hone_buffer text;
    parameter *one = hone_alloc(&r->pack->allocator, sizeof *one);
    if (one == NULL) return hone_pack_fail_memory(r);
    hone_buffer_init(&text, r->pack->allocator);
    hone_status status = put_parameters(&own, variants, one, &text);
    if (status == HONE_OK && text.failed) status = hone_pack_fail_memory(r);
    if (status == HONE_OK) *out = hone_arena_text(&r->pack->arena, hone_buffer_string(&text), text.size);
    if (status == HONE_OK && *out == NULL) status = hone_pack_fail_memory(r);
    hone_buffer_deinit(&text);
    hone_free(&r->pack->allocator, one);
    return status;
}
