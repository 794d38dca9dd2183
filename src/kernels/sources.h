// The sources that devices compile: the .cu, .cl and .mlir files of the folders, put into the library by the build.
#ifndef HONE_KERNELS_SOURCES_H
#define HONE_KERNELS_SOURCES_H

extern const char hone_source_rms_norm_rms_norm_cu[];
extern const char hone_source_matmul_simt_cu[];
extern const char hone_source_matmul_tensor_core_cu[];
extern const char hone_source_matmul_wgmma_cu[];
extern const char hone_source_matmul_matmul_mlir[];
extern const char hone_source_rms_norm_rms_norm_mlir[];
extern const char hone_source_rms_norm_opencl[];
extern const char hone_source_matmul_opencl[];

#endif
