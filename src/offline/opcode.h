// Operations that mean something to hone, in both dialects: they are compared as numbers.
#ifndef HONE_OFFLINE_OPCODE_H
#define HONE_OFFLINE_OPCODE_H

#include "base/text.h"

typedef enum hone_graph_opcode {
    OPCODE_ADD,
    OPCODE_ALL_REDUCE,
    OPCODE_ASYNC_START,
    OPCODE_BITCAST,
    OPCODE_BITCAST_CONVERT,
    OPCODE_CALL,
    OPCODE_CASE,
    OPCODE_COMPARE,
    OPCODE_COMPOSITE,
    OPCODE_CONDITIONAL,
    OPCODE_CONSTANT,
    OPCODE_CONVERT,
    OPCODE_CONVOLUTION,
    OPCODE_COPY,
    OPCODE_COPY_DONE,
    OPCODE_COPY_START,
    OPCODE_CUSTOM_CALL,      // HLO's
    OPCODE_CUSTOM_CALL_MLIR, // StableHLO's
    OPCODE_DIVIDE,
    OPCODE_DOT,
    OPCODE_DOT_GENERAL,
    OPCODE_DYNAMIC_SLICE, // StableHLO's
    OPCODE_EXPONENTIAL,
    OPCODE_FUSION,
    OPCODE_GATHER,
    OPCODE_GET_TUPLE_ELEMENT,
    OPCODE_IF,
    OPCODE_INFEED,
    OPCODE_IOTA,
    OPCODE_MAP,
    OPCODE_OPTIMIZATION_BARRIER,
    OPCODE_PARAMETER,
    OPCODE_REDUCE,
    OPCODE_REDUCE_SCATTER,
    OPCODE_REDUCE_WINDOW,
    OPCODE_RESHAPE,
    OPCODE_RETURN,
    OPCODE_RNG,
    OPCODE_RNG_BIT_GENERATOR,
    OPCODE_RSQRT,
    OPCODE_SCATTER,
    OPCODE_SELECT_AND_SCATTER,
    OPCODE_SLICE,
    OPCODE_SORT,
    OPCODE_SUBTRACT,
    OPCODE_TANH,
    OPCODE_TRANSPOSE,
    OPCODE_TUPLE,
    OPCODE_WHILE,
    OPCODE_COUNT // others have larger numbers, which are given as they are met
} hone_graph_opcode;

extern const hone_view hone_opcode_names[OPCODE_COUNT];
// Products are what calls that differ only in masks, scales and caps have in common.
extern const bool hone_opcode_products[OPCODE_COUNT];

// A set of them.
static inline bool hone_opcode_is_in(uint32_t opcode, const bool set[OPCODE_COUNT])
{
    return opcode < OPCODE_COUNT && set[opcode];
}

#endif
