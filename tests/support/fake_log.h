// A folder of the test's own, a compile cache in it, and what a fake driver wrote down there.
#ifndef HONE_TESTS_FAKE_LOG_H
#define HONE_TESTS_FAKE_LOG_H

#include "hone/hone.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fake {
    temporary_folder folder;
    char log[TEMPORARY_PATH_SIZE], cache[TEMPORARY_PATH_SIZE];
    char text[1 << 16]; // of the log
    hone_runtime *rt;
    hone_error err;
} fake;

// Makes the folder. variable: which the fake takes the path of its log from; faults, NULL-ended: those that are not
// asked for.
static inline void fake_begin(fake *f, const char *variable, const char *const *faults)
{
    assert_int_equal(temporary_folder_make(&f->folder), 0);
    snprintf(f->log, sizeof f->log, "%s/log", f->folder.path);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder.path);
    setenv(variable, f->log, 1);
    setenv("HONE_COMPILE_CACHE", f->cache, 1);
    for (; *faults != NULL; faults++)
        unsetenv(*faults);
}

static inline void fake_forget(fake *f)
{
    temporary_folder_remove(&f->folder);
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
