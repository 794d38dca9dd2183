// For AVX2, FMA and F16C.
#include "kernels/vector/avx2.h"

#include "kernels/attention/body.h"

hone_status hone_attention_weights_avx2(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    return weights_run(problem, plan, execution);
}
