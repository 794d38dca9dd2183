// Tunes a call, pins what was found in a lock file, and runs with that file and nothing else: what nobody pinned is an
// error.
#include <hone/hone.h>

#include <stdio.h>

static const char store_url[] = "sqlite:freeze.db", lock_path[] = "freeze.lock";
static hone_status tune(hone_error *err)
{
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    const hone_runtime_options options = {.struct_size = sizeof options, .store = store_url};
    const hone_tune_options quickly = {.struct_size = sizeof quickly, .seconds = 1, .evaluations = 20};
    hone_status status = hone_runtime_open(&options, &rt, err);
    if (status == HONE_OK) status = hone_tune_text(rt, "rms_norm(f32[16,256], f32[256])", &quickly, &result, err);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status;
}

// What `hone lock` does on the command line.
static hone_status pin(hone_error *err)
{
    hone_store *store = NULL;
    hone_lock *lock = NULL;
    hone_status status = hone_store_open(hone_allocator_system(), store_url, &store, err);
    if (status == HONE_OK) status = hone_lock_create(hone_allocator_system(), &lock, err);
    if (status == HONE_OK) status = hone_lock_put_store(lock, store, NULL, NULL, NULL, err);
    if (status == HONE_OK) status = hone_lock_write(lock, lock_path, err);
    hone_lock_release(&lock);
    hone_store_close(&store);
    return status;
}

static hone_status run(int64_t rows, hone_error *err)
{
    static float x[32 * 256], weight[256], y[32 * 256];
    int64_t shape[] = {rows, 256}, dim[] = {256};
    hone_tensor tensors[] = {
        hone_tensor_of(x, HONE_F32, 2, shape), hone_tensor_of(weight, HONE_F32, 1, dim),
        hone_tensor_of(y, HONE_F32, 2, shape)};
    const hone_value args[] = {hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1]), hone_of_tensor(&tensors[2])};
    hone_runtime *rt = NULL;
    hone_runtime_options options = {.struct_size = sizeof options, .store = "none", .lock_file = lock_path};
    options.policy = HONE_POLICY_FROZEN;
    hone_status status = hone_runtime_open(&options, &rt, err);
    if (status == HONE_OK) status = hone_run(hone_op_find(rt, "rms_norm", err), args, 3, NULL, err);
    hone_runtime_close(&rt);
    return status;
}

int main(void)
{
    hone_error err;
    if (tune(&err) != HONE_OK || pin(&err) != HONE_OK || run(16, &err) != HONE_OK) {
        fprintf(stderr, "%s: %s\n", err.where, err.message);
        return 1;
    }
    return run(32, &err) == HONE_NOT_FOUND && printf("%s\n", err.message) > 0 ? 0 : 1;
}
