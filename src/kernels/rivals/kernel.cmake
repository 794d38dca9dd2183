# The libraries of others, which kernels of matmul and softmax call.
if(DNNL_INCLUDE)
    set(onednn onednn.c onednn_matmul.c)
else()
    set(onednn onednn_absent.c)
endif()
hone_kernel(SOURCES loading.c core.c openblas.c libxsmm.c onednn3.c cublaslt.c cublaslt_library.c ${onednn})
