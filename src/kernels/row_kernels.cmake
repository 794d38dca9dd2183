# Kernels over rows and attention: written over kernels/vector, so that each folder has one file an instruction set.
set(ROW_KERNELS)
foreach(folder rms_norm softmax flash_attention)
    list(APPEND ROW_KERNELS ${folder}/table.c ${folder}/reference.c ${folder}/portable.c ${folder}/avx2.c ${folder}/avx512.c)
    hone_kernel_flags(HONE_PORTABLE ${folder}/portable.c)
    hone_kernel_flags(HONE_AVX2 ${folder}/avx2.c)
    hone_kernel_flags(HONE_AVX512 ${folder}/avx512.c)
endforeach()
list(APPEND ROW_KERNELS
    flash_attention/problem.c flash_attention/run.c flash_attention/compose.c scaled_dot_product_attention/table.c)
hone_kernel_flags(HONE_PORTABLE rms_norm/reference.c softmax/reference.c flash_attention/reference.c flash_attention/problem.c)
