// The hot path: pack, hash, find, compare, run. It allocates nothing, takes no lock, makes no system call and logs
// nothing; scripts/check proves that nothing here reaches a function that does. Whatever is out of the ordinary goes
// to hone_run_slowly.
#include "runtime/dispatch.h"

#include "config/context.h"

hone_status hone_run(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err)
{
    hone_thread *self = &hone_thread_self;
    hone_epoch_slot *slot = self->slot;
    hone_packed packed;
    if (slot == NULL || op == NULL || count > op->count ||
        !hone_pack(&packed, op->head | count << 24 | (uint64_t)self->context_number << 32, args, count, op->ignored))
        return hone_run_slowly(op, args, count, execution, err);
    uint64_t hash = hone_packed_hash(&packed);
    uint64_t before = hone_epoch_enter(slot);
    hone_plan_entry *entry = hone_plan_table_find(op->table, &packed, hash);
    if (entry == NULL || !hone_plan_entry_apart(entry, &packed)) {
        hone_epoch_leave(slot, before);
        return hone_run_slowly(op, args, count, execution, err);
    }
    if (atomic_load_explicit(op->recording, memory_order_relaxed))
        atomic_fetch_add_explicit(&entry->calls, 1, memory_order_relaxed);
    self->depth++;
    hone_status status = entry->plan.run(&entry->plan, args, execution);
    self->depth--;
    if (status != HONE_OK) status = hone_run_failed(op, entry, args, count, execution, status, err);
    hone_epoch_leave(slot, before);
    return status;
}
