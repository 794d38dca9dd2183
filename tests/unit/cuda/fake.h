// The fake driver, compiler and cuBLASLt of CUDA, chosen in the environment.
#ifndef HONE_TESTS_CUDA_FAKE_H
#define HONE_TESTS_CUDA_FAKE_H

#include "fake_log.h"

// driver: "fake_cuda.so" or another one of tests/fakes.
static inline void fake_choose(fake *f, const char *driver)
{
    static const char *const faults[] = {"FAKE_CUDA_DEVICES",    "FAKE_CUDA_MEMORY",     "FAKE_CUDA_INIT",
                                         "FAKE_CUDA_CAPABILITY", "FAKE_CUDA_CAPTURED",   "FAKE_NVRTC_MS",
                                         "FAKE_NVRTC_ABORTS",    "FAKE_CUDA_UNCAPTURED", NULL};
    char path[512];
    fake_begin(f, "FAKE_CUDA_LOG", faults);
    snprintf(path, sizeof path, "%s/%s", HONE_TEST_FAKES, driver);
    setenv("HONE_CUDA_DRIVER", path, 1);
    setenv("HONE_NVRTC", HONE_TEST_FAKES "/fake_nvrtc.so", 1);
    setenv("HONE_CUBLASLT", HONE_TEST_FAKES "/fake_cublaslt.so", 1);
}

#endif
