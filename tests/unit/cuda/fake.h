// A runtime on the fake driver, whose log the tests read.
#ifndef HONE_TESTS_CUDA_FAKE_H
#define HONE_TESTS_CUDA_FAKE_H

#include "hone/hone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fake {
    char folder[64], log[96], cache[96];
    char text[1 << 16]; // of the log
    hone_runtime *rt;
    hone_error err;
} fake;

// driver: "fake_cuda.so" or another one of tests/fakes.
static inline void fake_choose(fake *f, const char *driver)
{
    char path[512];
    strcpy(f->folder, "/tmp/hone-cuda-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->log, sizeof f->log, "%s/log", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    snprintf(path, sizeof path, "%s/%s", HONE_TEST_FAKES, driver);
    setenv("HONE_CUDA_DRIVER", path, 1);
    setenv("HONE_NVRTC", HONE_TEST_FAKES "/fake_nvrtc.so", 1);
    setenv("HONE_CUBLASLT", HONE_TEST_FAKES "/fake_cublaslt.so", 1);
    setenv("FAKE_CUDA_LOG", f->log, 1);
    setenv("HONE_COMPILE_CACHE", f->cache, 1);
    static const char *const faults[] = {"FAKE_CUDA_DEVICES",    "FAKE_CUDA_MEMORY", "FAKE_CUDA_INIT",
                                         "FAKE_CUDA_CAPABILITY", "FAKE_NVRTC_MS",    "FAKE_NVRTC_ABORTS"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        unsetenv(faults[i]);
}

static inline void fake_forget(fake *f)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
}

static inline const char *fake_read(fake *f)
{
    FILE *file = fopen(f->log, "r");
    size_t size = file != NULL ? fread(f->text, 1, sizeof f->text - 1, file) : 0;
    f->text[size] = '\0';
    if (file != NULL) fclose(file);
    return f->text;
}

static inline int fake_count(fake *f, const char *start)
{
    int count = 0;
    for (const char *at = strstr(fake_read(f), start); at != NULL; at = strstr(at + 1, start))
        count++;
    return count;
}

#endif
