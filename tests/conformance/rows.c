#include "rows.h"

#include "base/hash.h"
#include "failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

const char *const row_samples[SAMPLE_COUNT] = {"right",   "configured", "shifted", "wrong",    "overrun",
                                               "failing", "hanging",    "broken",  "mislisted"};

const char *row_algorithm(sample k)
{
    return k == SHIFTED ? "shift" : "scale";
}

// Parameters of which "spare" reaches nothing, "used" the code, and "wide" the launch, where there is one.
#define SPACE       ", \"space\": [\"spare: 0 | 1\", \"used: 1 | 2\", \"wide: 1 | 2\"]"
#define WIDE_LAUNCH SPACE ", \"grid\": \"ceildiv(n, 64) * wide\", \"block\": \"64\""
#define PAST        "past the end of y"
#define OTHER       "the reference says"
#define ENDED       "no answer within"
#define CUDA_C      "extern \"C\" __global__ void "

// Kernels by names that the fake driver knows; what stands in them the fake compiler does not read.
#define CUDA_KERNEL(name) CUDA_C name "(const float *x, float *y, int n) {}\n"
#define CUDA_VARIANTS                                                                                                  \
    [RIGHT] = {.text = CUDA_KERNEL("triple"), .entry = "triple"},                                                      \
    [CONFIGURED] = {.text = CUDA_KERNEL("triple") "// used\n", .entry = "triple", .fields = WIDE_LAUNCH},              \
    [SHIFTED] =                                                                                                        \
        {.text = CUDA_C "shifted(const float *x, float *y, int n, float alpha) {} // used\n",                          \
         .entry = "shifted",                                                                                           \
         .arguments = "x, y, i32(n), f32(alpha)",                                                                      \
         .fields = WIDE_LAUNCH},                                                                                       \
    [WRONG] = {.text = CUDA_KERNEL("wrong"), .entry = "wrong", .loses = OTHER},                                        \
    [OVERRUN] = {.text = CUDA_KERNEL("overrun"), .entry = "overrun", .loses = PAST},                                   \
    [FAILING] = {.text = CUDA_KERNEL("illegal"), .entry = "illegal", .loses = "CUDA_ERROR_ILLEGAL_ADDRESS (700)"},     \
    [HANGING] = {.text = CUDA_KERNEL("hang"), .entry = "hang", .loses = ENDED},                                        \
    [BROKEN] =                                                                                                         \
        {.text = CUDA_KERNEL("triple") "does not compile\n",                                                           \
         .entry = "triple",                                                                                            \
         .refused = "identifier \"nonsense\" is undefined",                                                            \
         .loses = "nonsense"},                                                                                         \
    [MISLISTED] = {                                                                                                    \
        .text = CUDA_KERNEL("triple"),                                                                                 \
        .entry = "triple",                                                                                             \
        .arguments = "x, y, i64(n)",                                                                                   \
        .refused = "argument 2 has 4 bytes at 16 in the function, and 8 at 16",                                        \
        .loses = "argument 2 has 4 bytes"}

// Of C, whoever wrote it.
#define NATIVE_VARIANTS                                                                                                \
    [RIGHT] = {.text = C_KERNEL("y[i] = 3 * x[i];"), .entry = "scale"},                                                \
    [CONFIGURED] = {.text = C_KERNEL("y[i] = (n == 1000 ? used : 3) * x[i];"), .entry = "scale", .fields = SPACE},     \
    [SHIFTED] =                                                                                                        \
        {.text = "void shift(const float *x, double alpha, float *y, long n) {"                                        \
                 " for (long i = 0; i < n; i++) y[i] = (float)(used * x[i] + alpha); }\n",                             \
         .entry = "shift",                                                                                             \
         .arguments = "x, f64(alpha), y, i64(n)",                                                                      \
         .fields = SPACE},                                                                                             \
    [WRONG] = {.text = C_KERNEL("y[i] = 2 * x[i];"), .entry = "scale", .loses = OTHER},                                \
    [OVERRUN] = {.text = C_KERNEL("y[n + 4] = y[i] = 3 * x[i];"), .entry = "scale", .loses = PAST},                    \
    [FAILING] = {.text = C_KERNEL("*(volatile int *)8 = 1;"), .entry = "scale", .loses = "signal"},                    \
    [HANGING] =                                                                                                        \
        {.text = C_KERNEL("for (volatile int busy = 1; busy;) y[i] = 3 * x[i];"), .entry = "scale", .loses = ENDED},   \
    [BROKEN] = {.text = C_KERNEL("nonsense;"), .entry = "scale", .refused = "nonsense", .loses = "nonsense"},          \
    [MISLISTED] = {                                                                                                    \
        .text = C_KERNEL("y[i] = 3 * x[i];"),                                                                          \
        .entry = "scale",                                                                                              \
        .arguments = "x, y, i64(z)",                                                                                   \
        .refused = "'z'",                                                                                              \
        .loses = "'z'"}

// A row of a platform that compiles C for the processor.
#define C_ROW(NAME, PLATFORM)                                                                                          \
    {                                                                                                                  \
        .name = (NAME), .platform = (PLATFORM), .device = HONE_DEVICE_CPU, .place = "cpu:0", .backend = "cpu",         \
        .extension = "c", .arguments = "x, y, i64(n)", .fields = "", .factor = 3, .variants = {NATIVE_VARIANTS},       \
    }

#define OPENCL_SHIFTED                                                                                                 \
    [SHIFTED] = {                                                                                                      \
        .text = "__kernel void shifted(__global const float *x, __global float *y, int n, float alpha) {"              \
                " int i = get_global_id(0); if (i < n) y[i] = used * x[i] + alpha; }\n",                               \
        .entry = "shifted",                                                                                            \
        .arguments = "x, y, i32(n), f32(alpha)",                                                                       \
        .fields = WIDE_LAUNCH}
#define OPENCL_KERNEL(body)                                                                                            \
    "__kernel void triple(__global const float *x, __global float *y, int n) { int i = get_global_id(0); " body " }\n"
#define OPENCL_RIGHT OPENCL_KERNEL("if (i < n) y[i] = 3 * x[i];")
#define OPENCL_MISLISTED                                                                                               \
    [MISLISTED] = {                                                                                                    \
        .text = OPENCL_RIGHT,                                                                                          \
        .entry = "triple",                                                                                             \
        .arguments = "x, y",                                                                                           \
        .refused = "the kernel takes 3 arguments, 2 are listed",                                                       \
        .loses = "takes 3 arguments"}

#define MODULE(parameters, body)                                                                                       \
    "module { func.func public @main(" parameters ") -> tensor<${y.type}> { " body                                     \
    " return %0 : tensor<${y.type}> } }\n"
#define MODULE_RIGHT                                                                                                   \
    MODULE(                                                                                                            \
        "%x: tensor<${x.type}>, %y: tensor<${y.type}> {tf.aliasing_output = 0 : i32}",                                 \
        "%0 = stablehlo.add %x, %x : tensor<${x.type}>")
// What stands behind it is for the fake, which reads no lines of a body.
#define MODULE_SHIFTED                                                                                                 \
    [SHIFTED] = {                                                                                                      \
        .text = MODULE(                                                                                                \
            "%x: tensor<${x.type}>, %a: tensor<f32>, %y: tensor<${y.type}>",                                           \
            "%u = stablehlo.constant dense<${used}.0> : tensor<${x.type}> "                                            \
            "%m = stablehlo.multiply %x, %u : tensor<${x.type}> "                                                      \
            "%b = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<${x.type}> "                      \
            "%0 = stablehlo.add %m, %b : tensor<${x.type}>") "// shifted ${used}\n",                                   \
        .arguments = "x, f32(alpha), y",                                                                               \
        .fields = SPACE}
#define MODULE_MISLISTED                                                                                               \
    [MISLISTED] = {                                                                                                    \
        .text = MODULE_RIGHT,                                                                                          \
        .arguments = "x",                                                                                              \
        .refused = "the module takes 2 arguments, 1 are listed",                                                       \
        .loses = "takes 2 arguments"}
// For the real plugin. A loop whose end nobody can work out, for its bound comes with the data.
#define LOOP                                                                                                           \
    "%s = stablehlo.constant dense<0.0> : tensor<f32> "                                                                \
    "%r = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0] : "                              \
    "(tensor<${x.type}>, tensor<f32>) -> tensor<f32> "                                                                 \
    "%w = stablehlo.while(%i = %r) : tensor<f32> cond { "                                                              \
    "%c = stablehlo.compare EQ, %i, %i : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %c : tensor<i1> "   \
    "} do { %d = stablehlo.sine %i : tensor<f32> stablehlo.return %d : tensor<f32> } "                                 \
    "%b = stablehlo.broadcast_in_dim %w, dims = [] : (tensor<f32>) -> tensor<${x.type}> "                              \
    "%0 = stablehlo.add %x, %b : tensor<${x.type}>"
#define PLUGIN_BROKEN                                                                                                  \
    [BROKEN] = {                                                                                                       \
        .text = MODULE(                                                                                                \
            "%x: tensor<${x.type}>, %y: tensor<${y.type}>",                                                            \
            "%0 = stablehlo.custom_call @no_such_call(%x) {api_version = 4 : i32, backend_config = {}} : "             \
            "(tensor<${x.type}>) -> tensor<${y.type}>"),                                                               \
        .refused = "no_such_call",                                                                                     \
        .loses = "no_such_call"}
#define FAKE_BROKEN                                                                                                    \
    [BROKEN] = {.text = "module { @main }\n", .refused = "the fake fails in parsing", .loses = "fails in parsing"}

#define C_KERNEL(body)                                                                                                 \
    "#include <stdint.h>\nvoid scale(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) " body     \
    " }\n"

// Samples that a row lacks: a source of null is a number, so that no scalar and no parameter reaches it; the binaries of
// opencl_fake keep no options, a cubin's parameters went into its code, and pallas loads what xla does: those are held to
// what they owe by PoCL, by the fake of cuda and by xla.
// The texts of ffi are what functions of the fake library are called; those of triton what its cubin's function is called:
// four letters in place of those of tests/unit/triton/data.
static const row rows[] = {
    {
        .name = "null",
        .platform = HONE_NULL,
        .device = HONE_DEVICE_CPU,
        .place = "cpu:0",
        .backend = "cpu",
        .extension = "txt",
        .arguments = "x, y",
        .fields = "",
        .factor = 3,
        .environment = {"HONE_PLATFORMS=native,null"},
        .variants =
            {
                [RIGHT] = {.text = "3\n"},
                [WRONG] = {.text = "2\n", .loses = OTHER},
                [FAILING] = {.text = "inf\n", .loses = "the factor is not finite"},
                [BROKEN] = {.text = "three\n", .refused = "'three\n' is not a source", .loses = "is not a source"},
                [MISLISTED] =
                    {.text = "3\n",
                     .arguments = "x",
                     .refused = "the result 'y' is not listed",
                     .loses = "is not listed"},
            },
    },
    C_ROW("native", HONE_NATIVE),
    C_ROW("tilelang", HONE_TILELANG),
    {
        .name = "opencl",
        .platform = HONE_OPENCL,
        .device = HONE_DEVICE_OPENCL,
        .place = "opencl:0",
        .backend = "any",
        .extension = "cl",
        .arguments = "x, y, i32(n)",
        .fields = ", \"grid\": \"ceildiv(n, 64)\", \"block\": \"64\"",
        .factor = 3,
        .devices = 2,

        .environment = {"POCL_DEVICES=pthread pthread", "HONE_OPENCL="},
        .variants =
            {
                [RIGHT] = {.text = OPENCL_RIGHT, .entry = "triple"},
                [CONFIGURED] =
                    {.text = OPENCL_KERNEL("if (i < n) y[i] = (n == 1000 ? used : 3) * x[i];"),
                     .entry = "triple",
                     .fields = WIDE_LAUNCH},
                OPENCL_SHIFTED,
                [WRONG] = {.text = OPENCL_KERNEL("if (i < n) y[i] = 2 * x[i];"), .entry = "triple", .loses = OTHER},
                [OVERRUN] =
                    {.text = OPENCL_KERNEL("if (i < n + 5) y[i] = 3 * x[i < n ? i : 0];"),
                     .entry = "triple",
                     .loses = PAST},
                [FAILING] =
                    {.text = OPENCL_KERNEL("if (n > 0) __builtin_trap();"), .entry = "triple", .loses = "signal"},
                [HANGING] =
                    {.text = OPENCL_KERNEL("volatile int busy = 1; while (busy) y[0] += 1;"),
                     .entry = "triple",
                     .loses = ENDED},
                [BROKEN] =
                    {.text = OPENCL_KERNEL("nonsense;"), .entry = "triple", .refused = "nonsense", .loses = "nonsense"},
                OPENCL_MISLISTED,
            },
    },
    {
        .name = "opencl_fake",
        .platform = HONE_OPENCL,
        .device = HONE_DEVICE_OPENCL,
        .place = "opencl:1",
        .backend = "any",
        .extension = "cl",
        .arguments = "x, y, i32(n)",
        .fields = ", \"grid\": \"ceildiv(n, 64)\", \"block\": \"64\"",
        .factor = 3,
        .devices = 2,

        // Another driver's device comes first; its own driver reserves 2 TiB.
        .environment =
            {"FAKE_OPENCL_PLATFORMS=2", "FAKE_OPENCL_RESERVES=2199023255552", "HONE_OPENCL=fakes/fake_opencl.so"},
        .variants =
            {
                [RIGHT] = {.text = OPENCL_RIGHT, .entry = "triple"},
                [BROKEN] =
                    {.text = "#error nonsense\n" OPENCL_RIGHT,
                     .entry = "triple",
                     .refused = "nonsense",
                     .loses = "nonsense"},
                OPENCL_MISLISTED,
            },
    },
    {
        .name = "cuda",
        .platform = HONE_CUDA,
        .device = HONE_DEVICE_CUDA,
        .place = "cuda:0",
        .backend = "gpu",
        .extension = "cu",
        .arguments = "x, y, i32(n)",
        .fields = ", \"grid\": \"ceildiv(n, 64)\", \"block\": \"64\"",
        .factor = 3,
        .devices = 2,

        .environment = {"FAKE_CUDA_DEVICES=2", "HONE_CUDA_DRIVER=fakes/fake_cuda.so", "HONE_NVRTC=fakes/fake_nvrtc.so"},
        .variants = {CUDA_VARIANTS},
    },
    {
        .name = "cute",
        .platform = HONE_CUTE,
        .device = HONE_DEVICE_CUDA,
        .place = "cuda:0",
        .backend = "gpu",
        .extension = "cu",
        .arguments = "x, y, i32(n)",
        .fields = ", \"grid\": \"ceildiv(n, 64)\", \"block\": \"64\"",
        .factor = 3,
        .devices = 2,

        .environment =
            {"FAKE_CUDA_DEVICES=2", "HONE_CUDA_DRIVER=fakes/fake_cuda.so", "HONE_NVRTC=fakes/fake_nvrtc.so",
             "HONE_CUTLASS_PATH=packages/cuda/cutlass_library/source", "CUDA_HOME=packages/cuda/nvidia/cu13"},
        .variants = {CUDA_VARIANTS},
    },
    {
        .name = "triton",
        .platform = HONE_TRITON,
        .device = HONE_DEVICE_CUDA,
        .place = "cuda:0",
        .backend = "gpu",
        .extension = "cubin",
        .arguments = "x, x, y, i32(n)",
        .fields = ", \"grid\": \"ceildiv(n, 64)\"",
        .factor = 2,
        .devices = 2,

        .environment = {"FAKE_CUDA_DEVICES=2", "HONE_CUDA_DRIVER=fakes/fake_cuda.so", "HONE_NVRTC=fakes/fake_nvrtc.so"},
        .variants =
            {
                [RIGHT] = {.text = "vadd"},
                [WRONG] = {.text = "vsub", .loses = OTHER},
                [OVERRUN] = {.text = "over", .loses = PAST},
                [FAILING] = {.text = "fail", .loses = "CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
                [HANGING] = {.text = "hang", .loses = ENDED},
                [BROKEN] =
                    {.text = "vadd",
                     .entry = "other",
                     .refused = "no function other; it has vadd",
                     .loses = "no function other"},
                [MISLISTED] =
                    {.text = "vadd",
                     .arguments = "x, y, i32(n)",
                     .refused = "the binary takes 6 parameters",
                     .loses = "takes 6 parameters"},
            },
    },
    {
        .name = "xla",
        .platform = HONE_XLA,
        .device = HONE_DEVICE_CPU,
        .place = "cpu:0",
        .backend = "cpu",
        .extension = "mlir",
        .arguments = "x, y",
        .fields = "",
        .factor = 2,

        .environment = {"HONE_PJRT_PLUGIN=packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
        .variants =
            {
                [RIGHT] = {.text = MODULE_RIGHT},
                [CONFIGURED] =
                    {.text = MODULE(
                         "%x: tensor<${x.type}>, %y: tensor<${y.type}>",
                         "%u = stablehlo.constant dense<${used}.0> : tensor<${x.type}> "
                         "%d = stablehlo.add %x, %x : tensor<${x.type}> "
                         "%s = stablehlo.add %d, %u : tensor<${x.type}> "
                         "%0 = stablehlo.subtract %s, %u : tensor<${x.type}>"),
                     .fields = SPACE},
                MODULE_SHIFTED,
                [WRONG] =
                    {.text = MODULE(
                         "%x: tensor<${x.type}>, %y: tensor<${y.type}>",
                         "%0 = stablehlo.multiply %x, %x : tensor<${x.type}>"),
                     .loses = OTHER},
                [HANGING] = {.text = MODULE("%x: tensor<${x.type}>, %y: tensor<${y.type}>", LOOP), .loses = ENDED},
                PLUGIN_BROKEN,
                MODULE_MISLISTED,
            },
    },
    {
        .name = "ffi",
        .platform = HONE_FFI,
        .device = HONE_DEVICE_CPU,
        .place = "cpu:0",
        .backend = "cpu",
        .extension = "so",
        .arguments = "x, y",
        .fields = "",
        .factor = 3,

        .environment = {"HONE_TVM_FFI=fakes/fake_tvm_ffi.so"},
        .variants =
            {
                [RIGHT] = {.text = "right"},
                [CONFIGURED] = {.text = "configured", .arguments = "x, i64(used), y", .fields = SPACE},
                [SHIFTED] = {.text = "shifted", .arguments = "x, i64(used), f64(alpha), y", .fields = SPACE},
                [WRONG] = {.text = "wrong", .loses = OTHER},
                [OVERRUN] = {.text = "overrun", .loses = PAST},
                [FAILING] = {.text = "failing", .loses = "ValueError: the fake has no heart for it"},
                [HANGING] = {.text = "hanging", .loses = ENDED},
                [BROKEN] =
                    {.text = "absent",
                     .refused = "no function __tvm_ffi_absent",
                     .loses = "no function __tvm_ffi_absent"},
                [MISLISTED] =
                    {.text = "right",
                     .arguments = "x",
                     .refused = "the result 'y' is not listed",
                     .loses = "is not listed"},
            },
    },
    {
        .name = "xla_fake",
        .platform = HONE_XLA,
        .device = HONE_DEVICE_CPU,
        .place = "cpu:0",
        .backend = "cpu",
        .extension = "mlir",
        .arguments = "x, y",
        .fields = "",
        .factor = 2,

        .environment = {"HONE_PJRT_PLUGIN=fakes/fake_pjrt.so"},
        .variants =
            {
                [RIGHT] = {.text = MODULE_RIGHT},
                MODULE_SHIFTED,
                [WRONG] = {.text = MODULE_RIGHT "// wrong\n", .loses = OTHER},
                [FAILING] = {.text = MODULE_RIGHT "// fails\n", .loses = "the fake fails in execute"},
                [HANGING] = {.text = MODULE_RIGHT "// hangs\n", .loses = ENDED},
                FAKE_BROKEN,
                MODULE_MISLISTED,
            },
    },
    {
        .name = "pallas",
        .platform = HONE_PALLAS,
        .device = HONE_DEVICE_CPU,
        .place = "cpu:0",
        .backend = "cpu",
        .extension = "mlir",
        .arguments = "x, y",
        .fields = "",
        .factor = 2,
        .never_competes = "interpret mode",
        .environment = {"HONE_PJRT_PLUGIN=packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
        .variants = {[RIGHT] = {.text = MODULE_RIGHT}, PLUGIN_BROKEN, MODULE_MISLISTED},
    },
    {
        .name = "pallas_fake",
        .platform = HONE_PALLAS,
        .device = HONE_DEVICE_CPU,
        .place = "cpu:0",
        .backend = "cpu",
        .extension = "mlir",
        .arguments = "x, y",
        .fields = "",
        .factor = 2,
        .never_competes = "interpret mode",
        .environment = {"HONE_PJRT_PLUGIN=fakes/fake_pjrt.so"},
        .variants = {[RIGHT] = {.text = MODULE_RIGHT}, FAKE_BROKEN, MODULE_MISLISTED},
    },
};

const row *row_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

// Environment ---------------------------------------------------------------------------------------------------------

static void set_variable(const char *text)
{
    char name[64], path[1024];
    const char *value = strchr(text, '=') + 1;
    snprintf(name, sizeof name, "%.*s", (int)(value - 1 - text), text);
    snprintf(path, sizeof path, "%s", value);
    if (strncmp(value, "fakes/", 6) == 0) snprintf(path, sizeof path, "%s/%s", HONE_TEST_FAKES, value + 6);
    if (strncmp(value, "packages/", 9) == 0) snprintf(path, sizeof path, "%s/%s", HONE_TEST_PACKAGES, value + 9);
    struct stat info;
    if (strncmp(value, "packages/", 9) == 0 && stat(path, &info) != 0)
        fail_msg("%s is missing: scripts/setup python brings it", path);
    setenv(name, path, 1);
}

void row_choose(const row *r, const char *folder)
{
    static const char *const caches[] = {"HONE_COMPILE_CACHE=%s", "POCL_CACHE_DIR=%s"};
    char text[512];
    for (size_t i = 0; i < sizeof r->environment / sizeof *r->environment && r->environment[i] != NULL; i++)
        set_variable(r->environment[i]);
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        const char *form = strchr(caches[i], '%') + 2;
        snprintf(text, sizeof text, "%.*s%s%s", (int)(strchr(caches[i], '%') - caches[i]), caches[i], folder, form);
        set_variable(text);
    }
}

// Packs ---------------------------------------------------------------------------------------------------------------

static void put_file(const char *folder, const char *name, const char *bytes, size_t size, char *out_sha256)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    hone_hash_sha256(bytes, size, out_sha256);
}

// What Triton has compiled, its function under another name.
static size_t rename_function(const char *name, char *out, size_t room)
{
    FILE *file = fopen(HONE_TEST_DATA "/unit/triton/data/vadd.cubin", "rb");
    assert_non_null(file);
    const size_t size = fread(out, 1, room, file);
    fclose(file);
    for (char *at = out; (at = memmem(at, size - (size_t)(at - out), "vadd", 4)) != NULL; at += 4)
        memcpy(at, name, 4);
    return size;
}

static size_t read_library(char *out, size_t room)
{
    FILE *file = fopen(HONE_TEST_FAKES "/fake_ffi.so", "rb");
    assert_non_null(file);
    const size_t size = fread(out, 1, room, file);
    assert_true(size < room);
    fclose(file);
    return size;
}

static void put_code(const row *r, const variant *v, const char *name, const char *folder, char *sha256)
{
    static char bytes[1 << 20];
    size_t size = strlen(v->text);
    if (r->platform == HONE_TRITON)
        size = rename_function(v->text, bytes, sizeof bytes);
    else if (r->platform == HONE_FFI)
        size = read_library(bytes, sizeof bytes);
    else
        memcpy(bytes, v->text, size);
    put_file(folder, name, bytes, size, sha256);
}

static void put_kernel(FILE *out, const row *r, sample k, const char *folder)
{
    const variant *v = &r->variants[k];
    char name[64], sha256[HONE_SHA256_HEX_SIZE];
    snprintf(name, sizeof name, "%s.%s", row_samples[k], r->extension);
    put_code(r, v, name, folder, sha256);
    fprintf(
        out,
        ",\n{\"algorithm\": \"%s\", \"name\": \"%s\", \"platform\": \"%s\", \"backend\": \"%s\", \"arguments\": "
        "\"%s\"%s",
        row_algorithm(k), row_samples[k], hone_platform_name(r->platform), r->backend,
        v->arguments != NULL ? v->arguments : r->arguments, v->fields != NULL ? v->fields : r->fields);
    if (r->platform != HONE_TRITON) {
        fprintf(out, ", \"file\": \"%s\", \"sha256\": \"%s\"", name, sha256);
        const char *entry = r->platform == HONE_FFI ? v->text : v->entry;
        if (entry != NULL) fprintf(out, ", \"entry\": \"%s\"", entry);
    } else {
        fprintf(
            out,
            ", \"variants\": [{\"config\": {\"num_warps\": 2}, \"file\": \"%s\", \"sha256\": \"%s\", \"facts\": {"
            "\"name\": \"%s\", \"triton_version\": \"3.9.0\", \"target\": {\"backend\": \"cuda\", \"arch\": 90, "
            "\"warp_size\": 32}, \"num_warps\": 2, \"num_ctas\": 1, \"num_stages\": 2, \"shared\": 0, "
            "\"global_scratch_size\": 0, \"global_scratch_align\": 1, \"profile_scratch_size\": 0, "
            "\"launch_cooperative_grid\": false, \"launch_pdl\": false, \"tensordesc_meta\": []}}]",
            name, sha256, v->entry != NULL ? v->entry : v->text);
    }
    fprintf(out, "}");
}

static void put_plain(
    FILE *out, sample k, const char *name, const char *text, const char *arguments, const char *folder)
{
    char file[64], sha256[HONE_SHA256_HEX_SIZE];
    snprintf(file, sizeof file, "%s.c", name);
    put_file(folder, file, text, strlen(text), sha256);
    fprintf(
        out,
        "{\"algorithm\": \"%s\", \"name\": \"%s\", \"platform\": \"native\", \"backend\": \"cpu\", \"file\": \"%s\", "
        "\"sha256\": \"%s\", \"entry\": \"plain\", \"arguments\": \"%s\"}",
        row_algorithm(k), name, file, sha256, arguments);
}

void row_write_pack(const row *r, unsigned samples, const char *folder)
{
    char path[512], text[256];
    snprintf(path, sizeof path, "%s/pack.json", folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(
        out, "{\"hone_pack\": 1, \"name\": \"scale\", \"algorithms\": [{\"signature\": \"scale(x: f32[n]) -> y: "
             "f32[n]\", \"reference\": \"plain\"}, {\"signature\": \"shift(x: f32[n], alpha: f64) -> y: f32[n]\", "
             "\"reference\": \"plain_shift\"}], \"kernels\": [\n");
    snprintf(
        text, sizeof text,
        "void plain(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = %d * x[i]; }\n",
        (int)r->factor);
    put_plain(out, RIGHT, "plain", text, "x, y, i64(n)", folder);
    fprintf(out, ",\n");
    put_plain(
        out, SHIFTED, "plain_shift",
        "void plain(const float *x, double alpha, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] + "
        "alpha; }\n",
        "x, f64(alpha), y, i64(n)", folder);
    for (sample k = RIGHT; k < SAMPLE_COUNT; k++)
        if ((samples & 1u << k) != 0 && r->variants[k].text != NULL) put_kernel(out, r, k, folder);
    fprintf(out, "]}\n");
    assert_int_equal(fclose(out), 0);
}
