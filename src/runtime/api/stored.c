// The stores of a runtime, the default URL of a store, and stored decisions as the chain reads them.
#include "hone/stored.h"
#include "base/error.h"
#include "base/structs.h"
#include "runtime/api/api.h"
#include "runtime/links/links.h"
#include "store/ops.h"

#include <stdio.h>

static const char where[] = "store.of";

static hone_status find_known(const char *url, hone_store_place *out, hone_error *err)
{
    *out = (hone_store_place){.is_missing = false};
    if (url == NULL) {
        hone_default_store_url(out->url, sizeof out->url);
        if (out->url[0] == '\0')
            return hone_fail(err, HONE_NOT_FOUND, "store.find", "neither XDG_CACHE_HOME nor HOME is a path");
        url = out->url;
    }
    hone_status status = hone_store_check_url(url, err);
    if (status != HONE_OK) return status;
    if (url != out->url) snprintf(out->url, sizeof out->url, "%s", url);
    if (!hone_store_file(url, out->path, sizeof out->path)) out->path[0] = '\0';
    out->is_missing = hone_store_is_missing(url);
    return HONE_OK;
}

hone_status hone_store_get_place_sized(const char *url, hone_store_place *out, size_t size, hone_error *err)
{
    hone_store_place known;
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "store.find", "out is NULL");
    const hone_status status = find_known(url, &known, err);
    if (status == HONE_OK) hone_struct_give(out, size, &known, sizeof known);
    return status;
}

hone_status hone_store_of(hone_runtime *rt, hone_store_role role, hone_store **out, hone_error *err)
{
    if (out != NULL) *out = NULL;
    if (rt == NULL || out == NULL || (role != HONE_STORE_OF_USER && role != HONE_STORE_OF_SYSTEM))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the runtime and out must not be NULL, and the role is HONE_STORE_OF_USER or _SYSTEM");
    const bool is_user = role == HONE_STORE_OF_USER;
    const hone_lazy_store *lazy = is_user ? &rt->store : &rt->system_store;
    *out = is_user ? hone_runtime_store(rt) : hone_runtime_system_store(rt);
    if (*out != NULL) return HONE_OK;
    if (lazy->url != NULL) return hone_fail(err, lazy->error.status, lazy->error.where, "%s", lazy->error.message);
    return hone_fail(
        err, HONE_NOT_FOUND, where, "%s",
        is_user ? hone_runtime_store_reason(rt) : "there is no system store: HONE_SYSTEM_STORE names none");
}

size_t hone_unstored(hone_runtime *rt)
{
    return rt != NULL ? atomic_load(&rt->unstored) : 0;
}

size_t hone_served_regimes(const hone_runtime *rt, hone_regime *out, size_t capacity)
{
    hone_regime all[HONE_REGIME_COUNT];
    const size_t count = rt == NULL ? 0 : hone_runtime_regimes(rt, NULL, all);
    for (size_t i = 0; i < count && i < capacity; i++)
        out[i] = all[i];
    return count;
}

hone_status hone_decision_read_sized(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *stored,
    hone_decision *out,
    size_t size,
    hone_error *err)
{
    hone_decision known;
    if (rt == NULL || stored == NULL || out == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "decision.read", "the runtime, the decision and out must not be NULL");
    if (stored->key.device == NULL || stored->key.algorithm == NULL || stored->key.version == NULL ||
        stored->kernel == NULL || stored->config == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "decision.read", "the key, the kernel and the config must not be NULL");
    hone_status status = hone_decision_from_store(rt, device, stored, &known, err);
    if (status == HONE_OK && hone_rules_match(&rt->deny, known.algorithm, known.kernel))
        status = hone_fail(err, HONE_INCOMPATIBLE, "decision.read", "HONE_DENY names kernel %s", known.kernel);
    if (status != HONE_OK && err != NULL) err->status = status;
    if (status == HONE_OK) hone_struct_give(out, size, &known, sizeof known);
    return status;
}
