// The sources that devices compile: the .cu and .cl files of the folders, put into the library by the build.
#ifndef HONE_KERNELS_SOURCES_H
#define HONE_KERNELS_SOURCES_H

extern const char hone_source_rms_norm_rms_norm[];
extern const char hone_source_matmul_simt[];
extern const char hone_source_matmul_tensor_core[];
extern const char hone_source_rms_norm_opencl[];
extern const char hone_source_matmul_opencl[];

#endif
