// A ground for contests: a registry with the subjects, a device, a pool of workers.
#ifndef HONE_TEST_TUNE_ARENA_H
#define HONE_TEST_TUNE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "subjects.h"
#include "tune/tuner.h"

typedef struct ground {
    hone_registry *registry;
    hone_log log;
    hone_tune_environment environment;
    hone_tune_options options;
    hone_contest contest;
    hone_error err;
} ground;

// Built-in subjects, spawned workers.
int ground_setup(void **state);
// The same subjects as functions of this program.
int ground_setup_hosts(void **state);
int ground_teardown(void **state);

// ThreadSanitizer keeps a thread of its own in every process, which then cannot fork: there is nothing to test.
void skip_where_nothing_can_fork(void);
// Tunes the call of scale_SUBJECT over 1000 floats.
hone_status ground_tune(ground *g, const char *subject);
hone_status ground_tune_text(ground *g, const char *call_text);
// The contest's row of a kernel.
const hone_contest_kernel *ground_row(const ground *g, const char *kernel);
void assert_winner(const ground *g, const char *kernel);
// The kernel was rejected as of this kind and of no other, and said something.
void assert_rejected(const ground *g, const char *kernel, hone_failure failure);

#endif
