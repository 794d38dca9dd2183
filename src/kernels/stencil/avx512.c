// For AVX-512 F, BW, VL and DQ.
#include "kernels/vector/avx512.h"

#include "kernels/stencil/body.h"

hone_status hone_stencil_avx512(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution);
}
