// Programs that do not say where their operations come from still have functions with names, which JAX takes from the
// functions that were called: "flash_attention", "flash_attention_0".
#include "offline/graph.h"

// A function's name without a number that tells it from others of that name: "_0" in StableHLO, ".4" in HLO.
static hone_view without_number(hone_view name)
{
    size_t size = name.size;
    while (size > 0 && name.data[size - 1] >= '0' && name.data[size - 1] <= '9')
        size--;
    bool numbered = size > 1 && size < name.size && (name.data[size - 1] == '_' || name.data[size - 1] == '.');
    return (hone_view){name.data, numbered ? size - 1 : name.size};
}

void hone_graph_place_calls(hone_graph *graph, bool (*is_known)(void *ctx, hone_view name), void *ctx)
{
    for (size_t i = 0; i < graph->edge_count && !graph->failed; i++) {
        const hone_graph_edge *edge = &graph->edges[i];
        hone_view name = graph->bodies[edge->body].name;
        if (edge->role != GRAPH_CALL || graph->ops[edge->op].place != HONE_GRAPH_NONE) continue;
        // An algorithm may end with a number; HLO puts its own behind StableHLO's.
        for (int numbers = 0; numbers < 2 && !is_known(ctx, name); numbers++)
            name = without_number(name);
        if (!is_known(ctx, name)) continue;
        graph->ops[edge->op].place = hone_graph_place_named(graph, name);
    }
}
