// What hone has to answer to a scenario. Written from the rules, in words and without the registry's code, so that the
// two can disagree.
#include "hone/describe.h"
#include "scenario.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *a, const char *b)
{
    return a != NULL && strcmp(a, b) == 0;
}

// The kernel of highest priority, then the earliest, of one platform (NULL: any) for one backend (NULL: hardware here).
static const spec *best(const scenario *from, const char *platform, const char *backend)
{
    const spec *found = NULL;
    for (size_t i = 0; i < from->count; i++) {
        const spec *one = &from->specs[i];
        if (!one->valid || strcmp(one->lower, from->lower) != 0) continue;
        if (platform != NULL && strcmp(one->platform, platform) != 0) continue;
        if (!is("any", one->backend) && !is(backend != NULL ? backend : from->default_backend, one->backend)) continue;
        if (found == NULL || one->priority > found->priority) found = one;
    }
    return found;
}

static const spec *best_or_fallback(const scenario *from, const char *platform)
{
    const spec *found = best(from, platform, from->backend);
    if (found == NULL && is(from->backend, "any")) return best(from, platform, from->default_backend);
    if (found == NULL && is(platform, "xla")) return best(from, "xla", "any");
    return found;
}

// The platforms of the device, most specialised first, as ejkernel's detect_platform has them.
static const spec *best_automatic(const scenario *from)
{
    static const struct {
        const char *hardware, *platform;
    } order[] = {
        {"tpu", "pallas"}, {"gpu", "cute"},   {"gpu", "cuda"},   {"gpu", "triton"},
        {"gpu", "opencl"}, {"cpu", "native"}, {"cpu", "opencl"},
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const spec *found =
            is(from->default_backend, order[i].hardware) ? best_or_fallback(from, order[i].platform) : NULL;
        if (found != NULL) return found;
    }
    return best_or_fallback(from, "xla");
}

static bool is_registered(const scenario *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->specs[i].valid && strcmp(from->specs[i].lower, from->lower) == 0) return true;
    return false;
}

static answer by_the_rules(const scenario *from)
{
    hone_platform platform;
    hone_backend backend;
    if (!is_registered(from)) return (answer){HONE_NOT_FOUND, NULL};
    if (from->platform != NULL && hone_platform_parse(from->platform, &platform, NULL) != HONE_OK)
        return (answer){HONE_INVALID_ARGUMENT, NULL};
    if (from->backend != NULL && hone_backend_parse(from->backend, &backend, NULL) != HONE_OK)
        return (answer){HONE_INVALID_ARGUMENT, NULL};
    const spec *found = is(from->platform, "auto") ? best_automatic(from) : best_or_fallback(from, from->platform);
    return found == NULL ? (answer){HONE_NOT_FOUND, NULL} : (answer){HONE_OK, found->id};
}

static const char *find_id(const scenario *from, const json_t *result)
{
    char id[32];
    if (json_is_integer(result))
        snprintf(id, sizeof id, "%lld", (long long)json_integer_value(result));
    else
        snprintf(id, sizeof id, "%s", json_is_string(result) ? json_string_value(result) : "");
    for (size_t i = 0; i < from->count; i++)
        if (strcmp(from->specs[i].id, id) == 0) return from->specs[i].id;
    return "an id that stands nowhere";
}

// The original's errors: ValueError for a bad name; everything else means that nothing was found.
static answer by_the_original(const scenario *from)
{
    const json_t *result = json_object_get(from->json, "result");
    if (!json_is_object(result)) return (answer){HONE_OK, find_id(from, result)};
    const char *message = json_string_value(json_object_get(result, "message"));
    bool bad_name = message != NULL && strstr(message, "is not a valid") != NULL;
    return (answer){bad_name ? HONE_INVALID_ARGUMENT : HONE_NOT_FOUND, NULL};
}

answer scenario_expected(const scenario *from)
{
    return from->defect ? by_the_rules(from) : by_the_original(from);
}

bool scenario_refuses_duplicates(const scenario *from)
{
    return from->defect && (strstr(from->defect_reason, "duplicate") != NULL || strstr(from->tag, "duplicate") != NULL);
}
