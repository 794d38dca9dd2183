// For any machine.
#include "kernels/vector/portable.h"

#include "kernels/stencil/body.h"

hone_status hone_stencil_portable(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution);
}
