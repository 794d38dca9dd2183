// What the fuzz targets of lowered programs check of bytes: they are read or refused, and what was read holds together.
#ifndef HONE_TESTS_FUZZ_PROGRAM_H
#define HONE_TESTS_FUZZ_PROGRAM_H

#include "base/memory.h"
#include "offline/find.h"
#include "offline/forms/forms.h"
#include "offline/offline.h"
#include "platforms/platform.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check_view(hone_view text, hone_view view)
{
    if (view.size > 0 && (view.data < text.data || view.data + view.size > text.data + text.size)) abort();
}

static void check_graph(hone_view text, const hone_graph *graph)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        const hone_graph_op *op = &graph->ops[i];
        check_view(text, graph->bare ? (hone_view){0} : hone_graph_detail_of(graph, (uint32_t)i)->literal);
        if (op->body >= graph->body_count) abort();
        for (uint32_t k = 0; k < op->operand_count; k++) {
            uint32_t value = graph->operands[op->first_operand + k];
            if (value != HONE_GRAPH_NONE && hone_graph_source(graph, value) >= graph->value_count) abort();
        }
    }
}

// The reader by itself: the bytes are taken for its form whatever they begin with.
static void check_reader(hone_view text, void (*read)(hone_view text, hone_graph *graph))
{
    hone_allocator allocator = hone_allocator_system();
    hone_graph graph;
    hone_finds finds = {0};
    hone_graph_init(&graph, &allocator);
    read(text, &graph);
    hone_graph_finish(&graph);
    check_graph(text, &graph);
    if (!hone_find_calls(&graph, &finds)) abort();
    for (size_t i = 0; i < finds.count; i++)
        for (uint32_t v = 0; v < finds.items[i].view_count; v++)
            for (uint32_t k = 0; k < finds.items[i].views[v].count; k++)
                if (!graph.bare) check_view(text, finds.items[i].views[v].types[k]); // else they are the graph's own
    hone_free(&allocator, finds.items);
    hone_graph_deinit(&graph);
}

static void check_operations(const hone_program *program)
{
    for (size_t i = 0; i < hone_program_operations(program); i++) {
        const hone_operation *o = hone_program_operation(program, i);
        if (o->algorithm == NULL || o->label == NULL || o->tunable != (o->reason == NULL) ||
            (o->call == NULL) != (o->call_key == NULL))
            abort();
    }
}

// The whole way, with two algorithms that calls may match.
static void check_program(hone_view text)
{
    static const char *const signatures[] = {
        "mean_pooling(x: T[b, n, c], *, chunk_size: i64 = 32) -> y: T[b, c] where T in f32, f16, bf16",
        "x(a: T[n], b: T[n]?) -> c: T[n] where T in f32, bf16",
    };
    hone_offline_environment environment = {.allocator = hone_allocator_system()};
    hone_program *program = NULL;
    hone_error err = {0};
    if (hone_registry_create(&environment.allocator, hone_platform_facts_of, NULL, &environment.registry, &err) !=
        HONE_OK)
        abort();
    for (size_t i = 0; i < 2; i++) {
        hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = signatures[i]};
        if (hone_registry_add_algorithm(environment.registry, &algorithm, true, &err) != HONE_OK) abort();
    }
    hone_status status = hone_offline_read(&environment, "fuzz", text.data, text.size, &program, &err);
    if ((status == HONE_OK) != (program != NULL) || (status != HONE_OK && err.message[0] == '\0')) abort();
    if (program != NULL) check_operations(program);
    hone_program_release(&program);
    hone_registry_destroy(&environment.registry);
}

#endif
