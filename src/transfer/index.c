#include "transfer/index.h"

#include "base/error.h"
#include "os/os.h"
#include "store/ops.h"

#include <string.h>

enum { STEP = 500 }; // decisions that are read at a time: two milliseconds

static const char where[] = "transfer.index";
static const uint64_t most_age_ns = UINT64_C(10000000000); // others write to the stores too
static const uint64_t share = 10;                          // of the time, that goes into reading, is one in so many

void hone_transfer_table_destroy(const hone_allocator *allocator, hone_transfer_table *table)
{
    hone_arena_destroy(&table->arena);
    hone_free(allocator, table->entries);
    hone_free(allocator, table->algorithm);
    hone_free(allocator, table->device);
    hone_free(allocator, table);
}

// Reading -------------------------------------------------------------------------------------------------------------

// The device's own decisions are read before those of others, of which there may be more than are read at all.
typedef struct reader {
    hone_transfer_table *table;
    hone_transfer_pass *pass;
    size_t row; // of this scan
    bool own, is_system, failed;
} reader;

static const char *keep(reader *r, const char *text)
{
    if (text == NULL) return NULL;
    const char *copy = hone_arena_text(&r->table->arena, text, strlen(text));
    r->failed = r->failed || copy == NULL;
    return copy;
}

// Rows of one device follow each other: most texts are the last row's.
static const char *keep_again(reader *r, const char *text, const char *last)
{
    return last != NULL && text != NULL && strcmp(text, last) == 0 ? last : keep(r, text);
}

static bool is_wanted(const reader *r, const hone_store_decision *row)
{
    if (!r->own && strcmp(row->key.device, r->table->device) == 0) return false;
    return row->verified && row->time_ns > 0 && row->key.spec != NULL;
}

static bool add_decision(void *ctx, const hone_store_decision *row)
{
    reader *r = ctx;
    hone_transfer_table *table = r->table;
    hone_traits traits;
    if (r->row++ < r->pass->seen) return true; // was read with an earlier question
    if (table->count >= table->goal) return false;
    r->pass->seen++;
    if (!is_wanted(r, row)) return true;
    hone_status status = hone_traits_read(&table->arena, row->key.spec, &traits, NULL);
    r->failed = r->failed || status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return !r->failed;
    if (!hone_grow(
            &table->arena.allocator, &table->entries, &table->capacity, table->count + 1, sizeof *table->entries)) {
        r->failed = true;
        return false;
    }
    const hone_transfer_entry none = {.device = NULL},
                              *last = table->count > 0 ? &table->entries[table->count - 1] : &none;
    const hone_transfer_entry entry = {
        .device = keep_again(r, row->key.device, last->device),
        .version = keep_again(r, row->key.version, last->version),
        .key = keep(r, row->key.key),
        .call = keep(r, row->call),
        .kernel = keep_again(r, row->kernel, last->kernel),
        .config = keep_again(r, row->config, last->config),
        .revision = keep_again(r, row->revision, last->revision),
        .time_ns = row->time_ns,
        .regime = row->regime,
        .is_system = r->is_system,
        .traits = traits,
    };
    table->entries[table->count++] = entry;
    return !r->failed;
}

static hone_status read_store(reader *r, hone_store *store, hone_error *out_failure, hone_error *err)
{
    const hone_store_key filter = {.algorithm = r->table->algorithm, .device = r->own ? r->table->device : NULL};
    hone_error why = {.message = ""};
    hone_status status = HONE_OK;
    if (store != NULL) status = hone_store_scan_any(store, &filter, add_decision, r, &why);
    if (r->failed || status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status != HONE_OK && status != HONE_NOT_FOUND) *out_failure = why;
    r->pass->done = r->row <= r->pass->seen; // else a row was left
    return HONE_OK;
}

static hone_status read_stores(
    hone_transfer_table *table, hone_store *const stores[2], hone_error *out_failure, hone_error *err)
{
    hone_status status = HONE_OK;
    for (int i = 0; i < 4 && status == HONE_OK && table->count < table->goal; i++) {
        reader r = {.table = table, .pass = &table->passes[i], .own = i < 2, .is_system = i % 2 == 1};
        if (!r.pass->done) status = read_store(&r, stores[i % 2], out_failure, err);
    }
    return status;
}

static bool is_whole(const hone_transfer_table *table)
{
    bool all = true;
    for (int i = 0; i < 4; i++)
        all = all && table->passes[i].done;
    return all || (table->most > 0 && table->count >= table->most);
}

static void clear(hone_transfer_table *table)
{
    hone_arena_destroy(&table->arena);
    memset(table->passes, 0, sizeof table->passes);
    table->count = 0;
    table->built_ns = 0;
}

// How many entries there are when all is read that is read now.
static size_t next_goal(const hone_transfer_table *table, bool anew)
{
    if (table->most == 0) return SIZE_MAX;
    size_t goal = anew && table->goal > 0 ? table->goal : table->goal + STEP;
    return goal < table->most ? goal : table->most;
}

hone_status hone_transfer_table_refresh(
    hone_transfer_table *table, hone_store *const stores[2], uint64_t stamp, hone_error *out_failure, hone_error *err)
{
    uint64_t start = hone_os_now_ns();
    out_failure->status = HONE_OK;
    bool anew = table->built_ns == 0 || stamp != table->stamp || start - table->built_ns >= most_age_ns;
    if (!anew && is_whole(table)) return HONE_OK;
    // A few are read in no time.
    bool rests = table->count >= STEP && start - table->read_ns < share * table->cost_ns;
    if (table->built_ns != 0 && rests) return HONE_OK;
    if (anew) clear(table);
    table->goal = next_goal(table, anew);
    hone_status status = read_stores(table, stores, out_failure, err);
    if (status != HONE_OK) {
        clear(table);
        return status;
    }
    if (anew) table->built_ns = start;
    table->stamp = stamp;
    table->read_ns = hone_os_now_ns();
    table->cost_ns = table->read_ns - start;
    return HONE_OK;
}
