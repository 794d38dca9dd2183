#include "kernels/kernels.h"

#include "kernels/tables.h"

static const hone_kernel_table *const tables[] = {
    &hone_matmul_table,
    &hone_rms_norm_table,
    &hone_softmax_table,
    &hone_flash_attention_table,
    &hone_scaled_dot_product_attention_table,
    &hone_attention_table,
    &hone_mean_pooling_table,
    &hone_rwkv4_table,
    &hone_stencil_table,
    &hone_reduction_table,
    &hone_silu_mul_table,
    &hone_silu_mul_vjp_table,
};

hone_status hone_kernels_register(hone_registry *registry, hone_error *err)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        hone_status status =
            hone_registry_defer(registry, tables[i]->algorithm, tables[i]->kernels, tables[i]->count, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}
