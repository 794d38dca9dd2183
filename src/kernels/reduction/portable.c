// For any machine.
#include "kernels/vector/portable.h"

#include "kernels/reduction/body.h"

hone_status hone_reduction_portable(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution);
}
