// A user's program for NVIDIA's GPUs: registers functions that start their work with the driver, honest and cheating
// ones, and has hone tune copied(x) in children of the zygote. cheats_gpu_program CHEAT; prints what hone tune --json
// prints.
#include <hone/hone.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct CUctx_st *context;
typedef struct CUstream_st *stream;

static struct {
    int (*copy)(unsigned long long to, unsigned long long from, size_t size, stream on);
    int (*create)(stream *out, unsigned flags);
    int (*retain)(context *out, int device); // the primary one of a device
    int (*set)(context to);
} driver;

static bool find_driver(void)
{
    const char *named = getenv("HONE_CUDA_DRIVER");
    void *library = dlopen(named != NULL ? named : "libcuda.so.1", RTLD_NOW);
    if (library == NULL) return false;
    *(void **)&driver.copy = dlsym(library, "cuMemcpyDtoDAsync_v2");
    *(void **)&driver.create = dlsym(library, "cuStreamCreate");
    *(void **)&driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&driver.set = dlsym(library, "cuCtxSetCurrent");
    return driver.copy != NULL && driver.create != NULL && driver.retain != NULL && driver.set != NULL;
}

typedef struct job {
    unsigned long long to, from;
    size_t size;
    context of;
} job;

static bool job_of(const hone_value *args, job *out)
{
    static context primary;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    if (primary == NULL && (!find_driver() || driver.retain(&primary, 0) != 0)) return false;
    *out = (job){
        (unsigned long long)(uintptr_t)hone_tensor_data(y), (unsigned long long)(uintptr_t)hone_tensor_data(x),
        (size_t)x->shape[0] * sizeof(float), primary};
    return driver.set(primary) == 0;
}

// Three times over, on the stream that it was given.
static hone_status run_honest(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    job j;
    int result = 0;
    (void)plan;
    if (!job_of(args, &j)) return HONE_KERNEL_FAILED;
    for (int i = 0; i < 3 && result == 0; i++)
        result = driver.copy(j.to, j.from, j.size, execution->stream);
    return result == 0 ? HONE_OK : HONE_KERNEL_FAILED;
}

// On a stream of its own, which nobody waits for.
static hone_status copies_on_a_side_stream(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    enum { NON_BLOCKING = 1 };
    static stream side;
    job j;
    (void)plan;
    (void)execution;
    if (!job_of(args, &j) || (side == NULL && driver.create(&side, NON_BLOCKING) != 0)) return HONE_KERNEL_FAILED;
    return driver.copy(j.to, j.from, j.size, side) == 0 ? HONE_OK : HONE_KERNEL_FAILED;
}

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool started, waits;
    job job;
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *help(void *unused)
{
    stream side = NULL;
    pthread_mutex_lock(&helper.mutex);
    for (;;) {
        while (!helper.waits)
            pthread_cond_wait(&helper.changed, &helper.mutex);
        job j = helper.job;
        helper.waits = false;
        pthread_mutex_unlock(&helper.mutex);
        driver.set(j.of);
        if (side == NULL) driver.create(&side, 1);
        usleep(50);
        driver.copy(j.to, j.from, j.size, side);
        pthread_mutex_lock(&helper.mutex);
    }
    return unused;
}

// A thread starts the work when the run has returned.
static hone_status copies_in_a_thread(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    pthread_t thread;
    job j;
    (void)plan;
    (void)execution;
    if (!job_of(args, &j)) return HONE_KERNEL_FAILED;
    pthread_mutex_lock(&helper.mutex);
    helper.job = j;
    helper.waits = true;
    if (!helper.started && pthread_create(&thread, NULL, help, NULL) == 0) pthread_detach(thread);
    helper.started = true;
    pthread_cond_signal(&helper.changed);
    pthread_mutex_unlock(&helper.mutex);
    return HONE_OK;
}

static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)plan;
    (void)execution;
    memcpy(hone_tensor_data(y), hone_tensor_data(x), (size_t)x->shape[0] * sizeof(float));
    return HONE_OK;
}

static const struct {
    const char *name;
    hone_run_function *run;
} rows[] = {
    {"honest_copy", run_honest},
    {"copies_on_a_side_stream", copies_on_a_side_stream},
    {"copies_in_a_thread", copies_in_a_thread},
};

static hone_status add_kernel(hone_runtime *rt, const char *name, hone_error *err)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        const hone_kernel kernel = {HONE_KERNEL,           .algorithm = "copied", .name = name,
                                    .platform = HONE_CUDA, .backend = HONE_GPU,   .run = rows[i].run};
        return hone_register_kernels(rt, &kernel, 1, err);
    }
    return HONE_NOT_FOUND;
}

int main(int count, char **arguments)
{
    const hone_runtime_options how = {.struct_size = sizeof how, .flags = HONE_RUNTIME_ZYGOTE};
    const hone_tune_options options = {.struct_size = sizeof options, .seconds = 20, .evaluations = 4};
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "copied(x: f32[n]) -> y: f32[n]", .reference = reference};
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_error err = {0};
    char *text = NULL;
    if (count != 2) return 2;
    hone_status status = hone_runtime_open(&how, &rt, &err);
    if (status == HONE_OK) status = hone_register_algorithm(rt, &algorithm, &err);
    if (status == HONE_OK) status = add_kernel(rt, arguments[1], &err);
    if (status == HONE_OK) status = add_kernel(rt, "honest_copy", &err);
    if (status == HONE_OK) status = hone_tune_text(rt, "copied(f32[4194304]) @cuda:0", &options, &result, &err);
    if (status == HONE_OK) status = hone_result_json(result, &text, &err);
    if (status == HONE_OK)
        puts(text);
    else
        fprintf(stderr, "cheats_gpu_program: %s\n", err.message);
    hone_text_release(&text);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status == HONE_OK ? 0 : 1;
}
