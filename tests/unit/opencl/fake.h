// The fake loader of OpenCL, chosen in the environment.
#ifndef HONE_TESTS_OPENCL_FAKE_H
#define HONE_TESTS_OPENCL_FAKE_H

#include "fake_log.h"

// loader: "fake_opencl.so" or another one of tests/fakes; NULL: the machine's own, PoCL.
static inline void fake_choose(fake *f, const char *loader)
{
    static const char *const faults[] = {
        "FAKE_OPENCL_DEVICES", "FAKE_OPENCL_PLATFORMS", "FAKE_OPENCL_RESERVES", "FAKE_OPENCL_MEMORY",
        "FAKE_OPENCL_VERSION", "FAKE_OPENCL_FAULT",     "FAKE_OPENCL_END",      NULL};
    char path[512];
    fake_begin(f, "FAKE_OPENCL_LOG", faults);
    snprintf(path, sizeof path, "%s/%s", HONE_TEST_FAKES, loader != NULL ? loader : "");
    setenv("HONE_OPENCL", loader != NULL ? path : "", 1);
    setenv("POCL_CACHE_DIR", f->folder.path, 1);
}

#endif
