// For AVX2, FMA and F16C.
#include "kernels/vector/avx2.h"

#include "kernels/stencil/body.h"

hone_status hone_stencil_avx2(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution);
}
