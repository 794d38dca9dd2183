// A runtime with one algorithm, twice(x) -> y, and a kernel of a plugin for it.
#ifndef HONE_TESTS_XLA_H
#define HONE_TESTS_XLA_H

#include "hone/hone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 6 };

// y is the memory that the result may lie in, where it is an argument.
#define DONATED                                                                                                        \
    "module { func.func public @main(%x: tensor<${x.type}>, %y: tensor<${y.type}> {tf.aliasing_output = 0 : i32})"     \
    " -> tensor<${y.type}> { %0 = stablehlo.add %x, %x : tensor<${x.type}> return %0 : tensor<${y.type}> } }"
#define COPIED                                                                                                         \
    "module { func.func public @main(%x: tensor<${n}x${x.element}>) -> tensor<${y.type}> {"                            \
    " %0 = stablehlo.add %x, %x : tensor<${x.type}> return %0 : tensor<${y.type}> } }"

typedef struct ground {
    char folder[64], log[96], cache[96];
    char text[1 << 16]; // of the log
    hone_runtime *rt;
    const hone_op *op;
    int64_t shape[1];
    _Alignas(64) float in[N];
    _Alignas(64) float out[N + 32];
    hone_tensor x, y;
    hone_value args[2];
    hone_error err;
} ground;

static hone_status twice(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const float *x = hone_tensor_data(args[0].as.tensor);
    float *y = hone_tensor_data(args[1].as.tensor);
    for (int64_t i = 0; i < hone_tensor_elements(hone_call_tensor(plan->call, 0)); i++)
        y[i] = 2 * x[i];
    return HONE_OK;
}

static inline void ground_place(ground *g, size_t skip)
{
    g->shape[0] = N;
    g->x = hone_tensor_of(g->in, HONE_F32, 1, g->shape);
    g->y = hone_tensor_of(g->out + skip, HONE_F32, 1, g->shape);
    g->args[0] = hone_of_tensor(&g->x);
    g->args[1] = hone_of_tensor(&g->y);
    memset(g->out, 0, sizeof g->out);
    for (int i = 0; i < N; i++)
        g->in[i] = (float)i + 0.5f;
}

static inline void ground_open(ground *g, const char *plugin)
{
    static const char *const faults[] = {"FAKE_PJRT_MINOR",    "FAKE_PJRT_SLOTS", "FAKE_PJRT_WITHOUT",
                                         "FAKE_PJRT_PLATFORM", "FAKE_PJRT_FAIL",  "FAKE_PJRT_CODE",
                                         "FAKE_PJRT_ABORT"};
    hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "twice(x: f32[n]) -> y: f32[n]", .reference = twice};
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    memset(g, 0, sizeof *g);
    strcpy(g->folder, "/tmp/hone-xla-XXXXXX");
    assert_non_null(mkdtemp(g->folder));
    snprintf(g->log, sizeof g->log, "%s/log", g->folder);
    snprintf(g->cache, sizeof g->cache, "%s/cache", g->folder);
    setenv("HONE_PJRT_PLUGIN", plugin, 1);
    setenv("FAKE_CUDA_LOG", g->log, 1);
    setenv("HONE_COMPILE_CACHE", g->cache, 1);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        unsetenv(faults[i]);
    assert_int_equal(hone_runtime_open(&options, &g->rt, &g->err), HONE_OK);
    if (hone_register_algorithm(g->rt, &algorithm, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    g->op = hone_op_find(g->rt, "twice", &g->err);
    assert_non_null(g->op);
    ground_place(g, 0);
}

static inline void ground_close(ground *g)
{
    char command[160];
    hone_runtime_close(&g->rt);
    snprintf(command, sizeof command, "rm -rf %s", g->folder);
    assert_int_equal(system(command), 0);
}

static inline void ground_register(ground *g, const char *name, hone_platform platform, const hone_code *code)
{
    hone_kernel kernel = {HONE_KERNEL,          .algorithm = "twice", .name = name,
                          .platform = platform, .backend = HONE_CPU,  .code = code};
    if (hone_register_kernels(g->rt, &kernel, 1, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
}

static inline hone_status ground_run(ground *g)
{
    return hone_run(g->op, g->args, 2, NULL, &g->err);
}

static inline bool ground_is_right(const ground *g)
{
    const float *y = hone_tensor_data(&g->y);
    for (int i = 0; i < N; i++)
        if (y[i] != 2 * g->in[i]) return false;
    return true;
}

static inline int ground_count(ground *g, const char *start)
{
    int count = 0;
    FILE *file = fopen(g->log, "r");
    size_t size = file != NULL ? fread(g->text, 1, sizeof g->text - 1, file) : 0;
    g->text[size] = '\0';
    if (file != NULL) fclose(file);
    for (const char *at = strstr(g->text, start); at != NULL; at = strstr(at + 1, start))
        count++;
    return count;
}

#endif
