// y = factor * x: each work-item has `each` elements, a work-group's side by side.
__kernel void scale(__global const float *x, __global float *y, int n, float factor)
{
    const int first = (int)get_group_id(0) * items * each + (int)get_local_id(0);
    for (int i = 0; i < each; i++)
        if (first + i * items < n) y[first + i * items] = factor * x[first + i * items];
}
