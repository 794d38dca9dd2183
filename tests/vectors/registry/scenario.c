// Reading one line.
#include "scenario.h"

#include "base/text.h"
#include "hone/describe.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static bool lower(const char *text, char out[HONE_NAME_SIZE])
{
    hone_buffer buffer;
    hone_buffer_init(&buffer, hone_allocator_system());
    hone_text_lower(&buffer, text, strlen(text));
    bool fits = !buffer.failed && buffer.size < HONE_NAME_SIZE;
    if (fits) memcpy(out, hone_buffer_string(&buffer), buffer.size + 1);
    hone_buffer_deinit(&buffer);
    return fits;
}

static bool read_spec(const json_t *json, spec *out)
{
    hone_platform platform;
    hone_backend backend;
    const json_t *id = json_object_get(json, "id");
    out->algorithm = text_of(json, "algorithm");
    out->platform = text_of(json, "platform");
    out->backend = text_of(json, "backend");
    out->priority = json_integer_value(json_object_get(json, "priority"));
    if (out->algorithm == NULL || out->platform == NULL || out->backend == NULL || !lower(out->algorithm, out->lower))
        return false;
    if (json_is_integer(id))
        snprintf(out->id, sizeof out->id, "%lld", (long long)json_integer_value(id));
    else if (json_is_string(id))
        snprintf(out->id, sizeof out->id, "%s", json_string_value(id));
    else
        return false;
    out->valid = hone_platform_parse(out->platform, &platform, NULL) == HONE_OK && platform != HONE_PLATFORM_AUTO &&
                 hone_backend_parse(out->backend, &backend, NULL) == HONE_OK;
    return true;
}

bool scenario_read(const json_t *json, scenario *out, const char **out_why)
{
    memset(out, 0, sizeof *out);
    const json_t *specs = json_object_get(json, "specs");
    const json_t *query = json_object_get(json, "query");
    out->json = json;
    out->defect = json_is_true(json_object_get(json, "defect"));
    out->tag = text_of(json, "tag") != NULL ? text_of(json, "tag") : "";
    out->defect_reason = text_of(json, "defect_reason") != NULL ? text_of(json, "defect_reason") : "";
    out->default_backend = text_of(json, "default_backend");
    out->algorithm = text_of(query, "algorithm");
    out->platform = text_of(query, "platform");
    out->backend = text_of(query, "backend");
    out->count = json_array_size(specs);
    *out_why = "specs, query, algorithm or default_backend is missing";
    if (!json_is_array(specs) || out->algorithm == NULL || out->default_backend == NULL) return false;
    *out_why = "more specs than this program takes, or a name that is too long";
    if (out->count > MOST_SPECS || !lower(out->algorithm, out->lower)) return false;
    *out_why = "a spec without algorithm, platform, backend or id";
    for (size_t i = 0; i < out->count; i++)
        if (!read_spec(json_array_get(specs, i), &out->specs[i])) return false;
    return true;
}
