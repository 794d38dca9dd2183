// Two stores in memory, a runtime with the algorithm `scale`, and what imports and exports say.
#ifndef HONE_TESTS_INTERCHANGE_FIXTURE_H
#define HONE_TESTS_INTERCHANGE_FIXTURE_H

#include "../runtime/fixture.h"
#include "base/hash.h"
#include "failing_allocator.h"
#include "os/os.h"

#include <stdio.h>

// The spec of scale(f32[4,8]) and its key, filled in by set_up.
static const char scale_spec[] = "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"factor\":2.0,\"x\":{"
                                 "\"dtype\":\"float32\",\"shape\":[4,8]}},"
                                 "\"method\":null}";

typedef struct exchange {
    fixture *runtime;
    failing_allocator memory;
    hone_store *store, *other;
    char key[HONE_KEY_SIZE];
    char lines[8000]; // "outcome what: reason\n" each
    hone_import_report report;
    hone_error err;
} exchange;

static inline void note_line(void *ctx, const hone_import_line *line)
{
    exchange *e = ctx;
    size_t used = strlen(e->lines);
    snprintf(
        e->lines + used, sizeof e->lines - used, "%s %s: %s\n", hone_import_outcome_name(line->outcome), line->what,
        line->reason);
}

static inline int exchange_set_up(void **state)
{
    exchange *e = calloc(1, sizeof *e);
    *state = e;
    if (e == NULL) return -1;
    e->runtime = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    hone_hash_key(scale_spec, strlen(scale_spec), e->key);
    const hone_allocator allocator = failing_allocator_of(&e->memory, -1);
    return hone_store_open(allocator, "memory:", &e->store, &e->err) == HONE_OK &&
                   hone_store_open(allocator, "memory:", &e->other, &e->err) == HONE_OK
               ? 0
               : -1;
}

static inline int exchange_tear_down(void **state)
{
    exchange *e = *state;
    hone_store_close(&e->store);
    hone_store_close(&e->other);
    close_fixture(e->runtime);
    long long live = atomic_load(&e->memory.live);
    free(e);
    return live == 0 ? 0 : -1;
}

static inline hone_status import_text(
    exchange *e, hone_store *store, const char *origin, hone_exchange format, const char *text, const hone_codec *codec)
{
    const hone_import_options options = {.struct_size = sizeof options, .codec = codec, .line = note_line, .ctx = e};
    hone_importer *importer = NULL;
    e->lines[0] = '\0';
    hone_status status = hone_importer_create(e->runtime->rt, &options, &importer, &e->err);
    if (status == HONE_OK) status = hone_importer_add(importer, origin, format, text, strlen(text), &e->err);
    if (status == HONE_OK) status = hone_importer_commit(importer, store, &e->report, &e->err);
    hone_importer_release(&importer);
    return status;
}

static inline char *export_text(exchange *e, hone_store *store, hone_exchange format)
{
    const hone_export_options options = {
        .struct_size = sizeof options, .format = format, .measurements = true, .line = note_line, .ctx = e};
    char *text = NULL;
    e->lines[0] = '\0';
    if (hone_export(store, &options, &text, NULL, &e->err) != HONE_OK) fail_msg("%s", e->err.message);
    return text;
}

static inline hone_store_stat count_of(exchange *e, hone_store *store)
{
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(store, &stat, &e->err), HONE_OK);
    return stat;
}

static inline hone_store_decision scale_decision(const exchange *e)
{
    return (hone_store_decision){
        .key = {.device = "cpu|x", .algorithm = "scale", .version = "1", .key = e->key, .spec = scale_spec},
        .call = "scale(f32[4,8])",
        .kernel = "fast",
        .platform = "native",
        .config = "{\"unroll\":2,\"layout\":\"row\"}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .time_ns = 1e-07,
        .evidence = "{\"time_ns\":1e-07,\"samples\":30,\"verified_against\":\"reference\"}",
        .environment = "{\"os\":\"Linux\"}",
    };
}

#endif
