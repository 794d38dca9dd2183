// In double, point by point, for any strides.
#include "kernels/stencil/stencil.h"

static double point(const hone_stencil *job, int64_t z, int64_t y, int64_t x)
{
    bool inside = z >= 0 && z < job->depth && y >= 0 && y < job->height && x >= 0 && x < job->width;
    return inside ? (double)job->x[z * job->x_plane + y * job->x_row + x * job->x_step] : 0;
}

static double sum_at(const hone_stencil *job, int64_t z, int64_t y, int64_t x)
{
    static const int64_t offsets[STENCIL_POINTS][3] = {
        [STENCIL_CENTRE] = {0, 0, 0}, [STENCIL_LEFT] = {0, 0, -1}, [STENCIL_RIGHT] = {0, 0, 1},
        [STENCIL_UP] = {0, -1, 0},    [STENCIL_DOWN] = {0, 1, 0},  [STENCIL_BELOW] = {-1, 0, 0},
        [STENCIL_ABOVE] = {1, 0, 0},
    };
    double sum = 0;
    for (int i = 0; i < STENCIL_POINTS; i++)
        sum += (double)job->weights[i] * point(job, z + offsets[i][0], y + offsets[i][1], x + offsets[i][2]);
    return sum;
}

hone_status hone_stencil_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    hone_stencil job = hone_stencil_of(args);
    for (int64_t z = 0; z < job.depth; z++)
        for (int64_t y = 0; y < job.height; y++)
            for (int64_t x = 0; x < job.width; x++)
                job.y[z * job.y_plane + y * job.y_row + x * job.y_step] = (float)sum_at(&job, z, y, x);
    return HONE_OK;
}
