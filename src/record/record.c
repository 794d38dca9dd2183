// The invocation registry: a bounded table under a lock, spilled to a store.
#include "record/record.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "hone/describe.h"
#include "os/mutex.h"
#include "os/os.h"
#include "record/table.h"
#include "store/ops.h"

#include <string.h>

static const char create_where[] = "record.create";
static const char flush_where[] = "record.flush";
static const char add_where[] = "record.add";
static const char visit_where[] = "record.visit";

struct hone_recorder {
    hone_allocator allocator;
    hone_mutex mutex;
    unsigned generation; // of the process whose calls these are
    hone_record_table table;
    size_t limit;
    uint64_t dropped;
    hone_store *(*spill_store)(void *ctx); // NULL: a full table drops
    void *spill_ctx;
    uint64_t spill_again_ns; // a spill that failed is not tried before
    bool missed;             // a miss was added that nobody asked for
    bool asked;              // something was added that somebody asked for: all is kept
};

// A store that is busy would hold every new descriptor up for its whole time-out.
static const uint64_t spill_pause_ns = 60ull * 1000 * 1000 * 1000;

hone_status hone_recorder_create(const hone_allocator *allocator, size_t limit, hone_recorder **out, hone_error *err)
{
    *out = NULL;
    hone_recorder *recorder = hone_alloc(allocator, sizeof *recorder);
    if (recorder == NULL) return hone_fail_memory(err, create_where);
    recorder->allocator = *allocator;
    recorder->limit = limit == 0 ? HONE_RECORDER_LIMIT : limit;
    hone_record_table_init(&recorder->table, *allocator);
    hone_mutex_init(&recorder->mutex);
    recorder->generation = hone_fork_generation();
    *out = recorder;
    return HONE_OK;
}

void hone_recorder_destroy(hone_recorder **recorder)
{
    if (recorder == NULL || *recorder == NULL) return;
    hone_recorder *dying = *recorder;
    *recorder = NULL;
    hone_allocator allocator = dying->allocator;
    hone_record_table_deinit(&dying->table);
    hone_mutex_deinit(&dying->mutex);
    hone_free(&allocator, dying);
}

const hone_allocator *hone_recorder_allocator(const hone_recorder *recorder)
{
    return &recorder->allocator;
}

// What the parent of a fork counted is written by the parent.
static void lock(hone_recorder *recorder)
{
    hone_mutex_lock(&recorder->mutex);
    if (recorder->generation == hone_fork_generation()) return;
    recorder->generation = hone_fork_generation();
    recorder->dropped = 0;
    hone_record_table_clear(&recorder->table, NULL);
}

static void unlock(hone_recorder *recorder)
{
    hone_mutex_unlock(&recorder->mutex);
}

void hone_recorder_set_spill(hone_recorder *recorder, hone_store *(*store)(void *ctx), void *ctx)
{
    lock(recorder);
    recorder->spill_store = store;
    recorder->spill_ctx = ctx;
    unlock(recorder);
}

size_t hone_recorder_count(hone_recorder *recorder)
{
    lock(recorder);
    size_t count = recorder->table.count;
    unlock(recorder);
    return count;
}

uint64_t hone_recorder_dropped(hone_recorder *recorder)
{
    lock(recorder);
    uint64_t dropped = recorder->dropped;
    unlock(recorder);
    return dropped;
}

// Spilling ------------------------------------------------------------------------------------------------------------

// Moves the whole table, in one transaction. Under the lock.
static hone_status move_to_store(hone_recorder *recorder, hone_store *store, hone_error *err)
{
    hone_assert(hone_mutex_is_mine(&recorder->mutex));
    size_t count = recorder->table.count;
    if (count == 0) return HONE_OK;
    hone_store_invocation *all = hone_alloc_array(&recorder->allocator, count, sizeof *all);
    if (all == NULL) return hone_fail_memory(err, flush_where);
    for (size_t i = 0; i < count; i++)
        all[i] = *hone_record_table_at(&recorder->table, i);
    hone_status status = hone_store_add_invocations(store, all, count, err);
    hone_free(&recorder->allocator, all);
    if (status != HONE_OK) return status;
    hone_record_table_clear(&recorder->table, NULL);
    // Tidying up: what does not succeed now is done by the next flush.
    if (recorder->missed && !recorder->asked) (void)!hone_store_expire_misses(store, hone_os_now_utc(), NULL);
    return HONE_OK;
}

// Makes room when the table is full and there is a store. Under the lock.
static hone_status spill(hone_recorder *recorder, hone_error *err)
{
    if (recorder->spill_store == NULL || hone_os_now_ns() < recorder->spill_again_ns) return HONE_OK;
    hone_store *store = recorder->spill_store(recorder->spill_ctx);
    hone_status status = store == NULL ? HONE_OK : move_to_store(recorder, store, err);
    recorder->spill_again_ns = status == HONE_OK && store != NULL ? 0 : hone_os_now_ns() + spill_pause_ns;
    return status;
}

static hone_status add_locked(hone_recorder *recorder, const hone_store_invocation *invocation, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_assert(hone_mutex_is_mine(&recorder->mutex));
    if (recorder->table.count >= recorder->limit && !hone_record_table_has(&recorder->table, invocation)) {
        status = spill(recorder, err);
        if (recorder->table.count >= recorder->limit) {
            recorder->dropped++;
            return status;
        }
    }
    if (hone_record_table_add(&recorder->table, invocation)) return HONE_OK;
    recorder->dropped++;
    return hone_fail_memory(err, add_where);
}

// Adding --------------------------------------------------------------------------------------------------------------

static hone_status add_as(
    hone_recorder *recorder, const hone_store_invocation *invocation, bool is_asked, hone_error *err)
{
    lock(recorder);
    recorder->asked = recorder->asked || is_asked;
    recorder->missed = recorder->missed || !is_asked;
    hone_status status = add_locked(recorder, invocation, err);
    unlock(recorder);
    return status;
}

hone_status hone_recorder_add_invocation(
    hone_recorder *recorder, const hone_store_invocation *invocation, hone_error *err)
{
    return add_as(recorder, invocation, true, err);
}

// A call that was made.
typedef struct made_call {
    const char *device;
    const hone_call *call;
    uint64_t count;
    const char *kernel, *source; // who answered; NULL: not known
    bool is_asked;               // somebody asked for a record of it
} made_call;

static hone_status add_under(hone_recorder *recorder, const char *algorithm, const made_call *made, hone_error *err)
{
    double now = hone_os_now_utc();
    const hone_store_invocation invocation = {
        .key =
            {
                .device = made->device,
                .algorithm = algorithm,
                .version = hone_signature_version(hone_call_signature(made->call)),
                .key = hone_call_key(made->call),
                .spec = hone_call_spec(made->call),
            },
        .call = hone_call_text(made->call),
        .count = made->count,
        .first = now,
        .last = now,
        .kernel = made->kernel,
        .decided = made->source,
    };
    return add_as(recorder, &invocation, made->is_asked, err);
}

// Names are stored in lower case, however the signature writes them.
static hone_status add_made(hone_recorder *recorder, const made_call *made, hone_error *err)
{
    const char *name = hone_signature_name(hone_call_signature(made->call));
    hone_buffer lower;
    hone_buffer_init(&lower, recorder->allocator);
    hone_text_lower(&lower, name, strlen(name));
    hone_status status =
        lower.failed ? hone_fail_memory(err, add_where) : add_under(recorder, hone_buffer_string(&lower), made, err);
    hone_buffer_deinit(&lower);
    return status;
}

hone_status hone_recorder_add(
    hone_recorder *recorder,
    const char *device,
    const hone_call *call,
    uint64_t count,
    const char *kernel,
    const char *source,
    hone_error *err)
{
    const made_call made = {device, call, count, kernel, source, .is_asked = true};
    return add_made(recorder, &made, err);
}

hone_status hone_recorder_add_miss(
    hone_recorder *recorder,
    const char *device,
    const hone_call *call,
    const char *kernel,
    const char *source,
    hone_error *err)
{
    const made_call made = {device, call, 1, kernel, source, .is_asked = false};
    return add_made(recorder, &made, err);
}

// Visiting ------------------------------------------------------------------------------------------------------------

// A table of its own that a visit walks, with the first failure on the way.
typedef struct gathering {
    hone_record_table table;
    bool failed; // no memory
} gathering;

static bool gather_one(gathering *all, const hone_store_invocation *invocation)
{
    all->failed = !hone_record_table_add(&all->table, invocation);
    return !all->failed;
}

static bool gather_stored(void *ctx, const hone_store_record *record)
{
    return gather_one(ctx, record->invocation);
}

static bool matches(const char *filter, const char *text)
{
    return filter == NULL || strcmp(filter, text) == 0;
}

static void gather_table(hone_recorder *recorder, const hone_store_key *filter, gathering *all)
{
    lock(recorder);
    for (size_t i = 0; !all->failed && i < recorder->table.count; i++) {
        const hone_store_invocation *invocation = hone_record_table_at(&recorder->table, i);
        const hone_store_key *key = &invocation->key;
        if (matches(filter->device, key->device) && matches(filter->algorithm, key->algorithm) &&
            matches(filter->version, key->version) && matches(filter->key, key->key))
            gather_one(all, invocation);
    }
    unlock(recorder);
}

static hone_status visit_filtered(
    hone_recorder *recorder,
    hone_store *store,
    const hone_store_key *filter,
    hone_record_visit *visit,
    void *ctx,
    hone_error *err)
{
    gathering all = {.failed = false};
    hone_record_table_init(&all.table, recorder->allocator);
    // The store first: what the table adds is newer, and the newer answer stays.
    hone_status status =
        store == NULL ? HONE_OK : hone_store_scan(store, HONE_RECORD_INVOCATION, filter, gather_stored, &all, err);
    if (!all.failed) gather_table(recorder, filter, &all);
    if (all.failed) {
        status = hone_fail_memory(err, visit_where);
    } else {
        hone_record_table_sort(&all.table);
        for (size_t i = 0; i < all.table.count; i++)
            if (!visit(ctx, hone_record_table_at(&all.table, i))) break;
    }
    hone_record_table_deinit(&all.table);
    return status;
}

hone_status hone_recorder_visit(
    hone_recorder *recorder,
    hone_store *store,
    const char *device,
    hone_record_visit *visit,
    void *ctx,
    hone_error *err)
{
    const hone_store_key filter = {.device = device};
    return visit_filtered(recorder, store, &filter, visit, ctx, err);
}

hone_status hone_recorder_find(
    hone_recorder *recorder,
    hone_store *store,
    const char *algorithm,
    const char *version,
    const char *key,
    hone_record_visit *visit,
    void *ctx,
    hone_error *err)
{
    const hone_store_key filter = {.algorithm = algorithm, .version = version, .key = key};
    return visit_filtered(recorder, store, &filter, visit, ctx, err);
}

// Clearing and flushing -----------------------------------------------------------------------------------------------

hone_status hone_recorder_clear(hone_recorder *recorder, hone_store *store, const char *device, hone_error *err)
{
    hone_status status = store == NULL ? HONE_OK : hone_store_clear_invocations(store, device, err);
    if (status != HONE_OK) return status;
    lock(recorder);
    hone_record_table_clear(&recorder->table, device);
    unlock(recorder);
    return HONE_OK;
}

hone_status hone_recorder_flush(hone_recorder *recorder, hone_store *store, hone_error *err)
{
    if (store == NULL) return HONE_OK;
    lock(recorder);
    hone_status status = move_to_store(recorder, store, err);
    unlock(recorder);
    return status;
}
