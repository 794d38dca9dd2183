// For AVX2, FMA and F16C.
#include "kernels/vector/avx2.h"

#include "kernels/silu_mul/body.h"

hone_status hone_silu_mul_avx2(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_Y + 1, run_forward);
}

hone_status hone_silu_mul_vjp_avx2(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_VJP_D_UP + 1, run_backward);
}
