// For any machine.
#include "kernels/vector/portable.h"

#include "kernels/silu_mul/body.h"

hone_status hone_silu_mul_portable(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_Y + 1, run_forward);
}

hone_status hone_silu_mul_vjp_portable(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_VJP_D_UP + 1, run_backward);
}
