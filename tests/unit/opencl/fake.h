// A folder of the test's own, the fake loader chosen in the environment, and what it wrote down.
#ifndef HONE_TESTS_OPENCL_FAKE_H
#define HONE_TESTS_OPENCL_FAKE_H

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
} fake;

// loader: "fake_opencl.so" or another one of tests/fakes; NULL: the machine's own, PoCL.
static inline void fake_choose(fake *f, const char *loader)
{
    static const char *const asked[] = {
        "FAKE_OPENCL_DEVICES", "FAKE_OPENCL_MEMORY", "FAKE_OPENCL_VERSION", "FAKE_OPENCL_FAULT"};
    char path[512];
    strcpy(f->folder, "/tmp/hone-opencl-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->log, sizeof f->log, "%s/log", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    snprintf(path, sizeof path, "%s/%s", HONE_TEST_FAKES, loader != NULL ? loader : "");
    setenv("HONE_OPENCL", loader != NULL ? path : "", 1);
    setenv("FAKE_OPENCL_LOG", f->log, 1);
    setenv("HONE_COMPILE_CACHE", f->cache, 1);
    setenv("POCL_CACHE_DIR", f->folder, 1);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        unsetenv(asked[i]);
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
