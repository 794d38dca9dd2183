// One plan of the table: the calls that it counted, and its end.
#include "base/error.h"
#include "registry/names.h"
#include "runtime/state/runtime.h"

void hone_plan_entry_note_calls(hone_plan_entry *entry)
{
    uint64_t calls = atomic_exchange_explicit(&entry->calls, 0, memory_order_relaxed);
    if (calls == 0) return;
    hone_runtime *rt = entry->rt;
    hone_error err;
    hone_status status = hone_recorder_add(
        rt->recorder, entry->plan.device->fingerprint, entry->call, calls, entry->kernel->kernel.name,
        hone_source_name(entry->source), &err);
    if (status != HONE_OK) hone_log_write(&rt->log, HONE_LOG_WARNING, "%s", err.message);
}

static hone_platform_instance *instance_of(const hone_plan_entry *entry)
{
    return entry->rt->instances[hone_platform_home(entry->kernel->kernel.platform)];
}

void hone_plan_entry_release(hone_plan_entry *entry)
{
    if (entry == NULL || atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) != 1) return;
    hone_runtime *rt = entry->rt;
    hone_plan_entry_note_calls(entry);
    hone_platform_release(instance_of(entry), &entry->kernel->kernel, entry->plan.state);
    hone_kernel_release(entry->kernel);
    hone_call_release(&entry->call);
    hone_allocator allocator = rt->allocator;
    if (entry->word != entry->near_word) hone_free(&allocator, entry->word);
    if (entry->pairs != entry->near_pairs) hone_free(&allocator, entry->pairs);
    hone_free(&allocator, entry);
}

bool hone_plan_entry_is_of_context(void *number, const hone_plan_entry *entry)
{
    return entry->context_number == *(const uint64_t *)number;
}
