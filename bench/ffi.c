// What the platform ffi adds to a call: a bound plan of a function beside tvm-ffi's own call of the same function with
// arguments that stand ready (TVMFFIFunctionCall), in turn. HONE_TVM_FFI or the loader has libtvm_ffi.so.
//
//   bench_ffi LIBRARY         on the CPU, as a row of scripts/bench
//   bench_ffi LIBRARY cuda [CUBIN]   on the first GPU, in words; LIBRARY is of ffi_library.cu. CUBIN: of its kernel alone,
//                                    which the driver's own cuLaunchKernel launches in turn with them
#include "base/hash.h"
#include "bench.h"
#include "folder.h"
#include "hone/hone.h"
#include "os/os.h"
#include "platforms/cuda/instance.h"
#include "platforms/ffi/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 3, VALUES = 4, ELEMENTS = 16, ROUNDS = 41, LAUNCHES = 400 };

static const char reference[] = "#include <stdint.h>\n"
                                "void multiply(const float *x, const float *y, float *z, int64_t n, double scale)\n"
                                "{ for (int64_t i = 0; i < n; i++) z[i] = x[i] * y[i] * (float)scale; }\n";

typedef struct subject {
    const hone_plan *plan;
    int (*call)(void *function, const hone_value *arguments, int32_t count, hone_value *result);
    void *function;
    hone_value args[VALUES];
    hone_tensor tensors[TENSORS];
} subject;

static void check(hone_status status, const hone_error *err)
{
    if (status == HONE_OK) return;
    fprintf(stderr, "bench_ffi: %s\n", err->message);
    exit(1);
}

static int run_plan(void *ctx, uint64_t count)
{
    const subject *s = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= s->plan->run(s->plan, s->args, NULL) != HONE_OK;
    return failed;
}

static int run_own(void *ctx, uint64_t count)
{
    const subject *s = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_value result = hone_of_none();
        failed |= s->call(s->function, s->args, VALUES, &result);
    }
    return failed;
}

// The pack -----------------------------------------------------------------------------------------------------------

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[BENCH_PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        fprintf(stderr, "bench_ffi: %s cannot be written\n", path);
        exit(1);
    }
}

static char *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        *out_size = (size_t)ftell(file);
        bytes = malloc(*out_size + 1);
        rewind(file);
    }
    if (bytes == NULL || fread(bytes, 1, *out_size, file) != *out_size) {
        fprintf(stderr, "bench_ffi: %s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    bytes[*out_size] = '\0'; // code may be text
    return bytes;
}

static void write_pack(const char *folder, const char *library, const char *backend)
{
    char digests[2][HONE_SHA256_HEX_SIZE], text[2048];
    size_t size = 0;
    char *bytes = read_file(library, &size);
    hone_hash_sha256(reference, sizeof reference - 1, digests[0]);
    hone_hash_sha256(bytes, size, digests[1]);
    write_file(folder, "plain.c", reference, sizeof reference - 1);
    write_file(folder, "library.so", bytes, size);
    free(bytes);
    snprintf(
        text, sizeof text,
        "{\"hone_pack\": 1, \"name\": \"bench\", \"algorithms\": [{\"signature\": "
        "\"multiply(x: f32[n], y: f32[n], *, scale: f64 = 1.0) -> z: f32[n]\", \"reference\": \"plain\"}], "
        "\"kernels\": ["
        "{\"algorithm\": \"multiply\", \"name\": \"plain\", \"platform\": \"native\", \"backend\": \"cpu\", "
        "\"file\": \"plain.c\", \"sha256\": \"%s\", \"entry\": \"multiply\", "
        "\"arguments\": \"x, y, z, i64(n), f64(scale)\"},"
        "{\"algorithm\": \"multiply\", \"name\": \"ffi\", \"platform\": \"ffi\", \"backend\": \"%s\", \"priority\": "
        "90, "
        "\"file\": \"library.so\", \"sha256\": \"%s\", \"entry\": \"multiply\", "
        "\"arguments\": \"x, y, z, f64(scale)\"}]}",
        digests[0], backend, digests[1]);
    write_file(folder, "pack.json", text, strlen(text));
}

// The subject --------------------------------------------------------------------------------------------------------

static void fill_arguments(subject *s, hone_device device, void *const data[TENSORS])
{
    static int64_t shape[] = {ELEMENTS}, strides[] = {1};
    for (int i = 0; i < TENSORS; i++) {
        s->tensors[i] = hone_tensor_of(data[i], HONE_F32, 1, shape);
        s->tensors[i].strides = strides;
        s->tensors[i].device = device;
        s->args[i] = hone_of_tensor(&s->tensors[i]);
    }
    s->args[TENSORS] = hone_of_float(1.0);
}

static void *symbol(hone_library *library, const char *name)
{
    void *found = library != NULL ? hone_library_symbol(library, name) : NULL;
    if (found != NULL) return found;
    fprintf(stderr, "bench_ffi: no %s\n", name);
    exit(1);
}

// The same function as an object of tvm-ffi's, as its hosts hold it.
static void make_function(subject *s, const char *path)
{
    static hone_ffi_runtime runtime;
    const hone_allocator system = hone_allocator_system();
    hone_library *library = NULL;
    hone_error err;
    int (*create)(void *self, void *safe_call, void (*deleter)(void *), void **out);
    check(hone_ffi_runtime_open(&system, "benchmarks of ffi", &runtime, &err), &err);
    check(hone_library_open(&system, (const char *const[]){path, NULL}, &library, &err), &err);
    void *address = symbol(runtime.library, "TVMFFIFunctionCreate");
    memcpy(&create, &address, sizeof create);
    address = symbol(runtime.library, "TVMFFIFunctionCall");
    memcpy(&s->call, &address, sizeof address);
    if (create(NULL, symbol(library, "__tvm_ffi_multiply"), NULL, &s->function) != 0) exit(1);
}

static void bind(hone_runtime *rt, const char *folder, subject *s)
{
    hone_error err = {.message = ""};
    const hone_op *op = NULL;
    check(hone_pack_load(rt, folder, &err), &err);
    check(hone_op_get(rt, "multiply", &op, &err), &err);
    check(hone_bind(op, s->args, VALUES, &s->plan, &err), &err);
    if (strcmp(s->plan->kernel->name, "ffi") != 0) {
        fprintf(stderr, "bench_ffi: %s was chosen, not the kernel of ffi\n", s->plan->kernel->name);
        exit(1);
    }
}

// The two ways -------------------------------------------------------------------------------------------------------

static int on_the_cpu(hone_runtime *rt, const char *folder, const char *library)
{
    static float data[TENSORS][ELEMENTS];
    subject s = {.plan = NULL};
    bench_row row;
    fill_arguments(&s, (hone_device){HONE_DEVICE_CPU, 0}, (void *[]){data[0], data[1], data[2]});
    make_function(&s, library);
    bind(rt, folder, &s);
    if (bench_compare((bench_side){run_plan, &s}, (bench_side){run_own, &s}, 20000, 0, 101, &row) != 0) return 1;
    bench_print("ffi/a function of tvm-ffi", "tvm-ffi's own call", &row, "at most 100 ns more");
    hone_plan_release(&s.plan);
    return 0;
}

// The kernel inside of the function, as the driver launches it.
typedef struct raw_launch {
    const cuda_driver *driver;
    cuda_function *function;
    void *data[TENSORS];
} raw_launch;

static int run_raw(void *ctx, uint64_t count)
{
    raw_launch *raw = ctx;
    int n = ELEMENTS, failed = 0;
    float scale = 1;
    void *arguments[] = {&raw->data[0], &raw->data[1], &raw->data[2], &n, &scale};
    for (uint64_t i = 0; i < count; i++)
        failed |= raw->driver->launch(raw->function, 1, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL) != CUDA_SUCCESS;
    return failed;
}

static bench_side side_of_cubin(const char *path, raw_launch *raw)
{
    size_t size = 0;
    cuda_module *module = NULL;
    char *image = read_file(path, &size);
    const bool is_loaded = raw->driver->module_load(&module, image, 0, NULL, NULL) == CUDA_SUCCESS &&
                           raw->driver->module_get_function(&raw->function, module, "product") == CUDA_SUCCESS;
    free(image);
    if (is_loaded) return (bench_side){run_raw, raw};
    fprintf(stderr, "bench_ffi: %s is no code for this GPU with a kernel product\n", path);
    exit(1);
}

static double time_round(bench_side side, const cuda_driver *driver)
{
    const uint64_t start = bench_now_ns();
    if (side.run(side.ctx, LAUNCHES) != 0) {
        fprintf(stderr, "bench_ffi: a launch failed\n");
        exit(1);
    }
    const double took = (double)(bench_now_ns() - start) / LAUNCHES;
    (void)driver->stream_synchronize(NULL);
    return took;
}

enum { PLAN, OWN, RAW, SIDES };

// What a bound plan takes more than another side, in the same round.
static void print_more(const char *name, double samples[SIDES][ROUNDS], int other)
{
    double more[ROUNDS], plan[ROUNDS], others[ROUNDS], low, high;
    for (int round = 0; round < ROUNDS; round++) {
        plan[round] = samples[PLAN][round];
        others[round] = samples[other][round];
        more[round] = plan[round] - others[round];
    }
    const double more_ns = bench_median(more, ROUNDS);
    bench_interval(more, ROUNDS, &low, &high); // they are sorted now
    printf(
        "%s %.1f ns, a bound plan %.1f ns: %+.1f ns, 95 %% interval %+.1f to %+.1f\n", name,
        bench_median(others, ROUNDS), bench_median(plan, ROUNDS), more_ns, low, high);
}

static void compare_launches(const bench_side sides[SIDES], int count, const cuda_driver *driver)
{
    static double samples[SIDES][ROUNDS];
    for (int round = -3; round < ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            const int side = (i + round + 3) % count; // each is first in its turn
            const double took = time_round(sides[side], driver);
            if (round >= 0) samples[side][round] = took;
        }
    print_more("tvm-ffi's own call", samples, OWN);
    if (count > RAW) print_more("cuLaunchKernel", samples, RAW);
}

static int on_a_gpu(hone_runtime *rt, const char *folder, const char *library, const char *cubin)
{
    const hone_allocator system = hone_allocator_system();
    hone_platform_instance *cuda = NULL;
    hone_error err = {.message = ""};
    cuda_context *before = NULL;
    subject s = {.plan = NULL};
    raw_launch raw = {.function = NULL};
    check(hone_cuda_platform.open(&system, NULL, &cuda, &err), &err);
    for (int i = 0; i < TENSORS; i++)
        check(hone_cuda_allocate(cuda, &cuda->gpus[0].info, 4 * ELEMENTS, &raw.data[i], &err), &err);
    fill_arguments(&s, (hone_device){HONE_DEVICE_CUDA, 0}, raw.data);
    make_function(&s, library);
    bind(rt, folder, &s);
    check(hone_cuda_enter(cuda, &cuda->gpus[0], &before, &err), &err);
    raw.driver = &cuda->driver;
    const bench_side sides[SIDES] = {
        {run_plan, &s}, {run_own, &s}, cubin != NULL ? side_of_cubin(cubin, &raw) : (bench_side){NULL, NULL}};
    compare_launches(sides, cubin != NULL ? SIDES : RAW, &cuda->driver);
    hone_plan_release(&s.plan);
    return 0;
}

int main(int argc, char **argv)
{
    char folder[BENCH_PATH_SIZE];
    hone_runtime *rt = NULL;
    hone_error err = {.message = ""};
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    const bool is_gpu = (argc == 3 || argc == 4) && strcmp(argv[2], "cuda") == 0;
    if (argc != 2 && !is_gpu) {
        fprintf(stderr, "usage: bench_ffi LIBRARY [cuda [CUBIN]], without HONE_PACK_PATH\n");
        return 2;
    }
    if (bench_folder_make(folder) != 0) return 1;
    write_pack(folder, argv[1], is_gpu ? "gpu" : "cpu");
    check(hone_runtime_open(&options, &rt, &err), &err);
    const int failed =
        is_gpu ? on_a_gpu(rt, folder, argv[1], argc == 4 ? argv[3] : NULL) : on_the_cpu(rt, folder, argv[1]);
    hone_runtime_close(&rt);
    bench_folder_remove(folder);
    return failed;
}
