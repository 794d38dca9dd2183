#include "simulate/inside.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "os/os.h"

#include <string.h>

static const char where[] = "recorded";

enum { LARGEST_FILE = 1 << 30 };

// Rows ----------------------------------------------------------------------------------------------------------------

static uint32_t *find_slot(const hone_recorded *recorded, const hone_config *config)
{
    hone_assert(recorded->slot_count > recorded->count); // a free slot ends the search
    size_t size = config->count * sizeof config->values[0], mask = recorded->slot_count - 1;
    for (size_t i = hone_hash64(config->values, size) & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &recorded->slots[i];
        if (*slot == 0 || memcmp(recorded->configs[*slot - 1].values, config->values, size) == 0) return slot;
    }
}

static bool grow_slots(hone_recorded *recorded)
{
    size_t count = recorded->slot_count > 0 ? recorded->slot_count * 2 : 64;
    if (recorded->count + 1 < recorded->slot_count / 2) return true;
    uint32_t *slots = hone_alloc_array(&recorded->allocator, count, sizeof *slots);
    if (slots == NULL) return false;
    hone_free(&recorded->allocator, recorded->slots);
    recorded->slots = slots;
    recorded->slot_count = count;
    for (size_t i = 0; i < recorded->count; i++)
        *find_slot(recorded, &recorded->configs[i]) = (uint32_t)i + 1;
    return true;
}

hone_status hone_recorded_add(hone_recorded *recorded, const hone_recorded_row *row, hone_error *err)
{
    const hone_allocator *allocator = &recorded->allocator;
    size_t needed = recorded->count + 1;
    if (!grow_slots(recorded) ||
        !hone_grow(allocator, &recorded->rows, &recorded->row_capacity, needed, sizeof *recorded->rows) ||
        !hone_grow(allocator, &recorded->configs, &recorded->config_capacity, needed, sizeof *recorded->configs))
        return hone_fail_memory(err, where);
    uint32_t *slot = find_slot(recorded, &row->config);
    if (*slot == 0) *slot = (uint32_t)++recorded->count;
    recorded->rows[*slot - 1] = *row;
    recorded->configs[*slot - 1] = row->config;
    return HONE_OK;
}

// Reading -------------------------------------------------------------------------------------------------------------

// As it stands, or when that is no JSON what is whole of it.
static hone_status parse_text(
    hone_recorded *recorded, const char *name, hone_buffer *text, json_t **out, hone_error *err)
{
    size_t whole;
    char closing[3];
    bool mended = text->size > 0 && hone_recorded_mend(text->data, text->size, &whole, closing);
    hone_status status = hone_json_parse(hone_buffer_string(text), text->size, out, err);
    if (status == HONE_OK) return HONE_OK;
    if (status != HONE_CORRUPT || !mended) return hone_fail_prefix(err, status, "%s", name);
    text->size = whole;
    hone_buffer_text(text, closing);
    if (text->failed) return hone_fail_memory(err, where);
    recorded->cut = true;
    status = hone_json_parse(text->data, text->size, out, err);
    return status == HONE_OK ? HONE_OK : hone_fail_prefix(err, status, "%s", name);
}

static hone_status read_bytes(
    hone_recorded *recorded, const char *name, const void *bytes, size_t size, hone_error *err)
{
    hone_buffer text;
    json_t *document = NULL;
    hone_buffer_init(&text, recorded->allocator);
    hone_status status = hone_recorded_unpack(name, bytes, size, &text, &recorded->cut, err);
    if (status == HONE_OK) status = parse_text(recorded, name, &text, &document, err);
    hone_buffer_deinit(&text);
    if (status == HONE_OK) status = hone_recorded_fill(recorded, name, document, err);
    json_decref(document);
    if (status == HONE_OK && recorded->count == 0)
        status = hone_fail(err, HONE_CORRUPT, where, "%s: there is no config in it", name);
    return status;
}

hone_status hone_recorded_parse(
    hone_allocator allocator, const char *name, const void *bytes, size_t size, hone_recorded **out, hone_error *err)
{
    *out = NULL;
    allocator = hone_allocator_given(allocator);
    hone_recorded *recorded = hone_alloc(&allocator, sizeof *recorded);
    if (recorded == NULL) return hone_fail_memory(err, where);
    recorded->allocator = recorded->arena.allocator = allocator;
    hone_status status = read_bytes(recorded, name, bytes, size, err);
    if (status == HONE_OK)
        *out = recorded;
    else
        hone_recorded_destroy(&recorded);
    return status;
}

hone_status hone_recorded_open(hone_allocator allocator, const char *path, hone_recorded **out, hone_error *err)
{
    hone_buffer bytes;
    *out = NULL;
    hone_buffer_init(&bytes, hone_allocator_given(allocator));
    hone_status status = hone_os_read_file(path, LARGEST_FILE, &bytes, err);
    if (status == HONE_OK)
        status = hone_recorded_parse(allocator, path, hone_buffer_string(&bytes), bytes.size, out, err);
    hone_buffer_deinit(&bytes);
    return status;
}

void hone_recorded_destroy(hone_recorded **recorded)
{
    if (recorded == NULL || *recorded == NULL) return;
    hone_recorded *dying = *recorded;
    *recorded = NULL;
    hone_allocator allocator = dying->allocator;
    hone_bound_space_release(&dying->bound);
    hone_space_release(&dying->space);
    hone_free(&allocator, dying->rows);
    hone_free(&allocator, dying->configs);
    hone_free(&allocator, dying->slots);
    hone_arena_destroy(&dying->arena);
    hone_free(&allocator, dying);
}

// Looking -------------------------------------------------------------------------------------------------------------

bool hone_recorded_is_cut(const hone_recorded *recorded)
{
    return recorded->cut;
}

const char *hone_recorded_device(const hone_recorded *recorded)
{
    return recorded->device;
}

const char *hone_recorded_kernel(const hone_recorded *recorded)
{
    return recorded->kernel;
}

hone_space *hone_recorded_space(const hone_recorded *recorded)
{
    return recorded->space;
}

const hone_bound_space *hone_recorded_bound(const hone_recorded *recorded)
{
    return recorded->bound;
}

size_t hone_recorded_count(const hone_recorded *recorded)
{
    return recorded->count;
}

const hone_recorded_row *hone_recorded_at(const hone_recorded *recorded, size_t index)
{
    return &recorded->rows[index];
}

const hone_config *hone_recorded_configs(const hone_recorded *recorded)
{
    return recorded->configs;
}

const hone_recorded_row *hone_recorded_find(const hone_recorded *recorded, const hone_config *config)
{
    if (config->count != hone_space_parameters(recorded->space)) return NULL;
    uint32_t slot = *find_slot(recorded, config);
    return slot == 0 ? NULL : &recorded->rows[slot - 1];
}

double hone_recorded_cost(const hone_recorded_row *row)
{
    return row->compile + row->verification + row->benchmark + row->framework;
}
