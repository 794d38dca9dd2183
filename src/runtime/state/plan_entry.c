// One plan of the table: its counted calls, and its release.
#include "base/error.h"
#include "registry/names.h"
#include "runtime/state/runtime.h"

void hone_plan_entry_note_calls(hone_plan_entry *entry)
{
    hone_runtime *rt = entry->rt;
    const uint64_t runs = hone_plan_entry_runs(entry);
    const uint64_t calls = atomic_exchange_explicit(&entry->calls, 0, memory_order_relaxed) + runs - entry->noted;
    entry->noted = runs;
    if (calls == 0 || !atomic_load(&rt->recording)) return;
    hone_error err;
    hone_status status = hone_recorder_add(
        rt->recorder, entry->plan.device->fingerprint, entry->call, calls, entry->kernel->kernel.name,
        hone_source_name(entry->source), &err);
    if (status != HONE_OK) hone_log_write(&rt->log, HONE_LOG_WARNING, "%s", err.message);
    hone_runtime_tell_dropped(rt);
}

void hone_runtime_tell_dropped(hone_runtime *rt)
{
    if (!atomic_load(&rt->recording) || hone_recorder_dropped(rt->recorder) == 0) return;
    if (atomic_exchange(&rt->told_dropped, true)) return;
    hone_log_write(
        &rt->log, HONE_LOG_WARNING,
        "the record is full at %d calls, and further ones are dropped, %s: HONE_STORE names a store that it can be "
        "written to",
        (int)HONE_RECORDER_LIMIT, rt->store.url == NULL ? "for there is no store" : rt->store.error.message);
}

static hone_platform_instance *instance_of(const hone_plan_entry *entry)
{
    return entry->rt->instances[hone_platform_home(entry->kernel->kernel.platform)];
}

hone_plan_entry *hone_plan_entry_take(hone_runtime *rt)
{
    hone_mutex_lock(&rt->entries_mutex);
    hone_plan_entry *entry = hone_slab_take(&rt->entries);
    hone_mutex_unlock(&rt->entries_mutex);
    if (entry == NULL) return NULL;
    atomic_init(&entry->references, 1);
    entry->rt = rt;
    return entry;
}

// Whether the table is stored inside the entry itself.
static bool is_near(const hone_plan_entry *entry, const void *table)
{
    return (uintptr_t)table - (uintptr_t)entry < sizeof *entry;
}

void hone_plan_entry_release(hone_plan_entry *entry)
{
    if (entry == NULL || atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) != 1) return;
    hone_runtime *rt = entry->rt;
    hone_plan_entry_note_calls(entry);
    hone_tally_leave(&rt->tally, entry);
    hone_counters_give_back(entry->number);
    hone_platform_release(instance_of(entry), &entry->kernel->kernel, entry->plan.state);
    hone_kernel_release(entry->kernel);
    hone_call_release(&entry->call);
    if (!is_near(entry, entry->word)) hone_free(&rt->allocator, entry->word);
    if (!is_near(entry, entry->pairs)) hone_free(&rt->allocator, entry->pairs);
    if (!is_near(entry, entry->plan.config)) hone_free(&rt->allocator, (void *)(uintptr_t)entry->plan.config);
    hone_mutex_lock(&rt->entries_mutex);
    hone_slab_give_back(&rt->entries, entry);
    hone_mutex_unlock(&rt->entries_mutex);
}

bool hone_plan_entry_is_of_context(void *number, const hone_plan_entry *entry)
{
    return entry->context_number == *(const uint64_t *)number;
}
