// The hot path: pack, hash, find, compare, run. It allocates nothing, takes no lock, makes no system call and logs
// nothing; scripts/check proves that nothing here reaches a function that does. All exceptional cases go to
// hone_run_slowly.
#include "runtime/plans/dispatch.h"

#include "config/context.h"
#include "hone/interpreter.h"

// Returns the entry that this thread ran last, if it is still in the table and serves this call too. Then the call is
// neither packed nor hashed.
__attribute__((always_inline)) static inline hone_plan_entry *look_at_last(
    const hone_thread *self, const hone_op *op, uint64_t head, const hone_value *args, size_t count)
{
    uint64_t address[HONE_PACKED_TENSORS];
    uint64_t generation = atomic_load_explicit(&op->table->generation, memory_order_acquire);
    if (!self->repeating || generation != self->generation) return NULL;
    if (!hone_packed_repeats(self->last->word, head, args, count, op->ignored, address)) return NULL;
    return hone_plan_entry_apart(self->last, address) ? self->last : NULL;
}

// Looks the call up in the table, and remembers the entry for the thread's next call; NULL if there is none. Not
// inlined: the packed words need a stack frame, whose cost a repeated call should not pay.
__attribute__((noinline)) static hone_plan_entry *look_up(
    hone_thread *self, const hone_op *op, uint64_t head, const hone_value *args, size_t count)
{
    hone_packed packed;
    if (!hone_pack_ordinary(&packed, head, args, count, op->ignored) &&
        !hone_pack(&packed, head, args, count, op->ignored))
        return NULL;
    uint64_t generation = atomic_load_explicit(&op->table->generation, memory_order_acquire);
    hone_plan_entry *entry = hone_plan_table_find(op->table, &packed);
    if (entry == NULL || !hone_plan_entry_apart(entry, packed.address)) return NULL;
    self->repeating = entry == self->last && generation == self->generation;
    self->generation = generation;
    self->last = entry;
    return entry;
}

// Finds the ready plan for a call, NULL if there is none. The thread must be inside an epoch.
__attribute__((always_inline)) static inline hone_plan_entry *find(
    hone_thread *self, const hone_op *op, const hone_value *args, size_t count)
{
    const uint64_t head = op->head | count << 24 | (uint64_t)self->context_number << 32;
    hone_plan_entry *entry = look_at_last(self, op, head, args, count);
    return entry != NULL ? entry : look_up(self, op, head, args, count);
}

static inline hone_status run_entry(
    hone_thread *self, hone_plan_entry *entry, const hone_value *args, const hone_execution *execution)
{
    hone_counters_add(&self->slot->counters, entry->number);
    self->depth++;
    const hone_status status = entry->run(&entry->plan, args, execution);
    self->depth--;
    return status;
}

hone_status hone_run(
    const hone_op *op, const hone_value *args, size_t count, const hone_execution *execution, hone_error *err)
{
    hone_thread *self = &hone_thread_self;
    hone_epoch_slot *slot = self->slot;
    if (slot == NULL || op == NULL || args == NULL || count > op->count)
        return hone_run_slowly(op, args, count, execution, err);
    uint64_t before = hone_epoch_enter(slot);
    hone_plan_entry *entry = find(self, op, args, count);
    if (entry == NULL) {
        hone_epoch_leave(slot, before);
        return hone_run_slowly(op, args, count, execution, err);
    }
    hone_status status = run_entry(self, entry, args, execution);
    if (status != HONE_OK) status = hone_run_failed(op, entry, args, count, execution, status, err);
    hone_epoch_leave(slot, before);
    return status;
}

bool hone_run_if_short(const hone_op *op, const hone_value *args, size_t count)
{
    hone_thread *self = &hone_thread_self;
    hone_epoch_slot *slot = self->slot;
    if (slot == NULL || op == NULL || args == NULL || count > op->count) return false;
    uint64_t before = hone_epoch_enter(slot);
    hone_plan_entry *entry = find(self, op, args, count);
    const bool done = entry != NULL && entry->is_short && run_entry(self, entry, args, NULL) == HONE_OK;
    hone_epoch_leave(slot, before);
    return done;
}
