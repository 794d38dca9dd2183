// The forms that a lowered program comes in: told by what the bytes hold, taken out of what they are wrapped in, and
// read into a graph.
#ifndef HONE_OFFLINE_FORMS_FORMS_H
#define HONE_OFFLINE_FORMS_FORMS_H

#include "hone/status.h"
#include "offline/graph.h"

typedef struct hone_form {
    const char *dialect; // "stablehlo", "hlo"
    const char *name;    // "StableHLO text", "HLO proto", ...
    bool text;           // its bytes are text, in which labels stand as they are printed
    // Reads bytes into an initialised graph. What does not fit the form is passed over, or ends the reading.
    void (*read)(hone_view bytes, hone_graph *graph);
} hone_form;

// A program's bytes without what they came in.
typedef struct hone_program_bytes {
    const hone_form *form;
    hone_view bytes;
    hone_buffer unpacked; // what bytes may point into; to be deinitialised by the caller
    bool cut;             // the bytes ended before what they were wrapped in did
} hone_program_bytes;

// Unpacks and tells the form. out->unpacked is initialised with the allocator, also on failure.
// Returns: HONE_OK; HONE_UNSUPPORTED (a known form that is not read, by name); HONE_CORRUPT (no form that is known; too
// large);
//          HONE_OUT_OF_MEMORY.
hone_status hone_program_open(
    const hone_allocator *allocator, const char *name, hone_view bytes, hone_program_bytes *out, hone_error *err);

// True when a label that begins at `label` stands in a string that says where an operation comes from: in no comment,
// and in no string that is something else.
bool hone_form_names_place(hone_view text, const char *label);

void hone_stablehlo_read(hone_view text, hone_graph *graph);
void hone_hlo_read(hone_view text, hone_graph *graph);
void hone_hlo_proto_read(hone_view bytes, hone_graph *graph);
void hone_bytecode_read(hone_view bytes, hone_graph *graph);
// What an operation of StableHLO does with its region of that number.
hone_graph_role hone_stablehlo_role(uint32_t opcode, uint32_t number);
// The bytecode that a blob of jax.export holds; empty if it is not such a blob. out_cut: its end is missing.
hone_view hone_jax_export_module(hone_view bytes, bool *out_cut);
// True for the line that HLO text begins with.
bool hone_graph_is_hlo_head(hone_view line);
// The HloModuleProto in bytes: they themselves, or what a HloProto or a snapshot around it holds. Empty: there is none.
hone_view hone_hlo_proto_module(hone_view bytes);
// The trips of a loop that XLA wrote into its backend_config; -1: it wrote none.
int64_t hone_hlo_trip_count(hone_view config);

#endif
