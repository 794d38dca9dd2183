// For AVX2, FMA and F16C.
#include "kernels/vector/avx2.h"

#include "kernels/flash_attention/streams.h"
#include "kernels/flash_attention/tiles.h"
#include "kernels/flash_attention/weigh.h"

hone_status hone_attention_tiles_avx2(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    return tiles_run(problem, plan, execution);
}

hone_status hone_attention_stream_avx2(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    return streams_run(problem, plan, execution);
}

void hone_attention_weigh_avx2(float *logits, int64_t count, double scale, double cap)
{
    weigh_logits(logits, count, scale, cap);
}
