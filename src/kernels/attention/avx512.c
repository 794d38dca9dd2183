// For AVX-512 F, BW, VL and DQ.
#include "kernels/vector/avx512.h"

#include "kernels/attention/body.h"

hone_status hone_attention_weights_avx512(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    return weights_run(problem, plan, execution);
}
