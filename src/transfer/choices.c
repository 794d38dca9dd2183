// What was measured under a key: its best configs.
#include "transfer/index.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

static const char where[] = "transfer.choices";

typedef struct best {
    hone_arena *arena;
    hone_regime regime;
    const hone_transfer_entry *own; // stands first, whatever else was measured; NULL: nobody does
    hone_transfer_choice rows[HONE_TRANSFER_CHOICES];
    double times[HONE_TRANSFER_CHOICES];
    size_t count;
    bool failed;
} best;

static const char *copy(hone_arena *arena, const char *text, bool *failed)
{
    if (text == NULL) return NULL;
    const char *kept = hone_arena_text(arena, text, strlen(text));
    *failed = *failed || kept == NULL;
    return kept;
}

static void insert(best *b, size_t first, const hone_transfer_choice *choice, double time_ns)
{
    size_t at = b->count < HONE_TRANSFER_CHOICES ? b->count++ : HONE_TRANSFER_CHOICES - 1;
    for (; at > first && b->times[at - 1] > time_ns; at--) {
        b->rows[at] = b->rows[at - 1];
        b->times[at] = b->times[at - 1];
    }
    b->times[at] = time_ns;
    b->rows[at] = (hone_transfer_choice){
        .kernel = copy(b->arena, choice->kernel, &b->failed),
        .config = copy(b->arena, choice->config, &b->failed),
        .revision = copy(b->arena, choice->revision, &b->failed),
    };
}

static bool add_measurement(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    best *b = ctx;
    const hone_transfer_entry *own = b->own;
    bool counts = measurement->failure == HONE_FAILURE_NONE && measurement->regime == b->regime &&
                  measurement->max_error >= 0 && measurement->time_ns > 0;
    if (!counts || (b->count == HONE_TRANSFER_CHOICES && measurement->time_ns >= b->times[b->count - 1])) return true;
    if (own != NULL && strcmp(measurement->config, own->config) == 0 && strcmp(measurement->kernel, own->kernel) == 0)
        return true;
    const hone_transfer_choice choice = {measurement->kernel, measurement->config, measurement->revision, 1};
    insert(b, own != NULL, &choice, measurement->time_ns);
    return !b->failed;
}

hone_status hone_transfer_load_choices(
    hone_arena *arena,
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    const hone_transfer_entry *own,
    hone_transfer_choice **out,
    size_t *out_count,
    hone_error *err)
{
    best b = {.arena = arena, .regime = regime, .own = own};
    if (own != NULL) {
        const hone_transfer_choice first = {own->kernel, own->config, own->revision, 1};
        insert(&b, 0, &first, own->time_ns);
    }
    hone_status status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, key, add_measurement, &b, err);
    if (b.failed || status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    // What cannot be read is not known: the decision's own config is.
    for (size_t i = 0; i < b.count; i++)
        b.rows[i].relative = fmax(b.times[i] / b.times[0], 1);
    *out_count = b.count;
    *out = hone_arena_array(arena, HONE_TRANSFER_CHOICES, sizeof **out);
    if (*out == NULL) return hone_fail_memory(err, where);
    memcpy(*out, b.rows, sizeof b.rows);
    return HONE_OK;
}
