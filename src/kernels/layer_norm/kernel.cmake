if(DNNL_INCLUDE)
    set(onednn onednn.c)
else()
    set(onednn onednn_absent.c)
endif()
hone_kernel(
    TABLES layer_norm
    SOURCES table.c cuda.c ${onednn}
    PORTABLE reference.c
    EACH_SET body.h
    CUDA element.cuh row.cuh range.cuh layer_norm.cu)
