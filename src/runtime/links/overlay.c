// The overlays of the current context.
#include "runtime/links/links.h"

#include "base/error.h"

static const char where[] = "decide";

static bool copy_overlay_row(const hone_request *request, const char *key, const char *spec, hone_decision *out)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    const hone_decision_row *row = hone_context_find(
        request->context, request->device->fingerprint, algorithm->name, algorithm->version, key, spec);
    if (row != NULL) *out = row->decision;
    return row != NULL;
}

hone_status hone_request_from_overlay(const hone_request *request, hone_decision *out, hone_error *why)
{
    if (request->context == NULL) return hone_fail(why, HONE_NOT_FOUND, where, "no context is entered");
    return hone_request_look_up(request, copy_overlay_row, out, why);
}
