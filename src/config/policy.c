// The names of policies.
#include "hone/policy.h"

#include "base/enum.h"
#include "base/error.h"
#include "config/chain.h"
#include "hone/describe.h"

static const char where[] = "policy.parse";

enum { POLICY_COUNT = HONE_POLICY_FROZEN + 1 };

static const char *const names[POLICY_COUNT] = {
    [HONE_POLICY_DEFAULT] = "default", [HONE_POLICY_TUNE] = "tune",     [HONE_POLICY_HEURISTIC] = "heuristic",
    [HONE_POLICY_FAIL] = "fail",       [HONE_POLICY_FROZEN] = "frozen",
};

static const hone_enum policies = {names, HONE_POLICY_DEFAULT, POLICY_COUNT, "unknown policy"};

const char *hone_policy_name(hone_policy policy)
{
    return hone_enum_word(&policies, (int)policy);
}

hone_status hone_policy_parse(const char *name, hone_policy *out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    int index = hone_enum_find(&policies, name);
    if (index < 0) return hone_enum_refuse(&policies, where, name, err);
    *out = (hone_policy)index;
    return HONE_OK;
}
