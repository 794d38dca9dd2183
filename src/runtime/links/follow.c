#include "runtime/links/follow.h"

#include "base/error.h"
#include "runtime/links/trust.h"
#include "store/ops.h"

#include <string.h>

// A check takes some microseconds if nothing changed. A long check, over many plans while another process writes
// continuously, is followed by a longer pause, so that this thread never uses more than a tenth of a processor.
static const uint64_t pause_ns = 1000000000, pauses_per_look = 9;

static const char where[] = "follow";

typedef struct all_plans {
    hone_runtime *rt;
    hone_plan_entry **entries; // retained
    size_t count, capacity;
    bool failed; // no memory
} all_plans;

// Runs under the table's mutex, where no store can be asked.
static void collect(void *ctx, hone_plan_entry *entry)
{
    all_plans *all = ctx;
    if (all->failed || entry->is_contexts_own || hone_source_is(entry->source, HONE_LINK_NAMED) ||
        atomic_load(&entry->outdated))
        return;
    all->failed =
        !hone_grow(&all->rt->allocator, &all->entries, &all->capacity, all->count + 1, sizeof all->entries[0]);
    if (all->failed) return;
    atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
    all->entries[all->count++] = entry;
}

static void let_go(all_plans *all)
{
    for (size_t i = 0; i < all->count; i++)
        hone_plan_entry_release(all->entries[i]);
    hone_free(&all->rt->allocator, all->entries);
}

// Whether the cache in memory has an answer that no store has: set by the program, or found by a contest and not
// stored.
static bool is_own_word(const hone_request *request)
{
    const hone_stand_ins *stand_ins = &request->stand_ins;
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    hone_runtime *rt = request->rt;
    bool is_own = false;
    hone_mutex_lock(&rt->mutex);
    for (size_t i = 0; i < stand_ins->count && !is_own; i++) {
        const hone_call *call = stand_ins->calls[i];
        const hone_decision_row *row = hone_decisions_get(
            &rt->cache, request->device->fingerprint, algorithm->name, algorithm->version, hone_call_key(call),
            hone_call_spec(call));
        is_own = row != NULL && row->as_of == 0;
    }
    hone_mutex_unlock(&rt->mutex);
    return is_own;
}

static bool is_the_same(const hone_plan_entry *entry, const hone_decision *decision)
{
    return hone_decision_kernel(entry->kernel->algorithm, decision) == entry->kernel &&
           memcmp(entry->plan.config, decision->config.values, decision->config.count * sizeof entry->plan.config[0]) ==
               0;
}

typedef struct telling {
    const hone_request *request;
    const hone_decision *told;
} telling;

static bool is_otherwise(void *ctx, const hone_plan_entry *entry)
{
    const telling *t = ctx;
    const hone_request *request = t->request;
    return entry->op == request->op && entry->plan.device == request->device &&
           entry->context_number == hone_context_number(request->context) &&
           strcmp(entry->call_key, hone_call_key(request->call)) == 0 && !is_the_same(entry, t->told);
}

// A guess may have changed meanwhile, because near calls were tuned.
void hone_runtime_stand_by(const hone_request *request, const hone_decision *told)
{
    telling t = {request, told};
    hone_plan_table_drop(&request->rt->plans, is_otherwise, &t);
}

// Whether reading a store failed for a reason that may be gone at the next attempt.
static bool is_passing(hone_status status)
{
    return status == HONE_OUT_OF_MEMORY || status == HONE_IO || status == HONE_BUSY || status == HONE_UNAVAILABLE;
}

// Whether the stores' answer differs from the decision that a plan was made with. Runs no kernel: a check never adopts
// a kernel that was not verified; the next miss does.
static hone_status ask(const hone_plan_entry *entry, bool *out_outdated, hone_error *err)
{
    const bool is_guess = hone_source_is(entry->source, HONE_LINK_GUESSED);
    hone_request request;
    hone_decision decision;
    hone_status status = hone_request_init(&request, entry->op, entry->call, NULL, err);
    *out_outdated = false;
    if (status == HONE_OK && !is_own_word(&request)) {
        request.explaining = true;
        status = hone_request_ask_stores(&request, &decision, err);
        if (status == HONE_OK)
            *out_outdated = is_guess || !is_the_same(entry, &decision);
        else
            *out_outdated = !is_guess && !is_passing(status);
    }
    hone_request_deinit(&request);
    return is_passing(status) ? status : HONE_OK;
}

static bool is_outdated(void *ctx, const hone_plan_entry *entry)
{
    (void)ctx;
    return atomic_load(&entry->outdated);
}

// The query itself takes back the plans of a kernel that another process found wrong.
static void ask_whether_right(hone_runtime *rt, const hone_plan_entry *entry)
{
    hone_error ignored;
    if (!entry->kernel->builtin) (void)!hone_kernel_was_right(rt, entry->kernel, NULL, &ignored);
}

static hone_status compare_all(hone_runtime *rt, hone_error *err)
{
    all_plans all = {.rt = rt};
    hone_plan_table_visit(&rt->plans, collect, &all);
    hone_status status = all.failed ? hone_fail_memory(err, where) : HONE_OK;
    for (size_t i = 0; i < all.count && status == HONE_OK; i++) {
        bool outdated;
        status = ask(all.entries[i], &outdated, err);
        if (status == HONE_OK && outdated) atomic_store(&all.entries[i]->outdated, true);
        if (status == HONE_OK && !outdated) ask_whether_right(rt, all.entries[i]);
    }
    hone_plan_table_drop(&rt->plans, is_outdated, NULL);
    let_go(&all);
    return status;
}

// Returns the stores that are open, and opens none. Each recorded its change number when it was opened (services.c).
static void open_stores(hone_runtime *rt, hone_store *out[2])
{
    hone_lazy_store *const lazy[] = {&rt->store, &rt->system_store};
    for (int i = 0; i < 2; i++) {
        hone_mutex_lock(&lazy[i]->mutex);
        out[i] = lazy[i]->store;
        hone_mutex_unlock(&lazy[i]->mutex);
        if (out[i] != NULL && out[i]->ops->changes == NULL) out[i] = NULL;
    }
}

// During a visit of a store no other query to it is possible.
static bool is_visiting(hone_store *const stores[2])
{
    for (int i = 0; i < 2; i++)
        if (stores[i] != NULL && hone_mutex_is_mine(&stores[i]->mutex)) return true;
    return false;
}

static bool read_changes(hone_store *const stores[2], uint64_t out[2])
{
    for (int i = 0; i < 2; i++) {
        out[i] = 0;
        if (stores[i] != NULL && hone_store_changes(stores[i], &out[i], NULL) != HONE_OK) return false;
    }
    return true;
}

// Reads the change numbers first, so that a later change gives a different number.
static void look(hone_runtime *rt, hone_store *const stores[2])
{
    hone_follower *follower = &rt->follower;
    hone_error why = {.message = ""};
    uint64_t now[2];
    if (!read_changes(stores, now)) return;
    if (memcmp(now, follower->seen, sizeof now) == 0) return;
    atomic_fetch_add(&rt->changes, 1);
    hone_runtime_answers_changed(rt);
    const hone_status status = compare_all(rt, &why);
    if (status == HONE_OK)
        memcpy(follower->seen, now, sizeof now);
    else
        hone_log_write(&rt->log, HONE_LOG_INFO, "what the store has new is looked at again later: %s", why.message);
}

void hone_runtime_take_up(hone_runtime *rt)
{
    hone_store *stores[2];
    open_stores(rt, stores);
    if ((stores[0] == NULL && stores[1] == NULL) || is_visiting(stores)) return;
    hone_mutex_lock(&rt->follower.mutex);
    look(rt, stores);
    hone_mutex_unlock(&rt->follower.mutex);
}

// Skips the check while this process measures, so that it does not disturb the measurement.
static uint64_t tick(void *ctx)
{
    hone_runtime *rt = ctx;
    const uint64_t start = hone_os_now_ns();
    if (atomic_load(&rt->flights.measuring.holder) == 0) hone_runtime_take_up(rt);
    const uint64_t rest_ns = pauses_per_look * (hone_os_now_ns() - start);
    return rest_ns > pause_ns ? rest_ns : pause_ns;
}

void hone_runtime_follow(hone_runtime *rt)
{
    hone_follower *follower = &rt->follower;
    hone_store *stores[2];
    hone_error why;
    if (atomic_load_explicit(&follower->follows, memory_order_acquire)) return;
    open_stores(rt, stores);
    if (stores[0] == NULL && stores[1] == NULL) return;
    hone_mutex_lock(&follower->mutex);
    if (follower->ticker == NULL && hone_ticker_start(&rt->allocator, tick, rt, &follower->ticker, &why) != HONE_OK)
        hone_log_write(
            &rt->log, HONE_LOG_WARNING, "what other processes tune is seen by hone_decide alone: %s", why.message);
    atomic_store_explicit(&follower->follows, true, memory_order_release);
    hone_mutex_unlock(&follower->mutex);
}

void hone_runtime_follow_in_child(hone_runtime *rt)
{
    if (!hone_fork_is_own) hone_ticker_in_child(rt->follower.ticker);
}
