// Calls a built-in operation: the first call goes down the chain, later ones are a table hit.
#include <hone/hone.h>

#include <stdio.h>

int main(void)
{
    hone_runtime *rt = NULL;
    hone_error err;
    if (hone_runtime_open(NULL, &rt, &err) != HONE_OK) {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
        return 1;
    }
    static float x[4][256], weight[256], y[4][256];
    for (int i = 0; i < 4 * 256; i++)
        x[i / 256][i % 256] = (float)(i % 7) - 3;
    for (int i = 0; i < 256; i++)
        weight[i] = 1;

    int64_t matrix[] = {4, 256}, row[] = {256};
    hone_tensor tx = hone_tensor_of(x, HONE_F32, 2, matrix);
    hone_tensor tw = hone_tensor_of(weight, HONE_F32, 1, row);
    hone_tensor ty = hone_tensor_of(y, HONE_F32, 2, matrix);
    hone_value args[] = {hone_of_tensor(&tx), hone_of_tensor(&tw), hone_of_tensor(&ty)}; // eps is left out: its default

    const hone_op *rms_norm = hone_op_find(rt, "rms_norm", &err);
    hone_status status = rms_norm == NULL ? err.status : hone_run(rms_norm, args, 3, NULL, &err);
    hone_decision decision;
    if (status == HONE_OK) status = hone_decide(rms_norm, args, 3, &decision, &err);
    if (status == HONE_OK)
        printf(
            "rms_norm ran on %s (%s): y[0][0] = %.4f\n", decision.kernel, hone_source_name(decision.source),
            (double)y[0][0]);
    else
        fprintf(stderr, "%s: %s\n", err.where, err.message);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
