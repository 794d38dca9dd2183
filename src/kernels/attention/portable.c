// For any machine.
#include "kernels/vector/portable.h"

#include "kernels/attention/body.h"

hone_status hone_attention_weights_portable(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    return weights_run(problem, plan, execution);
}
