// A compiler that understands the heads of extern "C" kernels, and refuses a source that says "does not compile".
#include "fake_cuda.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct program {
    char *source, *result, *log;
} program;

EXPORT int nvrtcVersion(int *major, int *minor);
EXPORT int nvrtcGetNumSupportedArchs(int *count);
EXPORT int nvrtcGetSupportedArchs(int *archs);
EXPORT int nvrtcCreateProgram(program **, const char *, const char *, int, const char *const *, const char *const *);
EXPORT int nvrtcDestroyProgram(program **);
EXPORT int nvrtcCompileProgram(program *, int, const char *const *);
EXPORT int nvrtcGetProgramLogSize(program *, size_t *);
EXPORT int nvrtcGetProgramLog(program *, char *);
EXPORT int nvrtcGetCUBINSize(program *, size_t *);
EXPORT int nvrtcGetCUBIN(program *, char *);
EXPORT int nvrtcGetPTXSize(program *, size_t *);
EXPORT int nvrtcGetPTX(program *, char *);
EXPORT const char *nvrtcGetErrorString(int);

enum { COMPILATION = 6, SIZE = 1 << 16 };

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

static const int known[] = {75, 80, 86, 89, 90, 100, 120};

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = sizeof known / sizeof *known;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs)
{
    memcpy(archs, known, sizeof known);
    return 0;
}

int nvrtcCreateProgram(
    program **out,
    const char *source,
    const char *name,
    int headers,
    const char *const *texts,
    const char *const *names)
{
    (void)name;
    (void)headers;
    (void)texts;
    (void)names;
    *out = calloc(1, sizeof **out);
    (*out)->source = strdup(source);
    (*out)->result = calloc(1, SIZE);
    (*out)->log = calloc(1, 256);
    return 0;
}

int nvrtcDestroyProgram(program **gone)
{
    free((*gone)->source);
    free((*gone)->result);
    free((*gone)->log);
    free(*gone);
    *gone = NULL;
    return 0;
}

static unsigned size_of(const char *parameter, size_t length)
{
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)length, parameter);
    if (strstr(text, "tensor_map") != NULL) return 128;
    if (strchr(text, '*') != NULL || strstr(text, "long long") != NULL || strstr(text, "double") != NULL) return 8;
    return 4;
}

// "... void NAME(type a, type b)" as "function NAME 8 4".
static const char *put_function(const char *head, char *out, size_t *used)
{
    static const char bounds[] = " __launch_bounds__(";
    if (strncmp(head, bounds, strlen(bounds)) == 0) head = strchr(head, ')') + 1;
    const char *open = strchr(head, '('), *close = open != NULL ? strchr(open, ')') : NULL;
    if (close == NULL) return NULL;
    const char *name = open;
    while (name > head && name[-1] != ' ')
        name--;
    *used += (size_t)snprintf(out + *used, SIZE - *used, "function %.*s", (int)(open - name), name);
    for (const char *at = open + 1; at < close;) {
        size_t length = strcspn(at, ",)");
        *used += (size_t)snprintf(out + *used, SIZE - *used, " %u", size_of(at, length));
        at += length + 1;
    }
    *used += (size_t)snprintf(out + *used, SIZE - *used, "\n");
    return close;
}

// FAKE_NVRTC_MS: what a compilation takes. FAKE_NVRTC_ABORTS: the option that it does not survive.
static void work(int count, const char *const *options)
{
    const char *ms = getenv("FAKE_NVRTC_MS"), *aborts = getenv("FAKE_NVRTC_ABORTS");
    if (ms != NULL) nanosleep(&(struct timespec){atol(ms) / 1000, atol(ms) % 1000 * 1000000}, NULL);
    for (int i = 0; i < count && aborts != NULL; i++)
        if (strcmp(options[i], aborts) == 0) abort();
}

// A macro that nobody reads leaves nothing behind; hone's own do.
static bool leaves_traces(const char *source, const char *option)
{
    char name[128];
    if (strncmp(option, "-D", 2) != 0 || strncmp(option, "-Dhone_", 7) == 0) return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(option + 2, "="), option + 2);
    return strstr(source, name) != NULL;
}

int nvrtcCompileProgram(program *p, int count, const char *const *options)
{
    static const char mark[] = "__global__ void";
    fake_log("compile %d", count);
    work(count, options);
    fake_log("done");
    if (strstr(p->source, "does not compile") != NULL) {
        snprintf(p->log, 256, "a.cu(3): error: identifier \"nonsense\" is undefined\n1 error detected\n");
        return COMPILATION;
    }
    size_t used = (size_t)snprintf(p->result, SIZE, FAKE_MAGIC);
    for (int i = 0; i < count; i++)
        if (leaves_traces(p->source, options[i]))
            used += (size_t)snprintf(p->result + used, SIZE - used, "option %s\n", options[i]);
    for (const char *at = strstr(p->source, mark); at != NULL; at = at != NULL ? strstr(at, mark) : NULL)
        at = put_function(at + strlen(mark), p->result, &used);
    return 0;
}

int nvrtcGetProgramLogSize(program *p, size_t *size)
{
    *size = strlen(p->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(program *p, char *log)
{
    strcpy(log, p->log);
    return 0;
}

int nvrtcGetCUBINSize(program *p, size_t *size)
{
    *size = strlen(p->result) + 1;
    return 0;
}

int nvrtcGetCUBIN(program *p, char *binary)
{
    strcpy(binary, p->result);
    return 0;
}

int nvrtcGetPTXSize(program *p, size_t *size)
{
    return nvrtcGetCUBINSize(p, size);
}

int nvrtcGetPTX(program *p, char *ptx)
{
    return nvrtcGetCUBIN(p, ptx);
}

const char *nvrtcGetErrorString(int result)
{
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "an error";
}
