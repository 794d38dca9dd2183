// tvm-ffi's C interface, as far as hone and an export use it. Built with FAKE_OLD it lacks the stream of the
// environment.
#include "fake_tvm_ffi.h"
#include "fake_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_fault(int number)
{
    (void)number;
    _Exit(1);
}

// As the real one does.
__attribute__((constructor)) static void handle_faults(void)
{
    signal(SIGSEGV, on_fault);
}

typedef struct error {
    uint64_t references;
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
    const char *kind;
    size_t kind_size;
    const char *message;
    size_t message_size;
    const char *backtrace;
    size_t backtrace_size;
    char text[256];
} error;

static const char backtrace[] = "  File \"fake.c\", line 7, in fail\n  File \"fake.c\", line 1, in main\n";

static _Thread_local error *raised;

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
{
    error *e = calloc(1, sizeof *e);
    if (e == NULL) abort();
    snprintf(e->text, sizeof e->text, "%s", message);
    e->references = 1;
    e->type = 67;
    e->kind = kind;
    e->kind_size = strlen(kind);
    e->message = e->text;
    e->message_size = strlen(e->text);
    e->backtrace = backtrace;
    e->backtrace_size = sizeof backtrace - 1;
    raised = e;
}

void TVMFFIErrorMoveFromRaised(void **out)
{
    *out = raised;
    raised = NULL;
}

int TVMFFIObjectDecRef(void *object)
{
    free(object);
    return 0;
}

#ifndef FAKE_OLD
static _Thread_local void *current;

int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id, void *stream, void **out_before)
{
    fake_log("environment %d:%d stream %s", device_type, device_id, stream == NULL ? "default" : "own");
    if (out_before != NULL) *out_before = current;
    current = stream;
    return 0;
}

void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id)
{
    (void)device_type;
    (void)device_id;
    return current;
}
#endif
