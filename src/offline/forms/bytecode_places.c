// Where operations of bytecode come from: locations are attributes that name others by number.
#include "offline/forms/bytecode.h"

enum { LOCATION_STEPS = 256, LOCATION_PENDING = 64 };

// Locations that are still to be looked into, the next one last.
typedef struct pending {
    uint64_t locations[LOCATION_PENDING];
    size_t count;
} pending;

static void push(pending *p, uint64_t location)
{
    if (p->count < LOCATION_PENDING) p->locations[p->count++] = location;
}

// The locations of a list, the first of them to be looked into first.
static void push_list(pending *p, hone_cursor c, uint64_t count)
{
    size_t first = p->count;
    uint64_t location;
    for (; count > 0 && hone_bytecode_varint(&c, &location); count--)
        push(p, location);
    for (size_t a = first, b = p->count; a + 1 < b; a++, b--) {
        uint64_t swapped = p->locations[a];
        p->locations[a] = p->locations[b - 1];
        p->locations[b - 1] = swapped;
    }
}

// The path of a location: the first name with a label on the way from the outermost name inwards, callees before
// callers, else the first name. Steps are bounded: a damaged file's locations may go in circles.
hone_view hone_bytecode_path(const hone_bytecode *code, const hone_graph *graph, uint64_t location)
{
    pending p = {.count = 0};
    hone_view path = {0};
    push(&p, location);
    for (int steps = 0; p.count > 0 && steps < LOCATION_STEPS; steps++) {
        hone_cursor c;
        uint64_t number;
        hone_bytecode_kind kind = hone_bytecode_attribute(code, p.locations[--p.count], &c);
        if (kind == KIND_CALL_SITE) push_list(&p, c, 2);
        if (kind == KIND_FUSED && hone_bytecode_varint(&c, &number)) push_list(&p, c, number);
        if (kind != KIND_NAME || !hone_bytecode_varint(&c, &number)) continue;
        hone_view name = hone_bytecode_text(code, number);
        bool labelled = hone_graph_has_label(graph, name);
        if (labelled || path.size == 0) path = name;
        if (labelled) break;
        push_list(&p, c, 1);
    }
    return path;
}

// Names that no operation stands under any more: merged operations have left them in the tables.
void hone_bytecode_keep_loose(const hone_bytecode *code, hone_graph *graph)
{
    hone_cursor c;
    uint64_t name;
    for (uint64_t i = 0; i < code->attribute_count; i++) {
        if (hone_bytecode_attribute(code, i, &c) != KIND_NAME || !hone_bytecode_varint(&c, &name)) continue;
        hone_view text = hone_bytecode_text(code, name);
        if (hone_graph_has_label(graph, text)) hone_graph_add_loose(graph, text);
    }
}
