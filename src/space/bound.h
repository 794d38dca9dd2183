// A space that is bound to a call and a device: constraints lowered to one short program a parameter, and the walk
// over the configs that they accept.
//
// Every value that a constraint computes has a cell. A cell is computed when the last parameter that it depends on
// (in the order of the plan) is set, so what the inner parameters do not change is computed once for all of them;
// equal parts of different constraints share a cell; what depends on no parameter is computed when binding.
#ifndef HONE_SPACE_BOUND_H
#define HONE_SPACE_BOUND_H

#include "space/space.h"

#include <stdatomic.h>

// Behind the last hone_operation.
enum {
    HONE_STEP_CHECK = HONE_OPERATION_COUNT, // cell a refuses the config when it is false, and fails when it is an error
    HONE_STEP_FILTER                        // a part of an `and` that is known early: refuses when it is false
};

typedef struct hone_space_step {
    uint32_t operation;
    uint32_t to;   // a cell; CHECK, FILTER: the constraint
    uint32_t a, b; // cells
} hone_space_step;

typedef struct hone_space_program {
    hone_space_step *steps;
    size_t count;
} hone_space_program;

// The constraints lowered for one order of the parameters. Immutable once made.
typedef struct hone_space_plan {
    hone_arena arena;
    uint8_t order[HONE_MAX_PARAMETERS];
    hone_scalar *cells; // the first ones are the parameters, then constants and what is computed
    size_t cell_count;
    hone_space_program programs[HONE_MAX_PARAMETERS]; // run when that parameter is set
    bool refused;                                     // by a constraint that is false whatever the parameters are
    size_t refused_by;                                // that constraint
} hone_space_plan;

typedef struct hone_space_ranking hone_space_ranking;

struct hone_bound_space {
    hone_allocator allocator;
    hone_arena arena;
    hone_space *space;
    hone_scalar *names;                        // the values of the space's names; those of parameters are not read
    hone_space_plan plan;                      // in the order of the text
    uint32_t neighbours[HONE_MAX_PARAMETERS];  // bits: those that some constraint reads together with it
    uint8_t component_of[HONE_MAX_PARAMETERS]; // parameters that constraints connect; components vary independently
    size_t component_count;
    _Atomic(hone_space_ranking *) ranking; // made when it is first asked for; never changed after that
};

// Lowers the constraints of bound->space for an order of all its parameters. deinit also after a failure.
hone_status hone_space_plan_init(
    hone_space_plan *plan, const hone_bound_space *bound, const uint8_t *order, hone_error *err);
void hone_space_plan_deinit(hone_space_plan *plan);

typedef enum hone_verdict { HONE_ACCEPTED, HONE_REFUSED, HONE_FAILED } hone_verdict;

// A config with the positions of its values, which fit 16 bits.
typedef struct hone_space_point {
    hone_config config;
    uint16_t positions[HONE_MAX_PARAMETERS];
} hone_space_point;

// A walk over some of the parameters, depth first, in the order of a plan.
typedef struct hone_space_walk {
    const hone_bound_space *bound;
    const hone_space_plan *plan;
    hone_scalar *cells;
    uint8_t order[HONE_MAX_PARAMETERS]; // the parameters walked
    size_t depth;
    uint64_t budget; // values that may be tried
    hone_space_point point;
    const hone_space_step *stopped_at; // the check that refused or failed last
} hone_space_walk;

enum { HONE_ALL_COMPONENTS = -1 };

// Over the parameters of one component, or of all. deinit also after a failure.
//   plan  of bound; borrowed
hone_status hone_space_walk_init(
    hone_space_walk *walk, const hone_bound_space *bound, const hone_space_plan *plan, int component, hone_error *err);
void hone_space_walk_deinit(hone_space_walk *walk);
// Sets one parameter and runs its program.
hone_verdict hone_space_walk_set(hone_space_walk *walk, size_t parameter, uint32_t position);
// The words of a HONE_FAILED.
//   which  bits of the parameters that are set
hone_status hone_space_walk_failure(const hone_space_walk *walk, uint32_t which, hone_error *err);
// Calls visit for every accepted combination until it returns false or the budget is used up.
hone_status hone_space_walk_run(
    hone_space_walk *walk, bool (*visit)(void *ctx, const hone_space_walk *walk), void *ctx, hone_error *err);

// As hone_bound_space_enumerate, with the positions.
hone_status hone_space_enumerate_points(
    const hone_bound_space *bound, bool (*visit)(void *ctx, const hone_space_point *point), void *ctx, hone_error *err);

#endif
