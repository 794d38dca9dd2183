// An open-addressed hash table with linear probing, which readers walk without a lock while one writer, under the
// mutex, changes it. Source: D. Knuth, "The Art of Computer Programming", volume 3, 6.4, algorithm L.
//
//     slot   ... | hash, entry | hash, NULL | 0, NULL | ...
//                  a plan        was taken    free: a probe ends here
//                                out: goes on
//
// A slot's entry is written before its hash, and its hash only once: a reader that sees a hash sees the entry, and a
// reader that sees 0 knows that no entry with its hash lies further on. A removed entry leaves its hash in the slot,
// since the probe for another entry may have passed it. At most half of all slots have a hash, so by Knuth's formulas a
// hit checks 1.5 slots and a miss 2.5 on average. A table that would exceed this is copied without the removed entries,
// and swapped. Entries and tables that a reader may still use are freed when their epoch has passed (epoch.h).
#include "runtime/state/plan_table.h"

#include "base/assert.h"
#include "base/error.h"

static hone_plan_slots *make_slots(const hone_allocator *allocator, uint64_t count)
{
    hone_assert(count > 0 && (count & (count - 1)) == 0); // the mask picks the slot
    hone_plan_slots *slots = hone_alloc(allocator, sizeof *slots + (size_t)count * sizeof slots->slot[0]);
    if (slots != NULL) slots->mask = count - 1;
    return slots;
}

hone_status hone_plan_table_init(hone_plan_table *table, hone_allocator allocator, size_t cap_bytes, hone_error *err)
{
    memset(table, 0, sizeof *table);
    hone_plan_slots *slots = make_slots(&allocator, 64);
    if (slots == NULL) return hone_fail_memory(err, "plan_table.init");
    atomic_init(&table->slots, slots);
    atomic_init(&table->generation, hone_epoch_advance() << 32);
    hone_mutex_init(&table->mutex);
    table->allocator = allocator;
    table->cap_bytes = cap_bytes;
    return HONE_OK;
}

static hone_plan_slots *slots_of(hone_plan_table *table)
{
    return atomic_load_explicit(&table->slots, memory_order_relaxed);
}

// Frees what no thread can still use; `all`: everything, when the table is destroyed.
static void reclaim(hone_plan_table *table, bool all)
{
    hone_assert(all || hone_mutex_is_mine(&table->mutex));
    for (hone_plan_entry **link = &table->retired; *link != NULL;) {
        hone_plan_entry *entry = *link;
        if (!all && !hone_epoch_passed(entry->retired)) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        hone_plan_entry_release(entry);
    }
    for (hone_plan_slots **link = &table->retired_slots; *link != NULL;) {
        hone_plan_slots *slots = *link;
        if (!all && !hone_epoch_passed(slots->retired)) {
            link = &slots->next;
            continue;
        }
        *link = slots->next;
        hone_free(&table->allocator, slots);
    }
}

// The slot keeps its hash, so that lookups of other entries continue past it.
static void take_out(hone_plan_table *table, hone_plan_slot *slot)
{
    hone_plan_entry *entry = atomic_load_explicit(&slot->entry, memory_order_relaxed);
    hone_assert(hone_mutex_is_mine(&table->mutex) && entry != NULL && table->live > 0 && table->bytes >= entry->bytes);
    atomic_store_explicit(&slot->entry, NULL, memory_order_release);
    // Threads that remember the entry see the new generation, or the reclaimer sees them inside.
    atomic_fetch_add_explicit(&table->generation, 1, memory_order_seq_cst);
    table->live--;
    table->bytes -= entry->bytes;
    entry->retired = hone_epoch_advance();
    entry->next = table->retired;
    table->retired = entry;
}

static void insert(hone_plan_slots *slots, hone_plan_entry *entry)
{
    hone_assert(entry->hash != 0 && slots->used <= slots->mask / 2); // so the probe ends
    uint64_t i = (entry->hash >> 1) & slots->mask;                   // bit 0 is always set
    while (atomic_load_explicit(&slots->slot[i].hash, memory_order_relaxed) != 0)
        i = (i + 1) & slots->mask;
    atomic_store_explicit(&slots->slot[i].entry, entry, memory_order_release);
    atomic_store_explicit(&slots->slot[i].hash, entry->hash, memory_order_release);
    slots->used++;
}

// Keeps at least half of the slots free, and drops removed ones by copying. The new size depends on the live entries
// and not on the used slots, so a table of few short-lived plans is copied instead of growing.
static bool make_room(hone_plan_table *table)
{
    hone_plan_slots *old = slots_of(table);
    if (2 * (old->used + 1) <= old->mask + 1) return true;
    uint64_t count = 64;
    while (count < 4 * (table->live + 1))
        count *= 2;
    hone_plan_slots *slots = make_slots(&table->allocator, count);
    if (slots == NULL) return false;
    for (uint64_t i = 0; i <= old->mask; i++) {
        hone_plan_entry *entry = atomic_load_explicit(&old->slot[i].entry, memory_order_relaxed);
        if (entry != NULL) insert(slots, entry);
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    old->retired = hone_epoch_advance();
    old->next = table->retired_slots;
    table->retired_slots = old;
    return true;
}

static bool same_words(const hone_plan_entry *a, const hone_plan_entry *b)
{
    return a->hash == b->hash && a->words == b->words && memcmp(a->word, b->word, a->words * sizeof a->word[0]) == 0;
}

static void take_out_same(hone_plan_table *table, const hone_plan_entry *entry)
{
    hone_plan_slots *slots = slots_of(table);
    for (uint64_t i = (entry->hash >> 1) & slots->mask;
         atomic_load_explicit(&slots->slot[i].hash, memory_order_relaxed) != 0; i = (i + 1) & slots->mask) {
        hone_plan_entry *other = atomic_load_explicit(&slots->slot[i].entry, memory_order_relaxed);
        if (other != NULL && same_words(other, entry)) take_out(table, &slots->slot[i]);
    }
}

// Over the cap, entries are evicted in the order of a hand that moves round the slots: hits leave no mark by which a
// better choice could be made.
static void make_way(hone_plan_table *table, size_t bytes)
{
    hone_plan_slots *slots = slots_of(table);
    while (table->live > 0 && table->bytes + bytes > table->cap_bytes) {
        hone_plan_slot *slot = &slots->slot[table->clock++ & slots->mask];
        if (atomic_load_explicit(&slot->entry, memory_order_relaxed) != NULL) take_out(table, slot);
    }
}

hone_status hone_plan_table_publish(hone_plan_table *table, hone_plan_entry *entry, hone_error *err)
{
    hone_mutex_lock(&table->mutex);
    take_out_same(table, entry);
    make_way(table, entry->bytes);
    bool room = make_room(table);
    if (room) {
        atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
        insert(slots_of(table), entry);
        table->live++;
        table->bytes += entry->bytes;
    }
    reclaim(table, false);
    hone_mutex_unlock(&table->mutex);
    return room ? HONE_OK : hone_fail_memory(err, "plan_table.publish");
}

void hone_plan_table_drop(hone_plan_table *table, bool (*drop)(void *ctx, const hone_plan_entry *entry), void *ctx)
{
    hone_mutex_lock(&table->mutex);
    hone_plan_slots *slots = slots_of(table);
    for (uint64_t i = 0; i <= slots->mask; i++) {
        hone_plan_entry *entry = atomic_load_explicit(&slots->slot[i].entry, memory_order_relaxed);
        if (entry == NULL || !drop(ctx, entry)) continue;
        atomic_store(&entry->outdated, true);
        take_out(table, &slots->slot[i]);
    }
    for (hone_plan_entry *entry = table->bound; entry != NULL; entry = entry->bound_next)
        if (drop(ctx, entry)) atomic_store(&entry->outdated, true);
    reclaim(table, false);
    hone_mutex_unlock(&table->mutex);
}

void hone_plan_table_visit(hone_plan_table *table, void (*visit)(void *ctx, hone_plan_entry *entry), void *ctx)
{
    hone_mutex_lock(&table->mutex);
    hone_plan_slots *slots = slots_of(table);
    for (uint64_t i = 0; i <= slots->mask; i++) {
        hone_plan_entry *entry = atomic_load_explicit(&slots->slot[i].entry, memory_order_relaxed);
        if (entry != NULL) visit(ctx, entry);
    }
    for (hone_plan_entry *entry = table->bound; entry != NULL; entry = entry->bound_next)
        visit(ctx, entry);
    hone_mutex_unlock(&table->mutex);
}

// Bound plans ---------------------------------------------------------------------------------------------------------

static hone_status run_counted(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_plan_entry *entry = (const hone_plan_entry *)(const void *)plan;
    hone_epoch_slot *slot = hone_epoch_register(); // NULL if there is no memory: this run is not counted
    if (slot != NULL) hone_counters_add(&slot->counters, entry->number);
    return entry->run(plan, args, execution);
}

// A thread that is about to call uses the old function or the new one, and both are correct. Programs read plan->run as
// plain memory, so this write is hidden from ThreadSanitizer.
__attribute__((no_sanitize_thread)) static void set_run(hone_plan *plan, hone_run_function *run)
{
    __atomic_store_n(&plan->run, run, __ATOMIC_RELAXED);
}

static void set_counting(hone_plan_entry *entry, bool counts)
{
    hone_assert(entry->run != NULL);
    set_run(&entry->plan, counts ? run_counted : entry->run);
}

void hone_plan_table_hold(hone_plan_table *table, hone_plan_entry *entry)
{
    hone_mutex_lock(&table->mutex);
    hone_assert(entry->bound_link == NULL);
    entry->bound_next = table->bound;
    entry->bound_link = &table->bound;
    if (table->bound != NULL) table->bound->bound_link = &entry->bound_next;
    table->bound = entry;
    if (table->counts_bound) set_counting(entry, true);
    hone_mutex_unlock(&table->mutex);
}

static void unlink_bound(hone_plan_entry *entry)
{
    *entry->bound_link = entry->bound_next;
    if (entry->bound_next != NULL) entry->bound_next->bound_link = entry->bound_link;
    entry->bound_link = NULL;
}

void hone_plan_table_let_go(hone_plan_table *table, hone_plan_entry *entry)
{
    hone_mutex_lock(&table->mutex);
    if (entry->bound_link != NULL) unlink_bound(entry);
    set_counting(entry, false);
    hone_mutex_unlock(&table->mutex);
}

void hone_plan_table_count(hone_plan_table *table, bool counts)
{
    hone_mutex_lock(&table->mutex);
    table->counts_bound = counts;
    for (hone_plan_entry *entry = table->bound; entry != NULL; entry = entry->bound_next)
        set_counting(entry, counts);
    hone_mutex_unlock(&table->mutex);
}

// Forks, and the end --------------------------------------------------------------------------------------------------

static void forget_calls(hone_plan_entry *entry)
{
    atomic_store_explicit(&entry->calls, 0, memory_order_relaxed);
    entry->before += hone_plan_entry_runs(entry);
    entry->noted = 0;
}

void hone_plan_table_in_child(hone_plan_table *table)
{
    hone_plan_slots *slots = slots_of(table);
    for (uint64_t i = 0; slots != NULL && i <= slots->mask; i++) {
        hone_plan_entry *entry = atomic_load_explicit(&slots->slot[i].entry, memory_order_relaxed);
        if (entry != NULL) forget_calls(entry);
    }
    for (hone_plan_entry *entry = table->retired; entry != NULL; entry = entry->next)
        forget_calls(entry);
    for (hone_plan_entry *entry = table->bound; entry != NULL; entry = entry->bound_next)
        forget_calls(entry);
}

static bool every_entry(void *ctx, const hone_plan_entry *entry)
{
    (void)ctx;
    (void)entry;
    return true;
}

void hone_plan_table_deinit(hone_plan_table *table)
{
    if (slots_of(table) == NULL) return;
    hone_plan_table_drop(table, every_entry, NULL);
    while (table->bound != NULL)
        unlink_bound(table->bound);
    reclaim(table, true);
    hone_free(&table->allocator, slots_of(table));
    atomic_store(&table->slots, NULL);
}
