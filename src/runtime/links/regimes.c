// The regime in which a decision was measured determines the order in which decisions are served, not whether one is
// served: the chain has no better answer than one that was verified and timed. Code that measures or searches
// neighbours never mixes two regimes.
#include "registry/names.h"
#include "runtime/links/links.h"

static bool has(const hone_device_info *device, hone_regime regime)
{
    return device == NULL || hone_platform_has_regime(device->platform, regime);
}

static size_t list(const hone_runtime *rt, const hone_device_info *device, bool is_stable, hone_regime *out)
{
    static const hone_regime order[] = {HONE_WARM, HONE_COLD, HONE_GRAPH, HONE_EAGER};
    size_t count = 0;
    if (has(device, rt->regime)) out[count++] = hone_regime_with(rt->regime, is_stable);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (order[i] != rt->regime && has(device, order[i])) out[count++] = hone_regime_with(order[i], is_stable);
    return count;
}

size_t hone_runtime_regimes(const hone_runtime *rt, const hone_device_info *device, hone_regime out[HONE_REGIME_COUNT])
{
    size_t count = rt->stable ? 0 : list(rt, device, false, out);
    // A runtime that does not ask for stable decisions also accepts one, if there is no faster decision.
    return count + list(rt, device, true, out + count);
}
