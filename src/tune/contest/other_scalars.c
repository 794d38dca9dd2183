#include "tune/contest/other_scalars.h"

#include "base/assert.h"
#include "call/call.h"

#include <string.h>

static void make_call(hone_other_scalars *others, const hone_question *question, hone_scalar_change change)
{
    const hone_signature *signature = hone_call_signature(question->call);
    const size_t count = hone_signature_count(signature);
    hone_value values[HONE_MAX_VALUES];
    memcpy(values, hone_call_values(question->call), count * sizeof values[0]);
    if (!hone_change_scalars(signature, change, values)) return;
    hone_signature *shared = hone_signature_retain((hone_signature *)(uintptr_t)signature);
    if (hone_call_bind(question->environment->allocator, shared, values, count, true, &others->calls[change], NULL) !=
        HONE_OK)
        others->calls[change] = NULL;
    hone_signature_release(&shared);
}

void hone_other_scalars_deinit(hone_other_scalars *others)
{
    for (int change = 0; change < HONE_SCALAR_CHANGES; change++)
        hone_call_release(&others->calls[change]);
    others->made = false;
}

static bool is_in_space(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, const hone_config *config)
{
    hone_bound_space *space = NULL;
    bool is_in = hone_space_bind(kernel->space, call, device, &space, NULL) == HONE_OK &&
                 hone_bound_space_check(space, config, NULL) == HONE_OK;
    hone_bound_space_release(&space);
    return is_in;
}

// Whether the config is in the list of a kernel that has its own list.
static bool is_listed(const hone_kernel *kernel, const hone_call *call, const hone_config *config)
{
    enum { MOST = 4096 };
    hone_config listed;
    for (size_t i = 0; i < MOST && kernel->candidates(kernel, call, i, &listed); i++)
        if (listed.count == config->count &&
            memcmp(listed.values, config->values, config->count * sizeof config->values[0]) == 0)
            return true;
    return false;
}

bool hone_kernel_takes_config(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, const hone_config *config)
{
    if (call == NULL || hone_kernel_eligible(kernel, call, device, NULL) != HONE_OK) return false;
    if (kernel->kernel.candidates != NULL) return is_listed(&kernel->kernel, call, config);
    return is_in_space(kernel, call, device, config);
}

uint8_t hone_other_scalars_for(
    hone_other_scalars *others, const hone_question *question, const hone_kernel_ref *kernel, const hone_config *config)
{
    const hone_device_info *device = question->environment->device;
    unsigned changes = 0;
    hone_assert(question->call != NULL);
    for (int change = HONE_CHANGE_SCALARS; !others->made && change < HONE_SCALAR_CHANGES; change++)
        if (change != HONE_CHANGE_IGNORED) make_call(others, question, (hone_scalar_change)change);
    others->made = true;
    for (int change = HONE_CHANGE_SCALARS; changes == 0 && change < HONE_CHANGE_IGNORED; change++)
        if (hone_kernel_takes_config(kernel, others->calls[change], device, config)) changes = 1u << change;
    if (hone_kernel_takes_config(kernel, others->calls[HONE_CHANGE_SIGNS], device, config))
        changes |= 1u << HONE_CHANGE_SIGNS;
    return (uint8_t)changes;
}
