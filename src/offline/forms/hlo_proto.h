// Shapes and literals of HLO protos as HLO text has them.
#ifndef HONE_OFFLINE_FORMS_HLO_PROTO_H
#define HONE_OFFLINE_FORMS_HLO_PROTO_H

#include "base/memory.h"
#include "base/text.h"

// "f32[2,3]" of a ShapeProto, "()" of what is no array. data NULL: no memory.
hone_view hone_hlo_proto_type(hone_arena *arena, hone_view shape);
// The number that a LiteralProto of one element holds; empty: it holds more, or no number.
hone_view hone_hlo_proto_literal(hone_arena *arena, hone_view literal);

#endif
