// For AVX-512.
#include "kernels/vector/avx512.h"

#include "kernels/silu_mul/body.h"

hone_status hone_silu_mul_avx512(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_Y + 1, run_forward);
}

hone_status hone_silu_mul_vjp_avx512(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_VJP_D_UP + 1, run_backward);
}
