// Binds a plan for a loop of one shape: each round is one indirect call.
#include <hone/hone.h>

#include <stdio.h>

int main(void)
{
    static float a[64][128], b[128][32], c[64][32];
    for (int i = 0; i < 64 * 128; i++)
        a[i / 128][i % 128] = (float)(i % 5);
    for (int i = 0; i < 128 * 32; i++)
        b[i / 32][i % 32] = (float)(i % 3);
    int64_t shape_a[] = {64, 128}, shape_b[] = {128, 32}, shape_c[] = {64, 32};
    hone_tensor ta = hone_tensor_of(a, HONE_F32, 2, shape_a);
    hone_tensor tb = hone_tensor_of(b, HONE_F32, 2, shape_b);
    hone_tensor tc = hone_tensor_of(c, HONE_F32, 2, shape_c);
    hone_value args[] = {hone_of_tensor(&ta), hone_of_tensor(&tb), hone_of_tensor(&tc)};

    hone_runtime *rt = NULL;
    hone_error err;
    const hone_plan *plan = NULL;
    const hone_op *matmul = NULL;
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    if (status == HONE_OK) status = hone_op_get(rt, "matmul", &matmul, &err);
    if (status == HONE_OK) status = hone_bind(matmul, args, 3, &plan, &err);
    for (int round = 0; round < 1000 && status == HONE_OK; round++) {
        a[0][0] = (float)round;
        status = plan->run(plan, args, NULL); // a plan checks nothing again; a failure is only a status
        if (status != HONE_OK)
            err.where = "plan->run", snprintf(err.message, sizeof err.message, "%s", hone_status_name(status));
    }
    if (status == HONE_OK)
        printf("%s: c[0][0] = %.0f\n", plan->kernel->name, (double)c[0][0]);
    else
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_plan_release(&plan);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
